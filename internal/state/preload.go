package state

import (
	"bytes"
	"slices"

	"github.com/zeebo/xxh3"
)

// preload is how far a table has been read ahead. While it goes on, eviction puts what it takes of parts that are not known into their filters, so that
// they are known at its end.
type preload struct {
	from  []byte // the key to go on with
	ended bool   // no more is read
}

// preloads says that the table was not made in this run, and is being read ahead.
func (tb *table) preloads() bool { return tb.spec.Mine != nil && !tb.preload.ended }

// Preload brings rows into memory that the database has from before a restart: it looks at up to n rows, of one table whose Spec has Mine. When it has been through
// a table, a key that memory does not have is known not to be there. It stops for good when memory is nearly full: what operators ask for comes
// first. It is called between epochs, and says whether there is more to do.
func (t *Tables) Preload(n int) (more bool, err error) {
	if !t.ahead {
		return false, nil
	}
	for _, tb := range t.list {
		if !tb.preloads() {
			continue
		}
		if t.limit > 0 && t.pool.used > t.limit-t.limit/8 {
			t.stopPreload()
			return false, nil
		}
		err := tb.readAhead(n)
		if err != nil {
			t.stopPreload()
		}
		return err == nil, err
	}
	t.ahead = false
	return false, nil
}

// stopPreload gives up reading ahead.
func (t *Tables) stopPreload() {
	for _, tb := range t.list {
		if !tb.preloads() {
			continue
		}
		tb.preload.ended = true
		for _, w := range tb.parts {
			if !w.known {
				w.filter.drop(t.pool)
			}
		}
	}
}

// readAhead looks at up to n rows, and on to the end of their group.
func (tb *table) readAhead(n int) error {
	if err := tb.open(); err != nil {
		return err
	}
	if slices.IndexFunc(tb.parts, func(w *part) bool { return !w.known }) < 0 {
		tb.preload.ended = true
		return nil
	}
	it, err := tb.db.NewIter(tb.spec.ID, false)
	if err != nil {
		return tb.wrap("read rows ahead", err)
	}
	put := tb.sort.putAhead()
	last := tb.preload.from
	first, wanted := true, false
	var w *part
	at := 0
	for it.SeekGE(last, nil); it.Next(); at++ {
		key := it.Prefix()
		if first || !bytes.Equal(key, last) {
			if at >= n {
				tb.preload.from = append([]byte{}, key...)
				if err := it.Close(); err != nil {
					return tb.wrap("read rows ahead", err)
				}
				return nil
			}
			last, first = append(last[:0:0], key...), false
			w = tb.partAhead(key)
			hash := xxh3.Hash(key)
			wanted = w != nil && tb.spec.Mine(key) && w.index.find(tb.pool, hash, key, tb.header) == 0 && !w.filter.has(hash)
		}
		if wanted {
			put(w, key, it.Suffix(), it.Value())
		}
	}
	if err := it.Close(); err != nil {
		return tb.wrap("read rows ahead", err)
	}
	for _, w := range tb.parts {
		w.known = true
	}
	tb.preload = preload{ended: true}
	return nil
}

// partAhead is the part of a key that the database has, nil if memory knows all of it, or its window is gone.
func (tb *table) partAhead(key []byte) *part {
	w := tb.last
	if tb.spec.Windowed {
		if len(key) < WindowBytes {
			return nil
		}
		end := WindowEnd(key)
		i, there := slices.BinarySearchFunc(tb.parts, end, func(w *part, end int64) int {
			switch {
			case w.end < end:
				return -1
			case w.end > end:
				return 1
			}
			return 0
		})
		if !there {
			return nil
		}
		w = tb.parts[i]
	}
	if w.known {
		return nil
	}
	return w
}

// putAhead puts a row into memory.
func (p *Point) putAhead() func(w *part, key, suffix, value []byte) {
	return func(w *part, key, _, value []byte) {
		addr, r := p.pool.newRow(&w.arena, key, len(value))
		p.pool.store(&w.arena, addr, r, value)
		w.index.insert(p.pool, xxh3.Hash(key), addr)
	}
}

// putAhead puts the rows of a group into memory, one after the other.
func (o *Ordered) putAhead() func(w *part, prefix, suffix, value []byte) {
	open, size := uint32(0), 0
	return func(w *part, prefix, suffix, value []byte) {
		if open == 0 || !bytes.Equal(o.Prefix(Ref(open)), prefix) {
			addr, g := o.pool.newGroup(&w.arena, prefix)
			w.index.insert(o.pool, xxh3.Hash(prefix), addr)
			g.flags &^= flagRecent
			o.absent++
			open, size = addr, 0
		}
		g := o.pool.group(open)
		if g.flags&flagPartial != 0 {
			return
		}
		if size += len(suffix) + len(value); size > o.big {
			o.makePartial(w, g)
			return
		}
		row, r := o.pool.newRow(&w.arena, suffix, len(value))
		o.pool.store(&w.arena, row, r, value)
		o.attach(w, g, position{int(max(g.leaves, 1)) - 1, o.lastLeafLen(g)}, row)
	}
}

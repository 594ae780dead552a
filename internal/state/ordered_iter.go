package state

import (
	"bytes"
	"slices"

	"github.com/leat-io/leat/internal/kv"
)

// OrderedIter walks a group's rows: for it.Next() {...}; then Err and Close. Reusable; the caller owns it.
type OrderedIter struct {
	o        *Ordered
	g        Ref
	from, to []byte
	reverse  bool
	at       position // of the next row in memory (reverse: it is the one before)

	stored *kv.Iter // of a partial group
	has    bool     // stored stands on a row that was not yielded

	suffix, value []byte
	err           error
}

// Scan starts it over the group's live rows with from <= suffix < to (nil: no bound), from the end if reverse. The group
// must not be changed until it ends, but by it.Delete; from and to must stay as they are.
func (o *Ordered) Scan(it *OrderedIter, g Ref, from, to []byte, reverse bool) error {
	if it.stored != nil {
		_ = it.Close()
	}
	gr := o.pool.group(uint32(g))
	*it = OrderedIter{o: o, g: g, from: from, to: to, reverse: reverse}
	switch {
	case !reverse && from == nil:
	case !reverse:
		it.at, _ = o.pool.seek(gr, from)
	case to == nil:
		it.at = position{max(int(gr.leaves)-1, 0), o.lastLeafLen(gr)}
	default:
		it.at, _ = o.pool.seek(gr, to)
	}
	if gr.flags&flagPartial == 0 {
		return nil
	}
	snap := o.db.Snapshot()
	defer snap.Release() // the iterator keeps it
	stored, err := snap.NewIter(o.spec.ID)
	if err != nil {
		return o.wrap("read a large group", err)
	}
	it.stored = stored
	if reverse {
		stored.SeekGroupBefore(o.Prefix(g), to)
	} else {
		stored.SeekGroup(o.Prefix(g), from)
	}
	it.step()
	return nil
}

// step moves stored.
func (it *OrderedIter) step() {
	if it.reverse {
		it.has = it.stored.Prev()
	} else {
		it.has = it.stored.Next()
	}
}

// peek is the next row in memory, 0 if there is none.
func (it *OrderedIter) peek(gr *group) uint32 {
	if it.reverse {
		for it.at.pos == 0 {
			if it.at.li == 0 {
				return 0
			}
			it.at.li--
			it.at.pos = len(it.o.pool.leafAt(gr, it.at.li))
		}
		return it.o.pool.leafAt(gr, it.at.li)[it.at.pos-1]
	}
	for it.at.li < int(gr.leaves) {
		rows := it.o.pool.leafAt(gr, it.at.li)
		if it.at.pos < len(rows) {
			return rows[it.at.pos]
		}
		it.at.li++
		it.at.pos = 0
	}
	return 0
}

func (it *OrderedIter) move() {
	if it.reverse {
		it.at.pos--
	} else {
		it.at.pos++
	}
}

// Next moves to the next live row.
func (it *OrderedIter) Next() bool {
	p := it.o.pool
	gr := p.group(uint32(it.g))
	for {
		row := it.peek(gr)
		if it.has {
			order := 1 // stored before memory
			if row != 0 {
				if order = bytes.Compare(p.keyAt(row, rowHeader), it.stored.Suffix()); it.reverse {
					order = -order
				}
			}
			if order > 0 {
				if it.beyond(it.stored.Suffix()) {
					return false
				}
				it.suffix = append(it.suffix[:0:0], it.stored.Suffix()...)
				it.value = append([]byte{}, it.stored.Value()...)
				it.step()
				return true
			}
			if order == 0 { // memory has the newer one
				it.step()
			}
		}
		if row == 0 {
			if it.stored != nil {
				it.err = it.stored.Err()
			}
			return false
		}
		suffix := p.keyAt(row, rowHeader)
		if it.beyond(suffix) {
			return false
		}
		it.move()
		r := p.row(row)
		if r.valLen == absentLen {
			continue
		}
		it.suffix, it.value = suffix, p.valueOf(row, r)
		return true
	}
}

func (it *OrderedIter) beyond(suffix []byte) bool {
	if it.reverse {
		return it.from != nil && bytes.Compare(suffix, it.from) < 0
	}
	return it.to != nil && bytes.Compare(suffix, it.to) >= 0
}

// Suffix is that of the row; valid until the next move.
func (it *OrderedIter) Suffix() []byte { return it.suffix }

// Value is that of the row; valid until the next move.
func (it *OrderedIter) Value() []byte { return it.value }

// Delete deletes the row that the iterator is at; Next goes on behind it. Suffix and Value end with it.
func (it *OrderedIter) Delete() error {
	if err := it.o.Delete(it.g, it.suffix); err != nil {
		return err
	}
	// The row's block is kept for the end of the epoch, so its suffix is still there.
	at, found := it.o.pool.seek(it.o.pool.group(uint32(it.g)), it.suffix)
	if found && !it.reverse {
		at.pos++ // a deletion that lies over kv
	}
	it.at = at
	return nil
}

// Err is why Next returned false, nil at the end.
func (it *OrderedIter) Err() error { return it.err }

// Close gives the iterator back, and returns Err.
func (it *OrderedIter) Close() error {
	if it.stored != nil {
		if err := it.stored.Close(); it.err == nil && err != nil {
			it.err = it.o.wrap("read a large group", err)
		}
		it.stored = nil
	}
	return it.err
}

// ScanGroups calls fn for every group prefix with from <= prefix < to (nil: no bound), in order, until fn returns false: all
// that have rows, and perhaps some whose last row was just deleted. fn may probe and change the table. The prefixes that are
// in memory are sorted first, so it is not for the way of the data.
func (o *Ordered) ScanGroups(from, to []byte, fn func(prefix []byte) (more bool, err error)) error {
	if err := o.open(); err != nil {
		return err
	}
	var sorted lazySort
	whole := o.inMemory(&sorted, from, to)
	var keys Keys
	live := make([]bool, 0, len(sorted.rows))
	for ; sorted.peek() != 0; sorted.at++ {
		r := sorted.peek()
		keys.Append(o.pool.keyAt(r, groupHeader))
		g := o.pool.group(r)
		live = append(live, g.n > 0 || g.flags&flagPartial != 0)
	}
	if whole {
		for i := range live {
			if !live[i] {
				continue
			}
			if more, err := fn(keys.At(i)); err != nil || !more {
				return err
			}
		}
		return nil
	}
	snap := o.db.Snapshot()
	defer snap.Release()
	it, err := snap.ScanRange(o.spec.ID, from, to)
	if err != nil {
		return o.wrap("read groups", err)
	}
	err = o.mergeGroups(it, &keys, live, fn)
	if cerr := it.Close(); err == nil && cerr != nil {
		err = o.wrap("read groups", cerr)
	}
	return err
}

func (o *Ordered) mergeGroups(it *kv.Iter, keys *Keys, live []bool, fn func([]byte) (bool, error)) error {
	has := it.Next()
	var prefix []byte
	for i := 0; has || i < len(live); {
		order := -1 // memory first
		if has {
			order = 1
			if i < len(live) {
				order = bytes.Compare(keys.At(i), it.Prefix())
			}
		}
		call := true
		if order <= 0 {
			prefix, call = append(prefix[:0], keys.At(i)...), live[i]
			i++
		} else {
			prefix = append(prefix[:0], it.Prefix()...)
			call = o.storedCounts(prefix)
		}
		if order >= 0 { // leave the group in kv behind: a few steps, then a seek
			n := 0
			for has = it.Next(); has && bytes.Equal(it.Prefix(), prefix); has = it.Next() {
				if n++; n == 8 {
					it.SeekGE(append(slices.Clip(prefix), 0), nil)
				}
			}
		}
		if !call {
			continue
		}
		if more, err := fn(prefix); err != nil || !more {
			return err
		}
	}
	return it.Err()
}

// inMemory puts into s what the index has with from <= key < to; whole says that kv has nothing of the range beside them.
func (tb *table) inMemory(s *lazySort, from, to []byte) (whole bool) {
	whole = true
	s.reset(tb.pool, tb.header)
	for _, w := range tb.parts {
		if tb.spec.Windowed && (bytes.Compare(w.prefix[:], cut(from)) < 0 || to != nil && bytes.Compare(w.prefix[:], to) > 0) {
			continue
		}
		whole = whole && w.complete()
		for _, slot := range w.index.slots {
			if slot == 0 {
				continue
			}
			key := tb.pool.keyAt(uint32(slot), tb.header)
			if bytes.Compare(key, from) >= 0 && (to == nil || bytes.Compare(key, to) < 0) {
				s.add(uint32(slot), key)
			}
		}
	}
	return whole
}

// cut is the part of a bound that names a window.
func cut(b []byte) []byte { return b[:min(len(b), WindowBytes)] }

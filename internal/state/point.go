package state

import (
	"bytes"
	"slices"

	"github.com/zeebo/xxh3"
)

// Point is a table of key to value. An absent key has a ref whose Value is nil; a value of no bytes is not nil.
type Point struct {
	table
	changed []Ref
	olds    []oldValue // of changed
	hint    int        // bytes to keep for the value of a new row
}

// oldValue is a row's value at the start of the epoch: a block of the epoch's arena.
type oldValue struct {
	addr, n uint32
}

// Point opens a point table. A table is opened once.
func (t *Tables) Point(spec Spec) *Point {
	p := &Point{hint: spec.ValueBytes}
	if p.hint == 0 {
		p.hint = 16
	}
	p.init(t, spec, rowHeader)
	t.add(spec, &p.table, p)
	return p
}

// Probe resolves keys to refs (len(refs) = keys.Len()), reading from kv, sorted, what is not in memory. Equal keys get equal
// refs.
func (p *Point) Probe(keys *Keys, refs []Ref) error {
	n := keys.Len()
	if n == 0 {
		return nil
	}
	if len(refs) != n {
		panic("state: Probe needs a ref for every key")
	}
	if err := p.makeRoom(); err != nil {
		return err
	}
	p.hashes = slices.Grow(p.hashes[:0], n)[:n]
	for i := range p.hashes {
		p.hashes[i] = xxh3.Hash(keys.At(i))
	}
	if p.last != nil { // the usual case in a windowed table, too: all of one window
		p.warm(p.last)
	}
	p.missing = p.missing[:0]
	pool := p.pool
	w := p.last
	for i, hash := range p.hashes {
		key := keys.At(i)
		if p.spec.Windowed {
			var err error
			if w, err = p.partOf(key); err != nil {
				return err
			}
		}
		addr := w.index.find(pool, hash, key, rowHeader)
		if addr == 0 {
			if w.known && !w.filter.has(hash) {
				addr = p.insertAbsent(w, key, hash)
			} else {
				p.missing = append(p.missing, int32(i))
			}
		} else if r := pool.row(addr); r.flags&flagRecent == 0 {
			r.flags |= flagRecent
		}
		refs[i] = Ref(addr)
	}
	if len(p.missing) == 0 {
		return nil
	}
	return p.load(keys, refs)
}

// load reads the missing keys from kv.
func (p *Point) load(keys *Keys, refs []Ref) error {
	last, there := int32(-1), false // the key that is being put, and whether it has a row
	return p.lookUp(keys, oneRow, func(f found, _, value []byte) error {
		if f.kind == foundSame {
			refs[f.key] = refs[last]
			return nil
		}
		key, hash := keys.At(int(f.key)), p.hashes[f.key]
		w, err := p.partOf(key)
		switch {
		case err != nil:
			return err
		case f.kind == foundRow:
			addr, r := p.pool.newRow(&w.arena, key, len(value))
			p.pool.store(&w.arena, addr, r, value)
			w.index.insert(p.pool, hash, addr)
			refs[f.key], there = Ref(addr), true
			p.loads++
		default:
			if !there {
				refs[f.key] = Ref(p.insertAbsent(w, key, hash))
			}
			last, there = f.key, false
		}
		return nil
	})
}

func (p *Point) insertAbsent(w *part, key []byte, hash uint64) uint32 {
	addr, _ := p.pool.newRow(&w.arena, key, p.hint)
	w.index.insert(p.pool, hash, addr)
	p.absent++
	p.enter()
	return addr
}

// ProbeOne resolves one key. For a batch use Probe.
func (p *Point) ProbeOne(key []byte) (Ref, error) {
	keys := Keys{Data: key, Off: p.oneOff[:]}
	p.oneOff = [2]uint32{0, uint32(len(key))}
	err := p.Probe(&keys, p.oneRef[:])
	return p.oneRef[0], err
}

// Key is the row's key; valid as long as the ref.
func (p *Point) Key(r Ref) []byte { return p.pool.keyAt(uint32(r), rowHeader) }

// Value is the row's value, nil if absent; valid until the row is changed. Not to be written to.
func (p *Point) Value(r Ref) []byte { return p.pool.valueOf(uint32(r), p.pool.row(uint32(r))) }

// Mutable is the row's value to be changed in place, nil if absent. It marks the row changed.
func (p *Point) Mutable(r Ref) []byte {
	h := p.pool.row(uint32(r))
	if h.valLen == absentLen {
		return nil
	}
	if h.old == 0 {
		p.touch(r, h)
	}
	return p.pool.valueOf(uint32(r), h)
}

// Fixed is the row's value of n bytes to be changed in place; a row that is absent (or has another length) is made of n zero
// bytes first, and created is true. The hot path of aggregates: the value is aligned to 8 bytes. It marks the row changed.
func (p *Point) Fixed(r Ref, n int) (value []byte, created bool) {
	h := p.pool.row(uint32(r))
	if h.old == 0 {
		p.touch(r, h)
	}
	if h.valLen == uint32(n) {
		return p.pool.valueOf(uint32(r), h), false
	}
	value = p.resize(r, h, n)
	clear(value)
	return value, true
}

func (p *Point) resize(r Ref, h *row, n int) []byte {
	if h.valLen == absentLen {
		p.absent--
		h.valLen = 0
	}
	p.learn(n)
	if n <= h.capacity() {
		return p.pool.room(nil, uint32(r), h, n)
	}
	w := p.partOfRow(p.Key(r))
	return p.pool.room(&w.arena, uint32(r), h, n)
}

// learn keeps hint near the usual length of a value.
func (p *Point) learn(n int) {
	switch n = min(n, 256); {
	case n > p.hint:
		p.hint += (n - p.hint + 7) / 8
	case n < p.hint:
		p.hint -= (p.hint - n + 7) / 8
	}
}

// Set copies value into the row.
func (p *Point) Set(r Ref, value []byte) {
	h := p.pool.row(uint32(r))
	if h.old == 0 {
		p.touch(r, h)
	}
	if h.valLen == absentLen {
		p.absent--
		h.valLen = 0
	}
	p.learn(len(value))
	w := p.partOfRow(p.Key(r))
	p.pool.store(&w.arena, uint32(r), h, value)
}

// Delete makes the row absent.
func (p *Point) Delete(r Ref) {
	h := p.pool.row(uint32(r))
	if h.valLen == absentLen {
		return
	}
	if h.old == 0 {
		p.touch(r, h)
	}
	if h.ext != 0 {
		w := p.partOfRow(p.Key(r))
		w.arena.release(p.pool, h.ext, h.extClass)
		h.ext = 0
	}
	h.valLen = absentLen
	p.absent++
}

// touch keeps the row's value before its first change in the epoch.
func (p *Point) touch(r Ref, h *row) {
	old := oldValue{n: absentLen}
	if h.valLen != absentLen {
		old = p.keep(p.pool.valueOf(uint32(r), h))
	}
	p.enter()
	p.changed = append(p.changed, r)
	p.olds = append(p.olds, old)
	h.old = uint32(len(p.changed))
	n := int64(h.keyLen) + 16
	if h.valLen != absentLen {
		n += int64(h.valLen)
	} else {
		n += int64(p.hint)
	}
	p.changedBytes += n
	p.changing += n
}

// Old is the row's value at the start of the epoch, nil if it was absent; valid until EndEpoch.
func (p *Point) Old(r Ref) []byte {
	h := p.pool.row(uint32(r))
	if h.old == 0 {
		return p.pool.valueOf(uint32(r), h)
	}
	return p.kept(p.olds[h.old-1])
}

// Changed are the refs that were marked changed in this epoch, each once, in order of their first change; some may be equal
// to what they were. Valid until the next change or EndEpoch.
func (p *Point) Changed() []Ref { return p.changed }

// DropWindows forgets all windows whose end is at or below upTo, with what this epoch changed in them: their refs are gone
// from Changed.
func (p *Point) DropWindows(upTo int64) {
	if !p.spec.Windowed {
		panic("state: DropWindows of table " + p.spec.Name + ", which has no windows")
	}
	if err := p.open(); err != nil {
		p.fail(err)
		return
	}
	if len(p.parts) == 0 || p.parts[0].end > upTo {
		return
	}
	n := 0
	for i, r := range p.changed {
		if WindowEnd(p.Key(r)) <= upTo {
			continue
		}
		p.changed[n], p.olds[n] = r, p.olds[i]
		n++
		p.pool.row(uint32(r)).old = uint32(n)
	}
	p.changed, p.olds = p.changed[:n], p.olds[:n]
	p.takeWindows(upTo)
}

func (p *Point) dirty() bool { return len(p.changed) > 0 }

func (p *Point) forget() { p.changed, p.olds = p.changed[:0], p.olds[:0] }

// endEpoch encodes the net changes.
func (p *Point) endEpoch(dst *Changes) {
	pool := p.pool
	kind := p.spec.kind()
	durable := !p.spec.Ephemeral
	p.encodeDrop(dst)
	for i, ref := range p.changed {
		addr := uint32(ref)
		r := pool.row(addr)
		r.old = 0
		if !durable {
			continue
		}
		was, now := p.kept(p.olds[i]), pool.valueOf(addr, r)
		if (was == nil) == (now == nil) && bytes.Equal(was, now) {
			continue
		}
		r.commit = p.generation
		key := pool.keyAt(addr, rowHeader)
		if now == nil {
			dst.Delete(kind, p.spec.ID, key, nil)
		} else {
			dst.Set(kind, p.spec.ID, key, nil, now)
		}
	}
	p.changed = resetList(p.changed)
	p.olds = resetList(p.olds)
	if p.absent > p.sweepAt {
		p.sweepAbsent()
	}
}

// sweepAbsent forgets absent rows that kv does not have either.
func (p *Point) sweepAbsent() {
	left, rows := 0, 0
	for _, w := range p.parts {
		for i := 0; i < len(w.index.slots); {
			addr := uint32(w.index.slots[i])
			if addr == 0 {
				i++
				continue
			}
			r := p.pool.row(addr)
			if r.valLen != absentLen || r.old != 0 || !p.isApplied(r.commit) {
				if r.valLen == absentLen {
					left++
				}
				i++
				continue
			}
			if !w.known && r.flags&flagRecent != 0 { // it still saves reads of kv
				r.flags &^= flagRecent
				left++
				i++
				continue
			}
			w.index.removeSlot(i)
			p.pool.freeRow(&w.arena, addr)
		}
		w.index.shrink(p.pool)
		rows += w.index.n
	}
	p.absent = left
	p.sweepAt = max(minSweep, 2*left, rows/4)
}

// evict looks at up to n slots of every part and gives rows back that kv has.
func (p *Point) evict(n int) {
	for _, w := range p.parts {
		w.hand = p.evictPart(w, n)
	}
}

func (p *Point) evictPart(w *part, n int) int {
	slots := w.index.slots
	i := w.hand
	for n = min(n, len(slots)); n > 0 && w.index.n > 0; n-- {
		if i >= len(slots) {
			i = 0
		}
		addr := uint32(slots[i])
		if addr == 0 {
			i++
			continue
		}
		r := p.pool.row(addr)
		if r.old != 0 || !p.isApplied(r.commit) {
			i++
			continue
		}
		r.commit = 0
		if r.flags&flagRecent != 0 {
			r.flags &^= flagRecent
			i++
			continue
		}
		if r.valLen == absentLen {
			p.absent--
		} else {
			if w.known || p.preloads() {
				w.filter.add(p.pool, xxh3.Hash(p.pool.keyAt(addr, rowHeader)))
			}
			p.evictions++
		}
		w.index.removeSlot(i)
		p.pool.freeRow(&w.arena, addr)
	}
	return i
}

// compact moves the rows of a part into a new arena.
func (p *Point) compact(w *part) {
	var to arena
	w.index.shrink(p.pool)
	for i, s := range w.index.slots {
		if s == 0 {
			continue
		}
		addr := uint32(s)
		w.index.slots[i] = s&^0xffffffff | uint64(p.pool.moveRow(&to, addr))
		if w.arena.large > 0 {
			p.pool.freeRow(&w.arena, addr)
		}
	}
	w.arena.drop(p.pool)
	w.arena = to
}

package state

import (
	"bytes"
	"slices"

	"github.com/zeebo/xxh3"
)

// bigGroup is the size of rows above which a group is not kept whole in memory.
const bigGroup = 1 << 20

// Ordered is a table of groups (prefix) of rows in order of their suffix, as bytes.
//
// A group in memory is either whole (then it answers everything, and a deleted row is simply gone from it), or partial: very
// large in kv, and memory has rows and deletions that lie over it.
type Ordered struct {
	table
	changes []rowChange
	groups  []Ref // changed in this epoch
	dead    index // rows that were deleted from whole groups in this epoch, by group and suffix
	big     int   // bigGroup; tests make it small
	buf     []byte
	stay    []uint32
}

// rowChange is a row that was changed in this epoch.
type rowChange struct {
	group Ref
	row   uint32
	old   oldValue
}

// Ordered opens an ordered table.
func (t *Tables) Ordered(spec Spec) *Ordered {
	o := &Ordered{big: bigGroup}
	o.init(t, spec, groupHeader)
	t.add(spec, &o.table, o)
	return o
}

// Probe resolves group prefixes to refs (len(groups) = prefixes.Len()), reading from kv, sorted, the groups that are not in
// memory. Equal prefixes get equal refs.
func (o *Ordered) Probe(prefixes *Keys, groups []Ref) error {
	n := prefixes.Len()
	if n == 0 {
		return nil
	}
	if len(groups) != n {
		panic("state: Probe needs a ref for every prefix")
	}
	if err := o.makeRoom(); err != nil {
		return err
	}
	o.hashes = slices.Grow(o.hashes[:0], n)[:n]
	for i := range o.hashes {
		o.hashes[i] = xxh3.Hash(prefixes.At(i))
	}
	if o.last != nil { // the usual case in a windowed table, too: all of one window
		o.warm(o.last)
	}
	o.missing = o.missing[:0]
	w := o.last
	for i, hash := range o.hashes {
		key := prefixes.At(i)
		if o.spec.Windowed {
			var err error
			if w, err = o.partOf(key); err != nil {
				return err
			}
		}
		addr := w.index.find(o.pool, hash, key, groupHeader)
		if addr == 0 {
			if w.known && !w.filter.has(hash) {
				addr = o.insertEmpty(w, key, hash)
			} else {
				o.missing = append(o.missing, int32(i))
			}
		} else if g := o.pool.group(addr); g.flags&flagRecent == 0 {
			g.flags |= flagRecent
		}
		groups[i] = Ref(addr)
	}
	if len(o.missing) == 0 {
		return nil
	}
	return o.load(prefixes, groups)
}

func (o *Ordered) insertEmpty(w *part, prefix []byte, hash uint64) uint32 {
	addr, _ := o.pool.newGroup(&w.arena, prefix)
	w.index.insert(o.pool, hash, addr)
	o.absent++
	o.enter()
	return addr
}

// load reads the missing groups from kv.
func (o *Ordered) load(prefixes *Keys, groups []Ref) error {
	var w *part
	open, last := uint32(0), int32(-1) // the group that rows are being put into, and the last one that was done
	return o.lookUp(prefixes, o.big, func(f found, suffix, value []byte) error {
		if f.kind == foundSame {
			groups[f.key] = groups[last]
			return nil
		}
		if open == 0 {
			prefix := prefixes.At(int(f.key))
			var err error
			if w, err = o.partOf(prefix); err != nil {
				return err
			}
			open = o.insertEmpty(w, prefix, o.hashes[f.key])
			groups[f.key] = Ref(open)
		}
		g := o.pool.group(open)
		switch f.kind {
		case foundRow:
			row, r := o.pool.newRow(&w.arena, suffix, len(value))
			o.pool.store(&w.arena, row, r, value)
			o.attach(w, g, position{int(max(g.leaves, 1)) - 1, o.lastLeafLen(g)}, row)
			return nil
		case foundMore:
			o.makePartial(w, g)
		}
		o.loads++
		open, last = 0, f.key
		return nil
	})
}

func (o *Ordered) lastLeafLen(g *group) int {
	if g.leaves == 0 {
		return 0
	}
	return len(o.pool.leafAt(g, int(g.leaves)-1))
}

// makePartial takes the rows that kv has out of the group, and has it read by merging from now on.
func (o *Ordered) makePartial(w *part, g *group) {
	g.flags |= flagPartial
	o.forgetClean(w, g)
}

// forgetClean frees those rows of a partial group that kv has as they are (or that are absent there, too).
func (o *Ordered) forgetClean(w *part, g *group) {
	p := o.pool
	o.stay = o.stay[:0]
	had := g.n > 0
	g.units = 0
	for i := 0; i < int(g.leaves); i++ {
		for _, row := range p.leafAt(g, i) {
			r := p.row(row)
			if r.old != 0 || !o.isApplied(r.commit) {
				o.stay = append(o.stay, row)
				g.units += rowUnits(r)
				continue
			}
			p.freeRow(&w.arena, row)
		}
	}
	p.freeTree(&w.arena, g)
	for i, row := range o.stay {
		at := position{pos: i}
		if g.leaves > 1 {
			at = position{int(g.leaves) - 1, o.lastLeafLen(g)}
		}
		p.insertRow(&w.arena, g, at, row)
	}
	if had && g.n == 0 {
		o.absent++
	}
}

func rowUnits(r *row) uint32 {
	n := classBytes(r.class)
	if r.ext != 0 {
		n += classBytes(r.extClass)
	}
	return uint32(n / 8)
}

// attach puts a row into a group's order.
func (o *Ordered) attach(w *part, g *group, at position, row uint32) {
	if g.n == 0 {
		o.absent--
	}
	g.units += rowUnits(o.pool.row(row))
	o.pool.insertRow(&w.arena, g, at, row)
}

func (o *Ordered) detach(w *part, g *group, at position, r *row) {
	g.units -= min(g.units, rowUnits(r))
	o.pool.removeRow(&w.arena, g, at)
	if g.n == 0 {
		o.absent++
	}
}

// ProbeOne resolves one group. For a batch use Probe.
func (o *Ordered) ProbeOne(prefix []byte) (Ref, error) {
	keys := Keys{Data: prefix, Off: o.oneOff[:]}
	o.oneOff = [2]uint32{0, uint32(len(prefix))}
	err := o.Probe(&keys, o.oneRef[:])
	return o.oneRef[0], err
}

// Prefix is the group's prefix.
func (o *Ordered) Prefix(g Ref) []byte { return o.pool.keyAt(uint32(g), groupHeader) }

// Get is the row's value, nil if absent; valid until the table is changed or probed.
func (o *Ordered) Get(g Ref, suffix []byte) ([]byte, error) {
	gr := o.pool.group(uint32(g))
	if at, found := o.pool.seek(gr, suffix); found {
		row := o.pool.leafAt(gr, at.li)[at.pos]
		return o.pool.valueOf(row, o.pool.row(row)), nil
	}
	if gr.flags&flagPartial == 0 {
		return nil, nil
	}
	return o.stored(g, suffix)
}

// stored is the value that kv has.
func (o *Ordered) stored(g Ref, suffix []byte) ([]byte, error) {
	value, ok, err := o.db.Get(o.spec.ID, o.Prefix(g), suffix)
	if err != nil {
		return nil, o.wrap("read a row of a large group", err)
	}
	if !ok {
		return nil, nil
	}
	if value == nil {
		value = []byte{}
	}
	return value, nil
}

// Set copies the value into the row.
func (o *Ordered) Set(g Ref, suffix, value []byte) error {
	gr := o.pool.group(uint32(g))
	w := o.partOfRow(o.Prefix(g))
	at, found := o.pool.seek(gr, suffix)
	if found {
		row := o.pool.leafAt(gr, at.li)[at.pos]
		o.overwrite(w, g, gr, row, value)
		return nil
	}
	if gr.flags&flagPartial != 0 {
		was, err := o.stored(g, suffix)
		if err != nil {
			return err
		}
		row, r := o.pool.newRow(&w.arena, suffix, max(len(was), len(value)))
		if was != nil {
			o.pool.store(&w.arena, row, r, was)
		}
		o.attach(w, gr, at, row)
		o.overwrite(w, g, gr, row, value)
		return nil
	}
	row := o.takeDead(g, suffix)
	if row == 0 {
		row, _ = o.pool.newRow(&w.arena, suffix, len(value))
	}
	o.attach(w, gr, at, row)
	o.overwrite(w, g, gr, row, value)
	return nil
}

func (o *Ordered) overwrite(w *part, g Ref, gr *group, row uint32, value []byte) {
	r := o.pool.row(row)
	if r.old == 0 {
		o.touch(g, gr, row, r)
		o.changing += int64(len(value))
	}
	gr.units -= min(gr.units, rowUnits(r))
	if r.valLen == absentLen {
		r.valLen = 0
	}
	o.pool.store(&w.arena, row, r, value)
	gr.units += rowUnits(r)
	o.changedBytes += int64(len(value))
}

// Delete makes the row absent; deleting what is absent changes nothing.
func (o *Ordered) Delete(g Ref, suffix []byte) error {
	gr := o.pool.group(uint32(g))
	at, found := o.pool.seek(gr, suffix)
	partial := gr.flags&flagPartial != 0
	if !found && !partial {
		return nil
	}
	w := o.partOfRow(o.Prefix(g))
	if !found {
		was, err := o.stored(g, suffix)
		if err != nil || was == nil {
			return err
		}
		row, r := o.pool.newRow(&w.arena, suffix, len(was))
		o.pool.store(&w.arena, row, r, was)
		o.attach(w, gr, at, row)
	}
	row := o.pool.leafAt(gr, at.li)[at.pos]
	r := o.pool.row(row)
	if r.valLen == absentLen {
		return nil
	}
	if r.old == 0 {
		o.touch(g, gr, row, r)
	}
	if !partial {
		o.detach(w, gr, at, r)
		r.flags |= flagDead
		o.dead.insert(o.pool, deadHash(g, o.pool.keyAt(row, rowHeader)), row)
	}
	if r.ext != 0 {
		w.arena.release(o.pool, r.ext, r.extClass)
		r.ext = 0
	}
	r.valLen = absentLen
	return nil
}

func deadHash(g Ref, suffix []byte) uint64 { return xxh3.HashSeed(suffix, uint64(g)) }

// takeDead finds a row that was deleted in this epoch, and brings it back.
func (o *Ordered) takeDead(g Ref, suffix []byte) uint32 {
	if o.dead.n == 0 {
		return 0
	}
	hash := deadHash(g, suffix)
	slots := o.dead.slots
	mask := len(slots) - 1
	for i := o.dead.home(uint32(hash >> 32)); ; i++ {
		s := slots[i&mask]
		if s == 0 {
			return 0
		}
		row := uint32(s)
		if s>>32 != hash>>32 || string(o.pool.keyAt(row, rowHeader)) != string(suffix) {
			continue
		}
		r := o.pool.row(row)
		if o.changes[r.old-1].group != g {
			continue
		}
		o.dead.removeSlot(i & mask)
		r.flags &^= flagDead
		return row
	}
}

// touch keeps the row's value before its first change in the epoch.
func (o *Ordered) touch(g Ref, gr *group, row uint32, r *row) {
	old := oldValue{n: absentLen}
	if r.valLen != absentLen {
		old = o.keep(o.pool.valueOf(row, r))
	}
	o.enter()
	o.changes = append(o.changes, rowChange{g, row, old})
	r.old = uint32(len(o.changes))
	if gr.changed == 0 {
		o.groups = append(o.groups, g)
		gr.changed = uint32(len(o.groups))
	}
	n := int64(gr.keyLen+r.keyLen) + 16
	o.changedBytes += n
	o.changing += n
}

// First is the group's first row; ok is false when it is empty. Valid until the table is changed or probed.
func (o *Ordered) First(g Ref) (suffix, value []byte, ok bool, err error) { return o.edge(g, false) }

// Last is First from the other end.
func (o *Ordered) Last(g Ref) (suffix, value []byte, ok bool, err error) { return o.edge(g, true) }

func (o *Ordered) edge(g Ref, reverse bool) (suffix, value []byte, ok bool, err error) {
	gr := o.pool.group(uint32(g))
	if gr.flags&flagPartial == 0 {
		if gr.n == 0 {
			return nil, nil, false, nil
		}
		rows := o.pool.leafAt(gr, 0)
		row := rows[0]
		if reverse {
			rows = o.pool.leafAt(gr, int(gr.leaves)-1)
			row = rows[len(rows)-1]
		}
		return o.pool.keyAt(row, rowHeader), o.pool.valueOf(row, o.pool.row(row)), true, nil
	}
	var it OrderedIter
	if err := o.Scan(&it, g, nil, nil, reverse); err != nil {
		return nil, nil, false, err
	}
	if ok = it.Next(); ok {
		o.buf = append(append(o.buf[:0], it.Suffix()...), it.Value()...)
		n := len(it.Suffix())
		suffix, value = o.buf[:n:n], o.buf[n:]
		if value == nil {
			value = []byte{}
		}
	}
	return suffix, value, ok, it.Close()
}

// Empty says whether the group has no live row.
func (o *Ordered) Empty(g Ref) (bool, error) {
	_, _, ok, err := o.First(g)
	return !ok, err
}

// ChangedGroups are the groups with a row that was changed in this epoch, each once, in order of their first change. Valid
// until the next change or EndEpoch.
func (o *Ordered) ChangedGroups() []Ref { return o.groups }

// Changed is the number of rows changed in this epoch.
func (o *Ordered) Changed() int { return len(o.changes) }

// Change is the i-th changed row: its group, suffix, value at the epoch's start and now (nil: absent). The two may be equal.
// Valid until the next change or EndEpoch.
func (o *Ordered) Change(i int) (g Ref, suffix, old, value []byte) {
	c := o.changes[i]
	return c.group, o.pool.keyAt(c.row, rowHeader), o.kept(c.old), o.pool.valueOf(c.row, o.pool.row(c.row))
}

// DropWindows forgets all windows whose end is at or below upTo, with what this epoch changed in them.
func (o *Ordered) DropWindows(upTo int64) {
	if !o.spec.Windowed {
		panic("state: DropWindows of table " + o.spec.Name + ", which has no windows")
	}
	if err := o.open(); err != nil {
		o.fail(err)
		return
	}
	if len(o.parts) == 0 || o.parts[0].end > upTo {
		return
	}
	n := 0
	for _, c := range o.changes {
		if WindowEnd(o.Prefix(c.group)) <= upTo {
			r := o.pool.row(c.row)
			if r.flags&flagDead != 0 { // no group has it any more
				o.dead.remove(deadHash(c.group, o.pool.keyAt(c.row, rowHeader)), c.row)
				w := o.window(o.Prefix(c.group))
				o.pool.freeRow(&w.arena, c.row)
			}
			continue
		}
		o.changes[n] = c
		n++
		o.pool.row(c.row).old = uint32(n)
	}
	o.changes = o.changes[:n]
	n = 0
	for _, g := range o.groups {
		if WindowEnd(o.Prefix(g)) <= upTo {
			continue
		}
		o.groups[n] = g
		n++
		o.pool.group(uint32(g)).changed = uint32(n)
	}
	o.groups = o.groups[:n]
	o.takeWindows(upTo)
}

func (o *Ordered) dirty() bool { return len(o.changes) > 0 }

func (o *Ordered) forget() {
	for _, c := range o.changes {
		if r := o.pool.row(c.row); r.flags&flagDead != 0 {
			o.pool.freeRow(&o.partOfRow(o.Prefix(c.group)).arena, c.row)
		}
	}
	o.dead.drop(o.pool)
	o.changes, o.groups = o.changes[:0], o.groups[:0]
}

// endEpoch encodes the net changes.
func (o *Ordered) endEpoch(dst *Changes) {
	p := o.pool
	kind := o.spec.kind()
	durable := !o.spec.Ephemeral
	o.encodeDrop(dst)
	for _, c := range o.changes {
		r := p.row(c.row)
		r.old = 0
		was, now := o.kept(c.old), p.valueOf(c.row, r)
		if durable && ((was == nil) != (now == nil) || !bytes.Equal(was, now)) {
			r.commit = o.generation
			p.group(uint32(c.group)).commit = o.generation
			prefix, suffix := o.Prefix(c.group), p.keyAt(c.row, rowHeader)
			if now == nil {
				dst.Delete(kind, o.spec.ID, prefix, suffix)
			} else {
				dst.Set(kind, o.spec.ID, prefix, suffix, now)
			}
		}
		if r.flags&flagDead != 0 {
			if was != nil {
				p.group(uint32(c.group)).flags |= flagDeleted
			}
			p.freeRow(&o.partOfRow(o.Prefix(c.group)).arena, c.row)
		}
	}
	o.dead.drop(p)
	for _, g := range o.groups {
		p.group(uint32(g)).changed = 0
	}
	o.changes = resetList(o.changes)
	o.groups = resetList(o.groups)
	if o.absent > o.sweepAt {
		o.sweepEmpty()
	}
}

// sweepEmpty forgets groups without rows, of which kv has none either.
func (o *Ordered) sweepEmpty() {
	left, groups := 0, 0
	for _, w := range o.parts {
		for i := 0; i < len(w.index.slots); {
			addr := uint32(w.index.slots[i])
			if addr == 0 {
				i++
				continue
			}
			g := o.pool.group(addr)
			if g.n > 0 || g.flags&flagPartial != 0 || !o.isApplied(g.commit) {
				if g.n == 0 {
					left++
				}
				i++
				continue
			}
			if !w.known && g.flags&flagRecent != 0 { // it still saves reads of kv
				g.flags &^= flagRecent
				left++
				i++
				continue
			}
			w.index.removeSlot(i)
			o.freeGroup(w, addr)
		}
		w.index.shrink(o.pool)
		groups += w.index.n
	}
	o.absent = left
	o.sweepAt = max(minSweep, 2*left, groups/4)
}

// evict looks at up to n slots of every part and gives groups back that kv has.
func (o *Ordered) evict(n int) {
	for _, w := range o.parts {
		w.hand = o.evictPart(w, n)
	}
}

func (o *Ordered) evictPart(w *part, n int) int {
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
		g := o.pool.group(addr)
		if g.changed != 0 {
			i++
			continue
		}
		partial := g.flags&flagPartial != 0
		if !o.isApplied(g.commit) {
			// A very large group need not wait for its last change: what kv has of it can go. Unless rows were deleted from
			// it, of which memory keeps nothing. (Not within an epoch, when its rows may be in use.)
			if len(o.changes) == 0 && (partial || g.flags&flagDeleted == 0 && int(g.units)*8 > 2*o.big) {
				o.makePartial(w, g)
			}
			i++
			continue
		}
		g.commit = 0
		g.flags &^= flagDeleted
		if g.flags&flagRecent != 0 {
			g.flags &^= flagRecent
			i++
			continue
		}
		if g.n == 0 {
			o.absent--
		}
		if (g.n > 0 || partial) && (w.known || o.preloads()) {
			w.filter.add(o.pool, xxh3.Hash(o.pool.keyAt(addr, groupHeader)))
		}
		o.evictions++
		w.index.removeSlot(i)
		o.freeGroup(w, addr)
	}
	return i
}

// compact moves the groups and rows of a part into a new arena.
func (o *Ordered) compact(w *part) {
	var to arena
	p := o.pool
	w.index.shrink(p)
	for i, s := range w.index.slots {
		if s == 0 {
			continue
		}
		addr := uint32(s)
		g := p.group(addr)
		dst, d := p.newGroup(&to, p.keyAt(addr, groupHeader))
		d.commit, d.flags = g.commit, g.flags
		for li := 0; li < int(g.leaves); li++ {
			for _, row := range p.leafAt(g, li) {
				moved := p.moveRow(&to, row)
				d.units += rowUnits(p.row(moved))
				at := position{max(int(d.leaves)-1, 0), o.lastLeafLen(d)}
				p.insertRow(&to, d, at, moved)
			}
		}
		w.index.slots[i] = s&^0xffffffff | uint64(dst)
		if w.arena.large > 0 {
			o.freeGroup(w, addr)
		}
	}
	w.arena.drop(p)
	w.arena = to
}

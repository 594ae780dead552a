package state

// A group of an Ordered table is one block of an arena: this header and the prefix. Its rows are found through leaves, sorted
// arrays of up to 128 row addresses; a group of more than one leaf has a directory of leaves. So a group of two rows costs 8
// bytes for the order, and one of a million is searched in two steps.
type group struct {
	keyLen    uint32 // of the prefix
	n         uint32 // rows in the leaves
	root      uint32 // the only leaf, or the directory
	leaves    uint32
	changed   uint32 // 1 + number in the list of changed groups
	commit    uint32 // generation of its last change
	units     uint32 // memory of its rows, in 8 bytes
	flags     uint8
	class     uint8
	rootClass uint8
	_         uint8
}

const (
	groupHeader = 32

	// flagPartial: a very large group. Memory has only rows that were changed (or looked at); kv has the others.
	flagPartial = 4
	// flagDeleted: rows were deleted from the whole group, and kv may still have them.
	flagDeleted = 8

	leafRows  = 128
	leafMerge = 32 // a leaf below this is put together with a neighbour that has room
)

// leaf is an entry of a directory.
type leaf struct {
	addr uint32
	n    uint32
}

// position is a place between rows: before row pos of leaf li.
type position struct{ li, pos int }

func (p *pool) newGroup(a *arena, prefix []byte) (uint32, *group) {
	addr, class := a.alloc(p, groupHeader+len(prefix))
	g := p.group(addr)
	*g = group{keyLen: uint32(len(prefix)), class: class, flags: flagRecent}
	copy(p.bytes(addr, groupHeader, len(prefix)), prefix)
	return addr, g
}

// leafAt are the row addresses of leaf i.
func (p *pool) leafAt(g *group, i int) []uint32 {
	switch {
	case g.leaves == 0:
		return nil
	case g.leaves == 1:
		return p.refs(g.root, int(g.n))
	}
	l := p.leafDir(g.root, int(g.leaves))[i]
	return p.refs(l.addr, int(l.n))
}

// seek is the position of the first row whose suffix is at or after the given one, and whether it is that.
func (p *pool) seek(g *group, suffix []byte) (at position, found bool) {
	if g.leaves == 0 {
		return position{}, false
	}
	if g.leaves > 1 {
		dir := p.leafDir(g.root, int(g.leaves))
		lo, hi := 0, len(dir) // the last leaf whose first row is not after suffix
		for lo < hi {
			mid := int(uint(lo+hi) >> 1)
			first := p.refs(dir[mid].addr, 1)[0]
			if string(p.keyAt(first, rowHeader)) <= string(suffix) {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		at.li = max(lo-1, 0)
	}
	rows := p.leafAt(g, at.li)
	lo, hi := 0, len(rows)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		key := p.keyAt(rows[mid], rowHeader)
		if string(key) < string(suffix) {
			lo = mid + 1
		} else {
			if string(key) == string(suffix) {
				return position{at.li, mid}, true
			}
			hi = mid
		}
	}
	at.pos = lo
	return at, false
}

// insertRow puts a row at the position that seek gave.
func (p *pool) insertRow(a *arena, g *group, at position, row uint32) {
	g.n++
	switch {
	case g.leaves == 0:
		g.root, g.rootClass = a.alloc(p, 8)
		g.leaves = 1
		p.refs(g.root, 1)[0] = row
		return
	case g.leaves == 1 && int(g.n) <= leafRows:
		n := int(g.n)
		if have := classBytes(g.rootClass) / 4; n > have {
			root, class := a.alloc(p, min(2*have, leafRows)*4)
			copy(p.refs(root, n-1), p.refs(g.root, n-1))
			a.release(p, g.root, g.rootClass)
			g.root, g.rootClass = root, class
		}
		rows := p.refs(g.root, n)
		copy(rows[at.pos+1:], rows[at.pos:])
		rows[at.pos] = row
		return
	case g.leaves == 1: // begin a directory
		dir, class := a.alloc(p, 8*8)
		p.leafDir(dir, 1)[0] = leaf{g.root, leafRows}
		g.root, g.rootClass = dir, class
	}
	dir := p.leafDir(g.root, int(g.leaves))
	l := &dir[at.li]
	if l.n == leafRows {
		half := uint32(leafRows / 2)
		if at.li == len(dir)-1 && at.pos == leafRows {
			half = leafRows // rows come in order: leave full leaves behind
		}
		next := a.allocClass(p, classFor(leafRows*4))
		moved := leafRows - half
		copy(p.refs(next, int(moved)), p.refs(l.addr, leafRows)[half:])
		l.n = half
		p.insertLeaf(a, g, at.li+1, leaf{next, moved})
		dir = p.leafDir(g.root, int(g.leaves))
		if at.pos > int(half) || half == leafRows {
			at.li, at.pos = at.li+1, at.pos-int(half)
		}
		l = &dir[at.li]
	}
	l.n++
	rows := p.refs(l.addr, int(l.n))
	copy(rows[at.pos+1:], rows[at.pos:])
	rows[at.pos] = row
}

func (p *pool) insertLeaf(a *arena, g *group, i int, l leaf) {
	n := int(g.leaves)
	if have := classBytes(g.rootClass) / 8; n == have {
		root, class := a.alloc(p, (n+n/2+1)*8)
		copy(p.leafDir(root, n), p.leafDir(g.root, n))
		a.release(p, g.root, g.rootClass)
		g.root, g.rootClass = root, class
	}
	g.leaves++
	dir := p.leafDir(g.root, n+1)
	copy(dir[i+1:], dir[i:])
	dir[i] = l
}

// removeRow takes the row at the position out of the order; it does not free it.
func (p *pool) removeRow(a *arena, g *group, at position) {
	g.n--
	if g.leaves == 1 {
		rows := p.refs(g.root, int(g.n)+1)
		copy(rows[at.pos:], rows[at.pos+1:])
		if g.n == 0 {
			a.release(p, g.root, g.rootClass)
			g.root, g.rootClass, g.leaves = 0, 0, 0
		}
		return
	}
	dir := p.leafDir(g.root, int(g.leaves))
	l := &dir[at.li]
	rows := p.refs(l.addr, int(l.n))
	copy(rows[at.pos:], rows[at.pos+1:])
	l.n--
	switch {
	case l.n == 0:
		p.removeLeaf(a, g, at.li)
	case l.n < leafMerge && at.li > 0 && dir[at.li-1].n+l.n <= leafRows*3/4:
		p.mergeLeaves(a, g, at.li-1)
	case l.n < leafMerge && at.li+1 < len(dir) && dir[at.li+1].n+l.n <= leafRows*3/4:
		p.mergeLeaves(a, g, at.li)
	}
}

// mergeLeaves moves the rows of leaf i+1 to the end of leaf i.
func (p *pool) mergeLeaves(a *arena, g *group, i int) {
	dir := p.leafDir(g.root, int(g.leaves))
	to, from := &dir[i], dir[i+1]
	copy(p.refs(to.addr, int(to.n+from.n))[to.n:], p.refs(from.addr, int(from.n)))
	to.n += from.n
	p.removeLeaf(a, g, i+1)
}

func (p *pool) removeLeaf(a *arena, g *group, i int) {
	dir := p.leafDir(g.root, int(g.leaves))
	a.release(p, dir[i].addr, classFor(leafRows*4))
	copy(dir[i:], dir[i+1:])
	g.leaves--
	if g.leaves == 1 { // back to a single leaf
		only := dir[0].addr
		a.release(p, g.root, g.rootClass)
		g.root, g.rootClass = only, classFor(leafRows*4)
	}
}

// freeTree gives leaves and directory back, not the rows.
func (p *pool) freeTree(a *arena, g *group) {
	if g.leaves > 1 {
		for _, l := range p.leafDir(g.root, int(g.leaves)) {
			a.release(p, l.addr, classFor(leafRows*4))
		}
	}
	if g.leaves > 0 {
		a.release(p, g.root, g.rootClass)
	}
	g.n, g.root, g.leaves, g.rootClass = 0, 0, 0, 0
}

// freeGroup gives the group at addr and all its rows back.
func (tb *table) freeGroup(w *part, addr uint32) {
	p := tb.pool
	g := p.group(addr)
	for i := 0; i < int(g.leaves); i++ {
		for _, row := range p.leafAt(g, i) {
			p.freeRow(&w.arena, row)
		}
	}
	p.freeTree(&w.arena, g)
	w.arena.release(p, addr, g.class)
}

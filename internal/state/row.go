package state

// A row is one block of an arena: this header, the key (padded to 8 bytes), and the value if it fits behind it; a value that
// has outgrown the block has one of its own, so that a row's address never changes while somebody may hold it.
//
//	keyLen | valLen | ext | old | commit | flags class extClass - | key .. | value ..
//
// In an Ordered table the key of a row is its suffix.
type row struct {
	keyLen   uint32
	valLen   uint32 // absentLen: the row is absent
	ext      uint32 // the value's own block, 0 if it is behind the key
	old      uint32 // 1 + number of its entry in the list of changes; 0: not changed in this epoch
	commit   uint32 // generation of its last change; 0: kv has it as it is
	flags    uint8
	class    uint8
	extClass uint8
	_        uint8
}

const (
	rowHeader = 24
	absentLen = 1<<32 - 1

	flagRecent = 1 // used since eviction came by
	flagDead   = 2 // in an Ordered table: taken out of its group, kept for the end of the epoch
)

func pad8(n int) int { return (n + 7) &^ 7 }

// newRow makes an absent row with room for a value of about valueBytes.
func (p *pool) newRow(a *arena, key []byte, valueBytes int) (uint32, *row) {
	addr, class := a.alloc(p, rowHeader+pad8(len(key))+valueBytes)
	r := p.row(addr)
	*r = row{keyLen: uint32(len(key)), valLen: absentLen, class: class, flags: flagRecent}
	copy(p.bytes(addr, rowHeader, len(key)), key)
	return addr, r
}

// valueOf is the row's value: nil if absent, otherwise never nil.
func (p *pool) valueOf(addr uint32, r *row) []byte {
	if r.valLen == absentLen {
		return nil
	}
	n := int(r.valLen)
	if r.ext != 0 {
		return p.bytes(r.ext, 0, n)[:n:n]
	}
	return p.bytes(addr, rowHeader+pad8(int(r.keyLen)), n)[:n:n]
}

// capacity is how long a value may become where it is.
func (r *row) capacity() int {
	if r.ext != 0 {
		return classBytes(r.extClass)
	}
	return classBytes(r.class) - rowHeader - pad8(int(r.keyLen))
}

// room makes the row's value n bytes long and returns them, with the old ones at their start as far as they go.
func (p *pool) room(a *arena, addr uint32, r *row, n int) []byte {
	if c := r.capacity(); n > c || (r.ext != 0 && n < c/8) {
		was := p.valueOf(addr, r)
		inline := classBytes(r.class) - rowHeader - pad8(int(r.keyLen))
		oldExt, oldClass := r.ext, r.extClass
		var dst []byte
		if n <= inline {
			r.ext = 0
			dst = p.bytes(addr, rowHeader+pad8(int(r.keyLen)), n)
		} else {
			ext, class := a.alloc(p, n+n/4)
			r.ext, r.extClass = ext, class
			dst = p.bytes(ext, 0, n)
		}
		copy(dst, was)
		if oldExt != 0 {
			a.release(p, oldExt, oldClass)
		}
		r.valLen = uint32(n)
		return dst
	}
	r.valLen = uint32(n)
	return p.valueOf(addr, r)
}

// store copies value into the row; value may be part of what the row has now.
func (p *pool) store(a *arena, addr uint32, r *row, value []byte) {
	if c := r.capacity(); len(value) > c || (r.ext != 0 && len(value) < c/8) {
		// The old block must live until value is copied.
		oldExt, oldClass := r.ext, r.extClass
		if inline := classBytes(r.class) - rowHeader - pad8(int(r.keyLen)); len(value) <= inline {
			r.ext = 0
			copy(p.bytes(addr, rowHeader+pad8(int(r.keyLen)), len(value)), value)
		} else {
			ext, class := a.alloc(p, len(value)+len(value)/4)
			copy(p.bytes(ext, 0, len(value)), value)
			r.ext, r.extClass = ext, class
		}
		if oldExt != 0 {
			a.release(p, oldExt, oldClass)
		}
		r.valLen = uint32(len(value))
		return
	}
	r.valLen = uint32(len(value))
	copy(p.valueOf(addr, r), value)
}

// freeRow gives the row's blocks back.
func (p *pool) freeRow(a *arena, addr uint32) {
	r := p.row(addr)
	if r.ext != 0 {
		a.release(p, r.ext, r.extClass)
	}
	a.release(p, addr, r.class)
}

// moveRow copies the row into another arena, its value behind its key again. It does not free the old one.
func (p *pool) moveRow(to *arena, addr uint32) uint32 {
	r := p.row(addr)
	value := p.valueOf(addr, r)
	key := p.keyAt(addr, rowHeader)
	dst, d := p.newRow(to, key, len(value))
	class := d.class
	*d = *r
	d.class, d.ext, d.extClass = class, 0, 0
	if value != nil {
		copy(p.valueOf(dst, d), value)
	}
	return dst
}

package state

import (
	"math/bits"
	"slices"
)

// An index finds blocks by the hash of their key: open addressing with linear probing. A slot is a tag (the upper 32 bits of
// the hash, whose upper bits again are the slot's home) and the block's address; 0 is empty. Removing shifts back what
// follows, so there are no gravestones.
type index struct {
	slots []uint64
	addr  uint32
	order uint8
	shift uint8 // home = tag >> shift
	n     int
}

const minSlots = 64 // one block of order 0

func (x *index) home(tag uint32) int { return int(tag >> x.shift) }

// find is the address of the block with the key, 0 if there is none.
func (x *index) find(p *pool, hash uint64, key []byte, header int) uint32 {
	if x.n == 0 {
		return 0
	}
	tag := uint32(hash >> 32)
	slots := x.slots
	mask := len(slots) - 1
	for i := x.home(tag); ; i++ {
		s := slots[i&mask]
		if s == 0 {
			return 0
		}
		if uint32(s>>32) == tag && string(p.keyAt(uint32(s), header)) == string(key) {
			return uint32(s)
		}
	}
}

// warmFrom is the number of rows from which it pays to ask memory for all slots and rows of a batch before the first is looked at:
// the processor then waits for many of them at once.
const warmFrom = 8 << 10

// warm touches the first slots of the hashes, and the rows that these name.
func (tb *table) warm(w *part) {
	x := &w.index
	if x.n < warmFrom {
		return
	}
	slots := x.slots
	mask := len(slots) - 1
	tb.slots = slices.Grow(tb.slots[:0], len(tb.hashes))[:len(tb.hashes)]
	for i, hash := range tb.hashes {
		tb.slots[i] = slots[x.home(uint32(hash>>32))&mask]
	}
	sum := uint64(0)
	for i, s := range tb.slots {
		if s>>32 == tb.hashes[i]>>32 {
			sum += uint64(*tb.pool.link(uint32(s)))
		}
	}
	tb.warmed = sum // so that the loads are not left out
}

// insert adds a block that is not there.
func (x *index) insert(p *pool, hash uint64, addr uint32) {
	if x.n >= len(x.slots)/8*5 {
		x.resize(p, max(minSlots, 2*len(x.slots)))
	}
	x.put(hash&^0xffffffff | uint64(addr))
	x.n++
}

func (x *index) put(s uint64) {
	mask := len(x.slots) - 1
	i := x.home(uint32(s >> 32))
	for x.slots[i&mask] != 0 {
		i++
	}
	x.slots[i&mask] = s
}

// remove takes the block at addr out.
func (x *index) remove(hash uint64, addr uint32) {
	mask := len(x.slots) - 1
	i := x.home(uint32(hash >> 32))
	for uint32(x.slots[i&mask]) != addr {
		if x.slots[i&mask] == 0 {
			panic("state: index lost a row")
		}
		i++
	}
	x.removeSlot(i & mask)
}

// removeSlot empties slot i, and moves into it what belongs there.
func (x *index) removeSlot(i int) {
	mask := len(x.slots) - 1
	x.n--
	for j := (i + 1) & mask; ; j = (j + 1) & mask {
		s := x.slots[j]
		if s == 0 {
			break
		}
		home := x.home(uint32(s >> 32))
		if (j-home)&mask >= (j-i)&mask { // its home is at or before the hole
			x.slots[i] = s
			i = j
		}
	}
	x.slots[i] = 0
}

func (x *index) resize(p *pool, n int) {
	old, oldAddr, oldOrder := x.slots, x.addr, x.order
	x.order = orderFor(n * 8)
	x.addr = p.alloc(x.order)
	x.slots = p.words(x.addr, n)
	clear(x.slots)
	x.shift = uint8(32 - bits.Len(uint(n-1)))
	for _, s := range old {
		if s != 0 {
			x.put(s)
		}
	}
	if oldAddr != 0 {
		p.release(oldAddr, oldOrder)
	}
}

// shrink halves the index as long as it is nearly empty.
func (x *index) shrink(p *pool) {
	n := len(x.slots)
	for n > minSlots && x.n < n/8 {
		n /= 2
	}
	if n < len(x.slots) {
		x.resize(p, n)
	}
}

func (x *index) bytes() int64 {
	if x.addr == 0 {
		return 0
	}
	return int64(orderBytes(x.order))
}

func (x *index) drop(p *pool) {
	if x.addr != 0 {
		p.release(x.addr, x.order)
	}
	*x = index{}
}

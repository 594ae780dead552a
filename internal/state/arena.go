package state

import "math/bits"

// An arena hands out the blocks of one table's (or window's) rows: bump allocation in chunks of the pool, a free list a size
// class for what is given back. Dropping the arena gives all its chunks back at once.
//
// Classes are multiples of 8 up to 256 bytes, then four a doubling up to 32 KiB; above that a block is the pool's own
// (class largeClass + order).
type arena struct {
	chunks []chunk
	large  int64 // bytes of blocks that are the pool's own
	held   int64 // bytes of chunks and large blocks
	live   int64 // bytes of blocks that are handed out
	next   uint32
	left   uint32 // units left in the last chunk from next on
	free   [numClasses]uint32
}

type chunk struct {
	addr  uint32
	order uint8
}

const (
	exactClasses  = 32 // 8, 16 .. 256
	numClasses    = exactClasses + 4*7
	largeClass    = 64
	maxClassed    = 32 << 10
	maxChunkOrder = 7 // 64 KiB
)

// classFor is the smallest class that holds n bytes; n > 0.
func classFor(n int) uint8 {
	if n <= 8*exactClasses {
		return uint8((n+7)/8 - 1)
	}
	if n > maxClassed {
		return largeClass + orderFor(n)
	}
	shift := bits.Len(uint(n-1)) - 1 // 2^shift < n <= 2^(shift+1), shift >= 8
	quarter := (n - 1 - 1<<shift) >> (shift - 2)
	return uint8(exactClasses + (shift-8)*4 + quarter)
}

func classBytes(class uint8) int {
	switch {
	case class < exactClasses:
		return (int(class) + 1) * 8
	case class >= largeClass:
		return orderBytes(class - largeClass)
	}
	step := int(class) - exactClasses
	shift := 8 + step/4
	return 1<<shift + (step%4+1)<<(shift-2)
}

func (a *arena) alloc(p *pool, n int) (addr uint32, class uint8) {
	class = classFor(n)
	return a.allocClass(p, class), class
}

func (a *arena) allocClass(p *pool, class uint8) uint32 {
	size := classBytes(class)
	a.live += int64(size)
	if class >= largeClass {
		a.large += int64(size)
		a.held += int64(size)
		return p.alloc(class - largeClass)
	}
	if addr := a.free[class]; addr != 0 {
		a.free[class] = *p.link(addr)
		return addr
	}
	units := uint32(size >> unitShift)
	if a.left < units {
		a.grow(p, size)
	}
	addr := a.next
	a.next += units
	a.left -= units
	return addr
}

// grow adds a chunk: each twice as large as the one before, so that a table of a few rows costs little.
func (a *arena) grow(p *pool, atLeast int) {
	for a.left > 0 { // what is left of the old one is not lost
		class := classFor(int(a.left) << unitShift)
		if classBytes(class)>>unitShift > int(a.left) {
			class--
		}
		units := uint32(classBytes(class) >> unitShift)
		*p.link(a.next) = a.free[class]
		a.free[class] = a.next
		a.next += units
		a.left -= units
	}
	order := uint8(0)
	if n := len(a.chunks); n > 0 {
		order = min(a.chunks[n-1].order+1, maxChunkOrder)
	}
	order = max(order, orderFor(atLeast))
	addr := p.alloc(order)
	a.chunks = append(a.chunks, chunk{addr, order})
	a.held += int64(orderBytes(order))
	a.next, a.left = addr, uint32(orderBytes(order)>>unitShift)
}

func (a *arena) release(p *pool, addr uint32, class uint8) {
	size := classBytes(class)
	a.live -= int64(size)
	if class >= largeClass {
		a.large -= int64(size)
		a.held -= int64(size)
		p.release(addr, class-largeClass)
		return
	}
	*p.link(addr) = a.free[class]
	a.free[class] = addr
}

// drop gives all chunks back. Large blocks are not known here: who has some releases them first.
func (a *arena) drop(p *pool) {
	for _, c := range a.chunks {
		p.release(c.addr, c.order)
	}
	*a = arena{chunks: a.chunks[:0]}
}

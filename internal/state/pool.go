package state

import (
	"math/bits"
	"slices"

	"github.com/leat-io/leat/internal/budget"
)

// A pool hands out blocks of memory whose size is a power of two, from 512 bytes to 4 MiB, out of regions of 4 MiB that are
// mapped from the system (a buddy allocator); what is larger gets a region of its own. Every block has an address of 32
// bits: the number of its region, and the offset in it in units of 8 bytes. So one pool reaches 32 GiB, and rows point to
// each other with 4 bytes that mean nothing to the collector.
//
//	address = region (13 bits) | offset / 8 (19 bits)
//
// Address 0 is nothing: the first block of the first region is never handed out.
type pool struct {
	budget  *budget.Budget
	owned   bool            // the budget is the pool's own
	account *budget.Account // instead of budget, nil if there is none
	regions []region
	bases   []base // of regions, for the way of the data
	free    [maxOrder + 1][]uint32
	trim    [maxOrder + 1]int // length of a free list at which its stale entries are thrown out
	used    int64             // handed out
	mapped  int64             // taken from the system
	spare   []uint32          // numbers of regions that were unmapped
}

const (
	unitShift   = 3
	minShift    = 9 // a block of order 0 is 512 bytes
	maxOrder    = 13
	regionShift = minShift + maxOrder
	regionBytes = 1 << regionShift
	regionUnits = regionShift - unitShift // bits of an address below the region's number
	unitMask    = 1<<regionUnits - 1
	maxRegions  = 1 << (32 - regionUnits)
)

// What heads says of the 512 bytes at an index: nothing starts here, or a block of an order, free or not.
const (
	headFree = 0x80
	headUsed = 0x40
)

type region struct {
	mem   []byte
	heads []uint8 // nil for a region of one large block
}

func newPool(b *budget.Budget) *pool {
	if b == nil {
		b = budget.New("state", 0)
	}
	return &pool{budget: b}
}

// take accounts for n bytes before they are used.
func (p *pool) take(n int64) {
	if p.account != nil {
		p.account.Must(n)
	} else {
		p.budget.Force(n)
	}
	p.used += n
}

func (p *pool) give(n int64) {
	p.used -= n
	if p.account != nil {
		p.account.Give(n)
	} else {
		p.budget.Release(n)
	}
}

// orderFor is the order of the smallest block that holds n bytes; above maxOrder it is a region of its own.
func orderFor(n int) uint8 {
	if n <= 1<<minShift {
		return 0
	}
	return uint8(bits.Len(uint(n-1)) - minShift)
}

func orderBytes(order uint8) int { return 1 << (order + minShift) }

// alloc hands out a block. Its bytes are not zeroed. It fails (panics) only when 32 GiB are in use: the limits of the
// budget are far below, and are the caller's to keep.
func (p *pool) alloc(order uint8) uint32 {
	p.take(int64(orderBytes(order)))
	if order > maxOrder {
		return p.addRegion(orderBytes(order), false) << regionUnits
	}
	for {
		for o := order; o <= maxOrder; o++ {
			addr, ok := p.pop(o)
			if !ok {
				continue
			}
			for o > order { // give the upper half back until it fits
				o--
				p.push(addr+uint32(orderBytes(o)>>unitShift), o)
			}
			p.setHead(addr, headUsed|order)
			return addr
		}
		r := p.addRegion(regionBytes, true)
		if r == 0 {
			// Address 0 must stay nothing: keep the first block, and free what is beside it.
			p.setHead(0, headUsed)
			for o := uint8(0); o < maxOrder; o++ {
				p.push(uint32(orderBytes(o)>>unitShift), o)
			}
			continue
		}
		p.push(r<<regionUnits, maxOrder)
	}
}

// release takes a block back.
func (p *pool) release(addr uint32, order uint8) {
	p.give(int64(orderBytes(order)))
	if order > maxOrder {
		p.dropRegion(addr >> regionUnits)
		return
	}
	for order < maxOrder {
		buddy := addr ^ uint32(orderBytes(order)>>unitShift)
		if p.head(buddy) != headFree|order {
			break
		}
		p.setHead(buddy, 0) // its entry in the free list is stale from now on
		p.setHead(addr, 0)
		addr = min(addr, buddy)
		order++
	}
	if order == maxOrder && addr != 0 && len(p.free[maxOrder]) > 0 {
		p.dropRegion(addr >> regionUnits)
		return
	}
	p.push(addr, order)
}

func (p *pool) push(addr uint32, order uint8) {
	p.setHead(addr, headFree|order)
	list := append(p.free[order], addr)
	if len(list) > max(p.trim[order], 256) {
		slices.Sort(list)
		list = slices.Compact(list)
		list = slices.DeleteFunc(list, func(a uint32) bool { return p.head(a) != headFree|order })
		p.trim[order] = 2 * len(list)
	}
	p.free[order] = list
}

func (p *pool) pop(order uint8) (uint32, bool) {
	list := p.free[order]
	for len(list) > 0 {
		addr := list[len(list)-1]
		list = list[:len(list)-1]
		if p.head(addr) == headFree|order {
			p.free[order] = list
			return addr, true
		}
	}
	p.free[order] = list
	return 0, false
}

func (p *pool) head(addr uint32) uint8 {
	r := &p.regions[addr>>regionUnits]
	if r.heads == nil {
		return 0
	}
	return r.heads[(addr&unitMask)>>(minShift-unitShift)]
}

func (p *pool) setHead(addr uint32, h uint8) {
	p.regions[addr>>regionUnits].heads[(addr&unitMask)>>(minShift-unitShift)] = h
}

func (p *pool) addRegion(n int, shared bool) uint32 {
	mem := mapMemory(n)
	p.mapped += int64(n)
	r := region{mem: mem}
	if shared {
		r.heads = make([]uint8, 1<<maxOrder)
	}
	if len(p.regions) == 0 && !shared {
		// The first region is the one with address 0: never a large block.
		p.regions = append(p.regions, region{})
		p.bases = append(p.bases, base{})
		p.spare = append(p.spare, 0)
	}
	for i := len(p.spare) - 1; i >= 0; i-- {
		if n := p.spare[i]; shared || n != 0 {
			p.spare = slices.Delete(p.spare, i, i+1)
			p.regions[n], p.bases[n] = r, baseOf(mem)
			return n
		}
	}
	if len(p.regions) == maxRegions {
		panic("state: more than 32 GiB of rows in one worker's memory; lower its memory limit")
	}
	p.regions = append(p.regions, r)
	p.bases = append(p.bases, baseOf(mem))
	return uint32(len(p.regions) - 1)
}

func (p *pool) dropRegion(n uint32) {
	r := &p.regions[n]
	p.mapped -= int64(len(r.mem))
	unmapMemory(r.mem)
	p.regions[n], p.bases[n] = region{}, base{}
	p.spare = append(p.spare, n)
}

// close gives everything back; no address is valid after it.
func (p *pool) close() {
	for i := range p.regions {
		if p.regions[i].mem != nil {
			unmapMemory(p.regions[i].mem)
		}
	}
	p.give(p.used)
	*p = pool{budget: p.budget, account: p.account}
}

package state

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/leat-io/leat/internal/spill"
)

// SpillBytes is how much an operator may collect of one epoch before it brings it to files, in bytes; 0: it may not.
func (t *Tables) SpillBytes() int64 {
	switch {
	case t.spill == nil:
		return 0
	case t.spillBytes > 0:
		return t.spillBytes
	case t.limit <= 0:
		return mostSpillBytes
	}
	return min(max(t.limit/8, leastSpillBytes), mostSpillBytes)
}

const (
	leastSpillBytes = 4 << 20
	mostSpillBytes  = 64 << 20
)

// unitBytes is how much of what the tables give in an epoch goes into the journal itself; what is more is in files that it names.
func (t *Tables) unitBytes() int64 {
	if t.spillBytes > 0 {
		return t.spillBytes
	}
	return min(max(t.limit/2, 64<<20), 256<<20)
}

// TooMuch is the error of a job of which one epoch changes more than fits in memory, where nothing brings it to files.
func (t *Tables) TooMuch(what string) error {
	return fmt.Errorf("one epoch changes more than %d MB of %s: a single row, transaction or step of time makes too many rows at once; "+
		"raise --state-memory (a quarter of this bound), or change the query so that they are aggregated first", t.EpochLimit()>>20, what)
}

// Scratch are files for what the table's operator sorts within an epoch; they go with the table. nil: there are none to be had.
func (p *Point) Scratch() *spill.Scratch {
	if p.scratch == nil && p.spill != nil && !p.spec.Ephemeral {
		p.scratch = p.spill.NewScratch()
	}
	return p.scratch
}

// Changing is about how much of the table the epoch has changed, in bytes, without what Settle let go of.
func (p *Point) Changing() int64 { return p.changing }

// Settle says that what the epoch has changed in the table so far is final: until the epoch's unit is applied nobody probes these keys again, and the refs to
// their rows, Old and Changed end here. If it is much, it goes to a file that the unit will name, and leaves memory.
func (p *Point) Settle() {
	most := p.SpillBytes()
	if most == 0 || p.changing <= most || p.spec.Ephemeral {
		return
	}
	if p.early == nil {
		p.early = &Changes{}
		p.early.SpillTo(p.spill, min(most, 4*payloadBytes))
	}
	pool, kind := p.pool, p.spec.kind()
	p.encodeDrop(p.early)
	for i, ref := range p.changed {
		addr := uint32(ref)
		r := pool.row(addr)
		r.old = 0
		was, now := p.kept(p.olds[i]), pool.valueOf(addr, r)
		if (was == nil) == (now == nil) && bytes.Equal(was, now) {
			continue // it stays: kv may not have the change of an epoch before
		}
		key := pool.keyAt(addr, rowHeader)
		hash, w := xxh3.Hash(key), p.partOfRow(key)
		if now == nil {
			p.early.Delete(kind, p.spec.ID, key, nil)
			p.absent--
		} else {
			p.early.Set(kind, p.spec.ID, key, nil, now)
			if w.known || p.preloads() {
				w.filter.add(pool, hash)
			}
		}
		w.index.remove(hash, addr)
		pool.freeRow(&w.arena, addr)
	}
	p.forgetChanged()
	if err := p.early.spilling.err; err != nil {
		p.fail(err)
	}
}

// Revert undoes what the epoch has changed in the table: the refs to changed rows, Old and Changed end here.
func (p *Point) Revert() {
	pool := p.pool
	for i, ref := range p.changed {
		addr := uint32(ref)
		r := pool.row(addr)
		r.old = 0
		key := pool.keyAt(addr, rowHeader)
		w := p.partOfRow(key)
		if was := p.kept(p.olds[i]); was != nil {
			if r.valLen == absentLen {
				p.absent--
				r.valLen = 0
			}
			pool.store(&w.arena, addr, r, was)
			continue
		}
		if r.valLen != absentLen {
			if r.ext != 0 {
				w.arena.release(pool, r.ext, r.extClass)
				r.ext = 0
			}
			r.valLen = absentLen
			p.absent++
		}
		if p.isApplied(r.commit) { // what there was not needs no place
			w.index.remove(xxh3.Hash(key), addr)
			pool.freeRow(&w.arena, addr)
			p.absent--
		}
	}
	p.forgetChanged()
}

// forgetChanged lets go of the list of changes and of the old values.
func (p *Point) forgetChanged() {
	var large map[uint32]bool
	for _, o := range p.olds {
		if o.n == 0 || o.n == absentLen {
			continue
		}
		class := classFor(int(o.n))
		if class >= largeClass {
			if large == nil {
				large = map[uint32]bool{}
			}
			large[o.addr] = true
		}
		p.epochArena.release(p.pool, o.addr, class)
	}
	if large != nil {
		p.epochLarge = slices.DeleteFunc(p.epochLarge, func(c chunk) bool { return large[c.addr] })
	}
	p.changed, p.olds = resetList(p.changed), resetList(p.olds)
	p.changedBytes -= min(p.changedBytes, p.changing)
	p.changing = 0
	for _, w := range p.parts {
		w.index.shrink(p.pool)
	}
}

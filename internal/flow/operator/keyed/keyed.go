// Package keyed is what operators use to bring together the rows of one epoch by key: a hash table whose memory lasts for the
// epoch and is kept for the next. There is no Go object a key.
package keyed

import (
	"bytes"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/leat-io/leat/internal/spill"
	"github.com/leat-io/leat/internal/state"
)

// keepBytes is how much memory Reset keeps of each slice.
const keepBytes = 4 << 20

// Table numbers keys from 0 in order of their first appearance.
type Table struct {
	slots []uint32 // id + 1, 0 is free; length a power of two
	tags  []uint32 // by id: upper half of the hash
	data  []byte
	off   []uint32
}

// Len is the number of keys.
func (t *Table) Len() int { return max(len(t.off)-1, 0) }

// Key is key id; valid until Reset.
func (t *Table) Key(id int) []byte { return t.data[t.off[id]:t.off[id+1]:t.off[id+1]] }

// Bytes is about how much memory the keys take.
func (t *Table) Bytes() int64 {
	const perKey = 4 + 4 + 8 // tag, offset, slots
	return int64(len(t.data)) + int64(t.Len())*perKey
}

// Reset forgets all keys.
func (t *Table) Reset() {
	if len(t.slots)*4 > keepBytes {
		t.slots = nil
	} else {
		clear(t.slots)
	}
	t.tags = keep(t.tags, 4)
	t.data = keep(t.data, 1)
	t.off = keep(t.off, 4)
}

func keep[T any](s []T, size int) []T {
	if cap(s)*size > keepBytes {
		return nil
	}
	return s[:0]
}

// Add returns the id of key, and whether it is new.
func (t *Table) Add(key []byte) (id int, created bool) {
	if len(t.off) == 0 {
		t.off = append(t.off, 0)
	}
	if 4*(t.Len()+1) > 3*len(t.slots) {
		t.grow()
	}
	h := xxh3.Hash(key)
	tag := uint32(h >> 32)
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			id = t.Len()
			t.slots[i] = uint32(id + 1)
			t.tags = append(t.tags, tag)
			t.data = append(t.data, key...)
			t.off = append(t.off, uint32(len(t.data)))
			return id, true
		}
		if t.tags[s-1] == tag && bytes.Equal(t.Key(int(s-1)), key) {
			return int(s - 1), false
		}
	}
}

func (t *Table) grow() {
	n := max(64, 2*len(t.slots))
	t.slots = make([]uint32, n)
	mask := uint64(n - 1)
	for id := range t.Len() {
		h := xxh3.Hash(t.Key(id))
		i := h & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = uint32(id + 1)
	}
}

// Changes are the rows of an epoch by key: for each key a chain of (row bytes, weight).
type Changes struct {
	Keys  Table
	heads []int32 // by key: its last row, -1 none
	rows  []changed
	data  []byte
	held  int64 // accounted for
}

type changed struct {
	off, n int
	weight int64
	next   int32
}

// Add adds a row with its weight under a key. A row that the chain has already is merged with it.
func (c *Changes) Add(key, row []byte, weight int64) {
	id, created := c.Keys.Add(key)
	if created {
		c.heads = append(c.heads, -1)
	}
	for r := c.heads[id]; r >= 0; r = c.rows[r].next {
		x := &c.rows[r]
		if bytes.Equal(c.data[x.off:x.off+x.n], row) {
			x.weight += weight
			return
		}
	}
	c.rows = append(c.rows, changed{off: len(c.data), n: len(row), weight: weight, next: c.heads[id]})
	c.heads[id] = int32(len(c.rows) - 1)
	c.data = append(c.data, row...)
}

// Len is the number of keys.
func (c *Changes) Len() int { return c.Keys.Len() }

// Bytes is about how much memory the rows take.
func (c *Changes) Bytes() int64 {
	const perKey, perRow = 4, 32 // head; changed
	return int64(len(c.data)) + int64(len(c.rows))*perRow + c.Keys.Bytes() + int64(c.Keys.Len())*perKey
}

// Account puts the rows' memory into the accounts of t, and says whether an epoch may keep so much, if what is collected cannot go to files. what names
// who collects. Call it after every batch.
func (c *Changes) Account(t *state.Tables, what string) error {
	if c.hold(t) > t.EpochLimit() {
		return t.TooMuch(what)
	}
	return nil
}

// Keep is Account for what can go to files: when the rows are more than may be in memory they become another of the runs. Where there is no place for files it
// is Account.
func (c *Changes) Keep(t *state.Tables, runs *Runs, scratch *spill.Scratch, what string) error {
	if scratch == nil {
		return c.Account(t, what)
	}
	if c.hold(t) <= t.SpillBytes() {
		return nil
	}
	return runs.Add(c, t, scratch)
}

// hold puts the rows' memory into the accounts, and says how much it is.
func (c *Changes) hold(t *state.Tables) int64 {
	n := c.Bytes()
	t.Hold(n - c.held)
	c.held = n
	return n
}

// Each calls fn for the rows of key id whose weights do not cancel.
func (c *Changes) Each(id int, fn func(row []byte, weight int64)) {
	for r := c.heads[id]; r >= 0; r = c.rows[r].next {
		x := &c.rows[r]
		if x.weight != 0 {
			fn(c.data[x.off:x.off+x.n:x.off+x.n], x.weight)
		}
	}
}

// Sorted appends the ids of all keys in the order of their bytes.
func (c *Changes) Sorted(dst []int32) []int32 {
	for id := range c.Keys.Len() {
		dst = append(dst, int32(id))
	}
	slices.SortFunc(dst, func(a, b int32) int { return bytes.Compare(c.Keys.Key(int(a)), c.Keys.Key(int(b))) })
	return dst
}

// Reset forgets everything.
func (c *Changes) Reset() {
	c.Keys.Reset()
	c.heads = keep(c.heads, 4)
	c.rows = keep(c.rows, 32)
	c.data = keep(c.data, 1)
	c.held = 0
}

// Release takes the rows' memory out of the accounts, and forgets them.
func (c *Changes) Release(t *state.Tables) {
	t.Hold(-c.held)
	c.Reset()
}

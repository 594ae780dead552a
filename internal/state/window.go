package state

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/zeebo/xxh3"

	"github.com/leat-io/leat/internal/spill"
)

// WindowBytes is the length of a window's end at the start of a key: a byte that says "not NULL", and the end in microseconds
// in big-endian order with the sign bit flipped, as rowenc encodes a timestamp.
const WindowBytes = 9

// WindowEnd is the window's end that a key of a windowed table starts with.
func WindowEnd(key []byte) int64 {
	return int64(binary.BigEndian.Uint64(key[1:WindowBytes]) ^ 1<<63)
}

func putWindowEnd(dst *[WindowBytes]byte, tag byte, end int64) {
	dst[0] = tag
	binary.BigEndian.PutUint64(dst[1:], uint64(end)^1<<63)
}

// A part is the memory of one window of a table; a table without windows has one part.
type part struct {
	end    int64
	prefix [WindowBytes]byte
	arena  arena
	index  index
	filter filter // keys (hashes) that kv may have and memory has not
	// known: what is neither in the index nor in the filter is not in kv.
	known bool
	hand  int // where eviction goes on
}

// complete says that kv has nothing of the part that is not in memory.
func (w *part) complete() bool { return w.known && w.filter.empty() }

func (w *part) live() int64 { return w.arena.live + w.index.bytes() + w.filter.bytes() }

// table is what point and ordered tables share: parts, and the bookkeeping of the epoch.
type table struct {
	*Tables
	sort   tableSort
	spec   Spec
	header int // of what the index points to

	parts  []*part // by window's end
	last   *part   // of the last key looked up
	opened bool    // windows that kv has are among parts
	preload
	tag byte // first byte of the keys of a windowed table

	touched  bool  // in Tables.touched
	dropped  bool  // windows were dropped in this epoch
	dropTo   int64 // up to here
	absent   int   // absent rows in memory, about
	changing int64 // about how much of it the epoch has changed, in bytes

	early   *Changes       // what Settle has let go of in the epoch
	scratch *spill.Scratch // see Point.Scratch
	sweepAt int            // number of absent rows at which they are swept

	hashes  []uint64
	slots   []uint64 // of hashes, while they are warmed
	warmed  uint64
	missing []int32
	oneOff  [2]uint32
	oneRef  [1]Ref
}

func (tb *table) init(t *Tables, spec Spec, header int) {
	*tb = table{Tables: t, spec: spec, header: header, sweepAt: minSweep}
	if !spec.Windowed {
		tb.last = &part{known: spec.Fresh || spec.Ephemeral}
		tb.parts = []*part{tb.last}
	}
	tb.opened = !spec.Windowed || spec.Fresh || spec.Ephemeral
	tb.preload.ended = spec.Fresh || spec.Ephemeral
}

const minSweep = 256

// partOf is the part of a key, made if it is not there.
func (tb *table) partOf(key []byte) (*part, error) {
	if !tb.spec.Windowed {
		return tb.last, nil
	}
	if w := tb.last; w != nil && len(key) >= WindowBytes && string(key[:WindowBytes]) == string(w.prefix[:]) {
		return w, nil
	}
	if len(key) < WindowBytes {
		return nil, fmt.Errorf("state table %d (%s): a key of %d bytes in a windowed table; it must start with the window's end (%d bytes)", tb.spec.ID, tb.spec.Name, len(key), WindowBytes)
	}
	if err := tb.open(); err != nil {
		return nil, err
	}
	tb.last = tb.window(key)
	return tb.last, nil
}

// partOfRow is partOf for a key that is in memory.
func (tb *table) partOfRow(key []byte) *part {
	if !tb.spec.Windowed {
		return tb.last
	}
	if w := tb.last; w != nil && string(key[:WindowBytes]) == string(w.prefix[:]) {
		return w
	}
	return tb.window(key)
}

func (tb *table) window(key []byte) *part {
	end := WindowEnd(key)
	i := sort.Search(len(tb.parts), func(i int) bool { return tb.parts[i].end >= end })
	if i < len(tb.parts) && tb.parts[i].end == end {
		return tb.parts[i]
	}
	// After open every window that kv has is there. What was dropped and is not gone from kv yet is not to be seen either: its
	// deletion comes before anything that is put into the window from now on.
	w := &part{end: end, known: true}
	copy(w.prefix[:], key)
	tb.parts = slices.Insert(tb.parts, i, w)
	return w
}

// storedCounts says whether a key that a scan found in kv is still to be seen: that of a window that was dropped is there until the
// deletion is applied.
func (tb *table) storedCounts(key []byte) bool {
	w := tb.last
	if tb.spec.Windowed {
		if len(key) < WindowBytes {
			return false
		}
		end := WindowEnd(key)
		i := sort.Search(len(tb.parts), func(i int) bool { return tb.parts[i].end >= end })
		if i == len(tb.parts) || tb.parts[i].end != end {
			return false
		}
		w = tb.parts[i]
	}
	return !w.known || w.filter.has(xxh3.Hash(key))
}

// open finds the windows that kv has, by one seek each.
func (tb *table) open() error {
	if tb.opened {
		return nil
	}
	snap := tb.db.Snapshot()
	defer snap.Release()
	it, err := snap.NewIter(tb.spec.ID)
	if err != nil {
		return tb.wrap("find its windows", err)
	}
	var from [WindowBytes]byte
	for it.SeekGE(from[:], nil); it.Next(); it.SeekGE(from[:], nil) {
		key := it.Prefix()
		if len(key) < WindowBytes {
			_ = it.Close()
			return tb.wrap("find its windows", fmt.Errorf("a key of %d bytes in a windowed table", len(key)))
		}
		copy(from[:], key)
		w := &part{end: WindowEnd(key), prefix: from}
		tb.parts = append(tb.parts, w)
		if !nextPrefix(from[:]) {
			break
		}
	}
	err = it.Err()
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return tb.wrap("find its windows", err)
	}
	slices.SortFunc(tb.parts, func(a, b *part) int {
		switch {
		case a.end < b.end:
			return -1
		case a.end > b.end:
			return 1
		}
		return 0
	})
	tb.opened = true
	return nil
}

// nextPrefix makes b the first string of its length that is after all that start with b; false if there is none.
func nextPrefix(b []byte) bool {
	for i := len(b) - 1; i >= 0; i-- {
		b[i]++
		if b[i] != 0 {
			return true
		}
	}
	return false
}

func (tb *table) wrap(doing string, err error) error {
	return fmt.Errorf("state table %d (%s): %s: %w", tb.spec.ID, tb.spec.Name, doing, err)
}

// MinWindow is the lowest end of a window that has, or may have, rows.
func (tb *table) MinWindow() (end int64, ok bool, err error) {
	if err := tb.open(); err != nil {
		return 0, false, err
	}
	for _, w := range tb.parts {
		if w.index.n > 0 || !w.complete() {
			return w.end, true, nil
		}
	}
	return 0, false, nil
}

// Windows appends the ends of the windows that have, or may have, rows, lowest first, up to and including upTo.
func (tb *table) Windows(dst []int64, upTo int64) ([]int64, error) {
	if err := tb.open(); err != nil {
		return dst, err
	}
	for _, w := range tb.parts {
		if w.end > upTo {
			break
		}
		if w.index.n > 0 || !w.complete() {
			dst = append(dst, w.end)
		}
	}
	return dst, nil
}

// takeWindows removes the parts up to upTo from the table and gives their memory back; false if there are none.
func (tb *table) takeWindows(upTo int64) bool {
	n := 0
	for n < len(tb.parts) && tb.parts[n].end <= upTo {
		tb.freePart(tb.parts[n])
		n++
	}
	if n == 0 {
		return false
	}
	tb.tag = tb.parts[n-1].prefix[0]
	tb.parts = slices.Delete(tb.parts, 0, n)
	tb.last = nil
	if !tb.dropped || upTo > tb.dropTo {
		tb.dropTo = upTo
	}
	tb.dropped = true
	tb.enter()
	return true
}

// freePart gives a part's memory back.
func (tb *table) freePart(w *part) {
	if w.arena.large > 0 {
		for _, s := range w.index.slots {
			if s != 0 {
				tb.freeEntry(w, uint32(s))
			}
		}
	}
	w.arena.drop(tb.pool)
	w.index.drop(tb.pool)
	w.filter.drop(tb.pool)
}

// freeEntry gives back what the index points to: a row, or a group with its rows.
func (tb *table) freeEntry(w *part, addr uint32) {
	if tb.header == rowHeader {
		tb.pool.freeRow(&w.arena, addr)
		return
	}
	tb.freeGroup(w, addr)
}

// enter puts the table into the list of those that the epoch has touched.
func (tb *table) enter() {
	if !tb.touched {
		tb.touched = true
		tb.Tables.touched = append(tb.Tables.touched, tb)
	}
}

// discardFiles gives up the files of a table that is given up in the middle of an epoch.
func (tb *table) discardFiles() {
	if tb.early != nil {
		tb.early.spilling.discard()
		tb.early = nil
	}
	if tb.scratch != nil {
		_ = tb.scratch.Close() // what stays is removed at the next start
		tb.scratch = nil
	}
}

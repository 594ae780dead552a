package state

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// lazySort gives addresses in order of their keys, and sorts only as far as it is asked to: who reads a chunk of a large
// table (a backfill) pays for finding the chunk, not for sorting the table.
type lazySort struct {
	pool   *pool
	header int
	rows   []headed
	at     int
	sorted int   // rows before it are in order
	ends   []int // of parts, the inner ones last: everything before an end is at or below everything behind it
}

// headed is an address with the first 8 bytes of its key, which decide most comparisons without a look at the row.
type headed struct {
	head uint64
	addr uint32
}

const smallSort = 256

func headOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

func (s *lazySort) reset(p *pool, header int) {
	*s = lazySort{pool: p, header: header, rows: s.rows[:0], ends: s.ends[:0]}
}

func (s *lazySort) add(addr uint32, key []byte) {
	s.rows = append(s.rows, headed{headOf(key), addr})
}

// peek is the next address, 0 at the end.
func (s *lazySort) peek() uint32 {
	if s.at == len(s.rows) {
		return 0
	}
	if s.at == s.sorted {
		s.sortMore()
	}
	return s.rows[s.at].addr
}

func (s *lazySort) sortMore() {
	for len(s.ends) > 0 && s.ends[len(s.ends)-1] == s.sorted {
		s.ends = s.ends[:len(s.ends)-1]
	}
	if len(s.ends) == 0 {
		s.ends = append(s.ends, len(s.rows))
	}
	end := s.ends[len(s.ends)-1]
	for end-s.sorted > smallSort {
		end = s.split(s.sorted, end)
		s.ends = append(s.ends, end)
	}
	slices.SortFunc(s.rows[s.sorted:end], s.compare)
	s.sorted = end
}

// split orders rows[lo:hi] so that all before the returned place are at or below all behind it; lo < place < hi.
func (s *lazySort) split(lo, hi int) int {
	rows := s.rows
	mid := int(uint(lo+hi) >> 1)
	pivot := rows[mid]
	if a, b := rows[lo], rows[hi-1]; s.compare(a, b) > 0 { // the median of three
		if s.compare(pivot, a) > 0 {
			pivot = a
		} else if s.compare(pivot, b) < 0 {
			pivot = b
		}
	} else if s.compare(pivot, a) < 0 {
		pivot = a
	} else if s.compare(pivot, b) > 0 {
		pivot = b
	}
	i, j := lo, hi-1
	for {
		for s.compare(rows[i], pivot) < 0 {
			i++
		}
		for s.compare(rows[j], pivot) > 0 {
			j--
		}
		if i >= j {
			return max(i, lo+1)
		}
		rows[i], rows[j] = rows[j], rows[i]
		i++
		j--
	}
}

func (s *lazySort) compare(a, b headed) int {
	if a.head != b.head {
		if a.head < b.head {
			return -1
		}
		return 1
	}
	return bytes.Compare(s.pool.keyAt(a.addr, s.header), s.pool.keyAt(b.addr, s.header))
}

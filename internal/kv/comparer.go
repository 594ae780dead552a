package kv

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// ComparerName is burnt into every database; so is Split. Neither ever changes.
const ComparerName = "leat.v1"

const (
	tableLen = 4
	// terminator ends the group prefix: two zeros, which do not change the order of prefixes, as bytes, and make a key that ends
	// there one without suffix.
	terminatorLen = 2
	trailerLen    = 2
	maxSuffix     = 0xffff - trailerLen
)

// AppendKey appends the stored form of a key; docs/format/kv.md draws it.
func AppendKey(dst []byte, table uint32, prefix, suffix []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, table)
	dst = append(dst, prefix...)
	dst = append(dst, 0, 0)
	if len(suffix) == 0 {
		return dst
	}
	dst = append(dst, suffix...)
	return binary.BigEndian.AppendUint16(dst, uint16(len(suffix)+trailerLen))
}

// split returns where the group prefix, with its terminator, ends.
func split(key []byte) int {
	n := len(key)
	if n < trailerLen {
		return n
	}
	t := int(key[n-2])<<8 | int(key[n-1])
	if t > n {
		return n
	}
	return n - t
}

// splitKey takes a stored key apart; the slices point into it.
func splitKey(key []byte) (prefix, suffix []byte) {
	n := split(key)
	if n > tableLen+terminatorLen {
		prefix = key[tableLen : n-terminatorLen]
	}
	if n+trailerLen < len(key) {
		suffix = key[n : len(key)-trailerLen]
	}
	return prefix, suffix
}

// compareSuffixes returns -1, 0 or 1: Pebble switches on these very values.
func compareSuffixes(a, b []byte) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(len(a), len(b))
	}
	return bytes.Compare(a[:max(0, len(a)-trailerLen)], b[:max(0, len(b)-trailerLen)])
}

func compareKeys(a, b []byte) int {
	an, bn := split(a), split(b)
	if c := bytes.Compare(a[:an], b[:bn]); c != 0 {
		return c
	}
	return compareSuffixes(a[an:], b[bn:])
}

// shortest appends to dst the shortest bare prefix that is greater than a and, unless b is nil, less than b; false if a itself is
// as good.
func shortest(dst, a, b []byte) ([]byte, bool) {
	pa := a[:split(a)]
	from, to := 0, len(pa)-terminatorLen
	if b != nil {
		pb := b[:split(b)]
		for from < len(pa) && from < len(pb) && pa[from] == pb[from] {
			from++
		}
		to = min(to, from+1)
	}
	for i := from; i < to; i++ {
		if pa[i] == 0xff || i+1+terminatorLen >= len(a) {
			continue
		}
		n := len(dst)
		dst = append(dst, pa[:i]...)
		dst = append(dst, pa[i]+1, 0, 0)
		if b != nil && compareKeys(dst[n:], b) >= 0 {
			return dst[:n], false
		}
		return dst, true
	}
	return dst, false
}

var comparer = &pebble.Comparer{
	Name:                 ComparerName,
	Split:                split,
	Compare:              compareKeys,
	Equal:                bytes.Equal,
	ComparePointSuffixes: compareSuffixes,
	CompareRangeSuffixes: compareSuffixes,
	AbbreviatedKey: func(key []byte) uint64 {
		// Of the prefix only: what follows it orders differently.
		p := key[:split(key)]
		if len(p) >= 8 {
			return binary.BigEndian.Uint64(p)
		}
		var v uint64
		for _, b := range p {
			v = v<<8 | uint64(b)
		}
		return v << uint(8*(8-len(p)))
	},
	Separator: func(dst, a, b []byte) []byte {
		if s, ok := shortest(dst, a, b); ok {
			return s
		}
		return append(dst, a...)
	},
	Successor: func(dst, a []byte) []byte {
		if len(a) == 0 {
			return append(dst, 0, 0)
		}
		if s, ok := shortest(dst, a, nil); ok {
			return s
		}
		return append(dst, a...)
	},
	// One more zero behind a bare prefix is the next bare prefix, and ends in its terminator.
	ImmediateSuccessor: func(dst, a []byte) []byte {
		return append(append(dst, a...), 0)
	},
}

// Package needle finds one string in many short texts: the constant in a LIKE pattern, or what every match of a regular expression contains.
//
// Of a needle of n bytes any place where it stands holds one of every n-3 successive places of the text, with the four bytes behind it: only these
// places are looked at, each without waiting for the one before. What always holds: the answer is that of bytes.Index.
package needle

import (
	"bytes"
	"encoding/binary"
)

// Needle is a string to look for. Any number of goroutines may use it.
type Needle struct {
	str    []byte
	stride int // 0: too short for this
	// grams are the hashes of four bytes that the needle has, each with one more than the last place where it has them.
	grams [1 << gramBits]uint8
}

const (
	gramBits  = 9
	gramBytes = 4
	// minSize is where looking at fewer places begins to pay, maxSize where a place may no longer fit grams.
	minSize = 7
	maxSize = 200
)

// New makes a needle of a string, which must stay as it is.
func New(str []byte) *Needle {
	n := &Needle{str: str}
	if len(str) < minSize || len(str) > maxSize {
		return n
	}
	n.stride = len(str) - gramBytes + 1
	for i := range n.stride {
		n.grams[gram(binary.LittleEndian.Uint32(str[i:]))] = uint8(i + 1)
	}
	return n
}

func gram(x uint32) uint32 { return x * 0x9E3779B1 >> (32 - gramBits) }

// Len is how many bytes the needle has.
func (n *Needle) Len() int { return len(n.str) }

// Index is where the text has the needle first, -1 if nowhere.
func (n *Needle) Index(text []byte) int {
	stride := n.stride
	if stride == 0 {
		return bytes.Index(text, n.str)
	}
	for p := 0; p <= len(text)-gramBytes; p += stride {
		at := int(n.grams[gram(binary.LittleEndian.Uint32(text[p:]))])
		if at == 0 {
			continue
		}
		// Where the needle has these four bytes last it would begin first.
		if start := p - at + 1; start >= 0 && bytes.HasPrefix(text[start:], n.str) {
			return start
		}
		// Other bytes with the same hash, or one of the other places.
		from := max(p-stride+1, 0)
		if i := bytes.Index(text[from:min(p+len(n.str), len(text))], n.str); i >= 0 {
			return from + i
		}
	}
	return -1
}

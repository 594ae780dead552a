package expr

import (
	"encoding/binary"

	"github.com/leat-io/leat/internal/column"
)

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// whole gives the bytes of all rows of an argument in one piece, if most rows are wanted: what is cheap a byte is then done for all of them.
// NULL and unselected rows are among them.
func (c *Call) whole(k int) (data []byte, off []uint32, ok bool) {
	if c.Const[k] || c.Sel != nil && len(c.Sel)*2 < c.N {
		return nil, nil, false
	}
	v := c.Args[k]
	off = v.Off[:c.N+1]
	return v.Data[off[0]:off[c.N]], off, true
}

// onlyASCII tells whether no byte of s is part of a longer character.
func onlyASCII(s []byte) bool {
	for len(s) >= 32 {
		w := binary.LittleEndian.Uint64(s) | binary.LittleEndian.Uint64(s[8:]) | binary.LittleEndian.Uint64(s[16:]) | binary.LittleEndian.Uint64(s[24:])
		if w&highBits != 0 {
			return false
		}
		s = s[32:]
	}
	return isASCII(s)
}

// appendFlipped appends s with the case of the letters from first ('A' or 'a') to the 26th changed; ok is false if s is not ASCII.
func appendFlipped(dst, s []byte, first byte) (out []byte, ok bool) {
	at := len(dst)
	dst = append(dst, s...)
	t := dst[at:]
	above, from := uint64(0x80-first-26)*lowBits, uint64(0x80-first)*lowBits
	for len(t) >= 8 {
		w := binary.LittleEndian.Uint64(t)
		if w&highBits != 0 {
			return dst[:at], false
		}
		letters := (w + from) &^ (w + above) & highBits
		binary.LittleEndian.PutUint64(t, w^letters>>2)
		t = t[8:]
	}
	for i, c := range t {
		if c >= 0x80 {
			return dst[:at], false
		}
		if c-first < 26 {
			t[i] = c ^ 0x20
		}
	}
	return dst, true
}

// caseOf is lower and upper: ASCII for all rows at once, other text row by row.
func caseOf(name string, first byte, f func(dst, s []byte) []byte) Overload {
	byRow := textOf(name, f)
	plain, _ := byRow.Make(nil)
	byRow.Make = kernel(func(c *Call) {
		if data, off, ok := c.whole(0); ok {
			if buf, ok := appendFlipped(c.w.Buf, data, first); ok {
				c.w.takeAll(buf, off)
				c.all = true
				return
			}
		}
		plain(c)
	})
	return byRow
}

// takeAll makes buf the result's bytes, with the lengths of off.
func (w *TextWriter) takeAll(buf []byte, off []uint32) {
	from := off[0]
	for i, x := range off {
		w.off[i] = x - from
	}
	w.Buf, w.next, w.mark = buf, int32(len(off)-1), uint32(len(buf))
}

// charLength is length(text).
func charLength(name string) Overload {
	byRow := lengthOf(name, tText, charCount)
	plain, _ := byRow.Make(nil)
	byRow.Make = kernel(func(c *Call) {
		data, off, ok := c.whole(0)
		if !ok || !onlyASCII(data) {
			plain(c)
			return
		}
		out := c.Out.I32
		for i := range out {
			out[i] = int32(off[i+1] - off[i])
		}
		c.all = true
	})
	return byRow
}

// selectTexts selects the rows that are equal to a constant.
func selectTexts(c *Call, dst []int32) []int32 {
	v, key := c.Args[0], c.Args[1]
	if c.Const[0] {
		v, key = key, v
	}
	k := len(dst)
	rows := c.Rows()
	dst = grow(dst, len(rows))
	want := string(key.Bytes(0))
	n := uint32(len(want))
	for _, row := range rows {
		from, to := v.Off[row], v.Off[row+1]
		dst[k] = row
		if to-from == n && string(v.Data[from:to]) == want {
			k++
		}
	}
	return dst[:k]
}

// constantSide tells whether one of two arguments is a known constant, and one only.
func constantSide(consts []*column.Vector) bool { return (consts[0] != nil) != (consts[1] != nil) }

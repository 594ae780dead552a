package expr

import "encoding/binary"

// shortText is a text of up to eight bytes as a word. It is compared without a call and, where lengths are anything, without a branch.
type shortText struct {
	bytes uint64
	size  uint32
	mask  uint64 // the bytes that it has
}

// wordOf makes one of a text. What is made of a longer text is equal to no shortText.
func wordOf(s []byte) shortText {
	if len(s) > 8 {
		return shortText{size: uint32(len(s))}
	}
	var b, mask [8]byte
	copy(b[:], s)
	for i := range s {
		mask[i] = 0xff
	}
	return shortText{binary.LittleEndian.Uint64(b[:]), uint32(len(s)), binary.LittleEndian.Uint64(mask[:])}
}

// is tells whether a row that is inside is this text.
func (x *shortText) is(off []uint32, data []byte, row int32) bool {
	from := off[row]
	w := binary.LittleEndian.Uint64(data[from:])
	return (w^x.bytes)&x.mask|uint64(off[row+1]-from^x.size) == 0
}

// inside is how many of the rows, the first ones, have eight bytes of data from their start on.
func (t TextCol) inside(rows []int32) int {
	n := len(rows)
	for n > 0 && int(t.off[rows[n-1]])+8 > len(t.data) {
		n--
	}
	return n
}

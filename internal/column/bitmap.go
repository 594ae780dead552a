package column

import "math/bits"

// words is how many 64-bit words n bits take.
func words(n int) int { return (n + 63) >> 6 }

// Get reports bit i; every bit of a nil bitmap is set.
func (b Bitmap) Get(i int) bool { return b == nil || b[i>>6]>>(uint(i)&63)&1 != 0 }

// Set sets bit i of a bitmap that is not nil.
func (b Bitmap) Set(i int) { b[i>>6] |= 1 << (uint(i) & 63) }

// Clear clears bit i of a bitmap that is not nil.
func (b Bitmap) Clear(i int) { b[i>>6] &^= 1 << (uint(i) & 63) }

// SetTo makes bit i of a bitmap that is not nil equal to on.
func (b Bitmap) SetTo(i int, on bool) {
	if on {
		b.Set(i)
	} else {
		b.Clear(i)
	}
}

// Count is the number of set bits among the first n.
func (b Bitmap) Count(n int) int {
	if b == nil {
		return n
	}
	c, full := 0, n>>6
	for _, w := range b[:full] {
		c += bits.OnesCount64(w)
	}
	if r := uint(n) & 63; r != 0 {
		c += bits.OnesCount64(b[full] & (1<<r - 1))
	}
	return c
}

// All reports whether the first n bits are set.
func (b Bitmap) All(n int) bool {
	if b == nil {
		return true
	}
	full := n >> 6
	for _, w := range b[:full] {
		if w != ^uint64(0) {
			return false
		}
	}
	if r := uint(n) & 63; r != 0 {
		m := uint64(1)<<r - 1
		return b[full]&m == m
	}
	return true
}

// grow returns b with words for n bits, at least, keeping its words; new words are zero.
func (b Bitmap) grow(n int) Bitmap {
	w := words(n)
	if w <= len(b) {
		return b
	}
	if w <= cap(b) {
		old := len(b)
		b = b[:w]
		clear(b[old:])
		return b
	}
	nb := make(Bitmap, w, max(2*cap(b), w, 16))
	copy(nb, b)
	return nb
}

// setRange sets bits [from, to).
func (b Bitmap) setRange(from, to int) {
	for from < to && from&63 != 0 {
		b.Set(from)
		from++
	}
	for ; from+64 <= to; from += 64 {
		b[from>>6] = ^uint64(0)
	}
	for ; from < to; from++ {
		b.Set(from)
	}
}

// FillAll returns a bitmap of n set bits in dst's memory, if it is large enough.
func FillAll(dst Bitmap, n int) Bitmap {
	dst = dst[:0].grow(n)
	for i := range dst {
		dst[i] = ^uint64(0)
	}
	return dst
}

// And returns a AND b over n rows, in dst's memory if it is large enough: a row is valid if it is so in both. It is nil when
// both are (dst is then not kept), and never aliases a or b otherwise.
func And(dst, a, b Bitmap, n int) Bitmap {
	if a == nil && b == nil {
		return nil
	}
	w := words(n)
	dst = dst[:0].grow(n)
	switch {
	case a == nil:
		copy(dst, b[:w])
	case b == nil:
		copy(dst, a[:w])
	default:
		a, b = a[:w], b[:w]
		for i := range dst {
			dst[i] = a[i] & b[i]
		}
	}
	return dst
}

// copyBits copies n bits of src from bit from on to dst (bits 0 to n), whose words are large enough.
func copyBits(dst, src Bitmap, from, n int) {
	shift, w := uint(from)&63, from>>6
	for i := range words(n) {
		x := src[w+i] >> shift
		if shift != 0 && w+i+1 < len(src) {
			x |= src[w+i+1] << (64 - shift)
		}
		dst[i] = x
	}
}

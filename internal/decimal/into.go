package decimal

import "math/bits"

// The functions below are the common cases of Add, Sub, Mul and Cmp for loops over slices: coefficients of 64 bits, nothing
// copied, no error possible. They report false when it is not such a case, and have then done nothing.

// small64s reports whether both are finite with coefficients of 64 bits.
func small64s(a, b *Decimal) bool {
	return a.form|b.form == finite && a.big == nil && b.big == nil && a.hi == int64(a.lo)>>63 && b.hi == int64(b.lo)>>63
}

// set makes d a finite number of 128 bits.
func (d *Decimal) set(hi int64, lo uint64, scale uint16) {
	d.hi, d.lo, d.scale, d.form = hi, lo, scale, finite
	if d.big != nil {
		d.big = nil
	}
}

// mulSigned is the product of two signed numbers.
func mulSigned(x, y int64) (hi int64, lo uint64) {
	h, lo := bits.Mul64(uint64(x), uint64(y))
	return int64(h) - x>>63&y - y>>63&x, lo
}

// MulInto sets dst to a * b.
func MulInto(dst, a, b *Decimal) bool {
	scale := uint(a.scale) + uint(b.scale)
	if !small64s(a, b) || scale > MaxScale {
		return false
	}
	hi, lo := mulSigned(int64(a.lo), int64(b.lo)) // at most 2^126, which has 38 digits
	dst.set(hi, lo, uint16(scale))
	return true
}

// AddInto sets dst to a + b, when they have the same scale.
func AddInto(dst, a, b *Decimal) bool {
	if a.scale != b.scale || !small64s(a, b) {
		return false
	}
	lo, c := bits.Add64(a.lo, b.lo, 0)
	dst.set(a.hi+b.hi+int64(c), lo, a.scale)
	return true
}

// SubInto sets dst to a - b, when they have the same scale.
func SubInto(dst, a, b *Decimal) bool {
	if a.scale != b.scale || !small64s(a, b) {
		return false
	}
	lo, c := bits.Sub64(a.lo, b.lo, 0)
	dst.set(a.hi-b.hi-int64(c), lo, a.scale)
	return true
}

// smallPow10 are the powers of ten of 64 bits.
var smallPow10 = func() (p [19]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// CmpSmall compares a and b, when their scales differ by at most 18.
func CmpSmall(a, b *Decimal) (c int, ok bool) {
	if !small64s(a, b) {
		return 0, false
	}
	ahi, alo, bhi, blo := a.hi, a.lo, b.hi, b.lo
	switch n := int(b.scale) - int(a.scale); {
	case n == 0:
	case n > 0 && n < len(smallPow10):
		ahi, alo = mulSigned(int64(alo), smallPow10[n])
	case n < 0 && -n < len(smallPow10):
		bhi, blo = mulSigned(int64(blo), smallPow10[-n])
	default:
		return 0, false
	}
	switch {
	case ahi < bhi:
		return -1, true
	case ahi > bhi:
		return 1, true
	case alo < blo:
		return -1, true
	case alo > blo:
		return 1, true
	}
	return 0, true
}

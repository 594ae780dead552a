package decimal

import "math/bits"

// u128 is an unsigned 128-bit integer.
type u128 struct{ hi, lo uint64 }

// pow10 holds 10^0 to 10^38: all that fit.
var pow10 = func() (p [39]u128) {
	p[0] = u128{0, 1}
	for i := 1; i < len(p); i++ {
		p[i], _ = p[i-1].mul64(10)
	}
	return p
}()

// maxHi bounds the magnitude of a coefficient in 128 bits: 2^127-1 (the one more of the negative side is not used).
const maxHi = 1<<63 - 1

func (a u128) less(b u128) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a u128) isZero() bool { return a.hi|a.lo == 0 }

// fits reports whether a is the magnitude of a coefficient in 128 bits.
func (a u128) fits() bool { return a.hi <= maxHi }

func (a u128) add(b u128) (u128, bool) {
	lo, c := bits.Add64(a.lo, b.lo, 0)
	hi, c := bits.Add64(a.hi, b.hi, c)
	return u128{hi, lo}, c == 0
}

func (a u128) sub(b u128) u128 {
	lo, c := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, c)
	return u128{hi, lo}
}

func (a u128) mul64(b uint64) (u128, bool) {
	h1, lo := bits.Mul64(a.lo, b)
	h2, l2 := bits.Mul64(a.hi, b)
	hi, c := bits.Add64(h1, l2, 0)
	return u128{hi, lo}, h2|c == 0
}

func (a u128) mul(b u128) (u128, bool) {
	switch {
	case b.hi == 0:
		return a.mul64(b.lo)
	case a.hi == 0:
		return b.mul64(a.lo)
	}
	return u128{}, false
}

// div64 divides by b, which is not 0.
func (a u128) div64(b uint64) (q u128, r uint64) {
	if a.hi == 0 {
		return u128{0, a.lo / b}, a.lo % b
	}
	q.hi = a.hi / b
	q.lo, r = bits.Div64(a.hi%b, a.lo, b)
	return q, r
}

// div divides by b, which is not 0.
func (a u128) div(b u128) (q, r u128) {
	if b.hi == 0 {
		q, rem := a.div64(b.lo)
		return q, u128{0, rem}
	}
	if a.less(b) {
		return u128{}, a
	}
	// The quotient fits 64 bits. Estimate it with the divisor's top 64 bits and put it right (Knuth's algorithm D for one digit).
	n := uint(bits.LeadingZeros64(b.hi))
	top := b.shl(n).hi
	half := a.shr(1)
	est, _ := bits.Div64(half.hi, half.lo, top)
	est >>= 63 - n
	if est != 0 {
		est--
	}
	p, _ := b.mul64(est)
	r = a.sub(p)
	if !r.less(b) {
		est++
		r = r.sub(b)
	}
	return u128{0, est}, r
}

func (a u128) shl(n uint) u128 {
	if n >= 64 {
		return u128{a.lo << (n - 64), 0}
	}
	return u128{a.hi<<n | a.lo>>(64-n), a.lo << n}
}

func (a u128) shr(n uint) u128 {
	if n >= 64 {
		return u128{0, a.hi >> (n - 64)}
	}
	return u128{a.hi >> n, a.lo>>n | a.hi<<(64-n)}
}

// digits is the number of decimal digits of a; 0 has none.
func (a u128) digits() int {
	n := bits.Len64(a.lo)
	if a.hi != 0 {
		n = 64 + bits.Len64(a.hi)
	}
	d := (n*1233 + 4095) >> 12 // n bits hold at most so many digits (1233/4096 is log10(2) closely enough for 128 bits), perhaps one less
	if d > 0 && a.less(pow10[d-1]) {
		d--
	}
	return d
}

package decimal

import (
	"math/big"
	"math/bits"
)

// Add is a + b, with the larger scale.
func (a Decimal) Add(b Decimal) (Decimal, error) {
	if a.form|b.form == finite && a.big == nil && b.big == nil && a.scale == b.scale {
		lo, c := bits.Add64(a.lo, b.lo, 0)
		hi, _ := bits.Add64(uint64(a.hi), uint64(b.hi), c)
		// Overflow when both operands have the sign that the result has not. The lowest integer is left to the slow way.
		if (a.hi^int64(hi))&(b.hi^int64(hi)) >= 0 && int64(hi) != -maxHi-1 {
			return Decimal{hi: int64(hi), lo: lo, scale: a.scale}, nil
		}
	}
	return a.addSlow(b)
}

func (a Decimal) addSlow(b Decimal) (Decimal, error) {
	if a.form|b.form != finite {
		switch {
		case a.form == nan || b.form == nan:
			return NaN, nil
		case a.form == finite:
			return b, nil
		case b.form == finite || a.form == b.form:
			return a, nil
		}
		return NaN, nil
	}
	if a.scale > b.scale {
		a, b = b, a
	}
	n := int(b.scale - a.scale)
	if a.big == nil && b.big == nil && n < len(pow10) {
		u, un := a.abs()
		v, vn := b.abs()
		if u, ok := u.mul(pow10[n]); ok && u.fits() {
			if un == vn {
				if s, ok := u.add(v); ok && s.fits() {
					return from128(s, un, int(b.scale)), nil
				}
			} else if u.less(v) {
				return from128(v.sub(u), vn, int(b.scale)), nil
			} else {
				return from128(u.sub(v), un, int(b.scale)), nil
			}
		}
	}
	z := a.bigCoef()
	if n > 0 {
		z = new(big.Int).Mul(z, bigPow10(n))
	}
	return fromBig(new(big.Int).Add(z, b.bigCoef()), int(b.scale))
}

// Sub is a - b, with the larger scale.
func (a Decimal) Sub(b Decimal) (Decimal, error) { return a.Add(b.Neg()) }

// Neg is -a.
func (a Decimal) Neg() Decimal {
	switch {
	case a.form == infinite:
		return NegInf
	case a.form == negInfinite:
		return Inf
	case a.form == nan:
		return a
	case a.big != nil:
		return Decimal{big: new(big.Int).Neg(a.big), scale: a.scale}
	}
	lo, c := bits.Sub64(0, a.lo, 0)
	hi, _ := bits.Sub64(0, uint64(a.hi), c)
	return Decimal{hi: int64(hi), lo: lo, scale: a.scale}
}

// Abs is the magnitude of a.
func (a Decimal) Abs() Decimal {
	if a.Sign() < 0 {
		return a.Neg()
	}
	return a
}

// Mul is a * b; its scale is the sum of the scales.
func (a Decimal) Mul(b Decimal) (Decimal, error) {
	scale := int(a.scale) + int(b.scale)
	if a.form|b.form == finite && a.big == nil && b.big == nil && scale <= MaxScale {
		u, un := a.abs()
		v, vn := b.abs()
		if u.hi|v.hi == 0 {
			hi, lo := bits.Mul64(u.lo, v.lo)
			if hi <= maxHi {
				return from128(u128{hi, lo}, un != vn, scale), nil
			}
		} else if p, ok := u.mul(v); ok && p.fits() {
			return from128(p, un != vn, scale), nil
		}
	}
	return a.mulSlow(b)
}

func (a Decimal) mulSlow(b Decimal) (Decimal, error) {
	if a.form|b.form != finite {
		if a.form == nan || b.form == nan {
			return NaN, nil
		}
		switch a.Sign() * b.Sign() {
		case 0:
			return NaN, nil
		case 1:
			return Inf, nil
		}
		return NegInf, nil
	}
	z, scale := new(big.Int).Mul(a.bigCoef(), b.bigCoef()), int(a.scale)+int(b.scale)
	if scale > MaxScale {
		z, scale = roundBig(z, scale-MaxScale), MaxScale
	}
	return fromBig(z, scale)
}

// Div is a / b, rounded half away from zero to the scale that PostgreSQL chooses: at least 16 significant digits, and no
// smaller a scale than either operand's.
func (a Decimal) Div(b Decimal) (Decimal, error) {
	if a.form|b.form != finite {
		return a.divSpecial(b)
	}
	if b.IsZero() {
		return Decimal{}, errDivZero
	}
	return a.quo(b, divScale(a, b))
}

func (a Decimal) divSpecial(b Decimal) (Decimal, error) {
	switch {
	case a.form == nan || b.form == nan:
		return NaN, nil
	case a.form == finite: // b is infinite
		return Decimal{}, nil
	case b.form != finite:
		return NaN, nil
	}
	switch a.Sign() * b.Sign() {
	case 0:
		return Decimal{}, errDivZero
	case 1:
		return Inf, nil
	}
	return NegInf, nil
}

// divScale is the scale of a quotient. PostgreSQL estimates the quotient's size from the operands' first digits, base 10^4.
func divScale(a, b Decimal) int {
	wa, fa := a.head()
	wb, fb := b.head()
	w := wa - wb
	if fa <= fb {
		w--
	}
	s := max(minSigDigits-w*baseDigits, int(a.scale), int(b.scale), 0)
	return min(s, maxDisplayScale)
}

// head is the position of the first digit in base 10^4 (0: units) and that digit; 0 and 0 for zero.
func (d Decimal) head() (weight int, first int) {
	n := d.digits()
	if n == 0 {
		return 0, 0
	}
	e := n - 1 - int(d.scale) // of the first decimal digit
	weight = floorDiv(e, baseDigits)
	k := e - weight*baseDigits + 1 // decimal digits in the first digit, 1 to 4
	if d.big != nil {
		if n <= k {
			first = int(new(big.Int).Abs(d.big).Int64())
		} else {
			first = int(new(big.Int).Quo(new(big.Int).Abs(d.big), bigPow10(n-k)).Int64())
		}
	} else {
		u, _ := d.abs()
		if n > k {
			u, _ = u.div(pow10[n-k])
		}
		first = int(u.lo)
	}
	for ; n < k; n++ {
		first *= 10
	}
	return weight, first
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// quo is a / b rounded half away from zero to scale; both are numbers and b is not 0.
func (a Decimal) quo(b Decimal, scale int) (Decimal, error) {
	n := scale + int(b.scale) - int(a.scale)
	if a.big == nil && b.big == nil {
		u, un := a.abs()
		v, vn := b.abs()
		ok := false
		switch {
		case n >= 0 && n < len(pow10):
			u, ok = u.mul(pow10[n])
		case n < 0 && -n < len(pow10):
			v, ok = v.mul(pow10[-n])
		}
		if ok && v.fits() {
			q, r := u.div(v)
			if twice, _ := r.add(r); !twice.less(v) {
				q, _ = q.add(u128{0, 1})
			}
			if q.fits() {
				return from128(q, un != vn, scale), nil
			}
		}
	}
	x, y := a.bigCoef(), b.bigCoef()
	if n >= 0 {
		x = new(big.Int).Mul(x, bigPow10(n))
	} else {
		y = new(big.Int).Mul(y, bigPow10(-n))
	}
	return fromBig(quoRound(x, y), scale)
}

// quoRound is x / y rounded half away from zero, as a new big integer.
func quoRound(x, y *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(x, y, new(big.Int))
	r.Lsh(r, 1)
	if r.CmpAbs(y) >= 0 {
		if x.Sign()*y.Sign() < 0 {
			q.Sub(q, one)
		} else {
			q.Add(q, one)
		}
	}
	return q
}

var one = big.NewInt(1)

// roundBig drops n decimal digits of z, rounding half away from zero.
func roundBig(z *big.Int, n int) *big.Int { return quoRound(z, bigPow10(n)) }

// QuoTrunc is PostgreSQL's div(a, b): the quotient cut to an integer.
func (a Decimal) QuoTrunc(b Decimal) (Decimal, error) {
	if a.form|b.form != finite {
		return a.divSpecial(b)
	}
	if b.IsZero() {
		return Decimal{}, errDivZero
	}
	x, y, _ := align(a, b)
	return fromBig(new(big.Int).Quo(x, y), 0)
}

// align returns the coefficients at the larger scale.
func align(a, b Decimal) (x, y *big.Int, scale int) {
	x, y = a.bigCoef(), b.bigCoef()
	switch {
	case a.scale < b.scale:
		x = new(big.Int).Mul(x, bigPow10(int(b.scale-a.scale)))
	case b.scale < a.scale:
		y = new(big.Int).Mul(y, bigPow10(int(a.scale-b.scale)))
	}
	return x, y, int(max(a.scale, b.scale))
}

// Mod is the rest of a / b cut to an integer: it has the sign of a and the larger scale.
func (a Decimal) Mod(b Decimal) (Decimal, error) {
	if a.form|b.form != finite {
		switch {
		case a.form == nan || b.form == nan:
			return NaN, nil
		case a.form != finite:
			if b.IsZero() {
				return Decimal{}, errDivZero
			}
			return NaN, nil
		}
		return a, nil
	}
	if b.IsZero() {
		return Decimal{}, errDivZero
	}
	if a.big == nil && b.big == nil {
		u, un := a.abs()
		v, _ := b.abs()
		ok1, ok2 := true, true
		switch n := int(b.scale) - int(a.scale); {
		case n > 0 && n < len(pow10):
			u, ok1 = u.mul(pow10[n])
		case n < 0 && -n < len(pow10):
			v, ok2 = v.mul(pow10[-n])
		case n != 0:
			ok1 = false
		}
		if ok1 && ok2 {
			if _, r := u.div(v); r.fits() {
				return from128(r, un, int(max(a.scale, b.scale))), nil
			}
		}
	}
	x, y, scale := align(a, b)
	return fromBig(new(big.Int).Rem(x, y), scale)
}

// order is the place of a value's form in the order: -infinity, numbers, infinity, NaN.
func (f form) order() int {
	switch f {
	case negInfinite:
		return 0
	case finite:
		return 1
	case infinite:
		return 2
	}
	return 3
}

// Cmp compares by value: NaN equals itself and is above everything.
func (a Decimal) Cmp(b Decimal) int {
	if a.form|b.form == finite && a.big == nil && b.big == nil && a.scale == b.scale {
		switch {
		case a.hi < b.hi:
			return -1
		case a.hi > b.hi:
			return 1
		case a.lo < b.lo:
			return -1
		case a.lo > b.lo:
			return 1
		}
		return 0
	}
	return a.cmpSlow(b)
}

func (a Decimal) cmpSlow(b Decimal) int {
	if a.form|b.form != finite {
		return a.form.order() - b.form.order()
	}
	sa, sb := a.Sign(), b.Sign()
	if sa != sb {
		if sa < sb {
			return -1
		}
		return 1
	}
	if sa == 0 {
		return 0
	}
	// The position of the first digit decides, unless it is the same.
	if ea, eb := a.digits()-int(a.scale), b.digits()-int(b.scale); ea != eb {
		if ea < eb {
			return -sa
		}
		return sa
	}
	if a.big == nil && b.big == nil {
		u, _ := a.abs()
		v, _ := b.abs()
		n, ok := int(b.scale)-int(a.scale), false
		switch {
		case n >= 0 && n < len(pow10):
			u, ok = u.mul(pow10[n])
		case n < 0 && -n < len(pow10):
			v, ok = v.mul(pow10[-n])
		}
		if ok {
			switch {
			case u.less(v):
				return -sa
			case v.less(u):
				return sa
			}
			return 0
		}
	}
	x, y, _ := align(a, b)
	return x.Cmp(y)
}

// Equal reports whether a and b are the same value; the scale does not matter.
func (a Decimal) Equal(b Decimal) bool { return a.Cmp(b) == 0 }

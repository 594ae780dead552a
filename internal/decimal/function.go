package decimal

import (
	"math"
	"math/big"

	"github.com/cockroachdb/apd/v3"
)

// Sqrt is the square root, with PostgreSQL's scale.
func (d Decimal) Sqrt() (Decimal, error) {
	switch d.form {
	case nan, infinite:
		return d, nil
	case negInfinite:
		return Decimal{}, errSqrt
	}
	if d.Sign() < 0 {
		return Decimal{}, errSqrt
	}
	w, _ := d.head()
	scale := min(max(minSigDigits-(w*baseDigits/2+1), int(d.scale), 0), maxDisplayScale)
	if d.IsZero() {
		return from128(u128{}, false, scale), nil
	}
	// With one more digit than the result: the integer root is cut, and a root is never exactly half way unless that digit shows it.
	n := 2*(scale+1) - int(d.scale)
	z := new(big.Int).Set(d.bigCoef())
	if n >= 0 {
		z.Mul(z, bigPow10(n))
	} else {
		z.Quo(z, bigPow10(-n))
	}
	z.Sqrt(z)
	return fromBig(roundBig(z, 1), scale)
}

// Exp is e^d, with PostgreSQL's scale.
func (d Decimal) Exp() (Decimal, error) {
	switch d.form {
	case nan, infinite:
		return d, nil
	case negInfinite:
		return Decimal{}, nil
	}
	x := d.approx() * 0.434294481903252
	x = max(min(x, maxResultScale), -maxResultScale)
	scale := min(max(minSigDigits-int(x), int(d.scale), 0), maxDisplayScale)
	return d.expAt(scale)
}

// expAt is e^d rounded to scale.
func (d Decimal) expAt(scale int) (Decimal, error) {
	x := d.approx()
	if math.Abs(x) >= maxResultScale*3 {
		if x > 0 {
			return Decimal{}, errOverflow
		}
		return from128(u128{}, false, scale), nil
	}
	digits := scale + int(x*0.434294481903252) + 2
	if digits < 0 {
		return from128(u128{}, false, scale), nil
	}
	return viaAPD(digits+guard, scale, func(c *apd.Context, z *apd.Decimal) (apd.Condition, error) { return c.Exp(z, d.apd()) })
}

// Ln is the natural logarithm, with PostgreSQL's scale.
func (d Decimal) Ln() (Decimal, error) {
	if err := d.logArgument(); err != nil {
		return Decimal{}, err
	}
	if d.form != finite {
		return d, nil
	}
	scale := min(max(minSigDigits-d.lnWeight(), int(d.scale), 0), maxDisplayScale)
	return d.lnAt(scale)
}

func (d Decimal) logArgument() error {
	switch {
	case d.form == nan:
		return nil
	case d.IsZero():
		return errLogZero
	case d.Sign() < 0:
		return errLogNeg
	}
	return nil
}

// lnAt is ln(d) rounded to scale; d is a positive number. The scale may be beyond MaxScale's reach of a result: it is an
// intermediate value.
func (d Decimal) lnAt(scale int) (Decimal, error) {
	digits := max(scale+d.lnWeight()+2, 1)
	return viaAPD(digits+guard, scale, func(c *apd.Context, z *apd.Decimal) (apd.Condition, error) { return c.Ln(z, d.apd()) })
}

// Log is the logarithm of d to a base, with PostgreSQL's scale.
func (d Decimal) Log(base Decimal) (Decimal, error) {
	if base.form == nan || d.form == nan {
		return NaN, nil
	}
	for _, x := range []Decimal{base, d} {
		if err := x.logArgument(); err != nil {
			return Decimal{}, err
		}
	}
	switch {
	case base.form != finite && d.form != finite:
		return NaN, nil
	case base.form != finite:
		return Decimal{}, nil
	case d.form != finite:
		return Inf, nil
	}
	wb, wd := base.lnWeight(), d.lnWeight()
	w := wd - wb
	scale := min(max(minSigDigits-w, int(base.scale), int(d.scale), 0), maxDisplayScale)
	lb, err := base.lnAt(max(scale+w-wb+8, 0))
	if err != nil {
		return Decimal{}, err
	}
	ld, err := d.lnAt(max(scale-wb+8, 0))
	if err != nil {
		return Decimal{}, err
	}
	if lb.IsZero() {
		return Decimal{}, errDivZero
	}
	return ld.quo(lb, scale)
}

// Log10 is the logarithm to base 10.
func (d Decimal) Log10() (Decimal, error) { return d.Log(FromInt64(10)) }

// lnWeight estimates the decimal position of the first digit of ln(d), exactly as PostgreSQL does: it decides scales.
func (d Decimal) lnWeight() int {
	if d.Sign() <= 0 {
		return 0
	}
	if d.Cmp(Decimal{lo: 9, scale: 1}) >= 0 && d.Cmp(Decimal{lo: 11, scale: 1}) <= 0 {
		x, err := d.Sub(FromInt64(1))
		if err != nil || x.IsZero() {
			return 0
		}
		return x.digits() - 1 - int(x.scale)
	}
	w, _ := d.head()
	// The first two digits base 10^4.
	e := d.digits() - 1 - int(d.scale)
	k := e - w*baseDigits + 1
	lead := d.lead(k + baseDigits)
	weight := (w - 1) * baseDigits
	if d.MinScale() <= -w*baseDigits && d.trailing() >= w*baseDigits { // one digit only
		lead = d.lead(k)
		weight = w * baseDigits
	}
	ln := math.Log(lead) + float64(weight)*2.302585092994046
	return int(math.Log10(math.Abs(ln)))
}

// trailing is the decimal position of the last digit that is not 0.
func (d Decimal) trailing() int {
	r := d.Reduce()
	if r.scale > 0 {
		return -int(r.scale)
	}
	if r.big != nil {
		s := r.big.Text(10)
		n := 0
		for s[len(s)-1-n] == '0' {
			n++
		}
		return n
	}
	u, _ := r.abs()
	n := 0
	for !u.isZero() {
		q, rest := u.div64(10)
		if rest != 0 {
			break
		}
		u = q
		n++
	}
	return n
}

// lead is the first n decimal digits of the coefficient as a number, padded with zeros.
func (d Decimal) lead(n int) float64 {
	have := d.digits()
	if d.big != nil {
		z := new(big.Int).Abs(d.big)
		if have > n {
			z.Quo(z, bigPow10(have-n))
		}
		f, _ := new(big.Float).SetInt(z).Float64()
		return f * math.Pow10(max(n-have, 0))
	}
	u, _ := d.abs()
	if have > n {
		u, _ = u.div(pow10[have-n])
	}
	return (float64(u.hi)*(1<<32)*(1<<32) + float64(u.lo)) * math.Pow10(max(n-have, 0))
}

// Power is d^e, with PostgreSQL's scale.
func (d Decimal) Power(e Decimal) (Decimal, error) {
	if d.form|e.form != finite {
		return d.powerSpecial(e)
	}
	sign, integer := d.Sign(), e.IsInteger()
	if sign == 0 && e.Sign() < 0 {
		return Decimal{}, errPowerZero
	}
	if sign < 0 && !integer {
		return Decimal{}, errPowerNeg
	}
	if integer {
		if x, err := e.toInt("integer", math.MinInt32, math.MaxInt32); err == nil {
			return d.powerInt(x, min(max(minSigDigits, int(d.scale), 0), maxDisplayScale))
		}
	}
	if sign == 0 {
		return from128(u128{}, false, minSigDigits), nil
	}
	base := d.Abs()
	w := base.lnWeight()
	ln, err := base.lnAt(max(8-w, 0))
	if err != nil {
		return Decimal{}, err
	}
	x := ln.approx() * e.approx()
	if math.Abs(x) > maxResultScale*3.01 {
		if x > 0 {
			return Decimal{}, errOverflow
		}
		return from128(u128{}, false, maxDisplayScale), nil
	}
	x *= 0.434294481903252
	scale := min(max(minSigDigits-int(x), int(d.scale), int(e.scale), 0), maxDisplayScale)
	local := max(max(scale+int(x), 0)-w+8, 0)
	ln, err = base.lnAt(local)
	if err != nil {
		return Decimal{}, err
	}
	p, err := ln.Mul(e)
	if err != nil {
		return Decimal{}, err
	}
	if int(p.scale) > local {
		if p, err = p.rescale(local, roundHalf); err != nil {
			return Decimal{}, err
		}
	}
	r, err := p.expAt(scale)
	if err == nil && sign < 0 {
		if half, herr := e.Mod(FromInt64(2)); herr == nil && !half.IsZero() {
			r = r.Neg()
		}
	}
	return r, err
}

// powerInt is d^n rounded to scale.
func (d Decimal) powerInt(n int64, scale int) (Decimal, error) {
	switch n {
	case 0:
		return FromInt64(1).rescale(scale, roundHalf)
	case 1:
		return d.rescale(scale, roundHalf)
	case -1:
		return FromInt64(1).quo(d, scale)
	case 2:
		p, err := d.Mul(d)
		if err != nil {
			return Decimal{}, err
		}
		return p.rescale(scale, roundHalf)
	}
	if d.IsZero() {
		return from128(u128{}, false, scale), nil
	}
	digits := d.digits()
	log := float64(n) * (math.Log10(d.Abs().lead(min(digits, 16))) + float64(digits-min(digits, 16)-int(d.scale)))
	if log > 3*32767*baseDigits {
		return Decimal{}, errOverflow
	}
	if log+1 < -float64(scale) || log+1 < -maxDisplayScale {
		return from128(u128{}, false, scale), nil
	}
	if log > MaxIntegerDigits+1 {
		return Decimal{}, errOverflow
	}
	// Binary floating point with digits to spare; exact when the power fits.
	keep := 1 + float64(scale) + log + math.Log10(math.Abs(float64(n))) + 16
	prec := uint(math.Max(keep*3.3219281+64, 128))
	num := new(big.Float).SetPrec(prec).SetInt(d.bigCoef())
	if d.scale != 0 {
		num.Quo(num, new(big.Float).SetPrec(prec).SetInt(bigPow10(int(d.scale))))
	}
	z := new(big.Float).SetPrec(prec).SetInt64(1)
	m := uint64(n)
	if n < 0 {
		m = uint64(-n)
	}
	if exact := d.bigCoef().BitLen() * int(min(m, 1<<20)); n > 0 && exact <= 1<<14 && int(d.scale)*int(n) <= MaxScale {
		return d.powerExact(n, scale)
	}
	for ; m > 0; m >>= 1 {
		if m&1 != 0 {
			z.Mul(z, num)
		}
		num.Mul(num, num)
	}
	if n < 0 {
		z.Quo(new(big.Float).SetPrec(prec).SetInt64(1), z)
	}
	z.Mul(z, new(big.Float).SetPrec(prec).SetInt(bigPow10(scale+1)))
	i, _ := z.Int(nil)
	return fromBig(roundBig(i, 1), scale)
}

func (d Decimal) powerExact(n int64, scale int) (Decimal, error) {
	z := new(big.Int).Exp(d.bigCoef(), big.NewInt(n), nil)
	have := int(d.scale) * int(n)
	if have > scale {
		z = roundBig(z, have-scale)
	} else {
		z.Mul(z, bigPow10(scale-have))
	}
	return fromBig(z, scale)
}

func (d Decimal) powerSpecial(e Decimal) (Decimal, error) {
	isOne := d.Equal(FromInt64(1))
	switch {
	case d.form == nan || e.form == nan:
		if e.IsZero() || isOne {
			return FromInt64(1), nil
		}
		return NaN, nil
	case d.Sign() == 0 && e.form == negInfinite:
		return Decimal{}, errPowerZero
	case d.Sign() < 0 && e.form == finite && !e.IsInteger():
		return Decimal{}, errPowerNeg
	case isOne || e.IsZero():
		return FromInt64(1), nil
	case e.form != finite:
		abs := d.Abs()
		switch c := abs.Cmp(FromInt64(1)); {
		case c == 0:
			return FromInt64(1), nil
		case (c > 0) == (e.form == infinite):
			return Inf, nil
		}
		return Decimal{}, nil
	case e.Sign() < 0:
		return Decimal{}, nil
	case d.form == infinite:
		return Inf, nil
	}
	if half, err := e.Mod(FromInt64(2)); err == nil && !half.IsZero() {
		return NegInf, nil
	}
	return Inf, nil
}

// guard is how many digits more than shown logarithms and powers are computed with.
const guard = 12

// approx is d as a double, infinite when it is out of range.
func (d Decimal) approx() float64 {
	x, ok := d.float(64)
	if ok {
		return x
	}
	if d.digits() < int(d.scale) {
		return 0
	}
	return math.Inf(d.Sign())
}

func (d Decimal) apd() *apd.Decimal {
	z := new(apd.Decimal)
	c := d.bigCoef()
	z.Coeff.SetMathBigInt(new(big.Int).Abs(c))
	z.Negative = c.Sign() < 0
	z.Exponent = -int32(d.scale)
	return z
}

// viaAPD computes with so many digits and rounds to scale, which may be larger than MaxScale only for values that stay inside.
func viaAPD(digits, scale int, op func(*apd.Context, *apd.Decimal) (apd.Condition, error)) (Decimal, error) {
	c := apd.Context{Precision: uint32(digits), MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: apd.RoundHalfUp}
	var z apd.Decimal
	if _, err := op(&c, &z); err != nil {
		return Decimal{}, err
	}
	b := z.Coeff.MathBigInt()
	switch drop := -int(z.Exponent) - scale; {
	case drop > 0 && drop > bigDigits(b)+1:
		b.SetInt64(0)
	case drop > 0:
		b = roundBig(b, drop)
	case drop < 0:
		b.Mul(b, bigPow10(-drop))
	}
	if z.Negative {
		b.Neg(b)
	}
	return fromBig(b, scale)
}

package decimal

import (
	"math/big"

	"github.com/leat-io/leat/internal/pgerr"
)

// Round rounds half away from zero to scale digits after the point; a negative scale rounds before it. A scale larger than d's
// adds zeros.
func (d Decimal) Round(scale int) (Decimal, error) {
	return d.rescale(max(min(scale, MaxScale), -MaxIntegerDigits-1), roundHalf)
}

// Trunc cuts to scale digits after the point.
func (d Decimal) Trunc(scale int) (Decimal, error) {
	return d.rescale(max(min(scale, MaxScale), -MaxIntegerDigits-1), roundDown)
}

// Ceil is the smallest integer that is not below d.
func (d Decimal) Ceil() (Decimal, error) { return d.rescale(0, roundCeil) }

// Floor is the largest integer that is not above d.
func (d Decimal) Floor() (Decimal, error) { return d.rescale(0, roundFloor) }

type rounding uint8

const (
	roundHalf rounding = iota
	roundDown
	roundCeil
	roundFloor
)

// up reports whether a quotient with a rest is to be made larger in magnitude; half compares twice the rest with the divisor.
func (r rounding) up(neg bool, half int) bool {
	switch r {
	case roundHalf:
		return half >= 0
	case roundCeil:
		return !neg
	case roundFloor:
		return neg
	}
	return false
}

func (d Decimal) rescale(scale int, r rounding) (Decimal, error) {
	if d.form != finite {
		return d, nil
	}
	n := int(d.scale) - scale // digits to drop
	if n == 0 {
		return d, nil
	}
	if n < 0 {
		e, err := d.times10(-n)
		if err != nil {
			return e, err
		}
		e.scale = uint16(scale)
		return e, nil
	}
	shown := max(scale, 0)
	if d.big == nil {
		u, neg := d.abs()
		if n >= len(pow10) { // below half of what is kept: 10^39 is more than twice any coefficient
			if !u.isZero() && r.up(neg, -1) {
				return from128(u128{0, 1}, neg, shown), nil
			}
			return from128(u128{}, false, shown), nil
		}
		q, rest := u.div(pow10[n])
		if !rest.isZero() {
			twice, _ := rest.add(rest)
			half := 0
			if twice.less(pow10[n]) {
				half = -1
			}
			if r.up(neg, half) {
				q, _ = q.add(u128{0, 1})
			}
		}
		e := from128(q, neg, shown)
		if scale < 0 {
			return e.times10(-scale)
		}
		return e, nil
	}
	p := bigPow10(n)
	q, rest := new(big.Int).QuoRem(d.big, p, new(big.Int))
	if rest.Sign() != 0 {
		neg := d.big.Sign() < 0
		if r.up(neg, rest.Lsh(rest, 1).CmpAbs(p)) {
			if neg {
				q.Sub(q, one)
			} else {
				q.Add(q, one)
			}
		}
	}
	if scale < 0 {
		q.Mul(q, bigPow10(-scale))
	}
	return fromBig(q, shown)
}

// Reduce drops the zeros at the end of the fraction: values that are equal become identical. It is PostgreSQL's trim_scale.
func (d Decimal) Reduce() Decimal {
	if d.form != finite || d.scale == 0 {
		return d
	}
	if d.big == nil {
		u, neg := d.abs()
		if u.isZero() {
			return Decimal{}
		}
		s := d.scale
		if u.hi == 0 {
			lo := u.lo
			for s > 0 {
				q := lo / 10
				if q*10 != lo {
					break
				}
				lo = q
				s--
			}
			if s == d.scale {
				return d
			}
			return from128(u128{lo: lo}, neg, int(s))
		}
		for s > 0 {
			q, r := u.div64(10)
			if r != 0 {
				break
			}
			u = q
			s--
		}
		return from128(u, neg, int(s))
	}
	z, s := new(big.Int).Set(d.big), int(d.scale)
	// Large steps first, so that many zeros cost few divisions.
	for step := 1 << 13; step > 0; step >>= 1 {
		p := bigPow10(step)
		for s >= step {
			q, r := new(big.Int).QuoRem(z, p, new(big.Int))
			if r.Sign() != 0 {
				break
			}
			z, s = q, s-step
		}
	}
	e, err := fromBig(z, s)
	if err != nil {
		return d
	}
	return e
}

// MinScale is the scale that shows d without loss.
func (d Decimal) MinScale() int { return int(d.Reduce().scale) }

// Fit makes d a value of numeric(precision, scale): rounded to scale, and refused (22003) when it has too many digits before
// the point. The scale may be negative or larger than the precision.
func (d Decimal) Fit(precision, scale int) (Decimal, error) {
	switch d.form {
	case nan:
		return d, nil
	case infinite, negInfinite:
		return Decimal{}, pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow").
			WithDetail("A field with precision %d, scale %d cannot hold an infinite value.", precision, scale)
	}
	e, err := d.rescale(scale, roundHalf)
	if err != nil {
		return Decimal{}, err
	}
	if !e.IsZero() && e.digits()-int(e.scale) > precision-scale {
		limit := "1"
		if precision != scale {
			limit = "10^" + FromInt64(int64(precision-scale)).String()
		}
		return Decimal{}, pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow").
			WithDetail("A field with precision %d, scale %d must round to an absolute value less than %s.", precision, scale, limit)
	}
	return e, nil
}

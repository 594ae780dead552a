// Package decimal is PostgreSQL's numeric: any number of digits, a display scale per value, NaN and both infinities.
// Values of up to 38 digits live in 128 bits and need no allocation; larger ones hold a big.Int.
package decimal

import "math/big"

// Decimal is coefficient * 10^-scale. The zero value is 0 with scale 0. Values are immutable.
type Decimal struct {
	hi    int64 // with lo: the coefficient in two's complement when big is nil
	lo    uint64
	big   *big.Int
	scale uint16 // digits after the point, PostgreSQL's dscale
	form  form
}

type form uint8

const (
	finite form = iota
	nan
	infinite
	negInfinite
)

// The limits of PostgreSQL's numeric.
const (
	// MaxIntegerDigits is how many digits a value may have before the point.
	MaxIntegerDigits = 131072
	// MaxScale is how many it may have after it.
	MaxScale = 16383

	minSigDigits    = 16   // significant digits that division, roots and logarithms give at least
	maxDisplayScale = 1000 // the largest scale that they choose
	maxResultScale  = 2000 // what exp and power estimate scales with
	baseDigits      = 4    // PostgreSQL's digits are base 10^4, and its choice of scales shows it
)

// The special values.
var (
	NaN    = Decimal{form: nan}
	Inf    = Decimal{form: infinite}
	NegInf = Decimal{form: negInfinite}
)

// FromInt64 is x with scale 0.
func FromInt64(x int64) Decimal { return Decimal{hi: x >> 63, lo: uint64(x)} }

// New is coefficient * 10^-scale. A negative scale multiplies the coefficient.
func New(coefficient int64, scale int) (Decimal, error) {
	d := FromInt64(coefficient)
	if scale >= 0 {
		if scale > MaxScale {
			return Decimal{}, errOverflow
		}
		d.scale = uint16(scale)
		return d, nil
	}
	if coefficient == 0 {
		return d, nil
	}
	return d.times10(-scale)
}

// IsNaN reports whether d is NaN.
func (d Decimal) IsNaN() bool { return d.form == nan }

// IsInf reports whether d is an infinity.
func (d Decimal) IsInf() bool { return d.form >= infinite }

// IsFinite reports whether d is a number.
func (d Decimal) IsFinite() bool { return d.form == finite }

// Scale is the number of digits after the point that d is shown with; 0 for NaN and infinities.
func (d Decimal) Scale() int { return int(d.scale) }

// IsZero reports whether d is 0, with any scale.
func (d Decimal) IsZero() bool { return d.form == finite && d.big == nil && d.hi == 0 && d.lo == 0 }

// Sign is -1, 0 or 1; 1 for NaN, which is above everything.
func (d Decimal) Sign() int {
	switch d.form {
	case finite:
	case negInfinite:
		return -1
	default:
		return 1
	}
	if d.big != nil {
		return d.big.Sign()
	}
	if d.hi < 0 {
		return -1
	}
	if d.hi == 0 && d.lo == 0 {
		return 0
	}
	return 1
}

// BigSize is how many bytes d takes outside of its own memory.
func (d Decimal) BigSize() int {
	if d.big == nil {
		return 0
	}
	return 32 + (d.big.BitLen()+7)/8
}

// Int64 returns the coefficient and the scale of a number whose coefficient fits 64 bits: the way in for loops that only meet
// small values.
func (d Decimal) Int64() (coefficient int64, scale int, ok bool) {
	return int64(d.lo), int(d.scale), d.small64()
}

// small64 reports whether d is a number whose coefficient fits an int64.
func (d Decimal) small64() bool {
	return d.form == finite && d.big == nil && d.hi == int64(d.lo)>>63
}

// abs is the magnitude of a coefficient in 128 bits.
func (d Decimal) abs() (u128, bool) {
	if d.hi >= 0 {
		return u128{uint64(d.hi), d.lo}, false
	}
	return u128{}.sub(u128{uint64(d.hi), d.lo}), true
}

// from128 makes a number of a magnitude that fits and a sign.
func from128(u u128, neg bool, scale int) Decimal {
	if neg {
		u = u128{}.sub(u)
	}
	return Decimal{hi: int64(u.hi), lo: u.lo, scale: uint16(scale)}
}

// bigCoef is the coefficient of a number as a big integer that must not be changed.
func (d Decimal) bigCoef() *big.Int {
	if d.big != nil {
		return d.big
	}
	u, neg := d.abs()
	return bigOf(u, neg)
}

func bigOf(u u128, neg bool) *big.Int {
	z := new(big.Int).SetUint64(u.hi)
	z.Lsh(z, 64)
	z.Or(z, new(big.Int).SetUint64(u.lo))
	if neg {
		z.Neg(z)
	}
	return z
}

// fromBig makes a number of a coefficient, which it keeps, and checks PostgreSQL's limits.
func fromBig(z *big.Int, scale int) (Decimal, error) {
	n := z.BitLen()
	if n <= 127 {
		if scale > MaxScale {
			return Decimal{}, errOverflow
		}
		a := new(big.Int).Abs(z)
		lo := new(big.Int).And(a, mask64).Uint64()
		hi := a.Rsh(a, 64).Uint64()
		return from128(u128{hi, lo}, z.Sign() < 0, scale), nil
	}
	// log10(2) is between 30102/100000 and 30103/100000.
	if scale > MaxScale || (n-1)*30102/100000 > MaxIntegerDigits+scale {
		return Decimal{}, errOverflow
	}
	if n*30103/100000+1 > MaxIntegerDigits+scale && bigDigits(z) > MaxIntegerDigits+scale {
		return Decimal{}, errOverflow
	}
	return Decimal{big: z, scale: uint16(scale)}, nil
}

var (
	mask64 = new(big.Int).SetUint64(^uint64(0))
	ten    = big.NewInt(10)
)

// bigPow10 is 10^n as a new big integer.
func bigPow10(n int) *big.Int {
	return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil)
}

// bigDigits is the number of decimal digits of z's magnitude; 0 has none.
func bigDigits(z *big.Int) int {
	n := z.BitLen()
	if n == 0 {
		return 0
	}
	d := int(int64(n-1) * 30102999 / 100000000) // digits-1 or one less
	if new(big.Int).Abs(z).Cmp(bigPow10(d+1)) >= 0 {
		return d + 2
	}
	if new(big.Int).Abs(z).Cmp(bigPow10(d)) >= 0 {
		return d + 1
	}
	return d
}

// times10 multiplies the coefficient by 10^n, leaving the scale.
func (d Decimal) times10(n int) (Decimal, error) {
	if n == 0 {
		return d, nil
	}
	if d.big == nil {
		u, neg := d.abs()
		if u.isZero() {
			return d, nil
		}
		if n < len(pow10) {
			if p, ok := u.mul(pow10[n]); ok && p.fits() {
				return from128(p, neg, int(d.scale)), nil
			}
		}
	}
	if n > MaxIntegerDigits+MaxScale {
		return Decimal{}, errOverflow
	}
	return fromBig(new(big.Int).Mul(d.bigCoef(), bigPow10(n)), int(d.scale))
}

// digits is the number of decimal digits of the coefficient.
func (d Decimal) digits() int {
	if d.big != nil {
		return bigDigits(d.big)
	}
	u, _ := d.abs()
	return u.digits()
}

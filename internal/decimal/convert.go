package decimal

import (
	"math"
	"strconv"

	"github.com/leat-io/leat/internal/pgerr"
)

// FromFloat64 converts as PostgreSQL's cast from double precision does: to 15 significant digits.
func FromFloat64(x float64) Decimal { return fromFloat(x, 15) }

// FromFloat32 converts as PostgreSQL's cast from real does: to 6 significant digits.
func FromFloat32(x float32) Decimal { return fromFloat(float64(x), 6) }

func fromFloat(x float64, digits int) Decimal {
	switch {
	case math.IsNaN(x):
		return NaN
	case math.IsInf(x, 1):
		return Inf
	case math.IsInf(x, -1):
		return NegInf
	case x == 0:
		return Decimal{}
	}
	var buf [32]byte
	s := strconv.AppendFloat(buf[:0], x, 'e', digits-1, 64)
	i, neg := 0, false
	if s[0] == '-' {
		neg, i = true, 1
	}
	var c uint64
	n := 0
	for ; s[i] != 'e'; i++ {
		if s[i] != '.' {
			c = c*10 + uint64(s[i]-'0')
			n++
		}
	}
	exp, _ := strconv.Atoi(string(s[i+1:]))
	for c%10 == 0 {
		c /= 10
		n--
	}
	scale := n - 1 - exp
	if scale >= 0 {
		return from128(u128{0, c}, neg, scale)
	}
	d, _ := from128(u128{0, c}, neg, 0).times10(-scale) // at most 309 digits: no overflow
	return d
}

var floatPow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// Float64 is the nearest double, or 22003 when it is out of range.
func (d Decimal) Float64() (float64, error) {
	x, ok := d.float(64)
	if !ok {
		return 0, pgerr.Newf(pgerr.NumericValueOutOfRange, "\"%s\" is out of range for type double precision", d)
	}
	return x, nil
}

// Float32 is the nearest real, or 22003 when it is out of range.
func (d Decimal) Float32() (float32, error) {
	x, ok := d.float(32)
	if !ok {
		return 0, pgerr.Newf(pgerr.NumericValueOutOfRange, "\"%s\" is out of range for type real", d)
	}
	return float32(x), nil
}

func (d Decimal) float(bits int) (float64, bool) {
	switch d.form {
	case nan:
		return math.NaN(), true
	case infinite:
		return math.Inf(1), true
	case negInfinite:
		return math.Inf(-1), true
	}
	// Both operands exact: one rounding, by the division.
	if c := int64(d.lo); bits == 64 && d.small64() && c >= -1<<53 && c <= 1<<53 && int(d.scale) < len(floatPow10) {
		return float64(c) / floatPow10[d.scale], true
	}
	var buf [64]byte
	x, err := strconv.ParseFloat(string(d.Append(buf[:0])), bits)
	if err != nil || x == 0 && !d.IsZero() {
		return 0, false
	}
	return x, true
}

// ToInt64 rounds half away from zero; out of range is 22003.
func (d Decimal) ToInt64() (int64, error) { return d.toInt("bigint", math.MinInt64, math.MaxInt64) }

// ToInt32 rounds half away from zero; out of range is 22003.
func (d Decimal) ToInt32() (int32, error) {
	x, err := d.toInt("integer", math.MinInt32, math.MaxInt32)
	return int32(x), err
}

// ToInt16 rounds half away from zero; out of range is 22003.
func (d Decimal) ToInt16() (int16, error) {
	x, err := d.toInt("smallint", math.MinInt16, math.MaxInt16)
	return int16(x), err
}

func (d Decimal) toInt(name string, lo, hi int64) (int64, error) {
	switch d.form {
	case nan:
		return 0, pgerr.Newf(pgerr.FeatureNotSupported, "cannot convert NaN to %s", name)
	case infinite, negInfinite:
		return 0, pgerr.Newf(pgerr.FeatureNotSupported, "cannot convert infinity to %s", name)
	}
	if d.scale != 0 {
		d, _ = d.rescale(0, roundHalf) // fewer digits: no overflow
	}
	if x := int64(d.lo); d.small64() && x >= lo && x <= hi {
		return x, nil
	}
	return 0, pgerr.Newf(pgerr.NumericValueOutOfRange, "%s out of range", name)
}

// IsInteger reports whether d is a number without a fraction.
func (d Decimal) IsInteger() bool {
	if d.form != finite {
		return false
	}
	return d.scale == 0 || d.Reduce().scale == 0
}

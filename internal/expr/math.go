package expr

import (
	"math"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

var (
	errSqrtNegative = pgerr.New(pgerr.InvalidArgumentForPowerFunction, "cannot take square root of a negative number")
	errLogZero      = pgerr.New(pgerr.InvalidArgumentForLogarithm, "cannot take logarithm of zero")
	errLogNegative  = pgerr.New(pgerr.InvalidArgumentForLogarithm, "cannot take logarithm of a negative number")
	errPowerZero    = pgerr.New(pgerr.InvalidArgumentForPowerFunction, "zero raised to a negative power is undefined")
	errPowerComplex = pgerr.New(pgerr.InvalidArgumentForPowerFunction, "a negative number raised to a non-integer power yields a complex result")
	errInputRange   = pgerr.New(pgerr.NumericValueOutOfRange, "input is out of range")
	errBucketCount  = pgerr.New(pgerr.InvalidArgumentForWidthBucketFunction, "count must be greater than zero")
	errBucketEqual  = pgerr.New(pgerr.InvalidArgumentForWidthBucketFunction, "lower bound cannot equal upper bound")
	errBucketNaN    = pgerr.New(pgerr.InvalidArgumentForWidthBucketFunction, "operand, lower bound, and upper bound cannot be NaN")
	errBucketFinite = pgerr.New(pgerr.InvalidArgumentForWidthBucketFunction, "lower and upper bounds must be finite")
)

// floatFunction is a function of one double; its error is nil for most values.
type floatFunction func(x float64) (float64, *pgerr.Error)

func floats1(name string, f floatFunction) Overload {
	return Overload{Name: name, Args: []column.Type{tFloat8}, Result: tFloat8, Make: func(*Site) (Kernel, error) {
		return func(c *Call) {
			out, a := c.Out.F64, c.Float64s(0)
			for _, row := range c.Rows() {
				z, err := f(a.At(row))
				if err != nil {
					c.Fail(row, err)
					continue
				}
				out[row] = z
			}
		}, nil
	}}
}

func floats2(name string, f func(x, y float64) (float64, *pgerr.Error)) Overload {
	return Overload{Name: name, Args: []column.Type{tFloat8, tFloat8}, Result: tFloat8, Make: func(*Site) (Kernel, error) {
		return func(c *Call) {
			out, a, b := c.Out.F64, c.Float64s(0), c.Float64s(1)
			for _, row := range c.Rows() {
				z, err := f(a.At(row), b.At(row))
				if err != nil {
					c.Fail(row, err)
					continue
				}
				out[row] = z
			}
		}, nil
	}}
}

// plain is a function that cannot fail.
func plain(f func(float64) float64) floatFunction {
	return func(x float64) (float64, *pgerr.Error) { return f(x), nil }
}

// bounded is a function of finite arguments only, such as sin.
func bounded(f func(float64) float64) floatFunction {
	return func(x float64) (float64, *pgerr.Error) {
		if math.IsInf(x, 0) {
			return 0, errInputRange
		}
		return f(x), nil
	}
}

// unitRange is a function of [-1, 1], such as asin.
func unitRange(f func(float64) float64) floatFunction {
	return func(x float64) (float64, *pgerr.Error) {
		if x < -1 || x > 1 {
			return 0, errInputRange
		}
		return f(x), nil
	}
}

func powerFloat(x, y float64) (float64, *pgerr.Error) {
	switch {
	case math.IsNaN(x):
		if y == 0 {
			return 1, nil
		}
		return x, nil
	case math.IsNaN(y):
		if x == 1 {
			return 1, nil
		}
		return y, nil
	case x == 0 && y < 0:
		return 0, errPowerZero
	case x < 0 && math.Floor(y) != y:
		return 0, errPowerComplex
	}
	if math.IsInf(y, 0) {
		switch ax := math.Abs(x); {
		case ax == 1:
			return 1, nil
		case y > 0 && ax > 1, y < 0 && ax < 1:
			return math.Inf(1), nil
		}
		return 0, nil
	}
	if math.IsInf(x, 0) {
		return math.Pow(x, y), nil
	}
	z := math.Pow(x, y)
	switch {
	case math.IsInf(z, 0):
		return 0, errFloatOverflow
	case z == 0 && x != 0:
		return 0, errFloatUnderflow
	}
	return z, nil
}

func expFloat(x float64) (float64, *pgerr.Error) {
	switch {
	case math.IsNaN(x):
		return x, nil
	case math.IsInf(x, 0):
		if x > 0 {
			return x, nil
		}
		return 0, nil
	}
	z := math.Exp(x)
	switch {
	case math.IsInf(z, 0):
		return 0, errFloatOverflow
	case z == 0:
		return 0, errFloatUnderflow
	}
	return z, nil
}

func logarithm(f func(float64) float64) floatFunction {
	return func(x float64) (float64, *pgerr.Error) {
		switch {
		case x == 0:
			return 0, errLogZero
		case x < 0:
			return 0, errLogNegative
		}
		return f(x), nil
	}
}

// lnFloat is the natural logarithm, also of subnormal numbers, which math.Log gets wrong on some processors.
func lnFloat(x float64) float64 {
	if x < 0x1p-1022 {
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}

// log10Float is exact for the powers of ten.
func log10Float(x float64) float64 {
	if x < 0x1p-1022 {
		return math.Log10(x*0x1p54) - 54*math.Log10(2)
	}
	z := math.Log10(x)
	if r := math.Round(z); r != z && math.Abs(r-z) < 1e-9 && math.Pow(10, r) == x {
		return r
	}
	return z
}

func sqrtFloat(x float64) (float64, *pgerr.Error) {
	if x < 0 {
		return 0, errSqrtNegative
	}
	return math.Sqrt(x), nil
}

func signFloat(x float64) (float64, *pgerr.Error) {
	switch {
	case x > 0:
		return 1, nil
	case x < 0:
		return -1, nil
	}
	return 0, nil
}

var mathFunctions = []Overload{
	floats1("round", plain(math.RoundToEven)), floats1("trunc", plain(math.Trunc)), floats1("floor", plain(math.Floor)),
	floats1("ceil", plain(math.Ceil)), floats1("ceiling", plain(math.Ceil)),
	floats1("sqrt", sqrtFloat), floats1("|/", sqrtFloat), floats1("cbrt", plain(math.Cbrt)), floats1("||/", plain(math.Cbrt)),
	floats1("sign", signFloat), floats1("exp", expFloat), floats1("ln", logarithm(lnFloat)),
	floats1("log", logarithm(log10Float)), floats1("log10", logarithm(log10Float)),
	floats2("power", powerFloat), floats2("pow", powerFloat), floats2("^", powerFloat),
	floats1("sin", bounded(math.Sin)), floats1("cos", bounded(math.Cos)), floats1("tan", bounded(math.Tan)),
	floats1("asin", unitRange(math.Asin)), floats1("acos", unitRange(math.Acos)), floats1("atan", plain(math.Atan)),
	floats1("sinh", plain(math.Sinh)), floats1("cosh", plain(math.Cosh)), floats1("tanh", plain(math.Tanh)),
	floats2("atan2", func(x, y float64) (float64, *pgerr.Error) { return math.Atan2(x, y), nil }),
	floats1("degrees", func(x float64) (float64, *pgerr.Error) {
		z := x / (math.Pi / 180)
		if math.IsInf(z, 0) && !math.IsInf(x, 0) {
			return 0, errFloatOverflow
		}
		return z, nil
	}),
	floats1("radians", func(x float64) (float64, *pgerr.Error) {
		z := x * (math.Pi / 180)
		if z == 0 && x != 0 {
			return 0, errFloatUnderflow
		}
		return z, nil
	}),
	{Name: "pi", Result: tFloat8, Make: func(*Site) (Kernel, error) {
		return func(c *Call) {
			for _, row := range c.Rows() {
				c.Out.F64[row] = math.Pi
			}
		}, nil
	}},
	{Name: "width_bucket", Args: []column.Type{tFloat8, tFloat8, tFloat8, tInt4}, Result: tInt4, Make: func(*Site) (Kernel, error) {
		return bucketFloats, nil
	}},
	{Name: "width_bucket", Args: []column.Type{tNumeric, tNumeric, tNumeric, tInt4}, Result: tInt4, Make: func(*Site) (Kernel, error) {
		return bucketDecimals, nil
	}},
}

func bucketFloats(c *Call) {
	out := c.Out.I32
	xs, los, his, counts := c.Float64s(0), c.Float64s(1), c.Float64s(2), c.Int32s(3)
	for _, row := range c.Rows() {
		x, lo, hi, n := xs.At(row), los.At(row), his.At(row), counts.At(row)
		switch {
		case n <= 0:
			c.Fail(row, errBucketCount)
			continue
		case x != x || lo != lo || hi != hi:
			c.Fail(row, errBucketNaN)
			continue
		case isInf(lo) || isInf(hi):
			c.Fail(row, errBucketFinite)
			continue
		case lo == hi:
			c.Fail(row, errBucketEqual)
			continue
		}
		var b int64
		if lo < hi {
			switch {
			case x < lo:
				b = 0
			case x >= hi:
				b = int64(n) + 1
			default:
				b = bucket(x-lo, hi-lo, x/2-lo/2, hi/2-lo/2, n)
			}
		} else {
			switch {
			case x > lo:
				b = 0
			case x <= hi:
				b = int64(n) + 1
			default:
				b = bucket(lo-x, lo-hi, lo/2-x/2, lo/2-hi/2, n)
			}
		}
		if b > math.MaxInt32 {
			c.Fail(row, errInt4Range)
			continue
		}
		out[row] = int32(b)
	}
}

// bucket is which of n parts of a range something at a distance from its start is in; the halves serve when the range overflows.
func bucket(distance, width, halfDistance, halfWidth float64, n int32) int64 {
	if isInf(width) {
		distance, width = halfDistance, halfWidth
	}
	b := int64(float64(n) * (distance / width))
	if b >= int64(n) { // rounding must not lead out of the range
		b = int64(n) - 1
	}
	return b + 1
}

func bucketDecimals(c *Call) {
	out := c.Out.I32
	xs, los, his, counts := c.Decimals(0), c.Decimals(1), c.Decimals(2), c.Int32s(3)
	for _, row := range c.Rows() {
		x, lo, hi, n := xs.At(row), los.At(row), his.At(row), counts.At(row)
		switch {
		case n <= 0:
			c.Fail(row, errBucketCount)
			continue
		case x.IsNaN() || lo.IsNaN() || hi.IsNaN():
			c.Fail(row, errBucketNaN)
			continue
		case !lo.IsFinite() || !hi.IsFinite():
			c.Fail(row, errBucketFinite)
			continue
		}
		order := lo.Cmp(hi)
		if order == 0 {
			c.Fail(row, errBucketEqual)
			continue
		}
		var b int64
		switch at := x.Cmp(lo) * -order; { // how far into the range, by sign
		case at < 0:
			b = 0
		case x.Cmp(hi)*-order >= 0:
			b = int64(n) + 1
		default:
			q, err := bucketQuotient(x, lo, hi, n)
			if err != nil {
				c.fail(row, err)
				continue
			}
			b = q + 1
		}
		if b > math.MaxInt32 {
			c.Fail(row, errInt4Range)
			continue
		}
		out[row] = int32(b)
	}
}

// bucketQuotient is the whole part of (x - lo) * n / (hi - lo).
func bucketQuotient(x, lo, hi decimal.Decimal, n int32) (int64, error) {
	distance, err := x.Sub(lo)
	if err != nil {
		return 0, err
	}
	width, err := hi.Sub(lo)
	if err != nil {
		return 0, err
	}
	distance, err = distance.Mul(decimal.FromInt64(int64(n)))
	if err != nil {
		return 0, err
	}
	q, err := distance.QuoTrunc(width)
	if err != nil {
		return 0, err
	}
	return q.ToInt64()
}

package expr

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

type (
	decimalUnary  = func(a decimal.Decimal) (decimal.Decimal, error)
	decimalBinary = func(a, b decimal.Decimal) (decimal.Decimal, error)
)

var numericArithmetic = func() []Overload {
	two, one := []column.Type{tNumeric, tNumeric}, []column.Type{tNumeric}
	binary := func(name string, kernel Kernel) Overload {
		return Overload{Name: name, Args: two, Result: tNumeric, Make: func(*Site) (Kernel, error) { return kernel, nil }}
	}
	unary := func(name string, kernel Kernel) Overload {
		return Overload{Name: name, Args: one, Result: tNumeric, Make: func(*Site) (Kernel, error) { return kernel, nil }}
	}
	exact := func(f func(a decimal.Decimal) decimal.Decimal) Kernel {
		return func(c *Call) {
			out, a := c.Out.Dec, c.Decimals(0)
			for _, row := range c.Rows() {
				out[row] = f(a.At(row))
			}
		}
	}
	return []Overload{
		binary("+", addDecimals), binary("-", subDecimals), binary("*", mulDecimals), binary("/", divDecimals),
		binary("%", decimals2(decimal.Decimal.Mod)), binary("mod", decimals2(decimal.Decimal.Mod)),
		binary("div", decimals2(decimal.Decimal.QuoTrunc)),
		binary("power", decimals2(decimal.Decimal.Power)), binary("pow", decimals2(decimal.Decimal.Power)),
		binary("^", decimals2(decimal.Decimal.Power)),
		binary("log", decimals2(func(base, x decimal.Decimal) (decimal.Decimal, error) { return x.Log(base) })),
		binary("gcd", decimals2(gcdDecimal)), binary("lcm", decimals2(lcmDecimal)),
		unary("-", exact(decimal.Decimal.Neg)), unary("abs", exact(decimal.Decimal.Abs)), unary("@", exact(decimal.Decimal.Abs)),
		unary("+", exact(func(a decimal.Decimal) decimal.Decimal { return a })),
		unary("sign", exact(func(a decimal.Decimal) decimal.Decimal {
			if a.IsNaN() {
				return a
			}
			return decimal.FromInt64(int64(a.Sign()))
		})),
		unary("trim_scale", exact(decimal.Decimal.Reduce)),
		unary("round", decimals1(func(a decimal.Decimal) (decimal.Decimal, error) { return a.Round(0) })),
		unary("trunc", decimals1(func(a decimal.Decimal) (decimal.Decimal, error) { return a.Trunc(0) })),
		unary("floor", decimals1(decimal.Decimal.Floor)),
		unary("ceil", decimals1(decimal.Decimal.Ceil)), unary("ceiling", decimals1(decimal.Decimal.Ceil)),
		unary("sqrt", decimals1(decimal.Decimal.Sqrt)), unary("exp", decimals1(decimal.Decimal.Exp)),
		unary("ln", decimals1(decimal.Decimal.Ln)),
		unary("log", decimals1(decimal.Decimal.Log10)), unary("log10", decimals1(decimal.Decimal.Log10)),
		scaled("round", decimal.Decimal.Round), scaled("trunc", decimal.Decimal.Trunc),
		{Name: "scale", Args: one, Result: tInt4, Make: func(*Site) (Kernel, error) { return scaleOf(decimal.Decimal.Scale), nil }},
		{Name: "min_scale", Args: one, Result: tInt4, Make: func(*Site) (Kernel, error) { return scaleOf(decimal.Decimal.MinScale), nil }},
	}
}()

// fail reports an error of the packages below.
func (c *Call) fail(row int32, err error) { c.Fail(row, pgerr.From(err)) }

func addDecimals(c *Call) {
	out, a, b := c.Out.Dec, c.Decimals(0), c.Decimals(1)
	for _, row := range c.Rows() {
		x, y := a.ptr(row), b.ptr(row)
		if decimal.AddInto(&out[row], x, y) {
			continue
		}
		z, err := x.Add(*y)
		if err != nil {
			c.fail(row, err)
			continue
		}
		out[row] = z
	}
}

func subDecimals(c *Call) {
	out, a, b := c.Out.Dec, c.Decimals(0), c.Decimals(1)
	for _, row := range c.Rows() {
		x, y := a.ptr(row), b.ptr(row)
		if decimal.SubInto(&out[row], x, y) {
			continue
		}
		z, err := x.Sub(*y)
		if err != nil {
			c.fail(row, err)
			continue
		}
		out[row] = z
	}
}

func mulDecimals(c *Call) {
	out, a, b := c.Out.Dec, c.Decimals(0), c.Decimals(1)
	for _, row := range c.Rows() {
		x, y := a.ptr(row), b.ptr(row)
		if decimal.MulInto(&out[row], x, y) {
			continue
		}
		z, err := x.Mul(*y)
		if err != nil {
			c.fail(row, err)
			continue
		}
		out[row] = z
	}
}

func divDecimals(c *Call) {
	out, a, b := c.Out.Dec, c.Decimals(0), c.Decimals(1)
	for _, row := range c.Rows() {
		z, err := a.At(row).Div(b.At(row))
		if err != nil {
			c.fail(row, err)
			continue
		}
		out[row] = z
	}
}

// decimals1 and decimals2 are for functions that cost much more than a call.
func decimals1(f decimalUnary) Kernel {
	return func(c *Call) {
		out, a := c.Out.Dec, c.Decimals(0)
		for _, row := range c.Rows() {
			z, err := f(a.At(row))
			if err != nil {
				c.fail(row, err)
				continue
			}
			out[row] = z
		}
	}
}

func decimals2(f decimalBinary) Kernel {
	return func(c *Call) {
		out, a, b := c.Out.Dec, c.Decimals(0), c.Decimals(1)
		for _, row := range c.Rows() {
			z, err := f(a.At(row), b.At(row))
			if err != nil {
				c.fail(row, err)
				continue
			}
			out[row] = z
		}
	}
}

// scaled is round or trunc to a number of digits.
func scaled(name string, f func(a decimal.Decimal, scale int) (decimal.Decimal, error)) Overload {
	return Overload{Name: name, Args: []column.Type{tNumeric, tInt4}, Result: tNumeric, Make: func(*Site) (Kernel, error) {
		return func(c *Call) {
			out, a, b := c.Out.Dec, c.Decimals(0), c.Int32s(1)
			for _, row := range c.Rows() {
				z, err := f(a.At(row), int(b.At(row)))
				if err != nil {
					c.fail(row, err)
					continue
				}
				out[row] = z
			}
		}, nil
	}}
}

func scaleOf(f func(decimal.Decimal) int) Kernel {
	return func(c *Call) {
		out, a := c.Out.I32, c.Decimals(0)
		for _, row := range c.Rows() {
			x := a.At(row)
			if !x.IsFinite() {
				c.Null(row)
				continue
			}
			out[row] = int32(f(x))
		}
	}
}

var decimalNaN, _ = decimal.Parse("NaN")

func gcdDecimal(a, b decimal.Decimal) (decimal.Decimal, error) {
	if !a.IsFinite() || !b.IsFinite() {
		return decimalNaN, nil
	}
	scale := max(a.Scale(), b.Scale())
	a, b = a.Abs(), b.Abs()
	for !b.IsZero() {
		r, err := a.Mod(b)
		if err != nil {
			return a, err
		}
		a, b = b, r
	}
	return a.Round(scale)
}

func lcmDecimal(a, b decimal.Decimal) (decimal.Decimal, error) {
	if !a.IsFinite() || !b.IsFinite() {
		return decimalNaN, nil
	}
	scale := max(a.Scale(), b.Scale())
	if a.IsZero() || b.IsZero() {
		return decimal.FromInt64(0).Round(scale)
	}
	g, err := gcdDecimal(a, b)
	if err != nil {
		return a, err
	}
	q, err := a.QuoTrunc(g)
	if err != nil {
		return a, err
	}
	p, err := q.Mul(b)
	if err != nil {
		return a, err
	}
	return p.Abs().Round(scale)
}

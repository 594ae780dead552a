package expr

import (
	"math"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

type float interface{ float32 | float64 }

var (
	errFloatOverflow  = pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: overflow")
	errFloatUnderflow = pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: underflow")
)

func isInf[T float](x T) bool { return math.IsInf(float64(x), 0) }

func floatsOf[T float](c *Call, k int) Col[T] {
	var z T
	if _, ok := any(z).(float32); ok {
		return any(c.Float32s(k)).(Col[T])
	}
	return any(c.Float64s(k)).(Col[T])
}

func floatOut[T float](c *Call) []T {
	var z T
	if _, ok := any(z).(float32); ok {
		return any(c.Out.F32).([]T)
	}
	return any(c.Out.F64).([]T)
}

var floatArithmetic = func() []Overload {
	out := append(floatOverloads[float32](tFloat4), floatOverloads[float64](tFloat8)...)
	wide := []column.Type{tFloat8, tFloat8}
	for _, op := range []string{"+", "-", "*", "/"} {
		out = append(out,
			Overload{Name: op, Args: []column.Type{tFloat4, tFloat8}, Result: tFloat8, via: wide},
			Overload{Name: op, Args: []column.Type{tFloat8, tFloat4}, Result: tFloat8, via: wide})
	}
	return out
}()

func floatOverloads[T float](t column.Type) []Overload {
	binary := func(name string, kernel Kernel) Overload {
		return Overload{Name: name, Args: []column.Type{t, t}, Result: t, Make: func(*Site) (Kernel, error) { return kernel, nil }}
	}
	unary := func(name string, kernel Kernel) Overload {
		return Overload{Name: name, Args: []column.Type{t}, Result: t, Total: true, Make: func(*Site) (Kernel, error) { return kernel, nil }}
	}
	abs := func(c *Call) {
		out, a := floatOut[T](c), floatsOf[T](c, 0)
		for _, row := range c.Rows() {
			out[row] = T(math.Abs(float64(a.At(row))))
		}
	}
	return []Overload{
		binary("+", addFloats[T]), binary("-", subFloats[T]), binary("*", mulFloats[T]), binary("/", divFloats[T]),
		unary("abs", abs), unary("@", abs),
		unary("-", func(c *Call) {
			out, a := floatOut[T](c), floatsOf[T](c, 0)
			for _, row := range c.Rows() {
				out[row] = -a.At(row)
			}
		}),
		unary("+", func(c *Call) {
			out, a := floatOut[T](c), floatsOf[T](c, 0)
			for _, row := range c.Rows() {
				out[row] = a.At(row)
			}
		}),
	}
}

func addFloats[T float](c *Call) {
	out, a, b := floatOut[T](c), floatsOf[T](c, 0), floatsOf[T](c, 1)
	for _, row := range c.Rows() {
		x, y := a.At(row), b.At(row)
		z := x + y
		out[row] = z
		if isInf(z) && !isInf(x) && !isInf(y) {
			c.Fail(row, errFloatOverflow)
		}
	}
}

func subFloats[T float](c *Call) {
	out, a, b := floatOut[T](c), floatsOf[T](c, 0), floatsOf[T](c, 1)
	for _, row := range c.Rows() {
		x, y := a.At(row), b.At(row)
		z := x - y
		out[row] = z
		if isInf(z) && !isInf(x) && !isInf(y) {
			c.Fail(row, errFloatOverflow)
		}
	}
}

func mulFloats[T float](c *Call) {
	out, a, b := floatOut[T](c), floatsOf[T](c, 0), floatsOf[T](c, 1)
	for _, row := range c.Rows() {
		x, y := a.At(row), b.At(row)
		z := x * y
		out[row] = z
		switch {
		case z == 0 && x != 0 && y != 0:
			c.Fail(row, errFloatUnderflow)
		case isInf(z) && !isInf(x) && !isInf(y):
			c.Fail(row, errFloatOverflow)
		}
	}
}

func divFloats[T float](c *Call) {
	out, a, b := floatOut[T](c), floatsOf[T](c, 0), floatsOf[T](c, 1)
	for _, row := range c.Rows() {
		x, y := a.At(row), b.At(row)
		if y == 0 && x == x {
			c.Fail(row, errDivZero)
			continue
		}
		z := x / y
		out[row] = z
		switch {
		case z == 0 && x != 0 && !isInf(y):
			c.Fail(row, errFloatUnderflow)
		case isInf(z) && !isInf(x):
			c.Fail(row, errFloatOverflow)
		}
	}
}

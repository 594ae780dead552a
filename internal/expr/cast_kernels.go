package expr

import (
	"math"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/jsonb"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

// castVolatility is how constant a cast is.
func castVolatility(from, to column.Type) Volatility {
	zone := func(t column.Type) bool { return t.Kind == column.Timestamptz || t.Elem == column.Timestamptz }
	moment := func(t column.Type) bool { return zoned(t.Kind) || zoned(t.Elem) }
	text := func(t column.Type) bool { return t.Kind == column.Text || t.Elem == column.Text }
	switch {
	case text(from) && moment(to):
		return Stable // 'today'
	case zone(from) != zone(to):
		return Zoned
	}
	return Immutable
}

// castOverload makes the overload of one cast: a conversion, then what the type's modifiers ask for.
func castOverload(s *Site, cut bool) (*Overload, error) {
	from, to := s.Args[0], s.Result
	method, ok := castRule(from, to, Explicit)
	if !ok {
		return nil, pgerr.Internal("no cast from %s to %s", TypeName(from), TypeName(to))
	}
	o := &Overload{Result: to, Args: []column.Type{from}, Volatility: castVolatility(from, to)}
	if to.Kind.Varlen() {
		k := textCast(from, to, cut)
		o.Make = func(*Site) (Kernel, error) { return k, nil }
		return o, nil
	}
	var conv Kernel
	switch method {
	case castNone:
		conv = copyKernel(to.Kind)
	case castFunction:
		conv, o.Total = convert(from.Kind, to.Kind)
	case castText:
		conv = parseKernel(to)
	}
	if conv == nil {
		return nil, pgerr.Internal("no kernel for the cast from %s to %s", TypeName(from), TypeName(to))
	}
	bound := boundKernel(to)
	if bound == nil {
		o.Make = func(*Site) (Kernel, error) { return conv, nil }
		return o, nil
	}
	o.Total = false
	o.Make = func(*Site) (Kernel, error) {
		return func(c *Call) {
			conv(c)
			bound(c)
		}, nil
	}
	return o, nil
}

func copyKernel(k column.Kind) Kernel {
	return func(c *Call) {
		for _, row := range c.Rows() {
			c.copyTo(nil, row, c.Args[0], int(row)&c.mask(0))
		}
	}
}

// boundKernel fits results, in place, to the modifiers of a type of fixed width; nil when there are none.
func boundKernel(t column.Type) Kernel {
	if t.Precision == 0 {
		return nil
	}
	switch t.Kind {
	case column.Numeric:
		return func(c *Call) {
			out := c.Out.Dec
			for _, row := range c.Rows() {
				if c.Out.IsNull(int(row)) {
					continue
				}
				d, err := out[row].Fit(int(t.Precision), int(t.Scale))
				if err != nil {
					c.fail(row, err)
					continue
				}
				out[row] = d
			}
		}
	case column.Time, column.Timestamp, column.Timestamptz:
		unit := microsOfDigits(t.FractionDigits())
		if unit == 1 {
			return nil
		}
		return func(c *Call) {
			out := c.Out.I64
			for _, row := range c.Rows() {
				if x := out[row]; x != column.TimestampInfinity && x != column.TimestampNegInfinity {
					out[row] = roundTo(x, unit)
				}
			}
		}
	case column.IntervalKind:
		unit := microsOfDigits(t.FractionDigits())
		if unit == 1 {
			return nil
		}
		return func(c *Call) {
			for _, row := range c.Rows() {
				c.Out.Iv[row].Micros = roundTo(c.Out.Iv[row].Micros, unit)
			}
		}
	}
	return nil
}

func microsOfDigits(digits int) int64 {
	unit := int64(1)
	for range 6 - min(digits, 6) {
		unit *= 10
	}
	return unit
}

// roundTo rounds half away from zero.
func roundTo(x, unit int64) int64 {
	r := x % unit
	switch {
	case r >= 0 && 2*r >= unit:
		return x - r + unit
	case r < 0 && -2*r >= unit:
		return x - r - unit
	}
	return x - r
}

// textCast writes any value as text (or bytea, jsonb, array from text), cut or checked to a length.
func textCast(from, to column.Type, cut bool) Kernel {
	toText := to.Kind == column.Text
	var parsed *column.Vector
	if !toText && !sameType(from, to) {
		parsed = column.NewVector(to, 1)
	}
	return func(c *Call) {
		w, v := c.Text(), c.Args[0]
		var buf []byte
		for _, row := range c.Rows() {
			i := int(row) & c.mask(0)
			switch {
			case v.Type.Kind.Varlen() && (sameType(from, to) || toText && from.Kind == column.JSONB):
				w.Buf = append(w.Buf, v.Bytes(i)...)
			case toText && from.Kind == column.Bool:
				if v.Bools[i] {
					w.Buf = append(w.Buf, "true"...)
				} else {
					w.Buf = append(w.Buf, "false"...)
				}
			case toText:
				w.Buf = formatText(w.Buf, v, i, c.Ctx)
			default: // into bytea, jsonb or an array, by its text
				if from.Kind == column.Text {
					buf = append(buf[:0], v.Bytes(i)...)
				} else {
					buf = formatText(buf[:0], v, i, c.Ctx)
				}
				parsed.Reset(to)
				if err := appendParsed(parsed, buf, c.Ctx); err != nil {
					c.Fail(row, err)
					continue
				}
				w.Buf = append(w.Buf, parsed.Bytes(0)...)
			}
			if toText && to.Precision > 0 && !fitText(w, int(to.Precision), cut) {
				w.Drop()
				c.Fail(row, pgerr.Newf(pgerr.StringDataRightTruncation, "value too long for type character varying(%d)", to.Precision))
				continue
			}
			w.End(row)
		}
	}
}

// fitText cuts what was written for a row to n characters. Without cut only spaces may go.
func fitText(w *TextWriter, n int, cut bool) bool {
	s := w.Buf[w.mark:]
	if len(s) <= n {
		return true
	}
	at := 0
	for range n {
		if at == len(s) {
			return true
		}
		_, size := utf8.DecodeRune(s[at:])
		at += size
	}
	if !cut {
		for _, b := range s[at:] {
			if b != ' ' {
				return false
			}
		}
	}
	w.Buf = w.Buf[:int(w.mark)+at]
	return true
}

// parseKernel reads a value of fixed width from text.
func parseKernel(to column.Type) Kernel {
	one := column.NewVector(to.Base(), 1)
	return func(c *Call) {
		a := c.Texts(0)
		for _, row := range c.Rows() {
			one.Reset(to.Base())
			if err := appendParsed(one, a.At(row), c.Ctx); err != nil {
				c.Fail(row, err)
				continue
			}
			c.copyTo(nil, row, one, 0)
		}
	}
}

// convert is the kernel of a cast that is not through text, and whether it is total.
func convert(from, to column.Kind) (k Kernel, total bool) {
	switch from {
	case column.Int16:
		return convertInt[int16](to)
	case column.Int32:
		return convertInt[int32](to)
	case column.Int64:
		return convertInt[int64](to)
	case column.Float32:
		return convertFloat[float32](to)
	case column.Float64:
		return convertFloat[float64](to)
	case column.Numeric:
		return convertDecimal(to), false
	case column.Bool:
		return func(c *Call) {
			out, a := c.Out.I32, c.Bools(0)
			for _, row := range c.Rows() {
				out[row] = int32(asInt(a.At(row)))
			}
		}, true
	case column.JSONB:
		return convertJSON(to), false
	}
	return convertTime(from, to), false
}

func convertInt[F integer](to column.Kind) (Kernel, bool) {
	switch to {
	case column.Int16:
		return narrow[F, int16], false
	case column.Int32:
		return narrow[F, int32], false
	case column.Int64:
		return func(c *Call) { widen(c, slice[F](c.Args[0]), c.Out.I64) }, true
	case column.Float32:
		return func(c *Call) { widen(c, slice[F](c.Args[0]), c.Out.F32) }, true
	case column.Float64:
		return func(c *Call) { widen(c, slice[F](c.Args[0]), c.Out.F64) }, true
	case column.Numeric:
		return func(c *Call) {
			in, out, m := slice[F](c.Args[0]), c.Out.Dec, c.mask(0)
			for _, row := range c.Rows() {
				out[row] = decimal.FromInt64(int64(in[int(row)&m]))
			}
		}, true
	case column.Bool:
		return func(c *Call) {
			in, out, m := slice[F](c.Args[0]), c.Out.Bools, c.mask(0)
			for _, row := range c.Rows() {
				out[row] = in[int(row)&m] != 0
			}
		}, true
	}
	return nil, false
}

func widen[F integer, T integer | float](c *Call, in []F, out []T) {
	if c.Sel == nil {
		in = in[:len(out)]
		for i := range out {
			out[i] = T(in[i])
		}
		return
	}
	for _, row := range c.Sel {
		out[row] = T(in[row])
	}
}

func narrow[F, T integer](c *Call) {
	in, out, m := slice[F](c.Args[0]), slice[T](c.Out), c.mask(0)
	for _, row := range c.Rows() {
		x := in[int(row)&m]
		y := T(x)
		if F(y) != x {
			c.Fail(row, rangeError[T]())
			continue
		}
		out[row] = y
	}
}

func convertFloat[F float](to column.Kind) (Kernel, bool) {
	switch to {
	case column.Int16:
		return floatToInt[F, int16], false
	case column.Int32:
		return floatToInt[F, int32], false
	case column.Int64:
		return floatToInt[F, int64], false
	case column.Float32:
		return func(c *Call) {
			in, out := floatsOf[F](c, 0), c.Out.F32
			for _, row := range c.Rows() {
				x := in.At(row)
				y := float32(x)
				out[row] = y
				switch {
				case isInf(y) && !isInf(x):
					c.Fail(row, errFloatOverflow)
				case y == 0 && x != 0:
					c.Fail(row, errFloatUnderflow)
				}
			}
		}, false
	case column.Float64:
		return func(c *Call) {
			in, out := floatsOf[F](c, 0), c.Out.F64
			for _, row := range c.Rows() {
				out[row] = float64(in.At(row))
			}
		}, true
	case column.Numeric:
		return func(c *Call) {
			in, out := floatsOf[F](c, 0), c.Out.Dec
			for _, row := range c.Rows() {
				x := in.At(row)
				if f, ok := any(x).(float32); ok {
					out[row] = decimal.FromFloat32(f)
				} else {
					out[row] = decimal.FromFloat64(float64(x))
				}
			}
		}, false
	}
	return nil, false
}

// floatToInt rounds half to even.
func floatToInt[F float, T integer](c *Call) {
	in, out := floatsOf[F](c, 0), slice[T](c.Out)
	lo := float64(minOf[T]())
	for _, row := range c.Rows() {
		x := math.RoundToEven(float64(in.At(row)))
		if !(x >= lo && x < -lo) {
			c.Fail(row, rangeError[T]())
			continue
		}
		out[row] = T(x)
	}
}

func convertDecimal(to column.Kind) Kernel {
	switch to {
	case column.Int16:
		return decimalTo(func(c *Call) []int16 { return c.Out.I16 }, decimal.Decimal.ToInt16)
	case column.Int32:
		return decimalTo(func(c *Call) []int32 { return c.Out.I32 }, decimal.Decimal.ToInt32)
	case column.Int64:
		return decimalTo(func(c *Call) []int64 { return c.Out.I64 }, decimal.Decimal.ToInt64)
	case column.Float32:
		return decimalTo(func(c *Call) []float32 { return c.Out.F32 }, decimal.Decimal.Float32)
	case column.Float64:
		return decimalTo(func(c *Call) []float64 { return c.Out.F64 }, decimal.Decimal.Float64)
	}
	return nil
}

func decimalTo[T any](out func(*Call) []T, f func(decimal.Decimal) (T, error)) Kernel {
	return func(c *Call) {
		out, a := out(c), c.Decimals(0)
		for _, row := range c.Rows() {
			x, err := f(a.At(row))
			if err != nil {
				c.fail(row, err)
				continue
			}
			out[row] = x
		}
	}
}

// convertJSON takes booleans and numbers out of jsonb.
func convertJSON(to column.Kind) Kernel {
	t := column.Type{Kind: to}
	if to == column.Bool {
		return func(c *Call) {
			out, a := c.Out.Bools, c.Texts(0)
			for _, row := range c.Rows() {
				v := a.At(row)
				if jsonb.KindOf(v) != jsonb.Bool {
					c.Fail(row, jsonCastError(v, t))
					continue
				}
				out[row] = v[0] == 't'
			}
		}
	}
	var number Kernel
	if to != column.Numeric {
		number = convertDecimal(to)
	}
	scratch := column.NewVector(tNumeric, 0)
	return func(c *Call) {
		a := c.Texts(0)
		dst := c.Out
		if number != nil {
			scratch.Resize(tNumeric, c.N)
			dst = scratch
		}
		ok := make([]int32, 0, c.N)
		for _, row := range c.Rows() {
			v := a.At(row)
			if jsonb.KindOf(v) != jsonb.Number {
				c.Fail(row, jsonCastError(v, t))
				continue
			}
			d, err := decimal.ParseBytes(v)
			if err != nil {
				c.fail(row, err)
				continue
			}
			dst.Dec[row] = d
			ok = append(ok, row)
		}
		if number != nil {
			args, sel, consts := c.Args, c.Sel, c.Const
			c.Args, c.Sel, c.Const = []*column.Vector{scratch}, ok, []bool{false}
			number(c)
			c.Args, c.Sel, c.Const = args, sel, consts
		}
	}
}

func jsonCastError(v []byte, to column.Type) *pgerr.Error {
	what := "null"
	switch jsonb.KindOf(v) {
	case jsonb.String:
		what = "string"
	case jsonb.Number:
		what = "numeric"
	case jsonb.Bool:
		what = "boolean"
	case jsonb.Array:
		what = "array"
	case jsonb.Object:
		what = "object"
	}
	return pgerr.Newf(pgerr.InvalidParameterValue, "cannot cast jsonb %s to type %s", what, TypeName(to))
}

package expr

import "github.com/leat-io/leat/internal/column"

// booleanTests are IS TRUE and IS FALSE, and the functions behind boolean's operators.
var booleanTests = []Overload{
	{Name: "istrue", Args: []column.Type{tBool}, Result: tBool, CallsOnNull: true, Make: func(*Site) (Kernel, error) {
		return func(c *Call) { isBool(c, true) }, nil
	}},
	{Name: "isfalse", Args: []column.Type{tBool}, Result: tBool, CallsOnNull: true, Make: func(*Site) (Kernel, error) {
		return func(c *Call) { isBool(c, false) }, nil
	}},
}

func isBool(c *Call, want bool) {
	out, a := c.Out.Bools, c.Bools(0)
	for _, row := range c.Rows() {
		out[row] = !c.IsNull(0, row) && a.At(row) == want
	}
}

// extremes are GREATEST and LEAST, which ignore NULLs.
var extremes = []Overload{
	{
		Name: "greatest", Args: []column.Type{tElement}, Variadic: true, Result: tElement, CallsOnNull: true,
		Make: func(*Site) (Kernel, error) { return func(c *Call) { extreme(c, 1) }, nil },
	},
	{
		Name: "least", Args: []column.Type{tElement}, Variadic: true, Result: tElement, CallsOnNull: true,
		Make: func(*Site) (Kernel, error) { return func(c *Call) { extreme(c, -1) }, nil },
	},
}

// extreme picks the argument that compares as sign with all others; the first of equals.
func extreme(c *Call, sign int) {
	w := c.Text()
	for _, row := range c.Rows() {
		best, at := -1, 0
		for k, v := range c.Args {
			i := int(row) & c.mask(k)
			if v.IsNull(i) {
				continue
			}
			if best < 0 || v.Compare(i, c.Args[best], at)*sign > 0 {
				best, at = k, i
			}
		}
		if best < 0 {
			c.Null(row)
			continue
		}
		c.copyTo(w, row, c.Args[best], at)
	}
}

// copyTo makes a row of the result equal to a row of a vector of the same type.
func (c *Call) copyTo(w *TextWriter, row int32, v *column.Vector, i int) {
	o := c.Out
	switch o.Type.Kind {
	case column.Bool:
		o.Bools[row] = v.Bools[i]
	case column.Int16:
		o.I16[row] = v.I16[i]
	case column.Int32, column.Date:
		o.I32[row] = v.I32[i]
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
		o.I64[row] = v.I64[i]
	case column.Float32:
		o.F32[row] = v.F32[i]
	case column.Float64:
		o.F64[row] = v.F64[i]
	case column.Numeric:
		o.Dec[row] = v.Dec[i]
	case column.IntervalKind:
		o.Iv[row] = v.Iv[i]
	default:
		w.Set(row, v.Bytes(i))
	}
}

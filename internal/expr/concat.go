package expr

import (
	"strconv"

	"github.com/leat-io/leat/internal/column"
)

// textConcat joins strings. It is also the example of how functions over text are written: a table, and per function a
// loop over Call.Rows that reads arguments by row and writes to Call.Text.
var textConcat = []Overload{
	{Name: "||", Args: []column.Type{tText, tText}, Result: tText, Make: func(*Site) (Kernel, error) { return concatText, nil }},
	{Name: "||", Args: []column.Type{tBytea, tBytea}, Result: tBytea, Make: func(*Site) (Kernel, error) { return concatText, nil }},
	{Name: "||", Args: []column.Type{tText, tNonArray}, Result: tText, Volatility: Zoned, Make: func(s *Site) (Kernel, error) { return concatCast, nil }},
	{Name: "||", Args: []column.Type{tNonArray, tText}, Result: tText, Volatility: Zoned, Make: func(s *Site) (Kernel, error) { return concatCast, nil }},
	{
		Name: "concat", Args: []column.Type{tAny}, Variadic: true, Result: tText, CallsOnNull: true, Volatility: Zoned,
		Make: func(s *Site) (Kernel, error) { return concatAny, nil },
	},
	{
		Name: "concat_ws", Args: []column.Type{tText, tAny}, Variadic: true, Result: tText, CallsOnNull: true, Volatility: Zoned,
		Make: func(s *Site) (Kernel, error) { return concatSeparated, nil },
	},
}

func concatText(c *Call) {
	a, b, w := c.Texts(0), c.Texts(1), c.Text()
	for _, row := range c.Rows() {
		x, y := a.At(row), b.At(row)
		if !w.Room(len(x) + len(y)) {
			w.Refuse(row)
			continue
		}
		w.Buf = append(append(w.Buf, x...), y...)
		w.End(row)
	}
}

// appendOut appends argument k as concat shows it: as text, a boolean as t or f.
func (c *Call) appendOut(dst []byte, k int, row int32) []byte {
	v := c.Args[k]
	i := int(row) & c.mask(k)
	if v.Type.Kind == column.Text {
		return append(dst, v.Bytes(i)...)
	}
	return formatText(dst, v, i, c.Ctx)
}

// concatCast joins what casts to text give, where a boolean is a word.
func concatCast(c *Call) {
	w := c.Text()
	for _, row := range c.Rows() {
		for k, v := range c.Args {
			if w.full() {
				break
			}
			if v.Type.Kind == column.Bool {
				w.Buf = strconv.AppendBool(w.Buf, c.Bools(k).At(row))
				continue
			}
			w.Buf = c.appendOut(w.Buf, k, row)
		}
		w.End(row)
	}
}

func concatAny(c *Call) {
	w := c.Text()
	for _, row := range c.Rows() {
		for k := range c.Args {
			if w.full() {
				break
			}
			if !c.IsNull(k, row) {
				w.Buf = c.appendOut(w.Buf, k, row)
			}
		}
		w.End(row)
	}
}

func concatSeparated(c *Call) {
	sep, w := c.Texts(0), c.Text()
	for _, row := range c.Rows() {
		if c.IsNull(0, row) {
			c.Null(row)
			continue
		}
		first := true
		for k := 1; k < len(c.Args) && !w.full(); k++ {
			if c.IsNull(k, row) {
				continue
			}
			if !first {
				w.Buf = append(w.Buf, sep.At(row)...)
			}
			first = false
			w.Buf = c.appendOut(w.Buf, k, row)
		}
		w.End(row)
	}
}

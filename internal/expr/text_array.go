package expr

import (
	"bytes"

	"github.com/leat-io/leat/internal/column"
)

// textArrayFunctions are the ways between text and arrays.
var textArrayFunctions = []Overload{
	{Name: "string_to_array", Args: []column.Type{tText, tText}, Result: tTextArray, CallsOnNull: true, Make: makeStringToArray},
	{Name: "string_to_array", Args: []column.Type{tText, tText, tText}, Result: tTextArray, CallsOnNull: true, Make: makeStringToArray},
	{Name: "array_to_string", Args: []column.Type{tArray, tText}, Result: tText, CallsOnNull: true, Volatility: Zoned, Make: makeArrayToString},
	{Name: "array_to_string", Args: []column.Type{tArray, tText, tText}, Result: tText, CallsOnNull: true, Volatility: Zoned, Make: makeArrayToString},
}

func makeStringToArray(*Site) (Kernel, error) {
	parts := column.NewVector(tText, 8)
	return func(c *Call) {
		a, b, w := c.Texts(0), c.Texts(1), c.Text()
		for _, row := range c.Rows() {
			if c.IsNull(0, row) {
				c.Null(row)
				continue
			}
			var null []byte
			hasNull := len(c.Args) == 3 && !c.IsNull(2, row)
			if hasNull {
				null = c.Texts(2).At(row)
			}
			parts.Reset(tText)
			full := false
			add := func(s []byte) {
				if full = full || !w.holds(parts); full {
					return
				}
				if hasNull && bytes.Equal(s, null) {
					parts.AppendNull()
				} else {
					parts.AppendBytes(s)
				}
			}
			s := a.At(row)
			switch {
			case len(s) == 0:
			case c.IsNull(1, row): // every character
				for len(s) > 0 && !full {
					n := width(s, true)
					add(s[:n])
					s = s[n:]
				}
			case len(b.At(row)) == 0:
				add(s)
			default:
				sep := b.At(row)
				for {
					i := indexSep(s, sep)
					if i < 0 || full {
						break
					}
					add(s[:i])
					s = s[i+len(sep):]
				}
				add(s)
			}
			if full {
				w.Refuse(row)
				continue
			}
			w.Buf = column.AppendArray(w.Buf, parts, 0, parts.Len)
			w.End(row)
		}
	}, nil
}

func makeArrayToString(s *Site) (Kernel, error) {
	elem := s.Args[0].ElemType()
	elems := column.NewVector(elem, 8)
	return func(c *Call) {
		a, b, w := c.Texts(0), c.Texts(1), c.Text()
		for _, row := range c.Rows() {
			if c.IsNull(0, row) || c.IsNull(1, row) {
				c.Null(row)
				continue
			}
			elems.Reset(elem)
			if err := column.AppendArrayElems(elems, a.At(row)); err != nil {
				c.fail(row, err)
				continue
			}
			hasNull := len(c.Args) == 3 && !c.IsNull(2, row)
			first := true
			for i := range elems.Len {
				if w.full() {
					break
				}
				if elems.IsNull(i) && !hasNull {
					continue
				}
				if !first {
					w.Buf = append(w.Buf, b.At(row)...)
				}
				first = false
				if elems.IsNull(i) {
					w.Buf = append(w.Buf, c.Texts(2).At(row)...)
				} else {
					w.Buf = formatText(w.Buf, elems, i, c.Ctx)
				}
			}
			w.End(row)
		}
	}, nil
}

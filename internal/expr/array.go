package expr

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// arrayFunctions are subscripts ("[]"), ARRAY[...] ("array") and what is often asked of arrays.
var arrayFunctions = []Overload{
	{Name: "[]", Args: []column.Type{tArray, tInt4}, Result: tElement, Make: makeSubscript},
	{Name: "array", Args: []column.Type{tElement}, Variadic: true, Result: tArray, CallsOnNull: true, Make: makeArray},
	{Name: "array_length", Args: []column.Type{tArray, tInt4}, Result: tInt4, Make: func(*Site) (Kernel, error) {
		return func(c *Call) {
			out, a, b := c.Out.I32, c.Texts(0), c.Int32s(1)
			var dims []column.Dim
			for _, row := range c.Rows() {
				dims = column.ArrayDims(dims[:0], a.At(row))
				d := b.At(row)
				if d < 1 || int(d) > len(dims) {
					c.Null(row)
					continue
				}
				out[row] = int32(dims[d-1].Len)
			}
		}, nil
	}},
	{Name: "cardinality", Args: []column.Type{tArray}, Result: tInt4, Make: func(*Site) (Kernel, error) {
		return func(c *Call) {
			out, a := c.Out.I32, c.Texts(0)
			for _, row := range c.Rows() {
				out[row] = int32(column.ArrayLen(a.At(row)))
			}
		}, nil
	}},
}

func makeSubscript(s *Site) (Kernel, error) {
	elem := column.NewVector(s.Result, 1)
	return func(c *Call) {
		a, b, w := c.Texts(0), c.Int32s(1), c.Text()
		var dims []column.Dim
		for _, row := range c.Rows() {
			enc := a.At(row)
			dims = column.ArrayDims(dims[:0], enc)
			if len(dims) != 1 { // of an array with more dimensions, one subscript names no element
				c.Null(row)
				continue
			}
			elem.Reset(s.Result)
			if err := column.ArrayElem(elem, enc, int(b.At(row))-dims[0].Lower); err != nil {
				c.fail(row, err)
				continue
			}
			if elem.IsNull(0) {
				c.Null(row)
				continue
			}
			c.copyTo(w, row, elem, 0)
		}
	}, nil
}

func makeArray(s *Site) (Kernel, error) {
	t := s.Result.ElemType()
	if t.Kind == column.Array {
		return nil, pgerr.Unsupported("arrays of arrays are not supported yet")
	}
	elems := column.NewVector(t, len(s.Args))
	return func(c *Call) {
		w := c.Text()
	rows:
		for _, row := range c.Rows() {
			elems.Reset(t)
			for k, v := range c.Args {
				if !w.holds(elems) {
					w.Refuse(row)
					continue rows
				}
				elems.AppendFrom(v, int(row)&c.mask(k))
			}
			w.Buf = column.AppendArray(w.Buf, elems, 0, elems.Len)
			w.End(row)
		}
	}, nil
}

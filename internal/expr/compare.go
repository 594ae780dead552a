package expr

import (
	"bytes"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
)

// relation is a comparison operator, as the set of results of a three-way comparison that make it true: bit 0 less, bit 1
// equal, bit 2 greater.
type relation uint8

const (
	lt relation = 1
	eq relation = 2
	gt relation = 4
	le          = lt | eq
	ge          = gt | eq
	ne          = lt | gt
)

// holds tells whether the relation holds for a comparison's result, of which only the sign counts.
func (r relation) holds(c int) bool {
	switch {
	case c < 0:
		return r&lt != 0
	case c > 0:
		return r&gt != 0
	}
	return r&eq != 0
}

// swapped is the relation with its sides changed.
func (r relation) swapped() relation { return r&eq | r&lt<<2 | r&gt>>2 }

var relations = []struct {
	symbol string
	rel    relation
}{{"=", eq}, {"<>", ne}, {"<", lt}, {"<=", le}, {">", gt}, {">=", ge}}

// comparable types, each with its six operators.
var comparableTypes = []column.Type{
	tBool, tInt2, tInt4, tInt8, tFloat4, tFloat8, tNumeric, tText, tBytea, tDate, tTime, tTimestamp, tTimestamptz, tInterval, tJSONB,
}

var comparisons = func() []Overload {
	var out []Overload
	for _, r := range relations {
		for _, t := range comparableTypes {
			o := Overload{Name: r.symbol, Args: []column.Type{t, t}, Result: tBool, Total: true}
			rel := r.rel
			o.Make = func(s *Site) (Kernel, error) { return compareKernel(s.Args[0].Kind, rel), nil }
			switch t.Kind {
			case column.Int16, column.Int32, column.Int64, column.Date, column.Time, column.Timestamp, column.Timestamptz:
				o.selects = func(s *Site) selectKernel { return compareSelect(s.Args[0].Kind, rel) }
			case column.Text, column.Bytea:
				if rel == eq || rel == ne {
					o.selects = func(s *Site) selectKernel { return selectTexts(s, rel == eq) }
				}
			case column.Numeric:
				o.selects = func(s *Site) selectKernel {
					if (s.Consts[0] != nil) == (s.Consts[1] != nil) {
						return nil
					}
					bound := &decimal.Bound{}
					return func(c *Call, dst []int32) []int32 { return selectDecimals(c, dst, rel, bound) }
				}
			}
			out = append(out, o)
		}
		out = append(out,
			Overload{Name: r.symbol, Args: []column.Type{tFloat4, tFloat8}, Result: tBool, via: []column.Type{tFloat8, tFloat8}},
			Overload{Name: r.symbol, Args: []column.Type{tFloat8, tFloat4}, Result: tBool, via: []column.Type{tFloat8, tFloat8}},
			Overload{Name: r.symbol, Args: []column.Type{tArray, tArray}, Result: tBool, Make: func(s *Site) (Kernel, error) {
				return orderKernel(r.rel), nil
			}},
		)
	}
	// IS DISTINCT FROM, by the equality of the type.
	out = append(out, Overload{
		Name: "isdistinct", Args: []column.Type{tElement, tElement}, Result: tBool, CallsOnNull: true,
		Make: func(s *Site) (Kernel, error) {
			return func(c *Call) {
				out, a, b := c.Out.Bools, c.Args[0], c.Args[1]
				for _, row := range c.Rows() {
					out[row] = !a.Equal(int(row)&c.mask(0), b, int(row)&c.mask(1))
				}
			}, nil
		},
	})
	return out
}()

// compareKernel compares two vectors of a kind. The kernels for integers read NULL rows, whose bits are harmless.
func compareKernel(k column.Kind, rel relation) Kernel {
	switch k {
	case column.Int16:
		return func(c *Call) { compareInts(c, rel, c.Args[0].I16, c.Args[1].I16) }
	case column.Int32, column.Date:
		return func(c *Call) { compareInts(c, rel, c.Args[0].I32, c.Args[1].I32) }
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
		return func(c *Call) { compareInts(c, rel, c.Args[0].I64, c.Args[1].I64) }
	case column.Float32:
		return func(c *Call) { compareFloats(c, rel, c.Float32s(0), c.Float32s(1)) }
	case column.Float64:
		return func(c *Call) { compareFloats(c, rel, c.Float64s(0), c.Float64s(1)) }
	case column.Text, column.Bytea:
		if rel == eq || rel == ne {
			return func(c *Call) { equalTexts(c, rel == eq) }
		}
		return func(c *Call) { compareTexts(c, rel) }
	case column.Numeric:
		bound := &decimal.Bound{}
		return func(c *Call) { compareDecimals(c, rel, bound) }
	}
	return orderKernel(rel)
}

func compareInts[T int16 | int32 | int64](c *Call, rel relation, a, b []T) {
	if c.Const[0] && !c.Const[1] {
		a, b, rel = b, a, rel.swapped()
	} else if !c.Const[1] || c.Const[0] {
		compareVV(rel, c.Out.Bools, a, b, c.Sel)
		return
	}
	compareVC(rel, c.Out.Bools, a, b[0], c.Sel)
}

func compareVV[T int16 | int32 | int64](rel relation, out []bool, a, b []T, sel []int32) {
	switch rel {
	case gt:
		rel, a, b = lt, b, a
	case ge:
		rel, a, b = le, b, a
	}
	if sel == nil {
		a, b = a[:len(out)], b[:len(out)]
		switch rel {
		case eq:
			for i := range out {
				out[i] = a[i] == b[i]
			}
		case ne:
			for i := range out {
				out[i] = a[i] != b[i]
			}
		case lt:
			for i := range out {
				out[i] = a[i] < b[i]
			}
		case le:
			for i := range out {
				out[i] = a[i] <= b[i]
			}
		}
		return
	}
	switch rel {
	case eq:
		for _, i := range sel {
			out[i] = a[i] == b[i]
		}
	case ne:
		for _, i := range sel {
			out[i] = a[i] != b[i]
		}
	case lt:
		for _, i := range sel {
			out[i] = a[i] < b[i]
		}
	case le:
		for _, i := range sel {
			out[i] = a[i] <= b[i]
		}
	}
}

func compareVC[T int16 | int32 | int64](rel relation, out []bool, a []T, b T, sel []int32) {
	if sel == nil {
		a = a[:len(out)]
		switch rel {
		case eq:
			for i := range out {
				out[i] = a[i] == b
			}
		case ne:
			for i := range out {
				out[i] = a[i] != b
			}
		case lt:
			for i := range out {
				out[i] = a[i] < b
			}
		case le:
			for i := range out {
				out[i] = a[i] <= b
			}
		case gt:
			for i := range out {
				out[i] = a[i] > b
			}
		case ge:
			for i := range out {
				out[i] = a[i] >= b
			}
		}
		return
	}
	switch rel {
	case eq:
		for _, i := range sel {
			out[i] = a[i] == b
		}
	case ne:
		for _, i := range sel {
			out[i] = a[i] != b
		}
	case lt:
		for _, i := range sel {
			out[i] = a[i] < b
		}
	case le:
		for _, i := range sel {
			out[i] = a[i] <= b
		}
	case gt:
		for _, i := range sel {
			out[i] = a[i] > b
		}
	case ge:
		for _, i := range sel {
			out[i] = a[i] >= b
		}
	}
}

// compareSelect names the rows for which a comparison of integers holds, without a vector of booleans.
func compareSelect(k column.Kind, rel relation) selectKernel {
	switch k {
	case column.Int16:
		return func(c *Call, dst []int32) []int32 { return selectInts(c, rel, c.Args[0].I16, c.Args[1].I16, dst) }
	case column.Int32, column.Date:
		return func(c *Call, dst []int32) []int32 { return selectInts(c, rel, c.Args[0].I32, c.Args[1].I32, dst) }
	}
	return func(c *Call, dst []int32) []int32 { return selectInts(c, rel, c.Args[0].I64, c.Args[1].I64, dst) }
}

func selectInts[T int16 | int32 | int64](c *Call, rel relation, a, b []T, dst []int32) []int32 {
	if c.Const[0] {
		a, b, rel = b, a, rel.swapped()
	} else if !c.Const[1] {
		return selectVV(rel, a, b, c.N, c.Sel, dst)
	}
	return selectVC(rel, a, b[0], c.N, c.Sel, dst)
}

func selectVV[T int16 | int32 | int64](rel relation, a, b []T, n int, sel, dst []int32) []int32 {
	if rel == gt || rel == ge {
		a, b, rel = b, a, rel.swapped()
	}
	if sel == nil {
		sel = allRows(n)
	}
	k := len(dst)
	dst = grow(dst, len(sel))
	switch rel {
	case eq:
		for _, i := range sel {
			dst[k] = i
			k += asInt(a[i] == b[i])
		}
	case ne:
		for _, i := range sel {
			dst[k] = i
			k += asInt(a[i] != b[i])
		}
	case lt:
		for _, i := range sel {
			dst[k] = i
			k += asInt(a[i] < b[i])
		}
	case le:
		for _, i := range sel {
			dst[k] = i
			k += asInt(a[i] <= b[i])
		}
	}
	return dst[:k]
}

func selectVC[T int16 | int32 | int64](rel relation, a []T, b T, n int, sel, dst []int32) []int32 {
	k := len(dst)
	if sel == nil {
		dst = grow(dst, n)
		a = a[:n]
		switch rel {
		case eq:
			for i, x := range a {
				dst[k] = int32(i)
				k += asInt(x == b)
			}
		case ne:
			for i, x := range a {
				dst[k] = int32(i)
				k += asInt(x != b)
			}
		case lt:
			for i, x := range a {
				dst[k] = int32(i)
				k += asInt(x < b)
			}
		case le:
			for i, x := range a {
				dst[k] = int32(i)
				k += asInt(x <= b)
			}
		case gt:
			for i, x := range a {
				dst[k] = int32(i)
				k += asInt(x > b)
			}
		case ge:
			for i, x := range a {
				dst[k] = int32(i)
				k += asInt(x >= b)
			}
		}
		return dst[:k]
	}
	dst = grow(dst, len(sel))
	switch rel {
	case eq:
		for _, i := range sel {
			dst[k] = i
			k += asInt(a[i] == b)
		}
	case ne:
		for _, i := range sel {
			dst[k] = i
			k += asInt(a[i] != b)
		}
	case lt:
		for _, i := range sel {
			dst[k] = i
			k += asInt(a[i] < b)
		}
	case le:
		for _, i := range sel {
			dst[k] = i
			k += asInt(a[i] <= b)
		}
	case gt:
		for _, i := range sel {
			dst[k] = i
			k += asInt(a[i] > b)
		}
	case ge:
		for _, i := range sel {
			dst[k] = i
			k += asInt(a[i] >= b)
		}
	}
	return dst[:k]
}

// compareFloats has PostgreSQL's order: NaN equals NaN and is greater than anything else; the zeros are equal.
func compareFloats[T float32 | float64](c *Call, rel relation, a, b Col[T]) {
	out := c.Out.Bools
	for _, row := range c.Rows() {
		x, y := a.At(row), b.At(row)
		out[row] = rel&lt != 0 && (x < y || (y != y && x == x)) ||
			rel&eq != 0 && (x == y || (x != x && y != y)) ||
			rel&gt != 0 && (x > y || (x != x && y == y))
	}
}

func equalTexts(c *Call, want bool) {
	out := c.Out.Bools
	a, b := c.Texts(0), c.Texts(1)
	if c.Const[0] {
		a, b = b, a
	}
	if b.mask == 0 { // with a constant, most lengths differ
		k, rows := b.At(0), c.Rows()
		if len(k) <= 8 && a.mask != 0 {
			word, inside := wordOf(k), a.inside(rows)
			for _, row := range rows[:inside] {
				out[row] = word.is(a.off, a.data, row) == want
			}
			rows = rows[inside:]
		}
		for _, row := range rows {
			x := a.At(row)
			out[row] = (len(x) == len(k) && string(x) == string(k)) == want
		}
		return
	}
	for _, row := range c.Rows() {
		out[row] = bytes.Equal(a.At(row), b.At(row)) == want
	}
}

// selectTexts names the rows whose text is a constant, or is not, without a vector of booleans. It is for a constant of one word; nil for others.
func selectTexts(s *Site, want bool) selectKernel {
	k := 1
	if s.Consts[0] != nil {
		k = 0
	}
	v := s.Consts[k]
	if v == nil || v.IsNull(0) || s.Consts[1-k] != nil || len(v.Bytes(0)) > 8 {
		return nil
	}
	word := wordOf(v.Bytes(0))
	no := asInt(!want)
	return func(c *Call, dst []int32) []int32 {
		a, rows := c.Texts(1-k), c.Rows()
		n := len(dst)
		dst = grow(dst, len(rows))
		inside := a.inside(rows)
		for _, row := range rows[:inside] {
			dst[n] = row
			n += asInt(word.is(a.off, a.data, row)) ^ no
		}
		for _, row := range rows[inside:] {
			dst[n] = row
			n += asInt(wordOf(a.At(row)) == word) ^ no
		}
		return dst[:n]
	}
}

func compareTexts(c *Call, rel relation) {
	out := c.Out.Bools
	a, b := c.Texts(0), c.Texts(1)
	for _, row := range c.Rows() {
		out[row] = rel.holds(bytes.Compare(a.At(row), b.At(row)))
	}
}

func compareDecimals(c *Call, rel relation, bound *decimal.Bound) {
	out := c.Out.Bools
	a, b := c.Decimals(0), c.Decimals(1)
	if c.Const[0] != c.Const[1] {
		if c.Const[0] {
			a, b, rel = b, a, rel.swapped()
		}
		bound.Set(b.At(0))
		for _, row := range c.Rows() {
			d := a.ptr(row)
			if x, at, ok := bound.Near(d); ok {
				out[row] = rel>>uint(1+asInt(x > at)-asInt(x < at))&1 != 0
			} else {
				out[row] = rel.holds(bound.Cmp(d))
			}
		}
		return
	}
	for _, row := range c.Rows() {
		x, y := a.ptr(row), b.ptr(row)
		order, ok := decimal.CmpSmall(x, y)
		if !ok {
			order = x.Cmp(*y)
		}
		out[row] = rel.holds(order)
	}
}

// selectDecimals compares with a constant.
func selectDecimals(c *Call, dst []int32, rel relation, bound *decimal.Bound) []int32 {
	a, b := c.Decimals(0), c.Decimals(1)
	if c.Const[0] {
		a, b, rel = b, a, rel.swapped()
	}
	bound.Set(b.At(0))
	rows := c.Rows()
	k := len(dst)
	dst = grow(dst, len(rows))
	for _, row := range rows {
		dst[k] = row
		d := a.ptr(row)
		if x, at, ok := bound.Near(d); ok {
			k += int(rel >> uint(1+asInt(x > at)-asInt(x < at)) & 1)
		} else {
			k += asInt(rel.holds(bound.Cmp(d)))
		}
	}
	return dst[:k]
}

// orderKernel compares values of the kinds that have no loop of their own.
func orderKernel(rel relation) Kernel {
	return func(c *Call) {
		out := c.Out.Bools
		for _, row := range c.Rows() {
			out[row] = rel.holds(c.Args[0].Compare(int(row)&c.mask(0), c.Args[1], int(row)&c.mask(1)))
		}
	}
}

package expr

import (
	"math"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

// constant is the vector of one row of a constant node.
func constant(n *Node) (*column.Vector, error) {
	t := n.Type
	if t.Kind == column.Unknown {
		t = tText
	}
	v := column.NewVector(t, 1)
	if n.Text == nil {
		v.AppendNull()
		return v, nil
	}
	if err := appendParsed(v, []byte(*n.Text), background); err != nil {
		return nil, err.At(position(n.Pos))
	}
	return v, nil
}

// parseOne is a vector of one row from text.
func parseOne(t column.Type, text string, ctx *Context) (*column.Vector, *pgerr.Error) {
	v := column.NewVector(t, 1)
	if err := appendParsed(v, []byte(text), ctx); err != nil {
		return nil, err
	}
	return v, nil
}

// number is a numeric literal.
func number(text string, pos int) (*Node, error) {
	t := text
	base := 10
	if len(t) > 2 && t[0] == '0' {
		switch t[1] {
		case 'x', 'X':
			base = 16
		case 'o', 'O':
			base = 8
		case 'b', 'B':
			base = 2
		}
	}
	if base != 10 {
		x, err := strconv.ParseUint(t[2:], base, 64)
		if err != nil || x > math.MaxInt64 {
			return nil, pgerr.Newf(pgerr.NumericValueOutOfRange, "the literal %s is too large", text).At(position(pos))
		}
		t = strconv.FormatUint(x, 10)
	}
	if !strings.ContainsAny(t, ".eE") {
		if x, err := strconv.ParseInt(t, 10, 64); err == nil {
			typ := tInt8
			if x <= math.MaxInt32 && x >= math.MinInt32 {
				typ = tInt4
			}
			return Const(typ, strconv.FormatInt(x, 10), pos), nil
		}
	}
	d, err := decimal.Parse(t)
	if err != nil {
		return nil, pgerr.From(err).At(position(pos))
	}
	return Const(tNumeric, d.String(), pos), nil
}

// spread makes a vector of all rows of a constant, in *out, which is made when it is first needed.
func (r *run) spread(out **column.Vector, v *column.Vector) *column.Vector {
	if *out == nil {
		*out = column.NewVector(v.Type, r.n)
	}
	size := 0
	if v.Type.Kind.Varlen() {
		size = r.n * len(v.Bytes(0))
	}
	if !r.fits(size, nil) {
		(*out).FillNull(v.Type, r.n)
		return *out
	}
	(*out).Fill(v, 0, r.n)
	r.made(*out, size)
	return *out
}

package bind

import (
	"errors"
	"math"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
)

var errNotConstant = errors.New("not a constant")

const dayMicros = 24 * 60 * 60 * 1_000_000

// constInterval is the value of a constant expression of type interval; NULL is none.
func constInterval(n *expr.Node) (column.Interval, error) {
	v, err := constValue(n)
	if err != nil {
		return column.Interval{}, err
	}
	if n.Type.Kind != column.IntervalKind || len(v.Iv) != 1 {
		return column.Interval{}, errNotConstant
	}
	return v.Iv[0], nil
}

// constValue evaluates an expression that depends on nothing. NULL is errNotConstant.
func constValue(n *expr.Node) (*column.Vector, error) {
	n = expr.Fold(n, nil)
	if n.Op != expr.OpConst || n.Text == nil {
		return nil, errNotConstant
	}
	p, err := expr.Compile(n, nil)
	if err != nil {
		return nil, err
	}
	v, err := p.Eval(&expr.Context{}, &column.Batch{Len: 1})
	if err != nil {
		return nil, err
	}
	if v.Len != 1 || v.IsNull(0) {
		return nil, errNotConstant
	}
	return v, nil
}

// micros is an interval without months in microseconds, days of 24 hours.
func micros(iv column.Interval) (int64, bool) {
	days := int64(iv.Days) * dayMicros // an int32 of days fits
	if iv.Micros > 0 && days > math.MaxInt64-iv.Micros || iv.Micros < 0 && days < math.MinInt64-iv.Micros {
		return 0, false
	}
	return days + iv.Micros, true
}

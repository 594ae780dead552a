package bind

import (
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
)

// call makes a call node as Resolve would name it.
func call(name string, t column.Type, args ...*expr.Node) *expr.Node {
	id := name + "("
	for i, a := range args {
		if i > 0 {
			id += ","
		}
		id += expr.TypeName(a.Type)
	}
	return &expr.Node{Op: expr.OpCall, Func: id + ")", Type: t, Args: args}
}

func TestTimeBounds(t *testing.T) {
	t.Parallel()
	const left, right = 1, 4
	ts, tz := column.TTimestamp, column.TTimestamptz
	l, r := expr.Column(left, ts, 0), expr.Column(right, ts, 0)
	lz, rz := expr.Column(left, tz, 0), expr.Column(right, tz, 0)
	iv := func(text string) *expr.Node { return expr.Const(column.TInterval, text, 0) }
	cmp := func(op string, a, b *expr.Node) *expr.Node { return call(op, column.TBool, a, b) }
	plus := func(a, b *expr.Node) *expr.Node { return call("+", a.Type, a, b) }
	minus := func(a, b *expr.Node) *expr.Node { return call("-", a.Type, a, b) }
	const minute, hour, day = int64(60e6), int64(3600e6), int64(24 * 3600e6)
	tests := []struct {
		name string
		cond *expr.Node
		want bound
		ok   bool
	}{
		{"r >= l", cmp(">=", r, l), bound{0, true, true}, true},
		{"r <= l + 1 hour", cmp("<=", r, plus(l, iv("01:00:00"))), bound{hour, false, true}, true},
		{"r < l + 1 hour", cmp("<", r, plus(l, iv("01:00:00"))), bound{hour - 1, false, true}, true},
		{"r > l - 1 minute", cmp(">", r, minus(l, iv("00:01:00"))), bound{-minute + 1, true, true}, true},
		{"l <= r", cmp("<=", l, r), bound{0, true, true}, true},
		{"l + 1 minute >= r", cmp(">=", plus(l, iv("00:01:00")), r), bound{minute, false, true}, true},
		{"l > r - 1 minute", cmp(">", l, minus(r, iv("00:01:00"))), bound{minute - 1, false, true}, true},
		{"r - 1 hour <= l", cmp("<=", minus(r, iv("01:00:00")), l), bound{hour, false, true}, true},
		{"interval first", cmp("<=", r, &expr.Node{Op: expr.OpCall, Func: "+(interval,timestamp without time zone)", Type: ts, Args: []*expr.Node{iv("01:00:00"), l}}), bound{hour, false, true}, true},
		{"twice", cmp("<=", r, plus(minus(l, iv("00:01:00")), iv("01:00:00"))), bound{hour - minute, false, true}, true},
		{"a day of a timestamp", cmp("<=", r, plus(l, iv("1 day"))), bound{day, false, true}, true},
		{"a day of a timestamptz may be longer", cmp("<=", rz, plus(lz, iv("1 day"))), bound{day + zoneSlack, false, false}, true},
		{"and shorter", cmp(">=", rz, minus(lz, iv("1 day"))), bound{-day - zoneSlack, true, false}, true},
		{"months are no distance", cmp("<=", r, plus(l, iv("1 mon"))), bound{}, false},
		{"one column twice", cmp("<=", r, plus(r, iv("01:00:00"))), bound{}, false},
		{"another operator", cmp("=", r, l), bound{}, false},
		{"another column", cmp("<=", expr.Column(7, ts, 0), l), bound{}, false},
		{"too far", cmp("<=", r, plus(l, iv("2000000000 days"))), bound{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := timeBound(tt.cond, left, right)
			if ok != tt.ok || got != tt.want {
				t.Errorf("got %+v %v, want %+v %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

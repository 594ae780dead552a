package bind

import (
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/plan"
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

// TestIntervalJoinsAreRecognised joins two streams by conditions made by hand.
func TestIntervalJoinsAreRecognised(t *testing.T) {
	t.Parallel()
	const ddl = `CREATE SOURCE l (id int, at timestamp, WATERMARK FOR at AS at - INTERVAL '1 second') WITH (connector = 'kafka', topic = 'l') FORMAT PLAIN ENCODE JSON;
		CREATE SOURCE r (id int, at timestamp, WATERMARK FOR at AS at) WITH (connector = 'kafka', topic = 'r') FORMAT PLAIN ENCODE JSON;
		CREATE SOURCE n (id int, at timestamp) WITH (connector = 'kafka', topic = 'n') FORMAT PLAIN ENCODE JSON;`
	s := &session{catalog: catalog.Empty()}
	if _, err := s.run(ddl); err != nil {
		t.Fatal(message(ddl, err))
	}
	// A source has its two columns, partition, offset and, with a watermark, that.
	const width = 5
	eq := call("=", column.TBool, expr.Column(0, column.TInt32, 0), expr.Column(width, column.TInt32, 0))
	lt, rt := expr.Column(1, column.TTimestamp, 0), expr.Column(width+1, column.TTimestamp, 0)
	hour := call("+", column.TTimestamp, lt, expr.Const(column.TInterval, "01:00:00", 0))
	lower, upper := call(">=", column.TBool, rt, lt), call("<=", column.TBool, rt, hour)
	other := call("<>", column.TBool, expr.Column(0, column.TInt32, 0), expr.Column(width+3, column.TInt64, 0))
	tests := []struct {
		name  string
		right string
		conds []*expr.Node
		outer bool
		want  string // the node, or the error's code
	}{
		{"inner", "r", []*expr.Node{eq, lower, upper}, false, "Interval join on id = id within at - at in [0s, 1h]"},
		{"left", "r", []*expr.Node{lower, eq, upper}, true, "Left interval join on id = id within at - at in [0s, 1h]"},
		{"a rest", "r", []*expr.Node{eq, lower, other, upper}, true, "Left interval join on id = id within at - at in [0s, 1h] where (id <> _offset)"},
		{"one bound, inner", "r", []*expr.Node{eq, lower}, false, "Join on id = id where (at >= at)"},
		{"one bound, left", "r", []*expr.Node{eq, upper}, true, pgerr.FeatureNotSupported},
		{"no key", "r", []*expr.Node{lower, upper}, false, pgerr.FeatureNotSupported},
		{"no watermark, inner", "n", []*expr.Node{eq, lower, upper}, false, "Join on id = id where ((at >= at) AND (at <= (at + '01:00:00'::interval)))"},
		{"no watermark, left", "n", []*expr.Node{eq, lower, upper}, true, pgerr.FeatureNotSupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBinder(s.env(""))
			b.stored = true
			l, err := b.scan(s.catalog.Lookup("", "l"))
			if err != nil {
				t.Fatal(err)
			}
			r, err := b.scan(s.catalog.Lookup("", tt.right))
			if err != nil {
				t.Fatal(err)
			}
			j, err := b.pair(l, r, tt.conds, tt.outer, 1)
			if err != nil {
				if pgerr.Code(err) != tt.want {
					t.Fatal(err)
				}
				return
			}
			need := setOf(j, 0, 1, width+1).add(j.Key...)
			p, err := b.finish(prune(j, need).tree)
			if err != nil {
				t.Fatal(err)
			}
			lines := plan.Explain(p, s.name)
			if !strings.HasPrefix(lines[0], tt.want+" -> ") {
				t.Errorf("got:\n%s\nwant %s", strings.Join(lines, "\n"), tt.want)
			}
			if !strings.Contains(lines[0], "append-only") || !strings.Contains(lines[0], "left=1000 right=1001") {
				t.Errorf("not append-only, or without its tables:\n%s", lines[0])
			}
		})
	}
}

package bind

import (
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// foldConstants computes what is constant. In an ad hoc query that includes now() and what depends on the session's time zone.
// In a stored one now() stays, and of what depends on the time zone only literals are settled, as of now, as in PostgreSQL:
// '2024-01-01'::timestamptz is what it was when the view was created.
func (b *binder) foldConstants(t *tree) (*tree, error) {
	if len(t.in) > 0 {
		r, err := b.rebuildWith(t, b.foldConstants)
		if err != nil {
			return nil, err
		}
		t = r
	}
	c := *t
	switch {
	case t.Filter != nil:
		c.Filter = &plan.Filter{Predicate: b.fold(t.Filter.Predicate)}
	case t.Project != nil:
		c.Project = &plan.Project{Exprs: b.foldAll(t.Project.Exprs)}
	case t.Values != nil:
		c.Values = &plan.Values{}
		for _, row := range t.Values.Rows {
			c.Values.Rows = append(c.Values.Rows, b.foldAll(row))
		}
	case len(t.conds) > 0:
		c.conds = b.foldAll(t.conds)
	default:
		return t, nil
	}
	return &c, nil
}

func (b *binder) foldAll(list []*expr.Node) []*expr.Node {
	out := make([]*expr.Node, len(list))
	for i, n := range list {
		out[i] = b.fold(n)
	}
	return out
}

func (b *binder) fold(n *expr.Node) *expr.Node {
	if !b.stored {
		return expr.Fold(n, b.env.Context)
	}
	n = rewrite(n, func(n *expr.Node) *expr.Node {
		if n.Op != expr.OpCall || len(n.Args) != 1 || n.Args[0].Op != expr.OpConst || !strings.HasPrefix(n.Func, "cast(text as ") {
			return nil
		}
		if f := expr.Fold(n, b.env.Context); f.Op == expr.OpConst {
			return f
		}
		return nil
	})
	n = expr.Fold(n, nil)
	// Offsets into the statement mean nothing to who meets a failing row later.
	return rewrite(n, func(n *expr.Node) *expr.Node { return withoutPositions(n) })
}

func withoutPositions(n *expr.Node) *expr.Node {
	c := *n
	c.Pos = 0
	if len(n.Args) > 0 {
		c.Args = make([]*expr.Node, len(n.Args))
		for i, a := range n.Args {
			c.Args[i] = withoutPositions(a)
		}
	}
	return &c
}

// clock are the functions whose value is not the same for ever, by the beginning of their identity.
var clock = []string{
	"now(", "transaction_timestamp(", "statement_timestamp(", "clock_timestamp(", "timeofday(", "current_timestamp(", "current_date(",
	"current_time(", "localtime(", "localtimestamp(", "random(", "gen_random_uuid(", "proctime(",
}

// usesClock tells whether the value of an expression depends on when it is computed.
func usesClock(n *expr.Node) bool {
	found := false
	walk(n, func(n *expr.Node) {
		if n.Op != expr.OpCall {
			return
		}
		for _, f := range clock {
			found = found || strings.HasPrefix(n.Func, f)
		}
		// age(x) counts from the current date.
		found = found || strings.HasPrefix(n.Func, "age(") && len(n.Args) == 1 && n.Type.Kind == column.IntervalKind
	})
	return found
}

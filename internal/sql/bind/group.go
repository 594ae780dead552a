package bind

import (
	"slices"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

// aggregate puts an aggregate over FROM and WHERE, and rewrites the select list, HAVING and ORDER BY to its columns.
func (s *selection) aggregate(in *tree) (*tree, error) {
	b := s.b
	if err := s.dependentGroups(in); err != nil {
		return nil, err
	}
	s.windowGroups(in)

	// The columns that the aggregate reads: groups, arguments, filters; equal ones once.
	var outs []output
	column := func(n *expr.Node, name string) int {
		i := slices.IndexFunc(outs, func(o output) bool { return sameExpr(o.expr, n) })
		if i < 0 {
			i = len(outs)
			outs = append(outs, output{name: name, expr: n})
		}
		return i
	}
	var groups []int
	for _, g := range s.groups {
		groups = append(groups, column(g, s.groupName(in, g)))
	}
	var calls []plan.Call
	var names []string
	for _, c := range s.calls.list {
		call := plan.Call{Func: c.Func, Args: []int{}, Result: c.Result, Filter: -1}
		for _, a := range c.Args {
			call.Args = append(call.Args, column(a, "_arg"))
			call.Types = append(call.Types, a.Type)
		}
		if c.filter != nil {
			call.Filter = column(c.filter, "_filter")
		}
		calls = append(calls, call)
		names = append(names, c.Func)
	}
	pre, err := b.project(in, outs)
	if err != nil {
		return nil, err
	}
	t, err := b.aggregate(pre, groups, calls, names, s.ast.Pos()+1)
	if err != nil {
		return nil, err
	}
	for i := range s.items {
		if s.items[i].expr, err = s.overGroups(t, s.items[i].expr); err != nil {
			return nil, err
		}
	}
	if s.having == nil {
		return t, nil
	}
	having, err := s.overGroups(t, s.having)
	if err != nil {
		return nil, err
	}
	return b.filter(t, conjuncts(having))
}

// groupName is what a group's column is called: the column's or the output's name.
func (s *selection) groupName(in *tree, g *expr.Node) string {
	if isColumn(g) {
		return in.Columns[g.Index].Name
	}
	for _, o := range s.items {
		if sameExpr(o.expr, g) {
			return o.name
		}
	}
	return "_group"
}

// dependentGroups adds the columns that the select list may use because the groups hold the whole primary key of the one
// table in FROM, and refuses other columns that are not grouped.
func (s *selection) dependentGroups(in *tree) error {
	depends := false
	if s.from != nil && s.from.tree.Kind == plan.KindScan && s.from.tree.relation.Kind == "table" && len(in.Key) > 0 {
		depends = true
		for _, k := range in.Key {
			depends = depends && slices.ContainsFunc(s.groups, func(g *expr.Node) bool { return isColumn(g) && g.Index == k })
		}
	}
	var failed *expr.Node
	check := func(n *expr.Node) {
		rewrite(n, func(n *expr.Node) *expr.Node {
			switch {
			case n.Op == opAggregate:
				return n
			case slices.ContainsFunc(s.groups, func(g *expr.Node) bool { return sameExpr(g, n) }):
				return n
			case isColumn(n) && depends:
				s.groups = append(s.groups, n)
			case isColumn(n) && failed == nil:
				failed = n
			}
			return nil
		})
	}
	for _, o := range s.items {
		check(o.expr)
	}
	if s.having != nil {
		check(s.having)
	}
	if failed == nil {
		return nil
	}
	name := in.Columns[failed.Index].Name
	for i := range s.from.columns {
		if c := &s.from.columns[i]; c.index == failed.Index && c.table != "" {
			name = c.table + "." + c.name
		}
	}
	err := pgerr.Newf(pgerr.GroupingError, "column \"%s\" must appear in the GROUP BY clause or be used in an aggregate function", name)
	if failed.Pos > 0 {
		err = err.At(failed.Pos + 1)
	}
	return err
}

// windowGroups makes a group by one bound of a window a group by both: the state of closed windows can then be dropped.
func (s *selection) windowGroups(in *tree) {
	w := in.window
	if w == nil {
		return
	}
	has := func(c int) bool {
		return slices.ContainsFunc(s.groups, func(g *expr.Node) bool { return isColumn(g) && g.Index == c })
	}
	switch {
	case has(w.start) && !has(w.end):
		s.groups = append(s.groups, in.col(w.end))
	case has(w.end) && !has(w.start):
		s.groups = append(s.groups, in.col(w.start))
	}
}

// overGroups rewrites an expression over FROM to one over the aggregate's columns.
func (s *selection) overGroups(t *tree, n *expr.Node) (*expr.Node, error) {
	var missing bool
	out := rewrite(n, func(n *expr.Node) *expr.Node {
		if n.Op == opAggregate {
			return expr.Column(len(s.groups)+n.Index, n.Type, n.Pos)
		}
		for i, g := range s.groups {
			if sameExpr(g, n) {
				return expr.Column(i, n.Type, n.Pos)
			}
		}
		missing = missing || isColumn(n)
		return nil
	})
	if missing {
		return nil, pgerr.Internal("a column that is not grouped was not found before")
	}
	return out, nil
}

// windowInterval binds the size, slide or offset of a window: a constant interval without months.
func (b *binder) windowInterval(e ast.Expr, what string) (int64, error) {
	n, err := b.expr(place{clause: what}, e)
	if err != nil {
		return 0, err
	}
	if n.Type.Kind == column.Unknown || n.Type.Kind == column.IntervalKind {
		if n, err = expr.CastTo(n, column.TInterval, expr.Implicit); err != nil {
			return 0, err
		}
	} else {
		return 0, b.errorf(e, pgerr.DatatypeMismatch, "the %s must be an interval such as INTERVAL '10 seconds', not of type %s", what, expr.TypeName(n.Type))
	}
	iv, err := constInterval(n)
	if err != nil {
		return 0, b.errorf(e, pgerr.FeatureNotSupported, "the %s must be a constant interval", what)
	}
	if iv.Months != 0 {
		return 0, b.unsupported(e, "a "+what+" of months or years")
	}
	us, ok := micros(iv)
	if !ok {
		return 0, b.errorf(e, pgerr.InvalidParameterValue, "the %s is too long", what)
	}
	return us, nil
}

package bind

import (
	"slices"

	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

// selection is one SELECT while it is bound.
type selection struct {
	b     *binder
	ast   *ast.Select
	from  *scope // nil without FROM
	in    *tree  // FROM and WHERE
	calls aggregateCalls
	items []output // visible outputs, then hidden ones for ORDER BY
	// sources are the select list's expressions as written, beside items; nil for the columns of a star.
	sources []ast.Expr
	aliased []bool
	having  *expr.Node
	groups  []*expr.Node
}

// selectBody binds a SELECT, and its ORDER BY if it is the statement's.
func (b *binder) selectBody(q *ast.Select, order []ast.OrderItem) (*tree, []plan.SortKey, error) {
	if len(q.DistinctOn) > 0 {
		return nil, nil, b.unsupported(q.DistinctOn[0], "DISTINCT ON")
	}
	if len(q.Windows) > 0 {
		return nil, nil, b.unsupported(q.Windows[0], "WINDOW (window functions)")
	}
	s := &selection{b: b, ast: q}
	if err := s.bindFrom(); err != nil {
		return nil, nil, err
	}
	if err := s.bindItems(); err != nil {
		return nil, nil, err
	}
	if err := s.bindGroups(); err != nil {
		return nil, nil, err
	}
	if q.Having != nil {
		var err error
		if s.having, err = b.condition(place{scope: s.from, clause: "HAVING", calls: &s.calls}, q.Having); err != nil {
			return nil, nil, err
		}
	}
	visible := len(s.items)
	keys, err := s.bindOrder(order)
	if err != nil {
		return nil, nil, err
	}
	t := s.in
	if len(s.calls.list) > 0 || len(s.groups) > 0 || len(q.GroupBy) > 0 || q.Having != nil {
		if t, err = s.aggregate(t); err != nil {
			return nil, nil, err
		}
	}
	if t, err = b.project(t, s.items); err != nil {
		return nil, nil, err
	}
	if q.Distinct {
		if len(s.items) > visible {
			at := order[slices.IndexFunc(keys, func(k plan.SortKey) bool { return k.Column >= visible })]
			return nil, nil, b.errorf(at.Expr, pgerr.InvalidColumnReference, "for SELECT DISTINCT, ORDER BY expressions must appear in select list")
		}
		if t, err = b.distinct(t, q.Pos()+1); err != nil {
			return nil, nil, err
		}
	}
	return t, keys, nil
}

func (s *selection) bindFrom() error {
	b := s.b
	var err error
	if len(s.ast.From) == 0 {
		s.in, err = b.values(nil, [][]*expr.Node{{}})
	} else {
		if s.from, err = b.from(s.ast.From); err == nil {
			s.in = s.from.tree
		}
	}
	if err != nil || s.ast.Where == nil {
		return err
	}
	cond, err := b.condition(place{scope: s.from, clause: "WHERE"}, s.ast.Where)
	if err != nil {
		return err
	}
	s.in, err = b.filter(s.in, conjuncts(cond))
	return err
}

func (s *selection) bindItems() error {
	b := s.b
	for _, item := range s.ast.Items {
		if star, ok := item.Expr.(*ast.Star); ok {
			columns, err := b.expand(s.from, star)
			if err != nil {
				return err
			}
			for _, c := range columns {
				s.items = append(s.items, output{name: c.name, expr: c.ref(b.pos(star))})
				s.sources = append(s.sources, nil)
				s.aliased = append(s.aliased, false)
			}
			continue
		}
		n, err := b.value(place{scope: s.from, clause: "SELECT", calls: &s.calls}, item.Expr)
		if err != nil {
			return err
		}
		name := item.Alias.Name
		if name == "" {
			name = outputName(item.Expr)
		}
		s.items = append(s.items, output{name: name, expr: n})
		s.sources = append(s.sources, item.Expr)
		s.aliased = append(s.aliased, item.Alias.Given())
	}
	if len(s.items) > maxColumns {
		return b.errorf(s.ast, pgerr.TooManyColumns, "target lists can have at most %d entries", maxColumns)
	}
	return nil
}

// bindGroups resolves GROUP BY: a position, a column of FROM, the name of an output, or an expression.
func (s *selection) bindGroups() error {
	b := s.b
	for _, g := range s.ast.GroupBy {
		n, err := s.group(g)
		if err != nil {
			return err
		}
		if containsAggregate(n) {
			return b.errorf(g, pgerr.GroupingError, "aggregate functions are not allowed in GROUP BY")
		}
		if !slices.ContainsFunc(s.groups, func(o *expr.Node) bool { return sameExpr(o, n) }) {
			s.groups = append(s.groups, n)
		}
	}
	return nil
}

func (s *selection) group(g ast.Expr) (*expr.Node, error) {
	b := s.b
	switch e := g.(type) {
	case *ast.Number:
		i, err := b.ordinal(e, len(s.items), "GROUP BY")
		if err != nil {
			return nil, err
		}
		return s.items[i].expr, nil
	case *ast.String:
		return nil, b.errorf(e, pgerr.SyntaxError, "non-integer constant in GROUP BY")
	case *ast.ColumnRef:
		if len(e.Parts) > 1 {
			break
		}
		n, err := b.expr(place{scope: s.from, clause: "GROUP BY"}, e)
		if err == nil || pgerr.Code(err) != pgerr.UndefinedColumn {
			return n, err
		}
		if out, ambiguous := s.byName(e.Parts[0].Name); ambiguous {
			return nil, b.errorf(e, pgerr.AmbiguousColumn, "GROUP BY \"%s\" is ambiguous", e.Parts[0].Name)
		} else if out >= 0 {
			return s.items[out].expr, nil
		}
		return nil, err
	case *ast.Row:
		return nil, b.unsupported(e, "a row in GROUP BY").WithHint("Write its expressions without the parentheses.")
	}
	return b.value(place{scope: s.from, clause: "GROUP BY"}, g)
}

// byName is the visible output of that name, -1 if there is none. Equal expressions under one name are not ambiguous.
func (s *selection) byName(name string) (at int, ambiguous bool) {
	at = -1
	for i, o := range s.items {
		if o.hidden || o.name != name {
			continue
		}
		if at >= 0 && !sameExpr(s.items[at].expr, o.expr) {
			return at, true
		}
		if at < 0 {
			at = i
		}
	}
	return at, false
}

// bindOrder resolves ORDER BY: a position, the name of an output, or an expression over FROM, for which a hidden output is
// added if it is not in the select list.
func (s *selection) bindOrder(order []ast.OrderItem) ([]plan.SortKey, error) {
	b := s.b
	visible := len(s.items)
	var keys []plan.SortKey
	for _, o := range order {
		at := -1
		switch e := o.Expr.(type) {
		case *ast.Number:
			i, err := b.ordinal(e, visible, "ORDER BY")
			if err != nil {
				return nil, err
			}
			at = i
		case *ast.String:
			return nil, b.errorf(e, pgerr.SyntaxError, "non-integer constant in ORDER BY")
		case *ast.ColumnRef:
			if len(e.Parts) > 1 {
				break
			}
			out, ambiguous := s.byName(e.Parts[0].Name)
			if ambiguous {
				return nil, b.errorf(e, pgerr.AmbiguousColumn, "ORDER BY \"%s\" is ambiguous", e.Parts[0].Name)
			}
			at = out
		}
		if at < 0 {
			n, err := b.value(place{scope: s.from, clause: "ORDER BY", calls: &s.calls}, o.Expr)
			if err != nil {
				return nil, err
			}
			at = slices.IndexFunc(s.items, func(i output) bool { return sameExpr(i.expr, n) })
			if at < 0 {
				at = len(s.items)
				s.items = append(s.items, output{name: "_order", expr: n, hidden: true})
			}
		}
		k, err := b.sortKey(at, o)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func containsAggregate(n *expr.Node) bool {
	found := false
	walk(n, func(n *expr.Node) { found = found || n.Op == opAggregate })
	return found
}

// outputName names a column as PostgreSQL does.
func outputName(e ast.Expr) string {
	name, _ := figureName(e)
	if name == "" {
		return "?column?"
	}
	return name
}

// figureName also says how good the name is: 0 none, 1 from a type or a keyword, 2 from a name.
func figureName(e ast.Expr) (string, int) {
	switch e := e.(type) {
	case *ast.ColumnRef:
		return e.Parts[len(e.Parts)-1].Name, 2
	case *ast.FuncCall:
		return e.Name.Last(), 2
	case *ast.Index:
		return figureName(e.X)
	case *ast.Field:
		return e.Name.Name, 2
	case *ast.Collate:
		return figureName(e.X)
	case *ast.AtTimeZone:
		return "timezone", 2
	case *ast.Cast:
		if name, good := figureName(e.X); good > 1 {
			return name, good
		}
		return e.Type.Name, 1
	case *ast.TypedString:
		return e.Type.Name, 1
	case *ast.Bool:
		return "bool", 1
	case *ast.Case:
		if e.Else != nil {
			if name, good := figureName(e.Else); good > 1 {
				return name, good
			}
		}
		return "case", 1
	case *ast.Array:
		return "array", 2
	case *ast.ArrayQuery:
		return "array", 2
	case *ast.Exists:
		return "exists", 2
	case *ast.Row:
		return "row", 2
	case *ast.Subquery:
		if s, ok := e.Query.Body.(*ast.Select); ok && len(s.Items) == 1 {
			if s.Items[0].Alias.Given() {
				return s.Items[0].Alias.Name, 2
			}
			return figureName(s.Items[0].Expr)
		}
	}
	return "", 0
}

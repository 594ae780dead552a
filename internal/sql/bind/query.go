package bind

import (
	"slices"
	"strconv"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

var untyped, textType = column.TUnknown, column.TText

// cteScope is the chain of WITH queries that are visible, innermost first. They are inlined where they are named.
type cteScope struct {
	outer *cteScope
	cte   *ast.CTE
	// views is how many views were being expanded where the WITH stands: names do not reach into a view's text.
	views int
}

// query binds a query. top: its ORDER BY, LIMIT and OFFSET are the result's, an ad hoc query's; the tree's root is then a
// Sort if there are any. Below, ORDER BY alone means nothing, and LIMIT is refused.
func (b *binder) query(q *ast.Query, top bool) (*tree, error) {
	saved := b.ctes
	defer func() { b.ctes = saved }()
	if err := b.pushWith(q.With); err != nil {
		return nil, err
	}
	if len(q.Locking) > 0 {
		return nil, b.unsupported(q.Locking[0], "FOR "+q.Locking[0].Strength)
	}
	if q.WithTies {
		return nil, b.unsupported(q, "FETCH FIRST ... WITH TIES")
	}
	order := q.OrderBy
	if !top {
		if q.Limit != nil || q.Offset != nil {
			at := q.Limit
			if at == nil {
				at = q.Offset
			}
			what := "LIMIT in a sub-query (Top-N)"
			if b.stored {
				what = "LIMIT or OFFSET in a stored query (Top-N)"
			}
			return nil, b.unsupported(at, what)
		}
		if len(order) > 0 {
			if len(b.views) == 0 {
				b.notice("ORDER BY without LIMIT has no meaning here and is ignored: give it in the SELECT that reads the result")
			}
			order = nil
		}
	}
	t, keys, err := b.body(q.Body, order)
	if err != nil {
		return nil, err
	}
	if q.EmitOnWindowClose {
		if t, err = b.closeWindows(t, q); err != nil {
			return nil, err
		}
	}
	if !top || len(keys) == 0 && q.Limit == nil && q.Offset == nil {
		return t, nil
	}
	s := &plan.Sort{Keys: keys}
	if s.Limit, err = b.rowCount(q.Limit, "LIMIT"); err != nil {
		return nil, err
	}
	if s.Offset, err = b.rowCount(q.Offset, "OFFSET"); err != nil {
		return nil, err
	}
	return b.sort(t, s)
}

// rowCount binds LIMIT and OFFSET: constants, not negative.
func (b *binder) rowCount(e ast.Expr, clause string) (*expr.Node, error) {
	if e == nil {
		return nil, nil
	}
	n, err := b.expr(place{clause: clause}, e)
	if err != nil {
		return nil, err
	}
	given := n.Type
	if n, err = expr.CastTo(n, column.TInt64, expr.Assignment); err != nil {
		if given.Kind == column.Unknown {
			return nil, err // of what the literal says
		}
		return nil, b.errorf(e, pgerr.DatatypeMismatch, "argument of %s must be type bigint, not type %s", clause, expr.TypeName(given))
	}
	n = expr.Fold(n, b.env.Context)
	if n.Op == expr.OpConst && n.Text != nil && (*n.Text)[0] == '-' {
		code := pgerr.InvalidRowCountInLimitClause
		if clause == "OFFSET" {
			code = pgerr.InvalidRowCountInResultOffsetClause
		}
		return nil, b.errorf(e, code, "%s must not be negative", clause)
	}
	return n, nil
}

func (b *binder) pushWith(w *ast.With) error {
	if w == nil {
		return nil
	}
	if w.Recursive {
		return b.unsupported(w, "WITH RECURSIVE")
	}
	for i := range w.Tables {
		c := &w.Tables[i]
		if _, ok := c.Stmt.(*ast.Query); !ok {
			return b.unsupported(c, "a statement that changes data in WITH")
		}
		if slices.ContainsFunc(w.Tables[:i], func(o ast.CTE) bool { return o.Name.Name == c.Name.Name }) {
			return b.errorf(c.Name, pgerr.DuplicateAlias, "WITH query name \"%s\" specified more than once", c.Name.Name)
		}
		b.ctes = &cteScope{outer: b.ctes, cte: c, views: len(b.views)}
	}
	return nil
}

// body binds what stands between WITH and ORDER BY.
func (b *binder) body(body ast.QueryBody, order []ast.OrderItem) (*tree, []plan.SortKey, error) {
	switch body := body.(type) {
	case *ast.Select:
		return b.selectBody(body, order)
	case *ast.Values:
		t, err := b.valuesBody(body)
		if err != nil {
			return nil, nil, err
		}
		keys, err := b.outputOrder(t, order)
		return t, keys, err
	case *ast.SetOp:
		t, err := b.setOp(body)
		if err != nil {
			return nil, nil, err
		}
		keys, err := b.outputOrder(t, order)
		return t, keys, err
	case *ast.Query:
		t, err := b.query(body, false)
		if err != nil {
			return nil, nil, err
		}
		keys, err := b.outputOrder(t, order)
		return t, keys, err
	}
	return nil, nil, b.unsupported(body, "this query")
}

// valuesBody is VALUES (...), (...).
func (b *binder) valuesBody(v *ast.Values) (*tree, error) {
	rows, err := b.valueRows(v)
	if err != nil {
		return nil, err
	}
	columns := make([]plan.Column, len(rows[0]))
	for c := range columns {
		items := make([]*expr.Node, len(rows))
		for r := range rows {
			items[r] = rows[r][c]
		}
		items, typ, err := expr.Unify("VALUES", items)
		if err != nil {
			return nil, err
		}
		for r := range rows {
			rows[r][c] = items[r]
		}
		columns[c] = plan.Column{Name: "column" + strconv.Itoa(c+1), Type: typ}
	}
	return b.values(columns, rows)
}

// valueRows binds the rows of VALUES, which must be of one length.
func (b *binder) valueRows(v *ast.Values) ([][]*expr.Node, error) {
	if len(v.Rows) == 0 || len(v.Rows[0]) == 0 {
		return nil, b.errorf(v, pgerr.SyntaxError, "VALUES needs at least one row of at least one value")
	}
	var rows [][]*expr.Node
	for _, row := range v.Rows {
		if len(row) != len(v.Rows[0]) {
			return nil, b.errorf(row[0], pgerr.SyntaxError, "VALUES lists must all be the same length")
		}
		bound, err := b.exprs(place{clause: "VALUES"}, row)
		if err != nil {
			return nil, err
		}
		rows = append(rows, bound)
	}
	return rows, nil
}

// outputOrder resolves ORDER BY where it can only name output columns.
func (b *binder) outputOrder(t *tree, order []ast.OrderItem) ([]plan.SortKey, error) {
	var keys []plan.SortKey
	visible := t.visible()
	for _, o := range order {
		at := -1
		switch e := o.Expr.(type) {
		case *ast.Number:
			i, err := b.ordinal(e, len(visible), "ORDER BY")
			if err != nil {
				return nil, err
			}
			at = visible[i]
		case *ast.ColumnRef:
			if len(e.Parts) == 1 {
				for _, i := range visible {
					if t.Columns[i].Name != e.Parts[0].Name {
						continue
					}
					if at >= 0 {
						return nil, b.errorf(e, pgerr.AmbiguousColumn, "ORDER BY \"%s\" is ambiguous", e.Parts[0].Name)
					}
					at = i
				}
				if at < 0 {
					return nil, b.errorf(e, pgerr.UndefinedColumn, "column \"%s\" does not exist", e.Parts[0].Name)
				}
			}
		}
		if at < 0 {
			return nil, b.errorf(o.Expr, pgerr.FeatureNotSupported, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause").
				WithDetail("Only result column names can be used, not expressions or functions.").
				WithHint("Add the expression to every SELECT, or move the query into a FROM clause.")
		}
		k, err := b.sortKey(at, o)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// sortKey applies ASC, DESC, USING and NULLS: nulls are the largest values.
func (b *binder) sortKey(at int, o ast.OrderItem) (plan.SortKey, error) {
	k := plan.SortKey{Column: at, Descending: o.Desc}
	switch o.Using.Name {
	case "", "<":
	case ">":
		k.Descending = true
	default:
		return k, b.unsupported(o, "ORDER BY USING "+o.Using.Name)
	}
	k.NullsFirst = k.Descending
	switch o.Nulls {
	case ast.NullsFirst:
		k.NullsFirst = true
	case ast.NullsLast:
		k.NullsFirst = false
	}
	return k, nil
}

// ordinal is a position in a select list, from 0.
func (b *binder) ordinal(e *ast.Number, n int, clause string) (int, error) {
	i, err := strconv.Atoi(e.Text)
	if err != nil {
		return 0, b.errorf(e, pgerr.SyntaxError, "non-integer constant in %s", clause)
	}
	if i < 1 || i > n {
		return 0, b.errorf(e, pgerr.InvalidColumnReference, "%s position %s is not in select list", clause, e.Text)
	}
	return i - 1, nil
}

// setOp is UNION ALL of two or more queries, and UNION, which is that with duplicates removed.
func (b *binder) setOp(s *ast.SetOp) (*tree, error) {
	if s.Kind != ast.Union {
		return nil, b.unsupported(s, s.Kind.String())
	}
	// A chain of UNION ALLs is one node. Chains lean to the left and may be long.
	var bodies []ast.QueryBody
	left := ast.QueryBody(s)
	for {
		op, ok := left.(*ast.SetOp)
		if !ok || op.Kind != ast.Union || op.All != s.All {
			break
		}
		bodies = append(bodies, op.R)
		left = op.L
	}
	bodies = append(bodies, left)
	slices.Reverse(bodies)
	inputs := make([]*tree, len(bodies))
	for i, body := range bodies {
		t, _, err := b.body(body, nil)
		if err != nil {
			return nil, err
		}
		if len(t.visible()) != len(inputs0(inputs, t).visible()) {
			return nil, b.errorf(body, pgerr.SyntaxError, "each UNION query must have the same number of columns")
		}
		inputs[i] = t
	}
	t, err := b.unionAll(inputs)
	if err != nil {
		return nil, b.at(pgerr.From(err), bodies[1])
	}
	if s.All {
		return t, nil
	}
	return b.distinct(t, s.Pos()+1)
}

func inputs0(inputs []*tree, t *tree) *tree {
	if inputs[0] != nil {
		return inputs[0]
	}
	return t
}

// unionAll brings inputs to the same columns: the visible ones cast to common types, then as hidden ones the keys, where a
// column of a type serves one key column of each input, and the row watermark.
func (b *binder) unionAll(inputs []*tree) (*tree, error) {
	n := len(inputs[0].visible())
	outs := make([][]output, len(inputs))
	for i := range outs {
		outs[i] = make([]output, n)
	}
	for c := range n {
		items := make([]*expr.Node, len(inputs))
		for i, in := range inputs {
			at := in.visible()[c]
			items[i] = in.col(at)
			if lit := in.literal(at); lit != nil {
				items[i] = lit
			}
		}
		name := inputs[0].Columns[inputs[0].visible()[c]].Name
		items, _, err := expr.Unify("UNION", items)
		if err != nil {
			return nil, err
		}
		for i := range inputs {
			outs[i][c] = output{name: name, expr: items[i]}
		}
	}
	for i, slots := range keySlots(inputs, outs) {
		outs[i] = append(outs[i], slots...)
	}
	projected := make([]*tree, len(inputs))
	for i, in := range inputs {
		t, err := b.project(in, outs[i])
		if err != nil {
			return nil, err
		}
		projected[i] = t
	}
	// The key is among the outputs, so a project adds nothing but the row watermark and the bounds of windows.
	// Inputs with a row watermark carry it behind the rest; all or none must.
	width := len(outs[0])
	carried := 0
	for _, t := range projected {
		if t.width() == width+1 && t.RowWatermark == width && t.EventTime == projected[0].EventTime {
			carried++
		}
	}
	if carried != len(projected) {
		for i, t := range projected {
			if t.width() > width {
				c := *t
				c.Columns = c.Columns[:width]
				c.Project = &plan.Project{Exprs: t.Project.Exprs[:width]}
				c.EventTime, c.RowWatermark, c.window = -1, -1, nil
				projected[i] = &c
			}
		}
	}
	return b.union(projected)
}

// literal is the untyped literal or NULL that a SELECT gives as a column, which takes the type of what it is put beside or
// into; nil if the column is anything else.
func (t *tree) literal(column int) *expr.Node {
	if t.Kind == plan.KindSort {
		t = t.in[0]
	}
	if t.Kind != plan.KindProject {
		return nil
	}
	n := t.Project.Exprs[column]
	switch {
	case n.Op != expr.OpConst:
		return nil
	case n.Text == nil:
		return expr.Null(untyped, n.Pos)
	case n.Type == textType:
		return expr.Literal(*n.Text, n.Pos)
	}
	return nil
}

// keySlots gives for each input the hidden columns that hold its key. None are needed when all inputs have their key in the
// same visible columns.
func keySlots(inputs []*tree, visible [][]output) [][]output {
	var types []column.Type
	out := make([][]output, len(inputs))
	if sameVisibleKeys(inputs, visible) {
		return out
	}
	for i, in := range inputs {
		used := make([]bool, len(types))
		out[i] = make([]output, len(types))
		for _, k := range in.Key {
			slot := -1
			for s, t := range types {
				if !used[s] && t == in.Columns[k].Type {
					slot = s
					break
				}
			}
			if slot < 0 {
				slot = len(types)
				types = append(types, in.Columns[k].Type)
				used = append(used, false)
				out[i] = append(out[i], output{})
			}
			used[slot] = true
			out[i][slot] = output{name: in.Columns[k].Name, expr: in.col(k), hidden: true}
		}
	}
	for i := range out {
		for s, t := range types {
			if s >= len(out[i]) {
				out[i] = append(out[i], output{})
			}
			if out[i][s].expr == nil {
				out[i][s] = output{name: "_key", expr: expr.Null(t, 0), hidden: true}
			}
		}
	}
	return out
}

// sameVisibleKeys: the outputs at the same places are, without a cast, the keys of all inputs.
func sameVisibleKeys(inputs []*tree, visible [][]output) bool {
	var first []int
	for i, in := range inputs {
		var at []int
		for _, k := range in.Key {
			v := slices.IndexFunc(visible[i], func(o output) bool { return isColumn(o.expr) && o.expr.Index == k })
			if v < 0 {
				return false
			}
			at = append(at, v)
		}
		if i == 0 {
			first = at
		} else if !slices.Equal(at, first) {
			return false
		}
	}
	return true
}

// distinct groups by all visible columns.
func (b *binder) distinct(t *tree, at int) (*tree, error) {
	return b.aggregate(t, t.visible(), nil, nil, at)
}

// closeWindows makes the aggregates that give the query's rows emit when their windows close.
func (b *binder) closeWindows(t *tree, q *ast.Query) (*tree, error) {
	switch t.Kind {
	case plan.KindFilter, plan.KindProject, plan.KindUnion:
		in := make([]*tree, len(t.in))
		for i := range t.in {
			c, err := b.closeWindows(t.in[i], q)
			if err != nil {
				return nil, err
			}
			in[i] = c
		}
		return b.rebuild(t, in...)
	case plan.KindAggregate:
		if t.Aggregate.WindowEnd >= 0 {
			c := *t
			c.emitOnClose()
			return &c, nil
		}
	}
	return nil, b.errorf(q, pgerr.FeatureNotSupported, "EMIT ON WINDOW CLOSE needs an aggregate that is grouped by the windows of a column with a watermark").
		WithHint("Group by window_start and window_end of TUMBLE or HOP over the column that the source declares WATERMARK FOR.")
}

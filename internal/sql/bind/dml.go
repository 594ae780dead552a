package bind

import (
	"slices"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

const generatedAlways = "428C9" // SQLSTATE

// target finds the table that a statement writes.
func (b *binder) target(n ast.Name, verb string) (*catalog.Relation, error) {
	r, err := b.relation(n)
	if err != nil {
		return nil, err
	}
	if r.Kind != catalog.Table {
		e := b.errorf(n, pgerr.WrongObjectType, "cannot %s %s \"%s\"", verb, r.Kind, n.Last())
		if r.Kind == catalog.Source {
			return nil, e.WithHint("A source is read only: produce records to its topic \"%s\".", r.Topic)
		}
		return nil, e
	}
	if r.AppendOnly && verb != "insert into" {
		return nil, b.errorf(n, pgerr.FeatureNotSupported, "cannot %s table \"%s\": it is APPEND ONLY", verb, r.Name)
	}
	return r, nil
}

// targetScope is the scope of the target's row under its alias.
func (b *binder) targetScope(r *catalog.Relation, alias ast.Ident) *scope {
	s := b.rowScope(r, nil)
	if alias.Given() {
		s.tables[0] = alias.Name
		for i := range s.columns {
			s.columns[i].table, s.columns[i].schema = alias.Name, ""
		}
	}
	return s
}

// targetColumn finds a column to be written.
func (b *binder) targetColumn(r *catalog.Relation, n ast.Ident) (int, error) {
	i := r.Column(n.Name)
	if i < 0 {
		return 0, b.errorf(n, pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", n.Name, r.Name)
	}
	return i, nil
}

// defaultOf is the value of a column that is not given.
func defaultOf(c catalog.Column) *expr.Node {
	if c.Default != nil {
		return c.Default
	}
	return expr.Null(c.Type, 0)
}

// insert is INSERT.
func (b *binder) insert(s *ast.Insert) (Bound, error) {
	if s.Overriding != "" {
		return nil, b.unsupported(s, "OVERRIDING "+s.Overriding+" VALUE")
	}
	r, err := b.target(s.Table, "insert into")
	if err != nil {
		return nil, err
	}
	if err := b.pushWith(s.With); err != nil {
		return nil, err
	}
	columns, err := b.insertColumns(r, s)
	if err != nil {
		return nil, err
	}
	out := &Insert{Target: r}
	switch {
	case s.Query == nil:
		row := make([]*expr.Node, len(r.Columns))
		for i, c := range r.Columns {
			row[i] = b.folded(defaultOf(c))
		}
		out.Rows = [][]*expr.Node{row}
	case plainValues(s.Query) != nil:
		err = b.insertRows(out, columns, len(s.Columns) > 0, plainValues(s.Query))
	default:
		err = b.insertQuery(out, columns, len(s.Columns) > 0, s.Query)
	}
	if err != nil {
		return nil, err
	}
	if s.OnConflict != nil {
		if err := b.onConflict(out, s); err != nil {
			return nil, err
		}
	}
	columnsOut, err := b.returning(&out.Returning, b.targetScope(r, s.Alias), s.Returning)
	if err != nil {
		return nil, err
	}
	out.Head, err = b.head("INSERT", columnsOut)
	return out, err
}

// folded settles what is constant in an expression of the statement, such as now() in a default.
func (b *binder) folded(n *expr.Node) *expr.Node { return expr.Fold(n, b.env.Context) }

// insertColumns are the columns that the values are for, in order.
func (b *binder) insertColumns(r *catalog.Relation, s *ast.Insert) ([]int, error) {
	var out []int
	if len(s.Columns) == 0 {
		for i, c := range r.Columns {
			if !c.Hidden {
				out = append(out, i)
			}
		}
		return out, nil
	}
	for _, n := range s.Columns {
		i, err := b.targetColumn(r, n)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, i) {
			return nil, b.errorf(n, pgerr.DuplicateColumn, "column \"%s\" specified more than once", n.Name)
		}
		out = append(out, i)
	}
	return out, nil
}

// plainValues is the VALUES of a query that is nothing else.
func plainValues(q *ast.Query) *ast.Values {
	v, ok := q.Body.(*ast.Values)
	if !ok || q.With != nil || len(q.OrderBy) > 0 || q.Limit != nil || q.Offset != nil || q.EmitOnWindowClose || len(q.Locking) > 0 {
		return nil
	}
	return v
}

// counts checks how many values there are for the columns.
func (b *binder) counts(columns []int, listed bool, n int, at ast.Node) error {
	if n > len(columns) {
		return b.errorf(at, pgerr.SyntaxError, "INSERT has more expressions than target columns")
	}
	if n < len(columns) && listed {
		return b.errorf(at, pgerr.SyntaxError, "INSERT has more target columns than expressions")
	}
	return nil
}

func (b *binder) insertRows(out *Insert, columns []int, listed bool, v *ast.Values) error {
	r := out.Target
	for _, items := range v.Rows {
		if len(items) != len(v.Rows[0]) {
			return b.errorf(v, pgerr.SyntaxError, "VALUES lists must all be the same length")
		}
		if err := b.counts(columns, listed, len(items), v); err != nil {
			return err
		}
		row := make([]*expr.Node, len(r.Columns))
		for i, item := range items {
			c := r.Columns[columns[i]]
			if _, ok := item.(*ast.Default); ok {
				continue
			}
			if c.Generated != nil {
				return b.errorf(item, generatedAlways, "cannot insert a non-DEFAULT value into column \"%s\"", c.Name).
					WithDetail("Column \"%s\" is a generated column.", c.Name)
			}
			n, err := b.expr(place{clause: "VALUES"}, item)
			if err != nil {
				return err
			}
			if n, err = b.assign(n, c, item); err != nil {
				return err
			}
			row[columns[i]] = b.folded(n)
		}
		for i, c := range r.Columns {
			if row[i] == nil {
				row[i] = b.folded(defaultOf(c))
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return nil
}

func (b *binder) insertQuery(out *Insert, columns []int, listed bool, q *ast.Query) error {
	r := out.Target
	t, err := b.query(q, true)
	if err != nil {
		return err
	}
	visible := t.visible()
	if err := b.counts(columns, listed, len(visible), q); err != nil {
		return err
	}
	values := make([]*expr.Node, len(r.Columns))
	for i, v := range visible {
		c := r.Columns[columns[i]]
		if c.Generated != nil {
			return b.errorf(q, generatedAlways, "cannot insert a non-DEFAULT value into column \"%s\"", c.Name).
				WithDetail("Column \"%s\" is a generated column.", c.Name)
		}
		n := t.col(v)
		if lit := t.literal(v); lit != nil {
			n = lit
		}
		if values[columns[i]], err = b.assign(n, c, q); err != nil {
			return err
		}
	}
	for i, c := range r.Columns {
		if values[i] == nil {
			values[i] = defaultOf(c)
		}
	}
	out.Source, err = b.rowsPlan(r, t, values)
	return err
}

// rowsPlan plans a query whose rows become rows of a table; values are over its columns, one for each column of the table.
func (b *binder) rowsPlan(r *catalog.Relation, t *tree, values []*expr.Node) (*plan.Plan, error) {
	outs := make([]output, len(values))
	for i, c := range r.Columns {
		outs[i] = output{name: c.Name, expr: values[i]}
	}
	if t.Kind != plan.KindSort {
		p, err := b.project(t, outs)
		if err != nil {
			return nil, err
		}
		return b.planAdHoc(p)
	}
	// The sort stays the root: the row is computed below it, beside what it sorts by.
	s := *t.Sort
	s.Keys = slices.Clone(s.Keys)
	for i, k := range s.Keys {
		outs = append(outs, output{name: "_order", expr: t.col(k.Column), hidden: true})
		s.Keys[i].Column = len(outs) - 1
	}
	p, err := b.project(t.in[0], outs)
	if err != nil {
		return nil, err
	}
	if p, err = b.sort(p, &s); err != nil {
		return nil, err
	}
	return b.planAdHoc(p)
}

// onConflict is ON CONFLICT, whose target must be the primary key.
func (b *binder) onConflict(out *Insert, s *ast.Insert) error {
	r, oc := out.Target, s.OnConflict
	noKey := func(at ast.Node) error {
		return b.errorf(at, pgerr.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification")
	}
	if oc.Constraint.Given() && oc.Constraint.Name != r.Name+"_pkey" {
		return b.errorf(oc.Constraint, pgerr.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", oc.Constraint.Name, r.Name)
	}
	var target []int
	for _, n := range oc.Columns {
		i, err := b.targetColumn(r, n)
		if err != nil {
			return b.errorf(n, pgerr.UndefinedColumn, "column \"%s\" does not exist", n.Name)
		}
		target = append(target, i)
	}
	switch {
	case len(target) > 0:
		if r.HasRowID() || !subset(target, r.PrimaryKey) || !subset(r.PrimaryKey, target) {
			return noKey(oc)
		}
	case oc.Constraint.Given():
		if r.HasRowID() {
			return noKey(oc)
		}
	case !oc.Nothing:
		return b.errorf(oc, pgerr.SyntaxError, "ON CONFLICT DO UPDATE requires inference specification or constraint name").
			WithHint("For example, ON CONFLICT (column_name).")
	}
	out.Conflict = &OnConflict{Nothing: oc.Nothing}
	if oc.Nothing {
		return nil
	}
	sc, err := b.beside(b.targetScope(r, s.Alias), b.targetScope(r, ast.Ident{Name: "excluded"}), oc)
	if err != nil {
		return err
	}
	if out.Conflict.Set, err = b.assignments(r, sc, oc.Set); err != nil {
		return err
	}
	for _, a := range out.Conflict.Set {
		if slices.Contains(r.PrimaryKey, a.Column) {
			return b.unsupported(oc, "changing the primary key in ON CONFLICT DO UPDATE")
		}
	}
	if oc.Where != nil {
		if out.Conflict.Where, err = b.condition(place{scope: sc, clause: "WHERE"}, oc.Where); err != nil {
			return err
		}
		out.Conflict.Where = b.folded(out.Conflict.Where)
	}
	return nil
}

// assignments binds SET.
func (b *binder) assignments(r *catalog.Relation, sc *scope, list []ast.Assignment) ([]Assignment, error) {
	var out []Assignment
	set := func(name ast.Ident, value ast.Expr) error {
		i, err := b.targetColumn(r, name)
		if err != nil {
			return err
		}
		c := r.Columns[i]
		if slices.ContainsFunc(out, func(a Assignment) bool { return a.Column == i }) {
			return b.errorf(name, pgerr.SyntaxError, "multiple assignments to same column \"%s\"", c.Name)
		}
		if _, ok := value.(*ast.Default); ok {
			if c.Generated == nil {
				out = append(out, Assignment{Column: i, Value: b.folded(defaultOf(c))})
			}
			return nil
		}
		if c.Generated != nil {
			return b.errorf(name, generatedAlways, "column \"%s\" can only be updated to DEFAULT", c.Name).WithDetail("Column \"%s\" is a generated column.", c.Name)
		}
		n, err := b.expr(place{scope: sc, clause: "UPDATE"}, value)
		if err != nil {
			return err
		}
		if n, err = b.assign(n, c, value); err != nil {
			return err
		}
		out = append(out, Assignment{Column: i, Value: b.folded(n)})
		return nil
	}
	for _, a := range list {
		if !a.Multi {
			if err := set(a.Columns[0], a.Value); err != nil {
				return nil, err
			}
			continue
		}
		row, ok := a.Value.(*ast.Row)
		if !ok {
			return nil, b.unsupported(a, "(columns) = (sub-query)")
		}
		if len(row.Items) != len(a.Columns) {
			return nil, b.errorf(a, pgerr.SyntaxError, "number of columns does not match number of values")
		}
		for i, name := range a.Columns {
			if err := set(name, row.Items[i]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// returning binds RETURNING over the target's row.
func (b *binder) returning(out *[]*expr.Node, sc *scope, items []ast.SelectItem) ([]plan.Column, error) {
	var columns []plan.Column
	for _, item := range items {
		if star, ok := item.Expr.(*ast.Star); ok {
			list, err := b.expand(sc, star)
			if err != nil {
				return nil, err
			}
			for _, c := range list {
				*out = append(*out, c.ref(0))
				columns = append(columns, plan.Column{Name: c.name, Type: c.typ})
			}
			continue
		}
		n, err := b.value(place{scope: sc, clause: "RETURNING"}, item.Expr)
		if err != nil {
			return nil, err
		}
		name := item.Alias.Name
		if name == "" {
			name = outputName(item.Expr)
		}
		*out = append(*out, b.folded(n))
		columns = append(columns, plan.Column{Name: name, Type: n.Type})
	}
	return columns, nil
}

// update is UPDATE.
func (b *binder) update(s *ast.Update) (Bound, error) {
	if s.With != nil {
		return nil, b.unsupported(s.With, "WITH in UPDATE")
	}
	if len(s.From) > 0 {
		return nil, b.unsupported(s.From[0], "UPDATE ... FROM")
	}
	r, err := b.target(s.Table.Name, "update")
	if err != nil {
		return nil, err
	}
	sc := b.targetScope(r, s.Table.Alias.Name)
	out := &Update{Target: r}
	if out.Set, err = b.assignments(r, sc, s.Set); err != nil {
		return nil, err
	}
	if out.Where, err = b.where(sc, s.Where); err != nil {
		return nil, err
	}
	columns, err := b.returning(&out.Returning, sc, s.Returning)
	if err != nil {
		return nil, err
	}
	out.Head, err = b.head("UPDATE", columns)
	return out, err
}

func (b *binder) where(sc *scope, e ast.Expr) (*expr.Node, error) {
	if e == nil {
		return nil, nil
	}
	n, err := b.condition(place{scope: sc, clause: "WHERE"}, e)
	if err != nil {
		return nil, err
	}
	return b.folded(n), nil
}

// delete is DELETE.
func (b *binder) delete(s *ast.Delete) (Bound, error) {
	if s.With != nil {
		return nil, b.unsupported(s.With, "WITH in DELETE")
	}
	if len(s.Using) > 0 {
		return nil, b.unsupported(s.Using[0], "DELETE ... USING")
	}
	r, err := b.target(s.Table.Name, "delete from")
	if err != nil {
		return nil, err
	}
	sc := b.targetScope(r, s.Table.Alias.Name)
	out := &Delete{Target: r}
	if out.Where, err = b.where(sc, s.Where); err != nil {
		return nil, err
	}
	columns, err := b.returning(&out.Returning, sc, s.Returning)
	if err != nil {
		return nil, err
	}
	out.Head, err = b.head("DELETE", columns)
	return out, err
}

// truncate is TRUNCATE of one table: a DELETE of all rows.
func (b *binder) truncate(s *ast.Truncate) (Bound, error) {
	if len(s.Tables) != 1 {
		return nil, b.unsupported(s, "TRUNCATE of more than one table")
	}
	r, err := b.target(s.Tables[0], "truncate")
	if err != nil {
		return nil, err
	}
	out := &Delete{Target: r}
	out.Head, err = b.head("TRUNCATE TABLE", nil)
	return out, err
}

package bind

import (
	"slices"
	"strconv"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

// createTable is CREATE TABLE.
func (b *binder) createTable(s *ast.CreateTable) (Bound, error) {
	const tag = "CREATE TABLE"
	switch {
	case s.Temporary:
		return nil, b.unsupported(s, "a temporary table")
	case len(s.Watermarks) > 0:
		return nil, b.unsupported(s.Watermarks[0], "WATERMARK on a table").WithHint("Declare it on a source over the table's topic.")
	case s.Format != nil || len(s.Include) > 0:
		return nil, b.unsupported(s, "a table that a connector feeds").WithHint("Use CREATE SOURCE; or produce into the table's topic, which takes JSON objects.")
	}
	r, err := b.newRelation(catalog.Table, s.Name, s.IfNotExists, s)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return b.nothing(tag)
	}
	if err := b.tableOptions(r, s); err != nil {
		return nil, err
	}
	out := &Create{}
	if s.Query != nil {
		if err := b.tableAs(r, s, out); err != nil {
			return nil, err
		}
	} else {
		b.stored = true
		if err := b.tableColumns(r, s); err != nil {
			return nil, err
		}
	}
	if len(r.PrimaryKey) == 0 {
		if s.OnConflict != ast.ConflictUnsaid {
			return nil, b.errorf(s.Name, pgerr.InvalidTableDefinition, "ON CONFLICT needs a primary key")
		}
		r.PrimaryKey = []int{len(r.Columns)}
		r.Columns = append(r.Columns, catalog.Column{Name: catalog.RowID, Type: column.TInt64, NotNull: true, Hidden: true})
	} else if r.AppendOnly {
		return nil, b.unsupported(s.Name, "APPEND ONLY together with a primary key, by which rows could be replaced,")
	}
	r.ID = b.ids.NextRelation()
	b.stored = true
	if r.Plan, err = b.tablePlan(r); err != nil {
		return nil, err
	}
	if out.Fill != nil {
		// The rows to fill in have the row id, too.
		if out.Fill, err = b.fill(r, s.Query); err != nil {
			return nil, err
		}
	}
	c, err := b.created(r, s.Name, tag)
	if err != nil {
		return nil, err
	}
	c.Fill = out.Fill
	r.DependsOn = nil // a table holds its rows itself; what it was filled from may go
	return c, nil
}

func (b *binder) tableOptions(r *catalog.Relation, s *ast.CreateTable) error {
	var err error
	for _, o := range s.With {
		if o.Name == "connector" {
			return b.unsupported(o, "a table that a connector feeds").WithHint("Use CREATE SOURCE; or produce into the table's topic, which takes JSON objects.")
		}
	}
	if r.Options, err = b.with(s.With, tableOptions, "a table"); err != nil {
		return err
	}
	r.AppendOnly = s.AppendOnly
	switch s.OnConflict {
	case ast.ConflictOverwrite:
		r.OnConflict = catalog.ConflictOverwrite
	case ast.ConflictIgnore:
		r.OnConflict = catalog.ConflictIgnore
	}
	r.Encode, r.Format = "json", "upsert"
	r.Partitions = 1
	if v := r.Options["partitions"]; v != "" {
		n, _ := strconv.Atoi(v) // checked by its option
		r.Partitions = int32(n)
	}
	if r.Topic = r.Options["topic"]; r.Topic == "" {
		r.Topic = r.Name
		if topicName(r.Topic) != "" {
			return b.errorf(s.Name, pgerr.InvalidName, "\"%s\" cannot be the name of the table's topic: it has other characters than letters, digits, '.', '_' and '-'", r.Name).
				WithHint("Add WITH (topic = 'name').")
		}
	}
	for _, o := range b.env.Catalog.Relations() {
		if o.Topic == r.Topic && (o.Kind == catalog.Table || o.Kind == catalog.Sink) {
			return b.errorf(s.Name, pgerr.DuplicateObject, "topic \"%s\" is already written by %s %s", r.Topic, o.Kind, o.QualifiedName()).
				WithHint("Add WITH (topic = 'name').")
		}
	}
	return nil
}

// tableColumns binds columns and constraints.
func (b *binder) tableColumns(r *catalog.Relation, s *ast.CreateTable) error {
	if err := b.definitions(r, s.Columns, nil); err != nil {
		return err
	}
	for i, d := range s.Columns {
		for _, c := range d.Constraints {
			if err := b.columnConstraint(r, i, c); err != nil {
				return err
			}
		}
	}
	for _, c := range s.Constraints {
		var err error
		switch c.Kind {
		case ast.PrimaryKeyConstraint:
			err = b.primaryKey(r, c, c.Columns)
		case ast.CheckConstraint:
			err = b.check(r, c, "")
		default:
			err = b.laterConstraint(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *binder) laterConstraint(c ast.Constraint) error {
	switch c.Kind {
	case ast.UniqueConstraint:
		return b.unsupported(c, "UNIQUE").WithHint("A table can have one PRIMARY KEY.")
	case ast.ForeignKeyConstraint:
		return b.unsupported(c, "a foreign key")
	case ast.IdentityConstraint:
		return b.unsupported(c, "an identity column")
	}
	return b.unsupported(c, "this constraint")
}

func (b *binder) columnConstraint(r *catalog.Relation, i int, c ast.Constraint) error {
	col := &r.Columns[i]
	switch c.Kind {
	case ast.NotNullConstraint:
		col.NotNull = true
	case ast.NullConstraint:
		if col.NotNull {
			return b.errorf(c, pgerr.SyntaxError, "conflicting NULL/NOT NULL declarations for column \"%s\" of table \"%s\"", col.Name, r.Name)
		}
	case ast.DefaultConstraint:
		if col.Generated != nil {
			return b.errorf(c, pgerr.SyntaxError, "both default and generation expression specified for column \"%s\" of table \"%s\"", col.Name, r.Name)
		}
		n, err := b.expr(place{clause: "DEFAULT expressions"}, c.Expr)
		if err != nil {
			if pgerr.Code(err) == pgerr.UndefinedColumn {
				return b.errorf(c.Expr, pgerr.FeatureNotSupported, "cannot use column reference in DEFAULT expression")
			}
			return err
		}
		if n, err = b.assign(n, *col, c.Expr); err != nil {
			return err
		}
		col.Default = b.fold(n)
	case ast.CheckConstraint:
		return b.check(r, c, col.Name)
	case ast.PrimaryKeyConstraint:
		return b.primaryKey(r, c, []ast.Ident{{Span: c.Span, Name: col.Name}})
	default:
		return b.laterConstraint(c)
	}
	return nil
}

func (b *binder) check(r *catalog.Relation, c ast.Constraint, col string) error {
	n, err := b.condition(place{scope: b.rowScope(r, nil), clause: "check constraints"}, c.Expr)
	if err != nil {
		return err
	}
	if usesClock(n) {
		return b.unsupported(c.Expr, "now() in CHECK")
	}
	name := c.Name.Name
	if name == "" {
		// As PostgreSQL: table_column_check, numbered where there are several.
		base := r.Name + "_check"
		if col != "" {
			base = r.Name + "_" + col + "_check"
		}
		name = base
		for i := 1; slices.ContainsFunc(r.Checks, func(c catalog.Check) bool { return c.Name == name }); i++ {
			name = base + strconv.Itoa(i)
		}
	} else if slices.ContainsFunc(r.Checks, func(c catalog.Check) bool { return c.Name == name }) {
		return b.errorf(c.Name, pgerr.DuplicateObject, "constraint \"%s\" for relation \"%s\" already exists", name, r.Name)
	}
	r.Checks = append(r.Checks, catalog.Check{Name: name, Expr: b.fold(n)})
	return nil
}

func (b *binder) primaryKey(r *catalog.Relation, c ast.Constraint, names []ast.Ident) error {
	if r.PrimaryKey != nil {
		return b.errorf(c, pgerr.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", r.Name)
	}
	for _, n := range names {
		i := r.Column(n.Name)
		if i < 0 {
			return b.errorf(n, pgerr.UndefinedColumn, "column \"%s\" named in key does not exist", n.Name)
		}
		if slices.Contains(r.PrimaryKey, i) {
			return b.errorf(n, pgerr.DuplicateColumn, "column \"%s\" appears twice in primary key constraint", n.Name)
		}
		switch r.Columns[i].Type.Kind {
		case column.JSONB, column.Array:
			return b.unsupported(n, "a primary key of type "+r.Columns[i].Type.String())
		}
		r.PrimaryKey = append(r.PrimaryKey, i)
		r.Columns[i].NotNull = true
	}
	return nil
}

// tablePlan is the table's own job: it turns the records of its topic into its rows.
func (b *binder) tablePlan(r *catalog.Relation) (*plan.Plan, error) {
	n := len(r.Columns)
	scan := plan.Node{
		Kind: plan.KindScan, Key: []int{n + 1, n + 2}, AppendOnly: true, EventTime: -1, RowWatermark: -1,
		Scan: &plan.Scan{Relation: r.ID, Source: true, Topic: true},
	}
	for i, c := range r.Columns {
		scan.Columns = append(scan.Columns, plan.Column{Name: c.Name, Type: c.Type, Hidden: c.Hidden})
		scan.Scan.Columns = append(scan.Scan.Columns, i)
	}
	rows := slices.Clip(scan.Columns)
	scan.Columns = append(rows,
		plan.Column{Name: "_deleted", Type: column.TBool, Hidden: true},
		plan.Column{Name: "_partition", Type: column.TInt32, Hidden: true},
		plan.Column{Name: "_offset", Type: column.TInt64, Hidden: true})
	scan.Scan.Columns = append(scan.Scan.Columns, n, n+1, n+2)
	p := &physical{b: b}
	in := p.exchange(p.add(scan), r.PrimaryKey)
	upsert := plan.Node{
		Kind: plan.KindUpsert, Columns: rows, Key: slices.Clone(r.PrimaryKey), EventTime: -1, RowWatermark: -1,
		AppendOnly: r.AppendOnly, Upsert: &plan.Upsert{Relation: r.ID, Key: slices.Clone(r.PrimaryKey)},
	}
	p.table(&upsert, "rows", nodeTypes(&upsert, r.PrimaryKey), nil, allTypes(&upsert))
	p.add(upsert, in)
	return p.plan()
}

// tableAs takes the columns of CREATE TABLE AS from its query.
func (b *binder) tableAs(r *catalog.Relation, s *ast.CreateTable, out *Create) error {
	if len(s.Columns) > 0 || len(s.Constraints) > 0 {
		return b.unsupported(s.Name, "column definitions together with AS").WithHint("Create the table, then INSERT INTO it FROM the query.")
	}
	if s.Query.EmitOnWindowClose {
		return b.unsupported(s.Query, "EMIT ON WINDOW CLOSE in CREATE TABLE AS")
	}
	sel, err := newBinder(b.env).adHoc(s.Query)
	if err != nil {
		return err
	}
	if len(sel.Params) > 0 {
		return b.errorf(s.Query, pgerr.UndefinedParameter, "there is no parameter $1")
	}
	if len(s.ColumnNames) > len(sel.Columns) {
		return b.errorf(s.ColumnNames[len(sel.Columns)], pgerr.SyntaxError, "too many column names were specified")
	}
	seen := map[string]bool{}
	for i, c := range sel.Columns {
		if i < len(s.ColumnNames) {
			c.Name = s.ColumnNames[i].Name
		}
		if seen[c.Name] {
			return b.errorf(s.Name, pgerr.DuplicateColumn, "column \"%s\" specified more than once", c.Name)
		}
		seen[c.Name] = true
		r.Columns = append(r.Columns, catalog.Column{Name: c.Name, Type: c.Type})
	}
	if !s.WithNoData {
		out.Fill = sel.Plan
	}
	return nil
}

// fill plans the rows of CREATE TABLE AS.
func (b *binder) fill(r *catalog.Relation, q *ast.Query) (*plan.Plan, error) {
	f := newBinder(b.env)
	t, err := f.query(q, true)
	if err != nil {
		return nil, err
	}
	visible := t.visible()
	values := make([]*expr.Node, len(r.Columns))
	for i, c := range r.Columns {
		if i < len(visible) {
			values[i] = t.col(visible[i])
		} else {
			values[i] = expr.Null(c.Type, 0)
		}
	}
	return f.rowsPlan(r, t, values)
}

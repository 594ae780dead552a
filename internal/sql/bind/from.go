package bind

import (
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/parse"
	"github.com/leat-io/leat/internal/sql/plan"
)

// from binds the items of FROM; several are a join whose conditions are in WHERE.
func (b *binder) from(items []ast.TableExpr) (*scope, error) {
	var out *scope
	var inputs []*tree
	for _, item := range items {
		s, err := b.tableExpr(item)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, s.tree)
		if out == nil {
			out = s
			continue
		}
		if out, err = b.beside(out, s, item); err != nil {
			return nil, err
		}
	}
	if len(inputs) > 1 {
		t, err := b.join(inputs, nil, items[1].Pos()+1)
		if err != nil {
			return nil, err
		}
		out.tree = t
	}
	return out, nil
}

// beside is the scope of two items next to each other; the tree is for the caller to set.
func (b *binder) beside(l, r *scope, at ast.Node) (*scope, error) {
	out := &scope{}
	for _, t := range r.tables {
		if t != "" && l.hasTable(t) && !distinctSchemas(l, r, t) {
			return nil, b.errorf(at, pgerr.DuplicateAlias, "table name \"%s\" specified more than once", t)
		}
	}
	out.tables = append(append(out.tables, l.tables...), r.tables...)
	out.columns = append(append(out.columns, l.columns...), r.columns...)
	// A scope that is not yet one tree is as wide as its columns say.
	width := l.width()
	for i := len(l.columns); i < len(out.columns); i++ {
		out.columns[i].index += width
	}
	out.star = append(out.star, l.star...)
	for _, i := range r.star {
		out.star = append(out.star, len(l.columns)+i)
	}
	out.span = width + r.width()
	return out, nil
}

func distinctSchemas(l, r *scope, table string) bool {
	schema := func(s *scope) string {
		for _, c := range s.columns {
			if c.table == table {
				return c.schema
			}
		}
		return ""
	}
	a, b := schema(l), schema(r)
	return a != "" && b != "" && a != b
}

// width is how many columns the scope's inputs have together, hidden ones included.
func (s *scope) width() int {
	if s.tree != nil {
		return s.tree.width()
	}
	return s.span
}

func (b *binder) tableExpr(e ast.TableExpr) (*scope, error) {
	switch e := e.(type) {
	case *ast.Table:
		return b.table(e)
	case *ast.DerivedTable:
		if e.Lateral {
			return nil, b.unsupported(e, "LATERAL")
		}
		t, err := b.query(e.Query, false)
		if err != nil {
			return nil, err
		}
		return b.alias(t, "", "", e.Alias)
	case *ast.WindowTable:
		return b.windowTable(e)
	case *ast.Join:
		return b.joinExpr(e)
	case *ast.FuncTable:
		name := "a function"
		if len(e.Calls) > 0 {
			name = "function " + e.Calls[0].Name.Last()
		}
		return nil, b.unsupported(e, name+" in FROM")
	}
	return nil, b.unsupported(e, "this item of FROM")
}

// alias makes the scope of a tree under its name or alias.
func (b *binder) alias(t *tree, schema, name string, a ast.Alias) (*scope, error) {
	if len(a.Defs) > 0 {
		return nil, b.unsupported(a, "a column definition list")
	}
	if a.Name.Given() {
		name = a.Name.Name
	}
	s := scopeOf(t, schema, name, a.Name.Given())
	if len(a.Columns) > len(s.columns) {
		return nil, b.errorf(a, pgerr.InvalidColumnReference, "table \"%s\" has %d columns available but %d columns specified", name, len(s.columns), len(a.Columns))
	}
	for i, c := range a.Columns {
		s.columns[i].name = c.Name
	}
	return s, nil
}

// table binds a name in FROM: a WITH query, or a relation.
func (b *binder) table(e *ast.Table) (*scope, error) {
	if e.AsOf != nil {
		return nil, b.unsupported(e.AsOf, "FOR SYSTEM_TIME AS OF")
	}
	name, schema := e.Name.Last(), e.Name.Schema()
	if schema == "" {
		for s := b.ctes; s != nil; s = s.outer {
			if s.cte.Name.Name == name && s.views == len(b.views) {
				return b.cte(s, e)
			}
		}
	}
	r, err := b.relation(e.Name)
	if err != nil {
		return nil, err
	}
	switch r.Kind {
	case catalog.Sink:
		return nil, b.errorf(e.Name, pgerr.WrongObjectType, "\"%s\" is a sink, which cannot be read", name).
			WithHint("Read what it is made from, or the topic %q through a source.", r.Topic)
	case catalog.View:
		t, err := b.view(r, e)
		if err != nil {
			return nil, err
		}
		return b.alias(t, r.Schema, r.Name, e.Alias)
	}
	t, err := b.scan(r)
	if err != nil {
		return nil, err
	}
	return b.alias(t, r.Schema, r.Name, e.Alias)
}

// relation finds a relation by name.
func (b *binder) relation(n ast.Name) (*catalog.Relation, error) {
	if c := n.Catalog(); c != "" && c != b.env.Database {
		return nil, b.errorf(n, pgerr.FeatureNotSupported, "cross-database references are not implemented: %s", joined(n.Parts))
	}
	if r := b.env.Catalog.Lookup(n.Schema(), n.Last()); r != nil {
		return r, nil
	}
	if s := n.Schema(); s == catalog.PgCatalogSchema || s == "information_schema" { // what clients ask on their users' behalf, as psql for \d
		return nil, b.errorf(n, pgerr.FeatureNotSupported, "the system catalog is not supported: there is no %s", joined(n.Parts)).
			WithHint("SHOW TABLES, SHOW MATERIALIZED VIEWS, SHOW JOBS and EXPLAIN tell what there is.")
	}
	return nil, b.errorf(n, pgerr.UndefinedTable, "relation \"%s\" does not exist", joined(n.Parts))
}

// cte inlines a WITH query. Inside it only the WITH queries before it are visible.
func (b *binder) cte(s *cteScope, e *ast.Table) (*scope, error) {
	saved := b.ctes
	b.ctes = s.outer
	t, err := b.query(s.cte.Stmt.(*ast.Query), false)
	b.ctes = saved
	if err != nil {
		return nil, err
	}
	if len(s.cte.Columns) > 0 {
		visible := t.visible()
		if len(s.cte.Columns) > len(visible) {
			return nil, b.errorf(s.cte.Name, pgerr.InvalidColumnReference, "WITH query \"%s\" has %d columns available but %d columns specified",
				s.cte.Name.Name, len(visible), len(s.cte.Columns))
		}
		named := *t
		named.Columns = append([]plan.Column(nil), t.Columns...)
		for i, c := range s.cte.Columns {
			named.Columns[visible[i]].Name = c.Name
		}
		t = &named
	}
	return b.alias(t, "", s.cte.Name.Name, e.Alias)
}

// view expands a view: its text is parsed and bound again.
func (b *binder) view(r *catalog.Relation, e *ast.Table) (*tree, error) {
	if len(b.views) >= maxViewDepth {
		return nil, pgerr.Newf(pgerr.StatementTooComplex, "views are nested deeper than %d", maxViewDepth)
	}
	b.reads[r.ID] = true
	q, err := parse.ParseQuery(r.Query)
	if err == nil {
		b.views = append(b.views, r.Name)
		var t *tree
		t, err = b.query(q, false)
		b.views = b.views[:len(b.views)-1]
		if err == nil {
			named := *t
			named.Columns = append([]plan.Column(nil), t.Columns...)
			visible := t.visible()
			for i, c := range r.Columns {
				if i < len(visible) {
					named.Columns[visible[i]].Name = c.Name
				}
			}
			return &named, nil
		}
	}
	c := *pgerr.From(err)
	c.Position = 0
	if c.Detail == "" {
		c.Detail = "This is in the query of view \"" + r.QualifiedName() + "\"."
	}
	return nil, b.at(&c, e)
}

// windowTable is TUMBLE and HOP.
func (b *binder) windowTable(e *ast.WindowTable) (*scope, error) {
	switch e.Kind {
	case ast.Session:
		return nil, b.unsupported(e, "a SESSION window")
	case ast.Cumulate:
		return nil, b.unsupported(e, "a CUMULATE window")
	}
	if len(e.PartitionBy) > 0 {
		return nil, b.unsupported(e.PartitionBy[0], "PARTITION BY in "+e.Kind.String())
	}
	in, err := b.tableExpr(e.Input)
	if err != nil {
		return nil, err
	}
	c, err := b.lookup(in, e.Time)
	if err != nil {
		return nil, err
	}
	if c.typ.Kind != column.Timestamp && c.typ.Kind != column.Timestamptz {
		return nil, b.errorf(e.Time, pgerr.DatatypeMismatch, "the time column of %s must be of type timestamp or timestamptz, not %s", e.Kind, expr.TypeName(c.typ))
	}
	w := &plan.Window{Time: c.index}
	if w.Size, err = b.windowInterval(e.Size, "window size"); err != nil {
		return nil, err
	}
	w.Slide = w.Size
	if e.Slide != nil {
		if w.Slide, err = b.windowInterval(e.Slide, "window slide"); err != nil {
			return nil, err
		}
	}
	switch {
	case w.Size <= 0:
		return nil, b.errorf(e.Size, pgerr.InvalidParameterValue, "the window size must be positive")
	case w.Slide <= 0:
		return nil, b.errorf(e.Slide, pgerr.InvalidParameterValue, "the window slide must be positive")
	case w.Slide > w.Size:
		return nil, b.errorf(e.Slide, pgerr.InvalidParameterValue, "the window slide must not be longer than the window size: rows between windows would be lost").
			WithHint("HOP takes the slide first, then the size.")
	case w.Size/w.Slide > maxWindowsPerRow:
		return nil, b.errorf(e.Slide, pgerr.ProgramLimitExceeded, "each row would be in %d windows; the limit is %d", w.Size/w.Slide, maxWindowsPerRow)
	}
	if e.Offset != nil {
		if w.Offset, err = b.windowInterval(e.Offset, "window offset"); err != nil {
			return nil, err
		}
		w.Offset %= w.Slide
	}
	if in.tree.EventTime == w.Time {
		w.Late = b.late
	}
	t, err := b.assignWindows(in.tree, w)
	if err != nil {
		return nil, err
	}
	// The columns keep the names that the input's alias gave them, and its name, unless the window has one of its own.
	named := *t
	named.Columns = append([]plan.Column(nil), t.Columns...)
	for _, c := range in.columns {
		named.Columns[c.index].Name = c.name
	}
	name := ""
	if len(in.tables) > 0 {
		name = in.tables[0]
	}
	return b.alias(&named, "", name, e.Alias)
}

const maxWindowsPerRow = 10_000

package bind

import (
	"slices"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

// newRelation checks the name of what is to be created. It returns nil, nil if it exists and IF NOT EXISTS was said.
func (b *binder) newRelation(kind catalog.Kind, name ast.Name, ifNotExists bool, stmt ast.Node) (*catalog.Relation, error) {
	schema := name.Schema()
	switch {
	case name.Catalog() != "" && name.Catalog() != b.env.Database:
		return nil, b.errorf(name, pgerr.FeatureNotSupported, "cross-database references are not implemented: %s", joined(name.Parts))
	case schema == catalog.PgCatalogSchema || schema == catalog.InformationSchema:
		return nil, b.errorf(name, pgerr.InsufficientPrivilege, "permission denied to create \"%s\": system catalog modifications are not allowed", joined(name.Parts))
	case !b.env.Catalog.HasSchema(schema):
		return nil, b.errorf(name, pgerr.InvalidSchemaName, "schema \"%s\" does not exist", schema).WithHint("There is one schema: %s.", catalog.PublicSchema)
	}
	if old := b.env.Catalog.Lookup(schema, name.Last()); old != nil {
		if ifNotExists {
			b.notices = append(b.notices, Notice{Code: pgerr.DuplicateTable, Message: "relation \"" + name.Last() + "\" already exists, skipping"})
			return nil, nil
		}
		return nil, b.errorf(name, pgerr.DuplicateTable, "relation \"%s\" already exists", name.Last())
	}
	r := &catalog.Relation{Schema: catalog.PublicSchema, Name: name.Last(), Kind: kind}
	if schema != "" {
		r.Schema = schema
	}
	r.Definition = stmt.Extent().Text(b.env.Text)
	return r, nil
}

// created ends a CREATE.
func (b *binder) created(r *catalog.Relation, at ast.Node, tag string) (*Create, error) {
	h, err := b.head(tag, nil)
	if err != nil {
		return nil, err
	}
	for _, id := range h.Reads {
		if on := b.env.Catalog.Relation(id); on != nil && on.Kind == catalog.SystemView {
			return nil, pgerr.Newf(pgerr.FeatureNotSupported, "a stored query cannot read the system view \"%s\"", on.Name)
		}
	}
	r.DependsOn = h.Reads
	if err := b.checkWrites(r, at); err != nil {
		return nil, err
	}
	return &Create{Head: h, Relation: r, IDs: b.ids}, nil
}

func (b *binder) nothing(tag string) (*Nothing, error) {
	h, err := b.head(tag, nil)
	return &Nothing{Head: h}, err
}

// definitions binds column definitions: first the types, so that expressions may name any column that is not generated, and
// generated ones before them; then DEFAULT, CHECK and the generated columns. more are columns that come behind.
func (b *binder) definitions(r *catalog.Relation, defs []ast.ColumnDef, more []catalog.Column) error {
	if len(defs)+len(more) > maxColumns {
		return b.errorf(defs[0], pgerr.TooManyColumns, "a relation can have at most %d columns", maxColumns)
	}
	seen := map[string]bool{}
	for _, d := range defs {
		if seen[d.Name.Name] {
			return b.errorf(d.Name, pgerr.DuplicateColumn, "column \"%s\" specified more than once", d.Name.Name)
		}
		seen[d.Name.Name] = true
		t, err := b.typeOf(d.Type)
		if err != nil {
			return err
		}
		r.Columns = append(r.Columns, catalog.Column{Name: d.Name.Name, Type: t})
	}
	for _, c := range more {
		if !c.Hidden && seen[c.Name] {
			return pgerr.Newf(pgerr.DuplicateColumn, "column \"%s\" specified more than once", c.Name).WithHint("Give the included column another name: INCLUDE %s AS name.", c.Include)
		}
		seen[c.Name] = true
		r.Columns = append(r.Columns, c)
	}
	plain := func(i int) bool { return i >= len(defs) || defs[i].Generated == nil }
	for i, d := range defs {
		if d.Generated == nil {
			continue
		}
		s := b.rowScope(r, func(j int) bool { return plain(j) || j < i })
		n, err := b.expr(place{scope: s, clause: "column generation expressions"}, d.Generated)
		if err != nil {
			if pgerr.Code(err) == pgerr.UndefinedColumn {
				return pgerr.From(err).WithHint("A generated column may refer to columns that are not generated and to generated ones before it.")
			}
			return err
		}
		if usesClock(n) {
			return b.errorf(d.Generated, pgerr.InvalidObjectDefinition, "generation expression is not immutable")
		}
		if r.Columns[i].Generated, err = b.assign(n, r.Columns[i], d.Generated); err != nil {
			return err
		}
		r.Columns[i].Generated = b.fold(r.Columns[i].Generated)
	}
	return nil
}

// rowScope is the scope of one row of a relation, with the columns that pass.
func (b *binder) rowScope(r *catalog.Relation, pass func(int) bool) *scope {
	s := &scope{tables: []string{r.Name}}
	for i, c := range r.Columns {
		if !c.Hidden && (pass == nil || pass(i)) {
			s.star = append(s.star, len(s.columns))
			s.columns = append(s.columns, scopeColumn{table: r.Name, schema: r.Schema, name: c.Name, index: i, typ: c.Type})
		}
	}
	s.span = len(r.Columns)
	return s
}

// assign casts a value to the type of the column that stores it.
func (b *binder) assign(n *expr.Node, c catalog.Column, at ast.Node) (*expr.Node, error) {
	if !expr.CanCast(n.Type, c.Type, expr.Assignment) {
		return nil, b.errorf(at, pgerr.DatatypeMismatch, "column \"%s\" is of type %s but expression is of type %s", c.Name, expr.TypeName(c.Type), expr.TypeName(n.Type)).
			WithHint("You will need to rewrite or cast the expression.")
	}
	return expr.CastTo(n, c.Type, expr.Assignment)
}

// createSource is CREATE SOURCE.
func (b *binder) createSource(s *ast.CreateSource) (Bound, error) {
	const tag = "CREATE SOURCE"
	b.stored = true
	if s.OrReplace {
		return nil, b.unsupported(s, "CREATE OR REPLACE SOURCE")
	}
	r, err := b.newRelation(catalog.Source, s.Name, s.IfNotExists, s)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return b.nothing(tag)
	}
	r.AppendOnly = true
	if err := b.connect(r, s); err != nil {
		return nil, err
	}
	if s.Star {
		return nil, b.unsupported(s, "a source whose columns come from its format (*)").WithHint("List the columns.")
	}
	if err := b.sourceColumns(r, s); err != nil {
		return nil, err
	}
	if err := b.watermark(r, s.Watermarks); err != nil {
		return nil, err
	}
	r.ID = b.ids.NextRelation()
	return b.created(r, s.Name, tag)
}

// connect checks connector, options, FORMAT and ENCODE of a source.
func (b *binder) connect(r *catalog.Relation, s *ast.CreateSource) error {
	connector := ""
	for _, o := range s.With {
		if o.Name == "connector" {
			connector = o.Value.Text
		}
	}
	known, ok := sourceOptions[connector]
	if connector == "" {
		return b.errorf(s.Name, pgerr.InvalidParameterValue, "source \"%s\" has no connector", r.Name).
			WithHint("Add WITH (connector = 'kafka', topic = 'name') for a topic of this node, or connector = 'nexmark' for the benchmark's generator.")
	}
	if !ok {
		return b.errorf(s.Name, pgerr.FeatureNotSupported, "connector '%s' is not supported yet", connector).
			WithHint("There are: kafka (a topic of this node, or of a cluster), nexmark.")
	}
	var err error
	if connector == "kafka" {
		if err := b.cluster(s.With); err != nil {
			return err
		}
		known = merged(known, clusterOptions)
	}
	r.Options, err = b.with(s.With, merged(known, map[string]option{"connector": oneOf(connector)}), "a source with connector '"+connector+"'")
	if err != nil {
		return err
	}
	r.Connector = connector
	if connector == "nexmark" {
		if r.Options["nexmark.table.type"] == "" {
			return b.errorf(s.Name, pgerr.InvalidParameterValue, "option \"nexmark.table.type\" is missing: 'bid', 'auction' or 'person'")
		}
		if r.Options["nexmark.event.num"] == "" {
			return b.errorf(s.Name, pgerr.InvalidParameterValue, "option \"nexmark.event.num\" is missing: how many events there are, of all kinds together")
		}
		if s.Format != nil {
			return b.errorf(s.Format, pgerr.InvalidParameterValue, "connector 'nexmark' makes rows: it takes no FORMAT")
		}
		return nil
	}
	if r.Topic = r.Options["topic"]; r.Topic == "" {
		return b.errorf(s.Name, pgerr.InvalidParameterValue, "option \"topic\" is missing")
	}
	if s.Format == nil {
		return b.errorf(s.Name, pgerr.InvalidParameterValue, "source \"%s\" has no FORMAT", r.Name).
			WithHint("Add FORMAT PLAIN ENCODE JSON (or TEXT, or BYTES) at the end.")
	}
	if s.Format.Format != "PLAIN" {
		return b.unsupported(s.Format, "FORMAT "+s.Format.Format+" of a source").WithHint("Use FORMAT PLAIN, or CREATE TABLE for rows with a key.")
	}
	if len(s.Format.Options) > 0 {
		return b.errorf(s.Format.Options[0], pgerr.InvalidParameterValue, "unknown option \"%s\" of ENCODE %s", s.Format.Options[0].Name, s.Format.Encode)
	}
	r.Format = "plain"
	switch s.Format.Encode {
	case "JSON":
		r.Encode = "json"
	case "TEXT":
		r.Encode = "text"
	case "BYTES":
		r.Encode = "bytes"
	default:
		return b.unsupported(s.Format, "ENCODE "+s.Format.Encode).WithHint("There are JSON, TEXT and BYTES.")
	}
	return nil
}

// sourceColumns binds the columns of a source, and those of INCLUDE behind them.
func (b *binder) sourceColumns(r *catalog.Relation, s *ast.CreateSource) error {
	var more []catalog.Column
	for _, in := range s.Include {
		c := catalog.Column{Name: in.As.Name, Include: in.What.Name}
		if c.Name == "" {
			c.Name = in.What.Name
		}
		switch in.What.Name {
		case catalog.IncludePartition:
			c.Type, c.NotNull = column.TInt32, true
		case catalog.IncludeOffset:
			c.Type, c.NotNull = column.TInt64, true
		case catalog.IncludeTimestamp:
			c.Type = column.TTimestamptz
		case catalog.IncludeKey:
			c.Type = column.TBytea
		default:
			return b.unsupported(in, "INCLUDE "+in.What.Name).WithHint("There are partition, offset, timestamp and key.")
		}
		if r.Connector != "kafka" {
			return b.errorf(in, pgerr.InvalidParameterValue, "connector '%s' has no records: nothing can be included", r.Connector)
		}
		more = append(more, c)
	}
	defs := s.Columns
	if r.Connector == "nexmark" {
		var err error
		if defs, err = b.nexmarkColumns(r, s); err != nil {
			return err
		}
	}
	if len(defs) == 0 {
		return b.errorf(s.Name, pgerr.InvalidObjectDefinition, "source \"%s\" has no columns", r.Name)
	}
	for i, d := range defs {
		for _, c := range d.Constraints {
			switch c.Kind {
			case ast.NotNullConstraint, ast.NullConstraint:
			default:
				return b.sourceConstraint(c)
			}
		}
		plain := d.Generated == nil
		if (r.Encode == "text" || r.Encode == "bytes") && plain != (i == 0) {
			return b.errorf(d, pgerr.InvalidObjectDefinition, "a source with ENCODE %s has one column for the record's value, then only generated ones", s.Format.Encode).
				WithHint("Write further columns as: name type AS (expression).")
		}
	}
	for _, c := range s.Constraints {
		return b.sourceConstraint(c)
	}
	if err := b.definitions(r, defs, more); err != nil {
		return err
	}
	for i, d := range defs {
		for _, c := range d.Constraints {
			r.Columns[i].NotNull = r.Columns[i].NotNull || c.Kind == ast.NotNullConstraint
		}
	}
	want := map[string]column.Kind{"text": column.Text, "bytes": column.Bytea}[r.Encode]
	if got := r.Columns[0].Type; want != column.Unknown && got.Kind != want {
		return b.errorf(defs[0].Type, pgerr.DatatypeMismatch, "with ENCODE %s the first column is the record's value and must be of type %s, not %s",
			s.Format.Encode, want, expr.TypeName(got))
	}
	return nil
}

func (b *binder) sourceConstraint(c ast.Constraint) error {
	switch c.Kind {
	case ast.PrimaryKeyConstraint:
		return b.errorf(c, pgerr.FeatureNotSupported, "a source has no primary key: it is a stream, which keeps no rows").WithHint("Use CREATE TABLE.")
	case ast.DefaultConstraint:
		return b.unsupported(c, "DEFAULT in a source")
	case ast.CheckConstraint:
		return b.unsupported(c, "CHECK in a source").WithHint("Filter in a view.")
	}
	return b.unsupported(c, "this constraint of a source")
}

// watermark accepts WATERMARK FOR c AS c and c - a constant interval.
func (b *binder) watermark(r *catalog.Relation, marks []ast.Watermark) error {
	ahead, bounded := parseInterval(r.Options[maxAheadOption])
	if len(marks) == 0 {
		if bounded {
			return pgerr.Newf(pgerr.InvalidParameterValue, "option \"%s\" is for a source with a WATERMARK", maxAheadOption)
		}
		return nil
	}
	if len(marks) > 1 {
		return b.errorf(marks[1], pgerr.InvalidObjectDefinition, "a source can have only one watermark")
	}
	m := marks[0]
	i := r.Column(m.Column.Name)
	if i < 0 {
		return b.errorf(m.Column, pgerr.UndefinedColumn, "column \"%s\" does not exist", m.Column.Name)
	}
	if k := r.Columns[i].Type.Kind; k != column.Timestamp && k != column.Timestamptz {
		return b.errorf(m.Column, pgerr.DatatypeMismatch, "the watermark column must be of type timestamp or timestamptz, not %s", expr.TypeName(r.Columns[i].Type))
	}
	delay, ok, err := b.watermarkDelay(r, m, i)
	if err != nil {
		return err
	}
	if !ok {
		return b.unsupported(m.Expr, "a watermark other than the column itself less a constant interval").
			WithHint("Write WATERMARK FOR %s AS %s - INTERVAL '5 seconds'.", m.Column.Name, m.Column.Name)
	}
	r.Watermark = &catalog.Watermark{Column: i, Delay: delay}
	if bounded {
		r.Watermark.MaxAhead = max(ahead, 1)
	}
	return nil
}

// watermarkDelay is how far a watermark expression stays behind its column: c, or c - INTERVAL '...'.
func (b *binder) watermarkDelay(r *catalog.Relation, m ast.Watermark, column int) (int64, bool, error) {
	p := place{scope: b.rowScope(r, nil), clause: "WATERMARK"}
	var late ast.Expr
	at := m.Expr
	if e, ok := m.Expr.(*ast.Binary); ok && e.Op.Name == "-" {
		at, late = e.L, e.R
	}
	ref, ok := at.(*ast.ColumnRef)
	if !ok {
		return 0, false, nil
	}
	c, err := b.lookup(p.scope, ref)
	if err != nil || c.index != column || late == nil {
		return 0, err == nil && c.index == column, err
	}
	delay, err := b.windowInterval(late, "delay of a watermark")
	if err != nil {
		return 0, false, err
	}
	if delay < 0 {
		return 0, false, b.errorf(late, pgerr.InvalidParameterValue, "the delay of a watermark must not be negative")
	}
	return delay, true, nil
}

// nexmarkSchemas are the columns of the benchmark's events.
var nexmarkSchemas = map[string][]catalog.Column{
	"bid": {
		{Name: "auction", Type: column.TInt64},
		{Name: "bidder", Type: column.TInt64},
		{Name: "price", Type: column.TInt64},
		{Name: "channel", Type: column.TVarchar},
		{Name: "url", Type: column.TVarchar},
		{Name: "date_time", Type: column.TTimestamp},
		{Name: "extra", Type: column.TVarchar},
	},
	"auction": {
		{Name: "id", Type: column.TInt64},
		{Name: "item_name", Type: column.TVarchar},
		{Name: "description", Type: column.TVarchar},
		{Name: "initial_bid", Type: column.TInt64},
		{Name: "reserve", Type: column.TInt64},
		{Name: "date_time", Type: column.TTimestamp},
		{Name: "expires", Type: column.TTimestamp},
		{Name: "seller", Type: column.TInt64},
		{Name: "category", Type: column.TInt64},
		{Name: "extra", Type: column.TVarchar},
	},
	"person": {
		{Name: "id", Type: column.TInt64},
		{Name: "name", Type: column.TVarchar},
		{Name: "email_address", Type: column.TVarchar},
		{Name: "credit_card", Type: column.TVarchar},
		{Name: "city", Type: column.TVarchar},
		{Name: "state", Type: column.TVarchar},
		{Name: "date_time", Type: column.TTimestamp},
		{Name: "extra", Type: column.TVarchar},
	},
}

// nexmarkColumns: no columns given means all of the event's; those that are given must be the event's, by name and type.
func (b *binder) nexmarkColumns(r *catalog.Relation, s *ast.CreateSource) ([]ast.ColumnDef, error) {
	event := r.Options["nexmark.table.type"]
	schema := nexmarkSchemas[event]
	given := false
	for _, d := range s.Columns {
		if d.Generated != nil {
			continue
		}
		given = true
		i := slices.IndexFunc(schema, func(c catalog.Column) bool { return c.Name == d.Name.Name })
		if i < 0 {
			return nil, b.errorf(d.Name, pgerr.UndefinedColumn, "a nexmark %s has no column \"%s\"", event, d.Name.Name)
		}
		t, err := b.typeOf(d.Type)
		if err != nil {
			return nil, err
		}
		want := schema[i].Type
		if !t.SameValues(want) && (want.Kind != column.Timestamp || t.Kind != column.Timestamptz) {
			return nil, b.errorf(d.Type, pgerr.DatatypeMismatch, "column \"%s\" of a nexmark %s is of type %s, not %s", d.Name.Name, event, want, t)
		}
	}
	if given {
		return s.Columns, nil
	}
	var out []ast.ColumnDef
	for _, c := range schema {
		out = append(out, ast.ColumnDef{Name: ast.Ident{Name: c.Name}, Type: nexmarkTypes[c.Type.Kind]})
	}
	return append(out, s.Columns...), nil
}

var nexmarkTypes = map[column.Kind]ast.TypeName{
	column.Int64: {Name: "int8"}, column.Text: {Name: "varchar"}, column.Timestamp: {Name: "timestamp"},
}

// drop is DROP of relations.
func (b *binder) drop(s *ast.Drop) (Bound, error) {
	tag := "DROP " + s.Kind.String()
	kind, ok := map[ast.ObjectKind]catalog.Kind{
		ast.SourceObject: catalog.Source, ast.TableObject: catalog.Table, ast.ViewObject: catalog.View,
		ast.MaterializedViewObject: catalog.MaterializedView, ast.SinkObject: catalog.Sink,
	}[s.Kind]
	if !ok {
		return nil, b.unsupported(s, tag)
	}
	out := &Drop{Cascade: s.Cascade}
	var ids []uint64
	for _, n := range s.Names {
		r, err := b.relation(n)
		switch {
		case err != nil && s.IfExists && pgerr.Code(err) == pgerr.UndefinedTable:
			b.notice("%s \"%s\" does not exist, skipping", kind, n.Last())
			continue
		case err != nil && pgerr.Code(err) == pgerr.UndefinedTable:
			return nil, b.errorf(n, pgerr.UndefinedTable, "%s \"%s\" does not exist", kind, joined(n.Parts))
		case err != nil:
			return nil, err
		case r.Kind != kind:
			return nil, b.errorf(n, pgerr.WrongObjectType, "\"%s\" is not a %s", n.Last(), kind).WithHint("Use DROP %s to remove a %s.", dropWords[r.Kind], r.Kind)
		}
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
			out.Relations = append(out.Relations, r)
		}
	}
	if len(ids) == 0 {
		return b.nothing(tag)
	}
	_, dropped, _, err := b.env.Catalog.Drop(ids, s.Cascade)
	if err != nil {
		return nil, err
	}
	for _, r := range dropped {
		if !slices.Contains(ids, r.ID) {
			b.notice("drop cascades to %s %s", r.Kind, r.QualifiedName())
		}
	}
	out.Head, err = b.head(tag, nil)
	return out, err
}

var dropWords = map[catalog.Kind]string{
	catalog.Source: "SOURCE", catalog.Table: "TABLE", catalog.View: "VIEW", catalog.MaterializedView: "MATERIALIZED VIEW", catalog.Sink: "SINK",
}

// relationColumns are the catalog's columns of a plan's root.
func relationColumns(cols []plan.Column) []catalog.Column {
	out := make([]catalog.Column, len(cols))
	for i, c := range cols {
		out[i] = catalog.Column{Name: c.Name, Type: c.Type, Hidden: c.Hidden}
	}
	return out
}

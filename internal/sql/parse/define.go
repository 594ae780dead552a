package parse

import (
	"strings"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// create takes CREATE of anything.
func (p *parser) create() ast.Stmt {
	from := p.tok.from
	p.expect("create")
	replace := p.acceptSeq("or", "replace")
	temporary := p.is("temp", "temporary")
	if temporary {
		p.advance()
	}
	unique := p.is("unique") && p.peek(1).word("index")
	if unique {
		p.advance()
	}
	refuse := func(what string, said bool) {
		if said {
			p.unexpected(what)
		}
	}
	switch {
	case p.is("source"):
		refuse("TABLE or VIEW", temporary)
		return p.createSource(from, replace)
	case p.is("table"):
		refuse("VIEW, SOURCE or SINK", replace)
		return p.createTable(from, temporary)
	case p.is("view"), p.isSeq("materialized", "view"):
		return p.createView(from, replace, temporary)
	case p.is("sink"):
		refuse("TABLE or VIEW", temporary)
		return p.createSink(from, replace)
	case p.is("index"):
		refuse("VIEW, SOURCE or SINK", replace || temporary)
		return p.createIndex(from, unique)
	case p.is("schema"):
		refuse("VIEW, SOURCE or SINK", replace || temporary)
		return p.createSchema(from)
	case p.is("function", "procedure", "type", "domain", "extension", "role", "user", "database", "sequence", "trigger",
		"aggregate", "operator", "cast", "collation", "rule", "policy", "publication", "subscription", "server", "foreign",
		"language", "tablespace", "statistics", "event", "group", "connection", "secret", "catalog", "conversion",
		"transform", "access", "text", "unlogged", "model"):
		verb := "CREATE " + strings.ToUpper(p.advance().text)
		rest := p.rest()
		return &ast.Other{Span: p.span(from), Verb: verb, Rest: rest}
	}
	p.unexpected("SOURCE, TABLE, VIEW, MATERIALIZED VIEW, SINK, INDEX or SCHEMA")
	return nil
}

func (p *parser) ifNotExists() bool {
	if !p.is("if") || !p.peek(1).word("not") {
		return false
	}
	p.expect("if", "not", "exists")
	return true
}

// relationBody is what stands in the parentheses of CREATE SOURCE and CREATE TABLE.
type relationBody struct {
	columns     []ast.ColumnDef
	constraints []ast.Constraint
	watermarks  []ast.Watermark
	star        bool
}

// body takes (columns, constraints, watermarks).
func (p *parser) body() (b relationBody) {
	p.expectPunct("(")
	if p.acceptPunct(")") {
		return b
	}
	for {
		from := p.tok.from
		switch {
		case p.tok.op("*"):
			p.advance()
			b.star = true
		case p.is("watermark") && p.peek(1).word("for"):
			p.advance()
			p.expect("for")
			w := ast.Watermark{Column: p.name("a column name")}
			p.expect("as")
			w.Expr = p.expr()
			w.Span = p.span(from)
			b.watermarks = append(b.watermarks, w)
		case p.is("constraint", "primary", "unique", "check", "foreign", "exclude") && p.constraintComes():
			b.constraints = append(b.constraints, p.tableConstraint())
		case p.is("like"):
			p.unsupported(from, "LIKE in CREATE TABLE", "Name the columns.")
		default:
			b.columns = append(b.columns, p.columnDef())
		}
		if !p.acceptPunct(",") {
			break
		}
	}
	p.expectPunct(")")
	return b
}

// constraintComes tells the constraint EXCLUDE from a column of that name; the other words are reserved.
func (p *parser) constraintComes() bool {
	if !p.is("exclude") {
		return true
	}
	if p.peek(1).punct("(") || p.peek(1).word("using") {
		p.unsupported(p.tok.from, "an EXCLUDE constraint", "")
	}
	return false
}

func (p *parser) columnDef() ast.ColumnDef {
	from := p.tok.from
	c := ast.ColumnDef{Name: p.name("a column name")}
	if !p.is("as") {
		c.Type = p.typeName()
	}
	if p.is("as") {
		p.generated(&c)
	}
	for {
		at := p.tok.from
		var named ast.Ident
		if p.accept("constraint") {
			named = p.name("a constraint's name")
		}
		if p.is("generated") && c.Generated == nil && !p.identityComes() {
			p.expect("generated", "always")
			p.generated(&c)
			continue
		}
		k, ok := p.columnConstraint()
		if !ok {
			if named.Given() {
				p.unexpected("a constraint")
			}
			c.Span = p.span(from)
			return c
		}
		k.Name = named
		k.Span = p.span(at)
		c.Constraints = append(c.Constraints, k)
	}
}

// generated takes AS (expr) [STORED].
func (p *parser) generated(c *ast.ColumnDef) {
	p.expect("as")
	c.Generated = p.expr()
	if c.Stored = p.accept("stored"); !c.Stored {
		p.accept("virtual")
	}
}

// identityComes reports whether GENERATED begins an identity rather than a generated column.
func (p *parser) identityComes() bool {
	return p.peek(1).word("by") || p.peek(1).word("always") && p.peek(2).word("as") && p.peek(3).word("identity")
}

// columnConstraint takes a constraint of a column, without its name.
func (p *parser) columnConstraint() (k ast.Constraint, ok bool) {
	switch {
	case p.acceptSeq("not", "null"):
		k.Kind = ast.NotNullConstraint
	case p.accept("null"):
		k.Kind = ast.NullConstraint
	case p.accept("default"):
		k.Kind = ast.DefaultConstraint
		k.Expr = p.exprAt(ast.PrecCompare)
	case p.is("generated"):
		k.Kind = ast.IdentityConstraint
		p.advance()
		if k.Always = p.accept("always"); !k.Always {
			p.expect("by", "default")
		}
		p.expect("as", "identity")
		if p.tok.punct("(") {
			p.unsupported(p.tok.from, "options of an identity", "")
		}
	case p.is("references"):
		k.Kind = ast.ForeignKeyConstraint
		p.references(&k)
	default:
		if !p.keyOrCheck(&k, false) {
			return k, false
		}
	}
	return k, true
}

// keyOrCheck takes CHECK, PRIMARY KEY or UNIQUE; a table's has columns.
func (p *parser) keyOrCheck(k *ast.Constraint, columns bool) bool {
	switch {
	case p.accept("check"):
		k.Kind = ast.CheckConstraint
		p.expectPunct("(")
		k.Expr = p.expr()
		p.expectPunct(")")
		p.acceptSeq("no", "inherit")
		return true
	case p.accept("primary"):
		p.expect("key")
		k.Kind = ast.PrimaryKeyConstraint
	case p.accept("unique"):
		k.Kind = ast.UniqueConstraint
	default:
		return false
	}
	if columns {
		k.Columns = p.columns()
	}
	k.NotEnforced = p.acceptSeq("not", "enforced")
	return true
}

func (p *parser) tableConstraint() (k ast.Constraint) {
	from := p.tok.from
	if p.accept("constraint") {
		k.Name = p.name("a constraint's name")
	}
	switch {
	case p.accept("foreign"):
		p.expect("key")
		k.Kind = ast.ForeignKeyConstraint
		k.Columns = p.columns()
		p.references(&k)
	case p.keyOrCheck(&k, true):
	default:
		p.unexpected("PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY")
	}
	k.Span = p.span(from)
	return k
}

// references takes REFERENCES table (columns) and its actions.
func (p *parser) references(k *ast.Constraint) {
	p.expect("references")
	k.RefTable = p.qualified("a table")
	k.RefColumns = p.optionalColumns()
	var words []string
	for {
		switch {
		case p.is("match"), p.is("on") && (p.peek(1).word("delete") || p.peek(1).word("update")):
			if p.advance().text == "match" {
				words = append(words, "MATCH", p.expectWord("full", "partial", "simple"))
				continue
			}
			words = append(words, "ON", p.expectWord("delete", "update"))
			switch {
			case p.acceptSeq("no", "action"):
				words = append(words, "NO ACTION")
			case p.accept("set"):
				words = append(words, "SET", p.expectWord("null", "default"))
			default:
				words = append(words, p.expectWord("cascade", "restrict"))
			}
		default:
			k.RefActions = strings.Join(words, " ")
			return
		}
	}
}

// once fails if a clause comes for the second time.
func (p *parser) once(said bool, clause string) {
	if said {
		p.failAt(pgerr.SyntaxError, p.tok.from, "conflicting or redundant options: %s is given twice", clause)
	}
}

// tailClause takes one of the clauses that a source, a table and a sink have in common.
func (p *parser) tailClause(include *[]ast.Include, with *[]ast.Option, format **ast.FormatSpec) bool {
	switch {
	case include != nil && p.is("include"):
		p.include(include)
	case p.is("with") && p.peek(1).punct("("):
		p.once(*with != nil, "WITH")
		p.advance()
		*with = p.options(true)
	case p.is("format"):
		p.once(*format != nil, "FORMAT")
		*format = p.format()
	default:
		return false
	}
	return true
}

// include takes INCLUDE a [AS b], c [AS d].
func (p *parser) include(list *[]ast.Include) {
	p.expect("include")
	for {
		from := p.tok.from
		i := ast.Include{What: p.label("partition, offset, timestamp, key or headers")}
		if p.accept("as") {
			i.As = p.label("a column name")
		}
		i.Span = p.span(from)
		*list = append(*list, i)
		if !p.acceptPunct(",") {
			return
		}
	}
}

// format takes FORMAT x ENCODE y [(options)].
func (p *parser) format() *ast.FormatSpec {
	from := p.tok.from
	p.expect("format")
	f := &ast.FormatSpec{Format: p.formatWord("PLAIN or UPSERT")}
	p.expect("encode")
	f.Encode = p.formatWord("JSON, TEXT or BYTES")
	if p.tok.punct("(") {
		f.Options = p.options(true)
	}
	f.Span = p.span(from)
	return f
}

func (p *parser) formatWord(what string) string {
	if p.tok.kind != tokWord {
		p.unexpected(what)
	}
	return strings.ToUpper(p.advance().text)
}

// options takes (name = value, ...). Without strict, as in EXPLAIN and COPY, the sign may be missing, and so may the value.
func (p *parser) options(strict bool) []ast.Option {
	p.expectPunct("(")
	list := []ast.Option{}
	if strict && p.acceptPunct(")") {
		return list
	}
	for {
		from := p.tok.from
		o := ast.Option{Name: p.optionName()}
		equals := p.tok.op("=")
		if equals {
			p.advance()
		} else if strict {
			p.unexpected(`"="`)
		}
		if equals || !p.tok.punct(",") && !p.tok.punct(")") {
			o.Value = p.optionValue()
		}
		o.Span = p.span(from)
		list = append(list, o)
		if !p.acceptPunct(",") {
			break
		}
	}
	p.expectPunct(")")
	return list
}

// optionName takes the name of an option: words with dots between them, or a string.
func (p *parser) optionName() string {
	if p.tok.kind == tokString {
		at := p.tok.from
		name := p.advance().text
		if name == "" {
			p.failAt(pgerr.SyntaxError, at, "the name of an option is empty")
		}
		return name
	}
	name := p.label("the name of an option").Name
	for p.acceptPunct(".") {
		name += "." + p.label("the name of an option").Name
	}
	return name
}

// optionValue takes a string, a number or a word.
func (p *parser) optionValue() ast.OptionValue {
	from := p.tok.from
	v := ast.OptionValue{}
	switch {
	case p.tok.kind == tokString:
		v.Kind = ast.OptionString
	case p.tok.kind == tokNumber:
		v.Kind = ast.OptionNumber
	case (p.tok.op("-") || p.tok.op("+")) && p.peek(1).kind == tokNumber:
		v.Kind = ast.OptionNumber
		if p.advance().text == "-" {
			v.Text = "-"
		}
	case isLabelToken(p.tok):
		v.Kind = ast.OptionWord
	default:
		p.unexpected("a value: a string, a number or a word")
	}
	v.Text += p.advance().text
	v.Span = p.span(from)
	return v
}

func (p *parser) createSource(from int, replace bool) ast.Stmt {
	p.expect("source")
	s := &ast.CreateSource{OrReplace: replace, IfNotExists: p.ifNotExists(), Name: p.qualified("a name for the source")}
	if p.tok.punct("(") {
		b := p.body()
		s.Columns, s.Constraints, s.Watermarks, s.Star = b.columns, b.constraints, b.watermarks, b.star
	}
	for p.tailClause(&s.Include, &s.With, &s.Format) {
	}
	s.Span = p.span(from)
	return s
}

func (p *parser) createTable(from int, temporary bool) ast.Stmt {
	p.expect("table")
	t := &ast.CreateTable{Temporary: temporary, IfNotExists: p.ifNotExists(), Name: p.qualified("a name for the table")}
	if p.tok.punct("(") {
		if next := p.peek(2); isNameToken(p.peek(1)) && (next.punct(",") || next.punct(")")) {
			t.ColumnNames = p.columns()
			if !p.is("as", "with") {
				p.unexpected("AS")
			}
		} else {
			b := p.body()
			if b.star {
				p.failAt(pgerr.SyntaxError, from, "a table's columns must be named: * is for sources")
			}
			t.Columns, t.Constraints, t.Watermarks = b.columns, b.constraints, b.watermarks
		}
	}
	for {
		switch {
		case p.is("append"):
			p.once(t.AppendOnly, "APPEND ONLY")
			p.expect("append", "only")
			t.AppendOnly = true
		case p.is("on"):
			p.once(t.OnConflict != ast.ConflictUnsaid, "ON CONFLICT")
			p.expect("on", "conflict")
			switch {
			case p.accept("overwrite"):
				t.OnConflict = ast.ConflictOverwrite
			case p.accept("ignore"), p.acceptSeq("do", "nothing"):
				t.OnConflict = ast.ConflictIgnore
			default:
				p.unexpected("OVERWRITE, IGNORE or DO NOTHING")
			}
		case p.is("as") && t.Query == nil:
			p.advance()
			if t.Columns != nil || t.Constraints != nil || t.Watermarks != nil {
				p.failAt(pgerr.SyntaxError, p.tok.from, "CREATE TABLE AS takes the names of columns, without types")
			}
			t.Query = p.query()
			t.WithNoData = p.withNoData()
		case p.tailClause(&t.Include, &t.With, &t.Format):
		default:
			if t.ColumnNames != nil && t.Query == nil {
				p.unexpected("AS")
			}
			t.Span = p.span(from)
			return t
		}
	}
}

// withNoData takes WITH [NO] DATA after the query of a table or view.
func (p *parser) withNoData() bool {
	if p.acceptSeq("with", "no", "data") {
		return true
	}
	p.acceptSeq("with", "data")
	return false
}

func (p *parser) createView(from int, replace, temporary bool) ast.Stmt {
	v := &ast.CreateView{OrReplace: replace, Temporary: temporary, Materialized: p.accept("materialized")}
	p.expect("view")
	v.IfNotExists = p.ifNotExists()
	v.Name = p.qualified("a name for the view")
	v.Columns = p.optionalColumns()
	if p.accept("with") {
		v.With = p.options(true)
	}
	p.expect("as")
	v.Query = p.query()
	v.WithNoData = p.withNoData()
	if at := p.tok.from; p.is("with") && !p.peek(1).punct("(") {
		p.unsupported(at, "WITH CHECK OPTION", "")
	}
	v.Span = p.span(from)
	return v
}

func (p *parser) createSink(from int, replace bool) ast.Stmt {
	p.expect("sink")
	s := &ast.CreateSink{OrReplace: replace, IfNotExists: p.ifNotExists(), Name: p.qualified("a name for the sink")}
	if p.accept("into") {
		s.Into = p.qualified("a table")
	}
	for p.tailClause(nil, &s.With, &s.Format) {
	}
	switch {
	case p.accept("from"):
		s.From = p.qualified("a relation")
	case p.accept("as"):
		s.Query = p.query()
	default:
		p.unexpected("FROM relation or AS query")
	}
	for p.tailClause(nil, &s.With, &s.Format) {
	}
	s.Span = p.span(from)
	return s
}

func (p *parser) createIndex(from int, unique bool) ast.Stmt {
	p.expect("index")
	i := &ast.CreateIndex{Unique: unique, Concurrently: p.accept("concurrently"), IfNotExists: p.ifNotExists()}
	if !p.is("on") {
		i.Name = p.name("a name for the index")
	}
	p.expect("on")
	i.Table = p.qualified("a table")
	if p.accept("using") {
		i.Method = p.name("an index method")
	}
	p.expectPunct("(")
	for {
		at := p.tok.from
		item := ast.IndexItem{Expr: p.expr()}
		if item.Desc = p.accept("desc"); !item.Desc {
			p.accept("asc")
		}
		item.Nulls = p.nullsOrder()
		item.Span = p.span(at)
		i.Items = append(i.Items, item)
		if !p.acceptPunct(",") {
			break
		}
	}
	p.expectPunct(")")
	if p.accept("include") {
		i.Include = p.columns()
	}
	if p.accept("with") {
		i.With = p.options(true)
	}
	if p.accept("where") {
		i.Where = p.expr()
	}
	i.Span = p.span(from)
	return i
}

func (p *parser) createSchema(from int) ast.Stmt {
	p.expect("schema")
	s := &ast.CreateSchema{IfNotExists: p.ifNotExists()}
	s.Name = p.name("a name for the schema")
	s.Span = p.span(from)
	return s
}

var objectKinds = map[string]ast.ObjectKind{
	"source": ast.SourceObject, "table": ast.TableObject, "view": ast.ViewObject, "sink": ast.SinkObject,
	"index": ast.IndexObject, "schema": ast.SchemaObject, "connection": ast.ConnectionObject,
	"function": ast.FunctionObject, "secret": ast.SecretObject, "database": ast.DatabaseObject, "user": ast.UserObject,
	"job": ast.JobObject, "subscription": ast.SubscriptionObject, "column": ast.ColumnObject,
}

// objectKind takes SOURCE, TABLE, MATERIALIZED VIEW and so on.
func (p *parser) objectKind(what string) ast.ObjectKind {
	if p.acceptSeq("materialized", "view") {
		return ast.MaterializedViewObject
	}
	kind, ok := objectKinds[p.tok.text]
	if p.tok.kind != tokWord || !ok {
		p.unexpected(what)
	}
	p.advance()
	return kind
}

const objectKindList = "SOURCE, TABLE, VIEW, MATERIALIZED VIEW, SINK, INDEX or SCHEMA"

func (p *parser) drop() ast.Stmt {
	from := p.tok.from
	p.expect("drop")
	if p.is("function") || p.is("type", "domain", "extension", "role", "sequence", "trigger", "aggregate", "operator",
		"cast", "collation", "rule", "policy", "publication", "server", "owned") {
		verb := "DROP " + strings.ToUpper(p.advance().text)
		rest := p.rest()
		return &ast.Other{Span: p.span(from), Verb: verb, Rest: rest}
	}
	d := &ast.Drop{Kind: p.objectKind(objectKindList), IfExists: p.acceptSeq("if", "exists")}
	d.Names = p.names("a name")
	if d.Cascade = p.accept("cascade"); !d.Cascade {
		p.accept("restrict")
	}
	d.Span = p.span(from)
	return d
}

func (p *parser) alter() ast.Stmt {
	from := p.tok.from
	p.expect("alter")
	if p.accept("system") {
		s := &ast.Set{Scope: ast.ScopeSystem}
		p.expect("set")
		p.setting(s)
		s.Span = p.span(from)
		return s
	}
	if p.is("default", "role", "group", "type", "sequence", "extension", "domain", "aggregate", "operator", "policy",
		"publication", "server") {
		verb := "ALTER " + strings.ToUpper(p.advance().text)
		rest := p.rest()
		return &ast.Other{Span: p.span(from), Verb: verb, Rest: rest}
	}
	a := &ast.Alter{Kind: p.objectKind(objectKindList), IfExists: p.acceptSeq("if", "exists")}
	a.Name = p.qualified("a name")
	if a.RestPos = p.tok.from; p.tok.kind == tokEOF || p.tok.punct(";") {
		p.unexpected("what to alter")
	}
	a.Rest = p.rest()
	a.Span = p.span(from)
	return a
}

func (p *parser) comment() ast.Stmt {
	from := p.tok.from
	p.expect("comment", "on")
	c := &ast.Comment{Kind: p.objectKind(objectKindList + " or COLUMN")}
	at := p.tok.from
	parts := []ast.Ident{p.name("a name")}
	for p.acceptPunct(".") {
		parts = append(parts, p.label("a name"))
	}
	c.Name = ast.Name{Span: p.span(at), Parts: parts}
	p.expect("is")
	if !p.accept("null") {
		c.Text = p.text("a string or NULL")
	}
	c.Span = p.span(from)
	return c
}

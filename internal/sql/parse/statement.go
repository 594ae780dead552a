package parse

import (
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// statement takes one statement.
func (p *parser) statement() ast.Stmt {
	p.enter()
	defer p.leave()
	from := p.tok.from
	if p.tok.punct("(") || p.is("select", "values", "table") {
		return p.query()
	}
	if p.tok.kind != tokWord {
		p.unexpected("a statement")
	}
	switch p.tok.text {
	case "with":
		with := p.with()
		if p.is("insert", "update", "delete") {
			return p.change(from, with)
		}
		return p.queryAfterWith(from, with)
	case "insert", "update", "delete":
		return p.change(from, nil)
	case "create":
		return p.create()
	case "drop":
		return p.drop()
	case "alter":
		return p.alter()
	case "comment":
		return p.comment()
	case "truncate":
		return p.truncate()
	case "begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release":
		return p.transaction()
	case "set":
		return p.set()
	case "reset":
		return p.reset()
	case "show", "describe", "desc":
		return p.show()
	case "explain":
		return p.explain()
	case "flush":
		p.advance()
		return &ast.Flush{Span: p.span(from)}
	case "subscribe":
		return p.subscribe()
	case "discard":
		p.advance()
		what := p.expectWord("all", "plans", "sequences", "temp", "temporary")
		return &ast.Discard{Span: p.span(from), What: strings.TrimSuffix(what, "ORARY")}
	case "prepare", "execute", "deallocate":
		return p.prepared()
	case "copy":
		return p.copy()
	case "declare", "fetch", "move", "close":
		return p.cursor()
	case "listen", "unlisten", "notify":
		return p.listen()
	case "vacuum", "analyze", "analyse", "grant", "revoke", "lock", "checkpoint", "cluster", "reindex", "refresh", "do",
		"call", "load", "merge", "security", "import", "reassign", "cancel", "kill", "use", "recover":
		verb := strings.ToUpper(p.advance().text)
		rest := p.rest()
		return &ast.Other{Span: p.span(from), Verb: verb, Rest: rest}
	}
	p.unexpected("a statement, such as SELECT or CREATE")
	return nil
}

// change takes INSERT, UPDATE or DELETE after its WITH.
func (p *parser) change(from int, with *ast.With) ast.Stmt {
	switch p.advance().text {
	case "insert":
		return p.insert(from, with)
	case "update":
		u := &ast.Update{With: with, Table: p.target()}
		p.expect("set")
		u.Set = p.assignments()
		if p.accept("from") {
			u.From = p.fromItems()
		}
		u.Where, u.Returning = p.whereReturning()
		u.Span = p.span(from)
		return u
	default:
		p.expect("from")
		d := &ast.Delete{With: with, Table: p.target()}
		if p.accept("using") {
			d.Using = p.fromItems()
		}
		d.Where, d.Returning = p.whereReturning()
		d.Span = p.span(from)
		return d
	}
}

// target takes the table of UPDATE and DELETE, with its alias.
func (p *parser) target() ast.Table {
	from := p.tok.from
	t := p.relation()
	t.Alias = p.alias(false)
	t.Span = p.span(from)
	return *t
}

func (p *parser) whereReturning() (where ast.Expr, returning []ast.SelectItem) {
	if p.accept("where") {
		if p.isSeq("current", "of") {
			p.unsupported(p.tok.from, "WHERE CURRENT OF", "Name the rows by their key.")
		}
		where = p.expr()
	}
	if p.accept("returning") {
		returning = p.selectItems()
	}
	return where, returning
}

func (p *parser) assignments() (list []ast.Assignment) {
	for {
		from := p.tok.from
		var a ast.Assignment
		if p.tok.punct("(") {
			a.Multi = true
			a.Columns = p.columns()
		} else {
			a.Columns = []ast.Ident{p.name("a column name")}
			if p.tok.punct("[") || p.tok.punct(".") {
				p.unsupported(p.tok.from, "assigning to a part of a column", "Assign the whole column.")
			}
		}
		if !p.tok.op("=") {
			p.unexpected(`"="`)
		}
		p.advance()
		a.Value = p.expr()
		a.Span = p.span(from)
		list = append(list, a)
		if !p.acceptPunct(",") {
			return list
		}
	}
}

func (p *parser) insert(from int, with *ast.With) ast.Stmt {
	p.expect("into")
	s := &ast.Insert{With: with, Table: p.qualified("a table")}
	if p.accept("as") {
		s.Alias = p.name("an alias")
	}
	if p.tok.punct("(") && !startsQuery(p.peek(1)) && !p.peek(1).punct("(") {
		s.Columns = p.columns()
	}
	if p.accept("overriding") {
		s.Overriding = p.expectWord("system", "user")
		p.expect("value")
	}
	if p.accept("default") {
		p.expect("values")
	} else {
		s.Query = p.query()
	}
	if p.is("on") {
		s.OnConflict = p.onConflict()
	}
	if p.accept("returning") {
		s.Returning = p.selectItems()
	}
	s.Span = p.span(from)
	return s
}

func (p *parser) onConflict() *ast.OnConflict {
	from := p.tok.from
	p.expect("on", "conflict")
	c := &ast.OnConflict{}
	switch {
	case p.tok.punct("("):
		c.Columns = p.columns()
		if p.is("where") {
			p.unsupported(p.tok.from, "a predicate in ON CONFLICT's target", "")
		}
	case p.accept("on"):
		p.expect("constraint")
		c.Constraint = p.name("a constraint")
	}
	p.expect("do")
	if c.Nothing = p.accept("nothing"); !c.Nothing {
		p.expect("update", "set")
		c.Set = p.assignments()
		if p.accept("where") {
			c.Where = p.expr()
		}
	}
	c.Span = p.span(from)
	return c
}

func (p *parser) truncate() ast.Stmt {
	from := p.tok.from
	p.expect("truncate")
	p.accept("table")
	t := &ast.Truncate{Tables: p.names("a table")}
	if p.acceptSeq("restart", "identity") || p.acceptSeq("continue", "identity") {
		_ = t // there are no sequences to restart
	}
	if t.Cascade = p.accept("cascade"); !t.Cascade {
		p.accept("restrict")
	}
	t.Span = p.span(from)
	return t
}

func (p *parser) transaction() ast.Stmt {
	from := p.tok.from
	t := &ast.Transaction{}
	optional := func() {
		if !p.accept("work") {
			p.accept("transaction")
		}
	}
	savepoint := func() {
		p.accept("savepoint")
		t.Name = p.name("a savepoint").Name
	}
	word := p.advance().text
	if p.is("prepared") && (word == "commit" || word == "rollback") {
		rest := p.rest()
		return &ast.Other{Span: p.span(from), Verb: strings.ToUpper(word), Rest: rest}
	}
	switch word {
	case "begin":
		optional()
		t.Modes = p.transactionModes()
	case "start":
		p.expect("transaction")
		t.Start = true
		t.Modes = p.transactionModes()
	case "savepoint":
		t.Kind = ast.Savepoint
		t.Name = p.name("a savepoint").Name
	case "release":
		t.Kind = ast.ReleaseSavepoint
		savepoint()
	default:
		if t.Kind = ast.Commit; word == "rollback" || word == "abort" {
			t.Kind = ast.Rollback
		}
		optional()
		if t.Kind == ast.Rollback && p.accept("to") {
			t.Kind = ast.RollbackToSavepoint
			savepoint()
			break
		}
		if p.accept("and") {
			t.Chain = !p.accept("no")
			p.expect("chain")
		}
	}
	t.Span = p.span(from)
	return t
}

func (p *parser) transactionModes() (m ast.TransactionModes) {
	for first := true; ; first = false {
		comma := !first && p.acceptPunct(",")
		switch {
		case p.accept("isolation"):
			p.expect("level")
			switch {
			case p.accept("serializable"):
				m.Isolation = "SERIALIZABLE"
			case p.accept("repeatable"):
				p.expect("read")
				m.Isolation = "REPEATABLE READ"
			default:
				p.expect("read")
				m.Isolation = "READ " + p.expectWord("committed", "uncommitted")
			}
		case p.accept("read"):
			m.Access = "READ " + p.expectWord("only", "write")
		case p.accept("deferrable"):
			m.Deferrable = "DEFERRABLE"
		case p.acceptSeq("not", "deferrable"):
			m.Deferrable = "NOT DEFERRABLE"
		default:
			if comma {
				p.unexpected("a transaction mode")
			}
			return m
		}
	}
}

func (p *parser) set() ast.Stmt {
	from := p.tok.from
	p.expect("set")
	s := &ast.Set{}
	if next := p.peek(1); !next.op("=") && !next.word("to") && !next.punct(".") {
		switch {
		case p.accept("local"):
			s.Scope = ast.ScopeLocal
		case p.is("session") && !next.word("authorization"):
			p.advance()
			s.Scope = ast.ScopeSession
			if p.acceptSeq("characteristics", "as", "transaction") {
				m := p.someModes()
				return &ast.Transaction{Span: p.span(from), Kind: ast.SetSessionTransaction, Modes: m}
			}
		}
	}
	if p.is("transaction") && !p.isSetting() {
		p.advance()
		if p.is("snapshot") {
			p.unsupported(p.tok.from, "SET TRANSACTION SNAPSHOT", "")
		}
		m := p.someModes()
		return &ast.Transaction{Span: p.span(from), Kind: ast.SetTransaction, Modes: m}
	}
	p.setting(s)
	s.Span = p.span(from)
	return s
}

// someModes takes at least one transaction mode.
func (p *parser) someModes() ast.TransactionModes {
	m := p.transactionModes()
	if m == (ast.TransactionModes{}) {
		p.unexpected("a transaction mode")
	}
	return m
}

// isSetting reports whether the current word is a setting's name: = or TO or a dot follows.
func (p *parser) isSetting() bool {
	next := p.peek(1)
	return next.op("=") || next.word("to") || next.punct(".")
}

// setting takes the name and the values of SET.
func (p *parser) setting(s *ast.Set) {
	if !p.isSetting() {
		switch {
		case p.acceptSeq("time", "zone"):
			s.Name = "timezone"
			if p.is("local") {
				p.advance()
				s.Default = true
				return
			}
			if p.is("interval") {
				if t, ok := p.typedString().(*ast.TypedString); ok {
					s.Interval = t
				}
				return
			}
			p.settingValues(s)
			return
		case p.accept("names"):
			s.Name = "client_encoding"
			if s.Default = p.tok.kind == tokEOF || p.tok.punct(";"); !s.Default {
				p.settingValues(s)
			}
			return
		case p.accept("schema"):
			s.Name = "search_path"
			p.settingValues(s)
			return
		case p.accept("role"):
			s.Name = "role"
			p.settingValues(s)
			return
		case p.acceptSeq("session", "authorization"):
			s.Name = "session_authorization"
			p.settingValues(s)
			return
		}
	}
	s.Name = p.settingName()
	if p.is("from") {
		p.unsupported(p.tok.from, "SET ... FROM CURRENT", "")
	}
	if !p.tok.op("=") && !p.is("to") {
		p.unexpected(`"=" or TO`)
	}
	p.advance()
	p.settingValues(s)
}

// settingName takes the name of a setting, which may have dots.
func (p *parser) settingName() string {
	name := p.name("the name of a setting").Name
	for p.acceptPunct(".") {
		name += "." + p.label("the name of a setting").Name
	}
	return name
}

func (p *parser) settingValues(s *ast.Set) {
	if p.accept("default") {
		s.Default = true
		return
	}
	for {
		s.Values = append(s.Values, p.optionValue())
		if !p.acceptPunct(",") {
			return
		}
	}
}

func (p *parser) reset() ast.Stmt {
	from := p.tok.from
	p.expect("reset")
	r := &ast.Reset{}
	if !p.accept("all") {
		r.Name = p.shownName()
	}
	r.Span = p.span(from)
	return r
}

// shownName takes the name of a setting as SHOW and RESET write it.
func (p *parser) shownName() string {
	switch {
	case p.acceptSeq("time", "zone"):
		return "timezone"
	case p.acceptSeq("transaction", "isolation", "level"):
		return "transaction_isolation"
	case p.acceptSeq("session", "authorization"):
		return "session_authorization"
	}
	return p.settingName()
}

var showLists = map[string]ast.ShowKind{
	"tables": ast.ShowTables, "sources": ast.ShowSources, "views": ast.ShowViews, "sinks": ast.ShowSinks,
	"indexes": ast.ShowIndexes, "jobs": ast.ShowJobs, "schemas": ast.ShowSchemas, "databases": ast.ShowDatabases,
	"functions": ast.ShowFunctions, "subscriptions": ast.ShowSubscriptions, "connections": ast.ShowConnections,
	"topics": ast.ShowTopics,
}

func (p *parser) show() ast.Stmt {
	from := p.tok.from
	s := &ast.Show{}
	describe := p.advance().text != "show"
	list, isList := showLists[p.tok.text]
	switch {
	case describe:
		s.Kind = ast.ShowColumns
		s.Target = p.qualified("a relation")
	case p.accept("all"):
		s.Kind = ast.ShowAll
	case p.accept("create"):
		s.Kind = ast.ShowCreate
		s.Object = p.objectKind("TABLE, SOURCE, VIEW, MATERIALIZED VIEW, SINK or INDEX")
		s.Target = p.qualified("a name")
	case p.is("columns") && p.peek(1).word("from"):
		p.expect("columns", "from")
		s.Kind = ast.ShowColumns
		s.Target = p.qualified("a relation")
	case p.acceptSeq("materialized", "views"):
		s.Kind = ast.ShowMaterializedViews
		p.showFilter(s)
	case p.tok.kind == tokWord && isList && !p.peek(1).punct("."):
		p.advance()
		s.Kind = list
		p.showFilter(s)
	default:
		s.Name = p.shownName()
	}
	s.Span = p.span(from)
	return s
}

// showFilter takes [FROM schema] [LIKE 'pattern'].
func (p *parser) showFilter(s *ast.Show) {
	if p.accept("from") {
		s.Target = p.qualified("a schema")
	}
	if p.accept("like") {
		s.Like = p.text("a pattern")
	}
}

func (p *parser) explain() ast.Stmt {
	from := p.tok.from
	p.expect("explain")
	e := &ast.Explain{}
	if next := p.peek(1); p.tok.punct("(") && !startsQuery(next) && !next.punct("(") {
		e.Options = p.options(false)
	} else {
		for p.is("analyze", "analyse", "verbose") {
			t := p.advance()
			e.Options = append(e.Options, ast.Option{
				Span: ast.Span{From: t.from, To: t.to}, Name: strings.Replace(t.text, "analyse", "analyze", 1),
			})
		}
	}
	e.Stmt = p.statement()
	e.Span = p.span(from)
	return e
}

func (p *parser) subscribe() ast.Stmt {
	from := p.tok.from
	p.expect("subscribe")
	p.accept("to")
	s := &ast.Subscribe{}
	if p.tok.punct("(") {
		s.Query = p.parenQuery()
	} else {
		s.Table = p.qualified("a relation")
	}
	if p.accept("with") {
		s.With = p.options(true)
	}
	s.Span = p.span(from)
	return s
}

func (p *parser) prepared() ast.Stmt {
	from := p.tok.from
	switch p.advance().text {
	case "prepare":
		if p.is("transaction") && p.peek(1).kind == tokString {
			p.advance()
			name := p.text("a name").Value
			return &ast.Transaction{Span: p.span(from), Kind: ast.PrepareTransaction, Name: name}
		}
		s := &ast.Prepare{Name: p.name("a name")}
		if p.acceptPunct("(") {
			s.Types = []ast.TypeName{p.typeName()}
			for p.acceptPunct(",") {
				s.Types = append(s.Types, p.typeName())
			}
			p.expectPunct(")")
		}
		p.expect("as")
		s.Stmt = p.statement()
		s.Span = p.span(from)
		return s
	case "execute":
		s := &ast.Execute{Name: p.name("a name")}
		if p.acceptPunct("(") {
			s.Args = p.exprs()
			p.expectPunct(")")
		}
		s.Span = p.span(from)
		return s
	default:
		p.accept("prepare")
		s := &ast.Deallocate{}
		if !p.accept("all") {
			s.Name = p.name("a name")
		}
		s.Span = p.span(from)
		return s
	}
}

func (p *parser) copy() ast.Stmt {
	from := p.tok.from
	p.expect("copy")
	c := &ast.Copy{}
	if p.tok.punct("(") {
		c.Query = p.parenQuery()
	} else {
		c.Table = p.qualified("a table")
		c.Columns = p.optionalColumns()
	}
	if c.Query != nil {
		p.expect("to")
	} else {
		c.From = p.expectWord("from", "to") == "FROM"
	}
	if c.Program = p.accept("program"); c.Program || p.tok.kind == tokString {
		c.Filename = p.text("a file name")
	} else {
		p.expectWord("stdin", "stdout")
	}
	with := p.accept("with")
	switch {
	case p.tok.punct("("):
		c.Options = p.options(false)
	default:
		if c.Options = p.oldCopyOptions(); c.Options == nil && with {
			p.unexpected("an option")
		}
	}
	if c.From && p.accept("where") {
		c.Where = p.expr()
	}
	c.Span = p.span(from)
	return c
}

// oldCopyOptions takes the options of COPY without parentheses, as options of today's form.
func (p *parser) oldCopyOptions() (list []ast.Option) {
	for {
		from := p.tok.from
		o := ast.Option{}
		switch {
		case p.is("binary", "csv"):
			word := p.advance()
			o.Name = "format"
			o.Value = ast.OptionValue{Span: ast.Span{From: word.from, To: word.to}, Kind: ast.OptionWord, Text: word.text}
		case p.is("header", "freeze"):
			o.Name = p.advance().text
		case p.is("delimiter", "null", "quote", "escape", "encoding"):
			o.Name = p.advance().text
			p.accept("as")
			s := p.text("a string")
			o.Value = ast.OptionValue{Span: s.Span, Kind: ast.OptionString, Text: s.Value}
		default:
			return list
		}
		o.Span = p.span(from)
		list = append(list, o)
	}
}

func (p *parser) cursor() ast.Stmt {
	from := p.tok.from
	switch word := p.advance().text; word {
	case "declare":
		d := &ast.DeclareCursor{Name: p.name("a cursor's name")}
		for !p.is("cursor") {
			switch {
			case p.accept("binary"):
				d.Binary = true
			case p.accept("insensitive"):
				d.Insensitive = true
			case p.accept("asensitive"):
			case p.accept("scroll"):
				d.Scroll = "SCROLL"
			case p.acceptSeq("no", "scroll"):
				d.Scroll = "NO SCROLL"
			default:
				p.unexpected("CURSOR")
			}
		}
		p.expect("cursor")
		if p.accept("with") {
			p.expect("hold")
			d.Hold = true
		} else {
			p.acceptSeq("without", "hold")
		}
		p.expect("for")
		d.Query = p.query()
		d.Span = p.span(from)
		return d
	case "close":
		c := &ast.CloseCursor{}
		if !p.accept("all") {
			c.Name = p.name("a cursor's name")
		}
		c.Span = p.span(from)
		return c
	default:
		return p.fetch(from, word == "move")
	}
}

func (p *parser) fetch(from int, move bool) ast.Stmt {
	f := &ast.Fetch{Move: move, Count: 1}
	named := !p.peek(1).word("from") && !p.peek(1).word("in") && p.peek(1).kind != tokEOF && !p.peek(1).punct(";")
	switch {
	case p.is("next", "prior", "first", "last") && (named || p.peek(1).word("from") || p.peek(1).word("in")):
		switch p.advance().text {
		case "prior":
			f.Direction = ast.FetchBackward
		case "first":
			f.Direction = ast.FetchAbsolute
		case "last":
			f.Direction, f.Count = ast.FetchAbsolute, -1
		}
	case p.is("absolute", "relative") && named:
		if f.Direction = ast.FetchAbsolute; p.advance().text == "relative" {
			f.Direction = ast.FetchRelative
		}
		f.Count = p.signedInt()
	case p.is("forward", "backward") && p.peek(1).kind != tokEOF && !p.peek(1).punct(";"):
		if p.advance().text == "backward" {
			f.Direction = ast.FetchBackward
		}
		if f.All = p.accept("all"); !f.All && (p.tok.kind == tokNumber || p.tok.kind == tokOp) {
			f.Count = p.signedInt()
		}
	case p.is("all"):
		p.advance()
		f.All = true
	case p.tok.kind == tokNumber || p.tok.kind == tokOp:
		f.Count = p.signedInt()
	}
	if f.All {
		f.Count = 0
	}
	if !p.accept("from") {
		p.accept("in")
	}
	f.Cursor = p.name("a cursor's name")
	f.Span = p.span(from)
	return f
}

func (p *parser) signedInt() int64 {
	sign := int64(1)
	if p.tok.op("-") {
		p.advance()
		sign = -1
	} else if p.tok.op("+") {
		p.advance()
	}
	if !p.tok.integer() {
		p.unexpected("an integer")
	}
	n, err := strconv.ParseInt(p.tok.text, 10, 32)
	if err != nil {
		p.failAt(pgerr.NumericValueOutOfRange, p.tok.from, "value %q is out of range for type integer", p.tok.text)
	}
	p.advance()
	return sign * n
}

func (p *parser) listen() ast.Stmt {
	from := p.tok.from
	l := &ast.Listen{Verb: strings.ToUpper(p.advance().text)}
	if l.Verb == "UNLISTEN" && p.tok.op("*") {
		p.advance()
	} else {
		l.Channel = p.name("a channel")
	}
	if l.Verb == "NOTIFY" && p.acceptPunct(",") {
		l.Payload = p.text("a payload")
	}
	l.Span = p.span(from)
	return l
}

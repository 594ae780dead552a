package parse

import (
	"strings"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// query takes a whole query.
func (p *parser) query() *ast.Query {
	p.enter()
	defer p.leave()
	from := p.tok.from
	var with *ast.With
	if p.is("with") {
		with = p.with()
	}
	return p.queryAfterWith(from, with)
}

func (p *parser) queryAfterWith(from int, with *ast.With) *ast.Query {
	at := p.tok.from
	q := &ast.Query{With: with, Body: p.setOps(at, p.queryTerm(), 1)}
	p.queryTail(from, q)
	if inner, ok := bodyOf(q).(*ast.Query); ok {
		return inner // nothing but parentheses around it
	}
	return q
}

// continuesQuery reports whether what follows a query in parentheses makes it part of a larger one.
func (p *parser) continuesQuery() bool {
	switch {
	case p.is("union", "intersect", "except", "order", "limit", "offset", "fetch", "for"):
		return true
	}
	return p.isEmit()
}

// continueQuery makes the query that begins with q, which stood in parentheses from offset from on.
func (p *parser) continueQuery(from int, q *ast.Query) *ast.Query {
	if !p.continuesQuery() {
		return q
	}
	whole := &ast.Query{Body: p.setOps(from, bodyOf(q), 1)}
	p.queryTail(from, whole)
	return whole
}

// bodyOf takes the parentheses off a query that has nothing but a body.
func bodyOf(q *ast.Query) ast.QueryBody {
	if q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Offset == nil && !q.WithTies && q.Locking == nil &&
		!q.EmitOnWindowClose {
		return q.Body
	}
	return q
}

func (p *parser) isEmit() bool { return p.isSeq("emit", "on", "window", "close") }

// queryTail takes the clauses after a query's body.
func (p *parser) queryTail(from int, q *ast.Query) {
	q.OrderBy = p.orderBy()
	limited, offset := false, false
	for {
		at := p.tok.from
		switch {
		case p.is("limit", "fetch"):
			if limited {
				p.failAt(pgerr.SyntaxError, at, "multiple LIMIT clauses not allowed")
			}
			limited = true
			p.limit(q)
		case p.accept("offset"):
			if offset {
				p.failAt(pgerr.SyntaxError, at, "multiple OFFSET clauses not allowed")
			}
			offset = true
			q.Offset = p.expr()
			if !p.accept("row") {
				p.accept("rows")
			}
		case p.is("for"):
			q.Locking = append(q.Locking, p.locking())
		default:
			if p.isEmit() {
				p.acceptSeq("emit", "on", "window")
				p.expect("close")
				q.EmitOnWindowClose = true
			}
			q.Span = p.span(from)
			return
		}
	}
}

func (p *parser) limit(q *ast.Query) {
	if p.accept("limit") {
		at := p.tok.from
		if p.accept("all") {
			return
		}
		q.Limit = p.expr()
		if p.tok.punct(",") {
			p.fail(syntaxError(pgerr.SyntaxError, "LIMIT #,# syntax is not supported", at).
				WithHint("Use separate LIMIT and OFFSET clauses."))
		}
		return
	}
	at := p.tok.from
	p.expect("fetch")
	p.expectWord("first", "next")
	if p.is("row", "rows") {
		q.Limit = &ast.Number{Span: ast.Span{From: p.last, To: p.last}, Text: "1"}
	} else {
		q.Limit = p.exprAt(ast.PrecSign)
	}
	p.expectWord("row", "rows")
	if p.acceptSeq("with", "ties") {
		q.WithTies = true
		if q.OrderBy == nil {
			p.failAt(pgerr.SyntaxError, at, "WITH TIES cannot be specified without ORDER BY clause")
		}
		return
	}
	p.expect("only")
}

func (p *parser) locking() (l ast.Locking) {
	from := p.tok.from
	p.expect("for")
	switch {
	case p.acceptSeq("no", "key", "update"):
		l.Strength = "NO KEY UPDATE"
	case p.acceptSeq("key", "share"):
		l.Strength = "KEY SHARE"
	default:
		l.Strength = p.expectWord("update", "share")
	}
	if p.accept("of") {
		l.Of = p.names("a table")
	}
	switch {
	case p.accept("nowait"):
		l.Wait = "NOWAIT"
	case p.acceptSeq("skip", "locked"):
		l.Wait = "SKIP LOCKED"
	}
	l.Span = p.span(from)
	return l
}

func (p *parser) with() *ast.With {
	from := p.tok.from
	p.expect("with")
	w := &ast.With{Recursive: p.accept("recursive")}
	for {
		at := p.tok.from
		c := ast.CTE{Name: p.name("a name"), Columns: p.optionalColumns()}
		p.expect("as")
		switch {
		case p.accept("materialized"):
			c.Materialize = ast.Materialized
		case p.acceptSeq("not", "materialized"):
			c.Materialize = ast.NotMaterialized
		}
		p.expectPunct("(")
		if p.is("insert", "update", "delete") {
			p.enter()
			c.Stmt = p.statement()
			p.leave()
		} else {
			c.Stmt = p.query()
		}
		p.expectPunct(")")
		c.Span = p.span(at)
		w.Tables = append(w.Tables, c)
		if !p.acceptPunct(",") {
			w.Span = p.span(from)
			return w
		}
	}
}

// setOps takes set operations after a first term; INTERSECT (2) binds tighter than UNION and EXCEPT (1).
func (p *parser) setOps(from int, left ast.QueryBody, least int) ast.QueryBody {
	for {
		kind, prec := ast.Union, 1
		switch {
		case p.is("union"):
		case p.is("except"):
			kind = ast.Except
		case p.is("intersect"):
			kind, prec = ast.Intersect, 2
		default:
			return left
		}
		if prec < least {
			return left
		}
		p.advance()
		op := &ast.SetOp{Kind: kind, L: left, All: p.accept("all")}
		if !op.All {
			p.accept("distinct")
		}
		at := p.tok.from
		op.R = p.setOps(at, p.queryTerm(), prec+1)
		op.Span = p.span(from)
		p.grow()
		left = op
	}
}

// queryTerm takes SELECT, VALUES, TABLE, or a query in parentheses.
func (p *parser) queryTerm() ast.QueryBody {
	from := p.tok.from
	switch {
	case p.tok.punct("("):
		return bodyOf(p.parenQuery())
	case p.is("select"):
		return p.selectBody()
	case p.is("values"):
		return p.values()
	case p.accept("table"):
		table := p.relation()
		star := &ast.Star{Span: table.Span}
		return &ast.Select{
			Span: p.span(from), Items: []ast.SelectItem{{Span: star.Span, Expr: star}}, From: []ast.TableExpr{table},
		}
	}
	p.unexpected("SELECT, VALUES or a query in parentheses")
	return nil
}

func (p *parser) values() ast.QueryBody {
	from := p.tok.from
	p.expect("values")
	v := &ast.Values{}
	for {
		p.expectPunct("(")
		v.Rows = append(v.Rows, p.exprs())
		p.expectPunct(")")
		if !p.acceptPunct(",") {
			v.Span = p.span(from)
			return v
		}
	}
}

func (p *parser) selectBody() ast.QueryBody {
	from := p.tok.from
	p.expect("select")
	s := &ast.Select{}
	if !p.accept("all") && p.accept("distinct") {
		s.Distinct = true
		if p.accept("on") {
			p.expectPunct("(")
			s.DistinctOn = p.exprs()
			p.expectPunct(")")
		}
	}
	if !p.selectListEnds() {
		s.Items = p.selectItems()
	}
	if p.is("into") {
		p.unsupported(p.tok.from, "SELECT ... INTO", "Use CREATE TABLE ... AS.")
	}
	if p.accept("from") {
		s.From = p.fromItems()
	}
	if p.accept("where") {
		s.Where = p.expr()
	}
	if p.accept("group") {
		p.expect("by")
		if !p.accept("all") {
			s.GroupDedup = p.accept("distinct")
		}
		s.GroupBy = p.groupItems()
	}
	if p.accept("having") {
		s.Having = p.expr()
	}
	if p.accept("window") {
		s.Windows = p.namedWindows()
	}
	s.Span = p.span(from)
	return s
}

// selectListEnds reports whether the select list is empty, which PostgreSQL allows.
func (p *parser) selectListEnds() bool {
	return p.tok.kind == tokEOF || p.tok.punct(";") || p.tok.punct(")") ||
		p.is("from", "where", "group", "having", "window", "union", "intersect", "except", "order", "limit", "offset",
			"fetch", "into", "for", "with", "on", "returning") || p.isEmit() || p.isFormat()
}

// selectItems takes a select list or what RETURNING lists.
func (p *parser) selectItems() (items []ast.SelectItem) {
	for {
		from := p.tok.from
		var item ast.SelectItem
		if p.tok.op("*") {
			p.advance()
			item.Expr = &ast.Star{Span: p.span(from)}
		} else {
			item.Expr = p.expr()
			switch {
			case p.accept("as"):
				item.Alias = p.label("a column name")
			case p.tok.kind == tokQuoted,
				p.tok.kind == tokWord && ast.IsBareLabel(p.tok.text) && !p.isEmit() && !p.isFormat():
				item.Alias = p.ident()
			}
		}
		item.Span = p.span(from)
		items = append(items, item)
		if !p.acceptPunct(",") {
			return items
		}
	}
}

// isFormat reports whether FORMAT x ENCODE comes next, which ends the query of a sink.
func (p *parser) isFormat() bool { return p.is("format") && p.peek(2).word("encode") }

func (p *parser) groupItems() (items []ast.Expr) {
	for {
		items = append(items, p.groupItem())
		if !p.acceptPunct(",") {
			return items
		}
	}
}

func (p *parser) groupItem() ast.Expr {
	p.enter()
	defer p.leave()
	from := p.tok.from
	g := &ast.Grouping{}
	switch {
	case p.tok.punct("(") && p.peek(1).punct(")"):
		p.advance()
		p.advance()
		g.Kind = ast.EmptySet
	case p.is("rollup", "cube") && p.peek(1).punct("("):
		if g.Kind = ast.Rollup; p.is("cube") {
			g.Kind = ast.Cube
		}
		p.advance()
		p.expectPunct("(")
		g.Items = p.exprs()
		p.expectPunct(")")
	case p.isSeq("grouping", "sets"):
		p.acceptSeq("grouping", "sets")
		g.Kind = ast.GroupingSets
		p.expectPunct("(")
		g.Items = p.groupItems()
		p.expectPunct(")")
	default:
		return p.expr()
	}
	p.grow()
	g.Span = p.span(from)
	return g
}

func (p *parser) namedWindows() (windows []ast.NamedWindow) {
	for {
		from := p.tok.from
		w := ast.NamedWindow{Name: p.name("a window's name")}
		p.expect("as")
		w.Spec = p.windowSpec()
		w.Span = p.span(from)
		windows = append(windows, w)
		if !p.acceptPunct(",") {
			return windows
		}
	}
}

// fromItems takes the items of FROM, separated by commas.
func (p *parser) fromItems() (items []ast.TableExpr) {
	for {
		items = append(items, p.tableExpr())
		if !p.acceptPunct(",") {
			return items
		}
	}
}

// tableExpr takes one item of FROM with its joins.
func (p *parser) tableExpr() ast.TableExpr {
	from := p.tok.from
	return p.joins(from, p.tablePrimary())
}

// joinStart reports whether a join comes next.
func (p *parser) joinStart() bool {
	return p.is("join", "inner", "left", "right", "full", "cross", "natural")
}

// joins takes the joins that follow a first item. The right side of a join with a condition may itself be joins, as in
// a JOIN b JOIN c ON x ON y: they are what comes before the ON that is waited for.
func (p *parser) joins(from int, left ast.TableExpr) ast.TableExpr {
	for p.joinStart() {
		j := &ast.Join{L: left}
		switch {
		case p.accept("cross"):
			j.Kind = ast.CrossJoin
			p.expect("join")
			j.R = p.tablePrimary()
		case p.accept("natural"):
			j.Natural = true
			j.Kind = p.joinKind()
			j.R = p.tablePrimary()
		default:
			j.Kind = p.joinKind()
			p.joinRight(j)
		}
		j.Span = p.span(from)
		p.grow()
		left = j
	}
	return left
}

func (p *parser) joinRight(j *ast.Join) {
	p.enter()
	defer p.leave()
	at := p.tok.from
	j.R = p.joins(at, p.tablePrimary())
	switch {
	case p.accept("on"):
		j.On = p.expr()
	case p.accept("using"):
		j.Using = p.columns()
		if p.accept("as") {
			j.UsingAlias = p.name("an alias")
		}
	default:
		p.unexpected("ON or USING")
	}
}

func (p *parser) joinKind() ast.JoinKind {
	kind := ast.InnerJoin
	switch {
	case p.accept("inner"):
	case p.is("left", "right", "full"):
		kinds := map[string]ast.JoinKind{"left": ast.LeftJoin, "right": ast.RightJoin, "full": ast.FullJoin}
		kind = kinds[p.advance().text]
		p.accept("outer")
	}
	p.expect("join")
	return kind
}

// windowKinds are the functions of FROM that assign rows to windows.
var windowKinds = map[string]ast.WindowKind{
	"tumble": ast.Tumble, "hop": ast.Hop, "session": ast.Session, "cumulate": ast.Cumulate,
}

func (p *parser) isWindowTable() bool {
	_, ok := windowKinds[p.tok.text]
	return ok && p.tok.kind == tokWord && p.peek(1).punct("(")
}

// tablePrimary takes an item of FROM without joins, with its alias.
func (p *parser) tablePrimary() ast.TableExpr {
	p.enter()
	defer p.leave()
	from := p.tok.from
	lateral := p.accept("lateral")
	switch {
	case p.tok.punct("("):
		return p.parenTable(from, lateral)
	case p.is("rows") && p.peek(1).word("from") && p.peek(2).punct("("):
		f := &ast.FuncTable{Lateral: lateral, RowsFrom: true}
		p.acceptSeq("rows", "from")
		p.expectPunct("(")
		f.Calls = []*ast.FuncCall{p.tableCall()}
		for p.acceptPunct(",") {
			f.Calls = append(f.Calls, p.tableCall())
		}
		p.expectPunct(")")
		p.finishFuncTable(from, f)
		return f
	case p.is("table") && p.peek(1).punct("("):
		p.advance()
		p.expectPunct("(")
		if p.isWindowTable() {
			w := p.windowTable()
			p.expectPunct(")")
			w.Alias = p.alias(false)
			w.Span = p.span(from)
			return w
		}
		f := &ast.FuncTable{Lateral: lateral, Calls: []*ast.FuncCall{p.tableCall()}}
		p.expectPunct(")")
		p.finishFuncTable(from, f)
		return f
	case p.isWindowTable():
		w := p.windowTable()
		w.Alias = p.alias(false)
		w.Span = p.span(from)
		return w
	case lateral, p.tok.kind == tokWord && p.peek(1).punct("(") && (isFuncToken(p.tok) || p.bareFunc()),
		p.tok.kind == tokQuoted && p.peek(1).punct("("), p.bareFunc():
		f := &ast.FuncTable{Lateral: lateral, Calls: []*ast.FuncCall{p.tableCall()}}
		p.finishFuncTable(from, f)
		return f
	}
	return p.tableOrCall(from)
}

// bareFunc reports whether a function without parentheses, or with a grammar of its own, comes next.
func (p *parser) bareFunc() bool {
	return p.is("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_role",
		"current_user", "session_user", "user", "current_catalog", "current_schema") ||
		p.is("coalesce", "nullif", "greatest", "least", "extract", "position", "substring", "trim", "overlay") &&
			p.peek(1).punct("(")
}

// tableCall takes a function's call in FROM.
func (p *parser) tableCall() *ast.FuncCall {
	at := p.tok
	call, ok := p.primary().(*ast.FuncCall)
	if !ok {
		p.failAt(pgerr.SyntaxError, at.from, "syntax error at or near %s", quoteNear(p.lex.src, at.from, at.to))
	}
	return call
}

func (p *parser) finishFuncTable(from int, f *ast.FuncTable) {
	f.Ordinality = p.acceptSeq("with", "ordinality")
	f.Alias = p.alias(true)
	f.Span = p.span(from)
}

// tableOrCall takes a relation by name or, if a parenthesis follows its qualified name, a function.
func (p *parser) tableOrCall(from int) ast.TableExpr {
	t := p.relation()
	if p.tok.punct("(") && !t.Only && len(t.Name.Parts) > 1 {
		call := &ast.FuncCall{Name: t.Name}
		p.arguments(call)
		p.callSuffix(from, call)
		f := &ast.FuncTable{Calls: []*ast.FuncCall{call}}
		p.finishFuncTable(from, f)
		return f
	}
	t.AsOf = p.asOf()
	if !(p.is("match_recognize") && p.peek(1).punct("(")) {
		t.Alias = p.alias(false)
	}
	if t.AsOf == nil {
		t.AsOf = p.asOf()
	}
	if p.is("match_recognize") && p.peek(1).punct("(") {
		p.unsupported(p.tok.from, "MATCH_RECOGNIZE", "")
	}
	if p.is("tablesample") {
		p.unsupported(p.tok.from, "TABLESAMPLE", "")
	}
	t.Span = p.span(from)
	return t
}

// relation takes [ONLY] name [*].
func (p *parser) relation() *ast.Table {
	from := p.tok.from
	t := &ast.Table{Only: p.accept("only")}
	if t.Only && p.acceptPunct("(") {
		t.Name = p.qualified("a table")
		p.expectPunct(")")
	} else {
		t.Name = p.qualified("a table")
	}
	if !t.Only && p.tok.op("*") {
		p.advance()
	}
	t.Span = p.span(from)
	return t
}

// asOf takes FOR SYSTEM_TIME AS OF expr, if it is there.
func (p *parser) asOf() ast.Expr {
	if !p.is("for") || !p.peek(1).word("system_time") {
		return nil
	}
	p.expect("for", "system_time", "as", "of")
	return p.exprAt(ast.PrecMatch + 1)
}

// parenTable takes what is in parentheses in FROM: a query, or joins. As in parenthesised, which of them it is may be known
// only after further parentheses.
func (p *parser) parenTable(from int, lateral bool) ast.TableExpr {
	p.expectPunct("(")
	q, item := p.parenTableContent()
	if q != nil {
		d := &ast.DerivedTable{Lateral: lateral, Query: q, Alias: p.alias(false)}
		d.Span = p.span(from)
		return d
	}
	if lateral {
		p.failAt(pgerr.SyntaxError, from, "syntax error at or near %s: LATERAL needs a query or a function",
			quoteNear(p.lex.src, from, from+len("lateral")))
	}
	return p.joinAlias(from, item)
}

// joinAlias takes the alias of joins in parentheses.
func (p *parser) joinAlias(from int, item ast.TableExpr) ast.TableExpr {
	at := p.tok
	alias := p.alias(false)
	j, ok := item.(*ast.Join)
	switch {
	case !ok || !j.Alias.Name.Given():
		if alias.Name.Given() {
			if !ok {
				p.failAt(pgerr.SyntaxError, at.from, "syntax error at or near %s", quoteNear(p.lex.src, at.from, at.to))
			}
			j.Alias = alias
			j.Span = p.span(from)
		}
	case alias.Name.Given():
		p.failAt(pgerr.SyntaxError, at.from, "syntax error at or near %s", quoteNear(p.lex.src, at.from, at.to))
	}
	return item
}

// parenTableContent takes what follows an opening parenthesis in FROM and the closing one.
func (p *parser) parenTableContent() (*ast.Query, ast.TableExpr) {
	p.enter()
	defer p.leave()
	from := p.tok.from
	if startsQuery(p.tok) && !p.isValuesName() && !(p.is("table") && p.peek(1).punct("(")) {
		q := p.query()
		p.expectPunct(")")
		return q, nil
	}
	var item ast.TableExpr
	if p.acceptPunct("(") {
		q, inner := p.parenTableContent()
		if q != nil && (p.tok.punct(")") || p.continuesQuery()) {
			q = p.continueQuery(from, q)
			p.expectPunct(")")
			return q, nil
		}
		if q != nil {
			d := &ast.DerivedTable{Query: q, Alias: p.alias(false)}
			d.Span = p.span(from)
			inner = d
		} else {
			inner = p.joinAlias(from, inner)
		}
		item = p.joins(from, inner)
	} else {
		item = p.tableExpr()
	}
	if _, ok := item.(*ast.Join); !ok {
		p.unexpected("a join")
	}
	p.expectPunct(")")
	return nil, item
}

// alias takes [AS] name [(columns)], if it is there. Only a function's may define its columns.
func (p *parser) alias(definitions bool) (a ast.Alias) {
	from := p.tok.from
	switch {
	case p.accept("as"):
		if definitions && p.tok.punct("(") {
			a.Defs = p.columnDefs()
			a.Span = p.span(from)
			return a
		}
		a.Name = p.name("an alias")
	case isNameToken(p.tok) && !p.isEmit() && !p.isFormat() && !p.is("set"):
		a.Name = p.ident()
	default:
		return ast.Alias{}
	}
	if p.tok.punct("(") {
		if next := p.peek(2); definitions && !next.punct(",") && !next.punct(")") {
			a.Defs = p.columnDefs()
		} else {
			a.Columns = p.columns()
		}
	}
	a.Span = p.span(from)
	return a
}

// columnDefs takes (a int, b text).
func (p *parser) columnDefs() (defs []ast.ColumnDef) {
	p.expectPunct("(")
	for {
		from := p.tok.from
		d := ast.ColumnDef{Name: p.name("a column name"), Type: p.typeName()}
		d.Span = p.span(from)
		defs = append(defs, d)
		if !p.acceptPunct(",") {
			break
		}
	}
	p.expectPunct(")")
	return defs
}

// windowUsage says what each window function takes.
var windowUsage = map[ast.WindowKind]string{
	ast.Tumble:   "TUMBLE takes a relation, a time column, the size and, if needed, an offset",
	ast.Hop:      "HOP takes a relation, a time column, the slide, the size and, if needed, an offset",
	ast.Session:  "SESSION takes a relation, a time column and the gap",
	ast.Cumulate: "CUMULATE takes a relation, a time column, the step, the size and, if needed, an offset",
}

// windowTable takes TUMBLE(...) and its like, in Leat's and in Flink's form, without an alias.
func (p *parser) windowTable() *ast.WindowTable {
	p.enter()
	defer p.leave()
	from := p.tok.from
	w := &ast.WindowTable{Kind: windowKinds[p.advance().text]}
	p.expectPunct("(")
	order := []string{"data", "timecol", "size", "offset"}
	switch w.Kind {
	case ast.Hop:
		order = []string{"data", "timecol", "slide", "size", "offset"}
	case ast.Cumulate:
		order = []string{"data", "timecol", "step", "size", "offset"}
	case ast.Session:
		order = []string{"data", "timecol", "gap"}
	}
	seen := make(map[string]bool, len(order))
	for i := 0; ; i++ {
		at := p.tok.from
		if i >= len(order) {
			p.failAt(pgerr.SyntaxError, at, "%s", windowUsage[w.Kind])
		}
		arg := order[i]
		if p.tok.kind == tokWord && p.peek(1).punct("=>") {
			arg = p.tok.text
			if !strings.Contains(","+strings.Join(order, ",")+",", ","+arg+",") {
				p.failAt(pgerr.SyntaxError, at, "%s: there is no argument %q", windowUsage[w.Kind], arg)
			}
			p.advance()
			p.advance()
		}
		if seen[arg] {
			p.failAt(pgerr.SyntaxError, at, "argument name %q used more than once", arg)
		}
		seen[arg] = true
		p.windowArg(w, arg)
		if !p.acceptPunct(",") {
			break
		}
	}
	if w.Input == nil || w.Time == nil || w.Size == nil || w.Slide == nil && (w.Kind == ast.Hop || w.Kind == ast.Cumulate) {
		p.failAt(pgerr.SyntaxError, from, "%s", windowUsage[w.Kind])
	}
	p.expectPunct(")")
	w.Span = p.span(from)
	p.grow()
	return w
}

func (p *parser) windowArg(w *ast.WindowTable, arg string) {
	switch arg {
	case "data":
		w.Input = p.windowInput()
		if p.acceptSeq("partition", "by") {
			if p.acceptPunct("(") {
				w.PartitionBy = p.exprs()
				p.expectPunct(")")
			} else {
				// Flink's PARTITION BY ends at the comma: more than one column needs parentheses.
				w.PartitionBy = []ast.Expr{p.expr()}
			}
		}
	case "timecol":
		at := p.tok.from
		descriptor := p.is("descriptor") && p.peek(1).punct("(")
		if descriptor {
			p.advance()
			p.expectPunct("(")
		}
		column, ok := p.expr().(*ast.ColumnRef)
		if !ok {
			p.failAt(pgerr.SyntaxError, at, "%s: the second must be the name of a column", windowUsage[w.Kind])
		}
		w.Time = column
		if descriptor {
			p.expectPunct(")")
		}
	case "slide", "step":
		w.Slide = p.expr()
	case "size", "gap":
		w.Size = p.expr()
	case "offset":
		w.Offset = p.expr()
	}
}

// windowInput takes the relation whose rows get windows.
func (p *parser) windowInput() ast.TableExpr {
	from := p.tok.from
	if p.is("table") && !p.peek(1).punct("(") {
		p.advance()
	}
	switch {
	case p.isWindowTable():
		return p.windowTable()
	case p.tok.punct("("):
		q := p.parenQuery()
		return &ast.DerivedTable{Span: p.span(from), Query: q}
	}
	t := p.relation()
	t.Span = p.span(from)
	return t
}

package parse

import (
	"strings"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// special takes an operand that a word begins whose syntax is its own. It is nil, and nothing is taken, if the word is a
// name here.
func (p *parser) special() ast.Expr {
	from, next := p.tok.from, p.peek(1)
	span := ast.Span{From: from, To: p.tok.to}
	paren := next.punct("(")
	switch word := p.tok.text; word {
	case "null":
		p.advance()
		return &ast.Null{Span: span}
	case "true", "false":
		p.advance()
		return &ast.Bool{Span: span, Value: word == "true"}
	case "default":
		p.advance()
		return &ast.Default{Span: span}
	case "case":
		return p.caseExpr()
	case "array":
		return p.array()
	case "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_role",
		"current_user", "session_user", "user", "current_catalog":
		return p.bareCall()
	case "current_schema":
		if !paren {
			return p.bareCall()
		}
	case "cast":
		return p.cast()
	case "treat":
		if paren {
			p.unsupported(from, "TREAT", "Use CAST.")
		}
	case "exists":
		if paren {
			p.advance()
			return &ast.Exists{Query: p.parenQuery(), Span: p.span(from)}
		}
	case "row":
		if paren {
			return p.row()
		}
	case "extract", "position", "substring", "trim", "overlay":
		if paren {
			return p.wordyCall()
		}
	case "coalesce", "nullif", "greatest", "least", "grouping", "normalize":
		if paren {
			name := p.ident()
			call := &ast.FuncCall{Name: ast.Name{Span: name.Span, Parts: []ast.Ident{name}}}
			if p.peek(1).punct(")") {
				p.advance()
				p.unexpected("an expression")
			}
			p.arguments(call)
			p.callSuffix(from, call)
			return call
		}
	case "double":
		if next.word("precision") && p.peek(2).kind == tokString {
			return p.typedString()
		}
	default:
		if _, ok := typeWords[word]; ok && p.beginsLiteral(next) {
			return p.typedString()
		}
	}
	return nil
}

// beginsLiteral reports whether the token after a type's keyword makes it a literal's type rather than a column.
func (p *parser) beginsLiteral(next token) bool {
	if next.kind == tokString || next.punct("(") {
		return true
	}
	switch p.tok.text {
	case "char", "character", "nchar", "bit":
		return next.word("varying")
	case "national":
		return next.word("char") || next.word("character")
	case "time", "timestamp":
		return (next.word("with") || next.word("without")) && p.peek(2).word("time")
	}
	return false
}

// typedString takes a literal whose type is a keyword.
func (p *parser) typedString() ast.Expr {
	from := p.tok.from
	e := &ast.TypedString{Type: p.simpleType(true)}
	e.Value = *p.text("a string")
	if e.Type.Name == "interval" && e.Type.Mods == nil {
		e.Type.Fields, e.Type.Mods = p.intervalFields()
	}
	e.Span = p.span(from)
	return e
}

// parenQuery takes a query in parentheses.
func (p *parser) parenQuery() *ast.Query {
	p.expectPunct("(")
	at := p.tok
	q, _ := p.parenthesised()
	if q == nil {
		p.failAt(pgerr.SyntaxError, at.from, "syntax error at or near %s", quoteNear(p.lex.src, at.from, at.to))
	}
	return q
}

func (p *parser) caseExpr() ast.Expr {
	from := p.tok.from
	p.expect("case")
	e := &ast.Case{}
	if !p.is("when") {
		e.Operand = p.expr()
	}
	for p.is("when") {
		at := p.advance().from
		cond := p.expr()
		p.expect("then")
		then := p.expr()
		e.Whens = append(e.Whens, ast.When{Span: p.span(at), Cond: cond, Then: then})
	}
	if e.Whens == nil {
		p.unexpected("WHEN")
	}
	if p.accept("else") {
		e.Else = p.expr()
	}
	p.expect("end")
	e.Span = p.span(from)
	return e
}

// array takes ARRAY[...] or ARRAY(query).
func (p *parser) array() ast.Expr {
	from := p.tok.from
	p.expect("array")
	if p.tok.punct("(") {
		q := p.parenQuery()
		return &ast.ArrayQuery{Span: p.span(from), Query: q}
	}
	return p.arrayItems(from)
}

// arrayItems takes [a, b]; within the brackets of an array another level needs no word.
func (p *parser) arrayItems(from int) ast.Expr {
	p.enter()
	defer p.leave()
	p.expectPunct("[")
	e := &ast.Array{}
	for !p.tok.punct("]") {
		if p.tok.punct("[") {
			e.Items = append(e.Items, p.arrayItems(p.tok.from))
			p.grow()
		} else {
			e.Items = append(e.Items, p.expr())
		}
		if !p.acceptPunct(",") {
			break
		}
		if p.tok.punct("]") {
			p.unexpected("an expression")
		}
	}
	p.expectPunct("]")
	e.Span = p.span(from)
	return e
}

// row takes ROW(a, b).
func (p *parser) row() ast.Expr {
	from := p.tok.from
	p.expect("row")
	p.expectPunct("(")
	e := &ast.Row{Explicit: true}
	if !p.tok.punct(")") {
		e.Items = p.exprs()
	}
	p.expectPunct(")")
	e.Span = p.span(from)
	return e
}

func (p *parser) cast() ast.Expr {
	from := p.tok.from
	p.expect("cast")
	p.expectPunct("(")
	x := p.expr()
	p.expect("as")
	t := p.typeName()
	p.expectPunct(")")
	return &ast.Cast{Span: p.span(from), X: x, Type: t}
}

// bareCall takes CURRENT_TIMESTAMP and its like, some with a precision.
func (p *parser) bareCall() ast.Expr {
	from := p.tok.from
	name := p.ident()
	call := &ast.FuncCall{Name: ast.Name{Span: name.Span, Parts: []ast.Ident{name}}, Syntax: ast.BareCall}
	switch name.Name {
	case "current_time", "current_timestamp", "localtime", "localtimestamp":
		if p.acceptPunct("(") {
			t := p.tok
			p.int32("a precision")
			n := &ast.Number{Span: ast.Span{From: t.from, To: t.to}, Text: t.text}
			call.Args = []ast.Arg{{Span: n.Span, Value: n}}
			p.expectPunct(")")
		}
	}
	call.Span = p.span(from)
	return call
}

// wordyCall takes the functions whose arguments the standard separates by words.
func (p *parser) wordyCall() ast.Expr {
	from := p.tok.from
	name := p.ident()
	call := &ast.FuncCall{Name: ast.Name{Span: name.Span, Parts: []ast.Ident{name}}}
	add := func(values ...ast.Expr) {
		for _, v := range values {
			call.Args = append(call.Args, ast.Arg{Span: v.Extent(), Value: v})
		}
	}
	p.expectPunct("(")
	switch name.Name {
	case "extract":
		call.Syntax = ast.ExtractCall
		add(p.extractField())
		p.expect("from")
		add(p.expr())
	case "position":
		call.Syntax = ast.PositionCall
		needle := p.exprAt(ast.PrecMatch + 1)
		p.expect("in")
		add(p.exprAt(ast.PrecMatch+1), needle)
	case "trim":
		p.trim(call, add)
	case "overlay":
		add(p.expr())
		if p.accept("placing") {
			call.Syntax = ast.OverlayCall
			add(p.expr())
			p.expect("from")
			add(p.expr())
			if p.accept("for") {
				add(p.expr())
			}
		} else {
			p.moreArguments(add)
		}
	case "substring":
		p.substring(call, add)
	}
	p.expectPunct(")")
	p.callSuffix(from, call)
	return call
}

func (p *parser) moreArguments(add func(...ast.Expr)) {
	for p.acceptPunct(",") {
		add(p.expr())
	}
}

// extractField takes the field of EXTRACT, a word or a string.
func (p *parser) extractField() *ast.String {
	if p.tok.kind == tokString {
		return p.text("")
	}
	if !isLabelToken(p.tok) {
		p.unexpected("a field, such as YEAR")
	}
	t := p.advance()
	return &ast.String{Span: ast.Span{From: t.from, To: t.to}, Value: t.text}
}

func (p *parser) trim(call *ast.FuncCall, add func(...ast.Expr)) {
	call.Syntax = ast.TrimCall
	name := "btrim"
	switch {
	case p.accept("leading"):
		name = "ltrim"
	case p.accept("trailing"):
		name = "rtrim"
	default:
		p.accept("both")
	}
	call.Name.Parts[0].Name = name
	var first ast.Expr
	if !p.is("from") {
		first = p.expr()
	}
	switch {
	case p.accept("from"):
		add(p.expr())
		if first != nil {
			add(first)
		} else {
			p.moreArguments(add)
		}
	default:
		add(first)
		p.moreArguments(add)
	}
	if len(call.Args) > 2 {
		p.failAt(pgerr.SyntaxError, call.Args[2].From, "TRIM takes a string and the characters to trim")
	}
}

func (p *parser) substring(call *ast.FuncCall, add func(...ast.Expr)) {
	add(p.expr())
	var start, length ast.Expr
	switch {
	case p.accept("similar"):
		call.Syntax = ast.SubstringSimilarCall
		add(p.expr())
		p.expect("escape")
		add(p.expr())
		return
	case p.accept("from"):
		start = p.expr()
		if p.accept("for") {
			length = p.expr()
		}
	case p.accept("for"):
		length = p.expr()
		if p.accept("from") {
			start = p.expr()
		} else {
			start = &ast.Number{Span: ast.Span{From: p.last, To: p.last}, Text: "1"}
		}
	default:
		p.moreArguments(add)
		return
	}
	call.Syntax = ast.SubstringCall
	if add(start); length != nil {
		add(length)
	}
}

// arguments takes (arguments) of a plain call.
func (p *parser) arguments(call *ast.FuncCall) {
	p.enter()
	defer p.leave()
	p.expectPunct("(")
	if p.acceptPunct(")") {
		return
	}
	if p.tok.op("*") && p.peek(1).punct(")") {
		p.advance()
		p.advance()
		call.Star = true
		return
	}
	if !p.accept("all") {
		call.Distinct = p.accept("distinct")
	}
	for {
		call.Args = append(call.Args, p.argument())
		if !p.acceptPunct(",") {
			break
		}
	}
	call.OrderBy = p.orderBy()
	p.nullsMode(call)
	p.expectPunct(")")
}

func (p *parser) argument() ast.Arg {
	from := p.tok.from
	a := ast.Arg{Variadic: p.accept("variadic")}
	if next := p.peek(1); isFuncToken(p.tok) && (next.punct("=>") || next.punct(":=")) {
		a.Name = p.ident()
		p.advance()
	}
	a.Value = p.expr()
	a.Span = p.span(from)
	return a
}

func (p *parser) nullsMode(call *ast.FuncCall) {
	if call.NullsMode != ast.NullsUnsaid {
		return
	}
	switch {
	case p.acceptSeq("respect", "nulls"):
		call.NullsMode = ast.RespectNulls
	case p.acceptSeq("ignore", "nulls"):
		call.NullsMode = ast.IgnoreNulls
	}
}

// callSuffix takes what may follow the arguments, and completes the call, which began at from.
func (p *parser) callSuffix(from int, call *ast.FuncCall) {
	if p.isSeq("within", "group") {
		at := p.tok.from
		p.acceptSeq("within", "group")
		if call.OrderBy != nil {
			p.failAt(pgerr.SyntaxError, at, "cannot use multiple ORDER BY clauses with WITHIN GROUP")
		}
		if call.Distinct {
			p.failAt(pgerr.SyntaxError, at, "cannot use DISTINCT with WITHIN GROUP")
		}
		p.expectPunct("(")
		if call.OrderBy = p.orderBy(); call.OrderBy == nil {
			p.unexpected("ORDER BY")
		}
		p.expectPunct(")")
		call.WithinGroup = true
	}
	if p.is("filter") && p.peek(1).punct("(") {
		p.advance()
		p.expectPunct("(")
		p.expect("where")
		call.Filter = p.expr()
		p.expectPunct(")")
	}
	p.nullsMode(call)
	if p.is("over") && (p.peek(1).punct("(") || isNameToken(p.peek(1))) {
		p.advance()
		if p.tok.punct("(") {
			spec := p.windowSpec()
			call.Over = &spec
		} else {
			name := p.ident()
			call.Over = &ast.WindowSpec{Span: name.Span, Ref: name, Bare: true}
		}
	}
	call.Span = p.span(from)
}

// windowSpec takes ([name] [PARTITION BY ...] [ORDER BY ...] [frame]).
func (p *parser) windowSpec() (w ast.WindowSpec) {
	from := p.tok.from
	p.expectPunct("(")
	if isNameToken(p.tok) && !p.isSeq("partition", "by") && !p.is("rows", "range", "groups") {
		w.Ref = p.ident()
	}
	if p.acceptSeq("partition", "by") {
		w.PartitionBy = p.exprs()
	}
	w.OrderBy = p.orderBy()
	if p.is("rows", "range", "groups") {
		w.Frame = p.frame()
	}
	p.expectPunct(")")
	w.Span = p.span(from)
	return w
}

func (p *parser) frame() *ast.Frame {
	from := p.tok.from
	modes := map[string]ast.FrameMode{"rows": ast.Rows, "range": ast.Range, "groups": ast.Groups}
	f := &ast.Frame{Mode: modes[p.advance().text]}
	if p.accept("between") {
		f.Start = p.bound()
		p.expect("and")
		end := p.bound()
		f.End = &end
	} else {
		f.Start = p.bound()
	}
	p.checkFrame(f)
	if p.accept("exclude") {
		switch {
		case p.acceptSeq("no", "others"):
			f.Exclude = ast.ExcludeNoOthers
		case p.acceptSeq("current", "row"):
			f.Exclude = ast.ExcludeCurrentRow
		case p.accept("group"):
			f.Exclude = ast.ExcludeGroup
		default:
			p.expect("ties")
			f.Exclude = ast.ExcludeTies
		}
	}
	f.Span = p.span(from)
	return f
}

// checkFrame refuses frames that are empty by their form.
func (p *parser) checkFrame(f *ast.Frame) {
	switch {
	case f.Start.Kind == ast.UnboundedFollowing:
		p.failAt(pgerr.WindowingError, f.Start.From, "frame start cannot be UNBOUNDED FOLLOWING")
	case f.End == nil && f.Start.Kind == ast.Following:
		p.failAt(pgerr.WindowingError, f.Start.From, "frame starting from following row cannot end with current row")
	case f.End == nil:
	case f.End.Kind == ast.UnboundedPreceding:
		p.failAt(pgerr.WindowingError, f.End.From, "frame end cannot be UNBOUNDED PRECEDING")
	case f.Start.Kind == ast.CurrentRow && f.End.Kind == ast.Preceding:
		p.failAt(pgerr.WindowingError, f.End.From, "frame starting from current row cannot have preceding rows")
	case f.Start.Kind == ast.Following && f.End.Kind < ast.Following:
		p.failAt(pgerr.WindowingError, f.End.From, "frame starting from following row cannot have preceding rows")
	}
}

func (p *parser) bound() (b ast.Bound) {
	from := p.tok.from
	switch {
	case p.acceptSeq("current", "row"):
		b.Kind = ast.CurrentRow
	case p.is("unbounded") && (p.peek(1).word("preceding") || p.peek(1).word("following")):
		p.advance()
		if b.Kind = ast.UnboundedPreceding; p.advance().text == "following" {
			b.Kind = ast.UnboundedFollowing
		}
	default:
		b.Offset = p.expr()
		if b.Kind = ast.Preceding; p.expectWord("preceding", "following") == "FOLLOWING" {
			b.Kind = ast.Following
		}
	}
	b.Span = p.span(from)
	return b
}

// orderBy takes ORDER BY and its keys, if it is there.
func (p *parser) orderBy() (items []ast.OrderItem) {
	if !p.accept("order") {
		return nil
	}
	p.expect("by")
	for {
		from := p.tok.from
		item := ast.OrderItem{Expr: p.expr()}
		if p.accept("using") {
			item.Using = p.operator()
		} else if item.Desc = p.accept("desc"); !item.Desc {
			p.accept("asc")
		}
		item.Nulls = p.nullsOrder()
		item.Span = p.span(from)
		items = append(items, item)
		if !p.acceptPunct(",") {
			return items
		}
	}
}

func (p *parser) nullsOrder() ast.NullsOrder {
	if !p.accept("nulls") {
		return ast.NullsDefault
	}
	if strings.EqualFold(p.expectWord("first", "last"), "first") {
		return ast.NullsFirst
	}
	return ast.NullsLast
}

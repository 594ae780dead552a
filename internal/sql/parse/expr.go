package parse

import (
	"strings"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// expr takes a whole expression.
func (p *parser) expr() ast.Expr { return p.exprAt(ast.PrecLowest) }

// exprAt takes an expression whose infix operators bind at least as tightly as least.
func (p *parser) exprAt(least int) ast.Expr {
	p.enter()
	defer p.leave()
	outer := p.height
	p.height = 0
	from := p.tok.from
	e := p.infix(from, p.prefix(), least)
	p.height = max(outer, p.height)
	return e
}

// exprs takes expressions separated by commas.
func (p *parser) exprs() []ast.Expr {
	list := []ast.Expr{p.expr()}
	for p.acceptPunct(",") {
		list = append(list, p.expr())
	}
	return list
}

// prefix takes an operand with its prefix operators and what may follow an operand directly.
func (p *parser) prefix() ast.Expr {
	from := p.tok.from
	switch {
	case p.is("not"):
		p.advance()
		x := p.exprAt(ast.PrecNot)
		p.grow()
		return &ast.Not{Span: p.span(from), X: x}
	case p.tok.kind == tokOp:
		op := p.operator()
		least := ast.PrecOther + 1
		if op.Name == "-" || op.Name == "+" {
			least = ast.PrecSign
		}
		return p.unary(from, op, least)
	case p.isOperatorWord():
		return p.unary(from, p.operator(), ast.PrecOther+1)
	}
	return p.postfix(from, p.primary())
}

func (p *parser) unary(from int, op ast.Operator, least int) ast.Expr {
	switch op.Name {
	case "<", ">", "=", "<=", ">=", "<>", "*", "/", "%", "^":
		p.failAt(pgerr.SyntaxError, from, "syntax error at or near %s", quoteNear(p.lex.src, op.From, op.To))
	}
	x := p.exprAt(least)
	p.grow()
	return &ast.Unary{Span: p.span(from), Op: op, X: x}
}

// isOperatorWord reports whether OPERATOR(...) comes next.
func (p *parser) isOperatorWord() bool { return p.tok.word("operator") && p.peek(1).punct("(") }

// operator takes an operator, also as OPERATOR(schema.op).
func (p *parser) operator() (op ast.Operator) {
	from := p.tok.from
	if p.tok.kind == tokOp {
		op.Name = p.advance().text
		op.Span = p.span(from)
		return op
	}
	p.expect("operator")
	p.expectPunct("(")
	if isNameToken(p.tok) {
		op.Schema = p.ident()
		p.expectPunct(".")
	}
	if p.tok.kind != tokOp {
		p.unexpected("an operator")
	}
	op.Name = p.advance().text
	p.expectPunct(")")
	op.Span = p.span(from)
	return op
}

// postfix takes subscripts, fields, and casts.
func (p *parser) postfix(from int, x ast.Expr) ast.Expr {
	for {
		switch {
		case p.tok.punct("["):
			x = p.index(from, x)
		case p.tok.punct(".") && p.hasFields(from, x):
			p.advance()
			if p.tok.op("*") {
				p.advance()
				x = &ast.FieldStar{Span: p.span(from), X: x}
				return x
			}
			name := p.label("a field")
			x = &ast.Field{Span: p.span(from), X: x, Name: name}
		case p.tok.punct("::"):
			p.advance()
			t := p.typeName()
			x = &ast.Cast{Span: p.span(from), X: x, Type: t}
		default:
			return x
		}
		p.grow()
	}
}

// hasFields reports whether .name may follow an operand that began at from: after a name it would be part of the name, and
// anything but a parameter and what is taken from one needs parentheses.
func (p *parser) hasFields(from int, x ast.Expr) bool {
	switch x.(type) {
	case *ast.Index, *ast.Field, *ast.Param:
		return true
	}
	return p.lex.src[from] == '('
}

func (p *parser) index(from int, x ast.Expr) ast.Expr {
	p.expectPunct("[")
	e := &ast.Index{X: x}
	if !p.tok.punct(":") {
		e.Lo = p.expr()
	}
	if p.acceptPunct(":") {
		e.Slice = true
		if !p.tok.punct("]") {
			e.Hi = p.expr()
		}
	}
	p.expectPunct("]")
	e.Span = p.span(from)
	return e
}

// infix takes the operators that follow the operand x, which began at from, as far as they bind at least as tightly as
// least. An operator at the same precedence as the one before it continues to the left, unless it is not associative.
func (p *parser) infix(from int, x ast.Expr, least int) ast.Expr {
	forbidden := 0 // the precedence of the operator before, if it is not associative
	for {
		prec, form := p.infixForm()
		if form == infixNone || prec < least {
			return x
		}
		if prec == forbidden {
			p.unexpected("an operand in parentheses: the operator before is not associative")
		}
		forbidden = 0
		left := p.height
		p.height = 0
		switch form {
		case infixLogic:
			x = p.logic(from, x, prec)
		case infixIs:
			x = p.isTest(from, x)
			if _, ok := x.(*ast.IsDistinct); ok {
				forbidden = prec
			}
		case infixMatch:
			x = p.match(from, x)
			if _, ok := x.(*ast.In); !ok {
				forbidden = prec
			}
		case infixZone:
			p.advance()
			if p.accept("local") {
				x = &ast.AtTimeZone{Span: p.span(from), X: x}
				break
			}
			p.expect("time", "zone")
			zone := p.exprAt(ast.PrecZone + 1)
			x = &ast.AtTimeZone{Span: p.span(from), X: x, Zone: zone}
		case infixCollate:
			p.advance()
			name := p.qualified("a collation")
			x = &ast.Collate{Span: p.span(from), X: x, Collation: name}
		case infixOverlaps:
			x = p.overlaps(from, x)
			forbidden = prec
		case infixOperator:
			x = p.binary(from, x, prec)
			if _, ok := x.(*ast.Binary); ok && prec == ast.PrecCompare {
				forbidden = prec
			}
		}
		p.height = max(left, p.height)
		p.grow()
	}
}

// infixKind is a family of infix operators.
type infixKind uint8

const (
	infixNone infixKind = iota
	infixLogic
	infixIs
	infixMatch
	infixZone
	infixCollate
	infixOverlaps
	infixOperator
)

// infixForm says which infix operator the current token begins, if any.
func (p *parser) infixForm() (prec int, form infixKind) {
	switch p.tok.kind {
	case tokOp:
		return ast.Precedence(p.tok.text), infixOperator
	case tokWord:
		switch p.tok.text {
		case "and":
			return ast.PrecAnd, infixLogic
		case "or":
			return ast.PrecOr, infixLogic
		case "is", "isnull", "notnull":
			return ast.PrecIs, infixIs
		case "between", "in", "like", "ilike":
			return ast.PrecMatch, infixMatch
		case "similar":
			if p.peek(1).word("to") {
				return ast.PrecMatch, infixMatch
			}
		case "not":
			if t := p.peek(1); t.word("between") || t.word("in") || t.word("like") || t.word("ilike") || t.word("similar") {
				return ast.PrecMatch, infixMatch
			}
		case "at":
			if t := p.peek(1); t.word("time") || t.word("local") {
				return ast.PrecZone, infixZone
			}
		case "collate":
			return ast.PrecCollate, infixCollate
		case "overlaps":
			return ast.PrecCompare, infixOverlaps
		case "operator":
			if p.peek(1).punct("(") {
				return ast.PrecOther, infixOperator
			}
		}
	}
	return 0, infixNone
}

// logic takes a chain of ANDs or ORs: a chain is one node, however long.
func (p *parser) logic(from int, x ast.Expr, prec int) ast.Expr {
	word, op := "and", ast.And
	if prec == ast.PrecOr {
		word, op = "or", ast.Or
	}
	e := &ast.Logic{Op: op}
	if first, ok := x.(*ast.Logic); ok && first.Op == op {
		e.Args = append(e.Args, first.Args...) // (a AND b) AND c
	} else {
		e.Args = append(e.Args, x)
	}
	for p.accept(word) {
		e.Args = append(e.Args, p.exprAt(prec+1))
	}
	e.Span = p.span(from)
	return e
}

func (p *parser) isTest(from int, x ast.Expr) ast.Expr {
	switch word := p.advance().text; word {
	case "isnull", "notnull":
		return &ast.Is{Span: p.span(from), X: x, Not: word == "notnull", Kind: ast.IsNull}
	}
	not := p.accept("not")
	switch {
	case p.is("null", "true", "false", "unknown"):
		kinds := map[string]ast.IsKind{
			"null": ast.IsNull, "true": ast.IsTrue, "false": ast.IsFalse, "unknown": ast.IsUnknown,
		}
		kind := kinds[p.advance().text]
		return &ast.Is{Span: p.span(from), X: x, Not: not, Kind: kind}
	case p.accept("distinct"):
		p.expect("from")
		r := p.exprAt(ast.PrecIs + 1)
		return &ast.IsDistinct{Span: p.span(from), L: x, R: r, Not: not}
	case p.accept("json"):
		e := &ast.IsJSON{X: x, Not: not}
		if p.is("value", "array", "object", "scalar") {
			e.Kind = strings.ToUpper(p.advance().text)
		}
		e.Span = p.span(from)
		return e
	}
	p.unexpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
	return nil
}

// match takes [NOT] BETWEEN, IN, LIKE, ILIKE and SIMILAR TO.
func (p *parser) match(from int, x ast.Expr) ast.Expr {
	at := p.tok.from
	not := p.accept("not")
	switch word := p.advance().text; word {
	case "between":
		e := &ast.Between{X: x, Not: not}
		if e.Symmetric = p.accept("symmetric"); !e.Symmetric {
			p.accept("asymmetric")
		}
		e.Lo = p.exprAt(ast.PrecMatch + 1)
		p.expect("and")
		e.Hi = p.exprAt(ast.PrecMatch + 1)
		e.Span = p.span(from)
		return e
	case "in":
		e := &ast.In{X: x, Not: not}
		p.expectPunct("(")
		e.Query, e.List = p.parenthesised()
		e.Span = p.span(from)
		return e
	default:
		e := &ast.Match{X: x, Not: not, Kind: ast.Like}
		switch word {
		case "ilike":
			e.Kind = ast.ILike
		case "similar":
			p.expect("to")
			e.Kind = ast.SimilarTo
		}
		if e.Kind != ast.SimilarTo && p.isQuantifier() {
			op := map[bool]string{false: "~~", true: "!~~"}[not]
			if e.Kind == ast.ILike {
				op += "*"
			}
			return p.quantified(from, x, ast.Operator{Span: p.span(at), Name: op})
		}
		e.Pattern = p.exprAt(ast.PrecMatch + 1)
		if p.accept("escape") {
			e.Escape = p.exprAt(ast.PrecMatch + 1)
		}
		e.Span = p.span(from)
		return e
	}
}

// overlaps takes (a, b) OVERLAPS (c, d), which is a call of the function of that name.
func (p *parser) overlaps(from int, x ast.Expr) ast.Expr {
	word := p.ident()
	at := p.tok.from
	y := p.exprAt(ast.PrecCompare + 1)
	call := &ast.FuncCall{Name: ast.Name{Span: word.Span, Parts: []ast.Ident{word}}}
	for i, side := range []ast.Expr{x, y} {
		row, ok := side.(*ast.Row)
		if !ok || len(row.Items) != 2 {
			p.failAt(pgerr.SyntaxError, []int{from, at}[i], "wrong number of parameters on %s side of OVERLAPS expression",
				[]string{"left", "right"}[i])
			return nil
		}
		for _, item := range row.Items {
			call.Args = append(call.Args, ast.Arg{Span: item.Extent(), Value: item})
		}
	}
	call.Span = p.span(from)
	return call
}

func (p *parser) isQuantifier() bool { return p.is("any", "some", "all") && p.peek(1).punct("(") }

func (p *parser) binary(from int, x ast.Expr, prec int) ast.Expr {
	op := p.operator()
	if p.isQuantifier() {
		return p.quantified(from, x, op)
	}
	r := p.exprAt(prec + 1)
	return &ast.Binary{Span: p.span(from), Op: op, L: x, R: r}
}

func (p *parser) quantified(from int, x ast.Expr, op ast.Operator) ast.Expr {
	e := &ast.Quantified{X: x, Op: op, All: p.is("all")}
	p.advance()
	p.expectPunct("(")
	at := p.tok.from
	query, list := p.parenthesised()
	if e.Query = query; query == nil {
		if len(list) != 1 {
			p.failAt(pgerr.SyntaxError, at, "ANY and ALL take one array or one query")
		}
		e.Array = list[0]
	}
	e.Span = p.span(from)
	return e
}

// startsQuery reports whether a token begins a query.
func startsQuery(t token) bool {
	return t.word("select") || t.word("values") || t.word("with") || t.word("table")
}

// parenthesised takes what follows an opening parenthesis, and the closing one: a query or expressions. Which of them it
// is may be known only after any number of further opening parentheses, as in ((SELECT 1) UNION SELECT 2) and
// ((SELECT 1) + 1); so what these hold is taken first, and goes on as what the next token makes of it.
func (p *parser) parenthesised() (*ast.Query, []ast.Expr) {
	p.enter()
	defer p.leave()
	from := p.tok.from
	if startsQuery(p.tok) && !p.isValuesName() {
		q := p.query()
		p.expectPunct(")")
		return q, nil
	}
	var list []ast.Expr
	if p.acceptPunct("(") {
		outer := p.height
		p.height = 0
		q, inner := p.parenthesised()
		var first ast.Expr
		switch {
		case q != nil && (p.tok.punct(")") || p.continuesQuery()):
			q = p.continueQuery(from, q)
			p.expectPunct(")")
			p.height = max(outer, p.height)
			return q, nil
		case q != nil:
			first = &ast.Subquery{Span: p.span(from), Query: q}
		default:
			first = p.parenthesisedExpr(from, inner)
		}
		list = append(list, p.infix(from, p.postfix(from, first), ast.PrecLowest))
		p.height = max(outer, p.height)
	} else {
		list = append(list, p.expr())
	}
	for p.acceptPunct(",") {
		list = append(list, p.expr())
	}
	p.expectPunct(")")
	return nil, list
}

// isValuesName reports whether the word values is a name here: it may be a column's.
func (p *parser) isValuesName() bool { return p.is("values") && !p.peek(1).punct("(") }

// parenthesisedExpr makes an expression of what was in parentheses.
func (p *parser) parenthesisedExpr(from int, list []ast.Expr) ast.Expr {
	if len(list) == 1 {
		return list[0]
	}
	return &ast.Row{Span: p.span(from), Items: list}
}

// primary takes an operand without prefix operators.
func (p *parser) primary() ast.Expr {
	t := p.tok
	span := ast.Span{From: t.from, To: t.to}
	switch t.kind {
	case tokNumber:
		p.advance()
		return &ast.Number{Span: span, Text: t.text}
	case tokString:
		p.advance()
		return &ast.String{Span: span, Value: t.text}
	case tokBits, tokHex:
		p.advance()
		return &ast.BitString{Span: span, Digits: t.text, Hex: t.kind == tokHex}
	case tokParam:
		p.advance()
		return &ast.Param{Span: span, Number: t.number}
	case tokPunct:
		if t.text == "(" {
			p.advance()
			query, list := p.parenthesised()
			if query != nil {
				p.grow()
				return &ast.Subquery{Span: p.span(t.from), Query: query}
			}
			return p.parenthesisedExpr(t.from, list)
		}
	case tokWord:
		if e := p.special(); e != nil {
			p.grow()
			return e
		}
		return p.nameOrCall()
	case tokQuoted:
		return p.nameOrCall()
	}
	p.unexpected("an expression")
	return nil
}

// nameOrCall takes a column, a call, or a literal with a type's name in front.
func (p *parser) nameOrCall() ast.Expr {
	first := p.tok
	if !isNameToken(first) && !isFuncToken(first) {
		p.unexpected("an expression")
	}
	from := first.from
	parts := []ast.Ident{p.ident()}
	for p.tok.punct(".") {
		p.advance()
		if p.tok.op("*") {
			p.advance()
			return &ast.Star{Span: p.span(from), Qualifier: parts}
		}
		parts = append(parts, p.label("a name"))
	}
	function := len(parts) > 1 || isFuncToken(first)
	switch {
	case p.tok.punct("(") && function:
		if len(parts) > 3 {
			p.failAt(pgerr.SyntaxError, from, "improper qualified name (too many dotted names): %s",
				p.lex.src[from:p.last])
		}
		call := &ast.FuncCall{Name: ast.Name{Span: p.span(from), Parts: parts}}
		p.arguments(call)
		if p.tok.kind == tokString {
			return p.typedByCall(call)
		}
		p.callSuffix(from, call)
		return call
	case p.tok.kind == tokString && function && len(parts) <= 2:
		t := ast.TypeName{Span: p.span(from), Name: parts[len(parts)-1].Name}
		if len(parts) == 2 {
			t.Schema = parts[0]
		}
		value := p.text("a string")
		return &ast.TypedString{Span: p.span(from), Type: t, Value: *value}
	case !isNameToken(first):
		p.unexpected(`"("`)
	}
	return &ast.ColumnRef{Span: p.span(from), Parts: parts}
}

// typedByCall makes a literal of what looked like a call: numeric(10,2) '1.5' with a type that is no keyword.
func (p *parser) typedByCall(call *ast.FuncCall) ast.Expr {
	parts := call.Name.Parts
	t := ast.TypeName{Span: p.span(call.Name.From), Name: parts[len(parts)-1].Name}
	ok := len(parts) <= 2 && !call.Star && !call.Distinct && call.OrderBy == nil && len(call.Args) > 0
	if len(parts) == 2 {
		t.Schema = parts[0]
	}
	for _, a := range call.Args {
		n, integer := typeModifier(a)
		ok = ok && integer
		t.Mods = append(t.Mods, n)
	}
	if !ok {
		p.unexpected("the end of the expression")
	}
	value := p.text("a string")
	return &ast.TypedString{Span: p.span(call.Name.From), Type: t, Value: *value}
}

func typeModifier(a ast.Arg) (int32, bool) {
	x, sign := a.Value, int64(1)
	if u, ok := x.(*ast.Unary); ok && u.Op.Name == "-" && !u.Op.Schema.Given() {
		x, sign = u.X, -1
	}
	n, ok := x.(*ast.Number)
	if !ok || a.Variadic || a.Name.Given() || len(n.Text) > 9 {
		return 0, false
	}
	v := int64(0)
	for i := range len(n.Text) {
		if !isDigit(n.Text[i]) {
			return 0, false
		}
		v = v*10 + int64(n.Text[i]-'0')
	}
	return int32(sign * v), true
}

package parse

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// parser holds the position in the tokens. Its methods that parse something leave with what they parsed, or with a panic
// of a failure, which the exported functions turn into an error: almost every line of a parser can fail, and none goes on.
type parser struct {
	lex     lexer
	tok     token    // the current one
	ahead   [3]token // what peek has read beyond tok
	waiting int      // how many of ahead are there
	last    int      // where the token before tok ends
	tokens  int
	depth   int
	// height is the greatest height of any expression completed since whoever collects it set it to 0.
	height int
}

// failure is what a parser panics with.
type failure struct{ err error }

func newParser(text string) (*parser, error) {
	if len(text) > MaxBytes {
		return nil, pgerr.Newf(pgerr.ProgramLimitExceeded, "statement of %d bytes is too long", len(text)).
			WithHint("At most %d bytes are parsed at once: send fewer statements, or shorter ones.", MaxBytes)
	}
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		at := badText([]byte(text))
		return nil, badBytes([]byte(text[at:at+1]), at)
	}
	p := &parser{lex: lexer{src: text}}
	t, err := p.lex.next()
	if err != nil {
		return nil, err
	}
	p.tok = t
	return p, nil
}

// recover stores a failure in err; any other panic goes on.
func (p *parser) recover(err *error, undo func()) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.err
		undo()
	default:
		panic(r)
	}
}

// syntaxError makes an error at a byte offset.
func syntaxError(code, message string, offset int) *Error {
	return pgerr.New(code, message).At(offset + 1)
}

// quoteNear returns the text of what an error is about, cut to a readable length.
func quoteNear(src string, from, to int) string {
	const most = 120
	s := src[from:to]
	if len(s) > most {
		n := most
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "..."
	}
	return `"` + s + `"`
}

func (p *parser) fail(err error) { panic(failure{err}) }

// failAt fails with a message about what begins at offset.
func (p *parser) failAt(code string, offset int, format string, args ...any) {
	p.fail(syntaxError(code, fmt.Sprintf(format, args...), offset))
}

// unsupported fails because Leat does not have something that PostgreSQL has.
func (p *parser) unsupported(offset int, what, hint string) {
	err := syntaxError(pgerr.FeatureNotSupported, what+" is not supported", offset)
	if hint != "" {
		err = err.WithHint("%s", hint)
	}
	p.fail(err)
}

// unexpected fails at the current token. expected says what would have been right.
func (p *parser) unexpected(expected string) {
	message := "syntax error at end of input"
	if p.tok.kind != tokEOF {
		message = "syntax error at or near " + quoteNear(p.lex.src, p.tok.from, p.tok.to)
	}
	err := syntaxError(pgerr.SyntaxError, message, p.tok.from)
	if expected != "" {
		err = err.WithHint("%s", "Expected "+expected+".")
	}
	p.fail(err)
}

// advance moves to the next token and returns the one that was current.
func (p *parser) advance() token {
	t := p.tok
	p.last = t.to
	if p.waiting > 0 {
		p.tok = p.ahead[0]
		copy(p.ahead[:], p.ahead[1:p.waiting])
		p.waiting--
	} else {
		p.tok = p.read()
	}
	return t
}

func (p *parser) read() token {
	if p.tokens++; p.tokens > MaxTokens {
		p.fail(syntaxError(pgerr.ProgramLimitExceeded, "statement has too many tokens", p.lex.pos).
			WithHint("At most %d are parsed at once: send fewer statements, or shorter ones.", MaxTokens))
	}
	t, err := p.lex.next()
	if err != nil {
		p.fail(err)
	}
	return t
}

// peek returns the n-th token after the current one, n from 1 to 3.
func (p *parser) peek(n int) token {
	for p.waiting < n {
		p.ahead[p.waiting] = p.read()
		p.waiting++
	}
	return p.ahead[n-1]
}

// span returns the span from an offset to the end of the last token taken.
func (p *parser) span(from int) ast.Span { return ast.Span{From: from, To: max(from, p.last)} }

// enter counts a level of nesting; the caller calls leave when it is left.
func (p *parser) enter() {
	if p.depth++; p.depth > MaxDepth {
		p.tooDeep()
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) tooDeep() {
	p.fail(syntaxError(pgerr.StatementTooComplex, "statement is nested too deeply", p.tok.from).
		WithHint("At most %d levels of parentheses and queries, and a chain of %d operators, are parsed: use intermediate views.",
			MaxDepth, MaxHeight))
}

// grow makes the tree that is being built one higher.
func (p *parser) grow() {
	if p.height++; p.height > MaxHeight {
		p.tooDeep()
	}
}

func (p *parser) end() {
	if p.tok.kind != tokEOF {
		p.unexpected("the end of the input")
	}
}

func (p *parser) is(words ...string) bool {
	if p.tok.kind != tokWord {
		return false
	}
	for _, w := range words {
		if p.tok.text == w {
			return true
		}
	}
	return false
}

// isSeq reports whether the current and the following tokens (at most three more) are these words.
func (p *parser) isSeq(words ...string) bool {
	if !p.tok.word(words[0]) {
		return false
	}
	for i, w := range words[1:] {
		if !p.peek(i + 1).word(w) {
			return false
		}
	}
	return true
}

func (p *parser) accept(word string) bool {
	if p.tok.word(word) {
		p.advance()
		return true
	}
	return false
}

// acceptSeq takes all these words, or nothing.
func (p *parser) acceptSeq(words ...string) bool {
	if !p.isSeq(words...) {
		return false
	}
	for range words {
		p.advance()
	}
	return true
}

func (p *parser) acceptPunct(s string) bool {
	if p.tok.punct(s) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(words ...string) {
	for _, w := range words {
		if !p.accept(w) {
			p.unexpected(strings.ToUpper(w))
		}
	}
}

func (p *parser) expectPunct(s string) {
	if !p.acceptPunct(s) {
		p.unexpected(strconv.Quote(s))
	}
}

// expectWord takes one of these words and returns it in upper case.
func (p *parser) expectWord(words ...string) string {
	if !p.is(words...) {
		p.unexpected(strings.ToUpper(strings.Join(words, " or ")))
	}
	return strings.ToUpper(p.advance().text)
}

func (p *parser) ident() ast.Ident {
	t := p.advance()
	return ast.Ident{Span: ast.Span{From: t.from, To: t.to}, Name: t.text}
}

// isName reports whether a token may be the name of a column or table.
func isNameToken(t token) bool {
	return t.kind == tokQuoted || t.kind == tokWord && t.class <= ast.ColumnName
}

// isFuncToken reports whether a token may be the name of a function or type.
func isFuncToken(t token) bool {
	return t.kind == tokQuoted ||
		t.kind == tokWord && (t.class == ast.NotKeyword || t.class == ast.Unreserved || t.class == ast.TypeFuncName)
}

// isLabelToken reports whether a token may be a label: after AS, and after a dot.
func isLabelToken(t token) bool { return t.kind == tokQuoted || t.kind == tokWord }

// name takes the name of a column, table or other object.
func (p *parser) name(what string) ast.Ident {
	if !isNameToken(p.tok) {
		p.unexpected(what)
	}
	return p.ident()
}

// label takes any word or quoted name.
func (p *parser) label(what string) ast.Ident {
	if !isLabelToken(p.tok) {
		p.unexpected(what)
	}
	return p.ident()
}

// qualified takes a name of up to three parts.
func (p *parser) qualified(what string) ast.Name {
	from := p.tok.from
	parts := []ast.Ident{p.name(what)}
	for p.acceptPunct(".") {
		parts = append(parts, p.label("a name"))
	}
	if len(parts) > 3 {
		p.failAt(pgerr.SyntaxError, from, "improper qualified name (too many dotted names): %s",
			p.lex.src[from:p.last])
	}
	return ast.Name{Span: p.span(from), Parts: parts}
}

// names takes names separated by commas.
func (p *parser) names(what string) []ast.Name {
	names := []ast.Name{p.qualified(what)}
	for p.acceptPunct(",") {
		names = append(names, p.qualified(what))
	}
	return names
}

// columns takes (a, b, c).
func (p *parser) columns() []ast.Ident {
	p.expectPunct("(")
	list := []ast.Ident{p.name("a column name")}
	for p.acceptPunct(",") {
		list = append(list, p.name("a column name"))
	}
	p.expectPunct(")")
	return list
}

// optionalColumns takes (a, b, c) if it is there.
func (p *parser) optionalColumns() []ast.Ident {
	if p.tok.punct("(") {
		return p.columns()
	}
	return nil
}

// text takes a string literal.
func (p *parser) text(what string) *ast.String {
	if p.tok.kind != tokString {
		p.unexpected(what)
	}
	t := p.advance()
	return &ast.String{Span: ast.Span{From: t.from, To: t.to}, Value: t.text}
}

// rest takes all tokens up to the end of the statement and returns them, as written, joined by single spaces.
func (p *parser) rest() string {
	var b strings.Builder
	for p.tok.kind != tokEOF && !p.tok.punct(";") {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p.lex.src[p.tok.from:p.tok.to])
		p.advance()
	}
	return b.String()
}

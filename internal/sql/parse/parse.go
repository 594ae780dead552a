// Package parse turns the text of SQL into the trees of package ast.
//
// It owns the grammar: a scanner that makes tokens on demand and a hand-written recursive-descent parser with precedence
// climbing for expressions. Where PostgreSQL and the standard leave no doubt, what PostgreSQL takes is taken, and what it
// refuses is refused with its message, SQLSTATE and position.
//
// What always holds:
//   - no input makes it panic, and no input makes it recurse deeper than MaxDepth or build a tree higher than MaxHeight;
//   - a text longer than MaxBytes, or of more than MaxTokens tokens, is refused;
//   - every node's span is a range of bytes of the text that was given, and every error has the position of the token that
//     it is about, if there is one.
package parse

import (
	"strings"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// The bounds on what is parsed.
const (
	MaxBytes     = 16 << 20 // of the text, with all its statements
	MaxTokens    = 2 << 20  // of the text
	MaxDepth     = 256      // of parentheses, calls, queries and prefix operators within each other
	MaxHeight    = 4096     // of a tree: long chains of infix operators, joins and set operations count too
	MaxNameBytes = 255      // of one part of a name
	MaxParam     = 65535    // of $n, as the protocol has it
)

// Error is what this package returns: Position is a byte offset plus one, relative to the whole text.
type Error = pgerr.Error

// Statement is one statement of a text.
type Statement struct {
	ast.Span          // in the whole text, without the semicolon
	Node     ast.Stmt // never nil
}

// Parse parses statements separated by semicolons. Empty ones are left out, so a text without any gives none. The error, if
// any, is an *Error; then no statement is returned.
func Parse(text string) (statements []Statement, err error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	defer p.recover(&err, func() { statements = nil })
	for {
		for p.acceptPunct(";") {
		}
		if p.tok.kind == tokEOF {
			return statements, nil
		}
		from := p.tok.from
		node := p.statement()
		statements = append(statements, Statement{Span: p.span(from), Node: node})
		if p.tok.kind != tokEOF && !p.tok.punct(";") {
			p.unexpected("the end of the statement")
		}
		p.height = 0
	}
}

// ParseQuery parses exactly one query.
func ParseQuery(text string) (query *ast.Query, err error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	defer p.recover(&err, func() { query = nil })
	query = p.query()
	p.acceptPunct(";")
	p.end()
	return query, nil
}

// ParseExpr parses exactly one expression.
func ParseExpr(text string) (expr ast.Expr, err error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	defer p.recover(&err, func() { expr = nil })
	expr = p.expr()
	p.end()
	return expr, nil
}

// ParseType parses exactly one type, such as numeric(10,2)[].
func ParseType(text string) (typ ast.TypeName, err error) {
	p, err := newParser(text)
	if err != nil {
		return ast.TypeName{}, err
	}
	defer p.recover(&err, func() { typ = ast.TypeName{} })
	typ = p.typeName()
	p.end()
	return typ, nil
}

// Split cuts a text at the semicolons that end statements, without parsing it: a semicolon within parentheses, strings,
// quoted names or comments is no end. Each piece includes its semicolon; rest is what follows the last one, and open tells
// that it ends inside a string, quoted name, comment or parenthesis. It is what an interactive client needs to know
// whether a statement is complete.
func Split(text string) (pieces []string, rest string, open bool) {
	lex := lexer{src: text}
	start, nest := 0, 0
	for {
		t, err := lex.next()
		if err != nil {
			// Something that is not SQL ends at the next semicolon; something unterminated has none.
			at := strings.IndexByte(text[lex.pos:], ';')
			if lex.unterminated || at < 0 {
				return pieces, text[start:], true
			}
			lex.pos += at
			nest = 0
			continue
		}
		switch {
		case t.kind == tokEOF:
			return pieces, text[start:], nest > 0
		case t.punct("("):
			nest++
		case t.punct(")"):
			nest = max(nest-1, 0)
		case t.punct(";") && nest == 0:
			pieces = append(pieces, text[start:t.to])
			start = t.to
		}
	}
}

// CharPosition converts an Error's Position, a byte offset plus one, to characters counted from one, which is what field P
// of the protocol's error message holds. It is 0 for 0.
func CharPosition(text string, position int) int {
	if position <= 0 {
		return 0
	}
	return utf8.RuneCountInString(text[:min(position-1, len(text))]) + 1
}

package parse

import "github.com/leat-io/leat/internal/sql/ast"

// kind is the kind of a token.
type kind uint8

const (
	tokEOF    kind = iota
	tokWord        // an unquoted name or keyword, folded
	tokQuoted      // a quoted name
	tokNumber
	tokString
	tokBits // text holds the digits
	tokHex
	tokParam
	tokOp    // an operator, including the one-character ones
	tokPunct // ( ) [ ] , ; : . :: := => ..
)

// token is one token. text is what it means (folded, decoded), which is not what was written.
type token struct {
	kind     kind
	class    ast.KeywordClass // of a tokWord
	from, to int
	text     string
	number   int // of a tokParam
}

func (t token) word(w string) bool  { return t.kind == tokWord && t.text == w }
func (t token) punct(s string) bool { return t.kind == tokPunct && t.text == s }
func (t token) op(s string) bool    { return t.kind == tokOp && t.text == s }

// integer reports whether the token is a plain decimal integer.
func (t token) integer() bool {
	if t.kind != tokNumber || t.text == "" {
		return false
	}
	for i := range len(t.text) {
		if t.text[i] < '0' || t.text[i] > '9' {
			return false
		}
	}
	return true
}

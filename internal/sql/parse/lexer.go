package parse

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// lexer cuts a text into tokens. It keeps no tokens, so its memory is the text's.
type lexer struct {
	src          string
	pos          int
	unterminated bool // the last error was that something is not closed
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
func isName(c byte) bool { return isNameStart(c) || isDigit(c) || c == '$' }

const operatorBytes = "~!@#^&|`?+-*/%<>="

func isOperator(c byte) bool { return strings.IndexByte(operatorBytes, c) >= 0 }

// at returns the byte at offset i, or 0 beyond the end.
func (l *lexer) at(i int) byte {
	if i < len(l.src) {
		return l.src[i]
	}
	return 0
}

func (l *lexer) fail(code, message string, from, to int) error {
	return syntaxError(code, message+" at or near "+quoteNear(l.src, from, to), from)
}

// open is the error for something that began at from and never ends.
func (l *lexer) open(what string, from int) error {
	l.unterminated = true
	l.pos = len(l.src)
	return l.fail(pgerr.SyntaxError, "unterminated "+what, from, len(l.src))
}

// skip moves past white space and comments, and reports whether it met a line break.
func (l *lexer) skip() (newline bool, err error) {
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		switch {
		case isSpace(c):
			newline = newline || c == '\n' || c == '\r'
			l.pos++
		case c == '-' && l.at(l.pos+1) == '-':
			for l.pos < len(l.src) && l.src[l.pos] != '\n' && l.src[l.pos] != '\r' {
				l.pos++
			}
		case c == '/' && l.at(l.pos+1) == '*':
			from, nest := l.pos, 1
			l.pos += 2
			for nest > 0 {
				switch {
				case l.pos >= len(l.src):
					return newline, l.open("/* comment", from)
				case l.src[l.pos] == '*' && l.at(l.pos+1) == '/':
					nest--
					l.pos += 2
				case l.src[l.pos] == '/' && l.at(l.pos+1) == '*':
					nest++
					l.pos += 2
				default:
					l.pos++
				}
			}
		default:
			return newline, nil
		}
	}
	return newline, nil
}

// next returns the next token. After an error, pos is behind what was wrong.
func (l *lexer) next() (token, error) {
	if _, err := l.skip(); err != nil {
		return token{}, err
	}
	from := l.pos
	if from >= len(l.src) {
		return token{kind: tokEOF, from: from, to: from}, nil
	}
	c, c1 := l.src[from], l.at(from+1)
	switch {
	case c == '\'':
		return l.plainString(from, from+1)
	case (c == 'e' || c == 'E') && c1 == '\'':
		return l.escapeString(from)
	case (c == 'n' || c == 'N') && c1 == '\'':
		return l.plainString(from, from+2)
	case (c == 'b' || c == 'B') && c1 == '\'':
		return l.bitString(from, tokBits)
	case (c == 'x' || c == 'X') && c1 == '\'':
		return l.bitString(from, tokHex)
	case (c == 'u' || c == 'U') && c1 == '&' && (l.at(from+2) == '\'' || l.at(from+2) == '"'):
		return l.unicode(from)
	case c == '"':
		return l.quotedName(from)
	case c == '$':
		return l.dollar(from)
	case isNameStart(c):
		return l.word(from)
	case isDigit(c) || c == '.' && isDigit(c1):
		return l.number(from)
	}
	return l.symbol(from)
}

func (l *lexer) word(from int) (token, error) {
	upper := false
	for l.pos < len(l.src) && isName(l.src[l.pos]) {
		c := l.src[l.pos]
		upper = upper || c >= 'A' && c <= 'Z'
		l.pos++
	}
	text := l.src[from:l.pos]
	if len(text) > MaxNameBytes {
		return token{}, l.longName(from)
	}
	if upper {
		// Only ASCII letters fold, as in PostgreSQL with UTF-8: other letters have no case that all agree on.
		b := []byte(text)
		for i, c := range b {
			if c >= 'A' && c <= 'Z' {
				b[i] = c + 'a' - 'A'
			}
		}
		text = string(b)
	}
	return token{kind: tokWord, class: ast.Keyword(text), from: from, to: l.pos, text: text}, nil
}

func (l *lexer) longName(from int) error {
	return l.fail(pgerr.NameTooLong, "name is longer than "+strconv.Itoa(MaxNameBytes)+" bytes", from, l.pos)
}

// quoted reads up to the closing quote, doubled ones being part of the text, and returns what is between.
func (l *lexer) quoted(from, body int, quote byte, what string) (string, error) {
	var doubled []byte
	start := body
	for i := body; ; i++ {
		switch {
		case i >= len(l.src):
			return "", l.open(what, from)
		case l.src[i] != quote:
		case l.at(i+1) == quote:
			doubled = append(doubled, l.src[start:i+1]...)
			i++
			start = i + 1
		default:
			l.pos = i + 1
			if doubled == nil {
				return l.src[body:i], nil
			}
			return string(append(doubled, l.src[start:i]...)), nil
		}
	}
}

// continued reports whether another quoted piece follows that belongs to the same literal: it must be on another line.
// It leaves pos at the quote, or where it was.
func (l *lexer) continued() bool {
	back := l.pos
	newline, err := l.skip()
	if err == nil && newline && l.at(l.pos) == '\'' {
		return true
	}
	l.pos, l.unterminated = back, false
	return false
}

// pieces reads a literal whose first piece's text begins at body and all pieces that continue it.
func (l *lexer) pieces(from, body int, what string) (string, error) {
	text, err := l.quoted(from, body, '\'', what)
	if err != nil || !l.continued() {
		return text, err
	}
	var b strings.Builder
	b.WriteString(text)
	for {
		if text, err = l.quoted(from, l.pos+1, '\'', what); err != nil {
			return "", err
		}
		b.WriteString(text)
		if !l.continued() {
			return b.String(), nil
		}
	}
}

func (l *lexer) plainString(from, body int) (token, error) {
	text, err := l.pieces(from, body, "quoted string")
	return token{kind: tokString, from: from, to: l.pos, text: text}, err
}

func (l *lexer) bitString(from int, k kind) (token, error) {
	what := "bit string literal"
	if k == tokHex {
		what = "hexadecimal string literal"
	}
	text, err := l.pieces(from, from+2, what)
	if err != nil {
		return token{}, err
	}
	for i := range len(text) {
		if k == tokBits && text[i] != '0' && text[i] != '1' {
			return token{}, syntaxError(pgerr.InvalidTextRepresentation,
				strconv.Quote(text[i:i+1])+" is not a valid binary digit", from)
		}
		if k == tokHex && !isHex(text[i]) {
			return token{}, syntaxError(pgerr.InvalidTextRepresentation,
				strconv.Quote(text[i:i+1])+" is not a valid hexadecimal digit", from)
		}
	}
	return token{kind: k, from: from, to: l.pos, text: text}, nil
}

func (l *lexer) quotedName(from int) (token, error) {
	text, err := l.quoted(from, from+1, '"', "quoted identifier")
	if err != nil {
		return token{}, err
	}
	return l.checkName(from, text)
}

func (l *lexer) checkName(from int, text string) (token, error) {
	if text == "" {
		return token{}, l.fail(pgerr.SyntaxError, "zero-length delimited identifier", from, l.pos)
	}
	if len(text) > MaxNameBytes {
		return token{}, l.longName(from)
	}
	return token{kind: tokQuoted, from: from, to: l.pos, text: text}, nil
}

// escapeString reads E'...', with the escapes of C and of Unicode.
func (l *lexer) escapeString(from int) (token, error) {
	const what = "quoted string"
	var b []byte
	i := from + 2
	for {
		if i >= len(l.src) {
			return token{}, l.open(what, from)
		}
		c := l.src[i]
		switch {
		case c == '\'' && l.at(i+1) == '\'':
			b = append(b, '\'')
			i += 2
		case c == '\'':
			l.pos = i + 1
			if l.continued() {
				i = l.pos + 1
				continue
			}
			if at := badText(b); at >= 0 {
				return token{}, badBytes(b[at:], from)
			}
			return token{kind: tokString, from: from, to: l.pos, text: string(b)}, nil
		case c == '\\':
			var err error
			if b, i, err = l.escape(b, i, from); err != nil {
				return token{}, err
			}
		default:
			b = append(b, c)
			i++
		}
	}
}

// escape decodes the escape at i and returns the offset behind it.
func (l *lexer) escape(b []byte, i, from int) ([]byte, int, error) {
	if i+1 >= len(l.src) {
		return nil, 0, l.open("quoted string", from)
	}
	c := l.src[i+1]
	switch c {
	case 'b':
		return append(b, '\b'), i + 2, nil
	case 'f':
		return append(b, '\f'), i + 2, nil
	case 'n':
		return append(b, '\n'), i + 2, nil
	case 'r':
		return append(b, '\r'), i + 2, nil
	case 't':
		return append(b, '\t'), i + 2, nil
	case 'v':
		return append(b, '\v'), i + 2, nil
	case 'x':
		end := i + 2
		for end < i+4 && isHex(l.at(end)) {
			end++
		}
		if end == i+2 {
			return append(b, 'x'), end, nil
		}
		n, _ := strconv.ParseUint(l.src[i+2:end], 16, 8)
		return append(b, byte(n)), end, nil
	case 'u', 'U':
		digits := 4
		if c == 'U' {
			digits = 8
		}
		r, ok := l.hex(i+2, digits)
		if !ok {
			l.pos = min(i+2+digits, len(l.src))
			return nil, 0, syntaxError(pgerr.InvalidEscapeSequence, "invalid Unicode escape", i).
				WithHint(`Unicode escapes must be \uXXXX or \UXXXXXXXX.`)
		}
		end := i + 2 + digits
		if utf16.IsSurrogate(r) {
			low, ok := rune(-1), false
			if l.at(end) == '\\' && l.at(end+1) == 'u' {
				low, ok = l.hex(end+2, 4)
				end += 6
			}
			if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
				l.pos = i + 2
				return nil, 0, l.fail(pgerr.SyntaxError, "invalid Unicode surrogate pair", i, min(end, len(l.src)))
			}
		}
		if r == 0 || r > utf8.MaxRune {
			l.pos = i + 2
			return nil, 0, l.fail(pgerr.SyntaxError, "invalid Unicode escape value", i, min(end, len(l.src)))
		}
		return utf8.AppendRune(b, r), end, nil
	}
	if c >= '0' && c <= '7' {
		n, end := 0, i+1
		for end < i+4 && l.at(end) >= '0' && l.at(end) <= '7' {
			n = n*8 + int(l.src[end]-'0')
			end++
		}
		return append(b, byte(n)), end, nil
	}
	return append(b, c), i + 2, nil
}

// hex reads exactly n hexadecimal digits.
func (l *lexer) hex(i, n int) (rune, bool) {
	if i+n > len(l.src) {
		return 0, false
	}
	v, err := strconv.ParseUint(l.src[i:i+n], 16, 32)
	if err != nil || v > 0x7fffffff || strings.ContainsAny(l.src[i:i+n], "_+-") {
		return 0, false
	}
	return rune(v), true
}

// badText returns the index of the first byte that is not text: a NUL, or not UTF-8; -1 if all is well.
func badText(b []byte) int {
	for i := 0; i < len(b); {
		if b[i] == 0 {
			return i
		}
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func badBytes(b []byte, at int) *Error {
	return syntaxError(pgerr.CharacterNotInRepertoire,
		`invalid byte sequence for encoding "UTF8": 0x`+strconv.FormatUint(uint64(b[0])+0x100, 16)[1:], at)
}

// unicode reads U&'...' and U&"...", with an optional UESCAPE.
func (l *lexer) unicode(from int) (token, error) {
	quote := l.src[from+2]
	var raw string
	var err error
	if quote == '"' {
		raw, err = l.quoted(from, from+3, quote, "quoted identifier")
	} else {
		raw, err = l.pieces(from, from+3, "quoted string")
	}
	if err != nil {
		return token{}, err
	}
	escape, back := byte('\\'), l.pos
	if t, err := l.peekWord(); err == nil && t.word("uescape") {
		if _, err := l.skip(); err != nil {
			return token{}, err
		}
		at := l.pos
		if l.at(at) != '\'' {
			return token{}, l.fail(pgerr.SyntaxError, "UESCAPE must be followed by a simple string literal", at, l.pos)
		}
		text, err := l.quoted(at, at+1, '\'', "quoted string")
		if err != nil {
			return token{}, err
		}
		if len(text) != 1 || isHex(text[0]) || strings.IndexByte("+'\"", text[0]) >= 0 || isSpace(text[0]) ||
			text[0] >= utf8.RuneSelf {
			return token{}, l.fail(pgerr.SyntaxError, "invalid Unicode escape character", at, l.pos)
		}
		escape = text[0]
	} else {
		l.pos, l.unterminated = back, false
	}
	text, ok := decodeUnicode(raw, escape)
	if !ok {
		return token{}, syntaxError(pgerr.SyntaxError, "invalid Unicode escape", from).
			WithHint(`Unicode escapes must be \XXXX or \+XXXXXX.`)
	}
	if quote == '"' {
		return l.checkName(from, text)
	}
	return token{kind: tokString, from: from, to: l.pos, text: text}, nil
}

// peekWord skips to the next token and reads it if it is a word; pos moves on.
func (l *lexer) peekWord() (token, error) {
	if _, err := l.skip(); err != nil {
		return token{}, err
	}
	if l.pos < len(l.src) && isNameStart(l.src[l.pos]) {
		return l.word(l.pos)
	}
	return token{}, nil
}

// decodeUnicode decodes the escapes \XXXX and \+XXXXXX of a U& literal.
func decodeUnicode(raw string, escape byte) (string, bool) {
	if strings.IndexByte(raw, escape) < 0 {
		return raw, true
	}
	one := func(i int) (rune, int) { // the value of the escape at i and the offset behind it, or 0
		h := lexer{src: raw}
		if h.at(i) != escape {
			return 0, 0
		}
		if h.at(i+1) == '+' {
			if r, ok := h.hex(i+2, 6); ok {
				return r, i + 8
			}
		} else if r, ok := h.hex(i+1, 4); ok {
			return r, i + 5
		}
		return 0, 0
	}
	var b []byte
	for i := 0; i < len(raw); {
		if raw[i] != escape {
			b = append(b, raw[i])
			i++
			continue
		}
		if i+1 < len(raw) && raw[i+1] == escape {
			b = append(b, escape)
			i += 2
			continue
		}
		r, end := one(i)
		if end > 0 && utf16.IsSurrogate(r) {
			var low rune
			low, end = one(end)
			r = utf16.DecodeRune(r, low)
			if r == utf8.RuneError {
				end = 0
			}
		}
		if end == 0 || r == 0 || r > utf8.MaxRune {
			return "", false
		}
		b = utf8.AppendRune(b, r)
		i = end
	}
	return string(b), true
}

// dollar reads $1, $$...$$ or $tag$...$tag$.
func (l *lexer) dollar(from int) (token, error) {
	if isDigit(l.at(from + 1)) {
		end := from + 1
		for isDigit(l.at(end)) {
			end++
		}
		l.pos = end
		if isNameStart(l.at(end)) {
			for isName(l.at(end)) {
				end++
			}
			l.pos = end
			return token{}, l.fail(pgerr.SyntaxError, "trailing junk after parameter", from, end)
		}
		n, err := strconv.Atoi(l.src[from+1 : end])
		if err != nil || n > MaxParam {
			return token{}, l.fail(pgerr.SyntaxError, "parameter number too large", from, end)
		}
		if n == 0 {
			return token{}, syntaxError(pgerr.UndefinedParameter, "there is no parameter $0", from)
		}
		return token{kind: tokParam, from: from, to: end, number: n}, nil
	}
	end := from + 1
	for end < len(l.src) && isName(l.src[end]) && l.src[end] != '$' {
		end++
	}
	if l.at(end) != '$' {
		l.pos = from + 1
		return token{}, l.fail(pgerr.SyntaxError, "syntax error", from, from+1)
	}
	tag := l.src[from : end+1]
	n := strings.Index(l.src[end+1:], tag)
	if n < 0 {
		return token{}, l.open("dollar-quoted string", from)
	}
	l.pos = end + 1 + n + len(tag)
	return token{kind: tokString, from: from, to: l.pos, text: l.src[end+1 : end+1+n]}, nil
}

// number reads an integer (decimal, 0x, 0o, 0b) or a decimal with a fraction and an exponent; single underscores may
// stand between digits.
func (l *lexer) number(from int) (token, error) {
	i := from
	digits := func(ok func(byte) bool) bool { // reads digits; false if there is none, or an underscore out of place
		n := 0
		for ok(l.at(i)) || n > 0 && l.at(i) == '_' && ok(l.at(i+1)) {
			i++
			n++
		}
		return n > 0
	}
	valid := true
	if base := l.at(from+1) | 0x20; l.src[from] == '0' && (base == 'x' || base == 'o' || base == 'b') {
		i += 2
		if l.at(i) == '_' {
			i++
		}
		valid = digits(func(c byte) bool {
			return base == 'x' && isHex(c) || base == 'o' && c >= '0' && c <= '7' || base == 'b' && (c == '0' || c == '1')
		})
	} else {
		digits(isDigit)
		if l.at(i) == '.' && l.at(i+1) != '.' {
			i++
			if l.at(i) != '_' {
				digits(isDigit)
			}
		}
		if l.at(i)|0x20 == 'e' {
			i++
			if l.at(i) == '+' || l.at(i) == '-' {
				i++
			}
			valid = digits(isDigit)
		}
	}
	l.pos = i
	if !valid || isNameStart(l.at(i)) || isDigit(l.at(i)) {
		for isName(l.at(i)) {
			i++
		}
		l.pos = i
		return token{}, l.fail(pgerr.SyntaxError, "trailing junk after numeric literal", from, i)
	}
	text := strings.ReplaceAll(l.src[from:i], "_", "")
	return token{kind: tokNumber, from: from, to: i, text: strings.ToLower(text)}, nil
}

// symbol reads punctuation or an operator.
func (l *lexer) symbol(from int) (token, error) {
	two := ""
	if from+2 <= len(l.src) {
		two = l.src[from : from+2]
	}
	switch {
	case two == "::" || two == ":=" || two == "..":
		l.pos += 2
		return token{kind: tokPunct, from: from, to: l.pos, text: two}, nil
	case strings.IndexByte("()[],;:.", l.src[from]) >= 0:
		l.pos++
		return token{kind: tokPunct, from: from, to: l.pos, text: l.src[from:l.pos]}, nil
	case !isOperator(l.src[from]):
		_, n := utf8.DecodeRuneInString(l.src[from:])
		l.pos += n
		return token{}, l.fail(pgerr.SyntaxError, "syntax error", from, l.pos)
	}
	end := from
	for end < len(l.src) && isOperator(l.src[end]) {
		if end > from && (strings.HasPrefix(l.src[end:], "--") || strings.HasPrefix(l.src[end:], "/*")) {
			break
		}
		end++
	}
	// As in PostgreSQL, + and - at the end belong to what follows, unless a character that no standard operator has is there.
	if !strings.ContainsAny(l.src[from:end], "~!@#%^&|`?") {
		for end > from+1 && (l.src[end-1] == '+' || l.src[end-1] == '-') {
			end--
		}
	}
	l.pos = end
	text := l.src[from:end]
	switch text {
	case "=>":
		return token{kind: tokPunct, from: from, to: end, text: text}, nil
	case "!=":
		text = "<>"
	}
	if len(text) > 63 {
		return token{}, l.fail(pgerr.SyntaxError, "operator too long", from, end)
	}
	return token{kind: tokOp, from: from, to: end, text: text}, nil
}

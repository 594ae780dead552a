// Package jsonb works on PostgreSQL's canonical jsonb text: object keys ordered by length, then bytes, and unique (the last one
// wins), numbers as numeric text, ", " between members and ": " after keys, strings with the shortest escapes.
//
// Everything but Canonical takes canonical text only. A member of canonical text is canonical text itself, so values are passed on
// as slices of it.
package jsonb

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

// MaxDepth is how deep arrays and objects may be nested.
const MaxDepth = 1000

// MaxElements is how many members one array or object may have.
const MaxElements = 1<<28 - 1

// maxGrowth is how many bytes numbers such as 1e1000 may add to a value: a few bytes of input must not become gigabytes.
const maxGrowth = 1 << 20

type parser struct {
	src   []byte
	pos   int
	depth int
	grown int    // bytes that writing out exponents has added
	spans []span // members of the objects that are open
	swap  []byte
}

// span is one member of an object in the output: its key with quotes, and its end.
type span struct{ start, keyEnd, end int }

var parsers = sync.Pool{New: func() any { return new(parser) }}

// Canonical appends the canonical form of JSON text to dst. On an error dst comes back as it was.
func Canonical(dst, text []byte) ([]byte, error) {
	p := parsers.Get().(*parser)
	p.src, p.pos, p.depth, p.grown, p.spans = text, 0, 0, 0, p.spans[:0]
	start := len(dst)
	out, err := p.value(dst)
	if err == nil {
		p.space()
		if p.pos < len(p.src) {
			err = p.unexpected("end of input")
		}
	}
	p.src = nil
	if cap(p.swap) > 1<<20 {
		p.swap = nil
	}
	if cap(p.spans) > 1<<15 {
		p.spans = nil
	}
	parsers.Put(p)
	if err != nil {
		return dst[:start], err
	}
	return out, nil
}

func syntax(format string, args ...any) error {
	return pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type json").WithDetail(format, args...)
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// token is what stands at the position, for messages.
func (p *parser) token() string {
	end := p.pos
	for end < len(p.src) && end-p.pos < 64 && wordByte(p.src[end]) {
		end++
	}
	if end == p.pos {
		_, n := utf8.DecodeRune(p.src[p.pos:])
		end += n
	}
	return string(p.src[p.pos:end])
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80 || c == '-' || c == '+' || c == '.'
}

func (p *parser) unexpected(expected string) error {
	if p.pos >= len(p.src) {
		return syntax("The input string ended unexpectedly.")
	}
	t := p.token()
	switch t {
	case "{", "}", "[", "]", ",", ":", "true", "false", "null":
	default:
		if t[0] != '"' && (t[0] < '0' || t[0] > '9') {
			return syntax("Token \"%s\" is invalid.", t)
		}
	}
	if expected == "JSON value" {
		return syntax("Expected JSON value, but found \"%s\".", t)
	}
	return syntax("Expected %s, but found \"%s\".", expected, t)
}

func (p *parser) value(dst []byte) ([]byte, error) {
	p.space()
	if p.pos >= len(p.src) {
		return dst, p.unexpected("JSON value")
	}
	switch c := p.src[p.pos]; {
	case c == '{':
		return p.object(dst)
	case c == '[':
		return p.array(dst)
	case c == '"':
		return p.string(dst)
	case c == '-' || c >= '0' && c <= '9':
		return p.number(dst)
	}
	for _, w := range [...]string{"true", "false", "null"} {
		if rest := p.src[p.pos:]; len(rest) >= len(w) && string(rest[:len(w)]) == w && (len(rest) == len(w) || !wordByte(rest[len(w)])) {
			p.pos += len(w)
			return append(dst, w...), nil
		}
	}
	return dst, p.unexpected("JSON value")
}

func (p *parser) enter() error {
	p.depth++
	if p.depth > MaxDepth {
		return pgerr.Newf(pgerr.StatementTooComplex, "JSON is nested deeper than %d levels", MaxDepth).
			WithHint("Flatten the value, or keep it as text.")
	}
	return nil
}

func (p *parser) array(dst []byte) ([]byte, error) {
	if err := p.enter(); err != nil {
		return dst, err
	}
	p.pos++
	dst = append(dst, '[')
	p.space()
	if p.pos < len(p.src) && p.src[p.pos] == ']' {
		p.pos++
		p.depth--
		return append(dst, ']'), nil
	}
	for {
		var err error
		if dst, err = p.value(dst); err != nil {
			return dst, err
		}
		p.space()
		if p.pos >= len(p.src) || p.src[p.pos] != ',' && p.src[p.pos] != ']' {
			return dst, p.unexpected("\",\" or \"]\"")
		}
		p.pos++
		if p.src[p.pos-1] == ']' {
			p.depth--
			return append(dst, ']'), nil
		}
		dst = append(dst, ", "...)
	}
}

func (p *parser) object(dst []byte) ([]byte, error) {
	if err := p.enter(); err != nil {
		return dst, err
	}
	p.pos++
	dst = append(dst, '{')
	p.space()
	if p.pos < len(p.src) && p.src[p.pos] == '}' {
		p.pos++
		p.depth--
		return append(dst, '}'), nil
	}
	begin, first, ordered := len(dst), len(p.spans), true
	for {
		p.space()
		if p.pos >= len(p.src) || p.src[p.pos] != '"' {
			if len(p.spans) == first {
				return dst, p.unexpected("string or \"}\"")
			}
			return dst, p.unexpected("string")
		}
		var err error
		s := span{start: len(dst)}
		if dst, err = p.string(dst); err != nil {
			return dst, err
		}
		s.keyEnd = len(dst)
		p.space()
		if p.pos >= len(p.src) || p.src[p.pos] != ':' {
			return dst, p.unexpected("\":\"")
		}
		p.pos++
		dst = append(dst, ": "...)
		if dst, err = p.value(dst); err != nil {
			return dst, err
		}
		s.end = len(dst)
		if n := len(p.spans); ordered && n > first {
			l := p.spans[n-1]
			ordered = compareKeys(dst[l.start:l.keyEnd], dst[s.start:s.keyEnd]) < 0
		}
		p.spans = append(p.spans, s)
		p.space()
		if p.pos >= len(p.src) || p.src[p.pos] != ',' && p.src[p.pos] != '}' {
			return dst, p.unexpected("\",\" or \"}\"")
		}
		p.pos++
		if p.src[p.pos-1] == '}' {
			break
		}
		dst = append(dst, ", "...)
	}
	if !ordered {
		dst = p.sort(dst, begin, p.spans[first:])
	}
	p.spans = p.spans[:first]
	p.depth--
	return append(dst, '}'), nil
}

// sort writes the members of dst[begin:] again, in order, of equal keys the last.
func (p *parser) sort(dst []byte, begin int, spans []span) []byte {
	slices.SortStableFunc(spans, func(a, b span) int { return compareKeys(dst[a.start:a.keyEnd], dst[b.start:b.keyEnd]) })
	out := p.swap[:0]
	for i, s := range spans {
		if i+1 < len(spans) && bytes.Equal(dst[s.start:s.keyEnd], dst[spans[i+1].start:spans[i+1].keyEnd]) {
			continue
		}
		if len(out) > 0 {
			out = append(out, ", "...)
		}
		out = append(out, dst[s.start:s.end]...)
	}
	p.swap = out
	return append(dst[:begin], out...)
}

// compareKeys orders two keys, in canonical quotes, as jsonb stores them.
func compareKeys(a, b []byte) int {
	la, lb := unescapedLen(a), unescapedLen(b)
	if la != lb {
		return la - lb
	}
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return bytes.Compare(a, b)
	}
	return bytes.Compare(AppendString(nil, a), AppendString(nil, b))
}

// unescapedLen is the length of a canonical string's content.
func unescapedLen(s []byte) int {
	n := len(s) - 2
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' {
			i++
			n--
			if s[i] == 'u' {
				i += 4
				n -= 4
			}
		}
	}
	return n
}

// string reads a string and writes it with canonical escapes.
func (p *parser) string(dst []byte) ([]byte, error) {
	p.pos++
	dst = append(dst, '"')
	for p.pos < len(p.src) {
		start := p.pos
		for p.pos < len(p.src) && plain[p.src[p.pos]] {
			p.pos++
		}
		dst = append(dst, p.src[start:p.pos]...)
		if p.pos >= len(p.src) {
			break
		}
		switch c := p.src[p.pos]; {
		case c == '"':
			p.pos++
			return append(dst, '"'), nil
		case c < ' ':
			return dst, syntax("Character with value 0x%02x must be escaped.", c)
		case c == '\\':
			p.pos++
			var err error
			if dst, err = p.escape(dst); err != nil {
				return dst, err
			}
		default:
			r, n := utf8.DecodeRune(p.src[p.pos:])
			if r == utf8.RuneError && n <= 1 {
				return dst, pgerr.Newf(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": 0x%02x", c)
			}
			dst = append(dst, p.src[p.pos:p.pos+n]...)
			p.pos += n
		}
	}
	return dst, syntax("Token \"%s\" is invalid.", clip(p.src))
}

func clip(s []byte) string {
	if len(s) > 64 {
		s = s[:64]
	}
	return string(bytes.ToValidUTF8(s, []byte("?")))
}

// plain are the bytes of strings that stand for themselves.
var plain = func() (t [256]bool) {
	for c := ' '; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func (p *parser) escape(dst []byte) ([]byte, error) {
	if p.pos >= len(p.src) {
		return dst, syntax("Token \"%s\" is invalid.", clip(p.src))
	}
	c := p.src[p.pos]
	p.pos++
	switch c {
	case '"', '\\':
		return append(dst, '\\', c), nil
	case '/':
		return append(dst, '/'), nil
	case 'b', 'f', 'n', 'r', 't':
		return append(dst, '\\', c), nil
	case 'u':
	default:
		return dst, syntax("Escape sequence \"\\%c\" is invalid.", c)
	}
	r, ok := p.hex4()
	if !ok {
		return dst, syntax("\"\\u\" must be followed by four hexadecimal digits.")
	}
	switch {
	case r == 0:
		return dst, pgerr.New(pgerr.UntranslatableCharacter, "unsupported Unicode escape sequence").WithDetail("\\u0000 cannot be converted to text.")
	case r >= 0xdc00 && r < 0xe000:
		return dst, syntax("Unicode low surrogate must follow a high surrogate.")
	case r >= 0xd800 && r < 0xdc00:
		if p.pos+1 >= len(p.src) || p.src[p.pos] != '\\' || p.src[p.pos+1] != 'u' {
			return dst, syntax("Unicode low surrogate must follow a high surrogate.")
		}
		p.pos += 2
		low, ok := p.hex4()
		if !ok || low < 0xdc00 || low >= 0xe000 {
			return dst, syntax("Unicode low surrogate must follow a high surrogate.")
		}
		r = 0x10000 + (r-0xd800)<<10 + low - 0xdc00
	}
	if r < 0x80 {
		return appendEscaped(dst, byte(r)), nil
	}
	return utf8.AppendRune(dst, r), nil
}

func (p *parser) hex4() (rune, bool) {
	if len(p.src)-p.pos < 4 {
		return 0, false
	}
	var r rune
	for _, c := range p.src[p.pos : p.pos+4] {
		d, ok := unhex(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	p.pos += 4
	return r, true
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// appendEscaped appends an ASCII character of a string, escaped if it has to be.
func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	if c < ' ' {
		const hex = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	return append(dst, c)
}

// AppendQuoted appends text, which is valid UTF-8, as a canonical JSON string.
func AppendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		start := i
		for i < len(text) && (plain[text[i]] || text[i] >= 0x80) {
			i++
		}
		dst = append(dst, text[start:i]...)
		if i < len(text) {
			dst = appendEscaped(dst, text[i])
			i++
		}
	}
	return append(dst, '"')
}

// number reads a number by JSON's grammar and writes it as numeric text.
func (p *parser) number(dst []byte) ([]byte, error) {
	start, s := p.pos, p.src
	i := start
	if s[i] == '-' {
		i++
	}
	bad := func() ([]byte, error) {
		return dst, syntax("Token \"%s\" is invalid.", p.token())
	}
	digits := func() bool {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else if !digits() {
		return bad()
	}
	exp := false
	if i < len(s) && s[i] == '.' {
		i++
		if !digits() {
			return bad()
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		exp = true
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return bad()
		}
	}
	if i < len(s) && wordByte(s[i]) {
		return bad()
	}
	p.pos = i
	text := s[start:i]
	if !exp && len(text) < 1000 && (len(text) < 2 || text[0] != '-' || text[1] != '0') {
		return append(dst, text...), nil
	}
	d, err := decimal.ParseBytes(text)
	if err != nil {
		return dst, err
	}
	out := d.Append(dst)
	p.grown += len(out) - len(dst) - len(text)
	if p.grown > maxGrowth {
		return dst, pgerr.Newf(pgerr.ProgramLimitExceeded, "numbers with exponents make the jsonb value more than %d bytes longer", maxGrowth).
			WithHint("Write such numbers as strings.")
	}
	return out, nil
}

package jsonrow

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deeply objects and arrays may nest.
const maxDepth = 100

// SyntaxError is a text that is not one JSON object, by RFC 8259.
type SyntaxError struct {
	Offset  int // byte offset in the text
	Message string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("JSON at byte %d: %s", e.Offset, e.Message) }

type kind uint8

const (
	absent kind = iota
	null
	boolean
	number
	text        // a string without escapes: from and to lie within the quotes
	escapedText // a string with escapes
	composite   // an object or array
)

// token is one value of the object, as a range of the text.
type token struct {
	kind     kind
	from, to int
}

// scanner walks a text once and checks its grammar, all of it. It takes any bytes for a string's characters.
type scanner struct {
	data []byte
	at   int
	wide uint64 // has highs if a string may have had a character beyond ASCII
}

func (s *scanner) fail(format string, args ...any) error {
	return &SyntaxError{Offset: s.at, Message: fmt.Sprintf(format, args...)}
}

func (s *scanner) unexpected(want string) error {
	if s.at >= len(s.data) {
		return s.fail("the text ends where %s is expected", want)
	}
	r, _ := utf8.DecodeRune(s.data[s.at:])
	return s.fail("%q where %s is expected", r, want)
}

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// value scans one value; depth is how deep it lies.
func (s *scanner) value(depth int) (token, error) {
	if s.at >= len(s.data) {
		return token{}, s.unexpected("a value")
	}
	from := s.at
	switch c := s.data[s.at]; {
	case c == '"':
		return s.string()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == '{':
		err := s.object(depth + 1)
		return token{composite, from, s.at}, err
	case c == '[':
		err := s.array(depth + 1)
		return token{composite, from, s.at}, err
	case c == 't':
		return s.word("true", boolean)
	case c == 'f':
		return s.word("false", boolean)
	case c == 'n':
		return s.word("null", null)
	}
	return token{}, s.unexpected("a value")
}

func (s *scanner) word(w string, k kind) (token, error) {
	if !bytes.HasPrefix(s.data[s.at:], []byte(w)) {
		return token{}, s.unexpected("a value")
	}
	from := s.at
	s.at += len(w)
	return token{k, from, s.at}, nil
}

func (s *scanner) string() (token, error) {
	s.at++ // the quote
	t := token{kind: text, from: s.at}
	for s.at < len(s.data) {
		s.plain()
		if s.at >= len(s.data) {
			break
		}
		switch c := s.data[s.at]; {
		case c == '"':
			t.to = s.at
			s.at++
			return t, nil
		case c == '\\':
			t.kind = escapedText
			if err := s.escape(); err != nil {
				return token{}, err
			}
		case c < ' ':
			return token{}, s.fail("the control character %#02x within a string must be escaped", c)
		default:
			s.wide |= uint64(c)
			s.at++
		}
	}
	return token{}, s.fail("the text ends within a string")
}

// plain passes over characters of a string that mean themselves, eight bytes at a time, and stops at or before the first that does not.
func (s *scanner) plain() {
	at, data, wide := s.at, s.data, uint64(0)
	for ; len(data)-at >= 8; at += 8 {
		w := binary.LittleEndian.Uint64(data[at:])
		wide |= w
		if found := special(w); found != 0 {
			at += bits.TrailingZeros64(found) / 8
			break
		}
	}
	s.at = at
	s.wide |= wide
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special has the high bits of the bytes that do not mean themselves within a string. The lowest one is exact: borrows go upwards.
func special(w uint64) uint64 {
	quote, backslash := w^('"'*ones), w^('\\'*ones)
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (w-' '*ones)&^w) & highs
}

// usual scans a value: a string without escapes and a whole number here, others by value. Spaces may be before it.
func (s *scanner) usual() (token, error) {
	data, from := s.data, s.at
	if from >= len(data) {
		return s.spaced()
	}
	switch c := data[from]; {
	case c == '"':
		at, wide := from+1, uint64(0)
		for len(data)-at >= 8 {
			w := binary.LittleEndian.Uint64(data[at:])
			wide |= w
			found := special(w)
			if found == 0 {
				at += 8
				continue
			}
			if at += bits.TrailingZeros64(found) / 8; data[at] != '"' {
				break
			}
			s.wide |= wide
			s.at = at + 1
			return token{text, from + 1, at}, nil
		}
	case c >= '1' && c <= '9':
		at := from + 1
		for len(data)-at >= 8 {
			n := digits(binary.LittleEndian.Uint64(data[at:]))
			if at += n; n == 8 {
				continue
			}
			if c := data[at]; c == '.' || c|0x20 == 'e' {
				break
			}
			s.at = at
			return token{number, from, at}, nil
		}
	}
	return s.spaced()
}

func (s *scanner) spaced() (token, error) {
	s.space()
	return s.value(1)
}

// digits is how many of the first bytes of a word are digits.
func digits(w uint64) int {
	x := w ^ '0'*ones
	return bits.TrailingZeros64((x+(0x80-10)*ones|x)&highs) / 8
}

// integer reads a number token that has no fraction and no exponent.
func integer(data []byte, t token) (int64, bool) {
	from, neg := t.from, data[t.from] == '-'
	if neg {
		from++
	}
	size := t.to - from
	if size > 18 {
		n, err := strconv.ParseInt(string(data[t.from:t.to]), 10, 64)
		return n, err == nil
	}
	var n int64
	for ; size > 8; size-- {
		c := data[from] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
		from++
	}
	if from+8 > len(data) {
		for _, c := range data[from:t.to] {
			if c -= '0'; c > 9 {
				return 0, false
			}
			n = n*10 + int64(c)
		}
	} else {
		w := binary.LittleEndian.Uint64(data[from:])
		if digits(w) < size {
			return 0, false
		}
		n = n*smallPow10[size] + int64(eightDigits(w<<(64-8*size)))
	}
	if neg {
		n = -n
	}
	return n, true
}

var smallPow10 = [...]int64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000}

// eightDigits is the number that the bytes are, the first in the lowest bits: digits, of which leading ones may be 0 instead of '0'. Neighbours become pairs,
// pairs fours, and fours the number.
func eightDigits(w uint64) uint64 {
	w &= 0x0f0f0f0f0f0f0f0f
	w = (w*10 + w>>8) & 0x00ff00ff00ff00ff
	w = (w*100 + w>>16) & 0x0000ffff0000ffff
	return (w*10_000 + w>>32) & 0xffffffff
}

// end refuses what follows the object.
func (s *scanner) end() error {
	s.space()
	if s.at < len(s.data) {
		return s.unexpected("the end of the record")
	}
	return nil
}

func (s *scanner) escape() error {
	if s.at+1 >= len(s.data) {
		return s.fail("the text ends within a string")
	}
	switch s.data[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return nil
	case 'u':
		if s.at+6 > len(s.data) {
			return s.fail("the text ends within an escape")
		}
		if _, ok := hex4(s.data[s.at+2 : s.at+6]); !ok {
			return s.fail("\\u needs four hexadecimal digits")
		}
		s.at += 6
		return nil
	}
	return s.fail("unknown escape \\%c", s.data[s.at+1])
}

func hex4(b []byte) (rune, bool) {
	var r rune
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func (s *scanner) number() (token, error) {
	from := s.at
	if s.data[s.at] == '-' {
		s.at++
	}
	whole := s.at
	if !s.someDigits() {
		return token{}, s.unexpected("a digit")
	}
	if s.data[whole] == '0' && s.at-whole > 1 {
		s.at = whole
		return token{}, s.fail("a number has no leading zeros")
	}
	if s.at < len(s.data) && s.data[s.at] == '.' {
		s.at++
		if !s.someDigits() {
			return token{}, s.unexpected("a digit")
		}
	}
	if s.at < len(s.data) && s.data[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.data) && (s.data[s.at] == '+' || s.data[s.at] == '-') {
			s.at++
		}
		if !s.someDigits() {
			return token{}, s.unexpected("a digit")
		}
	}
	return token{number, from, s.at}, nil
}

func (s *scanner) someDigits() bool {
	from := s.at
	for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

func (s *scanner) array(depth int) error {
	if depth > maxDepth {
		return s.fail("nested deeper than %d", maxDepth)
	}
	s.at++
	s.space()
	if s.at < len(s.data) && s.data[s.at] == ']' {
		s.at++
		return nil
	}
	for {
		s.space()
		if _, err := s.value(depth); err != nil {
			return err
		}
		if more, err := s.next(']'); !more {
			return err
		}
	}
}

// next passes a comma (true) or the closing character.
func (s *scanner) next(closing byte) (bool, error) {
	s.space()
	if s.at < len(s.data) {
		switch s.data[s.at] {
		case ',':
			s.at++
			return true, nil
		case closing:
			s.at++
			return false, nil
		}
	}
	return false, s.unexpected(fmt.Sprintf("',' or '%c'", closing))
}

func (s *scanner) object(depth int) error {
	if depth > maxDepth {
		return s.fail("nested deeper than %d", maxDepth)
	}
	s.at++
	s.space()
	if s.at < len(s.data) && s.data[s.at] == '}' {
		s.at++
		return nil
	}
	for {
		if _, err := s.name(); err != nil {
			return err
		}
		s.space()
		if _, err := s.value(depth); err != nil {
			return err
		}
		if more, err := s.next('}'); !more {
			return err
		}
	}
}

// name scans a name and a colon.
func (s *scanner) name() (name token, err error) {
	s.space()
	if s.at >= len(s.data) || s.data[s.at] != '"' {
		return name, s.unexpected("a member's name")
	}
	if name, err = s.string(); err != nil {
		return name, err
	}
	s.space()
	if s.at >= len(s.data) || s.data[s.at] != ':' {
		return name, s.unexpected("':'")
	}
	s.at++
	return name, nil
}

// appendUnescaped appends a string's value; whole is false if it has half of a surrogate pair, in whose place U+FFFD stands.
func appendUnescaped(dst, s []byte) (value []byte, whole bool) {
	whole = true
	for len(s) > 0 {
		if s[0] != '\\' {
			n := bytes.IndexByte(s, '\\')
			if n < 0 {
				n = len(s)
			}
			dst = append(dst, s[:n]...)
			s = s[n:]
			continue
		}
		switch s[1] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(s[2:6])
			s = s[6:]
			if r >= 0xD800 && r < 0xDC00 && len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
				if low, _ := hex4(s[2:6]); low >= 0xDC00 && low < 0xE000 {
					r = 0x10000 + (r-0xD800)<<10 + (low - 0xDC00)
					s = s[6:]
				}
			}
			if r >= 0xD800 && r < 0xE000 {
				whole = false
			}
			dst = utf8.AppendRune(dst, r)
			continue
		default:
			dst = append(dst, s[1])
		}
		s = s[2:]
	}
	return dst, whole
}

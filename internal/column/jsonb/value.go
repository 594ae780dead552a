package jsonb

import (
	"bytes"
	"unicode/utf8"
)

// Kind is the type of a JSON value.
type Kind uint8

// The kinds, in PostgreSQL's order of jsonb values.
const (
	Null Kind = iota
	String
	Number
	Bool
	Array
	Object
)

// String is what jsonb_typeof says.
func (k Kind) String() string {
	return [...]string{"null", "string", "number", "boolean", "array", "object"}[k]
}

// KindOf is the kind of a canonical value.
func KindOf(v []byte) Kind {
	if len(v) == 0 {
		return Null
	}
	switch v[0] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// valueEnd is the end of the value that starts at i.
func valueEnd(v []byte, i int) int {
	depth := 0
	for i < len(v) {
		switch v[i] {
		case '"':
			i = stringEnd(v, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			if depth == 0 {
				return i + 1
			}
		case ',', ' ', ':':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// stringEnd is the end of the string that starts at i.
func stringEnd(v []byte, i int) int {
	for i++; i < len(v); i++ {
		switch v[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(v)
}

// Iter walks the members of an array or object in stored order. It never fails on canonical text and never leaves the bounds of
// any other.
type Iter struct {
	text   []byte
	pos    int
	object bool
}

// Members iterates over the members of a canonical array or object; over nothing for other kinds.
func Members(v []byte) Iter {
	if k := KindOf(v); k != Array && k != Object || len(v) < 2 {
		return Iter{}
	}
	return Iter{text: v[:len(v)-1], pos: 1, object: v[0] == '{'}
}

// Next returns the next member; key is nil in an array, else the key as a canonical string.
func (it *Iter) Next() (key, value []byte, ok bool) {
	if it.pos >= len(it.text) {
		return nil, nil, false
	}
	if it.object {
		end := stringEnd(it.text, it.pos)
		key = it.text[it.pos:end]
		it.pos = min(end+2, len(it.text))
	}
	end := valueEnd(it.text, it.pos)
	value = it.text[it.pos:end]
	it.pos = end + 2
	return key, value, true
}

// Len is the number of members of an array or object, 0 for other kinds.
func Len(v []byte) int {
	n := 0
	for it := Members(v); ; n++ {
		if _, _, ok := it.Next(); !ok {
			return n
		}
	}
}

// Field is the member of an object with the given name.
func Field(v []byte, name []byte) ([]byte, bool) {
	if KindOf(v) != Object {
		return nil, false
	}
	var buf [64]byte
	quoted := AppendQuoted(buf[:0], name)
	for it := Members(v); ; {
		k, m, ok := it.Next()
		if !ok {
			return nil, false
		}
		if bytes.Equal(k, quoted) {
			return m, true
		}
	}
}

// Index is the element i of an array; a negative i counts from the end.
func Index(v []byte, i int) ([]byte, bool) {
	if KindOf(v) != Array {
		return nil, false
	}
	if i < 0 {
		i += Len(v)
		if i < 0 {
			return nil, false
		}
	}
	for it := Members(v); ; i-- {
		_, m, ok := it.Next()
		if !ok {
			return nil, false
		}
		if i == 0 {
			return m, true
		}
	}
}

// AppendString appends the content of a canonical string, without quotes and escapes.
func AppendString(dst, s []byte) []byte {
	if len(s) < 2 {
		return dst
	}
	s = s[1 : len(s)-1]
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 || i+1 >= len(s) {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		c := s[i+1]
		s = s[i+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			if len(s) < 4 {
				return dst
			}
			var r rune
			for _, h := range s[:4] {
				d, _ := unhex(h)
				r = r<<4 | rune(d)
			}
			s = s[4:]
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
}

// AppendText appends what ->> gives: a string's content, other values as they are. NULL for null is the caller's.
func AppendText(dst, v []byte) []byte {
	if KindOf(v) == String {
		return AppendString(dst, v)
	}
	return append(dst, v...)
}

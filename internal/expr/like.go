package expr

import (
	"bytes"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr/needle"
	"github.com/leat-io/leat/internal/pgerr"
)

// likeFunctions are LIKE, ILIKE and their negations as operators, and what ESCAPE makes of a pattern.
var likeFunctions = []Overload{
	like("~~", tText, true, false), like("!~~", tText, false, false),
	like("~~*", tText, true, true), like("!~~*", tText, false, true),
	like("~~", tBytea, true, false), like("!~~", tBytea, false, false),
	{Name: "like_escape", Args: []column.Type{tText, tText}, Result: tText, Make: kernel(likeEscape)},
	{Name: "like_escape", Args: []column.Type{tBytea, tBytea}, Result: tBytea, Make: kernel(likeEscape)},
}

var (
	errLikeEnd    = pgerr.New(pgerr.InvalidEscapeSequence, "LIKE pattern must not end with escape character")
	errEscapeLong = pgerr.New(pgerr.InvalidEscapeSequence, "invalid escape string").WithHint("Escape string must be empty or one character.")
)

func like(name string, t column.Type, want, fold bool) Overload {
	return Overload{Name: name, Args: []column.Type{t, t}, Result: tBool, Make: func(s *Site) (Kernel, error) {
		if v := s.Consts[1]; v != nil && !v.IsNull(0) {
			if p := newLikePattern(v.Bytes(0), fold); p != nil {
				return func(c *Call) {
					out, a := c.Out.Bools, c.Texts(0)
					for _, row := range c.Rows() {
						out[row] = p.match(a.At(row)) == want
					}
				}, nil
			}
		}
		var text, pattern []byte
		return func(c *Call) {
			out, a, b := c.Out.Bools, c.Texts(0), c.Texts(1)
			for _, row := range c.Rows() {
				x, p := a.At(row), b.At(row)
				if fold {
					text, pattern = appendLower(text[:0], x), appendLower(pattern[:0], p)
					x, p = text, pattern
				}
				ok, bad := likeMatch(x, p, t.Kind == column.Text)
				if bad {
					c.Fail(row, errLikeEnd)
					continue
				}
				out[row] = ok == want
			}
		}, nil
	}}
}

// likePattern is a constant pattern of literals between %s, none of which has a _: the usual ones. Every piece but the first and
// the last is looked for where it first occurs.
type likePattern struct {
	first, last []byte
	middle      []*needle.Needle
	whole       bool // no %: equality with first
	fold        bool
	lower       []byte
}

// newLikePattern is nil when the pattern needs the general matcher.
func newLikePattern(pattern []byte, fold bool) *likePattern {
	if fold {
		pattern = appendLower(nil, pattern)
	}
	p := &likePattern{fold: fold}
	var pieces [][]byte
	piece := []byte{}
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '_':
			return nil
		case '%':
			pieces = append(pieces, piece)
			piece = []byte{}
		case '\\':
			if i++; i == len(pattern) {
				return nil
			}
			fallthrough
		default:
			piece = append(piece, pattern[i])
		}
	}
	if len(pieces) == 0 {
		p.first, p.whole = piece, true
		return p
	}
	p.first, p.last = pieces[0], piece
	for _, m := range pieces[1:] {
		if len(m) > 0 {
			p.middle = append(p.middle, needle.New(m))
		}
	}
	return p
}

func (p *likePattern) match(s []byte) bool {
	if p.fold {
		p.lower = appendLower(p.lower[:0], s)
		s = p.lower
	}
	if p.whole {
		return bytes.Equal(s, p.first)
	}
	if len(s) < len(p.first)+len(p.last) || !bytes.HasPrefix(s, p.first) || !bytes.HasSuffix(s, p.last) {
		return false
	}
	s = s[len(p.first) : len(s)-len(p.last)]
	for _, m := range p.middle {
		i := m.Index(s)
		if i < 0 {
			return false
		}
		s = s[i+m.Len():]
	}
	return true
}

// likeMatch matches any pattern. bad: it ends with an escape character that is needed. Only the last % is gone back to, so the
// work is at most len(s) * len(p).
func likeMatch(s, p []byte, wide bool) (ok, bad bool) {
	i, j := 0, 0
	star, from := -1, 0
	for i < len(s) {
		if j < len(p) {
			switch c := p[j]; {
			case c == '%':
				star, from = j+1, i
				j++
				continue
			case c == '_':
				i += width(s[i:], wide)
				j++
				continue
			case c == '\\':
				if j+1 == len(p) {
					return false, true
				}
				if p[j+1] == s[i] {
					i, j = i+1, j+2
					continue
				}
			case c == s[i]:
				i, j = i+1, j+1
				continue
			}
		}
		if star < 0 {
			return false, false
		}
		from += width(s[from:], wide)
		i, j = from, star
	}
	for j < len(p) && p[j] == '%' {
		j++
	}
	return j == len(p), false
}

func width(s []byte, wide bool) int {
	if !wide || s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRune(s)
	return n
}

// likeEscape rewrites a pattern with another escape character to one with a backslash.
func likeEscape(c *Call) {
	a, b, w := c.Texts(0), c.Texts(1), c.Text()
	wide := c.Args[0].Type.Kind == column.Text
	for _, row := range c.Rows() {
		p, esc := a.At(row), b.At(row)
		if len(esc) > 0 && len(esc) != width(esc, wide) {
			c.Fail(row, errEscapeLong)
			continue
		}
		if len(esc) == 1 && esc[0] == '\\' {
			w.Set(row, p)
			continue
		}
		escaped := false
		for len(p) > 0 {
			n := width(p, wide)
			switch {
			case len(esc) > 0 && bytes.Equal(p[:n], esc) && !escaped:
				w.Buf = append(w.Buf, '\\')
				escaped = true
			case p[0] == '\\':
				w.Buf = append(w.Buf, '\\')
				if !escaped {
					w.Buf = append(w.Buf, '\\')
				}
				escaped = false
			default:
				w.Buf = append(w.Buf, p[:n]...)
				escaped = false
			}
			p = p[n:]
		}
		w.End(row)
	}
}

package expr

import (
	"errors"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr/regex"
	"github.com/leat-io/leat/internal/pgerr"
)

// regexpFunctions match PostgreSQL's regular expressions. A pattern is compiled once while it stays the same.
var regexpFunctions = func() []Overload {
	out := []Overload{
		matches("~", 0, true), matches("~*", regex.Fold, true), matches("!~", 0, false), matches("!~*", regex.Fold, false),
		{Name: "similar_to_escape", Args: []column.Type{tText}, Result: tText, Make: kernel(similarToEscape)},
		{Name: "similar_to_escape", Args: []column.Type{tText, tText}, Result: tText, Make: kernel(similarToEscape)},
		{Name: "substring", Args: []column.Type{tText, tText}, Result: tText, Make: makeRegexpSubstring},
		{Name: "substring", Args: []column.Type{tText, tText, tText}, Result: tText, Make: makeSimilarSubstring},
	}
	add := func(name string, result column.Type, make func(*Site) (Kernel, error), args ...column.Type) {
		out = append(out, Overload{Name: name, Args: args, Result: result, Make: make})
	}
	add("regexp_like", tBool, makeRegexpLike, tText, tText)
	add("regexp_like", tBool, makeRegexpLike, tText, tText, tText)
	add("regexp_match", tTextArray, makeRegexpMatch, tText, tText)
	add("regexp_match", tTextArray, makeRegexpMatch, tText, tText, tText)
	add("regexp_split_to_array", tTextArray, makeRegexpSplit, tText, tText)
	add("regexp_split_to_array", tTextArray, makeRegexpSplit, tText, tText, tText)
	add("regexp_replace", tText, makeRegexpReplace(-1, -1, -1), tText, tText, tText)
	add("regexp_replace", tText, makeRegexpReplace(-1, -1, 3), tText, tText, tText, tText)
	add("regexp_replace", tText, makeRegexpReplace(3, -1, -1), tText, tText, tText, tInt4)
	add("regexp_replace", tText, makeRegexpReplace(3, 4, -1), tText, tText, tText, tInt4, tInt4)
	add("regexp_replace", tText, makeRegexpReplace(3, 4, 5), tText, tText, tText, tInt4, tInt4, tText)
	counts := []column.Type{tText, tText, tInt4, tText}
	for n := 2; n <= 4; n++ {
		add("regexp_count", tInt4, makeRegexpCount, counts[:n]...)
	}
	instr := []column.Type{tText, tText, tInt4, tInt4, tInt4, tText, tInt4}
	for n := 2; n <= 7; n++ {
		add("regexp_instr", tInt4, makeRegexpInstr, instr[:n]...)
	}
	substr := []column.Type{tText, tText, tInt4, tInt4, tText, tInt4}
	for n := 2; n <= 6; n++ {
		add("regexp_substr", tText, makeRegexpSubstr, substr[:n]...)
	}
	return out
}()

// pattern is a compiled pattern, or why there is none.
type pattern struct {
	re     *regex.Regexp
	err    *pgerr.Error
	global bool // the flag g
}

// patterns are those of one call: the current one, and a bounded number of earlier ones for patterns that come from rows.
type patterns struct {
	base    regex.Flags
	name    string // of the function, for messages; it takes no g
	noG     bool
	hint    string // when options start with a digit
	fixed   *pattern
	pat, fl int // arguments; fl < 0: none
	cache   map[string]*pattern
	key     []byte
}

const maxPatterns = 200

// begin starts a batch.
func (p *patterns) begin(c *Call) {
	p.fixed = nil
	if c.Const[p.pat] && (p.fl < 0 || c.Const[p.fl]) && len(c.Rows()) > 0 {
		p.fixed = p.lookup(c, 0)
	}
}

// at is the pattern of a row.
func (p *patterns) at(c *Call, row int32) *pattern {
	if p.fixed != nil {
		return p.fixed
	}
	return p.lookup(c, row)
}

func (p *patterns) lookup(c *Call, row int32) *pattern {
	p.key = p.key[:0]
	if p.fl >= 0 {
		p.key = append(append(p.key, c.Texts(p.fl).At(row)...), 0)
	}
	n := len(p.key)
	p.key = append(p.key, c.Texts(p.pat).At(row)...)
	if x := p.cache[string(p.key)]; x != nil {
		return x
	}
	if p.cache == nil || len(p.cache) >= maxPatterns {
		p.cache = map[string]*pattern{}
	}
	x := p.compile(p.key[n:], p.key[:max(n-1, 0)])
	p.cache[string(p.key)] = x
	return x
}

func (p *patterns) compile(text, options []byte) *pattern {
	x := &pattern{}
	flags := p.base
	for i, o := range options {
		if o == 'g' {
			x.global = true
			continue
		}
		if !flags.Option(o) {
			x.err = pgerr.Newf(pgerr.InvalidParameterValue, "invalid regular expression option: \"%s\"", firstChar(options[i:]))
			if i == 0 && p.hint != "" && o >= '0' && o <= '9' {
				x.err = x.err.WithHint("%s", p.hint)
			}
			return x
		}
	}
	if x.global && p.noG {
		x.err = pgerr.Newf(pgerr.InvalidParameterValue, "%s() does not support the \"global\" option", p.name)
		if p.name == "regexp_match" {
			x.err = x.err.WithHint("Use the regexp_matches function instead.")
		}
		return x
	}
	re, err := regex.Compile(string(text), flags)
	var missing *regex.Unsupported
	switch {
	case errors.As(err, &missing):
		x.err = pgerr.Unsupported("%s", missing.Error())
	case err != nil:
		x.err = pgerr.Newf(pgerr.InvalidRegularExpression, "invalid regular expression: %s", err)
	}
	x.re = re
	return x
}

var errRegexpCost = pgerr.New(pgerr.ProgramLimitExceeded, regex.ErrTooExpensive.Error()).
	WithHint("Make the pattern simpler, or the text shorter.")

// find is regex.Find that reports.
func (c *Call) find(row int32, x *pattern, s []byte, from int) (groups []int32, ok bool) {
	if c.stopped() {
		return nil, false
	}
	groups, ok, err := x.re.Find(s, from)
	if err != nil {
		c.Fail(row, errRegexpCost)
	}
	return groups, ok
}

func matches(name string, base regex.Flags, want bool) Overload {
	return Overload{Name: name, Args: []column.Type{tText, tText}, Result: tBool, Make: func(*Site) (Kernel, error) {
		return likeKernel(&patterns{base: base, pat: 1, fl: -1}, want), nil
	}}
}

func makeRegexpLike(s *Site) (Kernel, error) {
	return likeKernel(&patterns{name: "regexp_like", noG: true, pat: 1, fl: optional(s, 2)}, true), nil
}

// optional is the index of an argument, or -1 when the call does not have it.
func optional(s *Site, k int) int {
	if k < len(s.Args) {
		return k
	}
	return -1
}

func likeKernel(p *patterns, want bool) Kernel {
	return func(c *Call) {
		out, a := c.Out.Bools, c.Texts(0)
		p.begin(c)
		for _, row := range c.Rows() {
			x := p.at(c, row)
			if x.err != nil {
				c.Fail(row, x.err)
				continue
			}
			ok, err := x.re.Match(a.At(row))
			if err != nil {
				c.Fail(row, errRegexpCost)
				continue
			}
			out[row] = ok == want
		}
	}
}

func makeRegexpMatch(s *Site) (Kernel, error) {
	p := &patterns{name: "regexp_match", noG: true, pat: 1, fl: optional(s, 2)}
	parts := column.NewVector(tText, 8)
	return func(c *Call) {
		a, w := c.Texts(0), c.Text()
		p.begin(c)
		for _, row := range c.Rows() {
			x := p.at(c, row)
			if x.err != nil {
				c.Fail(row, x.err)
				continue
			}
			s := a.At(row)
			g, ok := c.find(row, x, s, 0)
			if !ok {
				c.Null(row)
				continue
			}
			parts.Reset(tText)
			if len(g) > 2 {
				g = g[2:]
			}
			for i := 0; i < len(g); i += 2 {
				if g[i] < 0 || g[i+1] < 0 {
					parts.AppendNull()
				} else {
					parts.AppendBytes(s[g[i]:g[i+1]])
				}
			}
			w.Buf = column.AppendArray(w.Buf, parts, 0, parts.Len)
			w.End(row)
		}
	}, nil
}

// after is where the search goes on after a match: a character further if it was empty.
func after(s []byte, g []int32) int {
	end := int(g[1])
	if g[0] == g[1] {
		if end >= len(s) {
			return end + 1
		}
		_, n := utf8.DecodeRune(s[end:])
		end += n
	}
	return end
}

func makeRegexpSplit(s *Site) (Kernel, error) {
	p := &patterns{name: "regexp_split_to_array", noG: true, pat: 1, fl: optional(s, 2)}
	parts := column.NewVector(tText, 8)
	return func(c *Call) {
		a, w := c.Texts(0), c.Text()
		p.begin(c)
	rows:
		for _, row := range c.Rows() {
			x := p.at(c, row)
			if x.err != nil {
				c.Fail(row, x.err)
				continue
			}
			s := a.At(row)
			parts.Reset(tText)
			last := 0
			for from := 0; from <= len(s); {
				g, ok, err := x.re.Find(s, from)
				if err != nil {
					c.Fail(row, errRegexpCost)
					continue rows
				}
				if !ok || c.stopped() {
					break
				}
				if int(g[0]) < len(s) && int(g[1]) > last {
					if !w.holds(parts) {
						w.Refuse(row)
						continue rows
					}
					parts.AppendBytes(s[last:g[0]])
					last = int(g[1])
				}
				from = after(s, g)
			}
			parts.AppendBytes(s[last:])
			w.Buf = column.AppendArray(w.Buf, parts, 0, parts.Len)
			w.End(row)
		}
	}, nil
}

func errParameter(name string, v int32) *pgerr.Error {
	return pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for parameter \"%s\": %d", name, v)
}

// intArg is argument k in a row, or what it is when it is not given.
func (c *Call) intArg(k int, row, otherwise int32) int32 {
	if k < 0 || k >= len(c.Args) {
		return otherwise
	}
	return c.Int32s(k).At(row)
}

// makeRegexpReplace is regexp_replace with the given arguments for start, N and flags; -1: not given.
func makeRegexpReplace(start, nth, flags int) func(*Site) (Kernel, error) {
	return func(*Site) (Kernel, error) {
		p := &patterns{
			name: "regexp_replace", pat: 1, fl: flags,
			hint: "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
		}
		return func(c *Call) {
			a, r, w := c.Texts(0), c.Texts(2), c.Text()
			p.begin(c)
			for _, row := range c.Rows() {
				s := a.At(row)
				first, n := c.intArg(start, row, 1), c.intArg(nth, row, 1)
				if first <= 0 {
					c.Fail(row, errParameter("start", first))
					continue
				}
				if n < 0 {
					c.Fail(row, errParameter("n", n))
					continue
				}
				x := p.at(c, row)
				if x.err != nil {
					c.Fail(row, x.err)
					continue
				}
				if nth < 0 && x.global {
					n = 0
				}
				if err := appendReplaced(w, x, s, r.At(row), int(first), int(n)); err != nil {
					w.Drop()
					c.Fail(row, err)
					continue
				}
				w.End(row)
			}
		}, nil
	}
}

// appendReplaced replaces match n (0: all) from character first on.
func appendReplaced(w *TextWriter, x *pattern, s, repl []byte, first, n int) *pgerr.Error {
	done := 0
	for from, count := startOffset(s, int32(first)), 0; from <= len(s); {
		g, ok, err := x.re.Find(s, from)
		if err != nil {
			return errRegexpCost
		}
		if w.call.stopped() {
			return errStopped
		}
		if !ok {
			break
		}
		count++
		from = after(s, g)
		if n > 0 && count != n {
			continue
		}
		w.Buf = append(w.Buf, s[done:g[0]]...)
		w.Buf = appendReplacement(w.Buf, repl, s, g)
		done = int(g[1])
		if w.full() {
			return w.why
		}
		if n > 0 {
			break
		}
	}
	w.Buf = append(w.Buf, s[done:]...)
	return nil
}

// appendReplacement appends a replacement, where \1 to \9 are groups, \& is the whole match and \\ a backslash.
func appendReplacement(dst, repl, s []byte, g []int32) []byte {
	for i := 0; i < len(repl); i++ {
		c := repl[i]
		if c != '\\' || i+1 == len(repl) {
			dst = append(dst, c)
			continue
		}
		switch d := repl[i+1]; {
		case d == '&' || d >= '1' && d <= '9':
			k := 0
			if d != '&' {
				k = 2 * int(d-'0')
			}
			if k < len(g) && g[k] >= 0 && g[k+1] >= 0 {
				dst = append(dst, s[g[k]:g[k+1]]...)
			}
			i++
		case d == '\\':
			dst = append(dst, '\\')
			i++
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func makeRegexpCount(s *Site) (Kernel, error) {
	p := &patterns{name: "regexp_count", noG: true, pat: 1, fl: optional(s, 3)}
	return func(c *Call) {
		out, a := c.Out.I32, c.Texts(0)
		p.begin(c)
		for _, row := range c.Rows() {
			first := c.intArg(2, row, 1)
			if first <= 0 {
				c.Fail(row, errParameter("start", first))
				continue
			}
			x := p.at(c, row)
			if x.err != nil {
				c.Fail(row, x.err)
				continue
			}
			s := a.At(row)
			n := int32(0)
			for from := startOffset(s, first); from <= len(s); {
				g, ok := c.find(row, x, s, from)
				if !ok {
					break
				}
				n++
				from = after(s, g)
			}
			out[row] = n
		}
	}, nil
}

// startOffset is where character first (from 1) starts; beyond the end when there is none.
func startOffset(s []byte, first int32) int {
	n := int(first) - 1
	at := charOffset(s, n)
	if at == len(s) && n > charCount(s) {
		return len(s) + 1
	}
	return at
}

// nth is group sub of match n from character first on.
func (c *Call) nth(row int32, x *pattern, s []byte, first, n, sub int32) (from, to int32, ok bool) {
	for at := startOffset(s, first); at <= len(s); {
		g, ok := c.find(row, x, s, at)
		if !ok {
			break
		}
		if n--; n == 0 {
			if int(2*sub+1) >= len(g) || g[2*sub] < 0 || g[2*sub+1] < 0 {
				break
			}
			return g[2*sub], g[2*sub+1], true
		}
		at = after(s, g)
	}
	return 0, 0, false
}

func makeRegexpInstr(s *Site) (Kernel, error) {
	p := &patterns{name: "regexp_instr", noG: true, pat: 1, fl: optional(s, 5)}
	return func(c *Call) {
		out, a := c.Out.I32, c.Texts(0)
		p.begin(c)
		for _, row := range c.Rows() {
			first, n, end, sub := c.intArg(2, row, 1), c.intArg(3, row, 1), c.intArg(4, row, 0), c.intArg(6, row, 0)
			var err *pgerr.Error
			switch {
			case first <= 0:
				err = errParameter("start", first)
			case n <= 0:
				err = errParameter("n", n)
			case end != 0 && end != 1:
				err = errParameter("endoption", end)
			case sub < 0:
				err = errParameter("subexpr", sub)
			}
			x := (*pattern)(nil)
			if err == nil {
				x = p.at(c, row)
				err = x.err
			}
			if err != nil {
				c.Fail(row, err)
				continue
			}
			s := a.At(row)
			from, to, ok := c.nth(row, x, s, first, n, sub)
			switch {
			case !ok:
				out[row] = 0
			case end == 1:
				out[row] = int32(charCount(s[:to]) + 1)
			default:
				out[row] = int32(charCount(s[:from]) + 1)
			}
		}
	}, nil
}

func makeRegexpSubstr(s *Site) (Kernel, error) {
	p := &patterns{name: "regexp_substr", noG: true, pat: 1, fl: optional(s, 4)}
	return func(c *Call) {
		a, w := c.Texts(0), c.Text()
		p.begin(c)
		for _, row := range c.Rows() {
			first, n, sub := c.intArg(2, row, 1), c.intArg(3, row, 1), c.intArg(5, row, 0)
			var err *pgerr.Error
			switch {
			case first <= 0:
				err = errParameter("start", first)
			case n <= 0:
				err = errParameter("n", n)
			case sub < 0:
				err = errParameter("subexpr", sub)
			}
			x := (*pattern)(nil)
			if err == nil {
				x = p.at(c, row)
				err = x.err
			}
			if err != nil {
				c.Fail(row, err)
				continue
			}
			s := a.At(row)
			from, to, ok := c.nth(row, x, s, first, n, sub)
			if !ok {
				c.Null(row)
				continue
			}
			w.Set(row, s[from:to])
		}
	}, nil
}

// makeRegexpSubstring is substring(text from pattern): the first group, or the match when there is none.
func makeRegexpSubstring(*Site) (Kernel, error) {
	p := &patterns{pat: 1, fl: -1}
	return func(c *Call) {
		a, w := c.Texts(0), c.Text()
		p.begin(c)
		for _, row := range c.Rows() {
			x := p.at(c, row)
			if x.err != nil {
				c.Fail(row, x.err)
				continue
			}
			setSubstring(c, w, row, x, a.At(row))
		}
	}, nil
}

func setSubstring(c *Call, w *TextWriter, row int32, x *pattern, s []byte) {
	g, ok := c.find(row, x, s, 0)
	if ok && len(g) > 2 {
		g = g[2:4]
	}
	if !ok || g[0] < 0 || g[1] < 0 {
		c.Null(row)
		return
	}
	w.Set(row, s[g[0]:g[1]])
}

// makeSimilarSubstring is substring(text similar pattern escape character).
func makeSimilarSubstring(*Site) (Kernel, error) {
	p := &patterns{fl: -1}
	var text []byte
	return func(c *Call) {
		a, b, e, w := c.Texts(0), c.Texts(1), c.Texts(2), c.Text()
		for _, row := range c.Rows() {
			var err *pgerr.Error
			text, err = appendSimilar(text[:0], b.At(row), e.At(row))
			if err != nil {
				c.Fail(row, err)
				continue
			}
			x := p.cache[string(text)]
			if x == nil {
				if p.cache == nil || len(p.cache) >= maxPatterns {
					p.cache = map[string]*pattern{}
				}
				x = p.compile(text, nil)
				p.cache[string(text)] = x
			}
			if x.err != nil {
				c.Fail(row, x.err)
				continue
			}
			setSubstring(c, w, row, x, a.At(row))
		}
	}, nil
}

func similarToEscape(c *Call) {
	a, w := c.Texts(0), c.Text()
	escape := []byte{'\\'}
	for _, row := range c.Rows() {
		if len(c.Args) == 2 {
			escape = c.Texts(1).At(row)
		}
		buf, err := appendSimilar(w.Buf, a.At(row), escape)
		w.Buf = buf
		if err != nil {
			w.Drop()
			c.Fail(row, err)
			continue
		}
		w.End(row)
	}
}

var errSimilarQuotes = pgerr.New("2200C", "SQL regular expression may not contain more than two escape-double-quote separators")

// appendSimilar rewrites a pattern of SIMILAR TO as a regular expression.
func appendSimilar(dst, p, escape []byte) ([]byte, *pgerr.Error) {
	if len(escape) > 0 && charCount(escape) != 1 {
		return dst, errEscapeLong
	}
	dst = append(dst, "^(?:"...)
	escaped, bracket, quotes := false, false, 0
	for len(p) > 0 {
		n := width(p, true)
		c := p[0]
		switch {
		case escaped:
			if c == '"' && !bracket {
				switch quotes {
				case 0:
					dst = append(dst, "){1,1}?("...)
				case 1:
					dst = append(dst, "){1,1}(?:"...)
				default:
					return dst, errSimilarQuotes
				}
				quotes++
			} else {
				dst = append(append(dst, '\\'), p[:n]...)
			}
			escaped = false
		case len(escape) > 0 && string(p[:n]) == string(escape):
			escaped = true
		case bracket:
			if c == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, p[:n]...)
			bracket = c != ']'
		case c == '[':
			dst = append(dst, c)
			bracket = true
		case c == '%':
			dst = append(dst, ".*"...)
		case c == '_':
			dst = append(dst, '.')
		case c == '(':
			dst = append(dst, "(?:"...)
		case c == '\\' || c == '.' || c == '^' || c == '$':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, p[:n]...)
		}
		p = p[n:]
	}
	return append(dst, ")$"...), nil
}

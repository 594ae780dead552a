// Package regex matches PostgreSQL's advanced regular expressions, in memory that it owns and without allocating per match.
//
// What always holds: a match is leftmost; of the leftmost ones it is the longest or the shortest, as the pattern's first
// quantifier prefers (PostgreSQL's manual, 9.7.3.5); the work is bounded by the size of the program times the length of the text
// but for patterns that are refused while they run (ErrTooExpensive). Text is valid UTF-8.
//
// A pattern becomes a program for a backtracking machine that never tries the same thing twice: it remembers which branches it
// has tried at which position. Loops over one character, which is what most patterns are made of, are single instructions, and
// need no memory where what follows them cannot be in them. Look-around and back references have no such bound and are refused.
package regex

import (
	"unicode/utf8"

	"github.com/leat-io/leat/internal/expr/needle"
)

type code uint8

const (
	iByte   code = iota // the byte b
	iString             // the bytes str
	iBytes              // a character of table, whose non-ASCII characters are all in or all out
	iRunes              // a character of table (ASCII) or set
	iLoop               // as many characters of table as there are, at least min, at most max
	iSplit              // x, then y
	iSave               // slot n
	iAssert
	iMatch
)

type inst struct {
	code  code
	b     byte
	str   []byte
	table *[256]bool
	set   *set
	next  int32 // also the first choice of iSplit
	other int32 // the second
	n     int32 // slot, assertion
	min   int32
	max   int32 // < 0: no end
	// alone: the loop has to end where it cannot go on: nothing that follows could match earlier.
	alone bool
	id    int32 // of what is remembered by position; -1 when nothing needs to be
	// canNext and canOther are the bytes that a choice can start with; nil: it may match without one. A loop has canNext, too.
	canNext, canOther *[256]bool
	loop              int32 // index of the loop's record
}

// Regexp is a compiled pattern with the memory of a matching machine: for one goroutine.
type Regexp struct {
	prog    []inst
	start   int32
	groups  int
	prefers int
	ids     int32
	loops   int32
	prefix  *needle.Needle // what every match starts with; nil: anything
	first   *[256]bool     // the bytes that a match can start with; nil: any, or none
	must    required
	atStart bool // matches start at the start of the text only
	m       machine
}

// NumGroups is the number of capturing groups.
func (r *Regexp) NumGroups() int { return r.groups }

const maxProgram = 20000

// Compile compiles a pattern. Errors are of PostgreSQL's words (SQLSTATE 2201B), or *Unsupported.
func Compile(pattern string, flags Flags) (*Regexp, error) {
	n, _, groups, err := parsePattern(pattern, flags)
	if err != nil {
		return nil, err
	}
	c := &compiler{r: &Regexp{groups: groups, prefers: n.prefers}}
	end := c.emit(inst{code: iMatch})
	last := c.emit(inst{code: iSave, n: 1, next: end})
	body := c.node(n, last)
	c.r.start = body // slot 0 is the start of the attempt
	if c.tooBig {
		return nil, errTooBig
	}
	c.finish()
	c.r.must = requiredOf(n)
	return c.r, nil
}

// compiler builds programs from their end: every node knows what follows.
type compiler struct {
	r      *Regexp
	tooBig bool
}

func (c *compiler) emit(i inst) int32 {
	if len(c.r.prog) >= maxProgram {
		c.tooBig = true
		return 0
	}
	i.id, i.loop = -1, -1
	c.r.prog = append(c.r.prog, i)
	return int32(len(c.r.prog) - 1)
}

// node compiles n to be followed by next, and returns where it starts.
func (c *compiler) node(n *node, next int32) int32 {
	if c.tooBig {
		return 0
	}
	switch n.op {
	case opChars:
		return c.chars(n.set, next)
	case opCat:
		for i := len(n.subs) - 1; i >= 0; i-- {
			from := i // literals in a row are one instruction
			for from > 0 && n.subs[from].literal() && n.subs[from-1].literal() {
				from--
			}
			if from == i {
				next = c.node(n.subs[i], next)
				continue
			}
			var str []byte
			for _, sub := range n.subs[from : i+1] {
				str = utf8.AppendRune(str, sub.set.ranges[0][0])
			}
			next = c.emit(inst{code: iString, str: str, next: next})
			i = from
		}
		return next
	case opAlt:
		at := c.node(n.subs[len(n.subs)-1], next)
		for i := len(n.subs) - 2; i >= 0; i-- {
			at = c.emit(inst{code: iSplit, next: c.node(n.subs[i], next), other: at})
		}
		return at
	case opGroup:
		end := c.emit(inst{code: iSave, n: int32(2*n.index + 1), next: next})
		return c.emit(inst{code: iSave, n: int32(2 * n.index), next: c.node(n.subs[0], end)})
	case opAssert:
		return c.emit(inst{code: iAssert, n: int32(n.assert), next: next})
	case opRepeat:
		return c.repeat(n, next)
	}
	return next
}

func (c *compiler) repeat(n *node, next int32) int32 {
	sub := n.subs[0]
	if sub.op == opChars && !n.lazy {
		if t, exact := byteTable(sub.set); exact && (n.min <= 1 && n.max < 0 || !t[utf8.RuneSelf]) {
			return c.emit(inst{code: iLoop, table: t, min: int32(n.min), max: int32(n.max), next: next})
		}
	}
	choice := func(body int32) int32 {
		if n.lazy {
			return c.emit(inst{code: iSplit, next: next, other: body})
		}
		return c.emit(inst{code: iSplit, next: body, other: next})
	}
	at := next
	if n.max < 0 {
		at = choice(0)
		body := c.node(sub, at)
		if c.tooBig {
			return 0
		}
		if n.lazy {
			c.r.prog[at].other = body
		} else {
			c.r.prog[at].next = body
		}
		if n.min > 0 { // the last copy that must be there is the body itself
			at = body
		}
	} else {
		for range n.max - n.min {
			at = choice(c.node(sub, at))
			if c.tooBig {
				return 0
			}
		}
	}
	copies := n.min
	if n.max < 0 && n.min > 0 {
		copies--
	}
	for range copies {
		at = c.node(sub, at)
	}
	return at
}

// literal tells whether n is one character.
func (n *node) literal() bool {
	return n.op == opChars && len(n.set.ranges) == 1 && n.set.ranges[0][0] == n.set.ranges[0][1]
}

func (c *compiler) chars(s *set, next int32) int32 {
	s.normal()
	if len(s.ranges) == 1 && s.ranges[0][0] == s.ranges[0][1] {
		r := s.ranges[0][0]
		if r < utf8.RuneSelf {
			return c.emit(inst{code: iByte, b: byte(r), next: next})
		}
		return c.emit(inst{code: iString, str: utf8.AppendRune(nil, r), next: next})
	}
	t, exact := byteTable(s)
	if exact {
		return c.emit(inst{code: iBytes, table: t, next: next})
	}
	return c.emit(inst{code: iRunes, table: t, set: s, next: next})
}

func (i *inst) text() []byte {
	if i.code == iByte {
		return []byte{i.b}
	}
	return i.str
}

// byteTable has the set's ASCII characters, and all bytes above when a character beyond is in it. exact: then all of them are.
func byteTable(s *set) (t *[256]bool, exact bool) {
	s.normal()
	t = new([256]bool)
	exact = true
	for _, r := range s.ranges {
		for c := r[0]; c <= r[1] && c < utf8.RuneSelf; c++ {
			t[c] = true
		}
		if r[1] >= utf8.RuneSelf {
			exact = r[0] <= utf8.RuneSelf && r[1] == utf8.MaxRune
			for b := utf8.RuneSelf; b < 256; b++ {
				t[b] = true
			}
		}
	}
	return t, exact
}

// canStart is the set of bytes that a match from pc on can start with; nil when it may match without one.
func (c *compiler) canStart(pc int32) *[256]bool {
	var out [256]bool
	seen := map[int32]bool{}
	var walk func(pc int32) bool // false: may match without a byte
	walk = func(pc int32) bool {
		if seen[pc] {
			return true
		}
		seen[pc] = true
		i := &c.r.prog[pc]
		switch i.code {
		case iByte, iString:
			out[i.text()[0]] = true
		case iBytes, iRunes:
			join(&out, i.table)
		case iLoop:
			join(&out, i.table)
			if i.min == 0 {
				return walk(i.next)
			}
		case iSplit:
			return walk(i.next) && walk(i.other)
		case iSave:
			return walk(i.next)
		case iAssert:
			switch assertion(i.n) {
			case textEnd: // cannot be where there is a byte
			case lineEnd:
				out['\n'] = true
				return false
			default:
				return walk(i.next)
			}
		case iMatch:
			return false
		}
		return true
	}
	if !walk(pc) {
		return nil
	}
	return &out
}

// endsAt tells whether nothing but the match follows.
func (c *compiler) endsAt(pc int32) bool {
	for c.r.prog[pc].code == iSave {
		pc = c.r.prog[pc].next
	}
	return c.r.prog[pc].code == iMatch
}

func join(dst, src *[256]bool) {
	for i, b := range src {
		dst[i] = dst[i] || b
	}
}

func disjoint(a, b *[256]bool) bool {
	for i := range a {
		if a[i] && b[i] {
			return false
		}
	}
	return true
}

// finish computes what makes matching fast.
func (c *compiler) finish() {
	r := c.r
	small := len(r.prog) <= 500 // what follows is quadratic
	for k := range r.prog {
		i := &r.prog[k]
		switch i.code {
		case iLoop:
			i.loop = r.loops
			r.loops++
			i.id = r.ids
			r.ids++
			if small {
				can := c.canStart(i.next)
				i.canNext = can
				i.alone = can != nil && disjoint(can, i.table) || r.prefers >= 0 && c.endsAt(i.next)
			}
		case iSplit:
			i.id = r.ids
			r.ids++
			if small {
				i.canNext, i.canOther = c.canStart(i.next), c.canStart(i.other)
			}
		}
	}
	r.first = c.canStart(r.start)
	for pc := r.start; ; {
		i := &r.prog[pc]
		switch i.code {
		case iSave:
			pc = i.next
			continue
		case iByte, iString:
			r.prefix = needle.New(i.text())
		case iAssert:
			r.atStart = assertion(i.n) == textStart
		}
		break
	}
	r.m.init(r)
}

// candidate is the first place from pos on where a match may start; -1 when there is none.
func (r *Regexp) candidate(text []byte, pos int) int {
	switch {
	case r.atStart:
		if pos > 0 {
			return -1
		}
	case r.prefix != nil:
		i := r.prefix.Index(text[pos:])
		if i < 0 {
			return -1
		}
		return pos + i
	case r.must.str != nil:
		return r.must.from(text, pos)
	case r.first != nil:
		for ; pos < len(text); pos++ {
			if r.first[text[pos]] && utf8.RuneStart(text[pos]) {
				return pos
			}
		}
		return pos // a match without a byte is at the end of the text
	}
	return pos
}

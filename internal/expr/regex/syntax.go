package regex

import (
	"errors"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Flags change what a pattern means.
type Flags uint8

// The flags, as PostgreSQL's option letters name them.
const (
	Fold      Flags = 1 << iota // i: letters match in any case
	StopAtNL                    // p, and half of n: . and [^...] do not match a newline
	LineEnds                    // w, and half of n: ^ and $ match at lines
	Expanded                    // x: white space and comments in the pattern mean nothing
	Literal                     // q: the pattern is a string
	basicOnly                   // b
)

// Errors of patterns, in PostgreSQL's words.
var (
	errParen   = errors.New("parentheses () not balanced")
	errBracket = errors.New("brackets [] not balanced")
	errBrace   = errors.New("braces {} not balanced")
	errCount   = errors.New("invalid repetition count(s)")
	errRange   = errors.New("invalid character range")
	errQuant   = errors.New("quantifier operand invalid")
	errEscape  = errors.New("invalid escape \\ sequence")
	errClass   = errors.New("invalid character class")
	errCollate = errors.New("invalid collating element")
	errOption  = errors.New("invalid embedded option")
	errBackref = errors.New("invalid backreference number")
	errTooBig  = errors.New("regular expression is too complex")
)

// Unsupported is the error for what PostgreSQL's patterns can say and ours cannot.
type Unsupported struct{ What string }

func (u *Unsupported) Error() string {
	return u.What + " in a regular expression is not supported: it cannot be matched in linear time"
}

type op uint8

const (
	opEmpty op = iota
	opChars    // one character of a set
	opCat
	opAlt
	opRepeat
	opGroup // a capturing one
	opAssert
)

type node struct {
	op       op
	set      *set
	subs     []*node
	min, max int // of opRepeat; max < 0: no end
	lazy     bool
	index    int // of opGroup
	assert   assertion
	// prefers is the greediness by PostgreSQL's rules: 1 the longest match, -1 the shortest, 0 neither.
	prefers int
}

type assertion uint8

const (
	textStart assertion = iota
	textEnd
	lineStart
	lineEnd
	wordStart
	wordEnd
	wordEdge
	notWordEdge
)

const (
	maxDepth  = 200
	maxRepeat = 255 // PostgreSQL's bound
)

type parser struct {
	src    []rune
	pos    int
	flags  Flags
	groups int
	depth  int
	open   []bool // by group: still open
	exact  bool   // the last quantifier was {m}
}

func parsePattern(pattern string, flags Flags) (*node, Flags, int, error) {
	p := &parser{src: []rune(pattern), flags: flags, open: []bool{true}}
	if err := p.prefixes(); err != nil {
		return nil, 0, 0, err
	}
	if p.flags&basicOnly != 0 {
		return nil, 0, 0, &Unsupported{"the syntax of basic regular expressions (option b)"}
	}
	if p.flags&Literal != 0 {
		n := &node{op: opCat}
		for _, r := range p.src[p.pos:] {
			n.subs = append(n.subs, p.char(r))
		}
		return n, p.flags, 0, nil
	}
	n, err := p.alternation()
	if err != nil {
		return nil, 0, 0, err
	}
	if p.pos < len(p.src) {
		return nil, 0, 0, errParen
	}
	return n, p.flags, p.groups, nil
}

// prefixes reads ***: and ***=, and options such as (?i).
func (p *parser) prefixes() error {
	if len(p.src) >= 4 && string(p.src[:3]) == "***" {
		switch p.src[3] {
		case '=':
			p.flags |= Literal
		case ':':
		default:
			return errQuant
		}
		p.pos = 4
	}
	if p.flags&Literal != 0 || p.pos+2 >= len(p.src) || p.src[p.pos] != '(' || p.src[p.pos+1] != '?' || !unicode.IsLetter(p.src[p.pos+2]) {
		return nil
	}
	for p.pos += 2; ; p.pos++ {
		if p.pos >= len(p.src) {
			return errOption
		}
		c := p.src[p.pos]
		if c == ')' {
			p.pos++
			return nil
		}
		if c >= utf8.RuneSelf || !p.flags.Option(byte(c)) {
			return errOption
		}
	}
}

// Option applies an option letter; false when there is none such.
func (f *Flags) Option(c byte) bool {
	switch c {
	case 'i':
		*f |= Fold
	case 'c':
		*f &^= Fold
	case 'n', 'm':
		*f |= StopAtNL | LineEnds
	case 'p':
		*f = *f&^LineEnds | StopAtNL
	case 'w':
		*f = *f&^StopAtNL | LineEnds
	case 's':
		*f &^= StopAtNL | LineEnds
	case 'x':
		*f |= Expanded
	case 't':
		*f &^= Expanded
	case 'q':
		*f |= Literal
	case 'b':
		*f |= basicOnly
	case 'e':
	default:
		return false
	}
	return true
}

func (p *parser) more() bool { return p.pos < len(p.src) }

// skip passes comments, and white space in expanded syntax.
func (p *parser) skip() error {
	for p.more() {
		c := p.src[p.pos]
		switch {
		case p.flags&Expanded != 0 && (c == ' ' || c >= '\t' && c <= '\r'):
			p.pos++
		case p.flags&Expanded != 0 && c == '#':
			for p.more() && p.src[p.pos] != '\n' {
				p.pos++
			}
		case c == '(' && p.pos+2 < len(p.src) && p.src[p.pos+1] == '?' && p.src[p.pos+2] == '#':
			for p.more() && p.src[p.pos] != ')' {
				p.pos++
			}
			if !p.more() {
				return errParen
			}
			p.pos++
		default:
			return nil
		}
	}
	return nil
}

func (p *parser) alternation() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errTooBig
	}
	defer func() { p.depth-- }()
	first, err := p.branch()
	if err != nil {
		return nil, err
	}
	if !p.more() || p.src[p.pos] != '|' {
		return first, nil
	}
	n := &node{op: opAlt, subs: []*node{first}, prefers: 1}
	for p.more() && p.src[p.pos] == '|' {
		p.pos++
		b, err := p.branch()
		if err != nil {
			return nil, err
		}
		n.subs = append(n.subs, b)
	}
	return n, nil
}

func (p *parser) branch() (*node, error) {
	n := &node{op: opCat}
	for {
		if err := p.skip(); err != nil {
			return nil, err
		}
		if !p.more() || p.src[p.pos] == '|' || p.src[p.pos] == ')' && p.depth > 1 {
			break
		}
		a, err := p.quantified()
		if err != nil {
			return nil, err
		}
		n.subs = append(n.subs, a)
		if n.prefers == 0 {
			n.prefers = a.prefers
		}
	}
	if len(n.subs) == 1 {
		return n.subs[0], nil
	}
	return n, nil
}

func (p *parser) quantified() (*node, error) {
	a, err := p.atom()
	if err != nil {
		return nil, err
	}
	if err := p.skip(); err != nil {
		return nil, err
	}
	lo, hi, ok, err := p.quantifier()
	exact := p.exact
	if err != nil || !ok {
		return a, err
	}
	if a.op == opAssert {
		return nil, errQuant
	}
	lazy := false
	if p.more() && p.src[p.pos] == '?' {
		lazy = true
		p.pos++
	}
	if err := p.skip(); err != nil {
		return nil, err
	}
	at := p.pos
	if _, _, again, err := p.quantifier(); again || err != nil {
		p.pos = at
		return nil, errQuant
	}
	r := &node{op: opRepeat, subs: []*node{a}, min: lo, max: hi, lazy: lazy, prefers: 1}
	switch {
	case exact:
		r.prefers = a.prefers
	case lazy:
		r.prefers = -1
	}
	return r, nil
}

// quantifier reads one if it is there. hi < 0: no end; the exact form {m} gives ok with p.exact.
func (p *parser) quantifier() (lo, hi int, ok bool, err error) {
	p.exact = false
	if !p.more() {
		return 0, 0, false, nil
	}
	switch p.src[p.pos] {
	case '*':
		p.pos++
		return 0, -1, true, nil
	case '+':
		p.pos++
		return 1, -1, true, nil
	case '?':
		p.pos++
		return 0, 1, true, nil
	case '{':
		if p.pos+1 >= len(p.src) || !isDigit(p.src[p.pos+1]) {
			return 0, 0, false, nil
		}
		p.pos++
		if lo, err = p.count(); err != nil {
			return 0, 0, false, err
		}
		hi, p.exact = lo, true
		if p.more() && p.src[p.pos] == ',' {
			p.pos++
			hi, p.exact = -1, false
			if p.more() && isDigit(p.src[p.pos]) {
				if hi, err = p.count(); err != nil {
					return 0, 0, false, err
				}
				if hi < lo {
					return 0, 0, false, errCount
				}
			}
		}
		if !p.more() {
			return 0, 0, false, errBrace
		}
		if p.src[p.pos] != '}' {
			return 0, 0, false, errCount
		}
		p.pos++
		return lo, hi, true, nil
	}
	return 0, 0, false, nil
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func (p *parser) count() (int, error) {
	n := 0
	for p.more() && isDigit(p.src[p.pos]) {
		if n = n*10 + int(p.src[p.pos]-'0'); n > maxRepeat {
			return 0, errCount
		}
		p.pos++
	}
	return n, nil
}

func (p *parser) atom() (*node, error) {
	c := p.src[p.pos]
	p.pos++
	switch c {
	case '(':
		return p.group()
	case ')': // outside of any group an ordinary character in no ARE
		return nil, errParen
	case '*', '+', '?':
		return nil, errQuant
	case '{':
		if p.more() && isDigit(p.src[p.pos]) {
			return nil, errQuant
		}
		return p.char(c), nil
	case '.':
		s := &set{}
		s.add(0, unicode.MaxRune)
		if p.flags&StopAtNL != 0 {
			s.remove('\n')
		}
		return &node{op: opChars, set: s}, nil
	case '[':
		return p.bracket()
	case '^':
		if p.flags&LineEnds != 0 {
			return &node{op: opAssert, assert: lineStart}, nil
		}
		return &node{op: opAssert, assert: textStart}, nil
	case '$':
		if p.flags&LineEnds != 0 {
			return &node{op: opAssert, assert: lineEnd}, nil
		}
		return &node{op: opAssert, assert: textEnd}, nil
	case '\\':
		return p.escape()
	}
	return p.char(c), nil
}

func (p *parser) char(r rune) *node {
	s := &set{}
	s.add(r, r)
	if p.flags&Fold != 0 {
		s.fold()
	}
	return &node{op: opChars, set: s}
}

func (p *parser) group() (*node, error) {
	capture := true
	if p.pos+1 < len(p.src) && p.src[p.pos] == '?' {
		switch p.src[p.pos+1] {
		case ':':
			capture = false
			p.pos += 2
		case '=', '!':
			return nil, &Unsupported{"lookahead, (?= or (?!,"}
		case '<':
			return nil, &Unsupported{"lookbehind, (?<= or (?<!,"}
		default:
			return nil, errQuant
		}
	}
	index := 0
	if capture {
		p.groups++
		index = p.groups
		p.open = append(p.open, true)
	}
	n, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if !p.more() || p.src[p.pos] != ')' {
		return nil, errParen
	}
	p.pos++
	if !capture {
		if n.op == opAssert { // (?:^)* is legal
			n = &node{op: opCat, subs: []*node{n}}
		}
		return n, nil
	}
	p.open[index] = false
	return &node{op: opGroup, subs: []*node{n}, index: index, prefers: n.prefers}, nil
}

var assertEscapes = map[rune]assertion{'A': textStart, 'Z': textEnd, 'm': wordStart, 'M': wordEnd, 'y': wordEdge, 'Y': notWordEdge}

func (p *parser) escape() (*node, error) {
	if !p.more() {
		return nil, errEscape
	}
	c := p.src[p.pos]
	if a, ok := assertEscapes[c]; ok {
		p.pos++
		return &node{op: opAssert, assert: a}, nil
	}
	if c >= '1' && c <= '9' {
		at := p.pos
		n := 0
		for p.more() && isDigit(p.src[p.pos]) && n < 1000 {
			n = n*10 + int(p.src[p.pos]-'0')
			p.pos++
		}
		if p.pos-at == 1 || n <= p.groups {
			if n >= len(p.open) || p.open[n] {
				return nil, errBackref
			}
			return nil, &Unsupported{"a back reference"}
		}
		p.pos = at
	}
	if s := shorthand(c, p.flags); s != nil {
		p.pos++
		return &node{op: opChars, set: s}, nil
	}
	r, err := p.charEscape()
	if err != nil {
		return nil, err
	}
	return p.char(r), nil
}

// shorthand is the set of \d and the like; nil for other letters.
func shorthand(c rune, flags Flags) *set {
	var s *set
	switch c {
	case 'd', 'D':
		s = classes["digit"]
	case 's', 'S':
		s = classes["space"]
	case 'w', 'W':
		s = classes["word"]
	default:
		return nil
	}
	s = s.clone()
	if unicode.IsUpper(c) {
		s.negate()
		if flags&StopAtNL != 0 {
			s.remove('\n')
		}
	}
	return s
}

// charEscape reads an escape that stands for one character; the backslash is read already.
func (p *parser) charEscape() (rune, error) {
	c := p.src[p.pos]
	p.pos++
	hex := func(least, most int) (rune, error) {
		n, v := 0, rune(0)
		for n < most && p.more() {
			d, ok := hexValue(p.src[p.pos])
			if !ok {
				break
			}
			v = v<<4 | d
			if v > unicode.MaxRune {
				return 0, errEscape
			}
			n++
			p.pos++
		}
		if n < least {
			return 0, errEscape
		}
		return v, nil
	}
	switch c {
	case 'a':
		return 7, nil
	case 'b':
		return 8, nil
	case 'B':
		return '\\', nil
	case 'c':
		if !p.more() {
			return 0, errEscape
		}
		p.pos++
		return p.src[p.pos-1] & 31, nil
	case 'e':
		return 27, nil
	case 'f':
		return 12, nil
	case 'n':
		return 10, nil
	case 'r':
		return 13, nil
	case 't':
		return 9, nil
	case 'v':
		return 11, nil
	case 'u':
		return hex(4, 4)
	case 'U':
		return hex(8, 8)
	case 'x':
		return hex(1, 255)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		v := c - '0'
		for n := 1; n < 3 && p.more() && p.src[p.pos] >= '0' && p.src[p.pos] <= '7'; n++ {
			v = v<<3 | (p.src[p.pos] - '0')
			p.pos++
		}
		return v, nil
	}
	if unicode.IsLetter(c) || unicode.IsDigit(c) {
		return 0, errEscape
	}
	return c, nil
}

func hexValue(r rune) (rune, bool) {
	switch {
	case isDigit(r):
		return r - '0', true
	case r|0x20 >= 'a' && r|0x20 <= 'f' && r < utf8.RuneSelf:
		return r | 0x20 - 'a' + 10, true
	}
	return 0, false
}

func (p *parser) bracket() (*node, error) {
	rest := p.src[p.pos:]
	for text, a := range map[string]assertion{"[:<:]]": wordStart, "[:>:]]": wordEnd} {
		if len(rest) >= len(text) && string(rest[:len(text)]) == text {
			p.pos += len(text)
			return &node{op: opAssert, assert: a}, nil
		}
	}
	s := &set{}
	negate := false
	if p.more() && p.src[p.pos] == '^' {
		negate = true
		p.pos++
	}
	for first := true; ; first = false {
		if !p.more() {
			return nil, errBracket
		}
		if p.src[p.pos] == ']' && !first {
			p.pos++
			break
		}
		if p.src[p.pos] == '-' && !first && (p.pos+1 >= len(p.src) || p.src[p.pos+1] != ']') {
			return nil, errRange // a lone - is first, last, or the start of a range
		}
		lo, class, err := p.bracketItem()
		if err != nil {
			return nil, err
		}
		if p.pos+1 < len(p.src) && p.src[p.pos] == '-' && p.src[p.pos+1] != ']' {
			if class != nil {
				return nil, errRange
			}
			p.pos++
			hi, class, err := p.bracketItem()
			if err != nil {
				return nil, err
			}
			if class != nil || hi < lo {
				return nil, errRange
			}
			s.add(lo, hi)
			continue
		}
		if class != nil {
			s.ranges = append(s.ranges, class.ranges...)
		} else {
			s.add(lo, lo)
		}
	}
	if p.flags&Fold != 0 {
		s.fold()
	}
	if negate {
		s.negate()
		if p.flags&StopAtNL != 0 {
			s.remove('\n')
		}
	}
	return &node{op: opChars, set: s}, nil
}

// bracketItem reads a character, or a class, in which case the character means nothing.
func (p *parser) bracketItem() (rune, *set, error) {
	c := p.src[p.pos]
	p.pos++
	switch {
	case c == '\\':
		if !p.more() {
			return 0, nil, errEscape
		}
		if s := shorthand(p.src[p.pos], p.flags); s != nil {
			p.pos++
			return 0, s, nil
		}
		r, err := p.charEscape()
		return r, nil, err
	case c == '[' && p.more() && (p.src[p.pos] == ':' || p.src[p.pos] == '.' || p.src[p.pos] == '='):
		kind := p.src[p.pos]
		p.pos++
		from := p.pos
		for ; ; p.pos++ {
			if p.pos+1 >= len(p.src) {
				return 0, nil, errBracket
			}
			if p.src[p.pos] == kind && p.src[p.pos+1] == ']' {
				break
			}
		}
		name := p.src[from:p.pos]
		p.pos += 2
		if kind == ':' {
			s := classes[string(name)]
			if s == nil {
				return 0, nil, errClass
			}
			s = s.clone()
			if n := string(name); p.flags&Fold != 0 && (n == "lower" || n == "upper") {
				s = classes["alpha"].clone()
			}
			return 0, s, nil
		}
		if len(name) != 1 {
			return 0, nil, errCollate
		}
		return name[0], nil, nil
	}
	return c, nil, nil
}

// set is a set of characters, as ranges.
type set struct{ ranges [][2]rune }

func (s *set) add(lo, hi rune) { s.ranges = append(s.ranges, [2]rune{lo, hi}) }

func (s *set) clone() *set { return &set{slices.Clone(s.ranges)} }

// normal sorts and joins the ranges.
func (s *set) normal() {
	slices.SortFunc(s.ranges, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	out := s.ranges[:0]
	for _, r := range s.ranges {
		if n := len(out); n > 0 && r[0] <= out[n-1][1]+1 {
			out[n-1][1] = max(out[n-1][1], r[1])
			continue
		}
		out = append(out, r)
	}
	s.ranges = out
}

func (s *set) negate() {
	s.normal()
	var out [][2]rune
	next := rune(0)
	for _, r := range s.ranges {
		if r[0] > next {
			out = append(out, [2]rune{next, r[0] - 1})
		}
		next = r[1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, [2]rune{next, unicode.MaxRune})
	}
	s.ranges = out
}

func (s *set) remove(c rune) {
	s.negate()
	s.add(c, c)
	s.negate()
}

// fold adds the other cases of letters.
func (s *set) fold() {
	s.normal()
	n := 0
	for _, r := range slices.Clone(s.ranges) {
		for c := r[0]; c <= r[1]; c++ {
			if n++; n > 1<<16 {
				return // of sets this large the cases are in already
			}
			for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
				s.add(f, f)
			}
		}
	}
	s.normal()
}

func (s *set) has(c rune) bool {
	_, ok := slices.BinarySearchFunc(s.ranges, c, func(r [2]rune, c rune) int {
		switch {
		case r[1] < c:
			return -1
		case r[0] > c:
			return 1
		}
		return 0
	})
	return ok
}

func tables(ts ...*unicode.RangeTable) *set {
	s := &set{}
	for _, t := range ts {
		for _, r := range t.R16 {
			for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
				if r.Stride == 1 {
					s.add(c, rune(r.Hi))
					break
				}
				s.add(c, c)
			}
		}
		for _, r := range t.R32 {
			for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
				if r.Stride == 1 {
					s.add(c, rune(r.Hi))
					break
				}
				s.add(c, c)
			}
		}
	}
	s.normal()
	return s
}

func ranges(rs ...rune) *set {
	s := &set{}
	for i := 0; i < len(rs); i += 2 {
		s.add(rs[i], rs[i+1])
	}
	return s
}

func plus(s *set, rs ...rune) *set {
	s.ranges = append(s.ranges, ranges(rs...).ranges...)
	s.normal()
	return s
}

// classes are the character classes. Letters are Unicode's; digits, blanks and control characters ASCII's.
var classes = map[string]*set{
	"alpha":  tables(unicode.L),
	"alnum":  plus(tables(unicode.L), '0', '9'),
	"word":   plus(tables(unicode.L), '0', '9', '_', '_'),
	"lower":  tables(unicode.Ll),
	"upper":  tables(unicode.Lu),
	"digit":  ranges('0', '9'),
	"xdigit": ranges('0', '9', 'A', 'F', 'a', 'f'),
	"space":  plus(ranges('\t', '\r', ' ', ' ')),
	"blank":  ranges(' ', ' ', '\t', '\t'),
	"punct":  ranges('!', '/', ':', '@', '[', '`', '{', '~'),
	"cntrl":  ranges(0, 31, 127, 127),
	"print":  plus(tables(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S), ' ', ' '),
	"graph":  tables(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S),
	"ascii":  ranges(0, 127),
}

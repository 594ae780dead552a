package regex

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// ends finds the longest end of a match quickly, without groups: an automaton whose states are made when text first needs
// them. The machine finds the groups of its first match at once, but would have to try everything else to know that no other
// is longer; mostly none is, and this says so.
//
// It takes ASCII text and programs without assertions inside only; for others it does not know.
type ends struct {
	states []*endState
	index  map[string]int32
	start  [2]int32 // of attempts inside of the text, and at its start
	off    bool
}

// endState is a set of places in the program, each with how far a string or loop has come.
type endState struct {
	items  []uint32
	accept bool
	next   [utf8.RuneSelf]int32 // 0: not known yet
}

const maxEndStates = 300

// longest is the longest end of a match that starts at start; ok is false when it is not known.
func (r *Regexp) longest(text []byte, start int32) (end int32, ok bool) {
	e := &r.m.ends
	if e.off {
		return 0, false
	}
	k := 0
	if start == 0 {
		k = 1
	}
	if e.index == nil {
		e.index, e.states = map[string]int32{}, []*endState{nil}
	}
	if e.start[k] == 0 {
		b := endBuilder{r: r, atStart: k == 1}
		b.enter(r.start)
		e.start[k] = e.intern(&b)
	}
	s := e.start[k]
	last := int32(-1)
	for pos := start; s > 0; pos++ {
		st := e.states[s]
		if st.accept {
			last = pos
		}
		if len(st.items) == 0 || int(pos) >= len(text) {
			break
		}
		c := text[pos]
		if c >= utf8.RuneSelf {
			return 0, false
		}
		if s = st.next[c]; s == 0 {
			b := endBuilder{r: r}
			b.advance(st, c)
			s = e.intern(&b)
			st.next[c] = s
		}
	}
	return last, s > 0
}

// intern is the number of a state; -1 when there is no automaton.
func (e *ends) intern(b *endBuilder) int32 {
	if b.failed || len(e.states) > maxEndStates {
		e.off = true
		e.states, e.index = nil, nil
		return -1
	}
	slices.Sort(b.items)
	b.items = slices.Compact(b.items)
	key := make([]byte, 0, 4*len(b.items)+1)
	for _, x := range b.items {
		key = binary.LittleEndian.AppendUint32(key, x)
	}
	if b.accept {
		key = append(key, 1)
	}
	if n, ok := e.index[string(key)]; ok {
		return n
	}
	n := int32(len(e.states))
	e.states = append(e.states, &endState{items: b.items, accept: b.accept})
	e.index[string(key)] = n
	return n
}

type endBuilder struct {
	r       *Regexp
	atStart bool
	items   []uint32
	seen    map[int32]bool
	accept  bool
	failed  bool
}

// enter adds what can be done at pc without a character.
func (b *endBuilder) enter(pc int32) {
	if b.seen == nil {
		b.seen = map[int32]bool{}
	}
	if b.seen[pc] {
		return
	}
	b.seen[pc] = true
	i := &b.r.prog[pc]
	switch i.code {
	case iSplit:
		b.enter(i.next)
		b.enter(i.other)
	case iSave:
		b.enter(i.next)
	case iMatch:
		b.accept = true
	case iAssert:
		switch assertion(i.n) {
		case textStart:
			if b.atStart {
				b.enter(i.next)
			}
		default:
			b.failed = true
		}
	default:
		b.at(pc, 0)
	}
}

// at adds a place inside of an instruction.
func (b *endBuilder) at(pc, n int32) {
	i := &b.r.prog[pc]
	if n > 1<<15 || pc > 1<<15 {
		b.failed = true
		return
	}
	b.items = append(b.items, uint32(pc)<<16|uint32(n))
	if i.code == iLoop && n >= i.min {
		b.enter(i.next)
	}
}

// advance adds what a character leads to.
func (b *endBuilder) advance(s *endState, c byte) {
	for _, x := range s.items {
		pc, n := int32(x>>16), int32(x&0xffff)
		i := &b.r.prog[pc]
		switch i.code {
		case iByte:
			if c == i.b {
				b.enter(i.next)
			}
		case iString:
			if c != i.str[n] {
				break
			}
			if int(n+1) == len(i.str) {
				b.enter(i.next)
			} else {
				b.at(pc, n+1)
			}
		case iBytes, iRunes:
			if i.table[c] {
				b.enter(i.next)
			}
		case iLoop:
			switch {
			case !i.table[c] || i.max >= 0 && n >= i.max:
			case i.max < 0:
				b.at(pc, min(n+1, i.min))
			default:
				b.at(pc, n+1)
			}
		}
	}
}

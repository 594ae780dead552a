package regex

import (
	"errors"
	"math"
	"unicode/utf8"
)

// ErrTooExpensive is the error for a match that takes more than a bounded amount of work or memory.
var ErrTooExpensive = errors.New("regular expression takes too long to match")

const (
	maxSteps   = 1 << 28
	maxVisited = 1 << 28 // bits
)

// entry is something to do when a path fails.
type entry struct {
	kind kind
	pc   int32 // the slot, when a slot is to be restored
	pos  int32
	low  int32 // of a loop: the position it started at
}

type kind uint8

const (
	tryAt   kind = iota // go on at pc and pos
	restore             // slot pc was pos
	shorten             // the loop at pc ends at pos or before
)

// loopRecord is a range of a loop that was tried in full: from every position in [lo, hi], all ends up to hi.
type loopRecord struct {
	lo, hi  int32
	attempt int32 // for loops that stand alone: the attempt that found the range
}

type machine struct {
	caps    []int32
	best    []int32
	stack   []entry
	visited []uint64
	base    int32
	touched int32 // the last position that has a bit in visited; base-1: none
	loops   []loopRecord
	attempt int32
	steps   int
	err     error
	ends    ends
	// anyMatch: the first match found will do.
	anyMatch bool
}

func (m *machine) init(r *Regexp) {
	m.caps = make([]int32, 2*(r.groups+1))
	m.best = make([]int32, 2*(r.groups+1))
	m.loops = make([]loopRecord, r.loops)
	m.touched = -1
}

// Find looks for the first match that starts at or after from. Groups are pairs of offsets, group 0 the whole match, -1 for a
// group that took no part; they are valid until the next call.
func (r *Regexp) Find(text []byte, from int) (groups []int32, ok bool, err error) {
	if from > len(text) || len(text) > math.MaxInt32-1 {
		return nil, false, nil
	}
	pos := r.candidate(text, from)
	if pos < 0 {
		return nil, false, nil
	}
	m := &r.m
	if n := (len(text) - from + 1) * int(r.ids); n > maxVisited {
		return nil, false, ErrTooExpensive
	} else if words := n/64 + 1; len(m.visited) < words {
		m.visited = make([]uint64, words+words/2)
	} else if m.touched >= m.base {
		used := (int(m.touched-m.base)+1)*int(r.ids)/64 + 1
		clear(m.visited[:min(used, len(m.visited))])
	}
	m.base, m.touched, m.steps, m.err = int32(from), int32(from)-1, 0, nil
	for i := range m.loops {
		m.loops[i] = loopRecord{lo: -1, hi: -2}
	}
	for {
		if r.try(text, int32(pos)) {
			return m.best, true, nil
		}
		if m.err != nil {
			return nil, false, m.err
		}
		if pos >= len(text) {
			return nil, false, nil
		}
		_, n := utf8.DecodeRune(text[pos:])
		if pos = r.candidate(text, pos+n); pos < 0 {
			return nil, false, nil
		}
	}
}

// Match tells whether there is a match anywhere: which one does not matter.
func (r *Regexp) Match(text []byte) (bool, error) {
	r.m.anyMatch = true
	_, ok, err := r.Find(text, 0)
	r.m.anyMatch = false
	return ok, err
}

// visit notes a place; false when it was noted before.
func (m *machine) visit(ids, id, pos int32) bool {
	bit := uint(pos-m.base)*uint(ids) + uint(id)
	w := &m.visited[bit>>6]
	if *w>>(bit&63)&1 != 0 {
		return false
	}
	*w |= 1 << (bit & 63)
	if pos > m.touched {
		m.touched = pos
	}
	return true
}

// try looks for a match that starts at start. What was tried in earlier attempts failed, so it is not tried again.
func (r *Regexp) try(text []byte, start int32) bool {
	m := &r.m
	m.attempt++
	for i := range m.caps {
		m.caps[i] = -1
	}
	m.caps[0] = start
	m.stack = m.stack[:0]
	found := false
	end := int32(len(text))
	pc, pos := r.start, start
	prog := r.prog
	for {
		i := &prog[pc]
		switch i.code {
		case iByte:
			if pos < end && text[pos] == i.b {
				pos++
				pc = i.next
				continue
			}
		case iString:
			if int(end-pos) >= len(i.str) && string(text[pos:int(pos)+len(i.str)]) == string(i.str) {
				pos += int32(len(i.str))
				pc = i.next
				continue
			}
		case iBytes:
			if pos < end && i.table[text[pos]] {
				pos += width(text, pos)
				pc = i.next
				continue
			}
		case iRunes:
			if pos < end && i.table[text[pos]] {
				if text[pos] < utf8.RuneSelf {
					pos++
					pc = i.next
					continue
				}
				if c, n := utf8.DecodeRune(text[pos:]); i.set.has(c) {
					pos += int32(n)
					pc = i.next
					continue
				}
			}
		case iLoop:
			if q, ok := m.loop(r, i, pc, text, pos); ok {
				pos, pc = q, i.next
				continue
			}
		case iSplit:
			if pos < end {
				b := text[pos]
				if i.canNext != nil && !i.canNext[b] {
					pc = i.other
					if i.canOther == nil || i.canOther[b] {
						if m.visit(r.ids, i.id, pos) {
							continue
						}
					}
					break
				}
				if i.canOther != nil && !i.canOther[b] {
					if m.visit(r.ids, i.id, pos) {
						pc = i.next
						continue
					}
					break
				}
			}
			if m.visit(r.ids, i.id, pos) {
				m.stack = append(m.stack, entry{kind: tryAt, pc: i.other, pos: pos})
				pc = i.next
				continue
			}
		case iSave:
			if len(m.stack) > 0 {
				m.stack = append(m.stack, entry{kind: restore, pc: i.n, pos: m.caps[i.n]})
			}
			m.caps[i.n] = pos
			pc = i.next
			continue
		case iAssert:
			if holds(assertion(i.n), text, int(pos)) {
				pc = i.next
				continue
			}
		case iMatch:
			first := !found
			if !found || (r.prefers < 0) == (pos < m.best[1]) && pos != m.best[1] {
				found = true
				copy(m.best, m.caps)
			}
			if r.prefers == 0 || m.anyMatch || r.prefers > 0 && pos == end || r.prefers < 0 && pos == start {
				return true
			}
			if first && r.prefers > 0 && len(m.stack) > 0 {
				if q, ok := r.longest(text, start); ok && q == pos {
					return true
				}
			}
		}
		// The path failed, or may be beaten by another: go back to the last choice.
		for {
			if len(m.stack) == 0 {
				return found
			}
			if m.steps++; m.steps > maxSteps {
				m.err = ErrTooExpensive
				return false
			}
			e := &m.stack[len(m.stack)-1]
			if e.kind == restore {
				m.caps[e.pc] = e.pos
				m.stack = m.stack[:len(m.stack)-1]
				continue
			}
			if e.kind == tryAt {
				pc, pos = e.pc, e.pos
				m.stack = m.stack[:len(m.stack)-1]
				break
			}
			if q, ok := m.shorter(r, text, e); ok {
				pos, pc = q, prog[e.pc].next
				break
			}
			m.stack = m.stack[:len(m.stack)-1]
		}
	}
}

// loop runs a loop from pos and gives the place where it ends; shorter ends are left on the stack.
func (m *machine) loop(r *Regexp, i *inst, pc int32, text []byte, pos int32) (int32, bool) {
	rec := &m.loops[i.loop]
	if pos >= rec.lo && pos+i.min <= rec.hi && i.max < 0 && (!i.alone || rec.attempt < m.attempt) {
		return 0, false
	}
	end := int32(len(text))
	if i.max >= 0 && end-pos > i.max {
		end = pos + i.max
	}
	table := i.table
	q := pos
	if i.alone {
		for q < end && table[text[q]] {
			q++
		}
		m.steps += int(q - pos)
		if q-pos < i.min {
			return 0, false
		}
		*rec = loopRecord{lo: pos, hi: q, attempt: m.attempt}
		return q, true
	}
	stop := end
	if i.max < 0 && pos < rec.lo {
		stop = min(end, rec.lo)
	}
	for q < stop && table[text[q]] {
		q++
	}
	m.steps += int(q - pos)
	if stop < end && q == stop { // what is from here on was tried
		q = max(stop+i.min-1, pos)
	}
	if q-pos < i.min {
		return 0, false
	}
	m.stack = append(m.stack, entry{kind: shorten, pc: pc, pos: q, low: pos})
	if q, ok := m.shorter(r, text, &m.stack[len(m.stack)-1]); ok {
		return q, true
	}
	m.stack = m.stack[:len(m.stack)-1]
	return 0, false
}

// shorter is the next end of a loop to try: the last one at or before e.pos that can go on.
func (m *machine) shorter(r *Regexp, text []byte, e *entry) (int32, bool) {
	i := &r.prog[e.pc]
	for q := e.pos; q >= e.low+i.min; q-- {
		if int(q) < len(text) && (!utf8.RuneStart(text[q]) || i.canNext != nil && !i.canNext[text[q]]) {
			continue
		}
		if m.visit(r.ids, i.id, q) {
			m.steps += int(e.pos - q)
			e.pos = q - 1
			return q, true
		}
	}
	if rec := &m.loops[i.loop]; i.max < 0 {
		if e.low < rec.lo && e.pos <= rec.hi && rec.lo <= m.reach(text, i, e.low, rec.lo) {
			rec.lo = e.low
		} else {
			*rec = loopRecord{lo: e.low, hi: m.reach(text, i, e.low, int32(len(text)))}
		}
	}
	return 0, false
}

// reach is how far the characters of a loop go from pos, up to limit.
func (m *machine) reach(text []byte, i *inst, pos, limit int32) int32 {
	q := pos
	for q < limit && i.table[text[q]] {
		q++
	}
	m.steps += int(q - pos)
	return q
}

func width(text []byte, pos int32) int32 {
	if text[pos] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRune(text[pos:])
	return int32(n)
}

func holds(a assertion, text []byte, pos int) bool {
	switch a {
	case textStart:
		return pos == 0
	case textEnd:
		return pos == len(text)
	case lineStart:
		return pos == 0 || text[pos-1] == '\n'
	case lineEnd:
		return pos == len(text) || text[pos] == '\n'
	}
	before, after := false, false
	if pos > 0 {
		c, _ := utf8.DecodeLastRune(text[:pos])
		before = isWord(c)
	}
	if pos < len(text) {
		c, _ := utf8.DecodeRune(text[pos:])
		after = isWord(c)
	}
	switch a {
	case wordStart:
		return !before && after
	case wordEnd:
		return before && !after
	case wordEdge:
		return before != after
	}
	return before == after
}

func isWord(c rune) bool {
	if c < utf8.RuneSelf {
		return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
	}
	return classes["word"].has(c)
}

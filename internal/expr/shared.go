package expr

import (
	"encoding/binary"
	"slices"

	"github.com/leat-io/leat/internal/column"
)

// sharedEval is one of several equal calls (lower(x) in each branch of a CASE, or in a filter and in the output): when one of them has
// been computed for all rows that another one is asked for, that one takes its result. Each has an evaluator of its own, for what it
// computed may be in use.
type sharedEval struct {
	own  *callEval
	memo *memo
}

// memo is the last result of equal calls in a batch.
type memo struct {
	serial uint64 // of the run that v is of
	v      *column.Vector
	all    bool // v has all rows; else those in rows
	rows   column.Bitmap
	count  int // how many of rows

	kept        column.Vector // v, carried over the filter
	first, last int           // the stages (0: filter, 1: behind it) that it is used in
}

func (e sharedEval) eval(r *run, sel []int32) *column.Vector {
	m := e.memo
	if m.serial == r.serial && m.covers(sel) {
		return m.v
	}
	v := e.own.eval(r, sel)
	if r.err == nil {
		m.keep(r, v, sel)
	}
	return v
}

// covers tells whether v has all rows of a selection.
func (m *memo) covers(sel []int32) bool {
	if m.all {
		return true
	}
	if sel == nil || len(sel) > m.count {
		return false
	}
	for _, row := range sel {
		if m.rows[row>>6]>>(uint(row)&63)&1 == 0 {
			return false
		}
	}
	return true
}

// keep takes a result for a selection, unless there is one for more rows.
func (m *memo) keep(r *run, v *column.Vector, sel []int32) {
	if m.serial == r.serial && (m.all || sel != nil && len(sel) <= m.count) {
		return
	}
	m.serial, m.v, m.all, m.count = r.serial, v, sel == nil, len(sel)
	if sel == nil {
		return
	}
	words := (r.n + 63) >> 6
	m.rows = slices.Grow(m.rows[:0], words)[:words]
	clear(m.rows)
	for _, row := range sel {
		m.rows[row>>6] |= 1 << (uint(row) & 63)
	}
}

// shapes tells which of the expressions of a compiler are equal: equal ones get one number.
type shapes struct {
	numbers  map[shape]int
	of       map[*Node]int
	uses     []int // by number: in how many places of different expressions it stands
	volatile []bool
	key      []byte
}

// shape is what makes an expression what it is: everything but where it stands.
type shape struct {
	op   Op
	typ  column.Type
	idx  int
	fn   string
	text string
	null bool
	args string // their numbers
}

// share notes expressions that will be compiled, before any of them is.
func (c *compiler) share(list ...*Node) {
	for _, n := range list {
		if n == nil || len(n.Args) == 0 {
			continue
		}
		if c.shapes.numbers == nil {
			c.shapes = shapes{numbers: map[shape]int{}, of: map[*Node]int{}}
		}
		c.shapes.uses[c.shapes.number(n)]++
	}
}

func (s *shapes) number(n *Node) int {
	if n == nil { // a damaged plan: compile says so
		n = &Node{}
	}
	at := len(s.key)
	args := make([]int, 0, 8)
	for _, a := range n.Args {
		args = append(args, s.number(a))
	}
	for _, a := range args {
		s.key = binary.AppendUvarint(s.key, uint64(a))
	}
	k := shape{op: n.Op, typ: n.Type, idx: n.Index, fn: n.Func, null: n.Text == nil, args: string(s.key[at:])}
	s.key = s.key[:at]
	if n.Text != nil {
		k.text = *n.Text
	}
	id, known := s.numbers[k]
	if !known {
		id = len(s.uses)
		s.numbers[k] = id
		volatile := false
		if n.Op == OpCall {
			o := registered().byID[n.Func]
			volatile = o != nil && o.Volatility == Volatile
		}
		for _, a := range args {
			s.uses[a]++
			volatile = volatile || s.volatile[a]
		}
		s.uses, s.volatile = append(s.uses, 0), append(s.volatile, volatile)
	}
	s.of[n] = id
	return id
}

// memo is the one that a call shares with calls that are equal to it, nil if there are none.
func (c *compiler) memo(n *Node) *memo {
	id, ok := c.shapes.of[n]
	if !ok || c.shapes.uses[id] < 2 || c.shapes.volatile[id] {
		return nil
	}
	if c.memos == nil {
		c.memos = make([]*memo, len(c.shapes.uses))
	}
	m := c.memos[id]
	if m == nil {
		m = &memo{first: c.stage}
		c.memos[id] = m
	}
	m.last = c.stage
	return m
}

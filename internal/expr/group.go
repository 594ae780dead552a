package expr

import "github.com/leat-io/leat/internal/column"

// Group is a filter, which may be missing, and expressions over the rows that pass it. What is equal in them is computed once a
// batch; nothing is computed, and no column of the input is copied or made, for rows or expressions that do not need it. For one
// goroutine.
//
// A batch goes through Start, Select and Narrow if there is a filter, then Eval, in any order, and End. Select and Eval give ErrSplit where a batch has to be
// taken in parts.
type Group struct {
	filter unit
	list   []unit
	spread []*column.Vector // of constants
	run    run
	// carried are the calls that the filter and an expression have in common.
	carried []*memo
}

// CompileGroup makes a group of expressions over a batch with columns of the given types. filter, a boolean, may be nil.
func CompileGroup(filter *Node, list []*Node, inputs []column.Type) (*Group, error) {
	c := compiler{inputs: inputs}
	if filter != nil {
		c.share(filter)
	}
	c.share(list...)
	g := &Group{list: make([]unit, len(list)), spread: make([]*column.Vector, len(list))}
	var err error
	if filter != nil {
		if filter.Type.Kind != column.Bool {
			return nil, notPredicate(filter.Type)
		}
		if g.filter, err = c.compile(filter); err != nil {
			return nil, err
		}
		c.stage++
	}
	for i, n := range list {
		if g.list[i], err = c.compile(n); err != nil {
			return nil, err
		}
	}
	for _, m := range c.memos {
		if m != nil && m.first == 0 && m.last == 1 {
			g.carried = append(g.carried, m)
		}
	}
	return g, nil
}

// Start begins with a batch, whose columns may be late.
func (g *Group) Start(ctx *Context, in *column.Batch) {
	g.run.start(ctx, in)
}

// Select appends the rows for which the filter is true, in ascending order. Rows that fail go to ctx.Errors, and may be among them.
func (g *Group) Select(dst []int32) ([]int32, error) {
	r := &g.run
	dst = g.filter.selectRows(r, nil, dst)
	if r.err != nil {
		return dst[:0], r.err
	}
	return dst, nil
}

// Narrow goes on with the given rows of the batch only, ascending, which must stay as they are until the next Start. Row numbers
// begin at 0 again.
func (g *Group) Narrow(rows []int32) {
	r := &g.run
	serial := r.serial
	r.narrow(rows)
	for _, m := range g.carried {
		if m.serial == serial && m.covers(rows) {
			m.kept.Gather(m.v, rows)
			m.serial, m.v, m.all = r.serial, &m.kept, true
		}
	}
}

// Eval computes expression i for every row. The vector is valid until the next Start; for a plain column it may be the batch's own.
// Rows that fail go to ctx.Errors and are NULL; without ctx.Errors the first one is returned.
func (g *Group) Eval(i int) (*column.Vector, error) {
	r := &g.run
	v := g.list[i].eval(r, nil)
	if g.list[i].konst && r.err == nil {
		v = r.spread(&g.spread[i], v)
	}
	if r.err != nil {
		return nil, r.err
	}
	return v, nil
}

// End gives up the results, which may be large. Start does, too.
func (g *Group) End() { g.run.release() }

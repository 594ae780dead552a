package bind

import (
	"slices"

	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// pushFilters moves conditions down to where their columns come from: through projects that only pass the columns on,
// unions, windows and groups, into joins and through them to one side, down to the scans. conds are over t's columns.
func (b *binder) pushFilters(t *tree, conds []*expr.Node) (*tree, error) {
	conds = slices.DeleteFunc(slices.Clone(conds), isTrue)
	switch t.Kind {
	case plan.KindFilter:
		return b.pushFilters(t.in[0], append(conds, conjuncts(t.Filter.Predicate)...))
	case plan.KindProject:
		var down, stay []*expr.Node
		for _, c := range conds {
			if passes(c, t.Project.Exprs) {
				down = append(down, substitute(c, t.Project.Exprs))
			} else {
				stay = append(stay, c)
			}
		}
		return b.pushBelow(t, [][]*expr.Node{down}, stay)
	case plan.KindWindow:
		n := t.in[0].width()
		down, stay := split(conds, func(c int) bool { return c < n })
		return b.pushBelow(t, [][]*expr.Node{down}, stay)
	case plan.KindUnion:
		below := make([][]*expr.Node, len(t.in))
		for i := range below {
			below[i] = conds
		}
		return b.pushBelow(t, below, nil)
	case plan.KindAggregate:
		a := t.Aggregate
		down, stay := split(conds, func(c int) bool {
			return c < len(a.Groups) && c != a.WindowStart && c != a.WindowEnd
		})
		if len(a.Groups) == 0 {
			down, stay = nil, conds
		}
		down = remapAll(down, a.Groups)
		return b.pushBelow(t, [][]*expr.Node{down}, stay)
	case plan.KindJoin:
		return b.pushIntoJoin(t, conds)
	case plan.KindIntervalJoin:
		return b.pushIntoLeft(t, conds)
	}
	return b.pushBelow(t, make([][]*expr.Node, len(t.in)), conds)
}

// pushBelow pushes conditions into each input, and keeps the rest above t.
func (b *binder) pushBelow(t *tree, down [][]*expr.Node, stay []*expr.Node) (*tree, error) {
	in := make([]*tree, len(t.in))
	for i := range t.in {
		r, err := b.pushFilters(t.in[i], down[i])
		if err != nil {
			return nil, err
		}
		in[i] = r
	}
	t, err := b.rebuild(t, in...)
	if err != nil {
		return nil, err
	}
	return b.filter(t, stay)
}

// passes tells whether a condition over a project's columns may be computed below it: when that computes nothing twice.
func passes(c *expr.Node, exprs []*expr.Node) bool {
	ok := true
	eachColumn(c, func(i int) { ok = ok && (isColumn(exprs[i]) || exprs[i].Op == expr.OpConst) })
	return ok
}

// split separates the conditions that read only columns that pass; one that reads none stays.
func split(conds []*expr.Node, pass func(int) bool) (down, stay []*expr.Node) {
	for _, c := range conds {
		ok, reads := true, false
		eachColumn(c, func(i int) { ok, reads = ok && pass(i), true })
		if ok && reads {
			down = append(down, c)
		} else {
			stay = append(stay, c)
		}
	}
	return down, stay
}

func remapAll(list []*expr.Node, to []int) []*expr.Node {
	out := make([]*expr.Node, len(list))
	for i, n := range list {
		out[i] = remap(n, to)
	}
	return out
}

func shiftAll(list []*expr.Node, by int) []*expr.Node {
	out := make([]*expr.Node, len(list))
	for i, n := range list {
		out[i] = shift(n, by)
	}
	return out
}

// pushIntoJoin makes conditions above an inner join conditions of the join, and moves those of one input into it.
func (b *binder) pushIntoJoin(t *tree, conds []*expr.Node) (*tree, error) {
	c := *t
	rest := append(slices.Clone(t.conds), conds...)
	in := make([]*tree, len(t.in))
	base := 0
	for i, input := range t.in {
		lo, hi := base, base+input.width()
		var down []*expr.Node
		down, rest = split(rest, func(c int) bool { return c >= lo && c < hi })
		r, err := b.pushFilters(input, shiftAll(down, -lo))
		if err != nil {
			return nil, err
		}
		in[i] = r
		base = hi
	}
	var none []*expr.Node // conditions without columns
	c.conds = nil
	for _, n := range rest {
		reads := false
		eachColumn(n, func(int) { reads = true })
		if reads {
			c.conds = append(c.conds, n)
		} else {
			none = append(none, n)
		}
	}
	c.in = in
	r, err := b.join(in, c.conds, t.at)
	if err != nil {
		return nil, err
	}
	return b.filter(r, none)
}

// pushIntoLeft: of ON, what reads only the right side filters it; of WHERE, what reads only the left side filters that.
func (b *binder) pushIntoLeft(t *tree, conds []*expr.Node) (*tree, error) {
	n := t.in[0].width()
	right, on := split(t.conds, func(c int) bool { return c >= n })
	left, stay := split(conds, func(c int) bool { return c < n })
	l, err := b.pushFilters(t.in[0], left)
	if err != nil {
		return nil, err
	}
	r, err := b.pushFilters(t.in[1], shiftAll(right, -n))
	if err != nil {
		return nil, err
	}
	j, err := b.leftJoin(l, r, on, t.at)
	if err != nil {
		return nil, err
	}
	return b.filter(j, stay)
}

package bind

import (
	"slices"
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// chooseJoins makes of every join of many inputs a chain of joins of two, each with equal keys, and of those whose
// conditions bound the distance in time of two streams interval joins.
func (b *binder) chooseJoins(t *tree) (*tree, error) {
	t, err := b.rebuildWith(t, b.chooseJoins)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Kind == plan.KindJoin && t.Join == nil:
		return b.chain(t)
	case t.Kind == plan.KindIntervalJoin && t.IntervalJoin == nil:
		return b.leftInterval(t)
	}
	return t, nil
}

// chain joins the inputs one after the other, in the order in which they are written as far as equalities connect them.
func (b *binder) chain(t *tree) (*tree, error) {
	base := make([]int, len(t.in)+1) // where an input's columns begin in t's
	for i, in := range t.in {
		base[i+1] = base[i] + in.width()
	}
	at := make([]int, t.width()) // where a column of t is in the chain so far, -1: not yet
	for i := range at {
		at[i] = -1
		if i < base[1] {
			at[i] = i
		}
	}
	acc := t.in[0]
	left := make([]int, 0, len(t.in))
	for i := 1; i < len(t.in); i++ {
		left = append(left, i)
	}
	conds := t.conds
	for len(left) > 0 {
		next := slices.IndexFunc(left, func(i int) bool {
			return slices.ContainsFunc(conds, func(c *expr.Node) bool { _, _, ok := equality(c, at, base[i], base[i+1]); return ok })
		})
		if next < 0 {
			return nil, b.noKeys(t)
		}
		i := left[next]
		left = slices.Delete(left, next, next+1)
		// The conditions that can be decided now, over the chain's columns and then the input's.
		var here, later []*expr.Node
		both := slices.Clone(at)
		for c := base[i]; c < base[i+1]; c++ {
			both[c] = acc.width() + c - base[i]
		}
		for _, c := range conds {
			ready := true
			eachColumn(c, func(col int) { ready = ready && both[col] >= 0 })
			if ready {
				here = append(here, remap(c, both))
			} else {
				later = append(later, c)
			}
		}
		n := acc.width()
		joined, err := b.pair(acc, t.in[i], here, false, t.at)
		if err != nil {
			return nil, err
		}
		if joined.width() != n+t.in[i].width() {
			return nil, pgerr.Internal("a join has %d columns, not %d", joined.width(), n+t.in[i].width())
		}
		acc, conds, at = joined, later, both
	}
	if !slices.IsSorted(at) {
		outs := make([]output, t.width())
		for i, c := range t.Columns {
			outs[i] = output{name: c.Name, expr: acc.col(at[i]), hidden: c.Hidden}
		}
		return b.project(acc, outs)
	}
	acc.rename(t)
	return acc, nil
}

// equality tells whether a condition is an equality between something of the chain (columns with at >= 0) and something of
// the input with columns lo to hi, and gives the two sides in that order.
func equality(c *expr.Node, at []int, lo, hi int) (chain, input *expr.Node, ok bool) {
	if c.Op != expr.OpCall || len(c.Args) != 2 || !strings.HasPrefix(c.Func, "=(") {
		return nil, nil, false
	}
	side := func(n *expr.Node) (inChain, inInput bool) {
		inChain, inInput = true, true
		reads := false
		eachColumn(n, func(i int) {
			reads = true
			inChain = inChain && at[i] >= 0 && (i < lo || i >= hi)
			inInput = inInput && i >= lo && i < hi
		})
		return inChain && reads, inInput && reads
	}
	c0, i0 := side(c.Args[0])
	c1, i1 := side(c.Args[1])
	switch {
	case c0 && i1:
		return c.Args[0], c.Args[1], true
	case c1 && i0:
		return c.Args[1], c.Args[0], true
	}
	return nil, nil, false
}

func (b *binder) noKeys(t *tree) error {
	err := pgerr.Unsupported("a join without an equality between its sides (a cross join) is not supported yet").
		WithHint("Join on at least one equality of a column of each side.")
	if len(b.views) == 0 {
		err = err.At(t.at)
	}
	return err
}

// pair joins two inputs; conds are over the columns of both. Keys that are computed get columns of their own.
func (b *binder) pair(l, r *tree, conds []*expr.Node, outer bool, at int) (*tree, error) {
	n := l.width()
	position := make([]int, n+r.width())
	for i := range position {
		position[i] = i
	}
	var lkeys, rkeys, rest []*expr.Node
	for _, c := range conds {
		a, i, ok := equality(c, position, n, n+r.width())
		if !ok {
			rest = append(rest, c)
			continue
		}
		// Keys are compared as bytes, so both sides must be of one type.
		both, _, err := expr.Unify("JOIN", []*expr.Node{a, i})
		if err != nil {
			rest = append(rest, c)
			continue
		}
		a, i = both[0], both[1]
		lkeys = append(lkeys, a)
		rkeys = append(rkeys, shift(i, -n))
	}
	if len(lkeys) == 0 {
		return nil, b.noKeys(&tree{at: at})
	}
	wantL, wantR := l.width(), r.width()
	l, left, err := b.keyColumns(l, lkeys)
	if err != nil {
		return nil, err
	}
	r, right, err := b.keyColumns(r, rkeys)
	if err != nil {
		return nil, err
	}
	// The conditions that are left, over the columns that are there now.
	if moved := l.width() - n; moved > 0 {
		for i := n; i < len(position); i++ {
			position[i] = i + moved
		}
		rest = remapAll(rest, position)
	}
	j, err := b.intervalOf(l, r, left, right, rest, outer)
	if err == nil && j == nil {
		if outer {
			return nil, b.notInterval(l, r, at)
		}
		j, err = b.equiJoin(l, r, &plan.Join{Left: left, Right: right, Residual: conjunction(rest)})
	}
	if err != nil || l.width() == wantL && r.width() == wantR {
		return j, err
	}
	// Drop the computed keys again.
	var outs []output
	for i, c := range j.Columns {
		if i < wantL || i >= l.width() && i < l.width()+wantR {
			outs = append(outs, output{name: c.Name, expr: j.col(i), hidden: c.Hidden})
		}
	}
	p, err := b.project(j, outs)
	if err == nil && p.width() != wantL+wantR {
		return nil, pgerr.Internal("a join's key is not among its columns")
	}
	return p, err
}

// keyColumns makes sure that each key is a column, adding those that are computed behind the others.
func (b *binder) keyColumns(t *tree, keys []*expr.Node) (*tree, []int, error) {
	var at []int
	var outs []output
	n := t.width()
	for i, c := range t.Columns {
		outs = append(outs, output{name: c.Name, expr: t.col(i), hidden: c.Hidden})
	}
	for _, k := range keys {
		i := slices.IndexFunc(outs, func(o output) bool { return sameExpr(o.expr, k) })
		if i < 0 {
			i = len(outs)
			outs = append(outs, output{name: "_key", expr: k, hidden: true})
		}
		at = append(at, i)
	}
	if len(outs) == n {
		return t, at, nil
	}
	p, err := b.project(t, outs)
	return p, at, err
}

// leftInterval chooses the plan of a LEFT join, which must be an interval join.
func (b *binder) leftInterval(t *tree) (*tree, error) {
	p, err := b.pair(t.in[0], t.in[1], t.conds, true, t.at)
	if err != nil {
		return nil, err
	}
	p.rename(t)
	return p, nil
}

func (b *binder) notInterval(l, r *tree, at int) error {
	why := "the ON clause does not bound the distance in time of the two sides on both ends"
	switch {
	case l.EventTime < 0 || r.EventTime < 0:
		why = "not both sides are streams with a watermark"
	case !l.AppendOnly || !r.AppendOnly:
		why = "not both sides are append-only"
	}
	err := pgerr.Unsupported("LEFT JOIN is not supported yet, except between two streams within a time: %s", why).
		WithHint("Join sources on their WATERMARK columns, such as ON a.id = b.id AND b.t BETWEEN a.t AND a.t + INTERVAL '1 hour'.")
	if len(b.views) == 0 {
		err = err.At(at)
	}
	return err
}

// intervalOf makes an interval join of two append-only streams if the conditions bound right time minus left time on both
// ends; nil if not.
func (b *binder) intervalOf(l, r *tree, left, right []int, conds []*expr.Node, outer bool) (*tree, error) {
	if !l.AppendOnly || !r.AppendOnly || l.EventTime < 0 || r.EventTime < 0 {
		return nil, nil
	}
	n := l.width()
	j := &plan.IntervalJoin{Left: left, Right: right, LeftTime: l.EventTime, RightTime: r.EventTime, Outer: outer}
	var lower, upper *int64
	var rest []*expr.Node
	for _, c := range conds {
		bound, ok := timeBound(c, l.EventTime, n+r.EventTime)
		if !ok {
			rest = append(rest, c)
			continue
		}
		if bound.lower {
			lower = tighter(lower, bound.us, func(a, b int64) bool { return a > b })
		} else {
			upper = tighter(upper, bound.us, func(a, b int64) bool { return a < b })
		}
		if !bound.exact {
			rest = append(rest, c)
		}
	}
	if lower == nil || upper == nil || *lower > *upper {
		return nil, nil
	}
	j.Lower, j.Upper = *lower, *upper
	j.Residual = conjunction(rest)
	return b.intervalJoin(l, r, j)
}

func tighter(old *int64, v int64, better func(a, b int64) bool) *int64 {
	if old == nil || better(v, *old) {
		return &v
	}
	return old
}

// bound is right time - left time >= us (lower) or <= us. One that is not exact is a little wider than its condition, which
// must be tested, too: a day of a timestamptz has 23 to 25 hours.
type bound struct {
	us    int64
	lower bool
	exact bool
}

const zoneSlack = 2 * 60 * 60 * 1_000_000

// timeBound reads a condition such as r.t <= l.t + INTERVAL '1 hour'.
func timeBound(c *expr.Node, lt, rt int) (bound, bool) {
	if c.Op != expr.OpCall || len(c.Args) != 2 {
		return bound{}, false
	}
	op, _, _ := strings.Cut(c.Func, "(")
	a, aOff, aWide, ok1 := timeTerm(c.Args[0])
	z, zOff, zWide, ok2 := timeTerm(c.Args[1])
	if !ok1 || !ok2 {
		return bound{}, false
	}
	off := zOff - aOff // a op z + off
	switch {
	case a == rt && z == lt:
	case a == lt && z == rt:
		// l op r + off is r (op turned) l - off.
		off = -off
		op = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
	default:
		return bound{}, false
	}
	out := bound{us: off, exact: !aWide && !zWide}
	switch op {
	case ">=":
		out.lower = true
	case ">":
		out.lower = true
		out.us++
	case "<=":
	case "<":
		out.us--
	default:
		return bound{}, false
	}
	if !out.exact {
		if out.lower {
			out.us -= zoneSlack
		} else {
			out.us += zoneSlack
		}
	}
	return out, true
}

// timeTerm reads a column plus or minus constant intervals. wide: days of a timestamptz are among them.
func timeTerm(n *expr.Node) (col int, off int64, wide, ok bool) {
	if isColumn(n) {
		return n.Index, 0, false, n.Type.Kind == column.Timestamp || n.Type.Kind == column.Timestamptz
	}
	if n.Op != expr.OpCall || len(n.Args) != 2 {
		return 0, 0, false, false
	}
	op, _, _ := strings.Cut(n.Func, "(")
	x, iv := n.Args[0], n.Args[1]
	if op == "+" && x.Type.Kind == column.IntervalKind {
		x, iv = iv, x
	}
	if op != "+" && op != "-" || iv.Type.Kind != column.IntervalKind || x.Type.Kind == column.IntervalKind {
		return 0, 0, false, false
	}
	v, err := constInterval(iv)
	if err != nil || v.Months != 0 {
		return 0, 0, false, false
	}
	us, fits := micros(v)
	const limit = 1 << 61
	col, off, wide, ok = timeTerm(x)
	if !ok || !fits || us > limit || us < -limit || off > limit || off < -limit {
		return 0, 0, false, false
	}
	if op == "-" {
		us = -us
	}
	return col, off + us, wide || v.Days != 0 && n.Type.Kind == column.Timestamptz, true
}

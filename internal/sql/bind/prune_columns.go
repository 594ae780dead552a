package bind

import (
	"slices"

	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// pruned is a tree without the columns that nobody reads.
type pruned struct {
	*tree
	at []int // where a column of the tree before is now; -1: gone
}

// columnSet is a set of a tree's columns.
type columnSet []bool

func (s columnSet) add(columns ...int) columnSet {
	for _, c := range columns {
		if c >= 0 {
			s[c] = true
		}
	}
	return s
}

func (s columnSet) addExpr(n *expr.Node) columnSet {
	eachColumn(n, func(c int) { s[c] = true })
	return s
}

func (s columnSet) list() []int {
	out := []int{}
	for i, in := range s {
		if in {
			out = append(out, i)
		}
	}
	return out
}

func setOf(t *tree, columns ...int) columnSet {
	return make(columnSet, t.width()).add(columns...)
}

// prune drops the columns outside need. The result may keep some that the operator needs itself. A key of which a column is
// gone is gone: it is nil below what does not need it, such as an aggregate.
func prune(t *tree, need columnSet) pruned {
	switch t.Kind {
	case plan.KindScan:
		keep := need.list()
		out := derived(t, keep)
		out.Scan = &plan.Scan{Relation: t.Scan.Relation, Source: t.Scan.Source, Columns: pick(t.Scan.Columns, keep)}
		return out
	case plan.KindValues:
		keep := need.list()
		out := derived(t, keep)
		out.Values = &plan.Values{}
		for _, row := range t.Values.Rows {
			out.Values.Rows = append(out.Values.Rows, pick(row, keep))
		}
		return out
	case plan.KindFilter:
		in := prune(t.in[0], slices.Clone(need).addExpr(t.Filter.Predicate))
		out := passing(t, in)
		out.Filter = &plan.Filter{Predicate: remap(t.Filter.Predicate, in.at)}
		return out
	case plan.KindProject:
		return pruneProject(t, need)
	case plan.KindWindow:
		return pruneWindow(t, need)
	case plan.KindAggregate:
		return pruneAggregate(t, need)
	case plan.KindJoin, plan.KindIntervalJoin:
		return pruneJoin(t, need)
	case plan.KindUnion:
		return pruneUnion(t, need)
	case plan.KindSort:
		below := slices.Clone(need)
		for _, k := range t.Sort.Keys {
			below.add(k.Column)
		}
		in := prune(t.in[0], below).narrow(below)
		out := passing(t, in)
		s := *t.Sort
		s.Keys = slices.Clone(s.Keys)
		for i, k := range s.Keys {
			s.Keys[i].Column = in.at[k.Column]
		}
		out.Sort = &s
		return out
	}
	all := setOf(t)
	for i := range all {
		all[i] = true
	}
	return derived(t, all.list())
}

func pick[T any](list []T, at []int) []T {
	out := make([]T, len(at))
	for i, a := range at {
		out[i] = list[a]
	}
	return out
}

// derived is t with only some columns, in that order, without payload and inputs.
func derived(t *tree, keep []int) pruned {
	n := &tree{relation: t.relation, at: t.at}
	n.Kind = t.Kind
	out := pruned{tree: n, at: make([]int, t.width())}
	for i := range out.at {
		out.at[i] = -1
	}
	for i, c := range keep {
		out.at[c] = i
	}
	n.Columns = pick(t.Columns, keep)
	out.inherit(t)
	return out
}

// passing is t over an input whose columns it passes on; names and what is hidden are t's.
func passing(t *tree, in pruned) pruned {
	n := &tree{in: []*tree{in.tree}, at: t.at}
	n.Kind = t.Kind
	n.Columns = slices.Clone(in.Columns)
	for i, c := range t.Columns {
		if in.at[i] >= 0 {
			n.Columns[in.at[i]] = c
		}
	}
	out := pruned{tree: n, at: in.at}
	out.inherit(t)
	return out
}

// inherit takes over what was derived for t.
func (p pruned) inherit(t *tree) {
	p.AppendOnly = t.AppendOnly
	p.EventTime, p.RowWatermark = -1, -1
	if t.EventTime >= 0 {
		p.EventTime = p.at[t.EventTime]
	}
	if t.RowWatermark >= 0 {
		p.RowWatermark = p.at[t.RowWatermark]
	}
	p.Key = mapped(t.Key, p.at)
}

// mapped are columns at their new places; nil if one is gone.
func mapped(columns, at []int) []int {
	if columns == nil {
		return nil
	}
	out := []int{}
	for _, c := range columns {
		if at[c] < 0 {
			return nil
		}
		out = append(out, at[c])
	}
	return out
}

// narrow puts a project over p if it has columns outside need, so that what is moved between workers or stored is no more
// than what is read.
func (p pruned) narrow(need columnSet) pruned {
	keep := need.list()
	var now []int
	for _, c := range keep {
		now = append(now, p.at[c])
	}
	if len(now) == p.width() && slices.IsSorted(now) {
		return p
	}
	out := derived(p.tree, now)
	out.relation = nil
	out.Kind = plan.KindProject
	out.in = []*tree{p.tree}
	out.Project = &plan.Project{Exprs: []*expr.Node{}}
	for _, c := range now {
		out.Project.Exprs = append(out.Project.Exprs, p.col(c))
	}
	at := make([]int, len(p.at))
	for i, a := range p.at {
		at[i] = -1
		if a >= 0 && need[i] {
			at[i] = slices.Index(now, a)
		}
	}
	out.at = at
	return out
}

func pruneProject(t *tree, need columnSet) pruned {
	keep := need.list()
	below := setOf(t.in[0])
	for _, k := range keep {
		below.addExpr(t.Project.Exprs[k])
	}
	in := prune(t.in[0], below)
	out := derived(t, keep)
	out.in = []*tree{in.tree}
	out.Project = &plan.Project{Exprs: []*expr.Node{}}
	columns := true
	var reads []int
	for _, k := range keep {
		e := remap(t.Project.Exprs[k], in.at)
		out.Project.Exprs = append(out.Project.Exprs, e)
		columns = columns && isColumn(e) && !slices.Contains(reads, e.Index)
		if columns {
			reads = append(reads, e.Index)
		}
	}
	switch {
	case columns && in.Kind == plan.KindScan && len(reads) == in.width():
		// A scan gives its columns in any order.
		scan := *in.tree
		scan.Scan = &plan.Scan{Relation: in.Scan.Relation, Source: in.Scan.Source, Columns: pick(in.Scan.Columns, reads)}
		scan.Columns, scan.Key, scan.EventTime, scan.RowWatermark = out.Columns, out.Key, out.EventTime, out.RowWatermark
		out.tree = &scan
	case columns && identity(out.tree) && len(reads) == in.width() && in.Kind != plan.KindSort:
		same := *in.tree
		same.Columns = out.Columns
		out.tree = &same
	}
	return out
}

func pruneWindow(t *tree, need columnSet) pruned {
	n := t.in[0].width()
	below := slices.Clone(need[:n]).add(t.Window.Time)
	if t.EventTime == t.Window.Time {
		below.add(t.RowWatermark)
	}
	if t.Window.Late.Policy == "topic" {
		// What is written to the side topic is the whole row.
		below.add(t.in[0].visible()...)
	}
	in := prune(t.in[0], below)
	w := *t.Window
	w.Time = in.at[w.Time]
	m := in.width()
	out := pruned{tree: &tree{in: []*tree{in.tree}}, at: append(slices.Clone(in.at), m, m+1)}
	out.Kind = plan.KindWindow
	out.Window = &w
	out.Columns = append(slices.Clone(in.Columns), t.Columns[n:]...)
	for i, a := range in.at {
		if a >= 0 {
			out.Columns[a] = t.Columns[i]
		}
	}
	out.inherit(t)
	return out
}

func pruneAggregate(t *tree, need columnSet) pruned {
	a := *t.Aggregate
	g := len(a.Groups)
	keep := make([]int, 0, t.width())
	for i := range g {
		keep = append(keep, i)
	}
	var calls []plan.Call
	for i, c := range a.Calls {
		// A global aggregate keeps one call: it is what makes it one row.
		if need[g+i] || g == 0 && len(calls) == 0 && i == len(a.Calls)-1 {
			keep = append(keep, g+i)
			calls = append(calls, c)
		}
	}
	below := setOf(t.in[0], a.Groups...)
	for _, c := range calls {
		below.add(c.Args...).add(c.Filter)
	}
	in := prune(t.in[0], below).narrow(below)
	a.Groups = mapped(a.Groups, in.at)
	if a.Groups == nil {
		a.Groups = []int{}
	}
	a.Calls = make([]plan.Call, 0, len(calls))
	for _, c := range calls {
		c.Args = mapped(c.Args, in.at)
		if c.Filter >= 0 {
			c.Filter = in.at[c.Filter]
		}
		a.Calls = append(a.Calls, c)
	}
	out := derived(t, keep)
	out.in = []*tree{in.tree}
	out.Aggregate = &a
	return out
}

func pruneJoin(t *tree, need columnSet) pruned {
	l, r := t.in[0], t.in[1]
	n := l.width()
	var residual *expr.Node
	var left, right []int
	if t.Join != nil {
		residual, left, right = t.Join.Residual, t.Join.Left, t.Join.Right
	} else {
		residual, left, right = t.IntervalJoin.Residual, t.IntervalJoin.Left, t.IntervalJoin.Right
	}
	all := slices.Clone(need).addExpr(residual)
	// A row is stored under the key of its side.
	lneed := slices.Clone(all[:n]).add(left...).add(l.Key...)
	rneed := slices.Clone(all[n:]).add(right...).add(r.Key...)
	if j := t.IntervalJoin; j != nil {
		lneed.add(j.LeftTime, l.RowWatermark)
		rneed.add(j.RightTime, r.RowWatermark)
	}
	lp, rp := prune(l, lneed).narrow(lneed), prune(r, rneed).narrow(rneed)
	out := pruned{tree: &tree{in: []*tree{lp.tree, rp.tree}, at: t.at}, at: slices.Clone(lp.at)}
	for _, a := range rp.at {
		if a >= 0 {
			a += lp.width()
		}
		out.at = append(out.at, a)
	}
	out.Kind = t.Kind
	out.Columns = append(slices.Clone(lp.Columns), rp.Columns...)
	for i, a := range out.at {
		if a >= 0 {
			out.Columns[a] = t.Columns[i]
		}
	}
	out.inherit(t)
	if residual != nil {
		residual = remap(residual, out.at)
	}
	if t.Join != nil {
		out.Join = &plan.Join{Left: mapped(left, lp.at), Right: mapped(right, rp.at), Residual: residual}
		return out
	}
	j := *t.IntervalJoin
	j.Left, j.Right, j.Residual = mapped(left, lp.at), mapped(right, rp.at), residual
	j.LeftTime, j.RightTime = lp.at[j.LeftTime], rp.at[j.RightTime]
	out.IntervalJoin = &j
	return out
}

func pruneUnion(t *tree, need columnSet) pruned {
	n := t.width() - 1
	below := slices.Clone(need[:n])
	keep := append(below.list(), n)
	out := derived(t, keep)
	out.Union = &plan.Union{}
	for _, in := range t.in {
		p := prune(in, slices.Clone(below)).narrow(below)
		out.in = append(out.in, p.tree)
	}
	return out
}

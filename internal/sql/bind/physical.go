package bind

import (
	"slices"
	"strconv"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// physical puts the nodes of a pruned tree in order, with exchanges before what keeps state and, for stored queries, the state tables.
type physical struct {
	b     *binder
	nodes []*plan.Node
}

// placed is a node of the plan and how its rows are spread over the workers.
type placed struct {
	*plan.Node
	index int
	// by: rows that are equal in these columns are on one worker, chosen by their hash in this order; nil: not known.
	by []int
	// one: all rows are on worker 0.
	one bool
}

func (p *physical) add(n plan.Node, in ...placed) placed {
	n.Inputs = nil
	for _, i := range in {
		n.Inputs = append(n.Inputs, i.index)
	}
	c := n
	p.nodes = append(p.nodes, &c)
	return placed{Node: &c, index: len(p.nodes) - 1}
}

// exchange moves rows to the worker that owns their key; without keys to worker 0.
func (p *physical) exchange(in placed, keys []int) placed {
	n := *in.Node
	node := plan.Node{
		Kind: plan.KindExchange, Columns: n.Columns, Key: n.Key, AppendOnly: n.AppendOnly, EventTime: n.EventTime, RowWatermark: n.RowWatermark,
		Exchange: &plan.Exchange{Keys: append([]int{}, keys...)},
	}
	out := p.add(node, in)
	out.by, out.one = keys, len(keys) == 0
	return out
}

// together makes sure that rows that are equal in these columns are on one worker.
func (p *physical) together(in placed, keys []int) placed {
	if in.one || len(in.by) > 0 && subset(in.by, keys) {
		return in
	}
	return p.exchange(in, keys)
}

// table makes the header of a state table; ad hoc queries have none.
func (p *physical) table(n *plan.Node, name string, key, suffix, value []column.Type) {
	if !p.b.stored {
		return
	}
	if key == nil {
		key = []column.Type{}
	}
	n.Tables = append(n.Tables, plan.Table{ID: p.b.ids.NextTable(), Name: name, Version: plan.TableVersion(n.Kind), Key: key, Suffix: suffix, Value: value})
}

func nodeTypes(n *plan.Node, columns []int) []column.Type {
	out := []column.Type{}
	for _, c := range columns {
		out = append(out, n.Columns[c].Type)
	}
	return out
}

func allTypes(n *plan.Node) []column.Type {
	out := []column.Type{}
	for _, c := range n.Columns {
		out = append(out, c.Type)
	}
	return out
}

// lower makes the physical nodes of a tree.
func (p *physical) lower(t *tree) (placed, error) {
	if len(p.nodes) > plan.MaxNodes/2 {
		return placed{}, pgerr.Newf(pgerr.StatementTooComplex, "the plan has more than %d steps", plan.MaxNodes/2)
	}
	in := make([]placed, len(t.in))
	for i := range t.in {
		l, err := p.lower(t.in[i])
		if err != nil {
			return l, err
		}
		in[i] = l
	}
	if err := p.b.checkClock(t); err != nil {
		return placed{}, err
	}
	switch t.Kind {
	case plan.KindScan, plan.KindValues:
		return p.add(t.Node), nil
	case plan.KindFilter, plan.KindWindow:
		out := p.add(t.Node, in...)
		out.by, out.one = in[0].by, in[0].one
		return out, nil
	case plan.KindProject:
		out := p.add(t.Node, in...)
		out.one = in[0].one
		out.by = throughProject(t.Project.Exprs, in[0].by)
		return out, nil
	case plan.KindAggregate:
		return p.aggregate(t, in[0]), nil
	case plan.KindJoin:
		return p.join(t, in[0], in[1]), nil
	case plan.KindIntervalJoin:
		return p.intervalJoin(t, in[0], in[1]), nil
	case plan.KindUnion:
		out := p.add(t.Node, in...)
		out.one = !slices.ContainsFunc(in, func(i placed) bool { return !i.one })
		return out, nil
	case plan.KindSort:
		below := in[0]
		if !below.one {
			below = p.exchange(below, nil)
		}
		out := p.add(t.Node, below)
		out.one = true
		return out, nil
	}
	return placed{}, pgerr.Internal("a logical plan has a node of kind %s", t.Kind)
}

// throughProject finds the columns again that rows are spread by; nil if one is gone.
func throughProject(exprs []*expr.Node, by []int) []int {
	var out []int
	for _, c := range by {
		i := slices.IndexFunc(exprs, func(e *expr.Node) bool { return isColumn(e) && e.Index == c })
		if i < 0 {
			return nil
		}
		out = append(out, i)
	}
	return out
}

func (p *physical) aggregate(t *tree, in placed) placed {
	n := t.Node
	a := *n.Aggregate
	n.Aggregate = &a
	// Rows are spread by the groups without the bounds of windows: all windows of a group are then on one worker, which
	// panes need, and what groups the result by the same columns needs no exchange.
	var spread []int
	for i, g := range a.Groups {
		if i != a.WindowStart && i != a.WindowEnd {
			spread = append(spread, g)
		}
	}
	p.panes(&a, in)
	if len(spread) == 0 && a.WindowEnd >= 0 && a.Hop == nil {
		spread = []int{a.Groups[a.WindowEnd]}
	}
	in = p.together(in, spread)
	groups := nodeTypes(in.Node, a.Groups)
	p.table(&n, "groups", groups, nil, nil)
	for i, c := range a.Calls {
		if (c.Func == "min" || c.Func == "max") && !in.AppendOnly {
			p.table(&n, c.Func+strconv.Itoa(i), groups, c.Types, []column.Type{column.TInt64})
		}
	}
	out := p.add(n, in)
	out.one = in.one
	for _, c := range in.by {
		i := slices.Index(a.Groups, c)
		if i < 0 {
			out.by = nil
			break
		}
		out.by = append(out.by, i)
	}
	return out
}

// panes makes HOP windows be computed from panes: when between the Window node and the aggregate nothing reads the window's
// bounds but to group by them, and no min or max must be able to forget a value.
func (p *physical) panes(a *plan.Aggregate, in placed) {
	if a.WindowStart < 0 || a.WindowEnd < 0 {
		return
	}
	for _, c := range a.Calls {
		if (c.Func == "min" || c.Func == "max") && !in.AppendOnly {
			return
		}
	}
	start, end := a.Groups[a.WindowStart], a.Groups[a.WindowEnd]
	for _, c := range a.Calls {
		if slices.Contains(c.Args, start) || slices.Contains(c.Args, end) || c.Filter == start || c.Filter == end {
			return
		}
	}
	n := in.Node
	for n.Kind == plan.KindProject || n.Kind == plan.KindFilter {
		if n.Kind == plan.KindFilter {
			reads := false
			eachColumn(n.Filter.Predicate, func(c int) { reads = reads || c == start || c == end })
			if reads {
				return
			}
		} else {
			s, e := n.Project.Exprs[start], n.Project.Exprs[end]
			if !isColumn(s) || !isColumn(e) {
				return
			}
			for i, x := range n.Project.Exprs {
				reads := false
				eachColumn(x, func(c int) { reads = reads || c == s.Index || c == e.Index })
				if reads && i != start && i != end {
					return
				}
			}
			start, end = s.Index, e.Index
		}
		n = p.nodes[n.Inputs[0]]
	}
	width := len(n.Columns)
	if n.Kind != plan.KindWindow || n.Window.Slide == n.Window.Size || start != width-2 || end != width-1 {
		return
	}
	w := *n.Window
	hop := w
	a.Hop = &hop
	w.Panes = true
	n.Window = &w
}

func (p *physical) join(t *tree, l, r placed) placed {
	n := t.Node
	j := n.Join
	l, r = p.spread(l, j.Left, r, j.Right)
	p.table(&n, "left", nodeTypes(l.Node, j.Left), nodeTypes(l.Node, l.Key), allTypes(l.Node))
	p.table(&n, "right", nodeTypes(r.Node, j.Right), nodeTypes(r.Node, r.Key), allTypes(r.Node))
	out := p.add(n, l, r)
	out.by, out.one = l.by, l.one && r.one
	return out
}

// spread brings rows of two inputs that are equal in their keys together: both must be spread by all keys, in order.
func (p *physical) spread(l placed, lkeys []int, r placed, rkeys []int) (placed, placed) {
	if l.one && r.one {
		return l, r
	}
	if l.one || !slices.Equal(l.by, lkeys) {
		l = p.exchange(l, lkeys)
	}
	if r.one || !slices.Equal(r.by, rkeys) {
		r = p.exchange(r, rkeys)
	}
	return l, r
}

func (p *physical) intervalJoin(t *tree, l, r placed) placed {
	n := t.Node
	j := n.IntervalJoin
	l, r = p.spread(l, j.Left, r, j.Right)
	suffix := func(in placed, time int) []column.Type {
		return append(nodeTypes(in.Node, []int{time}), nodeTypes(in.Node, in.Key)...)
	}
	p.table(&n, "left", nodeTypes(l.Node, j.Left), suffix(l, j.LeftTime), allTypes(l.Node))
	p.table(&n, "right", nodeTypes(r.Node, j.Right), suffix(r, j.RightTime), allTypes(r.Node))
	out := p.add(n, l, r)
	out.by, out.one = l.by, l.one && r.one
	return out
}

// materialize ends the plan of a materialized view.
func (p *physical) materialize(in placed, relation uint64) {
	in = p.together(in, in.Key)
	n := *in.Node
	out := plan.Node{
		Kind: plan.KindMaterialize, Columns: n.Columns, Key: n.Key, AppendOnly: n.AppendOnly, EventTime: n.EventTime, RowWatermark: -1,
		Materialize: &plan.Materialize{Relation: relation},
	}
	p.table(&out, "rows", nodeTypes(&n, n.Key), nil, allTypes(&n))
	p.add(out, in)
}

// sink ends the plan of a sink. Changes of one key must be written by one worker, in order.
func (p *physical) sink(in placed, s *plan.Sink) {
	if len(s.Key) > 0 && !in.AppendOnly {
		in = p.together(in, s.Key)
	}
	n := *in.Node
	p.add(plan.Node{
		Kind: plan.KindSink, Columns: n.Columns, Key: n.Key, AppendOnly: n.AppendOnly, EventTime: n.EventTime, RowWatermark: -1, Sink: s,
	}, in)
}

func (p *physical) plan() (*plan.Plan, error) {
	out := &plan.Plan{Version: plan.Version, Nodes: p.nodes}
	if err := out.Check(); err != nil {
		return nil, pgerr.Internal("the binder made a plan that does not hang together: %v", err)
	}
	return out, nil
}

// checkClock refuses now() where a stored query would be wrong. A row gets the one now() of the epoch in which it comes; it
// is not computed again when time goes on. That is right for what is stamped on the rows of an append-only input, and wrong
// for conditions, which should become false by themselves, and for rows that must be retracted as they were.
func (b *binder) checkClock(t *tree) error {
	if !b.stored {
		return nil
	}
	refuse := func(where string) error {
		return pgerr.Unsupported("now() and its like are not supported yet in %s of a stored query: the result would have to change as time goes on", where).
			WithHint("Compare with the time in the ad hoc SELECT that reads the view, or stamp rows in the select list over an append-only source.")
	}
	uses := func(list ...*expr.Node) bool {
		return slices.ContainsFunc(list, func(n *expr.Node) bool { return n != nil && usesClock(n) })
	}
	switch {
	case t.Filter != nil && uses(t.Filter.Predicate):
		return refuse("a condition")
	case t.Join != nil && uses(t.Join.Residual), t.IntervalJoin != nil && uses(t.IntervalJoin.Residual):
		return refuse("a condition")
	case t.Project != nil && !t.in[0].AppendOnly && uses(t.Project.Exprs...):
		return refuse("the select list over an input that retracts rows")
	}
	return nil
}

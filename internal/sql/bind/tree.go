package bind

import (
	"slices"
	"strconv"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// tree is the logical plan: the nodes of the physical one, without exchanges, tables and the final choice of joins. Trees
// are built bottom up by the functions below, which derive stream key, append-only and event time; rewrites build new
// trees through the same functions, so that what they derive is always right.
type tree struct {
	plan.Node
	in []*tree
	// relation is what a Scan reads.
	relation *catalog.Relation
	// window is set when columns of the tree are the bounds of event-time windows.
	window *windowBounds
	// conds are the conditions of a join over the columns of all its inputs, one after the other. A tree of kind
	// KindJoin is an inner join of two or more inputs, one of kind KindIntervalJoin a LEFT join of two.
	conds []*expr.Node
	// at is where an aggregate or a join is written, for refusals when the plan is chosen: byte offset plus one.
	at int
}

// windowBounds says that two columns are the start and the end of an event-time window.
type windowBounds struct {
	start, end int
	// node is the Window node they come from: its size and slide, and whether panes are still possible.
	node *plan.Window
	late plan.Late
}

func (t *tree) width() int { return len(t.Columns) }

func (t *tree) types() []column.Type {
	out := make([]column.Type, len(t.Columns))
	for i, c := range t.Columns {
		out[i] = c.Type
	}
	return out
}

func (t *tree) col(i int) *expr.Node { return expr.Column(i, t.Columns[i].Type, 0) }

// visible lists the columns that are not hidden.
func (t *tree) visible() []int {
	var out []int
	for i, c := range t.Columns {
		if !c.Hidden {
			out = append(out, i)
		}
	}
	return out
}

// add counts a new tree against the bound on what a statement may expand to.
func (b *binder) add(n *tree) (*tree, error) {
	if b.rewriting {
		return n, nil
	}
	b.trees++
	if b.trees > maxTrees {
		return nil, pgerr.Newf(pgerr.StatementTooComplex, "the query is too complex: with its views and WITH queries expanded it has more than %d steps", maxTrees).
			WithHint("Make some of the views materialized.")
	}
	return n, nil
}

// scan reads a relation with all its columns, and a source's position and watermark.
func (b *binder) scan(r *catalog.Relation) (*tree, error) {
	t := &tree{relation: r}
	t.Kind = plan.KindScan
	t.Scan = &plan.Scan{Relation: r.ID, Source: r.Kind == catalog.Source}
	t.EventTime, t.RowWatermark = -1, -1
	for i, c := range r.Columns {
		t.Columns = append(t.Columns, plan.Column{Name: c.Name, Type: c.Type, Hidden: c.Hidden})
		t.Scan.Columns = append(t.Scan.Columns, i)
	}
	t.AppendOnly = r.AppendOnly
	if r.Kind == catalog.Source {
		n := len(r.Columns)
		t.AppendOnly = true
		t.Key = []int{n, n + 1}
		t.Scan.Columns = append(t.Scan.Columns, n, n+1)
		t.Columns = append(t.Columns,
			plan.Column{Name: "_partition", Type: column.TInt32, Hidden: true},
			plan.Column{Name: "_offset", Type: column.TInt64, Hidden: true})
		if w := r.Watermark; w != nil {
			t.EventTime = w.Column
			t.RowWatermark = n + 2
			t.Scan.Columns = append(t.Scan.Columns, n+2)
			t.Columns = append(t.Columns, plan.Column{Name: "_watermark", Type: r.Columns[w.Column].Type, Hidden: true})
		}
	} else {
		t.Key = append([]int{}, r.PrimaryKey...)
	}
	b.reads[r.ID] = true
	return b.add(t)
}

// values is a constant relation; its key is a hidden row number unless it has exactly one row.
func (b *binder) values(columns []plan.Column, rows [][]*expr.Node) (*tree, error) {
	t := &tree{}
	t.Kind = plan.KindValues
	t.EventTime, t.RowWatermark = -1, -1
	t.AppendOnly = true
	t.Key = []int{}
	t.Columns = slices.Clone(columns)
	if len(rows) != 1 {
		t.Key = []int{len(columns)}
		t.Columns = append(t.Columns, plan.Column{Name: "_row", Type: column.TInt32, Hidden: true})
		numbered := make([][]*expr.Node, len(rows))
		for i, row := range rows {
			numbered[i] = append(slices.Clone(row), intConst(column.TInt32, int64(i)))
		}
		rows = numbered
	}
	t.Values = &plan.Values{Rows: rows}
	return b.add(t)
}

// filter keeps the rows for which all conditions are true.
func (b *binder) filter(in *tree, conds []*expr.Node) (*tree, error) {
	pred := conjunction(conds)
	if pred == nil {
		return in, nil
	}
	t := &tree{in: []*tree{in}, window: in.window}
	t.Node = in.Node
	t.clearPayload()
	t.Kind = plan.KindFilter
	t.Filter = &plan.Filter{Predicate: pred}
	return b.add(t)
}

// clearPayload leaves what is derived and drops what makes the node the operator it is.
func (n *tree) clearPayload() {
	n.Node = plan.Node{
		Columns: slices.Clone(n.Columns), Key: n.Key, AppendOnly: n.AppendOnly, EventTime: n.EventTime, RowWatermark: n.RowWatermark,
	}
}

// output is one column of a project.
type output struct {
	name   string
	expr   *expr.Node
	hidden bool
}

// project computes visible columns, and carries along as hidden ones what names a row and, while the event time is among the
// columns, the row watermark.
func (b *binder) project(in *tree, outs []output) (*tree, error) {
	at := make([]int, in.width()) // where an input column comes out as it is
	for i := range at {
		at[i] = -1
	}
	for i, o := range outs {
		if isColumn(o.expr) && at[o.expr.Index] < 0 {
			at[o.expr.Index] = i
		}
	}
	carry := func(c int) int {
		if at[c] < 0 {
			at[c] = len(outs)
			outs = append(outs, output{name: in.Columns[c].Name, expr: in.col(c), hidden: true})
		}
		return at[c]
	}
	outs = slices.Clip(outs)
	t := &tree{in: []*tree{in}}
	t.Kind = plan.KindProject
	t.AppendOnly = in.AppendOnly
	t.EventTime, t.RowWatermark = -1, -1
	if in.Key != nil {
		t.Key = []int{}
		for _, k := range in.Key {
			if w := in.window; w != nil && k == w.end && at[k] < 0 && at[w.start] >= 0 {
				k = w.start // names the window as well, and is there
			}
			t.Key = append(t.Key, carry(k))
		}
	}
	if in.EventTime >= 0 && at[in.EventTime] >= 0 {
		t.EventTime = at[in.EventTime]
		if in.RowWatermark >= 0 {
			t.RowWatermark = carry(in.RowWatermark)
		}
	}
	if w := in.window; w != nil && at[w.end] >= 0 {
		// The start may be gone: what groups by the end alone is windowed, too.
		c := *w
		c.end = at[w.end]
		c.start = carry(w.start)
		t.window = &c
	} else if w != nil && at[w.start] >= 0 {
		c := *w
		c.start = at[w.start]
		c.end = carry(w.end)
		t.window = &c
	}
	t.Project = &plan.Project{}
	for _, o := range outs {
		t.Project.Exprs = append(t.Project.Exprs, o.expr)
		t.Columns = append(t.Columns, plan.Column{Name: o.name, Type: o.expr.Type, Hidden: o.hidden})
	}
	return b.add(t)
}

// assignWindows adds window_start and window_end.
func (b *binder) assignWindows(in *tree, w *plan.Window) (*tree, error) {
	t := &tree{in: []*tree{in}}
	t.Node = in.Node
	t.clearPayload()
	t.Kind = plan.KindWindow
	t.Window = w
	n := in.width()
	typ := in.Columns[w.Time].Type
	t.Columns = append(t.Columns, plan.Column{Name: "window_start", Type: typ}, plan.Column{Name: "window_end", Type: typ})
	if in.Key != nil && w.Slide < w.Size {
		t.Key = append(slices.Clone(in.Key), n)
	}
	if in.EventTime == w.Time {
		t.window = &windowBounds{start: n, end: n + 1, node: w, late: w.Late}
	}
	return b.add(t)
}

// join is an inner join of inputs with conditions over their columns one after the other; inner joins among the inputs
// become part of it. choose_joins.go makes joins of two inputs with keys of it.
func (b *binder) join(inputs []*tree, conds []*expr.Node, at int) (*tree, error) {
	t := &tree{at: at}
	t.Kind = plan.KindJoin
	t.EventTime, t.RowWatermark = -1, -1
	t.AppendOnly = true
	t.Key = []int{}
	for _, in := range inputs {
		base := t.width()
		if in.Kind == plan.KindJoin && in.Join == nil {
			for _, c := range in.conds {
				t.conds = append(t.conds, shift(c, base))
			}
			t.in = append(t.in, in.in...)
		} else {
			t.in = append(t.in, in)
		}
		t.AppendOnly = t.AppendOnly && in.AppendOnly
		t.Columns = append(t.Columns, in.Columns...)
		for _, k := range in.Key {
			t.Key = append(t.Key, base+k)
		}
	}
	t.conds = append(t.conds, conds...)
	return b.add(t)
}

// leftJoin is a LEFT join; choose_joins.go must find it to be an interval join.
func (b *binder) leftJoin(l, r *tree, conds []*expr.Node, at int) (*tree, error) {
	t := &tree{at: at, in: []*tree{l, r}, conds: conds}
	t.Kind = plan.KindIntervalJoin
	t.EventTime, t.RowWatermark = -1, -1
	t.AppendOnly = l.AppendOnly && r.AppendOnly
	t.Columns = append(slices.Clone(l.Columns), r.Columns...)
	t.Key = joinKey(l, r)
	return b.add(t)
}

func joinKey(l, r *tree) []int {
	key := append([]int{}, l.Key...)
	for _, k := range r.Key {
		key = append(key, l.width()+k)
	}
	return key
}

// equiJoin is an inner join with keys. When the key of one side is among what is joined on, a row of the other side meets at
// most one of it, so the other side's key names the result.
func (b *binder) equiJoin(l, r *tree, j *plan.Join) (*tree, error) {
	t := &tree{in: []*tree{l, r}}
	t.Kind = plan.KindJoin
	t.Join = j
	t.EventTime, t.RowWatermark = -1, -1
	t.AppendOnly = l.AppendOnly && r.AppendOnly
	t.Columns = append(slices.Clone(l.Columns), r.Columns...)
	switch {
	case r.Key != nil && subset(r.Key, j.Right):
		t.Key = l.Key
	case l.Key != nil && subset(l.Key, j.Left):
		t.Key = []int{}
		for _, k := range r.Key {
			t.Key = append(t.Key, l.width()+k)
		}
	default:
		t.Key = joinKey(l, r)
	}
	return b.add(t)
}

// intervalJoin is a join of two streams within a time.
func (b *binder) intervalJoin(l, r *tree, j *plan.IntervalJoin) (*tree, error) {
	t := &tree{in: []*tree{l, r}}
	t.Kind = plan.KindIntervalJoin
	t.IntervalJoin = j
	t.EventTime, t.RowWatermark = -1, -1
	t.AppendOnly = true
	t.Columns = append(slices.Clone(l.Columns), r.Columns...)
	t.Key = joinKey(l, r)
	return b.add(t)
}

func subset(a, of []int) bool {
	for _, x := range a {
		if !slices.Contains(of, x) {
			return false
		}
	}
	return true
}

// union is UNION ALL of inputs that have the same columns, hidden ones included; it adds the number of the input.
func (b *binder) union(inputs []*tree) (*tree, error) {
	first := inputs[0]
	t := &tree{in: inputs}
	t.Kind = plan.KindUnion
	t.Union = &plan.Union{}
	t.Columns = append(slices.Clone(first.Columns), plan.Column{Name: "_input", Type: column.TInt32, Hidden: true})
	t.EventTime, t.RowWatermark = first.EventTime, first.RowWatermark
	t.AppendOnly = true
	keyed := true
	for _, in := range inputs {
		t.AppendOnly = t.AppendOnly && in.AppendOnly
		keyed = keyed && in.Key != nil
		if in.EventTime != t.EventTime || in.RowWatermark != t.RowWatermark {
			t.EventTime, t.RowWatermark = -1, -1
		}
	}
	if keyed {
		in := map[int]bool{}
		for _, i := range inputs {
			for _, k := range i.Key {
				in[k] = true
			}
		}
		for i := range first.Columns {
			if in[i] {
				t.Key = append(t.Key, i)
			}
		}
		t.Key = append(t.Key, first.width())
	}
	return b.add(t)
}

// aggregate groups by columns of its input.
func (b *binder) aggregate(in *tree, groups []int, calls []plan.Call, names []string, at int) (*tree, error) {
	t := &tree{in: []*tree{in}, at: at}
	t.Kind = plan.KindAggregate
	a := &plan.Aggregate{Groups: groups, Calls: calls, WindowStart: -1, WindowEnd: -1}
	t.Aggregate = a
	t.EventTime, t.RowWatermark = -1, -1
	t.Key = []int{}
	for i, g := range groups {
		t.Columns = append(t.Columns, in.Columns[g])
		t.Columns[i].Hidden = false
		t.Key = append(t.Key, i)
	}
	for i, c := range calls {
		t.Columns = append(t.Columns, plan.Column{Name: names[i], Type: c.Result})
	}
	// Without calls an append-only input's groups only ever come, never go.
	t.AppendOnly = in.AppendOnly && len(calls) == 0 && len(groups) > 0
	if w := in.window; w != nil {
		start, end := slices.Index(groups, w.start), slices.Index(groups, w.end)
		if start >= 0 && end >= 0 {
			a.WindowStart, a.WindowEnd = start, end
			a.Late = w.late
			t.window = &windowBounds{start: start, end: end, node: w.node, late: w.late}
			// The end says what the start is.
			t.Key = slices.DeleteFunc(t.Key, func(k int) bool { return k == start })
			if w.late.Policy == "correct" {
				t.AppendOnly = t.AppendOnly && len(calls) == 0
			}
		}
	}
	return b.add(t)
}

// emitOnClose makes a windowed aggregate emit when its windows close.
func (t *tree) emitOnClose() {
	a := *t.Aggregate
	a.EmitOnClose = true
	t.Aggregate = &a
	t.AppendOnly = a.Late.Policy != "correct"
	t.EventTime = a.WindowEnd
}

// sort orders an ad hoc result.
func (b *binder) sort(in *tree, s *plan.Sort) (*tree, error) {
	t := &tree{in: []*tree{in}}
	t.Node = in.Node
	t.clearPayload()
	t.Kind = plan.KindSort
	t.Sort = s
	return b.add(t)
}

// rebuild is the operator of t over other inputs, with everything derived anew.
func (b *binder) rebuild(t *tree, in ...*tree) (*tree, error) {
	same := len(in) == len(t.in)
	for i := range in {
		same = same && in[i] == t.in[i]
	}
	if same {
		return t, nil
	}
	switch t.Kind {
	case plan.KindFilter:
		return b.filter(in[0], []*expr.Node{t.Filter.Predicate})
	case plan.KindProject:
		return b.project(in[0], t.outputs())
	case plan.KindWindow:
		n, err := b.assignWindows(in[0], t.Window)
		if err == nil {
			n.rename(t)
		}
		return n, err
	case plan.KindAggregate:
		names := make([]string, len(t.Aggregate.Calls))
		n, err := b.aggregate(in[0], t.Aggregate.Groups, t.Aggregate.Calls, names, t.at)
		if err != nil {
			return nil, err
		}
		n.rename(t)
		if t.Aggregate.EmitOnClose {
			n.emitOnClose()
		}
		return n, nil
	case plan.KindJoin:
		if t.Join != nil {
			return b.equiJoin(in[0], in[1], t.Join)
		}
		return b.join(in, t.conds, t.at)
	case plan.KindIntervalJoin:
		if t.IntervalJoin != nil {
			return b.intervalJoin(in[0], in[1], t.IntervalJoin)
		}
		return b.leftJoin(in[0], in[1], t.conds, t.at)
	case plan.KindUnion:
		return b.union(in)
	case plan.KindSort:
		return b.sort(in[0], t.Sort)
	}
	return nil, pgerr.Internal("a %s cannot get another input", t.Kind)
}

// rename gives the columns the names that another tree of as many columns has.
func (t *tree) rename(from *tree) {
	t.Columns = slices.Clone(t.Columns)
	for i := range min(len(t.Columns), len(from.Columns)) {
		t.Columns[i].Name = from.Columns[i].Name
		t.Columns[i].Hidden = from.Columns[i].Hidden
	}
}

// outputs are the columns of a project.
func (t *tree) outputs() []output {
	outs := make([]output, len(t.Columns))
	for i, c := range t.Columns {
		outs[i] = output{name: c.Name, expr: t.Project.Exprs[i], hidden: c.Hidden}
	}
	return outs
}

func intConst(t column.Type, v int64) *expr.Node { return expr.Const(t, strconv.FormatInt(v, 10), 0) }

package flow

import (
	"fmt"
	"slices"
	"sort"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/expr"
)

// reader reads one source for all jobs of the island that started alike: it decodes once, and decides lateness once.
type reader struct {
	id    int
	spec  *SourceSpec
	start string
	state SourceState
	node  *node // its outs are the jobs' scans
	jobs  []*job
	ids   []uint64 // of jobs; what was handed out of it never changes
	// need tells which columns of the source are made; decode are the connector's among them, in order. late are columns of the connector
	// that are made only when, and for which rows, somebody asks.
	need   []bool
	decode []int
	late   []int
	opens  int // goes up when they change: workers open their partitions again
}

func newReader(id int, spec *SourceSpec, start string, state SourceState) *reader {
	return &reader{id: id, spec: spec, start: start, state: state, node: &node{}}
}

// choose finds which columns are made, by who reads what. A column is late when one scan alone reads it, with a filter behind it that
// does not look at the column: several would make it several times.
func (r *reader) choose() {
	cols := len(r.spec.Columns)
	need, asks := make([]bool, cols), make([]int, cols)
	if r.spec.EventTime >= 0 {
		r.want(need, r.spec.EventTime)
	}
	for i, c := range r.spec.Columns {
		if c.NotNull || r.spec.Checked && c.canFail() {
			r.want(need, i)
		}
	}
	source, _ := r.spec.Source.(connector.Late)
	for _, e := range r.node.outs {
		for k, c := range e.to.plan.Scan.Columns {
			switch {
			case c >= cols:
			case source != nil && len(e.to.late) > 0 && e.to.late[k] && r.spec.Columns[c].Expr == nil && source.MakesLate(c):
				asks[c]++
			default:
				r.want(need, c)
			}
		}
	}
	var decode, late []int
	for i := range cols {
		switch {
		case r.spec.Columns[i].Expr != nil:
		case need[i] || asks[i] > 1:
			need[i] = true
			decode = append(decode, i)
		case asks[i] == 1:
			late = append(late, i)
		}
	}
	if r.opens == 0 || !slices.Equal(need, r.need) || !slices.Equal(late, r.late) {
		r.need, r.decode, r.late = need, decode, late
		r.opens++
	}
}

// want notes that a column is made, and those that it is computed from.
func (r *reader) want(need []bool, col int) {
	if col >= len(need) || need[col] {
		return
	}
	need[col] = true
	if e := r.spec.Columns[col].Expr; e != nil {
		eachColumn(e, func(c int) { r.want(need, c) })
	}
}

// canFail tells whether there can be records that give no value for the column.
func (c *SourceColumn) canFail() bool {
	return c.Expr != nil || c.Type.Kind != column.Text && c.Type.Kind != column.Bytea || c.Type.Precision > 0
}

// eachColumn calls fn for every input column that an expression names.
func eachColumn(n *expr.Node, fn func(int)) {
	if n.Op == expr.OpColumn {
		fn(n.Index)
	}
	for _, a := range n.Args {
		eachColumn(a, fn)
	}
}

// types are the types of a reader's batches: the source's columns, then partition, offset and row watermark.
func (s *SourceSpec) types() []column.Type {
	t := make([]column.Type, 0, len(s.Columns)+3)
	for _, c := range s.Columns {
		t = append(t, c.Type)
	}
	wm := column.TTimestamptz
	if s.EventTime >= 0 {
		wm = s.Columns[s.EventTime].Type
	}
	return append(t, column.TInt32, column.TInt64, wm)
}

// grow makes the state know n partitions; new ones begin at position 0.
func (s *SourceState) grow(n int) {
	for len(s.Partitions) < n {
		s.Partitions = append(s.Partitions, PartitionState{MaxTime: NoTime})
	}
}

// startState is where a reader without a saved state begins.
func startState(spec *SourceSpec, start string) (SourceState, error) {
	if start == "" {
		start = "earliest"
	}
	at, err := spec.Source.Start(start)
	if err != nil {
		return SourceState{}, fmt.Errorf("where source %s starts: %w", spec.Name, err)
	}
	s := SourceState{Relation: spec.Relation, Watermark: NoTime}
	for _, o := range at {
		s.Partitions = append(s.Partitions, PartitionState{Offset: o, MaxTime: NoTime})
	}
	return s, nil
}

// same says that two readers would from now on give the same rows with the same lateness.
func (s *SourceState) same(o *SourceState) bool {
	return s.Watermark == o.Watermark && slices.Equal(s.Partitions, o.Partitions)
}

func (s SourceState) clone() SourceState {
	s.Partitions = slices.Clone(s.Partitions)
	return s
}

// watermark is the source's after partitions have come to their maximum times: the minimum over the active partitions, never
// less than before.
func (r *reader) watermark(parts []PartitionState, before int64) int64 {
	if r.spec.EventTime < 0 {
		return NoTime
	}
	low, active, ended := EndOfTime, 0, 0
	for i := range parts {
		p := &parts[i]
		if p.Ended {
			ended++
			continue
		}
		if p.Idle {
			continue
		}
		active++
		low = min(low, minus(p.MaxTime, r.spec.Delay))
	}
	if active == 0 && (ended == 0 || ended < len(parts)) {
		return before // all idle: time stands still until the coordinator moves it
	}
	return max(before, low)
}

// minus is a - d without going below NoTime.
func minus(a, d int64) int64 {
	if a == NoTime || a-d > a {
		return NoTime
	}
	return a - d
}

func (r *reader) public() Reader {
	return Reader{ID: r.id, Relation: r.spec.Relation, Start: r.start, Source: r.spec.Source, Jobs: r.ids, State: r.state.clone()}
}

func (r *reader) add(jobs ...*job) {
	for _, j := range jobs {
		r.jobs, r.ids = append(r.jobs, j), append(r.ids, j.spec.ID)
	}
}

func (r *reader) forget(j *job) {
	r.jobs = slices.DeleteFunc(r.jobs, func(o *job) bool { return o == j })
	r.ids = slices.DeleteFunc(slices.Clone(r.ids), func(id uint64) bool { return id == j.spec.ID })
}

// setBounds marks partitions of a bounded source that were read to their end.
func (r *reader) setBounds() {
	b, ok := r.spec.Source.(connector.Bounded)
	if !ok {
		return
	}
	for i := range r.state.Partitions {
		if end, known := b.Bound(i); known && r.state.Partitions[i].Offset >= end {
			r.state.Partitions[i].Ended = true
		}
	}
}

// fixWatermarks finds the readers' watermarks of this epoch from what all workers have seen.
func (i *Island) fixWatermarks(w *worker) {
	if w.marks == nil {
		w.marks = map[int]int64{}
	}
	clear(w.marks)
	sort.Slice(w.times, func(a, b int) bool { return w.times[a].reader < w.times[b].reader })
	at := 0
	for _, r := range i.readers {
		parts := r.state.Partitions
		for at < len(w.times) && w.times[at].reader < r.id {
			at++
		}
		if at < len(w.times) && w.times[at].reader == r.id {
			w.parts = append(w.parts[:0], parts...)
			for ; at < len(w.times) && w.times[at].reader == r.id; at++ {
				t := w.times[at]
				w.parts[t.partition].MaxTime = max(w.parts[t.partition].MaxTime, t.max)
			}
			parts = w.parts
		}
		wm := r.watermark(parts, r.state.Watermark)
		for _, a := range w.epoch.Advance {
			if a.Reader == r.id {
				wm = max(wm, a.To)
			}
		}
		w.marks[r.id] = wm
	}
}

// groupWatermark is the watermark of the nodes of a group in the epoch at hand.
func (i *Island) groupWatermark(w *worker, g *timeGroup) int64 {
	if w.epoch.final {
		return EndOfTime
	}
	if len(g.readers) == 0 {
		return NoTime
	}
	low := EndOfTime
	for _, r := range g.readers {
		low = min(low, w.marks[r])
	}
	return low
}

func (i *Island) nodeWatermark(w *worker, n *node) int64 {
	if !w.timed {
		return NoTime
	}
	return i.groupWatermark(w, n.group)
}

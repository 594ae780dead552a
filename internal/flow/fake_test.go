package flow

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/plan"
	"github.com/leat-io/leat/internal/state"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0: from the clock")

func testSeed(t testing.TB) uint64 {
	s := *seedFlag
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", s)
	return s
}

// memSource is partitions of rows in memory. A nil first value makes a record that cannot be decoded.
type memSource struct {
	types []column.Type
	parts [][][]any
	app   int64 // append time of all records, 0: unknown
}

func (s *memSource) Partitions() int { return len(s.parts) }
func (s *memSource) Ends(dst []int64) []int64 {
	for _, p := range s.parts {
		dst = append(dst, int64(len(p)))
	}
	return dst
}
func (s *memSource) Start(string) ([]int64, error) { return make([]int64, len(s.parts)), nil }
func (s *memSource) Open(p int, cols []int) (connector.Partition, error) {
	return &memPart{s: s, p: p, cols: slices.Clone(cols)}, nil
}

type memPart struct {
	s    *memSource
	p    int
	cols []int
}

func (m *memPart) Close() error { return nil }
func (m *memPart) Read(from, to int64, most int, out *connector.Rows) (int64, error) {
	out.Reset(len(m.cols))
	for i, c := range m.cols {
		out.Cols[i].Reset(m.s.types[c])
	}
	end := min(to, from+int64(most))
	for at := from; at < end; at++ {
		row := m.s.parts[m.p][at]
		if row == nil {
			out.Bad = append(out.Bad, connector.Bad{Record: record.Record{Offset: at, Value: []byte("junk")}, Reason: "not a row"})
			continue
		}
		for i, c := range m.cols {
			appendAny(out.Cols[i], row[c])
		}
		out.Offsets = append(out.Offsets, at)
		if m.s.app != 0 {
			out.Appended = append(out.Appended, m.s.app)
		}
		out.Len++
	}
	return end, nil
}

func appendAny(v *column.Vector, x any) {
	switch x := x.(type) {
	case nil:
		v.AppendNull()
	case int:
		switch v.Type.Kind {
		case column.Int16:
			v.AppendInt16(int16(x))
		case column.Int32, column.Date:
			v.AppendInt32(int32(x))
		default:
			v.AppendInt64(int64(x))
		}
	case float64:
		v.AppendFloat64(x)
	case bool:
		v.AppendBool(x)
	case string:
		if v.Type.Kind == column.Numeric {
			v.AppendDecimal(mustDecimal(x))
			return
		}
		v.AppendString(x)
	default:
		panic(fmt.Sprintf("value %T", x))
	}
}

func rowText(b *column.Batch, row int, cols []plan.Column) string {
	var out []string
	for i, c := range b.Cols {
		if cols != nil && cols[i].Hidden {
			continue
		}
		switch {
		case c.IsNull(row):
			out = append(out, "null")
		case c.Type.Kind == column.Bool:
			out = append(out, fmt.Sprint(c.Bools[row]))
		case c.Type.Kind == column.Int16:
			out = append(out, fmt.Sprint(c.I16[row]))
		case c.Type.Kind == column.Int32 || c.Type.Kind == column.Date:
			out = append(out, fmt.Sprint(c.I32[row]))
		case c.Type.Kind == column.Float64:
			out = append(out, fmt.Sprint(c.F64[row]))
		case c.Type.Kind == column.Float32:
			out = append(out, fmt.Sprint(c.F32[row]))
		case c.Type.Kind == column.Numeric:
			out = append(out, c.Dec[row].String())
		case c.Type.Kind == column.IntervalKind:
			out = append(out, fmt.Sprint(c.Iv[row]))
		case c.Type.Kind.Varlen():
			out = append(out, string(c.Bytes(row)))
		default:
			out = append(out, fmt.Sprint(c.I64[row]))
		}
	}
	return strings.Join(out, " ")
}

// builder makes plans.
type builder struct {
	p plan.Plan
}

func (b *builder) add(n plan.Node, inputs ...int) int {
	b.p.Version = plan.Version
	n.Inputs = inputs
	b.p.Nodes = append(b.p.Nodes, &n)
	return len(b.p.Nodes) - 1
}

func (b *builder) node(i int) *plan.Node { return b.p.Nodes[i] }

func col(name string, t column.Type) plan.Column { return plan.Column{Name: name, Type: t} }

// source scans columns of a source, then its partition, offset and row watermark (hidden).
func (b *builder) source(spec *SourceSpec, cols ...int) int {
	var out []plan.Column
	n := len(spec.Columns)
	event := -1
	for i, c := range cols {
		out = append(out, col(spec.Columns[c].Name, spec.Columns[c].Type))
		if c == spec.EventTime {
			event = i
		}
	}
	ts := spec.types()
	for k, name := range []string{"_partition", "_offset", "_watermark"} {
		out = append(out, plan.Column{Name: name, Type: ts[n+k], Hidden: true})
	}
	return b.add(plan.Node{
		Kind: plan.KindScan, Columns: out, Key: []int{len(cols), len(cols) + 1}, AppendOnly: true, EventTime: event, RowWatermark: len(cols) + 2,
		Scan: &plan.Scan{Relation: spec.Relation, Source: true, Columns: append(slices.Clone(cols), n, n+1, n+2)},
	})
}

func (b *builder) view(rel uint64, from *plan.Node, cols ...int) int {
	var out []plan.Column
	for _, c := range cols {
		out = append(out, from.Columns[c])
	}
	var key []int
	for _, k := range from.Key {
		key = append(key, slices.Index(cols, k))
	}
	return b.add(plan.Node{Kind: plan.KindScan, Columns: out, Key: key, EventTime: -1, RowWatermark: -1, Scan: &plan.Scan{Relation: rel, Columns: cols}})
}

func (b *builder) project(in int, key []int, names []string, exprs ...*expr.Node) int {
	var out []plan.Column
	for i, e := range exprs {
		out = append(out, col(names[i], e.Type))
	}
	return b.add(plan.Node{
		Kind: plan.KindProject, Columns: out, Key: key, AppendOnly: b.node(in).AppendOnly, EventTime: -1, RowWatermark: -1,
		Project: &plan.Project{Exprs: exprs},
	}, in)
}

func (b *builder) window(in int, w plan.Window) int {
	n := b.node(in)
	t := n.Columns[w.Time].Type
	out := append(slices.Clone(n.Columns), col("window_start", t), col("window_end", t))
	return b.add(plan.Node{
		Kind: plan.KindWindow, Columns: out, Key: append(slices.Clone(n.Key), len(n.Columns)), AppendOnly: n.AppendOnly, EventTime: n.EventTime,
		RowWatermark: -1, Window: &w,
	}, in)
}

func (b *builder) exchange(in int, keys ...int) int {
	n := b.node(in)
	return b.add(plan.Node{
		Kind: plan.KindExchange, Columns: n.Columns, Key: n.Key, AppendOnly: n.AppendOnly, EventTime: n.EventTime, RowWatermark: n.RowWatermark,
		Exchange: &plan.Exchange{Keys: keys},
	}, in)
}

func call(f string, result column.Type, filter int, arg int, t column.Type) plan.Call {
	if arg < 0 {
		return plan.Call{Func: f, Result: result, Filter: filter}
	}
	return plan.Call{Func: f, Args: []int{arg}, Types: []column.Type{t}, Result: result, Filter: filter}
}

// aggregate groups by groups; ws and we are the window's bounds among the input's columns, -1 without.
func (b *builder) aggregate(in int, a plan.Aggregate) int {
	n := b.node(in)
	var out []plan.Column
	var key []int
	for i, g := range a.Groups {
		out = append(out, n.Columns[g])
		key = append(key, i)
	}
	for i, c := range a.Calls {
		out = append(out, col(fmt.Sprintf("%s%d", c.Func, i), c.Result))
	}
	return b.add(plan.Node{Kind: plan.KindAggregate, Columns: out, Key: key, AppendOnly: a.EmitOnClose && a.Late.Policy != "correct", EventTime: -1, RowWatermark: -1, Aggregate: &a}, in)
}

func (b *builder) materialize(in int) int {
	n := b.node(in)
	return b.add(plan.Node{Kind: plan.KindMaterialize, Columns: n.Columns, Key: n.Key, AppendOnly: n.AppendOnly, EventTime: n.EventTime, RowWatermark: -1, Materialize: &plan.Materialize{}}, in)
}

func (b *builder) sink(in int, format string, key ...int) int {
	n := b.node(in)
	s := plan.Sink{Topic: "out", Format: format, Encode: "json", Key: key}
	for i, c := range n.Columns {
		if !c.Hidden {
			s.Columns = append(s.Columns, i)
			s.Names = append(s.Names, c.Name)
		}
	}
	return b.add(plan.Node{Kind: plan.KindSink, Columns: n.Columns, Key: n.Key, EventTime: -1, RowWatermark: -1, Sink: &s}, in)
}

// rig runs an island epoch by epoch over memory sources.
type rig struct {
	t      testing.TB
	i      *Island
	tables []*state.Tables
	epoch  uint64
	last   *Result
	total  map[uint64]*JobResult // counts summed
	append []string              // all sink records, "topic/partition key=value"
	dead   []string
}

func newRig(t testing.TB, o Options) *rig {
	t.Helper()
	i, err := NewIsland(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return &rig{t: t, i: i, total: map[uint64]*JobResult{}}
}

func (r *rig) attach(s JobSpec) {
	r.t.Helper()
	if err := r.i.Attach(s); err != nil {
		r.t.Fatal(err)
	}
}

// run runs an epoch that reads up to the given positions by (reader, partition); nil: n rows of each partition.
func (r *rig) run(step int64, advance ...Advance) *Result {
	r.t.Helper()
	r.epoch++
	e := &Epoch{Number: r.epoch, Now: int64(r.epoch) * 1000, Advance: advance}
	for _, rd := range r.i.Readers() {
		for p, end := range rd.Source.Ends(nil) {
			from := int64(0)
			if p < len(rd.State.Partitions) {
				from = rd.State.Partitions[p].Offset
			}
			if to := min(end, from+step); to > from {
				e.Reads = append(e.Reads, Read{Reader: rd.ID, Partition: p, From: from, To: to})
			}
		}
	}
	return r.runEpoch(e)
}

func (r *rig) runEpoch(e *Epoch) *Result {
	r.t.Helper()
	res, err := r.i.Run(e)
	if err != nil {
		r.t.Fatal(err)
	}
	r.last = res
	for _, j := range res.Jobs {
		t := r.total[j.Job]
		if t == nil {
			t = &JobResult{Job: j.Job}
			r.total[j.Job] = t
		}
		t.Counts.Add(&j.Counts)
		t.Err = j.Err
		t.Checksum = j.Checksum
		t.Live = j.Live
		t.Positions, t.Backfill = j.Positions, j.Backfill
		t.Watermark = j.Watermark
	}
	for _, b := range res.Appends {
		for _, x := range b.Records {
			v := string(x.Value)
			if x.Value == nil {
				v = "tombstone"
			}
			r.append = append(r.append, fmt.Sprintf("%s/%d %s=%s", b.Topic, b.Partition, x.Key, v))
		}
	}
	for _, d := range res.DeadLetters {
		r.dead = append(r.dead, fmt.Sprintf("%d/%d %s", d.Partition, d.Record.Offset, d.Reason))
	}
	return res
}

// drain runs epochs of step rows until all is read.
func (r *rig) drain(step int64) {
	for {
		left := false
		for _, rd := range r.i.Readers() {
			for p, end := range rd.Source.Ends(nil) {
				left = left || rd.State.Partitions[p].Offset < end
			}
		}
		if !left {
			return
		}
		r.run(step)
	}
}

// closeTime ends event time.
func (r *rig) closeTime() {
	var a []Advance
	for _, rd := range r.i.Readers() {
		a = append(a, Advance{rd.ID, EndOfTime})
	}
	r.run(0, a...)
}

// rows are a view's stored rows, sorted.
func (r *rig) rows(job uint64) []string {
	r.t.Helper()
	var out []string
	n := r.i.byID[job].maker
	ts := types(n.plan)
	for k := range n.inst {
		if err := r.i.workers[k].at(n).open(); err != nil {
			r.t.Fatal(err)
		}
		var it state.PointIter
		if err := n.inst[k].op.(tabler).Table().Scan(&it, nil, nil); err != nil {
			r.t.Fatal(err)
		}
		for it.Next() {
			b := column.NewBatch(ts, 1)
			if err := rowenc.DecodeRow(it.Value(), ts, b.Cols); err != nil {
				r.t.Fatal(err)
			}
			b.EndRow(1)
			out = append(out, rowText(b, 0, n.plan.Columns))
		}
		if err := it.Err(); err != nil {
			r.t.Fatal(err)
		}
		it.Close()
	}
	sort.Strings(out)
	return out
}

// equal compares lists and shows where they first differ.
func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	show := func(s []string) string { return strings.Join(s[min(at, len(s)):min(at+8, len(s))], "\n     ") }
	t.Fatalf("%s: %d rows, want %d; from row %d on\n got %s\nwant %s", what, len(got), len(want), at, show(got), show(want))
}

// shapes are the ways of running that must not change any result.
type shape struct {
	workers, batch int
	step           int64
	seed           uint64
}

func (s shape) options() Options {
	return Options{Workers: s.workers, BatchRows: s.batch, Seed: s.seed, InFlightBytes: 4096}
}

func shapes(r *rand.Rand) []shape {
	return []shape{
		{1, 1024, 1 << 30, 0},
		{1, 1, 3, 0},
		{2, 7, 10, 0},
		{3, 1, 1 << 30, 0},
		{2, 1024, 1, 0},
		{3, 7, 1 + int64(r.IntN(20)), 1 + r.Uint64N(1<<40)},
		{2, 1 + r.IntN(9), 1 + int64(r.IntN(50)), 1 + r.Uint64N(1<<40)},
	}
}

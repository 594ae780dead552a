package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator/sink"
	"github.com/leat-io/leat/internal/sql/plan"
)

func mustResolve(t testing.TB, name string, args ...*expr.Node) *expr.Node {
	n, err := expr.Resolve(name, args, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// divided is a view of name and 100 / key, which fails for key 0.
func divided(t testing.TB, spec *SourceSpec) *plan.Plan {
	b := &builder{}
	s := b.source(spec, 0, 2)
	hundred := expr.Const(column.TInt64, "100", 0)
	p := b.project(s, []int{2, 3}, []string{"name", "q", "p", "o"},
		expr.Column(0, column.TText, 0), mustResolve(t, "/", hundred, expr.Column(1, column.TInt64, 0)),
		expr.Column(2, column.TInt32, 0), expr.Column(3, column.TInt64, 0))
	b.node(p).Columns[2].Hidden, b.node(p).Columns[3].Hidden = true, true
	b.materialize(p)
	return &b.p
}

// A row that fails is dropped from that view alone, and counted; a job that fails takes with it only those that read it.
func TestFailuresStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 3} {
		spec := events(0, [][]any{at("a", 1, 5), at("b", 2, 0), at("c", 3, 20)})
		r := newRig(t, Options{Workers: workers})
		srcs := map[uint64]*SourceSpec{100: spec}
		r.attach(JobSpec{ID: 1, Name: "divided", Plan: divided(t, spec), Sources: srcs, Fresh: true})
		whole := &builder{}
		whole.materialize(whole.source(spec, 0, 2))
		r.attach(JobSpec{ID: 2, Name: "whole", Plan: &whole.p, Sources: srcs, Fresh: true})
		// A count sunk as plain records: it fails when it has to take a row back.
		b := &builder{}
		b.sink(b.aggregate(b.source(spec, 0), plan.Aggregate{WindowStart: -1, WindowEnd: -1, Calls: []plan.Call{call("count", column.TInt64, -1, -1, column.Type{})}}), "plain")
		r.attach(JobSpec{ID: 3, Name: "bad sink", Plan: &b.p, Sources: srcs, Fresh: true})
		// A plan that names a column which is not there panics in the operator.
		c := &builder{}
		m := c.materialize(c.source(spec, 0))
		c.node(m).Key = []int{9}
		r.attach(JobSpec{ID: 4, Name: "broken", Plan: &c.p, Sources: srcs, Fresh: true})
		v := &builder{}
		v.materialize(v.view(4, r.i.byID[4].maker.plan, 0))
		v.node(0).Key, v.node(1).Key = []int{0}, []int{0}
		r.attach(JobSpec{ID: 5, Name: "reader of broken", Plan: &v.p, Fresh: true, SkipBackfill: true})

		r.run(2)
		r.run(1)
		equal(t, "divided", r.rows(1), []string{"a 20", "c 5"})
		if c := r.total[1].Counts; c.Failed != 1 {
			t.Errorf("failed %d", c.Failed)
		}
		equal(t, "whole", r.rows(2), []string{"a 5", "b 0", "c 20"})
		for id, want := range map[uint64]string{1: "", 2: "", 3: "UPSERT", 4: "panic", 5: "broken, which failed"} {
			err := r.total[id].Err
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%d workers: job %d: %v; want %q", workers, id, err, want)
			}
		}
		if err := r.i.Detach(4); err == nil {
			t.Error("detached a job that is read")
		}
		for _, id := range []uint64{5, 4, 3} {
			if err := r.i.Detach(id); err != nil {
				t.Fatal(err)
			}
		}
		r.run(1)
	}
}

// Records that cannot be decoded, have no event time, fail in a generated column or come from the far future are dead letters, and
// hold up nothing.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	now := 1000 * minute
	spec := events(0, [][]any{
		at("a", now, 1), nil, {"no time", nil, 1}, at("future", now+25*60*minute, 1), at("zero", now+1, 0), at("b", now+2, 2),
	})
	spec.Source.(*memSource).app = now
	spec.Columns = append(spec.Columns, SourceColumn{Name: "q", Type: column.TInt64, Expr: mustResolve(t, "/", expr.Const(column.TInt64, "10", 0), expr.Column(2, column.TInt64, 0))})
	for _, batch := range []int{1, 100} {
		b := &builder{}
		b.materialize(b.source(spec, 0, 3))
		r := newRig(t, Options{Workers: 1, BatchRows: batch})
		r.attach(viewOf(spec, &b.p))
		r.drain(10)
		equal(t, "rows", r.rows(1), []string{"a 10", "b 5"})
		equal(t, "dead letters", r.dead, []string{
			"0/1 not a row", "0/2 no event time: column at is null", "0/3 event time is too far ahead of the time at which the record was appended",
			"0/4 generated column q: division by zero (SQLSTATE 22012)",
		})
		if c := r.last.Readers[0].Counts; c.Dead != 4 || c.FarFuture != 1 {
			t.Errorf("counts %+v", c)
		}
		if wm := r.last.Readers[0].State.Watermark; wm != now+2 {
			t.Errorf("watermark %d", wm-now)
		}
	}
}

func TestSinks(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2} {
		spec := events(0, [][]any{at("a", second, 1), at("b", 2*second, 1), at("c", 3*second, 2)})
		srcs := map[uint64]*SourceSpec{100: spec}
		r := newRig(t, Options{Workers: workers, BatchRows: 1})
		b := &builder{}
		b.sink(b.source(spec, 0, 1), "plain")
		parts := func(string) int { return 3 }
		r.attach(JobSpec{ID: 1, Name: "plain", Plan: &b.p, Sources: srcs, Fresh: true, Partitions: parts})
		r.drain(3)
		got := slices.Clone(r.append)
		sort.Strings(got)
		for i := range got {
			got[i] = got[i][:4] + got[i][5:]
		}
		sort.Strings(got)
		equal(t, "plain", got, []string{
			`out/ ={"name":"a","at":"1970-01-01T00:00:01Z"}`, `out/ ={"name":"b","at":"1970-01-01T00:00:02Z"}`, `out/ ={"name":"c","at":"1970-01-01T00:00:03Z"}`,
		})

		r = newRig(t, Options{Workers: workers})
		tb := table(1, tableSource(101, [][]any{
			{1, 7, "1.50", 0.5, "x", true, false}, {2, 7, nil, nil, nil, nil, false}, {1, 8, "2", 1e30, "y\n\"", false, false}, {2, 0, nil, nil, nil, nil, true},
		}))
		r.attach(tb)
		u := &builder{}
		u.sink(u.view(1, r.i.byID[1].maker.plan, 0, 1, 2, 3, 4, 5), "upsert", 0)
		r.attach(JobSpec{ID: 2, Name: "upsert", Plan: &u.p, Fresh: true})
		r.run(2)
		r.run(2)
		equal(t, "upsert", r.append, []string{
			`out/0 {"id":1}={"id":1,"grp":7,"num":1.50,"f":0.5,"s":"x","b":true}`, `out/0 {"id":2}={"id":2,"grp":7,"num":null,"f":null,"s":null,"b":null}`,
			`out/0 {"id":1}={"id":1,"grp":8,"num":2,"f":1e+30,"s":"y\n\"","b":false}`, `out/0 {"id":2}=tombstone`,
		})

		r = newRig(t, Options{Workers: workers, BatchRows: 2})
		c := &builder{}
		c.sink(c.source(spec, 0, 1), sink.Checksum)
		c.node(1).Sink.Columns = []int{0, 1}
		r.attach(JobSpec{ID: 1, Name: "sum", Plan: &c.p, Sources: srcs, Fresh: true})
		r.drain(2)
		if r.total[1].Checksum == 0 || r.total[1].Counts.Out != 3 {
			t.Errorf("checksum %x of %d rows", r.total[1].Checksum, r.total[1].Counts.Out)
		}
	}
}

// A job that starts later reads from its own start with a reader of its own, which becomes one with the other when it has caught
// up; both views are equal, late counts too.
func TestReadersMerge(t *testing.T) {
	t.Parallel()
	spec := events(0, minutes())
	r := newRig(t, Options{Workers: 2})
	w := plan.Window{Size: 2 * minute, Slide: 2 * minute}
	r.attach(viewOf(spec, counted(spec, w, true)))
	r.run(6)
	second := viewOf(spec, counted(spec, w, true))
	second.ID, second.Name = 2, "second"
	r.attach(second)
	if n := len(r.i.Readers()); n != 2 {
		t.Fatalf("%d readers", n)
	}
	id := r.i.Readers()
	r.epoch++
	r.runEpoch(&Epoch{Number: r.epoch, Reads: []Read{{id[1].ID, 0, 0, 6}}})
	if n := len(r.i.Readers()); n != 1 {
		t.Fatalf("%d readers after catching up", n)
	}
	r.run(3)
	r.run(3)
	equal(t, "views", r.rows(2), r.rows(1))
	if len(r.rows(1)) != 4 {
		t.Errorf("rows %q", r.rows(1))
	}
}

func TestRunOnce(t *testing.T) {
	t.Parallel()
	rows := randomRows(newRand(9), 200)
	from := table(1, tableSource(101, rows)).Plan.Nodes
	input := func(_ context.Context, scan *plan.Node, emit func(*column.Batch) error) error {
		ts := types(scan)
		b := column.NewBatch(ts, 8)
		for id, r := range latest(rows) {
			_ = id
			for i, c := range scan.Scan.Columns {
				appendAny(b.Cols[i], r[c])
			}
			b.EndRow(1)
			if b.Len == 7 {
				if err := emit(b); err != nil {
					return err
				}
				b.Reset(ts)
			}
		}
		return emit(b)
	}
	run := func(p *plan.Plan, o OnceOptions) (out []string, err error) {
		o.Tables = input
		err = RunOnce(context.Background(), p, o, func(b *column.Batch) error {
			for i := range b.Len {
				out = append(out, rowText(b, i, nil))
			}
			return b.Validate()
		})
		return out, err
	}
	p := aggregated(1, from[len(from)-1], false)
	p.Nodes = p.Nodes[:2]
	got, err := run(p, OnceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "grouped", reduceMax(got, 10), modelAggregate(latest(rows), false))

	b := &builder{}
	v := b.view(1, from[len(from)-1], 0, 4)
	b.add(plan.Node{
		Kind: plan.KindSort, Columns: b.node(v).Columns, EventTime: -1, RowWatermark: -1,
		Sort: &plan.Sort{Keys: []plan.SortKey{{Column: 1, Descending: true, NullsFirst: true}, {Column: 0}}, Limit: expr.Const(column.TInt64, "4", 0), Offset: expr.Const(column.TInt64, "1", 0)},
	}, v)
	got, err = run(&b.p, OnceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for id, r := range latest(rows) {
		k := "0"
		if r[4] != nil {
			k = string(rune('z'-(r[4].(string)[1]-'0'))) + "  " // descending
		}
		all = append(all, fmt.Sprintf("%s|%03d", k, id))
	}
	sort.Strings(all)
	for i, g := range got {
		if want := strings.TrimLeft(strings.Split(all[i+1], "|")[1], "0"); strings.Fields(g)[0] != want && want != "" {
			t.Errorf("row %d is %q, want id %s", i, g, want)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d rows", len(got))
	}
	little := budget.New("queries", 10).Account()
	little.Must(256 << 10)
	if _, err = run(&b.p, OnceOptions{Memory: little}); err == nil || !strings.Contains(err.Error(), "53200") {
		t.Errorf("memory: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := RunOnce(ctx, &b.p, OnceOptions{Tables: input}, func(*column.Batch) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	spec := events(0, minutes())
	got = nil
	sp := counted(spec, plan.Window{Size: 5 * minute, Slide: 5 * minute}, false)
	sp.Nodes = sp.Nodes[:len(sp.Nodes)-1]
	got, err = run(sp, OnceOptions{Sources: map[uint64]*SourceSpec{100: spec}})
	if err != nil || len(got) != 2 {
		t.Errorf("over a source: %q, %v", got, err)
	}
	// A row's error is the statement's.
	dp := divided(t, events(0, [][]any{at("a", 1, 0)}))
	dp.Nodes = dp.Nodes[:2]
	if _, err := run(dp, OnceOptions{Sources: map[uint64]*SourceSpec{100: events(0, [][]any{at("a", 1, 0)})}}); err == nil || !strings.Contains(err.Error(), "22012") {
		t.Errorf("division: %v", err)
	}
	// Without FROM.
	x := &builder{}
	x.add(plan.Node{Kind: plan.KindValues, Columns: []plan.Column{col("a", column.TInt64)}, EventTime: -1, RowWatermark: -1, Values: &plan.Values{Rows: [][]*expr.Node{{expr.Const(column.TInt64, "7", 0)}, {expr.Const(column.TInt64, "8", 0)}}}})
	if got, err := run(&x.p, OnceOptions{}); err != nil || !slices.Equal(got, []string{"7", "8"}) {
		t.Errorf("values: %q, %v", got, err)
	}
}

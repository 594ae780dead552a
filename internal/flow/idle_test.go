package flow

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/sql/plan"
)

// idleJob counts the rows of source 1 + id%2 that are above id, by k.
func idleJob(t *testing.T, id uint64, specs []*SourceSpec) JobSpec {
	spec := specs[id%2]
	var b builder
	in := b.source(spec, 0, 1)
	n := *b.node(in)
	n.Kind, n.Scan, n.Filter = plan.KindFilter, nil, &plan.Filter{Predicate: bigger(t, 1, fmt.Sprint(id))}
	in = b.aggregate(b.add(n, in), plan.Aggregate{
		Groups: []int{0}, WindowStart: -1, WindowEnd: -1,
		Calls: []plan.Call{call("count", column.TInt64, -1, -1, column.TInt64), call("max", column.TInt64, -1, 1, column.TInt64)},
	})
	b.materialize(in)
	return JobSpec{ID: id, Name: fmt.Sprint("v", id), Plan: &b.p, Sources: map[uint64]*SourceSpec{spec.Relation: spec}, Fresh: true}
}

// TestIdleJobsCostLittle: jobs that no row has reached hold no operators, tables or buffers, and an epoch does not look at jobs that it does
// not come to.
func TestIdleJobsCostLittle(t *testing.T) { // measures the heap: not parallel
	const jobs, limit = 1000, 6 << 10
	types := []column.Type{column.TInt64, column.TInt64}
	var specs []*SourceSpec
	for rel := range uint64(2) {
		specs = append(specs, &SourceSpec{
			Relation: rel + 1, Name: "s", Source: &memSource{types: types, parts: [][][]any{{{1, 1 << 20}, {2, 1 << 20}}}}, EventTime: -1,
			Columns: []SourceColumn{{Name: "k", Type: column.TInt64}, {Name: "v", Type: column.TInt64}},
		})
	}
	r := newRig(t, Options{Workers: 2, Seed: 1})
	plans := make([]JobSpec, jobs)
	for k := range plans { // the catalog has the plans, whether they run or not
		plans[k] = idleJob(t, uint64(k+1), specs)
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for _, p := range plans {
		r.attach(p)
	}
	r.runEpoch(&Epoch{Number: 1}) // the first epoch of their lives, without input
	r.epoch = 1
	each := (heap() - before) / jobs
	t.Logf("%d bytes an idle job with 2 workers", each)
	if each > limit {
		t.Errorf("an idle job costs %d bytes, the limit is %d", each, limit)
	}
	for _, j := range r.i.jobs {
		for _, n := range j.nodes {
			for _, in := range n.inst {
				if in != nil && in.op != nil {
					t.Fatalf("%s: %s has an operator though no row came", j.spec.Name, n.plan.Kind)
				}
			}
		}
	}
	// Rows of source 1 reach the even jobs only.
	even := r.i.Readers()[1]
	if even.Relation != 1 {
		even = r.i.Readers()[0]
	}
	res := r.runEpoch(&Epoch{Number: 2, Reads: []Read{{Reader: even.ID, Partition: 0, From: 0, To: 2}}})
	if len(res.Jobs) != jobs/2 || len(r.i.touched) != jobs/2 {
		t.Errorf("the epoch has results of %d jobs and looked at %d, want %d", len(res.Jobs), len(r.i.touched), jobs/2)
	}
	for _, j := range res.Jobs {
		if j.Job%2 != 0 {
			t.Fatalf("the epoch has a result of job %d, which reads another source", j.Job)
		}
	}
	res = r.runEpoch(&Epoch{Number: 3})
	if len(res.Jobs) != 0 || len(r.i.touched) != 0 {
		t.Errorf("an epoch without input has results of %d jobs", len(res.Jobs))
	}
}

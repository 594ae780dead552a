package flow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/sql/plan"
	"github.com/leat-io/leat/internal/state"
	"github.com/leat-io/leat/internal/vfs"
)

// disk is a database that outlives islands.
type disk struct {
	t       *testing.T
	db      *kv.DB
	applier *state.Applier
	lsn     journal.LSN
}

func newDisk(t *testing.T) *disk {
	db, err := kv.Open(kv.Options{FS: vfs.NewMem(), Dir: "kv", CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	a, err := state.NewApplier(state.ApplierOptions{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.FinishRecovery(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); db.Close() })
	return &disk{t: t, db: db, applier: a}
}

func (d *disk) tables(workers int) (ts []*state.Tables) {
	for range workers {
		ts = append(ts, state.NewTables(state.Options{Name: "state", DB: d.db, Applier: d.applier}))
	}
	return ts
}

// commit makes an epoch's changes durable and evicts what may be evicted.
func (d *disk) commit(r *rig, res *Result) {
	d.t.Helper()
	d.lsn++
	for _, c := range res.Changes {
		for _, p := range c.Rows {
			d.must(d.applier.Apply(d.lsn, journal.KindRows, p))
		}
		for _, p := range c.State {
			d.must(d.applier.Apply(d.lsn, journal.KindState, p))
		}
	}
	for _, t := range r.tables {
		t.Committed(d.lsn)
	}
	d.must(d.applier.Publish(d.lsn))
	d.must(d.applier.ApplyState(d.lsn))
}

func (d *disk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// number gives every operator of the plan the ids of its durable tables.
func number(p *plan.Plan, next *uint32) *plan.Plan {
	for _, n := range p.Nodes {
		count := 0
		switch n.Kind {
		case plan.KindAggregate:
			count = 1 + len(n.Aggregate.Calls)
		case plan.KindJoin, plan.KindIntervalJoin:
			count = 2
		case plan.KindMaterialize, plan.KindUpsert:
			count = 1
		}
		for range count {
			*next++
			n.Tables = append(n.Tables, plan.Table{ID: *next, Name: "t", Version: plan.TableVersion(n.Kind)})
		}
	}
	return p
}

// A run that is stopped after random epochs and goes on from what was committed, with another number of workers, gives the same
// rows, records and late counts as one that is not.
func TestRestart(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	rnd := rand.New(rand.NewPCG(seed, 4))
	for round := range 4 {
		var parts, clicks [][][]any
		for range 2 {
			var rows, cl [][]any
			for i := range int64(120) {
				rows = append(rows, at(fmt.Sprintf("n%d", rnd.IntN(30)), i*second-rnd.Int64N(15)*second, rnd.IntN(5)))
				cl = append(cl, at(fmt.Sprintf("c%d", i), i*second-rnd.Int64N(9)*second, rnd.IntN(40)))
			}
			parts, clicks = append(parts, rows), append(clicks, cl)
		}
		late := plan.Late{}
		if round%2 == 1 {
			late = plan.Late{Policy: "correct", Allowed: 4 * second}
		}
		w := plan.Window{Size: 10 * second, Slide: 5 * second, Panes: round < 2, Late: late}
		tableRows := randomRows(rnd, 120)
		// run gives the rows of all views after the whole input, with a stop after each epoch with a probability.
		run := func(stop float64, workers func() int) (out []string) {
			d := newDisk(t)
			spec, cs := events(3*second, parts...), second2(events(2*second, clicks...))
			topic := tableSource(101, tableRows)
			var next uint32
			jobs := []JobSpec{viewOf(spec, number(counted(spec, w, true), &next))}
			jb := joined(spec, cs, -5*second, 8*second, true, nil)
			jb.ID, jb.Name = 2, "joined"
			number(jb.Plan, &next)
			jobs = append(jobs, jb)
			tb := table(3, topic)
			number(tb.Plan, &next)
			jobs = append(jobs, tb)
			from := tb.Plan.Nodes[len(tb.Plan.Nodes)-1]
			jobs = append(jobs, JobSpec{ID: 4, Name: "grouped", Plan: number(aggregated(3, from, false), &next), Fresh: true})
			sp := counted(spec, w, false)
			sp.Nodes = sp.Nodes[:len(sp.Nodes)-1]
			sb := &builder{p: *sp}
			sb.sink(len(sp.Nodes)-1, "upsert", 0, 2)
			jobs = append(jobs, JobSpec{ID: 5, Name: "sink", Plan: number(&sb.p, &next), Fresh: true, Sources: map[uint64]*SourceSpec{spec.Relation: spec}})

			counts := map[uint64]int64{}
			var records []string
			var r *rig
			start := func() {
				n := workers()
				ts := d.tables(n)
				r = newRig(t, Options{Workers: n, Tables: ts, BatchRows: 1 + rnd.IntN(20)})
				r.tables = ts
				for _, j := range jobs {
					r.attach(j)
				}
			}
			save := func() {
				for _, res := range r.last.Jobs {
					for k := range jobs {
						if jobs[k].ID == res.Job {
							if res.Err != nil {
								t.Fatal(res.Err)
							}
							jobs[k].Fresh = false
							jobs[k].Positions, jobs[k].Backfill = res.Positions, res.Backfill
							counts[res.Job] += res.Counts.Late
						}
					}
				}
				records = append(records, r.append...)
				r.append = nil
			}
			start()
			epoch := uint64(0)
			for i := range 30 {
				r.epoch = epoch
				if i < 24 {
					d.commit(r, r.run(5))
				} else {
					var a []Advance
					for _, rd := range r.i.Readers() {
						a = append(a, Advance{rd.ID, EndOfTime})
					}
					d.commit(r, r.run(0, a...))
				}
				epoch = r.epoch
				save()
				if rnd.Float64() < stop {
					r.i.Close()
					start()
				}
			}
			for _, id := range []uint64{1, 2, 4} {
				out = append(out, fmt.Sprintf("-- job %d, late %d", id, counts[id]))
				out = append(out, reduceRows(id, uniq(r.rows(id)))...)
			}
			out = append(out, fmt.Sprintf("-- records of the sink, late %d", counts[5]))
			return append(out, records...)
		}
		want := run(0, func() int { return 1 })
		if len(want) < 50 || !strings.Contains(strings.Join(want, "\n"), "null null null") {
			t.Fatalf("the case is too small: %d rows", len(want))
		}
		equal(t, fmt.Sprintf("round %d, restarts with one worker", round), run(0.3, func() int { return 1 }), want)
		equal(t, fmt.Sprintf("round %d, restarts with any number of workers", round), run(0.3, func() int { return 1 + rnd.IntN(3) }), want)
	}
}

// uniq takes out what several workers' scans of one stored table give twice.
func uniq(rows []string) []string { return slices.Compact(rows) }

func reduceRows(job uint64, rows []string) []string {
	if job == 4 {
		return reduceMax(rows, 10)
	}
	return rows
}

// TestStateOfAnotherVersion: what an operator of another version has kept is not read as if it were this one's.
func TestStateOfAnotherVersion(t *testing.T) {
	t.Parallel()
	spec := events(3*second, [][]any{at("a", 0, 1)})
	var next uint32
	job := viewOf(spec, number(counted(spec, plan.Window{Size: 10 * second, Slide: 10 * second}, true), &next))
	for _, n := range job.Plan.Nodes {
		if n.Kind == plan.KindAggregate {
			n.Tables[0].Version--
		}
	}
	i, err := NewIsland(Options{Workers: 1, Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	const want = `the state table "t" (aggregate) of v has version 1, this binary reads version 2; create it again`
	if err := i.Attach(job); err == nil || err.Error() != want {
		t.Fatalf("%v\nwant: %s", err, want)
	}
}

package flow

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A view made over a table with rows, while the table goes on changing, ends equal to one that was there from the start; also when
// the run stops in the middle of the backfill.
func TestBackfill(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	rnd := rand.New(rand.NewPCG(seed, 5))
	for round := range 8 {
		var rows [][]any
		for range 600 {
			r := randomRows(rnd, 1)[0]
			r[0] = rnd.IntN(200)
			rows = append(rows, r)
		}
		d := newDisk(t)
		topic := tableSource(101, rows)
		var next uint32
		tb := table(1, topic)
		number(tb.Plan, &next)
		view := JobSpec{ID: 2, Name: "grouped", Plan: number(aggregated(1, tb.Plan.Nodes[len(tb.Plan.Nodes)-1], false), &next), Fresh: true}
		jobs := []JobSpec{tb}
		var r *rig
		start := func() {
			n := 1 + rnd.IntN(3)
			ts := d.tables(n)
			r = newRig(t, Options{Workers: n, Tables: ts, BatchRows: 7})
			r.tables = ts
			for _, j := range jobs {
				r.attach(j)
			}
		}
		start()
		epoch, chunk, live := uint64(0), 1+rnd.IntN(20), 0
		for i := 0; i < 200; i++ {
			r.epoch = epoch
			if i == 5 {
				jobs = append(jobs, view)
				r.attach(view)
			}
			e := &Epoch{Number: epoch + 1, BackfillRows: chunk}
			rd := r.i.Readers()[0]
			from := rd.State.Partitions[0].Offset
			step := int64(50)
			if i >= 5 {
				step = 5
			}
			if to := min(from+step, 600); to > from {
				e.Reads = append(e.Reads, Read{rd.ID, 0, from, to})
			}
			d.commit(r, r.runEpoch(e))
			epoch++
			for _, res := range r.last.Jobs {
				for k := range jobs {
					if jobs[k].ID == res.Job {
						if res.Err != nil {
							t.Fatal(res.Err)
						}
						jobs[k].Fresh, jobs[k].Positions, jobs[k].Backfill = false, res.Positions, res.Backfill
						if res.Job == 2 && res.Live && live == 0 {
							live = i
						}
					}
				}
			}
			if i > 5 && rnd.IntN(4) == 0 {
				r.i.Close()
				start()
			}
			if live > 0 {
				at := r.i.Readers()[0].State.Partitions[0].Offset
				what := fmt.Sprintf("round %d, epoch %d, live since %d, chunks of %d", round, i, live, chunk)
				equal(t, what, reduceMax(uniq(r.rows(2)), 10), modelAggregate(latest(rows[:at]), false))
			}
		}
		if live == 0 {
			t.Fatalf("round %d: the backfill never ended", round)
		}
	}
}

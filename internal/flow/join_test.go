package flow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// joined is a view: left and right events of one key whose times are close, by name and time.
func joined(left, right *SourceSpec, lower, upper int64, outer bool, residual *expr.Node) JobSpec {
	b := &builder{}
	l := b.exchange(b.source(left, 0, 1, 2), 2)
	r := b.exchange(b.source(right, 0, 1, 2), 2)
	n := len(b.node(l).Columns)
	cols := append(slices.Clone(b.node(l).Columns), b.node(r).Columns...)
	j := b.add(plan.Node{
		Kind: plan.KindIntervalJoin, Columns: cols, Key: []int{3, 4, n + 3, n + 4}, AppendOnly: true, EventTime: 1, RowWatermark: -1,
		IntervalJoin: &plan.IntervalJoin{Left: []int{2}, Right: []int{2}, LeftTime: 1, RightTime: 1, Lower: lower, Upper: upper, Outer: outer, Residual: residual},
	}, l, r)
	b.materialize(j)
	return JobSpec{ID: 1, Name: "joined", Plan: &b.p, Fresh: true, Sources: map[uint64]*SourceSpec{left.Relation: left, right.Relation: right}}
}

func second2(s *SourceSpec) *SourceSpec {
	s.Relation, s.Name = 200, "clicks"
	return s
}

func countWith(rows []string, suffix string) (n int) {
	for _, r := range rows {
		if len(r) >= len(suffix) && r[len(r)-len(suffix):] == suffix {
			n++
		}
	}
	return n
}

// J1: ten searches, five clicks within the hour. J3: a click that arrives before its search is matched.
func TestJ1J3Clicks(t *testing.T) {
	t.Parallel()
	var searches, clicks [][]any
	for i := range int64(10) {
		searches = append(searches, at(fmt.Sprintf("s%d", i), i*minute, int(i)))
	}
	for i := range int64(5) {
		clicks = append(clicks, at(fmt.Sprintf("c%d", i), (i*7+20)*minute, int(i*2)))
	}
	clicks = append(clicks, at("far", 200*minute, 1))
	l, rt := events(minute, searches), second2(events(minute, clicks))
	r := newRig(t, Options{Workers: 2})
	r.attach(joined(l, rt, 0, 60*minute, true, nil))
	clicksReader := r.i.Readers()[1].ID
	r.epoch++
	r.runEpoch(&Epoch{Number: 1, Reads: []Read{{clicksReader, 0, 0, 6}}}) // all clicks before any search
	r.drain(3)
	if n := len(r.rows(1)); n != 5 {
		t.Fatalf("%d pairs, want 5: %q", n, r.rows(1))
	}
	r.closeTime()
	rows := r.rows(1)
	if n := countWith(rows, "null null null"); n != 5 || len(rows) != 10 {
		t.Errorf("%d not clicked of %d, want 5 of 10: %q", n, len(rows), rows)
	}
	r.closeTime()
	equal(t, "once only", r.rows(1), rows)
}

// J2: one search with three results, one clicked; "not clicked" comes once, after the hour.
func TestJ2PerURL(t *testing.T) {
	t.Parallel()
	l := events(0, [][]any{at("u1", 0, 1), at("u2", 0, 2), at("u3", 0, 3), at("later", 70*minute, 9)})
	rt := second2(events(0, [][]any{at("click", 5*minute, 2), at("other", 70*minute, 8)}))
	r := newRig(t, Options{Workers: 2})
	r.attach(joined(l, rt, 0, 60*minute, true, nil))
	ids := r.i.Readers()
	r.epoch = 1
	r.runEpoch(&Epoch{Number: 1, Reads: []Read{{ids[0].ID, 0, 0, 3}, {ids[1].ID, 0, 0, 1}}})
	equal(t, "before the hour", r.rows(1), []string{fmt.Sprintf("u2 0 2 click %d 2", 5*minute)})
	r.drain(5)
	equal(t, "after it", r.rows(1), []string{"u1 0 1 null null null", fmt.Sprintf("u2 0 2 click %d 2", 5*minute), "u3 0 3 null null null"})
	if n := r.total[1].Counts.Unmatched; n < 2 {
		t.Errorf("unmatched %d", n)
	}
}

// J6: unmatched rows of an inner stream join go when time has passed, are counted, and their memory comes back.
func TestJ6Unmatched(t *testing.T) {
	t.Parallel()
	var lefts, rights [][]any
	for i := range int64(20000) {
		lefts = append(lefts, at("l", i*second, int(i)))
		rights = append(rights, at("r", i*second, -int(i)-1))
	}
	l, rt := events(0, lefts), second2(events(0, rights))
	r := newRig(t, Options{Workers: 1})
	r.attach(joined(l, rt, -minute, minute, false, nil))
	var most int64
	for range 100 {
		r.run(200)
		most = max(most, r.i.tables[0].Used())
	}
	if n := r.total[1].Counts.Unmatched; n < 39000 {
		t.Errorf("unmatched %d", n)
	}
	r.closeTime()
	if n := r.total[1].Counts.Unmatched; n != 40000 {
		t.Errorf("unmatched %d in the end, want 40000", n)
	}
	if most > 8<<20 {
		t.Errorf("%d bytes of state for two minutes of rows", most)
	}
	if len(r.rows(1)) != 0 {
		t.Error("rows")
	}
}

// Random streams against a model, in all shapes.
func TestIntervalJoinModel(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	rnd := rand.New(rand.NewPCG(seed, 3))
	for round := range 6 {
		gen := func(prefix string) [][][]any {
			var parts [][][]any
			for p := range 1 + rnd.IntN(2) {
				var rows [][]any
				for i := range int64(60) {
					key := any(rnd.IntN(4))
					if rnd.IntN(10) == 0 {
						key = nil
					}
					rows = append(rows, []any{fmt.Sprintf("%s%d.%d", prefix, p, i), int((i - rnd.Int64N(12)) * second), key})
				}
				parts = append(parts, rows)
			}
			return parts
		}
		lp, rp := gen("l"), gen("r")
		ld, rd := rnd.Int64N(8)*second, rnd.Int64N(8)*second
		lower := (rnd.Int64N(20) - 10) * second
		upper := lower + rnd.Int64N(15)*second
		outer := round%2 == 0
		type ev struct {
			name string
			t    int
			key  any
		}
		var late int64
		live := func(parts [][][]any, delay int64) (out []ev) {
			for _, rows := range parts {
				top := int64(-1 << 62)
				for _, r := range rows {
					t := int64(r[1].(int))
					top = max(top, t)
					if t < top-delay {
						late++
						continue
					}
					out = append(out, ev{r[0].(string), int(t), r[2]})
				}
			}
			return out
		}
		var want []string
		ls, rs := live(lp, ld), live(rp, rd)
		key := func(x any) string {
			if x == nil {
				return "null"
			}
			return fmt.Sprint(x)
		}
		for _, l := range ls {
			alone := true
			for _, r := range rs {
				if l.key != nil && l.key == r.key && int64(r.t) >= int64(l.t)+lower && int64(r.t) <= int64(l.t)+upper {
					alone = false
					want = append(want, fmt.Sprintf("%s %d %s %s %d %s", l.name, l.t, key(l.key), r.name, r.t, key(r.key)))
				}
			}
			if alone && outer {
				want = append(want, fmt.Sprintf("%s %d %s null null null", l.name, l.t, key(l.key)))
			}
		}
		sort.Strings(want)
		for _, sh := range shapes(rnd) {
			r := newRig(t, sh.options())
			r.attach(joined(events(ld, lp...), second2(events(rd, rp...)), lower, upper, outer, nil))
			r.drain(sh.step)
			r.closeTime()
			if err := r.total[1].Err; err != nil {
				t.Fatal(err)
			}
			equal(t, fmt.Sprintf("round %d, shape %+v", round, sh), r.rows(1), want)
			if n := r.total[1].Counts.Late; n != late {
				t.Fatalf("round %d, shape %+v: late %d, want %d", round, sh, n, late)
			}
		}
	}
}

// Two exchanges and a join that makes a thousand rows of each between them, with a tiny budget: it must end, by goroutines and
// stepped in any order, and what is in flight must stay near the budget.
func TestAmplifierDoesNotDeadlock(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	var lefts, rights [][]any
	for i := range 400 {
		lefts = append(lefts, []any{i, i % 4, nil, nil, fmt.Sprintf("s%d", i), nil, false})
		rights = append(rights, []any{i, i % 4, nil, nil, "x", nil, false})
	}
	for _, o := range []Options{
		{Workers: 2, InFlightBytes: 1, BatchRows: 7},
		{Workers: 3, InFlightBytes: 20000},
		{Workers: 3, InFlightBytes: 1, Seed: seed | 1, BatchRows: 33},
		{Workers: 1, InFlightBytes: 1},
	} {
		r := newRig(t, o)
		r.attach(table(1, tableSource(101, lefts)))
		r.attach(table(2, tableSource(102, rights)))
		from := r.i.byID[1].maker.plan
		b := &builder{}
		l, rr := b.exchange(b.view(1, from, 0, 1, 4), 1), b.exchange(b.view(2, from, 0, 1, 4), 1)
		j := b.add(plan.Node{
			Kind: plan.KindJoin, Columns: append(slices.Clone(b.node(l).Columns), b.node(rr).Columns...), Key: []int{0, 3}, EventTime: -1, RowWatermark: -1,
			Join: &plan.Join{Left: []int{1}, Right: []int{1}},
		}, l, rr)
		b.materialize(b.aggregate(b.exchange(j, 2), plan.Aggregate{Groups: []int{2}, WindowStart: -1, WindowEnd: -1, Calls: []plan.Call{
			call("count", column.TInt64, -1, -1, column.Type{}),
		}}))
		r.attach(JobSpec{ID: 3, Name: "pairs", Plan: &b.p, Fresh: true})
		r.drain(200)
		rows := r.rows(3)
		if len(rows) != 400 {
			t.Fatalf("%+v: %d groups: %v", o, len(rows), r.total[3].Err)
		}
		for _, x := range rows {
			if x[len(x)-4:] != " 100" {
				t.Fatalf("%+v: group %q", o, x)
			}
		}
		for d := range r.i.inflight {
			if n := r.i.inflight[d].Load(); n != 0 {
				t.Errorf("%d bytes left in flight at depth %d", n, d)
			}
		}
	}
}

// A job that is detached gives back all its memory, the tables in memory only included.
func TestDetachGivesMemoryBack(t *testing.T) {
	t.Parallel()
	var rows [][]any
	for i := range int64(5000) {
		rows = append(rows, at("x", i*second, int(i)))
	}
	r := newRig(t, Options{Workers: 1})
	before := r.i.tables[0].Used()
	r.attach(joined(events(0, rows), second2(events(0, rows)), -60*minute, 60*minute, true, nil))
	r.drain(1000)
	if used := r.i.tables[0].Used(); used < before+100000 {
		t.Fatalf("only %d bytes of state", used)
	}
	if err := r.i.Detach(1); err != nil {
		t.Fatal(err)
	}
	if used := r.i.tables[0].Used(); used > before+64<<10 {
		t.Errorf("%d bytes are left of %d", used, before)
	}
}

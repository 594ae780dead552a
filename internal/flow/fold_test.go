package flow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/sql/plan"
)

// measured is a source of (at timestamptz, k bigint, x bigint, n numeric, s text, b boolean).
func measured(rnd *rand.Rand, delay int64) *SourceSpec {
	ts := []column.Type{column.TTimestamptz, column.TInt64, column.TInt64, column.TNumeric, column.TText, column.TBool}
	spec := &SourceSpec{Relation: 100, Name: "measured", EventTime: 0, Delay: delay}
	for i, name := range []string{"at", "k", "x", "n", "s", "b"} {
		spec.Columns = append(spec.Columns, SourceColumn{Name: name, Type: ts[i]})
	}
	var parts [][][]any
	keys := []int{1, 5, 1000}[rnd.IntN(3)]
	for range 1 + rnd.IntN(3) {
		var rows [][]any
		for i := range 100 + rnd.IntN(200) {
			x := rnd.IntN(100)
			if rnd.IntN(400) == 0 {
				x = []int{math.MaxInt64, math.MinInt64}[rnd.IntN(2)]
			}
			row := []any{i + rnd.IntN(30), rnd.IntN(keys), x, fmt.Sprintf("%d.%0*d", rnd.IntN(9)-4, 1+rnd.IntN(3), 0), fmt.Sprintf("s%d", rnd.IntN(50)), rnd.IntN(2) == 0}
			for c := 1; c < len(row); c++ {
				if rnd.IntN(9) == 0 {
					row[c] = nil
				}
			}
			rows = append(rows, row)
		}
		parts = append(parts, rows)
	}
	spec.Source = &memSource{types: ts, parts: parts}
	return spec
}

// TestFoldingChangesNothing: rows, late counts, counts of rows and errors are those without folding and with one worker.
func TestFoldingChangesNothing(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(testSeed(t), 11))
	folded, failed := 0, 0
	for round := range 30 {
		spec := measured(rnd, rnd.Int64N(20))
		i8, n, s, bo := column.TInt64, column.TNumeric, column.TText, column.TBool
		calls := []plan.Call{
			call("count", i8, -1, -1, i8), call("count", i8, 5, 4, s), call("sum", i8, -1, 2, i8), call("avg", n, -1, 2, i8), call("sum", n, 5, 3, n), call("avg", n, -1, 3, n),
			call("min", i8, -1, 2, i8), call("max", s, 5, 4, s), call("min", n, -1, 3, n), call("bool_and", bo, -1, 5, bo), call("bool_or", bo, -1, 5, bo),
		}
		rnd.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		a := plan.Aggregate{WindowStart: -1, WindowEnd: -1, Calls: calls[:rnd.IntN(6)]}
		w := plan.Window{Time: 0, Size: 40, Slide: 40}
		windowed := rnd.IntN(2) == 0
		if windowed {
			a.WindowStart, a.WindowEnd, a.EmitOnClose = 0, 1, rnd.IntN(2) == 0
			if rnd.IntN(2) == 0 {
				w.Slide, w.Panes = 10+rnd.Int64N(40), rnd.IntN(2) == 0
				if w.Panes {
					a.Hop = &w
				}
			}
		}
		query := func() *plan.Plan {
			b := &builder{}
			x := b.source(spec, 0, 1, 2, 3, 4, 5)
			a := a
			if windowed {
				at := len(b.node(x).Columns)
				x = b.window(x, w)
				a.Groups = []int{at, at + 1}
			}
			a.Groups = append(a.Groups, [][]int{nil, {1}, {1, 4}}[round%3]...)
			if windowed || len(a.Groups) > 0 {
				a.Calls = append([]plan.Call{}, a.Calls...)
			}
			b.materialize(b.aggregate(x, a))
			return &b.p
		}
		run := func(sh shape, fold bool) (rows []string, summary string) {
			r := newRig(t, sh.options())
			r.attach(viewOf(spec, query()))
			for _, n := range r.i.jobs[0].nodes {
				if x := n.exchange; x != nil && x.into != nil {
					folded++
					if !fold {
						x.into = nil
					}
				}
			}
			r.drain(sh.step)
			r.closeTime()
			j := r.total[1]
			if j.Err != nil {
				return nil, j.Err.Error()
			}
			for _, w := range r.i.workers {
				if w.folded != 0 {
					t.Errorf("a worker accounts for %d bytes folded after the last epoch", w.folded)
				}
			}
			return r.rows(1), fmt.Sprintf("%d late, %d rows", j.Counts.Late, j.Counts.RowsProcessed)
		}
		want, summary := run(shape{1, 1024, 1 << 30, 0}, true)
		if want == nil {
			failed++
		}
		for _, sh := range shapes(rnd)[2:] {
			what := fmt.Sprintf("round %d, %+v, shape %+v", round, a, sh)
			plain, without := run(sh, false)
			got, with := run(sh, true)
			if with != without {
				t.Fatalf("%s: %s, without folding %s", what, with, without)
			}
			equal(t, what, got, plain)
			if (want == nil || plain == nil) && sh.step < 1<<30 {
				continue // a sum is out of range at the end of some epochs only
			}
			if without != summary {
				t.Fatalf("%s: %s, want %s", what, without, summary)
			}
			equal(t, what, plain, want)
		}
	}
	if folded == 0 {
		t.Error("nothing was folded")
	}
	t.Logf("%d rounds ended with a value out of range", failed)
}

// A sum of integers is out of range when it is as a whole, not when a worker's share of it is.
func TestASumMayLeaveTheRangeOnTheWay(t *testing.T) {
	t.Parallel()
	big := math.MaxInt64
	for _, c := range []struct {
		name  string
		parts [][][]any
		want  string // "" : out of range
	}{
		{"shares cancel", [][][]any{{{big}, {big}, {1}}, {{-big}, {-big}}}, "1"},
		{"the whole is too large", [][][]any{{{big}}, {{1}}}, ""},
	} {
		ts := []column.Type{column.TInt64}
		spec := &SourceSpec{Relation: 100, Name: "numbers", EventTime: -1, Columns: []SourceColumn{{Name: "x", Type: ts[0]}}, Source: &memSource{types: ts, parts: c.parts}}
		for workers := 1; workers <= 2; workers++ {
			b := &builder{}
			b.materialize(b.aggregate(b.source(spec, 0), plan.Aggregate{WindowStart: -1, WindowEnd: -1, Calls: []plan.Call{call("sum", column.TInt64, -1, 0, column.TInt64)}}))
			r := newRig(t, Options{Workers: workers})
			r.attach(viewOf(spec, &b.p))
			r.run(1 << 30)
			err := r.total[1].Err
			if c.want == "" {
				if err == nil || err.Error() != "v: aggregate (node 1): sum: bigint out of range (SQLSTATE 22003)" {
					t.Errorf("%s, %d workers: %v", c.name, workers, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %d workers: %v", c.name, workers, err)
				continue
			}
			equal(t, c.name, r.rows(1), []string{c.want})
		}
	}
}

func TestFoldingIsLeftWhereItDoesNotPay(t *testing.T) {
	t.Parallel()
	var g gain
	for i := range 8 { // hardly more than a row a group: ever longer without
		if g.passes(1) {
			t.Fatalf("round %d: passes before it was tried", i)
		}
		g.rows += 2 * judgeRows
		g.sent(2*judgeRows - 100)
		want := min(firstPass<<i, int64(mostPass))
		for n := int64(0); n < want; n += 1 << 10 {
			if !g.passes(1 << 10) {
				t.Fatalf("round %d: folds again after %d rows, want %d", i, n, want)
			}
		}
	}
	for range 10 { // few rows are not judged
		g.rows += 100
		g.sent(100)
	}
	if g.passes(1) {
		t.Error("judged by few rows")
	}
	g.rows += 1 << 20
	g.sent(1)
	if g.passes(1) || g.retry != 0 {
		t.Errorf("folding pays: %+v", g)
	}
}

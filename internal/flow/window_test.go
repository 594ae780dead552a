package flow

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/sql/plan"
)

const (
	second = int64(1000000)
	minute = 60 * second
)

// events is a source of (name text, at timestamptz, key bigint).
func events(delay int64, parts ...[][]any) *SourceSpec {
	ts := []column.Type{column.TText, column.TTimestamptz, column.TInt64}
	return &SourceSpec{
		Relation: 100, Name: "events", Source: &memSource{types: ts, parts: parts}, EventTime: 1, Delay: delay,
		Columns: []SourceColumn{{Name: "name", Type: ts[0]}, {Name: "at", Type: ts[1]}, {Name: "key", Type: ts[2]}},
	}
}

func at(name string, t int64, key int) []any { return []any{name, int(t), key} }

// minutes are events A to J, one a minute.
func minutes() [][]any {
	var rows [][]any
	for i := range 10 {
		rows = append(rows, at(string(rune('A'+i)), int64(i)*minute, 1))
	}
	return rows
}

// counted is a view: per window and key count(*), min(name), max(name).
func counted(spec *SourceSpec, w plan.Window, onClose bool) *plan.Plan {
	b := &builder{}
	s := b.source(spec, 0, 1, 2)
	n := len(b.node(s).Columns)
	w.Time = 1
	x := b.window(s, w)
	ex := b.exchange(x, n, n+1, 2)
	a := plan.Aggregate{
		Groups: []int{n, n + 1, 2}, WindowStart: 0, WindowEnd: 1, EmitOnClose: onClose, Late: w.Late,
		Calls: []plan.Call{call("count", column.TInt64, -1, -1, column.Type{}), call("min", column.TText, -1, 0, column.TText), call("max", column.TText, -1, 0, column.TText)},
	}
	if w.Panes {
		a.Hop = &w
	}
	b.materialize(b.aggregate(ex, a))
	return &b.p
}

func viewOf(spec *SourceSpec, p *plan.Plan) JobSpec {
	return JobSpec{ID: 1, Name: "v", Plan: p, Sources: map[uint64]*SourceSpec{spec.Relation: spec}, Fresh: true}
}

func TestW1Tumble(t *testing.T) {
	t.Parallel()
	spec := events(0, minutes())
	r := newRig(t, Options{Workers: 2})
	r.attach(viewOf(spec, counted(spec, plan.Window{Size: 5 * minute, Slide: 5 * minute}, false)))
	r.drain(3)
	equal(t, "windows", r.rows(1), []string{
		fmt.Sprintf("%d %d 1 5 A E", 0, 5*minute), fmt.Sprintf("%d %d 1 5 F J", 5*minute, 10*minute),
	})
}

func TestW2Hop(t *testing.T) {
	t.Parallel()
	for _, panes := range []bool{false, true} {
		spec := events(0, minutes())
		r := newRig(t, Options{Workers: 2})
		r.attach(viewOf(spec, counted(spec, plan.Window{Size: 5 * minute, Slide: minute, Panes: panes}, false)))
		r.drain(1)
		var want []string
		for s := -4; s <= 9; s++ {
			lo, hi := max(s, 0), min(s+4, 9)
			want = append(want, fmt.Sprintf("%d %d 1 %d %c %c", int64(s)*minute, int64(s+5)*minute, hi-lo+1, 'A'+lo, 'A'+hi))
		}
		sort.Strings(want)
		equal(t, "windows", r.rows(1), want)
	}
}

func TestW7W8Edges(t *testing.T) {
	t.Parallel()
	ten := 10 * 60 * minute
	spec := events(0, [][]any{
		at("a", ten+3*minute, 1), at("b", ten+3*minute+59999000, 1), at("c", ten+4*minute, 1), at("d", ten+7*minute+59999999, 1), at("e", ten+8*minute, 1),
	})
	r := newRig(t, Options{Workers: 1})
	r.attach(viewOf(spec, counted(spec, plan.Window{Size: minute, Slide: minute}, false)))
	r.drain(2)
	row := func(m, size int64, n int, lo, hi string) string {
		return fmt.Sprintf("%d %d 1 %d %s %s", ten+m*minute, ten+(m+size)*minute, n, lo, hi)
	}
	equal(t, "W7", r.rows(1), []string{row(3, 1, 2, "a", "b"), row(4, 1, 1, "c", "c"), row(7, 1, 1, "d", "d"), row(8, 1, 1, "e", "e")})

	r = newRig(t, Options{Workers: 1})
	r.attach(viewOf(spec, counted(spec, plan.Window{Size: 5 * minute, Slide: minute}, false)))
	r.drain(2)
	have := map[string]bool{}
	for _, x := range r.rows(1) {
		have[x] = true
	}
	for _, want := range []string{row(3, 5, 4, "a", "d"), row(4, 5, 3, "c", "e")} {
		if !have[want] {
			t.Errorf("W8: no window %q in %q", want, r.rows(1))
		}
	}
}

// W10: a window of an hour that starts every five minutes is the sum of 12 panes; raw rows are read once.
func TestW10Panes(t *testing.T) {
	t.Parallel()
	var rows [][]any
	for i := range int64(240) { // one a minute for four hours
		rows = append(rows, at("x", i*minute, 1))
	}
	spec := events(0, rows)
	b := &builder{}
	s := b.source(spec, 0, 1, 2)
	n := len(b.node(s).Columns)
	w := plan.Window{Time: 1, Size: 60 * minute, Slide: 5 * minute, Panes: true}
	ex := b.exchange(b.window(s, w), n, n+1)
	b.materialize(b.aggregate(ex, plan.Aggregate{
		Groups: []int{n, n + 1}, WindowStart: 0, WindowEnd: 1, Hop: &w,
		Calls: []plan.Call{call("count", column.TInt64, -1, -1, column.Type{}), call("avg", column.TNumeric, -1, 2, column.TInt64)},
	}))
	r := newRig(t, Options{Workers: 1})
	r.attach(viewOf(spec, &b.p))
	r.drain(5) // an epoch is a pane
	c := r.total[1].Counts
	if c.RowsProcessed != 240 || c.PanesMerged != 48*12 {
		t.Errorf("rows read %d, panes merged %d; want 240 and %d", c.RowsProcessed, c.PanesMerged, 48*12)
	}
	want := fmt.Sprintf("%d %d 60 1.00000000000000000000", int64(60)*minute, int64(120)*minute)
	found := false
	for _, x := range r.rows(1) {
		found = found || x == want
	}
	if !found {
		t.Errorf("no window %q in %q", want, r.rows(1))
	}
}

// W15: at the edges of every window by one microsecond, and a watermark that reaches a window's end by one microsecond.
func TestW15Edges(t *testing.T) {
	t.Parallel()
	spec := events(0, [][]any{at("a", minute-1, 1), at("b", minute, 1), at("c", minute-1, 1), at("d", 2*minute-1, 1), at("e", minute+1, 1)})
	r := newRig(t, Options{Workers: 1})
	r.attach(viewOf(spec, counted(spec, plan.Window{Size: minute, Slide: minute}, true)))
	r.run(1)
	equal(t, "before the end", r.rows(1), nil)
	r.run(1) // b brings the watermark to the end of the first window
	first := fmt.Sprintf("0 %d 1 1 a a", minute)
	equal(t, "at the end", r.rows(1), []string{first})
	r.run(1) // c is late
	r.run(2) // one microsecond before the second window's end it is open
	equal(t, "after", r.rows(1), []string{first})
	if n := r.total[1].Counts.Late; n != 1 {
		t.Errorf("late %d, want 1", n)
	}
	r.closeTime()
	equal(t, "at the end of time", r.rows(1), []string{first, fmt.Sprintf("%d %d 1 3 b e", minute, 2*minute)})
}

// T1: the three policies for a row that comes after the close.
func TestT1Late(t *testing.T) {
	t.Parallel()
	h := 14 * 60 * minute
	rows := [][]any{
		at("E1", h+10*second, 1), at("E3", h+30*second, 1), at("E2", h+20*second, 1), at("F", h+61*second, 2), at("E4", h+45*second, 1), at("G", h+62*second, 2),
	}
	for _, late := range []plan.Late{{}, {Policy: "correct", Allowed: 60 * minute}, {Policy: "topic", Topic: "late"}} {
		spec := events(0, rows)
		p := counted(spec, plan.Window{Size: minute, Slide: minute, Late: late}, true)
		r := newRig(t, Options{Workers: 2})
		r.attach(viewOf(spec, p))
		r.run(4)
		equal(t, "at the close", r.rows(1), []string{fmt.Sprintf("%d %d 1 3 E1 E3", h, h+minute)})
		r.run(1)
		want, count := fmt.Sprintf("%d %d 1 3 E1 E3", h, h+minute), int64(1)
		if late.Policy == "correct" {
			want, count = fmt.Sprintf("%d %d 1 4 E1 E4", h, h+minute), 0
		}
		equal(t, "after E4, policy "+late.Policy, r.rows(1), []string{want})
		if n := r.total[1].Counts.Late; n != count {
			t.Errorf("policy %q: late %d, want %d", late.Policy, n, count)
		}
		if late.Policy == "topic" {
			equal(t, "late topic", r.append, []string{`late/0 ={"name":"E4","at":"1970-01-01T14:00:45Z","key":1}`})
		} else if len(r.append) != 0 {
			t.Errorf("records %q", r.append)
		}
	}
}

// T6: one topic, two sources with different delays.
func TestT6Delays(t *testing.T) {
	t.Parallel()
	var rows [][]any
	rnd := rand.New(rand.NewPCG(6, 6))
	for i := range int64(500) {
		rows = append(rows, at("x", i*second-rnd.Int64N(40)*second, 1))
	}
	late := map[int64]int64{}
	var corrected [][]string
	for _, delay := range []int64{second, minute} {
		spec := events(delay, rows)
		r := newRig(t, Options{Workers: 1})
		r.attach(viewOf(spec, counted(spec, plan.Window{Size: 10 * second, Slide: 10 * second}, true)))
		r.drain(10)
		late[delay] = r.total[1].Counts.Late
		r = newRig(t, Options{Workers: 1})
		r.attach(viewOf(spec, counted(spec, plan.Window{Size: 10 * second, Slide: 10 * second, Late: plan.Late{Policy: "correct", Allowed: 60 * minute}}, true)))
		r.drain(10)
		r.closeTime()
		corrected = append(corrected, r.rows(1))
	}
	if late[second] == 0 || late[minute] != 0 {
		t.Errorf("late rows %v", late)
	}
	equal(t, "with correction", corrected[0], corrected[1])
}

// T7: the watermark of an operator with two inputs is the smaller.
func TestT7Slow(t *testing.T) {
	t.Parallel()
	spec := events(0, [][]any{at("a", 10*minute, 1), at("b", 20*minute, 1)}, [][]any{at("c", minute, 1), at("d", 11*minute, 1)})
	r := newRig(t, Options{Workers: 2})
	r.attach(viewOf(spec, counted(spec, plan.Window{Size: minute, Slide: minute}, true)))
	id := r.i.Readers()[0].ID
	r.epoch++
	r.runEpoch(&Epoch{Number: 1, Reads: []Read{{id, 0, 0, 2}, {id, 1, 0, 1}}})
	if got := r.last.Jobs[0].Watermark; got != minute {
		t.Errorf("watermark %d, want %d", got, minute)
	}
	equal(t, "nothing closes", r.rows(1), nil)
	r.epoch++
	r.runEpoch(&Epoch{Number: 2, Reads: []Read{{id, 1, 1, 2}}})
	equal(t, "up to the slower", r.rows(1), []string{fmt.Sprintf("%d %d 1 1 c c", minute, 2*minute), fmt.Sprintf("%d %d 1 1 a a", 10*minute, 11*minute)})
	// The slow one is idle: time goes on without it; what comes from it then is late.
	r.epoch++
	r.runEpoch(&Epoch{Number: 3, Idle: []Idle{{id, 1, true}}})
	if got := r.i.Readers()[0].State.Watermark; got != 20*minute {
		t.Errorf("watermark %d", got)
	}
}

// A dead letter moves no time, whatever else is in its batch.
func TestDeadLettersMoveNoTime(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{1, 7} {
		spec := events(0, [][]any{at("a", 0, 1), {"b", int(minute), nil}, at("c", 5*second, 1)})
		spec.Columns[2].NotNull = true
		r := newRig(t, Options{Workers: 1, BatchRows: rows})
		r.attach(viewOf(spec, counted(spec, plan.Window{Size: 10 * second, Slide: 10 * second}, false)))
		r.drain(3)
		equal(t, fmt.Sprintf("%d rows at a time", rows), r.rows(1), []string{fmt.Sprintf("0 %d 1 2 a c", 10*second)})
		if c := r.total[1].Counts; c.Late != 0 || len(r.dead) != 1 {
			t.Errorf("%d rows at a time: %d late, %d dead", rows, c.Late, len(r.dead))
		}
	}
}

// Any batch size, number of workers and cut into epochs gives the same rows and the same late counts.
func TestSameForAllShapes(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for round := range 6 {
		var parts [][][]any
		for range 1 + rnd.IntN(3) {
			var rows [][]any
			for i := range int64(40 + rnd.IntN(100)) {
				switch rnd.IntN(20) {
				case 0:
					rows = append(rows, nil)
				case 1:
					rows = append(rows, []any{"n", nil, 1})
				default:
					rows = append(rows, at(fmt.Sprintf("n%d", rnd.IntN(30)), i*second-rnd.Int64N(20)*second, rnd.IntN(5)))
				}
			}
			parts = append(parts, rows)
		}
		w := plan.Window{Size: int64(1+rnd.IntN(12)) * second, Slide: int64(1+rnd.IntN(6)) * second, Panes: round%2 == 0}
		if w.Size < w.Slide || round == 3 {
			w.Slide, w.Panes = w.Size, false
		}
		if round == 4 {
			w.Late = plan.Late{Policy: "correct", Allowed: 3 * second}
		}
		onClose := round%3 == 0
		delay := rnd.Int64N(10) * second
		var want []string
		var late, dead int64
		for k, sh := range shapes(rnd) {
			spec := events(delay, parts...)
			r := newRig(t, sh.options())
			r.attach(viewOf(spec, counted(spec, w, onClose)))
			r.drain(sh.step)
			r.closeTime()
			got := r.rows(1)
			if k == 0 {
				want, late, dead = got, r.total[1].Counts.Late, int64(len(r.dead))
				continue
			}
			equal(t, fmt.Sprintf("round %d, window %+v, shape %+v", round, w, sh), got, want)
			if n := r.total[1].Counts.Late; n != late || int64(len(r.dead)) != dead {
				t.Fatalf("round %d, shape %+v: late %d, dead %d; want %d and %d", round, sh, n, len(r.dead), late, dead)
			}
		}
	}
}

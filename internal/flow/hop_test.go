package flow

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/sql/plan"
)

// hopModel is what counted by window and key must give, straight from the definition: which windows hold a time, and for which of them a row is late.
func hopModel(parts [][][]any, w plan.Window, delay int64) (rows []string, late int64) {
	type group struct{ start, key int64 }
	type sums struct{ n, total, least int64 }
	groups := map[group]*sums{}
	for _, part := range parts {
		top := NoTime
		for _, r := range part {
			t, key := int64(r[1].(int)), int64(r[2].(int))
			top = max(top, t)
			for s := t - w.Size + 1; s <= t; s++ {
				if (s-w.Offset)%w.Slide != 0 {
					continue
				}
				if s+w.Size+w.Late.Allowed <= top-delay {
					late++
					continue
				}
				g := groups[group{s, key}]
				if g == nil {
					g = &sums{least: t}
					groups[group{s, key}] = g
				}
				g.n, g.total, g.least = g.n+1, g.total+key, min(g.least, t)
			}
		}
	}
	for g, x := range groups {
		rows = append(rows, fmt.Sprintf("%d %d %d %d %d %d", g.start, g.start+w.Size, g.key, x.n, x.total, x.least))
	}
	sort.Strings(rows)
	return rows, late
}

// TestHopsEqualTheirDefinition: windows of any size, slide (a multiple of nothing, larger than the size) and offset, before and after 1970, by panes and
// without, shown as they grow and when they close.
func TestHopsEqualTheirDefinition(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(testSeed(t), 6))
	for round := range 40 {
		var parts [][][]any
		base := rnd.Int64N(200) - 150
		for range 1 + rnd.IntN(3) {
			var rows [][]any
			for i := range int64(30 + rnd.IntN(60)) {
				rows = append(rows, at("x", base+i-rnd.Int64N(25), rnd.IntN(3)))
			}
			parts = append(parts, rows)
		}
		w := plan.Window{Time: 1, Size: 1 + rnd.Int64N(20), Slide: 1 + rnd.Int64N(24), Offset: rnd.Int64N(9) - 4}
		w.Offset %= w.Slide
		if rnd.IntN(3) == 0 {
			w.Late = plan.Late{Policy: "correct", Allowed: rnd.Int64N(10)}
		}
		delay := rnd.Int64N(15)
		want, late := hopModel(parts, w, delay)
		for _, panes := range []bool{false, true} {
			for _, onClose := range []bool{false, true} {
				w := w
				w.Panes = panes
				for _, sh := range shapes(rnd)[:3] {
					spec := events(delay, parts...)
					b := &builder{}
					x := b.window(b.source(spec, 0, 1, 2), w)
					n := len(b.node(x).Columns) - 2
					a := plan.Aggregate{
						Groups: []int{n, n + 1, 2}, WindowStart: 0, WindowEnd: 1, EmitOnClose: onClose, Late: w.Late,
						Calls: []plan.Call{
							call("count", column.TInt64, -1, -1, column.Type{}), call("sum", column.TNumeric, -1, 2, column.TInt64),
							call("min", column.TTimestamptz, -1, 1, column.TTimestamptz),
						},
					}
					if panes {
						a.Hop = &w
					}
					b.materialize(b.aggregate(x, a))
					r := newRig(t, sh.options())
					r.attach(viewOf(spec, &b.p))
					r.drain(sh.step)
					r.closeTime()
					what := fmt.Sprintf("round %d, window %+v, delay %d, on close %v, shape %+v", round, w, delay, onClose, sh)
					equal(t, what, r.rows(1), want)
					if got := r.total[1].Counts.Late; got != late {
						t.Fatalf("%s: %d late, want %d", what, got, late)
					}
				}
			}
		}
	}
}

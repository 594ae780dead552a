package flow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/sql/plan"
)

// TestWhatEqualValuesLookLike: of values that are equal and look different (1 and 1.0) a group, and min and max, show one that is there now; which one does not
// depend on workers, batches or the order in which they came.
func TestWhatEqualValuesLookLike(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(testSeed(t), 5))
	looks := []string{"1", "1.0", "1.00", "2", "2.0", "2.00"}
	var rows [][]any
	for range 120 {
		rows = append(rows, []any{rnd.IntN(8), 0, looks[rnd.IntN(len(looks))], nil, nil, nil, rnd.IntN(4) == 0})
	}
	first, firstOfAll := map[int64][]string{}, map[int64][]string{}
	for _, sh := range shapes(rnd) {
		sh.step = 10
		r := newRig(t, sh.options())
		r.attach(table(1, tableSource(101, rows)))
		from := r.i.byID[1].maker.plan
		b := &builder{}
		v := b.view(1, from, 0, 1, 2, 3, 4, 5)
		n := column.TNumeric
		b.materialize(b.aggregate(v, plan.Aggregate{Groups: []int{2}, WindowStart: -1, WindowEnd: -1, Calls: []plan.Call{
			call("count", column.TInt64, -1, -1, column.TInt64), call("min", n, -1, 2, n), call("max", n, -1, 2, n),
		}}))
		r.attach(JobSpec{ID: 3, Name: "grouped", Plan: &b.p, Fresh: true})
		spec := tableSource(102, rows)
		b2 := &builder{}
		b2.materialize(b2.aggregate(b2.source(spec, 2), plan.Aggregate{Groups: []int{0}, WindowStart: -1, WindowEnd: -1, Calls: []plan.Call{
			call("count", column.TInt64, -1, -1, column.TInt64), call("min", n, -1, 0, n), call("max", n, -1, 0, n),
		}}))
		r.attach(JobSpec{ID: 4, Name: "of all records", Plan: &b2.p, Fresh: true, Sources: map[uint64]*SourceSpec{spec.Relation: spec}})
		for at := int64(0); at < 120; {
			r.run(sh.step)
			at += sh.step
			there := map[string][]string{}
			for _, x := range latest(rows[:at]) {
				k := mustDecimal(x[2].(string)).Reduce().String()
				there[k] = append(there[k], x[2].(string))
			}
			what := fmt.Sprintf("shape %+v, after %d records", sh, at)
			got := r.rows(3)
			if len(got) != len(there) {
				t.Fatalf("%s: %v of %v", what, got, there)
			}
			for _, row := range got {
				f := strings.Fields(row)
				of := there[mustDecimal(f[0]).Reduce().String()]
				if f[1] != fmt.Sprint(len(of)) || !slices.Contains(of, f[0]) || !slices.Contains(of, f[2]) || !slices.Contains(of, f[3]) {
					t.Fatalf("%s: %s of %v", what, row, of)
				}
			}
			if first[at] == nil {
				first[at], firstOfAll[at] = got, r.rows(4)
			}
			equal(t, what+", of all records, as with the first shape", r.rows(4), firstOfAll[at])
			equal(t, what+", as with the first shape", got, first[at])
		}
	}
}

package flow

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/sql/plan"
)

// tableSource is the topic of a table (id, grp, num numeric, f double, s text, b boolean), then deleted.
func tableSource(rel uint64, rows [][]any) *SourceSpec {
	ts := []column.Type{column.TInt64, column.TInt64, column.TNumeric, column.TFloat64, column.TText, column.TBool, column.TBool}
	names := []string{"id", "grp", "num", "f", "s", "b", "deleted"}
	spec := &SourceSpec{Relation: rel, Name: "topic", Source: &memSource{types: ts, parts: [][][]any{rows}}, EventTime: -1}
	for i, t := range ts {
		spec.Columns = append(spec.Columns, SourceColumn{Name: names[i], Type: t})
	}
	return spec
}

// table is the job of a table over its topic.
func table(rel uint64, spec *SourceSpec) JobSpec {
	b := &builder{}
	s := b.source(spec, 0, 1, 2, 3, 4, 5, 6)
	n := b.node(s)
	b.add(plan.Node{Kind: plan.KindUpsert, Columns: n.Columns[:6], Key: []int{0}, EventTime: -1, RowWatermark: -1, Upsert: &plan.Upsert{Relation: rel, Key: []int{0}}}, s)
	return JobSpec{ID: rel, Name: fmt.Sprintf("t%d", rel), Plan: &b.p, Fresh: true, Sources: map[uint64]*SourceSpec{spec.Relation: spec}}
}

func randomRows(rnd *rand.Rand, n int) [][]any {
	var rows [][]any
	null := func(x any) any {
		if rnd.IntN(6) == 0 {
			return nil
		}
		return x
	}
	for range n {
		num := fmt.Sprintf("%d.%0*d", rnd.IntN(9)-4, 1+rnd.IntN(3), rnd.IntN(10))
		if rnd.IntN(25) == 0 {
			num = []string{"NaN", "Infinity", "-Infinity"}[rnd.IntN(3)]
		}
		rows = append(rows, []any{
			rnd.IntN(20), null(rnd.IntN(4)), null(num), null(float64(rnd.IntN(1000)) / 8), null(fmt.Sprintf("s%d", rnd.IntN(9))), null(rnd.IntN(2) == 0),
			rnd.IntN(4) == 0,
		})
	}
	return rows
}

// latest are the rows of the table after its topic's first n records, by id.
func latest(rows [][]any) map[int][]any {
	m := map[int][]any{}
	for _, r := range rows {
		if r[6].(bool) {
			delete(m, r[0].(int))
		} else {
			m[r[0].(int)] = r
		}
	}
	return m
}

func aggregated(rel uint64, from *plan.Node, global bool) *plan.Plan {
	b := &builder{}
	v := b.view(rel, from, 0, 1, 2, 3, 4, 5)
	n, f, s, i8, bo := column.TNumeric, column.TFloat64, column.TText, column.TInt64, column.TBool
	a := plan.Aggregate{Groups: []int{1}, WindowStart: -1, WindowEnd: -1, Calls: []plan.Call{
		call("count", i8, -1, -1, i8), call("count", i8, -1, 2, n), call("count", i8, 5, -1, i8),
		call("sum", n, -1, 0, i8), call("avg", n, -1, 0, i8), call("sum", n, -1, 2, n), call("avg", n, 5, 2, n),
		call("sum", f, -1, 3, f), call("min", s, -1, 4, s), call("max", n, -1, 2, n), call("min", i8, 5, 0, i8), call("max", f, -1, 3, f),
		call("bool_and", bo, -1, 5, bo), call("bool_or", bo, -1, 5, bo),
	}}
	if global {
		a.Groups = nil
	}
	b.materialize(b.aggregate(v, a))
	return &b.p
}

// modelAggregate is what the aggregate must give.
func modelAggregate(rows map[int][]any, global bool) []string {
	groups := map[string][][]any{}
	for _, r := range rows {
		k := "null"
		if r[1] != nil {
			k = fmt.Sprint(r[1])
		}
		if global {
			k = ""
		}
		groups[k] = append(groups[k], r)
	}
	if global && len(groups) == 0 {
		groups[""] = nil
	}
	var out []string
	for k, rs := range groups {
		var got []string
		put := func(x any, null bool) {
			if null {
				got = append(got, "null")
				return
			}
			got = append(got, fmt.Sprint(x))
		}
		if !global {
			got = append(got, k)
		}
		isTrue := func(r []any) bool { return r[5] == true }
		var count, counted, filtered, ids int64
		var nums, numsTrue []decimal.Decimal
		var fs []float64
		var ss []string
		var minID, yes, no int64
		minID = -1
		for _, r := range rs {
			count++
			ids += int64(r[0].(int))
			if isTrue(r) {
				filtered++
				if minID < 0 || int64(r[0].(int)) < minID {
					minID = int64(r[0].(int))
				}
			}
			if r[2] != nil {
				counted++
				d := mustDecimal(r[2].(string))
				nums = append(nums, d)
				if isTrue(r) {
					numsTrue = append(numsTrue, d)
				}
			}
			if r[3] != nil {
				fs = append(fs, r[3].(float64))
			}
			if r[4] != nil {
				ss = append(ss, r[4].(string))
			}
			if r[5] != nil {
				if isTrue(r) {
					yes++
				} else {
					no++
				}
			}
		}
		sum := func(ds []decimal.Decimal) decimal.Decimal {
			t := decimal.FromInt64(0)
			for _, d := range ds {
				t, _ = t.Add(d)
			}
			return t
		}
		avg := func(d decimal.Decimal, n int64) any {
			if n == 0 {
				return nil
			}
			q, _ := d.Div(decimal.FromInt64(n))
			return q
		}
		put(count, false)
		put(counted, false)
		put(filtered, false)
		put(ids, count == 0)
		put(avg(decimal.FromInt64(ids), count), count == 0)
		put(sum(nums), len(nums) == 0)
		put(avg(sum(numsTrue), int64(len(numsTrue))), len(numsTrue) == 0)
		var fsum float64
		for _, f := range fs {
			fsum += f
		}
		put(fsum, len(fs) == 0)
		if len(ss) == 0 {
			put(nil, true)
		} else {
			put(slices.Min(ss), false)
		}
		if len(nums) == 0 {
			put(nil, true)
		} else {
			// Of equal values with different scales any may be shown.
			put(slices.MaxFunc(nums, func(a, b decimal.Decimal) int { return a.Cmp(b) }).Reduce(), false)
		}
		put(minID, minID < 0)
		if len(fs) == 0 {
			put(nil, true)
		} else {
			put(slices.Max(fs), false)
		}
		put(no == 0, yes+no == 0)
		put(yes > 0, yes+no == 0)
		out = append(out, strings.Join(got, " "))
	}
	sort.Strings(out)
	return out
}

// reduceMax takes the zeros off the max of numeric in the engine's rows: of equal values any may be shown.
func reduceMax(rows []string, at int) []string {
	for i, r := range rows {
		f := strings.Fields(r)
		if f[at] != "null" {
			f[at] = mustDecimal(f[at]).Reduce().String()
		}
		rows[i] = strings.Join(f, " ")
	}
	sort.Strings(rows)
	return rows
}

// A table that changes in every way, aggregates over it, and a join of two tables: after every epoch equal to the query over what
// was read.
func TestZSets(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	rnd := rand.New(rand.NewPCG(seed, 2))
	for range 4 {
		left, right := randomRows(rnd, 150), randomRows(rnd, 150)
		for _, sh := range shapes(rnd) {
			if sh.step == 1 {
				sh.step = 4
			}
			r := newRig(t, sh.options())
			r.attach(table(1, tableSource(101, left)))
			r.attach(table(2, tableSource(102, right)))
			from := r.i.byID[1].maker.plan
			r.attach(JobSpec{ID: 3, Name: "grouped", Plan: aggregated(1, from, false), Fresh: true})
			r.attach(JobSpec{ID: 4, Name: "global", Plan: aggregated(1, from, true), Fresh: true})
			b := &builder{}
			l, rr := b.view(1, from, 0, 1, 4), b.view(2, from, 0, 1, 4)
			j := b.add(plan.Node{
				Kind: plan.KindJoin, Columns: append(slices.Clone(b.node(l).Columns), b.node(rr).Columns...), Key: []int{0, 3}, EventTime: -1, RowWatermark: -1,
				Join: &plan.Join{Left: []int{1}, Right: []int{1}},
			}, l, rr)
			b.materialize(j)
			r.attach(JobSpec{ID: 5, Name: "joined", Plan: &b.p, Fresh: true})
			// The same join, counted by left id: what a join retracts in the middle of an epoch meets an aggregate.
			b2 := &builder{}
			l, rr = b2.view(1, from, 0, 1, 4), b2.view(2, from, 0, 1, 4)
			j = b2.add(*b.node(2), l, rr)
			b2.materialize(b2.aggregate(b2.exchange(j, 0), plan.Aggregate{Groups: []int{0}, WindowStart: -1, WindowEnd: -1, Calls: []plan.Call{
				call("count", column.TInt64, -1, -1, column.Type{}), call("max", column.TText, -1, 5, column.TText),
			}}))
			r.attach(JobSpec{ID: 6, Name: "counted", Plan: &b2.p, Fresh: true})

			for at := int64(0); ; {
				r.run(sh.step)
				at = min(at+sh.step, 150)
				a, c := latest(left[:at]), latest(right[:at])
				what := fmt.Sprintf("shape %+v, after %d records", sh, at)
				equal(t, what+", grouped", reduceMax(r.rows(3), 10), modelAggregate(a, false))
				equal(t, what+", global", reduceMax(r.rows(4), 9), modelAggregate(a, true))
				var pairs, counts []string
				for _, x := range a {
					n, top := 0, ""
					for _, y := range c {
						if x[1] == nil || x[1] != y[1] {
							continue
						}
						n++
						s := func(v any) string {
							if v == nil {
								return "null"
							}
							return v.(string)
						}
						top = max(top, cmp.Or(s(y[4]), ""))
						if y[4] == nil && top == "null" {
							top = ""
						}
						pairs = append(pairs, fmt.Sprintf("%d %d %s %d %d %s", x[0], x[1], s(x[4]), y[0], y[1], s(y[4])))
					}
					if n > 0 {
						if top == "" {
							top = "null"
						}
						counts = append(counts, fmt.Sprintf("%d %d %s", x[0], n, top))
					}
				}
				sort.Strings(pairs)
				sort.Strings(counts)
				equal(t, what+", joined", r.rows(5), pairs)
				equal(t, what+", counted", r.rows(6), counts)
				if at == 150 {
					break
				}
			}
			for id, j := range r.total {
				if j.Err != nil {
					t.Fatalf("job %d: %v", id, j.Err)
				}
			}
		}
	}
}

package aggregate

import (
	"math/rand/v2"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/sql/plan"
	"github.com/leat-io/leat/internal/state"
)

type discard struct{ rows int }

func (d *discard) Push(b *column.Batch) error { d.rows += b.Len; return nil }
func (d *discard) Full() bool                 { return false }

func newEnv(tb testing.TB) (*operator.Env, *state.Tables) {
	tables := state.NewTables(state.Options{Name: "state"})
	tb.Cleanup(tables.Close)
	return &operator.Env{
		Workers: 1, Counts: &operator.Counts{}, Expr: &expr.Context{}, Tables: tables,
		Spec: func(i int, name string) state.Spec {
			return state.Spec{ID: uint32(i + 1), Name: name, Ephemeral: true, Fresh: true}
		},
	}, tables
}

// q17: per auction and day count(*), three filtered counts, min, max, avg and sum of the price.
func q17(tb testing.TB) (*Aggregate, *state.Tables, []*column.Batch) {
	in := []column.Type{column.TInt64, column.TText, column.TInt64, column.TBool, column.TBool, column.TBool}
	i8 := column.TInt64
	one := func(f string, result column.Type) plan.Call {
		return plan.Call{Func: f, Args: []int{2}, Types: []column.Type{i8}, Result: result, Filter: -1}
	}
	p := &plan.Aggregate{Groups: []int{0, 1}, WindowStart: -1, WindowEnd: -1, Calls: []plan.Call{
		{Func: "count", Result: i8, Filter: -1},
		{Func: "count", Result: i8, Filter: 3},
		{Func: "count", Result: i8, Filter: 4},
		{Func: "count", Result: i8, Filter: 5},
		one("min", i8), one("max", i8), one("avg", column.TNumeric), one("sum", column.TNumeric),
	}}
	out := []column.Type{column.TInt64, column.TText, i8, i8, i8, i8, i8, i8, column.TNumeric, column.TNumeric}
	env, tables := newEnv(tb)
	a, err := New(env, p, in, out, true, -1<<63)
	if err != nil {
		tb.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(17, 17))
	var bs []*column.Batch
	last := int64(0)
	for range 256 {
		b := column.NewBatch(in, column.MaxRows)
		for range column.MaxRows {
			last++
			auction := last / 15 // 3 auctions in 46 bids, half of the bids on the hot one
			if rnd.IntN(2) == 0 {
				auction = auction / 100 * 100
			} else {
				auction -= rnd.Int64N(100)
			}
			price := rnd.Int64N(10000000)
			b.Cols[0].AppendInt64(1000 + auction)
			b.Cols[1].AppendString("2015-07-15")
			b.Cols[2].AppendInt64(price)
			b.Cols[3].AppendBool(price < 10000)
			b.Cols[4].AppendBool(price >= 10000 && price < 1000000)
			b.Cols[5].AppendBool(price >= 1000000)
			b.EndRow(1)
		}
		bs = append(bs, b)
	}
	return a, tables, bs
}

func BenchmarkQ17(b *testing.B) {
	a, tables, bs := q17(b)
	b.ReportAllocs()
	b.SetBytes(column.MaxRows)
	var c state.Changes
	out := &discard{}
	for i := 0; b.Loop(); i++ {
		if _, err := a.Push(0, bs[i%len(bs)], out); err != nil {
			b.Fatal(err)
		}
		if i%64 == 63 {
			if _, err := a.EndEpoch(&operator.Epoch{Watermark: -1 << 63}, out); err != nil {
				b.Fatal(err)
			}
			c.Reset()
			if err := tables.EndEpoch(&c); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*column.MaxRows/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// q5's inner query: count per auction and HOP window of 10 s every 2 s, by panes.
func BenchmarkQ5(b *testing.B) {
	in := []column.Type{column.TInt64, column.TTimestamp, column.TTimestamp}
	hop := &plan.Window{Size: 10e6, Slide: 2e6, Panes: true}
	p := &plan.Aggregate{Groups: []int{0, 1, 2}, WindowStart: 1, WindowEnd: 2, Hop: hop, Calls: []plan.Call{{Func: "count", Result: column.TInt64, Filter: -1}}}
	env, tables := newEnv(b)
	a, err := New(env, p, in, append(in[:3:3], column.TInt64), true, -1<<63)
	if err != nil {
		b.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 5))
	var bs []*column.Batch
	last := int64(0)
	for range 256 {
		x := column.NewBatch(in, column.MaxRows)
		for range column.MaxRows {
			last++
			auction := last / 15
			if rnd.IntN(2) == 0 {
				auction = auction / 100 * 100
			} else {
				auction -= rnd.Int64N(100)
			}
			pane := last * 100 / 2000000 * 2000000
			x.Cols[0].AppendInt64(1000 + auction)
			x.Cols[1].AppendInt64(pane)
			x.Cols[2].AppendInt64(pane + 2000000)
			x.EndRow(1)
		}
		bs = append(bs, x)
	}
	b.ReportAllocs()
	var c state.Changes
	out := &discard{}
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if _, err := a.Push(0, bs[i%len(bs)], out); err != nil {
			b.Fatal(err)
		}
		if i%64 == 63 {
			if _, err := a.EndEpoch(&operator.Epoch{Watermark: -1 << 63}, out); err != nil {
				b.Fatal(err)
			}
			c.Reset()
			if err := tables.EndEpoch(&c); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*column.MaxRows/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func TestUpdateAllocatesNothing(t *testing.T) {
	a, _, bs := q17(t)
	out := &discard{}
	for range 2 {
		for _, b := range bs {
			if _, err := a.Push(0, b, out); err != nil {
				t.Fatal(err)
			}
		}
	}
	i := 0
	n := testing.AllocsPerRun(200, func() {
		_, _ = a.Push(0, bs[i%len(bs)], out)
		i++
	})
	if n > 0 {
		t.Errorf("a batch of %d rows made %.1f allocations", column.MaxRows, n)
	}
}

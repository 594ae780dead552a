package aggregate

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/plan"
	"github.com/leat-io/leat/internal/state"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0: from the clock")

func seeded(t testing.TB) *rand.Rand {
	s := *seedFlag
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", s)
	return rand.New(rand.NewPCG(s, 4))
}

// The columns of the rows that are folded: two groups, the bounds of a pane or window, then arguments of all types, and a filter.
var foldTypes = []column.Type{
	column.TInt32, column.TText, column.TTimestamp, column.TTimestamp,
	column.TInt16, column.TInt32, column.TInt64, column.TNumeric, column.TFloat32, column.TFloat64, column.TText, column.TBool, column.TInterval,
	column.TTimestamptz, column.TBool,
}

const filterColumn = 14

func randomValue(rnd *rand.Rand, v *column.Vector) {
	if rnd.IntN(7) == 0 {
		v.AppendNull()
		return
	}
	extreme := rnd.IntN(9) == 0
	switch v.Type.Kind {
	case column.Bool:
		v.AppendBool(rnd.IntN(2) == 0)
	case column.Int16:
		v.AppendInt16(int16(rnd.Uint32()))
	case column.Int32:
		v.AppendInt32(int32(rnd.Uint32()))
	case column.Float32:
		v.AppendFloat32(float32(rnd.NormFloat64()))
	case column.Float64:
		v.AppendFloat64([]float64{rnd.NormFloat64(), math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)}[rnd.IntN(6)])
	case column.Numeric:
		texts := []string{"NaN", "Infinity", "-Infinity", "0.000", strings.Repeat("9", 45), "-" + strings.Repeat("9", 45) + ".5"}
		x := fmt.Sprintf("%d.%0*d", rnd.IntN(2000)-1000, 1+rnd.IntN(5), rnd.IntN(10))
		if extreme {
			x = texts[rnd.IntN(len(texts))]
		}
		d, err := decimal.Parse(x)
		if err != nil {
			panic(err)
		}
		v.AppendDecimal(d)
	case column.IntervalKind:
		v.AppendInterval(column.Interval{Months: int32(rnd.IntN(30) - 15), Days: int32(rnd.IntN(90) - 45), Micros: rnd.Int64N(1 << 40)})
	case column.Text:
		v.AppendString(strings.Repeat(string(rune('a'+rnd.IntN(4))), rnd.IntN(4)))
	default:
		x := rnd.Int64N(1000) - 500
		if extreme {
			x = []int64{math.MinInt64, math.MaxInt64}[rnd.IntN(2)]
		}
		v.AppendInt64(x)
	}
}

// randomCalls are calls whose state can be merged.
func randomCalls(rnd *rand.Rand, appendOnly bool) (calls []plan.Call) {
	for range rnd.IntN(6) {
		arg := 4 + rnd.IntN(10)
		t := foldTypes[arg]
		c := plan.Call{Func: "count", Args: []int{arg}, Types: []column.Type{t}, Result: column.TInt64, Filter: -1}
		if rnd.IntN(3) == 0 {
			c.Filter = filterColumn
		}
		switch k := t.Kind; {
		case rnd.IntN(4) == 0:
			if rnd.IntN(2) == 0 {
				c.Args, c.Types = nil, nil
			}
		case k == column.Bool:
			c.Func, c.Result = []string{"bool_and", "bool_or"}[rnd.IntN(2)], t
		case appendOnly && (rnd.IntN(2) == 0 || k == column.Text || k == column.Float32 || k == column.Float64 || k == column.Timestamptz):
			if k != column.IntervalKind {
				c.Func, c.Result = []string{"min", "max"}[rnd.IntN(2)], t
			}
		case k == column.Int16 || k == column.Int32 || k == column.Int64 || k == column.Numeric:
			c.Func, c.Result = []string{"sum", "avg"}[rnd.IntN(2)], column.TNumeric
			if c.Func == "sum" && k != column.Numeric && rnd.IntN(2) == 0 {
				c.Result = column.TInt64 // may overflow
			}
		case k == column.IntervalKind:
			c.Func, c.Result = []string{"sum", "avg"}[rnd.IntN(2)], t
		}
		calls = append(calls, c)
	}
	return calls
}

// collected are the rows that came out, with their weights summed up.
type collected map[string]int64

func (c collected) Push(b *column.Batch) error {
	cols := make([]int, len(b.Cols))
	for i := range cols {
		cols[i] = i
	}
	for i := range b.Len {
		k := string(rowenc.AppendRow(nil, b, cols, i))
		if c[k] += b.Weight(i); c[k] == 0 {
			delete(c, k)
		}
	}
	return nil
}

func (collected) Full() bool { return false }

// TestFoldsAreMergedIntoWhatRowsGive: an aggregate that takes rows, and one that takes what several folds have made of them and some of the rows as they
// are, show the same after every epoch, or fail alike. With insertions and retractions, with windows, panes and without.
func TestFoldsAreMergedIntoWhatRowsGive(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	failed := 0
	for round := range 300 {
		appendOnly := rnd.IntN(2) == 0
		p := &plan.Aggregate{WindowStart: -1, WindowEnd: -1, Calls: randomCalls(rnd, appendOnly)}
		shape := rnd.IntN(4)
		size, pane := int64(60), int64(20)
		switch shape {
		case 1:
			p.Groups = [][]int{{0}, {1}, {1, 0}}[rnd.IntN(3)]
		case 2, 3: // windows, or panes of them
			p.Groups, p.WindowStart, p.WindowEnd = [][]int{{2, 3}, {2, 0, 3}, {1, 3, 2}}[rnd.IntN(3)], 0, 1
			p.WindowStart, p.WindowEnd = slices.Index(p.Groups, 2), slices.Index(p.Groups, 3)
			if shape == 3 {
				p.Hop = &plan.Window{Size: size, Slide: []int64{20, 40}[rnd.IntN(2)], Panes: true}
			}
		}
		out := []column.Type{}
		for _, g := range p.Groups {
			out = append(out, foldTypes[g])
		}
		for _, c := range p.Calls {
			out = append(out, c.Result)
		}
		open := func() (*Aggregate, *state.Tables) {
			env, tables := newEnv(t)
			a, err := New(env, p, foldTypes, out, appendOnly, math.MinInt64)
			if err != nil {
				t.Fatal(err)
			}
			return a, tables
		}
		rows, rowTables := open()
		parts, partTables := open()
		folds := make([]*Fold, 1+rnd.IntN(3))
		for i := range folds {
			var err error
			if folds[i], err = NewFold(p, foldTypes, appendOnly, nil); err != nil || folds[i] == nil {
				t.Fatalf("round %d: %+v does not fold: %v", round, p, err)
			}
		}
		want, got := collected{}, collected{}
		var live []*column.Batch // rows that may be retracted
		for epoch := range 4 {
			for range rnd.IntN(6) {
				b := column.NewBatch(foldTypes, 0)
				if n := len(live); !appendOnly && n > 0 && rnd.IntN(3) == 0 {
					b = live[n-1].Clone()
					live = live[:n-1]
					for i := range b.MakeWeights() {
						b.Weights[i] = -b.Weights[i]
					}
				} else {
					for range 1 + rnd.IntN(40) {
						for i, v := range b.Cols {
							switch i {
							case 2: // bounds of a pane, or of the window itself where a row was late for others
								start := rnd.Int64N(6) * 20
								end := start + pane
								if shape == 3 && rnd.IntN(4) == 0 {
									start = start / p.Hop.Slide * p.Hop.Slide
									end = start + size
								}
								v.AppendInt64(start)
								b.Cols[3].AppendInt64(end)
							case 3:
							default:
								randomValue(rnd, v)
							}
						}
						w := int64(1)
						if !appendOnly && rnd.IntN(5) == 0 {
							w = 3
						}
						b.EndRow(w)
					}
					live = append(live, b.Clone())
				}
				if _, err := rows.Push(Rows, b, want); err != nil {
					t.Fatal(err)
				}
				switch rnd.IntN(5) {
				case 0:
					if _, err := parts.Push(Rows, b, got); err != nil {
						t.Fatal(err)
					}
				default:
					f := folds[rnd.IntN(len(folds))]
					if err := f.Add(b); err != nil {
						t.Fatal(err)
					}
					if rnd.IntN(3) == 0 {
						pushFold(t, parts, f, got)
					}
				}
			}
			for _, f := range folds {
				pushFold(t, parts, f, got)
			}
			end := func(a *Aggregate, tables *state.Tables, out collected) error {
				_, err := a.EndEpoch(&operator.Epoch{First: epoch == 0, Watermark: math.MinInt64}, out)
				if err == nil {
					err = tables.EndEpoch(&state.Changes{})
				}
				return err
			}
			e1, e2 := end(rows, rowTables, want), end(parts, partTables, got)
			if fmt.Sprint(e1) != fmt.Sprint(e2) {
				t.Fatalf("round %d, %+v: rows gave %v, folds %v", round, p, e1, e2)
			}
			if e1 != nil {
				failed++
				break
			}
			if fmt.Sprint(want) != fmt.Sprint(got) {
				t.Fatalf("round %d, epoch %d, %+v:\nrows gave  %v\nfolds gave %v", round, epoch, p, want, got)
			}
		}
	}
	t.Logf("%d rounds ended with a value out of range", failed)
}

func pushFold(t *testing.T, a *Aggregate, f *Fold, out operator.Output) {
	t.Helper()
	b := column.NewBatch(PartialTypes, 0)
	for i := range f.Len() {
		f.AppendTo(b, i)
	}
	f.Reset()
	if f.Len() != 0 || f.Bytes() != 0 {
		t.Fatalf("%d groups of %d bytes after Reset", f.Len(), f.Bytes())
	}
	if b.Len > 0 {
		if _, err := a.Push(Partials, b, out); err != nil {
			t.Fatal(err)
		}
	}
}

// What cannot be merged exactly is not folded.
func TestFoldsOnlyWhatCanBeMerged(t *testing.T) {
	t.Parallel()
	one := func(f string, arg int) plan.Call {
		return plan.Call{Func: f, Args: []int{arg}, Types: []column.Type{foldTypes[arg]}, Result: foldTypes[arg], Filter: -1}
	}
	for _, c := range []struct {
		name       string
		groups     []int
		call       plan.Call
		appendOnly bool
		folds      bool
	}{
		{"sum of bigint", nil, one("sum", 6), false, true},
		{"sum of numeric", []int{0}, one("sum", 7), false, true},
		{"sum of double precision", []int{0}, one("sum", 9), true, false},
		{"avg of real", nil, one("avg", 8), true, false},
		{"max of text that stays", nil, one("max", 10), true, true},
		{"max of text that may leave", nil, one("max", 10), false, false},
		{"min of integers that may leave", []int{1}, one("min", 5), false, false},
		{"a group of numeric", []int{7}, one("count", 5), true, false},
	} {
		f, err := NewFold(&plan.Aggregate{Groups: c.groups, WindowStart: -1, WindowEnd: -1, Calls: []plan.Call{c.call}}, foldTypes, c.appendOnly, nil)
		if err != nil || (f != nil) != c.folds {
			t.Errorf("%s: folds %v, want %v; %v", c.name, f != nil, c.folds, err)
		}
	}
}

func TestFoldAllocatesNothing(t *testing.T) {
	a, _, bs := q17(t)
	f, err := NewFold(a.p, []column.Type{column.TInt64, column.TText, column.TInt64, column.TBool, column.TBool, column.TBool}, true, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	out := column.NewBatch(PartialTypes, 0)
	round := func() {
		for _, b := range bs[:8] {
			if err := f.Add(b); err != nil {
				t.Fatal(err)
			}
		}
		out.Reset(PartialTypes)
		for i := range f.Len() {
			f.AppendTo(out, i)
		}
	}
	round()
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Errorf("folding 8 batches made %.1f allocations", n)
	}
}

// How much is folded before it is sent decides how many rows a group has, and whether the groups fit the processor's cache.
func BenchmarkFoldQ17(b *testing.B) {
	for _, limit := range []int64{64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKB", limit>>10), func(b *testing.B) {
			a, _, bs := q17(b)
			f, err := NewFold(a.p, []column.Type{column.TInt64, column.TText, column.TInt64, column.TBool, column.TBool, column.TBool}, true, []int{0, 1})
			if err != nil {
				b.Fatal(err)
			}
			out := column.NewBatch(PartialTypes, 0)
			b.ReportAllocs()
			groups := 1
			for i := 0; b.Loop(); i++ {
				if err := f.Add(bs[i%len(bs)]); err != nil {
					b.Fatal(err)
				}
				if f.Bytes() >= limit {
					out.Reset(PartialTypes)
					for k := range f.Len() {
						f.AppendTo(out, k)
					}
					groups += f.Len()
					f.Reset()
				}
			}
			b.ReportMetric(float64(b.N)*column.MaxRows/b.Elapsed().Seconds()/1e6, "Mrows/s")
			b.ReportMetric(float64(b.N)*column.MaxRows/float64(groups), "rows/group")
		})
	}
}

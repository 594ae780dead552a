package flow

import (
	"math/rand/v2"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/sql/plan"
)

// columnSource gives rows of a column batch over and over, in two partitions.
type columnSource struct{ rows *column.Batch }

func (s *columnSource) Partitions() int          { return 2 }
func (s *columnSource) Ends(dst []int64) []int64 { return append(dst, 1<<40, 1<<40) }

func (s *columnSource) Start(string) ([]int64, error)                { return make([]int64, 2), nil }
func (s *columnSource) Close() error                                 { return nil }
func (s *columnSource) Open(int, []int) (connector.Partition, error) { return s, nil }

func (s *columnSource) Read(from, to int64, most int, out *connector.Rows) (int64, error) {
	at := int(from) % s.rows.Len
	n := min(int(to-from), most, s.rows.Len-at)
	out.Reset(len(s.rows.Cols))
	for i, c := range s.rows.Cols {
		out.Cols[i].Reset(c.Type)
		out.Cols[i].AppendRange(c, at, at+n)
	}
	for k := range n {
		out.Offsets = append(out.Offsets, from+int64(k))
	}
	out.Len = n
	return from + int64(n), nil
}

// BenchmarkFold is an epoch of 200,000 rows through an exchange and an aggregate on two workers, which take turns on one core: what both of them do,
// and what the one that does more of it does. Folding (what a plan gets), and without it.
func BenchmarkFold(b *testing.B) {
	i8 := column.TInt64
	for _, c := range []struct {
		name   string
		key    func(i int64, rnd *rand.Rand) int64
		global bool
	}{
		{"global", func(int64, *rand.Rand) int64 { return 0 }, true},
		{"hot", func(i int64, rnd *rand.Rand) int64 { // nine rows in ten
			if rnd.IntN(10) > 0 {
				return 7
			}
			return rnd.Int64N(100_000)
		}, false},
		{"bids", func(i int64, rnd *rand.Rand) int64 { // as of Nexmark: 15 a key, half of them on one in a hundred
			if k := i / 15; rnd.IntN(2) == 0 {
				return k / 100 * 100
			} else {
				return k - rnd.Int64N(100)
			}
		}, false},
		{"twice", func(_ int64, rnd *rand.Rand) int64 { return rnd.Int64N(100_000) }, false},
		{"distinct", func(i int64, _ *rand.Rand) int64 { return i }, false},
	} {
		for _, fold := range []bool{false, true} {
			name := c.name + "/rows"
			if fold {
				name = c.name + "/folded"
			}
			b.Run(name, func(b *testing.B) {
				rnd := rand.New(rand.NewPCG(3, 3))
				types := []column.Type{i8, i8}
				src := &columnSource{rows: column.NewBatch(types, 1<<20)}
				for i := range int64(1 << 20) {
					src.rows.Cols[0].AppendInt64(c.key(i, rnd))
					src.rows.Cols[1].AppendInt64(rnd.Int64N(1_000_000))
					src.rows.EndRow(1)
				}
				spec := &SourceSpec{Relation: 100, Name: "numbers", EventTime: -1, Source: src, Columns: []SourceColumn{{Name: "k", Type: i8}, {Name: "x", Type: i8}}}
				p := &builder{}
				a := plan.Aggregate{Groups: []int{0}, WindowStart: -1, WindowEnd: -1, Calls: []plan.Call{
					call("count", i8, -1, -1, i8), call("sum", column.TNumeric, -1, 1, i8), call("max", i8, -1, 1, i8),
				}}
				if c.global {
					a.Groups = nil
				}
				p.aggregate(p.source(spec, 0, 1), a)
				r := newRig(b, Options{Workers: 2, Seed: 1})
				r.attach(viewOf(spec, &p.p))
				for _, n := range r.i.jobs[0].nodes {
					if n.exchange != nil && !fold {
						n.exchange.into = nil
					}
				}
				r.run(100_000)
				b.ResetTimer()
				for b.Loop() {
					r.run(100_000)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200_000, "ns/row")
			})
		}
	}
}

package nexmark

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 picks one")

func testSeed(t *testing.T) uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (run again with -seed %d)", seed, seed)
	return seed
}

// bidsRelation has all columns of bids, in an order of its own.
func bidsRelation(options map[string]string) *catalog.Relation {
	options[OptionTable] = "bid"
	return &catalog.Relation{Options: options, Columns: []catalog.Column{
		{Name: "extra", Type: column.TText},
		{Name: "auction", Type: column.TInt64},
		{Name: "date_time", Type: column.TTimestamp},
		{Name: "channel", Type: column.TText},
		{Name: "price", Type: column.TInt64},
		{Name: "url", Type: column.TText},
		{Name: "bidder", Type: column.TInt64},
	}}
}

// TestColumnsAreTheRows compares what the reader makes column by column with Bid, for ranges and subsets of columns.
func TestColumnsAreTheRows(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(testSeed(t), 1))
	for _, options := range []map[string]string{
		{OptionEvents: "3000000"},
		{OptionEvents: "3000000", OptionSeed: "7", OptionRate: "3000"}, // a delay that is not whole
		{OptionEvents: "3000000", OptionOutOfOrder: "100"},
	} {
		s, err := NewSource(bidsRelation(options))
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			columns := rnd.Perm(7)[:rnd.IntN(8)]
			p, err := s.Open(0, columns)
			if err != nil {
				t.Fatal(err)
			}
			var rows connector.Rows
			from := []int64{0, rnd.Int64N(1000), rnd.Int64N(60_000), rnd.Int64N(2_900_000)}[rnd.IntN(4)]
			to := from + rnd.Int64N(3000)
			for at := from; at < to; {
				next, err := p.Read(at, to, 1+rnd.IntN(1024), &rows)
				if err != nil || next <= at || next > to {
					t.Fatalf("from %d to %d: next %d, %v", at, to, next, err)
				}
				compareBids(t, s.g, columns, at, next, &rows)
				at = next
			}
		}
	}
}

// TestLateColumnsAreTheColumns makes columns late, for random rows of each chunk, and compares them with those that are not.
func TestLateColumnsAreTheColumns(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(testSeed(t), 2))
	for _, options := range []map[string]string{{OptionEvents: "3000000"}, {OptionEvents: "3000000", OptionOutOfOrder: "100"}} {
		s, err := NewSource(bidsRelation(options))
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			columns := rnd.Perm(7)[:1+rnd.IntN(7)]
			var now, late []int
			for _, c := range columns {
				if s.MakesLate(c) && rnd.IntN(3) > 0 {
					late = append(late, c)
				} else {
					now = append(now, c)
				}
			}
			p, err := s.OpenLate(0, now, late)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := s.Open(0, columns)
			if err != nil {
				t.Fatal(err)
			}
			var rows, want connector.Rows
			at := rnd.Int64N(2_900_000)
			for range 3 {
				to := at + 1 + rnd.Int64N(500)
				if _, err := p.Read(at, to, 1024, &rows); err != nil {
					t.Fatal(err)
				}
				if _, err := plain.Read(at, to, 1024, &want); err != nil {
					t.Fatal(err)
				}
				at = to
				if rows.Len != want.Len {
					t.Fatalf("%d rows, want %d", rows.Len, want.Len)
				}
				for range 2 {
					some := []int32(nil)
					if rnd.IntN(4) > 0 {
						some = []int32{}
						for i := range int32(rows.Len) {
							if rnd.IntN(3) == 0 {
								some = append(some, i)
							}
						}
					}
					for i, c := range late {
						var got, w column.Vector
						rows.Make(i, some, &got)
						if some == nil {
							w.CopyFrom(want.Cols[slices.Index(columns, c)])
						} else {
							w.Gather(want.Cols[slices.Index(columns, c)], some)
						}
						if err := got.Validate(); err != nil {
							t.Fatal(err)
						}
						for k := range w.Len {
							if got.Len != w.Len || !bytes.Equal(got.Bytes(k), w.Bytes(k)) {
								t.Fatalf("columns %d, late %d: column %d of rows %d differs at %d", now, late, c, some, k)
							}
						}
					}
				}
			}
		}
	}
}

func compareBids(t *testing.T, g *Generator, columns []int, from, to int64, rows *connector.Rows) {
	t.Helper()
	var bid BidEvent
	n := 0
	for k := from; k < to; k++ {
		if KindOf(g.ID(k)) != Bid {
			continue
		}
		if n >= rows.Len || rows.Offsets[n] != k {
			t.Fatalf("bid %d is not row %d of %d", k, n, rows.Len)
		}
		g.Bid(k, &bid)
		for i, c := range columns {
			v := rows.Cols[i]
			number, text := int64(0), []byte(nil)
			switch c {
			case 0:
				text = bid.Extra
			case 1:
				number = bid.Auction
			case 2:
				number = bid.DateTime * 1000
			case 3:
				text = bid.Channel
			case 4:
				number = bid.Price
			case 5:
				text = bid.URL
			case 6:
				number = bid.Bidder
			}
			if text == nil && v.I64[n] != number || text != nil && !bytes.Equal(v.Bytes(n), text) {
				t.Fatalf("event %d: column %d differs: want %d %q", k, c, number, text)
			}
		}
		n++
	}
	if n != rows.Len || len(rows.Offsets) != n {
		t.Fatalf("%d rows, want %d", rows.Len, n)
	}
	for _, v := range rows.Cols {
		b := column.Batch{Len: n, Cols: []*column.Vector{v}}
		if err := b.Validate(); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkReadBids(b *testing.B) {
	for _, c := range []struct {
		name    string
		columns []int
	}{{"q0", []int{0, 1, 2, 4, 6}}, {"q2", []int{1, 4}}, {"q5", []int{1, 2}}, {"q22", []int{1, 3, 4, 5, 6}}} {
		b.Run(c.name, func(b *testing.B) {
			s, err := NewSource(bidsRelation(map[string]string{OptionEvents: "1000000000"}))
			if err != nil {
				b.Fatal(err)
			}
			p, _ := s.Open(0, c.columns)
			var rows connector.Rows
			b.ReportAllocs()
			from := int64(1_000_000)
			for b.Loop() {
				next, err := p.Read(from, from+1000, 1024, &rows)
				if err != nil {
					b.Fatal(err)
				}
				from = next
			}
			b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

package expr

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/leat-io/leat/internal/column"
)

const logPattern = `^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+)[^"]*"? (\d{3}) (\d+|-)`

// BenchmarkText is the cost per row of functions over text, times and jsonb.
func BenchmarkText(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	types := []column.Type{tText, tTimestamp, tJSONB, tText, tTimestamptz}
	in := column.NewBatch(types, column.MaxRows)
	for range column.MaxRows {
		in.Cols[0].AppendString(fmt.Sprintf(`10.%d.%d.73 - - [17/May/2015:10:05:%02d +0000] "GET /presentations/logstash-monitorama-2013/images/kibana-search%d.png HTTP/1.1" 200 %d `+
			`"http://example.com/presentations/logstash-monitorama-2013/" "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 Safari/537.36"`,
			r.IntN(256), r.IntN(256), r.IntN(60), r.IntN(1000), r.IntN(1000000)))
		us := 1_431_857_000_000_000 + r.Int64N(1_000_000_000_000)
		in.Cols[1].AppendInt64(us)
		in.Cols[2].AppendString(fmt.Sprintf(`{"bidder": %d, "auction": %d, "channel": "apple", "date_time": "2024-01-01T00:00:00.000Z"}`, r.IntN(10000), r.IntN(10000)))
		in.Cols[3].AppendString(fmt.Sprintf("https://www.nexmark.com/item/%d/x.htm?query=1&channel_id=%d", r.IntN(100), r.IntN(100000)))
		in.Cols[4].AppendInt64(us)
	}
	in.Len = column.MaxRows
	col := func(i int) *Node { return Column(i, types[i], 0) }
	lit := func(s string) *Node { return Literal(s, 0) }
	num := func(s string) *Node {
		n, err := Number(s, 0)
		return benchNode(b, n, err)
	}
	call := func(name string, args ...*Node) *Node {
		n, err := Resolve(name, args, 0)
		return benchNode(b, Fold(benchNode(b, n, err), nil), nil)
	}
	cases := []struct {
		name string
		node *Node
	}{
		{"regexp_match/log", call("regexp_match", col(0), lit(logPattern))},
		{"regexp/log", call("~", col(0), lit(logPattern))},
		{"regexp_replace", call("regexp_replace", col(3), lit(`channel_id=(\d+)`), lit(`\1`))},
		{"like/%x%", call("~~", col(3), lit("%channel%"))},
		{"split_part", call("split_part", col(3), lit("/"), num("4"))},
		{"lower", call("lower", col(3))},
		{"length", call("length", col(3))},
		{"substring", call("substring", col(3), num("5"), num("10"))},
		{"date_trunc/hour", call("date_trunc", lit("hour"), col(1))},
		{"date_trunc/month", call("date_trunc", lit("month"), col(1))},
		{"extract/hour", call("extract", lit("hour"), col(1))},
		{"date_part/epoch", call("date_part", lit("epoch"), col(4))},
		{"to_char", call("to_char", col(1), lit("YYYY-MM-DD HH24:MI"))},
		{"->>", call("->>", col(2), lit("auction"))},
		{"@>", call("@>", col(2), lit(`{"channel": "apple"}`))},
	}
	ts := call("to_timestamp", call("[]", cases[0].node, num("2")), lit("DD/Mon/YYYY:HH24:MI:SS TZHTZM"))
	cases = append(cases, struct {
		name string
		node *Node
	}{"to_timestamp/log", ts})
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			p, err := Compile(c.node, types)
			if err != nil {
				b.Fatal(err)
			}
			var ctx Context
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Eval(&ctx, in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(in.Len), "ns/row")
		})
	}
}

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leat-io/leat/internal/connector/nexmark"
	"github.com/leat-io/leat/internal/testpg"
)

func TestMain(m *testing.M) { os.Exit(testpg.Run(m)) }

// windowsByHand is q5's query in plain SQL: bids per auction in each window of 10 s that starts every 2 s.
const windowsByHand = `SELECT auction, count(*) AS num, w AS window_start, w + interval '10 s' AS window_end
FROM bid, generate_series(date_bin('2 s', date_time, timestamp '1970-01-01') - interval '8 s', date_bin('2 s', date_time, timestamp '1970-01-01'), interval '2 s') AS w
GROUP BY auction, w`

// TestQueriesEqualPostgreSQL runs every query over the first 200,000 events as a view, reads the view over the PostgreSQL door, and compares it
// with what PostgreSQL makes of the same bids: as sets of rows, by their text.
func TestQueriesEqualPostgreSQL(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	o := NexmarkOptions{Options: Options{Dir: t.TempDir(), Workers: 2}, Events: 200_000}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	clean, err := o.prepare()
	if err != nil {
		t.Fatal(err)
	}
	defer clean()
	oracle := testpg.Connect(t)
	loadBids(ctx, t, oracle, &o)
	n, _, err := startServer(ctx, o.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := postgresClient(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, bidSource(&o)); err != nil {
		t.Fatal(err)
	}
	for _, name := range Queries() {
		text := queries[name]
		if _, err := conn.Exec(ctx, "CREATE MATERIALIZED VIEW "+name+" AS "+text); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := rowsOf(ctx, t, conn, "SELECT * FROM "+name)
		if name == "q5" {
			text = windowsByHand
		}
		want := rowsOf(ctx, t, oracle, text)
		if len(got) != len(want) {
			t.Errorf("%s: %d rows, PostgreSQL has %d", name, len(got), len(want))
		}
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("%s: in order, row %d is %s; PostgreSQL has %s", name, i, got[i], want[i])
				break
			}
		}
		if _, err := conn.Exec(ctx, "DROP MATERIALIZED VIEW "+name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// loadBids copies the bids among the events into a table.
func loadBids(ctx context.Context, t *testing.T, conn *pgx.Conn, o *NexmarkOptions) {
	t.Helper()
	if _, err := conn.Exec(ctx, `CREATE TABLE bid (auction bigint, bidder bigint, price bigint, channel varchar, url varchar, date_time timestamp, extra varchar)`); err != nil {
		t.Fatal(err)
	}
	g := o.generator()
	var b nexmark.BidEvent
	var lines bytes.Buffer
	escape := strings.NewReplacer(`\`, `\\`)
	for k := range o.Events {
		if nexmark.KindOf(g.ID(k)) != nexmark.Bid {
			continue
		}
		g.Bid(k, &b)
		fmt.Fprintf(&lines, "%d\t%d\t%d\t%s\t%s\t%s\t%s\n", b.Auction, b.Bidder, b.Price, b.Channel, b.URL,
			time.UnixMilli(b.DateTime).UTC().Format("2006-01-02 15:04:05.000"), escape.Replace(string(b.Extra)))
	}
	if _, err := conn.PgConn().CopyFrom(ctx, &lines, "COPY bid FROM STDIN"); err != nil {
		t.Fatal(err)
	}
}

// rowsOf are the rows of a query as text, in order.
func rowsOf(ctx context.Context, t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		t.Fatalf("%v in: %s", err, sql)
	}
	var out []string
	var line []byte
	for _, row := range results[len(results)-1].Rows {
		line = line[:0]
		for _, cell := range row {
			if cell == nil {
				line = append(line, "NULL|"...)
				continue
			}
			line = append(strconv.AppendQuote(line, string(cell)), '|')
		}
		out = append(out, string(line))
	}
	slices.Sort(out)
	return out
}

// TestTopicsGiveTheSame runs queries over the events as JSON from topics: their checksums are those over the generator's rows, with any number of
// workers.
func TestTopicsGiveTheSame(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"q1", "q2", "q5", "q17"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sums := map[string]string{}
			for _, workers := range []int{1, 2, 3} {
				for _, topics := range []bool{false, true} {
					r, err := Nexmark(t.Context(), NexmarkOptions{
						Options: Options{Dir: t.TempDir(), Workers: workers}, Query: name, Events: 20_000, FromTopics: topics,
					})
					if err != nil {
						t.Fatal(err)
					}
					sums[r.Checksum] = fmt.Sprintf("%d workers, topics %v", workers, topics)
				}
			}
			if len(sums) != 1 {
				t.Errorf("checksums differ: %v", sums)
			}
		})
	}
}

func TestDumpIsTheKnownFile(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Dump(&out, NexmarkOptions{Events: 1000}); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	if !strings.HasPrefix(first, `{"event":2,"type":"auction","id":1001,"itemName":"yze owi",`) {
		t.Errorf("the first event is %s", first)
	}
	if n := strings.Count(out.String(), "\n"); n != 1000 {
		t.Errorf("%d lines", n)
	}
}

func TestStateIsExact(t *testing.T) {
	t.Parallel()
	r, err := State(t.Context(), StateOptions{Options: Options{Dir: t.TempDir(), Workers: 2, StateMemory: 1 << 20}, Size: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Exact || r.Rows == 0 {
		t.Errorf("%+v", r)
	}
}

func TestSmallRunsOfTheOthers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if r, err := Latency(ctx, LatencyOptions{Options: Options{Dir: t.TempDir()}, Rate: 500, For: 300 * time.Millisecond}); err != nil || r.Events != 150 {
		t.Errorf("latency: %+v, %v", r, err)
	}
	if r, err := Mixed(ctx, MixedOptions{Options: Options{Dir: t.TempDir()}, Query: "q2", Records: 20}); err != nil || r.EventsPerSecond <= 0 {
		t.Errorf("mixed: %+v, %v", r, err)
	}
	if r, err := Log(ctx, LogOptions{Options: Options{Dir: t.TempDir()}, Connections: 8, For: 200 * time.Millisecond}); err != nil || r.RecordsPerSecond <= 0 {
		t.Errorf("log: %+v, %v", r, err)
	}
}

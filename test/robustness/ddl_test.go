package robustness

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/node"
)

func session(t *testing.T, n *node.Node) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), "postgres://me@"+n.PostgresAddr()+"/leat?sslmode=disable")
	must(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// ask runs one statement and returns its first column.
func ask(ctx context.Context, c *pgconn.PgConn, sql string) ([]string, error) {
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sql, err)
	}
	var out []string
	for _, row := range results[len(results)-1].Rows {
		out = append(out, string(row[0]))
	}
	return out, nil
}

// load produces records {"k":i%100,"v":1} until stop is closed, and says how many were acknowledged.
func load(t *testing.T, n *node.Node, topic string) (stop func() int64) {
	t.Helper()
	c := kafka(t, n, kgo.MaxBufferedRecords(500))
	var acked atomic.Int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				if err := c.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				return
			default:
			}
			c.Produce(t.Context(), &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"k":%d,"v":1}`, i%100)}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Error(err)
					return
				}
				acked.Add(1)
			})
			if i%100 == 99 { // a steady stream, not all that the machine can do
				if err := c.Flush(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	return func() int64 {
		close(done)
		wg.Wait()
		return acked.Load()
	}
}

// TestManyViewsAtOnce makes 200 views from 20 sessions while data flows, on a source, a table and each other. In the end every one of them has the query's result, and all have
// been at one instant whenever they were read in one statement.
func TestManyViewsAtOnce(t *testing.T) {
	t.Parallel()
	c := config(t.TempDir())
	n, err := node.Start(t.Context(), c)
	must(t, err)
	run(t, n, `CREATE SOURCE s (k int, v int) WITH (connector='kafka', topic='in') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE TABLE t (k int PRIMARY KEY, v int)`)
	run(t, n, `INSERT INTO t SELECT k, 1 FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS x (k)`)
	stop := load(t, n, "in")
	const sessions, each = 20, 10
	var wg sync.WaitGroup
	for s := range sessions {
		conn := session(t, n)
		wg.Go(func() {
			for i := range each {
				name := fmt.Sprintf("v_%d_%d", s, i)
				from := "s"
				switch {
				case i%3 == 1:
					from = "t"
				case i > 3 && i%3 == 2:
					from = fmt.Sprintf("v_%d_%d", s, i-3) // which has one row, of the same total
				}
				query := fmt.Sprintf("SELECT sum(v) AS v FROM %s", from)
				if i == 9 {
					query = "SELECT k, sum(v) AS v FROM s GROUP BY k"
				}
				if _, err := ask(t.Context(), conn, "CREATE MATERIALIZED VIEW "+name+" AS "+query); err != nil {
					t.Error(err)
				}
				if i == 5 {
					both, err := ask(t.Context(), conn, fmt.Sprintf("SELECT a.v - b.v FROM v_%d_5 a, v_%[1]d_2 b", s))
					if err != nil {
						both, err = ask(t.Context(), conn, fmt.Sprintf("SELECT sum(v) FROM (SELECT v FROM v_%d_5 UNION ALL SELECT -v FROM v_%[1]d_2) x", s))
					}
					if err != nil || len(both) != 1 || both[0] != "0" {
						t.Errorf("two views of one result differ by %v, %v", both, err)
					}
				}
				if i%4 == 3 {
					if _, err := ask(t.Context(), conn, fmt.Sprintf("INSERT INTO t VALUES (%d, 1)", 1000+s*each+i)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	total := strconv.FormatInt(stop(), 10)
	rows := strconv.Itoa(10 + sessions*2)
	check := func(n *node.Node) {
		t.Helper()
		conn := session(t, n)
		if _, err := ask(t.Context(), conn, "FLUSH"); err != nil {
			t.Fatal(err)
		}
		for s := range sessions {
			for i := range each {
				want := total
				if i%3 == 1 {
					want = rows
				}
				got, err := ask(t.Context(), conn, fmt.Sprintf("SELECT sum(v) FROM v_%d_%d", s, i))
				if err != nil || len(got) != 1 || got[0] != want {
					t.Errorf("v_%d_%d: %v, %v, want %s", s, i, got, err, want)
				}
			}
		}
	}
	check(n)
	must(t, n.Stop())
	check(start(t, c))
}

// TestDropWhileItIsRead drops views and tables that sessions are reading and writing: each reader gets a whole answer or is told that the relation is gone.
func TestDropWhileItIsRead(t *testing.T) {
	t.Parallel()
	n := start(t, config(t.TempDir()))
	admin := session(t, n)
	stopping := make(chan struct{})
	var wg sync.WaitGroup
	var reads, misses atomic.Int64
	allowed := func(err error) bool {
		var pg *pgconn.PgError
		return errors.As(err, &pg) && slices.Contains([]string{"42P01", "55000"}, pg.Code)
	}
	for i := range 6 {
		conn := session(t, n)
		wg.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-stopping:
					return
				default:
				}
				switch i % 3 {
				case 0:
					got, err := ask(t.Context(), conn, "SELECT count(*) FROM v")
					if err == nil && (len(got) != 1 || got[0] != "5") || err != nil && !allowed(err) {
						t.Errorf("reading: %v, %v", got, err)
						return
					}
					if err != nil {
						misses.Add(1)
					} else {
						reads.Add(1)
					}
				case 1:
					if _, err := ask(t.Context(), conn, "UPDATE t SET v = v + 1"); err != nil && !allowed(err) {
						t.Errorf("writing: %v", err)
						return
					}
				case 2:
					if got, err := ask(t.Context(), conn, "SELECT name FROM leat_jobs"); err != nil {
						t.Errorf("%v, %v", got, err)
						return
					}
				}
			}
		})
	}
	for range 15 {
		for _, sql := range []string{
			"CREATE TABLE t (k int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1,1),(2,1),(3,1),(4,1),(5,1)", "CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t",
			"SELECT count(*) FROM v", "DROP MATERIALIZED VIEW v", "DROP TABLE t",
		} {
			if _, err := ask(t.Context(), admin, sql); err != nil {
				t.Error(err)
			}
		}
	}
	close(stopping)
	wg.Wait()
	t.Logf("%d reads, %d found nothing", reads.Load(), misses.Load())
}

// TestNothingLeaks creates and drops everything again and again, with restarts: goroutines, topics, metadata and rows are no more than before.
func TestNothingLeaks(t *testing.T) {
	c := config(t.TempDir())
	n, err := node.Start(t.Context(), c)
	must(t, err)
	round := func(n *node.Node) {
		t.Helper()
		conn := session(t, n)
		for _, sql := range []string{
			`CREATE TABLE t (k int PRIMARY KEY, v int)`,
			`CREATE SOURCE s (k int, at timestamptz, WATERMARK FOR at AS at) WITH (connector='kafka', topic='kept') FORMAT PLAIN ENCODE JSON`,
			`INSERT INTO t VALUES (1, 1), (2, 2)`,
			`CREATE MATERIALIZED VIEW v AS SELECT v, count(*) AS n FROM t GROUP BY v`,
			`CREATE MATERIALIZED VIEW w AS SELECT window_start, count(*) AS n FROM TUMBLE(s, at, INTERVAL '1 minute') GROUP BY window_start, window_end`,
			`CREATE MATERIALIZED VIEW j AS SELECT v.n FROM v JOIN t ON v.v = t.v`,
			`CREATE SINK k FROM v WITH (connector='kafka', topic='out') FORMAT UPSERT ENCODE JSON`,
			`UPDATE t SET v = 7`, `FLUSH`, `SELECT * FROM j`,
			`DROP SINK k`, `DROP MATERIALIZED VIEW j`, `DROP MATERIALIZED VIEW v, w`, `DROP SOURCE s`, `DROP TABLE t`,
		} {
			if _, err := ask(t.Context(), conn, sql); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.Close(t.Context())
	}
	type held struct{ goroutines, topics, metadata, rows int }
	measure := func(n *node.Node) held {
		t.Helper()
		must(t, n.Checkpoint(t.Context()))
		h := held{goroutines: runtime.NumGoroutine()}
		h.topics = len(n.Broker.Topics())
		must(t, n.DB.ScanMeta("", func(key string, _ []byte) error {
			h.metadata++
			return nil
		}))
		s := n.DB.Snapshot()
		defer s.Release()
		for table := uint32(1); table < 4000; table++ {
			it, err := s.NewIter(table)
			must(t, err)
			for it.Next() {
				h.rows++
			}
			must(t, errors.Join(it.Err(), it.Close()))
		}
		return h
	}
	compare := func(when string, n *node.Node, before held) {
		t.Helper()
		after := measure(n)
		for end := time.Now().Add(patience); after.goroutines > before.goroutines+3 && time.Now().Before(end); { // they take a moment to end
			after = measure(n)
		}
		t.Logf("%s: %+v, before %+v", when, after, before)
		if after.goroutines > before.goroutines+3 || after.topics > before.topics || after.metadata > before.metadata || after.rows > before.rows {
			t.Errorf("%s there is more than before", when)
		}
	}
	round(n)
	before := measure(n)
	for range 20 {
		round(n)
	}
	compare("after 20 rounds", n, before)
	for range 3 {
		must(t, n.Stop())
		n, err = node.Start(t.Context(), c)
		must(t, err)
		round(n)
	}
	compare("after restarts", n, before)
	must(t, n.Stop())
}

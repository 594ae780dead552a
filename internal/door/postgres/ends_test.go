package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/leat-io/leat/test/nodetest"
)

// connections is how many clients the door has.
func connections(t *testing.T, n *nodetest.Node) int {
	t.Helper()
	families, err := n.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "leat_postgres_connections" {
			return int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	t.Fatal("no leat_postgres_connections")
	return 0
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(nodetest.Patience); time.Now().Before(end); <-ticker.C {
		if ask() {
			return
		}
	}
	t.Fatalf("%s: not within %v", what, nodetest.Patience)
}

// TestClientThatGoes closes the connection under a statement that computes, one that waits, and an open transaction: each ends, and nothing of them stays.
func TestClientThatGoes(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := nodetest.Connect(t, dsn(n, ""))
	c.Do("CREATE TABLE t (k int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)",
		"CREATE SOURCE bid (auction bigint) WITH (connector = 'nexmark', nexmark.table.type = 'bid', nexmark.event.num = 1000000000000)")
	writer := greeted(t, n)
	writer.send(&pgproto3.Query{String: "BEGIN; UPDATE t SET v = 2"})
	writer.untilReady()
	for name, send := range map[string][]pgproto3.FrontendMessage{
		"a SELECT":                          {&pgproto3.Query{String: "SELECT count(*) FROM bid"}},
		"a SELECT, with more sent ahead":    {&pgproto3.Query{String: "SELECT count(*) FROM bid"}, &pgproto3.Query{String: "SELECT 1"}, &pgproto3.Terminate{}},
		"a pipeline":                        {&pgproto3.Parse{Query: "SELECT count(*) FROM bid"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}},
		"a writer that waits for its turn":  {&pgproto3.Query{String: "UPDATE t SET v = 3"}},
		"a transaction that waits the same": {&pgproto3.Query{String: "BEGIN; INSERT INTO t VALUES (2, 2)"}},
		"one that fills a table":            {&pgproto3.Query{String: "CREATE TABLE filled AS SELECT count(*) AS n FROM bid"}},
	} {
		r := greeted(t, n)
		r.send(send...)
		// It is gone after the statement has begun, or before: both must do.
		_ = r.nc.Close()
		eventually(t, name+" ends", func() bool { return connections(t, n) == 2 })
	}
	_ = writer.nc.Close()
	eventually(t, "the transaction ends", func() bool { return connections(t, n) == 1 })
	if got := c.Query("SELECT k, v FROM t"); len(got) != 1 || got[0] != "1|1" {
		t.Errorf("the table has %q", got)
	}
	_, err := c.Run("SELECT * FROM filled")
	wantCode(t, err, "42P01")
	c.Do("UPDATE t SET v = 4")
}

// TestTimeouts has each of the timeouts come, and what they end not be there any more.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := nodetest.Connect(t, dsn(n, ""))
	c.Do("CREATE TABLE t (k int PRIMARY KEY)",
		"CREATE SOURCE endless (auction bigint) WITH (connector = 'nexmark', nexmark.table.type = 'bid', nexmark.event.num = 1000000000000)")
	idle := greeted(t, n)
	idle.send(&pgproto3.Query{String: "BEGIN; INSERT INTO t VALUES (1)"})
	idle.untilReady()
	c.Do("SET lock_timeout = '50ms'")
	_, err := c.Run("INSERT INTO t VALUES (2)")
	if pg := wantCode(t, err, "55P03"); !strings.Contains(pg.Message, "lock timeout") {
		t.Error(pg.Message)
	}
	c.Do("SET lock_timeout = 0", "SET statement_timeout = '50ms'")
	_, err = c.Run("INSERT INTO t VALUES (2)")
	if pg := wantCode(t, err, "57014"); !strings.Contains(pg.Message, "statement timeout") {
		t.Error(pg.Message)
	}
	// Another error is itself, also under a timeout.
	_, err = c.Run("SELECT 1/0")
	wantCode(t, err, "22012")
	c.Do("SET statement_timeout = 0")
	if got := c.Query("SHOW idle_in_transaction_session_timeout"); got[0] != "10min" {
		t.Errorf("%q", got)
	}
	idle.send(&pgproto3.Query{String: "SET idle_in_transaction_session_timeout = '50ms'"})
	idle.untilReady()
	if said := idle.ended("a client that idles in a transaction"); !strings.Contains(said, "25P03") {
		t.Errorf("said %q", said)
	}
	c.Do("INSERT INTO t VALUES (1)")
	// Outside of a transaction a client may idle.
	quiet := nodetest.Connect(t, dsn(n, ""))
	quiet.Do("SET idle_in_transaction_session_timeout = '1ms'", "BEGIN; COMMIT")
	c.Do("SET statement_timeout = '50ms'")
	_, err = c.Run("SELECT count(*) FROM endless") // time passes
	wantCode(t, err, "57014")
	quiet.Do("SELECT 1")
}

// TestPipelinesOfPgx has a driver use savepoints for nested transactions, and one transaction for a pipeline.
func TestPipelinesOfPgx(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	conn := connect(t, n)
	ctx := within(t)
	if _, err := conn.Exec(ctx, "CREATE TABLE t (k int PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	insert := func(k int, want string) {
		t.Helper()
		nested, err := tx.Begin(ctx) // a savepoint
		if err != nil {
			t.Fatal(err)
		}
		if _, err = nested.Exec(ctx, "INSERT INTO t VALUES ($1)", k); want != "" {
			wantCode(t, err, want)
			err = nested.Rollback(ctx)
		} else if err == nil {
			err = nested.Commit(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	insert(1, "")
	insert(1, "23505")
	insert(2, "")
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	pipeline := conn.PgConn().StartPipeline(ctx)
	for _, k := range []string{"3", "4", "3"} {
		pipeline.SendQueryParams("INSERT INTO t VALUES ($1)", [][]byte{[]byte(k)}, nil, nil, nil)
	}
	if err := pipeline.Sync(); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; {
		var r any
		if r, err = pipeline.GetResults(); r == nil && err == nil {
			break
		} else if rr, ok := r.(*pgconn.ResultReader); ok {
			_, err = rr.Close()
		}
	}
	wantCode(t, err, "23505")
	_ = pipeline.Close()
	var count int
	if err := conn.QueryRow(context.Background(), "SELECT count(*) FROM t").Scan(&count); err != nil || count != 2 {
		t.Errorf("%d rows, %v, want 2", count, err)
	}
}

package postgres_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/leat-io/leat/test/nodetest"
)

// ask sends messages and a Sync, and checks what comes back.
func (r *raw) ask(what string, want []string, messages ...pgproto3.FrontendMessage) {
	r.t.Helper()
	r.send(append(messages, &pgproto3.Sync{})...)
	if diff := cmp.Diff(want, r.untilReady()); diff != "" {
		r.t.Errorf("%s: %s", what, diff)
	}
}

func (r *raw) query(text string, want ...string) {
	r.t.Helper()
	r.send(&pgproto3.Query{String: text})
	if diff := cmp.Diff(want, r.untilReady()); diff != "" {
		r.t.Errorf("%s: %s", text, diff)
	}
}

// TestPlansKeepTheirResult makes a relation anew, with other columns, under what a client has prepared.
func TestPlansKeepTheirResult(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	r := greeted(t, n)
	other := nodetest.Connect(t, dsn(n, ""))
	other.Do("CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a')")
	r.ask("at first", []string{"ParseComplete", "ParseComplete", "ParseComplete", "I"},
		&pgproto3.Parse{Name: "all", Query: "SELECT * FROM t"}, &pgproto3.Parse{Name: "some", Query: "SELECT k FROM t WHERE v = $1"},
		&pgproto3.Parse{Name: "put", Query: "INSERT INTO t (k) VALUES (7) RETURNING *"})
	r.query("PREPARE named AS SELECT * FROM t", "PREPARE", "I")
	other.Do("DROP TABLE t", "CREATE TABLE t (k int PRIMARY KEY, v text, more int)", "INSERT INTO t VALUES (1, 'a', 2)", "FLUSH")
	for _, formats := range [][]int16{nil, {0, 1}, {1}} {
		r.ask("a column more", []string{"BindComplete", "0A000", "I"},
			&pgproto3.Bind{PreparedStatement: "all", ResultFormatCodes: formats}, &pgproto3.Execute{})
	}
	r.ask("columns that are the same", []string{"BindComplete", "1", "SELECT 1", "I"},
		&pgproto3.Bind{PreparedStatement: "some", Parameters: [][]byte{[]byte("a")}}, &pgproto3.Execute{})
	r.ask("nothing is written", []string{"BindComplete", "0A000", "I"}, &pgproto3.Bind{PreparedStatement: "put"}, &pgproto3.Execute{})
	r.query("SELECT k FROM t", "RowDescription", "1", "SELECT 1", "I")
	r.query("EXECUTE named", "0A000", "I")
	other.Do("DROP TABLE t", "CREATE TABLE t (k bigint PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 5)", "FLUSH")
	r.ask("another type", []string{"BindComplete", "0A000", "I"}, &pgproto3.Bind{PreparedStatement: "all"}, &pgproto3.Execute{})
	r.ask("a parameter stays what it was", []string{"BindComplete", "42883", "I"},
		&pgproto3.Bind{PreparedStatement: "some", Parameters: [][]byte{[]byte("5")}}, &pgproto3.Execute{})
	alive(t, n)
}

// TestNamesOfPreparedStatements: PREPARE and the protocol share them, as pools and drivers count on.
func TestNamesOfPreparedStatements(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	r := greeted(t, n)
	parse := &pgproto3.Parse{Name: "s", Query: "SELECT $1::int + 1"}
	bind := &pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{[]byte("1")}}
	r.ask("Parse", []string{"ParseComplete", "I"}, parse)
	r.query("EXECUTE s(4)", "RowDescription", "5", "SELECT 1", "I")
	r.query("PREPARE s AS SELECT 1", "42P05", "I")
	r.query("DEALLOCATE s", "DEALLOCATE", "I")
	r.query("DEALLOCATE s", "26000", "I")
	r.ask("Bind after DEALLOCATE", []string{"26000", "I"}, bind)
	for _, all := range []string{"DEALLOCATE ALL", "DISCARD ALL"} {
		r.ask("Parse before "+all, []string{"ParseComplete", "I"}, parse)
		r.query(all, all, "I")
		r.ask("Parse after "+all, []string{"ParseComplete", "I"}, parse)
		r.query("DEALLOCATE ALL", "DEALLOCATE ALL", "I")
	}
	r.query("PREPARE s AS SELECT $1::int + 1", "PREPARE", "I")
	r.ask("Bind after PREPARE", []string{"BindComplete", "2", "SELECT 1", "I"}, bind, &pgproto3.Execute{})
	r.ask("Parse after PREPARE", []string{"42P05", "I"}, parse)
	r.ask("Close after PREPARE", []string{"CloseComplete", "26000", "I"}, &pgproto3.Close{ObjectType: 'S', Name: "s"}, bind)
	// What would run itself for ever.
	r.query("PREPARE p AS EXECUTE p", "42601", "I")
	r.query("PREPARE p AS PREPARE p AS SELECT 1", "42601", "I")
	r.ask("EXECUTE of itself", []string{"ParseComplete", "BindComplete", "0A000", "I"},
		&pgproto3.Parse{Name: "p", Query: "EXECUTE p"}, &pgproto3.Bind{PreparedStatement: "p"}, &pgproto3.Execute{})
	r.ask("portals have names of their own", []string{"ParseComplete", "BindComplete", "42P03", "I"},
		&pgproto3.Parse{Query: "SELECT 1"}, &pgproto3.Bind{DestinationPortal: "c"}, &pgproto3.Bind{DestinationPortal: "c"})
	r.query("SELECT 1; SELECT 2", "RowDescription", "1", "SELECT 1", "RowDescription", "2", "SELECT 1", "I")
	alive(t, n)
}

// TestClientThatNeverSyncs asks for descriptions and binds parameters without an end: what the connection holds is bounded.
func TestClientThatNeverSyncs(t *testing.T) {
	n := nodetest.Start(t, nodetest.Options{Queries: 2 << 30})
	r := greeted(t, n)
	wide := "SELECT " + strings.TrimSuffix(strings.Repeat("1 AS "+strings.Repeat("x", 60)+",", 500), ",")
	r.send(&pgproto3.Parse{Name: "wide", Query: wide}, &pgproto3.Flush{})
	if _, err := r.f.Receive(); err != nil {
		t.Fatal(err)
	}
	done := make(chan int)
	go func() { // reads what comes
		got := 0
		defer func() { done <- got }()
		for {
			switch m, err := r.f.Receive(); {
			case err != nil:
				return
			default:
				switch m.(type) {
				case *pgproto3.RowDescription:
					got++
				case *pgproto3.ReadyForQuery:
					return
				}
			}
		}
	}()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most uint64
	const times, each = 200, 100
	w := pgproto3.NewFrontend(r.nc, r.nc)
	for range times {
		for range each {
			w.Send(&pgproto3.Describe{ObjectType: 'S', Name: "wide"})
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapAlloc)
	}
	w.Send(&pgproto3.Sync{})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got != times*each {
		t.Errorf("%d descriptions", got)
	}
	if grown := int64(most) - int64(before.HeapAlloc); grown > 128<<20 {
		t.Errorf("the heap has grown by %d MB", grown>>20)
	}
	// Parameters of portals that are never run.
	big := [][]byte{[]byte(strings.Repeat("x", 32<<20))}
	messages := []pgproto3.FrontendMessage{&pgproto3.Query{String: "BEGIN"}}
	r.send(messages...)
	r.untilReady()
	r.send(&pgproto3.Parse{Name: "one", Query: "SELECT $1::text"})
	for i := range 9 {
		r.send(&pgproto3.Bind{PreparedStatement: "one", DestinationPortal: string(rune('a' + i)), Parameters: big})
	}
	r.ask("portals", append(strings.Split("ParseComplete "+strings.Repeat("BindComplete ", 7)[:7*13-1], " "), "54000", "E"))
	r.query("ROLLBACK", "ROLLBACK", "I")
	r.ask("after that", []string{"BindComplete", "I"}, &pgproto3.Bind{PreparedStatement: "one", DestinationPortal: "a", Parameters: big})
}

// TestResetGoesBackToTheStartUp: what a client's start-up message sets is the default of its session.
func TestResetGoesBackToTheStartUp(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := nodetest.Connect(t, dsn(n, "&timezone=Europe/Berlin&statement_timeout=7s&application_name=mine"))
	show := func() string {
		return strings.Join([]string{c.Query("SHOW timezone")[0], c.Query("SHOW statement_timeout")[0], c.Query("SHOW application_name")[0], c.Query("SELECT timestamptz '2024-07-01 12:00+00'")[0]}, " ")
	}
	want := "Europe/Berlin 7s mine 2024-07-01 14:00:00+02"
	for _, reset := range []string{"RESET ALL", "DISCARD ALL", "SET timezone TO DEFAULT; RESET statement_timeout; SET application_name TO DEFAULT"} {
		c.Do("SET timezone = 'UTC'; SET statement_timeout = 0; SET application_name = ''", reset)
		if got := show(); got != want {
			t.Errorf("after %s: %s", reset, got)
		}
	}
	c.Do("SET application_name = ''", "BEGIN", "SET LOCAL application_name = 'other'", "COMMIT")
	if got := c.Query("SHOW application_name")[0]; got != "" {
		t.Errorf("after SET LOCAL: %q", got)
	}
}

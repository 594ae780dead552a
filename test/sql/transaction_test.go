package sql

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/leat-io/leat/internal/testpg"
	"github.com/leat-io/leat/test/nodetest"
)

// transactionScripts are what clients send, message by message. A line that begins with "> " is sent as a pipeline of the extended protocol with one Sync, its
// statements divided by " >> "; any other is one simple query.
var transactionScripts = map[string]string{
	"an error takes back what came before it in the message": `
		INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (1, 'b'); INSERT INTO t VALUES (2, 'c')
		SELECT * FROM t ORDER BY k`,
	"what comes after an error is not run": `
		INSERT INTO t VALUES (1, 'a'); SELECT 1/0; INSERT INTO t VALUES (2, 'c')
		INSERT INTO t VALUES (3, 'd'); SELECT k FROM t; SELECT nothing
		SELECT * FROM t ORDER BY k`,
	"a message sees its own rows": `
		INSERT INTO t VALUES (1, 'a'); UPDATE t SET v = v || 'b'; SELECT * FROM t; DELETE FROM t; SELECT count(*) FROM t; INSERT INTO t VALUES (1, 'z')
		SELECT * FROM t`,
	"BEGIN within a message takes in what came before": `
		INSERT INTO t VALUES (1, 'a'); BEGIN; INSERT INTO t VALUES (2, 'b')
		SELECT count(*) FROM t
		ROLLBACK
		SELECT count(*) FROM t`,
	"COMMIT within a message keeps what came before": `
		BEGIN; INSERT INTO t VALUES (1, 'a'); COMMIT; INSERT INTO t VALUES (2, 'b'); INSERT INTO t VALUES (2, 'c')
		SELECT * FROM t ORDER BY k`,
	"COMMIT without BEGIN warns and commits": `
		INSERT INTO t VALUES (1, 'a'); COMMIT; INSERT INTO t VALUES (2, 'b'); INSERT INTO t VALUES (2, 'c')
		SELECT * FROM t ORDER BY k
		COMMIT`,
	"ROLLBACK without BEGIN warns and takes back": `
		INSERT INTO t VALUES (1, 'a'); ROLLBACK; INSERT INTO t VALUES (2, 'b')
		SELECT * FROM t ORDER BY k
		ROLLBACK`,
	"BEGIN twice": `
		BEGIN
		BEGIN
		INSERT INTO t VALUES (1, 'a')
		COMMIT
		SELECT * FROM t`,
	"a query does not meet what its INSERT stores": `
		INSERT INTO t SELECT 1, 'a'
		INSERT INTO t SELECT k + 1, v FROM t
		INSERT INTO t SELECT k + 2, v FROM t
		INSERT INTO t SELECT k + 4, v FROM t
		INSERT INTO t SELECT k + 8, v FROM t
		INSERT INTO t SELECT k + 16, v FROM t
		INSERT INTO t SELECT k + 32, v FROM t
		INSERT INTO t SELECT k + 64, v FROM t
		INSERT INTO t SELECT k + 128, v FROM t
		INSERT INTO t SELECT k + 256, v FROM t
		INSERT INTO t SELECT k + 512, v FROM t
		INSERT INTO t SELECT k + 1024, v FROM t
		INSERT INTO t SELECT k + 2048, v FROM t
		INSERT INTO t SELECT k + 4096, v FROM t
		SELECT count(*), max(k) FROM t
		BEGIN
		INSERT INTO t SELECT k + 8192, v FROM t
		INSERT INTO t SELECT k + 16384, v FROM t
		SELECT count(*), max(k) FROM t
		INSERT INTO t SELECT k + 1, 'b' FROM t ON CONFLICT (k) DO UPDATE SET v = excluded.v || t.v
		SELECT count(*), max(k), max(length(v)) FROM t
		ROLLBACK
		SELECT count(*), max(k) FROM t`,
	"a failed transaction answers nothing until it ends": `
		BEGIN
		INSERT INTO t VALUES (1, 'a')
		SELECT * FROM nothing
		SELECT 1
		INSERT INTO t VALUES (2, 'b'); SELECT 2
		COMMIT
		SELECT * FROM t`,
	"a syntax error fails the transaction": `
		BEGIN
		INSERT INTO t VALUES (1, 'a')
		SELEC 1
		COMMIT
		SELECT * FROM t`,
	"a message whose last statement does not parse does nothing": `
		INSERT INTO t VALUES (1, 'a'); SELEC 1
		SELECT * FROM t`,
	"savepoints": `
		BEGIN
		INSERT INTO t VALUES (1, 'a')
		SAVEPOINT s
		INSERT INTO t VALUES (2, 'b')
		UPDATE t SET v = 'changed'
		DELETE FROM t WHERE k = 1
		ROLLBACK TO s
		SELECT * FROM t ORDER BY k
		INSERT INTO t VALUES (3, 'c')
		RELEASE s
		ROLLBACK TO s
		COMMIT
		SELECT * FROM t`,
	"a savepoint heals a failed transaction": `
		BEGIN
		INSERT INTO t VALUES (1, 'a')
		SAVEPOINT s
		INSERT INTO t VALUES (1, 'again')
		SELECT 1
		SAVEPOINT u
		RELEASE s
		ROLLBACK TO SAVEPOINT s
		INSERT INTO t VALUES (2, 'b')
		COMMIT
		SELECT * FROM t ORDER BY k`,
	"savepoints of one name cover each other": `
		BEGIN
		SAVEPOINT s
		INSERT INTO t VALUES (1, 'a')
		SAVEPOINT s
		INSERT INTO t VALUES (2, 'b')
		ROLLBACK TO s
		SELECT count(*) FROM t
		RELEASE s
		ROLLBACK TO s
		SELECT count(*) FROM t
		SAVEPOINT outer_one
		SAVEPOINT inner_one
		ROLLBACK TO outer_one
		ROLLBACK TO inner_one
		ROLLBACK TO outer_one
		COMMIT`,
	"savepoints need a transaction": `
		SAVEPOINT s
		RELEASE s
		ROLLBACK TO s
		SELECT 1; SAVEPOINT s
		BEGIN; SAVEPOINT s; COMMIT`,
	"settings go back with the transaction": `
		BEGIN
		SET application_name = 'one'
		SAVEPOINT s
		SET application_name = 'two'
		SET LOCAL timezone = 'Asia/Tokyo'
		SHOW timezone
		ROLLBACK TO s
		SHOW application_name
		SHOW timezone
		ROLLBACK
		SHOW application_name
		SET application_name = 'three'; SELECT 1/0
		SHOW application_name
		BEGIN; SET LOCAL application_name = 'four'; COMMIT
		SHOW application_name
		SET LOCAL application_name = 'five'
		SHOW application_name
		SET LOCAL application_name = 'six'; SHOW application_name
		SHOW application_name`,
	"chains": `
		BEGIN
		INSERT INTO t VALUES (1, 'a')
		COMMIT AND CHAIN
		INSERT INTO t VALUES (2, 'b')
		ROLLBACK AND CHAIN
		INSERT INTO t VALUES (3, 'c')
		COMMIT
		COMMIT AND CHAIN
		SELECT k FROM t ORDER BY k`,
	"read-only transactions": `
		BEGIN READ ONLY
		INSERT INTO t VALUES (1, 'a')
		ROLLBACK
		BEGIN
		SET TRANSACTION READ ONLY
		INSERT INTO t VALUES (1, 'a')
		ROLLBACK
		SET default_transaction_read_only = 'true'
		INSERT INTO t VALUES (1, 'a')
		SHOW default_transaction_read_only
		RESET default_transaction_read_only
		SELECT * FROM t`,
	"now() is the start of the transaction": `
		BEGIN
		INSERT INTO t SELECT 1, now()::text
		SELECT v = now()::text FROM t
		COMMIT
		SELECT v = now()::text FROM t
		DELETE FROM t; INSERT INTO t SELECT 1, now()::text; SELECT v = now()::text FROM t`,
	"a pipeline is one transaction": `
		> INSERT INTO t VALUES (1, 'a') >> INSERT INTO t VALUES (2, 'b') >> SELECT count(*) FROM t
		> INSERT INTO t VALUES (3, 'c') >> INSERT INTO t VALUES (3, 'd') >> INSERT INTO t VALUES (4, 'e')
		SELECT k FROM t ORDER BY k
		> BEGIN >> INSERT INTO t VALUES (5, 'f')
		> INSERT INTO t VALUES (6, 'g') >> COMMIT >> INSERT INTO t VALUES (7, 'h') >> SELECT 1/0
		SELECT k FROM t ORDER BY k
		> INSERT INTO t VALUES (8, 'i') >> SELECT nothing
		> INSERT INTO t VALUES (9, 'j') >> ROLLBACK
		SELECT k FROM t ORDER BY k`,
	"timeouts are shown in their units": `
		SET statement_timeout = 1500
		SHOW statement_timeout
		SET statement_timeout = '2 min'
		SHOW statement_timeout
		SET lock_timeout = '3s'
		SHOW lock_timeout
		SET statement_timeout = '1 fortnight'
		SET statement_timeout = -1
		SET statement_timeout = 0
		SHOW statement_timeout
		SET idle_in_transaction_session_timeout = '1h'
		SHOW idle_in_transaction_session_timeout`,
}

// TestTransactionsAsInPostgreSQL sends the same messages to Leat and to PostgreSQL and compares everything that comes back: tags, rows, SQLSTATEs, warnings, and
// the state of the transaction after each.
func TestTransactionsAsInPostgreSQL(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	leat, err := pgconn.Connect(t.Context(), "postgres://me@"+n.PostgresAddr()+"/leat?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer leat.Close(t.Context())
	oracle := testpg.Connect(t).PgConn()
	for name, script := range transactionScripts {
		t.Run(name, func(t *testing.T) {
			ours, theirs := transcript(t, leat, script), transcript(t, oracle, script)
			if diff := cmp.Diff(strings.Split(theirs, "\n"), strings.Split(ours, "\n")); diff != "" {
				t.Errorf("PostgreSQL's answers (-) and ours (+):\n%s", diff)
			}
		})
	}
}

// transcript is what a server answers to a script.
func transcript(t *testing.T, c *pgconn.PgConn, script string) string {
	t.Helper()
	var out strings.Builder
	ask := func(line string) {
		statements, extended := strings.CutPrefix(line, "> ")
		f := c.Frontend()
		if !extended {
			f.Send(&pgproto3.Query{String: line})
		} else {
			for _, s := range strings.Split(statements, " >> ") {
				f.Send(&pgproto3.Parse{Query: s})
				f.Send(&pgproto3.Bind{})
				f.Send(&pgproto3.Execute{})
			}
			f.Send(&pgproto3.Sync{})
		}
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
		for {
			m, err := f.Receive()
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			switch m := m.(type) {
			case *pgproto3.DataRow:
				out.WriteString(" (" + string(bytes.Join(m.Values, []byte("|"))) + ")")
			case *pgproto3.CommandComplete:
				out.WriteString(" " + string(m.CommandTag))
			case *pgproto3.ErrorResponse:
				out.WriteString(" " + m.Severity + " " + m.Code)
			case *pgproto3.NoticeResponse:
				out.WriteString(" " + m.Severity + " " + m.Code)
			case *pgproto3.ParameterStatus:
				out.WriteString(" " + m.Name + "=" + m.Value)
			case *pgproto3.ReadyForQuery:
				out.WriteString(" " + string(m.TxStatus) + "\n")
				return
			}
		}
	}
	for _, line := range []string{"ROLLBACK", "RESET ALL", "DROP TABLE IF EXISTS t", "CREATE TABLE t (k int PRIMARY KEY, v text)"} {
		ask(line)
	}
	out.Reset()
	for line := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
		line = strings.TrimSpace(line)
		out.WriteString(line + " :")
		ask(line)
	}
	return out.String()
}

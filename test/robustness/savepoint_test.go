package robustness

import (
	"testing"
)

// TestRollbackToGivesTablesBack: a table that was first written to behind a savepoint is free for others when the transaction has gone back to it, and can
// be written to by it again; one that was written to before is not.
func TestRollbackToGivesTablesBack(t *testing.T) {
	t.Parallel()
	n := start(t, config(t.TempDir()))
	run(t, n, `CREATE TABLE before (a int PRIMARY KEY); CREATE TABLE since (a int PRIMARY KEY)`)
	first, second := session(t, n), session(t, n)
	do := func(sql string) {
		t.Helper()
		if _, err := ask(t.Context(), first, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	do(`BEGIN`)
	do(`INSERT INTO before VALUES (1)`)
	do(`SAVEPOINT s`)
	do(`INSERT INTO since VALUES (1)`)
	do(`INSERT INTO before VALUES (2)`)
	do(`SAVEPOINT inner_one`)
	do(`ROLLBACK TO s`)
	if _, err := ask(t.Context(), second, `INSERT INTO since VALUES (1), (2)`); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t.Context(), second, `SET statement_timeout = '300ms'; INSERT INTO before VALUES (9)`); err == nil {
		t.Error("another session has written to a table that the transaction holds")
	}
	do(`INSERT INTO since VALUES (3)`)
	do(`ROLLBACK TO s`)
	do(`INSERT INTO since VALUES (4)`)
	do(`COMMIT`)
	for table, want := range map[string]string{"since": "3|7", "before": "1|1"} {
		if got := run(t, n, `FLUSH; SELECT count(*) || '|' || sum(a) FROM `+table); got != want {
			t.Errorf("%s has %s, want %s", table, got, want)
		}
	}
}

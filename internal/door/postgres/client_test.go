package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leat-io/leat/test/nodetest"
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), nodetest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func dsn(n *nodetest.Node, more string) string {
	return "postgres://somebody@" + n.PostgresAddr() + "/anything?sslmode=disable" + more
}

func connect(t *testing.T, n *nodetest.Node) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(within(t), dsn(n, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// wantCode checks the SQLSTATE of an error.
func wantCode(t *testing.T, err error, code string) *pgconn.PgError {
	t.Helper()
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		t.Fatalf("got %v, want SQLSTATE %s", err, code)
	}
	if pg.Code != code {
		t.Fatalf("got SQLSTATE %s (%s), want %s", pg.Code, pg.Message, code)
	}
	return pg
}

// values has one value of every type: the column, PostgreSQL's text of it, and a literal.
var values = []struct{ typ, text string }{
	{"boolean", "t"},
	{"smallint", "-32768"},
	{"integer", "2147483647"},
	{"bigint", "-9223372036854775808"},
	{"real", "1.5"},
	{"double precision", "-0.1"},
	{"numeric", "12345678901234567890.0123456789"},
	{"numeric(10,2)", "-3.10"},
	{"text", "größer, 日本 and 'quotes' \\ \t"},
	{"varchar(5)", "abcde"},
	{"bytea", `\x00ff10`},
	{"date", "2024-02-29"},
	{"time", "23:59:59.999999"},
	{"timestamp", "1999-12-31 23:59:59.000001"},
	{"timestamptz", "2024-07-01 12:00:00+00"},
	{"interval", "1 year 2 mons 3 days 04:05:06.7"},
	{"jsonb", `{"a": [1, null, "x"]}`},
}

// TestValuesMakeTheRoundTrip sends a value of every type as a text and as a binary parameter, and reads it in both formats.
func TestValuesMakeTheRoundTrip(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := connect(t, n)
	ctx := within(t)
	var columns []string
	for i, v := range values {
		columns = append(columns, fmt.Sprintf("c%d %s", i, v.typ))
	}
	if _, err := c.Exec(ctx, "CREATE TABLE every (id int PRIMARY KEY, "+strings.Join(columns, ", ")+")"); err != nil {
		t.Fatal(err)
	}
	var places []string
	params := [][]byte{[]byte("1")}
	for i, v := range values {
		places = append(places, fmt.Sprintf("$%d", i+2))
		params = append(params, []byte(v.text))
	}
	insert := "INSERT INTO every VALUES ($1, " + strings.Join(places, ", ") + ")"
	if r := c.PgConn().ExecParams(ctx, insert, params, nil, nil, nil).Read(); r.Err != nil {
		t.Fatal(r.Err)
	} else if tag := r.CommandTag.String(); tag != "INSERT 0 1" {
		t.Errorf("tag %q", tag)
	}
	// The binary result of the first row is the binary parameter of the second.
	binary := c.PgConn().ExecParams(ctx, "SELECT * FROM every WHERE id = 1", nil, nil, nil, []int16{1}).Read()
	if binary.Err != nil || len(binary.Rows) != 1 {
		t.Fatalf("%d rows, %v", len(binary.Rows), binary.Err)
	}
	second := append([][]byte{{0, 0, 0, 2}}, binary.Rows[0][1:]...)
	if r := c.PgConn().ExecParams(ctx, insert, second, nil, []int16{1}, nil).Read(); r.Err != nil {
		t.Fatal(r.Err)
	}
	nulls := make([][]byte, len(params))
	nulls[0] = []byte("3")
	if r := c.PgConn().ExecParams(ctx, insert, nulls, nil, nil, nil).Read(); r.Err != nil {
		t.Fatal(r.Err)
	}
	text := c.PgConn().ExecParams(ctx, "SELECT * FROM every ORDER BY id", nil, nil, nil, nil).Read()
	if text.Err != nil || len(text.Rows) != 3 {
		t.Fatalf("%d rows, %v", len(text.Rows), text.Err)
	}
	for row := range 2 {
		for i, v := range values {
			if got := string(text.Rows[row][i+1]); got != v.text {
				t.Errorf("row %d, %s: got %q, want %q", row+1, v.typ, got, v.text)
			}
		}
	}
	for i, v := range values {
		if text.Rows[2][i+1] != nil {
			t.Errorf("%s: NULL came back as %q", v.typ, text.Rows[2][i+1])
		}
	}
	// What a Go program scans, through pgx's own codecs.
	var (
		b       bool
		i8      int64
		f       float64
		s       string
		raw     []byte
		day, at time.Time
		doc     map[string]any
	)
	err := c.QueryRow(ctx, "SELECT c0, c3, c5, c8, c10, c11, c14, c16 FROM every WHERE id = $1", 2).Scan(&b, &i8, &f, &s, &raw, &day, &at, &doc)
	if err != nil {
		t.Fatal(err)
	}
	if !b || i8 != -9223372036854775808 || f != -0.1 || s != values[8].text || string(raw) != "\x00\xff\x10" ||
		day.Format(time.DateOnly) != "2024-02-29" || !at.Equal(time.Date(2024, 7, 1, 12, 0, 0, 0, time.UTC)) || len(doc) != 1 {
		t.Errorf("scanned %v %v %v %q %x %v %v %v", b, i8, f, s, raw, day, at, doc)
	}
}

func TestBadParametersAreNamed(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := connect(t, n).PgConn()
	for name, test := range map[string]struct {
		sql     string
		param   string
		formats []int16
		code    string
	}{
		"text that is no number":        {"SELECT $1::int", "x", nil, "22P02"},
		"out of range":                  {"SELECT $1::smallint", "40000", nil, "22003"},
		"invalid UTF-8":                 {"SELECT $1::text", "a\xff", nil, "22021"},
		"invalid UTF-8, binary":         {"SELECT $1::text", "a\xff", []int16{1}, "22021"},
		"a zero byte":                   {"SELECT $1::text", "a\x00b", nil, "22021"},
		"a binary integer of 3 bytes":   {"SELECT $1::int", "abc", []int16{1}, "22P03"},
		"a binary numeric cut short":    {"SELECT $1::numeric", "\x00\x01", []int16{1}, "22P03"},
		"a binary boolean of 0 bytes":   {"SELECT $1::boolean", "", []int16{1}, "22P03"},
		"a binary jsonb of version 9":   {"SELECT $1::jsonb", "\x09{}", []int16{1}, "0A000"},
		"a format that is not known":    {"SELECT $1::int", "1", []int16{7}, "22023"},
		"a binary numeric, giant count": {"SELECT $1::numeric", "\x7f\xff\x00\x00\x00\x00\x00\x00", []int16{1}, "22P03"},
	} {
		r := c.ExecParams(within(t), test.sql, [][]byte{[]byte(test.param)}, nil, test.formats, nil).Read()
		var pg *pgconn.PgError
		if !errors.As(r.Err, &pg) || pg.Code != test.code {
			t.Errorf("%s: got %v, want SQLSTATE %s", name, r.Err, test.code)
		}
		if c.IsClosed() {
			t.Fatalf("%s has ended the session", name)
		}
	}
}

// TestErrorsHaveCodeAndPosition counts positions in characters, as clients do, in the simple and the extended protocol.
func TestErrorsHaveCodeAndPosition(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := connect(t, n)
	for _, test := range []struct {
		sql, code string
		position  int32
	}{
		{"SELECT 1 +", "42601", 11},
		{"SELECT nothing", "42703", 8},
		{"SELECT 'grüße 日本' AS é, nothing", "42703", 25},
		{"/* 日本 */ SELECT * FROM missing", "42P01", 24},
		{"SELECT 1 FROM pg_catalog.pg_class c", "0A000", 15}, // as psql does for \d
		{"SELECT 1/0", "22012", 0},
		{"SELECT 'x'::int", "22P02", 8},
		{"SELEC 1", "42601", 1},
		{"SELECT 'unterminated", "42601", 8},
		{"SELECT nosuch(1)", "42883", 8},
	} {
		for protocol, run := range map[string]func() error{
			"simple":   func() error { _, err := c.PgConn().Exec(within(t), test.sql).ReadAll(); return err },
			"extended": func() error { return c.PgConn().ExecParams(within(t), test.sql, nil, nil, nil, nil).Read().Err },
		} {
			pg := wantCode(t, run(), test.code)
			if test.position > 0 && pg.Position != test.position {
				t.Errorf("%s, %s: position %d, want %d (%s)", protocol, test.sql, pg.Position, test.position, pg.Message)
			}
		}
	}
	// In the second of two statements the position is in the whole text.
	_, err := c.PgConn().Exec(within(t), "SELECT 'é'; SELECT nothing").ReadAll()
	if pg := wantCode(t, err, "42703"); pg.Position != 20 {
		t.Errorf("position %d, want 20", pg.Position)
	}
	// The statement inside PREPARE is another text than EXECUTE's.
	if _, err := c.PgConn().Exec(within(t), "PREPARE p AS SELECT 10 / $1::int").ReadAll(); err != nil {
		t.Fatal(err)
	}
	_, err = c.PgConn().Exec(within(t), "EXECUTE p(0)").ReadAll()
	if pg := wantCode(t, err, "22012"); pg.Position > 12 {
		t.Errorf("position %d is behind the end of the text", pg.Position)
	}
	if _, err := c.Exec(within(t), "SELECT 1"); err != nil {
		t.Errorf("the session does not go on: %v", err)
	}
}

func TestFailedTransaction(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := connect(t, n)
	ctx := within(t)
	exec := func(sql string) error { _, err := c.Exec(ctx, sql); return err }
	if err := exec("CREATE TABLE t (k int PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(exec("BEGIN"), exec("INSERT INTO t VALUES (1)")); err != nil {
		t.Fatal(err)
	}
	wantCode(t, exec("INSERT INTO t VALUES (1)"), "23505")
	if s := c.PgConn().TxStatus(); s != 'E' {
		t.Errorf("status %c, want E", s)
	}
	wantCode(t, exec("SELECT 1"), "25P02")
	wantCode(t, exec("SELECT nonsense ,,"), "42601")
	r, err := c.PgConn().Exec(ctx, "COMMIT").ReadAll()
	if err != nil || r[0].CommandTag.String() != "ROLLBACK" {
		t.Errorf("COMMIT of a failed transaction: %v, %v", r, err)
	}
	var count int
	if err := c.QueryRow(ctx, "SELECT count(*) FROM t").Scan(&count); err != nil || count != 0 {
		t.Errorf("%d rows, %v", count, err)
	}
	// The same through pgx's transactions.
	tx, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "INSERT INTO t VALUES ($1)", 7); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM t").Scan(&count); err != nil || count != 1 {
		t.Errorf("a transaction sees %d of its rows, %v", count, err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if s := c.PgConn().TxStatus(); s != 'I' {
		t.Errorf("status %c, want I", s)
	}
}

func TestSessionFunctions(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := nodetest.Connect(t, dsn(n, "&application_name=probe"))
	for sql, want := range map[string]string{
		"SELECT current_user, session_user, user, current_role, current_user": "somebody|somebody|somebody|somebody|somebody",
		"SELECT current_database(), current_catalog":                          "anything|anything",
		"SELECT current_schema(), current_schema":                             "public|public",
		"SELECT current_setting('server_version_num')::int >= 140000":         "t",
		"SELECT current_setting('Application_Name')":                          "probe",
		"SELECT current_setting('no.such', true) IS NULL":                     "t",
		"SELECT version() LIKE 'PostgreSQL %'":                                "t",
		"SELECT pg_catalog.version() LIKE 'PostgreSQL %'":                     "t",
		"SELECT pg_backend_pid()":                                             fmt.Sprint(c.PID()),
		"SELECT pg_is_in_recovery()":                                          "f",
		"SHOW server_version_num":                                             "150000",
		"SHOW application_name":                                               "probe",
		"SELECT 1 WHERE current_user = 'somebody'":                            "1",
	} {
		if got := c.Query(sql); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	_, err := c.Run("SELECT current_setting('no.such')")
	wantCode(t, err, "42704")
	c.Do("CREATE TABLE who (k int PRIMARY KEY)")
	_, err = c.Run("CREATE MATERIALIZED VIEW v AS SELECT k, current_user AS u FROM who")
	wantCode(t, err, "0A000")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := nodetest.Connect(t, dsn(n, "&options=-c%20timezone%3DEurope/Berlin&something_unknown=1"))
	if got := c.Query("SELECT '2024-07-01 12:00:00+00'::timestamptz"); got[0] != "2024-07-01 14:00:00+02" {
		t.Errorf("a time zone of the start-up options: %q", got)
	}
	if got := c.ParameterStatus("TimeZone"); got != "Europe/Berlin" {
		t.Errorf("TimeZone is reported as %q", got)
	}
	c.Do("SET streaming_parallelism = 4")
	if len(c.Notices) != 1 || !strings.Contains(c.Notices[0], "streaming_parallelism") {
		t.Errorf("notices of a SET of something unknown: %q", c.Notices)
	}
	for sql, code := range map[string]string{
		"SET timezone = 'Nowhere/Land'":     "22023",
		"SET client_encoding = 'LATIN1'":    "0A000",
		"SET server_version = '1'":          "55P02",
		"SET statement_timeout = 'soon'":    "22023",
		"SHOW nothing_of_the_kind":          "42704",
		"COPY t FROM STDIN":                 "0A000",
		"LISTEN x":                          "0A000",
		"SAVEPOINT s":                       "25P01",
		"SELECT $1":                         "42P02",
		"EXECUTE nothing":                   "26000",
		"DEALLOCATE nothing":                "26000",
		"SELECT '\xff'":                     "22021",
		"CREATE DATABASE x":                 "0A000",
		"SELECT * FROM t; COPY t TO STDOUT": "42P01",
	} {
		_, err := c.Run(sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != code {
			t.Errorf("%s: %v, want SQLSTATE %s", sql, err, code)
		}
		if c.IsClosed() {
			t.Fatalf("%s has ended the session", sql)
		}
	}
	c.Do("SET TIME ZONE 'UTC'", "BEGIN", "SET LOCAL timezone = 'Asia/Tokyo'")
	if got := c.Query("SHOW timezone"); got[0] != "Asia/Tokyo" {
		t.Errorf("SET LOCAL: %q", got)
	}
	c.Do("COMMIT")
	if got := c.Query("SHOW timezone"); got[0] != "UTC" {
		t.Errorf("after SET LOCAL: %q", got)
	}
	c.Do("RESET ALL", "DISCARD ALL")
}

func TestSimpleQueryOfSeveralStatements(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := nodetest.Connect(t, dsn(n, ""))
	results, err := c.Exec(within(t), "SELECT 1 AS a; SELECT 2 AS b, 3 AS c;;").ReadAll()
	if err != nil || len(results) != 2 || string(results[1].Rows[0][1]) != "3" {
		t.Errorf("%v, %v", results, err)
	}
	for _, empty := range []string{"", ";", "  -- nothing\n", "/* nothing */;;"} {
		if results, err := c.Exec(within(t), empty).ReadAll(); err != nil || len(results) > 1 {
			t.Errorf("%q: %v, %v", empty, results, err)
		}
		if r := c.ExecParams(within(t), empty, nil, nil, nil, nil).Read(); r.Err != nil {
			t.Errorf("%q, extended: %v", empty, r.Err)
		}
	}
	// Those before the one that fails have been answered; those after it are not run.
	results, err = c.Exec(within(t), "SELECT 1; SELECT 1/0; CREATE TABLE never (k int PRIMARY KEY)").ReadAll()
	wantCode(t, err, "22012")
	if len(results) == 0 || string(results[0].Rows[0][0]) != "1" {
		t.Errorf("the first statement's result is missing: %v", results)
	}
	if _, err := c.Run("SELECT * FROM never"); err == nil {
		t.Error("a statement after the one that failed was run")
	}
}

func TestPreparedStatements(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := connect(t, n)
	ctx := within(t)
	if _, err := c.Exec(ctx, "CREATE TABLE t (k int PRIMARY KEY, v text, n numeric(8,3), big varchar(20))"); err != nil {
		t.Fatal(err)
	}
	d, err := c.PgConn().Prepare(ctx, "find", "SELECT k, v, n, big FROM t WHERE k = $1 AND v LIKE $2", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint32{23, 25}, d.ParamOIDs); diff != "" {
		t.Error("parameters:", diff)
	}
	var oids []uint32
	for _, f := range d.Fields {
		oids = append(oids, f.DataTypeOID)
	}
	if diff := cmp.Diff([]uint32{23, 25, 1700, 1043}, oids); diff != "" {
		t.Error("columns:", diff)
	}
	if m := d.Fields[2].TypeModifier; m != 8<<16|3+4 {
		t.Errorf("numeric(8,3) has the modifier %d", m)
	}
	_, err = c.PgConn().Prepare(ctx, "find", "SELECT 1", nil)
	wantCode(t, err, "42P05")
	for i := range 3 {
		if _, err := c.Exec(ctx, "INSERT INTO t VALUES ($1, $2, $3, 'x')", i, fmt.Sprint("v", i), float64(i)/8); err != nil {
			t.Fatal(err)
		}
	}
	// It follows the catalog: a table that was dropped is missing, and found again when it is back.
	find := func() error {
		return c.PgConn().ExecPrepared(ctx, "find", [][]byte{[]byte("1"), []byte("v%")}, nil, nil).Read().Err
	}
	if err := find(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(ctx, "DROP TABLE t"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, find(), "42P01")
	if err := c.PgConn().Deallocate(ctx, "find"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, find(), "26000")
	wantCode(t, c.PgConn().ExecParams(ctx, "SELECT 1; SELECT 2", nil, nil, nil, nil).Read().Err, "42601")
	wantCode(t, c.PgConn().ExecParams(ctx, "SELECT $1::int, $2::int", [][]byte{[]byte("1")}, nil, nil, nil).Read().Err, "08P01")
}

func TestPipelines(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := connect(t, n)
	ctx := within(t)
	if _, err := c.Exec(ctx, "CREATE TABLE t (k int PRIMARY KEY, v text)"); err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	for i := range 100 {
		batch.Queue("INSERT INTO t VALUES ($1, $2)", i, fmt.Sprint(i))
	}
	batch.Queue("SELECT count(*) FROM t")
	results := c.SendBatch(ctx, batch)
	for range 100 {
		if _, err := results.Exec(); err != nil {
			t.Fatal(err)
		}
	}
	var count int
	if err := results.QueryRow().Scan(&count); err != nil || count != 100 {
		t.Errorf("%d rows, %v", count, err)
	}
	if err := results.Close(); err != nil {
		t.Fatal(err)
	}
	// After an error everything up to the next Sync is passed over.
	p := c.PgConn().StartPipeline(ctx)
	p.SendQueryParams("INSERT INTO t VALUES (1000, 'a')", nil, nil, nil, nil)
	p.SendQueryParams("INSERT INTO t VALUES (1000, 'b')", nil, nil, nil, nil)
	p.SendQueryParams("INSERT INTO t VALUES (1001, 'c')", nil, nil, nil, nil)
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	p.SendQueryParams("INSERT INTO t VALUES (1002, 'd')", nil, nil, nil, nil)
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "23505" {
			t.Fatal(err)
		}
	}
	other := nodetest.Connect(t, dsn(n, ""))
	other.Do("FLUSH") // it wrote none of these, and so need not see them at once
	got := other.Query("SELECT k, v FROM t WHERE k >= 1001 ORDER BY k")
	if diff := cmp.Diff([]string{"1002|d"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCancelAndTimeout(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := connect(t, n)
	ctx := within(t)
	if _, err := c.Exec(ctx, "CREATE TABLE t (k int PRIMARY KEY, g int)"); err != nil {
		t.Fatal(err)
	}
	for from := 0; from < 20_000; from += 2000 {
		var rows []string
		for k := range 2000 {
			rows = append(rows, fmt.Sprintf("(%d,1)", from+k))
		}
		if _, err := c.Exec(ctx, "INSERT INTO t VALUES "+strings.Join(rows, ",")); err != nil {
			t.Fatal(err)
		}
	}
	const slow = "SELECT count(*) FROM t a JOIN t b ON a.g = b.g JOIN t c ON b.g = c.g" // 8 * 10^12 pairs
	done := make(chan error, 1)
	go func() {
		_, err := c.PgConn().Exec(ctx, slow).ReadAll()
		done <- err
	}()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for cancelled := false; !cancelled; {
		select {
		case err := <-done: // a request that comes before the statement has no effect: ask again until it has
			pg := wantCode(t, err, "57014")
			if !strings.Contains(pg.Message, "user request") {
				t.Errorf("message %q", pg.Message)
			}
			cancelled = true
		case <-ticker.C:
			if err := c.PgConn().CancelRequest(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.Exec(ctx, "SET statement_timeout = '100ms'"); err != nil {
		t.Fatal(err)
	}
	for _, run := range []func() error{
		func() error { _, err := c.PgConn().Exec(ctx, slow).ReadAll(); return err },
		func() error { return c.PgConn().ExecParams(ctx, slow, nil, nil, nil, nil).Read().Err },
	} {
		if pg := wantCode(t, run(), "57014"); !strings.Contains(pg.Message, "statement timeout") {
			t.Errorf("message %q", pg.Message)
		}
	}
	if _, err := c.Exec(ctx, "SET statement_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	var count int
	if err := c.QueryRow(ctx, "SELECT count(*) FROM t").Scan(&count); err != nil || count != 20_000 {
		t.Errorf("%d rows, %v", count, err)
	}
}

// TestPsql talks through PostgreSQL's own client.
func TestPsql(t *testing.T) {
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Fatal("psql is needed: install postgresql-client")
	}
	n := nodetest.Start(t, nodetest.Options{})
	host, port, _ := strings.Cut(n.PostgresAddr(), ":")
	run := func(in string, args ...string) string {
		cmd := exec.CommandContext(within(t), psql, append([]string{"-X", "-h", host, "-p", port, "-U", "anna", "-d", "shop"}, args...)...)
		cmd.Stdin = strings.NewReader(in)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	script := `CREATE TABLE t (k int PRIMARY KEY, v text);
INSERT INTO t VALUES (1, 'é'), (2, NULL);
COPY t FROM STDIN;
SELECT * FROM t ORDER BY k;
SELECT nothing;
SELECT count(*) FROM t
\g
`
	got := run(script, "-A", "-t")
	for _, want := range []string{"CREATE TABLE\n", "INSERT 0 2\n", "COPY is not supported", "1|é\n2|\n", "\n2\n", "column \"nothing\" does not exist", "LINE 1: SELECT nothing", "^"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if got := run("", "-A", "-t", "-c", "SELECT current_user || '@' || current_database()"); got != "anna@shop\n" {
		t.Errorf("%q", got)
	}
	if got := run("", "-l"); strings.Contains(got, "server closed the connection") {
		t.Errorf("psql -l: %s", got)
	}
}

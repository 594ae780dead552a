package sql

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/testpg"
	"github.com/leat-io/leat/test/nodetest"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the random tests; 0 takes one from the clock, and prints it")
	steps = flag.Int("steps", 60, "statements of a random history")
)

// oracleTables are what the histories change. Values are few, so that groups gain and lose rows, keys meet, and groups become empty.
var oracleTables = []string{
	"CREATE TABLE a (id int PRIMARY KEY, g int, s text, n numeric(12,3), d double precision, ts timestamp, b boolean)",
	"CREATE TABLE b (id int PRIMARY KEY, g int, label text, w bigint)",
	"CREATE TABLE c (k text PRIMARY KEY, g int NOT NULL, day date)",
}

// oracleViews are the queries; $view(n) names the n-th of them.
var oracleViews = []string{
	"SELECT id, g * 2 AS g2, upper(s) AS s FROM a WHERE g > 1",
	"SELECT g, count(*) AS n, count(s) AS ns, count(n) AS nn FROM a GROUP BY g",
	"SELECT g, sum(g) AS sg, sum(n) AS sn, avg(n) AS an, avg(g) AS ag FROM a GROUP BY g",
	"SELECT g, min(n) AS lo, max(n) AS hi, min(s) AS first, max(s) AS last, min(ts), max(ts) AS latest FROM a GROUP BY g",
	"SELECT g, bool_and(b) AS every, bool_or(b) AS any, min(d), max(d) AS top FROM a GROUP BY g",
	"SELECT count(*), sum(n), avg(d), min(s), max(id) AS m FROM a",
	"SELECT count(*) AS n FROM a WHERE b",
	"SELECT s, count(*) FILTER (WHERE b) AS t, count(*) FILTER (WHERE NOT b) AS f, sum(n) FILTER (WHERE g > 2) AS big FROM a GROUP BY s",
	"SELECT g, s, count(*) AS n FROM a GROUP BY g, s HAVING count(*) > 1",
	"SELECT g % 2 AS odd, sum(n) AS total FROM a GROUP BY g % 2 HAVING sum(n) > 10",
	"SELECT a.id, a.s, b.label FROM a JOIN b ON a.g = b.g",
	"SELECT a.id AS x, b.id AS y, c.k FROM a JOIN b ON a.g = b.g JOIN c ON c.g = b.g",
	"SELECT a.id AS x, b.id AS y FROM a JOIN b ON a.g = b.g AND a.id < b.id",
	"SELECT x.id AS x, y.id AS y FROM a x JOIN a y ON x.s = y.s AND x.id <> y.id",
	"SELECT b.label, count(*) AS n, sum(a.n) AS total, max(a.n) AS top FROM a JOIN b ON a.g = b.g GROUP BY b.label",
	"SELECT id, s FROM a WHERE s LIKE 'a%' UNION ALL SELECT id, label FROM b WHERE w > 3",
	"SELECT g, count(*) AS n FROM (SELECT g FROM a UNION ALL SELECT g FROM b UNION ALL SELECT g FROM c) AS u GROUP BY g",
	"SELECT g, count(*) AS n FROM (SELECT g, sum(n) AS t FROM a GROUP BY g, s) AS inner_sums WHERE t > 5 GROUP BY g",
	"SELECT n, count(*) AS groups FROM (SELECT g, count(*) AS n FROM a GROUP BY g) AS q GROUP BY n",
	"SELECT max(n) AS most, min(n) AS least FROM (SELECT count(*) AS n FROM a GROUP BY s) AS q",
	"WITH sums AS (SELECT g, sum(n) AS t FROM a GROUP BY g) SELECT b.id, sums.t FROM b JOIN sums ON sums.g = b.g",
	"WITH x AS (SELECT g, count(*) AS n FROM a GROUP BY g), y AS (SELECT g, sum(w) AS w FROM b GROUP BY g) SELECT x.g, x.n, y.w FROM x JOIN y ON x.g = y.g",
	"SELECT id, CASE WHEN n IS NULL THEN 'none' WHEN n < 5 THEN 'low' ELSE 'high' END AS band, COALESCE(s, '?') AS s FROM a",
	"SELECT CASE WHEN n < 5 THEN 'low' ELSE 'high' END AS band, count(*) AS n FROM a GROUP BY CASE WHEN n < 5 THEN 'low' ELSE 'high' END",
	"SELECT id, n::int AS i, d::numeric AS dn, g::text || '/' || s AS path, (n * 2)::bigint AS twice FROM a WHERE abs(n) < 1000",
	"SELECT date_trunc('hour', ts) AS hour, count(*) AS n, sum(n) AS total FROM a GROUP BY date_trunc('hour', ts)",
	"SELECT extract(dow FROM day) AS dow, count(*) AS n, min(k), max(day) AS latest FROM c GROUP BY extract(dow FROM day)",
	"SELECT id, ts + INTERVAL '1 day' * g AS later, ts - TIMESTAMP '2024-01-01' AS since FROM a",
	"SELECT DISTINCT g FROM a",
	"SELECT DISTINCT s, b FROM a WHERE n > 2",
	"SELECT g, b, sum(d) AS total FROM a GROUP BY g, b",
	"SELECT id, g IN (1, 2, NULL) AS listed, n BETWEEN 2 AND 8 AS mid, s IS DISTINCT FROM 'a' AS not_a, b IS NOT TRUE AS nt FROM a",
	"SELECT c.k, a.id FROM c JOIN a ON a.g = c.g WHERE a.b AND c.day >= DATE '2024-01-03'",
	"SELECT length(s) AS l, count(*) AS n, sum(length(s)) AS chars FROM a GROUP BY length(s)",
	"SELECT round(n) AS r, trunc(d) AS t, count(*) AS n FROM a GROUP BY round(n), trunc(d)",
	"SELECT a.g, sum(a.n * b.w) AS weighted FROM a JOIN b ON a.g = b.g GROUP BY a.g HAVING sum(b.w) <> 0",
	"SELECT g, n FROM $view(1) WHERE n > 1",
	"SELECT sum(n) AS n, max(ns) AS m FROM $view(1)",
	"SELECT v.g, v.sn, b.label FROM $view(2) v JOIN b ON v.g = b.g",
	"SELECT t.label, u.n FROM $view(14) t JOIN $view(16) u ON t.n = u.n",
	"SELECT count(*) AS n, sum(x) AS sx FROM $view(12)",
	"SELECT s, count(*) AS n FROM $view(15) GROUP BY s",
}

var viewName = regexp.MustCompile(`\$view\((\d+)\)`)

func (h *history) value(choices ...string) string { return choices[h.rng.IntN(len(choices))] }

// history makes random statements that both databases run.
type history struct {
	rng *rand.Rand
	ids int
}

func (h *history) int(n int) string { return fmt.Sprint(h.rng.IntN(n)) }

func (h *history) group() string { return h.value("0", "1", "2", "3", "4", "NULL") }

func (h *history) text() string { return h.value("'a'", "'ab'", "'b'", "''", "'A'", "'z z'", "NULL") }

func (h *history) number() string {
	return h.value("0", "1.5", "2.25", "-3", "7", "12.125", "0.001", "1000", "NULL", "-0.5")
}

// Sums of these are exact in any order: PostgreSQL's depend on it otherwise.
func (h *history) double() string {
	return h.value("0", "1.5", "-2", "0.25", "1024", "NULL", "'NaN'", "'Infinity'")
}

func (h *history) time() string {
	return h.value("NULL", "'2024-01-01 10:00'", "'2024-01-01 10:59:59.999999'", "'2024-01-02 00:00:00.5'", "'2024-02-29 23:00'")
}

func (h *history) rowA(id string) string {
	return "(" + strings.Join([]string{id, h.group(), h.text(), h.number(), h.double(), h.time(), h.value("true", "false", "NULL")}, ", ") + ")"
}

func (h *history) statement() string {
	rows := func(row func(id string) string) string {
		var out []string
		for range 1 + h.rng.IntN(5) {
			h.ids++
			out = append(out, row(fmt.Sprint(h.ids)))
		}
		return strings.Join(out, ", ")
	}
	some := func() string {
		switch h.rng.IntN(4) {
		case 0:
			return "id % 7 = " + h.int(7)
		case 1:
			return "g = " + h.int(5)
		case 2:
			return "id > " + fmt.Sprint(max(h.ids-4, 0))
		}
		return "id = " + fmt.Sprint(h.rng.IntN(h.ids+1))
	}
	switch h.rng.IntN(15) {
	case 0, 1, 2, 3:
		return "INSERT INTO a VALUES " + rows(h.rowA)
	case 4, 5:
		return "INSERT INTO b VALUES " + rows(func(id string) string {
			return "(" + id + ", " + h.group() + ", " + h.text() + ", " + h.value("1", "2", "5", "-1", "NULL") + ")"
		})
	case 6:
		return "INSERT INTO c VALUES " + rows(func(id string) string {
			return "('k" + id + "', " + h.int(5) + ", " + h.value("NULL", "'2024-01-01'", "'2024-01-03'", "'2024-01-07'") + ")"
		})
	case 7:
		return "UPDATE a SET n = n + 1, s = " + h.text() + " WHERE " + some()
	case 8:
		return "UPDATE a SET g = " + h.group() + ", d = " + h.double() + ", ts = " + h.time() + " WHERE " + some()
	case 9:
		return "UPDATE b SET g = " + h.group() + ", w = w * 2 WHERE " + some()
	case 10:
		return "UPDATE c SET day = day + 1 WHERE g = " + h.int(5)
	case 11:
		return "DELETE FROM a WHERE " + some()
	case 12:
		return "DELETE FROM b WHERE " + some()
	case 13:
		return h.value("DELETE FROM c WHERE g = "+h.int(5), "DELETE FROM a WHERE n > 6", "DELETE FROM a", "DELETE FROM b")
	}
	id := fmt.Sprint(1 + h.rng.IntN(h.ids+1))
	h.ids++
	return "INSERT INTO a VALUES " + h.rowA(id) + " ON CONFLICT (id) DO UPDATE SET g = excluded.g, n = a.n + excluded.n, b = NOT a.b"
}

// A view equals PostgreSQL's answer to its query over the same rows, after any history of changes.
func TestViewsEqualPostgreSQL(t *testing.T) {
	t.Parallel()
	base := *seed
	if base == 0 {
		base = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	for i, o := range []nodetest.Options{{Workers: 1}, {Workers: 2, BatchRows: 7}, {Workers: 3, BatchRows: 1, Memory: 1 << 20}} {
		t.Run(fmt.Sprintf("workers=%d", o.Workers), func(t *testing.T) {
			t.Parallel()
			s := base + uint64(i)
			if *seed != 0 {
				s = *seed
			}
			t.Logf("seed %d", s)
			compareHistories(t, o, &history{rng: rand.New(rand.NewPCG(s, 0))}, s)
		})
	}
}

func compareHistories(t *testing.T, o nodetest.Options, h *history, s uint64) {
	node := nodetest.Start(t, o)
	leat, pg := node.Connect(), nodetest.Connect(t, testpg.DSN(t))
	both := func(sql string) {
		want, wantErr := pg.Run(sql)
		got, err := leat.Run(sql)
		if (err == nil) != (wantErr == nil) || !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s\ngot %q, %v\nPostgreSQL: %q, %v", s, sql, got, err, want, wantErr)
		}
	}
	for _, sql := range oracleTables {
		both(sql)
	}
	created := 0
	create := func() {
		name := fmt.Sprintf("v%d", created)
		query := viewName.ReplaceAllString(oracleViews[created], "v$1")
		pg.Do("CREATE VIEW " + name + " AS " + query)
		if _, err := leat.Run("CREATE MATERIALIZED VIEW " + name + " AS " + query); err != nil {
			t.Fatalf("seed %d: view %d: %s\n%v", s, created, query, err)
		}
		created++
	}
	check := func() {
		leat.Do("FLUSH")
		for i := range created {
			sql := fmt.Sprintf("SELECT * FROM v%d", i)
			got, want := leat.Query(sql), pg.Query(sql)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("seed %d: view %d: %s\ngot:\n  %s\nPostgreSQL:\n  %s", s, i, oracleViews[i], strings.Join(got, "\n  "), strings.Join(want, "\n  "))
			}
			// The same query, over the tables as they are.
			query := viewName.ReplaceAllString(oracleViews[i], "v$1")
			if got = leat.Query(query); true {
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("seed %d: ad hoc, view %d: %s\ngot:\n  %s\nPostgreSQL:\n  %s", s, i, query, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
				}
			}
		}
		if failed := node.Failed(); failed != nil {
			t.Error(strings.Join(failed, "\n"))
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	open := false
	for i := range *steps {
		// Views come one after another, so that some are built over rows that are there.
		for created < len(oracleViews) && created <= i*len(oracleViews)*3 / *steps && !open {
			create()
		}
		both(h.statement())
		switch n := h.rng.IntN(12); {
		case n == 0 && !open:
			both("BEGIN")
			open = true
		case n <= 4 && open:
			both(h.value("COMMIT", "COMMIT", "ROLLBACK"))
			open = false
		case n == 5 && !open:
			check()
		}
	}
	if open {
		both("COMMIT")
	}
	for created < len(oracleViews) {
		create()
	}
	check()
	node.Crash(1 + h.rng.IntN(3))
	leat = node.Connect()
	both(h.statement())
	check()
	both("DELETE FROM a")
	both("DELETE FROM b")
	check()
}

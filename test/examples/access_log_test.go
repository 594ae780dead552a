package examples

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leat-io/leat/internal/testpg"
	"github.com/leat-io/leat/test/nodetest"
)

// accessLog is a real web server's log: 10,000 lines, most of them out of order, one of them (8,899) broken. It is not part of the repository.
const accessLog = "../../../shared/data/access.log"

func accessLines(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(accessLog))
	if err != nil {
		t.Skipf("SKIPPED, NOTHING IS SHOWN: the real log is not there: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// sendLines writes lines to a topic as the README does, with kcat, if it is installed.
func sendLines(t *testing.T, n *nodetest.Node, topic string, lines []string) {
	t.Helper()
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		n.Produce(nodetest.Lines(topic, lines...)...)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), nodetest.Patience)
	defer cancel()
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, kcat, "-b", n.KafkaAddr(), "-t", topic, "-P", "-l", path)
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("kcat: %v\n%s", err, errs.String())
	}
}

const hourlyInPostgreSQL = `
SELECT date_trunc('hour', ts) AS hour, status / 100 AS class, count(*) AS hits, sum(bytes) AS bytes FROM (
  SELECT to_timestamp(parts[1], 'DD/Mon/YYYY:HH24:MI:SS TZHTZM') AS ts, parts[2]::int AS status, NULLIF(parts[3], '-')::bigint AS bytes FROM (
    SELECT regexp_match(line, '\[([^\]]+)\] "[^"]*" (\d{3}) (\d+|-)') AS parts FROM lines
  ) AS p
) AS q GROUP BY 1, 2`

// Hits and bytes per hour and status class of a real log are PostgreSQL's over the same lines.
func TestAccessLogHourly(t *testing.T) {
	t.Parallel()
	lines := accessLines(t)
	script, err := os.ReadFile("../../examples/access-log/access-log.sql")
	if err != nil {
		t.Fatal(err)
	}
	n := nodetest.Start(t, nodetest.Options{Workers: 2})
	c := n.Connect()
	c.Do(string(script))
	sendLines(t, n, "access", lines)
	c.Do("FLUSH")
	got := c.Query("SELECT * FROM hourly ORDER BY hour, class")

	conn := testpg.Connect(t)
	ctx := context.Background()
	if _, err := conn.Exec(ctx, "CREATE TABLE lines (line text)"); err != nil {
		t.Fatal(err)
	}
	rows := pgx.CopyFromSlice(len(lines), func(i int) ([]any, error) { return []any{lines[i]}, nil })
	if _, err := conn.CopyFrom(ctx, pgx.Identifier{"lines"}, []string{"line"}, rows); err != nil {
		t.Fatal(err)
	}
	oracle := nodetest.Connect(t, conn.Config().ConnString())
	want := oracle.Query(hourlyInPostgreSQL + " ORDER BY 1, 2")
	if !slices.Equal(got, want) {
		t.Fatalf("got:\n  %s\nPostgreSQL:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	if hours := c.Query("SELECT count(*), sum(hits) FROM (SELECT hour, sum(hits) AS hits FROM hourly GROUP BY hour) AS h"); hours[0] != "84|10000" {
		t.Errorf("hours and lines: %s", hours[0])
	}

	// All hours but the last are over, and in the sink's topic once, as the view has them.
	final := n.Consume("access.hourly")
	last := c.Query("SELECT max(hour) FROM hourly")[0]
	closed := c.Query("SELECT hour, class, hits, bytes FROM hourly WHERE hour < '" + last + "'")
	if len(final) != len(closed) {
		t.Errorf("%d results in the sink's topic, %d hours and classes are over", len(final), len(closed))
	}
	c.Do(`CREATE SOURCE final (hour timestamptz, class int, hits bigint, bytes numeric) WITH (connector = 'kafka', topic = 'access.hourly') FORMAT PLAIN ENCODE JSON`)
	inTopic := c.Query("SELECT * FROM final")
	slices.Sort(inTopic)
	slices.Sort(closed)
	if !slices.Equal(inTopic, closed) {
		t.Errorf("in the sink's topic:\n  %s\nin the view:\n  %s", strings.Join(inTopic, "\n  "), strings.Join(closed, "\n  "))
	}
	if late, _ := n.Metric("leat_rows_late_total", "hourly"); late != 0 {
		t.Errorf("%v late lines", late)
	}
}

// How many (row, window) pairs of the real log are late depends on the delay only, not on how the rows are read.
func TestAccessLogLate(t *testing.T) {
	t.Parallel()
	lines := accessLines(t)
	patterns := map[string]string{
		"any":    `\[([^\]]+)\]`,
		"strict": `^\S+ \S+ \S+ \[([^\]]+)\] "[^"]*" \d+ (?:\d+|-) "[^"]*" "[^"]*"$`,
	}
	want := map[string]map[int]float64{
		"any":    {10: 6489, 30: 3136, 60: 0},
		"strict": {10: 6488, 30: 3135, 60: 0},
	}
	for _, o := range []nodetest.Options{{BatchRows: 1, Workers: 1}, {BatchRows: 7, Workers: 2}, {BatchRows: 1024, Workers: 3}} {
		t.Run(fmt.Sprintf("batch=%d", o.BatchRows), func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t, o)
			c := n.Connect()
			sendLines(t, n, "access", lines)
			for name, pattern := range patterns {
				for delay, pairs := range want[name] {
					source := fmt.Sprintf("%s_%d", name, delay)
					c.Do(fmt.Sprintf(`CREATE SOURCE %[1]s (line text, ts timestamptz AS (to_timestamp((regexp_match(line, '%[2]s'))[1], 'DD/Mon/YYYY:HH24:MI:SS TZHTZM')),
						WATERMARK FOR ts AS ts - INTERVAL '%[3]d seconds') WITH (connector = 'kafka', topic = 'access') FORMAT PLAIN ENCODE TEXT`, source, pattern, delay),
						fmt.Sprintf(`CREATE MATERIALIZED VIEW w_%[1]s AS SELECT window_start, count(*) AS hits FROM TUMBLE(%[1]s, ts, INTERVAL '10 seconds') GROUP BY window_start, window_end`, source))
					c.Do("FLUSH")
					if late, ok := n.Metric("leat_rows_late_total", "w_"+source); !ok || late != pairs {
						t.Errorf("%s: %v late pairs, not %v", source, late, pairs)
					}
					dead := 0
					if name == "strict" {
						dead = 1
					}
					letters := n.Consume(source + ".errors")
					if len(letters) != dead || dead == 1 && string(letters[0].Value) != lines[8898] {
						t.Errorf("%s: %d dead letters", source, len(letters))
					}
					total := fmt.Sprint(len(lines) - dead - int(pairs))
					if hits := c.Query("SELECT sum(hits) FROM w_" + source)[0]; hits != total {
						t.Errorf("%s: %s hits in windows, not %s", source, hits, total)
					}
				}
			}
		})
	}
}

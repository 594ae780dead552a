package sql

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/testpg"
	"github.com/leat-io/leat/test/nodetest"
)

var (
	update = flag.Bool("update", false, "write the results of the first variant into the scripts")
	only   = flag.Bool("first", false, "run only the first variant of each script")
)

func TestMain(m *testing.M) {
	os.Exit(testpg.Run(m))
}

// variant is one way to run a script. Its results must not show.
type variant struct {
	batch, workers int
	// kill: the node is killed before every so manieth item; -1 is once, half-way; 0 never.
	kill int
	// after is the number of workers from the first kill on.
	after int
	// spill is how many bytes of an epoch an operator may have in memory, if not 0.
	spill int64
}

func (v variant) String() string {
	s := fmt.Sprintf("batch=%d,workers=%d", v.batch, v.workers)
	switch {
	case v.kill < 0:
		s += fmt.Sprintf(",killed,then=%d", v.after)
	case v.kill > 0:
		s += fmt.Sprintf(",killed_every=%d,then=%d", v.kill, v.after)
	}
	if v.spill > 0 {
		s += fmt.Sprintf(",spill=%d", v.spill)
	}
	return s
}

var variants = []variant{
	{batch: 1024, workers: 1},
	{batch: 1024, workers: 2},
	{batch: 1024, workers: 3},
	{batch: 7, workers: 1},
	{batch: 7, workers: 2},
	{batch: 7, workers: 3},
	{batch: 1, workers: 1},
	{batch: 1, workers: 2},
	{batch: 1, workers: 3},
	{batch: 1024, workers: 1, kill: -1, after: 1},
	{batch: 7, workers: 2, kill: -1, after: 3},
	{batch: 1, workers: 3, kill: -1, after: 2},
	{batch: 7, workers: 1, kill: 3, after: 2},
	{batch: 7, workers: 2, spill: 1},
	{batch: 1024, workers: 1, kill: 4, after: 3, spill: 100},
}

// The scripts, each in every variant.
func TestScripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.slt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".slt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			items, err := parseScript(string(text))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if *update {
				t.Run(variants[0].String(), func(t *testing.T) { run(t, path, items, variants[0]) })
				if err := os.WriteFile(path, []byte(rewrite(string(text), items)), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for i, v := range variants {
				if i > 0 && *only {
					break
				}
				t.Run(v.String(), func(t *testing.T) {
					t.Parallel()
					run(t, path, items, v)
				})
			}
		})
	}
}

// rewrite puts what items want now in the place of what they wanted.
func rewrite(text string, items []*item) string {
	lines := strings.Split(text, "\n")
	var out []string
	at := 0
	for _, it := range items {
		if !it.marks {
			continue
		}
		for lines[at] != "----" || at < it.line-1 {
			out = append(out, lines[at])
			at++
		}
		out = append(out, "----")
		out = append(out, it.want...)
		for at++; at < len(lines) && lines[at] != ""; at++ {
		}
	}
	return strings.Join(append(out, lines[at:]...), "\n")
}

// runner runs one script.
type runner struct {
	t        *testing.T
	v        variant
	n        *nodetest.Node
	sessions map[string]*nodetest.Conn
	settings map[string][]string // SET statements of each session, which a new connection repeats
	session  string
}

func run(t *testing.T, path string, items []*item, v variant) {
	r := &runner{t: t, v: v, sessions: map[string]*nodetest.Conn{}, settings: map[string][]string{}}
	r.n = nodetest.Start(t, nodetest.Options{Workers: v.workers, BatchRows: v.batch, Spill: v.spill})
	for i, it := range items {
		if (v.kill < 0 && i == len(items)/2 || v.kill > 0 && i%v.kill == v.kill-1) && r.idle() {
			r.restart()
		}
		if err := r.step(it); err != nil {
			t.Errorf("%s:%d: %s %s\n%s\n%v", path, it.line, it.verb, it.rest, it.sql(), err)
			if failed := r.n.Failed(); failed != nil {
				t.Fatal(strings.Join(failed, "\n"))
			}
		}
	}
}

func (r *runner) conn() *nodetest.Conn {
	c := r.sessions[r.session]
	if c == nil {
		c = r.n.Connect()
		c.Do(r.settings[r.session]...)
		r.sessions[r.session] = c
	}
	return c
}

// idle tells that no session is in a transaction, which a kill would rightly undo.
func (r *runner) idle() bool {
	for _, c := range r.sessions {
		if c.TxStatus() != 'I' {
			return false
		}
	}
	return true
}

func (r *runner) restart() {
	for _, c := range r.sessions {
		_ = c.Close(context.Background())
	}
	clear(r.sessions)
	r.n.Crash(max(r.v.after, 1))
	r.conn().Do("FLUSH")
}

func (r *runner) step(it *item) error {
	switch it.verb {
	case "statement":
		return r.statement(it)
	case "query":
		return r.query(it)
	case "flush":
		_, err := r.conn().Run("FLUSH")
		return err
	case "session":
		r.session = it.rest
		return nil
	case "restart":
		r.restart()
		return nil
	case "topic":
		partitions, err := strconv.Atoi(it.args[1])
		if err == nil {
			r.n.CreateTopic(it.args[0], partitions)
		}
		return err
	case "produce":
		return r.produce(it)
	case "consume":
		return r.consume(it)
	}
	return r.counted(it)
}

var metricOf = map[string]string{
	"late": "leat_rows_late_total", "failed": "leat_rows_failed_total", "dead": "leat_records_dead_total", "unmatched": "leat_rows_unmatched_total",
}

func (r *runner) counted(it *item) error {
	want, err := strconv.ParseFloat(it.args[1], 64)
	if err != nil {
		return err
	}
	got, ok := r.n.Metric(metricOf[it.verb], it.args[0])
	if !ok || got != want {
		return fmt.Errorf("%s{relation=%q} is %v (there: %t), not %v", metricOf[it.verb], it.args[0], got, ok, want)
	}
	return nil
}

func (r *runner) statement(it *item) error {
	_, err := r.conn().Run(it.sql())
	switch it.args[0] {
	case "ok":
		if sql := strings.ToUpper(it.sql()); err == nil && strings.HasPrefix(sql, "SET ") && !strings.HasPrefix(sql, "SET LOCAL") {
			r.settings[r.session] = append(r.settings[r.session], it.sql())
		}
		return err
	case "error":
		return checkError(err, it.args[1:])
	case "notice":
		if err != nil {
			return err
		}
		want := regexp.MustCompile(it.args[1] + ".*" + strings.Join(it.args[2:], " "))
		for _, n := range r.conn().Notices {
			if want.MatchString(n) {
				return nil
			}
		}
		return fmt.Errorf("no such notice; there are: %q", r.conn().Notices)
	}
	return fmt.Errorf("statement ok, error or notice, not %q", it.args[0])
}

// checkError compares an error with CODE[@POSITION] [regexp].
func checkError(err error, want []string) error {
	if err == nil {
		return fmt.Errorf("succeeded; wanted an error %s", strings.Join(want, " "))
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	code, position, _ := strings.Cut(want[0], "@")
	if pg.Code != code || position != "" && strconv.Itoa(int(pg.Position)) != position || !regexp.MustCompile(strings.Join(want[1:], " ")).MatchString(pg.Message) {
		return fmt.Errorf("got %s@%d %s\nwanted %s", pg.Code, pg.Position, pg.Message, strings.Join(want, " "))
	}
	return nil
}

func (r *runner) query(it *item) error {
	rows, err := r.conn().Run(it.sql())
	if len(it.args) > 0 && it.args[0] == "error" {
		return checkError(err, it.args[1:])
	}
	if err != nil {
		return err
	}
	return compare(it, rows, len(it.args) > 0 && it.args[0] == "ordered")
}

func compare(it *item, got []string, ordered bool) error {
	if !ordered {
		slices.Sort(got)
	}
	for i, row := range got {
		if row == "" {
			got[i] = "(empty)" // a blank line would end the item
		}
		got[i] = strings.ReplaceAll(got[i], "\n", `\n`)
	}
	if *update {
		it.want = got
		return nil
	}
	want := slices.Clone(it.want)
	if !ordered {
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("got:\n  %s\nwanted:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	return nil
}

func (r *runner) produce(it *item) error {
	topic := it.args[0]
	refused := topic == "error"
	if refused {
		topic = it.args[1]
	}
	var records []*kgo.Record
	for _, line := range it.body {
		rec, err := parseRecord(topic, line)
		if err != nil {
			return err
		}
		records = append(records, rec)
	}
	err := r.n.TryProduce(records...)
	if refused {
		if err == nil || !regexp.MustCompile(strings.Join(it.args[2:], " ")).MatchString(err.Error()) {
			return fmt.Errorf("got error %v", err)
		}
		return nil
	}
	return err
}

func (r *runner) consume(it *item) error {
	options := it.args[1:]
	key, headers := slices.Contains(options, "key"), slices.Contains(options, "headers")
	records := r.n.Consume(it.args[0])
	var got []string
	last := map[string]string{}
	for _, rec := range records {
		line := formatRecord(rec, key, headers)
		if !slices.Contains(options, "last") {
			got = append(got, line)
			continue
		}
		delete(last, string(rec.Key))
		if rec.Value != nil {
			last[string(rec.Key)] = line
		}
	}
	for _, line := range last {
		got = append(got, line)
	}
	return compare(it, got, false)
}

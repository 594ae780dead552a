package robustness

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/testlog"
	"github.com/leat-io/leat/test/nodetest"
)

// TestGapUnderAJob is the second half of worked example L5: retention deletes records that a job has not read yet. The job stops and says which; jobs beside it go on, also
// one that reads the same topic from where the gap does not touch it; and what has to be done works.
func TestGapUnderAJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, err := node.Start(t.Context(), config(dir))
	must(t, err)
	for _, topic := range []string{"lossy", "other"} {
		spec := broker.TopicSpec{Name: topic, Configs: map[string]string{"internal.segment.bytes": "10000", "retention.bytes": "30000"}}
		_, err := n.Broker.CreateTopic(t.Context(), spec)
		must(t, err)
	}
	run(t, n, `CREATE SOURCE s (k int, pad text) WITH (connector='kafka', topic='lossy') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE SOURCE o (k int) WITH (connector='kafka', topic='other') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, min(k) AS lowest FROM s`)
	run(t, n, `CREATE MATERIALIZED VIEW behind_v AS SELECT n + 1 AS m FROM v`)
	run(t, n, `CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM o`)
	// In one island with the others.
	run(t, n, `CREATE MATERIALIZED VIEW joined AS SELECT s.k FROM s JOIN o ON s.k = o.k`)
	client := kafka(t, n)
	for _, topic := range []string{"lossy", "other"} {
		must(t, produce(t, client, topic, "", `{"k":0}`))
	}
	if got := run(t, n, `FLUSH; SELECT n FROM v`); got != "1" {
		t.Fatalf("v has %s", got)
	}
	must(t, n.Stop())

	// While no job runs, the topic goes on and retention takes its first half.
	core, err := node.OpenCore(t.Context(), node.CoreOptions{Dir: dir, Stepped: true})
	must(t, err)
	topic, _ := core.Broker.Topic("lossy")
	p := topic.Partition(0)
	must(t, core.Pump(func() error {
		b := record.NewBuilder(record.None)
		for i := 1; i <= 100; i++ {
			b.Reset()
			b.Append(time.Now().UnixMilli(), nil, fmt.Appendf(nil, `{"k":%d,"pad":"%s"}`, i, strings.Repeat("x", 1000)))
			u := core.Broker.NewUnit()
			if _, err := u.AddBatch(p, b.Build(nil)); err != nil {
				return err
			}
			lsn, _, err := u.Commit(t.Context())
			if err != nil {
				return err
			}
			if err := core.Broker.Wait(t.Context(), lsn); err != nil {
				return err
			}
		}
		return core.Checkpoint(t.Context())
	}))
	must(t, core.Pump(func() error { core.Broker.ApplyRetention(); return nil }))
	first, err := p.StartOffset()
	must(t, err)
	if first < 50 {
		t.Fatalf("the log starts at %d", first)
	}
	must(t, core.Close())

	messages := &testlog.Text{}
	c := config(dir)
	c.Logger = slog.New(slog.NewTextHandler(messages, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err = node.Start(t.Context(), c)
	must(t, err)
	gap := fmt.Sprintf(`topic "lossy", partition 0: retention has deleted records before they were read: the position is 1, the log starts at offset %d, so %d are missing`, first, first-1)
	eventually(t, "v is shown as stopped, with the gap", func() bool {
		state := run(t, n, `SELECT state FROM leat_jobs WHERE name = 'v'`)
		return strings.HasPrefix(state, "stopped: ") && strings.Contains(state, gap)
	})
	if said := messages.String(); !strings.Contains(said, "a job has stopped") || !strings.Contains(strings.ReplaceAll(said, `\"`, `"`), gap) {
		t.Errorf("the log: %s", said)
	}
	for name, want := range map[string]float64{"v": 0, "behind_v": 0, "joined": 0, "w": 1, "s": -1} {
		if got := gauge(t, n, "leat_job_running", name); got != want {
			t.Errorf("leat_job_running of %s: %v, want %v", name, got, want)
		}
	}
	if got := run(t, n, `SELECT state FROM leat_jobs WHERE name = 'behind_v'`); got != "stopped: it reads v, which has stopped" {
		t.Errorf("behind_v: %s", got)
	}
	client = kafka(t, n)
	must(t, produce(t, client, "other", "", `{"k":7}`))
	must(t, produce(t, client, "lossy", "", `{"k":7}`))
	if got := run(t, n, `FLUSH; SELECT n FROM w`); got != "2" {
		t.Errorf("the view beside it has %s, want 2", got)
	}
	// A view that has stopped is not read as if nothing were missing.
	if code := try(t, n, `SELECT * FROM v`); code != "55000" {
		t.Errorf("reading the stopped view: SQLSTATE %q, want 55000", code)
	}
	// Nor is it taken for a new one when the node starts again, however far the others have come since.
	for hits := 3; hits <= 4; hits++ {
		must(t, n.Stop())
		c.Logger = nil
		n, err = node.Start(t.Context(), c)
		must(t, err)
		eventually(t, "v is stopped still, with the gap", func() bool {
			state := run(t, n, `SELECT state FROM leat_jobs WHERE name = 'v'`)
			return strings.HasPrefix(state, "stopped: ") && strings.Contains(state, gap)
		})
		must(t, produce(t, kafka(t, n), "other", "", `{"k":7}`))
		if got := run(t, n, `FLUSH; SELECT n FROM w`); got != strconv.Itoa(hits) {
			t.Errorf("the view beside it has %s, want %d", got, hits)
		}
	}
	defer func() { must(t, n.Stop()) }()
	run(t, n, `DROP MATERIALIZED VIEW behind_v`)
	run(t, n, `DROP MATERIALIZED VIEW v`)
	run(t, n, `CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, min(k) AS lowest FROM s`)
	if got, want := run(t, n, `FLUSH; SELECT n || ' from ' || lowest FROM v`), fmt.Sprintf("%d from 7", 102-first); got != want {
		t.Errorf("made anew: %s, want %s", got, want)
	}
}

// gauge reads a metric of a relation, -1 if there is none.
func gauge(t *testing.T, n *node.Node, name, relation string) float64 {
	t.Helper()
	value, ok := nodetest.Metric(t, n.Registry, name, relation)
	if !ok {
		return -1
	}
	return value
}

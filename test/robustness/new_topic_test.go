package robustness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/node"
)

// TestTopicIsDeletedWhileAViewIsMade: either the topic goes, and the view begins in the next one of its name, or it stays and the view has what is in it.
func TestTopicIsDeletedWhileAViewIsMade(t *testing.T) {
	t.Parallel()
	n := start(t, config(t.TempDir()))
	client := kafka(t, n)
	admin := kadm.NewClient(client)
	for i := range 25 {
		topic := fmt.Sprintf("t%d", i)
		must(t, produce(t, client, topic, "", `{"k":1}`))
		run(t, n, fmt.Sprintf(`CREATE SOURCE s%d (k int) WITH (connector='kafka', topic='%s') FORMAT PLAIN ENCODE JSON`, i, topic))
		var deleted error
		var wg sync.WaitGroup
		wg.Go(func() { _, deleted = admin.DeleteTopic(context.WithoutCancel(t.Context()), topic) })
		if code := try(t, n, fmt.Sprintf(`CREATE MATERIALIZED VIEW v%d AS SELECT count(*) AS n FROM s%d`, i, i)); code != "" {
			t.Fatalf("round %d: the view cannot be made: %s", i, code)
		}
		wg.Wait()
		want := "1"
		if deleted != nil {
			if !errors.Is(deleted, kerr.PolicyViolation) {
				t.Fatalf("round %d: deleting: %v", i, deleted)
			}
			want = "2"
		}
		// The client may still know the old topic by its id.
		eventually(t, "the client to know the topic of now", func() bool {
			return kafka(t, n).ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(`{"k":2}`)}).FirstErr() == nil
		})
		eventually(t, fmt.Sprintf("v%d to have %s", i, want), func() bool { return run(t, n, fmt.Sprintf(`FLUSH; SELECT n FROM v%d`, i)) == want })
	}
}

// replaced deletes a topic behind the back of what reads it, and makes another one of its name with more records.
func replaced(t *testing.T, n *node.Node, topic string, values ...string) {
	t.Helper()
	must(t, n.Broker.DeleteTopic(t.Context(), topic))
	_, err := n.Broker.CreateTopic(t.Context(), broker.TopicSpec{Name: topic, Partitions: 1})
	must(t, err)
	for _, v := range values {
		must(t, produce(t, kafka(t, n), topic, "", v))
	}
}

func problem(t *testing.T, n *node.Node, view string) string {
	t.Helper()
	return run(t, n, `SELECT state FROM leat_jobs WHERE name = '`+view+`'`)
}

// TestAnotherTopicUnderTheName: positions that were saved are of the topic that they were read in. In another one of its name they would pass over what
// stands before them; what read the old one stops, says so, and goes on saying so after a restart.
func TestAnotherTopicUnderTheName(t *testing.T) {
	t.Parallel()
	const want = `: the positions that were read to are of the old one; what is built on them has to be dropped and created again`
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running=%v", running), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			n, err := node.Start(t.Context(), config(dir))
			must(t, err)
			run(t, n, `CREATE TABLE beside (a int PRIMARY KEY); INSERT INTO beside VALUES (1)`)
			run(t, n, `CREATE SOURCE s (k int) WITH (connector='kafka', topic='input') FORMAT PLAIN ENCODE JSON`)
			for range 3 {
				must(t, produce(t, kafka(t, n), "input", "", `{"k":1}`))
			}
			run(t, n, `CREATE MATERIALIZED VIEW v AS SELECT sum(k) AS total FROM s`)
			run(t, n, `CREATE MATERIALIZED VIEW w AS SELECT a + k AS x FROM beside JOIN s ON a = k`)
			if !running { // what takes the topic away is done before anything is told of it
				must(t, n.Stop())
				core, err := node.OpenCore(t.Context(), node.CoreOptions{Dir: dir, Stepped: true})
				must(t, err)
				must(t, core.Pump(func() error { return core.Broker.DeleteTopic(t.Context(), "input") }))
				must(t, core.Pump(func() error {
					_, err := core.Broker.CreateTopic(t.Context(), broker.TopicSpec{Name: "input", Partitions: 1})
					return err
				}))
				must(t, core.Close())
				n, err = node.Start(t.Context(), config(dir))
				must(t, err)
			} else {
				replaced(t, n, "input")
			}
			for range 5 {
				must(t, produce(t, kafka(t, n), "input", "", `{"k":10}`))
			}
			for range 2 {
				eventually(t, "the view to stop", func() bool {
					p := problem(t, n, "v") // which may have been seen between the two topics
					return strings.Contains(p, `topic "input", which was deleted`) && strings.Contains(p, want)
				})
				if code := try(t, n, `SELECT total FROM v`); code != "55000" {
					t.Errorf("reading the stopped view: %q", code)
				}
				run(t, n, `INSERT INTO beside VALUES (2) ON CONFLICT (a) DO NOTHING`)
				if got := run(t, n, `FLUSH; SELECT count(*) FROM beside`); got != "2" {
					t.Errorf("the table beside has %s rows", got)
				}
				must(t, n.Stop())
				n, err = node.Start(t.Context(), config(dir))
				must(t, err)
			}
			run(t, n, `DROP MATERIALIZED VIEW v; DROP MATERIALIZED VIEW w`)
			run(t, n, `CREATE MATERIALIZED VIEW v AS SELECT sum(k) AS total FROM s`)
			if got := run(t, n, `FLUSH; SELECT total FROM v`); got != "50" {
				t.Errorf("the view made anew has %s", got)
			}
			must(t, n.Stop())
		})
	}
}

// TestDeadLettersOfAnotherTopic: up to where dead letters were written is remembered for the topic that was read.
func TestDeadLettersOfAnotherTopic(t *testing.T) {
	t.Parallel()
	n := start(t, config(t.TempDir()))
	run(t, n, `CREATE SOURCE s (k int) WITH (connector='kafka', topic='input') FORMAT PLAIN ENCODE JSON`)
	for i := 1; i <= 2; i++ {
		must(t, produce(t, kafka(t, n), "input", "", fmt.Sprintf("no JSON %d", i)))
		run(t, n, `CREATE MATERIALIZED VIEW v AS SELECT sum(k) AS total FROM s; FLUSH`)
		letters := consume(t, n, "s.errors", i)
		if got := string(letters[i-1].Value); got != fmt.Sprintf("no JSON %d", i) {
			t.Errorf("letter %d is %q", i, got)
		}
		run(t, n, `DROP MATERIALIZED VIEW v; CREATE MATERIALIZED VIEW v AS SELECT sum(k) AS total FROM s; FLUSH`)
		if got := run(t, n, `SELECT records_dead::text FROM leat_jobs WHERE name = 'v'`); got != fmt.Sprint(i) {
			t.Errorf("%s records are counted as dead, want %d", got, i)
		}
		run(t, n, `DROP MATERIALIZED VIEW v`)
		_, err := kadm.NewClient(kafka(t, n)).DeleteTopic(t.Context(), "input")
		must(t, err)
	}
}

// TestAnotherTopicOfACluster: whoever administers a cluster can delete a topic and make another one of its name while nobody looks.
func TestAnotherTopicOfACluster(t *testing.T) {
	t.Parallel()
	cluster := start(t, config(t.TempDir()))
	dir := t.TempDir()
	n, err := node.Start(t.Context(), config(dir))
	must(t, err)
	numbers(t, n, cluster.KafkaAddr())
	for range 3 {
		must(t, produce(t, kafka(t, cluster), "numbers", "", `{"k":1}`))
	}
	counted(t, n, "3|3")
	must(t, n.Stop())
	replaced(t, cluster, "numbers", `{"k":10}`, `{"k":10}`, `{"k":10}`, `{"k":10}`, `{"k":10}`)
	n, err = node.Start(t.Context(), config(dir))
	must(t, err)
	eventually(t, "the view to stop", func() bool {
		return strings.Contains(problem(t, n, "counted"), `topic "numbers", which was deleted, and another one was made under its name`)
	})
	run(t, n, `DROP MATERIALIZED VIEW counted; DROP SINK copies`)
	run(t, n, `CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n, coalesce(sum(k), 0)::bigint AS total FROM numbers`)
	counted(t, n, "5|50")
	must(t, n.Stop())
}

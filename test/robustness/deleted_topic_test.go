package robustness

import (
	"context"
	"errors"
	"testing"

	"github.com/leat-io/leat/internal/node"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// TestTopicInUseIsNotDeleted: a Kafka client cannot take the topic away that holds a table or that a view reads. A topic made anew under the name has other records at
// the positions that the view has read. Once nothing reads it, it goes, and all begins at the start of the new one.
func TestTopicInUseIsNotDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, err := node.Start(t.Context(), config(dir))
	must(t, err)
	run(t, n, `CREATE TABLE tab (a int PRIMARY KEY); INSERT INTO tab VALUES (1)`)
	run(t, n, `CREATE SOURCE s (k int) WITH (connector='kafka', topic='input') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE VIEW between AS SELECT k FROM s`)
	client := kafka(t, n)
	remove := func(topic string) error {
		_, err := kadm.NewClient(client).DeleteTopic(context.WithoutCancel(t.Context()), topic)
		return err
	}
	create := func() { run(t, n, `CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(k) AS total FROM between`) }
	for range 3 {
		must(t, produce(t, client, "input", "", `{"k":1}`))
	}
	create()
	if got := run(t, n, `FLUSH; SELECT n FROM v`); got != "3" {
		t.Fatalf("v has %s", got)
	}
	for _, topic := range []string{"tab", "input"} {
		if err := remove(topic); !errors.Is(err, kerr.PolicyViolation) {
			t.Errorf("deleting %s: %v", topic, err)
		}
	}
	run(t, n, `INSERT INTO tab VALUES (2)`)
	must(t, n.Stop())
	n, err = node.Start(t.Context(), config(dir))
	must(t, err)
	client = kafka(t, n)
	if got := run(t, n, `SELECT count(*) FROM tab`); got != "2" {
		t.Errorf("the table has %s rows", got)
	}
	run(t, n, `DROP MATERIALIZED VIEW v`)
	must(t, remove("input"))
	must(t, produce(t, client, "input", "", `{"k":7}`))
	create()
	if got := run(t, n, `FLUSH; SELECT total FROM v`); got != "7" {
		t.Errorf("over the new topic v has %s", got)
	}
	run(t, n, `DROP TABLE tab`)
	must(t, n.Stop())
}

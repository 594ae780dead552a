package robustness

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/leat-io/leat/internal/node"
)

// TestTopicsKeepWhatTheyHold: a Kafka client cannot take records away from a table's topic, by whatever means, nor from a changelog, nor have records without
// keys compacted away. What does no harm is taken.
func TestTopicsKeepWhatTheyHold(t *testing.T) {
	t.Parallel()
	n := start(t, config(t.TempDir()))
	cluster := start(t, config(t.TempDir()))
	run(t, n, `CREATE TABLE keyed (a int PRIMARY KEY, b int); INSERT INTO keyed VALUES (1, 1), (2, 2)`)
	run(t, n, `CREATE TABLE plain (a int); INSERT INTO plain VALUES (1), (2)`)
	run(t, n, `CREATE SOURCE src (k int, at timestamptz, WATERMARK FOR at AS at) WITH (connector='kafka', topic='input') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE SINK plain_sink AS SELECT k FROM src WITH (connector='kafka', topic='results') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE SINK keyed_sink AS SELECT k FROM src WITH (connector='kafka', topic='by_key', primary_key='k') FORMAT PLAIN ENCODE JSON`)
	run(t, n, `CREATE MATERIALIZED VIEW late WITH (late = 'topic', late_topic = 'too_late') AS SELECT window_end, count(*) AS n FROM TUMBLE(src, at, INTERVAL '1 minute') GROUP BY window_end`)
	run(t, n, `CREATE SINK outside AS SELECT k FROM src WITH (connector='kafka', topic='there', properties.bootstrap.server='`+cluster.KafkaAddr()+`') FORMAT PLAIN ENCODE JSON`)
	changelog := ""
	for _, r := range n.Jobs.Catalog().Relations() {
		if r.HasChangelog() {
			changelog = r.Topic
		}
	}
	must(t, produce(t, kafka(t, n), "input", "", `{"k": 1}`))
	adm := kadm.NewClient(kafka(t, n))

	set := func(topic string, pairs ...string) func() error {
		return func() error {
			var alter []kadm.AlterConfig
			for i := 0; i < len(pairs); i += 2 {
				alter = append(alter, kadm.AlterConfig{Op: kadm.SetConfig, Name: pairs[i], Value: &pairs[i+1]})
			}
			got, err := adm.AlterTopicConfigs(t.Context(), alter, topic)
			if err == nil && got[0].Err != nil {
				err = errors.Join(got[0].Err, errors.New(got[0].ErrMessage))
			}
			return err
		}
	}
	unset := func(topic, name string) func() error {
		return func() error {
			got, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: name}}, topic)
			if err == nil && got[0].Err != nil {
				err = errors.Join(got[0].Err, errors.New(got[0].ErrMessage))
			}
			return err
		}
	}
	trim := func(topic string) func() error {
		return func() error {
			o := kadm.Offsets{}
			o.AddOffset(topic, 0, 1, -1)
			got, err := adm.DeleteRecords(t.Context(), o)
			return errors.Join(err, got.Error())
		}
	}
	grow := func(topic string) func() error {
		return func() error {
			got, err := adm.CreatePartitions(t.Context(), 2, topic)
			if err == nil && got[topic].Err != nil {
				err = errors.Join(got[topic].Err, errors.New(got[topic].ErrMessage))
			}
			return err
		}
	}
	for _, test := range []struct {
		name string
		do   func() error
		want string // of the refusal; empty: it is done
	}{
		{"keyed: delete", set("keyed", "cleanup.policy", "delete"), "cleanup.policy must be compact; DELETE takes rows away"},
		{"keyed: both", set("keyed", "cleanup.policy", "compact,delete"), "cleanup.policy must be compact"},
		{"keyed: the default, which is delete", unset("keyed", "cleanup.policy"), "cleanup.policy must be compact"},
		{"keyed: a retention that has no effect", set("keyed", "retention.ms", "1000"), ""},
		{"keyed: nothing goes", set("keyed", "cleanup.policy", ""), ""},
		{"keyed: compacted soon", set("keyed", "cleanup.policy", "compact", "max.compaction.lag.ms", "1000"), ""},
		{"keyed: delete-records", trim("keyed"), "POLICY_VIOLATION"},
		{"keyed: partitions", grow("keyed"), "make a new table WITH (partitions = 3)"},
		{"plain: by age", set("plain", "retention.ms", "1000"), "retention.ms and retention.bytes must be -1; DELETE takes rows away"},
		{"plain: by size", set("plain", "retention.bytes", "1000"), "retention.ms and retention.bytes must be -1"},
		{"plain: the default age", unset("plain", "retention.ms"), "retention.ms and retention.bytes must be -1"},
		{"plain: compaction, by its hidden row ids", set("plain", "cleanup.policy", "compact"), ""},
		{"plain: delete-records", trim("plain"), "POLICY_VIOLATION"},
		{"plain: partitions", grow("plain"), "would be in two partitions"},
		{"source: all that Kafka takes", set("input", "cleanup.policy", "compact", "retention.ms", "5000"), ""},
		{"source: partitions", grow("input"), ""},
		{"sink without keys: compaction", set("results", "cleanup.policy", "compact"), `it gets the records of sink "plain_sink", which have no key: compaction would drop them; FORMAT UPSERT or primary_key`},
		{"sink without keys: retention", set("results", "retention.ms", "1000"), ""},
		{"sink with keys: compaction", set("by_key", "cleanup.policy", "compact"), ""},
		{"dead letters: compaction", set("src.errors", "cleanup.policy", "compact"), `it gets the dead letters of source "src"`},
		{"late rows: compaction", set("too_late", "cleanup.policy", "compact,delete"), `it gets the late rows of materialized view "late"`},
		{"changelog: retention", set(changelog, "retention.ms", "1000"), `it is the changelog of sink "outside", which deletes what it has delivered: cleanup.policy must be delete`},
		{"changelog: compaction", set(changelog, "cleanup.policy", "compact"), `it is the changelog of sink "outside"`},
		{"changelog: delete-records", trim(changelog), "POLICY_VIOLATION"},
		{"changelog: partitions", grow(changelog), "whose order is that of one partition"},
	} {
		switch err := test.do(); {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (!errors.Is(err, kerr.PolicyViolation) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want POLICY_VIOLATION and %q", test.name, err, test.want)
		}
	}
	if code := try(t, n, `CREATE SINK second AS SELECT k FROM src WITH (connector='kafka', topic='by_key') FORMAT PLAIN ENCODE JSON`); code != "55000" {
		t.Errorf("a sink without keys into a compacted topic: %q", code)
	}
	both(t, n)
}

func both(t *testing.T, n *node.Node) {
	t.Helper()
	for _, table := range []string{"keyed", "plain"} {
		if got := run(t, n, `SELECT count(*) FROM `+table); got != "2" {
			t.Errorf("%s has %s rows", table, got)
		}
	}
}

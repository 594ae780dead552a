package examples

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/test/nodetest"
)

// eachAlone makes every batch a segment of its own, so that all but the last can be compacted, at once.
var eachAlone = map[string]*string{
	"cleanup.policy": kadm.StringPtr("compact"), "internal.segment.bytes": kadm.StringPtr("20"), "min.cleanable.dirty.ratio": kadm.StringPtr("0"),
}

// compact has all topics compacted that are to be, without the wait for it.
func compact(t *testing.T, n *nodetest.Node) {
	t.Helper()
	if err := n.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Broker.Compact()
}

// consume reads partition 0 of a topic from an offset to its end, as offset:key=value.
func consume(t *testing.T, n *nodetest.Node, topic string, from int64) (out []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nodetest.Patience)
	defer cancel()
	ends, err := kadm.NewClient(n.Kafka()).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	c, err := kgo.NewClient(kgo.SeedBrokers(n.KafkaAddr()), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(from)}}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatalf("consuming %s: %v", topic, err)
		}
		last := false
		fs.EachRecord(func(r *kgo.Record) {
			value := string(r.Value)
			if r.Value == nil {
				value = "deleted"
			}
			out = append(out, fmt.Sprintf("%d:%s=%s", r.Offset, r.Key, value))
			last = last || r.Offset == end.Offset-1
		})
		if last {
			return out
		}
	}
}

// C2: the log of C1 (99 A=0, 100 A=1, 101 A=2, 102 B=A, 103 B=B+1), compacted: A=2 at offset 101 and B=3 at 103.
func TestC2Compacted(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	r, err := kadm.NewClient(n.Kafka()).CreateTopic(t.Context(), 1, 1, eachAlone, "log")
	if err = errors.Join(err, r.Err); err != nil {
		t.Fatal(err)
	}
	put := func(key, value string) {
		n.Produce(&kgo.Record{Topic: "log", Key: []byte(key), Value: []byte(value)})
	}
	for range 99 {
		put("old", `{"v":0}`)
	}
	n.Produce(&kgo.Record{Topic: "log", Key: []byte("A"), Value: []byte(`{"v":0}`)})
	put("A", `{"v":1}`)
	put("A", `{"v":2}`)
	put("B", `{"v":2}`) // what is logged are the values of rows: of B=A the 2
	put("B", `{"v":3}`)
	put("end", `{"v":4}`) // the segment that is written to stays as it is
	c := n.Connect()
	c.Do(`CREATE SOURCE log (v int) INCLUDE offset AS at WITH (connector = 'kafka', topic = 'log') FORMAT PLAIN ENCODE JSON`)
	c.Do(`CREATE MATERIALIZED VIEW before AS SELECT count(*) AS n FROM log`)
	compact(t, n)
	left := []string{`98:old={"v":0}`, `101:A={"v":2}`, `103:B={"v":3}`, `104:end={"v":4}`}
	want(t, "the compacted log", consume(t, n, "log", 0), left...)
	want(t, "the log from an offset that is gone", consume(t, n, "log", 100), left[1:]...)
	rows := []string{"98|0", "101|2", "103|3", "104|4"}
	want(t, "a query over the compacted log", c.Query(`SELECT at, v FROM log ORDER BY at`), rows...)
	c.Do(`CREATE MATERIALIZED VIEW after AS SELECT at, v FROM log`)
	want(t, "a view that begins behind", c.Query(`SELECT at, v FROM after ORDER BY at`), rows...)
	want(t, "a view that was there before", c.Query(`SELECT n FROM before`), "105")
	for range 2 {
		n.Crash(1)
		c = n.Connect()
		want(t, "after a crash", consume(t, n, "log", 0), left...)
		put("B", `{"v":5}`)
		left = append(left, fmt.Sprintf(`%d:B={"v":5}`, 101+len(left)))
		rows = append(rows, fmt.Sprintf("%d|5", 100+len(left)))
		c.Do("FLUSH")
		want(t, "the views after a crash", c.Query(`SELECT at, v FROM after ORDER BY at`), rows...)
	}
}

// C2 with a table: it is kept in a topic that is compacted by its key, and all who read the table, then or later, find the same.
func TestC2Table(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	c.Do(`CREATE TABLE kv (k text PRIMARY KEY, v int)`)
	adm := kadm.NewClient(n.Kafka())
	configs, err := adm.DescribeTopicConfigs(t.Context(), "kv")
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range configs[0].Configs {
		if cfg.Key == "cleanup.policy" && cfg.MaybeValue() != "compact" {
			t.Fatalf("a table's topic has the cleanup.policy %s", cfg.MaybeValue())
		}
	}
	// Small segments, so that a few rows show what a gigabyte would.
	if _, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "internal.segment.bytes", Value: kadm.StringPtr("20")}, {Name: "min.cleanable.dirty.ratio", Value: kadm.StringPtr("0")}}, "kv"); err != nil {
		t.Fatal(err)
	}
	c.Do(`CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(v) AS s FROM kv`)
	c.Do(`INSERT INTO kv VALUES ('A', 0)`)
	c.Do(`UPDATE kv SET v = 1 WHERE k = 'A'`)
	c.Do(`UPDATE kv SET v = 2 WHERE k = 'A'`)
	c.Do(`INSERT INTO kv SELECT 'B', v FROM kv WHERE k = 'A'`)
	c.Do(`UPDATE kv SET v = v + 1 WHERE k = 'B'`)
	c.Do(`INSERT INTO kv VALUES ('gone', 9)`)
	c.Do(`DELETE FROM kv WHERE k = 'gone'`)
	c.Do(`INSERT INTO kv VALUES ('end', 4)`)
	c.Do("FLUSH")
	compact(t, n)
	if got := consume(t, n, "kv", 0); len(got) != 4 {
		t.Errorf("the table's topic has %q, want A, B, the deletion and the end", got)
	}
	check := func(when string) {
		t.Helper()
		want(t, when+", the table", c.Query(`SELECT k, v FROM kv ORDER BY k`), "A|2", "B|3", "end|4")
		want(t, when+", a view", c.Query(`SELECT n, s FROM total`), "3|9")
	}
	check("compacted")
	n.Crash(1)
	c = n.Connect()
	check("after a crash")
	c.Do(`CREATE MATERIALIZED VIEW late AS SELECT k, v FROM kv`)
	want(t, "a view that begins behind", c.Query(`SELECT k, v FROM late ORDER BY k`), "A|2", "B|3", "end|4")
}

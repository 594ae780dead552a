package examples

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/cli"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/test/nodetest"
)

// endsEmpty compacts until the last batch of the topic has no records any more: a deletion that has been kept for as long as it must.
func endsEmpty(t *testing.T, n *nodetest.Node, topic string) {
	t.Helper()
	tp, _ := n.Broker.Topic(topic)
	p := tp.Partition(0)
	deadline := time.Now().Add(nodetest.Patience)
	for {
		compact(t, n)
		c, err := p.Read(p.HighWatermark()-1, 1, broker.ViewDurable, true)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.AppendTo(nil)
		c.Release()
		if err != nil {
			t.Fatal(err)
		}
		h, err := record.ParseHeader(raw)
		if err != nil {
			t.Fatal(err)
		}
		if h.Count == 0 && h.NextOffset() == p.HighWatermark() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("compaction left %+v at the end", h)
		}
	}
}

// consumesToTheEnd has the command line read a topic to its end, and notice that there is nothing left rather than wait for it; on a machine that
// is busy with other things once in a few times.
func consumesToTheEnd(t *testing.T, n *nodetest.Node, topic, want string) {
	t.Helper()
	var took time.Duration
	for range 5 {
		var out, errs bytes.Buffer
		from := time.Now()
		if code := cli.Main([]string{"consume", topic, "-b", n.KafkaAddr(), "--from-beginning", "--until-end", "--key-separator", "="}, nil, &out, &errs); code != 0 || out.String() != want {
			t.Fatalf("consume --until-end: code %d, %q, want %q; %s", code, out.String(), want, errs.String())
		}
		if took = time.Since(from); took < 2*time.Second {
			return
		}
	}
	t.Errorf("consume --until-end took %s", took)
}

// TestATopicThatEndsInAnEmptyBatch has compaction take all records out of the last batch: a view over the topic is ready and goes on behind it, a consumer
// group has nothing left to read, and all of it is so after a crash.
func TestATopicThatEndsInAnEmptyBatch(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	adm := kadm.NewClient(n.Kafka())
	configs := map[string]*string{
		"cleanup.policy": kadm.StringPtr("compact"), "internal.segment.bytes": kadm.StringPtr("20"), "min.cleanable.dirty.ratio": kadm.StringPtr("0"),
		"delete.retention.ms": kadm.StringPtr("0"), "max.compaction.lag.ms": kadm.StringPtr("1"), // so that the active segment ends, too
	}
	r, err := adm.CreateTopic(t.Context(), 1, 1, configs, "log")
	if err = errors.Join(err, r.Err); err != nil {
		t.Fatal(err)
	}
	put := func(key, value string) {
		rec := &kgo.Record{Topic: "log", Key: []byte(key)}
		if value != "" {
			rec.Value = []byte(value)
		}
		n.Produce(rec)
	}
	read := func(most int) (got []string) {
		ctx, cancel := context.WithTimeout(t.Context(), nodetest.Patience)
		defer cancel()
		c, err := kgo.NewClient(kgo.SeedBrokers(n.KafkaAddr()), kgo.FetchMaxWait(100*time.Millisecond), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("log"),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for len(got) < most {
			fs := c.PollFetches(ctx)
			if err := fs.Err(); err != nil {
				t.Fatal(err)
			}
			fs.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Key)+"="+string(r.Value)) })
		}
		if err := c.CommitUncommittedOffsets(ctx); err != nil {
			t.Fatal(err)
		}
		return got
	}
	wantLag := func(records int64) {
		t.Helper()
		deadline := time.Now().Add(nodetest.Patience)
		for { // a look at the groups serves for a second
			lags := n.Broker.Lags()
			if len(lags) == 1 && lags[0].Records == records {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the lags are %+v, want %d", lags, records)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	put("a", `{"v":1}`)
	put("b", `{"v":2}`)
	put("b", "")
	endsEmpty(t, n, "log")
	want(t, "what the group reads", read(1), `a={"v":1}`)
	consumesToTheEnd(t, n, "log", "a="+`{"v":1}`+"\n")
	wantLag(0)
	c := n.Connect()
	c.Do(`CREATE SOURCE log (v int) INCLUDE offset AS at WITH (connector = 'kafka', topic = 'log') FORMAT PLAIN ENCODE JSON`)
	c.Do(`CREATE MATERIALIZED VIEW m AS SELECT at, v FROM log`)
	want(t, "the view", c.Query(`SELECT at, v FROM m ORDER BY at`), "0|1")
	n.Crash(2)
	c = n.Connect()
	want(t, "the view after a crash", c.Query(`SELECT at, v FROM m ORDER BY at`), "0|1")
	wantLag(0)
	put("c", `{"v":3}`)
	c.Do("FLUSH")
	want(t, "the view behind the empty batch", c.Query(`SELECT at, v FROM m ORDER BY at`), "0|1", "3|3")
	wantLag(3) // offsets: two of them are empty
	want(t, "what the group reads behind it", read(1), `c={"v":3}`)
	wantLag(0)
}

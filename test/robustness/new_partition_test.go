package robustness

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/test/nodetest"
)

// TestNewPartitionsHoldTimeBack: a partition of a topic that is made after the view, or that is added to it, holds the watermark back until it has given something or
// is idle, as one would that was there before: no row of it is late because another partition was read first.
func TestNewPartitionsHoldTimeBack(t *testing.T) {
	t.Parallel()
	for _, added := range []bool{false, true} {
		n := nodetest.Start(t, nodetest.Options{})
		c := n.Connect()
		k := kafka(t, n.Node, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		put := func(p int32, at string) {
			t.Helper()
			must(t, k.ProduceSync(t.Context(), &kgo.Record{Topic: "in", Partition: p, Value: []byte(`{"at":"2024-01-01T00:` + at + `Z"}`)}).FirstErr())
		}
		c.Do("CREATE SOURCE s (at timestamptz, WATERMARK FOR at AS at - INTERVAL '1 second') WITH (connector='kafka', topic='in') FORMAT PLAIN ENCODE JSON",
			"CREATE MATERIALIZED VIEW w AS SELECT window_end, count(*) AS n FROM TUMBLE(s, at, INTERVAL '10 seconds') GROUP BY window_start, window_end")
		partitions := int32(2)
		if added {
			partitions = 1
		}
		_, err := n.Broker.CreateTopic(t.Context(), broker.TopicSpec{Name: "in", Partitions: partitions})
		must(t, err)
		put(0, "00:00")
		if added {
			c.Do("FLUSH")
			_, err := kadm.NewClient(k).UpdatePartitions(t.Context(), 2, "in")
			must(t, err)
			k = kafka(t, n.Node, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		}
		put(0, "01:00")
		c.Do("FLUSH")
		put(1, "00:05")
		c.Do("FLUSH")
		if counts := n.Counts("w"); counts.Late != 0 {
			t.Errorf("added=%v: %+v", added, counts)
		}
		if got := c.Query("SELECT n FROM w ORDER BY window_end"); len(got) != 2 || got[0] != "2" {
			t.Errorf("added=%v: %v", added, got)
		}
	}
}

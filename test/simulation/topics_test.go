package simulation

import "testing"

// TestDeletedTopicOfASink deletes the topic that a sink writes to while it runs, on a node that one goroutine steps: making it again must not
// wait for the journal within an epoch, which nobody steps meanwhile.
func TestDeletedTopicOfASink(t *testing.T) {
	t.Parallel()
	n := newStepped(t)
	records := func() int64 {
		topic, ok := n.core.Broker.Topic("out")
		if !ok {
			return 0
		}
		return topic.Partition(0).HighWatermark()
	}
	n.execute("CREATE TABLE t (id int PRIMARY KEY)")
	n.execute("CREATE SINK s FROM t WITH (connector = 'kafka', topic = 'out', primary_key = 'id') FORMAT UPSERT ENCODE JSON")
	n.execute("INSERT INTO t VALUES (1), (2)")
	n.step(func() bool { return records() == 2 })
	deleted := make(chan error, 1)
	go func() { deleted <- n.core.Broker.DeleteTopic(n.ctx, "out") }()
	n.step(func() bool { return len(deleted) > 0 })
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	n.execute("INSERT INTO t VALUES (3)")
	n.step(func() bool { return records() == 1 })
}

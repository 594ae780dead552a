package simulation

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/internal/session"
	"github.com/leat-io/leat/internal/vfs"
)

// TestDeletedTopicOfASink deletes the topic that a sink writes to while it runs, on a node that one goroutine steps: making it again must not
// wait for the journal within an epoch, which nobody steps meanwhile.
func TestDeletedTopicOfASink(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	now := clock.NewManual(time.UnixMilli(startMs))
	core, err := node.OpenCore(ctx, node.CoreOptions{
		FS: vfs.NewCrashable(), Dir: "/node", Clock: now, Workers: 1, Seed: 1, Stepped: true, JournalSegmentBytes: 1 << 20,
		CacheBytes: 1 << 20, MemTableBytes: 1 << 20, Broker: broker.Options{DefaultPartitions: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := core.Close(); err != nil {
			t.Error(err)
		}
	}()
	engine, err := session.NewEngine(session.Options{Jobs: core.Jobs, Broker: core.Broker, Clock: now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := engine.NewSession("test", "leat")
	step := func(until func() bool) {
		t.Helper()
		for !until() {
			if ctx.Err() != nil {
				t.Fatal("nothing comes of it any more")
			}
			core.Journal.Step()
			core.Jobs.Step(now.Now())
			now.Advance(time.Millisecond)
		}
	}
	execute := func(sql string) {
		t.Helper()
		done := make(chan error, 1)
		go func() {
			_, err := run(ctx, s, sql)
			done <- err
		}()
		step(func() bool {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				return true
			default:
				return false
			}
		})
	}
	records := func() int64 {
		topic, ok := core.Broker.Topic("out")
		if !ok {
			return 0
		}
		return topic.Partition(0).HighWatermark()
	}
	execute("CREATE TABLE t (id int PRIMARY KEY)")
	execute("CREATE SINK s FROM t WITH (connector = 'kafka', topic = 'out', primary_key = 'id') FORMAT UPSERT ENCODE JSON")
	execute("INSERT INTO t VALUES (1), (2)")
	step(func() bool { return records() == 2 })
	deleted := make(chan error, 1)
	go func() { deleted <- core.Broker.DeleteTopic(ctx, "out") }()
	step(func() bool { return len(deleted) > 0 })
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	execute("INSERT INTO t VALUES (3)")
	step(func() bool { return records() == 1 })
}

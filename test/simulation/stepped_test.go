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

// stepped is a node of one worker in memory, that one goroutine steps.
type stepped struct {
	t    *testing.T
	ctx  context.Context
	now  *clock.Manual
	core *node.Core
	s    *session.Session
}

func newStepped(t *testing.T) *stepped {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	n := &stepped{t: t, ctx: ctx, now: clock.NewManual(time.UnixMilli(startMs))}
	var err error
	n.core, err = node.OpenCore(ctx, node.CoreOptions{
		FS: vfs.NewCrashable(), Dir: "/node", Clock: n.now, Workers: 1, Seed: 1, Stepped: true, JournalSegmentBytes: 1 << 20,
		CacheBytes: 1 << 20, MemTableBytes: 1 << 20, Broker: broker.Options{DefaultPartitions: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.core.Close(); err != nil {
			t.Error(err)
		}
	})
	engine, err := session.NewEngine(session.Options{Jobs: n.core.Jobs, Broker: n.core.Broker, Clock: n.now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	n.s = engine.NewSession("test", "leat")
	return n
}

// step lets journal and engine take one step after the other until something is so.
func (n *stepped) step(until func() bool) {
	n.t.Helper()
	for !until() {
		if n.ctx.Err() != nil {
			n.t.Fatal("nothing comes of it any more")
		}
		n.core.Journal.Step()
		n.core.Jobs.Step(n.now.Now())
		n.now.Advance(time.Millisecond)
	}
}

// begin runs a statement beside the steps; what it gives comes from the channel.
func (n *stepped) begin(sql string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := run(n.ctx, n.s, sql)
		done <- err
	}()
	return done
}

func (n *stepped) execute(sql string) {
	n.t.Helper()
	done := n.begin(sql)
	n.step(func() bool { return len(done) > 0 })
	if err := <-done; err != nil {
		n.t.Fatal(err)
	}
}

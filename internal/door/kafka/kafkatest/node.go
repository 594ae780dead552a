// Package kafkatest starts the log side of a node (journal, database, broker, Kafka door) for tests: in memory or on disk, to be restarted, or crashed
// with its unsynced writes lost.
package kafkatest

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/door/kafka"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/vfs"
	"github.com/prometheus/client_golang/prometheus"
)

// Options change what a Node is started with; zero values serve.
type Options struct {
	FS     vfs.FS // nil: a crashable one in memory
	Dir    string // "" is "/data"
	Clock  clock.Clock
	Log    *slog.Logger
	Broker func(*broker.Options)
	Door   func(*kafka.Options)
}

// Node is the running parts.
type Node struct {
	Addr    string // host:port of the Kafka door
	Broker  *broker.Broker
	Journal *journal.Journal
	KV      *kv.DB
	Door    *kafka.Server
	Metrics *prometheus.Registry

	t       testing.TB
	o       Options
	stopped bool
}

// Start starts a node that is stopped when the test ends.
func Start(t testing.TB, o Options) *Node {
	t.Helper()
	if o.FS == nil {
		o.FS = vfs.NewCrashable()
	}
	if o.Dir == "" {
		o.Dir = "/data"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	n := &Node{t: t, o: o}
	n.start()
	t.Cleanup(n.Stop)
	return n
}

func (n *Node) must(err error, what string) {
	n.t.Helper()
	if err != nil {
		n.t.Fatalf("%s: %v", what, err)
	}
}

func (n *Node) start() {
	n.t.Helper()
	fs, dir := n.o.FS, n.o.Dir
	n.stopped = false
	n.Metrics = prometheus.NewRegistry()
	var err error
	n.must(fs.MkdirAll(dir, 0o755), "data folder")
	n.must(vfs.SyncDir(fs, fs.PathDir(dir)), "data folder")
	n.KV, err = kv.Open(kv.Options{FS: fs, Dir: fs.PathJoin(dir, "kv"), CacheBytes: 8 << 20, MemTableBytes: 1 << 20, Logger: n.o.Log})
	n.must(err, "open database")
	observe, err := broker.ObserveJournal(n.Metrics)
	n.must(err, "metrics")
	n.Journal, err = journal.Open(journal.Options{FS: fs, Dir: fs.PathJoin(dir, "journal"), SegmentBytes: 4 << 20, Logger: n.o.Log, Clock: n.o.Clock, Observe: observe})
	n.must(err, "open journal")
	bo := broker.Options{
		Journal: n.Journal, KV: n.KV, FS: fs, Dir: fs.PathJoin(dir, "topics"), Clock: n.o.Clock, Logger: n.o.Log, Metrics: n.Metrics,
		AutoCreate: true, InitialRebalanceDelay: 100 * time.Millisecond, MinSessionTimeout: time.Millisecond,
	}
	if n.o.Broker != nil {
		n.o.Broker(&bo)
	}
	n.Broker, err = broker.Open(bo)
	n.must(err, "open broker")
	_, err = n.Journal.Recover(n.apply)
	n.must(err, "recover")
	n.Journal.Start(n.apply)
	n.must(n.Broker.Start(context.Background()), "start broker")
	n.Broker.ReadersReady()
	do := kafka.Options{Broker: n.Broker, Logger: n.o.Log, Metrics: n.Metrics}
	if n.o.Door != nil {
		n.o.Door(&do)
	}
	n.must(vfs.SyncDir(fs, dir), "data folder")
	n.Door, err = kafka.New(do)
	n.must(err, "open door")
	ls, err := kafka.Listen("127.0.0.1:0")
	n.must(err, "listen")
	n.Addr = ls[0].Addr().String()
	n.Door.Serve(ls...)
}

func (n *Node) apply(lsn journal.LSN, kind journal.Kind, payload []byte) error {
	switch kind {
	case journal.KindBatch:
		return n.Broker.ApplyBatch(lsn, payload)
	case journal.KindMeta:
		return n.KV.ApplyMeta(lsn, payload)
	}
	return nil
}

// Stop stops the node in order.
func (n *Node) Stop() {
	if n.stopped {
		return
	}
	n.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := n.Door.Shutdown(ctx)
	err = errors.Join(err, n.Journal.Close(), n.Broker.Close(), n.KV.Flush(), n.KV.Close())
	if err != nil {
		n.t.Errorf("stop: %v", err)
	}
}

// Restart stops and starts the node, on another port.
func (n *Node) Restart() {
	n.t.Helper()
	n.Stop()
	n.start()
}

// Crash cuts the power: what was not synced survives with a chance of unsyncedPercent per block. Then the node starts again. It needs the file system in
// memory.
func (n *Node) Crash(unsyncedPercent int, rng *rand.Rand) {
	n.t.Helper()
	n.CrashAfter(unsyncedPercent, rng, func() {})
}

// CrashAfter is Crash; between the power cut and the new start it calls clients, which must end whatever still talks to the old node.
func (n *Node) CrashAfter(unsyncedPercent int, rng *rand.Rand, clients func()) {
	n.t.Helper()
	mem, ok := n.o.FS.(*vfs.Mem)
	if !ok {
		n.t.Fatal("only a node in memory can be crashed")
	}
	after := vfs.CrashClone(mem, unsyncedPercent, rng)
	clients()
	n.Stop() // what it still writes goes to the old file system
	n.o.FS = after
	n.start()
}

// Checkpoint moves everything out of the journal.
func (n *Node) Checkpoint() {
	n.t.Helper()
	upTo, err := n.Broker.PrepareCheckpoint(context.Background())
	n.must(err, "checkpoint")
	n.must(n.KV.Flush(), "flush")
	n.must(n.Journal.Checkpoint(upTo), "checkpoint")
}

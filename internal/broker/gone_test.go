package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/broker/txn"
	"github.com/leat-io/leat/internal/commitlog"
	"github.com/leat-io/leat/internal/testlog"
	"github.com/leat-io/leat/internal/vfs"
)

// TestADeletedTopicIsNotDamaged deletes a topic after a checkpoint that has its records: the next start, which replays batches of it, has nothing to
// complain of. Damage that is none of a deletion's is reported.
func TestADeletedTopicIsNotDamaged(t *testing.T) {
	t.Parallel()
	var log testlog.Text
	s := newSteppedWith(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, name := range []string{"t", "u"} {
		p := s.topic(name, 1).Partition(0)
		s.b.Produce([]ProduceItem{{P: p, Batch: s.batch("a", "b")}})
	}
	s.settle()
	s.checkpoint()
	for _, name := range []string{"t", "u"} {
		topic, _ := s.b.Topic(name)
		s.b.Produce([]ProduceItem{{P: topic.Partition(0), Batch: s.batch("c")}})
	}
	s.settle()
	s.pump(func() { s.must(s.b.DeleteTopic(context.Background(), "t")) })
	s.must(s.fs.RemoveAll("/d/topics/u-0")) // what nobody asked for
	s.must(vfs.SyncDir(s.fs, "/d/topics"))
	s.crash(0, nil)
	if _, ok := s.b.Topic("t"); ok {
		t.Error("the topic is there again")
	}
	u, _ := s.b.Topic("u")
	if err := u.Partition(0).Err(); !errors.Is(err, ErrDamaged) {
		t.Errorf("a partition without its files: %v", err)
	}
	n := 0
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "topic=t") && !strings.Contains(line, "level=INFO") {
			t.Error(line)
		}
		if strings.Contains(line, "topic=u") && strings.Contains(line, "out of service") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the damage is reported %d times:\n%s", n, log.String())
	}
}

// TestATopicWithoutALogIsNotMade has the log of a topic, and of an added partition, fail to open: nothing of it is in the metadata, and when the
// reason has gone it is made.
func TestATopicWithoutALogIsNotMade(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	s.topic("u", 1)
	var held []*commitlog.Log
	for _, name := range []string{"t-1", "u-1"} {
		l, err := s.b.logs.Open(name, [16]byte{9}, commitlog.Config{})
		s.must(err)
		held = append(held, l)
	}
	s.pump(func() {
		topics, errs := s.b.CreateTopics(context.Background(), []TopicSpec{{Name: "t", Partitions: 3}}, false)
		if errs[0] == nil || topics[0] != nil {
			t.Error("a topic without a log is made")
		}
		if err := s.b.CreatePartitions(context.Background(), "u", 3, false); err == nil {
			t.Error("a partition without a log is made")
		}
	})
	for _, l := range held {
		s.must(l.Close())
	}
	s.crash(0, nil)
	if _, ok := s.b.Topic("t"); ok {
		t.Error("a topic that was refused is there after a restart")
	}
	if u, _ := s.b.Topic("u"); len(u.Partitions()) != 1 {
		t.Errorf("%d partitions after a restart", len(u.Partitions()))
	}
	p := s.topic("t", 3).Partition(1)
	s.pump(func() { s.must(s.b.CreatePartitions(context.Background(), "u", 3, false)) })
	u, _ := s.b.Topic("u")
	items := []ProduceItem{{P: p, Batch: s.batch("a")}, {P: u.Partition(1), Batch: s.batch("b")}}
	s.b.Produce(items)
	s.settle()
	if items[0].Err != nil || items[1].Err != nil || p.HighWatermark() != 1 || u.Partition(1).HighWatermark() != 1 {
		t.Errorf("%+v", items)
	}
}

// crampedFS has no file descriptor left for the files of logs, while it is told so.
type crampedFS struct {
	vfs.FS
	cramped atomic.Bool
	refused chan struct{}
}

func (c *crampedFS) OpenReadWrite(path string, k vfs.WriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if c.cramped.Load() && strings.HasSuffix(path, ".log") {
		select {
		case c.refused <- struct{}{}:
		default:
		}
		return nil, syscall.EMFILE
	}
	return c.FS.OpenReadWrite(path, k, o...)
}

// TestNoFileDescriptorIsLeft produces while no file can be opened: it is done when one can.
func TestNoFileDescriptorIsLeft(t *testing.T) {
	t.Parallel()
	fs := &crampedFS{refused: make(chan struct{}, 1)}
	s := newSteppedWith(t, func(o *Options) { fs.FS, o.FS = o.FS, fs })
	p := s.topic("t", 1).Partition(0)
	fs.cramped.Store(true)
	big := s.batch(strings.Repeat("x", 100<<10)) // too large to wait in memory
	items := []ProduceItem{{P: p, Batch: big}}
	s.b.Produce(items)
	s.must(items[0].Err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.settle()
	}()
	<-fs.refused
	if p.HighWatermark() != 0 {
		t.Error("acknowledged, and not in a file")
	}
	fs.cramped.Store(false)
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		default:
			s.ck.Advance(roomPoll)
		}
	}
	if p.HighWatermark() != 1 {
		t.Errorf("%d records are durable", p.HighWatermark())
	}
}

// TestUsedUpProducersAreForgotten has one transactional id go through many producer ids.
func TestUsedUpProducersAreForgotten(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	ts := s.b.Transactions()
	ids := map[int64]bool{}
	for range 5 {
		tx := s.startTransaction()
		ids[tx.ProducerID] = true
		sh, err := ts.locked("x", false)
		s.must(err)
		raw := sh.t.Snapshot()
		binary.BigEndian.PutUint16(raw[2+8:], 0x7ffe) // the last epoch there is
		sh.t, err = txn.Restore(raw)
		s.must(err)
		sh.mu.Unlock()
	}
	if len(ids) != 5 || len(ts.byProducer) != 1 {
		t.Errorf("%d producer ids were used, and %d are remembered", len(ids), len(ts.byProducer))
	}
	s.ck.Advance(30 * 24 * time.Hour)
	s.pump(ts.expire)
	if len(ts.byProducer) != 0 || len(ts.all()) != 0 {
		t.Errorf("%d producers of %d ids are remembered", len(ts.byProducer), len(ts.all()))
	}
}

package broker

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/leat-io/leat/internal/broker/txn"
	"github.com/leat-io/leat/internal/vfs"
)

// simple is a client without the group protocol.
var simple = Committer{Generation: -1}

// wantNoOffset fails unless the group has no position in the topic, now and after a restart.
func (s *stepped) wantNoOffset(topic string) {
	s.t.Helper()
	for _, when := range []string{"now", "after a restart"} {
		if o, ok, err := s.b.Groups().Committed("g", topic, 0); err != nil || ok {
			s.t.Errorf("%s: the group stands at %+v in a topic that it never read (%v)", when, o, err)
		}
		s.settle()
		s.crash(0, nil)
	}
}

// commitStarted has the group commit a position; it returns when that is ordered, and not durable.
func (s *stepped) commitStarted(topic string) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := s.b.Groups().Commit(context.Background(), "g", simple, []Offset{{Topic: topic, Offset: 3}}); err != nil {
			s.t.Error(err)
		}
	}()
	for ordered := false; !ordered; runtime.Gosched() {
		if sh, err := s.b.Groups().locked("g", false); err == nil && sh != nil {
			ordered = sh.inFlight > 0
			sh.mu.Unlock()
		}
	}
	return func() { <-done }
}

// TestACommitBesideTheDeletionOfItsTopic has the positions in a topic forgotten when a commit is ordered, and who made it has not heard that it is durable.
func TestACommitBesideTheDeletionOfItsTopic(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	s.topic("t", 1)
	wait := s.commitStarted("t")
	s.b.groups.topicDeleted("t")
	s.pump(wait)
	s.wantNoOffset("t")
}

// TestADeletionThatACrashCutsShort loses what comes behind the unit that deletes a topic.
func TestADeletionThatACrashCutsShort(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	s.topic("t", 1)
	s.pump(s.commitStarted("t"))
	tx := s.startTransaction()
	s.holdOffset(tx, "t")
	// What a deletion does with positions waits for the group.
	sh, err := s.b.Groups().locked("g", false)
	s.must(err)
	done := make(chan error, 1)
	go func() { done <- s.b.DeleteTopic(context.Background(), "t") }()
	for there := true; there; _, there = s.b.Topic("t") {
		s.j.Step()
	}
	s.settle()
	after := vfs.CrashClone(s.fs, 0, nil)
	sh.mu.Unlock()
	s.must(<-done)
	s.close()
	s.fs = after
	s.open()
	s.topic("t", 1)
	s.endTransaction(tx, true)
	s.wantNoOffset("t")
}

func (s *stepped) startTransaction() (tx txn.Output) {
	s.t.Helper()
	var err error
	s.pump(func() {
		tx, err = s.b.Transactions().Init(context.Background(), "x", txn.Init{Timeout: time.Minute, ProducerID: -1, Epoch: -1})
	})
	s.must(err)
	return tx
}

// holdOffset commits a position within the transaction.
func (s *stepped) holdOffset(tx txn.Output, topic string) {
	s.t.Helper()
	s.pump(func() {
		code, refused, err := s.b.Transactions().CommitOffsets(context.Background(), "x", tx.ProducerID, tx.Epoch, "g", true, simple, []Offset{{Topic: topic, Offset: 3}})
		if err != nil || code != txn.OK || group.Code(refused) != group.OK {
			s.t.Error(code, refused, err)
		}
	})
}

func (s *stepped) endTransaction(tx txn.Output, commit bool) {
	s.t.Helper()
	s.pump(func() {
		out, err := s.b.Transactions().End(context.Background(), "x", txn.End{ProducerID: tx.ProducerID, Epoch: tx.Epoch, Commit: commit})
		if err != nil || out.Code != txn.OK {
			s.t.Error(out.Code, err)
		}
	})
}

// TestATransactionOverATopicMadeAnew deletes a topic, and makes it anew, while a transaction holds a position in it.
func TestATransactionOverATopicMadeAnew(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	s.topic("t", 1)
	tx := s.startTransaction()
	s.holdOffset(tx, "t")
	s.pump(func() { s.must(s.b.DeleteTopic(context.Background(), "t")) })
	s.topic("t", 1)
	if s.b.Groups().Unstable("g", "t", 0) {
		t.Error("a transaction is said to commit a position in the new topic")
	}
	s.crash(0, nil)
	s.endTransaction(tx, true)
	s.wantNoOffset("t")
}

// TestATopicMadeAnewBeforeACheckpointThatFailed deletes a topic and makes it anew; then a checkpoint records where the partitions end, and a crash keeps it from
// getting further. The replay meets the old topic first, and leaves the files alone: they are the new one's.
func TestATopicMadeAnewBeforeACheckpointThatFailed(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{false, true} {
		s := newStepped(t)
		produce := func(values ...string) {
			t.Helper()
			s.pump(func() {
				_, err := s.partition("t").Produce(context.Background(), s.batch(values...), -1)
				s.must(err)
			})
		}
		s.topic("t", 1)
		produce("old", "older")
		s.checkpoint()
		if written {
			produce("oldest")
		}
		s.pump(func() { s.must(s.b.DeleteTopic(context.Background(), "t")) })
		s.topic("t", 1)
		produce("new")
		s.pump(func() {
			_, err := s.b.PrepareCheckpoint(context.Background())
			s.must(err)
		})
		s.crash(0, nil)
		if got := s.read(s.partition("t"), ViewDurable); len(got) != 1 || got[0] != "new" {
			t.Errorf("written %t: the topic has %q (%v)", written, got, s.partition("t").Err())
		}
	}
}

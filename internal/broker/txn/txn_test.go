package txn

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var epoch0 = time.UnixMilli(1_900_000_000_000)

// script runs events one after the other and compares what comes of each.
type script struct {
	t   *testing.T
	tx  *Transaction
	now time.Time
}

func newScript(t *testing.T) *script { return &script{t: t, tx: New(epoch0), now: epoch0} }

func (s *script) step(ev Event) Output {
	s.t.Helper()
	before := s.tx.Snapshot()
	out := s.tx.Step(s.now, ev)
	if !out.Persist && string(before) != string(s.tx.Snapshot()) {
		s.t.Errorf("%#v changes what nobody stores", ev)
	}
	back, err := Restore(s.tx.Snapshot())
	if err != nil {
		s.t.Fatal(err)
	}
	if d := cmp.Diff(s.tx, back, cmp.AllowUnexported(Transaction{})); d != "" {
		s.t.Fatalf("restored:\n%s", d)
	}
	s.tx = back
	return out
}

func (s *script) want(ev Event, code Code, epoch int16) Output {
	s.t.Helper()
	out := s.step(ev)
	if out.Code != code || out.Epoch != epoch {
		s.t.Fatalf("%#v: code %d, epoch %d, want %d and %d", ev, out.Code, out.Epoch, code, epoch)
	}
	return out
}

func initial(expected int16) Init {
	ev := Init{Timeout: time.Minute, MaxTimeout: time.Hour, ProducerID: -1, Epoch: -1, NewProducerID: 7}
	if expected >= 0 {
		ev.ProducerID, ev.Epoch = 7, expected
	}
	return ev
}

func add(epoch int16, index int32) Add {
	return Add{ProducerID: 7, Epoch: epoch, Partitions: []Partition{{Topic: [16]byte{1}, Index: index}}}
}

func TestTheFirstProtocol(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.want(add(0, 0), InvalidProducerIDMapping, -1)
	s.want(initial(-1), OK, 0)
	s.want(End{ProducerID: 7, Commit: true}, InvalidTxnState, 0)
	if out := s.want(add(0, 2), OK, 0); !out.Persist || !out.Wake.Equal(epoch0.Add(time.Minute)) {
		t.Errorf("%+v", out)
	}
	if out := s.want(add(0, 2), OK, 0); out.Persist {
		t.Error("a partition that is there already is stored again")
	}
	s.want(Add{ProducerID: 7, Groups: []string{"g"}}, OK, 0)
	s.want(add(1, 3), ProducerFenced, 0)
	s.want(Add{ProducerID: 8}, InvalidProducerIDMapping, 0)
	out := s.want(End{ProducerID: 7, Commit: true}, OK, 0)
	want := &Ended{Commit: true, ProducerID: 7, Partitions: []Partition{{Topic: [16]byte{1}, Index: 2}}, Groups: []string{"g"}}
	if d := cmp.Diff(want, out.Ended); d != "" {
		t.Error(d)
	}
	if out := s.want(End{ProducerID: 7, Commit: true}, OK, 0); out.Ended != nil || out.Persist {
		t.Errorf("asked again: %+v", out)
	}
	s.want(End{ProducerID: 7}, InvalidTxnState, 0)
}

func TestAStartFencesAndAborts(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.want(initial(-1), OK, 0)
	s.want(add(0, 0), OK, 0)
	out := s.want(initial(-1), OK, 1)
	if out.Ended == nil || out.Ended.Commit || out.Ended.Epoch != 1 {
		t.Errorf("%+v", out.Ended)
	}
	s.want(End{ProducerID: 7, Commit: true}, ProducerFenced, 1)
	s.want(End{ProducerID: 7, Commit: true, Bump: true}, ProducerFenced, 1)
	s.want(add(0, 0), ProducerFenced, 1)
	s.want(initial(0), ProducerFenced, 1) // it was not this producer that raised the epoch
}

func TestAProducerRaisesItsOwnEpoch(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.want(initial(-1), OK, 0)
	s.want(initial(0), OK, 1)
	s.want(initial(0), OK, 1) // again
	s.want(add(1, 0), OK, 1)
	s.want(initial(0), ProducerFenced, 1) // late: the transaction must not suffer
	s.want(End{ProducerID: 7, Epoch: 1}, OK, 1)
	s.want(initial(1), OK, 2)
	s.want(initial(0), ProducerFenced, 2)
	s.want(Init{Timeout: time.Minute, MaxTimeout: time.Hour, ProducerID: 9, Epoch: 2, NewProducerID: 11}, ProducerFenced, 2)
}

func TestTheSecondProtocol(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.want(initial(-1), OK, 0)
	s.want(End{ProducerID: 7, Commit: true, Bump: true}, InvalidTxnState, 0)
	s.want(add(0, 0), OK, 0)
	commit := End{ProducerID: 7, Commit: true, Bump: true}
	if out := s.want(commit, OK, 1); out.Ended == nil || out.Ended.Epoch != 1 {
		t.Errorf("%+v", out.Ended)
	}
	if out := s.want(commit, OK, 1); out.Ended != nil {
		t.Error("asked again, ended twice")
	}
	s.want(End{ProducerID: 7, Bump: true}, InvalidTxnState, 1) // it was committed
	s.want(add(1, 0), OK, 1)
	s.want(commit, ProducerFenced, 1) // late: must not hit the next one
	s.want(add(0, 0), ProducerFenced, 1)
	abort := End{ProducerID: 7, Epoch: 1, Bump: true}
	s.want(abort, OK, 2)
	s.want(abort, OK, 2)
	s.want(End{ProducerID: 7, Epoch: 2, Bump: true}, OK, 3) // an abort of nothing
}

func TestTheTimeoutAborts(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.want(initial(-1), OK, 0)
	s.want(add(0, 0), OK, 0)
	s.now = s.now.Add(time.Minute - 1)
	s.want(Tick{}, OK, 0)
	s.now = s.now.Add(1)
	out := s.want(Tick{}, OK, 1)
	if out.Ended == nil || out.Ended.Commit || out.Ended.Epoch != 1 || !out.Ended.TimedOut {
		t.Errorf("%+v", out.Ended)
	}
	s.want(add(0, 0), ProducerFenced, 1)
	s.want(End{ProducerID: 7, Commit: true}, ProducerFenced, 1)
	s.want(End{ProducerID: 7, Commit: true, Bump: true}, InvalidTxnState, 1)
	s.want(End{ProducerID: 7, Bump: true}, OK, 1) // so the producer learns the epoch to go on with
}

func TestEpochsAreUsedUp(t *testing.T) {
	t.Parallel()
	for _, bump := range []bool{false, true} {
		s := newScript(t)
		s.want(initial(-1), OK, 0)
		s.tx.epoch = maxEpoch
		s.want(add(maxEpoch, 0), OK, maxEpoch)
		if bump {
			end := End{ProducerID: 7, Epoch: maxEpoch, Commit: true, Bump: true, NewProducerID: 8}
			for range 2 {
				if out := s.want(end, OK, 0); out.ProducerID != 8 || out.Ended != nil && out.Ended.Epoch != maxEpoch+1 {
					t.Fatalf("%+v", out)
				}
			}
			continue
		}
		s.want(End{ProducerID: 7, Epoch: maxEpoch, Commit: true}, OK, maxEpoch)
		again := initial(maxEpoch)
		again.NewProducerID = 8
		for range 2 {
			if out := s.want(again, OK, 0); out.ProducerID != 8 {
				t.Fatalf("%+v", out)
			}
		}
	}
	t.Run("by the timeout", func(t *testing.T) {
		s := newScript(t)
		s.want(initial(-1), OK, 0)
		s.tx.epoch = maxEpoch
		s.want(add(maxEpoch, 0), OK, maxEpoch)
		s.now = s.now.Add(time.Hour)
		s.want(Tick{}, OK, maxEpoch+1)
		again := initial(-1)
		again.NewProducerID = 8
		if out := s.want(again, OK, 0); out.ProducerID != 8 {
			t.Fatalf("%+v", out)
		}
	})
}

func TestTimeoutsAreBounded(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	for _, d := range []time.Duration{0, -1, 2 * time.Hour} {
		s.want(Init{Timeout: d, MaxTimeout: time.Hour, ProducerID: -1, Epoch: -1}, InvalidTransactionTimeout, -1)
	}
}

func FuzzRestore(f *testing.F) {
	tx := New(epoch0)
	tx.Step(epoch0, initial(-1))
	tx.Step(epoch0, Add{ProducerID: 7, Partitions: []Partition{{Index: 3}, {Topic: [16]byte{1}, Index: 4}}, Groups: []string{"a", "b"}})
	f.Add(tx.Snapshot())
	f.Fuzz(func(t *testing.T, b []byte) {
		tx, err := Restore(b)
		if err != nil {
			return
		}
		if _, err := Restore(tx.Snapshot()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAZombieOfTheSecondProtocolDoesNotLearnTheEpoch(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.want(initial(-1), OK, 0)
	s.want(add(0, 0), OK, 0)
	s.want(initial(-1), OK, 1) // another producer, of the first protocol
	s.want(add(1, 0), OK, 1)
	s.want(End{ProducerID: 7, Epoch: 1}, OK, 1)
	s.want(End{ProducerID: 7, Bump: true}, ProducerFenced, 1)
}

// TestACompleteTransactionSaysWhenItBegan, as Kafka's does; a producer that starts has had none yet.
func TestACompleteTransactionSaysWhenItBegan(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.want(initial(-1), OK, 0)
	if at := s.tx.Describe().Started; !at.IsZero() {
		t.Errorf("before the first transaction: %v", at)
	}
	for _, commit := range []bool{true, false} {
		s.now = s.now.Add(time.Minute)
		began := s.now
		s.want(add(0, 1), OK, 0)
		s.now = s.now.Add(10 * time.Second)
		s.want(End{ProducerID: 7, Epoch: 0, Commit: commit}, OK, 0)
		if at := s.tx.Describe().Started; !at.Equal(began) {
			t.Errorf("it began at %v, and says %v", began, at)
		}
		if wake := s.tx.Wake(); !wake.IsZero() {
			t.Errorf("something is due at %v", wake)
		}
	}
	s.want(initial(0), OK, 1)
	if at := s.tx.Describe().Started; !at.IsZero() {
		t.Errorf("after a start: %v", at)
	}
}

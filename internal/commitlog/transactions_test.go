package commitlog

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// transacted is a log with transactions, beside a model of what was appended.
type transacted struct {
	t       *testing.T
	rng     *rand.Rand
	fs      *vfs.Mem
	m       *Manager
	l       *Log
	batches [][]byte // as the journal has them
	next    int64
	seq     map[int64]int32
	open    map[int64]int64
	aborted []AbortedTransaction
}

var smallSegments = Config{SegmentBytes: 900, IndexIntervalBytes: 200}

func newTransacted(t *testing.T, rng *rand.Rand) *transacted {
	x := &transacted{t: t, rng: rng, fs: vfs.NewCrashable(), seq: map[int64]int32{}, open: map[int64]int64{}}
	x.m = openManager(t, x.fs, clock.Real)
	x.l = openLog(t, x.m, "t-0", smallSegments)
	return x
}

func (x *transacted) append(batch []byte) {
	x.t.Helper()
	record.Patch(batch, x.next, 0)
	h, err := record.ParseHeader(batch)
	if err != nil {
		x.t.Fatal(err)
	}
	if err := x.l.Append(batch); err != nil {
		x.t.Fatal(err)
	}
	x.batches = append(x.batches, batch)
	x.next = h.NextOffset()
}

func (x *transacted) produce(id int64, transactional bool) {
	b := record.NewBuilder(record.None)
	b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = id, 0, x.seq[id], transactional
	n := 1 + x.rng.IntN(3)
	for range n {
		b.Append(1, nil, make([]byte, x.rng.IntN(80)))
	}
	if _, ok := x.open[id]; transactional && !ok {
		x.open[id] = x.next
	}
	x.seq[id] += int32(n)
	x.append(b.Build(nil))
}

func (x *transacted) end(id int64, commit bool) {
	first, ok := x.open[id]
	if !ok {
		first = -1
	}
	at := x.next
	x.append((&record.EndMarker{ProducerID: id, Commit: commit, First: first, Timestamp: 1}).AppendTo(nil))
	delete(x.open, id)
	if ok && !commit {
		x.aborted = append(x.aborted, AbortedTransaction{ProducerID: id, First: first, Last: at})
	}
}

// crash loses what was not synced, and brings back what the journal has.
func (x *transacted) crash(damage func(vfs.FS)) {
	x.t.Helper()
	x.fs = vfs.CrashClone(x.fs, x.rng.IntN(100), x.rng)
	if damage != nil {
		damage(x.fs)
	}
	x.m = openManager(x.t, x.fs, clock.Real)
	x.l = openLog(x.t, x.m, "t-0", smallSegments)
	for _, b := range x.batches {
		h, err := record.ParseHeader(b)
		if err != nil {
			x.t.Fatal(err)
		}
		if h.BaseOffset < x.l.EndOffset() && x.rng.IntN(4) > 0 {
			continue
		}
		if err := x.l.Append(b); err != nil {
			x.t.Fatal(err)
		}
	}
}

func (x *transacted) check() {
	x.t.Helper()
	from := x.rng.Int64N(x.next + 1)
	to := from + x.rng.Int64N(x.next-from+1)
	var want []AbortedTransaction
	for _, a := range x.aborted {
		if a.Last >= from && a.First < to {
			want = append(want, a)
		}
	}
	slices.SortFunc(want, func(a, b AbortedTransaction) int { return int(a.First - b.First) })
	got, err := x.l.Aborted(from, to, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	// What comes back may reach behind: a reader passes over what it does not meet.
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(AbortedTransaction{}, "Stable")); d != "" {
		x.t.Fatalf("aborted in [%d, %d) of %d:\n%s", from, to, x.next, d)
	}
	open, err := x.l.OpenTransactions()
	if err != nil {
		x.t.Fatal(err)
	}
	var held []OpenTransaction
	for id, first := range x.open {
		held = append(held, OpenTransaction{ProducerID: id, First: first})
	}
	slices.SortFunc(held, func(a, b OpenTransaction) int { return int(a.First - b.First) })
	if d := cmp.Diff(held, open, cmpopts.EquateEmpty()); d != "" {
		x.t.Fatalf("open transactions:\n%s", d)
	}
}

// TestTransactionsFollowTheLog appends transactions of several producers, in small segments, syncs, crashes, and loses or garbles indexes and snapshots.
func TestTransactionsFollowTheLog(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rng *rand.Rand) {
		x := newTransacted(t, rng)
		for range 250 {
			id := rng.Int64N(5)
			switch n := rng.IntN(30); {
			case n < 14:
				x.produce(id, true)
			case n < 16:
				x.produce(9, false)
			case n < 24:
				x.end(id, rng.IntN(2) == 0)
			case n < 26:
				if err := x.m.Sync(context.Background(), nil); err != nil {
					t.Fatal(err)
				}
			case n < 27:
				x.crash(nil)
			case n < 28:
				x.crash(func(fs vfs.FS) { x.spoil(fs) })
			default:
				x.check()
			}
		}
		x.check()
	})
}

// spoil deletes, cuts or garbles indexes of aborted transactions and snapshots.
func (x *transacted) spoil(fs vfs.FS) {
	names, err := fs.List("log/t-0")
	if err != nil {
		return
	}
	for _, n := range names {
		path := fs.PathJoin("log/t-0", n)
		if !strings.HasSuffix(n, ".txnindex") && !strings.HasSuffix(n, ".snapshot") {
			continue
		}
		b, err := vfs.ReadFile(fs, path, 1<<20)
		if err != nil {
			x.t.Fatal(err)
		}
		switch x.rng.IntN(4) {
		case 0:
			if err := fs.Remove(path); err != nil {
				x.t.Fatal(err)
			}
			continue
		case 1:
			b = b[:x.rng.IntN(len(b)+1)]
		case 2:
			if len(b) > 0 {
				b[x.rng.IntN(len(b))] ^= 1 << x.rng.IntN(8)
			}
		case 3:
			b = append(b, make([]byte, 100)...)
		}
		f, err := fs.Create(path, vfs.Unspecified)
		if err == nil {
			_, err = f.Write(b)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			x.t.Fatal(err)
		}
	}
}

func TestTheIndexOfAbortedTransactionsIsKafkas(t *testing.T) {
	t.Parallel()
	x := newTransacted(t, rand.New(rand.NewPCG(1, 1)))
	x.produce(1, true)
	x.produce(2, true)
	first2 := x.open[2]
	x.end(1, false)
	at := x.next - 1
	if err := x.m.Sync(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	b, err := vfs.ReadFile(x.fs, "log/t-0/"+segmentName(0)+".txnindex", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	be := binary.BigEndian
	if len(b) != 34+abortedTrailerLen || be.Uint16(b) != 0 || be.Uint64(b[2:]) != 1 || be.Uint64(b[10:]) != 0 || be.Uint64(b[18:]) != uint64(at) || be.Uint64(b[26:]) != uint64(first2) {
		t.Errorf("% x", b)
	}
}

func TestAMarkerFencesAfterARestart(t *testing.T) {
	t.Parallel()
	x := newTransacted(t, rand.New(rand.NewPCG(1, 1)))
	x.produce(1, true)
	x.append((&record.EndMarker{ProducerID: 1, ProducerEpoch: 4, First: 0}).AppendTo(nil))
	if err := x.m.Sync(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	x.fs = vfs.CrashClone(x.fs, 0, nil)
	x.m = openManager(t, x.fs, clock.Real)
	x.l = openLog(t, x.m, "t-0", smallSegments)
	ps, err := x.l.Producers()
	if err != nil {
		t.Fatal(err)
	}
	for epoch, want := range map[int16]Outcome{0: InvalidEpoch, 3: InvalidEpoch, 4: Accept, 5: Accept} {
		if o, _ := ps.Check(&record.Header{ProducerID: 1, ProducerEpoch: epoch}); o != want {
			t.Errorf("epoch %d: %v, want %v", epoch, o, want)
		}
	}
}

func TestProducersAreBoundedAndExpireByTheClock(t *testing.T) {
	t.Parallel()
	ps := Producers{max: 100}
	header := func(id int64, transactional bool) *record.Header {
		h := &record.Header{ProducerID: id, BaseOffset: id, MaxTimestamp: 1} // a record's time says nothing of when it was written
		if transactional {
			h.Attributes = 0x10
		}
		return h
	}
	ps.Update(header(0, true), 0)
	for id := int64(1); id < 1000; id++ {
		ps.Update(header(id, false), id)
		if ps.Len() > 100 {
			t.Fatal(ps.Len(), "producers")
		}
	}
	if _, ok := ps.Open(0); !ok {
		t.Error("a producer with an open transaction was forgotten")
	}
	if o, _ := ps.Check(header(999, false)); o != Duplicate {
		t.Error("the newest producer was forgotten", o)
	}
	ps.Expire(999)
	if ps.Len() != 2 {
		t.Error(ps.Len(), "producers are left; the newest and the one in a transaction are to be")
	}
	ps.Update(&record.Header{ProducerID: 0, BaseOffset: 2000, Attributes: 0x30}, 0)
	if ps.Expire(time.Hour.Milliseconds()); ps.Len() != 0 {
		t.Error(ps.Len(), "producers are left")
	}
}

func TestANonTransactionalBatchIsRefusedWithinATransaction(t *testing.T) {
	t.Parallel()
	var ps Producers
	ps.Update(&record.Header{ProducerID: 3, Attributes: 0x10}, 0)
	if o, _ := ps.Check(&record.Header{ProducerID: 3, BaseSequence: 1}); o != InTransaction {
		t.Error(o)
	}
	if o, _ := ps.Check(&record.Header{ProducerID: 3, BaseSequence: 1, Attributes: 0x10}); o != Accept {
		t.Error(o)
	}
}

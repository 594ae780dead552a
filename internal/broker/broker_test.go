package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// stepped is a broker over a journal that moves only when it is told to, on a file system that can lose power.
type stepped struct {
	t  testing.TB
	fs *vfs.Mem
	b  *Broker
	j  *journal.Journal
	db *kv.DB
	ck *clock.Manual

	tune func(*Options) // nil: nothing to change
}

func newStepped(t testing.TB) *stepped { return newSteppedWith(t, nil) }

func newSteppedWith(t testing.TB, tune func(*Options)) *stepped {
	s := &stepped{t: t, tune: tune, fs: vfs.NewCrashable(), ck: clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))}
	s.open()
	t.Cleanup(func() { s.close() })
	return s
}

func (s *stepped) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stepped) open() {
	s.t.Helper()
	var err error
	s.must(s.fs.MkdirAll("/d", 0o755))
	s.must(vfs.SyncDir(s.fs, "/"))
	s.db, err = kv.Open(kv.Options{FS: s.fs, Dir: "/d/kv", CacheBytes: 1 << 20, MemTableBytes: 256 << 10})
	s.must(err)
	s.j, err = journal.Open(journal.Options{FS: s.fs, Dir: "/d/journal", SegmentBytes: 1 << 20, Clock: s.ck})
	s.must(err)
	o := Options{Journal: s.j, KV: s.db, FS: s.fs, Dir: "/d/topics", Clock: s.ck}
	if s.tune != nil {
		s.tune(&o)
	}
	s.b, err = Open(o)
	s.must(err)
	_, err = s.j.Recover(s.apply)
	s.must(err)
	s.j.SetApply(s.apply)
	s.pump(func() { s.must(s.b.Start(context.Background())) })
	s.must(vfs.SyncDir(s.fs, "/d"))
}

func (s *stepped) apply(lsn journal.LSN, kind journal.Kind, payload []byte) error {
	switch kind {
	case journal.KindBatch:
		return s.b.ApplyBatch(lsn, payload)
	case journal.KindMeta:
		return s.db.ApplyMeta(lsn, payload)
	}
	return nil
}

// pump runs fn, which may wait for the journal, and lets the journal work meanwhile.
func (s *stepped) pump(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	for {
		select {
		case <-done:
			return
		default:
			if !s.j.Step() {
				select {
				case <-done:
				case <-time.After(time.Millisecond):
				}
			}
		}
	}
}

// settle lets the journal finish what it has.
func (s *stepped) settle() {
	for s.j.Step() {
	}
}

func (s *stepped) close() {
	s.settle()
	_ = s.j.Close()
	_ = s.b.Close()
	_ = s.db.Close()
}

// crash cuts the power and starts again.
func (s *stepped) crash(unsynced int, rng *rand.Rand) {
	s.t.Helper()
	after := vfs.CrashClone(s.fs, unsynced, rng)
	s.close()
	s.fs = after
	s.open()
}

func (s *stepped) checkpoint() {
	s.t.Helper()
	s.pump(func() {
		upTo, err := s.b.PrepareCheckpoint(context.Background())
		s.must(err)
		s.must(s.db.Flush())
		s.must(s.j.Checkpoint(upTo))
	})
}

func (s *stepped) topic(name string, partitions int32) *Topic {
	s.t.Helper()
	return s.topicWith(name, partitions, nil)
}

func (s *stepped) topicWith(name string, partitions int32, configs map[string]string) *Topic {
	s.t.Helper()
	var topic *Topic
	s.pump(func() {
		var err error
		topic, err = s.b.CreateTopic(context.Background(), TopicSpec{Name: name, Partitions: partitions, Configs: configs})
		s.must(err)
	})
	return topic
}

func (s *stepped) batch(values ...string) []byte { return s.sequenced(-1, -1, values...) }

func (s *stepped) sequenced(producer int64, seq int32, values ...string) []byte {
	b := record.NewBuilder(record.None)
	if producer >= 0 {
		b.ProducerID, b.ProducerEpoch, b.BaseSequence = producer, 0, seq
	}
	b.Reset()
	for _, v := range values {
		b.Append(s.ck.Now().UnixMilli(), nil, []byte(v))
	}
	return b.Build(nil)
}

// read returns the values of a partition, up to an end of its own.
func (s *stepped) read(p *Partition, v View) []string {
	s.t.Helper()
	var out []string
	offset, err := p.StartOffset()
	s.must(err)
	for offset < p.End(v) {
		c, err := p.Read(offset, 1<<20, v, true)
		s.must(err)
		raw, err := c.AppendTo(nil)
		s.must(err)
		c.Release()
		for len(raw) > 0 {
			var one []byte
			one, raw, err = record.Next(raw)
			s.must(err)
			var r record.Reader
			s.must(r.Reset(one))
			for r.Next() {
				if r.Record().Offset != offset {
					s.t.Fatalf("%s: offset %d where %d is due", p, r.Record().Offset, offset)
				}
				out = append(out, string(r.Record().Value))
				offset++
			}
			s.must(r.Err())
		}
	}
	return out
}

func TestTheEngineReadsBeforeTheSyncAndClientsAfterIt(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p := s.topic("t", 1).Partition(0)
	w := NewWatcher()
	p.Watch(w, EdgeAppended)
	items := []ProduceItem{{P: p, Batch: s.batch("a", "b")}}
	if lsn := s.b.Produce(items); items[0].Err != nil || items[0].Base != 0 || lsn == 0 {
		t.Fatalf("%+v", items[0])
	}
	for p.Appended() == 0 && s.j.Step() {
	}
	if p.Appended() != 2 || p.HighWatermark() != 0 {
		t.Fatalf("appended %d, durable %d, want 2 and 0", p.Appended(), p.HighWatermark())
	}
	select {
	case <-w.C:
	default:
		t.Error("the watcher is not woken")
	}
	if got := s.read(p, ViewAppended); fmt.Sprint(got) != "[a b]" {
		t.Errorf("the engine reads %v", got)
	}
	if _, err := p.Read(2, 100, ViewDurable, true); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Errorf("a client reads what may be lost: %v", err)
	}
	s.settle()
	if p.HighWatermark() != 2 {
		t.Errorf("durable is %d after the sync", p.HighWatermark())
	}
}

func TestADuplicateWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p := s.topic("t", 1).Partition(0)
	produce := func() (journal.LSN, int64) {
		items := []ProduceItem{{P: p, Batch: s.sequenced(7, 0, "a")}}
		lsn := s.b.Produce(items)
		if items[0].Err != nil {
			t.Fatal(items[0].Err)
		}
		return lsn, items[0].Base
	}
	produce()
	if lsn, base := produce(); lsn == 0 || base != 0 {
		t.Errorf("the first is not durable, and the duplicate is answered at once (offset %d)", base)
	}
	s.settle()
	if lsn, base := produce(); lsn != 0 || base != 0 {
		t.Errorf("the first is durable: wait for %d, offset %d", lsn, base)
	}
	s.settle()
	if p.HighWatermark() != 1 {
		t.Errorf("%d records", p.HighWatermark())
	}
}

// unit commits one record to each of the partitions as one unit.
func (s *stepped) unit(value string, parts ...*Partition) []int64 {
	s.t.Helper()
	u := s.b.NewUnit()
	for _, p := range parts {
		_, err := u.AddBatch(p, s.batch(value))
		s.must(err)
	}
	_, offsets, err := u.Commit(context.Background())
	s.must(err)
	return offsets
}

func TestAUnitIsSeenWhole(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	topic := s.topic("t", 3)
	a, b, c := topic.Partition(0), topic.Partition(1), topic.Partition(2)
	s.settle()
	r := s.b.NewReader(topic.Partitions(), []int64{0, 0, 0})
	s.b.ReadersReady()
	s.unit("1", a, b)
	s.unit("2", b, c)
	s.unit("3", c)
	s.settle()
	if got := r.Cut(nil); fmt.Sprint(got) != "[1 2 2]" {
		t.Errorf("all: %v", got)
	}
	if got := r.Cut([]int64{9, 1, 9}); fmt.Sprint(got) != "[1 1 0]" {
		t.Errorf("the second unit does not fit: %v", got)
	}
	if got := s.b.Cut(topic.Partitions(), []int64{0, 1, 9}); fmt.Sprint(got) != "[0 0 0]" {
		t.Errorf("nothing fits: %v", got)
	}
	// A reader whose limits are smaller than the unit before it gets that unit whole.
	if got := r.Cut([]int64{1, 0, 0}); fmt.Sprint(got) != "[1 1 0]" {
		t.Errorf("a reader does not get on: %v", got)
	}
	// Units survive checkpoint and crash while a reader may need them.
	s.checkpoint()
	s.crash(0, rand.New(rand.NewPCG(1, 1)))
	topic, _ = s.b.Topic("t")
	r = s.b.NewReader(topic.Partitions(), []int64{0, 0, 0})
	s.b.ReadersReady()
	if got := r.Cut([]int64{9, 1, 9}); fmt.Sprint(got) != "[1 1 0]" {
		t.Errorf("after a restart: %v", got)
	}
	// And are forgotten when every reader is past them.
	r.Advance([]int64{1, 1, 0})
	if n := len(s.b.ends.units); n != 1 {
		t.Errorf("%d units are kept, want 1", n)
	}
	r.Advance([]int64{1, 2, 2})
	if n := len(s.b.ends.units); n != 0 {
		t.Errorf("%d units are kept, want 0", n)
	}
	r.Close()
}

func TestAUnitToADeletedTopicKeepsTheRest(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	keep, gone := s.topic("keep", 1).Partition(0), s.topic("gone", 1).Partition(0)
	s.pump(func() { s.must(s.b.DeleteTopic(context.Background(), "gone")) })
	if got := s.unit("v", keep, gone); fmt.Sprint(got) != "[0 -1]" {
		t.Errorf("offsets are %v", got)
	}
	s.settle()
	if keep.HighWatermark() != 1 {
		t.Error("the rest of the unit is not there")
	}
	if items := []ProduceItem{{P: gone, Batch: s.batch("x")}}; s.b.Produce(items) != 0 || !errors.Is(items[0].Err, ErrUnknownTopic) {
		t.Errorf("producing into it: %v", items[0].Err)
	}
}

func TestTheLeaderEpochGoesUpAtEachStart(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p := s.topic("t", 1).Partition(0)
	rng := rand.New(rand.NewPCG(1, 1))
	for start := range int32(4) {
		if got := s.b.LeaderEpoch(); got != start {
			t.Fatalf("epoch %d in start %d", got, start)
		}
		if start != 2 { // nothing is written in one of them
			for range 3 {
				s.b.Produce([]ProduceItem{{P: p, Batch: s.batch("v", "v")}})
			}
			s.settle()
		}
		s.crash(0, rng)
		topic, _ := s.b.Topic("t")
		p = topic.Partition(0)
	}
	for _, c := range []struct {
		epoch, want int32
		end         int64
	}{{0, 0, 6}, {1, 1, 12}, {2, 1, 12}, {3, 3, 18}, {4, 4, 18}, {9, 4, 18}} {
		if found, end, err := p.EndOfEpoch(c.epoch); err != nil || found != c.want || end != c.end {
			t.Errorf("epoch %d: found %d, ending at %d (%v), want %d and %d", c.epoch, found, end, err, c.want, c.end)
		}
	}
}

// TestCrashes plays random histories of producers with retries, of units over several partitions and of checkpoints, with the power cut between any two
// steps, and checks that offsets and contents are what was promised.
func TestCrashes(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(20) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) { crashes(t, seed) })
	}
}

func crashes(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	s := newStepped(t)
	const partitions = 3
	topic := s.topic("t", partitions)
	s.settle()
	type sent struct {
		p      int32
		base   int64
		value  string
		lsn    journal.LSN
		source int64
	}
	var pending []sent                              // ordered, not known to be durable
	durable := make([]map[int64]string, partitions) // offset -> value
	for i := range durable {
		durable[i] = map[int64]string{}
	}
	type source struct { // an idempotent producer that sends again what it is not sure of
		id     int64
		p      int32
		seq    int32
		values map[int32]string
	}
	var sources []*source
	for i := range int64(4) {
		sources = append(sources, &source{id: i, p: rng.Int32N(partitions), values: map[int32]string{}})
	}
	number := 0
	next := func() string { number++; return fmt.Sprint("v", number) }
	promote := func() {
		kept := pending[:0]
		for _, e := range pending {
			if e.lsn <= s.j.Durable() {
				if old, ok := durable[e.p][e.base]; ok && old != e.value {
					t.Fatalf("offset %d of partition %d was %q and is given to %q", e.base, e.p, old, e.value)
				}
				durable[e.p][e.base] = e.value
			} else {
				kept = append(kept, e)
			}
		}
		pending = kept
	}
	for range 150 {
		switch rng.IntN(10) {
		case 0, 1, 2:
			src := sources[rng.IntN(len(sources))]
			inFlight := 0
			for _, e := range pending {
				if e.source == src.id {
					inFlight++
				}
			}
			if inFlight == 5 { // no client has more
				continue
			}
			v := next()
			items := []ProduceItem{{P: topic.Partition(src.p), Batch: s.sequenced(src.id, src.seq, v)}}
			lsn := s.b.Produce(items)
			s.must(items[0].Err)
			src.values[src.seq] = v
			src.seq++
			pending = append(pending, sent{src.p, items[0].Base, v, lsn, src.id})
		case 3: // a retry of one of the last five
			src := sources[rng.IntN(len(sources))]
			if src.seq == 0 {
				continue
			}
			seq := src.seq - 1 - rng.Int32N(min(5, src.seq))
			items := []ProduceItem{{P: topic.Partition(src.p), Batch: s.sequenced(src.id, seq, src.values[seq])}}
			lsn := s.b.Produce(items)
			s.must(items[0].Err)
			if lsn == 0 && durable[src.p][items[0].Base] != src.values[seq] {
				promote()
				if durable[src.p][items[0].Base] != src.values[seq] {
					t.Fatalf("a duplicate of %q is said to be durable at %d", src.values[seq], items[0].Base)
				}
			}
		case 4:
			v := "unit " + next()
			for i, base := range s.unit(v, topic.Partition(0), topic.Partition(2)) {
				pending = append(pending, sent{int32(2 * i), base, v, s.j.Ordered(), -1})
			}
		case 5:
			s.checkpoint()
		case 6:
			if rng.IntN(3) > 0 {
				continue
			}
			promote()
			s.crash([]int{0, 50, 100}[rng.IntN(3)], rng)
			topic, _ = s.b.Topic("t")
			if topic == nil {
				t.Fatal("the topic is gone")
			}
			// What was not known to be durable may be there or not; producers find out by sending it again.
			pending = pending[:0]
			for i, want := range durable {
				got := s.read(topic.Partition(int32(i)), ViewDurable)
				for offset, v := range want {
					if offset >= int64(len(got)) || got[offset] != v {
						t.Fatalf("%q was durable at offset %d of partition %d; the partition has %d records", v, offset, i, len(got))
					}
				}
				for offset, v := range got {
					want[int64(offset)] = v
				}
			}
			s.unitsAreWhole(topic)
			for _, src := range sources {
				for seq := max(0, src.seq-5); seq < src.seq; seq++ {
					found := false
					for _, v := range durable[src.p] {
						found = found || v == src.values[seq]
					}
					items := []ProduceItem{{P: topic.Partition(src.p), Batch: s.sequenced(src.id, seq, src.values[seq])}}
					lsn := s.b.Produce(items)
					s.must(items[0].Err)
					if found && lsn != 0 || !found && lsn == 0 {
						t.Fatalf("producer %d, sequence %d: it was there: %v; to wait for: %d", src.id, seq, found, lsn)
					}
					if !found {
						pending = append(pending, sent{src.p, items[0].Base, src.values[seq], lsn, src.id})
					}
				}
			}
		default:
			for range rng.IntN(6) {
				s.j.Step()
			}
		}
		promote()
	}
}

// unitsAreWhole checks that a value of a unit is in both partitions or in neither.
func (s *stepped) unitsAreWhole(topic *Topic) {
	s.t.Helper()
	in := map[string]int{}
	for _, i := range []int32{0, 2} {
		for _, v := range s.read(topic.Partition(i), ViewDurable) {
			if strings.HasPrefix(v, "unit ") {
				in[v]++
			}
		}
	}
	for v, n := range in {
		if n != 2 {
			s.t.Fatalf("%q is there %d times, want 2: once in each partition", v, n)
		}
	}
}

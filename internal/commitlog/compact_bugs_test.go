package commitlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// story is one log with its oracle, for tests that tell a story.
type story struct {
	t   *testing.T
	fs  *vfs.Mem
	now *clock.Manual
	cfg Config
	mgr *Manager
	l   *Log
	m   *model
	// What the journal replays: all batches from this one on.
	recorded int
}

func newStory(t *testing.T, cfg Config) *story {
	t.Helper()
	cfg.Compact = true
	s := &story{t: t, fs: vfs.NewCrashable(), now: clock.NewManual(time.UnixMilli(1_000_000)), cfg: cfg, m: newModel()}
	s.open()
	return s
}

func (s *story) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) open() {
	s.t.Helper()
	s.mgr = openManager(s.t, s.fs, s.now)
	s.l = openLog(s.t, s.mgr, "t-0", s.cfg)
	for _, b := range s.m.batches[s.recorded:] {
		s.must(s.l.Append(b))
	}
}

// put appends a batch of "key=value" and "key" (a tombstone).
func (s *story) put(producer int64, txn bool, records ...string) {
	s.t.Helper()
	var in []input
	for _, r := range records {
		k, v, ok := strings.Cut(r, "=")
		x := input{key: []byte(k), ms: s.now.Now().UnixMilli()}
		if ok {
			x.value = []byte(v)
		}
		in = append(in, x)
	}
	s.must(s.l.Append(s.m.batch(record.None, producer, txn, in)))
}

func (s *story) end(producer int64, commit bool) {
	s.t.Helper()
	s.must(s.l.Append(s.m.marker(producer, s.now.Now().UnixMilli(), commit)))
}

func (s *story) roll() {
	s.t.Helper()
	s.must(s.l.Roll())
}

func (s *story) sync() {
	s.t.Helper()
	s.must(s.mgr.Sync(context.Background(), nil))
	s.recorded = len(s.m.batches)
}

// clean runs passes until nothing is left to do.
func (s *story) clean(mapKeys int) CleanStats {
	s.t.Helper()
	var all CleanStats
	for range 1000 {
		st, err := s.l.Clean(CleanOptions{Below: never, MapBytes: keySlotBytes * mapKeys})
		s.must(err)
		all.Replaced += st.Replaced
		if !st.More {
			s.m.check(s.t, s.l)
			return all
		}
	}
	s.t.Fatal("compaction does not end")
	return all
}

// kill loses what was not synced, and starts again.
func (s *story) kill() {
	s.t.Helper()
	s.fs = vfs.CrashClone(s.fs, 0, nil)
	s.open()
	s.m.check(s.t, s.l)
}

// found are the records there are, as offset:key=value.
func (s *story) found() string {
	s.t.Helper()
	var out []string
	for _, r := range readLog(s.t, s.l, s.m) {
		v := "-"
		if r.Value != nil {
			v = string(r.Value)
		}
		out = append(out, fmt.Sprintf("%d:%s=%s", r.Offset, r.Key, v))
	}
	return strings.Join(out, " ")
}

func (s *story) want(found string) {
	s.t.Helper()
	if got := s.found(); got != found {
		s.t.Fatalf("found %s, want %s", got, found)
	}
}

// The end of a log does not go back when compaction removed every record of its tail (KAFKA-17076).
func TestCompactedTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	s := newStory(t, Config{})
	keys := []string{"a=1", "b=1", "c=1"}
	s.put(-1, false, keys...)
	s.put(-1, false, keys...)
	s.roll()
	s.put(-1, false, keys...)
	s.roll()
	s.sync()
	s.clean(100)
	s.want("6:a=1 7:b=1 8:c=1")
	if s.l.segments[0].size == 0 {
		t.Fatal("a segment without a batch does not know where it ends")
	}
	s.kill()
	if s.l.EndOffset() != 9 {
		t.Fatalf("the log ends at %d after a restart", s.l.EndOffset())
	}
	// All that is left are the segments, and the last one with records is deleted, too.
	s.must(s.mgr.Close())
	for _, name := range append(files(t, s.fs, fmt.Sprintf("%020d.log", 9)), "log/"+offsetsName, "log/t-0/"+cleanName) {
		s.must(s.fs.Remove(name))
	}
	s.recorded = len(s.m.batches)
	s.open()
	if s.l.EndOffset() != 9 {
		t.Fatalf("the segments alone say that the log ends at %d", s.l.EndOffset())
	}
	// And once more with a tail of which nothing is left.
	s.put(-1, false, "a=2", "b=2", "c=2")
	s.roll()
	s.put(-1, false, "a=3", "b=3", "c=3")
	s.sync()
	s.clean(100)
	last := s.l.segments[len(s.l.segments)-1]
	end := last.base
	s.must(s.mgr.Close())
	s.must(s.fs.Remove(last.logPath()))
	s.must(s.fs.Remove("log/" + offsetsName))
	s.open()
	if s.l.EndOffset() != end {
		t.Fatalf("the log ends at %d, want %d", s.l.EndOffset(), end)
	}
}

// Control batches all have the same few keys, and lists of aborted transactions belong to segments: neither may make an aborted transaction visible
// (KAFKA-13727).
func TestCompactedAbortsStayAborted(t *testing.T) {
	t.Parallel()
	for _, mapKeys := range []int{1, 2, 3, 1000} {
		for _, rollEach := range []bool{false, true} {
			s := newStory(t, Config{DeleteRetention: time.Second})
			roll := func() {
				if rollEach {
					s.roll()
					s.sync()
					s.clean(mapKeys)
					s.kill()
				}
			}
			s.put(1, true, "a=wrong", "x=wrong")
			roll()
			for i := range 20 {
				s.put(-1, false, fmt.Sprintf("k%d=%d", i%7, i))
				if i%5 == 0 {
					roll()
				}
			}
			s.roll()
			s.end(1, false)
			roll()
			s.put(2, true, "b=wrong")
			s.end(2, false)
			s.put(1, true, "c=right")
			roll()
			s.end(1, true)
			s.roll()
			for range 3 {
				s.sync()
				s.clean(mapKeys)
				s.kill()
				s.now.Advance(2 * time.Second)
			}
			for _, r := range readLog(t, s.l, s.m) {
				if string(r.Value) == "wrong" {
					t.Fatalf("record %d of an aborted transaction is left", r.Offset)
				}
			}
		}
	}
}

// A tombstone is there for as long as delete.retention.ms says from the first pass that met it, and gone soon after, without new records (KAFKA-8522,
// KAFKA-4545).
func TestTombstonesGoInTime(t *testing.T) {
	t.Parallel()
	s := newStory(t, Config{DeleteRetention: 100 * time.Millisecond})
	due := func() bool {
		d, err := s.l.Dirt(s.now.Now(), never)
		s.must(err)
		return d.Overdue || d.Dirty > 0
	}
	s.put(-1, false, "k=1", "other=1")
	s.roll()
	s.put(-1, false, "k")
	s.roll()
	s.sync()
	s.now.Advance(time.Hour) // age before the first pass counts for nothing
	s.clean(100)
	s.want("1:other=1 2:k=-")
	for range 9 {
		s.now.Advance(11 * time.Millisecond)
		if due() {
			t.Fatal("compaction is due before the tombstone may go")
		}
		s.clean(100)
		s.want("1:other=1 2:k=-")
		s.kill()
	}
	s.now.Advance(2 * time.Millisecond)
	if !due() {
		t.Fatal("the tombstone may go, and compaction is not due")
	}
	s.clean(100)
	s.want("1:other=1")
	if due() {
		t.Fatal("nothing is left to do, and compaction is due")
	}
	s.kill()
	s.want("1:other=1")
	// A key that comes back is not touched by its old tombstone.
	s.put(-1, false, "k")
	s.put(-1, false, "k=2")
	s.roll()
	s.sync()
	s.clean(100)
	s.now.Advance(time.Second)
	s.clean(100)
	s.want("1:other=1 4:k=2")
}

// The same for the markers of transactions: they stay while there is data, and then for as long as tombstones.
func TestMarkersGoInTime(t *testing.T) {
	t.Parallel()
	s := newStory(t, Config{DeleteRetention: time.Second})
	markers := func() (n int) {
		raw := readAll(t, s.l, 0, 1000)
		for len(raw) > 0 {
			batch, rest, err := record.Next(raw)
			s.must(err)
			if h, err := record.ParseHeader(batch); err == nil && h.Control() {
				n++
			}
			raw = rest
		}
		return n
	}
	s.put(1, true, "a=wrong")
	s.end(1, false)
	s.put(1, true, "a=1")
	s.end(1, true)
	s.put(1, true, "b=1") // so that the producer's last sequence is elsewhere
	s.end(1, true)
	s.put(-1, false, "a=2")
	s.roll()
	s.sync()
	s.clean(100)
	if n := markers(); n != 3 {
		t.Fatalf("%d markers after the first pass", n)
	}
	s.clean(100)
	if n := markers(); n != 3 { // a's transactions are empty now, and marked
		t.Fatalf("%d markers after the second pass", n)
	}
	s.put(-1, false, "c=1") // a pass needs a reason
	s.roll()
	s.sync()
	s.clean(100)
	s.now.Advance(2 * time.Second)
	s.clean(100)
	if n := markers(); n != 1 {
		t.Fatalf("%d markers at the end", n)
	}
	s.want("4:b=1 6:a=2 7:c=1")
}

// A producer's last sequence survives compaction, also when the snapshots are lost (KAFKA-7190, KAFKA-7298): a resent batch is a duplicate, and a gap is one.
func TestCompactionKeepsSequences(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		s := newStory(t, Config{})
		for range 4 {
			s.put(7, false, "a=1", "b=1")
		}
		s.put(-1, false, "a=2", "b=2")
		s.roll()
		s.sync()
		s.clean(100)
		s.want("8:a=2 9:b=2")
		s.must(s.mgr.Close())
		if lost {
			for _, f := range files(t, s.fs, ".snapshot") {
				s.must(s.fs.Remove(f))
			}
		}
		s.open()
		ps, err := s.l.Producers()
		s.must(err)
		for _, c := range []struct {
			seq  int32
			want Outcome
		}{{6, Duplicate}, {8, Accept}, {9, OutOfOrderSequence}} {
			h, err := record.ParseHeader(s.batchOf(7, c.seq, 2))
			s.must(err)
			if got, base := ps.Check(&h); got != c.want || got == Duplicate && base != 6 {
				t.Errorf("snapshots lost %v, sequence %d: %d (offset %d), want %d", lost, c.seq, got, base, c.want)
			}
		}
		// When the producer has written more, what was kept of it goes.
		s.put(7, false, "c=1", "d=1")
		s.roll()
		s.sync()
		s.clean(100)
		if raw := readAll(t, s.l, 0, 1000); len(slicesOf(t, raw)) != 2 {
			t.Errorf("%d batches are left", len(slicesOf(t, raw)))
		}
	}
}

func (s *story) batchOf(producer int64, seq int32, n int) []byte {
	b := record.NewBuilder(record.None)
	b.ProducerID, b.ProducerEpoch, b.BaseSequence = producer, 0, seq
	for range n {
		b.Append(1, []byte("k"), nil)
	}
	return b.Build(nil)
}

func slicesOf(t *testing.T, raw []byte) (out [][]byte) {
	t.Helper()
	for len(raw) > 0 {
		b, rest, err := record.Next(raw)
		if err != nil {
			t.Fatal(err)
		}
		out, raw = append(out, b), rest
	}
	return out
}

// A sparse log, as compaction elsewhere leaves it, whose offsets are more than 2^31 apart: compaction does not put into one segment what no index of it could
// name (KAFKA-6264, KAFKA-5413).
func TestCompactionOfASparseLog(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashable()
	now := clock.NewManual(time.UnixMilli(1_000_000))
	if err := vfs.MkdirAll(fs, "log/t-0"); err != nil {
		t.Fatal(err)
	}
	var bases []int64
	var want []string
	for i := range int64(9) {
		base := i * (math.MaxInt32/2 - 100)
		bases = append(bases, base)
		b := record.NewBuilder(allCodecs[i%5])
		b.Append(i, []byte("same"), []byte{byte(i)})
		b.Append(i, fmt.Appendf(nil, "k%d", i), []byte{byte(i)})
		raw := b.Build(nil)
		record.Patch(raw, base+50, 0)
		if err := vfs.WriteFile(fs, "log/t-0", segmentName(base)+".log", raw); err != nil {
			t.Fatal(err)
		}
		if i == 8 {
			want = append(want, fmt.Sprintf("%d:same", base+50))
		}
		want = append(want, fmt.Sprintf("%d:k%d", base+51, i))
	}
	if err := fs.Remove("log/" + offsetsName); err != nil && !vfs.NotExist(err) {
		t.Fatal(err)
	}
	for life := range 3 {
		m := openManager(t, fs, now)
		l := openLog(t, m, "t-0", Config{Compact: true})
		if life == 0 {
			if err := l.Roll(); err != nil {
				t.Fatal(err)
			}
			if err := m.Sync(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Clean(CleanOptions{Below: never}); err != nil {
			t.Fatal(err)
		}
		if end := l.EndOffset(); end != bases[8]+52 {
			t.Fatalf("the log ends at %d", end)
		}
		var got []string
		var r record.Reader
		for _, b := range slicesOf(t, readAll(t, l, l.StartOffset(), 1000)) {
			if err := r.Reset(b); err != nil {
				t.Fatal(err)
			}
			for r.Next() {
				got = append(got, fmt.Sprintf("%d:%s", r.Record().Offset, r.Record().Key))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("found %v, want %v", got, want)
		}
		for i, s := range l.segments[:len(l.segments)-1] {
			if l.segmentEnd(i)-1-s.base > math.MaxInt32 {
				t.Fatalf("segment %d has offsets up to %d", s.base, l.segmentEnd(i))
			}
		}
		if n := len(l.segments); n != 6 && life > 0 {
			t.Logf("%d segments", n)
		}
		fs = vfs.CrashClone(fs, 0, nil)
	}
}

// Compaction never spins: on holes (KAFKA-8764), below a start that lies in the active segment (KAFKA-9826), or where there is nothing to do.
func TestCompactionIsIdle(t *testing.T) {
	t.Parallel()
	s := newStory(t, Config{DeleteRetention: time.Hour})
	idle := func(what string) {
		t.Helper()
		d, err := s.l.Dirt(s.now.Now(), never)
		s.must(err)
		if d.Dirty > 0 || d.Overdue {
			t.Fatalf("%s: %+v", what, d)
		}
		if st, err := s.l.Clean(CleanOptions{Below: never}); err != nil || st != (CleanStats{}) {
			t.Fatalf("%s: %+v %v", what, st, err)
		}
	}
	idle("an empty log")
	s.put(-1, false, "a=1")
	idle("only the active segment")
	s.roll()
	idle("not yet recorded")
	s.sync()
	if st := s.clean(100); st.Replaced != 0 {
		t.Fatalf("one segment of which all stays was replaced: %+v", st)
	}
	idle("compacted")
	s.put(-1, false, "a=2")
	s.put(-1, false, "a=3", "b=1")
	s.must(s.l.SetStartOffset(s.m.end - 1))
	s.sync()
	idle("the start is in the active segment")
	s.roll()
	s.put(-1, false, "c=1")
	s.sync()
	s.clean(100)
	idle("the start is in what is compacted")
	s.kill()
	idle("after a restart")
	if s.l.StartOffset() != 3 {
		t.Fatalf("the start is %d", s.l.StartOffset())
	}
	// An open transaction is not passed.
	s.put(1, true, "a=4")
	s.put(-1, false, "a=5")
	s.roll()
	s.sync()
	s.clean(100)
	if s.l.clean.dirty > 5 {
		t.Fatalf("compacted up to %d, and an open transaction begins at 5", s.l.clean.dirty)
	}
	s.end(1, true)
	s.roll()
	s.sync()
	s.clean(100)
	s.want("3:b=1 4:c=1 6:a=5")
}

// Damage ends a pass, and nothing is changed; other logs are compacted.
func TestCompactionMeetsDamage(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	for range 40 {
		fs := vfs.NewCrashable()
		now := clock.NewManual(time.UnixMilli(10_000))
		cfg := Config{SegmentBytes: 1500, Compact: true}
		mgr, l, _ := compactedHistory(t, fs, now, cfg)
		path := l.segments[rng.IntN(len(l.segments)-1)].logPath()
		if err := mgr.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := vfs.ReadFile(fs, path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		at := rng.IntN(len(b))
		if atBatchLeaderEpoch(b, at) {
			continue
		}
		b[at] ^= 1 << rng.IntN(8)
		overwrite(t, fs, path, b)
		before := files(t, fs, ".log")
		mgr = openManager(t, fs, now)
		l = openLog(t, mgr, "t-0", cfg)
		_, err = l.Clean(CleanOptions{Below: never})
		if err == nil {
			// The one thing that no checksum covers is the offset, and where compaction has been holes are right.
			if h, perr := record.ParseHeader(b[:]); perr == nil && at < 8 && h.BaseOffset > 0 {
				continue
			}
		}
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d of %s: %v", at, path, err)
		}
		if err != nil && (!slices.Equal(files(t, fs, ".log"), before) || len(files(t, fs, cleanedSuffix)) > 0) && !anyCompacted(l) {
			t.Fatalf("a pass that failed left %v and %v", files(t, fs, ".log"), files(t, fs, cleanedSuffix))
		}
		other := openLog(t, mgr, "u-0", cfg)
		if err := other.Append(makeBatch(0, 1, 0, 10)); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Clean(CleanOptions{Below: never}); err != nil {
			t.Fatal(err)
		}
	}
}

func anyCompacted(l *Log) bool { return l.clean.holes > 0 }

// Indexes of compacted segments are hints as those of others (KAFKA-10207): garbled, cut, padded or gone, all answers stay right.
func TestIndexDamageAfterCompaction(t *testing.T) {
	t.Parallel()
	damage := map[string]func(b []byte) []byte{
		"gone":    func([]byte) []byte { return nil },
		"padded":  func(b []byte) []byte { return append(b, make([]byte, 4096)...) },
		"zeros":   func(b []byte) []byte { return make([]byte, len(b)) },
		"cut":     func(b []byte) []byte { return b[:len(b)/2+3] },
		"garbled": func(b []byte) []byte { return slices.Concat([]byte{7}, b[1:]) },
	}
	for name, fn := range damage {
		for _, suffix := range []string{".index", ".timeindex", cleanName} {
			t.Run(name+suffix, func(t *testing.T) {
				t.Parallel()
				s := newStory(t, Config{SegmentBytes: 3000, IndexIntervalBytes: 100, DeleteRetention: time.Hour})
				rng := rand.New(rand.NewPCG(1, 9))
				for range 100 {
					s.now.Advance(time.Second)
					s.must(s.l.Append(s.m.batch(record.None, -1, false, randomInput(rng, s.now.Now().UnixMilli(), 40, 1+rng.IntN(4)))))
				}
				s.roll()
				s.sync()
				s.clean(1000)
				found := s.found()
				s.must(s.mgr.Close())
				for _, path := range files(t, s.fs, suffix) {
					b, err := vfs.ReadFile(s.fs, path, 1<<20)
					s.must(err)
					if b = fn(b); b == nil {
						s.must(s.fs.Remove(path))
					} else {
						overwrite(t, s.fs, path, b)
					}
				}
				s.open()
				s.want(found)
				kept := readLog(t, s.l, s.m)
				for at := s.l.StartOffset(); at < s.m.end; at++ {
					c, err := s.l.Read(at, 300, never, true)
					s.must(err)
					if c.Next <= at || c.Len() == 0 {
						t.Fatalf("read %d: %+v", at, c)
					}
					c.Release()
				}
				for i, k := range kept {
					off, ts, err := s.l.OffsetForTime(k.Timestamp, never)
					s.must(err)
					first := slices.IndexFunc(kept, func(r readRecord) bool { return r.Timestamp >= k.Timestamp })
					if off != kept[first].Offset || ts != kept[first].Timestamp {
						t.Fatalf("record %d, time %d: %d at %d, want %d", i, k.Timestamp, off, ts, kept[first].Offset)
					}
				}
				largest := slices.MaxFunc(kept, func(a, b readRecord) int { return int(a.Timestamp - b.Timestamp) })
				if off, ts, err := s.l.MaxTimestamp(never); err != nil || ts != largest.Timestamp || off > largest.Offset {
					t.Fatalf("largest time %d at %d, %v; want %d", ts, off, err, largest.Timestamp)
				}
				if start, n, err := s.l.ApplyRetention(s.now.Now(), never); n != 0 || err != nil || start != 0 {
					t.Fatalf("retention removed %d segments: %v", n, err)
				}
				s.clean(1000)
				s.want(found)
			})
		}
	}
}

package commitlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
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

var (
	seedFlag   = flag.Uint64("seed", 0, "run only the history of this seed")
	historiesN = flag.Int("histories", 60, "how many seeded histories to run")
)

func each(t *testing.T, fn func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	from, n := uint64(1), uint64(*historiesN)
	if *seedFlag != 0 {
		from, n = *seedFlag, 1
	}
	for s := from; s < from+n; s++ {
		if !t.Run(fmt.Sprintf("seed=%d", s), func(t *testing.T) { fn(t, rand.New(rand.NewPCG(s, 5))) }) {
			return
		}
	}
}

// makeBatch builds a batch at base whose records have the timestamps ms, ms+1, ...
func makeBatch(base int64, records int, ms int64, size int) []byte {
	b := record.NewBuilder(record.None)
	for i := range records {
		b.Append(ms+int64(i), nil, bytes.Repeat([]byte{byte(base)}, size))
	}
	out := b.Build(nil)
	record.Patch(out, base, 1)
	return out
}

func openManager(t *testing.T, fs vfs.FS, c clock.Clock) *Manager {
	t.Helper()
	m, err := NewManager(ManagerOptions{FS: fs, Dir: "log", Clock: c, MaxFiles: 16})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func openLog(t *testing.T, m *Manager, name string, c Config) *Log {
	t.Helper()
	l, err := m.Open(name, [16]byte{1}, c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func readAll(t *testing.T, l *Log, from int64, maxBytes int) []byte {
	t.Helper()
	var all []byte
	for at := from; at < l.EndOffset(); {
		c, err := l.Read(at, maxBytes, math.MaxInt64, true)
		if err != nil {
			t.Fatalf("read %d: %v", at, err)
		}
		if c.Next <= at {
			t.Fatalf("read %d: no progress: %+v", at, c)
		}
		if all, err = c.AppendTo(all); err != nil {
			t.Fatal(err)
		}
		at = c.Next
		c.Release()
	}
	return all
}

// TestHistories appends, reads, syncs, retains and crashes at random, with what the journal would replay, and compares with a model.
func TestHistories(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rng *rand.Rand) {
		fs := vfs.NewCrashable()
		now := clock.NewManual(time.UnixMilli(1_000_000))
		cfg := Config{SegmentBytes: 2000 + rng.Int64N(8000), IndexIntervalBytes: 100 + rng.IntN(800), RetentionBytes: int64(rng.IntN(2)) * 15000}
		type appended struct {
			base, next, ms int64
			batch          []byte
		}
		var model []appended // all
		recorded := 0        // how many of them a checkpoint of the journal covers
		var end, start int64
		for range 1 + rng.IntN(5) {
			m := openManager(t, fs, now)
			l := openLog(t, m, "t-0", cfg)
			for _, a := range model[max(0, recorded-rng.IntN(3)):] { // the journal may replay more than is needed
				if err := l.Append(a.batch); err != nil {
					t.Fatal(err)
				}
			}
			if l.EndOffset() != end {
				t.Fatalf("end %d, want %d", l.EndOffset(), end)
			}
			for range rng.IntN(60) {
				switch op := rng.IntN(20); {
				case op < 10:
					n := 1 + rng.IntN(5)
					ms := now.Now().UnixMilli() + rng.Int64N(2000) - 1000
					b := makeBatch(end, n, ms, rng.IntN(400))
					if err := l.Append(b); err != nil {
						t.Fatal(err)
					}
					model = append(model, appended{end, end + int64(n), ms, b})
					end += int64(n)
					now.Advance(time.Duration(rng.IntN(1000)) * time.Millisecond)
				case op < 14:
					if end == l.StartOffset() {
						continue
					}
					at := l.StartOffset() + rng.Int64N(end-l.StartOffset())
					limit := at + 1 + rng.Int64N(end-at)
					most := rng.IntN(5000)
					c, err := l.Read(at, most, limit, true)
					if err != nil {
						t.Fatal(err)
					}
					got, err := c.AppendTo(nil)
					c.Release()
					if err != nil {
						t.Fatal(err)
					}
					var want []byte
					for _, a := range model {
						if a.next <= at {
							continue
						}
						if a.next > limit || len(want) > 0 && len(want)+len(a.batch) > most {
							break
						}
						want = append(want, a.batch...)
					}
					// A chunk may end with its segment.
					if !bytes.HasPrefix(want, got) || (len(got) == 0) != (len(want) == 0) {
						t.Fatalf("read %d up to %d, %d bytes: got %d bytes, want %d", at, limit, most, len(got), len(want))
					}
				case op < 16:
					ms := now.Now().UnixMilli() - rng.Int64N(10000)
					limit := rng.Int64N(end + 2)
					off, ts, err := l.OffsetForTime(ms, limit)
					if err != nil {
						t.Fatal(err)
					}
					wantOff, wantTs := int64(-1), int64(-1)
				search:
					for _, a := range model {
						for o := a.base; o < a.next; o++ {
							if v := a.ms + o - a.base; o >= l.StartOffset() && o < limit && v >= ms {
								wantOff, wantTs = o, v
								break search
							}
						}
					}
					if off != wantOff || ts != wantTs {
						t.Fatalf("time %d below %d: %d at %d, want %d at %d", ms, limit, off, ts, wantOff, wantTs)
					}
				case op < 17:
					if err := m.Sync(context.Background(), nil); err != nil {
						t.Fatal(err)
					}
					recorded = len(model)
				case op < 18:
					if _, _, err := l.ApplyRetention(now.Now(), end); err != nil {
						t.Fatal(err)
					}
				case op < 19:
					if end > l.StartOffset() {
						if err := l.SetStartOffset(l.StartOffset() + rng.Int64N(end-l.StartOffset())/4); err != nil {
							t.Fatal(err)
						}
					}
				}
				if s := l.StartOffset(); s > start {
					start = s
				}
				if l.EndOffset() != end {
					t.Fatalf("end %d, want %d", l.EndOffset(), end)
				}
			}
			var want []byte
			for _, a := range model {
				if a.next > l.StartOffset() {
					want = append(want, a.batch...)
				}
			}
			if got := readAll(t, l, l.StartOffset(), 1000); !bytes.Equal(got, want) {
				t.Fatalf("the log has %d bytes, want %d", len(got), len(want))
			}
			fs = vfs.CrashClone(fs, []int{0, 30, 70, 100}[rng.IntN(4)], rng)
		}
	})
}

// writeSegments leaves three segments and a checkpoint behind.
func writeSegments(t *testing.T, fs vfs.FS, c clock.Clock) (end int64) {
	t.Helper()
	m := openManager(t, fs, c)
	l := openLog(t, m, "t-0", Config{SegmentBytes: 4000, IndexIntervalBytes: 300})
	for end < 60 {
		if err := l.Append(makeBatch(end, 2, 1000+end*10, 100)); err != nil {
			t.Fatal(err)
		}
		end += 2
	}
	if err := m.Sync(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return end
}

func files(t *testing.T, fs vfs.FS, suffix string) []string {
	t.Helper()
	names, err := fs.List("log/t-0")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, n := range names {
		if strings.HasSuffix(n, suffix) {
			out = append(out, "log/t-0/"+n)
		}
	}
	slices.Sort(out)
	return out
}

func overwrite(t *testing.T, fs vfs.FS, path string, b []byte) {
	t.Helper()
	if err := vfs.WriteFile(fs, fs.PathDir(path), fs.PathBase(path), b); err != nil {
		t.Fatal(err)
	}
}

// TestIndexDamage garbles, pads, cuts and deletes index files: nothing is deleted, and all answers stay right (KAFKA-10207).
func TestIndexDamage(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(time.UnixMilli(2000))
	damage := map[string]func(b []byte) []byte{
		"deleted": func([]byte) []byte { return nil },
		"padded":  func(b []byte) []byte { return append(b, make([]byte, 4096)...) },
		"zeros":   func(b []byte) []byte { return make([]byte, len(b)) },
		"cut":     func(b []byte) []byte { return b[:len(b)/2+3] },
		"garbled": func(b []byte) []byte {
			for i := range b {
				b[i] ^= byte(i*7 + 1)
			}
			return b
		},
		"one entry": func(b []byte) []byte { b[len(b)/2] ^= 0x15; return b },
		"shifted positions": func(b []byte) []byte {
			for i := 7; i < len(b); i += 8 {
				b[i]++
			}
			return b
		},
	}
	for name, fn := range damage {
		for _, suffix := range []string{".index", ".timeindex"} {
			t.Run(name+suffix, func(t *testing.T) {
				t.Parallel()
				fs := vfs.NewCrashable()
				end := writeSegments(t, fs, now)
				for _, path := range files(t, fs, suffix) {
					b, err := vfs.ReadFile(fs, path, 1<<20)
					if err != nil {
						t.Fatal(err)
					}
					if b = fn(b); b == nil {
						if err := fs.Remove(path); err != nil {
							t.Fatal(err)
						}
						continue
					}
					overwrite(t, fs, path, b)
				}
				m := openManager(t, fs, now)
				l := openLog(t, m, "t-0", Config{SegmentBytes: 4000, IndexIntervalBytes: 300, Retention: time.Second})
				if start, n, err := l.ApplyRetention(time.UnixMilli(1900), end); start != 0 || n != 0 || err != nil {
					t.Fatalf("retention removed %d segments up to %d: %v", n, start, err)
				}
				for at := range end {
					c, err := l.Read(at, 700, end, true)
					if err != nil || c.First > at || c.Next <= at {
						t.Fatalf("read %d: %+v %v", at, c, err)
					}
					c.Release()
					ms := 1000 + at/2*2*10 + at%2
					if off, ts, err := l.OffsetForTime(ms, end); off != at || ts != ms || err != nil {
						t.Fatalf("time %d: offset %d at %d, %v", ms, off, ts, err)
					}
				}
				if name == "one entry" || name == "garbled" {
					return // an index that claims a later time only delays retention
				}
				if start, n, err := l.ApplyRetention(time.UnixMilli(1e9), end); start != end || n == 0 || err != nil {
					t.Fatalf("retention of everything: start %d, %d segments, %v", start, n, err)
				}
				if err := l.Append(makeBatch(end, 1, 5, 5)); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestDataDamage flips single bytes in segments: a bad batch is never returned, the error names the file, and what lies before it, and
// the other partitions, are served.
func TestDataDamage(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(time.UnixMilli(2000))
	base := vfs.NewCrashable()
	end := writeSegments(t, base, now)
	for _, path := range files(t, base, ".log") {
		orig, err := vfs.ReadFile(base, path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for at := 20; at < len(orig); at += 37 {
			fs := vfs.CrashClone(base, 0, nil)
			b := append([]byte(nil), orig...)
			b[at] ^= 0x10
			overwrite(t, fs, path, b)
			m := openManager(t, fs, now)
			l := openLog(t, m, "t-0", Config{})
			other := openLog(t, m, "u-0", Config{})
			var failed error
			for off := int64(0); off < end && failed == nil; {
				c, err := l.Read(off, 500, end, true)
				if err != nil {
					failed = err
					break
				}
				b, err := c.AppendTo(nil)
				if err != nil {
					t.Fatal(err)
				}
				for len(b) > 0 {
					one, rest, err := record.Next(b)
					if err != nil {
						t.Fatalf("byte %d of %s: %v", at, path, err)
					}
					if h, err := record.Validate(one); err != nil {
						t.Fatalf("byte %d of %s: a bad batch at %d was served: %v", at, path, h.BaseOffset, err)
					}
					b = rest
				}
				off = c.Next
				c.Release()
			}
			var ce *CorruptError
			if failed == nil && atBatchLeaderEpoch(orig, at) {
				continue // outside the checksum, and of no consequence
			}
			if failed == nil || (!errors.As(failed, &ce) || ce.File != path || !errors.Is(failed, ErrCorrupt)) {
				t.Fatalf("byte %d of %s: %v", at, path, failed)
			}
			if err := other.Append(makeBatch(0, 1, 0, 10)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// atBatchLeaderEpoch reports whether the byte is part of a leader epoch.
func atBatchLeaderEpoch(b []byte, at int) bool {
	for pos := 0; pos < len(b); {
		n, err := record.BatchSize(b[pos:])
		if err != nil {
			return false
		}
		if at >= pos+12 && at < pos+16 {
			return true
		}
		pos += n
	}
	return false
}

// TestZeroTail finds zeros behind the last batch, as a crash leaves them, and goes on after the last batch (KAFKA-13664).
func TestZeroTail(t *testing.T) {
	t.Parallel()
	for _, checkpoint := range []bool{true, false} {
		now := clock.NewManual(time.UnixMilli(2000))
		fs := vfs.NewCrashable()
		end := writeSegments(t, fs, now)
		logs := files(t, fs, ".log")
		last := logs[len(logs)-1]
		b, err := vfs.ReadFile(fs, last, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		overwrite(t, fs, last, append(b, make([]byte, 4096)...))
		if !checkpoint {
			if err := fs.Remove("log/" + offsetsName); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			m := openManager(t, fs, now)
			l := openLog(t, m, "t-0", Config{})
			if l.EndOffset() != end {
				t.Fatalf("end %d, want %d", l.EndOffset(), end)
			}
			if err := l.Append(makeBatch(end, 1, 7, 10)); err != nil {
				t.Fatal(err)
			}
			end++
			if err := m.Sync(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			if got := readAll(t, l, 0, 800); int64(len(got)) == 0 {
				t.Fatal("nothing")
			}
			fs = vfs.CrashClone(fs, 0, nil)
		}
	}
}

// TestManyPartitions opens 10,000 logs, and touches a few.
func TestManyPartitions(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	m := openManager(t, fs, clock.Real)
	logs := make([]*Log, 10000)
	for i := range logs {
		logs[i] = openLog(t, m, fmt.Sprintf("t-%d", i), Config{})
	}
	if n := m.OpenFiles(); n != 0 {
		t.Fatalf("%d files are open", n)
	}
	for i := range 200 {
		if err := logs[i*50].Append(makeBatch(0, 1, 0, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.OpenFiles(); n > 16 {
		t.Fatalf("%d files are open", n)
	}
	if n := m.DirtyLogs(); n != 200 {
		t.Fatalf("%d dirty logs", n)
	}
	if err := m.Sync(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if n := m.DirtyLogs(); n != 0 {
		t.Fatalf("%d dirty logs", n)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRecreated finds the folder of an earlier topic of the same name.
func TestRecreated(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashable()
	writeSegments(t, fs, clock.Real)
	m := openManager(t, fs, clock.Real)
	l, err := m.Open("t-0", [16]byte{2}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(makeBatch(0, 1, 0, 10)); err != nil || l.EndOffset() != 1 || l.StartOffset() != 0 {
		t.Fatal(err, l.StartOffset(), l.EndOffset())
	}
	if _, err := l.Read(5, 100, 100, true); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Fatal(err)
	}
	if err := l.Append(makeBatch(7, 1, 0, 10)); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a gap: %v", err)
	}
}

func TestProducers(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashable()
	m := openManager(t, fs, clock.Real)
	l := openLog(t, m, "t-0", Config{})
	batch := func(base int64, epoch int16, seq int32, n int) ([]byte, *record.Header) {
		b := makeBatch(base, n, 0, 10)
		record.SetProducer(b, 9, epoch, seq)
		h, err := record.ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		return b, &h
	}
	expect := func(l *Log, epoch int16, seq int32, n int, want Outcome, base int64) {
		t.Helper()
		ps, err := l.Producers()
		if err != nil {
			t.Fatal(err)
		}
		_, h := batch(0, epoch, seq, n)
		if o, b := ps.Check(h); o != want || (o == Duplicate && b != base) {
			t.Fatalf("epoch %d sequence %d: %d %d, want %d %d", epoch, seq, o, b, want, base)
		}
	}
	expect(l, 0, 40, 3, Accept, 0) // a producer that is not known
	for i := range int64(8) {
		b, _ := batch(i*3, 0, int32(i*3), 3)
		if err := l.Append(b); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			if err := m.Sync(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(l *Log) {
		t.Helper()
		expect(l, 0, 24, 1, Accept, 0)
		expect(l, 0, 21, 3, Duplicate, 21)
		expect(l, 0, 9, 3, Duplicate, 9)
		expect(l, 0, 6, 3, DuplicateSequence, 0)
		expect(l, 0, 25, 3, OutOfOrderSequence, 0)
		expect(l, 1, 5, 3, OutOfOrderSequence, 0)
		expect(l, 1, 0, 3, Accept, 0)
	}
	check(l)
	if err := m.Sync(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	for _, garble := range []bool{false, true} {
		crashed := vfs.CrashClone(fs, 0, nil)
		if garble {
			for _, path := range files(t, crashed, ".snapshot") {
				overwrite(t, crashed, path, []byte("no snapshot"))
			}
		}
		m2 := openManager(t, crashed, clock.Real)
		check(openLog(t, m2, "t-0", Config{}))
	}
	t.Run("sequences wrap", func(t *testing.T) {
		var ps Producers
		_, h := batch(0, 0, math.MaxInt32-1, 3)
		ps.Update(h, 0)
		if _, h = batch(3, 0, 1, 1); h.LastSequence() != 1 {
			t.Fatal(h.LastSequence())
		}
		if o, _ := ps.Check(h); o != Accept {
			t.Fatal(o)
		}
	})
	t.Run("what is not in the log is not in a snapshot", func(t *testing.T) {
		ps, err := l.Producers()
		if err != nil {
			t.Fatal(err)
		}
		_, h := batch(24, 0, 24, 3)
		ps.Update(h, 0)
		var back Producers
		if _, ok := back.load(ps.snapshot(24, nil), 0); !ok {
			t.Fatal("not loaded")
		}
		if o, _ := back.Check(h); o != Accept {
			t.Fatal(o)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	var ps Producers
	ps.Update(&record.Header{ProducerID: 1, ProducerEpoch: 2, BaseSequence: 0, LastOffsetDelta: 4, BaseOffset: 10, MaxTimestamp: 99}, 0)
	f.Add(ps.snapshot(100, openTransactions{{1, 10}}))
	f.Add(binary.BigEndian.AppendUint16(nil, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		var ps Producers
		ps.load(b, 0)
	})
}

func FuzzOffsets(f *testing.F) {
	f.Add(string(encodeOffsets(map[string]recordedLog{"t-0": {start: 1, end: 2}})))
	f.Fuzz(func(t *testing.T, s string) {
		logs, err := decodeOffsets(s)
		if err == nil && string(encodeOffsets(logs)) != s {
			_ = logs
		}
	})
}

// A chunk is as full as the limit allows, wherever the entries of the index lie: with batches larger than the index's interval each has one, and the
// last that fits is found through the entry of the first that does not.
func TestReadFillsTheChunk(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 900, 5_000, 16_000, 70_000} {
		m := openManager(t, vfs.NewMem(), clock.Real)
		l := openLog(t, m, "t-0", Config{})
		batch := len(makeBatch(0, 1, 0, size))
		n := 3<<20/batch + 1
		for i := range n {
			if err := l.Append(makeBatch(int64(i), 1, 1, size)); err != nil {
				t.Fatal(err)
			}
		}
		for _, maxBytes := range []int{1, batch, 2*batch - 1, 300 << 10, 1 << 20, 1<<20 + 37} {
			for _, limit := range []int64{math.MaxInt64, int64(n / 2)} {
				c, err := l.Read(3, maxBytes, limit, true)
				if err != nil {
					t.Fatal(err)
				}
				want := min(int64(max(1, maxBytes/batch)), min(limit, int64(n))-3)
				if c.First != 3 || c.Next != 3+want || c.Len() != int(want)*batch {
					t.Errorf("batches of %d bytes, at most %d, limit %d: offsets %d to %d in %d bytes, want %d batches", batch, maxBytes, limit, c.First, c.Next, c.Len(), want)
				}
				c.Release()
			}
		}
	}
}

// TestSegmentAge rolls by the time between the first batch of a segment and the next one, whatever the process was restarted between; without
// timestamps, by the clock.
func TestSegmentAge(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashable()
	now := clock.NewManual(time.UnixMilli(0))
	day := (24 * time.Hour).Milliseconds()
	for at := range int64(10) { // a day each
		m := openManager(t, fs, now)
		l := openLog(t, m, "t-0", Config{SegmentAge: 3 * 24 * time.Hour})
		must(t, l.Append(makeBatch(2*at, 1, at*day, 10)))
		must(t, l.Append(makeBatch(2*at+1, 1, at*day-1000, 10)))
		must(t, m.Sync(t.Context(), nil))
		must(t, m.Close())
		now.Advance(24 * time.Hour)
	}
	if got := files(t, fs, ".log"); len(got) != 3 || !strings.HasSuffix(got[1], segmentName(8)+".log") || !strings.HasSuffix(got[2], segmentName(16)+".log") {
		t.Errorf("segments %v", got)
	}
	m := openManager(t, fs, now)
	l := openLog(t, m, "u-0", Config{SegmentAge: time.Hour})
	for at := range int64(6) {
		must(t, l.Append(makeBatch(at, 1, -1, 10)))
		now.Advance(30 * time.Minute)
	}
	if n := len(l.segments); n != 2 || l.segments[1].base != 3 {
		t.Errorf("%d segments of records without timestamps", n)
	}
}

package commitlog

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// slowFS calls back before a file is read or synced: a disk that answers when the test lets it.
type slowFS struct {
	vfs.FS
	hook atomic.Pointer[func(op, path string)]
}

func (s *slowFS) on(fn func(op, path string)) {
	if fn == nil {
		s.hook.Store(nil)
		return
	}
	s.hook.Store(&fn)
}

func (s *slowFS) call(op, path string) {
	if fn := s.hook.Load(); fn != nil {
		(*fn)(op, path)
	}
}

func (s *slowFS) wrap(path string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &slowFile{File: f, fs: s, path: path}, nil
}

func (s *slowFS) Open(path string, o ...vfs.OpenOption) (vfs.File, error) {
	s.call("open", path)
	f, err := s.FS.Open(path, o...)
	return s.wrap(path, f, err)
}

func (s *slowFS) OpenReadWrite(path string, c vfs.WriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := s.FS.OpenReadWrite(path, c, o...)
	return s.wrap(path, f, err)
}

func (s *slowFS) Create(path string, c vfs.WriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(path, c)
	return s.wrap(path, f, err)
}

type slowFile struct {
	vfs.File
	fs   *slowFS
	path string
}

func (f *slowFile) ReadAt(b []byte, at int64) (int, error) {
	f.fs.call("read", f.path)
	return f.File.ReadAt(b, at)
}

func (f *slowFile) Read(b []byte) (int, error) {
	f.fs.call("read", f.path)
	return f.File.Read(b)
}

func (f *slowFile) Sync() error {
	f.fs.call("sync", f.path)
	return f.File.Sync()
}

func transactional(base, producer int64, seq int32, value string) []byte {
	b := record.NewBuilder(record.None)
	b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = producer, 0, seq, true
	b.Append(1000, []byte("k"), []byte(value))
	out := b.Build(nil)
	record.Patch(out, base, 1)
	return out
}

func abortOf(base, producer int64) []byte {
	e := record.EndMarker{ProducerID: producer, Timestamp: 1000, First: 0}
	out := e.AppendTo(nil)
	record.Patch(out, base, 1)
	return out
}

// TestASlowDiskHoldsUpNoAppend has the disk stop while something reads an old segment, or while a snapshot is synced: appends and reads of the
// tail go on, and what was waiting gets the right answer.
func TestASlowDiskHoldsUpNoAppend(t *testing.T) {
	t.Parallel()
	const sealed = "00000000000000000000"
	for _, c := range []struct {
		name     string
		op, file string // what stops
		do       func(l *Log, m *Manager) error
	}{
		{"read", "read", sealed + ".log", func(l *Log, _ *Manager) error {
			c, err := l.Read(1, 1<<20, never, true)
			if err == nil && (c.First != 1 || c.Next != 3) {
				return errors.New("a wrong chunk")
			}
			c.Release()
			return err
		}},
		{"open", "open", sealed + ".log", func(l *Log, _ *Manager) error {
			c, err := l.Read(1, 1<<20, never, true)
			c.Release()
			return err
		}},
		{"index", "read", sealed + ".index", func(l *Log, _ *Manager) error {
			c, err := l.Read(1, 1<<20, never, true)
			c.Release()
			return err
		}},
		{"largest time", "read", sealed + ".log", func(l *Log, _ *Manager) error {
			offset, ms, err := l.MaxTimestamp(3)
			if err == nil && (offset != 0 || ms != 1000) {
				return errors.New("a wrong record")
			}
			return err
		}},
		{"time", "read", sealed + ".log", func(l *Log, _ *Manager) error {
			if offset, _, err := l.OffsetForTime(1000, never); err != nil || offset != 0 {
				return errors.Join(err, errors.New("a wrong record"))
			}
			return nil
		}},
		{"aborted", "read", sealed + ".log", func(l *Log, _ *Manager) error {
			a, err := l.Aborted(0, 3, nil)
			if err == nil && (len(a) != 1 || a[0] != (AbortedTransaction{ProducerID: 7, First: 0, Last: 2})) {
				return errors.New("wrong transactions")
			}
			return err
		}},
		{"retention", "read", sealed + ".log", func(l *Log, _ *Manager) error {
			_, deleted, err := l.ApplyRetention(time.UnixMilli(10_000_000), 4)
			if err == nil && deleted != 1 {
				return errors.New("nothing is deleted")
			}
			return err
		}},
		{"snapshot", "sync", ".snapshot.tmp", func(_ *Log, m *Manager) error { return m.Sync(t.Context(), nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fs := &slowFS{FS: vfs.NewMem()}
			now := clock.NewManual(time.UnixMilli(1_000_000))
			cfg := Config{Retention: time.Hour}
			write := func(l *Log) {
				must(t, l.Append(transactional(0, 7, 0, "a")))
				must(t, l.Append(transactional(1, 7, 1, "b")))
				must(t, l.Append(abortOf(2, 7)))
				must(t, l.Roll())
				must(t, l.Append(transactional(3, 8, 0, "c")))
			}
			m := openManager(t, fs, now)
			write(openLog(t, m, "t-0", cfg))
			must(t, m.Sync(t.Context(), nil))
			must(t, m.Close())
			if c.name == "aborted" {
				_ = fs.Remove("log/t-0/" + sealed + ".txnindex")
			}
			m = openManager(t, fs, now)
			l := openLog(t, m, "t-0", cfg)
			must(t, l.Append(transactional(4, 8, 1, "d"))) // loads it
			entered, leave := make(chan struct{}), make(chan struct{})
			var first atomic.Bool
			fs.on(func(op, path string) {
				if op == c.op && strings.HasSuffix(path, c.file) {
					if first.CompareAndSwap(false, true) {
						close(entered)
						<-leave
					}
				}
			})
			done := make(chan error, 1)
			go func() { done <- c.do(l, m) }()
			select {
			case <-entered:
			case err := <-done:
				t.Fatal("it did not wait for the disk", err)
			}
			must(t, l.Append(transactional(5, 8, 2, "e")))
			chunk, err := l.Read(5, 1<<20, never, true)
			if err != nil || chunk.First != 5 {
				t.Error(chunk, err)
			}
			chunk.Release()
			close(leave)
			must(t, <-done)
		})
	}
}

// TestReadOfWhatGoesMeanwhile has a segment deleted, compacted, or the log deleted, while a read of it waits for the disk.
func TestReadOfWhatGoesMeanwhile(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"open", "read"} {
		for _, c := range []struct {
			name string
			do   func(t *testing.T, s *story)
			want error
		}{
			{"retention", func(t *testing.T, s *story) {
				must(t, s.l.SetStartOffset(2))
				if _, n, err := s.l.ApplyRetention(s.now.Now(), never); n != 1 || err != nil {
					t.Error(n, err)
				}
			}, ErrOffsetOutOfRange},
			{"compaction", func(t *testing.T, s *story) {
				stats, err := s.l.Clean(CleanOptions{Below: never})
				if err != nil || stats.Replaced != 2 {
					t.Error(stats, err)
				}
			}, nil},
			{"deletion", func(t *testing.T, s *story) { must(t, s.l.Delete()) }, ErrClosed},
		} {
			t.Run(op+" "+c.name, func(t *testing.T) {
				t.Parallel()
				slow := &slowFS{}
				s := &story{t: t, fs: vfs.NewCrashable(), now: clock.NewManual(time.UnixMilli(1_000_000)), cfg: Config{Compact: true}, m: newModel()}
				slow.FS = s.fs
				s.mgr = openManager(t, slow, s.now)
				s.l = openLog(t, s.mgr, "t-0", s.cfg)
				s.put(-1, false, "a=1", "b=1")
				s.roll()
				s.put(-1, false, "a=2")
				s.roll()
				s.put(-1, false, "c=1")
				s.sync()
				s.mgr.files.forget("log/t-0/" + segmentName(0) + ".log")
				old := s.m.batches[0]
				entered, leave := make(chan struct{}), make(chan struct{})
				var first atomic.Bool
				slow.on(func(did, path string) {
					if did == op && strings.HasSuffix(path, segmentName(0)+".log") {
						if first.CompareAndSwap(false, true) {
							close(entered)
							<-leave
						}
					}
				})
				type answer struct {
					raw []byte
					err error
				}
				done := make(chan answer, 1)
				go func() {
					c, err := s.l.Read(0, 1<<20, never, true)
					raw, _ := c.AppendTo(nil)
					c.Release()
					done <- answer{raw, err}
				}()
				<-entered
				c.do(t, s)
				close(leave)
				got := <-done
				switch {
				case got.err != nil && !(c.want != nil && errors.Is(got.err, c.want)):
					t.Error(got.err)
				case got.err == nil && !bytes.Equal(got.raw, old):
					h, err := record.ParseHeader(got.raw)
					if err == nil {
						_, err = record.Validate(got.raw[:h.Size()])
					}
					if c.name != "compaction" || err != nil || h.NextOffset() > 4 {
						t.Errorf("wrong bytes: %+v, %v", h, err)
					}
				}
			})
		}
	}
}

// TestReadsBesideEverything reads, by offset and by time, while other goroutines append, roll, compact, delete and sync: whatever is read is what was
// written.
func TestReadsBesideEverything(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rng *rand.Rand) {
		t.Parallel()
		now := clock.NewManual(time.UnixMilli(1_000_000))
		m := openManager(t, vfs.NewCrashable(), now)
		defer m.Close()
		l := openLog(t, m, "t-0", Config{SegmentBytes: 2000, IndexIntervalBytes: 200, Compact: rng.IntN(2) == 0, RetentionBytes: 20_000})
		value := func(offset int64) byte { return byte(offset*7 + 3) }
		const batches = 150
		done := make(chan struct{})
		var wg sync.WaitGroup
		for range 3 {
			seed := rng.Uint64()
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 1))
				var r record.Reader
				defer r.Close()
				for last := false; ; {
					select {
					case <-done:
						last = true
					default:
					}
					start, end := l.StartOffset(), l.EndOffset()
					if end > start {
						if rng.IntN(4) == 0 {
							if at, _, err := l.OffsetForTime(1000+start+rng.Int64N(end-start), end); err != nil || at >= 0 && at < start {
								t.Errorf("found %d from %d: %v", at, start, err)
							}
						}
						at := start + rng.Int64N(end-start)
						c, err := l.Read(at, 1+rng.IntN(3000), end, rng.IntN(2) == 0)
						if err != nil && !errors.Is(err, ErrOffsetOutOfRange) {
							t.Errorf("read %d: %v", at, err)
						}
						raw, err := c.AppendTo(nil)
						if err != nil {
							t.Errorf("read %d: %v", at, err)
						}
						c.Release()
						for len(raw) > 0 {
							h, err := record.ParseHeader(raw)
							if err != nil || h.NextOffset() > end {
								t.Fatalf("read %d: %+v %v", at, h, err)
							}
							if _, err := record.Validate(raw[:h.Size()]); err != nil {
								t.Error(err)
							}
							if err := r.Reset(raw[:h.Size()]); err != nil {
								t.Error(err)
							}
							for r.Next() {
								if x := r.Record(); len(x.Value) != 20 || x.Value[0] != value(x.Offset) || x.Timestamp != 1000+x.Offset {
									t.Errorf("offset %d: %v", x.Offset, x.Value)
								}
							}
							raw = raw[h.Size():]
						}
					}
					if last {
						return
					}
				}
			})
		}
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				must(t, m.Sync(t.Context(), nil))
				if _, _, err := l.ApplyRetention(now.Now(), never); err != nil {
					t.Error(err)
				}
				if _, err := l.Clean(CleanOptions{Below: never}); err != nil {
					t.Error(err)
				}
			}
		})
		next := int64(0)
		for range batches {
			b := record.NewBuilder(record.None)
			for i := range int64(1 + rng.IntN(4)) {
				b.Append(1000+next+i, []byte{byte(rng.IntN(20))}, bytes.Repeat([]byte{value(next + i)}, 20))
			}
			raw := b.Build(nil)
			record.Patch(raw, next, 1)
			h, err := record.ParseHeader(raw)
			must(t, err)
			must(t, l.Append(raw))
			next = h.NextOffset()
			if rng.IntN(20) == 0 {
				must(t, l.Roll())
			}
		}
		close(done)
		wg.Wait()
	})
}

// TestColdReadsWaitForEachOther has more readers of old segments than may read at a time: the others wait, and a reader of the tail does not.
func TestColdReadsWaitForEachOther(t *testing.T) {
	t.Parallel()
	fs := &slowFS{FS: vfs.NewMem()}
	m := openManager(t, fs, clock.Real)
	m.cold = make(chan struct{}, 2)
	l := openLog(t, m, "t-0", Config{SegmentBytes: 8 << 20})
	value := bytes.Repeat([]byte("x"), 1<<20)
	for i := range int64(40) {
		b := record.NewBuilder(record.None)
		b.Append(1000, nil, value)
		raw := b.Build(nil)
		record.Patch(raw, i, 1)
		must(t, l.Append(raw))
	}
	entered, leave := make(chan struct{}, 8), make(chan struct{})
	fs.on(func(op, path string) {
		if op == "read" && strings.HasSuffix(path, segmentName(0)+".log") {
			entered <- struct{}{}
			<-leave
		}
	})
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			c, err := l.Read(1, 100, never, true)
			if err != nil || c.First != 1 {
				t.Error(c, err)
			}
			c.Release()
		})
	}
	<-entered
	<-entered
	c, err := l.Read(39, 100, never, true) // while both slots are taken
	if err != nil || c.First != 39 {
		t.Error(c, err)
	}
	c.Release()
	if n := len(entered); n != 0 {
		t.Errorf("%d more read at the same time", n)
	}
	fs.on(nil)
	close(leave)
	wg.Wait()
	if len(m.cold) != 0 {
		t.Error("slots are left taken")
	}
}

package commitlog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// countingFS calls before ahead of each operation that changes something.
type countingFS struct {
	vfs.FS
	before func()
}

type countingFile struct {
	vfs.File
	fs *countingFS
}

func (c *countingFS) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &countingFile{f, c}, nil
}

func (c *countingFS) Create(name string, k vfs.WriteCategory) (vfs.File, error) {
	c.before()
	return c.wrap(c.FS.Create(name, k))
}

func (c *countingFS) OpenReadWrite(name string, k vfs.WriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	c.before()
	return c.wrap(c.FS.OpenReadWrite(name, k, o...))
}

func (c *countingFS) OpenDir(name string) (vfs.File, error) { return c.wrap(c.FS.OpenDir(name)) }

func (c *countingFS) Rename(from, to string) error {
	c.before()
	return c.FS.Rename(from, to)
}

func (c *countingFS) Remove(name string) error {
	c.before()
	return c.FS.Remove(name)
}

func (f *countingFile) Write(b []byte) (int, error) {
	f.fs.before()
	return f.File.Write(b)
}

func (f *countingFile) WriteAt(b []byte, at int64) (int, error) {
	f.fs.before()
	return f.File.WriteAt(b, at)
}

func (f *countingFile) Sync() error {
	f.fs.before()
	return f.File.Sync()
}

func (f *countingFile) SyncData() error {
	f.fs.before()
	return f.File.SyncData()
}

// compactedHistory fills a log with several segments of transactions, tombstones and values, all of it recorded.
func compactedHistory(t *testing.T, fs vfs.FS, now clock.Clock, cfg Config) (*Manager, *Log, *model) {
	t.Helper()
	rng := rand.New(rand.NewPCG(77, 1))
	mgr := openManager(t, fs, now)
	l := openLog(t, mgr, "t-0", cfg)
	m := newModel()
	for i := range 60 {
		var b []byte
		switch {
		case i%10 == 9:
			b = m.marker(1, 1000, i%20 == 9)
		case i%3 == 0:
			b = m.batch(allCodecs[i%5], 1, true, randomInput(rng, 1000, 7, 1+i%3))
		default:
			b = m.batch(allCodecs[i%5], -1, false, randomInput(rng, 1000, 7, 1+i%4))
		}
		if err := l.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Sync(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(m.batch(record.None, -1, false, randomInput(rng, 1000, 7, 2))); err != nil {
		t.Fatal(err)
	}
	return mgr, l, m
}

// TestCompactionCrash crashes ahead of every single operation on files during compaction, and again ahead of every one of the recovery that follows: no value
// is lost, nothing is there twice, and compaction then comes to its end.
func TestCompactionCrash(t *testing.T) {
	t.Parallel()
	cfg := Config{SegmentBytes: 1500, IndexIntervalBytes: 300, Compact: true, DeleteRetention: time.Second}
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(percent), 3))
			for at, reached := 0, true; reached; at++ {
				mem := vfs.NewCrashable()
				now := clock.NewManual(time.UnixMilli(10_000))
				ops, armed, reachedThis := 0, false, false
				var crashed *vfs.Mem
				fs := &countingFS{FS: mem, before: func() {
					if armed {
						if ops == at {
							crashed, reachedThis = vfs.CrashClone(mem, percent, rng), true
						}
						ops++
					}
				}}
				_, l, m := compactedHistory(t, fs, now, cfg)
				armed = true
				for range 3 { // the second pass removes what the first one marked
					if _, err := l.Clean(CleanOptions{Below: never, MapBytes: 1000}); err != nil {
						t.Fatal(err)
					}
					now.Advance(2 * time.Second)
				}
				armed, reached = false, reachedThis
				if !reached {
					t.Logf("%d operations", ops)
					m.check(t, l)
					break
				}
				recoverCompaction(t, crashed, now, cfg, m, percent, rng, at%4 == 0)
			}
		})
	}
}

func recoverCompaction(t *testing.T, mem *vfs.Mem, now *clock.Manual, cfg Config, m *model, percent int, rng *rand.Rand, crashAgain bool) {
	t.Helper()
	for at := 0; ; at++ {
		ops := 0
		var again *vfs.Mem
		fs := &countingFS{FS: mem, before: func() {
			if ops == at && crashAgain {
				again = vfs.CrashClone(mem, percent, rng)
			}
			ops++
		}}
		mgr := openManager(t, fs, now)
		l := openLog(t, mgr, "t-0", cfg)
		if _, err := l.Size(); err != nil {
			t.Fatal(err)
		}
		for _, b := range m.batches[len(m.batches)-3:] {
			if err := l.Append(b); err != nil {
				t.Fatal(err)
			}
		}
		m.check(t, l)
		if again != nil {
			mem = again
			continue
		}
		if left := append(files(t, mem, cleanedSuffix), files(t, mem, swapSuffix)...); len(left) > 0 {
			t.Fatalf("left behind: %v", left)
		}
		for range 3 {
			if _, err := l.Clean(CleanOptions{Below: never}); err != nil {
				t.Fatal(err)
			}
			now.Advance(2 * time.Second)
			m.check(t, l)
		}
		return
	}
}

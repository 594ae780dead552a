package journal_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/vfs"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "run only the history of this seed")
	historiesN = flag.Int("histories", 150, "how many seeded histories to run")
)

// each runs fn for every seed asked for.
func each(t *testing.T, fn func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	from, n := uint64(1), uint64(*historiesN)
	if *seedFlag != 0 {
		from, n = *seedFlag, 1
	}
	for s := from; s < from+n; s++ {
		rng := rand.New(rand.NewPCG(s, 17))
		if ok := t.Run(fmt.Sprintf("seed=%d", s), func(t *testing.T) { fn(t, rng) }); !ok {
			return
		}
	}
}

type unitSeen struct {
	lsn     journal.LSN
	entries [][]byte
}

// collect gathers units from an ApplyFunc.
type collect struct{ units []unitSeen }

func (c *collect) apply(lsn journal.LSN, kind journal.Kind, payload []byte) error {
	if n := len(c.units); n == 0 || c.units[n-1].lsn != lsn {
		c.units = append(c.units, unitSeen{lsn: lsn})
	}
	u := &c.units[len(c.units)-1]
	u.entries = append(u.entries, append([]byte{byte(kind)}, payload...))
	return nil
}

func randomUnit(rng *rand.Rand, number uint64) (*journal.Unit, [][]byte) {
	u := journal.NewUnit()
	var want [][]byte
	for i := range 1 + rng.IntN(4) {
		n := 8 + rng.IntN(300)
		switch rng.IntN(12) {
		case 0:
			n = 8 + rng.IntN(30000) // in fragments
		case 1:
			n = 8
		}
		kind := journal.Kind(1 + rng.IntN(4))
		p := u.Reserve(kind, n)
		for k := range p {
			p[k] = byte(uint64(k)*31 + number + uint64(i))
		}
		want = append(want, append([]byte{byte(kind)}, p...))
	}
	return u, want
}

// TestCrashes runs a journal on a file system that loses unsynced writes, crashes it between any two steps, any number of times,
// and compares what recovery finds with what was committed.
func TestCrashes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rng *rand.Rand) {
		fs := vfs.NewCrashable()
		var model []unitSeen // all that recovery must find from the checkpoint on, then perhaps more
		var acked journal.LSN
		var number uint64
		var ckpt journal.LSN
		for range 1 + rng.IntN(6) {
			j, err := journal.Open(journal.Options{FS: fs, Dir: "j", SegmentBytes: 64 << 10, FragmentBytes: 4 << 10})
			if err != nil {
				t.Fatal(err)
			}
			var got collect
			if _, err := j.Recover(got.apply); err != nil {
				t.Fatal(err)
			}
			// What was recovered is a prefix of the model, and has all that was acknowledged.
			for len(model) > 0 && model[0].lsn < ckpt {
				model = model[1:]
			}
			units := got.units
			for len(units) > 0 && len(model) > 0 && units[0].lsn < model[0].lsn {
				units = units[1:] // a checkpoint that was on its way
			}
			if len(units) > len(model) {
				t.Fatalf("%d units recovered, only %d were committed", len(units), len(model))
			}
			for i, u := range units {
				if u.lsn != model[i].lsn || len(u.entries) != len(model[i].entries) {
					t.Fatalf("unit %d: lsn %d with %d entries, want %d with %d", i, u.lsn, len(u.entries), model[i].lsn, len(model[i].entries))
				}
				for k := range u.entries {
					if !bytes.Equal(u.entries[k], model[i].entries[k]) {
						t.Fatalf("unit %d entry %d differs", i, k)
					}
				}
			}
			for _, u := range model[len(units):] {
				if u.lsn <= acked {
					t.Fatalf("unit %d was acknowledged and is lost", u.lsn)
				}
			}
			model = model[:len(units)]
			j.SetApply(func(journal.LSN, journal.Kind, []byte) error { return nil })

			for range rng.IntN(120) {
				switch rng.IntN(10) {
				case 0, 1, 2, 3, 4:
					number++
					u, want := randomUnit(rng, number)
					var at journal.LSN
					lsn, err := j.Commit(u, func(lsn journal.LSN) {
						at = lsn
						for i := range u.Len() {
							_, p := u.Entry(i)
							binary.BigEndian.PutUint64(p, uint64(lsn))
							binary.BigEndian.PutUint64(want[i][1:], uint64(lsn))
						}
					})
					if err != nil || lsn != at {
						t.Fatal(lsn, at, err)
					}
					if len(model) > 0 && model[len(model)-1].lsn >= lsn {
						t.Fatalf("lsn %d after %d", lsn, model[len(model)-1].lsn)
					}
					model = append(model, unitSeen{lsn: lsn, entries: want})
				case 9:
					if rng.IntN(4) == 0 {
						upTo := j.Durable() + 1
						if rng.IntN(2) == 0 && len(model) > 0 {
							upTo = min(upTo, model[rng.IntN(len(model))].lsn)
						}
						if err := j.Checkpoint(upTo); err != nil {
							t.Fatal(err)
						}
						ckpt = max(ckpt, upTo)
					}
				default:
					j.Step()
				}
				acked = max(acked, j.Durable())
			}
			switch rng.IntN(4) {
			case 0:
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				acked = j.Durable()
			case 1: // kill -9: the page cache survives
				fs = vfs.CrashClone(fs, 100, rng)
			default:
				fs = vfs.CrashClone(fs, []int{0, 20, 50, 80}[rng.IntN(4)], rng)
			}
		}
	})
}

// TestConcurrentCommits has goroutines commit and wait, loses power at the end, and asks for everything that was acknowledged.
func TestConcurrentCommits(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashable()
	open := func(fs vfs.FS) (*journal.Journal, *collect) {
		j, err := journal.Open(journal.Options{FS: fs, Dir: "j", SegmentBytes: 256 << 10, FragmentBytes: 16 << 10, QueueBytes: 128 << 10})
		if err != nil {
			t.Fatal(err)
		}
		c := &collect{}
		if _, err := j.Recover(c.apply); err != nil {
			t.Fatal(err)
		}
		return j, c
	}
	j, _ := open(fs)
	var applied collect
	j.Start(func(lsn journal.LSN, kind journal.Kind, p []byte) error { return applied.apply(lsn, kind, p) })
	var mu sync.Mutex
	acked := map[journal.LSN][]byte{}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range 40 {
				u := journal.NewUnit()
				n := 16 + rng.IntN(2000)
				if i%13 == 0 {
					n = 100000
				}
				p := u.Reserve(journal.KindBatch, n)
				for k := range p {
					p[k] = byte(g + i)
				}
				want := append([]byte{1}, p...)
				lsn, err := j.Commit(u, nil)
				if err == nil {
					err = j.Wait(context.Background(), lsn)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked[lsn] = want
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	crashed := vfs.CrashClone(fs, 0, nil)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j2, got := open(crashed)
	if len(got.units) != len(acked) {
		t.Fatalf("%d units recovered of %d", len(got.units), len(acked))
	}
	for _, u := range got.units {
		if !bytes.Equal(u.entries[0], acked[u.lsn]) {
			t.Fatalf("unit %d differs", u.lsn)
		}
	}
	if err := j2.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	commit := func(j *journal.Journal, n int) (journal.LSN, error) {
		u := journal.NewUnit()
		u.Append(journal.KindMeta, make([]byte, n))
		return j.Commit(u, nil)
	}
	start := func(t *testing.T, fs vfs.FS) *journal.Journal {
		j, err := journal.Open(journal.Options{FS: fs, Dir: "j", SegmentBytes: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Recover(func(journal.LSN, journal.Kind, []byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		j.Start(func(journal.LSN, journal.Kind, []byte) error { return nil })
		return j
	}
	t.Run("a failed sync is final", func(t *testing.T) {
		t.Parallel()
		fs := vfs.NewFaults(vfs.NewCrashable())
		j := start(t, fs)
		lsn, err := commit(j, 100)
		if err == nil {
			err = j.Wait(context.Background(), lsn)
		}
		if err != nil {
			t.Fatal(err)
		}
		boom := errors.New("device error")
		fs.FailSync(".journal", boom)
		lsn, err = commit(j, 100)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Wait(context.Background(), lsn); !errors.Is(err, boom) {
			t.Fatalf("Wait: %v", err)
		}
		fs.FailSync("", nil)
		if _, err := commit(j, 100); !errors.Is(err, boom) {
			t.Fatalf("Commit after the failure: %v", err)
		}
		if err := j.Close(); !errors.Is(err, boom) {
			t.Fatalf("Close: %v", err)
		}
	})
	t.Run("a full disk refuses and heals", func(t *testing.T) {
		t.Parallel()
		fs := vfs.NewFaults(vfs.NewCrashable())
		j := start(t, fs)
		if _, err := commit(j, 100); err != nil {
			t.Fatal(err)
		}
		fs.Fill(true)
		var last journal.LSN
		var err error
		for range 100 {
			var lsn journal.LSN
			if lsn, err = commit(j, 10000); err != nil {
				break
			}
			last = lsn
		}
		if !errors.Is(err, journal.ErrNoSpace) {
			t.Fatalf("on a full disk: %v", err)
		}
		if err := j.Wait(context.Background(), last); err != nil {
			t.Fatalf("what was taken before: %v", err)
		}
		fs.Fill(false)
		lsn, err := commit(j, 10000)
		if err == nil {
			err = j.Wait(context.Background(), lsn)
		}
		if err != nil {
			t.Fatalf("with room again: %v", err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a checkpoint makes room", func(t *testing.T) {
		t.Parallel()
		fs := vfs.NewFaults(vfs.NewCrashable())
		j := start(t, fs)
		for range 200 {
			lsn, err := commit(j, 10000)
			if err == nil {
				err = j.Wait(context.Background(), lsn)
			}
			if err == nil {
				err = j.Checkpoint(lsn + 1)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if s := j.Stats(); s.Segments+s.FreeSegments > 12 {
			t.Fatalf("%+v", s)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("too many entries", func(t *testing.T) {
		t.Parallel()
		j := start(t, vfs.NewCrashable())
		u := journal.NewUnit()
		for range 10000 {
			u.Append(journal.KindMeta, []byte("abc"))
		}
		if _, err := j.Commit(u, nil); !errors.Is(err, journal.ErrTooLarge) {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := commit(j, 1); !errors.Is(err, journal.ErrClosed) {
			t.Fatal(err)
		}
	})
}

package commitlog

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/vfs"
)

// TestCompactionHistories appends, also in transactions, rolls, compacts with maps of a few keys, moves the start, and loses what was not synced, all at
// random: of each key the last committed value is found, and what was kept is as it was written.
func TestCompactionHistories(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rng *rand.Rand) {
		fs := vfs.NewCrashable()
		now := clock.NewManual(time.UnixMilli(1_000_000))
		cfg := Config{
			SegmentBytes: 600 + rng.Int64N(4000), IndexIntervalBytes: 100 + rng.IntN(800), Compact: true,
			DeleteRetention: time.Duration(rng.IntN(3000)) * time.Millisecond,
		}
		keys := 1 + rng.IntN(30)
		m := newModel()
		recorded := 0 // batches
		removed, passes := int64(0), 0
		for range 1 + rng.IntN(6) {
			mgr := openManager(t, fs, now)
			l := openLog(t, mgr, "t-0", cfg)
			for _, b := range m.batches[max(0, recorded-rng.IntN(8)):] { // the journal may replay more than is needed
				if err := l.Append(b); err != nil {
					t.Fatal(err)
				}
			}
			m.check(t, l)
			var crashed *vfs.Mem
			var lost, lostRecorded int // batches as of the crash
			crash := func() { crashed = vfs.CrashClone(fs, []int{0, 30, 70, 100}[rng.IntN(4)], rng) }
			add := func() {
				producer, txn := int64(-1), false
				if rng.IntN(2) == 0 {
					producer = rng.Int64N(3)
					txn = producer > 0 // 0 is idempotent only
				}
				if err := l.Append(m.batch(allCodecs[rng.IntN(5)], producer, txn, randomInput(rng, now.Now().UnixMilli(), keys, 1+rng.IntN(5)))); err != nil {
					t.Fatal(err)
				}
			}
			for crashed == nil && rng.IntN(120) > 0 {
				switch op := rng.IntN(40); {
				case op < 16:
					add()
				case op < 22:
					if err := l.Append(m.marker(1+rng.Int64N(2), now.Now().UnixMilli(), rng.IntN(2) == 0)); err != nil {
						t.Fatal(err)
					}
				case op < 24:
					if err := l.Roll(); err != nil {
						t.Fatal(err)
					}
				case op < 28:
					now.Advance(time.Duration(rng.IntN(2000)) * time.Millisecond)
				case op < 32:
					if err := mgr.Sync(context.Background(), nil); err != nil {
						t.Fatal(err)
					}
					recorded = len(m.batches)
				case op < 33:
					if start := l.StartOffset(); m.end > start && rng.IntN(3) == 0 {
						if err := l.SetStartOffset(start + rng.Int64N(m.end-start)/4); err != nil {
							t.Fatal(err)
						}
						if _, _, err := l.ApplyRetention(now.Now(), m.end); err != nil {
							t.Fatal(err)
						}
					}
				default:
					o := CleanOptions{Below: never, MapBytes: keySlotBytes * (1 + rng.IntN(12)), PauseBytes: 500}
					o.Pause = func(int, <-chan struct{}) error { // meanwhile life goes on
						switch rng.IntN(40) {
						case 0, 1, 2:
							add()
						case 3:
							if _, _, err := l.ApplyRetention(now.Now(), m.end); err != nil {
								t.Fatal(err)
							}
						case 4:
							m.check(t, l)
						case 5:
							if crashed == nil {
								lost, lostRecorded = len(m.batches), recorded
								crash()
							}
						case 6:
							if err := mgr.Sync(context.Background(), nil); err != nil {
								t.Fatal(err)
							}
							recorded = len(m.batches)
						}
						return nil
					}
					if rng.IntN(3) == 0 {
						o.Below = m.stable()
					}
					for n := 0; ; n++ {
						if _, err := l.Dirt(now.Now(), o.Below); err != nil {
							t.Fatal(err)
						}
						st, err := l.Clean(o)
						if err != nil {
							t.Fatal(err)
						}
						passes++
						removed += st.RecordsRead - st.RecordsKept
						if !st.More || rng.IntN(3) == 0 {
							break
						}
						if n > len(m.records)+10 {
							t.Fatal("compaction does not end")
						}
					}
					m.check(t, l)
				}
			}
			m.check(t, l)
			if crashed == nil {
				crash()
			} else {
				m.forget(lost)
				recorded = lostRecorded
			}
			fs = crashed
		}
		t.Logf("%d records, %d removed by %d passes", len(m.records), removed, passes)
	})
}

func FuzzCleanState(f *testing.F) {
	f.Add(string(cleanState{holes: 5, dirty: 3, horizon: -1, transactional: true}.encode()))
	f.Add(string(cleanState{}.encode()))
	f.Fuzz(func(t *testing.T, b string) {
		s, err := decodeCleanState(b)
		if err == nil {
			if again, err := decodeCleanState(string(s.encode())); err != nil || again != s {
				t.Fatalf("%+v became %+v: %v", s, again, err)
			}
		}
	})
}

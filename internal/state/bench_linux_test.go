package state

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/vfs"
)

// cpu gives the process's CPU time so far; figures by it stand on a busy machine, too.
func cpu() time.Duration {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// measure reports rows by CPU time since start.
func measure(b *testing.B, start time.Duration) {
	used := cpu() - start
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/row")
	b.ReportMetric(float64(b.N)/used.Seconds()/1e6, "Mrows/cpu-s")
}

// benchKeys are batches of 1,024 keys of 9 bytes out of n.
func benchKeys(batches, n int) []Keys {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]Keys, batches)
	for i := range out {
		for range 1024 {
			var b [9]byte
			b[0] = 1
			binary.BigEndian.PutUint64(b[1:], uint64(rng.IntN(n)))
			out[i].Append(b[:])
		}
	}
	return out
}

// BenchmarkPointUpdate is the hot path of an aggregate: probe a batch of keys, add to two counters of each row. An op is a row.
func BenchmarkPointUpdate(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			t := NewTables(Options{})
			defer t.Close()
			p := t.Point(Spec{Name: "bench", Ephemeral: true, ValueBytes: 16})
			batches := benchKeys(256, n)
			refs := make([]Ref, 1024)
			run := func(rows int) {
				for i := 0; i < rows; i += 1024 {
					k := &batches[i/1024%len(batches)]
					if err := p.Probe(k, refs); err != nil {
						b.Fatal(err)
					}
					for _, r := range refs {
						v, _ := p.Fixed(r, 16)
						binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
						binary.LittleEndian.PutUint64(v[8:], binary.LittleEndian.Uint64(v[8:])+3)
					}
					if i/1024%64 == 63 {
						if err := t.EndEpoch(nil); err != nil {
							b.Fatal(err)
						}
						t.Committed(0)
					}
				}
			}
			run(1024 * len(batches))
			b.ReportAllocs()
			b.ResetTimer()
			start := cpu()
			run(b.N)
			measure(b, start)
		})
	}
}

// BenchmarkPointEpoch is a durable table: updates, the encoding of the epoch every 64 batches, applying when a few MiB wait.
func BenchmarkPointEpoch(b *testing.B) {
	db, a := benchDB(b)
	t := NewTables(Options{DB: db, Applier: a})
	defer t.Close()
	p := t.Point(Spec{ID: 10, Name: "bench", Fresh: true, ValueBytes: 16})
	batches := benchKeys(256, 100_000)
	refs := make([]Ref, 1024)
	var c Changes
	lsn := journal.LSN(0)
	b.ReportAllocs()
	b.ResetTimer()
	defer measure(b, cpu())
	for i := 0; i < b.N; i += 1024 {
		if err := p.Probe(&batches[i/1024%len(batches)], refs); err != nil {
			b.Fatal(err)
		}
		for _, r := range refs {
			v, _ := p.Fixed(r, 16)
			binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
		}
		if i/1024%64 == 63 {
			lsn = endBenchEpoch(b, t, a, &c, lsn, 64<<20)
		}
	}
}

func benchDB(b *testing.B) (*kv.DB, *Applier) {
	db, err := kv.Open(kv.Options{FS: vfs.Default, Dir: b.TempDir(), CacheBytes: 16 << 20})
	if err != nil {
		b.Fatal(err)
	}
	a, err := NewApplier(ApplierOptions{DB: db})
	if err != nil {
		b.Fatal(err)
	}
	if err := a.FinishRecovery(0); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		a.Close()
		_ = db.Close()
	})
	return db, a
}

func endBenchEpoch(b *testing.B, t *Tables, a *Applier, c *Changes, lsn journal.LSN, applyAt int64) journal.LSN {
	c.Reset()
	if err := t.EndEpoch(c); err != nil {
		b.Fatal(err)
	}
	lsn++
	for _, p := range c.State {
		if err := a.Apply(lsn, journal.KindState, p); err != nil {
			b.Fatal(err)
		}
	}
	t.Committed(lsn)
	if over := t.Evict(); over > 0 || a.Pending().StateBytes > applyAt {
		if err := a.ApplyState(lsn); err != nil {
			b.Fatal(err)
		}
		t.Evict()
	}
	return lsn
}

// BenchmarkLargerThanMemory updates random rows of a table ten times as large as its memory. An op is a row.
func BenchmarkLargerThanMemory(b *testing.B) {
	const n = 1_000_000 // about 64 bytes each in memory
	db, a := benchDB(b)
	t := NewTables(Options{DB: db, Applier: a, Limit: 8 << 20})
	defer t.Close()
	p := t.Point(Spec{ID: 10, Name: "bench", Fresh: true, ValueBytes: 16})
	refs := make([]Ref, 1024)
	var c Changes
	lsn := journal.LSN(0)
	var keys Keys
	update := func() {
		if err := p.Probe(&keys, refs); err != nil {
			b.Fatal(err)
		}
		for _, r := range refs {
			v, _ := p.Fixed(r, 16)
			binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
		}
	}
	next := uint64(0)
	for next < n {
		keys.Reset()
		for range 1024 {
			var k [9]byte
			binary.BigEndian.PutUint64(k[1:], next)
			keys.Append(k[:])
			next++
		}
		update()
		if t.ChangedBytes() > 2<<20 {
			lsn = endBenchEpoch(b, t, a, &c, lsn, 16<<20)
		}
	}
	batches := benchKeys(256, n)
	b.ReportAllocs()
	b.ResetTimer()
	most := int64(0)
	defer measure(b, cpu())
	for i := 0; i < b.N; i += 1024 {
		keys = batches[i/1024%len(batches)]
		update()
		most = max(most, t.Used())
		if t.ChangedBytes() > 2<<20 {
			lsn = endBenchEpoch(b, t, a, &c, lsn, 16<<20)
		}
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB-most")
}

// BenchmarkOrderedSmallGroups adds to and reads groups of a few rows, as a join does. An op is a row.
func BenchmarkOrderedSmallGroups(b *testing.B) {
	t := NewTables(Options{})
	defer t.Close()
	o := t.Ordered(Spec{Name: "bench", Ephemeral: true})
	batches := benchKeys(64, 200_000)
	refs := make([]Ref, 1024)
	var it OrderedIter
	value := make([]byte, 24)
	var suffix [9]byte
	seq := uint64(0)
	b.ReportAllocs()
	b.ResetTimer()
	defer measure(b, cpu())
	for i := 0; i < b.N; i += 1024 {
		if err := o.Probe(&batches[i/1024%len(batches)], refs); err != nil {
			b.Fatal(err)
		}
		for _, g := range refs {
			binary.BigEndian.PutUint64(suffix[1:], seq%4)
			seq++
			if err := o.Set(g, suffix[:], value); err != nil {
				b.Fatal(err)
			}
			if err := o.Scan(&it, g, nil, nil, false); err != nil {
				b.Fatal(err)
			}
			for it.Next() {
				value[0] += it.Value()[0]
			}
		}
		if i/1024%64 == 63 {
			if err := t.EndEpoch(nil); err != nil {
				b.Fatal(err)
			}
			t.Committed(0)
		}
	}
}

package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/leat-io/leat/internal/journal"
)

// BenchmarkCommit shows durable commits next to what the disk itself does with a plain loop of write and fdatasync over a
// file that is already allocated.
func BenchmarkCommit(b *testing.B) {
	for _, c := range []struct{ committers, bytes int }{{1, 1 << 10}, {64, 1 << 10}, {256, 1 << 10}, {1, 1 << 20}, {8, 1 << 20}} {
		b.Run(fmt.Sprintf("journal/%dx%d", c.committers, c.bytes), func(b *testing.B) {
			j, err := journal.Open(journal.Options{Dir: b.TempDir(), SpareSegments: 6})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := j.Recover(ignore); err != nil {
				b.Fatal(err)
			}
			var since atomic.Int64
			j.OnDurable(func(lsn journal.LSN) {
				if s := since.Load(); int64(lsn)-s > 64<<20 && since.CompareAndSwap(s, int64(lsn)) {
					go func() { _ = j.Checkpoint(lsn) }()
				}
			})
			j.Start(ignore)
			payload := make([]byte, c.bytes)
			var left atomic.Int64
			b.SetBytes(int64(c.bytes))
			b.ReportAllocs()
			run := func(n int) {
				left.Store(int64(n))
				var wg sync.WaitGroup
				for range c.committers {
					wg.Add(1)
					go func() {
						defer wg.Done()
						for left.Add(-1) >= 0 {
							u := journal.NewUnit()
							u.Append(journal.KindBatch, payload)
							lsn, err := j.Commit(u, nil)
							if err == nil {
								err = j.Wait(context.Background(), lsn)
							}
							if err != nil {
								b.Error(err)
								return
							}
						}
					}()
				}
				wg.Wait()
			}
			// The first round over the segments allocates them.
			run(int(128<<20) / (c.bytes + 1<<12))
			b.ResetTimer()
			run(b.N)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
	for _, bytes := range []int{1 << 10, 64 << 10, 1 << 20, 8 << 20} {
		b.Run(fmt.Sprintf("fdatasync/1x%d", bytes), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "plain"))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			zeros := make([]byte, 64<<20)
			if _, err := f.Write(zeros); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			p := zeros[:bytes]
			b.SetBytes(int64(bytes))
			b.ResetTimer()
			off := 0
			for range b.N {
				if off+bytes > len(zeros) {
					off = 0
				}
				if _, err := f.WriteAt(p, int64(off)); err != nil {
					b.Fatal(err)
				}
				off += bytes
				if err := syscall.Fdatasync(int(f.Fd())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

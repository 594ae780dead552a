package commitlog

import (
	"testing"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/vfs"
)

// BenchmarkRead reads the last batch of a log as a consumer at its tail does, and batches all over a sealed segment as one that catches up does.
func BenchmarkRead(b *testing.B) {
	m, err := NewManager(ManagerOptions{FS: vfs.Default, Dir: b.TempDir(), Clock: clock.Real})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	l, err := m.Open("t-0", [16]byte{1}, Config{})
	if err != nil {
		b.Fatal(err)
	}
	const batches, each = 4096, 10
	for i := range int64(batches) {
		if err := l.Append(makeBatch(i*each, each, 1000+i, 1000)); err != nil {
			b.Fatal(err)
		}
	}
	read := func(b *testing.B, offset int64, maxBytes int) {
		c, err := l.Read(offset, maxBytes, never, true)
		if err != nil || c.Len() == 0 {
			b.Fatal(c.Len(), err)
		}
		c.Release()
	}
	b.Run("tail", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			read(b, (batches-1)*each, 1<<20)
		}
	})
	if err := l.Roll(); err != nil {
		b.Fatal(err)
	}
	b.Run("sealed", func(b *testing.B) {
		b.ReportAllocs()
		i := int64(0)
		for b.Loop() {
			read(b, i%(batches/2)*each, 1<<20)
			i += 131
		}
	})
}

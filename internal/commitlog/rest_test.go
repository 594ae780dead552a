package commitlog

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/vfs"
)

// TestAtRest checks that a retention pass after a start learns how large a log is without loading it, and loads it when there is something to do.
func TestAtRest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := Config{SegmentBytes: 4 << 10, Retention: time.Hour, RetentionBytes: 1 << 20}
	open := func(c Config) (*Manager, *Log) {
		m, err := NewManager(ManagerOptions{FS: vfs.Default, Dir: dir, Clock: clock.Real})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m, openLog(t, m, "t-0", c)
	}
	m, l := open(config)
	now := time.Now()
	for i := range int64(20) {
		if err := l.Append(makeBatch(i, 1, now.UnixMilli(), 1000)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := l.Size()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Sync(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.AtRest(now); ok {
		t.Error("a log that is in use is said to be at rest")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}

	m, l = open(config)
	if got, ok := l.AtRest(now); !ok || got != want || m.OpenFiles() != 0 {
		t.Errorf("%d bytes, at rest %v, %d files open; want %d, true, 0", got, ok, m.OpenFiles(), want)
	}
	if err := l.SetStartOffset(15); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.AtRest(now); ok {
		t.Error("a log with segments below its start is said to be at rest")
	}
	_ = m.Close()

	small := config
	small.RetentionBytes = 8 << 10
	m, l = open(small)
	if _, ok := l.AtRest(now); ok {
		t.Error("a log that is too large is said to be at rest")
	}
	_ = m.Close()

	old := now.Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "t-0", segmentName(0)+".log"), old, old); err != nil {
		t.Fatal(err)
	}
	_, l = open(config)
	if _, ok := l.AtRest(now); ok {
		t.Error("a log that is too old is said to be at rest")
	}
}

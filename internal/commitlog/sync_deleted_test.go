package commitlog

import (
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/vfs"
)

// openDirFS calls back before a folder is opened.
type openDirFS struct {
	vfs.FS
	before func(path string)
}

func (f *openDirFS) OpenDir(path string) (vfs.File, error) {
	if f.before != nil {
		f.before(path)
	}
	return f.FS.OpenDir(path)
}

// TestSyncOfADeletedLog deletes a log, with its folder, while it is being synced: the sync of all logs, and so the checkpoint, does not fail for it.
func TestSyncOfADeletedLog(t *testing.T) {
	t.Parallel()
	fs := &openDirFS{FS: vfs.NewMem()}
	m := openManager(t, fs, clock.NewManual(time.UnixMilli(1_000_000)))
	gone, stays := openLog(t, m, "gone-0", Config{}), openLog(t, m, "stays-0", Config{})
	for _, l := range []*Log{gone, stays} {
		if err := l.Append(makeBatch(0, 1, 5, 10)); err != nil {
			t.Fatal(err)
		}
	}
	deleted := false
	fs.before = func(path string) {
		if strings.HasSuffix(path, "gone-0") && !deleted {
			deleted = true
			if err := gone.Delete(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := m.Sync(t.Context(), nil); err != nil {
		t.Errorf("sync beside the deletion of a log: %v", err)
	}
	if !deleted {
		t.Error("the folder was not synced")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

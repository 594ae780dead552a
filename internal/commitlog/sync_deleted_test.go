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

// renameFS calls back before a file is renamed.
type renameFS struct {
	vfs.FS
	before func(path string)
}

func (f *renameFS) Rename(from, to string) error {
	if f.before != nil {
		f.before(to)
	}
	return f.FS.Rename(from, to)
}

// TestSyncBesideCompaction has a sync that began before compaction open a segment just ahead of its replacement, and before it is opened: nobody reads
// the old file afterwards.
func TestSyncBesideCompaction(t *testing.T) {
	t.Parallel()
	fs := &renameFS{FS: vfs.NewMem()}
	now := clock.NewManual(time.UnixMilli(1_000_000))
	s := &story{t: t, now: now, m: newModel(), mgr: openManager(t, fs, now)}
	s.l = openLog(t, s.mgr, "t-0", Config{Compact: true})
	s.put(-1, false, "a=1", "b=1", "a=2")
	s.put(-1, false, "b=2", "c=1")
	s.roll()
	s.put(-1, false, "d=1")
	s.sync()
	opened := false
	fs.before = func(path string) {
		if !strings.HasSuffix(path, ".log") {
			return
		}
		f, err := s.mgr.files.acquire(path)
		s.must(err)
		f.release()
		opened = true
	}
	s.clean(100)
	s.want("2:a=2 3:b=2 4:c=1 5:d=1")
	if !opened {
		t.Error("no segment was replaced")
	}
}

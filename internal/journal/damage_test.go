package journal_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/vfs"
)

func ignore(journal.LSN, journal.Kind, []byte) error { return nil }

// writeJournal leaves a closed journal with n synced units of 1,000 bytes in dir, and returns the files in use.
func writeJournal(t *testing.T, dir string, n int) []string {
	t.Helper()
	j, err := journal.Open(journal.Options{Dir: dir, SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Recover(ignore); err != nil {
		t.Fatal(err)
	}
	j.Start(ignore)
	for i := range n {
		u := journal.NewUnit()
		p := u.Reserve(journal.KindMeta, 1000)
		for k := range p {
			p[k] = byte(i)
		}
		lsn, err := j.Commit(u, nil)
		if err == nil {
			err = j.Wait(context.Background(), lsn)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	used := j.Stats().Segments
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		t.Fatal(err)
	}
	return files[:used]
}

func reopen(dir string) (*collect, error) {
	j, err := journal.Open(journal.Options{Dir: dir, SegmentBytes: 64 << 10})
	if err != nil {
		return nil, err
	}
	c := &collect{}
	if _, err := j.Recover(c.apply); err != nil {
		return nil, err
	}
	return c, j.Close()
}

// TestDamage flips one byte at a time: either it is in no unit and everything is found, or the error names file and place.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const units = 100
	files := writeJournal(t, dir, units)
	if len(files) < 2 {
		t.Fatalf("%d segments", len(files))
	}
	for i, name := range files {
		orig, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		ckpt, err := os.ReadFile(filepath.Join(dir, "CHECKPOINT"))
		if err != nil {
			t.Fatal(err)
		}
		end := len(orig)
		if i == len(files)-1 {
			end = 8192 + (units%54)*1048 // what the last one holds at least
		}
		for at := 0; at < end; at += 997 {
			b := append([]byte(nil), orig...)
			b[at] ^= 0x40
			if err := os.WriteFile(name, b, 0o644); err != nil {
				t.Fatal(err)
			}
			c, err := reopen(dir)
			var d *journal.DamageError
			switch {
			case err == nil && len(c.units) == units:
			case errors.As(err, &d) && d.File == name && d.Offset <= int64(at) && d.Offset > int64(at)-1100:
			default:
				t.Fatalf("byte %d of %s: %d units, %v", at, name, len(c.units), err)
			}
			if err := os.WriteFile(name, orig, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "CHECKPOINT"), ckpt, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("a lost segment", func(t *testing.T) {
		if err := os.Rename(files[0], files[0]+".away"); err != nil {
			t.Fatal(err)
		}
		if _, err := reopen(dir); err == nil || !strings.Contains(err.Error(), "is missing") {
			t.Fatal(err)
		}
		if err := os.Rename(files[0]+".away", files[0]); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("an unknown version", func(t *testing.T) {
		b, err := os.ReadFile(filepath.Join(dir, "CHECKPOINT"))
		if err != nil {
			t.Fatal(err)
		}
		b[8] = 9
		if err := os.WriteFile(filepath.Join(dir, "CHECKPOINT"), b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := reopen(dir); !errors.Is(err, journal.ErrFormat) {
			t.Fatal(err)
		}
	})
}

func TestFolderLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := vfs.LockDir(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vfs.LockDir(vfs.Default, dir); !errors.Is(err, vfs.ErrLocked) {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

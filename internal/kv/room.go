package kv

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-io/leat/internal/vfs"
)

// roomPoll is how often a write that the disk has no room for is tried again.
const roomPoll = 100 * time.Millisecond

// patientFS is a file system on which a full disk is a slow disk: a write waits until there is room. Pebble would try again at once, for ever, and end the
// process when it is its manifest that does not fit.
//
// When the node is to stop, interrupt ends the waiting: the database then finds its files as after a crash at that moment. What is written, renamed or removed from then on
// does not happen, and says that it does, so that Pebble comes to its end; the journal still has everything. See DB.Flush for how nobody is told otherwise.
type patientFS struct {
	vfs.FS
	*patience
}

type patience struct {
	log       *slog.Logger
	waits     atomic.Bool // false while the database is being opened: then a full disk is an error
	frozen    atomic.Bool
	stop      chan struct{}
	once      sync.Once
	announced atomic.Int64 // when waiting was last spoken of, Unix seconds
}

func newPatience(l *slog.Logger) *patience { return &patience{log: l, stop: make(chan struct{})} }

// interrupt ends all waits for room, now and later.
func (p *patience) interrupt() { p.once.Do(func() { close(p.stop) }) }

// try does op, again while the disk is full. done is false if op did not happen because the file system is frozen.
func (p *patience) try(name string, op func() error) (done bool, err error) {
	for {
		if p.frozen.Load() {
			return false, nil
		}
		err := op()
		if !vfs.NoSpace(err) || !p.waits.Load() {
			return true, err
		}
		if now, last := time.Now().Unix(), p.announced.Load(); now-last >= 60 && p.announced.CompareAndSwap(last, now) {
			p.log.Error("the disk is full: the database waits for room", "file", name, "err", err)
		}
		timer := time.NewTimer(roomPoll)
		select {
		case <-p.stop:
			timer.Stop()
			p.frozen.Store(true)
		case <-timer.C:
		}
	}
}

// open opens a file to write to.
func (p *patience) open(name string, op func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	done, err := p.try(name, func() (err error) {
		file, err = op()
		return err
	})
	if err != nil {
		return nil, err
	}
	if !done {
		return &lostFile{}, nil
	}
	return &patientFile{File: file, p: p, name: name}, nil
}

// Create implements FS.
func (f patientFS) Create(name string, category vfs.WriteCategory) (vfs.File, error) {
	return f.open(name, func() (vfs.File, error) { return f.FS.Create(name, category) })
}

// ReuseForWrite implements FS.
func (f patientFS) ReuseForWrite(oldname, newname string, category vfs.WriteCategory) (vfs.File, error) {
	if err := f.Remove(oldname); err != nil {
		return nil, err
	}
	return f.Create(newname, category)
}

// OpenReadWrite implements FS.
func (f patientFS) OpenReadWrite(name string, category vfs.WriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open(name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, category, opts...) })
}

// Link implements FS.
func (f patientFS) Link(oldname, newname string) error {
	_, err := f.try(newname, func() error { return f.FS.Link(oldname, newname) })
	return err
}

// Rename implements FS.
func (f patientFS) Rename(oldname, newname string) error {
	_, err := f.try(newname, func() error { return f.FS.Rename(oldname, newname) })
	return err
}

// Remove implements FS.
func (f patientFS) Remove(name string) error {
	_, err := f.try(name, func() error { return f.FS.Remove(name) })
	return err
}

// RemoveAll implements FS.
func (f patientFS) RemoveAll(name string) error {
	_, err := f.try(name, func() error { return f.FS.RemoveAll(name) })
	return err
}

// MkdirAll implements FS.
func (f patientFS) MkdirAll(dir string, perm os.FileMode) error {
	_, err := f.try(dir, func() error { return f.FS.MkdirAll(dir, perm) })
	return err
}

// Unwrap implements FS.
func (f patientFS) Unwrap() vfs.FS { return f.FS }

// patientFile is a file that is written to.
type patientFile struct {
	vfs.File
	p    *patience
	name string
}

// Write implements File; what did not fit at once is written when there is room.
func (f *patientFile) Write(b []byte) (int, error) {
	n := 0
	_, err := f.p.try(f.name, func() error {
		m, err := f.File.Write(b[n:])
		n += m
		return err
	})
	if err != nil {
		return n, err
	}
	return len(b), nil
}

// WriteAt implements File.
func (f *patientFile) WriteAt(b []byte, off int64) (int, error) {
	_, err := f.p.try(f.name, func() error {
		_, err := f.File.WriteAt(b, off)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// Preallocate implements File. It is a wish, not a need.
func (f *patientFile) Preallocate(offset, length int64) error {
	if err := f.File.Preallocate(offset, length); err != nil && !vfs.NoSpace(err) {
		return err
	}
	return nil
}

// Sync implements File.
func (f *patientFile) Sync() error {
	if f.p.frozen.Load() {
		return nil
	}
	return f.File.Sync()
}

// SyncData implements File.
func (f *patientFile) SyncData() error {
	if f.p.frozen.Load() {
		return nil
	}
	return f.File.SyncData()
}

// lostFile takes what is written and has nothing: a file that was made after its file system was frozen.
type lostFile struct{ vfs.File }

func (*lostFile) Close() error                           { return nil }
func (*lostFile) Read([]byte) (int, error)               { return 0, os.ErrNotExist }
func (*lostFile) ReadAt([]byte, int64) (int, error)      { return 0, os.ErrNotExist }
func (*lostFile) Write(b []byte) (int, error)            { return len(b), nil }
func (*lostFile) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (*lostFile) Preallocate(int64, int64) error         { return nil }
func (*lostFile) Stat() (vfs.FileInfo, error)            { return nil, os.ErrNotExist }
func (*lostFile) Sync() error                            { return nil }
func (*lostFile) SyncTo(int64) (bool, error)             { return true, nil }
func (*lostFile) SyncData() error                        { return nil }
func (*lostFile) Prefetch(int64, int64) error            { return nil }
func (*lostFile) Fd() uintptr                            { return vfs.InvalidFd }

package vfs

import (
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Faults is a file system that misbehaves on demand: a disk that is full, a sync that fails.
type Faults struct {
	FS
	full  atomic.Bool
	syncs atomic.Int64

	mu        sync.Mutex
	syncErr   error
	syncMatch string
}

// NewFaults wraps under; until told otherwise it behaves as under does.
func NewFaults(under FS) *Faults { return &Faults{FS: under} }

// Fill makes every write that needs new room fail with ENOSPC (true), or puts the room back (false). Overwriting a file
// within its size goes on, as it does on a disk.
func (f *Faults) Fill(full bool) { f.full.Store(full) }

// FailSync makes every sync of a file whose name contains match return err; a nil err heals.
func (f *Faults) FailSync(match string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncErr, f.syncMatch = err, match
}

// Syncs counts the syncs of files and folders so far.
func (f *Faults) Syncs() int64 { return f.syncs.Load() }

func (f *Faults) syncError(name string) error {
	f.syncs.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.syncErr != nil && strings.Contains(name, f.syncMatch) {
		return &fs.PathError{Op: "sync", Path: name, Err: f.syncErr}
	}
	return nil
}

func (f *Faults) noSpace(op, name string) error {
	if f.full.Load() {
		return &fs.PathError{Op: op, Path: name, Err: syscall.ENOSPC}
	}
	return nil
}

func (f *Faults) wrap(name string, file File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &faultFile{File: file, fs: f, name: name}, nil
}

// Create implements FS.
func (f *Faults) Create(name string, category WriteCategory) (File, error) {
	if err := f.noSpace("create", name); err != nil {
		return nil, err
	}
	file, err := f.FS.Create(name, category)
	return f.wrap(name, file, err)
}

// OpenReadWrite implements FS.
func (f *Faults) OpenReadWrite(name string, category WriteCategory, opts ...OpenOption) (File, error) {
	file, err := f.FS.OpenReadWrite(name, category, opts...)
	return f.wrap(name, file, err)
}

// Open implements FS.
func (f *Faults) Open(name string, opts ...OpenOption) (File, error) {
	file, err := f.FS.Open(name, opts...)
	return f.wrap(name, file, err)
}

// OpenDir implements FS.
func (f *Faults) OpenDir(name string) (File, error) {
	file, err := f.FS.OpenDir(name)
	return f.wrap(name, file, err)
}

// ReuseForWrite implements FS.
func (f *Faults) ReuseForWrite(oldname, newname string, category WriteCategory) (File, error) {
	file, err := f.FS.ReuseForWrite(oldname, newname, category)
	return f.wrap(newname, file, err)
}

// GetDiskUsage implements FS: a filled disk has nothing available.
func (f *Faults) GetDiskUsage(path string) (DiskUsage, error) {
	u, err := f.FS.GetDiskUsage(path)
	if f.full.Load() {
		u.AvailBytes = 0
	}
	return u, err
}

// Unwrap implements FS.
func (f *Faults) Unwrap() FS { return f.FS }

type faultFile struct {
	File
	fs   *Faults
	name string
}

func (f *faultFile) unwrapFile() File { return f.File }

func (f *faultFile) Write(p []byte) (int, error) {
	if err := f.fs.noSpace("write", f.name); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	if f.fs.full.Load() {
		st, err := f.Stat()
		if err != nil {
			return 0, err
		}
		if off+int64(len(p)) > st.Size() {
			return 0, f.fs.noSpace("write", f.name)
		}
	}
	return f.File.WriteAt(p, off)
}

func (f *faultFile) Preallocate(offset, length int64) error {
	if err := f.fs.noSpace("allocate", f.name); err != nil {
		return err
	}
	return f.File.Preallocate(offset, length)
}

func (f *faultFile) Sync() error {
	if err := f.fs.syncError(f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultFile) SyncData() error {
	if err := f.fs.syncError(f.name); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *faultFile) SyncTo(length int64) (bool, error) {
	if err := f.fs.syncError(f.name); err != nil {
		return false, err
	}
	return f.File.SyncTo(length)
}

// Package vfs is the seam to the file system: Pebble's own, under our names, with what the journal and the log need on
// top: a lock on a data folder, a memory file system whose crashes lose unsynced writes, and faults on demand.
//
// What always holds: nothing above this package opens a file in any other way, so a whole node can run on the memory file
// system and be crashed at any step.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"syscall"

	"github.com/cockroachdb/errors/oserror"
	pebblevfs "github.com/cockroachdb/pebble/v2/vfs"
)

type (
	// FS is a namespace of files.
	FS = pebblevfs.FS
	// File is an open file.
	File = pebblevfs.File
	// FileInfo describes a file.
	FileInfo = pebblevfs.FileInfo
	// DiskUsage says how full a disk is.
	DiskUsage = pebblevfs.DiskUsage
	// Mem is a file system in memory; one made by NewCrashable can be crashed.
	Mem = pebblevfs.MemFS
	// WriteCategory labels writes for statistics.
	WriteCategory = pebblevfs.DiskWriteCategory
	// OpenOption is advice to the system about a file that is being opened.
	OpenOption = pebblevfs.OpenOption
)

// Unspecified is the category of writes that nobody accounts for.
const Unspecified = pebblevfs.WriteCategoryUnspecified

// SequentialReads is an OpenOption: the file will be read from its start to its end.
var SequentialReads = pebblevfs.SequentialReadsOption

// InvalidFd is what File.Fd returns when no descriptor of the operating system stands behind it.
const InvalidFd = pebblevfs.InvalidFd

// Default is the operating system's file system.
var Default = pebblevfs.Default

// NewMem returns a file system in memory.
func NewMem() *Mem { return pebblevfs.NewMem() }

// NewCrashable returns a file system in memory that keeps apart what was synced and what was not; see CrashClone.
func NewCrashable() *Mem { return pebblevfs.NewCrashableMem() }

// CrashClone returns what a machine could find after losing power now: all that was synced, and each block or directory
// entry that was not with a chance of unsyncedPercent. Running code keeps writing to the old one.
func CrashClone(fs *Mem, unsyncedPercent int, rng *rand.Rand) *Mem {
	return fs.CrashClone(pebblevfs.CrashCloneCfg{UnsyncedDataPercent: unsyncedPercent, RNG: rng})
}

// ErrLocked says that another process, or another part of this one, has the folder.
var ErrLocked = errors.New("is in use by another server")

// LockName is the file that LockDir locks.
const LockName = "LOCK"

// LockDir takes the folder for this process until the returned closer is closed. The lock ends with the process, however
// it ends. The folder is created if need be.
func LockDir(fs FS, dir string) (io.Closer, error) {
	if err := MkdirAll(fs, dir); err != nil {
		return nil, fmt.Errorf("the data folder %s cannot be made: %w", dir, withoutPath(err, dir))
	}
	c, err := fs.Lock(fs.PathJoin(dir, LockName))
	if unusable(err) {
		return nil, fmt.Errorf("the data folder %s cannot be used: %w", dir, withoutPath(err, fs.PathJoin(dir, LockName)))
	}
	if err != nil {
		err = withoutPath(err, fs.PathJoin(dir, LockName))
		if errors.Is(err, syscall.EAGAIN) { // which says that it is locked, and no more
			return nil, fmt.Errorf("the data folder %s %w: stop that one, or choose another folder", dir, ErrLocked)
		}
		return nil, fmt.Errorf("the data folder %s %w, or cannot be locked: stop that one, or choose another folder: %w", dir, ErrLocked, err)
	}
	return c, nil
}

// withoutPath takes the path out of an error that is told with it.
func withoutPath(err error, path string) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) && pe.Path == path {
		return pe.Err
	}
	return err
}

// unusable tells a folder that cannot be locked, or written to, from one that is locked.
func unusable(err error) bool {
	for _, e := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOTDIR, syscall.EISDIR, syscall.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return isNoSpace(err)
}

// SyncDir makes the folder's entries (created, renamed, removed files) durable.
func SyncDir(fs FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// WriteFile replaces the file's content atomically and durably: after a crash it has either the old content or the new.
func WriteFile(fs FS, dir, name string, content []byte) error {
	tmp := fs.PathJoin(dir, name+".tmp")
	f, err := fs.Create(tmp, Unspecified)
	if err != nil {
		return err
	}
	// Write may scribble over what it is given.
	_, err = f.Write(append([]byte(nil), content...))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := fs.Rename(tmp, fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return SyncDir(fs, dir)
}

// ReadFile returns the file's content, refusing one of more than limit bytes.
func ReadFile(fs FS, path string, limit int64) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that it can have", path, st.Size(), limit)
	}
	b := make([]byte, st.Size())
	if len(b) == 0 {
		return b, nil
	}
	n, err := f.ReadAt(b, 0)
	if err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
		return nil, err
	}
	return b, nil
}

// NotExist reports whether err says that a file is not there.
func NotExist(err error) bool { return oserror.IsNotExist(err) || errors.Is(err, os.ErrNotExist) }

// NoSpace reports whether err says that the disk is full.
func NoSpace(err error) bool { return isNoSpace(err) }

// NoDescriptors reports whether the error says that the process or the machine has no file descriptor left.
func NoDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Truncater is a File that can be cut. Pebble's File cannot; Truncate finds a way for each kind.
type Truncater interface{ Truncate(size int64) error }

// Truncate cuts the open file to size bytes.
func Truncate(fs FS, path string, f File, size int64) error { return truncate(fs, path, f, size) }

// Package spill owns the files that hold what is too much for memory for a while: what an epoch gives beyond its share, and rows that are being
// sorted. docs/format/spill.md draws the bytes.
//
// What always holds:
//   - A file is written once, from its start to its end, and read only after it was closed.
//   - One that was closed as durable is on the disk, name and all, before Close returns: whoever is told of it then finds it after a crash.
//   - What is read is what was written, or an error: each block has a checksum, and the name that a File gives holds one of them all.
//   - A file of which nobody knows when the folder is opened is of no use to anybody, and is removed by Clean.
package spill

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/leat-io/leat/internal/vfs"
)

const suffix = ".spill"

// Folder is where the files are. Safe for concurrent use.
type Folder struct {
	fs      vfs.FS
	dir     string
	lost    func() bool
	next    atomic.Uint64
	written atomic.Int64
}

// File names a file that was closed: its number, its length and the checksum of its blocks.
type File struct {
	Number uint64
	Bytes  int64
	Sum    uint32
}

// ErrFiles is every error of this package: the epoch that needs the files cannot be completed, whoever's rows they hold. Run again it may be.
var ErrFiles = errors.New("rows that do not fit in memory cannot be kept in files")

func failed(doing string, err error) error { return fmt.Errorf("%w: %s: %w", ErrFiles, doing, err) }

// OpenFolder opens the folder, making it if it is not there. What is in it stays until Clean. lost, if not nil, says that what was written to fs may not be
// there, though no error told.
func OpenFolder(fs vfs.FS, dir string, lost func() bool) (*Folder, error) {
	if err := vfs.MkdirAll(fs, dir); err != nil {
		return nil, failed("make the folder", err)
	}
	f := &Folder{fs: fs, dir: dir, lost: lost}
	numbers, err := f.list()
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		f.next.Store(max(f.next.Load(), n))
	}
	return f, nil
}

func (f *Folder) path(number uint64) string {
	return f.fs.PathJoin(f.dir, fmt.Sprintf("%016x%s", number, suffix))
}

// list is the numbers of the files that are there.
func (f *Folder) list() ([]uint64, error) {
	names, err := f.fs.List(f.dir)
	if err != nil {
		return nil, failed("list the folder", err)
	}
	var numbers []uint64
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, suffix)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(digits, 16, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// Clean removes the files that keep does not want, those that an earlier process left.
func (f *Folder) Clean(keep func(number uint64) bool) error {
	numbers, err := f.list()
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range numbers {
		if !keep(n) {
			errs = append(errs, f.Remove(n))
		}
	}
	return errors.Join(errs...)
}

// Remove removes a file that nobody reads any more. One that is not there is no error.
func (f *Folder) Remove(number uint64) error {
	if err := f.fs.Remove(f.path(number)); err != nil && !vfs.NotExist(err) {
		return failed("remove a file", err)
	}
	return nil
}

// Written is how many bytes were written since the folder was opened.
func (f *Folder) Written() int64 { return f.written.Load() }

// Scratch are the files of one owner that nobody needs after a crash, or after the owner. Not safe for concurrent use.
type Scratch struct {
	folder *Folder
	open   map[uint64]closer // by number
}

// closer is a file's writer or reader.
type closer interface{ close() }

// NewScratch makes an empty set.
func (f *Folder) NewScratch() *Scratch { return &Scratch{folder: f, open: map[uint64]closer{}} }

// Create begins a file.
func (s *Scratch) Create() (*Writer, error) {
	w, err := s.folder.Create(false)
	if err == nil {
		s.open[w.file.Number] = w
	}
	return w, err
}

// Open begins to read one of the files.
func (s *Scratch) Open(file File, buffer int) (*Reader, error) {
	r, err := s.folder.Open(file, buffer)
	if err == nil {
		s.open[file.Number] = r
	}
	return r, err
}

// Remove closes and removes one of the files.
func (s *Scratch) Remove(file File) error { return s.remove(file.Number) }

func (s *Scratch) remove(number uint64) error {
	if c := s.open[number]; c != nil {
		c.close()
	}
	delete(s.open, number)
	return s.folder.Remove(number)
}

// Close closes and removes all of them.
func (s *Scratch) Close() error {
	var errs []error
	for n := range s.open {
		errs = append(errs, s.remove(n))
	}
	return errors.Join(errs...)
}

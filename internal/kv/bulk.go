package kv

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/leat-io/leat/internal/vfs"
)

// bulkFS is a file system on which tables are written, and read by compactions, in large pieces. Pebble does both block by block, and its
// blocks are small (kv.go says why), so that the system calls would cost more than what they carry.
type bulkFS struct{ vfs.FS }

// bulkBytes is how much is written, or read ahead, at once.
const bulkBytes = 128 << 10

// bulkBuffers are of bulkBytes each.
var bulkBuffers = sync.Pool{New: func() any { return new([bulkBytes]byte) }}

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// Create implements FS.
func (b bulkFS) Create(name string, category vfs.WriteCategory) (vfs.File, error) {
	f, err := b.FS.Create(name, category)
	if err != nil || !isTable(name) {
		return f, err
	}
	return &bulkWriter{File: f}, nil
}

// Open implements FS.
func (b bulkFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := b.FS.Open(name, opts...)
	if err != nil || !isTable(name) || !slices.Contains(opts, vfs.SequentialReads) {
		return f, err
	}
	return &bulkReader{File: f}, nil
}

// Unwrap implements FS.
func (b bulkFS) Unwrap() vfs.FS { return b.FS }

// bulkWriter is a table that is being written, by one goroutine. What it has been given is in the file after Sync or Close, not before: nobody
// reads a table sooner.
type bulkWriter struct {
	vfs.File
	buf *[bulkBytes]byte // nil: empty
	n   int
	err error // of a write that was put off; nothing is written behind it
}

// Write implements File.
func (w *bulkWriter) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 && w.err == nil {
		if w.buf == nil {
			w.buf = bulkBuffers.Get().(*[bulkBytes]byte)
		}
		n := copy(w.buf[w.n:], p)
		w.n += n
		p = p[n:]
		if w.n == bulkBytes {
			w.flush()
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return written, nil
}

func (w *bulkWriter) flush() {
	if w.n > 0 && w.err == nil {
		_, w.err = w.File.Write(w.buf[:w.n])
	}
	if w.buf != nil {
		bulkBuffers.Put(w.buf)
	}
	w.buf, w.n = nil, 0
}

// WriteAt implements File. Pebble does not use it for tables.
func (w *bulkWriter) WriteAt(p []byte, off int64) (int, error) {
	if w.flush(); w.err != nil {
		return 0, w.err
	}
	return w.File.WriteAt(p, off)
}

// Sync implements File.
func (w *bulkWriter) Sync() error {
	if w.flush(); w.err != nil {
		return w.err
	}
	return w.File.Sync()
}

// SyncData implements File.
func (w *bulkWriter) SyncData() error {
	if w.flush(); w.err != nil {
		return w.err
	}
	return w.File.SyncData()
}

// SyncTo implements File.
func (w *bulkWriter) SyncTo(length int64) (fullSync bool, err error) {
	if w.flush(); w.err != nil {
		return false, w.err
	}
	return w.File.SyncTo(length)
}

// Stat implements File.
func (w *bulkWriter) Stat() (vfs.FileInfo, error) {
	if w.flush(); w.err != nil {
		return nil, w.err
	}
	return w.File.Stat()
}

// Close implements File.
func (w *bulkWriter) Close() error {
	w.flush()
	return errors.Join(w.err, w.File.Close())
}

// bulkReader is a table that is read from its start to its end, by one goroutine at a time: what follows on several reads in a row takes what comes
// next along. Pebble also takes it for an iterator that is moved on by seeks, which leaves most of the file out.
type bulkReader struct {
	vfs.File
	buf   *[bulkBytes]byte // nil: empty
	start int64            // of buf's bytes in the file
	n     int
	next  int64 // where the last read ended
	row   int   // reads that each followed the one before
}

// bulkAfter is how many reads must have followed each other for more than what is asked for to be read.
const bulkAfter = 2

// ReadAt implements File.
func (r *bulkReader) ReadAt(p []byte, off int64) (int, error) {
	if off == r.next {
		r.row++
	} else {
		r.row = 0
	}
	r.next = off + int64(len(p))
	if r.n > 0 && off >= r.start && r.next <= r.start+int64(r.n) {
		return copy(p, r.buf[off-r.start:]), nil
	}
	if r.row < bulkAfter || len(p) > bulkBytes {
		return r.File.ReadAt(p, off)
	}
	if r.buf == nil {
		r.buf = bulkBuffers.Get().(*[bulkBytes]byte)
	}
	n, err := r.File.ReadAt(r.buf[:], off)
	r.start, r.n = off, n
	if n >= len(p) {
		return copy(p, r.buf[:n]), nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return copy(p, r.buf[:n]), err
}

// Close implements File.
func (r *bulkReader) Close() error {
	if r.buf != nil {
		bulkBuffers.Put(r.buf)
		r.buf, r.n = nil, 0
	}
	return r.File.Close()
}

package spill

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/leat-io/leat/internal/vfs"
)

const (
	magic = "leatspl\x01" // the last byte is the format's version
	// blockHead is the length of a block and its checksum.
	blockHead = 8
	// writeBytes is how much is handed to the file system at once.
	writeBytes = 256 << 10
	// syncBytes is after how much a file that is to be durable is brought to the disk ahead of its sync.
	syncBytes = 8 << 20
)

var (
	table = crc32.MakeTable(crc32.Castagnoli)
	le    = binary.LittleEndian
)

var (
	// ErrDamaged says that a file is not what was written.
	ErrDamaged = errors.New("a file is damaged")
	errLost    = errors.New("it was stopped while it waited for room on a full disk")
)

// Writer writes one file. Its first error stays.
type Writer struct {
	folder  *Folder
	f       vfs.File
	file    File
	durable bool
	synced  int64
	buf     []byte
	err     error
}

// Create begins a file; durable: it is to be there after a crash.
func (f *Folder) Create(durable bool) (*Writer, error) {
	w := &Writer{folder: f, durable: durable}
	w.file.Number = f.next.Add(1)
	var err error
	if w.f, err = f.fs.Create(f.path(w.file.Number), vfs.Unspecified); err != nil {
		return nil, failed("make a file", err)
	}
	w.buf = append(make([]byte, 0, 8<<10), magic...)
	w.file.Bytes = int64(len(magic))
	return w, nil
}

// Append adds a block, which is copied.
func (w *Writer) Append(block []byte) error {
	if w.err != nil {
		return w.err
	}
	if uint64(len(block)) > 1<<32-1 {
		w.err = fmt.Errorf("%w: a block of %d bytes is too long", ErrFiles, len(block))
		return w.err
	}
	at := len(w.buf)
	w.buf = le.AppendUint32(w.buf, uint32(len(block)))
	w.buf = le.AppendUint32(w.buf, crc32.Checksum(block, table))
	w.file.Sum = crc32.Update(w.file.Sum, table, w.buf[at:])
	w.file.Bytes += int64(blockHead + len(block))
	for len(w.buf)+len(block) > writeBytes && w.err == nil {
		n := max(writeBytes-len(w.buf), 0)
		w.buf = append(w.buf, block[:n]...)
		block = block[n:]
		w.flush()
	}
	if w.err == nil {
		w.buf = append(w.buf, block...)
	}
	return w.err
}

// flush hands the buffer to the file system, which may scribble over it.
func (w *Writer) flush() {
	if len(w.buf) == 0 || w.err != nil {
		return
	}
	if _, err := w.f.Write(w.buf); err != nil {
		w.err = failed("write", err)
		return
	}
	w.folder.written.Add(int64(len(w.buf)))
	w.synced += int64(len(w.buf))
	w.buf = w.buf[:0]
	if w.durable && w.synced >= syncBytes {
		if _, err := w.f.SyncTo(w.file.Bytes); err != nil {
			w.err = failed("sync a file", err)
		}
		w.synced = 0
	}
}

// Bytes is the file's length so far.
func (w *Writer) Bytes() int64 { return w.file.Bytes }

// Close ends the file and names it. After an error the file is gone.
func (w *Writer) Close() (File, error) {
	w.flush()
	if w.err == nil && w.durable {
		if err := w.f.Sync(); err != nil {
			w.err = failed("sync a file", err)
		}
	}
	if err := w.f.Close(); err != nil && w.err == nil {
		w.err = failed("close a file", err)
	}
	w.f, w.buf = nil, nil
	if w.err == nil && w.durable {
		if err := vfs.SyncDir(w.folder.fs, w.folder.dir); err != nil {
			w.err = failed("sync the folder", err)
		}
	}
	if w.err == nil && w.folder.lost != nil && w.folder.lost() {
		w.err = failed("write", errLost)
	}
	if w.err != nil {
		return File{}, errors.Join(w.err, w.folder.Remove(w.file.Number))
	}
	return w.file, nil
}

// Discard gives the file up.
func (w *Writer) Discard() {
	w.close()
	_ = w.folder.Remove(w.file.Number) // if it stays, the next start removes it
}

func (w *Writer) close() {
	if w.f != nil {
		_ = w.f.Close()
		w.f, w.buf = nil, nil
	}
}

// Reader reads the blocks of a file in order.
type Reader struct {
	f     vfs.File
	in    *bufio.Reader
	file  File
	left  int64
	sum   uint32
	block []byte
}

// Open begins to read a file, through a buffer of the given size.
func (f *Folder) Open(file File, buffer int) (*Reader, error) {
	in, err := f.fs.Open(f.path(file.Number), vfs.SequentialReads)
	if err != nil {
		return nil, failed("open a file", err)
	}
	r := &Reader{f: in, in: bufio.NewReaderSize(in, buffer), file: file, left: file.Bytes - int64(len(magic))}
	var head [len(magic)]byte
	st, err := in.Stat()
	switch {
	case err != nil:
		err = failed("read a file", err)
	case st.Size() != file.Bytes:
		err = r.damaged(fmt.Sprintf("it has %d bytes, not %d", st.Size(), file.Bytes))
	default:
		if _, err = io.ReadFull(r.in, head[:]); err != nil {
			err = failed("read a file", err)
		} else if string(head[:]) != magic {
			err = r.damaged(fmt.Sprintf("it begins with %q: it is of another version, or no such file", head[:]))
		}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// Next is the next block, valid until the next call; io.EOF behind the last one.
func (r *Reader) Next() ([]byte, error) {
	if r.left == 0 {
		if r.sum != r.file.Sum {
			return nil, r.damaged("it is not the file that was named")
		}
		return nil, io.EOF
	}
	var head [blockHead]byte
	if r.left < blockHead {
		return nil, r.damaged("a block is cut off")
	}
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return nil, failed("read a file", err)
	}
	n := int64(le.Uint32(head[:]))
	if r.left -= blockHead; n > r.left {
		return nil, r.damaged("a block is longer than the file")
	}
	if int64(cap(r.block)) < n {
		r.block = make([]byte, n)
	}
	r.block = r.block[:n]
	if _, err := io.ReadFull(r.in, r.block); err != nil {
		return nil, failed("read a file", err)
	}
	r.left -= n
	if crc32.Checksum(r.block, table) != le.Uint32(head[4:]) {
		return nil, r.damaged(fmt.Sprintf("the checksum of the block that ends at byte %d is wrong", r.file.Bytes-r.left))
	}
	r.sum = crc32.Update(r.sum, table, head[:])
	return r.block, nil
}

func (r *Reader) damaged(how string) error {
	return fmt.Errorf("%w: %w: %016x%s: %s", ErrFiles, ErrDamaged, r.file.Number, suffix, how)
}

// Close gives the reader back.
func (r *Reader) Close() { r.close() }

func (r *Reader) close() {
	if r.f != nil {
		_ = r.f.Close()
		r.f = nil
	}
}

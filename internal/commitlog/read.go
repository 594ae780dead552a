package commitlog

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// Chunk is what Read found: whole batches, as a range of a file. Release it when it has been sent. The zero Chunk is empty.
type Chunk struct {
	First int64 // base offset of the first batch; it may be below the offset that was asked for
	Next  int64 // offset after the last batch

	file   *handle
	offset int64
	length int
}

// Len is the number of bytes.
func (c *Chunk) Len() int { return c.length }

// FileRange returns descriptor, offset and length for sendfile; ok is false where no descriptor stands behind the file.
func (c *Chunk) FileRange() (fd uintptr, offset int64, length int, ok bool) {
	if c.file == nil {
		return 0, 0, 0, false
	}
	fd = c.file.Fd()
	return fd, c.offset, c.length, fd != vfs.InvalidFd
}

// AppendTo appends the chunk's bytes to dst.
func (c *Chunk) AppendTo(dst []byte) ([]byte, error) {
	if c.length == 0 {
		return dst, nil
	}
	from := len(dst)
	if cap(dst)-from < c.length {
		dst = append(make([]byte, 0, from+c.length), dst...)
	}
	dst = dst[:from+c.length]
	if n, err := c.file.ReadAt(dst[from:], c.offset); err != nil && !(errors.Is(err, io.EOF) && n == c.length) {
		return dst[:from], fmt.Errorf("read %s: %w", c.file.path, err)
	}
	return dst, nil
}

var copyPool = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// WriteTo writes the chunk's bytes.
func (c *Chunk) WriteTo(w io.Writer) (int64, error) {
	buf := copyPool.Get().(*[]byte)
	defer copyPool.Put(buf)
	var sent int64
	for sent < int64(c.length) {
		b := (*buf)[:min(int64(len(*buf)), int64(c.length)-sent)]
		if n, err := c.file.ReadAt(b, c.offset+sent); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
			return sent, fmt.Errorf("read %s: %w", c.file.path, err)
		}
		n, err := w.Write(b)
		sent += int64(n)
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// Release ends the use of the file; the chunk must not be used after it.
func (c *Chunk) Release() {
	if c.file != nil {
		c.file.release()
	}
	*c = Chunk{}
}

// Read returns whole batches, from the one that has offset on, up to maxBytes and with every record below limit. With atLeastOne the first
// batch is returned even if it is larger. An empty Chunk says that there is nothing from offset to its Next, and nothing at Next yet or within the limits.
//
// The lock is held only to find the segment; what waits for a disk waits without it.
func (l *Log) Read(offset int64, maxBytes int, limit int64, atLeastOne bool) (Chunk, error) {
	for at := offset; ; {
		l.mu.Lock()
		c, more, err := l.readable(offset, at, limit)
		if !more || err != nil {
			l.mu.Unlock()
			return c, err
		}
		end := l.end
		v, err := l.viewUnlocking(l.segmentAt(at))
		switch {
		case err != nil:
			return Chunk{}, l.readError(err)
		case v == nil:
			continue
		}
		c, found, err := l.readView(v, offset, maxBytes, min(limit, end), atLeastOne)
		if err == nil && found && c.length > 0 && c.First > offset && c.First >= v.holes {
			err = &CorruptError{File: v.file, Reason: fmt.Sprintf("the batch with offset %d is missing before it", offset)}
		}
		next := v.end
		current := l.finish(v, err)
		switch {
		case err == nil && found:
			return c, nil
		case err == nil:
			at = next // the segment's batches end before the offset
		case current:
			c.Release()
			return Chunk{}, l.readError(err)
		default: // it was removed or replaced while it was read
			c.Release()
		}
	}
}

// readable says whether there is more to read for an offset, of which nothing was found before at; if not, the chunk or the error is the answer. mu is
// held.
func (l *Log) readable(offset, at, limit int64) (c Chunk, more bool, err error) {
	if offset < l.start || offset > l.end {
		return Chunk{}, false, l.outOfRange(offset)
	}
	if offset == l.end || offset >= limit {
		return Chunk{First: offset, Next: offset}, false, nil
	}
	if err := l.ready(); err != nil {
		return Chunk{}, false, err
	}
	switch {
	case offset < l.start: // loading has found that retention removed more than the last checkpoint knew
		return Chunk{}, false, l.outOfRange(offset)
	case at < l.end:
		return Chunk{}, true, nil
	case offset < l.clean.holes:
		return Chunk{First: offset, Next: l.end}, false, nil
	}
	last := l.segments[len(l.segments)-1]
	return Chunk{}, false, l.readError(&CorruptError{File: last.logPath(), Offset: last.size, Reason: fmt.Sprintf("offset %d is in no batch, and the log ends at %d", offset, l.end)})
}

func (l *Log) outOfRange(offset int64) error {
	return fmt.Errorf("partition %s: %w: %d is not in [%d, %d]", l.name, ErrOffsetOutOfRange, offset, l.start, l.end)
}

// readView is view.read in its turn.
func (l *Log) readView(v *view, offset int64, maxBytes int, limit int64, atLeastOne bool) (Chunk, bool, error) {
	defer l.coldSlot(v, offset)()
	return v.read(offset, maxBytes, limit, atLeastOne)
}

// readError names the partition. What lies before damage that a read meets can still be read.
func (l *Log) readError(err error) error {
	return fmt.Errorf("read partition %s: %w", l.name, err)
}

// read reports found false if the segment's batches end before the offset. A chunk that is not empty takes the view's file with it.
func (v *view) read(offset int64, maxBytes int, limit int64, atLeastOne bool) (c Chunk, found bool, err error) {
	begin, end := int64(-1), int64(-1)
	var skipTo int64
	step := func(h *record.Header, pos int64) bool {
		if begin < 0 {
			begin, end = pos, pos
			c.First, c.Next = h.BaseOffset, offset
			if h.NextOffset() > limit {
				// What compaction has removed ahead of the batch is read.
				c.Next = max(offset, min(h.BaseOffset, limit))
				return false
			}
			if int64(h.Size()) > int64(maxBytes) && !atLeastOne {
				return false
			}
			end, c.Next = pos+int64(h.Size()), h.NextOffset()
			// Jump over what the index says is within both bounds.
			at := min(v.locatePos(pos+int64(maxBytes)), v.locate(limit-1))
			if at > end+scanBytes {
				skipTo = at
				return false
			}
			return true
		}
		if h.NextOffset() > limit || pos+int64(h.Size())-begin > int64(maxBytes) {
			return false
		}
		end, c.Next = pos+int64(h.Size()), h.NextOffset()
		return true
	}
	if err := v.walkFrom(offset, step); err != nil && begin < 0 {
		return c, false, err
	}
	if begin < 0 || end == begin {
		return c, begin >= 0, nil
	}
	if skipTo > end {
		// An index entry in the middle may be wrong: then the shorter chunk is right, too.
		at, next := end, c.Next
		_, serr := v.scan(skipTo, false, func(h *record.Header, pos int64) bool {
			if h.BaseOffset < next {
				return false
			}
			if pos == skipTo && h.BaseOffset <= limit {
				at, next = pos, h.BaseOffset // what lies before it fits, whether it does or not
			}
			if h.NextOffset() > limit || pos+int64(h.Size())-begin > int64(maxBytes) {
				return false
			}
			at, next = pos+int64(h.Size()), h.NextOffset()
			return true
		})
		if serr == nil || errors.Is(serr, ErrCorrupt) {
			end, c.Next = at, next
		}
	}
	if begin < v.verifiedFrom || end > v.verifiedTo {
		if end, err = v.verify(begin, end, &c); err != nil {
			return Chunk{}, false, err
		}
	}
	c.file, c.offset, c.length = v.f, begin, int(end-begin)
	v.f = nil
	return c, true, nil
}

// verify checks the checksums of begin..end, which nobody has since the process began, and remembers that. Damage behind the first batch
// shortens the chunk.
func (v *view) verify(begin, end int64, c *Chunk) (int64, error) {
	next := c.First
	at, err := scan(v.f, v.file, begin, c.First, v.holes, end, true, func(h *record.Header, pos int64) bool {
		next = h.NextOffset()
		return true
	})
	if at > begin {
		v.noteVerified(begin, at)
		v.learned, v.checked = true, true
	}
	if err != nil && at == begin {
		return begin, err
	}
	if at < end {
		c.Next = next
	}
	return at, nil
}

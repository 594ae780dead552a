package commitlog

import (
	"errors"
	"fmt"
	"io"
	"sort"
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

// segmentOf returns the segment that has the offset, or the one before the hole that it is in; mu is held.
func (l *Log) segmentOf(offset int64) *segment {
	i := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].base > offset })
	return l.segments[max(0, i-1)]
}

// walkFrom walks the segment's batches from the first whose last offset is >= offset; mu is held. An index that leads astray is
// built again.
func (l *Log) walkFrom(s *segment, offset int64, fn func(h *record.Header, pos int64) bool) error {
	for again := false; ; again = true {
		if err := l.ensureIndex(s); err != nil {
			return err
		}
		f, err := l.open(s)
		if err != nil {
			return err
		}
		from := s.locate(offset)
		astray, met := false, false
		_, err = scan(f, s.logPath(), from, s.expect(from), l.clean.holes, s.size, false, func(h *record.Header, pos int64) bool {
			if pos == from && from > 0 && h.BaseOffset > offset && !again {
				astray = true
				return false
			}
			if h.LastOffset() < offset {
				return true
			}
			met = true
			return fn(h, pos)
		})
		f.release()
		if from > 0 && !again && (astray || errors.Is(err, ErrCorrupt) && !met) {
			if err := l.rebuildIndex(s); err != nil {
				return err
			}
			continue
		}
		return err
	}
}

// rebuildIndex builds the segment's indexes from its batches.
func (l *Log) rebuildIndex(s *segment) error {
	l.m.o.Logger.Warn("an index is damaged and is built again", "file", s.indexPath())
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.release()
	s.forgetIndex()
	if _, err := scan(f, s.logPath(), 0, s.base, l.clean.holes, s.size, false, func(h *record.Header, pos int64) bool {
		s.note(h, pos, l.config.IndexIntervalBytes)
		return true
	}); err != nil {
		s.forgetIndex()
		return err
	}
	s.indexed = true
	return nil
}

// Read returns whole batches, from the one that has offset on, up to maxBytes and with every record below limit. With atLeastOne the first
// batch is returned even if it is larger. An empty Chunk says that there is nothing from offset to its Next, and nothing at Next yet or within the limits.
func (l *Log) Read(offset int64, maxBytes int, limit int64, atLeastOne bool) (Chunk, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset < l.start || offset > l.end {
		return Chunk{}, fmt.Errorf("partition %s: %w: %d is not in [%d, %d]", l.name, ErrOffsetOutOfRange, offset, l.start, l.end)
	}
	if offset == l.end || offset >= limit {
		return Chunk{First: offset, Next: offset}, nil
	}
	if err := l.ready(); err != nil {
		return Chunk{}, err
	}
	if offset < l.start { // loading has found that retention removed more than the last checkpoint knew
		return Chunk{}, fmt.Errorf("partition %s: %w: %d is not in [%d, %d]", l.name, ErrOffsetOutOfRange, offset, l.start, l.end)
	}
	i := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].base > offset })
	for i = max(0, i-1); i < len(l.segments); i++ {
		c, found, err := l.readSegment(l.segments[i], offset, maxBytes, min(limit, l.end), atLeastOne)
		if err != nil {
			return Chunk{}, l.isolateRead(err)
		}
		if found && c.length > 0 && c.First > offset && c.First >= l.clean.holes {
			c.Release()
			return Chunk{}, l.isolateRead(&CorruptError{File: l.segments[i].logPath(), Reason: fmt.Sprintf("the batch with offset %d is missing before it", offset)})
		}
		if found {
			return c, nil
		}
		// The segment ends before the offset.
	}
	if offset < l.clean.holes {
		return Chunk{First: offset, Next: l.end}, nil
	}
	last := l.segments[len(l.segments)-1]
	return Chunk{}, l.isolateRead(&CorruptError{File: last.logPath(), Offset: last.size, Reason: fmt.Sprintf("offset %d is in no batch, and the log ends at %d", offset, l.end)})
}

// isolateRead reports damage; what lies before it can still be read.
func (l *Log) isolateRead(err error) error {
	if errors.Is(err, ErrCorrupt) {
		l.m.o.Logger.Error("a partition is damaged", "partition", l.name, "error", err)
	}
	return fmt.Errorf("read partition %s: %w", l.name, err)
}

// readSegment reports found false if the segment ends before the offset.
func (l *Log) readSegment(s *segment, offset int64, maxBytes int, limit int64, atLeastOne bool) (c Chunk, found bool, err error) {
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
			at := min(s.locatePos(pos+int64(maxBytes)), s.locate(limit-1))
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
	if err := l.walkFrom(s, offset, step); err != nil && begin < 0 {
		return c, false, err
	}
	if begin < 0 || end == begin {
		return c, begin >= 0, nil
	}
	f, err := l.open(s)
	if err != nil {
		return Chunk{}, false, err
	}
	if skipTo > end {
		// An index entry in the middle may be wrong: then the shorter chunk is right, too.
		at, next := end, c.Next
		_, serr := scan(f, s.logPath(), skipTo, s.expect(skipTo), l.clean.holes, s.size, false, func(h *record.Header, pos int64) bool {
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
	if begin < s.verifiedFrom || end > s.verifiedTo {
		if end, err = l.verify(s, f, begin, end, &c); err != nil {
			f.release()
			return Chunk{}, false, err
		}
	}
	c.file, c.offset, c.length = f, begin, int(end-begin)
	return c, true, nil
}

// verify checks the checksums of begin..end, which nobody has since the process began, and remembers that. Damage behind the first batch
// shortens the chunk.
func (l *Log) verify(s *segment, f *handle, begin, end int64, c *Chunk) (int64, error) {
	next := c.First
	at, err := scan(f, s.logPath(), begin, c.First, l.clean.holes, end, true, func(h *record.Header, pos int64) bool {
		next = h.NextOffset()
		return true
	})
	if at > begin {
		if begin <= s.verifiedTo && begin >= s.verifiedFrom || at >= s.verifiedFrom && at <= s.verifiedTo {
			s.verifiedFrom, s.verifiedTo = min(s.verifiedFrom, begin), max(s.verifiedTo, at)
		} else {
			s.verifiedFrom, s.verifiedTo = begin, at
		}
	}
	if err != nil && at == begin {
		return begin, err
	}
	if at < end {
		c.Next = next
	}
	return at, nil
}

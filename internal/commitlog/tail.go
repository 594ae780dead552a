package commitlog

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"sync"
	"time"

	"github.com/leat-io/leat/internal/vfs"
)

// Small batches are collected in memory, and go to their file together: a system call for each of them would be the largest part of
// what a small record costs. It takes nothing away from what is promised, for the journal has every batch until Sync, which writes
// tails first; and nobody can tell, for whoever looks at the bytes of a segment opens it with open, which writes its tail, or, where there is
// no room for it, lays it over the file.

const (
	// tailBytes bounds one tail; what is at least half as large goes to the file at once.
	tailBytes = 64 << 10
	// allTailBytes bounds those of all logs; beyond it batches go to their files at once. From a quarter of it on tails are written in the
	// background: a while later, for a burst should not have to share the machine with that, or at once when three quarters are used.
	allTailBytes = 32 << 20
	flushDelay   = 200 * time.Millisecond

	minTail     = 1 << 10
	minTailBits = 12
	maxTailBits = 16
)

// tailPool holds buffers of tails by the logarithm of their size. Smaller ones are no larger than what they begin with needs: ten thousand logs with a
// little each fit, and trouble the collector less.
var tailPool [maxTailBits + 1]sync.Pool

func takeTail(n int) []byte {
	b := bits.Len(uint(n - 1))
	if b < minTailBits {
		return make([]byte, 0, max(n, minTail))
	}
	if p, ok := tailPool[b].Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return make([]byte, 0, 1<<b)
}

func giveTail(t []byte) {
	if b := bits.Len(uint(cap(t))) - 1; b >= minTailBits && cap(t) == 1<<b {
		t = t[:0]
		tailPool[b].Put(&t)
	}
}

// write puts a batch behind the segment's size, which it leaves; mu is held. After an error nothing has changed.
func (l *Log) write(s *segment, batch []byte) error {
	need := len(s.tail) + len(batch)
	if len(batch) >= tailBytes/2 || need > tailBytes || l.m.buffered.Load() > allTailBytes {
		if err := l.flush(s); err != nil {
			return err
		}
		if need = len(batch); need >= tailBytes/2 || l.m.buffered.Load() > allTailBytes {
			f, err := l.create(s)
			if err != nil {
				return err
			}
			defer f.release()
			_, err = f.WriteAt(batch, s.size)
			return err
		}
	}
	if need > cap(s.tail) {
		t := append(takeTail(max(need, min(2*cap(s.tail), tailBytes))), s.tail...)
		all := l.m.buffered.Add(int64(cap(t) - cap(s.tail)))
		giveTail(s.tail)
		s.tail = t
		if all > allTailBytes/4 {
			l.m.flushTails(all > allTailBytes/4*3)
		}
	}
	s.tail = append(s.tail, batch...)
	return nil
}

// flush writes the segment's tail to its file; mu is held.
func (l *Log) flush(s *segment) error {
	if len(s.tail) == 0 {
		return nil
	}
	f, err := l.create(s)
	if err != nil {
		return err
	}
	defer f.release()
	if _, err := f.WriteAt(s.tail, s.size-int64(len(s.tail))); err != nil {
		return err
	}
	l.dropTail(s)
	return nil
}

// dropTail forgets the segment's tail.
func (l *Log) dropTail(s *segment) {
	l.m.buffered.Add(-int64(cap(s.tail)))
	giveTail(s.tail)
	s.tail = nil
}

// open returns the segment's file with all its bytes in it, to read; mu is held.
func (l *Log) open(s *segment) (*handle, error) {
	if err := l.flush(s); vfs.NoSpace(err) {
		return l.overlay(s)
	} else if err != nil {
		return nil, err
	}
	if err := l.makeDir(); err != nil {
		return nil, err
	}
	return l.m.files.acquire(s.logPath())
}

// overlay returns the segment's file with its tail laid over it.
func (l *Log) overlay(s *segment) (*handle, error) {
	o := &overlay{from: s.size - int64(len(s.tail)), tail: bytes.Clone(s.tail)}
	under, err := l.create(s)
	if err == nil {
		o.File = under.File
	} else if !vfs.NoSpace(err) || o.from > 0 {
		return nil, err
	}
	return &handle{File: o, path: s.logPath(), under: under}, nil
}

// overlay is a file to read whose end is in memory.
type overlay struct {
	vfs.File // nil if nothing is in the file
	from     int64
	tail     []byte
}

// ReadAt implements io.ReaderAt.
func (o *overlay) ReadAt(p []byte, off int64) (n int, err error) {
	if off < o.from {
		n, err = o.File.ReadAt(p[:min(int64(len(p)), o.from-off)], off)
		if n == len(p) || err != nil && !errors.Is(err, io.EOF) || off+int64(n) < o.from {
			return n, err
		}
		off += int64(n)
	}
	if at := off - o.from; at < int64(len(o.tail)) {
		n += copy(p[n:], o.tail[at:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Fd says that no descriptor has all the bytes.
func (o *overlay) Fd() uintptr { return vfs.InvalidFd }

// flushTails writes all tails there are, in the background.
func (m *Manager) flushTails(urgent bool) {
	if urgent {
		select {
		case m.urgent <- struct{}{}:
		default:
		}
	}
	if !m.flushing.CompareAndSwap(false, true) {
		return
	}
	m.flushers.Go(func() {
		timer := m.o.Clock.NewTimer(flushDelay)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-m.urgent:
		case <-m.closing:
			return
		}
		m.mu.Lock()
		logs := make([]*Log, 0, len(m.dirty))
		for l := range m.dirty {
			logs = append(logs, l)
		}
		m.mu.Unlock()
		defer m.flushing.Store(false)
		for _, l := range logs {
			l.mu.Lock()
			var err error
			if n := len(l.segments); n > 0 && !l.closed {
				err = l.flush(l.segments[n-1])
			}
			l.mu.Unlock()
			if err != nil { // whoever needs the bytes in the file meets it again, and reports it
				return
			}
		}
	})
}

package commitlog

import (
	"errors"
	"log/slog"
	"math"
	"sort"
	"sync"

	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// view is a segment as it was at one instant, with its file open: all that is needed to read it without the log's lock, so that a slow disk holds up
// nobody but the reader. What lies within its size never changes, and its file stays open when the segment is removed, or replaced by
// compaction, meanwhile: bytes that a view gives are always right. What it learns of the segment on the way, finish gives back.
type view struct {
	segment  // a copy
	of       *segment
	f        *handle
	file     string // its path
	end      int64  // offset after the segment's last
	behind   int64  // bytes of the log in later segments, as far as it matters
	holes    int64  // offsets below may be missing
	interval int
	log      *slog.Logger
	fs       vfs.FS

	learned bool // something that the segment does not know
	rebuilt bool // the segment's index was damaged
	checked bool // checksums were verified
}

const (
	// tailWindow is how many of a log's last bytes are taken for what was written just now, and is still in memory.
	tailWindow = 16 << 20
	// behindMost bounds the segments that are looked at for it.
	behindMost = 64
)

var viewPool = sync.Pool{New: func() any { return new(view) }}

// segmentAt is the index of the segment that has the offset, or of the one before the hole that it is in; mu is held, and there is a segment.
func (l *Log) segmentAt(offset int64) int {
	return max(0, sort.Search(len(l.segments), func(i int) bool { return l.segments[i].base > offset })-1)
}

// view returns a view of the segment at i; mu is held. It is to be released.
func (l *Log) view(i int) (*view, error) {
	s := l.segments[i]
	f, err := l.open(s)
	if err != nil {
		return nil, err
	}
	v := viewPool.Get().(*view)
	*v = view{
		segment: *s, of: s, f: f, file: f.path, end: l.segmentEnd(i), holes: l.clean.holes, interval: l.config.IndexIntervalBytes, log: l.m.o.Logger, fs: l.m.o.FS,
	}
	v.tail = nil // it is in the file, or laid over it
	for k := len(l.segments) - 1; k > i && v.behind <= tailWindow && len(l.segments)-k <= behindMost; k-- {
		v.behind += l.segments[k].size
	}
	return v, nil
}

// viewUnlocking is view, and gives mu up. A sealed segment's file is opened without the lock; nil says that the segment has changed meanwhile, and is to be
// looked up again.
func (l *Log) viewUnlocking(i int) (*view, error) {
	defer l.mu.Unlock()
	s := l.segments[i]
	if i == len(l.segments)-1 || l.m.files.has(s.logPath()) {
		return l.view(i)
	}
	path, version := s.logPath(), s.version
	l.mu.Unlock()
	f, err := l.m.o.FS.Open(path)
	l.mu.Lock()
	if l.closed || s.version != version {
		if err == nil {
			_ = f.Close()
		}
		if l.closed {
			return nil, ErrClosed
		}
		return nil, nil
	}
	if err != nil && !vfs.NotExist(err) {
		return nil, err
	}
	if err == nil {
		defer l.m.files.adopt(path, f).release() // held until view has it, too
	}
	return l.view(l.segmentAt(s.base))
}

// next returns a view of the segment that has the offset, or of the first behind it that has one, for who goes through a log; nil at the end.
func (l *Log) next(offset int64) (*view, error) {
	for {
		l.mu.Lock()
		if err := l.ready(); err != nil {
			l.mu.Unlock()
			return nil, err
		}
		if offset >= l.end || len(l.segments) == 0 {
			l.mu.Unlock()
			return nil, nil
		}
		if v, err := l.viewUnlocking(l.segmentAt(offset)); v != nil || err != nil {
			return v, err
		}
	}
}

// release ends the use of a view.
func (v *view) release() {
	if v.f != nil {
		v.f.release()
	}
	*v = view{}
	viewPool.Put(v)
}

// finish ends the use of a view and gives back what it has learned. current says whether the segment is still what it was: if not, an error says
// nothing about the log. mu is not held.
func (l *Log) finish(v *view, err error) (current bool) {
	defer v.release()
	if err == nil && !v.learned {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.learn(v)
}

// learn takes over what the view has found out about its segment, if that is still what it was; mu is held.
func (l *Log) learn(v *view) (current bool) {
	s := v.of
	if l.closed || s.version != v.version {
		return false
	}
	switch {
	case !s.indexed && v.indexed && s.size == v.size:
		s.index, s.times, s.indexed, s.sinceIx, s.saved, s.savedTs, s.largest = v.index, v.times, true, v.sinceIx, v.saved, v.savedTs, v.largest
	case v.rebuilt:
		s.takeIndex(v)
	default:
		s.largest = max(s.largest, v.largest)
	}
	if v.checked {
		s.noteVerified(v.verifiedFrom, v.verifiedTo)
	}
	return true
}

// takeIndex takes the index of the view, which was built again, with the entries behind it that came meanwhile.
func (s *segment) takeIndex(v *view) {
	if !v.indexed {
		if s.size == v.size {
			s.forgetIndex()
		}
		return
	}
	i := sort.Search(len(s.index), func(i int) bool { return int64(s.index[i].pos) >= v.size })
	index := append(v.index[:len(v.index):len(v.index)], s.index[i:]...)
	times := v.times[:len(v.times):len(v.times)]
	for _, t := range s.times {
		if n := len(times); s.base+int64(t.rel) >= v.end && (n == 0 || t.ts > times[n-1].ts) {
			times = append(times, t)
		}
	}
	s.index, s.times, s.indexed, s.saved, s.savedTs, s.largest = index, times, true, 0, 0, max(s.largest, v.largest)
}

// noteVerified adds a range of verified bytes to the one that is known, if they touch, or keeps the new one.
func (s *segment) noteVerified(from, to int64) {
	if from <= s.verifiedTo && to >= s.verifiedFrom {
		s.verifiedFrom, s.verifiedTo = min(s.verifiedFrom, from), max(s.verifiedTo, to)
	} else {
		s.verifiedFrom, s.verifiedTo = from, to
	}
}

// cold says whether what is at the offset is more likely on the disk than in memory.
func (v *view) cold(offset int64) bool {
	return v.behind > tailWindow || !v.indexed || v.behind+v.size-v.locate(offset) > tailWindow
}

// coldSlot waits until few enough others read what is not in memory, if the view is to do that: those who catch up must not take the processors
// and the disk from those who are up to date. The result ends it.
func (l *Log) coldSlot(v *view, offset int64) func() {
	if !v.cold(offset) {
		return func() {}
	}
	l.m.cold <- struct{}{}
	return l.m.warm
}

// ensureIndex has the indexes in memory: from their files if they are sane, else from the batches.
func (v *view) ensureIndex() error {
	if v.indexed {
		return nil
	}
	v.forgetIndex()
	v.learned = true
	if !v.readIndexFiles(v.fs, v.f) {
		v.forgetIndex()
	}
	return v.completeIndex()
}

// rebuildIndex builds the indexes from the batches.
func (v *view) rebuildIndex() error {
	v.log.Warn("an index is damaged and is built again", "file", v.indexPath())
	v.forgetIndex()
	v.learned, v.rebuilt = true, true
	return v.completeIndex()
}

// completeIndex goes on with the indexes behind the last entry there is, to the segment's end.
func (v *view) completeIndex() error {
	from, last := int64(0), len(v.index)-1
	if last >= 0 {
		from = int64(v.index[last].pos)
	}
	if _, err := v.scan(from, false, func(h *record.Header, pos int64) bool {
		if last >= 0 && pos == from {
			v.sinceIx = int64(h.Size())
			v.largest = max(v.largest, h.MaxTimestamp)
			return true
		}
		v.note(h, pos, v.interval)
		return true
	}); err != nil {
		v.forgetIndex()
		return err
	}
	v.indexed = true
	return nil
}

// scan walks the batches from pos on.
func (v *view) scan(pos int64, verify bool, fn func(h *record.Header, pos int64) bool) (next int64, err error) {
	return scan(v.f, v.file, pos, v.expect(pos), v.holes, v.size, verify, fn)
}

// walkFrom walks the batches from the first whose last offset is >= offset. An index that leads astray is built again.
func (v *view) walkFrom(offset int64, fn func(h *record.Header, pos int64) bool) error {
	for again := false; ; again = true {
		if err := v.ensureIndex(); err != nil {
			return err
		}
		from := v.locate(offset)
		astray, met := false, false
		_, err := v.scan(from, false, func(h *record.Header, pos int64) bool {
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
		if from > 0 && !again && (astray || errors.Is(err, ErrCorrupt) && !met) {
			if err := v.rebuildIndex(); err != nil {
				return err
			}
			continue
		}
		return err
	}
}

// within has fn look at a segment with mu held, for who decides on what it finds.
func (l *Log) within(s *segment, fn func(v *view) error) error {
	v, err := l.view(l.segmentAt(s.base))
	if err != nil {
		return err
	}
	defer v.release()
	err = fn(v)
	l.learn(v)
	return err
}

// ensureIndex has the segment's indexes in memory; mu is held.
func (l *Log) ensureIndex(s *segment) error {
	if s.indexed {
		return nil
	}
	return l.within(s, (*view).ensureIndex)
}

// walkFrom is view.walkFrom with mu held.
func (l *Log) walkFrom(s *segment, offset int64, fn func(h *record.Header, pos int64) bool) error {
	return l.within(s, func(v *view) error { return v.walkFrom(offset, fn) })
}

// largestTime is the largest timestamp of the batches, and not of the index, which is a hint; math.MinInt64: there are none.
func (v *view) largestTime() (int64, error) {
	largest := int64(math.MinInt64)
	_, err := v.scan(0, false, func(h *record.Header, pos int64) bool {
		largest = max(largest, h.MaxTimestamp)
		return true
	})
	return largest, err
}

// firstTime is the largest timestamp of the first batch; ok is false if there is none.
func (v *view) firstTime() (ms int64, ok bool, err error) {
	_, err = v.scan(0, false, func(h *record.Header, _ int64) bool {
		ms, ok = h.MaxTimestamp, true
		return false
	})
	return ms, ok, err
}

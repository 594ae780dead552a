package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// OffsetForTime returns the first record with a timestamp at or after ms (milliseconds) and an offset below limit; offset -1 if
// there is none.
func (l *Log) OffsetForTime(ms, limit int64) (offset, timestamp int64, err error) {
	return l.findRecord(limit, func(h *record.Header) bool { return h.MaxTimestamp >= ms }, func(s *segment) (int64, bool) {
		if s.largest < ms {
			return 0, false
		}
		// Where the largest so far was still smaller, the record cannot be.
		i := sort.Search(len(s.times), func(i int) bool { return s.times[i].ts >= ms })
		if i == 0 {
			return s.base, true
		}
		return s.base + int64(s.times[i-1].rel), true
	}, func(r *record.Record) bool { return r.Timestamp >= ms })
}

// MaxTimestamp returns the first of the records below limit that have the largest timestamp; offset -1 if there are none.
func (l *Log) MaxTimestamp(limit int64) (offset, timestamp int64, err error) {
	found, largest := false, int64(0)
	if err := l.walk(limit, func(v *view, from int64) error {
		return v.walkFrom(from, func(h *record.Header, pos int64) bool {
			if h.NextOffset() > limit {
				return false
			}
			if h.Control() || h.Count == 0 {
				return true
			}
			if !found || h.MaxTimestamp > largest {
				found, largest = true, h.MaxTimestamp
			}
			return true
		})
	}); err != nil {
		return -1, -1, err
	}
	if !found {
		return -1, -1, nil
	}
	return l.OffsetForTime(largest, limit)
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// walk calls fn with a view of each segment that has offsets between the start and limit, and where in it to begin, without the lock. A segment that is
// removed or replaced while fn looks at it is looked at again if that failed.
func (l *Log) walk(limit int64, fn func(v *view, from int64) error) error {
	for at := l.StartOffset(); at < limit; {
		v, err := l.next(at)
		if v == nil || err != nil {
			return err
		}
		slot := l.coldSlot(v, at)
		err = fn(v, at)
		slot()
		next := v.end
		current := l.finish(v, err)
		switch {
		case errors.Is(err, errEnough):
			return nil
		case err == nil:
			at = next
		case current:
			return l.readError(err)
		default:
			at = max(at, l.StartOffset())
		}
	}
	return nil
}

// batchPool has buffers for batches that are looked into.
var batchPool = sync.Pool{New: func() any { return new([]byte) }}

// findRecord returns the first record from the start on, below limit, that is wanted, in a batch that may have one.
func (l *Log) findRecord(limit int64, batch func(*record.Header) bool, begin func(*segment) (int64, bool), wanted func(*record.Record) bool) (int64, int64, error) {
	limit = min(limit, l.EndOffset())
	var reader record.Reader
	defer reader.Close()
	buf := batchPool.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= 1<<20 {
			batchPool.Put(buf)
		}
	}()
	offset, timestamp := int64(-1), int64(-1)
	err := l.walk(limit, func(v *view, start int64) error {
		if err := v.ensureIndex(); err != nil {
			return err
		}
		from, ok := begin(&v.segment)
		if !ok {
			return nil
		}
		var inner error
		err := v.walkFrom(max(from, start), func(h *record.Header, pos int64) bool {
			if h.BaseOffset >= limit {
				return false
			}
			if h.Control() || h.Count == 0 || !batch(h) {
				return true
			}
			*buf = slices.Grow((*buf)[:0], h.Size())[:h.Size()]
			if _, inner = v.f.ReadAt(*buf, pos); inner != nil {
				return false
			}
			if _, err := record.Validate(*buf); err != nil {
				inner = &CorruptError{File: v.file, Offset: pos, Reason: err.Error()}
				return false
			}
			if inner = reader.Reset(*buf); inner != nil {
				return false
			}
			for reader.Next() {
				r := reader.Record()
				if r.Offset >= start && r.Offset < limit && wanted(r) {
					offset, timestamp = r.Offset, r.Timestamp
					return false
				}
			}
			inner = reader.Err()
			return inner == nil
		})
		switch {
		case err != nil:
			return err
		case inner != nil:
			return inner
		case offset >= 0:
			return errEnough
		}
		return nil
	})
	return offset, timestamp, err
}

// loadProducers rebuilds the state of the producers from the newest good snapshot at or before the end, and the batches after it; mu is held.
func (l *Log) loadProducers() error {
	if l.producersLoaded {
		return nil
	}
	var names []string
	if !l.unmade {
		var err error
		if names, err = l.m.o.FS.List(l.dir); err != nil {
			return fmt.Errorf("load producers of %s: %w", l.name, err)
		}
	}
	from := l.start
	l.undecided = nil
	now := l.m.o.Clock.Now().UnixMilli()
	for _, at := range snapshotOffsets(names) {
		if at > l.end {
			continue
		}
		b, err := vfs.ReadFile(l.m.o.FS, l.snapshotPath(at), 1<<30)
		if err != nil {
			continue
		}
		if open, ok := l.producers.load(b, now); ok {
			from, l.undecided = max(from, at), open
			break
		}
	}
	for i, s := range l.segments {
		if s.size == 0 || (i+1 < len(l.segments) && l.segments[i+1].base <= from) || from >= l.end {
			continue
		}
		err := l.walkFrom(s, max(from, s.base), func(h *record.Header, pos int64) bool {
			l.producers.Update(h, now)
			if h.ProducerID >= 0 {
				l.follow(h)
			}
			return true
		})
		if err != nil {
			return l.isolate(err)
		}
	}
	l.producersLoaded = true
	return nil
}

// Producers is the state of the idempotent producers of the partition.
func (l *Log) Producers() (*Producers, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return nil, err
	}
	if err := l.loadProducers(); err != nil {
		return nil, err
	}
	return &l.producers, nil
}

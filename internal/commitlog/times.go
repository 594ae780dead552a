package commitlog

import (
	"fmt"
	"sort"

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
	l.mu.Lock()
	if err := l.ready(); err != nil {
		l.mu.Unlock()
		return -1, -1, err
	}
	found, largest := false, int64(0)
	for _, s := range l.segments {
		if s.base >= limit || s.size == 0 {
			continue
		}
		err := l.walkFrom(s, max(l.start, s.base), func(h *record.Header, pos int64) bool {
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
		if err != nil {
			l.mu.Unlock()
			return -1, -1, l.isolateRead(err)
		}
	}
	l.mu.Unlock()
	if !found {
		return -1, -1, nil
	}
	return l.OffsetForTime(largest, limit)
}

// findRecord returns the first record from the start on, below limit, that is wanted, in a batch that may have one.
func (l *Log) findRecord(limit int64, batch func(*record.Header) bool, begin func(*segment) (int64, bool), wanted func(*record.Record) bool) (int64, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return -1, -1, err
	}
	limit = min(limit, l.end)
	var reader record.Reader
	defer reader.Close()
	for i, s := range l.segments {
		if s.base >= limit || s.size == 0 || (i+1 < len(l.segments) && l.segments[i+1].base <= l.start) {
			continue
		}
		if err := l.ensureIndex(s); err != nil {
			return -1, -1, l.isolateRead(err)
		}
		from, ok := begin(s)
		if !ok {
			continue
		}
		f, err := l.open(s)
		if err != nil {
			return -1, -1, err
		}
		offset, timestamp := int64(-1), int64(-1)
		var inner error
		err = l.walkFrom(s, max(from, l.start), func(h *record.Header, pos int64) bool {
			if h.BaseOffset >= limit {
				return false
			}
			if h.Control() || h.Count == 0 || !batch(h) {
				return true
			}
			l.buf = append(l.buf[:0], make([]byte, h.Size())...)
			if _, inner = f.ReadAt(l.buf, pos); inner != nil {
				return false
			}
			if _, err := record.Validate(l.buf); err != nil {
				inner = &CorruptError{File: s.logPath(), Offset: pos, Reason: err.Error()}
				return false
			}
			if inner = reader.Reset(l.buf); inner != nil {
				return false
			}
			for reader.Next() {
				r := reader.Record()
				if r.Offset >= l.start && r.Offset < limit && wanted(r) {
					offset, timestamp = r.Offset, r.Timestamp
					return false
				}
			}
			inner = reader.Err()
			return inner == nil
		})
		f.release()
		if cap(l.buf) > 1<<20 {
			l.buf = nil
		}
		if err == nil {
			err = inner
		}
		if err != nil {
			return -1, -1, l.isolateRead(err)
		}
		if offset >= 0 {
			return offset, timestamp, nil
		}
	}
	return -1, -1, nil
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
	l.snapshotAt, l.undecided = -1, nil
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
			from, l.snapshotAt, l.undecided = max(from, at), at, open
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

package commitlog

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/vfs"
)

// SetStartOffset moves the start forward, as DeleteRecords asks; segments below it are removed by the next retention pass. It is
// durable with the next Manager.Sync: who must promise more keeps it in a unit of the journal and sets it again on start.
func (l *Log) SetStartOffset(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if offset > l.end || offset < 0 {
		return fmt.Errorf("partition %s: %w: %d is not in [%d, %d]", l.name, ErrOffsetOutOfRange, offset, l.start, l.end)
	}
	l.start = max(l.start, offset)
	return nil
}

// AtRest says, without loading it, how large a log is that was not used since the process began, if retention has nothing to do there as far as
// the folder tells: a start with ten thousand partitions must not open them all. It believes that a file is not older than its records; records
// that were old when they came, and were not deleted before the process ended, are deleted when the file is as old or the log is used.
func (l *Log) AtRest(now time.Time) (bytes int64, ok bool) {
	l.mu.Lock()
	loaded, fresh, start, end, c := l.loaded || l.closed || l.damage != nil || !l.known, l.fresh, l.start, l.end, l.config
	l.mu.Unlock()
	if loaded || fresh {
		return 0, false
	}
	names, err := l.m.o.FS.List(l.dir)
	if err != nil {
		return 0, false
	}
	type file struct {
		base, size int64
		written    time.Time
	}
	var files []file
	for _, name := range names {
		stem, isLog := strings.CutSuffix(name, ".log")
		base, err := strconv.ParseInt(stem, 10, 64)
		if !isLog || err != nil || len(stem) != 20 {
			continue
		}
		st, err := l.m.o.FS.Stat(l.m.o.FS.PathJoin(l.dir, name))
		if err != nil {
			return 0, false
		}
		files = append(files, file{base: base, size: st.Size(), written: st.ModTime()})
		bytes += st.Size()
	}
	if len(files) == 0 {
		return 0, start == end
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.base, b.base) })
	first, next := files[0], end
	if len(files) > 1 {
		next = files[1].base
	}
	due := next <= start && first.size > 0 ||
		c.RetentionBytes > 0 && bytes-first.size >= c.RetentionBytes ||
		c.Retention > 0 && !first.written.After(now.Add(-c.Retention))
	return bytes, !due
}

// ApplyRetention removes whole segments below highWatermark, and below the end that the last Manager.Sync recorded, that are too old, beyond the size, or below the start. A log that
// was not used since the process began is loaded for it only if it has a bound.
func (l *Log) ApplyRetention(now time.Time, highWatermark int64) (newStart int64, deleted int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == l.start && !l.loaded {
		return l.start, 0, nil
	}
	if err := l.ready(); err != nil {
		return l.start, 0, err
	}
	// The active segment goes, too, when all of it is too old or below the start: then an empty one takes its place.
	for len(l.segments) > 0 {
		s := l.segments[0]
		next := l.end
		if len(l.segments) > 1 {
			next = l.segments[1].base
		}
		if next > min(highWatermark, l.recorded) || s.size == 0 || s.pinned {
			break
		}
		gone := next <= l.start
		if !gone && l.config.RetentionBytes > 0 {
			rest := int64(0)
			for _, s := range l.segments[1:] {
				rest += s.size
			}
			gone = rest >= l.config.RetentionBytes
		}
		if !gone && l.config.Retention > 0 {
			size := s.size
			if gone, err = l.tooOld(s, now.Add(-l.config.Retention).UnixMilli()); err != nil {
				return l.start, deleted, l.readError(err)
			}
			// It looked without the lock.
			if l.closed {
				return l.start, deleted, ErrClosed
			}
			if len(l.segments) == 0 || l.segments[0] != s || s.pinned || s.size != size {
				continue
			}
		}
		if !gone {
			break
		}
		if len(l.segments) == 1 {
			if err := l.loadProducers(); err != nil {
				return l.start, deleted, err
			}
			if err := l.roll(); err != nil {
				return l.start, deleted, err
			}
			// The new segment is what keeps the end: it is there before the old one goes.
			if err := vfs.SyncDir(l.m.o.FS, l.dir); err != nil {
				return l.start, deleted, err
			}
		}
		if err := l.remove(s); err != nil {
			return l.start, deleted, err
		}
		l.segments = slices.Delete(l.segments, 0, 1)
		l.start = max(l.start, l.segments[0].base)
		deleted++
	}
	return l.start, deleted, nil
}

// tooOld reports whether every record of the first segment is older than the time in milliseconds. The index is only a hint: before
// anything is removed the batches are asked, with mu, which is held, given up meanwhile. Records without a timestamp are as old as the file.
func (l *Log) tooOld(s *segment, before int64) (bool, error) {
	if s.indexed && s.largest >= before {
		return false, nil
	}
	v, err := l.view(0)
	if err != nil {
		return false, err
	}
	l.mu.Unlock()
	largest, err := v.largestTime()
	if err == nil && largest < 0 {
		var st vfs.FileInfo
		switch st, err = v.fs.Stat(v.file); {
		case vfs.NotExist(err): // all of it is in memory
			largest, err = math.MaxInt64, nil
		case err == nil:
			largest = st.ModTime().UnixMilli()
		}
	}
	version := v.version
	v.release()
	l.mu.Lock()
	switch {
	case s.version != version:
		return false, nil
	case err != nil:
		return false, err
	}
	return largest < before, nil
}

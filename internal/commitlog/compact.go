package commitlog

import "time"

// Dirt is what compaction could do for a log.
type Dirt struct {
	Clean, Dirty int64 // bytes of the segments that were compacted, and of those that may be
	// Overdue: records have waited for longer than they may, or the retention of deletes has passed for what was compacted.
	Overdue bool
}

// Ratio is the share of the dirty bytes.
func (d Dirt) Ratio() float64 {
	if d.Dirty == 0 {
		return 0
	}
	return float64(d.Dirty) / float64(d.Clean+d.Dirty)
}

// Dirt looks at how much there is to compact below an offset. It seals the active segment when its records have waited for as long as they may. A log
// that was not used since the process began is loaded for it.
func (l *Log) Dirt(now time.Time, below int64) (Dirt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var d Dirt
	if l.end == l.start && !l.loaded {
		return d, nil
	}
	if err := l.ready(); err != nil {
		return d, err
	}
	waited := func(s *segment) (bool, error) { return false, nil }
	if lag := l.config.MaxCompactionLag; lag > 0 {
		before := now.Add(-lag)
		if n := len(l.segments); n > 0 && l.segments[n-1].size > 0 {
			old, err := l.firstBefore(l.segments[n-1], before.UnixMilli())
			if err != nil {
				return d, l.readError(err)
			}
			if old || l.begun.Before(before) {
				if err := l.roll(); err != nil {
					return d, err
				}
			}
		}
		waited = func(s *segment) (bool, error) { return l.firstBefore(s, before.UnixMilli()) }
	}
	n, err := l.cleanable(now, below)
	if err != nil {
		return d, err
	}
	dirty := max(l.clean.dirty, l.start)
	for i, s := range l.segments[:n] {
		if l.segmentEnd(i) <= dirty {
			d.Clean += s.size
			continue
		}
		d.Dirty += s.size
		if !d.Overdue {
			if d.Overdue, err = waited(s); err != nil {
				return d, l.readError(err)
			}
		}
	}
	if n > 0 && l.clean.horizon >= 0 && now.UnixMilli() >= l.clean.horizon {
		d.Overdue = true
	}
	return d, nil
}

// firstBefore reports whether the segment's first batch is older than the time in milliseconds; mu is held.
func (l *Log) firstBefore(s *segment, ms int64) (bool, error) {
	if s.size == 0 {
		return false, nil
	}
	first, err := l.firstTime(s)
	return err == nil && first < ms, err
}

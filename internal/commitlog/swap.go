package commitlog

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// The segment that compaction has made of some others takes their place in steps, each of which a crash may follow:
//
//  1. <base>.log.cleaned is written and synced. Until now a crash leaves the old segments, and the file is removed by the next start.
//  2. It is renamed to <base>.log.swap, and the folder is synced: from here on the new segment counts. Its first name tells which old segments it
//     stands for: those from its base up to the offset where its last batch ends.
//  3. The old segments but the first, and the indexes of that, are removed, and the folder is synced.
//  4. It is renamed to <base>.log, over the first of the old segments.
//
// A start that finds a .swap file does steps 3 and 4. The list of aborted transactions takes the same way, and is always a step ahead.
const (
	cleanedSuffix = ".cleaned"
	swapSuffix    = ".swap"
)

// putInPlace is steps 2 to 4. Readers see the old segments or the new one.
func (c *cleanFile) putInPlace(g []passSegment) error {
	l, fs := c.p.l, c.p.l.m.o.FS
	if c.indexed {
		if err := fs.Rename(c.segment.path+".txnindex"+cleanedSuffix, c.segment.path+".txnindex"+swapSuffix); err != nil {
			return err
		}
		if err := vfs.SyncDir(fs, l.dir); err != nil {
			return err
		}
	}
	swap := c.segment.path + ".log" + swapSuffix
	if err := fs.Rename(c.cleanedPath(), swap); err != nil {
		return err
	}
	c.made = false
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	at := slices.Index(l.segments, g[0].s)
	if at < 0 || at+len(g) >= len(l.segments) {
		l.mu.Unlock()
		_ = fs.Remove(swap)
		return fmt.Errorf("segment %s has gone while it was compacted", g[0].path)
	}
	s := &swapping{indexed: c.indexed}
	for i := range g {
		g[i].s.version++
		l.m.files.forget(g[i].path)
		l.m.files.forget(g[i].s.abortedPath())
		if i > 0 {
			s.old = append(s.old, g[i].base)
		}
	}
	c.segment.swap = s
	l.segments = slices.Replace(l.segments, at, at+len(g), c.segment)
	l.mu.Unlock()
	return l.takePlace(c.segment)
}

// swapping says what is left to do for a segment that readers see and whose file has the name of step 2.
type swapping struct {
	old     []int64 // the bases of the segments that it stands for, without its own
	indexed bool    // there is an index of aborted transactions to be put in place
}

// takePlace is the end of step 2, and steps 3 and 4. After an error it is to be called again.
func (l *Log) takePlace(s *segment) error {
	fs := l.m.o.FS
	if err := vfs.SyncDir(fs, l.dir); err != nil {
		return err
	}
	if err := l.finishSwap(s.base, s.swap.old, s.swap.indexed); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.m.files.forget(s.logPath())
	if err := fs.Rename(s.logPath(), s.path+".log"); err != nil {
		return err
	}
	s.swap = nil
	s.version++
	l.m.files.forget(s.logPath())
	s.aborted = abortedIndex{}
	l.m.files.forget(s.abortedPath())
	l.dirChanged = true
	l.setDirty()
	if err := l.saveIndex(s); err != nil {
		l.m.o.Logger.Warn("the index of a compacted segment is not written; it is built again when it is needed", "file", s.indexPath(), "error", err)
	}
	return nil
}

// finishLate does what an earlier pass has failed to do for the segments that it made: no other may be made of them before.
func (l *Log) finishLate() error {
	var late []*segment
	l.mu.Lock()
	if !l.closed {
		for _, s := range l.segments {
			if s.swap != nil {
				late = append(late, s)
			}
		}
	}
	l.mu.Unlock()
	for _, s := range late {
		if err := l.takePlace(s); err != nil {
			return err
		}
		l.mu.Lock()
		s.pinned = false
		l.mu.Unlock()
	}
	return nil
}

// finishSwap is step 3, and step 4 for the list of aborted transactions.
func (l *Log) finishSwap(base int64, old []int64, indexed bool) error {
	fs := l.m.o.FS
	stem := fs.PathJoin(l.dir, segmentName(base))
	doomed := []string{stem + ".index", stem + ".timeindex"}
	for _, b := range old {
		other := fs.PathJoin(l.dir, segmentName(b))
		doomed = append(doomed, other+".index", other+".timeindex", other+".txnindex", other+".log")
	}
	for _, path := range doomed {
		if err := fs.Remove(path); err != nil && !vfs.NotExist(err) {
			return fmt.Errorf("remove what was compacted: %w", err)
		}
	}
	if indexed {
		if err := fs.Rename(stem+".txnindex"+swapSuffix, stem+".txnindex"); err != nil && !vfs.NotExist(err) { // else it was done before
			return err
		}
	}
	return vfs.SyncDir(fs, l.dir)
}

// finishSwaps does what a crash has kept from being done, for a folder with these files, and reports whether that was something.
func (l *Log) finishSwaps(names []string) (bool, error) {
	fs, found := l.m.o.FS, false
	for _, name := range names {
		stem, ok := strings.CutSuffix(name, ".log"+swapSuffix)
		base, err := strconv.ParseInt(stem, 10, 64)
		if !ok || err != nil || len(stem) != 20 {
			continue
		}
		path := fs.PathJoin(l.dir, name)
		end, err := l.endOf(path, base)
		if err != nil {
			return false, err
		}
		var old []int64
		for _, other := range names {
			stem, ok := strings.CutSuffix(other, ".log")
			if b, err := strconv.ParseInt(stem, 10, 64); ok && err == nil && len(stem) == 20 && b > base && b < end {
				old = append(old, b)
			}
		}
		if err := l.finishSwap(base, old, slices.Contains(names, stem+".txnindex"+swapSuffix)); err != nil {
			return false, err
		}
		if err := fs.Rename(path, strings.TrimSuffix(path, swapSuffix)); err != nil {
			return false, err
		}
		if err := vfs.SyncDir(fs, l.dir); err != nil {
			return false, err
		}
		l.m.o.Logger.Info("a segment that was compacted before the last stop takes its place", "partition", l.name, "segment", stem)
		found = true
	}
	return found, nil
}

// endOf returns the offset after the last batch of a file.
func (l *Log) endOf(path string, base int64) (int64, error) {
	h, err := l.m.files.acquire(path)
	if err != nil {
		return 0, err
	}
	defer l.m.files.forget(path)
	defer h.release()
	st, err := h.Stat()
	if err != nil {
		return 0, err
	}
	end := base
	_, err = scan(h, path, 0, base, math.MaxInt64, st.Size(), true, func(h *record.Header, _ int64) bool {
		end = h.NextOffset()
		return true
	})
	return end, err
}

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
	if err := vfs.SyncDir(fs, l.dir); err != nil {
		return err
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	at := slices.Index(l.segments, g[0].s)
	if at < 0 || at+len(g) >= len(l.segments) {
		l.mu.Unlock()
		return fmt.Errorf("segment %s has gone while it was compacted", g[0].path)
	}
	c.segment.swapped = true
	for _, s := range g {
		l.m.files.forget(s.path)
		l.m.files.forget(s.s.abortedPath())
	}
	l.segments = slices.Replace(l.segments, at, at+len(g), c.segment)
	l.mu.Unlock()
	bases := make([]int64, 0, len(g))
	for _, s := range g[1:] {
		bases = append(bases, s.base)
	}
	if err := l.finishSwap(c.segment.base, bases, c.indexed); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.m.files.forget(swap)
	if err := fs.Rename(swap, c.segment.path+".log"); err != nil {
		return err
	}
	l.m.files.forget(c.segment.path + ".log") // a Sync that began before may have opened what was there
	c.segment.swapped = false
	c.segment.aborted = abortedIndex{}
	l.m.files.forget(c.segment.abortedPath())
	l.dirChanged = true
	l.setDirty()
	if err := l.saveIndex(c.segment); err != nil {
		l.m.o.Logger.Warn("the index of a compacted segment is not written; it is built again when it is needed", "file", c.segment.indexPath(), "error", err)
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
		if err := fs.Rename(stem+".txnindex"+swapSuffix, stem+".txnindex"); err != nil {
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

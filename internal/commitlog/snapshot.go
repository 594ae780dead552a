package commitlog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/vfs"
)

// Snapshots of the producers are written when a segment is sealed, which is in the way of an append and so without a sync, and by Sync, which makes
// those of the former kind durable, too, before the end that they are needed for is recorded. Neither waits for the disk under the log's lock.

func (l *Log) snapshotPath(offset int64) string {
	return l.m.o.FS.PathJoin(l.dir, segmentName(offset)+".snapshot")
}

// snapshotOffsets returns the offsets of the snapshot files, the newest first.
func snapshotOffsets(names []string) []int64 {
	var at []int64
	for _, n := range names {
		if stem, ok := strings.CutSuffix(n, ".snapshot"); ok && len(stem) == 20 {
			if v, err := strconv.ParseInt(stem, 10, 64); err == nil {
				at = append(at, v)
			}
		}
	}
	slices.Sort(at)
	slices.Reverse(at)
	return at
}

// forgetSnapshots removes those of the names that are snapshots of what lies behind the end: a crash has taken that away, and what comes in its place may
// be of other producers; mu is held.
func (l *Log) forgetSnapshots(names []string) error {
	for _, at := range snapshotOffsets(names) {
		if at <= l.end {
			break
		}
		if err := l.m.o.FS.Remove(l.snapshotPath(at)); err != nil && !vfs.NotExist(err) {
			return fmt.Errorf("remove producer snapshot: %w", err)
		}
		l.dirChanged = true
	}
	return nil
}

// keptSnapshots: the last one may be torn by a crash. Besides, one that is not behind the recorded end is kept.
const keptSnapshots = 2

// writeSnapshot writes the producers' state at the end of the log, for Sync to sync; mu is held.
func (l *Log) writeSnapshot() error {
	if err := l.makeDir(); err != nil {
		return fmt.Errorf("write producer snapshot: %w", err)
	}
	fs, path := l.m.o.FS, l.snapshotPath(l.end)
	f, err := fs.Create(path, vfs.Unspecified)
	if err != nil {
		return fmt.Errorf("write producer snapshot: %w", err)
	}
	_, err = f.Write(l.producers.snapshot(l.end, l.undecided))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		l.producers.touch()
		_ = fs.Remove(path) // it would be counted as one that is kept
		return fmt.Errorf("write producer snapshot: %w", err)
	}
	l.dirChanged = true
	kept, err := l.pruneSnapshots(l.recorded)
	l.unsyncedSnapshots = append(l.unsyncedSnapshots, l.end)
	if err == nil {
		l.unsyncedSnapshots = slices.DeleteFunc(l.unsyncedSnapshots, func(at int64) bool { return !slices.Contains(kept, at) })
	}
	return err
}

// pruneSnapshots removes the snapshots that are not needed, and returns those that stay.
func (l *Log) pruneSnapshots(recorded int64) (kept []int64, err error) {
	names, err := l.m.o.FS.List(l.dir)
	if err != nil {
		return nil, err
	}
	usable := false // by a start that cuts the log at the recorded end
	for i, at := range snapshotOffsets(names) {
		first := !usable && at <= recorded
		usable = usable || first
		if i < keptSnapshots || first {
			kept = append(kept, at)
			continue
		}
		if err := l.m.o.FS.Remove(l.snapshotPath(at)); err != nil && !vfs.NotExist(err) {
			return nil, err
		}
	}
	return kept, nil
}

// syncSnapshots makes the snapshots at these offsets durable, and writes one at end with the content, if that is not nil. mu is not held.
func (l *Log) syncSnapshots(unsynced []int64, end int64, content []byte) error {
	if len(unsynced) == 0 && content == nil {
		return nil
	}
	l.snapshotting.Lock() // Close waits for it: nothing is written into the folder of a log that was deleted
	defer l.snapshotting.Unlock()
	l.mu.Lock()
	closed, recorded := l.closed, l.recorded
	l.mu.Unlock()
	if closed {
		return ErrClosed
	}
	for _, at := range unsynced {
		f, err := l.m.o.FS.Open(l.snapshotPath(at))
		if vfs.NotExist(err) { // not needed any more
			continue
		}
		if err == nil {
			err = f.Sync()
			if cerr := f.Close(); err == nil {
				err = cerr
			}
		}
		if err != nil {
			return fmt.Errorf("sync producer snapshot: %w", err)
		}
	}
	if content == nil {
		return nil
	}
	if err := vfs.WriteFile(l.m.o.FS, l.dir, segmentName(end)+".snapshot", content); err != nil {
		return fmt.Errorf("write producer snapshot: %w", err)
	}
	_, err := l.pruneSnapshots(recorded)
	return err
}

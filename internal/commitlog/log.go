package commitlog

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// Log is one partition. Safe for concurrent use; appends come from one goroutine, the journal's applier.
type Log struct {
	m    *Manager
	name string
	id   [16]byte
	dir  string

	mu         sync.Mutex
	config     Config
	known      bool // start and end are those of the checkpoint, until loaded
	fresh      bool // the checkpoint does not know this log: what its folder has is from before
	loaded     bool
	closed     bool
	damage     error // isolates the partition
	start, end int64
	recorded   int64      // end in the last checkpoint: retention stays below it
	segments   []*segment // by base; the last is active
	begun      time.Time  // when the active segment was begun, or the log was opened
	unmade     bool       // the folder is not there yet
	dirChanged bool       // files were made or removed since the folder was synced
	dirty      bool

	clean    cleanState
	cleaning sync.Mutex    // held by a pass of compaction; taken before mu
	closing  chan struct{} // of the pass that runs; closed by Close

	producers       Producers
	producersLoaded bool
	undecided       openTransactions // at the end of the files, when producersLoaded
	// Snapshot files are written into the folder under snapshotting; unsyncedSnapshots are the offsets of those that Sync has to sync.
	snapshotting      sync.Mutex
	unsyncedSnapshots []int64
}

// Name is the folder's: "topic-0".
func (l *Log) Name() string { return l.name }

// SetConfig takes effect at the next append or retention pass.
func (l *Log) SetConfig(c Config) {
	c.setDefaults()
	l.mu.Lock()
	l.config = c
	l.mu.Unlock()
}

// StartOffset is the first offset that can be read.
func (l *Log) StartOffset() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start
}

// EndOffset is the offset that the next batch gets.
func (l *Log) EndOffset() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Err is the damage that isolates the partition, if it was met.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.damage
}

// Dirty reports whether something was appended since the last Sync.
func (l *Log) Dirty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dirty
}

// Size is the number of bytes in segments.
func (l *Log) Size() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return 0, err
	}
	n := int64(0)
	for _, s := range l.segments {
		n += s.size
	}
	return n, nil
}

// ready loads the log at its first use; mu is held.
func (l *Log) ready() error {
	switch {
	case l.closed:
		return ErrClosed
	case l.damage != nil:
		return l.damage
	case l.loaded:
		return nil
	}
	return l.load()
}

func (l *Log) isolate(err error) error {
	if errors.Is(err, ErrCorrupt) && l.damage == nil {
		l.damage = fmt.Errorf("partition %s: %w", l.name, err)
		return l.damage
	}
	return err
}

// load reads the folder and cuts the log at its recorded end; mu is held.
func (l *Log) load() error {
	fs := l.m.o.FS
	var names []string
	var err error
	// A folder that is not there is made with the first file: ten thousand of them must not be waited for.
	if l.unmade = !l.m.present(l.name); !l.unmade {
		if names, err = fs.List(l.dir); err != nil && !vfs.NotExist(err) {
			return fmt.Errorf("open log %s: %w", l.name, err)
		}
		if len(names) > 0 && l.fresh && l.known {
			// Nothing in it was recorded: an earlier topic's, or written after the checkpoint and so in the journal still.
			if err := fs.RemoveAll(l.dir); err != nil {
				return fmt.Errorf("open log %s: %w", l.name, err)
			}
			names = nil
		}
		if err := vfs.MkdirAll(fs, l.dir); err != nil {
			return fmt.Errorf("open log %s: %w", l.name, err)
		}
	}
	if found, err := l.finishSwaps(names); err != nil {
		return l.isolate(err)
	} else if found {
		if names, err = fs.List(l.dir); err != nil {
			return fmt.Errorf("open log %s: %w", l.name, err)
		}
	}
	if err := l.loadCleanState(names); err != nil {
		return err
	}
	l.segments, l.unsyncedSnapshots = nil, nil
	for _, name := range names {
		path := fs.PathJoin(l.dir, name)
		stem, isLog := strings.CutSuffix(name, ".log")
		if base, err := strconv.ParseInt(stem, 10, 64); isLog && err == nil && len(stem) == 20 {
			st, err := fs.Stat(path)
			if err != nil {
				return fmt.Errorf("open log %s: %w", l.name, err)
			}
			l.segments = append(l.segments, &segment{base: base, path: strings.TrimSuffix(path, ".log"), size: st.Size(), largest: math.MinInt64})
			continue
		}
		for _, suffix := range []string{".deleted", cleanedSuffix, swapSuffix, ".tmp"} {
			if strings.HasSuffix(name, suffix) {
				if err := fs.Remove(path); err != nil {
					return fmt.Errorf("open log %s: %w", l.name, err)
				}
			}
		}
	}
	slices.SortFunc(l.segments, func(a, b *segment) int { return int(min(1, max(-1, a.base-b.base))) })
	holes := l.clean.holes
	if err := l.place(); err != nil {
		return l.isolate(err)
	}
	if err := l.forgetSnapshots(names); err != nil {
		return fmt.Errorf("open log %s: %w", l.name, err)
	}
	if l.clean.holes != holes { // segments from elsewhere, which are compacted
		if err := vfs.WriteFile(fs, l.dir, cleanName, l.clean.encode()); err != nil {
			return fmt.Errorf("open log %s: %w", l.name, err)
		}
	}
	if n := len(l.segments); n > 0 {
		l.segments[n-1].aborted.limit = max(l.end, 1)
	}
	l.begun = l.m.o.Clock.Now()
	l.loaded, l.fresh = true, false
	return nil
}

// makeDir makes the folder before its first file; Sync makes it durable.
func (l *Log) makeDir() error {
	if !l.unmade {
		return nil
	}
	if err := l.m.o.FS.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	l.unmade = false
	l.m.notePresent(l.name, true)
	return nil
}

// create opens the segment's file to write, or to make it, which is when its folder is made; mu is held.
func (l *Log) create(s *segment) (*handle, error) {
	if err := l.makeDir(); err != nil {
		return nil, err
	}
	return l.m.files.acquireWritable(s.logPath())
}

// place finds the recorded end, or, where none is recorded, the end of the last whole batch, and cuts the log there.
func (l *Log) place() error {
	if !l.known {
		return l.placeUnknown()
	}
	// Segments at or above the end are from after the checkpoint; a crash may have left some of them, and not others.
	if l.end > l.start {
		if len(l.segments) == 0 || l.segments[0].base > l.end {
			return &CorruptError{File: l.dir, Reason: fmt.Sprintf("the segments with the offsets %d to %d are missing", l.start, l.end)}
		}
		// Retention may have removed segments after the checkpoint, or all of them: then it has left one that begins at the end.
		l.start = max(l.start, l.segments[0].base)
	}
	return l.cut(l.end)
}

func (l *Log) placeUnknown() error {
	compacted := false
	defer func() {
		if compacted {
			l.clean.holes = max(l.clean.holes, l.end)
		}
	}()
	for i, s := range l.segments {
		if i == 0 {
			l.start, l.end = s.base, s.base
		}
		h, err := l.open(s)
		if err != nil {
			return err
		}
		if s.base < l.end {
			h.release()
			return &CorruptError{File: s.logPath(), Reason: fmt.Sprintf("it begins before offset %d, where the segment before it ends", l.end)}
		}
		compacted = compacted || s.base != l.end
		l.end = max(l.end, s.base)
		s.indexed = true
		next, err := scan(h, s.logPath(), 0, s.base, math.MaxInt64, s.size, true, func(b *record.Header, pos int64) bool {
			compacted = compacted || b.BaseOffset != l.end
			s.note(b, pos, l.config.IndexIntervalBytes)
			l.end = b.NextOffset()
			return true
		})
		h.release()
		s.verifiedTo = next
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrCorrupt) || i < len(l.segments)-1 {
			return err
		}
		l.m.o.Logger.Warn("a partition's last segment is cut behind its last whole batch", "partition", l.name, "error", err)
		return l.cutFile(s, next)
	}
	return nil
}

// cut removes everything at or above offset end, which must be the end of a batch.
func (l *Log) cut(end int64) error {
	keep := len(l.segments)
	for keep > 0 && l.segments[keep-1].base > end {
		keep--
	}
	// One that begins at the end has nothing to keep, but may be the only one there is.
	if keep > 1 && l.segments[keep-1].base == end {
		if l.segments[keep-1].size > 0 {
			if err := l.cutFile(l.segments[keep-1], 0); err != nil {
				return err
			}
		}
	}
	for _, s := range l.segments[keep:] {
		if err := l.remove(s); err != nil {
			return err
		}
	}
	l.segments = l.segments[:keep]
	if keep == 0 {
		return nil
	}
	s := l.segments[keep-1]
	if s.base == end {
		if s.size > 0 {
			return l.cutFile(s, 0)
		}
		return nil
	}
	h, err := l.open(s)
	if err != nil {
		return err
	}
	defer h.release()
	// The index leads near the end; without it the walk is longer.
	err = l.cutAt(s, h, end, true)
	if errors.Is(err, ErrCorrupt) {
		err = l.cutAt(s, h, end, false)
	}
	return err
}

// cutAt cuts the segment, which holds the end.
func (l *Log) cutAt(s *segment, h *handle, end int64, useIndex bool) error {
	from := int64(0)
	s.forgetIndex()
	if useIndex && s.readIndexFiles(l.m.o.FS, h) {
		i := len(s.index)
		for i > 0 && s.base+int64(s.index[i-1].rel) >= end {
			i--
		}
		s.index = s.index[:i]
		k := len(s.times)
		for k > 0 && s.base+int64(s.times[k-1].rel) >= end {
			k--
		}
		s.times = s.times[:k]
		if i > 0 {
			from = int64(s.index[i-1].pos)
		}
		s.largest = math.MinInt64
		if k > 0 {
			s.largest = s.times[k-1].ts
		} else if i > 0 {
			from, s.index = 0, nil
		}
	} else {
		s.forgetIndex()
	}
	indexed := len(s.index)
	at := from
	reached := s.base
	if indexed > 0 {
		reached = -1
	}
	_, err := scan(h, s.logPath(), from, s.expect(from), l.clean.holes, s.size, true, func(b *record.Header, pos int64) bool {
		if b.BaseOffset >= end {
			return false
		}
		if indexed > 0 && pos == from {
			s.sinceIx = int64(b.Size())
			s.largest = max(s.largest, b.MaxTimestamp)
		} else {
			s.note(b, pos, l.config.IndexIntervalBytes)
		}
		at, reached = pos+int64(b.Size()), b.NextOffset()
		return reached < end
	})
	if reached != end {
		if err == nil || !errors.Is(err, ErrCorrupt) {
			if err != nil {
				return err
			}
			err = &CorruptError{File: s.logPath(), Offset: at, Reason: fmt.Sprintf("the batches end at offset %d, and the log ended at %d", reached, end)}
		}
		return err
	}
	s.indexed = true
	s.verifiedFrom, s.verifiedTo = from, at
	if at < s.size {
		return l.cutFile(s, at)
	}
	return nil
}

// cutFile truncates the segment's file, which has nothing behind it in memory unless all of it goes.
func (l *Log) cutFile(s *segment, size int64) error {
	l.dropTail(s)
	f, err := l.m.o.FS.OpenReadWrite(s.logPath(), vfs.Unspecified)
	if err != nil {
		return err
	}
	err = vfs.Truncate(l.m.o.FS, s.logPath(), f, size)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("cut %s: %w", s.logPath(), err)
	}
	l.m.files.forget(s.logPath())
	s.size, s.unsynced = size, true
	s.verifiedTo = min(s.verifiedTo, size)
	s.saved, s.savedTs = 0, 0
	if size == 0 {
		s.forgetIndex()
		s.indexed, s.firstKnown = true, false
	}
	l.setDirty()
	return nil
}

func (l *Log) setDirty() {
	if !l.dirty {
		l.dirty = true
		l.m.markDirty(l)
	}
}

// remove deletes the segment's files.
func (l *Log) remove(s *segment) error {
	fs := l.m.o.FS
	s.version++
	l.dropTail(s)
	l.m.files.forget(s.logPath())
	if err := fs.Remove(s.logPath()); err != nil && !vfs.NotExist(err) {
		return fmt.Errorf("remove segment: %w", err)
	}
	l.m.files.forget(s.abortedPath())
	for _, p := range []string{s.indexPath(), s.timePath(), s.abortedPath()} {
		if err := fs.Remove(p); err != nil && !vfs.NotExist(err) {
			return fmt.Errorf("remove index: %w", err)
		}
	}
	l.dirChanged = true
	l.setDirty()
	return nil
}

// Append adds a batch whose base offset is in its header. It is called by the journal's applier, in order; a batch that is there
// already, by offset and checksum, is skipped. The checksum is not verified again.
func (l *Log) Append(batch []byte) error {
	h, err := record.ParseHeader(batch)
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.name, err)
	}
	if h.Size() != len(batch) {
		return fmt.Errorf("append to %s: %w: it has %d bytes and says %d", l.name, record.ErrInvalid, len(batch), h.Size())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return err
	}
	if h.BaseOffset < l.end {
		return l.isolate(l.compare(&h))
	}
	if h.BaseOffset > l.end && (len(l.segments) > 0 || l.end > 0) {
		return l.isolate(&CorruptError{File: l.dir, Reason: fmt.Sprintf("the next batch has the offset %d, and the log ends at %d: what lay between is missing", h.BaseOffset, l.end)})
	}
	if len(l.segments) == 0 && l.end == 0 {
		l.start = h.BaseOffset
	}
	if h.ProducerID >= 0 { // before the batch is there, for it is not to be counted twice
		if err := l.loadProducers(); err != nil {
			return err
		}
	}
	s, err := l.active(&h)
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.name, err)
	}
	if err := l.write(s, batch); err != nil {
		return fmt.Errorf("append to %s: %w", l.name, err)
	}
	s.note(&h, s.size, l.config.IndexIntervalBytes)
	if s.size == 0 {
		s.first, s.firstKnown = h.MaxTimestamp, true
	}
	if s.verifiedTo < s.size || s.verifiedFrom > s.size {
		s.verifiedFrom = s.size
	}
	s.size += int64(len(batch))
	s.verifiedTo = s.size
	s.unsynced = true
	l.end = h.NextOffset()
	l.setDirty()
	return l.noteAppended(s, &h, batch)
}

// compare checks that a batch below the end is the one that is there. One below the start was removed since, and one below the holes
// may have been changed by compaction; both were durable in the file.
func (l *Log) compare(want *record.Header) error {
	if want.NextOffset() <= max(l.start, l.clean.holes) || len(l.segments) == 0 || want.BaseOffset < l.segments[0].base {
		return nil
	}
	s := l.segments[l.segmentAt(want.BaseOffset)]
	var found record.Header
	err := l.walkFrom(s, want.BaseOffset, func(h *record.Header, pos int64) bool {
		found = *h
		return false
	})
	if err != nil {
		return err
	}
	if found.BaseOffset != want.BaseOffset || found.CRC != want.CRC {
		return &CorruptError{File: s.logPath(), Reason: fmt.Sprintf("the batch at offset %d is not the one in the journal", want.BaseOffset)}
	}
	return nil
}

// active returns the segment for the next batch, and rolls if need be.
func (l *Log) active(h *record.Header) (*segment, error) {
	if n := len(l.segments); n > 0 {
		s := l.segments[n-1]
		if s.size == 0 && s.base == h.BaseOffset {
			return s, nil
		}
		full := s.size+int64(h.Size()) > l.config.SegmentBytes || s.size+int64(h.Size()) > math.MaxInt32
		far := h.LastOffset()-s.base > math.MaxInt32
		old, err := l.waited(s, h)
		if err != nil {
			return nil, err
		}
		if s.size > 0 && !full && !far && !old {
			return s, l.ensureIndex(s)
		}
		if err := l.seal(s); err != nil {
			return nil, err
		}
	}
	s := l.newSegment(h.BaseOffset)
	l.segments = append(l.segments, s)
	l.begun = l.m.o.Clock.Now()
	l.dirChanged = true
	return s, nil
}

// waited reports whether the segment, which may be empty, has waited for the batch for as long as one may be active. As in Kafka the time runs by the
// timestamps of the records, from the first batch of the segment on, so that a restart changes nothing; where the first has none, by the clock, from
// when the segment was begun or the log was opened.
func (l *Log) waited(s *segment, h *record.Header) (bool, error) {
	if s.size == 0 {
		return false, nil
	}
	first, err := l.firstTime(s)
	if err != nil {
		return false, err
	}
	if first < 0 || h.MaxTimestamp < 0 {
		return l.m.o.Clock.Now().Sub(l.begun) > l.config.SegmentAge, nil
	}
	return h.MaxTimestamp-first > l.config.SegmentAge.Milliseconds(), nil
}

// firstTime is the largest timestamp of the first batch of a segment that has one; mu is held.
func (l *Log) firstTime(s *segment) (int64, error) {
	if s.firstKnown {
		return s.first, nil
	}
	err := l.within(s, func(v *view) (err error) {
		s.first, s.firstKnown, err = v.firstTime()
		return err
	})
	return s.first, err
}

// newSegment is an empty segment, all of whose indexes are known.
func (l *Log) newSegment(base int64) *segment {
	return &segment{
		// Joined by hand: the folder is clean, and to clean it again for each of ten thousand partitions is most of what their segments cost.
		base: base, path: l.dir + "/" + segmentName(base), indexed: true, largest: math.MinInt64,
		aborted: abortedIndex{loaded: true, covered: base},
	}
}

// seal ends the active segment: its indexes and a snapshot of the producers go to their files.
func (l *Log) seal(s *segment) error {
	if err := l.flush(s); err != nil {
		return err
	}
	if err := l.saveIndex(s); err != nil {
		return err
	}
	if err := l.keepAborted(s); err != nil {
		return err
	}
	if l.producersLoaded {
		return l.writeSnapshot()
	}
	return nil
}

// Roll seals the active segment now, so that retention may remove it.
func (l *Log) Roll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return err
	}
	return l.roll()
}

func (l *Log) roll() error {
	n := len(l.segments)
	if n == 0 || l.segments[n-1].size == 0 {
		return nil
	}
	if err := l.seal(l.segments[n-1]); err != nil {
		return err
	}
	s := l.newSegment(l.end)
	f, err := l.create(s)
	if err != nil {
		return err
	}
	f.release()
	l.segments = append(l.segments, s)
	l.begun = l.m.o.Clock.Now()
	l.dirChanged = true
	l.setDirty()
	return nil
}

// Sync makes everything appended so far durable.
func (l *Log) Sync() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.dirty = false
	if !l.loaded { // it is dirty again when it is
		l.mu.Unlock()
		return nil
	}
	var err error
	var todo []*segment
	for _, s := range l.segments {
		if s.unsynced {
			s.unsynced = false
			todo = append(todo, s)
			err = errors.Join(err, l.flush(s))
		}
	}
	dir := l.dirChanged && !l.unmade
	if dir {
		l.dirChanged = false
	}
	if n := len(l.segments); n > 0 && err == nil {
		s := l.segments[n-1]
		// What is missing from the files is found again by a short walk; many logs with a little each must not cost two files more each time.
		if len(s.index)-s.saved >= unsavedEntries {
			err = l.saveIndex(s)
		}
		if err == nil {
			err = l.keepAborted(s)
		}
	}
	var snapshot []byte
	end, unsynced := l.end, l.unsyncedSnapshots
	if err == nil && l.producersLoaded && l.producers.hasChanged() {
		if err = l.makeDir(); err == nil {
			snapshot = l.producers.snapshot(end, l.undecided)
		}
	}
	l.unsyncedSnapshots = nil
	// Opened under the lock: a segment that is removed or replaced meanwhile must not be made again.
	files := make([]*handle, 0, len(todo))
	for _, s := range todo {
		if err == nil {
			var f *handle
			if f, err = l.m.files.acquire(s.logPath()); err == nil {
				files = append(files, f)
			}
		}
	}
	l.mu.Unlock()
	for _, f := range files {
		if err == nil {
			err = f.SyncData()
		}
		f.release()
	}
	if err == nil {
		err = l.syncSnapshots(unsynced, end, snapshot)
	}
	if err == nil && dir {
		err = vfs.SyncDir(l.m.o.FS, l.dir)
	}
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed // deleted meanwhile, with its folder
	}
	for _, s := range todo {
		s.unsynced = true
	}
	l.unsyncedSnapshots = append(unsynced[:len(unsynced):len(unsynced)], l.unsyncedSnapshots...)
	if snapshot != nil {
		l.producers.touch()
	}
	l.dirChanged = l.dirChanged || dir
	l.setDirty()
	return fmt.Errorf("sync log %s: %w", l.name, err)
}

// Delete closes the log and removes its folder.
func (l *Log) Delete() error {
	l.mu.Lock()
	for _, s := range l.segments {
		l.dropTail(s)
	}
	l.mu.Unlock()
	if err := l.Close(); err != nil {
		return err
	}
	if err := l.m.o.FS.RemoveAll(l.dir); err != nil && !vfs.NotExist(err) {
		return fmt.Errorf("delete log %s: %w", l.name, err)
	}
	l.m.notePresent(l.name, false)
	return vfs.SyncDir(l.m.o.FS, l.m.o.Dir)
}

// Close ends the use of the log; it does not sync.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	var err error
	for _, s := range l.segments {
		err = errors.Join(err, l.flush(s))
		l.dropTail(s)
		l.m.files.forget(s.logPath())
		l.m.files.forget(s.abortedPath())
	}
	if l.closing != nil {
		close(l.closing)
	}
	l.mu.Unlock()
	l.cleaning.Lock() // a pass that runs ends soon, and touches the folder no more
	defer l.cleaning.Unlock()
	l.snapshotting.Lock()
	defer l.snapshotting.Unlock()
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	delete(l.m.dirty, l)
	if l.m.logs[l.name] == l {
		delete(l.m.logs, l.name)
	}
	if err != nil {
		return fmt.Errorf("close log %s: %w", l.name, err)
	}
	return nil
}

package journal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/vfs"
)

// segment is one file. Files are slots: which segment of the stream a file holds stands in its header, so that putting a
// recycled one to use needs neither a rename nor a sync of the folder.
type segment struct {
	slot int
	path string
	file vfs.File
	size int64

	seq     uint64 // 0: free
	prevEnd uint64
	nextLSN LSN
	salt    uint64
	maxLSN  LSN // of the units that have bytes in it
}

const slotSuffix = ".journal"

func (j *Journal) slotPath(slot int) string {
	return j.o.FS.PathJoin(j.o.Dir, fmt.Sprintf("%06d%s", slot, slotSuffix))
}

// openFolder finds the checkpoint and sorts the segments into live and free ones.
func (j *Journal) openFolder() error {
	fs := j.o.FS
	if err := vfs.MkdirAll(fs, j.o.Dir); err != nil {
		return err
	}
	names, err := fs.List(j.o.Dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	ckptPath := fs.PathJoin(j.o.Dir, checkpointName)
	b, err := vfs.ReadFile(fs, ckptPath, 4096)
	fresh := vfs.NotExist(err)
	switch {
	case fresh:
		j.ckpt = checkpoint{lsn: 1, firstSeq: 1}
	case err != nil:
		return err
	default:
		if j.ckpt, err = decodeCheckpoint(ckptPath, b); err != nil {
			return err
		}
	}
	j.nextLSN, j.nextSeq = max(1, j.ckpt.lsn), max(1, j.ckpt.firstSeq)

	for _, name := range names {
		if strings.HasSuffix(name, ".tmp") {
			if err := fs.Remove(fs.PathJoin(j.o.Dir, name)); err != nil {
				return err
			}
			continue
		}
		slot, err := strconv.Atoi(strings.TrimSuffix(name, slotSuffix))
		if err != nil || !strings.HasSuffix(name, slotSuffix) {
			continue
		}
		if fresh {
			return &DamageError{File: ckptPath, Reason: "it is missing, but segments are there"}
		}
		j.nextSlot = max(j.nextSlot, slot+1)
		seg, ok, err := j.openSlot(slot)
		if err != nil {
			return err
		}
		switch {
		case ok && seg.seq >= j.ckpt.firstSeq:
			j.live = append(j.live, seg)
		case seg.size != j.o.SegmentBytes:
			// Of another size, or cut off while it was made.
			if err := j.discard(seg); err != nil {
				return err
			}
		default:
			j.makeFree(seg)
		}
	}
	slices.SortFunc(j.live, func(a, b *segment) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
	for i, seg := range j.live {
		if seg.seq != j.ckpt.firstSeq+uint64(i) {
			return &DamageError{File: j.o.Dir, Reason: fmt.Sprintf("segment number %d is missing", j.ckpt.firstSeq+uint64(i))}
		}
		j.nextSeq = seg.seq + 1
	}
	if n := j.ckpt.endSeq; n >= j.nextSeq {
		return &DamageError{File: j.o.Dir, Reason: fmt.Sprintf("segment number %d is missing", n)}
	}
	if fresh {
		return j.writeCheckpoint(j.ckpt)
	}
	return nil
}

func (j *Journal) makeFree(seg *segment) {
	seg.seq, seg.maxLSN = 0, 0
	j.free = append(j.free, seg)
}

func (j *Journal) openSlot(slot int) (seg *segment, ok bool, err error) {
	path := j.slotPath(slot)
	f, err := j.o.FS.OpenReadWrite(path, vfs.Unspecified)
	if err != nil {
		return nil, false, err
	}
	seg = &segment{slot: slot, path: path, file: f}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, false, err
	}
	seg.size = st.Size()
	if seg.size < segmentHeaderBytes {
		return seg, false, nil
	}
	b := make([]byte, segmentHeaderBytes)
	if _, err := f.ReadAt(b, 0); err != nil {
		f.Close()
		return nil, false, fmt.Errorf("read %s: %w", path, err)
	}
	h, ok, err := decodeSegmentHeader(path, b)
	if err != nil {
		f.Close()
		return nil, false, err
	}
	if ok {
		seg.seq, seg.prevEnd, seg.nextLSN, seg.salt = h.seq, h.prevEnd, h.nextLSN, h.salt
		if int64(h.bytes) != seg.size && h.seq >= j.ckpt.firstSeq {
			f.Close()
			return nil, false, &DamageError{File: path, Offset: seg.size, Reason: fmt.Sprintf("the file has %d bytes instead of %d", seg.size, h.bytes)}
		}
	}
	return seg, ok, nil
}

// takeSlot numbers the next file; mu is held (or the journal is not shared yet).
func (j *Journal) takeSlot() int {
	j.nextSlot++
	return j.nextSlot - 1
}

// allocate makes a segment full of zeros, durable with its place in the folder: writing into it later changes no metadata of
// the file system, which is most of what a sync costs.
func (j *Journal) allocate(slot int) (*segment, error) {
	fs, path := j.o.FS, j.slotPath(slot)
	tmp := path + ".tmp"
	f, err := fs.Create(tmp, vfs.Unspecified)
	if err != nil {
		return nil, err
	}
	err = func() error {
		zeros := make([]byte, min(j.o.SegmentBytes, 1<<20))
		for n := int64(0); n < j.o.SegmentBytes; {
			k := min(int64(len(zeros)), j.o.SegmentBytes-n)
			clear(zeros)
			if _, err := f.Write(zeros[:k]); err != nil {
				return err
			}
			n += k
		}
		return f.Sync()
	}()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fs.Rename(tmp, path)
	}
	if err == nil {
		err = vfs.SyncDir(fs, j.o.Dir)
	}
	if err != nil {
		// What was written takes room that is short; the error that is reported is the first one.
		_ = fs.Remove(tmp)
		return nil, err
	}
	if f, err = fs.OpenReadWrite(path, vfs.Unspecified); err != nil {
		return nil, err
	}
	return &segment{slot: slot, path: path, file: f, size: j.o.SegmentBytes}, nil
}

// discard removes the segment's file.
func (j *Journal) discard(seg *segment) error {
	err := seg.file.Close()
	if rerr := j.o.FS.Remove(seg.path); err == nil {
		err = rerr
	}
	return err
}

// runAllocator keeps spare segments ready.
func (j *Journal) runAllocator() {
	defer j.stopped.Done()
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		short := j.plannedSegs + j.o.SpareSegments - len(j.free)
		if j.closing || j.Err() != nil {
			return
		}
		if short <= 0 {
			j.alloc.Wait()
			continue
		}
		slot := j.takeSlot()
		j.mu.Unlock()
		seg, err := j.allocate(slot)
		j.mu.Lock()
		j.attempts++
		j.allocErr = err
		if err != nil {
			j.space.Broadcast()
			j.o.Logger.Warn("cannot allocate a journal segment", "dir", j.o.Dir, "error", err)
			if !j.closing && j.Err() == nil {
				j.alloc.Wait() // for the next who wants one
			}
			continue
		}
		j.free = append(j.free, seg)
		j.space.Broadcast()
	}
}

func (j *Journal) closeFiles() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, seg := range j.live {
		_ = seg.file.Close()
	}
	for _, seg := range j.free {
		_ = seg.file.Close()
	}
	j.live, j.free = nil, nil
}

func (j *Journal) writeCheckpoint(c checkpoint) error {
	return vfs.WriteFile(j.o.FS, j.o.Dir, checkpointName, c.encode())
}

// Checkpoint says that every unit before upTo is elsewhere on disk: remembers that durably, and recycles segments.
func (j *Journal) Checkpoint(upTo LSN) error {
	j.ckptMu.Lock()
	defer j.ckptMu.Unlock()
	if err := j.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	if upTo <= j.ckpt.lsn {
		j.mu.Unlock()
		return nil
	}
	if d := LSN(j.durable.Load()); upTo > d+1 {
		j.mu.Unlock()
		return fmt.Errorf("journal: checkpoint up to %d, but only %d is durable", upTo, d)
	}
	next := j.ckpt
	next.lsn = upTo
	keep := 0
	for keep < len(j.live)-1 && j.live[keep].maxLSN < upTo && !j.pinned(j.live[keep].seq) {
		keep++
	}
	if keep > 0 {
		next.firstSeq = j.live[keep].seq
	}
	j.mu.Unlock()

	if err := j.writeCheckpoint(next); err != nil {
		return fmt.Errorf("journal checkpoint: %w", err)
	}

	j.mu.Lock()
	j.ckpt = next
	var surplus []*segment
	for _, seg := range j.live[:keep] {
		if len(j.free) >= maxFree+j.o.SpareSegments || seg.size != j.o.SegmentBytes {
			surplus = append(surplus, seg)
			continue
		}
		j.makeFree(seg)
	}
	j.live = slices.Delete(j.live, 0, keep)
	j.space.Broadcast()
	j.mu.Unlock()
	for _, seg := range surplus {
		if err := j.discard(seg); err != nil {
			return fmt.Errorf("remove a surplus journal segment: %w", err)
		}
	}
	return nil
}

// Checkpointed is the LSN that the last checkpoint reached.
func (j *Journal) Checkpointed() LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ckpt.lsn
}

// pinned reports whether the segment holds fragments of a large unit that does not exist yet; mu is held.
func (j *Journal) pinned(seq uint64) bool {
	for id, p := range j.streams {
		if p.unit != nil && p.unit.aborted {
			delete(j.streams, id)
			continue
		}
		if p.firstSeq <= seq {
			return true
		}
	}
	return false
}

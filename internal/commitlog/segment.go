package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"sync"

	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// segment is one file of batches with its two indexes. All fields are guarded by the log's lock; who reads the file without it takes a view.
type segment struct {
	base int64
	path string // without the suffix
	size int64  // of whole batches
	// index and times are in memory when indexed; of a sealed segment they are read when first needed.
	index   []indexEntry
	times   []timeEntry
	indexed bool
	sinceIx int64 // bytes since the last index entry
	saved   int   // index entries that are in the file already
	savedTs int
	largest int64 // timestamp; valid when indexed
	first   int64 // largest timestamp of the first batch, when firstKnown
	// firstKnown: the segment has a first batch, and it was looked at.
	firstKnown bool
	// The bytes from..to were written by this process, or their checksums were verified.
	verifiedFrom, verifiedTo int64
	unsynced                 bool
	version                  int       // changes when the segment is removed or replaced, or its file gets another name
	pinned                   bool      // a pass of compaction reads it: it must stay
	swap                     *swapping // its file still has the name of step 2 in swap.go
	// tail is what comes behind the bytes in the file, within size; only the active segment has one. See tail.go.
	tail    []byte
	aborted abortedIndex
}

type indexEntry struct {
	rel uint32 // last offset of the batch, relative to base
	pos uint32 // where the batch begins
}

type timeEntry struct {
	ts  int64  // largest so far
	rel uint32 // offset of the batch's last record, relative to base
}

const (
	indexEntryLen = 8
	timeEntryLen  = 12
	scanBytes     = 256 << 10

	// unsavedEntries is how many entries the files of the active segment's indexes may lack: a quarter of a megabyte of batches by default.
	unsavedEntries = 64
)

// segmentName is the offset with 20 digits, as Kafka's.
func segmentName(base int64) string {
	const zeros = "00000000000000000000"
	digits := strconv.FormatInt(base, 10)
	return zeros[len(digits):] + digits
}

func (s *segment) logPath() string {
	if s.swap != nil {
		return s.path + ".log" + swapSuffix
	}
	return s.path + ".log"
}

func (s *segment) indexPath() string { return s.path + ".index" }
func (s *segment) timePath() string  { return s.path + ".timeindex" }

// note adds a batch at pos to the indexes.
func (s *segment) note(h *record.Header, pos int64, interval int) {
	rel := uint32(h.LastOffset() - s.base)
	s.largest = max(s.largest, h.MaxTimestamp)
	if len(s.index) == 0 || s.sinceIx+int64(h.Size()) > int64(interval) {
		s.index = append(s.index, indexEntry{rel: rel, pos: uint32(pos)})
		s.sinceIx = 0
		if n := len(s.times); n == 0 || s.largest > s.times[n-1].ts {
			s.times = append(s.times, timeEntry{ts: s.largest, rel: rel})
		}
	}
	s.sinceIx += int64(h.Size())
}

// expect is the offset that a batch at pos must have: known only of the first.
func (s *segment) expect(pos int64) int64 {
	if pos == 0 {
		return s.base
	}
	return -1
}

func (s *segment) forgetIndex() {
	s.index, s.times, s.indexed, s.sinceIx, s.saved, s.savedTs, s.largest = nil, nil, false, 0, 0, 0, math.MinInt64
}

var scanPool = sync.Pool{New: func() any { b := make([]byte, scanBytes); return &b }}

// scan walks the batches from pos to end, in order. With verify every checksum is checked. fn gets each header and where the
// batch begins, and stops the walk with false. next is where the walk ended; a CorruptError says that there is no batch.
// The first batch must have the offset expect, if that is not -1, and every other the one after the batch before it; offsets below holes
// may be missing.
func scan(f io.ReaderAt, path string, pos, expect, holes, end int64, verify bool, fn func(h *record.Header, pos int64) bool) (next int64, err error) {
	pooled := scanPool.Get().(*[]byte)
	defer scanPool.Put(pooled)
	buf := *pooled
	var from, have int64 // buf[:have] is the file from `from` on
	ahead := int64(8 << 10)
	damaged := func(reason string) error { return &CorruptError{File: path, Offset: pos, Reason: reason} }
	// window returns n bytes at pos.
	window := func(n int64) ([]byte, error) {
		if pos >= from && pos+n <= from+have {
			return buf[pos-from : pos-from+n], nil
		}
		if n > int64(len(buf)) {
			buf = make([]byte, n)
		}
		from, have = pos, min(int64(len(buf)), end-pos, max(n, ahead))
		ahead *= 2
		if _, err := f.ReadAt(buf[:have], pos); err != nil {
			have = 0
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		return buf[:n], nil
	}
	for pos < end {
		if end-pos < record.HeaderLen {
			return pos, damaged("a batch is cut off")
		}
		b, err := window(record.HeaderLen)
		if err != nil {
			return pos, err
		}
		h, err := record.ParseHeader(b)
		if err != nil {
			return pos, damaged(err.Error())
		}
		size := int64(h.Size())
		if size > end-pos {
			return pos, damaged(fmt.Sprintf("a batch of %d bytes is cut off after %d", size, end-pos))
		}
		if verify {
			if b, err = window(size); err != nil {
				return pos, err
			}
			if record.Checksum(b) != h.CRC {
				return pos, damaged("the checksum of the batch does not match")
			}
		}
		if expect >= 0 && h.BaseOffset != expect && (h.BaseOffset < expect || h.BaseOffset >= holes) {
			return pos, damaged(fmt.Sprintf("the batch says that its offset is %d, and it must be %d", h.BaseOffset, expect))
		}
		expect = h.NextOffset()
		if !fn(&h, pos) {
			return pos, nil
		}
		pos += size
	}
	return pos, nil
}

// readIndexFiles reads the index files as far as they speak of bytes that are there; false if they are not sane.
func (s *segment) readIndexFiles(fs vfs.FS, f io.ReaderAt) bool {
	if s.swap != nil { // they are of the segment that it replaces
		return false
	}
	be := binary.BigEndian
	ib, err := vfs.ReadFile(fs, s.indexPath(), 1<<28)
	if err != nil {
		return false
	}
	for ; len(ib) >= indexEntryLen; ib = ib[indexEntryLen:] {
		e := indexEntry{rel: be.Uint32(ib), pos: be.Uint32(ib[4:])}
		if int64(e.pos) >= s.size {
			break
		}
		if n := len(s.index); n > 0 && (e.pos <= s.index[n-1].pos || e.rel <= s.index[n-1].rel) {
			if e == (indexEntry{}) {
				break // zeros that Kafka allocates in advance, or that a crash left
			}
			return false
		}
		s.index = append(s.index, e)
	}
	if len(s.index) == 0 {
		return s.size == 0
	}
	// The last entry must lead to a batch that it speaks of; one in the middle is checked when it is used.
	if !s.leadsToBatch(f, s.index[len(s.index)-1]) {
		return false
	}
	lastRel := s.index[len(s.index)-1].rel
	tb, err := vfs.ReadFile(fs, s.timePath(), 1<<28)
	if err != nil || len(tb) < timeEntryLen {
		return false
	}
	for ; len(tb) >= timeEntryLen; tb = tb[timeEntryLen:] {
		e := timeEntry{ts: int64(be.Uint64(tb)), rel: be.Uint32(tb[8:])}
		if n := len(s.times); n > 0 && (e.ts <= s.times[n-1].ts || e.rel <= s.times[n-1].rel) {
			if e == (timeEntry{}) {
				break
			}
			return false
		}
		if e.rel > lastRel {
			break
		}
		s.times = append(s.times, e)
	}
	if len(s.times) == 0 {
		return false
	}
	// A crash may have kept more of the index than of the times. So what lies behind the last of these is walked: its timestamps did not grow, or their
	// entries are lost.
	last := s.times[len(s.times)-1]
	n := len(s.index)
	for n > 0 && s.index[n-1].rel > last.rel {
		n--
	}
	if n == 0 {
		return false
	}
	s.index = s.index[:n]
	s.largest = last.ts
	s.saved, s.savedTs = 0, 0 // written again as a whole, if ever
	return true
}

func (s *segment) leadsToBatch(f io.ReaderAt, e indexEntry) bool {
	var b [record.HeaderLen]byte
	if int64(e.pos)+record.HeaderLen > s.size {
		return false
	}
	if _, err := f.ReadAt(b[:], int64(e.pos)); err != nil {
		return false
	}
	h, err := record.ParseHeader(b[:])
	return err == nil && h.BaseOffset >= s.base && h.BaseOffset <= s.base+int64(e.rel) && int64(e.pos)+int64(h.Size()) <= s.size
}

// locate returns a position at or before the batch that has the offset; the index is in memory.
func (s *segment) locate(offset int64) int64 {
	rel := offset - s.base
	i := sort.Search(len(s.index), func(i int) bool { return int64(s.index[i].rel) > rel })
	if i == 0 {
		return 0
	}
	return int64(s.index[i-1].pos)
}

// locatePos returns the last indexed position <= pos.
func (s *segment) locatePos(pos int64) int64 {
	i := sort.Search(len(s.index), func(i int) bool { return int64(s.index[i].pos) > pos })
	if i == 0 {
		return 0
	}
	return int64(s.index[i-1].pos)
}

// saveIndex writes the entries that the files do not have. They are not synced: they can be built again.
func (l *Log) saveIndex(s *segment) error {
	if !s.indexed || (s.saved == len(s.index) && s.savedTs == len(s.times)) {
		return nil
	}
	var b []byte
	for _, e := range s.index[s.saved:] {
		b = binary.BigEndian.AppendUint32(b, e.rel)
		b = binary.BigEndian.AppendUint32(b, e.pos)
	}
	if err := l.writeAt(s.indexPath(), b, int64(s.saved)*indexEntryLen); err != nil {
		return err
	}
	b = b[:0]
	for _, e := range s.times[s.savedTs:] {
		b = binary.BigEndian.AppendUint64(b, uint64(e.ts))
		b = binary.BigEndian.AppendUint32(b, e.rel)
	}
	if err := l.writeAt(s.timePath(), b, int64(s.savedTs)*timeEntryLen); err != nil {
		return err
	}
	s.saved, s.savedTs = len(s.index), len(s.times)
	return nil
}

// writeAt writes and cuts what is behind, which would be of an older and longer index.
func (l *Log) writeAt(path string, b []byte, off int64) error {
	f, err := l.m.o.FS.OpenReadWrite(path, vfs.Unspecified)
	if err != nil {
		return err
	}
	end := off + int64(len(b))
	if st, serr := f.Stat(); serr == nil && st.Size() > end {
		err = vfs.Truncate(l.m.o.FS, path, f, off)
		if err == nil {
			err = f.Close()
			if err == nil {
				f, err = l.m.o.FS.OpenReadWrite(path, vfs.Unspecified)
			}
		}
	}
	if err == nil && len(b) > 0 {
		_, err = f.WriteAt(b, off)
	}
	return errors.Join(err, f.Close())
}

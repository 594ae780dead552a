package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sort"

	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// AbortedTransaction says that what the producer wrote with its transaction flag from First on, up to the marker at Last, is not to be seen by
// readers of committed records.
type AbortedTransaction struct {
	ProducerID  int64
	First, Last int64
	// Stable is the first offset of the oldest transaction that was open behind the marker, or the offset after the marker: a transaction whose
	// marker comes later begins at or behind it. 0: not known.
	Stable int64
}

// The .txnindex file of a segment is Kafka's: an entry for each abort marker of the segment, in their order, of int16 version 0, producer id,
// first offset, marker's offset, last stable offset. Behind the entries is a trailer, shorter than an entry, so that Kafka's readers stop
// before it: magic, the offset up to which the entries are complete, and the CRC32C of entries and these. So a file that is missing, torn or garbled is
// noticed, and is built again from the markers in the segment, each of which says where its transaction begins.
const (
	abortedEntryLen   = 2 + 4*8
	abortedTrailerLen = 4 + 8 + 4
	abortedMagic      = 0x4c545831 // "LTX1"
	// keptAborted is how many entries of the active segment are in memory only.
	keptAborted = 4096
	// abortedLag is how many bytes of a segment its file may be behind: what has to be walked when the log is opened.
	abortedLag = 1 << 20
	// controlBatchMax bounds what is read of a control batch.
	controlBatchMax = 4096
)

// abortedIndex is what is known of a segment's aborted transactions. All fields are guarded by the log's lock.
type abortedIndex struct {
	loaded  bool
	begun   bool  // all below covered is known; what is behind may be not
	limit   int64 // entries of the file from here on are from before the log was cut; 0: there was no cut
	saved   int   // entries in the file
	crc     uint32
	tail    []AbortedTransaction // behind those in the file
	covered int64                // all markers below it are known
	size    int64                // of the segment when the file was written
}

func (s *segment) abortedPath() string { return s.path + ".txnindex" }

func appendAborted(dst []byte, a *AbortedTransaction) []byte {
	be := binary.BigEndian
	dst = be.AppendUint16(dst, 0)
	dst = be.AppendUint64(dst, uint64(a.ProducerID))
	dst = be.AppendUint64(dst, uint64(a.First))
	dst = be.AppendUint64(dst, uint64(a.Last))
	return be.AppendUint64(dst, uint64(a.Stable))
}

// appendAbortedTrailer appends what stands behind entries with the checksum crc.
func appendAbortedTrailer(dst []byte, crc uint32, covered int64) []byte {
	from := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, abortedMagic)
	dst = binary.BigEndian.AppendUint64(dst, uint64(covered))
	return binary.BigEndian.AppendUint32(dst, crc32.Update(crc, castagnoli, dst[from:]))
}

func parseAborted(b []byte) AbortedTransaction {
	be := binary.BigEndian
	return AbortedTransaction{
		ProducerID: int64(be.Uint64(b[2:])), First: int64(be.Uint64(b[10:])), Last: int64(be.Uint64(b[18:])), Stable: int64(be.Uint64(b[26:])),
	}
}

// parseAbortedFile splits a file into its entries and the offset up to which they are complete.
func parseAbortedFile(b []byte) (entries []byte, covered int64, ok bool) {
	be := binary.BigEndian
	n := len(b) - abortedTrailerLen
	if n < 0 || n%abortedEntryLen != 0 || be.Uint32(b[n:]) != abortedMagic || be.Uint32(b[n+12:]) != crc32.Checksum(b[:n+12], castagnoli) {
		return nil, 0, false
	}
	return b[:n], int64(be.Uint64(b[n+4:])), true
}

// loadAborted has the segment's aborted transactions known; mu is held.
func (l *Log) loadAborted(s *segment) error {
	if s.aborted.loaded {
		return nil
	}
	return l.within(s, func(v *view) error {
		if err := v.loadAborted(); err != nil {
			return err
		}
		s.aborted = v.aborted
		return nil
	})
}

// loadAborted has the aborted transactions known: from their file as far as that is good, and from the markers behind. What is known of a part
// already is only added to.
func (v *view) loadAborted() error {
	x := &v.aborted
	if x.loaded {
		return nil
	}
	if !x.begun {
		if err := v.readAborted(); err != nil {
			return err
		}
	}
	if err := v.collectAborted(); err != nil {
		return err
	}
	x.loaded = true
	return nil
}

// readAborted reads the file.
func (v *view) readAborted() error {
	x := &v.aborted
	limit := x.limit
	*x = abortedIndex{limit: limit, covered: v.base, begun: true}
	if limit == 0 {
		limit = math.MaxInt64
	}
	if v.swap != nil { // the file is another segment's, or about to be replaced
		return nil
	}
	b, err := vfs.ReadFile(v.fs, v.abortedPath(), 1<<30)
	switch {
	case vfs.NotExist(err):
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", v.abortedPath(), err)
	}
	entries, covered, ok := parseAbortedFile(b)
	if !ok {
		v.log.Warn("an index of aborted transactions is damaged and is built again", "file", v.abortedPath())
		return nil
	}
	for len(entries) > 0 && parseAborted(entries[len(entries)-abortedEntryLen:]).Last >= limit {
		entries = entries[:len(entries)-abortedEntryLen]
	}
	x.saved, x.crc = len(entries)/abortedEntryLen, crc32.Checksum(entries, castagnoli)
	x.covered = max(v.base, min(covered, limit))
	return nil
}

// collectAborted walks the batches from where the index ends, and takes the abort markers in.
func (v *view) collectAborted() error {
	x := &v.aborted
	if x.covered >= v.end || v.size == 0 {
		x.covered = max(x.covered, v.end)
		return nil
	}
	var buf [controlBatchMax]byte
	var inner error
	err := v.walkFrom(x.covered, func(h *record.Header, pos int64) bool {
		if !h.Control() || h.ProducerID < 0 || h.BaseOffset < x.covered || h.Count == 0 || h.Size() > len(buf) {
			return true
		}
		b := buf[:h.Size()]
		if _, inner = v.f.ReadAt(b, pos); inner != nil {
			return false
		}
		m, ok, err := record.ParseEndMarker(b)
		if err != nil {
			inner = &CorruptError{File: v.file, Offset: pos, Reason: err.Error()}
			return false
		}
		if ok && !m.Commit && m.First >= 0 && m.First < h.BaseOffset {
			x.tail = append(x.tail, AbortedTransaction{ProducerID: h.ProducerID, First: m.First, Last: h.LastOffset()})
		}
		return true
	})
	if err == nil {
		err = inner
	}
	if err != nil {
		return err
	}
	x.covered = v.end
	return nil
}

// saveAborted writes what the file does not have. It is not synced: it can be built again.
func (l *Log) saveAborted(s *segment) error {
	x := &s.aborted
	if !x.loaded || len(x.tail) == 0 && s.size-x.size <= abortedLag {
		return nil
	}
	b := make([]byte, 0, len(x.tail)*abortedEntryLen+abortedTrailerLen)
	for i := range x.tail {
		b = appendAborted(b, &x.tail[i])
	}
	crc := crc32.Update(x.crc, castagnoli, b)
	b = appendAbortedTrailer(b, crc, x.covered)
	if err := l.writeAt(s.abortedPath(), b, int64(x.saved)*abortedEntryLen); err != nil {
		return err
	}
	x.saved, x.crc, x.size = x.saved+len(x.tail), crc, s.size
	x.tail = nil // somebody may be looking at it
	l.m.files.forget(s.abortedPath())
	return nil
}

// keepAborted has the segment's file nearly as far as the segment. Damage in the segment is none of its business: who reads there meets it.
func (l *Log) keepAborted(s *segment) error {
	if err := l.loadAborted(s); err != nil {
		if errors.Is(err, ErrCorrupt) {
			return nil
		}
		return err
	}
	return l.saveAborted(s)
}

// abortedView is the index of a segment's aborted transactions as it was at one instant, to be read without the log's lock: saved entries and those
// of the tail do not change.
type abortedView struct {
	abortedIndex
	f *handle // with the saved entries; nil if there are none
}

func (x *abortedView) release() {
	if x.f != nil {
		x.f.release()
		x.f = nil
	}
}

// find appends the segment's aborted transactions that have records in [from, to). done says that no later segment can have some.
func (x *abortedView) find(from, to int64, dst []AbortedTransaction) (out []AbortedTransaction, done bool, err error) {
	take := func(a *AbortedTransaction) bool {
		if a.Last >= from && a.First < to {
			dst = append(dst, *a)
		}
		return a.Stable >= to
	}
	if x.saved > 0 {
		if done, err = x.findSaved(from, take); done || err != nil {
			return dst, done, err
		}
	}
	for i := range x.tail {
		if take(&x.tail[i]) {
			return dst, true, nil
		}
	}
	return dst, false, nil
}

// findSaved gives the entries of the file whose markers are at or behind from, until take says that it is enough.
func (x *abortedView) findSaved(from int64, take func(*AbortedTransaction) bool) (done bool, err error) {
	var one [abortedEntryLen]byte
	at := func(i int) (a AbortedTransaction) {
		if _, rerr := x.f.ReadAt(one[:], int64(i)*abortedEntryLen); rerr != nil && err == nil {
			err = fmt.Errorf("read %s: %w", x.f.path, rerr)
		}
		return parseAborted(one[:])
	}
	i := sort.Search(x.saved, func(i int) bool { return at(i).Last >= from })
	var many [64 * abortedEntryLen]byte
	for err == nil && i < x.saved {
		n := min(64, x.saved-i)
		b := many[:n*abortedEntryLen]
		if _, rerr := x.f.ReadAt(b, int64(i)*abortedEntryLen); rerr != nil && rerr != io.EOF {
			return false, fmt.Errorf("read %s: %w", x.f.path, rerr)
		}
		for ; len(b) > 0; b = b[abortedEntryLen:] {
			a := parseAborted(b)
			if take(&a) {
				return true, nil
			}
		}
		i += n
	}
	return false, err
}

package journal

import (
	"errors"
	"fmt"
)

// pendingUnit is a large unit whose last fragment has not been met yet.
type pendingUnit struct {
	body  []byte
	parts int
}

// Recover calls apply for every entry of all units since the last checkpoint, in order; then the journal takes commits. last is
// the LSN of the last unit there is, 0 if there was none since the checkpoint.
func (j *Journal) Recover(apply ApplyFunc) (last LSN, err error) {
	if j.recovered {
		return 0, errors.New("journal: Recover twice")
	}
	if n := len(j.live); n > 0 {
		// After kill -9 the tail is read from the page cache: it becomes durable before anything builds on it.
		if err := j.live[n-1].file.SyncData(); err != nil {
			return 0, fmt.Errorf("recover journal: sync %s: %w", j.live[n-1].path, err)
		}
	}
	r := recovery{j: j, apply: apply, streams: map[uint32]*pendingUnit{}}
	for i := range j.live {
		if err := r.readSegment(i); err != nil {
			return 0, fmt.Errorf("recover journal: %w", err)
		}
	}
	if n := len(j.live); n > 0 {
		j.nextLSN = max(j.nextLSN, j.live[n-1].nextLSN)
		j.w.off = r.end
		j.w.syncedOff = r.end
		j.w.rollNext = true
	}
	j.nextLSN = max(j.nextLSN, r.next)
	j.nextStream = r.maxStream + 1
	// Never append to a segment of an earlier process: the first fragment rolls.
	j.plannedOff = j.o.SegmentBytes
	j.ordered = max(r.last, j.nextLSN-1)
	j.durable.Store(uint64(j.ordered))
	j.recovered = true
	return r.last, nil
}

type recovery struct {
	j         *Journal
	apply     ApplyFunc
	buf       []byte
	streams   map[uint32]*pendingUnit
	maxStream uint32
	last      LSN
	next      LSN
	end       int64
	entries   []entry
}

func (r *recovery) readSegment(i int) error {
	j := r.j
	seg := j.live[i]
	if int64(cap(r.buf)) < seg.size {
		r.buf = make([]byte, seg.size)
	}
	b := r.buf[:seg.size]
	if _, err := seg.file.ReadAt(b, 0); err != nil {
		return fmt.Errorf("read %s: %w", seg.path, err)
	}
	// Up to here the bytes are known to have been durable.
	var known int64
	tail := i == len(j.live)-1
	if !tail {
		known = int64(j.live[i+1].prevEnd)
	}
	if j.ckpt.endSeq == seg.seq {
		known = max(known, int64(j.ckpt.endOff))
	}
	off := int64(segmentHeaderBytes)
	for tail || off < known {
		f, payload, ok := parseFragment(b, seg.salt, off)
		if !ok {
			break
		}
		if err := r.take(seg, off, f, payload); err != nil {
			return err
		}
		off += int64(fragmentSize(f.length))
	}
	r.end = off
	if off < known {
		return &DamageError{File: seg.path, Offset: off, Reason: "the bytes there are no fragment"}
	}
	if !tail {
		if off > known {
			return &DamageError{File: seg.path, Offset: off, Reason: fmt.Sprintf("a fragment reaches beyond the segment's end at %d", known)}
		}
		return nil
	}
	return r.checkTail(seg, b, off)
}

// checkTail looks behind the end of the last segment for a fragment that was written when the end was already durable. One of
// the same group, which was not synced, may well be there without those before it: that group is torn, and absent.
func (r *recovery) checkTail(seg *segment, b []byte, end int64) error {
	for off := end + 8; off+fragmentHeaderBytes <= int64(len(b)); off += 8 {
		if le.Uint32(b[off:]) != fragmentMagic {
			continue
		}
		f, _, ok := parseFragment(b, seg.salt, off)
		if ok && int64(f.synced) > end {
			return &DamageError{File: seg.path, Offset: end, Reason: fmt.Sprintf("the bytes there are no fragment, but one at %d follows", off)}
		}
	}
	return nil
}

// take handles one fragment.
func (r *recovery) take(seg *segment, off int64, f fragment, payload []byte) error {
	j := r.j
	damaged := func(reason string) error {
		return &DamageError{File: seg.path, Offset: off, Reason: reason}
	}
	r.maxStream = max(r.maxStream, f.stream)
	if f.typ == typeBody {
		p := r.streams[f.stream]
		if p == nil {
			p = &pendingUnit{}
			r.streams[f.stream] = p
		}
		if len(p.body)+len(payload) > maxUnitBytes {
			return damaged("a unit grows beyond any bound")
		}
		p.body = append(p.body, payload...)
		p.parts++
		return nil
	}
	if f.lsn <= r.last {
		return damaged(fmt.Sprintf("unit %d follows unit %d", f.lsn, r.last))
	}
	seg.maxLSN = f.lsn
	if f.lsn < j.ckpt.lsn {
		// Its first fragments may be gone.
		r.last = f.lsn
		delete(r.streams, f.stream)
		return nil
	}
	var body []byte
	whole := f.typ == typeWhole
	if !whole {
		if p := r.streams[f.stream]; p != nil {
			body = p.body
			delete(r.streams, f.stream)
			// Its first fragments may be in any of the segments before.
			for _, s := range j.live {
				if s.seq <= seg.seq {
					s.maxLSN = max(s.maxLSN, f.lsn)
				}
			}
		}
	}
	r.entries = r.entries[:0]
	logical := 0
	for len(payload) > 0 {
		if len(payload) < entryHeaderBytes {
			return damaged("an entry is cut off")
		}
		kind, n := Kind(payload[0]), int(le.Uint32(payload[1:]))
		payload = payload[entryHeaderBytes:]
		inline := n
		if !whole {
			inline = min(n, HeadLen)
		}
		if inline > len(payload) || n-inline > len(body) {
			return damaged("an entry is longer than its unit")
		}
		p := payload[:inline:inline]
		if n > inline {
			p = append(append(make([]byte, 0, n), p...), body[:n-inline]...)
			body = body[n-inline:]
		}
		payload = payload[inline:]
		r.entries = append(r.entries, entry{kind: kind, payload: p})
		logical += entryHeaderBytes + n
	}
	if len(body) > 0 {
		return damaged("a unit has more bytes than its entries")
	}
	r.last = f.lsn
	r.next = f.lsn + LSN(max(1, logical))
	for i := range r.entries {
		e := &r.entries[i]
		if err := r.apply(f.lsn, e.kind, e.payload); err != nil {
			return fmt.Errorf("apply unit %d of %s: %w", f.lsn, seg.path, err)
		}
	}
	return nil
}

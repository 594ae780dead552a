package journal

import (
	"math/rand/v2"
	"time"
)

// writer is the state of the one who writes: a goroutine, or the caller of Step.
type writer struct {
	apply ApplyFunc
	phase phase
	group []item
	buf   []byte // fragments on their way to the active segment
	at    int64  // where buf goes
	off   int64  // end of what is written to the active segment, buf included
	// syncedOff is up to where the active segment is durable.
	syncedOff int64
	rollNext  bool // the active segment is of an earlier process
	stat      Group

	syncNow chan struct{}
	synced  chan error
}

type phase uint8

const (
	phaseWrite phase = iota
	phaseBatches
	phaseSync
	phaseRest
)

// writeBufferBytes is what goes to the file system at once, unless a fragment is larger: small enough to stay in a core's cache between the copy into it and the
// kernel's out of it.
const writeBufferBytes = 256 << 10

// keepBufferBytes is how large a buffer is kept for the next group: only the last fragment of a unit with very many entries takes more.
const keepBufferBytes = 4 << 20

func (j *Journal) runWriter() {
	defer j.stopped.Done()
	defer close(j.w.syncNow)
	for {
		j.mu.Lock()
		for len(j.queue) == 0 && !j.closing && j.Err() == nil {
			j.work.Wait()
		}
		stop := j.Err() != nil || len(j.queue) == 0
		j.mu.Unlock()
		if stop {
			return
		}
		j.takeGroup()
		if err := j.writeGroup(); err != nil {
			j.fail(err)
			return
		}
		start := time.Now()
		j.w.syncNow <- struct{}{}
		applied := j.applyGroup(true)
		err := <-j.w.synced
		j.w.stat.Sync = time.Since(start)
		if err == nil {
			err = applied
		}
		if err == nil {
			start = time.Now()
			err = j.applyGroup(false)
			j.w.stat.Apply = time.Since(start)
		}
		if err != nil {
			j.fail(err)
			return
		}
		j.publish()
	}
}

// runSyncer syncs while the writer applies.
func (j *Journal) runSyncer() {
	defer j.stopped.Done()
	for range j.w.syncNow {
		j.w.synced <- j.sync()
	}
}

// Step does the next phase of the writer's work on the caller's goroutine: write a group; apply its batches; sync it; apply
// the rest and announce it. It returns false when there is nothing to do. Not to be mixed with Start.
func (j *Journal) Step() bool {
	if j.Err() != nil || j.started {
		return false
	}
	var err error
	switch j.w.phase {
	case phaseWrite:
		j.takeGroup()
		if len(j.w.group) == 0 {
			return false
		}
		err = j.writeGroup()
	case phaseBatches:
		err = j.applyGroup(true)
	case phaseSync:
		err = j.sync()
	case phaseRest:
		if err = j.applyGroup(false); err == nil {
			j.publish()
		}
	}
	if err != nil {
		j.fail(err)
		return false
	}
	j.w.phase = (j.w.phase + 1) % 4
	return true
}

// takeGroup takes what is queued, up to a bound.
func (j *Journal) takeGroup() {
	w := &j.w
	j.mu.Lock()
	defer j.mu.Unlock()
	n, bytes := 0, 0
	for n < len(j.queue) && (n == 0 || bytes+j.queue[n].size <= maxGroupBytes) {
		bytes += j.queue[n].size
		n++
	}
	w.stat = Group{Bytes: bytes}
	if n == len(j.queue) {
		w.group, j.queue = j.queue, w.group[:0]
		return
	}
	w.group = append(w.group[:0], j.queue[:n]...)
	k := copy(j.queue, j.queue[n:])
	clear(j.queue[k:])
	j.queue = j.queue[:k]
}

func (j *Journal) writeGroup() error {
	w := &j.w
	start := time.Now()
	for i := range w.group {
		it := &w.group[i]
		if w.off == 0 || w.rollNext || w.off+int64(it.size) > j.o.SegmentBytes {
			if err := j.roll(); err != nil {
				return err
			}
		}
		if len(w.buf) > 0 && len(w.buf)+it.size > writeBufferBytes {
			if err := j.flush(); err != nil {
				return err
			}
		}
		j.writeItem(it)
	}
	err := j.flush()
	w.stat.Write = time.Since(start)
	return err
}

// active is the segment being written. Only the writer changes which one that is.
func (j *Journal) active() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.live[len(j.live)-1]
}

// writeItem puts the item's fragment into the buffer.
func (j *Journal) writeItem(it *item) {
	w := &j.w
	from := len(w.buf)
	var zeros [fragmentHeaderBytes]byte
	b := append(w.buf, zeros[:]...)
	switch it.typ {
	case typeWhole:
		for i := range it.u.entries {
			e := &it.u.entries[i]
			b = append(b, byte(e.kind), 0, 0, 0, 0)
			le.PutUint32(b[len(b)-4:], uint32(len(e.payload)))
			b = append(b, e.payload...)
		}
	case typeFinal:
		for i := range it.u.entries {
			e := &it.u.entries[i]
			b = append(b, byte(e.kind), 0, 0, 0, 0)
			le.PutUint32(b[len(b)-4:], uint32(len(e.payload)))
			b = append(b, e.payload[:min(len(e.payload), HeadLen)]...)
		}
	case typeBody:
		b = it.u.appendBody(b, it.from, it.to)
	}
	j.mu.Lock()
	seg := j.live[len(j.live)-1]
	switch it.typ {
	case typeWhole:
		seg.maxLSN = it.lsn
	case typeBody:
		if _, ok := j.streams[it.u.stream]; !ok {
			j.streams[it.u.stream] = streamPin{unit: it.u, firstSeq: seg.seq}
		}
	case typeFinal:
		first := seg.seq
		if p, ok := j.streams[it.u.stream]; ok {
			first = p.firstSeq
			delete(j.streams, it.u.stream)
		}
		for _, s := range j.live {
			if s.seq >= first {
				s.maxLSN = max(s.maxLSN, it.lsn)
			}
		}
	}
	j.mu.Unlock()
	f := fragment{typ: it.typ, lsn: it.lsn, synced: uint32(w.syncedOff), stream: it.u.stream}
	f.seal(b[from:], seg.salt, w.off)
	for len(b)-from < it.size {
		b = append(b, 0)
	}
	w.buf = b
	w.off += int64(it.size)
}

// appendBody appends bytes from..to of the unit's payloads beyond their heads.
func (u *Unit) appendBody(dst []byte, from, to int) []byte {
	at := 0
	for i := range u.entries {
		p := u.entries[i].payload
		if len(p) <= HeadLen {
			continue
		}
		p = p[HeadLen:]
		if at+len(p) > from {
			lo := max(0, from-at)
			hi := min(len(p), to-at)
			dst = append(dst, p[lo:hi]...)
		}
		at += len(p)
		if at >= to {
			break
		}
	}
	return dst
}

// flush hands the buffer to the file system.
func (j *Journal) flush() error {
	w := &j.w
	if len(w.buf) == 0 {
		return nil
	}
	if _, err := j.active().file.WriteAt(w.buf, w.at); err != nil {
		return err
	}
	w.at += int64(len(w.buf))
	w.buf = w.buf[:0]
	if cap(w.buf) > keepBufferBytes {
		w.buf = nil
	}
	return nil
}

// roll takes a free segment. The old one is durable before the header of the new one says where it ends.
func (j *Journal) roll() error {
	w := &j.w
	if err := j.flush(); err != nil {
		return err
	}
	if w.off > 0 {
		if err := j.sync(); err != nil {
			return err
		}
	}
	j.mu.Lock()
	seg := j.free[0]
	j.free = append(j.free[:0], j.free[1:]...)
	j.plannedSegs--
	seg.seq, seg.prevEnd, seg.maxLSN, seg.salt = j.nextSeq, uint64(w.off), 0, rand.Uint64()
	j.nextSeq++
	j.live = append(j.live, seg)
	h := segmentHeader{seq: seg.seq, bytes: uint64(seg.size), prevEnd: seg.prevEnd, nextLSN: j.nextLSN, salt: seg.salt}
	if j.started {
		j.alloc.Signal()
	}
	j.mu.Unlock()
	w.buf = append(w.buf, make([]byte, segmentHeaderBytes)...)
	h.encode(w.buf)
	w.at, w.off, w.syncedOff, w.rollNext = 0, segmentHeaderBytes, 0, false
	return nil
}

func (j *Journal) sync() error {
	if err := j.active().file.SyncData(); err != nil {
		return err
	}
	j.w.syncedOff = j.w.off
	return nil
}

// applyGroup hands out the entries of the group's units: the record batches, or all others.
func (j *Journal) applyGroup(batches bool) error {
	apply := j.w.apply
	if apply == nil {
		return nil
	}
	for i := range j.w.group {
		it := &j.w.group[i]
		if it.typ == typeBody {
			continue
		}
		for k := range it.u.entries {
			e := &it.u.entries[k]
			if (e.kind == KindBatch) != batches {
				continue
			}
			if err := apply(it.lsn, e.kind, e.payload); err != nil {
				return err
			}
		}
	}
	return nil
}

// publish announces that the group is durable and applied.
func (j *Journal) publish() {
	w := &j.w
	last := LSN(0)
	for i := range w.group {
		it := &w.group[i]
		if it.typ == typeBody {
			continue
		}
		last = it.lsn
		w.stat.Units++
	}
	j.units.Add(int64(w.stat.Units))
	j.groups.Add(1)
	j.bytes.Add(int64(w.stat.Bytes))
	if last > 0 {
		j.durable.Store(uint64(last))
		for _, fn := range j.onDurable {
			fn(last)
		}
	}
	for i := range w.group {
		if w.group[i].typ != typeBody {
			w.group[i].u.Free()
		}
	}
	clear(w.group)
	w.group = w.group[:0]
	j.mu.Lock()
	j.queuedBytes -= int64(w.stat.Bytes)
	j.queuedUnits -= int64(w.stat.Units)
	j.space.Broadcast()
	j.mu.Unlock()
	if last > 0 {
		j.waiters.wake(last)
	}
	if j.o.Observe != nil {
		j.o.Observe(w.stat)
	}
}

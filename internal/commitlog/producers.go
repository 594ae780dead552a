package commitlog

import (
	"encoding/binary"
	"hash/crc32"
	"sync"

	"github.com/leat-io/leat/internal/record"
)

// Outcome is what Producers.Check decided.
type Outcome uint8

const (
	// Accept: the batch is next, or from a producer that is not known.
	Accept Outcome = iota
	// Duplicate of one of the producer's last batches: answer with its offset.
	Duplicate
	// OutOfOrderSequence is the protocol's OUT_OF_ORDER_SEQUENCE_NUMBER: a batch before it is missing.
	OutOfOrderSequence
	// InvalidEpoch is INVALID_PRODUCER_EPOCH: a newer instance of the producer has written.
	InvalidEpoch
	// DuplicateSequence is DUPLICATE_SEQUENCE_NUMBER: older than the batches that are remembered.
	DuplicateSequence
)

// keptBatches is how many batches of a producer are remembered: as many as a client may have in flight.
const keptBatches = 5

// Producers is the state of the idempotent producers of a partition. The broker calls Check and then Update under the
// journal's ordering lock; Append calls Update too, which changes nothing the second time.
type Producers struct {
	mu      sync.Mutex
	byID    map[int64]*producer
	changed bool // since the last snapshot
}

type producer struct {
	epoch   int16
	batches [keptBatches]producedBatch // the oldest first
	n       int
}

type producedBatch struct {
	firstSeq, lastSeq int32
	base, last        int64
	timestamp         int64
}

func (p *producer) newest() *producedBatch { return &p.batches[p.n-1] }

// Check decides on a batch by its header; base is the offset of the duplicate. It changes nothing.
func (ps *Producers) Check(h *record.Header) (o Outcome, base int64) {
	if h.ProducerID < 0 || h.Control() {
		return Accept, 0
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.byID[h.ProducerID]
	if p == nil || p.n == 0 {
		return Accept, 0
	}
	first, last := h.BaseSequence, h.LastSequence()
	switch {
	case h.ProducerEpoch < p.epoch:
		return InvalidEpoch, 0
	case h.ProducerEpoch > p.epoch:
		if first != 0 {
			return OutOfOrderSequence, 0
		}
		return Accept, 0
	}
	for i := range p.n {
		if b := &p.batches[i]; b.firstSeq == first && b.lastSeq == last {
			return Duplicate, b.base
		}
	}
	if first == record.AddSequence(p.newest().lastSeq, 1) {
		return Accept, 0
	}
	// Sequences wrap: what lies within half the range behind is old, the rest is a gap.
	if behind := (int64(p.newest().lastSeq) - int64(last)) & 0x7fffffff; behind < 1<<30 {
		return DuplicateSequence, 0
	}
	return OutOfOrderSequence, 0
}

// Update records that the batch, with its BaseOffset set, is in the order.
func (ps *Producers) Update(h *record.Header) {
	if h.ProducerID < 0 || h.Control() {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.update(h.ProducerID, h.ProducerEpoch, producedBatch{
		firstSeq: h.BaseSequence, lastSeq: h.LastSequence(), base: h.BaseOffset, last: h.LastOffset(), timestamp: h.MaxTimestamp,
	})
}

func (ps *Producers) update(id int64, epoch int16, b producedBatch) {
	p := ps.byID[id]
	if p == nil {
		p = &producer{epoch: epoch}
		if ps.byID == nil {
			ps.byID = map[int64]*producer{}
		}
		ps.byID[id] = p
	}
	if p.n > 0 && b.last <= p.newest().last {
		return
	}
	ps.changed = true
	if epoch != p.epoch {
		p.epoch, p.n = epoch, 0
	}
	if p.n == keptBatches {
		copy(p.batches[:], p.batches[1:])
		p.n--
	}
	p.batches[p.n] = b
	p.n++
}

// Expire forgets the producers whose last batch is older than the time in milliseconds.
func (ps *Producers) Expire(before int64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for id, p := range ps.byID {
		if p.n > 0 && p.newest().timestamp < before {
			delete(ps.byID, id)
			ps.changed = true
		}
	}
}

func (ps *Producers) hasChanged() bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.changed
}

// Len is the number of producers that are remembered.
func (ps *Producers) Len() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return len(ps.byID)
}

// The snapshot file is Kafka's: int16 version, uint32 CRC32C of what follows, int32 count, then entries. A producer has one entry
// for each batch that is remembered, the oldest first, so that a reader that keeps one a producer keeps the newest.
const (
	snapshotVersion  = 1
	snapshotHead     = 2 + 4 + 4
	snapshotEntryLen = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8
)

// snapshot encodes what lies before end: batches behind it are in the order, but not in the file.
func (ps *Producers) snapshot(end int64) []byte {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	be := binary.BigEndian
	b := make([]byte, snapshotHead)
	n := uint32(0)
	for id, p := range ps.byID {
		for i := range p.n {
			x := &p.batches[i]
			if x.last >= end {
				continue
			}
			n++
			b = be.AppendUint64(b, uint64(id))
			b = be.AppendUint16(b, uint16(p.epoch))
			b = be.AppendUint32(b, uint32(x.lastSeq))
			b = be.AppendUint64(b, uint64(x.last))
			b = be.AppendUint32(b, uint32(x.last-x.base))
			b = be.AppendUint64(b, uint64(x.timestamp))
			b = be.AppendUint32(b, 0xffffffff)         // coordinator epoch: none
			b = be.AppendUint64(b, 0xffffffffffffffff) // first offset of a transaction: none
		}
	}
	be.PutUint16(b, snapshotVersion)
	be.PutUint32(b[6:], n)
	be.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	ps.changed = false
	return b
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// load reads a snapshot; false if it is not a whole one.
func (ps *Producers) load(b []byte) bool {
	be := binary.BigEndian
	if len(b) < snapshotHead || be.Uint16(b) != snapshotVersion || be.Uint32(b[2:]) != crc32.Checksum(b[6:], castagnoli) ||
		int64(be.Uint32(b[6:]))*snapshotEntryLen != int64(len(b)-snapshotHead) {
		return false
	}
	for e := b[snapshotHead:]; len(e) > 0; e = e[snapshotEntryLen:] {
		delta := int32(be.Uint32(e[22:]))
		last := int64(be.Uint64(e[14:]))
		lastSeq := int32(be.Uint32(e[10:]))
		if last < 0 || delta < 0 || int64(delta) > last {
			continue
		}
		ps.update(int64(be.Uint64(e)), int16(be.Uint16(e[8:])), producedBatch{
			firstSeq: record.AddSequence(lastSeq, -delta), lastSeq: lastSeq, base: last - int64(delta), last: last, timestamp: int64(be.Uint64(e[26:])),
		})
	}
	ps.changed = false
	return true
}

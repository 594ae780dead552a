package commitlog

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"
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
	// InTransaction is INVALID_TXN_STATE: the producer has a transaction open here, and the batch is not part of it.
	InTransaction
)

// keptBatches is how many batches of a producer are remembered: as many as a client may have in flight.
const keptBatches = 5

// maxProducers bounds the producers of a partition that are remembered; beyond it those that have been quiet for longest are forgotten.
const maxProducers = 20_000

// Producers is the state of the idempotent and transactional producers of a partition. The broker calls Check and then Update under the
// journal's ordering lock; Append calls Update too, which changes nothing the second time. So it is that of the order of everything, ahead of
// the files; what of it lies in the files is picked by offset.
type Producers struct {
	mu      sync.Mutex
	byID    map[int64]*producer
	max     int  // 0: maxProducers
	changed bool // since the last snapshot
}

type producer struct {
	epoch   int16 // of its newest batch or marker: older ones are refused
	epochAt int64 // where that epoch began
	seen    int64 // last offset of its newest batch or marker
	open    int64 // first offset of the transaction that is open in the order; -1: none
	touched int64 // milliseconds of the clock at the newest batch or marker: what expiry goes by
	coord   int32 // coordinator epoch of the newest marker; -1: none

	batches [keptBatches]producedBatch // the oldest first
	n       int
}

type producedBatch struct {
	epoch             int16
	firstSeq, lastSeq int32
	base, last        int64
	timestamp         int64
}

// newest is the newest batch of the current epoch, nil if there is none.
func (p *producer) newest() *producedBatch {
	if p.n == 0 || p.batches[p.n-1].epoch != p.epoch {
		return nil
	}
	return &p.batches[p.n-1]
}

// Check decides on a batch by its header; base is the offset of the duplicate. It changes nothing.
func (ps *Producers) Check(h *record.Header) (o Outcome, base int64) {
	if h.ProducerID < 0 || h.Control() {
		return Accept, 0
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.byID[h.ProducerID]
	if p == nil {
		return Accept, 0
	}
	first, last := h.BaseSequence, h.LastSequence()
	newest := p.newest()
	switch {
	case h.ProducerEpoch < p.epoch:
		return InvalidEpoch, 0
	case h.ProducerEpoch > p.epoch, newest == nil:
		if first != 0 && (h.ProducerEpoch > p.epoch || p.n > 0) {
			return OutOfOrderSequence, 0
		}
	default:
		for i := range p.n {
			if b := &p.batches[i]; b.epoch == p.epoch && b.firstSeq == first && b.lastSeq == last {
				return Duplicate, b.base
			}
		}
		if first != record.AddSequence(newest.lastSeq, 1) {
			// Sequences wrap: what lies within half the range behind is old, the rest is a gap.
			if behind := (int64(newest.lastSeq) - int64(last)) & 0x7fffffff; behind < 1<<30 {
				return DuplicateSequence, 0
			}
			return OutOfOrderSequence, 0
		}
	}
	if p.open >= 0 && !h.Transactional() {
		return InTransaction, 0
	}
	return Accept, 0
}

// Update records that the batch, with its BaseOffset set, is in the order; now is in milliseconds.
func (ps *Producers) Update(h *record.Header, now int64) {
	if h.ProducerID < 0 {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.byID[h.ProducerID]
	if p != nil && h.LastOffset() <= p.seen {
		return
	}
	p = ps.producer(h.ProducerID, now)
	ps.changed = true
	p.seen, p.touched = h.LastOffset(), now
	if h.ProducerEpoch > p.epoch {
		p.epoch, p.epochAt = h.ProducerEpoch, h.BaseOffset
	}
	switch {
	case h.Control():
		p.open = -1
	default:
		p.add(producedBatch{
			epoch: h.ProducerEpoch, firstSeq: h.BaseSequence, lastSeq: h.LastSequence(), base: h.BaseOffset, last: h.LastOffset(), timestamp: h.MaxTimestamp,
		})
		if h.Transactional() && p.open < 0 {
			p.open = h.BaseOffset
		}
	}
}

// producer returns the state of a producer, which is made if need be.
func (ps *Producers) producer(id, now int64) *producer {
	p := ps.byID[id]
	if p == nil {
		if ps.byID == nil {
			ps.byID = map[int64]*producer{}
		}
		ps.makeRoom()
		p = &producer{epoch: -1, seen: -1, open: -1, coord: -1, touched: now}
		ps.byID[id] = p
	}
	return p
}

func (p *producer) add(b producedBatch) {
	if p.n == keptBatches {
		copy(p.batches[:], p.batches[1:])
		p.n--
	}
	p.batches[p.n] = b
	p.n++
}

// makeRoom forgets the quietest producers when there are too many. It takes a tenth at once, so that the search is rare.
func (ps *Producers) makeRoom() {
	most := ps.max
	if most == 0 {
		most = maxProducers
	}
	if len(ps.byID) < most {
		return
	}
	quiet := make([]int64, 0, len(ps.byID))
	for id, p := range ps.byID {
		if p.open < 0 {
			quiet = append(quiet, id)
		}
	}
	slices.SortFunc(quiet, func(a, b int64) int {
		return cmp.Or(cmp.Compare(ps.byID[a].touched, ps.byID[b].touched), cmp.Compare(a, b))
	})
	for _, id := range quiet[:min(len(quiet), max(1, most/10))] {
		delete(ps.byID, id)
	}
}

// Expire forgets the producers that have been quiet since before the time in milliseconds. One with an open transaction stays.
func (ps *Producers) Expire(before int64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for id, p := range ps.byID {
		if p.open < 0 && p.touched < before {
			delete(ps.byID, id)
			ps.changed = true
		}
	}
}

// touch says that what is on disk is not the newest.
func (ps *Producers) touch() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.changed = true
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

// Open returns where the producer's transaction begins that is open in the order of everything; ok is false if there is none.
func (ps *Producers) Open(id int64) (first int64, ok bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.byID[id]
	if p == nil || p.open < 0 {
		return -1, false
	}
	return p.open, true
}

// ProducerState describes a producer to administrators.
type ProducerState struct {
	ID               int64
	Epoch            int16
	LastSequence     int32 // -1: none in this epoch
	LastTimestamp    int64 // milliseconds; -1: none
	CoordinatorEpoch int32 // -1: none
	TransactionStart int64 // -1: no transaction is open
}

// States describes the producers, by id.
func (ps *Producers) States() []ProducerState {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	out := make([]ProducerState, 0, len(ps.byID))
	for id, p := range ps.byID {
		s := ProducerState{ID: id, Epoch: p.epoch, LastSequence: -1, LastTimestamp: -1, CoordinatorEpoch: p.coord, TransactionStart: p.open}
		if b := p.newest(); b != nil {
			s.LastSequence = b.lastSeq
		}
		if p.n > 0 {
			s.LastTimestamp = p.batches[p.n-1].timestamp
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b ProducerState) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// The snapshot file is Kafka's: int16 version, uint32 CRC32C of what follows, int32 count, then entries. A producer has one entry
// for each batch that is remembered, the oldest first, and one without a batch when its epoch is newer than those, so that a reader that
// keeps one a producer keeps the newest. All entries of a producer have the first offset of its open transaction.
const (
	snapshotVersion  = 1
	snapshotHead     = 2 + 4 + 4
	snapshotEntryLen = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8
)

// snapshot encodes what lies before end: batches behind it are in the order, but not in the file. open are the transactions that are open
// there.
func (ps *Producers) snapshot(end int64, open openTransactions) []byte {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	be := binary.BigEndian
	b := make([]byte, snapshotHead)
	n := uint32(0)
	for id, p := range ps.byID {
		first := open.first(id)
		entry := func(x *producedBatch) {
			n++
			b = be.AppendUint64(b, uint64(id))
			b = be.AppendUint16(b, uint16(x.epoch))
			b = be.AppendUint32(b, uint32(x.lastSeq))
			b = be.AppendUint64(b, uint64(x.last))
			b = be.AppendUint32(b, uint32(x.last-x.base))
			b = be.AppendUint64(b, uint64(x.timestamp))
			b = be.AppendUint32(b, uint32(p.coord))
			b = be.AppendUint64(b, uint64(first))
		}
		written := int16(-1)
		for i := range p.n {
			if x := &p.batches[i]; x.last < end {
				entry(x)
				written = x.epoch
			}
		}
		if p.epochAt < end && p.epoch > written {
			entry(&producedBatch{epoch: p.epoch, lastSeq: -1, base: -1, last: -1, timestamp: -1})
		}
	}
	be.PutUint16(b, snapshotVersion)
	be.PutUint32(b[6:], n)
	be.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	ps.changed = false
	return b
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// load reads a snapshot; false if it is not a whole one. open are the transactions that it says are open.
func (ps *Producers) load(b []byte, now int64) (open openTransactions, ok bool) {
	be := binary.BigEndian
	if len(b) < snapshotHead || be.Uint16(b) != snapshotVersion || be.Uint32(b[2:]) != crc32.Checksum(b[6:], castagnoli) ||
		int64(be.Uint32(b[6:]))*snapshotEntryLen != int64(len(b)-snapshotHead) {
		return nil, false
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for e := b[snapshotHead:]; len(e) > 0; e = e[snapshotEntryLen:] {
		id, epoch := int64(be.Uint64(e)), int16(be.Uint16(e[8:]))
		delta := int32(be.Uint32(e[22:]))
		last := int64(be.Uint64(e[14:]))
		lastSeq := int32(be.Uint32(e[10:]))
		if id < 0 || epoch < 0 {
			continue
		}
		p := ps.producer(id, now)
		p.epoch, p.coord = max(p.epoch, epoch), int32(be.Uint32(e[34:]))
		if last >= 0 && delta >= 0 && int64(delta) <= last && last > p.seen {
			p.seen = last
			p.add(producedBatch{
				epoch: epoch, firstSeq: record.AddSequence(lastSeq, -delta), lastSeq: lastSeq, base: last - int64(delta), last: last, timestamp: int64(be.Uint64(e[26:])),
			})
		}
		if first := int64(be.Uint64(e[38:])); first >= 0 && p.open < 0 {
			p.open = first
			open = open.begin(id, first)
		}
	}
	ps.changed = false
	return open, true
}

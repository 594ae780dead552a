package broker

import (
	"fmt"
	"sync"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/record"
)

// ends moves the two ends of partitions. Everything here happens in journal order; the lock makes one instant of all partitions
// visible to a cut.
type ends struct {
	mu sync.Mutex
	// partial are the batches of the atomic unit that is being applied: none of it shows before all does.
	partial []span
	// waiting are batches that are appended and wait for their sync, in journal order.
	waiting []landed
	// units are the atomic units that a registered reader may still meet.
	units   []atomicUnit
	readers map[*Reader]struct{}
	// ready is false until the readers of the last run are registered again; nothing is forgotten before.
	ready   bool
	trimAt  int // how long the list of units may become until it is looked through
	durable journal.LSN
}

// landed is a batch in its file.
type landed struct {
	lsn journal.LSN
	span
}

func (e *ends) init() { e.readers = map[*Reader]struct{}{} }

// maxAtomicUnits bounds the list of units under a reader that is far behind; beyond it neighbours are merged.
const maxAtomicUnits = 1 << 16

// minTrim is a length of that list that is not worth looking through.
const minTrim = 1 << 10

// ApplyBatch is the journal's apply function for KindBatch, at recovery and after: it appends the batch to its partition's file. Calls come in
// journal order, from one goroutine.
func (b *Broker) ApplyBatch(lsn journal.LSN, payload []byte) error {
	flags, id, index, batch, err := parsePayload(payload)
	if err != nil {
		return err
	}
	var p *Partition
	if flags&flagVoid == 0 {
		if p, err = b.partitionForApply(id, index); err != nil {
			return err
		}
	}
	if p == nil { // refused when it was ordered, or its topic is deleted later in the journal
		if flags&flagLast != 0 {
			b.ends.publish(lsn)
		}
		return nil
	}
	h, err := record.ParseHeader(batch)
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	if err := p.append(batch); err != nil {
		if !passes(err) || !b.running.Load() {
			return err
		}
		if err := b.awaitRoom(p, batch, err); err != nil {
			return err
		}
	}
	if !b.running.Load() {
		p.next = max(p.next, h.NextOffset())
	}
	s := span{p: p, base: h.BaseOffset, end: h.NextOffset(), producer: -1}
	if h.Transactional() {
		s.producer, s.marker = h.ProducerID, h.Control()
	}
	if flags&flagAtomic == 0 {
		b.ends.publishOne(lsn, s)
		return nil
	}
	b.ends.partial = append(b.ends.partial, s)
	if flags&flagLast != 0 {
		b.ends.publish(lsn)
	}
	return nil
}

// partitionForApply finds the partition of a batch. At recovery a topic may have been made, or deleted, in the part of the journal that is being
// replayed; the metadata, replayed in the same order, knows.
func (b *Broker) partitionForApply(id TopicID, index int32) (*Partition, error) {
	t, ok := b.TopicByID(id)
	if ok && t.Partition(index) != nil {
		return t.Partition(index), nil
	}
	if b.running.Load() {
		return nil, nil
	}
	raw, ok, err := b.kv.GetMeta(topicPrefix + id.String())
	if err != nil || !ok {
		return nil, err
	}
	if err := b.loadTopic(id, raw); err != nil {
		return nil, err
	}
	t, _ = b.TopicByID(id)
	return t.Partition(index), nil
}

// append writes the batch to the files. Damage takes the partition out of service and lets the node go on.
func (p *Partition) append(batch []byte) error {
	if p.Err() != nil {
		return nil
	}
	err := p.log.Append(batch)
	if err == nil {
		if p.size.Load() == 0 {
			p.noteSize()
		} else { // without a walk over the segments
			p.size.Add(int64(len(batch)))
			p.b.size.Add(int64(len(batch)))
		}
		return nil
	}
	if err = p.judge(err); p.Err() != nil {
		return nil // deleted meanwhile, or damaged and reported
	}
	return err
}

// publishOne moves the appended end of one partition.
func (e *ends) publishOne(lsn journal.LSN, s span) {
	e.mu.Lock()
	e.move(lsn, s)
	e.mu.Unlock()
	s.p.onAppend.wake()
}

// publish moves the appended ends of all partitions that an atomic unit wrote to, at one instant.
func (e *ends) publish(lsn journal.LSN) {
	spans := e.partial
	if len(spans) == 0 {
		return
	}
	e.partial = e.partial[:0]
	e.mu.Lock()
	unit := atomicUnit{lsn: uint64(lsn)}
	for _, s := range spans {
		e.move(lsn, s)
		unit = merged(unit, atomicUnit{lsn: uint64(lsn), spans: []span{s}})
	}
	if len(spans) > 1 && (len(e.readers) > 0 || !e.ready || unit.held()) {
		if len(e.units) >= max(e.trimAt, minTrim) || len(e.units) >= maxAtomicUnits {
			e.trim()
			e.trimAt = 2 * len(e.units)
		}
		if len(e.units) >= maxAtomicUnits {
			e.units = halve(e.units)
		}
		if n := len(e.units); n == 0 || e.units[n-1].lsn < unit.lsn { // at recovery some are loaded already
			e.units = append(e.units, unit)
		}
	}
	e.mu.Unlock()
	for _, s := range spans {
		s.p.onAppend.wake()
	}
}

// move moves one appended end; mu is held.
func (e *ends) move(lsn journal.LSN, s span) {
	if s.end > s.p.appended.Load() {
		s.p.appended.Store(s.end)
	}
	s.p.decided.Store(s.p.undecided.follow(&s))
	e.waiting = append(e.waiting, landed{lsn: lsn, span: s})
}

// onDurable moves high watermarks behind a sync of the journal up to and including lsn.
func (b *Broker) onDurable(lsn journal.LSN) {
	e := &b.ends
	e.mu.Lock()
	n := 0
	for n < len(e.waiting) && e.waiting[n].lsn <= lsn {
		l := &e.waiting[n]
		if l.end > l.p.highWater.Load() {
			l.p.highWater.Store(l.end)
		}
		l.p.stable.Store(l.p.unstable.follow(&l.span))
		n++
	}
	e.durable = lsn
	// Woken under the lock, for the list is reused; waking never blocks.
	for i := range n {
		if i == 0 || e.waiting[i].p != e.waiting[i-1].p {
			e.waiting[i].p.onDurable.wake()
		}
	}
	rest := copy(e.waiting, e.waiting[n:])
	clear(e.waiting[rest:])
	e.waiting = e.waiting[:rest]
	if cap(e.waiting) > 1<<16 && rest == 0 {
		e.waiting = nil
	}
	e.mu.Unlock()
}

package broker

import (
	"context"
	"fmt"
	"sync"

	"github.com/leat-io/leat/internal/commitlog"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/record"
)

// ProduceItem is one batch of a client for one partition, and what became of it.
type ProduceItem struct {
	P     *Partition
	Batch []byte // as it came; with LogAppendTime it is changed in place. Not kept.

	Base       int64 // its first offset
	AppendTime int64 // milliseconds, when the topic has LogAppendTime; otherwise -1
	Err        error
	// LSN is the unit to wait for before the batch, or what it is a duplicate of, is durable; zero when there is nothing to wait for.
	LSN journal.LSN

	transactional bool // its transaction takes it

	header  record.Header
	payload []byte
	now     int64
}

var readers = sync.Pool{New: func() any { return new(record.Reader) }}

// Produce orders a client's batches in one journal unit, each on its own: one that is refused does not keep the others out. It returns when they
// have their offsets; Wait for the returned LSN to know them durable. An LSN of zero means that there is nothing to wait for.
func (b *Broker) Produce(items []ProduceItem) journal.LSN {
	now := b.clock.Now().UnixMilli()
	u := journal.NewUnit()
	n := 0
	for i := range items {
		it := &items[i]
		it.Base, it.AppendTime, it.LSN, it.now = -1, -1, 0, now
		if it.Err != nil {
			continue
		}
		if it.Err = it.admit(b, now); it.Err != nil {
			continue
		}
		it.payload = u.Reserve(journal.KindBatch, payloadHeader+len(it.Batch))
		putPayloadHeader(it.payload, 0, it.P.Topic().ID, it.P.Index)
		copy(it.payload[payloadHeader:], it.Batch)
		n++
	}
	if n == 0 {
		u.Free()
		return 0
	}
	_, err := b.journal.Commit(u, func(lsn journal.LSN) {
		for i := range items {
			if it := &items[i]; it.payload != nil {
				it.order(b, lsn)
			}
		}
	})
	var wait journal.LSN
	for i := range items {
		it := &items[i]
		if it.payload == nil {
			continue
		}
		it.payload = nil
		if err != nil {
			it.Base, it.LSN, it.Err = -1, 0, err
		}
		wait = max(wait, it.LSN)
	}
	return wait
}

// Produce is Broker.Produce for one batch; with acks -1 (all) it returns when the batch is durable.
func (p *Partition) Produce(ctx context.Context, batch []byte, acks int16) (base int64, err error) {
	items := [1]ProduceItem{{P: p, Batch: batch}}
	lsn := p.b.Produce(items[:])
	if items[0].Err != nil {
		return -1, items[0].Err
	}
	if acks == -1 && lsn != 0 {
		if err := p.b.Wait(ctx, lsn); err != nil {
			return -1, err
		}
	}
	return items[0].Base, nil
}

// admit checks all that can be checked before the batch is ordered.
func (it *ProduceItem) admit(b *Broker, nowMs int64) error {
	if err := it.P.Err(); err != nil {
		return err
	}
	if b.low.Load() {
		return ErrStorage
	}
	t := it.P.Topic()
	s := &t.settings
	if len(it.Batch) > s.maxMessage {
		return fmt.Errorf("%w: %d bytes for %s, which takes %d", ErrTooLarge, len(it.Batch), it.P, s.maxMessage)
	}
	if len(it.Batch) >= 17 && int8(it.Batch[16]) != 2 {
		return ErrOldFormat
	}
	h, err := record.Validate(it.Batch)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorruptBatch, err)
	}
	switch {
	case h.Control():
		return fmt.Errorf("%w: a client cannot write control batches", ErrInvalidBatch)
	case h.Transactional() && (!it.transactional || !h.Idempotent()):
		return ErrTransactional
	case h.HasDeleteHorizon():
		return fmt.Errorf("%w: a client cannot set a delete horizon", ErrInvalidBatch)
	case h.Count <= 0 || h.Count != h.LastOffsetDelta+1:
		return fmt.Errorf("%w: %d records with a last offset delta of %d", ErrInvalidBatch, h.Count, h.LastOffsetDelta)
	case h.Idempotent() && (h.BaseSequence < 0 || h.ProducerEpoch < 0):
		return fmt.Errorf("%w: producer %d without an epoch or sequence", ErrInvalidBatch, h.ProducerID)
	}
	it.header = h
	if h.Idempotent() {
		// Loaded here, for order must not wait for the disk.
		if _, err := it.P.log.Producers(); err != nil {
			return it.P.judge(err)
		}
	}
	recompress := s.recompresses && h.Codec() != s.codec
	// Compressed batches are opened, too: one whose records are not as many as it says would give offsets to nothing.
	if err := it.walk(t.check.Load(), s.compacted); err != nil {
		return err
	}
	if recompress {
		if err := it.recompress(s); err != nil {
			return err
		}
	}
	if s.logAppendTime {
		record.SetLogAppendTime(it.Batch, nowMs)
		it.AppendTime = nowMs
		return nil
	}
	if h.LogAppendTime() {
		return fmt.Errorf("%w: a client cannot set the append time", ErrInvalidTimestamp)
	}
	if ahead := h.MaxTimestamp - nowMs; h.MaxTimestamp > nowMs && ahead > s.maxAheadMs {
		return fmt.Errorf("%w: %d ms ahead, and message.timestamp.after.max.ms is %d", ErrInvalidTimestamp, ahead, s.maxAheadMs)
	}
	if h.BaseTimestamp >= 0 && h.BaseTimestamp < nowMs && nowMs-h.BaseTimestamp > s.maxBehindMs {
		return fmt.Errorf("%w: %d ms behind, and message.timestamp.before.max.ms is %d", ErrInvalidTimestamp, nowMs-h.BaseTimestamp, s.maxBehindMs)
	}
	return nil
}

// recompress gives the batch the topic's codec.
func (it *ProduceItem) recompress(s *settings) error {
	batch, err := record.Recompress(it.Batch, s.codec)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorruptBatch, err)
	}
	if len(batch) > s.maxMessage {
		return fmt.Errorf("%w: %d bytes for %s as %s, which takes %d", ErrTooLarge, len(batch), it.P, s.codec, s.maxMessage)
	}
	it.Batch = batch
	it.header, err = record.ParseHeader(batch)
	return err
}

// walk looks at every record.
func (it *ProduceItem) walk(check *RecordCheck, needKey bool) error {
	r := readers.Get().(*record.Reader)
	defer func() {
		r.Close()
		readers.Put(r)
	}()
	bad, err := r.ValidateRecords(it.Batch, needKey)
	if err != nil {
		if bad >= 0 {
			return &InvalidRecordsError{Records: []RecordError{{Index: int32(bad), Message: err.Error()}}}
		}
		return fmt.Errorf("%w: %w", ErrCorruptBatch, err)
	}
	if check == nil {
		return nil
	}
	if err := r.Reset(it.Batch); err != nil {
		return fmt.Errorf("%w: %w", ErrCorruptBatch, err)
	}
	var refused InvalidRecordsError
	for i := int32(0); r.Next(); i++ {
		if msg := (*check)(it.P.Index, r.Record()); msg != "" {
			refused.Records = append(refused.Records, RecordError{Index: i, Message: msg})
			if len(refused.Records) == maxRecordErrors {
				break
			}
		}
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrCorruptBatch, err)
	}
	if len(refused.Records) > 0 {
		return &refused
	}
	return nil
}

// maxRecordErrors bounds how many refused records of a batch are named.
const maxRecordErrors = 100

// order gives the batch its offset, or refuses it; under the journal's ordering lock.
func (it *ProduceItem) order(b *Broker, lsn journal.LSN) {
	p := it.P
	if p.deleted.Load() {
		it.void(fmt.Errorf("%w: %s", ErrUnknownTopic, p))
		return
	}
	base := p.next
	it.header.BaseOffset = base
	if it.header.Idempotent() {
		ps, err := p.log.Producers()
		if err != nil {
			it.void(p.judge(err))
			return
		}
		outcome, first := ps.Check(&it.header)
		switch outcome {
		case commitlog.Accept:
			ps.Update(&it.header, it.now)
		case commitlog.Duplicate:
			it.void(nil)
			it.Base = first
			if first >= p.highWater.Load() {
				it.LSN = lsn // the first one is before this unit
			}
			return
		case commitlog.InvalidEpoch:
			it.void(fmt.Errorf("%w: producer %d, epoch %d, %s", ErrFenced, it.header.ProducerID, it.header.ProducerEpoch, p))
			return
		case commitlog.InTransaction:
			it.void(fmt.Errorf("%w: producer %d has one open in %s, and the batch is not part of it", ErrTransactionState, it.header.ProducerID, p))
			return
		case commitlog.DuplicateSequence:
			it.void(fmt.Errorf("%w: producer %d, sequence %d, %s", ErrDuplicateSequence, it.header.ProducerID, it.header.BaseSequence, p))
			return
		default:
			it.void(fmt.Errorf("%w: producer %d, sequence %d, %s", ErrSequenceGap, it.header.ProducerID, it.header.BaseSequence, p))
			return
		}
	}
	record.Patch(it.payload[payloadHeader:], base, b.epoch)
	p.next = it.header.NextOffset()
	it.Base, it.LSN = base, lsn
}

// void takes the batch out of the unit that already holds its bytes.
func (it *ProduceItem) void(err error) {
	it.payload[1] |= flagVoid
	it.Err = err
}

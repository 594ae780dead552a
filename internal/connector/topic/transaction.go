package topic

import (
	"errors"
	"fmt"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/record"
)

// The records of a Kafka transaction are given out where its commit marker stands, in their order; those of one that was aborted are not given out at all. So
// what lies between two positions depends on nothing but the log, and a cut that has all markers of a transaction on one side has all of its records
// there.

// transaction is one whose commit marker the reader has met and whose records it gives out.
type transaction struct {
	active   bool
	producer int64
	first    int64 // offset of its first record
	marker   int64 // offset of the marker: the position of all its records
	next     int64 // where to look for more of it

	held  int    // the next of the reader's held batches to look at
	past  []byte // batches from before the chunk, not yet walked
	inner bool   // batches stands in a batch of it
}

// heldBatch is a transactional batch in the chunk, which waits for its marker.
type heldBatch struct {
	producer   int64
	base       int64
	start, end int // in the reader's buffer
}

// meet looks at a control batch, and reports whether it commits a transaction that has records here.
func (r *reader) meet(batch []byte, h *record.Header) (bool, error) {
	m, ok, err := record.ParseEndMarker(batch)
	if err != nil {
		return false, fmt.Errorf("%s at offset %d: %w", r.partition, h.BaseOffset, err)
	}
	if !ok || !m.Commit || m.First < 0 || m.First >= h.BaseOffset {
		return false, nil
	}
	past := r.txn.past[:0]
	r.txn = transaction{active: true, producer: h.ProducerID, first: m.First, marker: h.BaseOffset, next: m.First, past: past}
	return true, nil
}

// transactional returns the next record of the transaction, nil when there are no more.
func (r *reader) transactional() (*record.Record, error) {
	t := &r.txn
	for {
		if t.inner {
			if r.batches.Next() {
				return r.batches.Record(), nil
			}
			if err := r.batches.Err(); err != nil {
				return nil, fmt.Errorf("%s, in the transaction that offset %d commits: %w", r.partition, t.marker, err)
			}
			t.inner = false
		}
		batch, err := r.nextOfTransaction()
		if err != nil || batch == nil {
			return nil, err
		}
		if r.settled < len(r.bodies) && r.batches.Header().Codec() != record.None {
			r.settle()
		}
		if err := r.batches.Reset(batch); err != nil {
			return nil, fmt.Errorf("%s, in the transaction that offset %d commits: %w", r.partition, t.marker, err)
		}
		t.inner = true
	}
}

// nextOfTransaction returns the next batch of the transaction: first those from before the chunk, which are read again, then those that are held.
func (r *reader) nextOfTransaction() ([]byte, error) {
	t := &r.txn
	for t.next < r.heldFrom {
		if len(t.past) == 0 {
			if err := r.fetchPast(); err != nil {
				return nil, err
			}
			continue
		}
		batch, rest, err := record.Next(t.past)
		if err != nil {
			return nil, fmt.Errorf("%s at offset %d: %w", r.partition, t.next, err)
		}
		h, err := record.ParseHeader(batch)
		if err != nil {
			return nil, fmt.Errorf("%s at offset %d: %w", r.partition, t.next, err)
		}
		if h.BaseOffset >= r.heldFrom {
			t.next, t.past = r.heldFrom, t.past[:0]
			break
		}
		t.past, t.next = rest, max(t.next, h.NextOffset())
		if h.ProducerID == t.producer && h.Transactional() && !h.Control() {
			return batch, nil
		}
	}
	for t.held < len(r.held) {
		x := &r.held[t.held]
		t.held++
		if x.producer == t.producer && x.base >= t.first { // others are of an earlier transaction
			return r.buffer[x.start:x.end], nil
		}
	}
	return nil, nil
}

// fetchPast reads what lies before the chunk again. Records that retention has deleted since the transaction began are as those from before the start.
func (r *reader) fetchPast() error {
	t := &r.txn
	c, err := r.partition.Read(t.next, fetchBytes, broker.ViewAppended, true)
	if errors.Is(err, broker.ErrOffsetOutOfRange) {
		start, e := r.partition.StartOffset()
		if e != nil || start <= t.next {
			return err
		}
		t.next = start
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Release()
	if c.Len() == 0 {
		return fmt.Errorf("%s has nothing at offset %d, in the transaction that offset %d commits", r.partition, t.next, t.marker)
	}
	r.settle()
	if cap(r.pastBuffer) > 4*fetchBytes {
		r.pastBuffer = nil
	}
	r.pastBuffer, err = c.AppendTo(r.pastBuffer[:0])
	t.past = r.pastBuffer
	return err
}

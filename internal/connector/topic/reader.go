package topic

import (
	"errors"
	"fmt"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/connector/recordrow"
	"github.com/leat-io/leat/internal/record"
)

// reader decodes one partition for one worker. It keeps the chunk and the batch that it is in, so that a range may be read in pieces.
type reader struct {
	source    *Source
	partition *broker.Partition
	decoder   *recordrow.Decoder

	buffer  []byte // memory of chunk
	chunk   []byte // batches not yet walked
	batches record.Reader
	open    bool     // batches stands in a batch
	size    int      // bytes of the records of this Read
	next    int64    // offset of the next record that the position in chunk and batch will give
	bodies  [][]byte // the rows' records as they are encoded, for dead letters
	settled int      // of these, how many lie in data
	data    []byte   // copies of bodies whose memory was needed again
	rows    *connector.Rows

	txn        transaction
	held       []heldBatch // transactional batches of the chunk so far
	heldFrom   int64       // offset where the chunk begins
	pastBuffer []byte      // memory of txn.past
}

func newReader(s *Source, p *broker.Partition, columns []int) (*reader, error) {
	d, err := s.layout.NewDecoder(p.Index, columns)
	if err != nil {
		return nil, err
	}
	return &reader{source: s, partition: p, decoder: d, next: -1}, nil
}

// Close implements connector.Partition.
func (r *reader) Close() error {
	r.batches.Close()
	return nil
}

// Read implements connector.Partition.
func (r *reader) Read(from, to int64, limit int, out *connector.Rows) (int64, error) {
	r.decoder.Begin(out)
	clear(r.bodies)
	r.bodies, r.settled, r.data = r.bodies[:0], 0, r.data[:0]
	r.rows, out.Original = out, r.original
	if from != r.next {
		r.seek(from)
	}
	at := from
	r.size = 0
	for at < to && out.Len < limit && len(out.Bad) < limit && r.size < column.MaxBytes {
		if r.txn.active {
			rec, err := r.transactional()
			if err != nil {
				return from, err
			}
			if rec == nil {
				r.txn.active = false
				at = r.txn.marker + 1
				continue
			}
			out.At(r.txn.marker)
			r.row(rec, r.txn.marker, out)
			continue
		}
		rec, err := r.record(at, to)
		if err != nil {
			return from, err
		}
		if r.txn.active { // its marker is next
			at = r.txn.marker
			continue
		}
		if rec == nil { // nothing but gaps up to the end of the range
			at = to
			break
		}
		at = rec.Offset + 1
		r.row(rec, rec.Offset, out)
	}
	if r.open || r.txn.active || len(r.chunk) > 0 {
		r.next = at
	} else {
		r.seek(at)
	}
	return at, nil
}

// row appends a record. at is its position: that of its transaction's marker, or its offset.
func (r *reader) row(rec *record.Record, at int64, out *connector.Rows) {
	r.size += len(rec.Key) + len(rec.Value)
	one := recordrow.Record{Offset: rec.Offset, Position: at, Timestamp: rec.Timestamp, Key: rec.Key, Value: rec.Value}
	if reason := r.decoder.Row(&one, out); reason != "" {
		out.Bad = append(out.Bad, connector.Bad{Record: rec.Clone(), Position: at, Reason: reason})
		return
	}
	r.bodies = append(r.bodies, rec.Body)
}

// original makes the record of a row again.
func (r *reader) original(row int) record.Record {
	rec, _ := record.Parse(r.bodies[row]) // it was read once
	rec.Offset, rec.Timestamp = r.rows.Offsets[row], record.NoTimestamp
	if at := r.rows.Appended[row]; at != connector.NotKnown {
		rec.Timestamp = at / 1000
	}
	return rec
}

// settle copies the records of the rows so far, before the memory that they lie in is used again.
func (r *reader) settle() {
	n := 0
	for _, v := range r.bodies[r.settled:] {
		n += len(v)
	}
	if cap(r.data)-len(r.data) < n {
		r.data = make([]byte, 0, max(n, 2*cap(r.data))) // what was copied before stays where it is
	}
	for i := r.settled; i < len(r.bodies); i++ {
		from := len(r.data)
		r.data = append(r.data, r.bodies[i]...)
		r.bodies[i] = r.data[from:len(r.data):len(r.data)]
	}
	r.settled = len(r.bodies)
}

func (r *reader) seek(to int64) {
	r.chunk, r.open, r.next = r.chunk[:0], false, to
	r.held, r.txn.active = r.held[:0], false
}

// record returns the first record at or after the offset and before the end, nil if there is none.
func (r *reader) record(at, end int64) (*record.Record, error) {
	for {
		if r.open {
			for r.batches.Next() {
				rec := r.batches.Record()
				if rec.Offset < at {
					continue
				}
				if rec.Offset >= end { // the range ends within a batch: the next one reads the batch again
					r.seek(-1)
					return nil, nil
				}
				return rec, nil
			}
			if err := r.batches.Err(); err != nil {
				return nil, fmt.Errorf("%s, behind offset %d: %w", r.partition, at-1, err)
			}
			r.open = false
			at = max(at, r.batches.Header().NextOffset()) // the last records of the batch may have been compacted away
		}
		batch, err := r.batch(at, end)
		if err != nil || batch == nil {
			return nil, err
		}
		if r.settled < len(r.bodies) && r.batches.Header().Codec() != record.None {
			r.settle() // they lie in the reader's own memory, which the next batch overwrites
		}
		if err := r.batches.Reset(batch); err != nil {
			return nil, fmt.Errorf("%s at offset %d: %w", r.partition, at, err)
		}
		if h := r.batches.Header(); h.Control() {
			at = max(at, h.NextOffset())
		} else {
			r.open = true
		}
	}
}

// batch returns the next batch outside transactions that may hold a record in [at, end), nil if there is none, or if a transaction is committed first:
// then txn is active.
func (r *reader) batch(at, end int64) ([]byte, error) {
	for {
		if len(r.chunk) == 0 {
			if at >= end {
				return nil, nil
			}
			if err := r.fetch(at); err != nil {
				return nil, err
			}
			if len(r.chunk) == 0 {
				return nil, nil
			}
		}
		batch, rest, err := record.Next(r.chunk)
		if err != nil {
			return nil, fmt.Errorf("%s at offset %d: %w", r.partition, at, err)
		}
		h, err := record.ParseHeader(batch)
		if err != nil {
			return nil, fmt.Errorf("%s at offset %d: %w", r.partition, at, err)
		}
		if h.BaseOffset >= end {
			return nil, nil // the chunk is kept for the next range
		}
		r.chunk = rest
		if h.Transactional() {
			switch {
			case !h.Control():
				stop := len(r.buffer) - len(rest)
				r.held = append(r.held, heldBatch{producer: h.ProducerID, base: h.BaseOffset, start: stop - len(batch), end: stop})
			case h.LastOffset() >= at:
				if met, err := r.meet(batch, &h); met || err != nil {
					return nil, err
				}
			}
			at = max(at, h.NextOffset())
			continue
		}
		if h.LastOffset() >= at {
			return batch, nil
		}
		if len(rest) == 0 && h.NextOffset() > at {
			at = h.NextOffset()
		}
	}
}

func (r *reader) fetch(at int64) error {
	c, err := r.partition.Read(at, fetchBytes, broker.ViewAppended, true)
	if err != nil {
		if errors.Is(err, broker.ErrOffsetOutOfRange) {
			if start, e := r.partition.StartOffset(); e == nil && start > at {
				return connector.DeletedUnread(fmt.Sprintf("topic \"%s\", partition %d", r.source.topic, r.partition.Index), at, start)
			}
		}
		return err
	}
	defer c.Release()
	r.settle()
	if cap(r.buffer) > 4*fetchBytes {
		r.buffer = nil
	}
	r.buffer, err = c.AppendTo(r.buffer[:0])
	r.chunk, r.held, r.heldFrom = r.buffer, r.held[:0], c.First
	return err
}

package record

import (
	"encoding/binary"
	"fmt"
)

// EndMarker is what ends a transaction in one partition: a control batch of one record, which no consumer is given.
//
// The record is Kafka's: key int16 version 0, int16 type (0 abort, 1 commit); value int16 version 0, int32 coordinator epoch. It has one
// header more, which Kafka's readers pass over: where the transaction begins in this partition. So the log says by itself which batches a
// marker speaks of, whoever reads it from wherever.
type EndMarker struct {
	ProducerID       int64
	ProducerEpoch    int16
	Commit           bool
	CoordinatorEpoch int32
	Timestamp        int64 // milliseconds
	// First is the offset of the transaction's first record in the partition; -1: not known, or there is none.
	First int64
}

const markerHeader = "leat.first"

// AppendTo appends the marker as a batch, with base offset 0 and leader epoch -1; see Patch.
func (m *EndMarker) AppendTo(dst []byte) []byte {
	be := binary.BigEndian
	var key [4]byte
	if m.Commit {
		be.PutUint16(key[2:], 1)
	}
	var value [6]byte
	be.PutUint32(value[2:], uint32(m.CoordinatorEpoch))
	b := NewBuilder(None)
	b.ProducerID, b.ProducerEpoch, b.Transactional, b.Control = m.ProducerID, m.ProducerEpoch, true, true
	b.Append(m.Timestamp, key[:], value[:], HeaderKV{Key: markerHeader, Value: be.AppendUint64(nil, uint64(m.First))})
	return b.Build(dst)
}

// ParseEndMarker reads a control batch. ok is false if it is of another kind than commit or abort.
func ParseEndMarker(batch []byte) (m EndMarker, ok bool, err error) {
	var r Reader
	defer r.Close()
	if err := r.Reset(batch); err != nil {
		return m, false, err
	}
	h := r.Header()
	if !h.Control() {
		return m, false, fmt.Errorf("%w: it is not a control batch", ErrInvalid)
	}
	m = EndMarker{ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch, Timestamp: h.MaxTimestamp, First: -1}
	if !r.Next() {
		return m, false, r.Err()
	}
	be := binary.BigEndian
	rec := r.Record()
	if len(rec.Key) < 4 || be.Uint16(rec.Key) != 0 || be.Uint16(rec.Key[2:]) > 1 {
		return m, false, nil
	}
	m.Commit = be.Uint16(rec.Key[2:]) == 1
	if len(rec.Value) >= 6 {
		m.CoordinatorEpoch = int32(be.Uint32(rec.Value[2:]))
	}
	rec.EachHeader(func(key, value []byte) bool {
		if string(key) == markerHeader && len(value) == 8 {
			m.First = int64(be.Uint64(value))
			return false
		}
		return true
	})
	return m, true, nil
}

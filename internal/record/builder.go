package record

import (
	"encoding/binary"
	"math/bits"
)

// Builder builds one batch at a time and keeps its buffers. Not safe for concurrent use.
type Builder struct {
	Codec Codec
	// The producer's, written as they are; a ProducerID of -1 is none. Reset leaves them alone.
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	Transactional bool
	Control       bool
	LogAppendTime bool // every record has the largest timestamp that was appended

	records []byte
	count   int32
	first   int64
	largest int64
	c       compressor
}

// NewBuilder returns a Builder for batches without a producer.
func NewBuilder(c Codec) *Builder {
	return &Builder{Codec: c, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}
}

// Reset forgets the records so far.
func (b *Builder) Reset() {
	if cap(b.records) > 8*keepBytes {
		b.records = nil
	}
	b.records, b.count = b.records[:0], 0
}

// Append adds a record with a timestamp in milliseconds; a nil key or value is null. The slices are copied.
func (b *Builder) Append(ms int64, key, value []byte, headers ...HeaderKV) {
	if b.count == 0 {
		b.first, b.largest = ms, ms
	}
	b.largest = max(b.largest, ms)
	ts, delta := ms-b.first, int64(b.count)
	n := 1 + varintLen(ts) + varintLen(delta) + fieldLen(key) + fieldLen(value) + varintLen(int64(len(headers)))
	for i := range headers {
		n += varintLen(int64(len(headers[i].Key))) + len(headers[i].Key) + fieldLen(headers[i].Value)
	}
	r := binary.AppendVarint(b.records, int64(n))
	r = append(r, 0)
	r = binary.AppendVarint(r, ts)
	r = binary.AppendVarint(r, delta)
	r = appendField(r, key)
	r = appendField(r, value)
	r = binary.AppendVarint(r, int64(len(headers)))
	for i := range headers {
		r = headers[i].appendTo(r)
	}
	b.records = r
	b.count++
}

func (h *HeaderKV) appendTo(dst []byte) []byte {
	dst = binary.AppendVarint(dst, int64(len(h.Key)))
	dst = append(dst, h.Key...)
	return appendField(dst, h.Value)
}

func varintLen(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	return (bits.Len64(u|1) + 6) / 7
}

func fieldLen(f []byte) int {
	if f == nil {
		return 1
	}
	return varintLen(int64(len(f))) + len(f)
}

func appendField(dst, f []byte) []byte {
	if f == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(f))), f...)
}

// Len is the number of records so far.
func (b *Builder) Len() int { return int(b.count) }

// Size is what the batch takes without compression.
func (b *Builder) Size() int { return HeaderLen + len(b.records) }

// Build appends the finished batch, with base offset 0 and leader epoch -1, to dst; see Patch.
func (b *Builder) Build(dst []byte) []byte {
	from := len(dst)
	var zeros [HeaderLen]byte
	dst = append(dst, zeros[:]...)
	dst = b.c.compress(dst, b.Codec, b.records)
	h := dst[from:]
	attributes := uint16(b.Codec)
	if b.LogAppendTime {
		attributes |= attrLogAppendTime
	}
	if b.Transactional {
		attributes |= attrTransactional
	}
	if b.Control {
		attributes |= attrControl
	}
	be := binary.BigEndian
	be.PutUint32(h[8:], uint32(len(h)-overhead))
	be.PutUint32(h[12:], 0xffffffff)
	h[16] = 2
	be.PutUint16(h[21:], attributes)
	be.PutUint32(h[23:], uint32(max(0, b.count-1)))
	be.PutUint64(h[27:], uint64(b.first))
	be.PutUint64(h[35:], uint64(b.largest))
	be.PutUint64(h[43:], uint64(b.ProducerID))
	be.PutUint16(h[51:], uint16(b.ProducerEpoch))
	be.PutUint32(h[53:], uint32(b.BaseSequence))
	be.PutUint32(h[57:], uint32(b.count))
	be.PutUint32(h[17:], Checksum(h))
	return dst
}

// Package record is the codec of Kafka's record batches, version 2: the only unit in which data travels from a producer
// through the log to a consumer.
//
// A batch is
//
//	base offset     int64     outside the checksum: a broker writes it
//	length          int32     of all that follows
//	leader epoch    int32     outside the checksum: a broker writes it
//	magic           int8      2
//	crc             uint32    CRC32C of all that follows
//	attributes      int16     0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
//	last offset delta int32
//	base timestamp  int64
//	max timestamp   int64
//	producer id     int64
//	producer epoch  int16
//	base sequence   int32
//	count           int32
//	records         compressed with the codec
//
// and a record is (all lengths and deltas are zigzag varints): length, attributes int8, timestamp delta, offset delta,
// key length (-1 is null), key, value length (-1 is null), value, number of headers, then each header's key length, key,
// value length, value.
//
// What always holds: bytes from a peer or a disk are checked before they are believed, no length is allocated before it is
// bounded, and walking a batch allocates nothing per record.
package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// HeaderLen is the length of a batch without its records.
const HeaderLen = 61

// overhead is what the length field does not count: base offset and the length itself.
const overhead = 12

// Codec is how the records of a batch are compressed.
type Codec uint8

// The codecs of the protocol.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

// String returns the name that compression.type has for it.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec %d", uint8(c))
}

// Bits of Header.Attributes.
const (
	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
)

var (
	// ErrTruncated says that the bytes end before the batch does.
	ErrTruncated = errors.New("record batch is cut off")
	// ErrMagic says that the batch is of another version than 2.
	ErrMagic = errors.New("unsupported record batch version")
	// ErrChecksum says that the batch's CRC32C is not that of its bytes.
	ErrChecksum = errors.New("record batch checksum does not match")
	// ErrInvalid says that a batch contradicts itself.
	ErrInvalid = errors.New("invalid record batch")
	// ErrTooLarge says that a batch decompresses to more than the bound.
	ErrTooLarge = errors.New("record batch is too large")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is what precedes the records of a batch.
type Header struct {
	BaseOffset      int64
	Length          int32 // of what follows the length field; see Size
	LeaderEpoch     int32
	Magic           int8
	CRC             uint32
	Attributes      int16
	LastOffsetDelta int32
	BaseTimestamp   int64 // milliseconds
	MaxTimestamp    int64 // milliseconds
	ProducerID      int64 // -1: none
	ProducerEpoch   int16
	BaseSequence    int32 // -1: none
	Count           int32
}

// Size is the length of the whole batch in bytes.
func (h *Header) Size() int { return overhead + int(h.Length) }

// LastOffset is the offset of the batch's last record (compaction may have removed that record).
func (h *Header) LastOffset() int64 { return h.BaseOffset + int64(h.LastOffsetDelta) }

// NextOffset is the offset after the batch.
func (h *Header) NextOffset() int64 { return h.LastOffset() + 1 }

// Codec is how the records are compressed.
func (h *Header) Codec() Codec { return Codec(h.Attributes & attrCodec) }

// LogAppendTime reports whether MaxTimestamp, set by the broker, is the timestamp of every record.
func (h *Header) LogAppendTime() bool { return h.Attributes&attrLogAppendTime != 0 }

// Transactional reports whether the batch is part of a transaction.
func (h *Header) Transactional() bool { return h.Attributes&attrTransactional != 0 }

// Control reports whether the batch holds a marker that no consumer sees.
func (h *Header) Control() bool { return h.Attributes&attrControl != 0 }

// DeleteHorizon is the time in milliseconds from which on compaction may remove the tombstones, or the marker, of the batch (KIP-534): it was set
// when they were compacted first, and stands in place of the base timestamp. ok is false if it is not set.
func (h *Header) DeleteHorizon() (ms int64, ok bool) {
	return h.BaseTimestamp, h.HasDeleteHorizon()
}

// HasDeleteHorizon reports whether DeleteHorizon is set.
func (h *Header) HasDeleteHorizon() bool { return h.Attributes&attrDeleteHorizon != 0 }

// Idempotent reports whether the batch carries a producer id and sequence.
func (h *Header) Idempotent() bool { return h.ProducerID >= 0 }

// LastSequence is the sequence of the last record; sequences wrap from 2^31-1 to 0.
func (h *Header) LastSequence() int32 { return AddSequence(h.BaseSequence, h.LastOffsetDelta) }

// AddSequence returns the sequence delta after seq, with the wrap to 0 that the protocol has.
func AddSequence(seq, delta int32) int32 {
	return int32((int64(seq) + int64(delta)) & 0x7fffffff)
}

// BatchSize returns the length of the batch at the start of b from its first 12 bytes, without looking at anything else.
func BatchSize(b []byte) (int, error) {
	if len(b) < overhead {
		return 0, ErrTruncated
	}
	n := int32(binary.BigEndian.Uint32(b[8:]))
	if n < HeaderLen-overhead {
		return 0, fmt.Errorf("%w: a length of %d is less than its header", ErrInvalid, n)
	}
	return overhead + int(n), nil
}

// ParseHeader reads the header at the start of b, which may be longer or shorter than the batch. It checks that the header
// does not contradict itself, not the checksum.
func ParseHeader(b []byte) (Header, error) {
	var h Header
	if len(b) >= 17 && int8(b[16]) != 2 {
		return h, fmt.Errorf("%w %d: only version 2 (Kafka 0.11 and later) is supported", ErrMagic, int8(b[16]))
	}
	if len(b) < HeaderLen {
		return h, ErrTruncated
	}
	be := binary.BigEndian
	h = Header{
		BaseOffset:      int64(be.Uint64(b)),
		Length:          int32(be.Uint32(b[8:])),
		LeaderEpoch:     int32(be.Uint32(b[12:])),
		Magic:           int8(b[16]),
		CRC:             be.Uint32(b[17:]),
		Attributes:      int16(be.Uint16(b[21:])),
		LastOffsetDelta: int32(be.Uint32(b[23:])),
		BaseTimestamp:   int64(be.Uint64(b[27:])),
		MaxTimestamp:    int64(be.Uint64(b[35:])),
		ProducerID:      int64(be.Uint64(b[43:])),
		ProducerEpoch:   int16(be.Uint16(b[51:])),
		BaseSequence:    int32(be.Uint32(b[53:])),
		Count:           int32(be.Uint32(b[57:])),
	}
	switch {
	case h.Length < HeaderLen-overhead:
		return h, fmt.Errorf("%w: a length of %d is less than its header", ErrInvalid, h.Length)
	case h.LastOffsetDelta < 0:
		return h, fmt.Errorf("%w: last offset delta %d is negative", ErrInvalid, h.LastOffsetDelta)
	case h.Count < 0 || int64(h.Count) > int64(h.LastOffsetDelta)+1:
		return h, fmt.Errorf("%w: %d records do not fit a last offset delta of %d", ErrInvalid, h.Count, h.LastOffsetDelta)
	case h.Codec() > Zstd:
		return h, fmt.Errorf("%w: unknown compression codec %d", ErrInvalid, h.Codec())
	case h.BaseOffset < 0 || h.BaseOffset > 1<<62:
		return h, fmt.Errorf("%w: base offset %d is out of range", ErrInvalid, h.BaseOffset)
	}
	return h, nil
}

// Checksum computes the CRC32C that the whole batch ought to carry.
func Checksum(batch []byte) uint32 { return crc32.Checksum(batch[21:], castagnoli) }

// Validate checks one whole batch: that it has the length it says, its header and its checksum. It does not look into
// the records; see ValidateRecords.
func Validate(batch []byte) (Header, error) {
	h, err := ParseHeader(batch)
	if err != nil {
		return h, err
	}
	switch {
	case h.Size() > len(batch):
		return h, fmt.Errorf("%w: %d bytes of %d", ErrTruncated, len(batch), h.Size())
	case h.Size() < len(batch):
		return h, fmt.Errorf("%w: %d bytes follow it", ErrInvalid, len(batch)-h.Size())
	}
	if got := Checksum(batch); got != h.CRC {
		return h, fmt.Errorf("%w: %08x instead of %08x", ErrChecksum, got, h.CRC)
	}
	return h, nil
}

// Next splits the first batch off b, a sequence of whole batches as Produce and Fetch carry them.
func Next(b []byte) (batch, rest []byte, err error) {
	if len(b) >= 17 && int8(b[16]) != 2 {
		return nil, b, fmt.Errorf("%w %d: only version 2 (Kafka 0.11 and later) is supported", ErrMagic, int8(b[16]))
	}
	n, err := BatchSize(b)
	if err != nil {
		return nil, b, err
	}
	if n > len(b) {
		return nil, b, fmt.Errorf("%w: %d bytes of %d", ErrTruncated, len(b), n)
	}
	return b[:n:n], b[n:], nil
}

// Patch writes the base offset and the leader epoch into the batch; both lie outside the checksum.
func Patch(batch []byte, baseOffset int64, leaderEpoch int32) {
	binary.BigEndian.PutUint64(batch, uint64(baseOffset))
	binary.BigEndian.PutUint32(batch[12:], uint32(leaderEpoch))
}

// SetLogAppendTime makes ms the timestamp of every record of the batch, and computes the checksum again.
func SetLogAppendTime(batch []byte, ms int64) {
	be := binary.BigEndian
	be.PutUint16(batch[21:], be.Uint16(batch[21:])|attrLogAppendTime)
	be.PutUint64(batch[35:], uint64(ms))
	be.PutUint32(batch[17:], Checksum(batch))
}

// SetProducer writes the producer's id, epoch and base sequence into the batch, and computes the checksum again.
func SetProducer(batch []byte, id int64, epoch int16, baseSequence int32) {
	be := binary.BigEndian
	be.PutUint64(batch[43:], uint64(id))
	be.PutUint16(batch[51:], uint16(epoch))
	be.PutUint32(batch[53:], uint32(baseSequence))
	be.PutUint32(batch[17:], Checksum(batch))
}

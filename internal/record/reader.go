package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Record is one record of a batch. Its slices point into the batch or into the Reader's buffer and are valid until the
// Reader is reset or closed.
type Record struct {
	Offset    int64
	Timestamp int64  // milliseconds; NoTimestamp: it has none
	Key       []byte // nil: null
	Value     []byte // nil: null, a tombstone
	// Headers holds HeaderCount headers as they are encoded; EachHeader walks them.
	Headers     []byte
	HeaderCount int
	// Body is all of it as it is encoded, without its length: Parse makes a record of it again.
	Body []byte
}

// NoTimestamp is what Kafka's clients write, and its brokers take, for a record without a timestamp.
const NoTimestamp = -1

// HeaderKV is one header of a record to be built.
type HeaderKV struct {
	Key   string
	Value []byte // nil: null
}

// EachHeader calls fn for each header, its value nil if null, until fn returns false.
func (r *Record) EachHeader(fn func(key, value []byte) bool) {
	b := r.Headers
	for range r.HeaderCount {
		key, rest, ok := bytesField(b)
		if !ok {
			return
		}
		value, rest, ok := bytesField(rest)
		if !ok || !fn(key, value) {
			return
		}
		b = rest
	}
}

// Clone returns a record that stays when r's memory is used again; it has no Body.
func (r *Record) Clone() Record {
	c := *r
	c.Key, c.Value, c.Headers, c.Body = bytes.Clone(r.Key), bytes.Clone(r.Value), bytes.Clone(r.Headers), nil
	return c
}

// SetHeaders has the record carry headers.
func (r *Record) SetHeaders(headers ...HeaderKV) {
	r.Headers, r.HeaderCount = nil, len(headers)
	for i := range headers {
		r.Headers = headers[i].appendTo(r.Headers)
	}
}

// Parse makes a record of a Body. Its offset and timestamp are relative to those of its batch, which a Body does not know.
func Parse(body []byte) (Record, error) {
	var r Record
	if what := r.parse(body); what != "" {
		return Record{}, fmt.Errorf("%w: a record: %s", ErrInvalid, what)
	}
	return r, nil
}

// parse takes a body apart, and says what is wrong with it.
func (r *Record) parse(b []byte) (wrong string) {
	if len(b) < 1 {
		return "it is empty"
	}
	r.Body = b
	b = b[1:] // attributes: none are defined
	var k int
	if r.Timestamp, k = binary.Varint(b); k <= 0 {
		return "its timestamp is cut off"
	}
	b = b[k:]
	if r.Offset, k = binary.Varint(b); k <= 0 || r.Offset < 0 {
		return "its offset is outside the batch"
	}
	b = b[k:]
	var ok bool
	if r.Key, b, ok = bytesField(b); !ok {
		return "its key is cut off"
	}
	if r.Value, b, ok = bytesField(b); !ok {
		return "its value is cut off"
	}
	count, k := binary.Varint(b)
	if k <= 0 || count < 0 || count > int64(len(b)) {
		return "its number of headers is wrong"
	}
	b = b[k:]
	r.Headers, r.HeaderCount = b, int(count)
	for range count {
		var key []byte
		if key, b, ok = bytesField(b); !ok || key == nil {
			return "the key of a header is missing or cut off"
		}
		if _, b, ok = bytesField(b); !ok {
			return "the value of a header is cut off"
		}
	}
	if len(b) > 0 {
		return "bytes follow its headers"
	}
	return ""
}

// DefaultMaxBytes bounds what a batch decompresses to unless a Reader is told otherwise.
const DefaultMaxBytes = 128 << 20

// Reader walks the records of a batch. It keeps its buffers from batch to batch; it is not safe for concurrent use.
// The zero Reader is ready to use.
type Reader struct {
	// MaxBytes bounds what a batch may decompress to; 0 is DefaultMaxBytes.
	MaxBytes int

	h    Header
	rec  Record
	rest []byte
	read int32
	err  error
	d    decompressor
}

// Reset starts on a whole batch and decompresses it; it does not check the checksum, see Validate. The batch is read,
// never written, and must stay unchanged until the next Reset.
func (r *Reader) Reset(batch []byte) error {
	r.rest, r.read, r.rec = nil, 0, Record{}
	r.h, r.err = ParseHeader(batch)
	if r.err == nil && r.h.Size() != len(batch) {
		r.err = fmt.Errorf("%w: it has %d bytes and says %d", ErrInvalid, len(batch), r.h.Size())
	}
	if r.err != nil {
		return r.err
	}
	limit := r.MaxBytes
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	r.rest, r.err = r.d.decompress(r.h.Codec(), batch[HeaderLen:], limit)
	return r.err
}

// Header is that of the batch being read.
func (r *Reader) Header() *Header { return &r.h }

// Record is the current record; it is overwritten by Next.
func (r *Reader) Record() *Record { return &r.rec }

// Err says why Next ended early; nil at the regular end.
func (r *Reader) Err() error { return r.err }

// Close gives large buffers up; the Reader may be Reset again.
func (r *Reader) Close() {
	r.rest, r.rec = nil, Record{}
	r.d.shrink()
}

func (r *Reader) bad(what string) bool {
	r.err = fmt.Errorf("%w: record %d: %s", ErrInvalid, r.read, what)
	return false
}

// Next moves to the next record; false at the end or at an error, see Err.
func (r *Reader) Next() bool {
	if r.err != nil {
		return false
	}
	if r.read == r.h.Count {
		if len(r.rest) > 0 {
			return r.bad("bytes follow the last record")
		}
		return false
	}
	n, k := binary.Varint(r.rest)
	if k <= 0 || n < 0 || n > int64(len(r.rest)-k) {
		return r.bad("its length is wrong")
	}
	b := r.rest[k : k+int(n)]
	r.rest = r.rest[k+int(n):]
	rec := &r.rec
	if wrong := rec.parse(b); wrong != "" {
		return r.bad(wrong)
	}
	if rec.Offset > int64(r.h.LastOffsetDelta) {
		return r.bad("its offset is outside the batch")
	}
	rec.Offset += r.h.BaseOffset
	rec.Timestamp += r.h.BaseTimestamp
	if r.h.LogAppendTime() {
		rec.Timestamp = r.h.MaxTimestamp
	}
	r.read++
	return true
}

// bytesField reads a varint length, -1 for null, and as many bytes.
func bytesField(b []byte) (field, rest []byte, ok bool) {
	n, k := binary.Varint(b)
	if k <= 0 || n < -1 || n > int64(len(b)-k) {
		return nil, b, false
	}
	if n == -1 {
		return nil, b[k:], true
	}
	end := k + int(n)
	return b[k:end:end], b[end:], true
}

// ValidateRecords walks the whole batch as Produce must before it takes it: every record is well formed and offset deltas
// run 0, 1, 2, ... to the last. needKey refuses a record without a key, for a compacted topic. The int is the index of the
// record at fault, -1 if it is the batch.
func (r *Reader) ValidateRecords(batch []byte, needKey bool) (badIndex int, err error) {
	if err := r.Reset(batch); err != nil {
		return -1, err
	}
	if r.h.Count == 0 || r.h.Count != r.h.LastOffsetDelta+1 {
		return -1, fmt.Errorf("%w: %d records and a last offset delta of %d", ErrInvalid, r.h.Count, r.h.LastOffsetDelta)
	}
	for i := int64(0); r.Next(); i++ {
		if r.rec.Offset != r.h.BaseOffset+i {
			return int(i), fmt.Errorf("%w: record %d has the offset delta %d", ErrInvalid, i, r.rec.Offset-r.h.BaseOffset)
		}
		if needKey && r.rec.Key == nil {
			return int(i), fmt.Errorf("%w: record %d has no key, which a compacted topic needs", ErrInvalid, i)
		}
	}
	if r.err != nil {
		return int(r.read), r.err
	}
	return -1, nil
}

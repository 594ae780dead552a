package record

// Record is one record of a batch. Its slices point into the batch or into the Reader's buffer and are valid until the
// Reader is reset or closed.
type Record struct {
	Offset    int64
	Timestamp int64  // milliseconds
	Key       []byte // nil: null
	Value     []byte // nil: null, a tombstone
	// Headers holds HeaderCount headers as they are encoded; EachHeader walks them.
	Headers     []byte
	HeaderCount int
}

// HeaderKV is one header of a record to be built.
type HeaderKV struct {
	Key   string
	Value []byte // nil: null
}

// EachHeader calls fn for each header until fn returns false.
func (r *Record) EachHeader(fn func(key, value []byte) bool) { panic("TODO") }

// Reader walks the records of a batch. It keeps its buffers from batch to batch; it is not safe for concurrent use.
// The zero Reader is ready to use.
type Reader struct {
	// MaxBytes bounds what a batch may decompress to; 0 is DefaultMaxBytes.
	MaxBytes int
	h        Header
	rec      Record
	err      error
}

// DefaultMaxBytes bounds what a batch decompresses to unless a Reader is told otherwise.
const DefaultMaxBytes = 128 << 20

// Reset starts on a whole batch (see Validate for the checksum) and decompresses it. The batch is read, never written, and
// must stay unchanged until the next Reset.
func (r *Reader) Reset(batch []byte) error { panic("TODO") }

// Header is that of the batch being read.
func (r *Reader) Header() *Header { return &r.h }

// Next moves to the next record; false at the end or at an error, see Err.
func (r *Reader) Next() bool { panic("TODO") }

// Record is the current record; it is overwritten by Next.
func (r *Reader) Record() *Record { return &r.rec }

// Err says why Next ended early; nil at the regular end.
func (r *Reader) Err() error { return r.err }

// Close gives large buffers back; the Reader may be Reset again.
func (r *Reader) Close() { panic("TODO") }

// ValidateRecords walks the whole batch as Produce must before it takes it: every record is well formed and offset deltas
// run 0, 1, 2, ... to the last. needKey refuses a record without a key, for a compacted topic. The int is the index of the
// record at fault, -1 if it is the batch.
func (r *Reader) ValidateRecords(batch []byte, needKey bool) (badIndex int, err error) { panic("TODO") }

// Builder builds one batch at a time and keeps its buffers. The zero Builder builds uncompressed batches without a
// producer; call Reset before the first Append.
type Builder struct {
	Codec Codec
	// ProducerID etc. are written as they are; ProducerID -1 is none. Reset leaves them alone.
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	Transactional bool
	Control       bool
	LogAppendTime bool // all records get the timestamp of the last one appended
}

// NewBuilder returns a Builder for batches without a producer.
func NewBuilder(c Codec) *Builder {
	return &Builder{Codec: c, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}
}

// Reset forgets the records so far.
func (b *Builder) Reset() { panic("TODO") }

// Append adds a record with a timestamp in milliseconds; a nil key or value is null. The slices are copied.
func (b *Builder) Append(ms int64, key, value []byte, headers ...HeaderKV) { panic("TODO") }

// Len is the number of records; Size what they take before compression.
func (b *Builder) Len() int  { panic("TODO") }
func (b *Builder) Size() int { panic("TODO") }

// Build appends the finished batch, with base offset 0 and leader epoch -1, to dst. See Patch.
func (b *Builder) Build(dst []byte) []byte { panic("TODO") }

package commitlog

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

var (
	// ErrOffsetOutOfRange says that the log does not have the offset.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrCorrupt says that bytes which were durable are damaged; the message has file and position. It isolates the partition.
	ErrCorrupt = errors.New("partition is damaged")
	// ErrClosed says that the log was closed or deleted.
	ErrClosed = errors.New("log is closed")
)

// Config is what can be changed while a log is open.
type Config struct {
	SegmentBytes       int64         // roll the active segment before it grows beyond; 0: 1 GiB
	SegmentAge         time.Duration // roll when the first record is older; 0: 7 days
	IndexIntervalBytes int           // 0: 4096
	RetentionBytes     int64         // < 0 or 0: no bound
	Retention          time.Duration // < 0 or 0: no bound
}

// ManagerOptions says where the partitions of a node are.
type ManagerOptions struct {
	FS       vfs.FS
	Dir      string // one folder per partition below it
	Clock    clock.Clock
	Logger   *slog.Logger
	MaxFiles int // open file handles at a time; 0: 1024
}

// Manager holds what all partitions of a node share: the bounded set of open files, the list of dirty logs, and the checkpoint of
// their ends.
type Manager struct{}

// NewManager reads the offsets of the last checkpoint.
func NewManager(o ManagerOptions) (*Manager, error) { panic("TODO") }

// Open returns the log of partition name ("topic-0"); id tells it from an earlier one of the same name, whose files are removed.
// It opens no file: that is left to the first use.
func (m *Manager) Open(name string, id [16]byte, c Config) (*Log, error) { panic("TODO") }

// Sync makes everything that was appended so far durable, then records the ends and starts of all logs (atomically).
// To be called before journal.Checkpoint.
func (m *Manager) Sync(ctx context.Context) error { panic("TODO") }

// DirtyBytes is what Sync would have to write.
func (m *Manager) DirtyBytes() int64 { panic("TODO") }

// Names lists the partition folders on disk.
func (m *Manager) Names() ([]string, error) { panic("TODO") }

// Remove deletes the folder of a partition that is not open, left behind by a crash.
func (m *Manager) Remove(name string) error { panic("TODO") }

// Close syncs and closes all logs.
func (m *Manager) Close() error { panic("TODO") }

// Log is one partition.
type Log struct{}

func (l *Log) Name() string { panic("TODO") }

// SetConfig takes effect at the next append or retention pass.
func (l *Log) SetConfig(c Config) { panic("TODO") }

// Append adds a batch whose base offset is already in its header; called by the journal's applier, in order. A batch that is
// already there (offset and CRC) is skipped.
func (l *Log) Append(batch []byte) error { panic("TODO") }

// StartOffset is the first offset that can be read; EndOffset the one that the next batch gets.
func (l *Log) StartOffset() int64 { panic("TODO") }
func (l *Log) EndOffset() int64   { panic("TODO") }

// Read returns whole batches from the one that has offset on, up to maxBytes (at least one batch if atLeastOne) and below limit.
func (l *Log) Read(offset int64, maxBytes int, limit int64, atLeastOne bool) (Chunk, error) {
	panic("TODO")
}

// OffsetForTime returns the first record at or after ms, below limit; offset -1 if there is none.
func (l *Log) OffsetForTime(ms, limit int64) (offset, timestamp int64, err error) { panic("TODO") }

// MaxTimestamp returns the record with the largest timestamp; offset -1 if the log is empty.
func (l *Log) MaxTimestamp() (offset, timestamp int64, err error) { panic("TODO") }

// SetStartOffset moves the start (DeleteRecords); segments below it are deleted at the next retention pass.
func (l *Log) SetStartOffset(offset int64) error { panic("TODO") }

// ApplyRetention deletes whole segments below highWatermark that are too old, beyond the size, or below the start.
func (l *Log) ApplyRetention(now time.Time, highWatermark int64) (newStart int64, deleted int, err error) {
	panic("TODO")
}

// Truncate removes everything at or above end; for recovery only.
func (l *Log) Truncate(end int64) error { panic("TODO") }
func (l *Log) Sync() error              { panic("TODO") }
func (l *Log) Dirty() bool              { panic("TODO") }
func (l *Log) Size() int64              { panic("TODO") } // bytes in segments
func (l *Log) Err() error               { panic("TODO") } // the damage that isolates the partition
func (l *Log) Delete() error            { panic("TODO") } // closes and removes the folder
func (l *Log) Close() error             { panic("TODO") }

// Producers is the state of the idempotent producers of the partition, loaded with the log. The broker calls Check and then Update
// under the journal's ordering lock; Append updates it too, for replay.
func (l *Log) Producers() (*Producers, error) { panic("TODO") }

// Outcome of Producers.Check.
type Outcome uint8

const (
	Accept             Outcome = iota
	Duplicate                  // of one of the last five batches: answer with its offset
	OutOfOrderSequence         // OUT_OF_ORDER_SEQUENCE_NUMBER
	InvalidEpoch               // INVALID_PRODUCER_EPOCH
	DuplicateSequence          // older than the last five: DUPLICATE_SEQUENCE_NUMBER
)

type Producers struct{}

// Check decides on a batch by its header; base is that of the duplicate. It changes nothing.
func (p *Producers) Check(h *record.Header) (o Outcome, base int64) { panic("TODO") }

// Update records that the batch (its BaseOffset set) is in the order now.
func (p *Producers) Update(h *record.Header) { panic("TODO") }

// Expire forgets producers whose last batch is older than ms (milliseconds).
func (p *Producers) Expire(ms int64) { panic("TODO") }

// Chunk is what Read found: a range of a file, or bytes. Release it when it has been sent.
type Chunk struct {
	First int64 // base offset of the first batch
	Next  int64 // offset after the last batch
}

// Len is the number of bytes.
func (c *Chunk) Len() int { panic("TODO") }

// FileRange returns the descriptor, offset and length for sendfile; ok is false when the chunk is bytes, or the file has none.
func (c *Chunk) FileRange() (fd uintptr, offset int64, length int, ok bool) { panic("TODO") }

// AppendTo appends the chunk's bytes to dst.
func (c *Chunk) AppendTo(dst []byte) ([]byte, error) { panic("TODO") }

// WriteTo writes the chunk's bytes.
func (c *Chunk) WriteTo(w io.Writer) (int64, error) { panic("TODO") }

// Release ends the use of the file; the chunk must not be used after it.
func (c *Chunk) Release() { panic("TODO") }

// Package commitlog owns the files of the partitions, in Kafka's format and under Kafka's names; docs/format/segments.md
// draws them.
//
// A batch is in the journal before it is here, so files are written without a sync; Manager.Sync makes them durable in the
// background, and records the end of every log. Opening a log costs neither a file nor memory until it is first used; then
// it is cut at the recorded end, and the journal's replay brings what came after.
//
// What always holds:
//   - The end of a log never goes back, except by the cut at the recorded end when it is opened.
//   - A recorded end is never beyond what is durable in the journal, nor beyond what is durable in the file.
//   - No batch whose checksum does not match is ever returned.
//   - Indexes are hints: an entry that does not lead to a batch is noticed, and the index is built again.
//   - Damage below the recorded end is an error that names file and position, and concerns one partition only.
package commitlog

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/vfs"
)

var (
	// ErrOffsetOutOfRange says that the log does not have the offset.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrCorrupt says that bytes which were durable are damaged; see CorruptError. It isolates the partition.
	ErrCorrupt = errors.New("partition is damaged")
	// ErrClosed says that the log was closed or deleted.
	ErrClosed = errors.New("log is closed")
)

// CorruptError says where a partition is damaged. It is an ErrCorrupt.
type CorruptError struct {
	File   string
	Offset int64 // byte position
	Reason string
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("partition is damaged: %s at byte %d: %s (restore the file from a copy, or delete the topic)", e.File, e.Offset, e.Reason)
}

// Is makes it an ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Config is what can be changed while a log is open.
type Config struct {
	SegmentBytes       int64         // roll the active segment before it grows beyond; 0: 1 GiB
	SegmentAge         time.Duration // roll before a batch whose timestamp is so much later than the segment's first; 0: 7 days
	IndexIntervalBytes int           // 0: 4096
	RetentionBytes     int64         // <= 0: no bound
	Retention          time.Duration // <= 0: no bound

	// Compact says that the log is compacted; see Clean.
	Compact          bool
	DeleteRetention  time.Duration // how long tombstones stay after the first pass that met them
	MinCompactionLag time.Duration // records that are younger stay as they are
	MaxCompactionLag time.Duration // <= 0: no bound; see Dirt
}

func (c *Config) setDefaults() {
	if c.SegmentBytes <= 0 || c.SegmentBytes > 1<<31-1 {
		c.SegmentBytes = 1 << 30
	}
	if c.SegmentAge <= 0 {
		c.SegmentAge = 7 * 24 * time.Hour
	}
	if c.IndexIntervalBytes <= 0 {
		c.IndexIntervalBytes = 4096
	}
}

// ManagerOptions says where the partitions of a node are.
type ManagerOptions struct {
	FS       vfs.FS
	Dir      string // one folder per partition below it
	Clock    clock.Clock
	Logger   *slog.Logger
	MaxFiles int // open file handles at a time, beyond those in use; 0: 1024
}

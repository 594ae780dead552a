// Package journal owns the one file of a data folder that is synced while somebody waits.
//
// A caller builds a Unit of entries and commits it; units that queue while the last sync runs are written together and
// made durable with one fdatasync. A unit is atomic: after a crash it is there whole, or not at all. Its entries are handed
// to an ApplyFunc in the order of the units, and by the same function when the journal is read again after a crash.
// docs/format/journal.md draws the bytes.
//
// What always holds:
//   - A unit whose Wait returned nil is found again by Recover until a Checkpoint beyond it.
//   - Recover yields a prefix of the order that Commit made.
//   - Entries other than KindBatch are applied only after their unit is durable; a KindBatch entry may be applied before,
//     so whoever applies it must be able to take it back (a partition's file is cut behind the last unit).
//   - A failed write, sync or apply is final: nothing is acknowledged after it, and nothing is tried again.
//   - The journal overwrites only bytes of segments that a checkpoint released, never appends to a segment that an earlier
//     process wrote, and so cannot mistake old bytes for new ones.
//   - Bytes that were durable once and are damaged now are an error, not the end of the journal.
//
// Lock order: ckptMu, then mu, then waiters.mu. The sequence function of Commit runs under mu.
package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/vfs"
)

// LSN is the position of a unit in the endless stream of the journal, in bytes; strictly increasing. 0 is before all.
type LSN uint64

// Kind is what an entry of a unit is.
type Kind uint8

const (
	// KindBatch is a record batch for a partition.
	KindBatch Kind = 1
	// KindMeta is a metadata key with its value, or its deletion.
	KindMeta Kind = 2
	// KindRows are changed rows of a table or view.
	KindRows Kind = 3
	// KindState are changed rows of operator state.
	KindState Kind = 4
)

// HeadLen is how many bytes at the start of an entry's payload Commit's sequence function may change. (The rest of a
// large unit may be on disk before its turn in the order is known.)
const HeadLen = 64

// ApplyFunc takes one entry, and may keep payload only while it runs. Entries come in order, with one exception while the
// journal runs: KindBatch entries of a group come while the group is being synced, all others after that (a database that
// flushes on its own must not get what a crash can still undo). An error is final for the journal.
type ApplyFunc func(lsn LSN, kind Kind, payload []byte) error

var (
	// ErrClosed says that the journal was closed.
	ErrClosed = errors.New("journal is closed")
	// ErrNoSpace says that the disk has no room for another segment. The unit was not ordered; try again when there is room.
	ErrNoSpace = errors.New("no room on disk for another journal segment")
	// ErrTooLarge says that a unit has too many entries, or is larger than any unit may be.
	ErrTooLarge = errors.New("unit is too large for the journal")
	// ErrFormat says that the folder was written by a version of the format that this binary does not know.
	ErrFormat = errors.New("unknown journal format")
)

// DamageError says that bytes which had been durable are not what was written.
type DamageError struct {
	File   string
	Offset int64
	Reason string
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("journal is damaged: %s at byte %d: %s (units after it exist, so it is not the end of the journal; restore the folder from a copy)",
		e.File, e.Offset, e.Reason)
}

// Group says what one write and sync of the journal did; for metrics.
type Group struct {
	Units, Bytes       int
	Write, Sync, Apply time.Duration
}

// Options of a journal.
type Options struct {
	FS  vfs.FS
	Dir string // of the journal alone
	// SegmentBytes is the size of a segment file, allocated and zeroed in advance; 0 is 32 MiB.
	SegmentBytes int64
	// QueueBytes bounds what is queued and not yet durable: Commit blocks beyond it; 0 is 64 MiB.
	QueueBytes int64
	// FragmentBytes is the size above which a unit is written in fragments between those of others; 0 is 1 MiB.
	FragmentBytes int
	// SpareSegments is how many free segments are kept allocated in advance; 0 is 1.
	SpareSegments int
	Logger        *slog.Logger
	Clock         clock.Clock
	// Observe, if set, is called after every group by the journal's own goroutine.
	Observe func(Group)
}

const (
	minSegmentBytes = 64 << 10
	maxSegmentBytes = 1 << 30
	// maxUnitBytes bounds a unit, and so what recovery has to hold in memory at a time.
	maxUnitBytes = 2 << 30
	// maxGroupBytes bounds one write, and so how long a small unit waits for the units around it.
	maxGroupBytes = 16 << 20
	// maxFree is how many free segments a checkpoint keeps beyond the spare ones.
	maxFree = 8
)

func (o *Options) setDefaults() error {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 32 << 20
	}
	if o.SegmentBytes < minSegmentBytes || o.SegmentBytes > maxSegmentBytes {
		return fmt.Errorf("journal segment size %d is outside [%d, %d]", o.SegmentBytes, minSegmentBytes, maxSegmentBytes)
	}
	o.SegmentBytes = o.SegmentBytes &^ (segmentHeaderBytes/2 - 1)
	if o.QueueBytes <= 0 {
		o.QueueBytes = 64 << 20
	}
	if o.FragmentBytes <= 0 {
		o.FragmentBytes = 1 << 20
	}
	o.FragmentBytes = min(o.FragmentBytes, o.maxFragment()-fragmentHeaderBytes-8)
	if o.SpareSegments <= 0 {
		o.SpareSegments = 1
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.Real
	}
	return nil
}

// maxFragment bounds one fragment, header and padding included: a segment holds at least a few of the largest.
func (o *Options) maxFragment() int { return int(o.SegmentBytes / 4) }

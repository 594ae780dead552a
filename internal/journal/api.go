package journal

import (
	"context"
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

// HeadLen is how many bytes at the start of an entry's payload Commit's sequence function may change. (The rest of a large
// unit may be on disk before its turn in the order is known.)
const HeadLen = 64

// Unit is what the journal keeps whole or not at all. Built by one goroutine; not to be touched after Commit.
type Unit struct{}

// NewUnit takes an empty unit from the pool; Commit gives it back, once it is durable and applied. Free gives one back that is
// not to be committed.
func NewUnit() *Unit { panic("TODO") }

// Free gives back a unit that was not committed.
func (u *Unit) Free() { panic("TODO") }

// Reserve adds an entry with a payload of n bytes for the caller to fill in place, before Commit; the first HeadLen bytes
// may still change in Commit's sequence function. The slice never moves. Its bytes are not zeroed.
func (u *Unit) Reserve(kind Kind, n int) []byte { panic("TODO") }

// Append adds an entry whose payload is the parts one after the other; they are copied.
func (u *Unit) Append(kind Kind, parts ...[]byte) { panic("TODO") }

// Len is the number of entries, Size their bytes.
func (u *Unit) Len() int  { panic("TODO") }
func (u *Unit) Size() int { panic("TODO") }

// Entry returns the i-th entry; its payload may be changed as Reserve's.
func (u *Unit) Entry(i int) (Kind, []byte) { panic("TODO") }

// ApplyFunc takes one entry, and may keep payload only while it runs. Entries come in order, with one exception while the
// journal runs: KindBatch entries of a group come while the group is being synced, all others after that (a database that
// flushes on its own must not get what a crash can still make unhappened). An error is final for the journal.
type ApplyFunc func(lsn LSN, kind Kind, payload []byte) error

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

// Stats is a snapshot of the journal for metrics.
type Stats struct {
	QueuedBytes, QueuedUnits int64
	Segments, FreeSegments   int
	LiveBytes                int64 // since the last checkpoint
	Units, Groups, Bytes     int64 // since Open
}

// Journal is the one file that is synced while somebody waits.
type Journal struct{}

// Open reads the journal in o.Dir, or makes a new one. Call Recover next.
func Open(o Options) (*Journal, error) { panic("TODO") }

// Recover calls apply for every entry of all units since the last checkpoint, in order, then the journal takes commits.
func (j *Journal) Recover(apply ApplyFunc) (last LSN, err error) { panic("TODO") }

// Start runs the writer. Without it, Step does its work.
func (j *Journal) Start(apply ApplyFunc) { panic("TODO") }

// SetApply sets what Step applies with; for use without Start.
func (j *Journal) SetApply(apply ApplyFunc) { panic("TODO") }

// Step does the next phase of the writer's work on the caller's goroutine, one of: write a group; apply its batches; sync;
// apply the rest and announce it. False: nothing to do. Not to be mixed with Start.
func (j *Journal) Step() bool { panic("TODO") }

// Commit orders the unit: under the ordering lock it calls sequence (which may assign offsets, in the first HeadLen bytes of
// payloads), then queues it. It blocks only for the queue's byte budget. After an error the unit is not in the journal, and
// sequence was not called; the caller still owns it.
func (j *Journal) Commit(u *Unit, sequence func(lsn LSN)) (LSN, error) { panic("TODO") }

// Sequence runs fn under the ordering lock. fn must not call the journal.
func (j *Journal) Sequence(fn func()) { panic("TODO") }

// Wait returns when the unit at lsn is durable and applied.
func (j *Journal) Wait(ctx context.Context, lsn LSN) error { panic("TODO") }

// Durable is the LSN of the last unit that is durable and applied.
func (j *Journal) Durable() LSN { panic("TODO") }

// Ordered is the LSN of the last unit that was ordered.
func (j *Journal) Ordered() LSN { panic("TODO") }

// OnDurable has fn called, in order, after each group is durable and applied and before its waiters wake. Call it before Start.
func (j *Journal) OnDurable(fn func(LSN)) { panic("TODO") }

// Checkpoint says that every unit before upTo is elsewhere on disk: remembers that durably, and recycles segments.
func (j *Journal) Checkpoint(upTo LSN) error { panic("TODO") }

// Checkpointed is the LSN that the last checkpoint reached.
func (j *Journal) Checkpointed() LSN { panic("TODO") }

// Err is the failed sync, write or apply that ended the journal; every later Commit and Wait returns it.
func (j *Journal) Err() error { panic("TODO") }

// Done is closed when the journal has failed or is closed.
func (j *Journal) Done() <-chan struct{} { panic("TODO") }

// Stats returns the journal's figures.
func (j *Journal) Stats() Stats { panic("TODO") }

// Close writes what is queued, and stops. The journal takes no commits after it.
func (j *Journal) Close() error { panic("TODO") }

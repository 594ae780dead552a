package state

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/spill"
)

// ApplierOptions of an applier.
type ApplierOptions struct {
	DB *kv.DB
	// Budget is what payloads that wait are accounted in; nil accounts for itself alone.
	Budget *budget.Budget
	// Spill is where the files are that payloads name.
	Spill *spill.Folder
	// RecoverBytes is how much is collected while recovering before it is applied; 0 is 32 MiB.
	RecoverBytes int64
}

// Applier brings KindRows and KindState payloads into kv, one for a node. Safe for concurrent use: Apply, Publish and
// ApplyState each wait only for others of their own sort.
//
// What always holds:
//   - The mark of a kind moves in the same batch as, or behind, the last change up to it.
//   - The rows of all units up to a mark appear at once: no snapshot is published while some of them are being written.
//   - Rows and state may be in kv in part beyond their mark after a crash. Replaying from the mark on repairs that, since changes are
//     absolute and whatever was written came from units that are in the journal.
//   - A file that a unit names stays until a checkpoint is beyond the unit.
type Applier struct {
	db     *kv.DB
	budget *budget.Budget
	limit  int64

	mu         sync.Mutex // guards what follows
	queues     [2]queue   // state, rows
	recovering bool
	snap       *kv.Snapshot
	published  journal.LSN
	closed     bool
	spill      *spill.Folder
	named      []namedFile // by units that a checkpoint has not passed
	fileBytes  int64       // of these

	kinds [2]kindApplier

	batchBytes int          // of state that is written at once
	afterBatch func() error // for tests: called between two batches
}

// namedFile is a file of rows and the unit that names it.
type namedFile struct {
	spill.File
	lsn journal.LSN
}

// kindApplier is what applying one kind needs; its lock is held throughout.
type kindApplier struct {
	mu       sync.Mutex
	merge    merge
	payloads [][]byte
	partial  bool // some of what is beyond the mark is in kv
}

// queue holds the payloads of one kind that are not in kv, in order of their LSN.
type queue struct {
	entries []entry
	applied journal.LSN
	bytes   int64
	changes int64
	block   *block // the one that takes the next payload
}

type entry struct {
	lsn     journal.LSN
	payload []byte // in block
	changes int64
	block   *block
}

// block is mapped memory that payloads are copied into, one after the other; it goes when the last of them is applied.
type block struct {
	mem  []byte
	used int
	refs int
}

const (
	blockBytes     = 256 << 10
	batchBytes     = 4 << 20
	recoverBytes   = 32 << 20
	stateQueue     = 0
	rowsQueue      = 1
	maxPayloadSize = 1 << 30
)

// NewApplier makes one. Until FinishRecovery it takes everything it is given as durable, and may apply it at once.
func NewApplier(o ApplierOptions) (*Applier, error) {
	if o.DB == nil {
		return nil, errors.New("state: an applier needs a database")
	}
	a := &Applier{db: o.DB, budget: o.Budget, spill: o.Spill, limit: o.RecoverBytes, recovering: true, batchBytes: batchBytes}
	if a.budget == nil {
		a.budget = budget.New("applier", 0)
	}
	if a.limit == 0 {
		a.limit = recoverBytes
	}
	a.queues[stateQueue].applied = o.DB.Mark(journal.KindState)
	a.queues[rowsQueue].applied = o.DB.Mark(journal.KindRows)
	return a, nil
}

func queueOf(kind journal.Kind) int {
	switch kind {
	case journal.KindState:
		return stateQueue
	case journal.KindRows:
		return rowsQueue
	}
	panic(fmt.Sprintf("state: an entry of kind %d for the applier of rows and state", kind))
}

func kindOf(q int) journal.Kind {
	if q == stateQueue {
		return journal.KindState
	}
	return journal.KindRows
}

// Apply is the journal's apply callback for KindRows and KindState, when running and when recovering: it checks and copies the
// payload, and skips what kv already has.
func (a *Applier) Apply(lsn journal.LSN, kind journal.Kind, payload []byte) error {
	q := queueOf(kind)
	if len(payload) > maxPayloadSize {
		return fmt.Errorf("%w: %d bytes, more than an entry can have (unit at LSN %d)", ErrCorrupt, len(payload), lsn)
	}
	changes, file, err := inspect(payload)
	if err != nil {
		return fmt.Errorf("unit at LSN %d: %w", lsn, err)
	}

	a.mu.Lock()
	if lsn <= a.queues[q].applied {
		a.mu.Unlock()
		return nil
	}
	a.queues[q].push(a.budget, lsn, payload, changes)
	if file.Number != 0 {
		a.named = append(a.named, namedFile{file, lsn})
		a.fileBytes += file.Bytes
	}
	// A unit may have more entries of the kind: what is applied ends with the unit before.
	var upTo journal.LSN
	if a.recovering && a.queues[q].bytes > a.limit {
		upTo = a.queues[q].before(lsn)
	}
	a.mu.Unlock()
	if upTo > 0 {
		return a.apply(q, upTo)
	}
	return nil
}

// inspect checks a payload, and tells how many changes it stands for, and the file that it names, if it does.
func inspect(payload []byte) (changes int64, file spill.File, err error) {
	if isRef(payload) {
		r, err := decodeRef(payload)
		return r.changes, r.file, err
	}
	d := NewDecoder(payload)
	for c := (Change{}); d.Next(&c); {
		changes++
	}
	return changes, file, d.Err()
}

// before is the LSN of the last unit in the queue that is before lsn; 0 if there is none.
func (q *queue) before(lsn journal.LSN) journal.LSN {
	for i := len(q.entries) - 1; i >= 0; i-- {
		if q.entries[i].lsn < lsn {
			return q.entries[i].lsn
		}
	}
	return 0
}

func (q *queue) push(b *budget.Budget, lsn journal.LSN, payload []byte, changes int64) {
	bl := q.block
	if bl == nil || len(bl.mem)-bl.used < len(payload) {
		if bl != nil && bl.refs == 0 {
			b.Release(int64(len(bl.mem)))
			unmapMemory(bl.mem)
		}
		n := max(blockBytes, (len(payload)+4095)&^4095)
		b.Force(int64(n))
		bl = &block{mem: mapMemory(n)}
		q.block = bl
	}
	n := copy(bl.mem[bl.used:], payload)
	q.entries = append(q.entries, entry{lsn: lsn, payload: bl.mem[bl.used : bl.used+n : bl.used+n], changes: changes, block: bl})
	bl.used += n
	bl.refs++
	q.bytes += int64(n)
	q.changes += changes
}

// pop removes the first n entries.
func (q *queue) pop(b *budget.Budget, n int) {
	for i := range q.entries[:n] {
		e := &q.entries[i]
		q.bytes -= int64(len(e.payload))
		q.changes -= e.changes
		if e.block.refs--; e.block.refs == 0 {
			if e.block == q.block {
				e.block.used = 0 // to be filled again
				if len(e.block.mem) == blockBytes {
					continue
				}
				q.block = nil
			}
			b.Release(int64(len(e.block.mem)))
			unmapMemory(e.block.mem)
		}
	}
	rest := copy(q.entries, q.entries[n:])
	clear(q.entries[rest:])
	q.entries = q.entries[:rest]
	if rest == 0 && cap(q.entries) > 1024 {
		q.entries = nil
	}
}

// FinishRecovery applies all that was replayed and publishes the first snapshot; last is what journal.Recover returned. Call it
// before the first table is used.
func (a *Applier) FinishRecovery(last journal.LSN) error {
	if err := a.apply(stateQueue, last); err != nil {
		return err
	}
	if err := a.apply(rowsQueue, last); err != nil {
		return err
	}
	a.mu.Lock()
	a.recovering = false
	a.mu.Unlock()
	a.publish(last)
	if a.spill == nil {
		return nil
	}
	return a.spill.Clean(a.names)
}

// names tells whether a unit that counts names the file.
func (a *Applier) names(number uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.named, func(f namedFile) bool { return f.Number == number })
}

// Checkpointed says that everything up to and including upTo is in kv and durable there: the files that units up to there name are removed.
func (a *Applier) Checkpointed(upTo journal.LSN) error {
	a.mu.Lock()
	var gone []namedFile
	a.named = slices.DeleteFunc(a.named, func(f namedFile) bool {
		if f.lsn <= upTo {
			gone = append(gone, f)
			a.fileBytes -= f.Bytes
		}
		return f.lsn <= upTo
	})
	a.mu.Unlock()
	var errs []error
	for _, f := range gone {
		errs = append(errs, a.spill.Remove(f.Number))
	}
	return errors.Join(errs...)
}

// Publish writes the row changes of all units up to and including upTo (which must be durable), merged, the mark with the last of them, and publishes a
// snapshot.
func (a *Applier) Publish(upTo journal.LSN) error {
	a.mu.Lock()
	done := a.snap != nil && upTo <= a.published
	a.mu.Unlock()
	if done {
		return nil
	}
	if err := a.apply(rowsQueue, upTo); err != nil {
		return err
	}
	a.publish(upTo)
	return nil
}

// publish takes the snapshot. A Publish that ran beside this one may have been first with a later one; what matters is that
// the snapshot never goes back.
func (a *Applier) publish(upTo journal.LSN) {
	k := &a.kinds[rowsQueue]
	k.mu.Lock() // no rows are being written
	defer k.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if k.partial {
		return // who wrote them has failed, and says so
	}
	upTo = max(upTo, a.queues[rowsQueue].applied)
	if a.closed || (a.snap != nil && upTo <= a.published) {
		return
	}
	old := a.snap
	a.snap, a.published = a.db.Snapshot(), upTo
	if old != nil {
		old.Release()
	}
}

// ApplyState writes the state changes of all units up to and including upTo (which must be durable), merged and sorted, in
// batches; the mark moves with the last.
func (a *Applier) ApplyState(upTo journal.LSN) error {
	if err := a.apply(stateQueue, upTo); err != nil {
		return err
	}
	a.renew()
	return nil
}

// renew takes the published snapshot again, of the same rows: an old one would make the database keep every row of state that was
// overwritten since, for as long as no view changes.
func (a *Applier) renew() {
	k := &a.kinds[rowsQueue]
	k.mu.Lock() // no rows are being written
	defer k.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.snap == nil || k.partial || a.queues[rowsQueue].applied > a.published {
		return // who applies the rows publishes them next
	}
	old := a.snap
	a.snap = a.db.Snapshot()
	old.Release()
}

func (a *Applier) apply(q int, upTo journal.LSN) error {
	k := &a.kinds[q]
	k.mu.Lock()
	defer k.mu.Unlock()

	a.mu.Lock()
	queue := &a.queues[q]
	if upTo <= queue.applied {
		a.mu.Unlock()
		return nil
	}
	n := 0
	for n < len(queue.entries) && queue.entries[n].lsn <= upTo {
		n++
	}
	// The entries stay in the queue meanwhile; Apply only adds behind them (and may move the slice: take a copy of it).
	k.payloads = k.payloads[:0]
	for i := range queue.entries[:n] {
		k.payloads = append(k.payloads, queue.entries[i].payload)
	}
	a.mu.Unlock()

	if n > 0 {
		k.partial = true
		err := a.write(k, q, upTo)
		clear(k.payloads)
		if err != nil {
			return fmt.Errorf("bring changes up to LSN %d into the database: %w", upTo, err)
		}
		k.partial = false
	}

	a.mu.Lock()
	a.queues[q].pop(a.budget, n)
	a.queues[q].applied = upTo
	a.mu.Unlock()
	return nil
}

// write brings a kind's payloads into kv, with the mark: runs of them merged, what a file has as it stands there.
func (a *Applier) write(k *kindApplier, q int, upTo journal.LSN) (err error) {
	w := newWriter(a.db, a.batchBytes)
	if q == rowsQueue {
		w.limit *= 4 // mostly all of them at once
	}
	w.afterBatch = a.afterBatch
	defer func() {
		if err != nil {
			w.giveUp()
		}
	}()
	for left := k.payloads; len(left) > 0; {
		if isRef(left[0]) {
			if err := w.flush(); err != nil {
				return err
			}
			r, err := decodeRef(left[0])
			if err != nil {
				return err
			}
			if err := r.each(a.spill, w.change); err != nil {
				return err
			}
			left = left[1:]
			continue
		}
		n := slices.IndexFunc(left, isRef)
		if n < 0 {
			n = len(left)
		}
		if err := w.flush(); err != nil {
			return err
		}
		k.merge.payloads = append(k.merge.payloads[:0], left[:n]...)
		if err := k.merge.write(w, a.budget); err != nil {
			return err
		}
		left = left[n:]
	}
	return w.finish(kindOf(q), upTo)
}

// Applied is the LSN up to which the kind is in kv.
func (a *Applier) Applied(kind journal.Kind) journal.LSN {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.queues[queueOf(kind)].applied
}

// Published is the LSN of the published snapshot.
func (a *Applier) Published() journal.LSN {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.published
}

// Snapshot is the published snapshot with its LSN, retained for the caller, who releases it. Nil before FinishRecovery.
func (a *Applier) Snapshot() (*kv.Snapshot, journal.LSN) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.snap == nil {
		return nil, 0
	}
	return a.snap.Retain(), a.published
}

// Pending is what was taken and is not in kv.
type Pending struct {
	RowsBytes, StateBytes int64
	Rows, State           int64 // changed rows, not distinct
	FileBytes             int64 // of files that a checkpoint lets go of, in kv or not
}

// Pending returns the figures for the decision to publish or to make a checkpoint.
func (a *Applier) Pending() Pending {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Pending{
		RowsBytes: a.queues[rowsQueue].bytes, Rows: a.queues[rowsQueue].changes,
		StateBytes: a.queues[stateQueue].bytes, State: a.queues[stateQueue].changes,
		FileBytes: a.fileBytes,
	}
}

// Close releases the snapshot and memory. What is pending is in the journal.
func (a *Applier) Close() {
	for i := range a.kinds {
		k := &a.kinds[i]
		k.mu.Lock()
		defer k.mu.Unlock()
		a.budget.Release(k.merge.taken)
		k.merge = merge{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.snap != nil {
		a.snap.Release()
		a.snap = nil
	}
	for i := range a.queues {
		q := &a.queues[i]
		q.pop(a.budget, len(q.entries))
		if q.block != nil {
			a.budget.Release(int64(len(q.block.mem)))
			unmapMemory(q.block.mem)
			q.block = nil
		}
	}
}

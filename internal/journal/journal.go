package journal

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leat-io/leat/internal/vfs"
)

// Journal is the one file that is synced while somebody waits.
type Journal struct {
	o Options

	mu    sync.Mutex // the ordering lock
	work  sync.Cond  // the writer waits: something is queued, or the journal ends
	space sync.Cond  // committers wait: for the byte budget, or for a segment
	alloc sync.Cond  // the allocator waits: segments are wanted

	queue       []item
	queuedBytes int64 // on disk's scale; until durable and applied
	queuedUnits int64
	nextLSN     LSN
	nextStream  uint32
	ordered     LSN
	closing     bool
	started     bool
	recovered   bool

	// Where the queue will be written is known when it is queued: fragments go one after the other and never cross a
	// segment. plannedSegs counts the free segments that it takes, plannedOff is the place in the last of them.
	plannedSegs int
	plannedOff  int64

	live     []*segment // in order of seq; the last is being written
	free     []*segment // zeroed or recycled
	nextSlot int
	nextSeq  uint64
	streams  map[uint32]streamPin // large units some of whose fragments are written, but not the last
	attempts int                  // of the allocator
	allocErr error
	ckpt     checkpoint

	ckptMu  sync.Mutex
	waiters waiters

	durable   atomic.Uint64
	failure   atomic.Pointer[error]
	done      chan struct{}
	stopped   sync.WaitGroup
	onDurable []func(LSN)

	w writer

	units, groups, bytes atomic.Int64
}

// item is one fragment to be written.
type item struct {
	u        *Unit
	typ      byte
	lsn      LSN
	from, to int // of the body, for typeBody
	size     int // of the fragment
}

// streamPin keeps the segments that hold the first fragments of a large unit.
type streamPin struct {
	unit     *Unit
	firstSeq uint64
}

// Open reads what is in o.Dir, or makes it. Call Recover next. The caller holds the lock on the data folder (vfs.LockDir).
func Open(o Options) (*Journal, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	j := &Journal{o: o, nextLSN: 1, nextStream: 1, nextSeq: 1, streams: map[uint32]streamPin{}, done: make(chan struct{})}
	j.work.L, j.space.L, j.alloc.L = &j.mu, &j.mu, &j.mu
	if err := j.openFolder(); err != nil {
		j.closeFiles()
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return j, nil
}

// Start runs the writer. Without it, Step does its work.
func (j *Journal) Start(apply ApplyFunc) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.recovered || j.started {
		panic("journal: Start needs Recover before it, and once only")
	}
	j.started = true
	j.w.apply = apply
	j.stopped.Add(3)
	j.w.syncNow, j.w.synced = make(chan struct{}), make(chan error)
	go j.runWriter()
	go j.runSyncer()
	go j.runAllocator()
}

// SetApply sets what Step applies with, for use without Start.
func (j *Journal) SetApply(apply ApplyFunc) { j.w.apply = apply }

// Commit orders the unit: under the ordering lock it calls sequence, which may be nil and may assign offsets in the first
// HeadLen bytes of payloads, then queues it. It blocks only for the queue's byte budget and, rarely, for a segment to be
// allocated. The unit belongs to the journal from the call on, error or not. After an error it is not in the journal, and
// sequence was not called.
func (j *Journal) Commit(u *Unit, sequence func(lsn LSN)) (LSN, error) {
	encoded := u.encodedLen()
	if encoded <= j.o.FragmentBytes {
		return j.order(u, typeWhole, encoded, encoded, sequence)
	}
	heads := u.headsLen()
	if fragmentSize(heads) > j.o.maxFragment() || encoded > maxUnitBytes {
		return 0, fmt.Errorf("%w: %d entries, %d bytes", ErrTooLarge, len(u.entries), u.size)
	}
	body := u.bodyLen()
	j.mu.Lock()
	u.stream = j.nextStream
	j.nextStream++
	j.mu.Unlock()
	for from := 0; from < body; {
		to := min(body, from+j.o.FragmentBytes)
		if err := j.enqueueBody(u, from, to); err != nil {
			return 0, err
		}
		from = to
	}
	lsn, err := j.order(u, typeFinal, heads, encoded, sequence)
	if err != nil {
		j.abort(u)
	}
	return lsn, err
}

// order queues the fragment that makes a unit exist.
func (j *Journal) order(u *Unit, typ byte, payload, logical int, sequence func(LSN)) (LSN, error) {
	size := fragmentSize(payload)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.admit(size); err != nil {
		return 0, err
	}
	lsn := j.nextLSN
	j.nextLSN += LSN(max(1, logical))
	j.ordered = lsn
	u.lsn = lsn
	if sequence != nil {
		sequence(lsn)
	}
	j.queuedUnits++
	j.enqueue(item{u: u, typ: typ, lsn: lsn, size: size})
	return lsn, nil
}

// enqueueBody queues a part of a large unit. The lock is free between the parts, so others' units get in between.
func (j *Journal) enqueueBody(u *Unit, from, to int) error {
	size := fragmentSize(to - from)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.admit(size); err != nil {
		u.aborted = true
		return err
	}
	j.enqueue(item{u: u, typ: typeBody, from: from, to: to, size: size})
	return nil
}

func (j *Journal) abort(u *Unit) {
	j.mu.Lock()
	u.aborted = true
	j.mu.Unlock()
}

// enqueue takes the place that admit found; mu is held.
func (j *Journal) enqueue(it item) {
	if j.plannedOff+int64(it.size) > j.o.SegmentBytes {
		j.plannedSegs++
		j.plannedOff = segmentHeaderBytes
	}
	j.plannedOff += int64(it.size)
	j.queuedBytes += int64(it.size)
	j.queue = append(j.queue, it)
	if len(j.queue) == 1 {
		j.work.Signal()
	}
	if j.started && len(j.free)-j.plannedSegs < j.o.SpareSegments {
		j.alloc.Signal()
	}
}

// admit waits until a fragment of size bytes may be queued; mu is held.
func (j *Journal) admit(size int) error {
	attempts := j.attempts
	for {
		if err := j.Err(); err != nil {
			return err
		}
		if j.closing {
			return ErrClosed
		}
		if !j.recovered {
			return fmt.Errorf("journal: Commit before Recover")
		}
		// Stepped by one goroutine nobody drains the queue meanwhile, so the budget cannot be waited for.
		if j.started && j.queuedBytes > 0 && j.queuedBytes+int64(size) > j.o.QueueBytes {
			j.space.Wait()
			continue
		}
		if j.plannedOff+int64(size) <= j.o.SegmentBytes || j.plannedSegs < len(j.free) {
			return nil
		}
		if !j.started {
			seg, err := j.allocate(j.takeSlot())
			if err != nil {
				return j.allocationError(err)
			}
			j.free = append(j.free, seg)
			continue
		}
		if j.attempts > attempts && j.allocErr != nil {
			return j.allocationError(j.allocErr)
		}
		j.alloc.Signal()
		j.space.Wait()
	}
}

func (j *Journal) allocationError(err error) error {
	if vfs.NoSpace(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return fmt.Errorf("allocate journal segment: %w", err)
}

// Sequence runs fn under the ordering lock; fn must not call the journal.
func (j *Journal) Sequence(fn func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fn()
}

// Wait returns when the unit at lsn is durable and applied.
func (j *Journal) Wait(ctx context.Context, lsn LSN) error {
	if j.Durable() >= lsn {
		return nil
	}
	x := j.waiters.add(j, lsn)
	if x != nil {
		if err := j.waiters.wait(ctx, x); err != nil {
			return err
		}
	}
	if j.Durable() >= lsn {
		return nil
	}
	return j.Err()
}

// Durable is the LSN of the last unit that is durable and applied.
func (j *Journal) Durable() LSN { return LSN(j.durable.Load()) }

// Ordered is the LSN of the last unit that was ordered.
func (j *Journal) Ordered() LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ordered
}

// OnDurable has fn called, in order, after each group is durable and applied and before its waiters wake. To be called
// before Start.
func (j *Journal) OnDurable(fn func(LSN)) { j.onDurable = append(j.onDurable, fn) }

// Err is the failed sync, write or apply that ended the journal, or ErrClosed; every later Commit and Wait returns it.
func (j *Journal) Err() error {
	if p := j.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// Done is closed when the journal has failed or is closed.
func (j *Journal) Done() <-chan struct{} { return j.done }

// fail ends the journal; the first reason stays.
func (j *Journal) fail(err error) {
	if !j.failure.CompareAndSwap(nil, &err) {
		return
	}
	if err != ErrClosed {
		j.o.Logger.Error("the journal has failed and takes no more units", "dir", j.o.Dir, "error", err)
	}
	close(j.done)
	j.mu.Lock()
	j.work.Broadcast()
	j.space.Broadcast()
	j.alloc.Broadcast()
	j.mu.Unlock()
	j.waiters.wake(^LSN(0))
}

// Stats is a snapshot of the journal for metrics.
type Stats struct {
	QueuedBytes, QueuedUnits int64
	QueueLimit               int64 // of QueuedBytes: committers wait beyond it
	Segments, FreeSegments   int
	LiveBytes                int64 // logical bytes since the last checkpoint
	Units, Groups, Bytes     int64 // since Open
}

// Stats returns the journal's figures.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Stats{
		QueueLimit: j.o.QueueBytes, QueuedBytes: j.queuedBytes, QueuedUnits: j.queuedUnits, Segments: len(j.live), FreeSegments: len(j.free),
		Units: j.units.Load(), Groups: j.groups.Load(), Bytes: j.bytes.Load(),
	}
	s.LiveBytes = int64(j.nextLSN) - int64(max(1, j.ckpt.lsn))
	return s
}

// Close writes what is queued, waits for it, and stops. The journal takes no commits after it.
func (j *Journal) Close() error {
	j.mu.Lock()
	already := j.closing
	j.closing = true
	j.work.Broadcast()
	j.space.Broadcast()
	j.alloc.Broadcast()
	started := j.started
	j.mu.Unlock()
	if already {
		j.stopped.Wait()
		return nil
	}
	if started {
		j.stopped.Wait()
	} else if j.recovered {
		for j.Step() {
		}
	}
	err := j.Err()
	if err == nil && j.recovered {
		// The next Open then knows how far the journal must be readable.
		j.ckptMu.Lock()
		if n := len(j.live); n > 0 {
			j.ckpt.endSeq, j.ckpt.endOff = j.live[n-1].seq, uint64(j.w.off)
		}
		err = j.writeCheckpoint(j.ckpt)
		j.ckptMu.Unlock()
	}
	j.fail(ErrClosed)
	j.closeFiles()
	return err
}

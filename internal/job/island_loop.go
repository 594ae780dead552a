package job

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/state"
)

// noTime is "no watermark yet".
const noTime = flow.NoTime

// island drives the epochs of one flow.Island. mu is held while an epoch runs and while the graph changes.
type island struct {
	m       *Manager
	watcher *broker.Watcher
	lowest  atomic.Uint64 // smallest id of its jobs
	at      committed

	mu           sync.Mutex
	flow         *flow.Island
	tables       []*state.Tables // one set a worker
	members      []uint64        // jobs, by id
	building     []uint64        // those among them that cannot be read yet
	pace         pace
	now          int64       // now() of the last epoch, microseconds
	committing   journal.LSN // the epoch's unit that is not durable yet, 0 when there is none
	result       *flow.Result
	started      time.Time // when the epoch whose unit is being committed was begun
	read         int64     // records that it read
	due          bool      // the next epoch runs even without input: jobs were attached, or a backfill goes on
	watched      map[int]*watched
	fetched      map[int]*fetched // readers of sources outside
	health       outsideHealth
	groups       []cutGroup
	backfill     map[uint64][]flow.BackfillState // of jobs that are not live, as of the last epoch
	computed     time.Time                       // when its workers were done
	ordered      time.Time                       // when its unit was ordered
	committedLSN journal.LSN                     // of the last epoch
	builder      record.Builder
	batch        []byte
	ran          map[uint64]bool     // jobs that an epoch was committed for in this run
	fresh        map[uint64]bool     // jobs that no epoch was ever committed for
	savedAs      map[string]struct{} // metadata keys that hold this island's positions
	saved        []byte              // what the last epoch saved there
	restored     map[uint64]savedJob // where jobs were attached that no epoch of this island has saved yet
	stopped      []savedPositions    // where jobs were that have stopped since
	outputs      outputs
	toldSpill    int64         // now() of the last epoch of which the log says that it spilled
	err          error         // final
	quiet        bool          // there was nothing to read
	ahead        time.Duration // what may be spent on reading rows of state ahead
	closed       bool
}

func (m *Manager) newIsland() (*island, error) {
	x := &island{
		m: m, watcher: broker.NewWatcher(), pace: newPace(), watched: map[int]*watched{}, fetched: map[int]*fetched{}, savedAs: map[string]struct{}{},
		restored: map[uint64]savedJob{}, backfill: map[uint64][]flow.BackfillState{}, ran: map[uint64]bool{}, fresh: map[uint64]bool{}, builder: *record.NewBuilder(record.None),
	}
	x.at.moved = make(chan struct{})
	for range m.o.Workers {
		x.tables = append(x.tables, state.NewTables(state.Options{
			Name: "state", DB: m.o.DB, Applier: m.o.Applier, Budget: m.o.Budget, Spill: m.o.Spill, SpillBytes: m.o.SpillBytes,
		}))
	}
	f, err := flow.NewIsland(flow.Options{Workers: m.o.Workers, Seed: m.o.Seed, BatchRows: m.o.BatchRows, Tables: x.tables})
	if err != nil {
		return nil, err
	}
	x.flow = f
	m.o.Broker.WatchTopics(x.watcher) // the topic of a source need not exist when a job is attached
	return x, nil
}

// loop runs the island until ctx ends or the journal fails.
func (x *island) loop(ctx context.Context) {
	timer := x.m.o.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		progress, wakeAt := x.step(x.m.o.Clock.Now())
		if lsn := x.pending(); lsn != 0 {
			if err := x.m.o.Broker.Wait(ctx, lsn); err != nil {
				if ctx.Err() == nil {
					x.fail(err)
				}
				return
			}
			continue
		}
		if progress {
			continue
		}
		if x.finished() {
			return
		}
		if x.idle() {
			continue
		}
		var due <-chan time.Time
		if !wakeAt.IsZero() {
			timer.Reset(max(wakeAt.Sub(x.m.o.Clock.Now()), 0))
			due = timer.C()
		}
		select {
		case <-ctx.Done():
		case <-x.watcher.C:
		case <-due:
		}
	}
}

// idle reads rows ahead while there is nothing else to do, but not before the first epoch.
func (x *island) idle() (more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || x.committing != 0 || x.committedLSN == 0 || !x.quiet {
		return false
	}
	return x.preload(preloadSpan)
}

func (x *island) pending() journal.LSN {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.committing
}

func (x *island) finished() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err != nil || x.closed
}

func (x *island) failed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err != nil
}

// fail ends the island: the journal takes nothing more, or the engine is broken beyond one job.
func (x *island) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failLocked(err)
}

func (x *island) failLocked(err error) {
	if x.err != nil {
		return
	}
	x.err = err
	if x.m.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		x.wake()
		return // the node stops: the epoch that could not be committed is run again at the next start, and no job has failed
	}
	for _, id := range x.members {
		if j := x.m.job(id); j != nil {
			x.m.fail(j, err)
		}
	}
	x.wake()
}

// step finishes a commit, or runs one epoch and begins its commit. It never waits for the disk.
func (x *island) step(now time.Time) (progress bool, wakeAt time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil || x.closed {
		return false, time.Time{}
	}
	if x.committing != 0 {
		if x.m.o.Journal.Durable() < x.committing {
			if err := x.m.o.Journal.Err(); err != nil {
				x.failLocked(err)
			}
			return false, time.Time{}
		}
		x.finishCommit(now)
		return true, time.Time{}
	}
	if len(x.members) == 0 {
		return false, time.Time{}
	}
	if wait := x.pace.wait(now); wait > 0 {
		return false, now.Add(wait)
	}
	if x.m.o.Broker.StorageLow() {
		return false, now.Add(100 * time.Millisecond) // no room for results: sources pause until there is
	}
	x.quiet = false
	input, err := x.gather(now)
	if err != nil {
		x.failLocked(err)
		return false, time.Time{}
	}
	if x.quiet = input.empty() && !x.due; x.quiet {
		return false, input.wakeAt
	}
	if ok, wakeAt := x.outputsThere(now); !ok {
		return false, wakeAt
	}
	if err := x.runEpoch(now, input); err != nil {
		x.failLocked(err)
		return false, time.Time{}
	}
	return true, time.Time{}
}

// runEpoch runs an epoch to completion and orders its unit; mu is held.
func (x *island) runEpoch(now time.Time, input *input) error {
	x.now = max(x.now, now.UnixMicro())
	x.started, x.read, x.due = now, input.records, false
	e := &flow.Epoch{
		Number: x.m.epoch.Add(1), Now: x.now, Reads: input.reads, Idle: input.idle, Advance: input.advance,
	}
	result, err := x.flow.Run(e)
	if err != nil {
		return err
	}
	x.m.metrics.epochRun.Observe(x.m.o.Clock.Now().Sub(now).Seconds())
	for i := range result.Jobs {
		if err := result.Jobs[i].Err; err != nil {
			if err := x.stopJob(result.Jobs[i].Job, err); err != nil {
				return err
			}
		}
	}
	x.computed = x.m.o.Clock.Now()
	lsn, err := x.commit(result)
	if err != nil {
		return err
	}
	x.committing, x.result, x.ordered = lsn, result, x.m.o.Clock.Now()
	state.Evict(x.tables, x.m.o.Seed != 0) // while the disk syncs; what it can not do yet is done when the unit is durable
	return nil
}

// stopJob takes a failed job and those that read it out of the graph.
func (x *island) stopJob(id uint64, cause error) error {
	j := x.m.job(id)
	if j == nil || j.failure() != nil {
		return nil
	}
	for _, d := range x.m.Catalog().Dependents(id) {
		if dj := x.m.job(d.ID); dj != nil && dj.island == x {
			if err := x.stopJob(d.ID, errors.New("it reads "+j.relation.QualifiedName()+", which has stopped")); err != nil {
				return err
			}
		}
	}
	x.m.fail(j, cause)
	if err := x.keepStopped(id); err != nil {
		return err
	}
	return x.detachLocked(id)
}

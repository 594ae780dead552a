// Package node is the composition root: it builds a node's parts from a configuration, starts them in order and stops them in the reverse one.
//
// A Core is everything but the doors: journal, database, log and engine over one data folder. A Node adds the doors.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/job"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/spill"
	"github.com/leat-io/leat/internal/state"
	"github.com/leat-io/leat/internal/vfs"
)

// formatVersion is the version of the data folder as a whole; its parts have versions of their own.
const formatVersion = "leat 1"

// CoreOptions are what a Core is built from.
type CoreOptions struct {
	FS     vfs.FS // vfs.Default if nil
	Dir    string
	Clock  clock.Clock // clock.Real if nil
	Logger *slog.Logger
	// Workers is the number of the engine's workers, at least 1.
	Workers int
	// StateMemory bounds what operators keep in memory, in bytes; 0 is 1 GiB.
	StateMemory int64
	// BatchRows, Seed and SpillBytes are for tests: see job.Options.
	BatchRows  int
	Seed       uint64
	SpillBytes int64
	// Stepped leaves out all goroutines: Step does their work. For the simulation.
	Stepped bool

	JournalSegmentBytes int64
	CacheBytes          int64
	MemTableBytes       int64

	Broker  broker.Options // without what Core fills in
	Metrics prometheus.Registerer
	// ObserveEpoch is told of every epoch that has become durable; nil: nobody is.
	ObserveEpoch func(job.EpochStats)
}

// Core is a node without doors.
type Core struct {
	o        CoreOptions
	log      *slog.Logger
	Journal  *journal.Journal
	DB       *kv.DB
	Applier  *state.Applier
	Spill    *spill.Folder
	Broker   *broker.Broker
	Jobs     *job.Manager
	Budget   *budget.Budget // the root of the tree
	engine   *budget.Budget
	clusters *budget.Budget // what sources outside have fetched
	lock     io.Closer

	stop    context.CancelFunc
	stopped sync.WaitGroup
	due     chan struct{} // a checkpoint is wanted

	checkpointed atomic.Int64 // when the last one was made, in nanoseconds since 1970
}

const (
	// A checkpoint is made after so much journal, so many changed rows, or so much time, whatever comes first.
	checkpointBytes = 128 << 20
	checkpointRows  = 1_000_000
	checkpointAge   = 30 * time.Second
	checkpointPoll  = 250 * time.Millisecond
)

// OpenCore opens a data folder, making it if it is not there, recovers it, and starts what runs without doors.
func OpenCore(ctx context.Context, o CoreOptions) (*Core, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Clock == nil {
		o.Clock = clock.Real
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Workers < 1 {
		o.Workers = 1
	}
	if o.StateMemory == 0 {
		o.StateMemory = 1 << 30
	}
	c := &Core{o: o, log: o.Logger, due: make(chan struct{}, 1)}
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Core) open(ctx context.Context) error {
	o := &c.o
	lock, err := vfs.LockDir(o.FS, o.Dir)
	if err != nil {
		return err
	}
	c.lock = lock
	if err := checkFormat(o.FS, o.Dir); err != nil {
		return err
	}
	path := func(name string) string { return o.FS.PathJoin(o.Dir, name) }
	c.Budget = budget.New("node", 0)
	if c.DB, err = kv.Open(kv.Options{FS: o.FS, Dir: path(databaseDir), CacheBytes: o.CacheBytes, MemTableBytes: o.MemTableBytes, Logger: o.Logger}); err != nil {
		return err
	}
	observe, err := broker.ObserveJournal(o.Metrics)
	if err != nil {
		return err
	}
	c.Journal, err = journal.Open(journal.Options{
		FS: o.FS, Dir: path(journalDir), SegmentBytes: o.JournalSegmentBytes, Logger: o.Logger, Clock: o.Clock, Observe: observe,
	})
	if err != nil {
		return err
	}
	if err := checkDatabase(c.DB, c.Journal, o.Dir); err != nil {
		return err
	}
	c.engine = c.Budget.Child("engine", 0)
	c.clusters = c.Budget.Child("clusters", 0)
	c.measureMemory()
	if c.Spill, err = spill.OpenFolder(c.DB.Patient(), path(spillDir), c.DB.Interrupted); err != nil {
		return err
	}
	if c.Applier, err = state.NewApplier(state.ApplierOptions{DB: c.DB, Budget: c.engine.Child("applier", 0), Spill: c.Spill}); err != nil {
		return err
	}
	bo := o.Broker
	if bo.MaxOpenFiles == 0 {
		bo.MaxOpenFiles = openFiles()
	}
	bo.Journal, bo.KV, bo.FS, bo.Dir, bo.Clock, bo.Logger, bo.Metrics = c.Journal, c.DB, o.FS, path(partitionsDir), o.Clock, o.Logger, o.Metrics
	if c.Broker, err = broker.Open(bo); err != nil {
		return err
	}
	started := o.Clock.Now()
	c.checkpointed.Store(started.UnixNano())
	last, err := c.Journal.Recover(c.apply)
	if err != nil {
		return err
	}
	if err := checkJournal(o.FS, c.DB, c.Journal, o.Dir); err != nil {
		return err
	}
	if err := c.Applier.FinishRecovery(last); err != nil {
		return err
	}
	if took := o.Clock.Now().Sub(started); took > 2*time.Second {
		o.Logger.Info("recovered", "seconds", took.Seconds(), "lsn", uint64(last))
	}
	if o.Stepped {
		c.Journal.SetApply(c.apply)
	} else {
		c.Journal.Start(c.apply)
	}
	if err := c.pump(func() error { return c.Broker.Start(ctx) }); err != nil {
		return err
	}
	c.Jobs, err = job.New(job.Options{
		Broker: c.Broker, Journal: c.Journal, DB: c.DB, Applier: c.Applier, Clock: o.Clock, Logger: o.Logger,
		Connect: c.connect, Target: c.target, Workers: o.Workers, StateMemory: o.StateMemory, Budget: c.engine, Spill: c.Spill, SpillBytes: o.SpillBytes, BatchRows: o.BatchRows, Seed: o.Seed, Observe: o.ObserveEpoch,
	})
	if err != nil {
		return err
	}
	if err := c.pump(func() error { return c.Jobs.Restore(ctx) }); err != nil {
		return err
	}
	c.Broker.ReadersReady()
	if o.Metrics != nil {
		if err := c.registerMetrics(o.Metrics); err != nil {
			return err
		}
	}
	if o.Stepped {
		return nil
	}
	c.Jobs.Start()
	run, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.stopped.Go(func() { c.checkpoints(run) })
	return c.Jobs.CatchUp(ctx)
}

// measureMemory puts the parts that keep their own bounds into the tree: whoever meets one waits there (a commit for the journal's queue, the
// applier for a memtable).
func (c *Core) measureMemory() {
	db := c.Budget.Child("database", 0)
	cache, memtables := c.DB.Limits()
	db.Measured("cache", cache, func() int64 { used, _ := c.DB.Memory(); return used })
	db.Measured("memtables", memtables, func() int64 { _, used := c.DB.Memory(); return used })
	c.Budget.Child("log", 0).Measured("journal", c.Journal.Stats().QueueLimit, func() int64 { return c.Journal.Stats().QueuedBytes })
}

// pump runs fn, which waits for the journal, and does the journal's work meanwhile if nobody else does.
func (c *Core) pump(fn func() error) error {
	if !c.o.Stepped {
		return fn()
	}
	done := make(chan error, 1)
	go func() { done <- fn() }()
	for {
		select {
		case err := <-done:
			return err
		default:
			if !c.Journal.Step() {
				time.Sleep(10 * time.Microsecond) // fn is between two commits; nothing else runs that could wake us
			}
		}
	}
}

// Pump runs fn, which waits for commits, on a stepped Core.
func (c *Core) Pump(fn func() error) error { return c.pump(fn) }

// apply brings one entry of the journal to where it belongs, when running and when recovering.
func (c *Core) apply(lsn journal.LSN, kind journal.Kind, payload []byte) error {
	switch kind {
	case journal.KindBatch:
		return c.Broker.ApplyBatch(lsn, payload)
	case journal.KindMeta:
		return c.DB.ApplyMeta(lsn, payload)
	case journal.KindRows, journal.KindState:
		return c.Applier.Apply(lsn, kind, payload)
	}
	return fmt.Errorf("journal unit %d holds an entry of unknown kind %d: it was written by a newer version", lsn, kind)
}

// checkpoints makes a checkpoint when one is due.
func (c *Core) checkpoints(ctx context.Context) {
	last := c.o.Clock.Now()
	timer := c.o.Clock.NewTimer(checkpointPoll)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.due:
		case <-timer.C():
		}
		now := c.o.Clock.Now()
		pending := c.Applier.Pending()
		stats := c.Journal.Stats()
		due := stats.LiveBytes >= checkpointBytes || pending.Rows+pending.State >= checkpointRows || pending.FileBytes >= checkpointBytes ||
			now.Sub(last) >= checkpointAge && stats.LiveBytes > 0
		if due && c.Journal.Err() == nil {
			last = now
			if err := c.Checkpoint(ctx); err != nil && ctx.Err() == nil {
				c.log.Error("checkpoint", "err", err)
			}
		}
		timer.Reset(checkpointPoll)
	}
}

// Checkpoint brings everything that is durable in the journal to where it stays, and recycles the journal behind it.
func (c *Core) Checkpoint(ctx context.Context) error {
	lsn, err := c.Broker.PrepareCheckpoint(ctx)
	if err != nil {
		return err
	}
	if err := c.Applier.Publish(lsn); err != nil {
		return err
	}
	if err := c.Applier.ApplyState(lsn); err != nil {
		return err
	}
	if err := c.DB.SetCheckpoint(lsn); err != nil {
		return err
	}
	if err := c.DB.Flush(); err != nil {
		return err
	}
	if err := c.Journal.Checkpoint(lsn); err != nil {
		return err
	}
	if err := c.Applier.Checkpointed(lsn); err != nil {
		return err
	}
	c.checkpointed.Store(c.o.Clock.Now().UnixNano())
	return nil
}

// Close stops everything in order: the engine at the end of its epoch, then the log, then what they are kept in. Nothing that was
// acknowledged is lost by it. Nor does it wait for room on a full disk: what has not found room is in the journal, and the next start brings it to its place.
func (c *Core) Close() error {
	var errs []error
	c.interrupt()
	if c.stop != nil {
		c.stop()
		c.stopped.Wait()
	}
	if c.Jobs != nil {
		errs = append(errs, c.Jobs.Close())
	}
	if c.Journal != nil {
		if c.Broker != nil && c.Jobs != nil && c.Journal.Err() == nil {
			errs = append(errs, c.pump(func() error { return c.Checkpoint(context.Background()) })) // so that the next start has nothing to replay
		}
		errs = append(errs, c.Journal.Close())
	}
	if c.Broker != nil {
		errs = append(errs, c.Broker.Close())
	}
	if c.Applier != nil {
		c.Applier.Close()
	}
	if c.DB != nil {
		errs = append(errs, c.DB.Close())
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Close())
	}
	for i, err := range errs {
		if errors.Is(err, kv.ErrNoRoom) || vfs.NoSpace(err) {
			c.log.Warn("stopped on a full disk: the next start brings what is in the journal to its place, and needs room for it", "err", err)
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// interrupt ends waits for room on a full disk, now and later.
func (c *Core) interrupt() {
	if c.Broker != nil {
		c.Broker.Interrupt()
	}
	if c.DB != nil {
		c.DB.Interrupt()
	}
}

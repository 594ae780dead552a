// Package job owns the life of stored queries: it attaches them to islands, drives their epochs, commits each epoch as one journal unit, and
// brings them back after a restart.
//
// What always holds:
//   - An epoch's state changes, source positions, watermarks, view rows, dead letters and sink records are one journal unit: all or nothing.
//   - An island's epochs are committed in order; the next one starts when the last one is durable.
//   - The graph of an island changes only between epochs.
//   - A relation is in the catalog before it runs and is gone from it before its rows are deleted, so a crash at any point leaves a job that
//     is restarted or rows that nobody sees.
package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/spill"
	"github.com/leat-io/leat/internal/state"
)

// Options are what a Manager works with. All but Seed, BatchRows and Budget are needed.
type Options struct {
	Broker  *broker.Broker
	Journal *journal.Journal
	DB      *kv.DB
	Applier *state.Applier
	Clock   clock.Clock
	Logger  *slog.Logger
	// Connect opens the connector of a source, or of a table's topic.
	Connect func(*catalog.Relation) (connector.Source, error)
	// Target makes the target of a sink to something outside; id names the sink and its changelog, for ever.
	Target  func(r *catalog.Relation, id string) (connector.Target, error)
	Workers int
	// StateMemory is how much memory operators may keep rows in, over all islands, in bytes; 0 is no limit.
	StateMemory int64
	Budget      *budget.Budget
	// Spill is where goes what an epoch gives beyond its share of the memory; SpillBytes is that share of an operator, for tests, 0 derives it.
	Spill      *spill.Folder
	SpillBytes int64
	// BatchRows is how many rows a source reads at a time, 0 for the default. Results do not depend on it.
	BatchRows int
	// Seed, when not 0, steps all workers on the caller's goroutine in an order that depends on it; see Step.
	Seed uint64
	// Observe, if not nil, is told of every epoch that has become durable.
	Observe func(EpochStats)
}

// EpochStats are what an epoch took.
type EpochStats struct {
	Records int64         // read from sources
	Run     time.Duration // the workers' part
	Total   time.Duration // from its start until it was durable
}

// Manager runs all jobs of a node.
type Manager struct {
	o       Options
	log     *slog.Logger
	ctx     context.Context
	stop    context.CancelFunc
	stopped sync.WaitGroup
	closing sync.WaitGroup // of sources outside, beside their islands

	// ddl serialises what changes the catalog and the set of islands.
	ddl      sync.Mutex
	snapshot atomic.Pointer[catalog.Snapshot]
	coming   atomic.Pointer[catalog.Snapshot] // with the relation that is being created; nil when there is none

	mu      sync.RWMutex
	islands []*island
	jobs    map[uint64]*job // by relation
	epoch   atomic.Uint64   // the node's one counter
	running bool            // islands have their goroutines

	unpublished chan struct{} // an epoch was committed since the last publishing
	relief      chan struct{} // much of the state memory is rows that the database lacks
	created     chan struct{} // a query was made

	deliveries map[uint64]*delivery // by sink; under mu

	sources sources
	metrics *metrics
}

// job is one stored query that runs.
type job struct {
	relation *catalog.Relation
	live     chan struct{} // closed when no backfill is left
	failed   chan struct{} // closed when it has stopped

	mu       sync.Mutex
	island   *island
	counts   Counts
	err      error // why it has stopped
	mark     int64 // the watermark that its root has reached
	checksum uint64

	// targets is where its sources ended when it was created: it is readable when it has come so far. Of its island, under the island's mu.
	targets []target
}

// target is an offset of a partition that one of the job's readers must reach.
type target struct {
	relation  uint64
	partition int
	offset    int64
}

// New loads the catalog. Call it after the journal was recovered.
func New(o Options) (*Manager, error) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &Manager{o: o, log: o.Logger, ctx: ctx, stop: cancel, jobs: map[uint64]*job{}, deliveries: map[uint64]*delivery{}, metrics: newMetrics(), unpublished: make(chan struct{}, 1), relief: make(chan struct{}, 1), created: make(chan struct{}, 1)}
	s, err := catalog.Load(o.DB.ScanMeta)
	if err != nil {
		cancel()
		return nil, err
	}
	m.snapshot.Store(s)
	o.Broker.SetTopicCheck(m.checkTopicChange)
	return m, nil
}

// Restore attaches all stored jobs with the state of their last committed epoch. A job that this binary cannot run is left stopped, by name;
// the others go on.
func (m *Manager) Restore(ctx context.Context) error {
	m.ddl.Lock()
	defer m.ddl.Unlock()
	saved, err := loadSaved(m.o.DB)
	if err != nil {
		return err
	}
	m.epoch.Store(saved.epoch)
	m.sources.restore(saved)
	if err := m.restoreTopics(ctx); err != nil {
		return err
	}
	s := m.Catalog()
	for _, ids := range components(s) {
		x, err := m.newIsland()
		if err != nil {
			return err
		}
		for _, id := range ids {
			r := s.Relation(id)
			j := m.addJob(r, x, saved.counts[id])
			if st, ok := saved.jobs[id]; ok {
				x.restored[id] = st
			}
			if err := m.restoreJob(x, j, saved); err != nil {
				m.fail(j, err)
				if err := x.keepStopped(id); err != nil {
					return err
				}
			}
		}
		m.addIsland(x)
	}
	for _, r := range s.Relations() {
		if r.HasChangelog() {
			m.deliver(r)
		}
	}
	return nil
}

// restoreJob attaches one job as it was saved.
func (m *Manager) restoreJob(x *island, j *job, saved *saved) error {
	if j.relation.PlanError != nil {
		return j.relation.PlanError
	}
	for _, id := range j.relation.DependsOn {
		if on := m.job(id); on != nil {
			if err := on.failure(); err != nil {
				return fmt.Errorf("it reads %s, which has stopped: %w", on.relation.QualifiedName(), err)
			}
		}
	}
	st, ok := saved.jobs[j.relation.ID]
	if ok {
		if on := saved.missed(m.Catalog(), j.relation, &st); on != nil {
			return fmt.Errorf("it has missed changes of %s since it stopped (%s); drop it and create it again", on.QualifiedName(), st.why)
		}
	}
	spec, err := m.spec(j.relation)
	if err != nil {
		return err
	}
	if ok {
		spec.Positions, spec.Backfill = st.positions, st.backfill
		x.now = max(x.now, st.now)
		x.savedAs[st.key] = struct{}{}
	} else {
		spec.Fresh = true // created, but never committed an epoch
	}
	if err := x.attach(spec); err != nil {
		return err
	}
	if ok && !st.building {
		m.live(j)
		return nil
	}
	x.setTargets(j)
	return nil
}

// Start runs every island on goroutines of its own, until Close. Without it, Step does their work.
func (m *Manager) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = true
	for _, x := range m.islands {
		m.run(x)
	}
	for _, d := range m.deliveries {
		d.run()
	}
	m.stopped.Go(m.publishLoop)
	m.stopped.Go(m.reliefLoop)
	m.stopped.Go(m.settleLoop)
}

// settleLoop gives back the memory that making queries took: parsing and planning leave garbage, which the collector would keep for a node
// that does nothing any more. Only when nothing has gone on for a while; a busy node's memory is of use.
func (m *Manager) settleLoop() {
	timer := m.o.Clock.NewTimer(settleAfter)
	defer timer.Stop()
	last := m.epoch.Load()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.created:
			last = m.epoch.Load()
			timer.Reset(settleAfter)
		case <-timer.C():
			if now := m.epoch.Load(); now != last {
				last = now
				timer.Reset(settleAfter)
				continue
			}
			debug.FreeOSMemory()
		}
	}
}

// settleAfter is how long a node must have done nothing since a query was made.
const settleAfter = 2 * time.Second

// Step lets each island do what it can do now, once, on the caller's goroutine. It returns whether anything was done, and when there will be
// something to do without new input (zero: not until there is input).
func (m *Manager) Step(now time.Time) (progress bool, wakeAt time.Time) {
	m.mu.RLock()
	islands := slices.Clone(m.islands)
	m.mu.RUnlock()
	for _, x := range islands {
		p, at := x.step(now)
		progress = progress || p
		if !at.IsZero() && (wakeAt.IsZero() || at.Before(wakeAt)) {
			wakeAt = at
		}
	}
	return progress, wakeAt
}

// Close stops all islands at the end of the epoch that is running.
func (m *Manager) Close() error {
	m.stop()
	m.stopped.Wait()
	defer m.closing.Wait()
	m.mu.Lock()
	islands := m.islands
	m.islands = nil
	m.mu.Unlock()
	var errs []error
	for _, x := range islands { // without mu, which an island takes under its own lock: a DROP may still be at it
		errs = append(errs, x.close())
	}
	return errors.Join(errs...)
}

// Catalog is the catalog as it is now.
func (m *Manager) Catalog() *catalog.Snapshot { return m.snapshot.Load() }

func (m *Manager) job(id uint64) *job {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.jobs[id]
}

func (m *Manager) addJob(r *catalog.Relation, x *island, c Counts) *job {
	select {
	case m.created <- struct{}{}:
	default:
	}
	j := &job{relation: r, island: x, live: make(chan struct{}), failed: make(chan struct{}), counts: c, mark: noTime}
	m.mu.Lock()
	m.jobs[r.ID] = j
	m.mu.Unlock()
	return j
}

func (m *Manager) addIsland(x *island) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.islands = append(m.islands, x)
	m.shareMemory()
	if m.running {
		m.run(x)
	}
}

// removeIsland gives up an island that is closed: its goroutine ends, and who waits for it to get on is told.
func (m *Manager) removeIsland(x *island) {
	m.mu.Lock()
	m.islands = slices.DeleteFunc(m.islands, func(o *island) bool { return o == x })
	m.shareMemory()
	m.mu.Unlock()
	x.watcher.Wake()
	x.release()
}

// shareMemory divides the state memory among the islands; mu is held.
func (m *Manager) shareMemory() {
	if m.o.StateMemory == 0 || len(m.islands) == 0 {
		return
	}
	share := max(m.o.StateMemory/int64(len(m.islands)*m.o.Workers), 1<<20)
	for _, x := range m.islands {
		for _, t := range x.tables {
			t.SetLimit(share)
		}
	}
}

// run starts an island's goroutine; mu is held.
func (m *Manager) run(x *island) { m.stopped.Go(func() { x.loop(m.ctx) }) }

// fail stops a job for good, until the next start of the node.
func (m *Manager) fail(j *job, err error) {
	j.mu.Lock()
	first := j.err == nil
	if first {
		j.err = err
		close(j.failed)
	}
	j.mu.Unlock()
	if first {
		m.log.Error("a job has stopped; the others go on", "relation", j.relation.QualifiedName(), "kind", string(j.relation.Kind), "err", err)
	}
}

func (j *job) failure() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

func (j *job) onIsland() *island {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.island
}

func (j *job) setIsland(x *island) {
	j.mu.Lock()
	j.island = x
	j.mu.Unlock()
}

func (j *job) total() Counts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts
}

// Counts are what a relation has counted since it was created.
type Counts = operator.Counts

func (j *job) isLive() bool {
	select {
	case <-j.live:
		return true
	default:
		return false
	}
}

// Readable says why a table or view cannot be read now, nil if it can.
func (m *Manager) Readable(id uint64) error {
	j := m.job(id)
	if j == nil {
		// It is in the catalog a moment before its job is there, and a moment after its job, and its rows, are gone.
		if r := m.Catalog().Relation(id); r == nil || r.Plan != nil {
			return pgerr.New("42P01", "a relation that the query reads is being created or was dropped")
		}
		return nil
	}
	if err := j.failure(); err != nil {
		return pgerr.Newf("55000", "%s \"%s\" has stopped: %v", j.relation.Kind, j.relation.Name, err).
			WithHint("Its rows are those of its last epoch. Drop it and create it again, or start a binary that can run it.")
	}
	if !j.isLive() {
		return pgerr.Newf("55000", "%s \"%s\" is still being built (%d rows read)", j.relation.Kind, j.relation.Name, j.total().In).
			WithHint("CREATE returns when it can be read.")
	}
	return nil
}

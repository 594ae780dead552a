package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/state"
)

// Create adds a relation to the catalog, makes the topics it needs, and runs its query. It returns when the relation can be read: when its
// backfill is done. If ctx ends before that, the relation is dropped again.
//
// build is called with the catalog as it is, under the lock that serialises DDL, and returns the relation with its ids and the counters
// after them.
func (m *Manager) Create(ctx context.Context, build func(*catalog.Snapshot) (*catalog.Relation, catalog.IDs, error)) error {
	j, err := m.create(ctx, build)
	if err != nil || j == nil {
		return err
	}
	select {
	case <-j.live:
		return nil
	case <-j.failed:
		err = j.failure()
	case <-m.ctx.Done():
		return pgerr.New("57P01", "the node is stopping; the relation goes on being built at the next start")
	case <-ctx.Done():
		err = pgerr.New("57014", "canceling statement due to user request")
	}
	drop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if e := m.Drop(drop, []uint64{j.relation.ID}, false); e != nil {
		return errors.Join(err, e)
	}
	return err
}

func (m *Manager) create(ctx context.Context, build func(*catalog.Snapshot) (*catalog.Relation, catalog.IDs, error)) (*job, error) {
	m.ddl.Lock()
	defer m.ddl.Unlock()
	r, ids, err := build(m.Catalog())
	if err != nil || r == nil {
		return nil, err
	}
	for _, id := range r.DependsOn {
		if j := m.job(id); j != nil {
			if err := m.Readable(id); err != nil {
				return nil, err
			}
		}
	}
	next, changes, err := m.Catalog().Create(r, ids)
	if err != nil {
		return nil, err
	}
	// From here on no client deletes a topic that the relation reads or writes. A deletion that was allowed before is waited for: what is launched below
	// would begin in a topic that goes away.
	m.coming.Store(next)
	defer m.coming.Store(nil)
	m.o.Broker.AwaitTopicChanges()
	if err := m.checkTopics(r); err != nil {
		return nil, err
	}
	// The catalog comes first: what a crash leaves without its topics gets them at the next start, while a topic without its table
	// would be in the way of that table for ever.
	if err := m.commitCatalog(ctx, changes, nil); err != nil {
		return nil, err
	}
	err = m.makeTopics(r)
	m.snapshot.Store(next)
	var j *job
	if err == nil && r.Plan != nil {
		j, err = m.launch(ctx, r)
	}
	if err != nil {
		ctx := context.WithoutCancel(ctx)
		undo, dropped, changes, e := next.Drop([]uint64{r.ID}, false)
		if e == nil {
			e = m.commitCatalog(ctx, changes, dropped)
		}
		if e == nil {
			m.snapshot.Store(undo)
			m.deleteTopics(ctx, dropped)
		}
		return nil, errors.Join(err, e)
	}
	if r.HasChangelog() {
		m.deliver(r)
	}
	return j, nil
}

// commitCatalog makes changes of the catalog durable, and deletes the rows, positions and topics of relations that are dropped with them. Nobody's
// giving up comes between: the catalog in the journal and the one in memory are the same.
func (m *Manager) commitCatalog(ctx context.Context, changes []catalog.Change, dropped []*catalog.Relation) error {
	ctx = context.WithoutCancel(ctx)
	u := m.o.Broker.NewUnit()
	for _, c := range changes {
		u.AddMeta(c.Key, c.Value)
	}
	var rows state.Changes
	for _, r := range dropped {
		u.AddMeta(countsKey(r.ID), nil)
		u.AddMeta(lettersKey(r.ID), nil)
		if r.HasChangelog() {
			u.AddMeta(deliveryKey(r.ID), nil)
		}
		u.AddMeta(stoppedKey(r.ID), nil)
		if t := m.ownTopic(r); t != nil {
			u.AddMeta(doomedKey(t), []byte(t.Name))
		}
		if r.Plan == nil {
			continue
		}
		for _, n := range r.Plan.Nodes {
			for i, t := range n.Tables {
				kind := journal.KindState
				if i == 0 && (n.Materialize != nil || n.Upsert != nil) {
					kind = journal.KindRows
				}
				rows.DropTable(kind, t.ID)
			}
		}
	}
	for _, p := range rows.State {
		u.Append(journal.KindState, p)
	}
	for _, p := range rows.Rows {
		u.Append(journal.KindRows, p)
	}
	lsn, _, err := u.Commit(ctx)
	if err != nil {
		return err
	}
	return m.o.Broker.Wait(ctx, lsn)
}

// launch attaches a new job to its island: one of its own, an existing one, or the union of several.
func (m *Manager) launch(ctx context.Context, r *catalog.Relation) (*job, error) {
	if r.PlanError != nil {
		return nil, r.PlanError
	}
	spec, err := m.spec(r)
	if err != nil {
		return nil, err
	}
	spec.Fresh = true
	x, err := m.islandFor(ctx, r)
	if err != nil {
		return nil, err
	}
	j := m.addJob(r, x, Counts{})
	err = x.between(ctx, func() error {
		if err := x.attach(spec); err != nil {
			return err
		}
		x.setTargets(j)
		return nil
	})
	if err != nil {
		m.forget(r.ID)
		m.discardIfEmpty(x)
		return nil, err
	}
	return j, nil
}

// islandFor returns the island that the relation's component is to run in. Others of the component are merged into it.
func (m *Manager) islandFor(ctx context.Context, r *catalog.Relation) (*island, error) {
	var component []uint64
	for _, ids := range components(m.Catalog()) {
		if slices.Contains(ids, r.ID) {
			component = ids
		}
	}
	var into *island
	for _, id := range component {
		j := m.job(id)
		if j == nil || j.onIsland() == into || j.onIsland().discarded() { // what has stopped may be on an island that went with its last running job
			continue
		}
		if into == nil {
			into = j.onIsland()
			continue
		}
		if err := m.merge(ctx, into, j.onIsland()); err != nil {
			return nil, err
		}
	}
	if into != nil {
		return into, nil
	}
	x, err := m.newIsland()
	if err != nil {
		return nil, err
	}
	m.addIsland(x)
	return x, nil
}

// merge moves all jobs of one island into another, at the end of an epoch of both. Their state moves through the database. Once the one island is
// closed nobody's giving up comes between: its jobs would run nowhere.
func (m *Manager) merge(ctx context.Context, into, from *island) error {
	var jobs []moving
	var keys []string
	var stopped []savedPositions
	err := from.between(ctx, func() error {
		var err error
		if jobs, err = from.moveOut(); err != nil {
			return err
		}
		for key := range from.savedAs {
			keys = append(keys, key)
		}
		lsn := from.committedLSN
		if err := errors.Join(m.o.Applier.Publish(lsn), m.o.Applier.ApplyState(lsn)); err != nil {
			return err
		}
		stopped = from.stopped
		into.mu.Lock()
		into.now = max(into.now, from.now)
		into.mu.Unlock()
		return from.discard()
	})
	if err != nil {
		return fmt.Errorf("merging islands: %w", err)
	}
	err = into.between(context.WithoutCancel(ctx), func() error {
		for _, mv := range jobs {
			mv.j.setIsland(into)
			if !mv.spec.Fresh {
				into.restored[mv.spec.ID] = mv.was
			}
			if err := into.attach(mv.spec); err != nil {
				m.fail(mv.j, err)
				if err := into.keepStopped(mv.spec.ID); err != nil {
					return err
				}
			}
		}
		for _, key := range keys {
			into.savedAs[key] = struct{}{}
		}
		into.stopped = append(into.stopped, stopped...)
		return nil
	})
	if err != nil {
		err = fmt.Errorf("merging islands: %w", err)
		for _, mv := range jobs {
			if m.ctx.Err() == nil {
				m.fail(mv.j, err)
			}
		}
	}
	m.follow(from, into)
	m.removeIsland(from)
	return err
}

// moving is a job on its way to another island: what it is attached with there, and where it was.
type moving struct {
	j    *job
	spec flow.JobSpec
	was  savedJob
}

// moveOut is how all jobs of an island are attached to another one; mu is held, and no epoch is running or being committed.
func (x *island) moveOut() ([]moving, error) {
	var jobs []moving
	for _, id := range x.members {
		j := x.m.job(id)
		spec, err := x.m.spec(j.relation)
		if err != nil {
			return nil, err
		}
		spec.Positions, spec.Backfill = x.positionsOf(id)
		spec.Fresh = x.fresh[id]
		was := savedJob{epoch: x.m.epoch.Load(), now: x.now, building: slices.Contains(x.building, id), positions: spec.Positions, backfill: spec.Backfill}
		jobs = append(jobs, moving{j, spec, was})
	}
	return jobs, nil
}

// follow has the jobs that have stopped on an island be of the one that it was merged into.
func (m *Manager) follow(from, into *island) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, j := range m.jobs {
		if j.onIsland() == from {
			j.setIsland(into)
		}
	}
}

// Drop removes relations from the catalog, stops their jobs and deletes their rows and the topics of tables. Without cascade, relations that
// depend on them are an error (2BP01).
func (m *Manager) Drop(ctx context.Context, ids []uint64, cascade bool) error {
	m.ddl.Lock()
	defer m.ddl.Unlock()
	next, dropped, changes, err := m.Catalog().Drop(ids, cascade)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // from here on it is done as a whole
	var left []*island
	for _, r := range dropped {
		j := m.job(r.ID)
		if j == nil {
			continue
		}
		x := j.onIsland()
		err := x.between(ctx, func() error {
			if err := x.detachLocked(r.ID); err != nil {
				return err
			}
			x.note()
			return nil
		})
		if err != nil {
			return err
		}
		m.forget(r.ID)
		if !slices.Contains(left, x) {
			left = append(left, x)
		}
	}
	for _, x := range left {
		if changes, err = x.giveUpKeys(changes); err != nil {
			return err
		}
		m.discardIfEmpty(x)
	}
	if err := m.commitCatalog(ctx, changes, dropped); err != nil {
		return err
	}
	m.snapshot.Store(next)
	for _, r := range dropped {
		m.sources.forget(r.ID)
	}
	m.undeliver(dropped)
	m.deleteTopics(context.WithoutCancel(ctx), dropped)
	return nil
}

func (m *Manager) forget(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, id)
}

// giveUpKeys adds the deletion of what an island without jobs has saved, which no epoch of it will do; where jobs are that have stopped on it is kept.
func (x *island) giveUpKeys(changes []catalog.Change) ([]catalog.Change, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.members) > 0 {
		return changes, nil
	}
	for key := range x.savedAs {
		changes = append(changes, catalog.Change{Key: key})
	}
	clear(x.savedAs)
	for i := range x.stopped {
		value, err := json.Marshal(&x.stopped[i])
		if err != nil {
			return nil, err
		}
		changes = append(changes, catalog.Change{Key: stoppedKey(x.stopped[i].Jobs[0]), Value: value})
	}
	x.stopped = nil
	return changes, nil
}

// discardIfEmpty closes an island without jobs.
func (m *Manager) discardIfEmpty(x *island) {
	x.mu.Lock()
	empty := len(x.members) == 0 && !x.closed
	if empty {
		if err := x.discard(); err != nil {
			m.log.Error("closing an island", "err", err)
		}
	}
	x.mu.Unlock()
	if empty {
		m.removeIsland(x)
	}
}

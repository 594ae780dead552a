package job

import (
	"context"
	"fmt"
	"slices"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// between runs fn between two epochs of the island, with mu held.
func (x *island) between(ctx context.Context, fn func() error) error {
	for {
		x.mu.Lock()
		lsn := x.committing
		if lsn == 0 || x.closed {
			defer x.mu.Unlock()
			if x.err != nil {
				return x.err
			}
			if x.closed && x.m.ctx.Err() != nil { // not for want of jobs
				return pgerr.New("57P01", "the node is stopping")
			}
			return fn()
		}
		x.mu.Unlock()
		if err := x.m.o.Broker.Wait(ctx, lsn); err != nil {
			return err
		}
		x.mu.Lock()
		if x.committing == lsn && !x.closed { // its goroutine has not come to it yet
			x.finishCommit(x.m.o.Clock.Now())
		}
		x.mu.Unlock()
	}
}

// attach adds a job to the graph; mu is held, and no epoch is running or being committed.
func (x *island) attach(spec flow.JobSpec) error {
	if err := x.flow.Attach(spec); err != nil {
		return err
	}
	x.members = append(x.members, spec.ID)
	slices.Sort(x.members)
	x.building = append(x.building, spec.ID)
	if spec.Fresh {
		x.fresh[spec.ID] = true
	}
	x.lowest.Store(x.members[0])
	if len(spec.Backfill) > 0 {
		x.backfill[spec.ID] = spec.Backfill
	}
	x.due = true
	x.regroup()
	x.unwatch()
	x.note()
	x.watcher.Wake()
	return nil
}

// detachLocked takes a job out of the graph; mu is held. Between two epochs note is due then; within one, its commit does that.
func (x *island) detachLocked(id uint64) error {
	if !slices.Contains(x.members, id) {
		return nil
	}
	if err := x.flow.Detach(id); err != nil {
		return err
	}
	is := func(m uint64) bool { return m == id }
	x.members, x.building = slices.DeleteFunc(x.members, is), slices.DeleteFunc(x.building, is)
	delete(x.backfill, id)
	delete(x.ran, id)
	delete(x.fresh, id)
	if len(x.members) > 0 {
		x.lowest.Store(x.members[0])
	}
	x.regroup()
	x.unwatch()
	return nil
}

// unwatchAll lets go of all partitions; mu is held.
func (x *island) unwatchAll() {
	x.m.o.Broker.UnwatchTopics(x.watcher)
	for id, w := range x.watched {
		for _, p := range w.partitions {
			p.Unwatch(x.watcher, broker.EdgeAppended)
		}
		delete(x.watched, id)
	}
	for id, f := range x.fetched {
		x.letGo(id, f)
	}
	for _, g := range x.groups {
		g.reader.Close()
	}
	x.groups = nil
}

// close ends the island when its goroutine is gone.
func (x *island) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	return x.discard()
}

// discard gives back what the island holds, its tables' memory included; mu is held. Who waits for it is told by release.
func (x *island) discard() error {
	x.closed = true
	x.unwatchAll()
	err := x.flow.Close()
	for _, t := range x.tables {
		t.Close()
	}
	return err
}

// discarded tells whether the island is closed.
func (x *island) discarded() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.closed
}

// spec is what the engine needs to know of a relation's job.
func (m *Manager) spec(r *catalog.Relation) (flow.JobSpec, error) {
	s := m.Catalog()
	spec := flow.JobSpec{
		ID: r.ID, Name: r.QualifiedName(), Plan: r.Plan,
		Sources: map[uint64]*flow.SourceSpec{}, Start: map[uint64]string{},
		Partitions: func(topic string) int {
			if t, ok := m.o.Broker.Topic(topic); ok {
				return len(t.Partitions())
			}
			return 1
		},
	}
	for _, n := range r.Plan.Nodes {
		if n.Scan == nil || !n.Scan.Source || spec.Sources[n.Scan.Relation] != nil {
			continue
		}
		src := s.Relation(n.Scan.Relation)
		if src == nil {
			return spec, fmt.Errorf("the source that %s reads (id %d) is not in the catalog", r.QualifiedName(), n.Scan.Relation)
		}
		one, err := m.SourceSpec(src)
		if err != nil {
			return spec, err
		}
		spec.Sources[src.ID] = one
		spec.Start[src.ID] = startMode(src)
	}
	return spec, nil
}

// SourceSpec is how rows are made of what a source's connector, or a table's topic, gives.
func (m *Manager) SourceSpec(r *catalog.Relation) (*flow.SourceSpec, error) {
	c, err := m.o.Connect(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Kind, r.QualifiedName(), err)
	}
	spec := &flow.SourceSpec{Relation: r.ID, Name: r.QualifiedName(), Source: c, EventTime: -1, Checked: r.Kind == catalog.Source && r.Connector == "kafka"}
	for i := range r.Columns {
		col := &r.Columns[i]
		spec.Columns = append(spec.Columns, flow.SourceColumn{
			Name: col.Name, Type: col.Type, Expr: col.Generated, NotNull: col.NotNull && r.Kind == catalog.Source,
		})
	}
	if r.Kind == catalog.Table {
		// What a table generates is stored in its records; behind its columns comes whether the record is a deletion.
		for i := range spec.Columns {
			spec.Columns[i].Expr = nil
		}
		spec.Columns = append(spec.Columns, flow.SourceColumn{Name: "_deleted", Type: column.TBool})
	}
	if r.Watermark != nil {
		spec.EventTime, spec.Delay, spec.MaxAhead = r.Watermark.Column, r.Watermark.Delay, r.Watermark.MaxAhead
	}
	return spec, nil
}

func startMode(r *catalog.Relation) string {
	if mode := r.Options["scan.startup.mode"]; mode != "" && r.Kind == catalog.Source {
		return mode
	}
	return "earliest"
}

func lateTopic(n *plan.Node) string {
	switch {
	case n.Window != nil:
		return n.Window.Late.Topic
	case n.Aggregate != nil:
		return n.Aggregate.Late.Topic
	}
	return ""
}

package job

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/pgerr"
)

// Position is a place in a table's topic or a source's partition: the offset after a record.
type Position struct {
	Relation  uint64
	Partition int
	Offset    int64
}

// Published is what a query reads: one instant of all tables and views, and the catalog.
type Published struct {
	Rows    *kv.Snapshot
	LSN     journal.LSN
	Catalog *catalog.Snapshot
}

// Release gives the snapshot back.
func (p *Published) Release() { p.Rows.Release() }

// Publish returns the newest committed epochs of all islands, once those contain everything before the given positions (a session's own
// writes). The caller releases it.
func (m *Manager) Publish(ctx context.Context, after ...Position) (*Published, error) {
	for _, p := range after {
		if err := m.reached(ctx, p); err != nil {
			return nil, err
		}
	}
	s := m.Catalog()
	if err := m.o.Applier.Publish(m.o.Journal.Durable()); err != nil {
		return nil, err
	}
	rows, lsn := m.o.Applier.Snapshot()
	return &Published{Rows: rows, LSN: lsn, Catalog: s}, nil
}

// reached waits until everything before a position is in a committed epoch of all jobs that read the relation.
func (m *Manager) reached(ctx context.Context, p Position) error {
	for {
		j := m.job(p.Relation)
		if j == nil {
			return nil // dropped meanwhile, or nobody reads it
		}
		if err := j.failure(); err != nil {
			return pgerr.Newf("55000", "%s \"%s\" has stopped: %v", j.relation.Kind, j.relation.Name, err)
		}
		ok, moved := j.onIsland().has(p)
		if ok {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-m.ctx.Done():
			return pgerr.New("57P01", "the node is stopping")
		}
	}
}

// has tells whether the committed epochs contain everything before p, and gives a channel that is closed when they move on.
func (x *island) has(p Position) (bool, <-chan struct{}) {
	x.at.mu.Lock()
	defer x.at.mu.Unlock()
	for _, r := range x.at.readers {
		if r.relation == p.Relation && (p.Partition >= len(r.offsets) || r.offsets[p.Partition] < p.Offset) {
			return false, x.at.moved
		}
	}
	return true, nil
}

// committed is where an island's readers are as of its last durable epoch. It has a lock of its own, for queries ask while epochs run.
type committed struct {
	mu      sync.Mutex
	readers []committedReader
	moved   chan struct{} // closed, and made anew, when readers move
}

type committedReader struct {
	relation uint64
	offsets  []int64
}

// note takes over where the readers are; the island's mu is held. No epoch has been run that is not durable.
func (x *island) note() {
	x.at.mu.Lock()
	defer x.at.mu.Unlock()
	x.at.readers = x.at.readers[:0]
	for _, r := range x.flow.Readers() {
		c := committedReader{relation: r.Relation}
		for _, p := range r.State.Partitions {
			c.offsets = append(c.offsets, p.Offset)
		}
		x.at.readers = append(x.at.readers, c)
	}
	x.at.wake()
}

// wake has those look again who wait for the island to get on.
func (x *island) wake() {
	x.at.mu.Lock()
	defer x.at.mu.Unlock()
	x.at.wake()
}

// wake is the island's; mu is held.
func (c *committed) wake() {
	close(c.moved)
	c.moved = make(chan struct{})
}

func (x *island) committedOf(relation uint64) []int64 {
	x.at.mu.Lock()
	defer x.at.mu.Unlock()
	for _, r := range x.at.readers {
		if r.relation == relation {
			return slices.Clone(r.offsets)
		}
	}
	return nil
}

// release tells those who wait for the island to get on that it never will: its jobs are on another one, or are gone. It is closed, and no island of the
// manager's any more.
func (x *island) release() {
	x.at.mu.Lock()
	defer x.at.mu.Unlock()
	x.at.readers = nil
	x.at.wake()
}

// Flush waits until everything that was in any source or table when it was called is in committed, published epochs of all jobs.
func (m *Manager) Flush(ctx context.Context) error {
	for {
		m.mu.RLock()
		islands := append([]*island(nil), m.islands...)
		m.mu.RUnlock()
		whole := true
		for _, x := range islands {
			ok, err := m.flushIsland(ctx, x)
			if err != nil {
				return err
			}
			whole = whole && ok
		}
		if whole {
			return m.o.Applier.Publish(m.o.Journal.Durable())
		}
	}
}

// flushIsland waits for one island. It returns false if the island's jobs have moved to another one meanwhile.
func (m *Manager) flushIsland(ctx context.Context, x *island) (bool, error) {
	for _, p := range x.ends() {
		for {
			ok, moved := x.has(p)
			if ok || x.failed() {
				break
			}
			select {
			case <-moved:
			case <-ctx.Done():
				return false, ctx.Err()
			case <-m.ctx.Done():
				return false, pgerr.New("57P01", "the node is stopping")
			}
		}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Contains(m.islands, x), nil
}

// CatchUp waits, after a restart, until the views have everything that is in tables: what was acknowledged before a crash is then in the first
// answer of any session. Sources may have any amount of input that nobody has read, and are not waited for; nor is a job that has stopped, or
// anything while the disk is too full for results.
func (m *Manager) CatchUp(ctx context.Context) error {
	var after []Position
	for _, r := range m.Catalog().Relations() {
		if j := m.job(r.ID); r.Kind != catalog.Table || j == nil || j.failure() != nil {
			continue
		}
		if t, ok := m.o.Broker.Topic(r.Topic); ok {
			for i, p := range t.Partitions() {
				after = append(after, Position{Relation: r.ID, Partition: i, Offset: p.Appended()})
			}
		}
	}
	defer m.reportCatchUp(after)()
	for _, p := range after {
		if m.o.Broker.StorageLow() {
			return nil
		}
		if err := m.reached(ctx, p); err != nil {
			if ctx.Err() != nil || m.ctx.Err() != nil {
				return err
			}
			m.log.Warn("a table is not caught up at the start", "err", err)
		}
	}
	return m.o.Applier.Publish(m.o.Journal.Durable())
}

// catchUpReports is how long a start may wait for tables without a word; after that it says how far it is, again and again.
const (
	catchUpReportFirst = 2 * time.Second
	catchUpReportEvery = 10 * time.Second
)

// reportCatchUp says how much of the tables has still to be read, until what it returns is called.
func (m *Manager) reportCatchUp(after []Position) (stop func()) {
	done := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		timer := m.o.Clock.NewTimer(catchUpReportFirst)
		defer timer.Stop()
		for begun := m.o.Clock.Now(); ; {
			select {
			case <-done:
				return
			case <-timer.C():
			}
			left, tables := int64(0), map[uint64]bool{}
			for _, p := range after {
				at := int64(0)
				if c := m.Committed(p.Relation); p.Partition < len(c) {
					at = c[p.Partition]
				}
				if p.Offset > at {
					left += p.Offset - at
					tables[p.Relation] = true
				}
			}
			m.log.Info("starting: the views get what was written to tables before; the doors open when they have it",
				"tables", len(tables), "records_left", left, "seconds", int64(m.o.Clock.Now().Sub(begun).Seconds()))
			timer.Reset(catchUpReportEvery)
		}
	})
	return func() {
		close(done)
		reporter.Wait()
	}
}

// ends are where the island's sources over the log can be read to now: open transactions are not waited for.
func (x *island) ends() []Position {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []Position
	ends := x.readerEnds()
	for i, r := range x.flow.Readers() {
		for p, end := range ends[i] {
			if end < unboundedEnd {
				out = append(out, Position{Relation: r.Relation, Partition: p, Offset: end})
			}
		}
	}
	return out
}

// unboundedEnd is where a generator without an end ends.
const unboundedEnd = int64(1) << 60

// RelationStatus is what a system view and the metrics show of one relation that runs.
type RelationStatus struct {
	Relation  *catalog.Relation
	Island    uint64 // the smallest id of its jobs
	Live      bool
	Err       error
	Watermark int64 // microseconds, flow.NoTime before there is one
	Counts    Counts
	Checksum  uint64       // of a checksum sink, over the rows of this run
	Held      *broker.Held // the oldest open transaction that keeps a source's partition from being read to its end; nil: none does
	// Outside is how the clusters are that the relation reads or delivers to; nil when there are none. Delivery is why a sink has stopped delivering.
	Outside  *connector.Health
	Delivery error
	Readers  []flow.Reader
}

// Status lists all jobs by id.
func (m *Manager) Status() []RelationStatus {
	var out []RelationStatus
	for _, r := range m.Catalog().Relations() {
		j := m.job(r.ID)
		if j == nil {
			continue
		}
		x := j.onIsland()
		s := RelationStatus{Relation: r, Live: j.isLive(), Err: j.failure(), Counts: j.total()}
		j.mu.Lock()
		s.Watermark, s.Checksum = j.mark, j.checksum
		j.mu.Unlock()
		s.Island = x.id()
		s.Counts.Dead = m.deadOf(r)
		s.Held = m.heldOf(r)
		m.outsideOf(&s, x)
		out = append(out, s)
	}
	return out
}

// outsideOf adds how the clusters are that a relation reads or delivers to.
func (m *Manager) outsideOf(s *RelationStatus, x *island) {
	if s.Relation.Plan != nil {
		var sources []uint64
		for _, n := range s.Relation.Plan.Nodes {
			if n.Scan != nil && n.Scan.Source && !slices.Contains(sources, n.Scan.Relation) {
				sources = append(sources, n.Scan.Relation)
			}
		}
		s.Outside = x.outside(sources)
	}
	m.mu.RLock()
	d := m.deliveries[s.Relation.ID]
	m.mu.RUnlock()
	if d == nil {
		return
	}
	h, fatal := d.status()
	if fatal {
		s.Delivery = h.Err
	}
	if in := s.Outside; in != nil {
		h.Lag += in.Lag
		if h.Err == nil {
			h.Err, h.Since = in.Err, in.Since
		}
	}
	s.Outside = &h
}

// deadOf is how many records of the sources that a relation's query reads were dead letters.
func (m *Manager) deadOf(r *catalog.Relation) (dead int64) {
	if r.Plan == nil {
		return 0 // of a version that this binary cannot read
	}
	seen := map[uint64]bool{}
	for _, n := range r.Plan.Nodes {
		if n.Scan != nil && n.Scan.Source && !seen[n.Scan.Relation] {
			seen[n.Scan.Relation] = true
			dead += m.sources.total(n.Scan.Relation).Dead
		}
	}
	return dead
}

// heldOf finds the oldest open transaction in a topic that the relation's query reads.
func (m *Manager) heldOf(r *catalog.Relation) (oldest *broker.Held) {
	if r.Plan == nil {
		return nil
	}
	for _, n := range r.Plan.Nodes {
		if n.Scan == nil || !n.Scan.Source {
			continue
		}
		source := m.Catalog().Relation(n.Scan.Relation)
		if source == nil || source.Topic == "" {
			continue
		}
		topic, ok := m.o.Broker.Topic(source.Topic)
		if !ok {
			continue
		}
		for _, p := range topic.Partitions() {
			if p.Decided() >= p.Appended() {
				continue
			}
			if h, ok := m.o.Broker.HeldBack(p); ok && (oldest == nil || h.Since.Before(oldest.Since)) {
				oldest = &h
			}
		}
	}
	return oldest
}

// id names the island: the smallest id of its jobs.
func (x *island) id() uint64 { return x.lowest.Load() }

// Committed is how far the committed epochs of a relation's job have read each partition of its topic; nil while there is none.
func (m *Manager) Committed(relation uint64) []int64 {
	j := m.job(relation)
	if j == nil {
		return nil
	}
	return j.onIsland().committedOf(relation)
}

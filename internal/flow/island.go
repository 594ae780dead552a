package flow

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/state"
)

// Options are an island's.
type Options struct {
	Workers int
	// InFlightBytes bounds what is in flight between workers, DefaultInFlightBytes if 0.
	InFlightBytes int64
	// Seed, when not 0, runs all workers on the caller's goroutine, stepped in an order that depends on it alone.
	Seed uint64
	// BatchRows is how many rows a source reads at a time, column.MaxRows if 0.
	BatchRows int
	// Tables are each worker's state tables. Their owner calls Committed and Evict between epochs; the island opens and drops
	// tables, and ends their epochs. nil: tables in memory only.
	Tables []*state.Tables
	// Ephemeral opens all tables in memory only, also when Tables is given.
	Ephemeral bool
	// Account is what tables in memory only are accounted in, for an ad hoc statement: see state.Options.
	Account *budget.Account
	// FailRows makes a row whose expression fails fail the job (ad hoc statements) instead of being dropped and counted.
	FailRows bool
}

// DefaultInFlightBytes is the budget of what is in flight between the workers of an island.
const DefaultInFlightBytes = 32 << 20

// Island is the graph of jobs that share what they read, and its workers. One goroutine uses it at a time.
type Island struct {
	o        Options
	workers  []*worker
	tables   []*state.Tables
	own      bool // the tables are the island's own
	readers  []*reader
	jobs     []*job // in order of attachment
	byID     map[uint64]*job
	groups   map[string]*timeGroup
	seq      int
	reads    int
	depths   int
	inflight []atomic.Int64 // bytes of batches that wait for a depth
	share    int64          // of the budget, for a depth
	random   *rand.Rand
	nextID   atomic.Uint32 // of tables in memory only

	touchedMu sync.Mutex
	touched   []*job // by the epoch at hand: the others are not looked at

	starting []*job // that have not run an epoch of their life yet
	filling  []*job // with scans in backfill
	once     *once  // of an ad hoc run
}

// NewIsland makes an empty island.
func NewIsland(o Options) (*Island, error) {
	if o.Workers <= 0 || o.Workers > keyGroups {
		return nil, fmt.Errorf("flow: %d workers; there may be 1 to %d", o.Workers, keyGroups)
	}
	if o.InFlightBytes <= 0 {
		o.InFlightBytes = DefaultInFlightBytes
	}
	if o.BatchRows <= 0 {
		o.BatchRows = column.MaxRows
	}
	i := &Island{o: o, byID: map[uint64]*job{}, groups: map[string]*timeGroup{}, depths: 1, tables: o.Tables}
	if o.Seed != 0 {
		i.random = rand.New(rand.NewPCG(o.Seed, o.Seed))
	}
	if i.tables == nil {
		i.own, i.o.Ephemeral = true, true
		for range o.Workers {
			i.tables = append(i.tables, state.NewTables(state.Options{Name: "state", Account: o.Account}))
		}
	}
	if len(i.tables) != o.Workers {
		return nil, fmt.Errorf("flow: %d workers have %d sets of tables", o.Workers, len(i.tables))
	}
	for id := range o.Workers {
		w := &worker{isl: i, id: id, reads: map[int]*readerInstance{}, timers: map[*timeGroup]*timerHeap{}}
		w.mail.notify = make(chan struct{}, 1)
		i.workers = append(i.workers, w)
	}
	i.budget()
	return i, nil
}

// budget splits what may be in flight between the depths.
func (i *Island) budget() {
	i.depths = 1
	for _, j := range i.jobs {
		i.depths = max(i.depths, j.depths())
	}
	i.split()
}

// deepen makes room for a new job's depths.
func (i *Island) deepen(j *job) {
	if d := j.depths(); d > i.depths {
		i.depths = d
		i.split()
	}
}

func (j *job) depths() int {
	depths := 1
	for _, n := range j.nodes {
		depths = max(depths, n.depth+1)
	}
	return depths
}

func (i *Island) split() {
	i.inflight = make([]atomic.Int64, i.depths+1)
	i.share = max(i.o.InFlightBytes/int64(max(i.depths-1, 1)), 1)
}

// release gives back what a batch took of a depth's share and wakes those who may have waited for it.
func (i *Island) release(depth int, size int64) {
	left := i.inflight[depth].Add(-size)
	if left < i.share && left+size >= i.share {
		for _, w := range i.workers {
			w.mail.wake()
		}
	}
}

// Readers are the sources' readers, by id. Valid until the next Attach, Detach or Run.
func (i *Island) Readers() []Reader {
	var rs []Reader
	for _, r := range i.readers {
		rs = append(rs, r.public())
	}
	return rs
}

// Identify notes what a reader's positions are of.
func (i *Island) Identify(reader int, id connector.Identity) {
	for _, r := range i.readers {
		if r.id == reader {
			r.state.Identity = id
		}
	}
}

// Jobs are the ids of the jobs attached, in order.
func (i *Island) Jobs() []uint64 {
	var ids []uint64
	for _, j := range i.jobs {
		ids = append(ids, j.spec.ID)
	}
	return ids
}

// Close gives back what the island's workers hold. Tables that were given to it stay open.
func (i *Island) Close() error {
	for _, w := range i.workers {
		for _, r := range w.reads {
			r.close()
		}
	}
	if i.own {
		for _, t := range i.tables {
			t.Close()
		}
	}
	return nil
}

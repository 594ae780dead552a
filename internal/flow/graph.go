package flow

import (
	"fmt"
	"sync/atomic"

	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/flow/operator/sink"
	"github.com/leat-io/leat/internal/sql/plan"
)

// node is one operator of the merged graph, with an instance on each worker.
type node struct {
	seq     int  // creation order, which is topological
	job     *job // nil for a reader
	index   int  // in the job's plan
	plan    *plan.Node
	depth   int // exchanges before it
	inputs  []*node
	outs    []edge
	readers []int // the readers whose watermarks it depends on, ascending
	group   *timeGroup
	inst    []*instance // by worker; nil where the node was not reached yet
	// stateless nodes have no end of epoch to be visited for.
	stateless bool
	exchange  *exchange
	backfill  *backfill
	lates     []*sink.Late // of a window with a late topic, by worker; nil where no row came
	filter    *expr.Node   // of a projection that does the filter before it, too
	late      []bool       // of a scan before a filter, by column: the filter does not look at it
}

// edge leads to an input port of a node.
type edge struct {
	to   *node
	port int
}

// instance is a node on one worker.
type instance struct {
	n       *node
	w       *worker
	op      operator.Operator // made when the first rows reach it; see open
	tables  []uint32          // the state tables that it opened
	counts  operator.Counts
	epoch   uint64 // visit number of the last epoch that reached it
	touched bool   // waits for its end of epoch
	timer   int64  // deadline in its group's heap, EndOfTime if none
}

// job is one attached query.
type job struct {
	spec    JobSpec
	nodes   []*node
	readers map[uint64]*reader // by relation
	island  *Island
	failure atomic.Pointer[jobFailure]
	touched atomic.Bool // is in the island's list of what the epoch came to
	first   bool        // has not run an epoch of its life yet
	maker   *node       // the node whose changes other jobs scan: Materialize or Upsert
	sinks   []*node
	windows []*node // with a late topic
	fills   []*backfill
}

type jobFailure struct{ err, cause error }

func (j *job) failed() bool { return j.failure.Load() != nil }

// fail keeps the first error, with the node's name.
func (j *job) fail(n *node, err error) {
	cause := err
	if n != nil && n.plan != nil {
		err = fmt.Errorf("%s: %s (node %d): %w", j.spec.Name, n.plan.Kind, n.index, err)
	} else {
		err = fmt.Errorf("%s: %w", j.spec.Name, err)
	}
	j.failure.CompareAndSwap(nil, &jobFailure{err, cause})
	j.touch()
}

// touch puts the job into the list of those that the epoch has come to. Any worker may call it.
func (j *job) touch() {
	if j.touched.Load() || j.touched.Swap(true) {
		return
	}
	j.island.touchedMu.Lock()
	j.island.touched = append(j.island.touched, j)
	j.island.touchedMu.Unlock()
}

// timeGroup are the nodes whose watermark is the minimum over the same readers.
type timeGroup struct {
	readers []int
}

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
	inst    []instance
	// stateless nodes have no end of epoch to be visited for.
	stateless bool
	exchange  *exchange
	backfill  *backfill
	filter    *expr.Node // of a projection that does the filter before it, too
	late      []bool     // of a scan before a filter, by column: the filter does not look at it
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
	op      operator.Operator
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
	tables  []uint32
	failure atomic.Pointer[jobFailure]
	touched atomic.Bool
	first   bool  // has not run an epoch of its life yet
	maker   *node // the node whose changes other jobs scan: Materialize or Upsert
	sinks   []*node
	late    []*sink.Late // one a worker for each window with a late topic
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
}

// timeGroup are the nodes whose watermark is the minimum over the same readers.
type timeGroup struct {
	readers []int
}

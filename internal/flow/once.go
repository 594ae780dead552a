package flow

import (
	"context"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Input gives an ad hoc plan's scan its rows: it calls emit for each batch, whose columns are the scan's, in order, and returns
// when there are no more. The batch is the input's again when emit returns.
type Input func(ctx context.Context, scan *plan.Node, emit func(*column.Batch) error) error

// OnceOptions are what an ad hoc plan may depend on.
type OnceOptions struct {
	Now    int64
	Tables Input // rows of tables and views from a snapshot
	// Sources has the sources that the plan scans, read from their start to Ends at the time of the call.
	Sources     map[uint64]*SourceSpec
	MemoryBytes int64 // of ephemeral state; 0: unbounded
}

// RunOnce runs a plan over bounded inputs to its end on the caller's goroutine, with ephemeral tables, and calls visit with the
// net result, in order if the plan sorts. The first error of a row ends it.
func RunOnce(ctx context.Context, p *plan.Plan, o OnceOptions, visit func(*column.Batch) error) error {
	return runOnce(ctx, p, o, visit)
}

func runOnce(context.Context, *plan.Plan, OnceOptions, func(*column.Batch) error) error {
	return errNotBuilt
}

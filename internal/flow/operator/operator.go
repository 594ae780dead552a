// Package operator is the contract between the engine's workers and the operators they run.
//
// What always holds: an operator is used by one goroutine at a time and never waits; it keeps nothing of a batch that it was
// given after Push has returned true; inside an epoch the order of rows means nothing, except where an operator says so.
package operator

import (
	"slices"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/state"
)

// Operator is one node of the graph on one worker.
type Operator interface {
	// Push takes a batch of input port. When it returns false it has stopped in the middle because out is full, and is
	// called again with the same batch when there is room; the batch stays valid until then.
	Push(port int, b *column.Batch, out Output) (done bool, err error)
	// EndEpoch emits what the epoch changed, after all input of the epoch was pushed. It stops as Push does.
	// It is called when the epoch touched the operator or its timer is due.
	EndEpoch(e *Epoch, out Output) (done bool, err error)
}

// Output takes an operator's batches. A batch and its memory are the operator's again when Push returns.
type Output interface {
	Push(b *column.Batch) error
	// Full asks the operator to stop when it can and be called again. Never true for the deepest operators of a graph.
	Full() bool
}

// Timed is an operator with something to do when the watermark passes a time, touched or not.
type Timed interface {
	// NextTimer is the watermark at or above which EndEpoch is to be called, math.MaxInt64 when there is none.
	NextTimer() int64
}

// Epoch is what an operator may know about the epoch that ends.
type Epoch struct {
	Number uint64
	// Now is now() of this epoch, microseconds.
	Now int64
	// Watermark is the operator's, math.MinInt64 before there is one.
	Watermark int64
	// First is true in the first epoch of a job's life, also when it has no input.
	First bool
}

// Counts are what a relation reports; the worker's own, summed at the epoch's end.
type Counts struct {
	In            int64 // rows that came into the operator or source
	Out           int64 // rows that came out
	Late          int64 // (row, window) pairs, or rows, that were behind the watermark
	Failed        int64 // rows dropped because an expression failed on them
	Dead          int64 // records that went to the dead letters
	FarFuture     int64 // of these: event time too far ahead of the append time
	Unmatched     int64 // rows of a stream join that expired without a match
	PanesMerged   int64 // panes merged into windows
	RowsProcessed int64 // raw rows read by the aggregate
}

// Add sums o into c.
func (c *Counts) Add(o *Counts) {
	c.In += o.In
	c.Out += o.Out
	c.Late += o.Late
	c.Failed += o.Failed
	c.Dead += o.Dead
	c.FarFuture += o.FarFuture
	c.Unmatched += o.Unmatched
	c.PanesMerged += o.PanesMerged
	c.RowsProcessed += o.RowsProcessed
}

// Record is one record for a topic of the embedded log.
type Record struct {
	Key, Value []byte // nil: none; a nil Value is a tombstone
	Timestamp  int64  // microseconds; 0: the time of the append
}

// Env is what an operator is made with: its worker's share of the island.
type Env struct {
	Worker, Workers int
	Counts          *Counts
	// Expr is the worker's; whoever evaluates sets Errors first.
	Expr *expr.Context
	// FailRows: a row whose expression fails is an error of the operator; otherwise it is dropped and counted.
	FailRows bool
	Tables   *state.Tables
	// Spec is the state table i of the plan's node, ready to be opened.
	Spec func(i int, name string) state.Spec
	// Owner has, in the operator's input, the columns whose hash says which worker has a row: stored rows of all workers
	// share a table, and a scan must tell its own. Known is false with one worker.
	Owner Owner
	// Partitions of a topic, for sinks.
	Partitions func(topic string) int
}

// Owner tells which worker owns a row.
type Owner struct {
	Known bool
	Cols  []int
	// Mine says whether a hash of Cols belongs to this worker.
	Mine func(hash uint64) bool
}

// KeyOwner tells which stored keys are this worker's: keys of the given types, whose parts at the places in at are what rows were sent by, in that order. It
// is nil when that cannot be told.
func (e *Env) KeyOwner(types []column.Type, at []int) func(key []byte) bool {
	if e.Workers == 1 {
		return func([]byte) bool { return true }
	}
	if !e.Owner.Known || slices.Contains(at, -1) {
		return nil
	}
	one := column.NewBatch(types, 1)
	return func(key []byte) bool {
		one.Reset(types)
		for _, v := range one.Cols {
			var err error
			if key, err = rowenc.DecodeValueKey(key, v); err != nil {
				return false
			}
		}
		one.Len = 1
		return len(at) == 0 && e.Owner.Mine(0) || len(at) > 0 && e.Owner.Mine(rowenc.HashRow(one, at, 0))
	}
}

// Drop counts the rows that failed and returns those that did not, appended to dst.
func (e *Env) Drop(errs *expr.RowErrors, n int, dst []int32) []int32 {
	e.Counts.Failed += int64(errs.Len())
	return errs.Remaining(n, dst)
}

// Errors prepares the worker's context for an evaluation.
func (e *Env) Errors(errs *expr.RowErrors) *expr.Context {
	errs.Reset()
	e.Expr.Errors = errs
	if e.FailRows {
		e.Expr.Errors = nil
	}
	return e.Expr
}

package flow

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Input gives an ad hoc plan's scan of a table or view its rows: it calls emit for each batch, whose columns are the scan's, in
// order, and returns when there are no more. The batch is the input's again when emit returns.
type Input func(ctx context.Context, scan *plan.Node, emit func(*column.Batch) error) error

// OnceOptions are what an ad hoc plan may depend on.
type OnceOptions struct {
	Now    int64
	Tables Input // rows of tables and views, from a snapshot
	// Sources has the sources that the plan scans. They are read from their beginning to their ends at the time of the call.
	Sources map[uint64]*SourceSpec
	// Ends tells where sources end, all at one instant; nil: each is asked by itself.
	Ends func([]connector.Source) [][]int64
	// Memory is what the query takes all it keeps from; nil: it is not bounded.
	Memory *budget.Account
}

// kindCollect is the node behind the root of an ad hoc plan.
const kindCollect plan.Kind = "collect"

// once is an ad hoc run.
type once struct {
	ctx   context.Context
	visit func(*column.Batch) error
	// memory is what everything that is kept is taken from.
	memory *budget.Account
	scans  []*node
	eval   *expr.Context
}

// RunOnce runs a plan over bounded inputs to its end on the caller's goroutine, with tables in memory, and calls visit with
// the result's rows, in order if the plan sorts; a batch is the engine's again when visit returns. All input is one epoch, and event
// time ends with it. The first error of a row is the query's.
func RunOnce(ctx context.Context, p *plan.Plan, o OnceOptions, visit func(*column.Batch) error) error {
	i, err := NewIsland(Options{Workers: 1, Ephemeral: true, FailRows: true, Account: o.Memory})
	if err != nil {
		return err
	}
	defer i.Close()
	var stop atomic.Bool // what takes long within an operator sees it
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	run := &once{ctx: ctx, visit: visit, memory: o.Memory}
	i.once = run
	w := i.workers[0]
	run.eval = &w.ctx
	w.ctx.Now, w.ctx.Memory, w.ctx.Stop = o.Now, o.Memory, &stop
	if err := i.Attach(JobSpec{ID: 1, Name: "query", Plan: p, Sources: o.Sources, Fresh: true}); err != nil {
		return err
	}
	j := i.jobs[0]
	root := j.nodes[len(j.nodes)-1]
	if root.plan.Kind != plan.KindSort {
		n := &node{job: j, index: -1, inputs: []*node{root}, plan: &plan.Node{Kind: kindCollect, Columns: root.plan.Columns, EventTime: -1, RowWatermark: -1}}
		if err := i.place(j, n); err != nil {
			return err
		}
		i.budget()
	}
	e := &Epoch{Number: 1, Now: o.Now, final: true}
	sources := make([]connector.Source, len(i.readers))
	for k, r := range i.readers {
		sources[k] = r.spec.Source
	}
	if o.Ends == nil {
		o.Ends = func(sources []connector.Source) [][]int64 {
			ends := make([][]int64, len(sources))
			for k, s := range sources {
				ends[k] = s.Ends(nil)
			}
			return ends
		}
	}
	all := o.Ends(sources)
	for k, r := range i.readers {
		r.state.grow(len(all[k]))
		for p, end := range all[k] {
			if from := r.state.Partitions[p].Offset; end > from {
				e.Reads = append(e.Reads, Read{Reader: r.id, Partition: p, From: from, To: end})
			}
		}
	}
	return i.runOnce(e, j, o)
}

func (i *Island) runOnce(e *Epoch, j *job, o OnceOptions) error {
	w := i.workers[0]
	w.begin(e, i.depths)
	if err := i.assign(e); err != nil {
		return err
	}
	for _, n := range j.nodes {
		if n.initial() || n.plan.Kind == plan.KindSort {
			w.touch(w.at(n))
		}
	}
	for _, n := range i.once.scans {
		if o.Tables == nil {
			return fmt.Errorf("relation %d has no rows to scan", n.plan.Scan.Relation)
		}
		err := o.Tables(i.once.ctx, n.plan, func(b *column.Batch) error {
			if err := i.once.check(); err != nil {
				return err
			}
			w.guard(n, func() error { return (*output)(w.at(n)).Push(b) })
			if f := j.failure.Load(); f != nil {
				return f.cause
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for !w.finished() && !j.failed() {
		w.step()
		if err := i.once.check(); err != nil {
			return err
		}
	}
	if f := j.failure.Load(); f != nil {
		return f.cause
	}
	return nil
}

// check ends a query that was cancelled.
func (o *once) check() error { return o.ctx.Err() }

// collect hands the rows of the root to the caller; for a plan that sorts it keeps them first, or as many as LIMIT lets out.
type collect struct {
	o     *once
	sort  *plan.Sort
	types []column.Type
	out   column.Batch
	part  column.Batch

	begun bool
	skip  int64 // OFFSET
	upTo  int64 // OFFSET and LIMIT: no row behind it is let out
	kept  []*column.Batch
	keys  rowenc.Keys
	at    []place
	bytes int64 // of kept and at, as taken from the query's memory
}

// place is where a kept row is.
type place struct{ batch, row int32 }

// placeBytes is what a row costs beside its values and its key: its place, its place in the order, and the end of its key.
const placeBytes = 2*8 + 2*4 + 2*4

// pruneBytes is how much is kept before it pays to give up the rows that LIMIT will not let out.
const pruneBytes = 4 << 20

func newCollect(o *once, p *plan.Node, in []column.Type) (*collect, error) {
	return &collect{o: o, sort: p.Sort, types: in}, nil
}

// Push is operator.Operator's.
func (c *collect) Push(_ int, b *column.Batch, _ operator.Output) (bool, error) {
	if err := c.o.check(); err != nil {
		return false, err
	}
	if c.sort == nil {
		return true, c.pass(b)
	}
	if err := c.begin(); err != nil {
		return false, err
	}
	n := b.Len // of large rows a few at a time: most of them may be given up
	if size := b.MemSize(); size > pruneBytes/4 && c.upTo < 1<<32 {
		n = max(b.Len*(pruneBytes/4)/size, 1)
	}
	for from := 0; from < b.Len; from += n {
		part := b
		if n < b.Len {
			part = &c.part
			part.View(b, from, min(from+n, b.Len))
		}
		if err := c.keep(part); err != nil {
			return false, err
		}
	}
	return true, nil
}

// keep takes the rows of a batch.
func (c *collect) keep(b *column.Batch) error {
	rows := int64(0)
	for row := range b.Len {
		rows += b.Weight(row)
	}
	size := int64(b.MemSize()) + rows*placeBytes
	if err := c.o.memory.Take(size); err != nil {
		return err
	}
	c.bytes += size
	if err := c.add(b.Clone()); err != nil {
		return err
	}
	if c.bytes > min(pruneBytes, c.o.memory.Left()/4) && c.upTo < 1<<32 && int64(len(c.at)) > 2*c.upTo {
		return c.prune()
	}
	return nil
}

// add keeps a batch, for which the memory was taken, with the places and keys of its rows, each as often as its weight says.
func (c *collect) add(k *column.Batch) error {
	c.kept = append(c.kept, k)
	for row := range k.Len {
		w := k.Weight(row)
		if w < 0 {
			return pgerr.Internal("a bounded query took back a row")
		}
		for ; w > 0; w-- {
			c.at = append(c.at, place{int32(len(c.kept) - 1), int32(row)})
			if err := c.addKey(k, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin reads LIMIT and OFFSET.
func (c *collect) begin() (err error) {
	if c.begun {
		return nil
	}
	c.begun = true
	if c.skip, err = c.number(c.sort.Offset, "OFFSET", 0, pgerr.InvalidRowCountInResultOffsetClause); err != nil {
		return err
	}
	limit, err := c.number(c.sort.Limit, "LIMIT", math.MaxInt64, pgerr.InvalidRowCountInLimitClause)
	c.upTo = c.skip + min(limit, math.MaxInt64-c.skip)
	return err
}

// addKey appends the sort key of a row.
func (c *collect) addKey(b *column.Batch, row int) error {
	if len(c.sort.Keys) == 0 {
		return nil
	}
	n := 0
	for _, k := range c.sort.Keys {
		n += 64
		switch v := b.Cols[k.Column]; {
		case v.Type.Kind.Varlen():
			n += 2 * len(v.Bytes(row))
		case v.Type.Kind == column.Numeric:
			n += 4 * v.Dec[row].BigSize()
		}
	}
	if have := cap(c.keys.Data); have-len(c.keys.Data) < n {
		want := max(have+have/2, len(c.keys.Data)+n)
		if err := c.o.memory.Take(int64(want)); err != nil {
			return err
		}
		c.keys.Data = append(make([]byte, 0, want), c.keys.Data...)
		c.o.memory.Give(int64(have))
	}
	for _, k := range c.sort.Keys {
		c.keys.Data = appendSortKey(c.keys.Data, b.Cols[k.Column], row, k)
	}
	c.keys.EndKey()
	return nil
}

// sorted is the order of the kept rows that OFFSET and LIMIT let out, the skipped ones before them.
func (c *collect) sorted() []int32 {
	order := make([]int32, len(c.at))
	for i := range order {
		order[i] = int32(i)
	}
	if len(c.sort.Keys) > 0 {
		slices.SortStableFunc(order, func(a, b int32) int {
			return bytes.Compare(c.keys.Key(int(a)), c.keys.Key(int(b)))
		})
	}
	return order[:min(c.upTo, int64(len(order)))]
}

// prune gives up the rows that cannot be among the result's.
func (c *collect) prune() error {
	old := *c
	c.kept, c.at, c.keys, c.bytes = nil, nil, rowenc.Keys{}, 0
	for order := old.sorted(); len(order) > 0; {
		k := &column.Batch{}
		k.Reset(c.types)
		for ; len(order) > 0 && !k.Full(); order = order[1:] {
			p := old.at[order[0]]
			copyRow(k, old.kept[p.batch], int(p.row))
		}
		size := int64(k.MemSize()) + int64(k.Len)*placeBytes
		if err := c.o.memory.Take(size); err != nil {
			return err
		}
		c.bytes += size
		if err := c.add(k); err != nil {
			return err
		}
	}
	c.o.memory.Give(old.bytes + int64(cap(old.keys.Data)))
	return nil
}

// pass hands a batch on, each row as often as its weight says.
func (c *collect) pass(b *column.Batch) error {
	if b.Weights == nil {
		return c.o.visit(b)
	}
	c.out.Reset(c.types)
	for row, w := range b.Weights {
		if w < 0 {
			return pgerr.Internal("a bounded query took back a row")
		}
		for ; w > 0; w-- {
			copyRow(&c.out, b, row)
			if c.out.Full() {
				if err := c.emit(); err != nil {
					return err
				}
			}
		}
	}
	if c.out.Len == 0 {
		return nil
	}
	return c.emit()
}

// copyRow appends a row, once.
func copyRow(dst, src *column.Batch, row int) {
	for k, v := range dst.Cols {
		v.AppendFrom(src.Cols[k], row)
	}
	dst.EndRow(1)
}

// emit gives the caller the rows gathered.
func (c *collect) emit() error {
	if err := c.o.check(); err != nil {
		return err
	}
	if err := c.o.visit(&c.out); err != nil {
		return err
	}
	c.out.Reset(c.types)
	return nil
}

// EndEpoch is operator.Operator's.
func (c *collect) EndEpoch(*operator.Epoch, operator.Output) (bool, error) {
	if c.sort == nil {
		return true, nil
	}
	if err := c.begin(); err != nil {
		return false, err
	}
	order := c.sorted()
	c.out.Reset(c.types)
	for _, i := range order[min(c.skip, int64(len(order))):] {
		p := c.at[i]
		copyRow(&c.out, c.kept[p.batch], int(p.row))
		if c.out.Full() {
			if err := c.emit(); err != nil {
				return false, err
			}
		}
	}
	if c.out.Len == 0 {
		return true, nil
	}
	return true, c.emit()
}

// appendSortKey appends bytes that compare as ORDER BY's item does.
func appendSortKey(dst []byte, v *column.Vector, row int, k plan.SortKey) []byte {
	null := v.IsNull(row)
	if null == k.NullsFirst {
		dst = append(dst, 0)
	} else {
		dst = append(dst, 1)
	}
	if null {
		return dst
	}
	at := len(dst)
	dst = rowenc.AppendValueKey(dst, v, row)
	if k.Descending {
		for i := range dst[at:] {
			dst[at+i] ^= 0xff
		}
	}
	return dst
}

// number is the value of LIMIT or OFFSET; NULL is as if it were not there.
func (c *collect) number(n *expr.Node, word string, none int64, code string) (int64, error) {
	if n == nil {
		return none, nil
	}
	p, err := expr.Compile(n, nil)
	if err != nil {
		return 0, err
	}
	c.o.eval.Errors = nil
	v, err := p.Eval(c.o.eval, &column.Batch{Len: 1})
	if err != nil {
		return 0, err
	}
	if v.IsNull(0) {
		return none, nil
	}
	var x int64
	switch v.Type.Kind {
	case column.Int16:
		x = int64(v.I16[0])
	case column.Int32:
		x = int64(v.I32[0])
	case column.Int64:
		x = v.I64[0]
	default:
		return 0, pgerr.Newf(pgerr.DatatypeMismatch, "argument of %s must be type bigint, not type %s", word, v.Type)
	}
	if x < 0 {
		return 0, pgerr.Newf(code, "%s must not be negative", word)
	}
	return x, nil
}

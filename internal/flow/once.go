package flow

import (
	"bytes"
	"context"
	"fmt"
	"slices"

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
	// MemoryBytes bounds what the query keeps, 0: not bounded.
	MemoryBytes int64
}

// kindCollect is the node behind the root of an ad hoc plan.
const kindCollect plan.Kind = "collect"

// once is an ad hoc run.
type once struct {
	ctx   context.Context
	visit func(*column.Batch) error
	limit int64
	used  func() int64
	scans []*node
	eval  *expr.Context
}

// RunOnce runs a plan over bounded inputs to its end on the caller's goroutine, with tables in memory, and calls visit with
// the result's rows, in order if the plan sorts; a batch is the engine's again when visit returns. All input is one epoch, and event
// time ends with it. The first error of a row is the query's.
func RunOnce(ctx context.Context, p *plan.Plan, o OnceOptions, visit func(*column.Batch) error) error {
	i, err := NewIsland(Options{Workers: 1, Ephemeral: true, FailRows: true})
	if err != nil {
		return err
	}
	defer i.Close()
	run := &once{ctx: ctx, visit: visit, limit: o.MemoryBytes, used: i.tables[0].Used}
	i.once = run
	w := i.workers[0]
	run.eval = &w.ctx
	w.ctx.Now = o.Now
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

// check ends a query that was cancelled or keeps too much.
func (o *once) check() error {
	if err := o.ctx.Err(); err != nil {
		return err
	}
	if o.limit > 0 && o.used() > o.limit {
		return tooLarge(o.limit)
	}
	return nil
}

func tooLarge(limit int64) error {
	return pgerr.Newf(pgerr.OutOfMemory, "the query keeps more than %d bytes", limit).
		WithHint("make a materialized view of it, or restrict its input")
}

// collect hands the rows of the root to the caller; for a plan that sorts it keeps them first.
type collect struct {
	o     *once
	sort  *plan.Sort
	types []column.Type
	out   column.Batch

	kept  []*column.Batch
	keys  rowenc.Keys
	at    []place
	bytes int64
}

// place is where a kept row is.
type place struct{ batch, row int32 }

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
	k := b.Clone()
	c.kept = append(c.kept, k)
	c.bytes += int64(k.MemSize()) + int64(k.Len)*16
	if c.o.limit > 0 && c.bytes+c.o.used() > c.o.limit {
		return false, tooLarge(c.o.limit)
	}
	for row := range k.Len {
		w := k.Weight(row)
		if w < 0 {
			return false, pgerr.Internal("a bounded query took back a row")
		}
		for ; w > 0; w-- {
			c.at = append(c.at, place{int32(len(c.kept) - 1), int32(row)})
		}
	}
	return true, nil
}

// pass hands a batch on, each row as often as its weight says.
func (c *collect) pass(b *column.Batch) error {
	if b.Weights == nil {
		return c.o.visit(b)
	}
	var rows []int32
	for i, w := range b.Weights {
		if w < 0 {
			return pgerr.Internal("a bounded query took back a row")
		}
		for ; w > 0; w-- {
			rows = append(rows, int32(i))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	c.out.Gather(b, rows)
	c.out.Weights = nil
	return c.o.visit(&c.out)
}

// EndEpoch is operator.Operator's.
func (c *collect) EndEpoch(*operator.Epoch, operator.Output) (bool, error) {
	if c.sort == nil {
		return true, nil
	}
	skip, err := c.number(c.sort.Offset, "OFFSET", 0, pgerr.InvalidRowCountInResultOffsetClause)
	if err != nil {
		return false, err
	}
	limit, err := c.number(c.sort.Limit, "LIMIT", 1<<62, pgerr.InvalidRowCountInLimitClause)
	if err != nil {
		return false, err
	}
	order := make([]int32, len(c.at))
	for i := range order {
		order[i] = int32(i)
	}
	if len(c.sort.Keys) > 0 {
		for _, p := range c.at {
			for _, k := range c.sort.Keys {
				c.keys.Data = appendSortKey(c.keys.Data, c.kept[p.batch].Cols[k.Column], int(p.row), k)
			}
			c.keys.EndKey()
			if c.o.limit > 0 && c.bytes+int64(len(c.keys.Data))+c.o.used() > c.o.limit {
				return false, tooLarge(c.o.limit)
			}
		}
		slices.SortStableFunc(order, func(a, b int32) int {
			return bytes.Compare(c.keys.Key(int(a)), c.keys.Key(int(b)))
		})
	}
	order = order[min(skip, int64(len(order))):]
	order = order[:min(limit, int64(len(order)))]
	for len(order) > 0 {
		n := min(len(order), column.MaxRows)
		c.out.Reset(c.types)
		for _, i := range order[:n] {
			p := c.at[i]
			src := c.kept[p.batch]
			for k, v := range c.out.Cols {
				v.AppendFrom(src.Cols[k], int(p.row))
			}
			c.out.EndRow(1)
		}
		if err := c.o.check(); err != nil {
			return false, err
		}
		if err := c.o.visit(&c.out); err != nil {
			return false, err
		}
		order = order[n:]
	}
	return true, nil
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

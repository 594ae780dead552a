// Package project has the operators that look at one row at a time: filters, projections, and a filter with the projection behind it,
// which are one operator. It keeps nothing.
package project

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
)

// Project computes its output columns for the rows that pass its filter. A row whose filter or output fails is dropped. It takes batches
// with late columns.
type Project struct {
	env      *operator.Env
	group    *expr.Group
	filtered bool
	errs     expr.RowErrors
	rows     []int32
	left     []int32
	weights  []int64
	out      column.Batch
	kept     column.Batch
	few      int          // rows that are taken at a time, 0: all of a batch
	part     column.Batch // those
}

// New makes a projection of rows of the given types. filter, or exprs, is nil where there is none: all rows, all columns.
func New(env *operator.Env, filter *expr.Node, exprs []*expr.Node, in []column.Type) (*Project, error) {
	if exprs == nil {
		for i, t := range in {
			exprs = append(exprs, expr.Column(i, t, 0))
		}
	}
	g, err := expr.CompileGroup(filter, exprs, in)
	if err != nil {
		return nil, err
	}
	p := &Project{env: env, group: g, filtered: filter != nil}
	p.out.Cols = make([]*column.Vector, len(exprs))
	return p, nil
}

// Push is operator.Operator's. Rows whose results are too large together are taken in parts, and so are the next ones, for a while.
func (p *Project) Push(_ int, b *column.Batch, out operator.Output) (bool, error) {
	if p.few == 0 || b.Len <= p.few {
		failed := p.env.Counts.Failed
		err := p.pass(b, out)
		if err != expr.ErrSplit {
			p.group.End()
			return true, err
		}
		p.env.Counts.Failed = failed
		p.few = max(b.Len/2, 1)
	}
	for from := 0; from < b.Len; {
		to := min(from+p.few, b.Len)
		failed := p.env.Counts.Failed
		p.part.View(b, from, to)
		err := p.pass(&p.part, out)
		switch {
		case err == expr.ErrSplit && to-from > 1:
			p.env.Counts.Failed = failed
			p.few = (to - from) / 2
			continue
		case err != nil:
			return false, err
		}
		from = to
	}
	p.group.End()
	if p.few *= 2; p.few >= column.MaxRows {
		p.few = 0
	}
	return true, nil
}

// pass computes the rows of a batch and pushes them. It pushes nothing when it gives ErrSplit.
func (p *Project) pass(b *column.Batch, out operator.Output) error {
	p.group.Start(p.env.Errors(&p.errs), b)
	p.out.Len, p.out.Weights = b.Len, b.Weights
	if p.filtered {
		any, err := p.narrow(b)
		if err != nil || !any {
			return err
		}
	}
	for i := range p.out.Cols {
		v, err := p.group.Eval(i)
		if err != nil {
			return err
		}
		p.out.Cols[i] = v
	}
	if p.errs.Len() == 0 {
		return out.Push(&p.out)
	}
	p.left = p.env.Drop(&p.errs, p.out.Len, p.left[:0])
	p.kept.Gather(&p.out, p.left)
	return out.Push(&p.kept)
}

// narrow leaves the rows that pass the filter, and says whether there are any.
func (p *Project) narrow(b *column.Batch) (any bool, err error) {
	p.rows, err = p.group.Select(p.rows[:0])
	if err != nil {
		return false, err
	}
	if n := p.errs.Len(); n > 0 {
		p.env.Counts.Failed += int64(n)
		p.rows = p.errs.Without(p.rows, p.rows[:0])
		p.errs.Reset()
	}
	switch len(p.rows) {
	case 0:
		return false, nil
	case b.Len:
		return true, nil
	}
	p.group.Narrow(p.rows)
	p.out.Len = len(p.rows)
	if b.Weights != nil {
		p.weights = p.weights[:0]
		for _, row := range p.rows {
			p.weights = append(p.weights, b.Weights[row])
		}
		p.out.Weights = p.weights
	}
	return true, nil
}

// EndEpoch is operator.Operator's.
func (p *Project) EndEpoch(*operator.Epoch, operator.Output) (bool, error) { return true, nil }

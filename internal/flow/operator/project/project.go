// Package project has the operators that look at one row at a time: filter and project. They keep nothing.
package project

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Filter keeps the rows for which its predicate is true.
type Filter struct {
	env  *operator.Env
	prog *expr.Program
	errs expr.RowErrors
	rows []int32
	out  column.Batch
}

// NewFilter makes a filter over rows of the given types.
func NewFilter(env *operator.Env, p *plan.Filter, in []column.Type) (*Filter, error) {
	prog, err := expr.Compile(p.Predicate, in)
	if err != nil {
		return nil, err
	}
	return &Filter{env: env, prog: prog}, nil
}

// Push is operator.Operator's.
func (f *Filter) Push(_ int, b *column.Batch, out operator.Output) (bool, error) {
	var err error
	f.rows, err = f.prog.Select(f.env.Errors(&f.errs), b, f.rows[:0])
	if err != nil {
		return false, err
	}
	f.env.Counts.Failed += int64(f.errs.Len())
	switch len(f.rows) {
	case 0:
		return true, nil
	case b.Len:
		return true, out.Push(b)
	}
	f.out.Gather(b, f.rows)
	return true, out.Push(&f.out)
}

// EndEpoch is operator.Operator's.
func (f *Filter) EndEpoch(*operator.Epoch, operator.Output) (bool, error) { return true, nil }

// Project computes its output columns.
type Project struct {
	env   *operator.Env
	progs []*expr.Program
	errs  expr.RowErrors
	rows  []int32
	out   column.Batch
	kept  column.Batch
}

// NewProject makes a projection of rows of the given types.
func NewProject(env *operator.Env, p *plan.Project, in []column.Type) (*Project, error) {
	o := &Project{env: env}
	for _, e := range p.Exprs {
		prog, err := expr.Compile(e, in)
		if err != nil {
			return nil, err
		}
		o.progs = append(o.progs, prog)
	}
	o.out.Cols = make([]*column.Vector, len(o.progs))
	return o, nil
}

// Push is operator.Operator's.
func (p *Project) Push(_ int, b *column.Batch, out operator.Output) (bool, error) {
	ctx := p.env.Errors(&p.errs)
	p.out.Len, p.out.Weights = b.Len, b.Weights
	for i, prog := range p.progs {
		v, err := prog.Eval(ctx, b)
		if err != nil {
			return false, err
		}
		p.out.Cols[i] = v
	}
	if p.errs.Len() == 0 {
		return true, out.Push(&p.out)
	}
	p.rows = p.env.Drop(&p.errs, b.Len, p.rows[:0])
	p.kept.Gather(&p.out, p.rows)
	return true, out.Push(&p.kept)
}

// EndEpoch is operator.Operator's.
func (p *Project) EndEpoch(*operator.Epoch, operator.Output) (bool, error) { return true, nil }

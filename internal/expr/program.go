package expr

import (
	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// Program is a compiled expression with its scratch memory: for one goroutine.
type Program struct {
	root unit
	typ  column.Type
	run  run
	out  *column.Vector
	// whole is the result that was put together of parts; memory has given held bytes for it.
	whole  *column.Vector
	memory *budget.Account
	held   int64
}

// Type is the type of the result.
func (p *Program) Type() column.Type { return p.typ }

// Compile makes a program of an expression over a batch with columns of the given types. It fails when the expression
// names an overload that this binary does not have.
func Compile(n *Node, inputs []column.Type) (*Program, error) {
	c := compiler{inputs: inputs}
	c.share(n)
	u, err := c.compile(n)
	if err != nil {
		return nil, err
	}
	return &Program{root: u, typ: n.Type}, nil
}

// evalAll is Eval that may give ErrSplit.
func (p *Program) evalAll(ctx *Context, in *column.Batch) (*column.Vector, error) {
	r := &p.run
	r.start(ctx, in)
	v := p.root.eval(r, nil)
	if p.root.konst && r.err == nil {
		v = r.spread(&p.out, v)
	}
	if r.err != nil {
		return nil, r.err
	}
	return v, nil
}

// selectAll is Select that may give ErrSplit.
func (p *Program) selectAll(ctx *Context, in *column.Batch, dst []int32) ([]int32, error) {
	r := &p.run
	r.start(ctx, in)
	dst = p.root.selectRows(r, nil, dst)
	if r.err != nil {
		return dst[:0], r.err
	}
	return dst, nil
}

func notPredicate(t column.Type) error {
	return pgerr.Internal("a predicate of type %s", TypeName(t))
}

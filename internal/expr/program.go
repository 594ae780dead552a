package expr

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// Program is a compiled expression with its scratch memory: for one goroutine.
type Program struct {
	root unit
	typ  column.Type
	run  run
	out  *column.Vector
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

// Eval computes the expression for every row of in. The vector is valid until the next Eval or Select; for a plain column it
// is the input's own. Rows that fail go to ctx.Errors and are NULL; without ctx.Errors the first one is returned.
func (p *Program) Eval(ctx *Context, in *column.Batch) (*column.Vector, error) {
	r := &p.run
	r.start(ctx, in)
	v := p.root.eval(r, nil)
	if r.err != nil {
		return nil, r.err
	}
	if p.root.konst {
		v = spread(&p.out, v, in.Len)
	}
	return v, nil
}

// Select appends the rows for which the expression, a boolean, is true, in ascending order.
func (p *Program) Select(ctx *Context, in *column.Batch, dst []int32) ([]int32, error) {
	if p.typ.Kind != column.Bool {
		return dst, notPredicate(p.typ)
	}
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

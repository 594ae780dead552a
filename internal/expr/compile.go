package expr

import (
	"strconv"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// evaluator computes an expression for the rows of a selection (ascending; nil is all r.n rows). Its vector has r.n rows, those
// outside of the selection are unspecified; a constant's has one. It belongs to the evaluator and lives until its next call.
type evaluator interface {
	eval(r *run, sel []int32) *column.Vector
}

// selector is an evaluator of booleans that can name the true rows without making a vector.
type selector interface {
	selectRows(r *run, sel []int32, dst []int32) []int32
}

// unit is an evaluator with what is known about it before rows come.
type unit struct {
	evaluator
	typ   column.Type
	konst bool           // one value for the whole batch
	value *column.Vector // that value, if it is known when the program is made
}

func (u *unit) selectRows(r *run, sel, dst []int32) []int32 {
	if s, ok := u.evaluator.(selector); ok && !u.konst {
		return s.selectRows(r, sel, dst)
	}
	v := u.eval(r, sel)
	if r.err != nil {
		return dst
	}
	if u.konst {
		if v.Len == 0 || v.IsNull(0) || !v.Bools[0] {
			return dst
		}
		if sel == nil {
			sel = allRows(r.n)
		}
		return append(dst, sel...)
	}
	return trueRows(v, r.n, sel, dst)
}

// run is one evaluation.
type run struct {
	ctx *Context
	in  input
	n   int
	err *pgerr.Error // the first failure, when nobody collects them, or what ends the evaluation
	// fan is set while a constant is computed: its failure is that of all rows that want it.
	fan     bool
	fanRows []int32
	rows    pool
	serial  uint64 // counts evaluations

	room    int   // bytes that results of variable width may still have, until more is asked for
	granted int   // of these, what was asked for
	taken   int64 // of that, what was taken from memory
	memory  *budget.Account
	spare   []byte           // memory that the next large result begins with
	large   []*column.Vector // results that are given up when nobody needs them any more
}

var background = &Context{}

func (r *run) start(ctx *Context, in *column.Batch) {
	if ctx == nil {
		ctx = background
	}
	r.ctx, r.n, r.err, r.fan = ctx, in.Len, nil, false
	r.in.begin(in)
	r.begin()
	r.serial++
}

// narrow goes on with some rows of the input.
func (r *run) narrow(rows []int32) {
	r.in.narrow(rows)
	r.n = len(rows)
	r.serial++
}

func (r *run) fail(row int32, err *pgerr.Error) {
	switch {
	case r.err != nil:
	case r.ctx.Errors == nil:
		r.err = err
	case r.fan:
		rows := r.fanRows
		if rows == nil {
			rows = allRows(r.n)
		}
		for _, i := range rows {
			r.ctx.Errors.Add(i, err)
		}
	default:
		r.ctx.Errors.Add(row, err)
	}
}

// pool lends row lists, with room for one more: see grow.
type pool struct{ free [][]int32 }

func (p *pool) get(n int) []int32 {
	if k := len(p.free); k > 0 {
		s := p.free[k-1]
		p.free = p.free[:k-1]
		if cap(s) > n {
			return s[:0]
		}
	}
	return make([]int32, 0, max(n, column.MaxRows)+1)
}

func (p *pool) put(s []int32) { p.free = append(p.free, s) }

type compiler struct {
	inputs []column.Type
	shapes shapes
	memos  []*memo // by shape's number
	stage  int     // of a group: 0 for the filter, 1 for what is behind it
}

func (c *compiler) all(nodes []*Node) ([]unit, error) {
	us := make([]unit, len(nodes))
	for i, n := range nodes {
		u, err := c.compile(n)
		if err != nil {
			return nil, err
		}
		us[i] = u
	}
	return us, nil
}

func (c *compiler) compile(n *Node) (unit, error) {
	if n == nil {
		return unit{}, pgerr.Internal("an expression is missing in the plan")
	}
	if n.Type.Kind == column.Unknown && n.Op != OpConst {
		return unit{}, pgerr.Internal("an expression (%s) without a type in the plan", n.Op)
	}
	switch n.Op {
	case OpColumn:
		if n.Index < 0 || n.Index >= len(c.inputs) {
			return unit{}, pgerr.Internal("column %d of an input with %d columns", n.Index, len(c.inputs))
		}
		if in := c.inputs[n.Index]; !sameType(in, n.Type) {
			return unit{}, pgerr.Internal("column %d is of type %s, and the expression was made for %s", n.Index, TypeName(in), TypeName(n.Type))
		}
		return unit{evaluator: columnEval(n.Index), typ: n.Type}, nil
	case OpConst:
		v, err := constant(n)
		if err != nil {
			return unit{}, err
		}
		return unit{evaluator: constEval{v}, typ: n.Type, konst: true, value: v}, nil
	case OpParam:
		return unit{}, pgerr.Newf(pgerr.UndefinedParameter, "there is no value for parameter $%d", n.Index+1)
	}
	args, err := c.all(n.Args)
	if err != nil {
		return unit{}, err
	}
	switch n.Op {
	case OpCall:
		return c.call(n, args)
	case OpAnd, OpOr:
		if err := wantBools(n, args); err != nil {
			return unit{}, err
		}
		return unit{evaluator: &logicEval{args: args, or: n.Op == OpOr}, typ: tBool}, nil
	case OpNot:
		if len(args) != 1 || wantBools(n, args) != nil {
			return unit{}, badArgs(n)
		}
		return unit{evaluator: &notEval{arg: args[0]}, typ: tBool, konst: args[0].konst}, nil
	case OpIsNull:
		if len(args) != 1 {
			return unit{}, badArgs(n)
		}
		return unit{evaluator: &isNullEval{arg: args[0]}, typ: tBool, konst: args[0].konst}, nil
	case OpCase:
		if len(args)%2 == 0 || len(args) < 3 {
			return unit{}, badArgs(n)
		}
		for i := range args {
			if i%2 == 0 && i+1 < len(args) {
				if args[i].typ.Kind != column.Bool {
					return unit{}, badArgs(n)
				}
			} else if !sameType(args[i].typ, n.Type) {
				return unit{}, badArgs(n)
			}
		}
		return unit{evaluator: newCase(args, n.Type), typ: n.Type}, nil
	case OpCoalesce:
		for i := range args {
			if !sameType(args[i].typ, n.Type) {
				return unit{}, badArgs(n)
			}
		}
		if len(args) == 0 {
			return unit{}, badArgs(n)
		}
		return unit{evaluator: newCoalesce(args, n.Type), typ: n.Type}, nil
	case OpIn:
		if len(args) < 2 {
			return unit{}, badArgs(n)
		}
		e, err := newIn(n, args)
		return unit{evaluator: e, typ: tBool, konst: args[0].konst}, err
	}
	return unit{}, pgerr.Internal("the operation %q is not known to this version of Leat: the plan was made by a newer one", string(n.Op)).
		WithHint("Run the version that made it, or create the view again.")
}

func wantBools(n *Node, args []unit) error {
	for i := range args {
		if args[i].typ.Kind != column.Bool {
			return badArgs(n)
		}
	}
	return nil
}

func badArgs(n *Node) error {
	return pgerr.Internal("the arguments of %q do not fit it: the plan is damaged", string(n.Op))
}

func (c *compiler) call(n *Node, args []unit) (unit, error) {
	s := &Site{Result: n.Type, Pos: n.Pos}
	for _, a := range args {
		s.Args = append(s.Args, a.typ)
		s.Consts = append(s.Consts, a.value)
	}
	o, err := lookup(n, s)
	if err != nil {
		return unit{}, err
	}
	e := &callEval{args: args, strict: !o.CallsOnNull, total: o.Total || o.dense, varlen: n.Type.Kind.Varlen(), typ: n.Type}
	if e.kernel, err = o.Make(s); err != nil {
		return unit{}, err
	}
	if o.selects != nil {
		e.selects = o.selects(s)
	}
	e.konst = o.Volatility != Volatile
	e.vecs, e.consts = make([]*column.Vector, len(args)), make([]bool, len(args))
	known := true // a constant argument may still depend on the statement's time or zone
	for i, a := range args {
		e.consts[i] = a.konst
		e.konst = e.konst && a.konst
		known = known && a.value != nil
	}
	if e.konst && known && o.Volatility == Immutable {
		// Computed now, so that makers see the value; what fails stays, and fails for the rows that want it.
		var r run
		r.start(&Context{fold: foldBytes}, oneRow)
		if v := e.eval(&r, nil); r.err == nil {
			v = v.Clone()
			return unit{evaluator: constEval{v}, typ: n.Type, konst: true, value: v}, nil
		}
	}
	if !e.konst && e.selects == nil { // a comparison mostly selects rows without making a vector
		if m := c.memo(n); m != nil {
			return unit{evaluator: sharedEval{e, m}, typ: n.Type}, nil
		}
	}
	return unit{evaluator: e, typ: n.Type, konst: e.konst}, nil
}

// lookup finds the overload that a stored call names and checks that the call fits it.
func lookup(n *Node, s *Site) (*Overload, error) {
	if isCast(n.Func) {
		if len(s.Args) == 1 {
			for _, explicit := range []bool{false, true} {
				if n.Func == castID(s.Args[0], n.Type, explicit) {
					return castOverload(s, explicit && n.Func[:3] == "cut")
				}
			}
		}
		return nil, unknownCall(n)
	}
	o := registered().byID[n.Func]
	if o == nil {
		return nil, unknownCall(n)
	}
	declared, result, ok := []column.Type(nil), column.Type{}, false
	if slots := o.slots(len(s.Args)); slots != nil || len(s.Args)+len(o.Args) == 0 {
		declared, result, ok = o.instantiate(s.Args)
	}
	ok = ok && sameType(result, n.Type)
	for i, d := range declared {
		ok = ok && (d.Kind == kindAny || sameType(d, s.Args[i]))
	}
	if !ok {
		return nil, pgerr.Internal("the plan calls %s with (%s), %s arguments: it is damaged", n.Func, typeNames(s.Args), strconv.Itoa(len(s.Args)))
	}
	return o, nil
}

func unknownCall(n *Node) error {
	return pgerr.Newf(pgerr.UndefinedFunction, "the function %s of a stored plan is not known to this version of Leat", n.Func).
		WithHint("The plan was made by a newer version. Run that version, or create the view again.")
}

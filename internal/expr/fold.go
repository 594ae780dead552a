package expr

import (
	"slices"
	"time"

	"github.com/leat-io/leat/internal/column"
)

// Fold computes what is constant in an expression. Without ctx that is what is the same for ever; with ctx also what depends
// on its Zone, if that is set, and on its Now, if that is not 0. What fails is left as it is: it fails for the rows that need
// it, if there are any. The argument is not changed; the result may share parts with it.
func Fold(n *Node, ctx *Context) *Node {
	switch n.Op {
	case OpColumn, OpConst, OpParam:
		return n
	}
	c := *n
	c.Args = make([]*Node, len(n.Args))
	all := true
	for i, a := range n.Args {
		c.Args[i] = Fold(a, ctx)
		all = all && c.Args[i].Op == OpConst
	}
	switch n.Op {
	case OpAnd, OpOr:
		return foldLogic(&c)
	case OpCase:
		return foldCase(&c)
	case OpCoalesce:
		return foldCoalesce(&c)
	case OpCall:
		if nullArgument(&c) {
			return Null(c.Type, c.Pos)
		}
		if !foldable(&c, ctx) {
			if all && isCast(c.Func) && ctx != nil && ctx.Zone != nil && ctx.Now == 0 {
				return foldMoment(&c, ctx.Zone)
			}
			return &c
		}
	}
	if !all {
		return &c
	}
	if f, err := evalConst(&c, ctx); err == nil {
		return f
	}
	return &c
}

// nullArgument tells whether a call is NULL for a constant argument, and no other argument is a constant that fails.
func nullArgument(n *Node) bool {
	null := false
	for _, a := range n.Args {
		switch {
		case a.Op != OpConst:
			if !readsRows(a) {
				return false
			}
		case a.Text == nil:
			null = true
		}
	}
	return null && strict(n)
}

// readsRows tells whether an expression depends on its input.
func readsRows(n *Node) bool {
	if n.Op == OpColumn || n.Op == OpParam {
		return true
	}
	return slices.ContainsFunc(n.Args, readsRows)
}

// strict tells whether a call is NULL when an argument is, without looking at the others: as in PostgreSQL, these may then
// fail to fail.
func strict(n *Node) bool {
	if isCast(n.Func) {
		return true
	}
	o := registered().byID[n.Func]
	return o != nil && !o.CallsOnNull
}

func foldable(n *Node, ctx *Context) bool {
	v := Immutable
	if isCast(n.Func) {
		if len(n.Args) == 1 {
			v = castVolatility(n.Args[0].Type, n.Type)
		}
	} else if o := registered().byID[n.Func]; o != nil {
		v = o.Volatility
	} else {
		return false
	}
	switch v {
	case Immutable:
		return true
	case Zoned:
		return ctx != nil && ctx.Zone != nil && (ctx.Now != 0 || !isCast(n.Func))
	case Stable:
		return ctx != nil && ctx.Now != 0
	}
	return false
}

// foldMoment computes a time from text, in a zone, unless it depends on now() ('today').
func foldMoment(n *Node, zone *time.Location) *Node {
	a, err := evalConst(n, &Context{Now: probes[0].Now, Zone: zone})
	if err != nil {
		return n
	}
	b, err := evalConst(n, &Context{Now: probes[1].Now, Zone: zone})
	if err != nil || (a.Text == nil) != (b.Text == nil) || a.Text != nil && *a.Text != *b.Text {
		return n
	}
	return a
}

var oneRow = &column.Batch{Len: 1}

// evalConst evaluates an expression without columns.
func evalConst(n *Node, ctx *Context) (*Node, error) {
	p, err := Compile(n, nil)
	if err != nil {
		return nil, err
	}
	var c Context
	if ctx != nil {
		c = Context{Now: ctx.Now, Zone: ctx.Zone}
	}
	c.fold = foldBytes
	if isCast(n.Func) && n.Op == OpCall && n.Args[0].Text != nil {
		c.fold += 3 * len(*n.Args[0].Text)
	}
	v, err := p.Eval(&c, oneRow)
	if err != nil {
		return nil, err
	}
	out := &Node{Op: OpConst, Type: n.Type, Pos: n.Pos}
	if !v.IsNull(0) {
		text := string(formatText(nil, v, 0, background))
		out.Text = &text
	}
	return out, nil
}

// foldCast evaluates a cast of a constant, whose failure is the statement's.
func foldCast(n *Node) (*Node, error) {
	f, err := evalConst(n, nil)
	if err != nil {
		return nil, pgerrAt(err, n.Pos)
	}
	return f, nil
}

func isConstBool(n *Node, v bool) bool {
	return n.Op == OpConst && n.Text != nil && n.Type.Kind == column.Bool && (*n.Text == "t" || *n.Text == "true") == v
}

func foldLogic(n *Node) *Node {
	or := n.Op == OpOr
	keep := n.Args[:0]
	for _, a := range n.Args {
		if isConstBool(a, or) {
			return a
		}
		if !isConstBool(a, !or) {
			keep = append(keep, a)
		}
	}
	switch len(keep) {
	case 0:
		return Bool(!or)
	case 1:
		return keep[0]
	}
	n.Args = keep
	return n
}

func foldCase(n *Node) *Node {
	var keep []*Node
	for i := 0; i+1 < len(n.Args); i += 2 {
		when := n.Args[i]
		if when.Op == OpConst {
			if !isConstBool(when, true) {
				continue
			}
			if len(keep) == 0 {
				return n.Args[i+1]
			}
			n.Args = append(keep, n.Args[i+1])
			return n
		}
		keep = append(keep, when, n.Args[i+1])
	}
	els := n.Args[len(n.Args)-1]
	if len(keep) == 0 {
		return els
	}
	n.Args = append(keep, els)
	return n
}

func foldCoalesce(n *Node) *Node {
	keep := n.Args[:0]
	for _, a := range n.Args {
		if a.Op == OpConst && a.Text == nil {
			continue
		}
		keep = append(keep, a)
		if a.Op == OpConst {
			break
		}
	}
	switch len(keep) {
	case 0:
		return Null(n.Type, n.Pos)
	case 1:
		if sameType(keep[0].Type, n.Type) {
			return keep[0]
		}
	}
	n.Args = keep
	return n
}

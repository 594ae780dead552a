package expr

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// CastContext says how willing a cast is.
type CastContext uint8

// The contexts, from the least to the most willing.
const (
	Implicit   CastContext = iota // in an expression
	Assignment                    // to a column that is stored
	Explicit                      // x::type
)

// Column is a reference to a column of the input.
func Column(index int, t column.Type, pos int) *Node {
	return &Node{Op: OpColumn, Index: index, Type: t, Pos: pos}
}

// Literal is an untyped literal, '...': whoever uses it gives it a type.
func Literal(text string, pos int) *Node {
	return &Node{Op: OpConst, Type: tUnknown, Text: &text, Pos: pos}
}

// Null is NULL of a type; of type Unknown it is the bare word.
func Null(t column.Type, pos int) *Node { return &Node{Op: OpConst, Type: t, Pos: pos} }

// Const is a typed constant from PostgreSQL's text format. The text is not checked.
func Const(t column.Type, text string, pos int) *Node {
	return &Node{Op: OpConst, Type: t, Text: &text, Pos: pos}
}

// Bool is TRUE or FALSE.
func Bool(v bool) *Node {
	if v {
		return Const(tBool, "t", 0)
	}
	return Const(tBool, "f", 0)
}

// Number is a numeric literal, which is an integer, a bigint or a numeric, the first that holds it, as in PostgreSQL.
// A minus in front of a literal belongs to it (or -2147483648 would be a bigint): the binder passes it on in text.
func Number(text string, pos int) (*Node, error) { return number(text, pos) }

// Logic is AND or OR (OpAnd, OpOr) over boolean arguments.
func Logic(op Op, args []*Node, pos int) (*Node, error) {
	word := "AND"
	if op == OpOr {
		word = "OR"
	}
	out := make([]*Node, len(args))
	for i, a := range args {
		c, err := Boolean(a, word)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return &Node{Op: op, Type: tBool, Args: out, Pos: pos}, nil
}

// Not is NOT x.
func Not(x *Node, pos int) (*Node, error) {
	x, err := Boolean(x, "NOT")
	if err != nil {
		return nil, err
	}
	return not(x, pos), nil
}

func not(x *Node, pos int) *Node { return &Node{Op: OpNot, Type: tBool, Args: []*Node{x}, Pos: pos} }

// Boolean makes sure that x is a boolean; construct (AND, WHERE, CASE/WHEN ...) is named otherwise.
func Boolean(x *Node, construct string) (*Node, error) {
	if x.Type.Kind == column.Bool {
		return x, nil
	}
	if c, err := CastTo(x, tBool, Implicit); err == nil {
		return c, nil
	} else if x.Type.Kind == column.Unknown {
		return nil, err
	}
	return nil, pgerr.Newf(pgerr.DatatypeMismatch, "argument of %s must be type boolean, not type %s", construct, TypeName(x.Type)).At(position(x.Pos))
}

// IsNull is x IS NULL.
func IsNull(x *Node, pos int) *Node {
	if x.Type.Kind == column.Unknown {
		x, _ = CastTo(x, tText, Implicit) // cannot fail: any literal is a text
	}
	return &Node{Op: OpIsNull, Type: tBool, Args: []*Node{x}, Pos: pos}
}

// IsNotNull is x IS NOT NULL.
func IsNotNull(x *Node, pos int) *Node { return not(IsNull(x, pos), pos) }

// IsTrue and IsFalse are x IS TRUE and x IS FALSE; the negations are Not of them, and IS UNKNOWN is IsNull of a boolean.
func IsTrue(x *Node, pos int) (*Node, error) {
	x, err := Boolean(x, "IS TRUE")
	if err != nil {
		return nil, err
	}
	return Resolve("istrue", []*Node{x}, pos)
}

// IsFalse is x IS FALSE.
func IsFalse(x *Node, pos int) (*Node, error) {
	x, err := Boolean(x, "IS FALSE")
	if err != nil {
		return nil, err
	}
	return Resolve("isfalse", []*Node{x}, pos)
}

// IsUnknown is x IS UNKNOWN.
func IsUnknown(x *Node, pos int) (*Node, error) {
	x, err := Boolean(x, "IS UNKNOWN")
	if err != nil {
		return nil, err
	}
	return IsNull(x, pos), nil
}

// IsDistinct is a IS DISTINCT FROM b.
func IsDistinct(a, b *Node, pos int) (*Node, error) {
	eq, err := Resolve("=", []*Node{a, b}, pos)
	if err != nil {
		return nil, err
	}
	return Resolve("isdistinct", eq.Args, pos)
}

// Case is a searched CASE. els may be nil.
func Case(whens, thens []*Node, els *Node, pos int) (*Node, error) {
	if els == nil {
		els = Null(tUnknown, pos)
	}
	// PostgreSQL resolves the type with the ELSE first.
	results := append([]*Node{els}, thens...)
	results, t, err := Unify("CASE", results)
	if err != nil {
		return nil, err
	}
	n := &Node{Op: OpCase, Type: t, Pos: pos}
	for i, w := range whens {
		w, err := Boolean(w, "CASE/WHEN")
		if err != nil {
			return nil, err
		}
		n.Args = append(n.Args, w, results[i+1])
	}
	n.Args = append(n.Args, results[0])
	return n, nil
}

// In is x IN (list). Lists of constants become a set, others a chain of ORs.
func In(x *Node, list []*Node, pos int) (*Node, error) {
	constant := true
	for _, e := range list {
		constant = constant && e.Op == OpConst
	}
	if constant && len(list) > 1 {
		if args, _, err := Unify("IN", append([]*Node{x}, list...)); err == nil {
			if _, err := Resolve("=", []*Node{args[0], args[1]}, pos); err != nil {
				return nil, err
			}
			return &Node{Op: OpIn, Type: tBool, Args: args, Pos: pos}, nil
		}
	}
	var terms []*Node
	for _, e := range list {
		t, err := Resolve("=", []*Node{x, e}, pos)
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	if len(terms) == 1 {
		return terms[0], nil
	}
	return Logic(OpOr, terms, pos)
}

// position is what an error carries for a Node's Pos.
func position(pos int) int {
	if pos == 0 {
		return 0
	}
	return pos + 1
}

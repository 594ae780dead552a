package bind

import (
	"github.com/leat-io/leat/internal/expr"
)

// sameExpr tells whether two expressions are equal, positions apart.
func sameExpr(a, b *expr.Node) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.Op != b.Op || a.Type != b.Type || a.Index != b.Index || a.Func != b.Func {
		return false
	}
	if (a.Text == nil) != (b.Text == nil) || a.Text != nil && *a.Text != *b.Text {
		return false
	}
	return sameExprs(a.Args, b.Args)
}

func sameExprs(a, b []*expr.Node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameExpr(a[i], b[i]) {
			return false
		}
	}
	return true
}

// rewrite returns the expression with every node for which replace gives another one replaced, outermost first; what does
// not change is shared.
func rewrite(n *expr.Node, replace func(*expr.Node) *expr.Node) *expr.Node {
	if n == nil {
		return nil
	}
	if r := replace(n); r != nil {
		return r
	}
	var args []*expr.Node
	for i, a := range n.Args {
		r := rewrite(a, replace)
		if r != a && args == nil {
			args = append(args, n.Args...)
		}
		if args != nil {
			args[i] = r
		}
	}
	if args == nil {
		return n
	}
	c := *n
	c.Args = args
	return &c
}

// remap returns the expression over other columns: column i becomes to[i].
func remap(n *expr.Node, to []int) *expr.Node {
	return rewrite(n, func(n *expr.Node) *expr.Node {
		if n.Op != expr.OpColumn || to[n.Index] == n.Index {
			return nil
		}
		c := *n
		c.Index = to[n.Index]
		return &c
	})
}

// shift returns the expression with all columns moved by an offset.
func shift(n *expr.Node, by int) *expr.Node {
	return rewrite(n, func(n *expr.Node) *expr.Node {
		if n.Op != expr.OpColumn || by == 0 {
			return nil
		}
		c := *n
		c.Index += by
		return &c
	})
}

// substitute returns the expression with column i replaced by exprs[i].
func substitute(n *expr.Node, exprs []*expr.Node) *expr.Node {
	return rewrite(n, func(n *expr.Node) *expr.Node {
		if n.Op != expr.OpColumn {
			return nil
		}
		return exprs[n.Index]
	})
}

// walk calls fn for every node.
func walk(n *expr.Node, fn func(*expr.Node)) {
	if n == nil {
		return
	}
	fn(n)
	for _, a := range n.Args {
		walk(a, fn)
	}
}

// eachColumn calls fn for every column that the expression reads.
func eachColumn(n *expr.Node, fn func(int)) {
	walk(n, func(n *expr.Node) {
		if n.Op == expr.OpColumn {
			fn(n.Index)
		}
	})
}

// conjuncts splits an expression at its ANDs.
func conjuncts(n *expr.Node) []*expr.Node {
	if n == nil {
		return nil
	}
	if n.Op != expr.OpAnd {
		return []*expr.Node{n}
	}
	var out []*expr.Node
	for _, a := range n.Args {
		out = append(out, conjuncts(a)...)
	}
	return out
}

// conjunction joins conjuncts again; nil for none.
func conjunction(list []*expr.Node) *expr.Node {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	n := *list[0]
	return &expr.Node{Op: expr.OpAnd, Type: n.Type, Args: list}
}

func isColumn(n *expr.Node) bool { return n.Op == expr.OpColumn }

func isTrue(n *expr.Node) bool {
	return n.Op == expr.OpConst && n.Text != nil && *n.Text == "t" && len(n.Args) == 0
}

package plan

import "github.com/leat-io/leat/internal/expr"

// Substitute returns the plan with each OpParam node replaced by the constant of its index. What has no parameter in it is
// shared with p, which is not changed.
func Substitute(p *Plan, values []*expr.Node) *Plan {
	out := &Plan{Version: p.Version, Nodes: make([]*Node, len(p.Nodes))}
	for i, n := range p.Nodes {
		c := *n
		switch n.Kind {
		case KindValues:
			rows := make([][]*expr.Node, len(n.Values.Rows))
			for j, row := range n.Values.Rows {
				rows[j] = SubstituteExprs(row, values)
			}
			c.Values = &Values{Rows: rows}
		case KindFilter:
			c.Filter = &Filter{Predicate: SubstituteExpr(n.Filter.Predicate, values)}
		case KindProject:
			c.Project = &Project{Exprs: SubstituteExprs(n.Project.Exprs, values)}
		case KindJoin:
			j := *n.Join
			j.Residual = SubstituteExpr(j.Residual, values)
			c.Join = &j
		case KindIntervalJoin:
			j := *n.IntervalJoin
			j.Residual = SubstituteExpr(j.Residual, values)
			c.IntervalJoin = &j
		case KindSort:
			s := *n.Sort
			s.Limit = SubstituteExpr(s.Limit, values)
			s.Offset = SubstituteExpr(s.Offset, values)
			c.Sort = &s
		}
		out.Nodes[i] = &c
	}
	return out
}

// SubstituteExprs is SubstituteExpr for a list.
func SubstituteExprs(list, values []*expr.Node) []*expr.Node {
	out := make([]*expr.Node, len(list))
	for i, e := range list {
		out[i] = SubstituteExpr(e, values)
	}
	return out
}

// SubstituteExpr returns the expression with parameters replaced; one whose index has no value stays. nil stays nil.
func SubstituteExpr(e *expr.Node, values []*expr.Node) *expr.Node {
	if e == nil {
		return nil
	}
	if e.Op == expr.OpParam {
		if e.Index >= 0 && e.Index < len(values) {
			return values[e.Index]
		}
		return e
	}
	for i, a := range e.Args {
		s := SubstituteExpr(a, values)
		if s == a {
			continue
		}
		c := *e
		c.Args = append([]*expr.Node(nil), e.Args...)
		c.Args[i] = s
		for j := i + 1; j < len(c.Args); j++ {
			c.Args[j] = SubstituteExpr(c.Args[j], values)
		}
		return &c
	}
	return e
}

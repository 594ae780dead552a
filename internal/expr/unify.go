package expr

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// UnifyTypes is the common type of expressions that end up in one column or result: CASE, COALESCE, UNION, VALUES, IN. It is
// PostgreSQL's (its chapter 10.5); only untyped literals give text. construct names the place in messages.
func UnifyTypes(construct string, nodes []*Node) (column.Type, error) {
	if len(nodes) == 0 {
		return tText, nil
	}
	t := nodes[0].Type
	same := true
	for _, n := range nodes {
		same = same && n.Type == t
	}
	if same && t.Kind != column.Unknown {
		return t, nil
	}
	t = t.Base()
	for _, n := range nodes[1:] {
		u := n.Type.Base()
		if u.Kind == column.Unknown || u == t {
			continue
		}
		if t.Kind == column.Unknown {
			t = u
			continue
		}
		if sameType(t, u) { // text and varchar: the first
			continue
		}
		if category(t.Kind) != category(u.Kind) {
			return t, pgerr.Newf(pgerr.DatatypeMismatch, "%s types %s and %s cannot be matched", construct, TypeName(t), TypeName(u)).At(position(n.Pos))
		}
		if preferred(t.Kind) {
			continue
		}
		_, there := castRule(t, u, Implicit)
		_, back := castRule(u, t, Implicit)
		if there && !back {
			t = u
		}
	}
	if t.Kind == column.Unknown {
		t = tText
	}
	return t, nil
}

// Unify casts expressions to their common type.
func Unify(construct string, nodes []*Node) ([]*Node, column.Type, error) {
	t, err := UnifyTypes(construct, nodes)
	if err != nil {
		return nil, t, err
	}
	out := make([]*Node, len(nodes))
	for i, n := range nodes {
		if n.Type.Kind != column.Unknown && !sameType(n.Type, t) {
			if _, ok := castRule(n.Type, t, Implicit); !ok {
				return nil, t, pgerr.Newf(pgerr.CannotCoerce, "%s could not convert type %s to %s", construct, TypeName(n.Type), TypeName(t)).At(position(n.Pos))
			}
		}
		if out[i], err = CastTo(n, t, Implicit); err != nil {
			return nil, t, err
		}
	}
	return out, t, nil
}

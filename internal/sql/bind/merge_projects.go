package bind

import (
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// mergeProjects makes one project of two where that computes nothing twice, one row of a project over one row,
// and drops projects that change nothing but names.
func (b *binder) mergeProjects(t *tree) (*tree, error) {
	t, err := b.rebuildWith(t, b.mergeProjects)
	if err != nil || t.Kind != plan.KindProject {
		return t, err
	}
	in := t.in[0]
	switch {
	case in.Kind == plan.KindProject && mergeable(t.Project.Exprs, in.Project.Exprs):
		outs := t.outputs()
		for i := range outs {
			outs[i].expr = substitute(outs[i].expr, in.Project.Exprs)
		}
		merged, err := b.project(in.in[0], outs)
		if err != nil || merged.width() != t.width() {
			return t, err
		}
		return b.mergeProjects(merged)
	case in.Kind == plan.KindValues && len(in.Values.Rows) == 1 && mergeable(t.Project.Exprs, in.Values.Rows[0]):
		row := make([]*expr.Node, len(t.Project.Exprs))
		for i, n := range t.Project.Exprs {
			row[i] = substitute(n, in.Values.Rows[0])
		}
		return b.values(t.Columns, [][]*expr.Node{row})
	case identity(t) && in.width() == t.width() && in.Kind != plan.KindSort:
		same := *in
		same.rename(t)
		return &same, nil
	}
	return t, nil
}

// mergeable: every inner expression that is not a column or a constant is used at most once.
func mergeable(outer, inner []*expr.Node) bool {
	uses := make([]int, len(inner))
	for _, n := range outer {
		eachColumn(n, func(i int) { uses[i]++ })
	}
	for i, n := range inner {
		if uses[i] > 1 && !isColumn(n) && n.Op != expr.OpConst {
			return false
		}
	}
	return true
}

// identity: column i of the project is column i of its input.
func identity(t *tree) bool {
	for i, n := range t.Project.Exprs {
		if !isColumn(n) || n.Index != i {
			return false
		}
	}
	return true
}

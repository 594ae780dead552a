package bind

import (
	"slices"

	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// joinExpr binds JOIN.
func (b *binder) joinExpr(e *ast.Join) (*scope, error) {
	if e.Kind == ast.RightJoin || e.Kind == ast.FullJoin {
		err := b.unsupported(e, e.Kind.String())
		if e.Kind == ast.RightJoin {
			err = err.WithHint("Between two streams with a watermark, swap the sides and write LEFT JOIN.")
		}
		return nil, err
	}
	if e.UsingAlias.Given() {
		return nil, b.unsupported(e.UsingAlias, "an alias of USING")
	}
	l, err := b.tableExpr(e.L)
	if err != nil {
		return nil, err
	}
	r, err := b.tableExpr(e.R)
	if err != nil {
		return nil, err
	}
	s, err := b.beside(l, r, e.R)
	if err != nil {
		return nil, err
	}
	using := e.Using
	if e.Natural {
		using = common(l, r)
	}
	var conds []*expr.Node
	if len(using) > 0 {
		if conds, err = b.using(s, l, r, using); err != nil {
			return nil, err
		}
	}
	if e.On != nil {
		on, err := b.condition(place{scope: s, clause: "JOIN/ON"}, e.On)
		if err != nil {
			return nil, err
		}
		conds = conjuncts(on)
	}
	if e.Kind == ast.LeftJoin {
		s.tree, err = b.leftJoin(l.tree, r.tree, conds, e.R.Pos()+1)
	} else {
		s.tree, err = b.join([]*tree{l.tree, r.tree}, conds, e.R.Pos()+1)
	}
	if err != nil {
		return nil, err
	}
	if !e.Alias.Name.Given() {
		return s, nil
	}
	// (a JOIN b ON ...) AS j hides the names a and b.
	renamed := &scope{tree: s.tree, tables: []string{e.Alias.Name.Name}}
	for _, i := range s.star {
		c := s.columns[i]
		c.table, c.schema, c.merged = e.Alias.Name.Name, "", false
		renamed.star = append(renamed.star, len(renamed.columns))
		renamed.columns = append(renamed.columns, c)
	}
	if len(e.Alias.Columns) > len(renamed.columns) {
		return nil, b.errorf(e.Alias, pgerr.InvalidColumnReference, "table \"%s\" has %d columns available but %d columns specified",
			e.Alias.Name.Name, len(renamed.columns), len(e.Alias.Columns))
	}
	for i, c := range e.Alias.Columns {
		renamed.columns[i].name = c.Name
	}
	return renamed, nil
}

// common are the column names that both sides have, in the left one's order.
func common(l, r *scope) []ast.Ident {
	var out []ast.Ident
	for _, i := range l.star {
		name := l.columns[i].name
		if slices.ContainsFunc(r.star, func(j int) bool { return r.columns[j].name == name }) {
			out = append(out, ast.Ident{Name: name})
		}
	}
	return out
}

// using makes the equalities of USING and NATURAL, merges the two columns of each name into the left one, and puts the
// merged columns first in *.
func (b *binder) using(s, l, r *scope, names []ast.Ident) ([]*expr.Node, error) {
	var conds []*expr.Node
	var first []int
	hidden := map[int]bool{}
	for _, name := range names {
		find := func(side *scope, word string) (int, error) {
			c, err := b.lookupBare(side, name.Name, name)
			if err != nil {
				if pgerr.Code(err) == pgerr.AmbiguousColumn {
					return 0, b.errorf(name, pgerr.AmbiguousColumn, "common column name \"%s\" appears more than once in %s table", name.Name, word)
				}
				return 0, b.errorf(name, pgerr.UndefinedColumn, "column \"%s\" specified in USING clause does not exist in %s table", name.Name, word)
			}
			return slices.IndexFunc(side.columns, func(o scopeColumn) bool {
				return o.index == c.index && o.table == c.table && o.name == c.name && !o.merged
			}), nil
		}
		i, err := find(l, "left")
		if err != nil {
			return nil, err
		}
		j, err := find(r, "right")
		if err != nil {
			return nil, err
		}
		j += len(l.columns)
		eq, err := expr.Resolve("=", []*expr.Node{s.columns[i].ref(b.pos(name)), s.columns[j].ref(b.pos(name))}, b.pos(name))
		if err != nil {
			return nil, err
		}
		conds = append(conds, eq)
		s.columns[j].merged = true
		first = append(first, i)
		hidden[i], hidden[j] = true, true
	}
	for _, i := range s.star {
		if !hidden[i] {
			first = append(first, i)
		}
	}
	s.star = first
	return conds, nil
}

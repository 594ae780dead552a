package bind

import (
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// scopeColumn is a column that an expression may name.
type scopeColumn struct {
	table  string // the name or alias of its table; empty for none
	schema string // set if the table has no alias, for schema.table.column
	name   string
	index  int // in the tree's columns
	typ    column.Type
	// merged: the right side of USING; only its qualified name finds it.
	merged bool
}

// scope is what the names of one query level mean, over one tree.
type scope struct {
	tree    *tree
	tables  []string // aliases in the order of FROM
	columns []scopeColumn
	// span is the width of what will be the tree while it is nil.
	span int
	// star is the order of the columns in *, as indexes in columns.
	star []int
}

// scopeOf makes the scope of one item of FROM: the tree's visible columns under an alias.
func scopeOf(t *tree, schema, table string, aliased bool) *scope {
	s := &scope{tree: t, tables: []string{table}}
	if aliased {
		schema = ""
	}
	for i, c := range t.Columns {
		if c.Hidden {
			continue
		}
		s.star = append(s.star, len(s.columns))
		s.columns = append(s.columns, scopeColumn{table: table, schema: schema, name: c.Name, index: i, typ: c.Type})
	}
	return s
}

func (s *scope) hasTable(name string) bool {
	for _, t := range s.tables {
		if t == name {
			return true
		}
	}
	return false
}

// lookup resolves a column reference.
func (b *binder) lookup(s *scope, ref *ast.ColumnRef) (*scopeColumn, error) {
	name := ref.Parts[len(ref.Parts)-1].Name
	if len(ref.Parts) == 1 {
		return b.lookupBare(s, name, ref)
	}
	table := ref.Parts[len(ref.Parts)-2].Name
	schema := ""
	if len(ref.Parts) > 2 {
		schema = ref.Parts[len(ref.Parts)-3].Name
	}
	if len(ref.Parts) > 3 {
		return nil, b.errorf(ref, pgerr.FeatureNotSupported, "cross-database references are not implemented: %s", joined(ref.Parts))
	}
	var found *scopeColumn
	known := false
	if s != nil {
		for i := range s.columns {
			c := &s.columns[i]
			if c.table != table || schema != "" && c.schema != schema {
				continue
			}
			known = true
			if c.name != name {
				continue
			}
			if found != nil {
				return nil, b.errorf(ref, pgerr.AmbiguousColumn, "column reference \"%s\" is ambiguous", name)
			}
			found = c
		}
		known = known || schema == "" && s.hasTable(table)
	}
	if found == nil && !known {
		return nil, b.errorf(ref, pgerr.UndefinedTable, "missing FROM-clause entry for table \"%s\"", table)
	}
	if found == nil {
		return nil, b.errorf(ref, pgerr.UndefinedColumn, "column %s.%s does not exist", table, name)
	}
	return found, nil
}

func (b *binder) lookupBare(s *scope, name string, ref ast.Node) (*scopeColumn, error) {
	var found *scopeColumn
	if s != nil {
		for i := range s.columns {
			c := &s.columns[i]
			if c.merged || c.name != name {
				continue
			}
			if found != nil {
				return nil, b.errorf(ref, pgerr.AmbiguousColumn, "column reference \"%s\" is ambiguous", name)
			}
			found = c
		}
	}
	if found != nil {
		return found, nil
	}
	if s != nil && s.hasTable(name) {
		return nil, b.unsupported(ref, "a whole row as a value (\""+name+"\" is a table here)")
	}
	err := b.errorf(ref, pgerr.UndefinedColumn, "column \"%s\" does not exist", name)
	if s != nil {
		if near := nearest(s, name); near != "" {
			return nil, err.WithHint("Perhaps you meant to reference the column \"%s\".", near)
		}
	}
	return nil, err
}

// nearest is a column whose name differs from the one that was written only a little; empty if there is none.
func nearest(s *scope, name string) string {
	best, bestDistance := "", 3
	for _, c := range s.columns {
		d := distance(c.name, name, bestDistance)
		if d < bestDistance && 2*d < len(name) {
			best, bestDistance = c.name, d
			if c.table != "" {
				best = c.table + "." + c.name
			}
		}
	}
	return best
}

// distance is the edit distance of two names, or limit if it is at least that or a name is long.
func distance(a, b string, limit int) int {
	const long = 64
	if len(a) > long || len(b) > long {
		return limit
	}
	var rows [2][long + 1]int
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		prev, row := &rows[(i+1)%2], &rows[i%2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
		}
	}
	return min(limit, rows[len(a)%2][len(b)])
}

func joined(parts []ast.Ident) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.Name
	}
	return strings.Join(names, ".")
}

// expand lists the columns that a star stands for.
func (b *binder) expand(s *scope, star *ast.Star) ([]*scopeColumn, error) {
	if s == nil {
		return nil, b.errorf(star, pgerr.SyntaxError, "SELECT * with no tables specified is not valid")
	}
	var out []*scopeColumn
	if len(star.Qualifier) == 0 {
		for _, i := range s.star {
			out = append(out, &s.columns[i])
		}
		return out, nil
	}
	table := star.Qualifier[len(star.Qualifier)-1].Name
	if !s.hasTable(table) {
		return nil, b.errorf(star, pgerr.UndefinedTable, "missing FROM-clause entry for table \"%s\"", table)
	}
	for i := range s.columns {
		if s.columns[i].table == table {
			out = append(out, &s.columns[i])
		}
	}
	return out, nil
}

func (c *scopeColumn) ref(pos int) *expr.Node { return expr.Column(c.index, c.typ, pos) }

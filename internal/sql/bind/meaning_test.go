package bind

import (
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/parse"
	"github.com/leat-io/leat/internal/sql/plan"
)

var (
	seedFlag    = flag.Int64("seed", 0, "seed of the random tests; 0: a new one")
	queriesFlag = flag.Int("queries", 200, "how many random queries to compare")
)

// TestRewritesKeepTheMeaning runs random queries in two ways over random rows, with a slow evaluator: the tree as it was bound,
// and the physical plan after all rewrites. The rows must be the same.
func TestRewritesKeepTheMeaning(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	t.Logf("seed %d", seed)
	g := &generator{Rand: rand.New(rand.NewSource(seed))}
	s := &session{catalog: catalog.Empty()}
	const schema = `CREATE TABLE p (a int PRIMARY KEY, b int, c bigint);
		CREATE TABLE q (a int, d int, e bigint, PRIMARY KEY (a, d));
		CREATE TABLE r (b bigint, f int);`
	if _, err := s.run(schema); err != nil {
		t.Fatal(message(schema, err))
	}
	data := map[uint64]*column.Batch{}
	for _, r := range s.catalog.Relations() {
		data[r.ID] = g.rows(r)
	}
	refused, compared := 0, 0
	for range *queriesFlag {
		text := g.query(3)
		same, err := s.compare(t, text, data)
		switch {
		case err != nil && pgerr.Code(err) == pgerr.FeatureNotSupported:
			refused++
		case err != nil:
			t.Fatalf("seed %d: %s", seed, message(text, err))
		case !same:
			t.Fatalf("seed %d: the meaning of this query changes:\n%s", seed, text)
		default:
			compared++
			s.checkKey(t, seed, text, data)
		}
	}
	t.Logf("%d compared, %d refused", compared, refused)
	if compared < *queriesFlag/4 {
		t.Errorf("only %d of %d queries were compared", compared, *queriesFlag)
	}
}

func (s *session) compare(t *testing.T, text string, data map[uint64]*column.Batch) (bool, error) {
	statements, err := parse.Parse(text)
	if err != nil {
		return false, err
	}
	q := statements[0].Node.(*ast.Query)
	b := newBinder(s.env(text))
	tree, err := b.query(q, true)
	if err != nil {
		return false, err
	}
	sel, err := newBinder(s.env(text)).adHoc(q)
	if err != nil {
		return false, err
	}
	e := evaluator{data: data}
	before := e.texts(e.eval(tree), tree)
	root := asTree(sel.Plan)
	after := e.texts(e.eval(root), root)
	if e.err != nil {
		return false, e.err
	}
	slices.Sort(before)
	slices.Sort(after)
	if !slices.Equal(before, after) {
		t.Logf("as bound: %d rows, as planned: %d rows\n%s", len(before), len(after), strings.Join(plan.Explain(sel.Plan, s.name), "\n"))
		return false, nil
	}
	return true, nil
}

// checkKey plans the query as a view and checks that its stream key names its rows: no two have the same one.
func (s *session) checkKey(t *testing.T, seed int64, query string, data map[uint64]*column.Batch) {
	text := "CREATE MATERIALIZED VIEW zz AS " + query
	bindAll(t, s, text)
	statements, err := parse.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	b, err := dispatch(s.env(text), statements[0].Node)
	if err != nil {
		t.Fatalf("seed %d: %s", seed, message(text, err))
	}
	root := asTree(b.(*Create).Relation.Plan)
	e := evaluator{data: data}
	rows := e.eval(root)
	if e.err != nil {
		t.Fatal(e.err)
	}
	seen := map[string]bool{}
	for i := range rows.Len {
		k := string(rowenc.AppendKey(nil, rows, root.Key, i))
		if seen[k] {
			t.Fatalf("seed %d: two rows have one key:\n%s\n%s", seed, text, strings.Join(plan.Explain(b.(*Create).Relation.Plan, s.name), "\n"))
		}
		seen[k] = true
	}
}

// asTree makes a tree of a physical plan, for the evaluator.
func asTree(p *plan.Plan) *tree {
	made := make([]*tree, len(p.Nodes))
	for i, n := range p.Nodes {
		t := &tree{Node: *n}
		for _, in := range n.Inputs {
			t.in = append(t.in, made[in])
		}
		made[i] = t
	}
	return made[len(made)-1]
}

// evaluator runs trees, logical and physical ones, the slow and obvious way.
type evaluator struct {
	data map[uint64]*column.Batch
	err  error
}

func (e *evaluator) fail(err error) {
	if e.err == nil && err != nil {
		e.err = err
	}
}

func (e *evaluator) texts(b *column.Batch, t *tree) []string {
	var cols []int
	for i, c := range t.Columns {
		if !c.Hidden {
			cols = append(cols, i)
		}
	}
	var out []string
	for i := range b.Len {
		out = append(out, string(rowenc.AppendKey(nil, b, cols, i)))
	}
	return out
}

func (e *evaluator) eval(t *tree) *column.Batch {
	var in []*column.Batch
	for _, i := range t.in {
		in = append(in, e.eval(i))
	}
	switch {
	case t.Scan != nil:
		all := e.data[t.Scan.Relation]
		out := &column.Batch{Len: all.Len}
		for _, c := range t.Scan.Columns {
			out.Cols = append(out.Cols, all.Cols[c])
		}
		return out
	case t.Values != nil:
		out := column.NewBatch(t.types(), len(t.Values.Rows))
		for _, row := range t.Values.Rows {
			one := e.project(&column.Batch{Len: 1}, nil, row)
			out.AppendRow(one, 0)
		}
		return out
	case t.Filter != nil:
		return e.filter(in[0], t.in[0].types(), []*expr.Node{t.Filter.Predicate})
	case t.Project != nil:
		return e.project(in[0], t.in[0].types(), t.Project.Exprs)
	case t.Union != nil:
		out := column.NewBatch(t.types(), 0)
		for i, b := range in {
			number := column.NewVector(column.TInt32, b.Len)
			for range b.Len {
				number.AppendInt32(int32(i))
			}
			out.Append(&column.Batch{Len: b.Len, Cols: append(slices.Clone(b.Cols), number)})
		}
		return out
	case t.Aggregate != nil:
		return e.aggregate(t, in[0])
	case t.Kind == plan.KindJoin:
		return e.join(t, in)
	case t.Sort != nil, t.Exchange != nil, t.Materialize != nil:
		return in[0] // order and cut are not looked at
	}
	e.fail(fmt.Errorf("cannot evaluate %s", t.Kind))
	return column.NewBatch(t.types(), 0)
}

func (e *evaluator) project(in *column.Batch, types []column.Type, exprs []*expr.Node) *column.Batch {
	out := &column.Batch{Len: in.Len}
	for _, x := range exprs {
		p, err := expr.Compile(x, types)
		if err != nil {
			e.fail(fmt.Errorf("compile %s: %w", plan.Text(x, nil), err))
			return column.NewBatch(nil, 0)
		}
		v, err := p.Eval(&expr.Context{Now: 1}, in)
		if err != nil {
			e.fail(err)
			return column.NewBatch(nil, 0)
		}
		out.Cols = append(out.Cols, v.Clone())
	}
	return out
}

func (e *evaluator) filter(in *column.Batch, types []column.Type, conds []*expr.Node) *column.Batch {
	for _, c := range conds {
		p, err := expr.Compile(c, types)
		if err != nil {
			e.fail(err)
			return in
		}
		rows, err := p.Select(&expr.Context{Now: 1}, in, nil)
		if err != nil {
			e.fail(err)
			return in
		}
		out := column.NewBatch(types, len(rows))
		for _, r := range rows {
			out.AppendRow(in, int(r))
		}
		in = out
	}
	return in
}

// join is the cross product, filtered.
func (e *evaluator) join(t *tree, in []*column.Batch) *column.Batch {
	acc, types := in[0], t.in[0].types()
	for i, next := range in[1:] {
		types = append(slices.Clone(types), t.in[i+1].types()...)
		if acc.Len*next.Len > 1<<16 {
			e.fail(pgerr.Unsupported("too many rows for the test"))
			return column.NewBatch(t.types(), 0)
		}
		var l, r []int32
		for x := range acc.Len {
			for y := range next.Len {
				if t.Join != nil && !equalKeys(acc, t.Join.Left, x, next, t.Join.Right, y) {
					continue
				}
				l, r = append(l, int32(x)), append(r, int32(y))
			}
		}
		both := column.NewBatch(types, 0)
		for k := range l {
			for c, v := range acc.Cols {
				both.Cols[c].AppendFrom(v, int(l[k]))
			}
			for c, v := range next.Cols {
				both.Cols[len(acc.Cols)+c].AppendFrom(v, int(r[k]))
			}
		}
		both.Len = len(l)
		acc = both
	}
	conds := t.conds
	if t.Join != nil && t.Join.Residual != nil {
		conds = []*expr.Node{t.Join.Residual}
	}
	return e.filter(acc, types, conds)
}

func equalKeys(l *column.Batch, lk []int, x int, r *column.Batch, rk []int, y int) bool {
	for i := range lk {
		a, b := l.Cols[lk[i]], r.Cols[rk[i]]
		if a.IsNull(x) || b.IsNull(y) || !a.Equal(x, b, y) {
			return false
		}
	}
	return true
}

// aggregate knows count, sum of ints, min and max.
func (e *evaluator) aggregate(t *tree, in *column.Batch) *column.Batch {
	a := t.Aggregate
	groups := map[string][]int32{}
	var order []string
	for i := range in.Len {
		k := string(rowenc.AppendKey(nil, in, a.Groups, i))
		if _, ok := groups[k]; !ok {
			order = append(order, k)
		}
		groups[k] = append(groups[k], int32(i))
	}
	if len(a.Groups) == 0 && len(order) == 0 {
		order = append(order, "")
	}
	out := column.NewBatch(t.types(), len(order))
	for _, k := range order {
		rows := groups[k]
		for i, g := range a.Groups {
			out.Cols[i].AppendFrom(in.Cols[g], int(rows[0]))
		}
		for i, c := range a.Calls {
			e.call(out.Cols[len(a.Groups)+i], c, in, rows)
		}
		out.Len++
	}
	return out
}

func (e *evaluator) call(out *column.Vector, c plan.Call, in *column.Batch, rows []int32) {
	var count, sum int64
	best := -1
	for _, r := range rows {
		if c.Filter >= 0 && (in.Cols[c.Filter].IsNull(int(r)) || !in.Cols[c.Filter].Bools[r]) {
			continue
		}
		if len(c.Args) == 0 {
			count++
			continue
		}
		v := in.Cols[c.Args[0]]
		if v.IsNull(int(r)) {
			continue
		}
		count++
		if v.Type.Kind == column.Int32 {
			sum += int64(v.I32[r])
		}
		if best < 0 || c.Func == "min" && v.Compare(int(r), v, best) < 0 || c.Func == "max" && v.Compare(int(r), v, best) > 0 {
			best = int(r)
		}
	}
	switch {
	case c.Func == "count":
		out.AppendInt64(count)
	case count == 0:
		out.AppendNull()
	case c.Func == "sum" && c.Types[0].Kind == column.Int32:
		out.AppendInt64(sum)
	case c.Func == "min" || c.Func == "max":
		out.AppendFrom(in.Cols[c.Args[0]], best)
	default:
		e.fail(fmt.Errorf("cannot evaluate %s", c.Func))
		out.AppendNull()
	}
}

// generator makes random rows and queries.
type generator struct {
	*rand.Rand
	n int
}

// rows fills a table with few distinct values, some of them NULL, under different keys.
func (g *generator) rows(r *catalog.Relation) *column.Batch {
	var types []column.Type
	for _, c := range r.Columns {
		types = append(types, c.Type)
	}
	out := column.NewBatch(types, 0)
	n := 6 + g.Intn(8)
	keys := g.Perm(16)[:n]
	for row := range n {
		for i := range out.Cols {
			v := int64(g.Intn(5))
			switch at := slices.Index(r.PrimaryKey, i); {
			case len(r.PrimaryKey) == 1 && at == 0:
				v = int64(keys[row])
			case at >= 0: // of two columns, each of them often equal
				v = int64(keys[row]) >> (2 * at) & 3
			}
			switch {
			case !r.Columns[i].NotNull && g.Intn(6) == 0:
				out.Cols[i].AppendNull()
			case types[i].Kind == column.Int32:
				out.Cols[i].AppendInt32(int32(v))
			default:
				out.Cols[i].AppendInt64(v)
			}
		}
		out.Len++
	}
	return out
}

func pickOne[T any](g *generator, list ...T) T { return list[g.Intn(len(list))] }

// source is an item of FROM with the names of its columns. All columns are numbers.
type source struct {
	text    string
	columns []string
}

func (g *generator) name() string {
	g.n++
	return fmt.Sprintf("n%d", g.n)
}

func (g *generator) source(depth int) source {
	alias := g.name()
	if depth > 0 && g.Intn(2) == 0 {
		q, cols := g.selects(depth - 1)
		return source{text: "(" + q + ") AS " + alias, columns: qualify(alias, cols)}
	}
	switch g.Intn(3) {
	case 0:
		return source{"p AS " + alias, qualify(alias, []string{"a", "b", "c"})}
	case 1:
		return source{"q AS " + alias, qualify(alias, []string{"a", "d", "e"})}
	}
	return source{"r AS " + alias, qualify(alias, []string{"b", "f"})}
}

func qualify(alias string, cols []string) []string {
	var out []string
	for _, c := range cols {
		out = append(out, alias+"."+c)
	}
	return out
}

// from is one to three sources joined in one way or another, with the conditions that belong into WHERE.
func (g *generator) from(depth int) (text string, columns, conds []string) {
	s := g.source(depth)
	text, columns = s.text, s.columns
	comma := false
	for range g.Intn(3) {
		o := g.source(depth)
		eq := pickOne(g, columns...) + " = " + pickOne(g, o.columns...)
		if g.Intn(4) == 0 {
			eq = pickOne(g, columns...) + " + 1 = " + pickOne(g, o.columns...)
		}
		if !comma && g.Intn(2) == 0 {
			on := eq
			if g.Intn(3) == 0 {
				on += " AND " + g.condition(append(slices.Clone(columns), o.columns...))
			}
			text += " JOIN " + o.text + " ON " + on
		} else {
			comma = true
			text += ", " + o.text
			conds = append(conds, eq)
		}
		columns = append(columns, o.columns...)
	}
	return text, columns, conds
}

func (g *generator) number(columns []string) string {
	c := pickOne(g, columns...)
	switch g.Intn(8) {
	case 0:
		return c + " + " + fmt.Sprint(g.Intn(3))
	case 1:
		return "CASE WHEN " + g.condition(columns) + " THEN " + c + " ELSE " + pickOne(g, columns...) + " END"
	case 2:
		return "coalesce(" + c + ", " + pickOne(g, columns...) + ")"
	case 3:
		return fmt.Sprint(g.Intn(5))
	}
	return c
}

func (g *generator) condition(columns []string) string {
	c := pickOne(g, columns...)
	switch g.Intn(7) {
	case 0:
		return c + " IS NOT NULL"
	case 1:
		return c + " IN (1, 2, 3)"
	case 2:
		return c + " < " + pickOne(g, columns...)
	case 3:
		return "(" + c + " = 1 OR " + pickOne(g, columns...) + " > 2)"
	case 4:
		return "NOT " + c + " = " + fmt.Sprint(g.Intn(5))
	case 5:
		return c + " BETWEEN 1 AND " + fmt.Sprint(g.Intn(5))
	}
	return c + " > " + fmt.Sprint(g.Intn(4))
}

// selects is a SELECT, or a UNION of two, with the names of its columns.
func (g *generator) selects(depth int) (string, []string) {
	if depth > 0 && g.Intn(6) == 0 {
		n := 1 + g.Intn(2)
		l, cols := g.core(depth-1, n)
		r, _ := g.core(depth-1, n)
		return l + pickOne(g, " UNION ALL ", " UNION ALL ", " UNION ") + r, cols
	}
	return g.core(depth, 1+g.Intn(3))
}

func (g *generator) core(depth, n int) (string, []string) {
	from, columns, conds := g.from(depth)
	for range g.Intn(3) {
		conds = append(conds, g.condition(columns))
	}
	var items, names, groups []string
	having := ""
	switch g.Intn(3) {
	case 0:
		key := g.number(columns)
		for len(key) == 1 { // a number would be a position
			key = g.number(columns)
		}
		for i := range n {
			name := fmt.Sprintf("x%d", i)
			names = append(names, name)
			if i == 0 && g.Intn(4) > 0 {
				items = append(items, key+" AS "+name)
				groups = append(groups, key)
				continue
			}
			call := pickOne(g, "count(*)", "count("+pickOne(g, columns...)+")", "min("+g.number(columns)+")", "max("+pickOne(g, columns...)+")")
			if g.Intn(4) == 0 {
				call += " FILTER (WHERE " + g.condition(columns) + ")"
			}
			items = append(items, call+" AS "+name)
		}
		if g.Intn(3) == 0 {
			having = " HAVING count(*) > 1"
		}
	default:
		for i := range n {
			name := fmt.Sprintf("x%d", i)
			names = append(names, name)
			items = append(items, g.number(columns)+" AS "+name)
		}
	}
	q := "SELECT "
	if g.Intn(6) == 0 {
		q += "DISTINCT "
	}
	q += strings.Join(items, ", ") + " FROM " + from
	if len(conds) > 0 {
		q += " WHERE " + strings.Join(conds, " AND ")
	}
	if len(groups) > 0 {
		q += " GROUP BY " + strings.Join(groups, ", ")
	}
	return q + having, names
}

func (g *generator) query(depth int) string {
	q, cols := g.selects(depth)
	if g.Intn(4) == 0 {
		q += " ORDER BY " + pickOne(g, cols...)
	}
	return q
}

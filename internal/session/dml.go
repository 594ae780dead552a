package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/bind"
	"github.com/leat-io/leat/internal/sql/plan"
)

// writing runs fn with the transaction that a statement belongs to: the session's, or one of its own that is committed at its end.
func (s *Session) writing(ctx context.Context, fn func(t *tx) error) error {
	s.implicit()
	t := s.tx
	if t == nil {
		t = s.newTx()
		defer s.finish(t)
	}
	err := fn(t)
	for _, tab := range t.ordered {
		tab.release()
	}
	if err != nil || s.tx != nil {
		return err
	}
	return s.commit(ctx, t)
}

func (s *Session) newTx() *tx {
	return &tx{
		memory: s.e.o.Queries.Account(), began: s.statementTime(), tables: map[uint64]*txTable{},
		readOnly: s.settings.values["default_transaction_read_only"] == "on",
	}
}

// insert runs INSERT.
func (s *Session) insert(ctx context.Context, b *bind.Insert, args []*expr.Node) (string, error) {
	r := b.Target
	n := 0
	ret, err := s.returning(b.Returning, b.Columns, args)
	if err != nil {
		return "", err
	}
	err = s.writing(ctx, func(t *tx) error {
		conflict, err := s.newConflict(b, args)
		if err != nil {
			return err
		}
		tab, err := s.open(ctx, t, r, conflict.reads)
		if err != nil {
			return err
		}
		check, err := s.newRowCheck(r)
		if err != nil {
			return err
		}
		rows := column.NewBatch(tab.types, column.MaxRows)
		flush := func() error {
			if rows.Len == 0 {
				return nil
			}
			if err := check.complete(rows); err != nil {
				return err
			}
			for i := range rows.Len {
				stored, err := conflict.apply(t, tab, check, rows, i)
				if err != nil {
					return err
				}
				if stored == nil {
					continue
				}
				n++
				if err := ret.add(stored.batch, stored.row); err != nil {
					return err
				}
			}
			rows.Reset(tab.types)
			return nil
		}
		add := func(src []*column.Vector, i int) error {
			for c, v := range rows.Cols {
				v.AppendFrom(src[c], i)
			}
			if r.HasRowID() {
				last := rows.Cols[len(rows.Cols)-1]
				last.Truncate(last.Len - 1)
				last.AppendInt64(s.e.rowIDs.Add(1))
			}
			rows.EndRow(1)
			if rows.Full() {
				return flush()
			}
			return nil
		}
		if b.Source != nil {
			err = s.selected(ctx, plan.Substitute(b.Source, args), t, r, add)
		} else {
			one := column.NewBatch(tab.types, 1)
			for _, row := range b.Rows {
				one.Reset(tab.types)
				for c, node := range row {
					if err := s.appendConstant(one.Cols[c], plan.SubstituteExpr(node, args)); err != nil {
						return err
					}
				}
				if err = add(one.Cols, 0); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
		return flush()
	})
	if err != nil {
		return "", err
	}
	if err := ret.send(s); err != nil {
		return "", err
	}
	return fmt.Sprintf("INSERT 0 %d", n), nil
}

// selected calls add for each row of a query that INSERT takes its rows from. Rows of the table that is written to are all read before the first is added:
// the query must not meet what the statement has stored.
func (s *Session) selected(ctx context.Context, p *plan.Plan, t *tx, target *catalog.Relation, add func(src []*column.Vector, i int) error) error {
	var held rowenc.Keys
	var types []column.Type
	var columns []int
	hold := slices.ContainsFunc(p.Nodes, func(n *plan.Node) bool { return n.Scan != nil && n.Scan.Relation == target.ID })
	held.Reset()
	err := s.runPlan(ctx, p, t, func(in *column.Batch, visible []int) error {
		view := column.Batch{Len: in.Len, Weights: in.Weights}
		for _, c := range visible {
			view.Cols = append(view.Cols, in.Cols[c])
		}
		types, columns = view.Types(nil), allColumns(len(visible))
		for i := range in.Len {
			for range in.Weight(i) {
				if !hold {
					if err := add(view.Cols, i); err != nil {
						return err
					}
					continue
				}
				before := len(held.Data)
				held.Data = rowenc.AppendRow(held.Data, &view, columns, i)
				held.EndKey()
				if err := s.memory.Take(2*int64(len(held.Data)-before) + 16); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil || held.Len() == 0 {
		return err
	}
	one := column.NewBatch(types, 1)
	for i := range held.Len() {
		one.Reset(types)
		if err := rowenc.DecodeRow(held.Key(i), types, one.Cols); err != nil {
			return err
		}
		if err := add(one.Cols, 0); err != nil {
			return err
		}
	}
	return nil
}

// appendConstant appends the value of an expression without columns.
func (s *Session) appendConstant(v *column.Vector, node *expr.Node) error {
	if node.Op == expr.OpConst {
		if node.Text == nil {
			v.AppendNull()
			return nil
		}
		if node.Type.SameValues(v.Type) {
			return pgtype.ParseText(v, []byte(*node.Text), s.text())
		}
	}
	p, err := expr.Compile(node, nil)
	if err != nil {
		return err
	}
	got, err := p.Eval(s.context(), &column.Batch{Len: 1})
	if err != nil {
		return err
	}
	v.AppendFrom(got, 0)
	return nil
}

// rowCheck completes and checks rows before they are stored.
type rowCheck struct {
	s         *Session
	r         *catalog.Relation
	generated map[int]*expr.Program
	checks    []*expr.Program
}

func (s *Session) newRowCheck(r *catalog.Relation) (*rowCheck, error) {
	c := &rowCheck{s: s, r: r, generated: map[int]*expr.Program{}}
	types := relationTypes(r)
	for i := range r.Columns {
		if g := r.Columns[i].Generated; g != nil {
			p, err := expr.Compile(g, types)
			if err != nil {
				return nil, err
			}
			c.generated[i] = p
		}
	}
	for i := range r.Checks {
		p, err := expr.Compile(r.Checks[i].Expr, types)
		if err != nil {
			return nil, err
		}
		c.checks = append(c.checks, p)
	}
	return c, nil
}

func relationTypes(r *catalog.Relation) []column.Type {
	types := make([]column.Type, len(r.Columns))
	for i := range r.Columns {
		types[i] = r.Columns[i].Type
	}
	return types
}

// complete computes the generated columns of rows and checks NOT NULL and CHECK.
func (c *rowCheck) complete(rows *column.Batch) error {
	for i := range c.r.Columns {
		if p := c.generated[i]; p != nil {
			v, err := p.Eval(c.s.context(), rows)
			if err != nil {
				return err
			}
			rows.Cols[i].CopyFrom(v)
		}
	}
	for i := range c.r.Columns {
		col := &c.r.Columns[i]
		if !col.NotNull || !rows.Cols[i].HasNulls() {
			continue
		}
		for row := range rows.Len {
			if rows.Cols[i].IsNull(row) {
				return pgerr.Newf("23502", "null value in column \"%s\" of relation \"%s\" violates not-null constraint", col.Name, c.r.Name).
					WithDetail("Failing row contains %s.", c.show(rows, row))
			}
		}
	}
	for k, p := range c.checks {
		v, err := p.Eval(c.s.context(), rows)
		if err != nil {
			return err
		}
		for row := range rows.Len {
			if !v.IsNull(row) && !v.Bools[row] {
				return pgerr.Newf("23514", "new row for relation \"%s\" violates check constraint \"%s\"", c.r.Name, c.r.Checks[k].Name).
					WithDetail("Failing row contains %s.", c.show(rows, row))
			}
		}
	}
	return nil
}

// show writes a row as PostgreSQL's messages do.
func (c *rowCheck) show(rows *column.Batch, row int) string {
	var b strings.Builder
	b.WriteByte('(')
	first := true
	for i := range c.r.Columns {
		if c.r.Columns[i].Hidden {
			continue
		}
		if !first {
			b.WriteString(", ")
		}
		first = false
		if rows.Cols[i].IsNull(row) {
			b.WriteString("null")
			continue
		}
		text := pgtype.AppendText(nil, rows.Cols[i], row, c.s.settings.zone)
		if len(text) > 64 {
			end := 64
			for !utf8.RuneStart(text[end]) {
				end--
			}
			text = append(text[:end:end], "..."...)
		}
		b.Write(text)
	}
	b.WriteByte(')')
	return b.String()
}

// conflictAction is what an INSERT does when the key is there.
type conflictAction struct {
	s       *Session
	r       *catalog.Relation
	reads   bool // it must know what is there
	nothing bool
	upsert  bool // the new row takes the place of the old one
	set     []*expr.Program
	columns []int
	where   *expr.Program
	both    *column.Batch   // the stored row, then the new one
	touched map[string]bool // keys that this statement has written: DO UPDATE may not meet one twice
}

func (s *Session) newConflict(b *bind.Insert, args []*expr.Node) (*conflictAction, error) {
	r := b.Target
	c := &conflictAction{s: s, r: r, reads: !r.HasRowID(), touched: map[string]bool{}}
	switch {
	case r.HasRowID():
	case b.Conflict != nil && b.Conflict.Nothing:
		c.nothing = true
	case b.Conflict != nil:
		types := append(relationTypes(r), relationTypes(r)...)
		for _, a := range b.Conflict.Set {
			p, err := expr.Compile(plan.SubstituteExpr(a.Value, args), types)
			if err != nil {
				return nil, err
			}
			c.set, c.columns = append(c.set, p), append(c.columns, a.Column)
		}
		if b.Conflict.Where != nil {
			p, err := expr.Compile(plan.SubstituteExpr(b.Conflict.Where, args), types)
			if err != nil {
				return nil, err
			}
			c.where = p
		}
		c.both = column.NewBatch(types, 1)
	case r.OnConflict == catalog.ConflictIgnore:
		c.nothing = true
	case r.OnConflict == catalog.ConflictOverwrite:
		c.upsert, c.reads = true, false
	}
	return c, nil
}

// storedRow is a row that a statement has stored.
type storedRow struct {
	batch *column.Batch
	row   int
}

// apply stores row i, or does what the conflict asks for; it returns nil if nothing was stored.
func (c *conflictAction) apply(t *tx, tab *txTable, check *rowCheck, rows *column.Batch, i int) (*storedRow, error) {
	if !c.reads {
		return &storedRow{rows, i}, tab.put(t, rows, i)
	}
	key := string(rowenc.AppendKey(nil, rows, c.r.PrimaryKey, i))
	old, err := tab.lookup([]byte(key))
	if err != nil {
		return nil, err
	}
	switch {
	case old == nil:
		c.touched[key] = true
		return &storedRow{rows, i}, tab.put(t, rows, i)
	case c.nothing:
		return nil, nil
	case c.both == nil:
		return nil, c.duplicate(check, rows, i)
	case c.touched[key]:
		return nil, pgerr.New("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time").
			WithHint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
	}
	n := len(c.r.Columns)
	stored, err := tab.decode(old)
	if err != nil {
		return nil, err
	}
	c.both.ResetLike(c.both)
	for k := range n {
		c.both.Cols[k].AppendFrom(stored.Cols[k], 0)
		c.both.Cols[n+k].AppendFrom(rows.Cols[k], i)
	}
	c.both.Len = 1
	if c.where != nil {
		hit, err := c.where.Select(c.s.context(), c.both, nil)
		if err != nil || len(hit) == 0 {
			return nil, err
		}
	}
	next := column.NewBatch(relationTypes(c.r), 1)
	for k := range n {
		next.Cols[k].AppendFrom(stored.Cols[k], 0)
	}
	next.Len = 1
	if err := assign(c.s.context(), c.set, c.columns, c.both, next); err != nil {
		return nil, err
	}
	if err := check.complete(next); err != nil {
		return nil, err
	}
	c.touched[key] = true
	if err := c.s.memory.Take(int64(len(key)) + 64); err != nil {
		return nil, err
	}
	if err := c.s.replace(t, tab, check, []byte(key), stored, next); err != nil {
		return nil, err
	}
	return &storedRow{next, 0}, nil
}

func (c *conflictAction) duplicate(check *rowCheck, rows *column.Batch, i int) error {
	return duplicateKey(check, rows, i)
}

func duplicateKey(check *rowCheck, rows *column.Batch, i int) error {
	r := check.r
	var names, values []string
	for _, k := range r.PrimaryKey {
		names = append(names, r.Columns[k].Name)
		values = append(values, string(pgtype.AppendText(nil, rows.Cols[k], i, check.s.settings.zone)))
	}
	return pgerr.Newf("23505", "duplicate key value violates unique constraint \"%s_pkey\"", r.Name).
		WithDetail("Key (%s)=(%s) already exists.", strings.Join(names, ", "), strings.Join(values, ", "))
}

// assign computes the values of a SET list over in and puts them into the only row of next.
func assign(ctx *expr.Context, set []*expr.Program, columns []int, in, next *column.Batch) error {
	values := make([]*column.Vector, len(set))
	for k, p := range set {
		v, err := p.Eval(ctx, in)
		if err != nil {
			return err
		}
		values[k] = v
	}
	for k, c := range columns {
		next.Cols[c].Reset(next.Cols[c].Type)
		next.Cols[c].AppendFrom(values[k], 0)
	}
	return nil
}

// replace stores next in the place of the row with the key; its key may be another one.
func (s *Session) replace(t *tx, tab *txTable, check *rowCheck, key []byte, old, next *column.Batch) error {
	moved := rowenc.AppendKey(nil, next, tab.relation.PrimaryKey, 0)
	if string(moved) != string(key) {
		there, err := tab.lookup(moved)
		if err != nil {
			return err
		}
		if there != nil {
			return duplicateKey(check, next, 0)
		}
		if err := tab.remove(t, old, 0); err != nil {
			return err
		}
	}
	return tab.put(t, next, 0)
}

// found is one row that UPDATE or DELETE is to change.
type found struct{ key, row []byte }

// find returns the rows of a table for which where is true.
func (s *Session) find(ctx context.Context, tab *txTable, where *expr.Node) ([]found, error) {
	var predicate *expr.Program
	if where != nil {
		p, err := expr.Compile(where, tab.types)
		if err != nil {
			return nil, err
		}
		predicate = p
	}
	var out []found
	keep := func(key, row []byte) error {
		if err := s.memory.Take(int64(len(key) + len(row) + 2*48)); err != nil {
			return err
		}
		out = append(out, found{append([]byte(nil), key...), append([]byte(nil), row...)})
		return nil
	}
	if key, ok, err := s.keyOf(tab, where); err != nil {
		return nil, err
	} else if ok {
		row, err := tab.lookup(key)
		if err != nil || row == nil {
			return nil, err
		}
		b, err := tab.decode(row)
		if err != nil {
			return nil, err
		}
		hit, err := predicate.Select(s.context(), b, nil)
		if err != nil || len(hit) == 0 {
			return nil, err
		}
		return out, keep(key, row)
	}
	batch := column.NewBatch(tab.types, column.MaxRows)
	var keys, rows rowenc.Keys
	var hits []int32
	flush := func() error {
		defer func() {
			batch.Reset(tab.types)
			keys.Reset()
			rows.Reset()
		}()
		if batch.Len == 0 {
			return nil
		}
		var err error
		if hits, err = predicate.Select(s.context(), batch, hits[:0]); err != nil {
			return err
		}
		for _, i := range hits {
			if err := keep(keys.Key(int(i)), rows.Key(int(i))); err != nil {
				return err
			}
		}
		return nil
	}
	keys.Reset()
	rows.Reset()
	err := tab.scan(ctx, func(key, row []byte) error {
		if predicate == nil {
			return keep(key, row)
		}
		if err := rowenc.DecodeRow(row, tab.types, batch.Cols); err != nil {
			return fmt.Errorf("a row of table %q: %w", tab.relation.Name, err)
		}
		batch.EndRow(1)
		keys.Append(key)
		rows.Append(row)
		if batch.Full() {
			return flush()
		}
		return nil
	})
	if err == nil && predicate != nil {
		err = flush()
	}
	return out, err
}

// keyOf returns the key that a predicate names with equalities, so that no scan is needed.
func (s *Session) keyOf(tab *txTable, where *expr.Node) ([]byte, bool, error) {
	if where == nil {
		return nil, false, nil
	}
	constants := map[int]*expr.Node{}
	var collect func(n *expr.Node)
	collect = func(n *expr.Node) {
		switch {
		case n.Op == expr.OpAnd:
			for _, a := range n.Args {
				collect(a)
			}
		case n.Op == expr.OpCall && strings.HasPrefix(n.Func, "=(") && len(n.Args) == 2:
			l, r := n.Args[0], n.Args[1]
			if l.Op != expr.OpColumn {
				l, r = r, l
			}
			if l.Op == expr.OpColumn && r.Op == expr.OpConst && r.Text != nil && l.Type.SameValues(r.Type) {
				constants[l.Index] = r
			}
		}
	}
	collect(where)
	b := column.NewBatch(tab.types, 1)
	for _, k := range tab.relation.PrimaryKey {
		c, ok := constants[k]
		if !ok {
			return nil, false, nil
		}
		if err := s.appendConstant(b.Cols[k], c); err != nil {
			return nil, false, err
		}
	}
	if len(tab.relation.PrimaryKey) == 0 {
		return nil, false, nil
	}
	return rowenc.AppendKey(nil, b, tab.relation.PrimaryKey, 0), true, nil
}

// update runs UPDATE.
func (s *Session) update(ctx context.Context, b *bind.Update, args []*expr.Node) (string, error) {
	n := 0
	ret, err := s.returning(b.Returning, b.Columns, args)
	if err != nil {
		return "", err
	}
	err = s.writing(ctx, func(t *tx) error {
		tab, err := s.open(ctx, t, b.Target, true)
		if err != nil {
			return err
		}
		check, err := s.newRowCheck(b.Target)
		if err != nil {
			return err
		}
		var set []*expr.Program
		var columns []int
		movesKeys := false
		for _, a := range b.Set {
			p, err := expr.Compile(plan.SubstituteExpr(a.Value, args), tab.types)
			if err != nil {
				return err
			}
			set, columns = append(set, p), append(columns, a.Column)
			for _, k := range b.Target.PrimaryKey {
				movesKeys = movesKeys || k == a.Column
			}
		}
		rows, err := s.find(ctx, tab, plan.SubstituteExpr(b.Where, args))
		if err != nil {
			return err
		}
		var nexts []*column.Batch
		for i, f := range rows {
			if i&255 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			old, err := tab.decode(f.row)
			if err != nil {
				return err
			}
			next := old.Clone()
			if err := assign(s.context(), set, columns, old, next); err != nil {
				return err
			}
			if err := check.complete(next); err != nil {
				return err
			}
			if movesKeys { // all old rows go before the new ones come: x = x + 1 on a key meets no neighbour
				if err := tab.remove(t, old, 0); err != nil {
					return err
				}
				if err := s.memory.Take(int64(next.MemSize()) + 512); err != nil {
					return err
				}
				nexts = append(nexts, next)
				continue
			}
			if err := tab.put(t, next, 0); err != nil {
				return err
			}
			n++
			if err := ret.add(next, 0); err != nil {
				return err
			}
		}
		for _, next := range nexts {
			there, err := tab.lookup(rowenc.AppendKey(nil, next, b.Target.PrimaryKey, 0))
			if err != nil {
				return err
			}
			if there != nil {
				return duplicateKey(check, next, 0)
			}
			if err := tab.put(t, next, 0); err != nil {
				return err
			}
			n++
			if err := ret.add(next, 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return "UPDATE " + strconv.Itoa(n), ret.send(s)
}

// delete runs DELETE and TRUNCATE.
func (s *Session) delete(ctx context.Context, b *bind.Delete, args []*expr.Node) (string, error) {
	n := 0
	ret, err := s.returning(b.Returning, b.Columns, args)
	if err != nil {
		return "", err
	}
	err = s.writing(ctx, func(t *tx) error {
		tab, err := s.open(ctx, t, b.Target, true)
		if err != nil {
			return err
		}
		rows, err := s.find(ctx, tab, plan.SubstituteExpr(b.Where, args))
		if err != nil {
			return err
		}
		for i, f := range rows {
			if i&255 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			old, err := tab.decode(f.row)
			if err != nil {
				return err
			}
			if err := tab.remove(t, old, 0); err != nil {
				return err
			}
			n++
			if err := ret.add(old, 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if b.Tag == "TRUNCATE TABLE" {
		return b.Tag, nil
	}
	return "DELETE " + strconv.Itoa(n), ret.send(s)
}

// returned collects what RETURNING gives, until the statement has succeeded.
type returned struct {
	ctx      *expr.Context
	programs []*expr.Program
	exprs    []*expr.Node
	columns  []plan.Column
	rows     *column.Batch
}

func (s *Session) returning(list []*expr.Node, columns []plan.Column, args []*expr.Node) (*returned, error) {
	r := &returned{ctx: s.context(), columns: columns}
	if columns == nil {
		return r, nil
	}
	r.exprs = plan.SubstituteExprs(list, args)
	types := make([]column.Type, len(list))
	for i, n := range list {
		types[i] = n.Type
	}
	r.rows = column.NewBatch(types, 16)
	return r, nil
}

// add evaluates RETURNING over a row.
func (r *returned) add(b *column.Batch, row int) error {
	if r.columns == nil {
		return nil
	}
	if r.programs == nil {
		types := b.Types(nil)
		for _, n := range r.exprs {
			p, err := expr.Compile(n, types)
			if err != nil {
				return err
			}
			r.programs = append(r.programs, p)
		}
	}
	one := column.Batch{Cols: make([]*column.Vector, len(b.Cols))}
	for i := range one.Cols {
		one.Cols[i] = &column.Vector{}
	}
	one.View(b, row, row+1)
	for i, p := range r.programs {
		v, err := p.Eval(r.ctx, &one)
		if err != nil {
			return err
		}
		if err := r.ctx.Memory.Take(2 * int64(v.MemSize())); err != nil {
			return err
		}
		r.rows.Cols[i].AppendFrom(v, 0)
	}
	r.rows.EndRow(1)
	return nil
}

func (r *returned) send(s *Session) error {
	if r.columns == nil {
		return nil
	}
	if err := s.out.Columns(r.columns); err != nil {
		return err
	}
	if r.rows.Len == 0 {
		return nil
	}
	return s.out.Rows(r.rows)
}

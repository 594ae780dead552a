package ast

func (w *writer) query(q *Query) {
	w.with(q.With)
	w.body(q.Body, 0)
	if len(q.OrderBy) > 0 {
		w.orderBy(q.OrderBy)
	}
	if q.Limit != nil && !q.WithTies {
		w.str(" LIMIT ")
		w.expr(q.Limit, PrecLowest)
	}
	if q.Offset != nil {
		w.str(" OFFSET ")
		w.expr(q.Offset, PrecLowest)
	}
	if q.Limit != nil && q.WithTies {
		w.str(" FETCH FIRST ")
		w.expr(q.Limit, PrecPrimary+1)
		w.str(" ROWS WITH TIES")
	}
	for _, l := range q.Locking {
		w.str(" FOR ", l.Strength)
		if len(l.Of) > 0 {
			w.str(" OF ")
			w.names(l.Of)
		}
		if l.Wait != "" {
			w.str(" ", l.Wait)
		}
	}
	w.when(q.EmitOnWindowClose, " EMIT ON WINDOW CLOSE")
}

func (w *writer) with(with *With) {
	if with == nil {
		return
	}
	w.str("WITH ")
	w.when(with.Recursive, "RECURSIVE ")
	w.list(len(with.Tables), func(i int) {
		c := with.Tables[i]
		w.ident(c.Name)
		if len(c.Columns) > 0 {
			w.str(" ")
			w.columns(c.Columns)
		}
		w.str([...]string{" AS (", " AS MATERIALIZED (", " AS NOT MATERIALIZED ("}[c.Materialize])
		w.stmt(c.Stmt)
		w.str(")")
	})
	w.str(" ")
}

// body writes a query's body, in parentheses if it binds less tightly than least: 1 is UNION and EXCEPT, 2 INTERSECT.
func (w *writer) body(b QueryBody, least int) {
	switch b := b.(type) {
	case *Query:
		w.parens(b)
	case *Select:
		w.selectBody(b)
	case *Values:
		w.str("VALUES ")
		w.list(len(b.Rows), func(i int) {
			w.str("(")
			w.exprs(b.Rows[i])
			w.str(")")
		})
	case *SetOp:
		prec := 1
		if b.Kind == Intersect {
			prec = 2
		}
		w.when(prec < least, "(")
		w.body(b.L, prec)
		w.str(" ", b.Kind.String(), " ")
		w.when(b.All, "ALL ")
		w.body(b.R, prec+1)
		w.when(prec < least, ")")
	}
}

func (w *writer) selectBody(s *Select) {
	w.str("SELECT")
	w.when(s.Distinct, " DISTINCT")
	if len(s.DistinctOn) > 0 {
		w.str(" ON (")
		w.exprs(s.DistinctOn)
		w.str(")")
	}
	if len(s.Items) > 0 {
		w.str(" ")
		w.selectItems(s.Items)
	}
	if len(s.From) > 0 {
		w.str(" FROM ")
		w.tableExprs(s.From)
	}
	w.where(s.Where)
	if len(s.GroupBy) > 0 {
		w.str(" GROUP BY ")
		w.when(s.GroupDedup, "DISTINCT ")
		w.groupItems(s.GroupBy)
	}
	if s.Having != nil {
		w.str(" HAVING ")
		w.expr(s.Having, PrecLowest)
	}
	if len(s.Windows) > 0 {
		w.str(" WINDOW ")
		w.list(len(s.Windows), func(i int) {
			w.ident(s.Windows[i].Name)
			w.str(" AS ")
			w.windowSpec(&s.Windows[i].Spec)
		})
	}
}

func (w *writer) where(e Expr) {
	if e != nil {
		w.str(" WHERE ")
		w.expr(e, PrecLowest)
	}
}

func (w *writer) selectItems(items []SelectItem) {
	w.list(len(items), func(i int) {
		w.expr(items[i].Expr, PrecLowest)
		if items[i].Alias.Given() {
			w.str(" AS ")
			w.ident(items[i].Alias)
		}
	})
}

func (w *writer) orderBy(items []OrderItem) {
	w.str(" ")
	w.orderItemsAfter(items)
}

// orderItemsAfter writes ORDER BY and its keys.
func (w *writer) orderItemsAfter(items []OrderItem) {
	w.str("ORDER BY ")
	w.orderItems(items)
}

func (w *writer) orderItems(items []OrderItem) {
	w.list(len(items), func(i int) {
		item := items[i]
		w.expr(item.Expr, PrecLowest)
		if item.Using.Name != "" {
			w.str(" USING ")
			w.operator(item.Using)
		}
		w.when(item.Desc, " DESC")
		w.nulls(item.Nulls)
	})
}

func (w *writer) nulls(n NullsOrder) {
	w.str([...]string{"", " NULLS FIRST", " NULLS LAST"}[n])
}

func (w *writer) tableExprs(items []TableExpr) {
	w.list(len(items), func(i int) { w.tableExpr(items[i]) })
}

func (w *writer) tableExpr(t TableExpr) {
	switch t := t.(type) {
	case *Table:
		w.table(t)
	case *DerivedTable:
		w.when(t.Lateral, "LATERAL ")
		w.parens(t.Query)
		w.alias(t.Alias)
	case *FuncTable:
		w.when(t.Lateral, "LATERAL ")
		w.when(t.RowsFrom, "ROWS FROM (")
		w.list(len(t.Calls), func(i int) { w.call(t.Calls[i]) })
		w.when(t.RowsFrom, ")")
		w.when(t.Ordinality, " WITH ORDINALITY")
		w.alias(t.Alias)
	case *WindowTable:
		w.windowTable(t)
	case *Join:
		w.join(t)
	}
}

func (w *writer) table(t *Table) {
	w.when(t.Only, "ONLY ")
	w.path(t.Name.Parts)
	if t.AsOf != nil {
		w.str(" FOR SYSTEM_TIME AS OF ")
		w.expr(t.AsOf, PrecMatch+1)
	}
	w.alias(t.Alias)
}

func (w *writer) alias(a Alias) {
	if !a.Name.Given() && len(a.Defs) == 0 {
		return
	}
	w.str(" AS")
	if a.Name.Given() {
		w.str(" ")
		w.ident(a.Name)
	}
	switch {
	case len(a.Defs) > 0:
		w.str(" (")
		w.list(len(a.Defs), func(i int) { w.columnDef(a.Defs[i]) })
		w.str(")")
	case len(a.Columns) > 0:
		w.str(" ")
		w.columns(a.Columns)
	}
}

func (w *writer) windowTable(t *WindowTable) {
	w.str(t.Kind.String(), "(")
	w.tableExpr(t.Input)
	if len(t.PartitionBy) > 0 {
		w.str(" PARTITION BY (")
		w.exprs(t.PartitionBy)
		w.str(")")
	}
	w.str(", ")
	w.expr(t.Time, PrecLowest)
	for _, e := range []Expr{t.Slide, t.Size, t.Offset} {
		if e != nil {
			w.str(", ")
			w.expr(e, PrecLowest)
		}
	}
	w.str(")")
	w.alias(t.Alias)
}

func (w *writer) join(j *Join) {
	aliased := j.Alias.Name.Given()
	w.when(aliased, "(")
	w.tableExpr(j.L)
	w.str(" ")
	w.when(j.Natural, "NATURAL ")
	w.str(j.Kind.String(), " ")
	if right, ok := j.R.(*Join); ok && !right.Alias.Name.Given() {
		w.str("(")
		w.join(right)
		w.str(")")
	} else {
		w.tableExpr(j.R)
	}
	switch {
	case j.On != nil:
		w.str(" ON ")
		w.expr(j.On, PrecLowest)
	case len(j.Using) > 0:
		w.str(" USING ")
		w.columns(j.Using)
		if j.UsingAlias.Given() {
			w.str(" AS ")
			w.ident(j.UsingAlias)
		}
	}
	if aliased {
		w.str(")")
		w.alias(j.Alias)
	}
}

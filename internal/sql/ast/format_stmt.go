package ast

import (
	"strconv"
	"strings"
)

func (w *writer) stmt(s Stmt) {
	switch s := s.(type) {
	case *Query:
		w.query(s)
	case *Insert:
		w.insert(s)
	case *Update:
		w.with(s.With)
		w.str("UPDATE ")
		w.table(&s.Table)
		w.str(" SET ")
		w.assignments(s.Set)
		if len(s.From) > 0 {
			w.str(" FROM ")
			w.tableExprs(s.From)
		}
		w.where(s.Where)
		w.returning(s.Returning)
	case *Delete:
		w.with(s.With)
		w.str("DELETE FROM ")
		w.table(&s.Table)
		if len(s.Using) > 0 {
			w.str(" USING ")
			w.tableExprs(s.Using)
		}
		w.where(s.Where)
		w.returning(s.Returning)
	case *CreateSource, *CreateTable, *CreateView, *CreateSink, *CreateIndex, *CreateSchema:
		w.create(s)
	case *Drop:
		w.str("DROP ", s.Kind.String(), " ")
		w.when(s.IfExists, "IF EXISTS ")
		w.names(s.Names)
		w.when(s.Cascade, " CASCADE")
	case *Alter:
		w.str("ALTER ", s.Kind.String(), " ")
		w.when(s.IfExists, "IF EXISTS ")
		w.path(s.Name.Parts)
		w.str(" ", s.Rest)
	case *Comment:
		w.str("COMMENT ON ", s.Kind.String(), " ")
		w.path(s.Name.Parts)
		w.str(" IS ")
		w.text(s.Text, "NULL")
	case *Truncate:
		w.str("TRUNCATE ")
		w.names(s.Tables)
		w.when(s.Cascade, " CASCADE")
	case *Prepare:
		w.str("PREPARE ")
		w.ident(s.Name)
		if len(s.Types) > 0 {
			w.str(" (")
			w.list(len(s.Types), func(i int) { w.typeName(s.Types[i]) })
			w.str(")")
		}
		w.str(" AS ")
		w.stmt(s.Stmt)
	case *Execute:
		w.str("EXECUTE ")
		w.ident(s.Name)
		if len(s.Args) > 0 {
			w.str(" (")
			w.exprs(s.Args)
			w.str(")")
		}
	case *Explain:
		w.str("EXPLAIN ")
		if len(s.Options) > 0 {
			w.options(s.Options)
			w.str(" ")
		}
		w.stmt(s.Stmt)
	case *Subscribe:
		w.str("SUBSCRIBE TO ")
		if s.Query != nil {
			w.parens(s.Query)
		} else {
			w.path(s.Table.Parts)
		}
		w.withOptions(s.With)
	case *Copy:
		w.copy(s)
	default:
		w.session(s)
	}
}

// session writes the statements about the session rather than data.
func (w *writer) session(s Stmt) {
	switch s := s.(type) {
	case *Transaction:
		w.transaction(s)
	case *Set:
		w.set(s)
	case *Reset:
		w.str("RESET ")
		if s.Name == "" {
			w.str("ALL")
		} else {
			w.setting(s.Name)
		}
	case *Show:
		w.show(s)
	case *Flush:
		w.str("FLUSH")
	case *Discard:
		w.str("DISCARD ", s.What)
	case *Deallocate:
		w.str("DEALLOCATE ")
		w.identOr(s.Name, "ALL")
	case *DeclareCursor:
		w.str("DECLARE ")
		w.ident(s.Name)
		w.when(s.Binary, " BINARY")
		w.when(s.Insensitive, " INSENSITIVE")
		w.when(s.Scroll != "", " "+s.Scroll)
		w.str(" CURSOR")
		w.when(s.Hold, " WITH HOLD")
		w.str(" FOR ")
		w.query(s.Query)
	case *Fetch:
		w.str(map[bool]string{true: "MOVE", false: "FETCH"}[s.Move])
		w.str([...]string{" FORWARD ", " BACKWARD ", " ABSOLUTE ", " RELATIVE "}[s.Direction])
		if s.All {
			w.str("ALL")
		} else {
			w.str(strconv.FormatInt(s.Count, 10))
		}
		w.str(" FROM ")
		w.ident(s.Cursor)
	case *CloseCursor:
		w.str("CLOSE ")
		w.identOr(s.Name, "ALL")
	case *Listen:
		w.str(s.Verb, " ")
		w.identOr(s.Channel, "*")
		if s.Payload != nil {
			w.str(", ", QuoteString(s.Payload.Value))
		}
	case *Other:
		w.str(s.Verb)
		w.when(s.Rest != "", " "+s.Rest)
	}
}

func (w *writer) identOr(i Ident, missing string) {
	if i.Given() {
		w.ident(i)
	} else {
		w.str(missing)
	}
}

func (w *writer) text(s *String, missing string) {
	if s != nil {
		w.str(QuoteString(s.Value))
	} else {
		w.str(missing)
	}
}

func (w *writer) returning(items []SelectItem) {
	if len(items) > 0 {
		w.str(" RETURNING ")
		w.selectItems(items)
	}
}

func (w *writer) assignments(list []Assignment) {
	w.list(len(list), func(i int) {
		a := list[i]
		if a.Multi {
			w.columns(a.Columns)
		} else {
			w.idents(a.Columns)
		}
		w.str(" = ")
		w.expr(a.Value, PrecLowest)
	})
}

func (w *writer) insert(s *Insert) {
	w.with(s.With)
	w.str("INSERT INTO ")
	w.path(s.Table.Parts)
	if s.Alias.Given() {
		w.str(" AS ")
		w.ident(s.Alias)
	}
	if len(s.Columns) > 0 {
		w.str(" ")
		w.columns(s.Columns)
	}
	if s.Overriding != "" {
		w.str(" OVERRIDING ", s.Overriding, " VALUE")
	}
	if s.Query != nil {
		w.str(" ")
		w.query(s.Query)
	} else {
		w.str(" DEFAULT VALUES")
	}
	if c := s.OnConflict; c != nil {
		w.str(" ON CONFLICT")
		if len(c.Columns) > 0 {
			w.str(" ")
			w.columns(c.Columns)
		}
		if c.Constraint.Given() {
			w.str(" ON CONSTRAINT ")
			w.ident(c.Constraint)
		}
		if c.Nothing {
			w.str(" DO NOTHING")
		} else {
			w.str(" DO UPDATE SET ")
			w.assignments(c.Set)
			w.where(c.Where)
		}
	}
	w.returning(s.Returning)
}

func (w *writer) create(s Stmt) {
	w.str("CREATE ")
	head := func(replace, temporary bool, kind string, ifNotExists bool, name Name) {
		w.when(replace, "OR REPLACE ")
		w.when(temporary, "TEMPORARY ")
		w.str(kind, " ")
		w.when(ifNotExists, "IF NOT EXISTS ")
		w.path(name.Parts)
	}
	switch s := s.(type) {
	case *CreateSource:
		head(s.OrReplace, false, "SOURCE", s.IfNotExists, s.Name)
		if s.Star || len(s.Columns)+len(s.Constraints)+len(s.Watermarks) > 0 {
			w.str(" ")
			w.relationBody(s.Star, s.Columns, s.Constraints, s.Watermarks)
		}
		w.include(s.Include)
		w.withOptions(s.With)
		w.format(s.Format)
	case *CreateTable:
		head(false, s.Temporary, "TABLE", s.IfNotExists, s.Name)
		w.createTable(s)
	case *CreateView:
		kind := "VIEW"
		if s.Materialized {
			kind = "MATERIALIZED VIEW"
		}
		head(s.OrReplace, s.Temporary, kind, s.IfNotExists, s.Name)
		if len(s.Columns) > 0 {
			w.str(" ")
			w.columns(s.Columns)
		}
		w.withOptions(s.With)
		w.str(" AS ")
		w.query(s.Query)
		w.when(s.WithNoData, " WITH NO DATA")
	case *CreateSink:
		head(s.OrReplace, false, "SINK", s.IfNotExists, s.Name)
		if len(s.Into.Parts) > 0 {
			w.str(" INTO ")
			w.path(s.Into.Parts)
		}
		if s.Query != nil {
			w.str(" AS ")
			w.query(s.Query)
		} else {
			w.str(" FROM ")
			w.path(s.From.Parts)
		}
		w.withOptions(s.With)
		w.format(s.Format)
	case *CreateIndex:
		w.createIndex(s)
	case *CreateSchema:
		w.str("SCHEMA ")
		w.when(s.IfNotExists, "IF NOT EXISTS ")
		w.ident(s.Name)
	}
}

func (w *writer) createTable(s *CreateTable) {
	switch {
	case len(s.ColumnNames) > 0:
		w.str(" ")
		w.columns(s.ColumnNames)
	case s.Query == nil || len(s.Watermarks) > 0:
		w.str(" ")
		w.relationBody(false, s.Columns, s.Constraints, s.Watermarks)
	}
	w.when(s.AppendOnly, " APPEND ONLY")
	w.str([...]string{"", " ON CONFLICT OVERWRITE", " ON CONFLICT IGNORE"}[s.OnConflict])
	w.include(s.Include)
	w.withOptions(s.With)
	w.format(s.Format)
	if s.Query != nil {
		w.str(" AS ")
		w.query(s.Query)
		w.when(s.WithNoData, " WITH NO DATA")
	}
}

func (w *writer) relationBody(star bool, columns []ColumnDef, constraints []Constraint, watermarks []Watermark) {
	w.str("(")
	sep := ""
	next := func() {
		w.str(sep)
		sep = ", "
	}
	if star {
		next()
		w.str("*")
	}
	for _, c := range columns {
		next()
		w.columnDef(c)
	}
	for _, c := range constraints {
		next()
		w.constraint(c)
	}
	for _, m := range watermarks {
		next()
		w.str("WATERMARK FOR ")
		w.ident(m.Column)
		w.str(" AS ")
		w.expr(m.Expr, PrecLowest)
	}
	w.str(")")
}

func (w *writer) columnDef(c ColumnDef) {
	w.ident(c.Name)
	if c.Type.Name != "" {
		w.str(" ")
		w.typeName(c.Type)
	}
	if c.Generated != nil {
		w.str(" AS (")
		w.expr(c.Generated, PrecLowest)
		w.str(")")
		w.when(c.Stored, " STORED")
	}
	for _, k := range c.Constraints {
		w.str(" ")
		w.constraint(k)
	}
}

func (w *writer) constraint(k Constraint) {
	if k.Name.Given() {
		w.str("CONSTRAINT ")
		w.ident(k.Name)
		w.str(" ")
	}
	switch k.Kind {
	case NotNullConstraint:
		w.str("NOT NULL")
	case NullConstraint:
		w.str("NULL")
	case DefaultConstraint:
		w.str("DEFAULT ")
		w.expr(k.Expr, PrecCompare)
	case CheckConstraint:
		w.str("CHECK (")
		w.expr(k.Expr, PrecLowest)
		w.str(")")
	case PrimaryKeyConstraint:
		w.str("PRIMARY KEY")
	case UniqueConstraint:
		w.str("UNIQUE")
	case ForeignKeyConstraint:
		w.when(len(k.Columns) > 0, "FOREIGN KEY")
	case IdentityConstraint:
		w.str("GENERATED ", map[bool]string{true: "ALWAYS", false: "BY DEFAULT"}[k.Always], " AS IDENTITY")
	}
	if len(k.Columns) > 0 {
		w.str(" ")
		w.columns(k.Columns)
	}
	w.when(k.NotEnforced, " NOT ENFORCED")
	if k.Kind == ForeignKeyConstraint {
		w.when(len(k.Columns) > 0, " ")
		w.str("REFERENCES ")
		w.path(k.RefTable.Parts)
		if len(k.RefColumns) > 0 {
			w.str(" ")
			w.columns(k.RefColumns)
		}
		w.when(k.RefActions != "", " "+k.RefActions)
	}
}

func (w *writer) include(list []Include) {
	if len(list) == 0 {
		return
	}
	w.str(" INCLUDE ")
	w.list(len(list), func(i int) {
		w.ident(list[i].What)
		if list[i].As.Given() {
			w.str(" AS ")
			w.ident(list[i].As)
		}
	})
}

func (w *writer) format(f *FormatSpec) {
	if f == nil {
		return
	}
	w.str(" FORMAT ", f.Format, " ENCODE ", f.Encode)
	if f.Options != nil {
		w.str(" ")
		w.options(f.Options)
	}
}

func (w *writer) withOptions(list []Option) {
	if list != nil {
		w.str(" WITH ")
		w.options(list)
	}
}

func (w *writer) options(list []Option) {
	w.str("(")
	w.list(len(list), func(i int) {
		o := list[i]
		w.optionName(o.Name)
		if o.Value.Kind != OptionNone {
			w.str(" = ")
			w.optionValue(o.Value)
		}
	})
	w.str(")")
}

// optionName writes a name with dots as it is, if that reads back the same, else as a string. A word that begins a query
// would make EXPLAIN's options one.
func (w *writer) optionName(name string) {
	for i, part := range strings.Split(name, ".") {
		query := part == "select" || part == "values" || part == "with" || part == "table"
		if !plainName(part) || i == 0 && query {
			w.str(QuoteString(name))
			return
		}
	}
	w.str(name)
}

func (w *writer) optionValue(v OptionValue) {
	switch v.Kind {
	case OptionString:
		w.str(QuoteString(v.Text))
	case OptionNumber:
		w.str(v.Text)
	case OptionWord:
		if v.Text == "default" {
			w.str(`"default"`)
		} else if plainName(v.Text) {
			w.str(v.Text)
		} else {
			w.str(QuoteIdent(v.Text))
		}
	}
}

func (w *writer) createIndex(s *CreateIndex) {
	w.when(s.Unique, "UNIQUE ")
	w.str("INDEX ")
	w.when(s.Concurrently, "CONCURRENTLY ")
	w.when(s.IfNotExists, "IF NOT EXISTS ")
	if s.Name.Given() {
		w.ident(s.Name)
		w.str(" ")
	}
	w.str("ON ")
	w.path(s.Table.Parts)
	if s.Method.Given() {
		w.str(" USING ")
		w.ident(s.Method)
	}
	w.str(" (")
	w.list(len(s.Items), func(i int) {
		w.expr(s.Items[i].Expr, PrecLowest)
		w.when(s.Items[i].Desc, " DESC")
		w.nulls(s.Items[i].Nulls)
	})
	w.str(")")
	if len(s.Include) > 0 {
		w.str(" INCLUDE ")
		w.columns(s.Include)
	}
	w.withOptions(s.With)
	w.where(s.Where)
}

func (w *writer) transaction(t *Transaction) {
	words := [...]string{
		"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT ", "RELEASE SAVEPOINT ", "ROLLBACK TO SAVEPOINT ", "PREPARE TRANSACTION ",
		"SET TRANSACTION", "SET SESSION CHARACTERISTICS AS TRANSACTION",
	}
	if t.Kind == Begin && t.Start {
		w.str("START TRANSACTION")
	} else {
		w.str(words[t.Kind])
	}
	switch t.Kind {
	case Savepoint, ReleaseSavepoint, RollbackToSavepoint:
		w.str(QuoteIdent(t.Name))
	case PrepareTransaction:
		w.str(QuoteString(t.Name))
	}
	sep := " "
	mode := func(words string) {
		if words != "" {
			w.str(sep, words)
			sep = ", "
		}
	}
	if t.Modes.Isolation != "" {
		mode("ISOLATION LEVEL " + t.Modes.Isolation)
	}
	mode(t.Modes.Access)
	mode(t.Modes.Deferrable)
	w.when(t.Chain, " AND CHAIN")
}

// setting writes the name of a setting; what does not read back the same part by part is quoted as a whole.
func (w *writer) setting(name string) {
	for i, part := range strings.Split(name, ".") {
		if !plainName(part) || i == 0 && Keyword(part) > ColumnName {
			w.str(`"`, strings.ReplaceAll(name, `"`, `""`), `"`)
			return
		}
	}
	w.str(name)
}

func (w *writer) set(s *Set) {
	w.str([...]string{"SET ", "SET SESSION ", "SET LOCAL ", "ALTER SYSTEM SET "}[s.Scope])
	if s.Interval != nil {
		w.str("TIME ZONE ")
		w.expr(s.Interval, PrecLowest)
		return
	}
	w.setting(s.Name)
	w.str(" TO ")
	if s.Default {
		w.str("DEFAULT")
		return
	}
	w.list(len(s.Values), func(i int) { w.optionValue(s.Values[i]) })
}

func (w *writer) show(s *Show) {
	w.str("SHOW ")
	switch s.Kind {
	case ShowVariable:
		for kind := ShowTables; kind <= ShowColumns; kind++ {
			if s.Name == strings.ToLower(kind.String()) {
				w.str(`"`, s.Name, `"`) // the word alone would list
				return
			}
		}
		w.setting(s.Name)
		return
	case ShowColumns:
		w.str("COLUMNS FROM ")
		w.path(s.Target.Parts)
		return
	case ShowCreate:
		w.str("CREATE ", s.Object.String(), " ")
		w.path(s.Target.Parts)
		return
	}
	w.str(s.Kind.String())
	if len(s.Target.Parts) > 0 {
		w.str(" FROM ")
		w.path(s.Target.Parts)
	}
	if s.Like != nil {
		w.str(" LIKE ", QuoteString(s.Like.Value))
	}
}

func (w *writer) copy(s *Copy) {
	w.str("COPY ")
	if s.Query != nil {
		w.parens(s.Query)
	} else {
		w.path(s.Table.Parts)
		if len(s.Columns) > 0 {
			w.str(" ")
			w.columns(s.Columns)
		}
	}
	w.str(map[bool]string{true: " FROM ", false: " TO "}[s.From])
	w.when(s.Program, "PROGRAM ")
	w.text(s.Filename, map[bool]string{true: "STDIN", false: "STDOUT"}[s.From])
	w.withOptions(s.Options)
	w.where(s.Where)
}

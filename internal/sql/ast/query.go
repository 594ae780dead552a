package ast

// Query is a complete query: SELECT, VALUES or a set operation, with what stands around it.
type Query struct {
	Span
	With     *With
	Body     QueryBody
	OrderBy  []OrderItem
	Limit    Expr // nil if not given, or LIMIT ALL
	Offset   Expr
	WithTies bool // FETCH FIRST n ROWS WITH TIES
	Locking  []Locking
	// EmitOnWindowClose: results are final and come out when the watermark passes their window's end.
	EmitOnWindowClose bool
}

// QueryBody is *Select, *Values, *SetOp, or a *Query in parentheses that has clauses of its own.
type QueryBody interface {
	Node
	queryBody()
}

// With is the WITH clause.
type With struct {
	Span
	Recursive bool
	Tables    []CTE
}

// Materialize is a CTE's hint.
type Materialize uint8

// The hints.
const (
	MaterializeUnsaid Materialize = iota
	Materialized
	NotMaterialized
)

// CTE is one named query of WITH.
type CTE struct {
	Span
	Name        Ident
	Columns     []Ident
	Materialize Materialize
	Stmt        Stmt // *Query, or INSERT, UPDATE, DELETE
}

// Select is SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ... WINDOW ... .
type Select struct {
	Span
	Distinct   bool
	DistinctOn []Expr // with Distinct
	Items      []SelectItem
	From       []TableExpr // comma-separated items
	Where      Expr
	GroupBy    []Expr // *Grouping for ROLLUP, CUBE, GROUPING SETS and ()
	GroupDedup bool   // GROUP BY DISTINCT
	Having     Expr
	Windows    []NamedWindow
}

// SelectItem is one output column (or, with a Star, several).
type SelectItem struct {
	Span
	Expr  Expr
	Alias Ident
}

// NamedWindow is WINDOW name AS (...).
type NamedWindow struct {
	Span
	Name Ident
	Spec WindowSpec
}

// Values is VALUES (1, 2), (3, 4).
type Values struct {
	Span
	Rows [][]Expr
}

// SetOpKind is a set operation.
type SetOpKind uint8

// The set operations.
const (
	Union SetOpKind = iota
	Intersect
	Except
)

var setOpText = [...]string{"UNION", "INTERSECT", "EXCEPT"}

func (k SetOpKind) String() string { return setOpText[k] }

// SetOp combines two queries.
type SetOp struct {
	Span
	Kind SetOpKind
	All  bool
	L, R QueryBody
}

// NullsOrder is NULLS FIRST or NULLS LAST.
type NullsOrder uint8

// Where nulls sort.
const (
	NullsDefault NullsOrder = iota // last ascending, first descending
	NullsFirst
	NullsLast
)

// OrderItem is one key of ORDER BY.
type OrderItem struct {
	Span
	Expr  Expr
	Desc  bool
	Using Operator // ORDER BY x USING >; its Name is empty if not given
	Nulls NullsOrder
}

// Locking is FOR UPDATE and its like; parsed so that it can be refused by name.
type Locking struct {
	Span
	Strength string // "UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"
	Of       []Name
	Wait     string // "", "NOWAIT", "SKIP LOCKED"
}

// TableExpr is an item of FROM.
type TableExpr interface {
	Node
	tableExpr()
}

// Alias is AS name (columns). The zero value means none.
type Alias struct {
	Span
	Name    Ident
	Columns []Ident
	Defs    []ColumnDef // AS t(a int, b text), for functions that return records
}

// Table is a relation by name.
type Table struct {
	Span
	Name  Name
	Only  bool
	AsOf  Expr // FOR SYSTEM_TIME AS OF expr, nil if not given
	Alias Alias
}

// DerivedTable is a query in FROM.
type DerivedTable struct {
	Span
	Lateral bool
	Query   *Query
	Alias   Alias
}

// FuncTable is a function in FROM, such as generate_series(1, 10), or several in ROWS FROM.
type FuncTable struct {
	Span
	Lateral    bool
	Calls      []*FuncCall // one, unless RowsFrom
	RowsFrom   bool
	Ordinality bool // WITH ORDINALITY
	Alias      Alias
}

// WindowKind is a kind of event-time window.
type WindowKind uint8

// The kinds of window.
const (
	Tumble WindowKind = iota
	Hop
	Session
	Cumulate
)

var windowKindText = [...]string{"TUMBLE", "HOP", "SESSION", "CUMULATE"}

func (k WindowKind) String() string { return windowKindText[k] }

// WindowTable assigns the rows of Input to windows: TUMBLE(t, col, size [, offset]), HOP(t, col, slide, size [, offset]),
// SESSION(t [PARTITION BY ...], col, gap), CUMULATE(t, col, step, size [, offset]). Flink's form,
// TABLE(TUMBLE(TABLE t, DESCRIPTOR(col), ...)), gives the same node.
type WindowTable struct {
	Span
	Kind        WindowKind
	Input       TableExpr // *Table, *DerivedTable or *WindowTable, without an alias
	PartitionBy []Expr
	Time        *ColumnRef
	Slide       Expr // Hop's slide and Cumulate's step, nil otherwise
	Size        Expr // size, or Session's gap
	Offset      Expr // nil if not given
	Alias       Alias
}

// JoinKind is a kind of join.
type JoinKind uint8

// The kinds of join.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
	CrossJoin
)

var joinText = [...]string{"JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"}

func (k JoinKind) String() string { return joinText[k] }

// Join joins two items of FROM. Exactly one of On, Using and Natural is given unless it is a CrossJoin.
type Join struct {
	Span
	Kind       JoinKind
	L, R       TableExpr
	On         Expr
	Using      []Ident
	UsingAlias Ident
	Natural    bool
	Alias      Alias // (a JOIN b ON ...) AS j
}

func (*Query) queryBody()  {}
func (*Select) queryBody() {}
func (*Values) queryBody() {}
func (*SetOp) queryBody()  {}

func (*Table) tableExpr()        {}
func (*DerivedTable) tableExpr() {}
func (*FuncTable) tableExpr()    {}
func (*WindowTable) tableExpr()  {}
func (*Join) tableExpr()         {}

package ast

// Expr is a value expression.
type Expr interface {
	Node
	expr()
}

// The literals.
type (
	// Null is NULL.
	Null struct{ Span }
	// Bool is TRUE or FALSE.
	Bool struct {
		Span
		Value bool
	}
	// Number is a numeric literal without its sign. Text is what was written, without underscores: digits with at most
	// one point and one exponent, or 0x, 0o, 0b and digits.
	Number struct {
		Span
		Text string
	}
	// String is a string literal of yet unknown type, in any of its forms, decoded.
	String struct {
		Span
		Value string
	}
	// BitString is B'0101' or X'1F'.
	BitString struct {
		Span
		Digits string
		Hex    bool
	}
	// TypedString is a literal with the type in front: DATE '2024-02-29', timestamptz '...', INTERVAL '1' HOUR.
	TypedString struct {
		Span
		Type  TypeName
		Value String
	}
	// Param is $1 and so on.
	Param struct {
		Span
		Number int // from 1
	}
	// Default is the word DEFAULT in INSERT ... VALUES and UPDATE ... SET.
	Default struct{ Span }
)

// ColumnRef is a name in an expression: column, table.column, schema.table.column.
type ColumnRef struct {
	Span
	Parts []Ident
}

// Star is * or table.*, in a select list, in count(*) it is FuncCall.Star instead.
type Star struct {
	Span
	Qualifier []Ident // empty for a plain *
}

// BoolOp is AND or OR.
type BoolOp uint8

// The two connectives.
const (
	And BoolOp = iota
	Or
)

func (o BoolOp) String() string {
	if o == Or {
		return "OR"
	}
	return "AND"
}

// Logic is a chain of ANDs or of ORs: at least two arguments. a AND b AND c is one node with three.
type Logic struct {
	Span
	Op   BoolOp
	Args []Expr
}

// Not is NOT x.
type Not struct {
	Span
	X Expr
}

// Operator names an operator, with the schema of OPERATOR(pg_catalog.~). Comparison <> is also written !=; it is kept
// as "<>".
type Operator struct {
	Span
	Schema Ident
	Name   string
}

// Unary is a prefix operator: -x, +x, ~x, @x.
type Unary struct {
	Span
	Op Operator
	X  Expr
}

// Binary is an infix operator. The words (AND, LIKE, IN, IS ...) have nodes of their own.
type Binary struct {
	Span
	Op   Operator
	L, R Expr
}

// IsKind says what IS tests for.
type IsKind uint8

// The tests.
const (
	IsNull IsKind = iota
	IsTrue
	IsFalse
	IsUnknown
)

var isKindText = [...]string{"NULL", "TRUE", "FALSE", "UNKNOWN"}

func (k IsKind) String() string { return isKindText[k] }

// Is is x IS [NOT] NULL, TRUE, FALSE or UNKNOWN.
type Is struct {
	Span
	X    Expr
	Not  bool
	Kind IsKind
}

// IsDistinct is a IS [NOT] DISTINCT FROM b.
type IsDistinct struct {
	Span
	L, R Expr
	Not  bool
}

// IsJSON is x IS [NOT] JSON [kind]; parsed so that it can be refused by name.
type IsJSON struct {
	Span
	X    Expr
	Not  bool
	Kind string // "", "VALUE", "ARRAY", "OBJECT", "SCALAR"
}

// Between is x [NOT] BETWEEN [SYMMETRIC] lo AND hi.
type Between struct {
	Span
	X, Lo, Hi Expr
	Not       bool
	Symmetric bool
}

// In is x [NOT] IN (list) or x [NOT] IN (query): exactly one of List and Query is given.
type In struct {
	Span
	X     Expr
	Not   bool
	List  []Expr
	Query *Query
}

// LikeKind is the kind of pattern.
type LikeKind uint8

// The kinds of pattern that are words.
const (
	Like LikeKind = iota
	ILike
	SimilarTo
)

var likeKindText = [...]string{"LIKE", "ILIKE", "SIMILAR TO"}

func (k LikeKind) String() string { return likeKindText[k] }

// Match is x [NOT] LIKE, ILIKE or SIMILAR TO pattern [ESCAPE c].
type Match struct {
	Span
	X, Pattern Expr
	Kind       LikeKind
	Not        bool
	Escape     Expr // nil if not given
}

// Quantified is x op ANY (...) or x op ALL (...), over an array or a query: exactly one of Array and Query is given.
type Quantified struct {
	Span
	X     Expr
	Op    Operator // for LIKE and ILIKE: "~~", "~~*", "!~~", "!~~*"
	All   bool     // ANY (or SOME) otherwise
	Array Expr
	Query *Query
}

// Exists is EXISTS (query).
type Exists struct {
	Span
	Query *Query
}

// Subquery is a query in parentheses used as a value.
type Subquery struct {
	Span
	Query *Query
}

// ArrayQuery is ARRAY(query).
type ArrayQuery struct {
	Span
	Query *Query
}

// Row is ROW(a, b) or (a, b).
type Row struct {
	Span
	Items    []Expr
	Explicit bool // the word ROW was written
}

// Array is ARRAY[a, b].
type Array struct {
	Span
	Items []Expr
}

// Index is x[i] or, as a slice, x[lo:hi] where either bound may be nil.
type Index struct {
	Span
	X      Expr
	Slice  bool
	Lo, Hi Expr // Lo is the index if it is not a slice
}

// Field is (x).name.
type Field struct {
	Span
	X    Expr
	Name Ident
}

// FieldStar is (x).*.
type FieldStar struct {
	Span
	X Expr
}

// Cast is x::type or CAST(x AS type).
type Cast struct {
	Span
	X    Expr
	Type TypeName
}

// Collate is x COLLATE name.
type Collate struct {
	Span
	X         Expr
	Collation Name
}

// AtTimeZone is x AT TIME ZONE zone; without a zone it is x AT LOCAL.
type AtTimeZone struct {
	Span
	X, Zone Expr
}

// When is one arm of CASE.
type When struct {
	Span
	Cond, Then Expr
}

// Case is CASE [operand] WHEN ... THEN ... [ELSE ...] END.
type Case struct {
	Span
	Operand Expr // nil for a searched CASE
	Whens   []When
	Else    Expr // nil if not given
}

// Arg is an argument of a function.
type Arg struct {
	Span
	Name     Ident // given for name => value
	Variadic bool
	Value    Expr
}

// FuncSyntax tells the special syntax that a call was written in. The binder may ignore it: the arguments are always in
// the order that PostgreSQL's function of that name takes them.
type FuncSyntax uint8

// The special forms.
const (
	PlainCall FuncSyntax = iota
	// BareCall has no parentheses: CURRENT_TIMESTAMP, CURRENT_DATE, LOCALTIME, CURRENT_USER ...
	BareCall
	// ExtractCall is EXTRACT(field FROM x): extract('field', x).
	ExtractCall
	// SubstringCall is SUBSTRING(x FROM a FOR b): substring(x, a, b). With only FOR, the start 1 is filled in.
	SubstringCall
	// SubstringSimilarCall is SUBSTRING(x SIMILAR pattern ESCAPE c): substring(x, pattern, c).
	SubstringSimilarCall
	// PositionCall is POSITION(a IN b): position(b, a), as in PostgreSQL, whose function takes the haystack first.
	PositionCall
	// TrimCall is TRIM([BOTH|LEADING|TRAILING] [chars] FROM x): btrim, ltrim or rtrim of (x[, chars]).
	TrimCall
	// OverlayCall is OVERLAY(x PLACING y FROM a FOR b): overlay(x, y, a, b).
	OverlayCall
)

// FuncCall is a call of a function, an aggregate or a window function. COALESCE, NULLIF, GREATEST, LEAST and GROUPING are
// calls too, by these names.
type FuncCall struct {
	Span
	Name        Name // folded; special forms have their function's name
	Syntax      FuncSyntax
	Args        []Arg
	Star        bool        // count(*)
	Distinct    bool        // count(DISTINCT x)
	OrderBy     []OrderItem // array_agg(x ORDER BY y), or WITHIN GROUP's
	WithinGroup bool
	Filter      Expr        // FILTER (WHERE ...), nil if not given
	NullsMode   NullsMode   // RESPECT NULLS or IGNORE NULLS
	Over        *WindowSpec // nil if it is not a window function
}

// NullsMode is the null treatment of a window function.
type NullsMode uint8

// The null treatments.
const (
	NullsUnsaid NullsMode = iota
	RespectNulls
	IgnoreNulls
)

// WindowSpec is what follows OVER, or a named window of the WINDOW clause.
type WindowSpec struct {
	Span
	Ref         Ident // OVER name, or the window that OVER (name ...) starts from
	Bare        bool  // OVER name, without parentheses
	PartitionBy []Expr
	OrderBy     []OrderItem
	Frame       *Frame
}

// FrameMode is the unit of a frame.
type FrameMode uint8

// The units.
const (
	Rows FrameMode = iota
	Range
	Groups
)

var frameModeText = [...]string{"ROWS", "RANGE", "GROUPS"}

func (m FrameMode) String() string { return frameModeText[m] }

// BoundKind is the kind of a frame's bound.
type BoundKind uint8

// The bounds, in their order.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// Bound is one end of a frame.
type Bound struct {
	Span
	Kind   BoundKind
	Offset Expr // for Preceding and Following
}

// Exclusion is a frame's EXCLUDE clause.
type Exclusion uint8

// The exclusions.
const (
	ExcludeUnsaid Exclusion = iota
	ExcludeNoOthers
	ExcludeCurrentRow
	ExcludeGroup
	ExcludeTies
)

// Frame is ROWS BETWEEN ... AND ... .
type Frame struct {
	Span
	Mode    FrameMode
	Start   Bound
	End     *Bound // nil when only the start was written: it ends at the current row
	Exclude Exclusion
}

// GroupingKind is the kind of a grouping element.
type GroupingKind uint8

// The kinds.
const (
	GroupingSets GroupingKind = iota
	Rollup
	Cube
	EmptySet // ()
)

// Grouping is an element of GROUP BY that is not a plain expression.
type Grouping struct {
	Span
	Kind  GroupingKind
	Items []Expr // a Row groups several expressions
}

func (*Null) expr()        {}
func (*Bool) expr()        {}
func (*Number) expr()      {}
func (*String) expr()      {}
func (*BitString) expr()   {}
func (*TypedString) expr() {}
func (*Param) expr()       {}
func (*Default) expr()     {}
func (*ColumnRef) expr()   {}
func (*Star) expr()        {}
func (*Logic) expr()       {}
func (*Not) expr()         {}
func (*Unary) expr()       {}
func (*Binary) expr()      {}
func (*Is) expr()          {}
func (*IsDistinct) expr()  {}
func (*IsJSON) expr()      {}
func (*Between) expr()     {}
func (*In) expr()          {}
func (*Match) expr()       {}
func (*Quantified) expr()  {}
func (*Exists) expr()      {}
func (*Subquery) expr()    {}
func (*ArrayQuery) expr()  {}
func (*Row) expr()         {}
func (*Array) expr()       {}
func (*Index) expr()       {}
func (*Field) expr()       {}
func (*FieldStar) expr()   {}
func (*Cast) expr()        {}
func (*Collate) expr()     {}
func (*AtTimeZone) expr()  {}
func (*Case) expr()        {}
func (*FuncCall) expr()    {}
func (*Grouping) expr()    {}

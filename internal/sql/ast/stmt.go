package ast

// Stmt is a statement. *Query is one too.
type Stmt interface {
	Node
	stmt()
}

// Option is name = value in WITH (...) and after ENCODE.
type Option struct {
	Span
	Name  string // folded unless quoted; may hold dots
	Value OptionValue
}

// OptionKind tells how an option's value was written.
type OptionKind uint8

// The kinds of value.
const (
	OptionNone   OptionKind = iota // a name alone
	OptionString                   // 'text'
	OptionNumber                   // 12, -1.5
	OptionWord                     // true, latest
)

// OptionValue is the value of an option.
type OptionValue struct {
	Span
	Kind OptionKind
	Text string
}

// ColumnDef is a column of CREATE SOURCE or CREATE TABLE.
type ColumnDef struct {
	Span
	Name        Ident
	Type        TypeName // its Name is empty in "c AS (expr)": the type is the expression's
	Generated   Expr     // AS (expr) or GENERATED ALWAYS AS (expr); nil for a plain column
	Stored      bool     // ... STORED
	Constraints []Constraint
}

// ConstraintKind is a kind of constraint.
type ConstraintKind uint8

// The constraints. NullConstraint and DefaultConstraint belong to a column only.
const (
	NotNullConstraint ConstraintKind = iota
	NullConstraint
	DefaultConstraint
	CheckConstraint
	PrimaryKeyConstraint
	UniqueConstraint
	ForeignKeyConstraint
	IdentityConstraint // GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY
)

// Constraint is a constraint of a column or of a table.
type Constraint struct {
	Span
	Name    Ident // CONSTRAINT name
	Kind    ConstraintKind
	Expr    Expr    // DEFAULT's and CHECK's
	Columns []Ident // of a table-level PRIMARY KEY, UNIQUE, FOREIGN KEY
	Always  bool    // of an identity: ALWAYS, else BY DEFAULT
	// NotEnforced: PRIMARY KEY (...) NOT ENFORCED, as Flink writes it.
	NotEnforced bool
	RefTable    Name // REFERENCES
	RefColumns  []Ident
	RefActions  string // ON DELETE CASCADE and so on, as words
}

// Watermark is WATERMARK FOR column AS expr.
type Watermark struct {
	Span
	Column Ident
	Expr   Expr
}

// Include is INCLUDE what [AS name] of a source.
type Include struct {
	Span
	What Ident // "partition", "offset", "timestamp", "key", "headers" ...
	As   Ident
}

// FormatSpec is FORMAT x ENCODE y [(options)]. Its words are in upper case.
type FormatSpec struct {
	Span
	Format  string // "PLAIN", "UPSERT" ...
	Encode  string // "JSON", "TEXT", "BYTES" ...
	Options []Option
}

// CreateSource is CREATE SOURCE.
type CreateSource struct {
	Span
	IfNotExists bool
	OrReplace   bool
	Name        Name
	Columns     []ColumnDef
	Star        bool // (*, generated columns): the format gives the columns
	Constraints []Constraint
	Watermarks  []Watermark // more than one is for the binder to refuse
	Include     []Include
	With        []Option
	Format      *FormatSpec // nil if not given
}

// ConflictAction is what a table does with a row whose key is there.
type ConflictAction uint8

// The actions.
const (
	ConflictUnsaid ConflictAction = iota // an error
	ConflictOverwrite
	ConflictIgnore // also written DO NOTHING
)

// CreateTable is CREATE TABLE, of columns or AS a query. With Format it is a table that a connector feeds.
type CreateTable struct {
	Span
	IfNotExists bool
	Temporary   bool
	Name        Name
	Columns     []ColumnDef
	ColumnNames []Ident // of CREATE TABLE name (a, b) AS query
	Constraints []Constraint
	Watermarks  []Watermark
	AppendOnly  bool
	OnConflict  ConflictAction
	Include     []Include
	With        []Option
	Format      *FormatSpec
	Query       *Query // CREATE TABLE AS
	WithNoData  bool
}

// CreateView is CREATE [MATERIALIZED] VIEW.
type CreateView struct {
	Span
	Materialized bool
	IfNotExists  bool
	OrReplace    bool
	Temporary    bool
	Name         Name
	Columns      []Ident
	With         []Option
	Query        *Query
	WithNoData   bool
}

// CreateSink is CREATE SINK: exactly one of From and Query is given.
type CreateSink struct {
	Span
	IfNotExists bool
	OrReplace   bool
	Name        Name
	Into        Name // CREATE SINK name INTO table, the zero value if not given
	From        Name
	Query       *Query
	With        []Option
	Format      *FormatSpec
}

// IndexItem is one key of an index.
type IndexItem struct {
	Span
	Expr  Expr
	Desc  bool
	Nulls NullsOrder
}

// CreateIndex is CREATE INDEX.
type CreateIndex struct {
	Span
	Unique       bool
	Concurrently bool
	IfNotExists  bool
	Name         Ident // may be missing
	Table        Name
	Method       Ident // USING method
	Items        []IndexItem
	Include      []Ident
	With         []Option
	Where        Expr
}

// CreateSchema is CREATE SCHEMA.
type CreateSchema struct {
	Span
	IfNotExists bool
	Name        Ident
}

// ObjectKind is a kind of object of the catalog.
type ObjectKind uint8

// The kinds of object.
const (
	SourceObject ObjectKind = iota
	TableObject
	ViewObject
	MaterializedViewObject
	SinkObject
	IndexObject
	SchemaObject
	ConnectionObject
	FunctionObject
	SecretObject
	DatabaseObject
	SystemObject
	UserObject
	JobObject
	SubscriptionObject
	ColumnObject
)

var objectKindText = [...]string{
	"SOURCE", "TABLE", "VIEW", "MATERIALIZED VIEW", "SINK", "INDEX", "SCHEMA", "CONNECTION", "FUNCTION", "SECRET",
	"DATABASE", "SYSTEM", "USER", "JOB", "SUBSCRIPTION", "COLUMN",
}

func (k ObjectKind) String() string { return objectKindText[k] }

// Drop is DROP kind [IF EXISTS] a, b [CASCADE | RESTRICT].
type Drop struct {
	Span
	Kind     ObjectKind
	IfExists bool
	Names    []Name
	Cascade  bool // RESTRICT otherwise, said or not
}

// Alter is ALTER kind name rest. What is to be altered is not parsed beyond its name: Rest holds the words.
type Alter struct {
	Span
	Kind     ObjectKind
	IfExists bool
	Name     Name
	Rest     string // the rest of the statement, tokens joined by one space
	RestPos  int    // where the rest begins
}

// Comment is COMMENT ON kind name IS 'text'.
type Comment struct {
	Span
	Kind ObjectKind
	Name Name
	Text *String // nil for NULL
}

// Assignment is column = value, or (a, b) = (row or query), in UPDATE.
type Assignment struct {
	Span
	Columns []Ident // one, unless Multi
	Multi   bool    // written with parentheses
	Value   Expr
}

// OnConflict is INSERT ... ON CONFLICT.
type OnConflict struct {
	Span
	Columns    []Ident // the target; empty if not given
	Constraint Ident   // ON CONSTRAINT name
	Nothing    bool    // DO NOTHING, else DO UPDATE
	Set        []Assignment
	Where      Expr
}

// Insert is INSERT.
type Insert struct {
	Span
	With       *With
	Table      Name
	Alias      Ident
	Columns    []Ident
	Overriding string // "", "SYSTEM", "USER"
	Query      *Query // VALUES or SELECT; nil for DEFAULT VALUES
	OnConflict *OnConflict
	Returning  []SelectItem
}

// Update is UPDATE.
type Update struct {
	Span
	With      *With
	Table     Table // with its alias
	Set       []Assignment
	From      []TableExpr
	Where     Expr
	Returning []SelectItem
}

// Delete is DELETE.
type Delete struct {
	Span
	With      *With
	Table     Table
	Using     []TableExpr
	Where     Expr
	Returning []SelectItem
}

// Truncate is TRUNCATE.
type Truncate struct {
	Span
	Tables  []Name
	Cascade bool
}

// TransactionKind is what a transaction statement does.
type TransactionKind uint8

// The transaction statements.
const (
	Begin TransactionKind = iota // BEGIN, START TRANSACTION
	Commit
	Rollback
	Savepoint
	ReleaseSavepoint
	RollbackToSavepoint
	PrepareTransaction
	SetTransaction        // SET TRANSACTION modes
	SetSessionTransaction // SET SESSION CHARACTERISTICS AS TRANSACTION modes
)

// TransactionModes are the modes of BEGIN and SET TRANSACTION; empty ones were not given.
type TransactionModes struct {
	Isolation  string // "SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED", "READ UNCOMMITTED"
	Access     string // "READ ONLY", "READ WRITE"
	Deferrable string // "DEFERRABLE", "NOT DEFERRABLE"
}

// Transaction is BEGIN, COMMIT and so on.
type Transaction struct {
	Span
	Kind  TransactionKind
	Modes TransactionModes
	Name  string // a savepoint's, or the prepared transaction's
	Chain bool   // AND CHAIN
	Start bool   // written START TRANSACTION (its command tag differs)
}

// SetScope is the reach of SET.
type SetScope uint8

// The scopes.
const (
	ScopeUnsaid SetScope = iota // session
	ScopeSession
	ScopeLocal
	ScopeSystem // ALTER SYSTEM SET
)

// Set is SET name TO values. SET TIME ZONE x sets "timezone", SET NAMES x "client_encoding", SET SCHEMA x "search_path".
type Set struct {
	Span
	Scope   SetScope
	Name    string // folded; may hold a dot
	Default bool   // TO DEFAULT, also SET TIME ZONE LOCAL
	Values  []OptionValue
	// Interval is the value of SET TIME ZONE INTERVAL '...' HOUR TO MINUTE; nil otherwise.
	Interval *TypedString
}

// Reset is RESET name, or RESET ALL with an empty name.
type Reset struct {
	Span
	Name string
}

// ShowKind is what SHOW lists.
type ShowKind uint8

// The kinds of SHOW.
const (
	ShowVariable ShowKind = iota // SHOW name; TIME ZONE and TRANSACTION ISOLATION LEVEL are names too
	ShowAll                      // SHOW ALL: all settings
	ShowTables
	ShowSources
	ShowViews
	ShowMaterializedViews
	ShowSinks
	ShowIndexes
	ShowJobs
	ShowSchemas
	ShowDatabases
	ShowFunctions
	ShowSubscriptions
	ShowConnections
	ShowTopics
	ShowColumns // SHOW COLUMNS FROM name, DESCRIBE name
	ShowCreate  // SHOW CREATE kind name
)

var showText = [...]string{
	"", "ALL", "TABLES", "SOURCES", "VIEWS", "MATERIALIZED VIEWS", "SINKS", "INDEXES", "JOBS", "SCHEMAS", "DATABASES",
	"FUNCTIONS", "SUBSCRIPTIONS", "CONNECTIONS", "TOPICS", "COLUMNS", "CREATE",
}

func (k ShowKind) String() string { return showText[k] }

// Show is SHOW.
type Show struct {
	Span
	Kind   ShowKind
	Name   string     // of a setting: "timezone", "transaction_isolation", "session_authorization" ...
	Object ObjectKind // of SHOW CREATE
	Target Name       // of SHOW CREATE and SHOW COLUMNS; of a list: FROM schema
	Like   *String    // SHOW TABLES LIKE 'a%'
}

// Explain is EXPLAIN.
type Explain struct {
	Span
	Options []Option // EXPLAIN (ANALYZE, FORMAT json); ANALYZE and VERBOSE before the statement are here too
	Stmt    Stmt
}

// Flush is FLUSH: wait until everything written so far is visible.
type Flush struct{ Span }

// Subscribe is SUBSCRIBE [TO] relation or (query) [WITH (...)]: exactly one of Table and Query is given.
type Subscribe struct {
	Span
	Table Name
	Query *Query
	With  []Option
}

// Discard is DISCARD what.
type Discard struct {
	Span
	What string // "ALL", "PLANS", "SEQUENCES", "TEMP"
}

// Prepare is PREPARE name (types) AS statement.
type Prepare struct {
	Span
	Name  Ident
	Types []TypeName
	Stmt  Stmt
}

// Execute is EXECUTE name (values).
type Execute struct {
	Span
	Name Ident
	Args []Expr
}

// Deallocate is DEALLOCATE name, or all of them with no name.
type Deallocate struct {
	Span
	Name Ident
}

// Copy is COPY.
type Copy struct {
	Span
	Table    Name
	Columns  []Ident
	Query    *Query // COPY (query) TO
	From     bool   // FROM, else TO
	Program  bool
	Filename *String // nil for STDIN and STDOUT
	Options  []Option
	Where    Expr
}

// DeclareCursor is DECLARE name CURSOR FOR query.
type DeclareCursor struct {
	Span
	Name        Ident
	Binary      bool
	Insensitive bool   // said; ASENSITIVE is the default
	Scroll      string // "", "SCROLL", "NO SCROLL"
	Hold        bool
	Query       *Query
}

// FetchDirection is where FETCH and MOVE go.
type FetchDirection uint8

// The directions.
const (
	FetchForward FetchDirection = iota
	FetchBackward
	FetchAbsolute
	FetchRelative
)

// Fetch is FETCH or MOVE. NEXT is forward 1, PRIOR backward 1, FIRST absolute 1, LAST absolute -1.
type Fetch struct {
	Span
	Move      bool
	Direction FetchDirection
	All       bool
	Count     int64
	Cursor    Ident
}

// CloseCursor is CLOSE name, or all of them with no name.
type CloseCursor struct {
	Span
	Name Ident
}

// Listen is LISTEN, UNLISTEN or NOTIFY; drivers and pools send them.
type Listen struct {
	Span
	Verb    string // "LISTEN", "UNLISTEN", "NOTIFY"
	Channel Ident  // missing for UNLISTEN *
	Payload *String
}

// Other is a statement of PostgreSQL that Leat knows by its first words only, so that it can be refused by name or, such
// as ANALYZE and VACUUM, taken as nothing to do.
type Other struct {
	Span
	Verb string // upper case: "VACUUM", "ANALYZE", "GRANT", "LOCK", "CREATE FUNCTION" ...
	Rest string // the rest, tokens joined by one space
}

func (*Query) stmt()         {}
func (*CreateSource) stmt()  {}
func (*CreateTable) stmt()   {}
func (*CreateView) stmt()    {}
func (*CreateSink) stmt()    {}
func (*CreateIndex) stmt()   {}
func (*CreateSchema) stmt()  {}
func (*Drop) stmt()          {}
func (*Alter) stmt()         {}
func (*Comment) stmt()       {}
func (*Insert) stmt()        {}
func (*Update) stmt()        {}
func (*Delete) stmt()        {}
func (*Truncate) stmt()      {}
func (*Transaction) stmt()   {}
func (*Set) stmt()           {}
func (*Reset) stmt()         {}
func (*Show) stmt()          {}
func (*Explain) stmt()       {}
func (*Flush) stmt()         {}
func (*Subscribe) stmt()     {}
func (*Discard) stmt()       {}
func (*Prepare) stmt()       {}
func (*Execute) stmt()       {}
func (*Deallocate) stmt()    {}
func (*Copy) stmt()          {}
func (*DeclareCursor) stmt() {}
func (*Fetch) stmt()         {}
func (*CloseCursor) stmt()   {}
func (*Listen) stmt()        {}
func (*Other) stmt()         {}

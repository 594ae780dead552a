package bind

import (
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Env is what a statement is bound in.
type Env struct {
	Catalog *catalog.Snapshot
	// Text is the whole string that was handed to the parser; the spans of the tree are ranges of it. The text of
	// definitions is cut out of it.
	Text string
	// Params are the types that the client declared for $1, $2 ...; Kind Unknown where the binder shall infer them.
	Params []column.Type
	// Context holds the session's time zone and now(), for constants that are folded while binding. nil is UTC.
	Context *expr.Context
	// Database is the name of the database, which a three-part name may begin with; empty: none.
	Database string
	// Functions are the values of functions without arguments that only a session knows (current_user, current_database,
	// version, pg_backend_pid ...), by name. nil entries and names that are not there do not exist.
	Functions map[string]*expr.Node
	// Setting is the value of a parameter of the session, for current_setting; nil: there is no session.
	Setting func(name string) (string, bool)
}

// Notice is something the client should be told although the statement is fine.
type Notice struct {
	Code    string // SQLSTATE, "00000" for a plain notice
	Message string
	Hint    string
}

// Bound is what every statement becomes: *Select, *Insert, *Update, *Delete, *Create, *Drop, *Explain or *Nothing.
type Bound interface {
	// Common is the part that all have.
	Common() *Head
}

// Head is common to all bound statements.
type Head struct {
	Tag     string        // the command tag without counts: "SELECT", "INSERT", "CREATE TABLE" ...
	Params  []column.Type // of $1 ...; types declared or inferred, never Unknown
	Columns []plan.Column // visible result columns; nil if the statement returns no rows
	Notices []Notice
	// Reads are the ids of the relations that the statement reads, sorted: what a prepared statement depends on, and
	// whose writes a SELECT waits for.
	Reads []uint64
}

// Common returns the head itself, so that embedding makes a Bound.
func (h *Head) Common() *Head { return h }

// Select is an ad hoc query. Its plan has no state tables (all state is ephemeral) and no Materialize; scans of sources read
// the topic's history, those of tables and materialized views a snapshot. The root's columns that are not hidden are
// the result, in order; hidden ones are dropped by the reader. Parameters are OpParam nodes in it: see plan.Substitute.
type Select struct {
	Head
	Plan *plan.Plan
}

// Insert is INSERT. Exactly one of Rows and Source is set. A row has a value for every column of Target in order, hidden
// and generated ones included. For the row id and generated columns that is NULL: the table writer fills in the row id,
// then computes the generated columns in order, then checks NOT NULL and CHECK.
type Insert struct {
	Head
	Target *catalog.Relation
	Rows   [][]*expr.Node // VALUES and DEFAULT VALUES: expressions without columns
	Source *plan.Plan     // a query; its root's visible columns are the row
	// Conflict is what to do when the key is there; nil: the table's own policy (Target.OnConflict).
	Conflict  *OnConflict
	Returning []*expr.Node // over the stored row; Columns name them
}

// OnConflict is ON CONFLICT. Its target is always the primary key.
type OnConflict struct {
	Nothing bool
	// Set and Where are over the stored row (columns 0 to n-1 of Target) and the row that was to be inserted (n to 2n-1).
	Set   []Assignment
	Where *expr.Node // nil: always
}

// Assignment gives a column a value. DEFAULT is already replaced.
type Assignment struct {
	Column int // of Target
	Value  *expr.Node
}

// Update is UPDATE of one table. All values are over the old row; the writer computes generated columns again.
type Update struct {
	Head
	Target    *catalog.Relation
	Set       []Assignment
	Where     *expr.Node   // over the old row; nil: all rows
	Returning []*expr.Node // over the new row
}

// Delete is DELETE from one table, and TRUNCATE of one.
type Delete struct {
	Head
	Target    *catalog.Relation
	Where     *expr.Node   // over the row; nil: all rows
	Returning []*expr.Node // over the deleted row
}

// Create is CREATE SOURCE, TABLE, VIEW, MATERIALIZED VIEW and SINK. Relation has its id, and its plan its state table ids;
// IDs are the counters afterwards, for catalog.Snapshot.Create. The catalog must not have changed in between.
type Create struct {
	Head
	Relation *catalog.Relation
	IDs      catalog.IDs
	// Fill is CREATE TABLE AS: the rows to insert once the table is there, as Insert.Source; nil otherwise.
	Fill *plan.Plan
}

// Drop is DROP of one or more relations, existing ones.
type Drop struct {
	Head
	Relations []*catalog.Relation
	Cascade   bool
}

// Explain is EXPLAIN: one result column, a row a line.
type Explain struct {
	Head
	Lines []string
}

// Nothing is a statement that has nothing to do, such as CREATE ... IF NOT EXISTS of what exists. The notices say why.
type Nothing struct{ Head }

// Statement binds a statement. Statements that do not concern relations (SET, SHOW, BEGIN, FLUSH ...) are not for it; it
// refuses them with 0A000.
func Statement(env Env, s ast.Stmt) (Bound, error) {
	return bindStatement(env, s)
}

// Query binds an ad hoc query.
func Query(env Env, q *ast.Query) (*Select, error) {
	return bindAdHoc(env, q)
}

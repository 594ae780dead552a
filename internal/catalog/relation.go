package catalog

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Kind is what a relation is.
type Kind string

// The kinds of relation, as messages spell them.
const (
	Source           Kind = "source"
	Table            Kind = "table"
	View             Kind = "view"
	MaterializedView Kind = "materialized view"
	Sink             Kind = "sink"
)

// Column is one column of a relation.
type Column struct {
	Name    string      `json:"name"`
	Type    column.Type `json:"type"`
	NotNull bool        `json:"notNull,omitempty"`
	// Hidden columns are left out of * and cannot be named: a table's row id, a materialized view's extra key columns.
	Hidden bool `json:"hidden,omitempty"`
	// Default is the value of a column that INSERT does not give: an expression without columns; nil means NULL.
	Default *expr.Node `json:"default,omitempty"`
	// Generated is the value of a generated column over the relation's columns by index; it refers only to columns that
	// are not generated and to generated ones before it, so computing them in order is right.
	Generated *expr.Node `json:"generated,omitempty"`
	// Include is set for a column that holds metadata of the record: IncludePartition and so on.
	Include string `json:"include,omitempty"`
}

// What INCLUDE can ask for.
const (
	IncludePartition = "partition" // int
	IncludeOffset    = "offset"    // bigint
	IncludeTimestamp = "timestamp" // timestamptz
	IncludeKey       = "key"       // bytea
)

// Watermark says how far a source's time has come: a partition's watermark is the maximum of Column seen in it, less Delay.
type Watermark struct {
	Column int   `json:"column"` // index in Relation.Columns; timestamp or timestamptz
	Delay  int64 `json:"delay"`  // microseconds, not negative
	// MaxAhead bounds how far Column may be ahead of the time at which its record was appended, in microseconds; 0 is the engine's default.
	MaxAhead int64 `json:"maxAhead,omitempty"`
}

// Check is a CHECK constraint of a table. A row passes unless the expression is false.
type Check struct {
	Name string     `json:"name"`
	Expr *expr.Node `json:"expr"` // over the relation's columns by index
}

// Conflict says what a table does with an INSERT whose key is there.
type Conflict string

// The policies.
const (
	ConflictError     Conflict = "" // SQLSTATE 23505
	ConflictOverwrite Conflict = "overwrite"
	ConflictIgnore    Conflict = "ignore"
)

// RowID is the name of the hidden column that is the key of a table without a primary key. It is a bigint, the last of
// the table's columns; the table writer fills it.
const RowID = "_row_id"

// Relation is one entry of the catalog. Once it is in a Snapshot nobody changes it.
type Relation struct {
	ID     uint64 `json:"id"`
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Kind   Kind   `json:"kind"`
	// Columns are all columns, hidden ones included. For a materialized view they are the columns of its Materialize
	// node in order; for a sink and a view those of the query.
	Columns []Column `json:"columns"`
	// PrimaryKey are the columns of a table's key (its row id if it has none declared), or of a materialized view's
	// stream key. A source has none; its rows are named by (partition, offset). A materialized view of exactly one row
	// has an empty one.
	PrimaryKey []int      `json:"primaryKey,omitempty"`
	Watermark  *Watermark `json:"watermark,omitempty"`
	// AppendOnly relations never retract a row.
	AppendOnly bool     `json:"appendOnly,omitempty"`
	Checks     []Check  `json:"checks,omitempty"`
	OnConflict Conflict `json:"onConflict,omitempty"`

	// Connector is "kafka" or "nexmark" for a source or sink, empty otherwise.
	Connector string            `json:"connector,omitempty"`
	Options   map[string]string `json:"options,omitempty"` // WITH (...), checked by the binder
	Format    string            `json:"format,omitempty"`  // "plain", "upsert"
	Encode    string            `json:"encode,omitempty"`  // "json", "text", "bytes"
	// Topic is the topic that a source or sink is over, or that holds a table's changelog.
	Topic string `json:"topic,omitempty"`
	// Partitions is how many partitions a table's topic is made with.
	Partitions int32 `json:"partitions,omitempty"`

	// Definition is the statement as it was written; Query is the text of a view's query, which a binder parses again to
	// expand a view.
	Definition string `json:"definition"`
	Query      string `json:"query,omitempty"`
	// Plan is the stored physical plan of what runs for the relation: of a table, materialized view or sink. It is nil
	// for others, and when PlanError says why it cannot be run by this binary.
	Plan      *plan.Plan `json:"-"`
	PlanError error      `json:"-"`
	rawPlan   []byte     // as stored, kept when it cannot be read

	// DependsOn are the relations that this one reads, directly.
	DependsOn []uint64 `json:"dependsOn,omitempty"`
}

// Column returns the index of a visible column, -1 if there is none of that name.
func (r *Relation) Column(name string) int {
	for i := range r.Columns {
		if r.Columns[i].Name == name && !r.Columns[i].Hidden {
			return i
		}
	}
	return -1
}

// QualifiedName is the name as messages and listings show it: the schema is left out if it is public.
func (r *Relation) QualifiedName() string {
	if r.Schema == PublicSchema {
		return r.Name
	}
	return r.Schema + "." + r.Name
}

// HasRowID tells whether the table's key is the hidden row id.
func (r *Relation) HasRowID() bool {
	n := len(r.Columns)
	return r.Kind == Table && n > 0 && r.Columns[n-1].Hidden && r.Columns[n-1].Name == RowID
}

// Options of a source or sink over a topic of a Kafka cluster, rather than of this node.
const (
	ServersOption     = "properties.bootstrap.server"
	ClientIDOption    = "properties.client.id"
	CompressionOption = "properties.compression.type"
)

// Outside tells whether the relation is over a topic of a Kafka cluster.
func (r *Relation) Outside() bool { return r.Options[ServersOption] != "" }

// HasChangelog tells whether the relation is a sink to something outside: Topic is then its changelog, a topic of this node that is made for it and
// trimmed behind what has been delivered.
func (r *Relation) HasChangelog() bool { return r.Kind == Sink && r.Outside() }

// Package plan is the physical plan: what the binder makes of a query, what CREATE stores, and what the engine runs. It is plain
// data with a JSON form, whose version is Version; a binary that does not know a version refuses it by name.
package plan

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
)

// Version of the JSON form.
const Version = 1

// Plan is a directed acyclic graph of nodes in topological order: a node's inputs have lower indexes. The last node is the root.
type Plan struct {
	Version int     `json:"version"`
	Nodes   []*Node `json:"nodes"`
}

// Column is one output column of a node.
type Column struct {
	Name   string      `json:"name"`
	Type   column.Type `json:"type"`
	Hidden bool        `json:"hidden,omitempty"` // a stream key or the row watermark; SELECT * does not show it
}

// Node is one operator. Exactly one of the pointers is set, the one that Kind names.
type Node struct {
	Kind    Kind     `json:"kind"`
	Inputs  []int    `json:"inputs,omitempty"`
	Columns []Column `json:"columns"`
	// Key is the stream key: the output columns that name a row. It is empty for a relation of exactly one row (a global aggregate),
	// and nil (null) where the key's columns were pruned because nothing above needs them, such as below an aggregate: the inputs
	// of Join, IntervalJoin, Materialize and Upsert, and Sort's and Union's where they are among those, always have one.
	Key []int `json:"key"`
	// AppendOnly: no batch of this node ever has a negative weight.
	AppendOnly bool `json:"appendOnly,omitempty"`
	// EventTime is the output column that the watermark is about, -1 when there is none.
	EventTime int `json:"eventTime"`
	// RowWatermark is the hidden output column with the watermark of the row's partition when the row was read
	// (same type as the event time), -1 when there is none. Needed only up to the window operator.
	RowWatermark int `json:"rowWatermark"`
	// Tables are the durable state tables of the operator, in the order that the operator documents. Their ids are given at CREATE.
	Tables []Table `json:"tables,omitempty"`

	Scan         *Scan         `json:"scan,omitempty"`
	Values       *Values       `json:"values,omitempty"`
	Filter       *Filter       `json:"filter,omitempty"`
	Project      *Project      `json:"project,omitempty"`
	Window       *Window       `json:"window,omitempty"`
	Exchange     *Exchange     `json:"exchange,omitempty"`
	Aggregate    *Aggregate    `json:"aggregate,omitempty"`
	Join         *Join         `json:"join,omitempty"`
	IntervalJoin *IntervalJoin `json:"intervalJoin,omitempty"`
	Union        *Union        `json:"union,omitempty"`
	Upsert       *Upsert       `json:"upsert,omitempty"`
	Materialize  *Materialize  `json:"materialize,omitempty"`
	Sink         *Sink         `json:"sink,omitempty"`
	Sort         *Sort         `json:"sort,omitempty"`
}

// Kind names an operator.
type Kind string

// The kinds.
const (
	KindScan         Kind = "scan"
	KindValues       Kind = "values"
	KindFilter       Kind = "filter"
	KindProject      Kind = "project"
	KindWindow       Kind = "window"
	KindExchange     Kind = "exchange"
	KindAggregate    Kind = "aggregate"
	KindJoin         Kind = "join"
	KindIntervalJoin Kind = "intervalJoin"
	KindUnion        Kind = "union"
	KindUpsert       Kind = "upsert"
	KindMaterialize  Kind = "materialize"
	KindSink         Kind = "sink"
	KindSort         Kind = "sort"
)

// Table is the header of a durable state table.
type Table struct {
	ID      uint32        `json:"id"`
	Name    string        `json:"name"` // such as "groups", "left"
	Version int           `json:"version"`
	Key     []column.Type `json:"key"`
	Suffix  []column.Type `json:"suffix,omitempty"` // ordered tables: what orders a group's rows
	Value   []column.Type `json:"value"`            // nil: opaque to all but the operator
}

// TableVersion is the version of the layout of the state tables of an operator that this binary reads and writes (docs/format/state.md).
func TableVersion(k Kind) int {
	if k == KindAggregate {
		return 2
	}
	return 1
}

// Scan reads a relation of the catalog: a source (rows decoded from a connector's partitions) or the changes of a table or view.
type Scan struct {
	Relation uint64 `json:"relation"` // catalog id
	Source   bool   `json:"source,omitempty"`
	// Columns are the relation's columns (by index, hidden ones included) that are read, in output order.
	// For a source, index len(source columns) and above are: partition (int), offset (bigint), row watermark.
	// For a table's own topic (Topic is set), they are: deleted (boolean), partition (int), offset (bigint).
	// Columns may be empty: only the number of rows counts then. The event time of a source is that of its watermark column
	// even when the plan does not read it (the node's EventTime is then -1).
	Columns []int `json:"columns"`
	// Topic: the scan is the one of a table's own job. It reads the table's topic (Source is set, too): decoded records, for
	// the Upsert above.
	Topic bool `json:"topic,omitempty"`
}

// Values is a constant relation (SELECT without FROM, VALUES). Rows hold expressions without columns.
type Values struct {
	Rows [][]*expr.Node `json:"rows"`
}

// Filter keeps the rows whose predicate is true.
type Filter struct {
	Predicate *expr.Node `json:"predicate"`
}

// Project computes the output columns.
type Project struct {
	Exprs []*expr.Node `json:"exprs"`
}

// Late says what happens to rows behind the watermark.
type Late struct {
	Policy  string `json:"policy,omitempty"`  // "count" (also ""), "correct", "topic"
	Allowed int64  `json:"allowed,omitempty"` // allowed lateness in microseconds, for "correct"
	Topic   string `json:"topic,omitempty"`
}

// Window assigns rows to windows: the input's columns, then window_start and window_end (the event time's type). A (row, window) whose
// end (plus Late.Allowed) is at or below the row's watermark is late. Windows are [start, end), aligned to Offset (PostgreSQL's epoch of
// the type, 1970-01-01 plus Offset). With a HOP whose consumer is the next aggregate by panes, Panes is set: the node then emits each row once,
// with the pane's start and end; the aggregate merges panes into windows. Panes are as long as the greatest common divisor of Size and Slide.
// The watermark matters only if Time is the input's EventTime: over another column nothing is ever late and nothing closes. Where the
// input has an event time but no RowWatermark (the window_end of an EmitOnClose aggregate), nothing is late, but windows close.
type Window struct {
	Time   int   `json:"time"`  // input column
	Size   int64 `json:"size"`  // microseconds
	Slide  int64 `json:"slide"` // microseconds; equal to Size for TUMBLE
	Offset int64 `json:"offset,omitempty"`
	Panes  bool  `json:"panes,omitempty"`
	Late   Late  `json:"late"`
}

// Exchange sends each row to the worker that owns its key; no Keys: all rows to worker 0.
type Exchange struct {
	Keys []int `json:"keys"`
}

// Call is one aggregate.
type Call struct {
	Func   string        `json:"func"` // count, sum, avg, min, max, bool_and, bool_or
	Args   []int         `json:"args"` // input columns; none for count(*)
	Types  []column.Type `json:"types"`
	Result column.Type   `json:"result"`
	Filter int           `json:"filter"` // a boolean input column, -1 when none
}

// Aggregate groups by input columns. Output: the group columns, then the aggregates. Without GROUP BY there is always exactly one row.
// Tables: "groups" (point), then one ordered table per min or max over an input that retracts (key: groups; suffix: the argument), in the
// order of Calls. Calls may be empty: SELECT DISTINCT.
type Aggregate struct {
	Groups []int  `json:"groups"`
	Calls  []Call `json:"calls"`
	// WindowEnd and WindowStart are positions within Groups of a window's bounds, -1 when not windowed. State of closed windows is dropped.
	WindowStart int `json:"windowStart"`
	WindowEnd   int `json:"windowEnd"`
	// Hop is set when the input carries panes: windows are Size long and start every Slide.
	Hop *Window `json:"hop,omitempty"`
	// EmitOnClose: rows come out once, when their window closes (then the output is append-only, unless Late.Policy is "correct").
	EmitOnClose bool `json:"emitOnClose,omitempty"`
	Late        Late `json:"late"`
}

// Join is an inner equi-join of any two relations: output is left's columns, then right's.
// Tables: "left", "right" (ordered: join key, stream key).
type Join struct {
	Left     []int      `json:"left"`
	Right    []int      `json:"right"`
	Residual *expr.Node `json:"residual,omitempty"` // over the output columns
}

// IntervalJoin joins two append-only streams on equal keys (NULL is equal to nothing, as in Join) with right.time between left.time + Lower and left.time + Upper (microseconds, inclusive).
// Outer: LEFT join; an unmatched left row comes out once, with NULLs, when the watermark has passed left.time + Upper.
// Tables: "left", "right" (ordered: join key, then time and stream key).
type IntervalJoin struct {
	Left      []int      `json:"left"`
	Right     []int      `json:"right"`
	LeftTime  int        `json:"leftTime"`
	RightTime int        `json:"rightTime"`
	Lower     int64      `json:"lower"`
	Upper     int64      `json:"upper"`
	Outer     bool       `json:"outer,omitempty"`
	Residual  *expr.Node `json:"residual,omitempty"`
}

// Union is UNION ALL. Its last column, hidden, is the number of the input (int), part of the stream key.
type Union struct{}

// Upsert turns a table's topic (decoded records: a row, or a tombstone with the key only) into the table's changes, by primary key.
// Its table 0 is the stored rows of the relation. Input: the table's columns, then deleted (boolean), partition, offset.
type Upsert struct {
	Relation uint64 `json:"relation"`
	Key      []int  `json:"key"`
}

// Materialize stores the input's rows by stream key as the rows of a view. Table 0 is that table (key: stream key; value: all columns).
type Materialize struct {
	Relation uint64 `json:"relation"`
}

// Sink writes the net changes of each epoch to a topic of the embedded log.
type Sink struct {
	Relation uint64   `json:"relation"`
	Topic    string   `json:"topic"`
	Format   string   `json:"format"` // "plain" or "upsert"
	Encode   string   `json:"encode"` // "json"
	Columns  []int    `json:"columns"`
	Names    []string `json:"names"`
	Key      []int    `json:"key"` // input columns of the record key; empty: no key
	// KeyNames are the names of the Key's columns when some of them are not among Columns: a hidden part of the stream key.
	KeyNames []string `json:"keyNames,omitempty"`
}

// SortKey is one ORDER BY item.
type SortKey struct {
	Column     int  `json:"column"`
	Descending bool `json:"desc,omitempty"`
	NullsFirst bool `json:"nullsFirst,omitempty"`
}

// Sort orders and cuts the result of an ad hoc query; only at the root, never in a view. All its input is on worker 0. Without
// Keys it only cuts.
type Sort struct {
	Keys   []SortKey  `json:"keys"`
	Limit  *expr.Node `json:"limit,omitempty"`
	Offset *expr.Node `json:"offset,omitempty"`
}

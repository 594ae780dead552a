// Package flow runs queries: the graph of an island, its workers, epochs, watermarks.
//
// An Island holds the merged graph of the jobs attached to it. Each worker has its own instance of every node and owns a
// share of the keys. Run takes one epoch, bounded input, to completion on all workers; between two Runs only the caller
// touches the graph. What always holds:
//   - rows of two epochs never meet in an operator;
//   - a worker never waits inside an operator, and what is in flight between workers is bounded by depth, deepest served first;
//   - lateness is decided where a row is read, row by row, so results do not depend on batch sizes, workers or interleaving;
//   - a panic or error in an operator is an error of the job that owns the node and of the jobs that read it, of nobody else.
package flow

import (
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/sql/plan"
	"github.com/leat-io/leat/internal/state"
)

// SourceSpec is how a source's rows are made of what its connector decodes.
type SourceSpec struct {
	Relation uint64
	Name     string
	Source   connector.Source
	// Columns are all columns of the relation in declared order. A column with an Expr is generated, over the columns before it.
	Columns []SourceColumn
	// EventTime is the column that the watermark is about, -1 when there is none. Delay is the watermark's, in microseconds.
	EventTime int
	Delay     int64
	// Checked: the connector decodes what clients wrote, which may be wrong. Every column that can fail is made, whoever reads it: whether a
	// record is a dead letter depends on the record and the source alone, not on which views there are.
	Checked bool
	// MaxAhead bounds how far an event time may be ahead of its record's append time, in microseconds: rows beyond it are dead
	// letters. 0 is DefaultMaxAhead, negative is no bound.
	MaxAhead int64
}

// DefaultMaxAhead is how far ahead of its append time a row's event time may be unless the source says otherwise: one day.
const DefaultMaxAhead = int64(24 * time.Hour / time.Microsecond)

// SourceColumn is one column of a source.
type SourceColumn struct {
	Name string
	Type column.Type
	Expr *expr.Node // nil: the connector's
	// NotNull makes a NULL a dead letter.
	NotNull bool
}

// PartitionState is where a reader is in one partition. It is saved with every epoch.
type PartitionState struct {
	Offset  int64 `json:"offset"`          // next to be read
	MaxTime int64 `json:"maxTime"`         // greatest event time so far, microseconds; NoTime before the first
	Idle    bool  `json:"idle,omitempty"`  // holds no watermark back
	Ended   bool  `json:"ended,omitempty"` // bounded and read to its end
}

// NoTime is "no event time yet", and the watermark before there is one.
const NoTime = int64(-1 << 63)

// EndOfTime is the watermark after the end of all bounded input.
const EndOfTime = int64(1<<63 - 1)

// SourceState is one reader's position. Watermark is what it has reached: it never goes back.
type SourceState struct {
	Relation   uint64           `json:"relation"`
	Partitions []PartitionState `json:"partitions"`
	Watermark  int64            `json:"watermark"`
	// Identity is what the positions are of, if the source has one; zero while that is not known.
	Identity connector.Identity `json:"identity,omitzero"`
}

// BackfillState is how far a scan of a table or view has come in its first reading. Node is the scan's index in the plan.
type BackfillState struct {
	Node   int    `json:"node"`
	Cursor []byte `json:"cursor,omitempty"` // rows whose key is at or below it have been read
	Done   bool   `json:"done,omitempty"`
}

// JobSpec is a job to attach. A job that was attached before is attached with the states of its last committed epoch.
type JobSpec struct {
	ID   uint64 // the catalog id of the relation that the job makes
	Name string
	Plan *plan.Plan
	// Sources has every source that the plan scans, by relation.
	Sources map[uint64]*SourceSpec
	// Start is each source's start option ("earliest", "latest"): jobs share a reader of a source when they started alike and are
	// at the same positions.
	Start map[uint64]string
	// Fresh: first attached now, its tables are empty.
	Fresh bool
	// Positions are the states of its readers. A source without one begins at Start.
	Positions []SourceState
	// Backfill has the scans of tables and views that are not live yet, as saved. For a Fresh job every scan of a table or view
	// begins a backfill, unless SkipBackfill.
	Backfill     []BackfillState
	SkipBackfill bool
	// Partitions gives the number of partitions of a sink's topic.
	Partitions func(topic string) int
}

// Epoch is one epoch's bounded input.
type Epoch struct {
	Number uint64
	Now    int64 // microseconds, what now() is
	Reads  []Read
	// Idle changes partitions' idle flags before the epoch. A partition that gives rows is active again by itself.
	Idle []Idle
	// Advance moves readers' watermarks at the epoch's end at least to a time (wall clock closing windows, EndOfTime).
	Advance []Advance
	// BackfillRows is how many rows each scan in backfill reads in this epoch, DefaultBackfillRows if 0.
	BackfillRows int
	// Changes, one a worker, take the changed rows of state tables; they stay the caller's. Fresh ones are made if there are none.
	Changes []*state.Changes

	final bool // all input ends with this epoch, and with it all time
}

// DefaultBackfillRows is the chunk of an epoch that a scan in backfill reads on one worker.
const DefaultBackfillRows = 16384

// Read is a range of a reader's partition: [From, To). From must be where the reader is.
type Read struct {
	Reader    int
	Partition int
	From, To  int64
}

// Idle sets the idle flag of a reader's partition.
type Idle struct {
	Reader, Partition int
	Idle              bool
}

// Advance moves a reader's watermark at least to To.
type Advance struct {
	Reader int
	To     int64
}

// Reader is one reader of a source in the island.
type Reader struct {
	ID       int
	Relation uint64
	Start    string
	Source   connector.Source
	Jobs     []uint64 // the jobs that read it
	State    SourceState
	Counts   operator.Counts // of the epoch, in a Result: rows in, dead letters
}

// Result is what an epoch produced. It is valid until the next Run.
type Result struct {
	Epoch uint64
	// Changes are the changed rows of the state tables, one a worker, for the unit of the epoch.
	Changes     []*state.Changes
	Appends     []TopicBatch
	DeadLetters []DeadLetter
	Jobs        []JobResult // of the jobs that the epoch touched or whose readers it moved
	Readers     []Reader
	CPU         time.Duration // of all workers
}

// TopicBatch are records for one partition of a topic, in order.
type TopicBatch struct {
	Job       uint64
	Topic     string
	Partition int32
	Records   []operator.Record
}

// DeadLetter is a record that a source could not use.
type DeadLetter struct {
	Relation  uint64
	Source    string
	Partition int32
	Position  int64 // where its reader met it: as connector.Rows.Positions
	Reason    string
	Record    record.Record // as it came; of a source without records, its offset alone
}

// JobResult is what an epoch did for one job.
type JobResult struct {
	Job       uint64
	Err       error // the job has failed in this epoch and must be detached; nothing of it is in Result
	Watermark int64 // of its root
	Counts    operator.Counts
	// Positions and Backfill are what JobSpec is to be given after a restart.
	Positions []SourceState
	Backfill  []BackfillState
	Live      bool   // no backfill is left
	Checksum  uint64 // of a checksum sink: the sum of all rows' hashes so far in this run
}

// Package connector is what a source is to the engine: partitions that are read by position, decoded into columns.
//
// What always holds: a position means the same row for ever, so a range of positions can be read again after a crash and gives
// the same rows; Read never waits for data that is not there yet; nothing that is read is dropped silently: a record that
// cannot be decoded is in Rows.Bad.
package connector

import (
	"math"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/record"
)

// Source is a set of partitions. Its methods may be called by any goroutine.
type Source interface {
	// Partitions is how many there are now. The number may grow, never shrink.
	Partitions() int
	// Ends appends the position after the last readable row of each partition to dst, all taken at one instant.
	// A transaction that is open is not readable yet.
	Ends(dst []int64) []int64
	// Start gives the positions at which a new reader begins; mode is the source's start option, "earliest" or "latest".
	Start(mode string) ([]int64, error)
	// Open makes a reader of one partition that decodes the given columns of the source, by index in its declaration,
	// generated ones excluded. Columns may be empty: then only the number of rows and their offsets count.
	// A source is read by one goroutine per partition, or per range if it is Striped: each opens its own.
	Open(partition int, columns []int) (Partition, error)
}

// Striped is a source whose partitions can be cut into ranges that different workers read.
type Striped interface {
	Source
	// MaxTimeBefore is the greatest event time of the partition's rows before pos, in microseconds, and false when there are none.
	MaxTimeBefore(partition int, pos int64) (int64, bool)
}

// Late is a source that can make some columns after the fact, for those rows only that are wanted: where a filter stands behind it.
type Late interface {
	Source
	// MakesLate tells whether that pays for a column: it costs to make, and its rows cannot fail.
	MakesLate(column int) bool
	// OpenLate is Open, but the columns in late, which are not among columns, are not read: Rows.Make makes them.
	OpenLate(partition int, columns, late []int) (Partition, error)
}

// Bounded is a source that ends: when a reader has come to the end of every partition, event time is over and all windows close.
type Bounded interface {
	Source
	// Bound is the position at which each partition ends for good, false while it is not known.
	Bound(partition int) (int64, bool)
}

// Partition reads one partition for one worker. Only one goroutine uses it at a time.
type Partition interface {
	// Read decodes rows from the positions [from, to), at most max of them (it may do fewer), into out, which it resets first.
	// It returns the position to go on from, which is greater than from unless from == to, or unless it gave rows out that all stand at one
	// position (a transaction, where it is committed) and there are more of them: then the next call goes on with these. Rows that are not there any more
	// (deleted by retention) are an error that says how many are missing; positions without a row (control records, gaps left
	// by compaction) are passed over.
	Read(from, to int64, max int, out *Rows) (next int64, err error)
	Close() error
}

// Rows is a chunk of decoded rows, in the order of their offsets. The memory that Cols, Bad, Original and Make show belongs to the
// Partition and is valid until its next Read or Close.
type Rows struct {
	Len int
	// Cols has one vector of Len values for each column that was asked for, in that order. Read may fill the vectors that are
	// there or put its own in their place.
	Cols []*column.Vector
	// Offsets has each row's offset.
	Offsets []int64
	// Positions has each row's position where that is not its offset: a record of a transaction stands where the transaction is committed. Empty: all
	// stand at their offsets.
	Positions []int64
	// Appended is when each row was appended to the log, in microseconds, which bounds how far ahead its event time may be;
	// empty when the source does not know (a generator): then nothing is bounded. It is NotKnown for a row that has no such time: then it is bounded
	// against the time of the epoch that reads it.
	Appended []int64
	// Original gives the record that a row was made of, for dead letters; nil when the source has none.
	Original func(row int) record.Record
	// Make makes late column i, by its place among those that OpenLate was given, for the given rows (indexes, ascending; nil: all)
	// in dst. Nil when there are none.
	Make func(i int, rows []int32, dst *column.Vector)
	// Bad are the records in the range that could not be decoded.
	Bad []Bad
}

// Part makes r the rows [from, to) of another chunk, which stays valid as long as it does. What could not be decoded is not among them.
func (r *Rows) Part(of *Rows, from, to int) {
	*r = Rows{Len: to - from, Offsets: of.Offsets[from:to]}
	for _, c := range of.Cols {
		v := &column.Vector{}
		v.View(c, from, to)
		r.Cols = append(r.Cols, v)
	}
	if len(of.Positions) > 0 {
		r.Positions = of.Positions[from:to]
	}
	if len(of.Appended) > 0 {
		r.Appended = of.Appended[from:to]
	}
	if of.Original != nil {
		r.Original = func(row int) record.Record { return of.Original(from + row) }
	}
	if of.Make != nil {
		var all []int32
		r.Make = func(i int, rows []int32, dst *column.Vector) {
			all = column.RowsBehind(all[:0], rows, from, to-from)
			of.Make(i, all, dst)
		}
	}
}

// NotKnown is no time, in Rows.Appended.
const NotKnown = math.MinInt64

// Bad is one record that could not be decoded.
type Bad struct {
	Record   record.Record // as it came
	Position int64         // as Rows.Positions
	Reason   string
}

// At is to be called before the first row whose position, at, is not its offset: the rows before it stand at theirs.
func (r *Rows) At(at int64) {
	if len(r.Positions) == 0 {
		r.Positions = append(r.Positions, r.Offsets...)
	}
}

// Position is where the row stands.
func (r *Rows) Position(row int) int64 {
	if len(r.Positions) > 0 {
		return r.Positions[row]
	}
	return r.Offsets[row]
}

// Reset empties r for a reader of n columns, keeping memory.
func (r *Rows) Reset(n int) {
	r.Len = 0
	for len(r.Cols) < n {
		r.Cols = append(r.Cols, &column.Vector{})
	}
	r.Cols = r.Cols[:n]
	r.Offsets, r.Positions, r.Appended, r.Original, r.Make = r.Offsets[:0], r.Positions[:0], r.Appended[:0], nil, nil
	clear(r.Bad)
	r.Bad = r.Bad[:0]
}

package connector

import (
	"context"
	"time"
)

// Fetched is a source outside of this node: its rows are brought here in the background before they can be read, into bounded memory. A Fetched serves one
// reader, and does nothing until the first Fetch. Its Ends, Open and what Open gives never wait for the outside; Start may.
type Fetched interface {
	Source
	// Fetch says where the reader stands in each partition: what lies before is given up. It appends to dst the end of what is here from there on, for
	// each partition that is known, and has more brought. A partition that cannot be read on has an end whose Read tells why. wake is called, by any
	// goroutine, when there may be more than was returned; it must not block.
	Fetch(from []int64, wake func(), dst []int64) []int64
	// Cut gives the end nearest to limit, and after from, that splits no transaction that the source knows of.
	Cut(partition int, from, limit int64) int64
	// AtEnd tells, for sure, that the partition had nothing at or after pos a moment ago. One that cannot be reached is not at its end.
	AtEnd(partition int, pos int64) bool
	// Reached tells whether positions are at or past where the partitions ended when they were first seen in this run; false before that.
	Reached(at []int64) bool
	// Health says how the outside is.
	Health() Health
	// Close ends the fetching. Readers of partitions that are open stay usable for what they were told is there.
	Close() error
}

// Health is what is known of something outside.
type Health struct {
	// Err says why it cannot be used now; nil if it can.
	Err error
	// Since is when Err, or its end, was first noticed.
	Since time.Time
	// Lag is how many positions are there that have not been taken over.
	Lag int64
}

// Record is one record on its way out.
type Record struct {
	Timestamp  int64 // milliseconds since 1970
	Key, Value []byte
}

// MaxRecords is how many records one Write holds at most.
const MaxRecords = 10_000

// NoPosition is the position of a target that has none: nothing was ever written to it, or it has forgotten.
const NoPosition = int64(-1)

// Target is where a sink's changelog is delivered to, outside of this node. The position in the changelog is kept there, and moves in the same transaction
// as the data: whatever happens, the two agree. One goroutine uses a Target.
type Target interface {
	// Open connects, shuts out every earlier user of the same target and ends what that left open, and asks where it stands.
	Open(ctx context.Context) (position int64, err error)
	// Write adds records, and moves the position to next, in one transaction. After an error nobody knows whether it did: Open tells. Keys and values are
	// the caller's again when Write returns nil.
	Write(ctx context.Context, records []Record, next int64) error
	// Keep has the position not be forgotten for want of use.
	Keep(ctx context.Context, position int64) error
	// Forget takes away what was kept for the position: the sink is dropped.
	Forget(ctx context.Context) error
	Close() error
}

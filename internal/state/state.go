// Package state owns the rows that operators keep: point tables (key to value), ordered tables (group to rows in order of
// their suffix), and the applier that brings their changes into the database.
//
// Memory is a write-back cache over kv. Rows are bytes in arenas outside the collector's heap, found through indexes of
// integers: there is no Go object a row, and the collector walks nothing.
//
// What always holds:
//   - A row that is not in memory has no change that kv lacks. (So a miss may be answered from kv, whatever the applier is
//     doing.) After a crash this needs Applier.FinishRecovery before the first table is used.
//   - A row changed in the running epoch is never evicted, and keeps its value of the epoch's start until EndEpoch; but for those that Settle has
//     let go of, of which memory knows nothing more until the epoch's unit is applied. No epoch begins before that.
//   - A payload holds the net change of an epoch in absolute values: applying it twice, or again after later ones followed by
//     those later ones, gives the same rows.
//   - Memory is accounted in the budget, to the byte, before it is used.
//
// A table is used by one goroutine at a time; an Applier by any number.
package state

import (
	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/spill"
)

// Spec names a table and says how it behaves.
type Spec struct {
	ID   uint32 // in kv; for an Ephemeral table only what Drop names it by, 0 if nothing needs to
	Name string // for messages and metrics
	// Rows: the rows of a view or table (KindRows), which readers of the published snapshot see; otherwise operator state
	// (KindState).
	Rows bool
	// Fresh: created in this run, so that nothing of it is in kv and a miss is an answer.
	Fresh bool
	// Windowed: every key (of an ordered table: every group prefix) starts with the 9 bytes of its window's end, as rowenc
	// encodes a timestamp that is not NULL. Windows are forgotten as a whole.
	Windowed bool
	// ValueBytes is the usual length of a value, if known: a new row of a point table is made with room for it.
	ValueBytes int
	// Mine tells the worker's own keys among those that the database has; nil: that is not known, and the table is not read ahead (see Preload).
	Mine func(key []byte) bool
	// Ephemeral: in memory only (ad hoc queries, tests): never journaled, never evicted.
	Ephemeral bool
}

// Options of a worker's tables.
type Options struct {
	Name string // of the pool in the memory budget, say "state"
	// DB and Applier may be nil if all tables are Ephemeral.
	DB      *kv.DB
	Applier *Applier
	// Budget is what the arenas are accounted in (a child of the engine's); nil accounts for itself alone.
	Budget *budget.Budget
	// Account is what the tables of an ad hoc query are accounted in, instead of Budget. What it refuses is a panic with its error: the query ends, and its
	// tables with it.
	Account *budget.Account
	// Limit is how much memory the tables may hold before Evict has something to do; 0 is no limit.
	Limit int64
	// Spill is where goes what an epoch gives beyond what may be in memory; nil: nothing does, and it ends in an error.
	Spill *spill.Folder
	// EpochBytes and SpillBytes are EpochLimit and SpillBytes, for tests; 0 derives them from Limit.
	EpochBytes, SpillBytes int64
}

// Ref is a row of a Point table, or a group of an Ordered one. 0 is none. One that was changed in this epoch is valid until
// EndEpoch; any other only until the next Probe on the same table.
type Ref uint32

// Keys is a batch of keys: key i is Data[Off[i]:Off[i+1]]. The caller owns it.
type Keys struct {
	Data []byte
	Off  []uint32
}

// Reset empties k and keeps its memory.
func (k *Keys) Reset() {
	k.Data = k.Data[:0]
	k.Off = append(k.Off[:0], 0)
}

// Len is the number of keys.
func (k *Keys) Len() int { return max(len(k.Off)-1, 0) }

// At is key i.
func (k *Keys) At(i int) []byte { return k.Data[k.Off[i]:k.Off[i+1]:k.Off[i+1]] }

// Append adds a key whose parts are copied.
func (k *Keys) Append(parts ...[]byte) {
	if len(k.Off) == 0 {
		k.Off = append(k.Off, 0)
	}
	for _, p := range parts {
		k.Data = append(k.Data, p...)
	}
	k.End()
}

// End ends a key whose bytes the caller has appended to Data.
func (k *Keys) End() {
	if len(k.Off) == 0 {
		k.Off = append(k.Off, 0)
	}
	k.Off = append(k.Off, uint32(len(k.Data)))
}

// Kind is the journal's kind of entry for the table's changes.
func (s Spec) kind() journal.Kind {
	if s.Rows {
		return journal.KindRows
	}
	return journal.KindState
}

package state

import (
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
)

// Tables are the tables of one worker and island: opens them, accounts their memory, ends their epochs, evicts.
type Tables struct{}

// NewTables makes an empty set.
func NewTables(o Options) *Tables { panic("TODO") }

// Point opens a point table. A table is opened once.
func (t *Tables) Point(spec Spec) *Point { panic("TODO") }

// Ordered opens an ordered table.
func (t *Tables) Ordered(spec Spec) *Ordered { panic("TODO") }

// ChangedBytes is about how large the running epoch's payloads would be now (the coordinator ends an epoch early by it).
func (t *Tables) ChangedBytes() int64 { panic("TODO") }

// Used is the memory of all tables in bytes.
func (t *Tables) Used() int64 { panic("TODO") }

// EndEpoch encodes the net changes of all touched tables into dst (appending to what is there); after it the tables may be
// changed for the next epoch. Refs, Old and Changed of the epoch end here.
func (t *Tables) EndEpoch(dst *Changes) error { panic("TODO") }

// Committed says that the oldest epoch that was ended and not committed yet is in the journal at lsn.
func (t *Tables) Committed(lsn journal.LSN) { panic("TODO") }

// Evict brings memory down to the limit as far as what is applied allows, between epochs (after EndEpoch). It returns how many
// bytes it is still over the limit: the caller then lets the applier apply (ApplyState, Publish), and calls it again.
func (t *Tables) Evict() (over int64) { panic("TODO") }

// Drop closes a table (its job is gone) and gives its memory back; its rows in kv go by AppendDrop.
func (t *Tables) Drop(id uint32) { panic("TODO") }

// Close gives all memory back.
func (t *Tables) Close() { panic("TODO") }

// Point is a table of key to value. An absent key has a ref whose Value is nil; a value of no bytes is not nil.
type Point struct{}

// Probe resolves keys to refs (len(refs) = keys.Len()), reading from kv, sorted, what is not in memory. Equal keys get equal
// refs.
func (p *Point) Probe(keys *Keys, refs []Ref) error { panic("TODO") }

// ProbeOne resolves one key. For a batch use Probe.
func (p *Point) ProbeOne(key []byte) (Ref, error) { panic("TODO") }

// Key is the row's key; valid as long as the ref.
func (p *Point) Key(r Ref) []byte { panic("TODO") }

// Value is the row's value, nil if absent; valid until the row is changed. Not to be written to.
func (p *Point) Value(r Ref) []byte { panic("TODO") }

// Mutable is the row's value to be changed in place, nil if absent. It marks the row changed.
func (p *Point) Mutable(r Ref) []byte { panic("TODO") }

// Fixed is the row's value of n bytes to be changed in place; a row that is absent (or has another length) is made of n zero
// bytes first, and created is true. The hot path of aggregates. It marks the row changed.
func (p *Point) Fixed(r Ref, n int) (value []byte, created bool) { panic("TODO") }

// Set copies value into the row.
func (p *Point) Set(r Ref, value []byte) { panic("TODO") }

// Delete makes the row absent.
func (p *Point) Delete(r Ref) { panic("TODO") }

// Old is the row's value at the start of the epoch, nil if it was absent; valid until EndEpoch.
func (p *Point) Old(r Ref) []byte { panic("TODO") }

// Changed are the refs that were marked changed in this epoch, each once, in order of their first change; some may be equal
// to what they were. Valid until the next change or EndEpoch.
func (p *Point) Changed() []Ref { panic("TODO") }

// DropWindows forgets all windows whose end is at or below upTo.
func (p *Point) DropWindows(upTo int64) { panic("TODO") }

// MinWindow is the lowest end of a window that has (or may have) rows.
func (p *Point) MinWindow() (end int64, ok bool, err error) { panic("TODO") }

// Windows appends the ends of the open windows, lowest first, up to and including max.
func (p *Point) Windows(dst []int64, max int64) ([]int64, error) { panic("TODO") }

// ScanWindow starts it over the live rows of one window, in no order; the table must not be changed until it ends.
func (p *Point) ScanWindow(it *PointIter, end int64) error { panic("TODO") }

// Scan starts it over the live rows with from <= key < to, in order of the key (nil: no bound), merged with kv.
func (p *Point) Scan(it *PointIter, from, to []byte) error { panic("TODO") }

// PointIter walks rows: for it.Next() {...}; then Err and Close.
type PointIter struct{}

func (it *PointIter) Next() bool    { panic("TODO") }
func (it *PointIter) Key() []byte   { panic("TODO") }
func (it *PointIter) Value() []byte { panic("TODO") }
func (it *PointIter) Err() error    { panic("TODO") }
func (it *PointIter) Close() error  { panic("TODO") }

// Ordered is a table of groups (prefix) of rows in order of their suffix, as bytes.
type Ordered struct{}

// Probe resolves group prefixes to refs, reading from kv, sorted, the groups that are not in memory.
func (o *Ordered) Probe(prefixes *Keys, groups []Ref) error { panic("TODO") }

// ProbeOne resolves one group.
func (o *Ordered) ProbeOne(prefix []byte) (Ref, error) { panic("TODO") }

// Prefix is the group's prefix.
func (o *Ordered) Prefix(g Ref) []byte { panic("TODO") }

// Get is the row's value, nil if absent; valid until the table is changed or probed.
func (o *Ordered) Get(g Ref, suffix []byte) ([]byte, error) { panic("TODO") }

// Set copies the value into the row.
func (o *Ordered) Set(g Ref, suffix, value []byte) error { panic("TODO") }

// Delete makes the row absent; deleting what is absent changes nothing.
func (o *Ordered) Delete(g Ref, suffix []byte) error { panic("TODO") }

// Scan starts it over the group's live rows with from <= suffix < to (nil: no bound), from the end if reverse. The group
// must not be changed until it ends, but by it.Delete.
func (o *Ordered) Scan(it *OrderedIter, g Ref, from, to []byte, reverse bool) error { panic("TODO") }

// First and Last are the group's first and last row; ok is false when it is empty. Valid until the table is changed or probed.
func (o *Ordered) First(g Ref) (suffix, value []byte, ok bool, err error) { panic("TODO") }

// Last is First from the other end.
func (o *Ordered) Last(g Ref) (suffix, value []byte, ok bool, err error) { panic("TODO") }

// Empty says whether the group has no live row.
func (o *Ordered) Empty(g Ref) (bool, error) { panic("TODO") }

// ChangedGroups are the groups with a row that was changed in this epoch, each once, in order of their first change.
func (o *Ordered) ChangedGroups() []Ref { panic("TODO") }

// Changed is the number of rows changed in this epoch, Change the i-th: its group, suffix, value at the epoch's start and now
// (nil: absent). The two may be equal. Valid until the next change or EndEpoch.
func (o *Ordered) Changed() int { panic("TODO") }

// Change is the i-th changed row; see Changed.
func (o *Ordered) Change(i int) (g Ref, suffix, old, value []byte) { panic("TODO") }

// DropWindows, MinWindow and Windows are as for Point.
func (o *Ordered) DropWindows(upTo int64) { panic("TODO") }

// MinWindow is as Point's.
func (o *Ordered) MinWindow() (end int64, ok bool, err error) { panic("TODO") }

// Windows is as Point's.
func (o *Ordered) Windows(dst []int64, max int64) ([]int64, error) { panic("TODO") }

// ScanGroups calls fn for every group prefix with a live row, in order, with prefixes from <= p < to (nil: no bound), until it
// returns false. fn may probe and change the table.
func (o *Ordered) ScanGroups(from, to []byte, fn func(prefix []byte) (more bool, err error)) error {
	panic("TODO")
}

// OrderedIter walks a group's rows: for it.Next() {...}; then Err and Close. Reusable; the caller owns it.
type OrderedIter struct{}

func (it *OrderedIter) Next() bool { panic("TODO") }

// Suffix and Value are valid until the next move.
func (it *OrderedIter) Suffix() []byte { panic("TODO") }
func (it *OrderedIter) Value() []byte  { panic("TODO") }

// Delete deletes the row that the iterator is at; it.Next goes on behind it.
func (it *OrderedIter) Delete() error { panic("TODO") }
func (it *OrderedIter) Err() error    { panic("TODO") }
func (it *OrderedIter) Close() error  { panic("TODO") }

// Changes collects the payloads of one epoch: each element is one journal entry's payload, of about a MiB at most (unless one row
// is larger). The memory is the caller's until Reset.
type Changes struct {
	State, Rows [][]byte
	// contains the open payloads' bookkeeping
}

// Reset empties c and keeps its memory up to a cap.
func (c *Changes) Reset() { panic("TODO") }

// Bytes is the size of all payloads.
func (c *Changes) Bytes() int { panic("TODO") }

// AddTo appends all payloads to the unit.
func (c *Changes) AddTo(u *journal.Unit) { panic("TODO") }

// Set, Delete, DropWindows and DropTable add a change by hand: the table writer's, and a dropped job's.
func (c *Changes) Set(kind journal.Kind, table uint32, prefix, suffix, value []byte) { panic("TODO") }

// Delete adds a row's deletion.
func (c *Changes) Delete(kind journal.Kind, table uint32, prefix, suffix []byte) { panic("TODO") }

// DropTable adds the deletion of all rows of a table.
func (c *Changes) DropTable(kind journal.Kind, table uint32) { panic("TODO") }

// Applier brings KindRows and KindState payloads into kv, one for a node. Safe for concurrent use.
type Applier struct{}

// ApplierOptions of an applier.
type ApplierOptions struct {
	DB *kv.DB
}

// NewApplier makes one. Until FinishRecovery it takes everything it is given as durable, and may apply it at once.
func NewApplier(o ApplierOptions) (*Applier, error) { panic("TODO") }

// Apply is the journal's apply callback for KindRows and KindState, when running and when recovering: it copies the payload,
// and skips what kv already has.
func (a *Applier) Apply(lsn journal.LSN, kind journal.Kind, payload []byte) error { panic("TODO") }

// FinishRecovery applies all that was replayed and publishes the first snapshot; last is what journal.Recover returned.
func (a *Applier) FinishRecovery(last journal.LSN) error { panic("TODO") }

// Publish writes the row changes of all units up to and including upTo (which must be durable), merged, in one batch with the
// mark, and publishes a snapshot.
func (a *Applier) Publish(upTo journal.LSN) error { panic("TODO") }

// ApplyState writes the state changes of all units up to and including upTo (which must be durable), merged and sorted, in
// batches; the mark moves with the last.
func (a *Applier) ApplyState(upTo journal.LSN) error { panic("TODO") }

// Applied is the LSN up to which the kind is in kv.
func (a *Applier) Applied(kind journal.Kind) journal.LSN { panic("TODO") }

// Published is the LSN of the published snapshot.
func (a *Applier) Published() journal.LSN { panic("TODO") }

// Snapshot is the published snapshot with its LSN, retained for the caller, who releases it.
func (a *Applier) Snapshot() (*kv.Snapshot, journal.LSN) { panic("TODO") }

// Pending is what was taken and is not in kv.
type Pending struct {
	RowsBytes, StateBytes int64
	Rows, State           int64 // changed rows, not distinct
}

// Pending returns the figures for checkpoint decisions.
func (a *Applier) Pending() Pending { panic("TODO") }

// Close releases the snapshot and memory.
func (a *Applier) Close() { panic("TODO") }

package materialize

import (
	"bytes"
	"slices"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/flow/operator/keyed"
	"github.com/leat-io/leat/internal/state"
)

// Upsert makes a table's changes of the records of its topic: rows, or tombstones with the key only. Of several records of one
// key the last one counts, so its input keeps the order of each partition.
//
// An epoch that changes more than may be in memory goes to runs: what the table has as changed is written as one, and undone. So at the epoch's end the last
// run that has a key says what becomes of its row.
type Upsert struct {
	store
	runs    keyed.Runs
	merging bool
	changed []state.Ref // while a run is made: in order of their keys
	batch   state.Keys
	last    state.Keys // the rows of batch; an empty one is a deletion, others are behind a byte
	next    int
}

// Weights of the records of a run.
const (
	runSet     = 1
	runDeleted = -1
)

// NewUpsert makes an Upsert into a table of the given column types; its input has these columns, then deleted (boolean).
func NewUpsert(env *operator.Env, key []int, types []column.Type) *Upsert {
	return &Upsert{store: newStore(env, key, types)}
}

// Push is operator.Operator's.
func (u *Upsert) Push(_ int, b *column.Batch, _ operator.Output) (bool, error) {
	u.encode(b)
	refs := u.room(b.Len)
	if err := u.table.Probe(&state.Keys{Data: u.keys.Data, Off: u.keys.Off}, refs); err != nil {
		return false, err
	}
	deleted := b.Cols[len(u.types)]
	for i, ref := range refs {
		switch {
		case deleted.Bools[i] && !deleted.IsNull(i):
			if u.table.Value(ref) == nil {
				if !u.runs.Any() {
					continue
				}
				u.table.Set(ref, nil) // an earlier run may have set the row: its deletion is a change
			}
			u.table.Delete(ref)
		default:
			u.table.Set(ref, u.rows.Key(i))
		}
	}
	if most := u.env.Tables.SpillBytes(); most > 0 && u.table.Changing() > most {
		return true, u.addRun()
	}
	return true, nil
}

// addRun makes a run of what has changed, and undoes it in the table.
func (u *Upsert) addRun() error {
	scratch := u.table.Scratch()
	if scratch == nil {
		return nil
	}
	w, err := u.runs.Begin(scratch)
	if err != nil {
		return err
	}
	u.changed = append(u.changed[:0], u.table.Changed()...)
	slices.SortFunc(u.changed, func(a, b state.Ref) int { return bytes.Compare(u.table.Key(a), u.table.Key(b)) })
	for _, ref := range u.changed {
		row, weight := u.table.Value(ref), int64(runSet)
		if row == nil {
			weight = runDeleted
		}
		if err := w.Append(u.table.Key(ref), row, weight); err != nil {
			return err
		}
	}
	if cap(u.changed) > 1<<20 {
		u.changed = nil
	}
	u.table.Revert()
	return w.End()
}

// EndEpoch is operator.Operator's.
func (u *Upsert) EndEpoch(_ *operator.Epoch, out operator.Output) (bool, error) {
	if u.runs.Any() {
		return u.endRuns(out)
	}
	if quiet(out) {
		return true, nil
	}
	changed := u.table.Changed()
	for u.next < len(changed) {
		if out.Full() {
			return false, nil
		}
		u.out.Reset(u.types)
		for u.next < len(changed) && u.out.Len < column.MaxRows-1 && !u.out.Heavy() {
			ref := changed[u.next]
			u.next++
			if err := u.emit(u.table.Old(ref), u.table.Value(ref)); err != nil {
				return false, err
			}
		}
		if err := out.Push(&u.out); err != nil {
			return false, err
		}
	}
	u.next = 0
	return true, nil
}

// emit puts the change of a row into the output, if it is one.
func (u *Upsert) emit(was, is []byte) error {
	if (was == nil) == (is == nil) && bytes.Equal(was, is) {
		return nil
	}
	if was != nil {
		if err := u.appendRow(was, -1); err != nil {
			return err
		}
	}
	if is != nil {
		return u.appendRow(is, 1)
	}
	return nil
}

// endRuns brings what the runs come to into the table and the output, in the order of the keys.
func (u *Upsert) endRuns(out operator.Output) (bool, error) {
	if !u.merging {
		if err := u.addRun(); err != nil {
			return false, err
		}
		if err := u.runs.Open(); err != nil {
			return false, err
		}
		u.merging = true
	}
	silent := quiet(out)
	for u.runs.Next() {
		if out.Full() {
			return false, nil
		}
		if err := u.takeLast(); err != nil {
			return false, err
		}
		refs := u.room(u.batch.Len())
		if err := u.table.Probe(&u.batch, refs); err != nil {
			return false, err
		}
		u.out.Reset(u.types)
		for i, ref := range refs {
			var is []byte
			if row := u.last.At(i); len(row) > 0 {
				is = row[1:]
			}
			if !silent {
				if err := u.emit(u.table.Value(ref), is); err != nil {
					return false, err
				}
			}
			if is == nil {
				u.table.Delete(ref)
			} else {
				u.table.Set(ref, is)
			}
		}
		u.table.Settle()
		if err := out.Push(&u.out); err != nil {
			return false, err
		}
	}
	u.merging = false
	return true, u.runs.Close()
}

// takeLast takes the last record of each of the next keys.
func (u *Upsert) takeLast() error {
	u.batch.Reset()
	u.last.Reset()
	for u.runs.Next() {
		n := u.batch.Len()
		again := n > 0 && bytes.Equal(u.batch.At(n-1), u.runs.Key())
		switch {
		case again:
			u.last.Off = u.last.Off[:n] // the one before does not count
			u.last.Data = u.last.Data[:u.last.Off[n-1]]
		case n >= column.MaxRows/2 || len(u.batch.Data)+len(u.last.Data) >= mergeBytes:
			return nil
		default:
			u.batch.Append(u.runs.Key())
		}
		if u.runs.Weight() == runDeleted {
			u.last.End()
		} else {
			u.last.Append([]byte{1}, u.runs.Row())
		}
		if err := u.runs.Move(); err != nil {
			return err
		}
	}
	return nil
}

// Package materialize keeps the rows of views and tables: Materialize by the net changes of each epoch, Upsert from a table's
// topic, where the last record of a key wins.
package materialize

import (
	"bytes"
	"fmt"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/flow/operator/keyed"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/state"
)

// store is a table of rows by key, shared by both operators.
type store struct {
	env   *operator.Env
	table *state.Point
	key   []int
	all   []int
	types []column.Type
	keys  rowenc.Keys
	rows  rowenc.Keys
	refs  []state.Ref
	out   column.Batch
}

func newStore(env *operator.Env, key []int, types []column.Type) store {
	s := store{env: env, key: key, types: types}
	for i := range types {
		s.all = append(s.all, i)
	}
	spec := env.Spec(0, "rows")
	spec.Rows = true
	s.table = env.Tables.Point(spec)
	return s
}

// encode makes the keys and value rows of a batch.
func (s *store) encode(b *column.Batch) {
	s.keys.Reset()
	if len(s.key) == 0 {
		for range b.Len {
			s.keys.EndKey()
		}
	} else {
		rowenc.AppendKeys(&s.keys, b, s.key)
	}
	s.rows.Reset()
	rowenc.AppendRows(&s.rows, b, s.all)
}

func (s *store) room(n int) []state.Ref {
	if cap(s.refs) < n {
		s.refs = make([]state.Ref, max(n, column.MaxRows))
	}
	return s.refs[:n]
}

// appendRow appends a stored row to the output.
func (s *store) appendRow(row []byte, weight int64) error {
	if err := rowenc.DecodeRow(row, s.types, s.out.Cols); err != nil {
		return err
	}
	s.out.EndRow(weight)
	return nil
}

// quiet says that nobody reads the output.
func quiet(out operator.Output) bool {
	q, ok := out.(interface{ Quiet() bool })
	return ok && q.Quiet()
}

// Table is the stored rows, for backfill.
func (s *store) Table() *state.Point { return s.table }

// Materialize stores its input's rows by stream key.
type Materialize struct {
	store
	name    string
	changes keyed.Changes
	batch   state.Keys
	next    int
}

// New makes a Materialize of rows of the given types whose stream key is key.
func New(env *operator.Env, name string, key []int, types []column.Type) *Materialize {
	return &Materialize{store: newStore(env, key, types), name: name}
}

// Push is operator.Operator's.
func (m *Materialize) Push(_ int, b *column.Batch, _ operator.Output) (bool, error) {
	m.encode(b)
	for i := range b.Len {
		m.changes.Add(m.keys.Key(i), m.rows.Key(i), b.Weight(i))
	}
	return true, m.changes.Account(m.env.Tables, "its rows")
}

// EndEpoch is operator.Operator's.
func (m *Materialize) EndEpoch(_ *operator.Epoch, out operator.Output) (bool, error) {
	silent := quiet(out)
	for m.next < m.changes.Len() {
		if out.Full() {
			return false, nil
		}
		n := min(m.changes.Len()-m.next, column.MaxRows/2)
		m.batch.Reset()
		for i := range n {
			m.batch.Append(m.changes.Keys.Key(m.next + i))
		}
		refs := m.room(n)
		if err := m.table.Probe(&m.batch, refs); err != nil {
			return false, err
		}
		m.out.Reset(m.types)
		for i, ref := range refs {
			if err := m.apply(m.next+i, ref, silent); err != nil {
				return false, err
			}
		}
		m.next += n
		if err := out.Push(&m.out); err != nil {
			return false, err
		}
	}
	m.changes.Release(m.env.Tables)
	m.next = 0
	return true, nil
}

// apply brings the net changes of a key into its stored row and the output.
func (m *Materialize) apply(id int, ref state.Ref, silent bool) error {
	old := m.table.Value(ref)
	left := int64(0) // how often the old row is there in the end
	if old != nil {
		left = 1
	}
	var is []byte
	var err error
	m.changes.Each(id, func(row []byte, w int64) {
		switch {
		case old != nil && bytes.Equal(row, old):
			left += w
		case w == 1 && is == nil:
			is = row
		default:
			err = m.broken(w)
		}
	})
	if err == nil && (left < 0 || left > 1 || left == 1 && is != nil) {
		err = m.broken(left)
	}
	if err != nil {
		return err
	}
	if left == 1 || old == nil && is == nil {
		return nil
	}
	if old != nil {
		if !silent {
			if err := m.appendRow(old, -1); err != nil {
				return err
			}
		}
	}
	if is == nil {
		m.table.Delete(ref)
		return nil
	}
	if !silent {
		if err := m.appendRow(is, 1); err != nil {
			return err
		}
	}
	m.table.Set(ref, is)
	return nil
}

func (m *Materialize) broken(w int64) error {
	return fmt.Errorf("the stream key of %s does not name one row (a row came out with weight %d); please report this plan", m.name, w)
}

// Upsert makes a table's changes of the records of its topic: rows, or tombstones with the key only. Of several records of one
// key the last one counts, so its input keeps the order of each partition.
type Upsert struct {
	store
	next int
}

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
			if u.table.Value(ref) != nil {
				u.table.Delete(ref)
			}
		default:
			u.table.Set(ref, u.rows.Key(i))
		}
	}
	return true, nil
}

// EndEpoch is operator.Operator's.
func (u *Upsert) EndEpoch(_ *operator.Epoch, out operator.Output) (bool, error) {
	if quiet(out) {
		return true, nil
	}
	changed := u.table.Changed()
	for u.next < len(changed) {
		if out.Full() {
			return false, nil
		}
		u.out.Reset(u.types)
		for u.next < len(changed) && u.out.Len < column.MaxRows-1 {
			ref := changed[u.next]
			u.next++
			was, is := u.table.Old(ref), u.table.Value(ref)
			if (was == nil) == (is == nil) && bytes.Equal(was, is) {
				continue
			}
			if was != nil {
				if err := u.appendRow(was, -1); err != nil {
					return false, err
				}
			}
			if is != nil {
				if err := u.appendRow(is, 1); err != nil {
					return false, err
				}
			}
		}
		if err := out.Push(&u.out); err != nil {
			return false, err
		}
	}
	u.next = 0
	return true, nil
}

// Package materialize keeps the rows of views and tables: Materialize by the net changes of each epoch, Upsert from a table's
// topic, where the last record of a key wins.
//
// What always holds: both keep of one epoch no more in memory than Tables.SpillBytes and some batches, where there is a folder for what is more.
package materialize

import (
	"bytes"
	"fmt"
	"slices"

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
	var keyTypes []column.Type
	for _, c := range key {
		if c < len(types) {
			keyTypes = append(keyTypes, types[c])
		}
	}
	var at []int
	for _, c := range env.Owner.Cols {
		at = append(at, slices.Index(key, c))
	}
	spec.Mine = env.KeyOwner(keyTypes, at)
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
	runs    keyed.Runs // of an epoch that changes more than may be in memory
	merging bool       // they are being read
	batch   state.Keys
	next    int
}

// mergeBytes is how much of the runs' rows is in memory at once.
const mergeBytes = 1 << 20

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
	return true, m.changes.Keep(m.env.Tables, &m.runs, m.table.Scratch(), "its rows")
}

// EndEpoch is operator.Operator's.
func (m *Materialize) EndEpoch(_ *operator.Epoch, out operator.Output) (bool, error) {
	if m.runs.Any() {
		return m.endRuns(out)
	}
	if done, err := m.applyAll(out); err != nil || !done {
		return false, err
	}
	m.changes.Release(m.env.Tables)
	m.next = 0
	return true, nil
}

// endRuns applies what is in files and in memory, in the order of the keys: each comes once, and so its row need not stay in memory.
func (m *Materialize) endRuns(out operator.Output) (bool, error) {
	if !m.merging {
		if err := m.runs.Add(&m.changes, m.env.Tables, m.table.Scratch()); err != nil {
			return false, err
		}
		if err := m.runs.Open(); err != nil {
			return false, err
		}
		m.merging, m.next = true, 0
	}
	for {
		if done, err := m.applyAll(out); err != nil || !done {
			return false, err
		}
		m.table.Settle()
		m.changes.Reset()
		m.next = 0
		if !m.runs.Next() {
			break
		}
		if err := m.runs.Fill(&m.changes, column.MaxRows/2, mergeBytes); err != nil {
			return false, err
		}
	}
	m.merging = false
	return true, m.runs.Close()
}

// applyAll applies the changes that are in memory, from next on.
func (m *Materialize) applyAll(out operator.Output) (bool, error) {
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

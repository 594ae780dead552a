// Package join has the joins of two relations.
//
// Join is the inner equi-join of any two Z-sets. A row of one side is matched with the rows that the other side has when it comes,
// and is stored for those that come later, so every pair is met exactly once and weights multiply. Tables "left" and "right" are
// ordered: the prefix is the join key, the suffix the stream key; the value has the rows of that stream key with their weights
// (one, but in the middle of an epoch). Rows with a NULL in the join key match nothing and are not stored.
package join

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/plan"
	"github.com/leat-io/leat/internal/state"
)

var errRow = errors.New("join: malformed row of state")

// side is one input.
type side struct {
	types  []column.Type
	all    []int
	join   []int
	stream []int
	table  *state.Ordered
	first  int // of its columns in the output
}

func newSide(types []column.Type, join, stream []int, table *state.Ordered, first int) side {
	s := side{types: types, join: join, stream: stream, table: table, first: first}
	for i := range types {
		s.all = append(s.all, i)
	}
	return s
}

// output builds joined rows and applies the residual condition.
type output struct {
	env      *operator.Env
	types    []column.Type
	residual *expr.Program
	errs     expr.RowErrors
	rows     []int32
	out      column.Batch
	kept     column.Batch
}

func newOutput(env *operator.Env, left, right []column.Type, residual *expr.Node) (output, error) {
	o := output{env: env, types: append(append([]column.Type{}, left...), right...)}
	o.out.Reset(o.types)
	if residual != nil {
		p, err := expr.Compile(residual, o.types)
		if err != nil {
			return o, err
		}
		o.residual = p
	}
	return o, nil
}

// appendPair appends a row of b and a stored row of the other side.
func (o *output) appendPair(b *column.Batch, row int, mine, other *side, stored []byte, weight int64) error {
	for i, c := range b.Cols {
		o.out.Cols[mine.first+i].AppendFrom(c, row)
	}
	cols := o.out.Cols[other.first : other.first+len(other.types)]
	if err := rowenc.DecodeRow(stored, other.types, cols); err != nil {
		return err
	}
	o.out.EndRow(weight)
	return nil
}

// flush pushes the rows collected that pass the residual condition.
func (o *output) flush(out operator.Output) error {
	if o.out.Len == 0 {
		return nil
	}
	b := &o.out
	if o.out.Heavy() {
		size := int64(o.out.MemSize())
		if err := o.env.Expr.Memory.Take(size); err != nil {
			return err
		}
		defer o.env.Expr.Memory.Give(size)
	}
	if o.residual != nil {
		var err error
		o.rows, err = o.residual.Select(o.env.Errors(&o.errs), b, o.rows[:0])
		if err != nil {
			return err
		}
		o.env.Counts.Failed += int64(o.errs.Len())
		if len(o.rows) < b.Len {
			o.kept.Gather(b, o.rows)
			b = &o.kept
		}
	}
	err := out.Push(b)
	o.out.Reset(o.types)
	return err
}

// Join is the inner join.
type Join struct {
	env   *operator.Env
	sides [2]side
	output

	current  *column.Batch // the batch it stopped in
	finished *column.Batch // a batch that it stopped in and had to finish before another
	port     int
	row      int
	scanning bool
	iter     state.OrderedIter
	versions []byte // what is left of the stored rows at the iterator

	keys   state.Keys
	rowOf  []int32 // the batch's row of each key
	mine   []state.Ref
	other  []state.Ref
	suffix []byte
	value  []byte
	stored []byte
}

// New makes a join of left and right rows with their stream keys.
func New(env *operator.Env, p *plan.Join, left, right []column.Type, leftKey, rightKey []int) (*Join, error) {
	j := &Join{env: env}
	j.sides[0] = newSide(left, p.Left, leftKey, env.Tables.Ordered(spec(env, 0, "left", left, p.Left)), 0)
	j.sides[1] = newSide(right, p.Right, rightKey, env.Tables.Ordered(spec(env, 1, "right", right, p.Right)), len(left))
	var err error
	j.output, err = newOutput(env, left, right, p.Residual)
	return j, err
}

// spec is that of a side's table, whose keys are the columns that its rows were sent by.
func spec(env *operator.Env, i int, name string, types []column.Type, join []int) state.Spec {
	s := env.Spec(i, name)
	var keys []column.Type
	var at []int
	for k, c := range join {
		if c >= len(types) {
			return s
		}
		keys, at = append(keys, types[c]), append(at, k)
	}
	s.Mine = env.KeyOwner(keys, at)
	return s
}

// Push is operator.Operator's.
func (j *Join) Push(port int, b *column.Batch, out operator.Output) (bool, error) {
	if j.finished == b {
		j.finished = nil
		return true, nil
	}
	if j.current != nil && j.current != b {
		// The other input's batch is at the front now: what was begun is finished first.
		if _, err := j.match(j.current, out, true); err != nil {
			return false, err
		}
		j.finished, j.current = j.current, nil
	}
	if j.current == nil {
		if err := j.store(port, b); err != nil {
			return false, err
		}
		j.current, j.port, j.row = b, port, 0
	}
	done, err := j.match(b, out, false)
	if done || err != nil {
		j.current = nil
	}
	return done, err
}

// prefixes makes the join keys of a batch's rows, leaving out those with a NULL.
func prefixes(keys *state.Keys, rowOf []int32, b *column.Batch, cols []int) []int32 {
	keys.Reset()
	rowOf = rowOf[:0]
next:
	for i := range b.Len {
		for _, c := range cols {
			if b.Cols[c].IsNull(i) {
				continue next
			}
		}
		keys.Data = rowenc.AppendKey(keys.Data, b, cols, i)
		keys.End()
		rowOf = append(rowOf, int32(i))
	}
	return rowOf
}

func room(refs []state.Ref, n int) []state.Ref {
	if cap(refs) < n {
		return make([]state.Ref, n, max(n, column.MaxRows))
	}
	return refs[:n]
}

// store adds the batch to its side's table.
func (j *Join) store(port int, b *column.Batch) error {
	s, o := &j.sides[port], &j.sides[1-port]
	j.rowOf = prefixes(&j.keys, j.rowOf, b, s.join)
	j.mine = room(j.mine, len(j.rowOf))
	j.other = room(j.other, len(j.rowOf))
	if err := s.table.Probe(&j.keys, j.mine); err != nil {
		return err
	}
	if err := o.table.Probe(&j.keys, j.other); err != nil {
		return err
	}
	for k, row := range j.rowOf {
		j.suffix = rowenc.AppendKey(j.suffix[:0], b, s.stream, int(row))
		j.stored = rowenc.AppendRow(j.stored[:0], b, s.all, int(row))
		old, err := s.table.Get(j.mine[k], j.suffix)
		if err != nil {
			return err
		}
		if j.value, err = addVersion(j.value[:0], old, j.stored, b.Weight(int(row))); err != nil {
			return err
		}
		if len(j.value) == 0 {
			err = s.table.Delete(j.mine[k], j.suffix)
		} else {
			err = s.table.Set(j.mine[k], j.suffix, j.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addVersion appends old with the weight of row changed by w; a row of weight 0 is left out.
func addVersion(dst, old, row []byte, w int64) ([]byte, error) {
	found := false
	for len(old) > 0 {
		weight, r, rest, err := version(old)
		if err != nil {
			return nil, err
		}
		old = rest
		if !found && bytes.Equal(r, row) {
			found = true
			if weight += w; weight == 0 {
				continue
			}
		}
		dst = appendVersion(dst, r, weight)
	}
	if !found && w != 0 {
		dst = appendVersion(dst, row, w)
	}
	return dst, nil
}

func appendVersion(dst, row []byte, w int64) []byte {
	dst = binary.AppendVarint(dst, w)
	dst = binary.AppendUvarint(dst, uint64(len(row)))
	return append(dst, row...)
}

// version takes the first row with its weight off v.
func version(v []byte) (w int64, row, rest []byte, err error) {
	w, n := binary.Varint(v)
	if n <= 0 {
		return 0, nil, nil, errRow
	}
	size, m := binary.Uvarint(v[n:])
	if m <= 0 || size > uint64(len(v)-n-m) {
		return 0, nil, nil, errRow
	}
	at := n + m
	return w, v[at : at+int(size)], v[at+int(size):], nil
}

// match goes on matching the batch's rows with the other side; to the end if all is set.
func (j *Join) match(b *column.Batch, out operator.Output, all bool) (bool, error) {
	s, o := &j.sides[j.port], &j.sides[1-j.port]
	for j.row < len(j.rowOf) {
		row := int(j.rowOf[j.row])
		if !j.scanning {
			if err := o.table.Scan(&j.iter, j.other[j.row], nil, nil, false); err != nil {
				return false, err
			}
			j.scanning, j.versions = true, nil
		}
		for {
			if len(j.versions) == 0 {
				if !j.iter.Next() {
					break
				}
				j.versions = j.iter.Value()
			}
			w, stored, rest, err := version(j.versions)
			if err != nil {
				return false, err
			}
			j.versions = rest
			if err := j.appendPair(b, row, s, o, stored, w*b.Weight(row)); err != nil {
				return false, err
			}
			if j.out.Full() {
				if err := j.flush(out); err != nil {
					return false, err
				}
				if !all && out.Full() {
					return false, nil
				}
			}
		}
		if err := j.iter.Err(); err != nil {
			return false, err
		}
		if err := j.iter.Close(); err != nil {
			return false, err
		}
		j.scanning = false
		j.row++
	}
	return true, j.flush(out)
}

// EndEpoch is operator.Operator's: everything was emitted as it came.
func (j *Join) EndEpoch(*operator.Epoch, operator.Output) (bool, error) { return true, nil }

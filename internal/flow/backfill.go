package flow

import (
	"bytes"
	"fmt"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/state"
)

// backfill is a scan's first reading of a table or view, in the order of its key. In each epoch the workers read the next rows
// behind the cursor, as they were before the epoch, and the cursor moves; of the epoch's changes those at or before the new
// cursor pass, the others are met later. Rows belong to the worker that owns their key, so a chunk needs no exchange; the
// cursor is the same on all workers.
type backfill struct {
	scan   *node
	maker  *node
	key    []int // columns of the maker's rows
	owner  []int // columns whose hash says which worker has a row
	known  bool
	cursor []byte
	begun  bool
	done   bool
	last   bool // this epoch's chunk reaches the end
	fills  []backfillTask
	keyBuf []byte
}

// backfillTask is a worker's share of the chunk: rows in order of their keys.
type backfillTask struct {
	f    *backfill
	keys rowenc.Keys
	rows rowenc.Keys
	next int
	out  column.Batch
	mine column.Batch
}

// tabler is an operator that keeps the rows of a relation.
type tabler interface{ Table() *state.Point }

func (i *Island) startBackfill(j *job, n *node, m *job) error {
	if !j.spec.Fresh || j.spec.SkipBackfill {
		var st *BackfillState
		for k := range j.spec.Backfill {
			if j.spec.Backfill[k].Node == n.index {
				st = &j.spec.Backfill[k]
			}
		}
		if st == nil || st.Done {
			return nil
		}
		f := newBackfill(i, n, m)
		f.cursor, f.begun = bytes.Clone(st.Cursor), st.Cursor != nil
		n.backfill = f
	} else {
		n.backfill = newBackfill(i, n, m)
	}
	if len(i.workers) > 1 && !n.backfill.known {
		return fmt.Errorf("the rows of %s are not spread by key over the workers; start with one worker until the backfill is done", m.spec.Name)
	}
	j.fills = append(j.fills, n.backfill)
	return nil
}

func newBackfill(i *Island, n *node, m *job) *backfill {
	f := &backfill{scan: n, maker: m.maker, key: m.maker.plan.Key, fills: make([]backfillTask, len(i.workers))}
	if u := m.maker.plan.Upsert; u != nil {
		f.key = u.Key
	}
	if len(i.workers) > 1 {
		f.owner, f.known = owners(m.maker)
	}
	for k := range f.fills {
		f.fills[k].f = f
	}
	return f
}

func (j *job) backfillStates() (states []BackfillState, live bool) {
	live = true
	for _, f := range j.fills {
		s := BackfillState{Node: f.scan.index, Done: f.done}
		if f.begun && !f.done {
			s.Cursor = append([]byte{}, f.cursor...)
		}
		states = append(states, s)
		live = live && f.done
	}
	return states, live
}

// chooseBackfill reads each backfill's next chunk from all workers' tables and finds the new cursor. It runs before any change of
// the epoch.
func (i *Island) chooseBackfill(e *Epoch) error {
	for _, w := range i.workers {
		w.fills = w.fills[:0]
	}
	limit := e.BackfillRows
	if limit <= 0 {
		limit = DefaultBackfillRows
	}
	for _, j := range i.filling {
		for _, f := range j.fills {
			if f.done || j.failed() {
				continue
			}
			if err := i.chooseChunk(f, limit); err != nil {
				j.fail(f.scan, err)
			}
		}
	}
	return nil
}

func (i *Island) chooseChunk(f *backfill, limit int) error {
	var low []byte // the lowest key at which a worker stopped
	for k := range f.fills {
		t := &f.fills[k]
		in := i.workers[k].at(f.maker)
		if err := in.open(); err != nil {
			return err
		}
		stop, err := t.read(in.op.(tabler).Table(), k, len(i.workers), limit)
		if err != nil {
			return err
		}
		if stop != nil && (low == nil || bytes.Compare(stop, low) < 0) {
			low = stop
		}
	}
	f.last = low == nil
	if !f.last {
		f.cursor, f.begun = append(f.cursor[:0], low...), true
	}
	for k := range f.fills {
		t := &f.fills[k]
		n := t.keys.Len()
		for !f.last && n > 0 && bytes.Compare(t.keys.Key(n-1), f.cursor) > 0 {
			n--
		}
		t.next = 0
		t.keys.Off = t.keys.Off[:n+1]
		if n > 0 {
			i.workers[k].fills = append(i.workers[k].fills, t)
		}
	}
	return nil
}

// read collects a worker's rows behind the cursor, at most limit; stop is the last one's key if there may be more.
func (t *backfillTask) read(table *state.Point, k, workers, limit int) (stop []byte, err error) {
	f := t.f
	t.keys.Reset()
	t.rows.Reset()
	var from []byte
	if f.begun {
		from = append(append(f.keyBuf[:0], f.cursor...), 0) // the first key behind the cursor
		f.keyBuf = from
	}
	var it state.PointIter
	if err := table.Scan(&it, from, nil); err != nil {
		return nil, err
	}
	types := types(f.maker.plan)
	for it.Next() {
		if workers > 1 {
			t.mine.Reset(types)
			if err := rowenc.DecodeRow(it.Value(), types, t.mine.Cols); err != nil {
				it.Close()
				return nil, err
			}
			t.mine.EndRow(1)
			if len(f.owner) == 0 {
				if k != 0 {
					continue
				}
			} else if workerOf(groupOf(rowenc.HashRow(&t.mine, f.owner, 0)), workers) != k {
				continue
			}
		}
		t.keys.Append(it.Key())
		t.rows.Append(it.Value())
		if t.keys.Len() >= limit {
			stop = bytes.Clone(it.Key())
			break
		}
	}
	if err := it.Err(); err != nil {
		it.Close()
		return nil, err
	}
	return stop, it.Close()
}

// fillSome pushes the next batch of a backfill's chunk.
func (w *worker) fillSome() bool {
	if len(w.fills) == 0 {
		return false
	}
	t := w.fills[0]
	n := t.f.scan
	more := false
	if !n.job.failed() {
		w.guard(n, func() error {
			types := types(t.f.maker.plan)
			t.out.Reset(types)
			for t.next < t.keys.Len() && t.out.Len < column.MaxRows {
				if err := rowenc.DecodeRow(t.rows.Key(t.next), types, t.out.Cols); err != nil {
					return err
				}
				t.out.EndRow(1)
				t.next++
			}
			more = t.next < t.keys.Len()
			in := w.reach(w.at(n))
			if err := in.open(); err != nil {
				return err
			}
			return in.op.(*scan).emit(&t.out, (*output)(in))
		})
	}
	if !more || n.job.failed() {
		w.fills = w.fills[1:]
	}
	return true
}

// pass appends the rows of the maker's changes that are at or before the cursor.
func (f *backfill) pass(b *column.Batch, dst []int32) []int32 {
	if f.last {
		for i := range b.Len {
			dst = append(dst, int32(i))
		}
		return dst
	}
	if !f.begun {
		return dst
	}
	var key []byte
	for i := range b.Len {
		key = rowenc.AppendKey(key[:0], b, f.key, i)
		if bytes.Compare(key, f.cursor) <= 0 {
			dst = append(dst, int32(i))
		}
	}
	return dst
}

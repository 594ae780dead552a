// Package aggregate groups rows and keeps count, sum, avg, min, max, bool_and and bool_or of each group, exactly, under insertions
// and retractions.
//
// Table 0, "groups", has a row for each group: the number of its rows, then the calls' state (accumulator.go, tail.go). A group
// exists while it has rows; the one group of an aggregate without GROUP BY always exists. One ordered table per min or max over
// an input that retracts has the values with their counts. Keys of windowed groups start with the window's end, so that a closed
// window goes as a whole.
//
// At the end of an epoch every changed group gives its old row with weight -1 and its new one with +1, nothing if they are equal.
package aggregate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/flow/operator/keyed"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/plan"
	"github.com/leat-io/leat/internal/state"
)

// Aggregate is the operator.
type Aggregate struct {
	layout
	env    *operator.Env
	p      *plan.Aggregate
	groups *state.Point

	skey state.Keys
	refs []state.Ref
	vals [][]byte

	scratch, body []byte
	types         []column.Type
	out           column.Batch
	clean         column.Batch
	owned         []uint64

	rowsHeld, partsHeld held // of the epoch, whose groups are yet to be looked for

	watermark int64 // windows that end at or below it are closed
	phase     int
	next      int // of the changed groups
	windows   []int64
	iter      state.PointIter
	scanning  bool

	panes    keyed.Table // pane groups of this epoch
	paneVals []byte
	paneIdx  []int32
	direct   column.Batch
	spread   spreader
	pane     int64
	doPanes  bool
}

// New makes an aggregate over input rows of the given types. watermark is what the operator's watermark had reached before.
func New(env *operator.Env, p *plan.Aggregate, in, out []column.Type, appendOnly bool, watermark int64) (*Aggregate, error) {
	l, err := newLayout(p, in, appendOnly)
	if err != nil {
		return nil, err
	}
	a := &Aggregate{layout: l, env: env, p: p, types: out, watermark: watermark}
	if len(out) != len(p.Groups)+len(p.Calls) {
		return nil, fmt.Errorf("%d output columns for %d groups and %d calls", len(out), len(p.Groups), len(p.Calls))
	}
	ordered := 0
	for i := range a.calls {
		c := &a.calls[i]
		if c.ret == nil {
			continue
		}
		ordered++
		spec := env.Spec(ordered, fmt.Sprintf("%s %d", c.p.Func, ordered))
		spec.Windowed, spec.Mine = a.windowed, a.keyOwner(in)
		c.ret.table = env.Tables.Ordered(spec)
	}
	spec := env.Spec(0, "groups")
	spec.Windowed, spec.Mine = a.windowed, a.keyOwner(in)
	a.groups = env.Tables.Point(spec)
	if p.Hop != nil {
		if p.WindowStart < 0 || p.WindowEnd < 0 {
			return nil, fmt.Errorf("panes need the window's bounds among the groups")
		}
		a.spread = newSpreader(p)
		a.doPanes = a.tails == 0
		a.pane = a.spread.pane
	}
	return a, nil
}

// The input ports.
const (
	// Rows takes rows of the aggregate's input.
	Rows = iota
	// Partials takes what Folds have made of such rows: batches of PartialTypes.
	Partials
)

// Push is operator.Operator's. It always takes the whole batch.
func (a *Aggregate) Push(port int, b *column.Batch, _ operator.Output) (bool, error) {
	switch {
	case port == Partials && a.p.Hop != nil:
		return true, a.pushPartialPanes(b)
	case port == Partials:
		return true, a.addPartials(b)
	}
	a.env.Counts.RowsProcessed += int64(b.Len)
	if a.p.Hop != nil {
		return true, a.pushPanes(b)
	}
	return true, a.add(b)
}

// held are rows that wait until it pays to look for their groups in the database.
type held struct {
	rows  column.Batch
	bytes int64
}

// maxHeld bounds what is held: beyond it wide rows go to their groups in smaller lots.
const maxHeld = 8 << 20

// hold keeps the rows of b, and says whether they are enough.
func (h *held) hold(t *state.Tables, b *column.Batch) (enough bool) {
	if h.rows.Len == 0 {
		h.rows.ResetLike(b)
	}
	h.rows.Append(b)
	size := int64(h.rows.MemSize())
	t.Hold(size - h.bytes)
	h.bytes = size
	return h.rows.Len >= t.Batch() || size >= maxHeld
}

// clear lets go of the rows.
func (h *held) clear(t *state.Tables) {
	t.Hold(-h.bytes)
	h.bytes = 0
	if h.rows.MemSize() > maxHeld/8 {
		h.rows = column.Batch{}
	} else {
		h.rows.Len = 0
	}
}

// add brings the rows of b into their groups: now, or, if groups may have to be read from the database, together with those that come
// after them.
func (a *Aggregate) add(b *column.Batch) error { return a.take(&a.rowsHeld, b, a.update) }

// take gives update the rows of b, or keeps them with those that are held.
func (a *Aggregate) take(h *held, b *column.Batch, update func(*column.Batch) error) error {
	if h.rows.Len == 0 && a.groups.Complete() {
		return update(b)
	}
	if !h.hold(a.env.Tables, b) {
		return nil
	}
	return a.release(h, update)
}

// release gives update the rows that are held.
func (a *Aggregate) release(h *held, update func(*column.Batch) error) error {
	if h.rows.Len == 0 {
		return nil
	}
	err := update(&h.rows)
	h.clear(a.env.Tables)
	return err
}

// probe finds the groups of the n keys in skey; room for their values is made, too.
func (a *Aggregate) probe(n int) ([]state.Ref, error) {
	if cap(a.refs) < n {
		a.refs = make([]state.Ref, max(n, column.MaxRows))
		a.vals = make([][]byte, max(n, column.MaxRows))
	}
	refs := a.refs[:n]
	return refs, a.groups.Probe(&a.skey, refs)
}

// update brings the rows of b into their groups.
func (a *Aggregate) update(b *column.Batch) error {
	if b.Len == 0 {
		return nil
	}
	a.keys.Reset()
	if a.global {
		for range b.Len {
			a.keys.EndKey()
		}
	} else {
		rowenc.AppendKeys(&a.keys, b, a.keyOf)
	}
	a.skey = state.Keys{Data: a.keys.Data, Off: a.keys.Off}
	refs, err := a.probe(b.Len)
	if err != nil {
		return err
	}
	vals := a.vals[:b.Len]
	if a.tails == 0 {
		for i, r := range refs {
			vals[i], _ = a.groups.Fixed(r, a.fixed)
		}
	} else {
		for i, r := range refs {
			if a.groups.Value(r) == nil {
				a.groups.Set(r, a.empty)
			}
			if a.show != nil {
				if err := a.look(b, i, r); err != nil {
					return err
				}
			}
		}
		// A row that was made longer for a later row of the batch is elsewhere now.
		for i, r := range refs {
			vals[i] = a.groups.Mutable(r)
		}
	}
	return a.updateCalls(b, refs, vals)
}

// look notes how a row of b looks in its group.
func (a *Aggregate) look(b *column.Batch, row int, ref state.Ref) error {
	a.show.row = rowenc.AppendRow(a.show.row[:0], b, a.show.cols, row)
	old, _ := section(a.groups.Value(ref), a.fixed, 0)
	body, err := a.show.update(old, b.Weight(row))
	if err == nil && body != nil {
		a.setSection(ref, 0, body)
	}
	return err
}

// updateCalls brings the rows of a batch into the state of the calls.
func (a *Aggregate) updateCalls(b *column.Batch, refs []state.Ref, vals [][]byte) error {
	a.apply(b, vals)
	if a.tails == 0 {
		return nil
	}
	for i := range a.calls {
		c := &a.calls[i]
		if c.sec == nil {
			continue
		}
		if err := a.updateSections(c, b, refs); err != nil {
			return err
		}
	}
	return nil
}

func (a *Aggregate) updateSections(c *call, b *column.Batch, refs []state.Ref) error {
	rows, arg := a.selected(b, c), b.Cols[c.arg]
	if c.ret != nil {
		if cap(c.ret.epoch) < b.Len {
			c.ret.epoch = make([]state.Ref, max(b.Len, column.MaxRows))
		}
		g := c.ret.epoch[:b.Len]
		if err := c.ret.table.Probe(&a.skey, g); err != nil {
			return err
		}
		for _, r := range rows {
			if err := c.ret.change(g[r], arg, int(r), weightOf(b.Weights, r)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, r := range rows {
		old, _ := section(a.groups.Value(refs[r]), a.fixed, c.section)
		var err error
		if a.body, err = c.sec.update(a.body[:0], old, arg, int(r), weightOf(b.Weights, r)); err != nil {
			return err
		}
		a.setSection(refs[r], c.section, a.body)
	}
	return nil
}

// The phases of an epoch's end.
const (
	phasePrepare = iota
	phaseChanged
	phaseClose
	phaseDrop
)

// EndEpoch is operator.Operator's.
func (a *Aggregate) EndEpoch(e *operator.Epoch, out operator.Output) (bool, error) {
	if a.phase == phasePrepare {
		if err := a.release(&a.rowsHeld, a.update); err != nil {
			return false, err
		}
		if err := a.release(&a.partsHeld, a.mergePartials); err != nil {
			return false, err
		}
		if a.global && e.First && a.env.Worker == 0 {
			ref, err := a.groups.ProbeOne(nil)
			if err != nil {
				return false, err
			}
			if a.groups.Value(ref) == nil {
				a.groups.Set(ref, a.empty)
			}
		}
		done, err := a.mergePanes()
		if err != nil || !done {
			return done, err
		}
		if err := a.prepare(); err != nil {
			return false, err
		}
		a.phase, a.next = phaseChanged, 0
	}
	if a.phase == phaseChanged {
		if done, err := a.emitChanged(e, out); err != nil || !done {
			return false, err
		}
		a.phase = phaseClose
		if a.closes() && e.Watermark > a.watermark {
			var err error
			if a.windows, err = a.groups.Windows(a.windows[:0], e.Watermark); err != nil {
				return false, err
			}
			at, _ := slices.BinarySearch(a.windows, a.watermark+1)
			a.windows = a.windows[at:]
			a.next = 0
		} else {
			a.windows = a.windows[:0]
		}
	}
	if a.phase == phaseClose {
		if done, err := a.emitClosed(out); err != nil || !done {
			return false, err
		}
	}
	a.phase = phasePrepare
	if a.windowed && e.Watermark > a.watermark {
		a.watermark = e.Watermark
		if upTo := a.dropTo(e.Watermark); upTo > math.MinInt64 {
			a.groups.DropWindows(upTo)
			for i := range a.calls {
				if r := a.calls[i].ret; r != nil {
					r.table.DropWindows(upTo)
				}
			}
		}
	}
	return true, nil
}

func (a *Aggregate) closes() bool { return a.p.EmitOnClose && a.windowed }

// allowed is how long a closed window's state stays.
func (a *Aggregate) allowed() int64 {
	if a.p.Late.Policy == "correct" {
		return a.p.Late.Allowed
	}
	return 0
}

func (a *Aggregate) dropTo(watermark int64) int64 {
	if watermark == math.MaxInt64 {
		return watermark
	}
	if d := watermark - a.allowed(); d < watermark || a.allowed() == 0 {
		return d
	}
	return math.MinInt64
}

// NextTimer is operator.Timed's: when the next window closes, or its state goes.
func (a *Aggregate) NextTimer() int64 {
	if !a.windowed {
		return math.MaxInt64
	}
	end, ok, err := a.groups.MinWindow()
	if err != nil {
		return math.MinInt64 // the epoch's end meets the error again and reports it
	}
	if !ok {
		return math.MaxInt64
	}
	if a.closes() && a.allowed() > 0 {
		// Windows that are closed and kept come before the one that closes next.
		ws, err := a.groups.Windows(a.windows[:0], math.MaxInt64)
		a.windows = ws[:0]
		if err == nil {
			if at, _ := slices.BinarySearch(ws, a.watermark+1); at < len(ws) {
				return min(ws[at], sum(end, a.allowed()))
			}
		}
	}
	if a.closes() && end > a.watermark {
		return end
	}
	return sum(end, a.allowed())
}

func sum(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxInt64
}

// prepare gives min and max that retract their values of the epoch's end, and takes out groups without rows.
func (a *Aggregate) prepare() error {
	changed := a.groups.Changed()
	for i := range a.calls {
		c := &a.calls[i]
		if c.ret == nil {
			continue
		}
		for _, ref := range changed {
			if a.groups.Value(ref) == nil {
				continue
			}
			g, err := c.ret.table.ProbeOne(a.groups.Key(ref))
			if err != nil {
				return err
			}
			if a.body, err = c.ret.extreme(a.body[:0], g); err != nil {
				return err
			}
			a.setSection(ref, c.section, a.body)
		}
	}
	if a.global {
		return nil
	}
	for _, ref := range changed {
		if v := a.groups.Value(ref); v != nil && get(v, 0) == 0 {
			a.groups.Delete(ref)
		}
	}
	return nil
}

// emitChanged emits the changed groups whose rows are shown: all, or with EMIT ON WINDOW CLOSE those of windows that were closed
// before this epoch.
func (a *Aggregate) emitChanged(e *operator.Epoch, out operator.Output) (bool, error) {
	changed := a.groups.Changed()
	for a.next < len(changed) {
		if out.Full() {
			return false, nil
		}
		a.out.Reset(a.types)
		pairs := false
		for a.next < len(changed) && a.out.Len < column.MaxRows-1 && !a.out.Heavy() {
			ref := changed[a.next]
			a.next++
			if a.closes() && a.endOf(a.groups.Key(ref)) > a.watermark {
				continue
			}
			was, is := a.groups.Old(ref), a.groups.Value(ref)
			if bytes.Equal(was, is) && (was == nil) == (is == nil) {
				continue
			}
			pairs = pairs || was != nil && is != nil
			if was != nil {
				if err := a.appendRow(a.groups.Key(ref), was, -1); err != nil {
					return false, err
				}
			}
			if is != nil {
				if err := a.appendRow(a.groups.Key(ref), is, 1); err != nil {
					return false, err
				}
			}
		}
		if pairs {
			a.cancel()
		}
		if err := out.Push(&a.out); err != nil {
			return false, err
		}
	}
	return true, nil
}

// keyOwner tells which stored keys of groups are this worker's, nil if that is not known. Panes are kept by other keys.
func (a *Aggregate) keyOwner(in []column.Type) func(key []byte) bool {
	if a.p.Hop != nil {
		return nil
	}
	var types []column.Type
	for _, c := range a.keyOf {
		if c >= len(in) {
			return nil
		}
		types = append(types, in[c])
	}
	var at []int
	for _, c := range a.env.Owner.Cols {
		at = append(at, slices.Index(a.keyOf, c))
	}
	return a.env.KeyOwner(types, at)
}

// endOf is the window's end in a stored key.
func (a *Aggregate) endOf(key []byte) int64 {
	if len(key) < 9 || key[0] != 1 {
		return math.MaxInt64
	}
	return int64(binary.BigEndian.Uint64(key[1:]) ^ 1<<63)
}

// appendRow appends a group's output row.
func (a *Aggregate) appendRow(key, row []byte, weight int64) error {
	var err error
	for _, c := range a.outOf {
		if key, err = rowenc.DecodeValueKey(key, a.out.Cols[c]); err != nil {
			return err
		}
	}
	if a.show != nil {
		if err := a.restoreDisplay(row); err != nil {
			return err
		}
	}
	n := len(a.p.Groups)
	for i := range a.calls {
		c := &a.calls[i]
		dst := a.out.Cols[n+i]
		if c.acc != nil {
			err = c.acc.result(row[c.at:], dst)
		} else {
			body, _ := section(row, a.fixed, c.section)
			err = c.sec.result(body, dst)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.p.Func, err)
		}
	}
	a.out.EndRow(weight)
	return nil
}

// cancel takes pairs of an old and an equal new row out of the output.
func (a *Aggregate) cancel() {
	b := &a.out
	if b.Weights == nil {
		return
	}
	a.rows = a.rows[:0]
	for i := 0; i < b.Len; i++ {
		if b.Weights[i] < 0 && i+1 < b.Len && b.Weights[i+1] > 0 && a.equalRows(i) {
			i++
			continue
		}
		a.rows = append(a.rows, int32(i))
	}
	if len(a.rows) < b.Len {
		a.clean.Gather(b, a.rows)
		a.out, a.clean = a.clean, a.out
	}
}

// equalRows says whether rows i and i+1 of the output are equal.
func (a *Aggregate) equalRows(i int) bool {
	for _, c := range a.out.Cols {
		if !equalValues(c, i, i+1) {
			return false
		}
	}
	return true
}

func equalValues(v *column.Vector, i, j int) bool {
	if v.IsNull(i) || v.IsNull(j) {
		return v.IsNull(i) && v.IsNull(j)
	}
	switch v.Type.Kind {
	case column.Bool:
		return v.Bools[i] == v.Bools[j]
	case column.Int16:
		return v.I16[i] == v.I16[j]
	case column.Int32, column.Date:
		return v.I32[i] == v.I32[j]
	case column.Float32:
		return math.Float32bits(v.F32[i]) == math.Float32bits(v.F32[j])
	case column.Float64:
		return math.Float64bits(v.F64[i]) == math.Float64bits(v.F64[j])
	case column.Numeric:
		return v.Dec[i].Scale() == v.Dec[j].Scale() && v.Dec[i].Equal(v.Dec[j])
	case column.IntervalKind:
		return v.Iv[i] == v.Iv[j]
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
		return v.I64[i] == v.I64[j]
	}
	return bytes.Equal(v.Bytes(i), v.Bytes(j))
}

// emitClosed emits the rows of the windows that the watermark has passed in this epoch.
func (a *Aggregate) emitClosed(out operator.Output) (bool, error) {
	for a.next < len(a.windows) {
		if !a.scanning {
			if err := a.groups.ScanWindow(&a.iter, a.windows[a.next]); err != nil {
				return false, err
			}
			a.scanning = true
		}
		more := true
		for more {
			if out.Full() {
				return false, nil
			}
			a.out.Reset(a.types)
			for !a.out.Full() {
				if more = a.iter.Next(); !more {
					break
				}
				if v := a.iter.Value(); get(v, 0) != 0 {
					if err := a.appendRow(a.iter.Key(), v, 1); err != nil {
						return false, err
					}
				}
			}
			if err := out.Push(a.mine(&a.out)); err != nil {
				return false, err
			}
		}
		if err := a.iter.Err(); err != nil {
			return false, err
		}
		if err := a.iter.Close(); err != nil {
			return false, err
		}
		a.scanning = false
		a.next++
	}
	return true, nil
}

// mine keeps the rows that belong to this worker: a scan of the stored table sees all workers' rows.
func (a *Aggregate) mine(b *column.Batch) *column.Batch {
	if !a.env.Owner.Known || b.Len == 0 {
		return b
	}
	cols := make([]int, len(a.env.Owner.Cols))
	for i, c := range a.env.Owner.Cols {
		cols[i] = slices.Index(a.p.Groups, c)
	}
	a.owned = rowenc.HashRows(b, cols, a.owned)
	a.rows = a.rows[:0]
	for i, h := range a.owned {
		if a.env.Owner.Mine(h) {
			a.rows = append(a.rows, int32(i))
		}
	}
	if len(a.rows) == b.Len {
		return b
	}
	a.clean.Gather(b, a.rows)
	return &a.clean
}

// restoreDisplay gives the group columns the values that a row of the group has.
func (a *Aggregate) restoreDisplay(row []byte) error {
	body, _ := section(row, a.fixed, 0)
	if len(body) == 0 {
		return nil
	}
	if err := a.show.decode(body); err != nil {
		return err
	}
	vs := a.show.shown
	for i, in := range a.show.cols {
		for o, g := range a.p.Groups {
			if g != in || vs[i].IsNull(0) {
				continue
			}
			v := a.out.Cols[o]
			last := v.Len - 1
			switch v.Type.Kind {
			case column.Numeric:
				v.Dec[last] = vs[i].Dec[0]
			case column.Float32:
				v.F32[last] = vs[i].F32[0]
			case column.Float64:
				v.F64[last] = vs[i].F64[0]
			case column.IntervalKind:
				v.Iv[last] = vs[i].Iv[0]
			case column.JSONB, column.Array:
				v.Data = append(v.Data[:v.Off[last]], vs[i].Bytes(0)...)
				v.Off[last+1] = uint32(len(v.Data))
			}
		}
	}
	return nil
}

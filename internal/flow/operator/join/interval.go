package join

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/plan"
	"github.com/leat-io/leat/internal/state"
)

// buckets is how many pieces the join's interval is cut into: state is given back, and unmatched rows of a LEFT join come out, when
// the watermark has passed a piece's end.
const buckets = 16

// Interval joins two append-only streams whose times are close: right.time between left.time + Lower and left.time + Upper.
//
// A row is late when its time is behind its own partition's watermark: it is counted and dropped. So a row that is not late
// always finds all its partners. A left row is of no use to later ones once the watermark has passed its time + Upper, a right
// row once it has passed its time - Lower.
//
// Tables "left" and "right" are ordered: the prefix is the join key, the suffix the time and the stream key, the value a byte (1:
// matched) and the row. What expires when is in tables in memory that are made again from these after a restart.
type Interval struct {
	env   *operator.Env
	p     *plan.IntervalJoin
	sides [2]side
	times [2]int
	marks [2]int
	reach [2]int64 // how long after its time a row of the side may find partners
	due   [2]*state.Point
	width int64
	output

	watermark int64

	current, finished *column.Batch
	port, row         int
	scanning          bool
	iter              state.OrderedIter

	keys     state.Keys
	dueKeys  state.Keys
	rowOf    []int32
	mine     []state.Ref
	other    []state.Ref
	dueRefs  []state.Ref
	suffix   []byte
	value    []byte
	from, to []byte
	matched  [][]byte // suffixes of left rows that matched for the first time

	phase   int
	windows []int64
	at      int
	dueIter state.PointIter
	open    bool
}

// NewInterval makes an interval join. marks are the columns with the row watermark (-1: none); reached is the operator's watermark.
func NewInterval(env *operator.Env, p *plan.IntervalJoin, left, right []column.Type, leftKey, rightKey []int, leftMark, rightMark int, reached int64) (*Interval, error) {
	if p.Upper < p.Lower {
		return nil, fmt.Errorf("an interval from %d to %d holds nothing", p.Lower, p.Upper)
	}
	j := &Interval{env: env, p: p, watermark: reached}
	j.times = [2]int{p.LeftTime, p.RightTime}
	j.marks = [2]int{leftMark, rightMark}
	j.reach = [2]int64{p.Upper, -p.Lower}
	j.width = max((p.Upper-p.Lower)/buckets, 1)
	j.sides[0] = newSide(left, p.Left, leftKey, env.Tables.Ordered(env.Spec(0, "left")), 0)
	j.sides[1] = newSide(right, p.Right, rightKey, env.Tables.Ordered(env.Spec(1, "right")), len(left))
	var err error
	if j.output, err = newOutput(env, left, right, p.Residual); err != nil {
		return nil, err
	}
	for i := range j.due {
		spec := env.Spec(2+i, "expiry")
		spec.Ephemeral, spec.Windowed, spec.Rows, spec.Fresh = true, true, false, true
		j.due[i] = env.Tables.Point(spec)
		if !env.Spec(i, "").Fresh {
			if err := j.restore(i); err != nil {
				return nil, err
			}
		}
	}
	return j, nil
}

// restore finds out what expires when from the stored rows.
func (j *Interval) restore(i int) error {
	t := j.sides[i].table
	var it state.OrderedIter
	return t.ScanGroups(nil, nil, func(prefix []byte) (bool, error) {
		g, err := t.ProbeOne(prefix)
		if err != nil {
			return false, err
		}
		if err := t.Scan(&it, g, nil, nil, false); err != nil {
			return false, err
		}
		prefix = append([]byte{}, prefix...)
		last := int64(math.MinInt64)
		first := true
		for it.Next() {
			if first && j.env.Owner.Known {
				// The stored table has all workers' rows.
				one := column.NewBatch(j.sides[i].types, 1)
				if err := rowenc.DecodeRow(it.Value()[1:], j.sides[i].types, one.Cols); err != nil {
					return false, err
				}
				one.EndRow(1)
				if !j.env.Owner.Mine(rowenc.HashRow(one, j.sides[i].join, 0)) {
					break
				}
			}
			first = false
			if end := j.expiry(i, timeOf(it.Suffix())); end != last {
				last = end
				ref, err := j.due[i].ProbeOne(dueKey(nil, end, prefix))
				if err != nil {
					return false, err
				}
				j.due[i].Set(ref, []byte{})
			}
		}
		if err := it.Err(); err != nil {
			return false, err
		}
		return true, it.Close()
	})
}

// expiry is the watermark at or above which a row of side i with time t is of no use: the end of its piece of time.
func (j *Interval) expiry(i int, t int64) int64 {
	r := t % j.width
	if r < 0 {
		r += j.width
	}
	return t - r + j.width + j.reach[i]
}

func dueKey(dst []byte, end int64, prefix []byte) []byte {
	dst = append(dst, 1)
	dst = binary.BigEndian.AppendUint64(dst, uint64(end)^1<<63)
	return append(dst, prefix...)
}

func timeKey(dst []byte, t int64) []byte {
	dst = append(dst, 1)
	return binary.BigEndian.AppendUint64(dst, uint64(t)^1<<63)
}

func timeOf(suffix []byte) int64 { return int64(binary.BigEndian.Uint64(suffix[1:]) ^ 1<<63) }

// Push is operator.Operator's.
func (j *Interval) Push(port int, b *column.Batch, out operator.Output) (bool, error) {
	if j.finished == b {
		j.finished = nil
		return true, nil
	}
	if j.current != nil && j.current != b {
		if _, err := j.match(j.current, out, true); err != nil {
			return false, err
		}
		j.finished, j.current = j.current, nil
	}
	if j.current == nil {
		if b.Weights != nil {
			for _, w := range b.Weights {
				if w < 0 {
					return false, fmt.Errorf("an interval join's input took back a row; join tables without an interval instead")
				}
			}
		}
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

// late says whether a row comes after the time for which its partners are kept.
func (j *Interval) late(port int, b *column.Batch, row int, t int64) bool {
	if m := j.marks[port]; m >= 0 {
		return t < b.Cols[m].I64[row]
	}
	return j.watermark != math.MinInt64 && t < j.watermark
}

func (j *Interval) store(port int, b *column.Batch) error {
	s, o := &j.sides[port], &j.sides[1-port]
	times := b.Cols[j.times[port]]
	j.keys.Reset()
	j.dueKeys.Reset()
	j.rowOf = j.rowOf[:0]
next:
	for i := range b.Len {
		if times.IsNull(i) || times.I64[i] == math.MaxInt64 || times.I64[i] == math.MinInt64 {
			j.env.Counts.Failed++
			continue
		}
		t := times.I64[i]
		if j.late(port, b, i, t) {
			j.env.Counts.Late++
			continue
		}
		for _, c := range s.join {
			if b.Cols[c].IsNull(i) && (port == 1 || !j.p.Outer) {
				j.env.Counts.Unmatched++
				continue next
			}
		}
		at := len(j.keys.Data)
		j.keys.Data = rowenc.AppendKey(j.keys.Data, b, s.join, i)
		j.keys.End()
		j.dueKeys.Data = dueKey(j.dueKeys.Data, j.expiry(port, t), j.keys.Data[at:])
		j.dueKeys.End()
		j.rowOf = append(j.rowOf, int32(i))
	}
	n := len(j.rowOf)
	j.mine, j.other, j.dueRefs = room(j.mine, n), room(j.other, n), room(j.dueRefs, n)
	if err := s.table.Probe(&j.keys, j.mine); err != nil {
		return err
	}
	if err := o.table.Probe(&j.keys, j.other); err != nil {
		return err
	}
	if err := j.due[port].Probe(&j.dueKeys, j.dueRefs); err != nil {
		return err
	}
	for k, row := range j.rowOf {
		j.suffix = timeKey(j.suffix[:0], times.I64[row])
		j.suffix = rowenc.AppendKey(j.suffix, b, s.stream, int(row))
		j.value = rowenc.AppendRow(append(j.value[:0], 0), b, s.all, int(row))
		if err := s.table.Set(j.mine[k], j.suffix, j.value); err != nil {
			return err
		}
		if j.due[port].Value(j.dueRefs[k]) == nil {
			j.due[port].Set(j.dueRefs[k], []byte{})
		}
	}
	return nil
}

// match goes on matching the batch's rows with the other side.
func (j *Interval) match(b *column.Batch, out operator.Output, all bool) (bool, error) {
	s, o := &j.sides[j.port], &j.sides[1-j.port]
	times := b.Cols[j.times[j.port]]
	for j.row < len(j.rowOf) {
		row := int(j.rowOf[j.row])
		if !j.scanning {
			t := times.I64[row]
			low, high := t+j.p.Lower, t+j.p.Upper // right times for a left row
			if j.port == 1 {
				low, high = t-j.p.Upper, t-j.p.Lower
			}
			null := false
			for _, c := range s.join {
				null = null || b.Cols[c].IsNull(row)
			}
			if null {
				j.row++
				continue
			}
			j.from, j.to = timeKey(j.from[:0], low), timeKey(j.to[:0], high+1)
			if err := o.table.Scan(&j.iter, j.other[j.row], j.from, j.to, false); err != nil {
				return false, err
			}
			j.scanning = true
		}
		for j.iter.Next() {
			v := j.iter.Value()
			ok, err := j.pair(b, row, s, o, v[1:])
			if err != nil {
				return false, err
			}
			if ok {
				if err := j.mark(s, j.mine[j.row], b, row); err != nil {
					return false, err
				}
				if v[0] == 0 {
					j.matched = append(j.matched, append([]byte{}, j.iter.Suffix()...))
				}
			}
			if j.out.Full() {
				if err := j.flushAll(out); err != nil {
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
		if err := j.markOther(o, j.other[j.row]); err != nil {
			return false, err
		}
		j.row++
	}
	return true, j.flushAll(out)
}

// pair appends a pair if the residual condition holds for it.
func (j *Interval) pair(b *column.Batch, row int, s, o *side, stored []byte) (bool, error) {
	before := j.out.Len
	if err := j.appendPair(b, row, s, o, stored, 1); err != nil {
		return false, err
	}
	if j.residual == nil {
		return true, nil
	}
	// Whether a row has a match depends on the condition, so it cannot wait for the whole batch.
	var one column.Batch
	one.View(&j.out, before, before+1)
	var err error
	j.rows, err = j.residual.Select(j.env.Errors(&j.errs), &one, j.rows[:0])
	if err != nil {
		return false, err
	}
	j.env.Counts.Failed += int64(j.errs.Len())
	if len(j.rows) == 1 {
		return true, nil
	}
	j.kept.CopyFrom(&j.out)
	j.out.Reset(j.types)
	j.out.AppendRange(&j.kept, 0, before)
	return false, nil
}

// flushAll pushes the pairs, which have passed the condition already.
func (j *Interval) flushAll(out operator.Output) error {
	if j.out.Len == 0 {
		return nil
	}
	err := out.Push(&j.out)
	j.out.Reset(j.types)
	return err
}

// mark notes that a row of the batch has a partner.
func (j *Interval) mark(s *side, g state.Ref, b *column.Batch, row int) error {
	j.suffix = timeKey(j.suffix[:0], b.Cols[j.times[j.port]].I64[row])
	j.suffix = rowenc.AppendKey(j.suffix, b, s.stream, row)
	return j.setMatched(s, g, j.suffix)
}

func (j *Interval) setMatched(s *side, g state.Ref, suffix []byte) error {
	v, err := s.table.Get(g, suffix)
	if err != nil || v == nil || v[0] == 1 {
		return err
	}
	j.value = append(j.value[:0], v...)
	j.value[0] = 1
	return s.table.Set(g, suffix, j.value)
}

// markOther marks the other side's rows that found their first partner.
func (j *Interval) markOther(o *side, g state.Ref) error {
	for _, suffix := range j.matched {
		if err := j.setMatched(o, g, suffix); err != nil {
			return err
		}
	}
	j.matched = j.matched[:0]
	return nil
}

// NextTimer is operator.Timed's: when the next piece of time expires.
func (j *Interval) NextTimer() int64 {
	next := int64(math.MaxInt64)
	for _, d := range j.due {
		if end, ok, err := d.MinWindow(); err == nil && ok {
			next = min(next, end)
		}
	}
	return next
}

// EndEpoch is operator.Operator's: it drops what has expired, and emits the left rows of a LEFT join that stayed alone.
func (j *Interval) EndEpoch(e *operator.Epoch, out operator.Output) (bool, error) {
	for ; j.phase < 2; j.phase++ {
		if done, err := j.expire(j.phase, e.Watermark, out); err != nil || !done {
			return false, err
		}
	}
	j.phase = 0
	j.watermark = max(j.watermark, e.Watermark)
	return true, j.flushAll(out)
}

func (j *Interval) expire(i int, watermark int64, out operator.Output) (bool, error) {
	if j.windows == nil {
		var err error
		if j.windows, err = j.due[i].Windows([]int64{}, watermark); err != nil {
			return false, err
		}
		j.at = 0
	}
	for j.at < len(j.windows) {
		if !j.open {
			if err := j.due[i].ScanWindow(&j.dueIter, j.windows[j.at]); err != nil {
				return false, err
			}
			j.open = true
		}
		for j.dueIter.Next() {
			if err := j.expireGroup(i, j.dueIter.Key()[9:], j.windows[j.at]-j.reach[i], out); err != nil {
				return false, err
			}
			if out.Full() {
				return false, nil
			}
		}
		if err := j.dueIter.Err(); err != nil {
			return false, err
		}
		if err := j.dueIter.Close(); err != nil {
			return false, err
		}
		j.open = false
		j.at++
	}
	if len(j.windows) > 0 {
		j.due[i].DropWindows(watermark)
	}
	j.windows = nil
	return true, nil
}

// expireGroup deletes a group's rows whose time is before end.
func (j *Interval) expireGroup(i int, prefix []byte, end int64, out operator.Output) error {
	s := &j.sides[i]
	g, err := s.table.ProbeOne(prefix)
	if err != nil {
		return err
	}
	j.to = timeKey(j.to[:0], end)
	if err := s.table.Scan(&j.iter, g, nil, j.to, false); err != nil {
		return err
	}
	for j.iter.Next() {
		v := j.iter.Value()
		if v[0] == 0 {
			j.env.Counts.Unmatched++
			if i == 0 && j.p.Outer {
				if err := j.appendAlone(v[1:]); err != nil {
					return err
				}
				if j.out.Full() {
					if err := j.flushAll(out); err != nil {
						return err
					}
				}
			}
		}
		if err := j.iter.Delete(); err != nil {
			return err
		}
	}
	if err := j.iter.Err(); err != nil {
		return err
	}
	return j.iter.Close()
}

// appendAlone appends a left row with NULLs on the right.
func (j *Interval) appendAlone(stored []byte) error {
	n := len(j.sides[0].types)
	if err := rowenc.DecodeRow(stored, j.sides[0].types, j.out.Cols[:n]); err != nil {
		return err
	}
	for _, c := range j.out.Cols[n:] {
		c.AppendNull()
	}
	j.out.EndRow(1)
	return nil
}

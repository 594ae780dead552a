// Package window assigns rows to windows. It keeps nothing: whether a row is late for a window is decided from the row's own
// watermark, so the answer does not depend on batches, workers or time of arrival.
package window

import (
	"fmt"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/sql/plan"
)

// MaxWindows is how many windows a row may be in.
const MaxWindows = 1 << 20

// Assign gives each row its windows: the input's columns, then the window's start and end. Windows are [start, end). A (row,
// window) whose end, plus the allowed lateness, is at or below the row's watermark is late: dropped and counted, and with
// policy "topic" given to Late.
type Assign struct {
	env   *operator.Env
	p     *plan.Window
	mark  int // column of the row watermark, -1
	late  Late
	rows  []int32
	from  []int64
	to    []int64
	gone  []int32 // rows that were late for a window, each once
	out   column.Batch
	whole column.Batch
	side  column.Batch
	ends  [2]*column.Vector
}

// Late takes rows that were late for at least one of their windows.
type Late func(b *column.Batch) error

// New makes the operator over an input whose row watermark is column mark (-1: there is none, nothing is late).
func New(env *operator.Env, p *plan.Window, mark int, in []column.Type, late Late) (*Assign, error) {
	if p.Size <= 0 || p.Slide <= 0 {
		return nil, fmt.Errorf("a window of size %d and slide %d", p.Size, p.Slide)
	}
	if p.Size/p.Slide >= MaxWindows {
		return nil, fmt.Errorf("a row would be in %d windows; the limit is %d", p.Size/p.Slide, MaxWindows)
	}
	t := in[p.Time]
	a := &Assign{env: env, p: p, mark: mark, late: late}
	a.ends[0], a.ends[1] = column.NewVector(t, 0), column.NewVector(t, 0)
	return a, nil
}

// floor is the greatest multiple of d, shifted by offset, at or below t.
func floor(t, d, offset int64) int64 {
	x := t - offset
	r := x % d
	if r < 0 {
		r += d
	}
	return t - r
}

// Gcd is the length of the panes that a window of size and slide is made of.
func Gcd(size, slide int64) int64 {
	for slide != 0 {
		size, slide = slide, size%slide
	}
	return size
}

// First is the start of the earliest window that t is in.
func First(t, size, slide, offset int64) int64 {
	s := floor(t, slide, offset)
	return s - (size-1-(t-s))/slide*slide
}

// Push is operator.Operator's.
func (a *Assign) Push(_ int, b *column.Batch, out operator.Output) (bool, error) {
	times := b.Cols[a.p.Time]
	var marks []int64
	if a.mark >= 0 {
		marks = b.Cols[a.mark].I64
	}
	a.gone = a.gone[:0]
	if a.p.Size == a.p.Slide && times.Valid == nil {
		a.tumble(times.I64[:b.Len], marks)
		if err := a.emit(b, out); err != nil {
			return false, err
		}
		return true, a.sideOut(b)
	}
	pane := a.p.Panes
	paneSize := Gcd(a.p.Size, a.p.Slide)
	most := 4 * column.MaxRows
	if b.Heavy() { // a long row may be in many windows
		most = 16
	}
	for i := range b.Len {
		if times.IsNull(i) || times.I64[i] == 1<<63-1 || times.I64[i] == -1<<63 {
			a.env.Counts.Failed++ // no finite time: in no window
			continue
		}
		t := times.I64[i]
		mark := int64(-1 << 63)
		if marks != nil {
			mark = marks[i]
		}
		last := floor(t, a.p.Slide, a.p.Offset)
		first := First(t, a.p.Size, a.p.Slide, a.p.Offset)
		if last-t+a.p.Size <= 0 { // a slide larger than the size leaves gaps between windows
			continue
		}
		if late := a.lateFor(first, mark); !late && pane {
			p := floor(t, paneSize, a.p.Offset)
			a.add(int32(i), p, p+paneSize)
		} else {
			for s := first; s <= last; s += a.p.Slide {
				if a.lateFor(s, mark) {
					a.env.Counts.Late++
					if n := len(a.gone); n == 0 || a.gone[n-1] != int32(i) {
						a.gone = append(a.gone, int32(i))
					}
					continue
				}
				a.add(int32(i), s, s+a.p.Size)
				if len(a.rows) >= most {
					if err := a.emit(b, out); err != nil {
						return false, err
					}
				}
			}
		}
		if len(a.rows) >= column.MaxRows {
			if err := a.emit(b, out); err != nil {
				return false, err
			}
		}
	}
	if err := a.emit(b, out); err != nil {
		return false, err
	}
	return true, a.sideOut(b)
}

func (a *Assign) add(row int32, from, to int64) {
	a.rows = append(a.rows, row)
	a.from = append(a.from, from)
	a.to = append(a.to, to)
}

// lateFor says whether the window that starts at s is closed for a row with the given watermark.
func (a *Assign) lateFor(s, mark int64) bool {
	if mark == -1<<63 {
		return false
	}
	end := s + a.p.Size
	if a.p.Late.Policy == "correct" {
		end += a.p.Late.Allowed
	}
	return end <= mark
}

// tumble is the loop for windows that do not overlap.
func (a *Assign) tumble(times, marks []int64) {
	size, offset := a.p.Size, a.p.Offset
	for i, t := range times {
		if t == 1<<63-1 || t == -1<<63 {
			a.env.Counts.Failed++
			continue
		}
		x := (t - offset) % size
		if x < 0 {
			x += size
		}
		s := t - x
		if marks != nil && a.lateFor(s, marks[i]) {
			a.env.Counts.Late++
			a.gone = append(a.gone, int32(i))
			continue
		}
		a.rows = append(a.rows, int32(i))
		a.from = append(a.from, s)
		a.to = append(a.to, s+size)
	}
}

// emit pushes the (row, window) pairs collected so far.
func (a *Assign) emit(b *column.Batch, out operator.Output) error {
	n := len(a.rows)
	if n == 0 {
		return nil
	}
	a.ends[0].Resize(a.ends[0].Type, n)
	copy(a.ends[0].I64, a.from)
	a.ends[1].Resize(a.ends[1].Type, n)
	copy(a.ends[1].I64, a.to)
	o := b
	if !a.all(b.Len) {
		a.out.Gather(b, a.rows)
		o = &a.out
	}
	a.whole.Len, a.whole.Weights = n, o.Weights
	a.whole.Cols = append(append(a.whole.Cols[:0], o.Cols...), a.ends[0], a.ends[1])
	a.rows, a.from, a.to = a.rows[:0], a.from[:0], a.to[:0]
	return out.Push(&a.whole)
}

// all says that the pairs are exactly the batch's rows, in order.
func (a *Assign) all(n int) bool {
	if len(a.rows) != n {
		return false
	}
	for i, r := range a.rows {
		if int(r) != i {
			return false
		}
	}
	return true
}

func (a *Assign) sideOut(b *column.Batch) error {
	if a.late == nil || len(a.gone) == 0 {
		return nil
	}
	a.side.Gather(b, a.gone)
	return a.late(&a.side)
}

// EndEpoch is operator.Operator's.
func (a *Assign) EndEpoch(*operator.Epoch, operator.Output) (bool, error) { return true, nil }

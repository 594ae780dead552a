package aggregate

import (
	"encoding/binary"
	"slices"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/plan"
)

// layout is how a group's row is made up, and the calls' loops over batches. The operator has one, and each Fold before its exchange.
type layout struct {
	calls    []call
	fixed    int // bytes of the fixed part
	tails    int // sections behind it
	global   bool
	windowed bool
	keyOf    []int // input columns in the order of the stored key
	outOf    []int // output column of each of keyOf
	show     *display
	empty    []byte // a new group's row

	keys rowenc.Keys
	sel  []filtered
	rows []int32
	all  []int32
}

// call is one aggregate call with where its state is.
type call struct {
	p       plan.Call
	acc     accumulator // nil: in a section
	at      int         // of the fixed part
	sec     sectioned
	section int
	ret     *retracted
	arg     int // -1: none
}

// filtered are the rows of the batch at hand that a filter column lets through.
type filtered struct {
	col  int
	done bool
	rows []int32
}

// newLayout lays out the rows of an aggregate over input rows of the given types. The tables of values that may leave are not opened.
func newLayout(p *plan.Aggregate, in []column.Type, appendOnly bool) (layout, error) {
	l := layout{fixed: 8, global: len(p.Groups) == 0, all: everyRow}
	l.windowed = p.WindowEnd >= 0 && !l.global
	if l.windowed {
		l.keyOf, l.outOf = append(l.keyOf, p.Groups[p.WindowEnd]), append(l.outOf, p.WindowEnd)
		if p.WindowStart >= 0 {
			l.keyOf, l.outOf = append(l.keyOf, p.Groups[p.WindowStart]), append(l.outOf, p.WindowStart)
		}
	}
	for i, g := range p.Groups {
		if !l.windowed || i != p.WindowEnd && i != p.WindowStart {
			l.keyOf, l.outOf = append(l.keyOf, g), append(l.outOf, i)
		}
		if !rowenc.KeepsDisplay(in[g]) {
			if l.show == nil {
				l.show = &display{least: appendOnly}
				l.tails = 1 // section 0
			}
			l.show.cols = append(l.show.cols, g)
			l.show.types = append(l.show.types, in[g])
		}
	}
	for _, c := range p.Calls {
		x := call{p: c, arg: -1}
		if len(c.Args) > 0 {
			x.arg = c.Args[0]
		}
		var err error
		if x.acc, err = newAccumulator(&c, appendOnly); err != nil {
			return l, err
		}
		if x.acc != nil {
			if _, ok := x.acc.(counter); ok && x.arg < 0 && c.Filter < 0 {
				x.at = 0 // count(*) is the group's own count
				x.acc = rowCount{}
			} else {
				x.at = l.fixed
				l.fixed += x.acc.width()
			}
		} else {
			x.section = l.tails
			l.tails++
			largest := c.Func == "max"
			switch {
			case c.Func == "sum" || c.Func == "avg":
				x.sec = &numericSum{avg: c.Func == "avg"}
			case appendOnly:
				x.sec = &kept{max: largest}
			default:
				x.ret = &retracted{kept: kept{max: largest}}
				x.sec = &x.ret.kept
			}
		}
		l.calls = append(l.calls, x)
	}
	l.empty = make([]byte, l.fixed+4*l.tails)
	return l, nil
}

// everyRow are the rows of a batch of the usual size. All aggregates share it, so that one without input costs little; nobody writes to it.
var everyRow = func() []int32 {
	rows := make([]int32, column.MaxRows)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows[:column.MaxRows:column.MaxRows]
}()

// rowCount is count(*): what every group counts anyway.
type rowCount struct{}

func (rowCount) width() int                                             { return 0 }
func (rowCount) update([][]byte, int, *column.Vector, []int32, []int64) {}
func (rowCount) merge(_, _ []byte)                                      {}
func (rowCount) result(v []byte, dst *column.Vector) error {
	dst.AppendInt64(get(v, 0))
	return nil
}

// apply brings the rows of a batch into the fixed parts of their groups' rows.
func (l *layout) apply(b *column.Batch, vals [][]byte) {
	if b.Weights == nil {
		for _, v := range vals {
			binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
		}
	} else {
		for i, v := range vals {
			add(v, 0, b.Weights[i])
		}
	}
	for i := range l.sel {
		l.sel[i].done = false
	}
	for i := range l.calls {
		c := &l.calls[i]
		if c.acc == nil || c.arg < 0 && c.p.Filter < 0 {
			continue
		}
		var arg *column.Vector
		if c.arg >= 0 {
			arg = b.Cols[c.arg]
		}
		c.acc.update(vals, c.at, arg, l.selected(b, c), b.Weights)
	}
}

// merge adds the fixed part of src to that of dst.
func (l *layout) merge(dst, src []byte) {
	add(dst, 0, get(src, 0))
	for i := range l.calls {
		if c := &l.calls[i]; c.acc != nil {
			c.acc.merge(dst[c.at:], src[c.at:])
		}
	}
}

// selected are the rows that a call takes: those that its filter lets through and whose argument is not NULL.
func (l *layout) selected(b *column.Batch, c *call) []int32 {
	for len(l.all) < b.Len {
		l.all = append(l.all, int32(len(l.all)))
	}
	rows := l.all[:b.Len]
	if f := c.p.Filter; f >= 0 {
		k := slices.IndexFunc(l.sel, func(x filtered) bool { return x.col == f })
		if k < 0 {
			k = len(l.sel)
			l.sel = append(l.sel, filtered{col: f})
		}
		if x := &l.sel[k]; !x.done {
			x.rows, x.done = trueRows(b.Cols[f], x.rows), true
		}
		rows = l.sel[k].rows
	}
	if c.arg < 0 || !b.Cols[c.arg].HasNulls() {
		return rows
	}
	arg := b.Cols[c.arg]
	l.rows = l.rows[:0]
	for _, r := range rows {
		if !arg.IsNull(int(r)) {
			l.rows = append(l.rows, r)
		}
	}
	return l.rows
}

// trueRows makes dst the rows of a boolean column that are true.
func trueRows(v *column.Vector, dst []int32) []int32 {
	if cap(dst) < v.Len {
		dst = make([]int32, max(v.Len, column.MaxRows))
	}
	dst = dst[:v.Len]
	n := 0
	for i, x := range v.Bools[:v.Len] {
		dst[n] = int32(i)
		if x && !v.IsNull(i) {
			n++
		}
	}
	return dst[:n]
}

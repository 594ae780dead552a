package expr

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

// Site is one call in a program: what a maker knows before rows come.
type Site struct {
	Args   []column.Type
	Result column.Type // with precision and scale as the Node has them
	// Consts[i] is argument i's value, a vector of one row, when it is a constant; nil otherwise. Patterns, formats and the
	// like are prepared once from it.
	Consts []*column.Vector
	// Pos is where the call is written, for errors.
	Pos int
}

// Kernel computes one call for the rows of a batch. It is used by one goroutine and may keep scratch memory between calls.
//
// It writes Out's slice of the result's kind at the rows of Sel, never elsewhere that it reads later. Validity is the
// framework's: it starts as the AND of the arguments' (all valid with CallsOnNull); Null and Fail clear it.
type Kernel func(c *Call)

// Call is one call of a kernel.
type Call struct {
	Ctx *Context
	N   int // rows of the batch; Out has that many
	// Sel are the rows to compute, ascending; nil means all of N. Rows with NULL arguments are not among them unless the
	// overload is Total or CallsOnNull.
	Sel []int32
	// Args are vectors of N rows, or of one row where Const[i] holds.
	Args  []*column.Vector
	Const []bool
	Out   *column.Vector

	run  *run
	e    *callEval
	want []int32 // the selection that the caller asked for, whatever Sel is
	// piece: Sel is a part of the rows; the kernel is called for the others, too.
	piece bool
	w     TextWriter
}

// Rows are the rows to compute, ascending: Sel, or all.
func (c *Call) Rows() []int32 {
	if c.Sel != nil {
		return c.Sel
	}
	return allRows(c.N)
}

// wanted are the rows that the caller asked for and that have no NULL argument: those that may fail. It is for the
// kernels of dense overloads.
func (c *Call) wanted() []int32 {
	switch {
	case c.Out.Valid == nil && c.want == nil:
		return allRows(c.N)
	case c.Out.Valid == nil:
		return c.want
	case c.want == nil:
		c.e.sel = setBits(c.Out.Valid, c.N, c.e.sel[:0])
	default:
		c.e.sel = validRows(c.Out.Valid, c.want, c.e.sel[:0])
	}
	return c.e.sel
}

// Null makes the row's result NULL.
func (c *Call) Null(row int32) { c.valid().Clear(int(row)) }

// valid is the result's bitmap, made when it is needed.
func (c *Call) valid() column.Bitmap {
	if c.Out.Valid == nil {
		c.e.spare = column.FillAll(c.e.spare, c.N)
		c.Out.Valid = c.e.spare
	}
	return c.Out.Valid
}

// Fail says that the row cannot be computed: its result is NULL and the row is reported. The error is kept, so one that
// has no row's data in it is best made once.
func (c *Call) Fail(row int32, err *pgerr.Error) {
	c.Null(row)
	c.run.fail(row, err)
}

// IsNull tells whether argument k is NULL in a row; only kernels of CallsOnNull overloads need to ask.
func (c *Call) IsNull(k int, row int32) bool {
	v := c.Args[k]
	if v.Valid == nil {
		return false
	}
	if c.Const[k] {
		row = 0
	}
	return v.Valid[row>>6]>>(uint(row)&63)&1 == 0
}

// Col reads an argument of fixed width by row, constant or not.
type Col[T any] struct {
	v    []T
	mask int
}

// At is the value in a row.
func (c Col[T]) At(row int32) T { return c.v[int(row)&c.mask] }

// ptr is At without a copy.
func (c Col[T]) ptr(row int32) *T { return &c.v[int(row)&c.mask] }

func (c *Call) mask(k int) int {
	if c.Const[k] {
		return 0
	}
	return -1
}

// Bools, Int16s and so on read argument k, which must be of the kind. Int32s is for date too, Int64s for time, timestamp and timestamptz.
func (c *Call) Bools(k int) Col[bool]       { return Col[bool]{c.Args[k].Bools, c.mask(k)} }
func (c *Call) Int16s(k int) Col[int16]     { return Col[int16]{c.Args[k].I16, c.mask(k)} }
func (c *Call) Int32s(k int) Col[int32]     { return Col[int32]{c.Args[k].I32, c.mask(k)} }
func (c *Call) Int64s(k int) Col[int64]     { return Col[int64]{c.Args[k].I64, c.mask(k)} }
func (c *Call) Float32s(k int) Col[float32] { return Col[float32]{c.Args[k].F32, c.mask(k)} }
func (c *Call) Float64s(k int) Col[float64] { return Col[float64]{c.Args[k].F64, c.mask(k)} }
func (c *Call) Decimals(k int) Col[decimal.Decimal] {
	return Col[decimal.Decimal]{c.Args[k].Dec, c.mask(k)}
}

func (c *Call) Intervals(k int) Col[column.Interval] {
	return Col[column.Interval]{c.Args[k].Iv, c.mask(k)}
}

// TextCol reads an argument of variable width (text, bytea, jsonb, arrays) by row, constant or not.
type TextCol struct {
	off  []uint32
	data []byte
	mask int
}

// Texts reads argument k.
func (c *Call) Texts(k int) TextCol {
	v := c.Args[k]
	return TextCol{v.Off, v.Data, c.mask(k)}
}

// allBytes is the bytes of all rows one after the other, and whether that is worth looking at: it is not when few rows are asked for. Rows that were not
// asked for, and those that are NULL, have some bytes there, too.
func (c *Call) allBytes(t TextCol) ([]byte, bool) {
	if t.mask == 0 || c.piece || c.Sel != nil && sparse(c.Sel, c.N) {
		return nil, false
	}
	return t.data[t.off[0]:t.off[c.N]], true
}

// At is the bytes in a row: to be read only, and not longer than the call.
func (t TextCol) At(row int32) []byte {
	i := int(row) & t.mask
	return t.data[t.off[i]:t.off[i+1]:t.off[i+1]]
}

// TextWriter writes a result of variable width. Append a row's bytes to Buf, then call End with the row; rows must
// ascend, and rows left out are empty. What appends more than its arguments have asks Room before, or full meanwhile.
type TextWriter struct {
	Buf  []byte
	off  []uint32
	next int32 // the first row whose end is not known
	mark uint32
	max  int          // bytes that Buf may have, until more is asked for; -1 when the row is to be refused
	why  *pgerr.Error // for this reason
	call *Call
}

// Text is the writer of the result.
func (c *Call) Text() *TextWriter { return &c.w }

// Room tells whether the row's value may have n bytes more, of Buf or of what a kernel keeps beside it. If not, Refuse the row.
func (w *TextWriter) Room(n int) bool {
	need := len(w.Buf) + n
	return need <= w.max && need-int(w.mark) <= maxValueBytes || w.more(need)
}

// holds is Room for an array of the parts that a kernel has gathered, and for these. It is asked before each is appended.
func (w *TextWriter) holds(parts *column.Vector) bool {
	return parts.Len&1023 != 0 && len(parts.Data) < pieceBytes || w.Room(2*len(parts.Data)+16*parts.Len)
}

// full tells that the row's value has become too large, or was refused Room: Refuse the row, or End will. What puts many parts together asks it after each, so that it is never
// far beyond.
func (w *TextWriter) full() bool { return len(w.Buf) > w.max && !w.more(len(w.Buf)) }

// more gets room for Buf to have need bytes, and gives Buf that much memory.
func (w *TextWriter) more(need int) bool {
	r := w.call.run
	switch {
	case w.why != nil:
	case need-int(w.mark) > maxValueBytes:
		w.why = errLengthTooLarge
	case need > w.max:
		w.why = r.double(need-w.max, w.max)
	}
	if w.why != nil {
		w.max = -1
		return false
	}
	w.max = r.room
	if need > cap(w.Buf) {
		to := r.spare
		if r.spare = nil; cap(to) < need {
			size := w.max
			if r.ctx.Memory == nil {
				size = max(size, 2*cap(w.Buf))
			}
			to = make([]byte, 0, size)
		}
		w.Buf = append(to[:0], w.Buf...)
	}
	return true
}

// Refuse fails a row for which there was no room.
func (w *TextWriter) Refuse(row int32) {
	why := w.why
	w.Drop()
	w.call.Fail(row, why)
}

// End ends the value of a row with what was appended to Buf since the last End.
func (w *TextWriter) End(row int32) {
	if row != w.next || len(w.Buf) > w.max {
		w.endBehind(row)
		return
	}
	w.mark = uint32(len(w.Buf))
	w.next = row + 1
	w.off[w.next] = w.mark
}

// endBehind is End where rows were left out before, or the result is large.
func (w *TextWriter) endBehind(row int32) {
	for w.next < row {
		w.off[w.next+1] = w.mark
		w.next++
	}
	if w.full() {
		w.Refuse(row)
	}
	w.mark = uint32(len(w.Buf))
	w.off[row+1] = w.mark
	w.next = row + 1
}

// Drop forgets what was appended to Buf since the last End, for a row that turns out to be NULL or to fail.
func (w *TextWriter) Drop() {
	w.Buf = w.Buf[:w.mark]
	w.why, w.max = nil, w.call.run.room
}

// Set is End with a value.
func (w *TextWriter) Set(row int32, value []byte) {
	w.Buf = append(w.Buf, value...)
	w.End(row)
}

// likeFirst makes the result that of argument 0 with other bytes, as many of them: Buf has been given those of all rows, one after the other.
func (w *TextWriter) likeFirst() {
	off := w.call.Args[0].Off
	if base := off[0]; base == 0 {
		copy(w.off, off[:len(w.off)])
	} else {
		for i := range w.off {
			w.off[i] = off[i] - base
		}
	}
	w.mark, w.next = uint32(len(w.Buf)), int32(len(w.off)-1)
}

// finish is called by the framework after a kernel whose result is of variable width.
func (w *TextWriter) finish(out *column.Vector) {
	n := int32(len(w.off) - 1)
	for w.next < n {
		w.off[w.next+1] = w.mark
		w.next++
	}
	out.Data = w.Buf
}

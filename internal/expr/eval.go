package expr

import (
	"math/bits"

	"github.com/leat-io/leat/internal/column"
)

// sparse tells whether a selection is small enough that a kernel which may run over everything should not.
func sparse(sel []int32, n int) bool { return len(sel) < n/4 }

var identity = func() []int32 {
	rows := make([]int32, 1<<16)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}()

// allRows are the rows 0 to n-1; not to be written to.
func allRows(n int) []int32 {
	if n <= len(identity) {
		return identity[:n:n]
	}
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

// trueRows appends those of the selection where a boolean is true.
func trueRows(v *column.Vector, n int, sel, dst []int32) []int32 {
	base := len(dst)
	if sel == nil {
		dst = grow(dst, n)
		k, bs := base, v.Bools[:n]
		for i, b := range bs {
			dst[k] = int32(i)
			k += asInt(b)
		}
		dst = dst[:k]
	} else {
		dst = grow(dst, len(sel))
		k := base
		for _, i := range sel {
			dst[k] = i
			k += asInt(v.Bools[i])
		}
		dst = dst[:k]
	}
	if v.Valid == nil {
		return dst
	}
	return dst[:base+len(validRows(v.Valid, dst[base:], dst[base:base]))]
}

// validRows appends those of the rows that a bitmap has; dst may be rows[:0].
func validRows(valid column.Bitmap, rows, dst []int32) []int32 {
	for _, i := range rows {
		if valid[i>>6]>>(uint(i)&63)&1 != 0 {
			dst = append(dst, i)
		}
	}
	return dst
}

// setBits appends the set bits of the first n.
func setBits(valid column.Bitmap, n int, dst []int32) []int32 {
	for w, x := range valid[:(n+63)>>6] {
		for x != 0 {
			i := w<<6 + bits.TrailingZeros64(x)
			if i >= n {
				return dst
			}
			dst = append(dst, int32(i))
			x &= x - 1
		}
	}
	return dst
}

// grow makes dst longer by n, whatever is in there, and one more in its capacity, for loops that write before they know.
func grow(dst []int32, n int) []int32 {
	base := len(dst)
	if cap(dst)-base < n+1 {
		bigger := make([]int32, base, base+n+1)
		copy(bigger, dst)
		dst = bigger
	}
	return dst[:base+n+1]
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

type columnEval int

func (e columnEval) eval(r *run, _ []int32) *column.Vector { return r.in.column(int(e)) }

type constEval struct{ v *column.Vector }

func (e constEval) eval(*run, []int32) *column.Vector { return e.v }

// selectKernel appends the true rows of a selection. Rows with NULLs are taken out afterwards.
type selectKernel func(c *Call, dst []int32) []int32

// callEval evaluates a call.
type callEval struct {
	kernel  Kernel
	selects selectKernel
	args    []unit
	vecs    []*column.Vector
	consts  []bool
	typ     column.Type
	strict  bool
	total   bool
	konst   bool
	varlen  bool

	out   column.Vector
	spare column.Bitmap
	call  Call
	sel   []int32
}

func (e *callEval) eval(r *run, sel []int32) *column.Vector {
	n, want := r.n, sel
	if e.konst {
		n, sel = 1, nil
	}
	out := &e.out
	if out.Valid != nil {
		e.spare = out.Valid
		out.Valid = nil
	}
	if want != nil && len(want) == 0 {
		return e.nothing(n)
	}
	for i := range e.args {
		e.vecs[i] = e.args[i].eval(r, want)
		if r.err != nil {
			return e.nothing(n)
		}
	}
	out.Resize(e.typ, n)
	out.Valid = nil
	if e.strict {
		for i, v := range e.vecs {
			if v.Valid == nil {
				continue
			}
			if e.consts[i] {
				if v.IsNull(0) {
					return e.nothing(n)
				}
				continue
			}
			if out.Valid == nil {
				e.spare = column.And(e.spare, v.Valid, nil, n)
				out.Valid = e.spare
			} else {
				for w := range out.Valid {
					out.Valid[w] &= v.Valid[w]
				}
			}
		}
	}
	sel0 := sel
	switch {
	case !e.total:
		if out.Valid != nil {
			if sel == nil {
				e.sel = setBits(out.Valid, n, e.sel[:0])
			} else {
				e.sel = validRows(out.Valid, sel, e.sel[:0])
			}
			sel = e.sel
			if len(sel) == n {
				sel = nil
			} else if len(sel) == 0 {
				return e.nothing(n)
			}
		}
	case sel != nil && !e.varlen && !sparse(sel, n):
		sel = nil
	}
	c := &e.call
	*c = Call{Ctx: r.ctx, N: n, Sel: sel, Args: e.vecs, Const: e.consts, Out: out, run: r, e: e, want: sel0}
	if e.konst {
		r.fan, r.fanRows = true, want
	}
	if r.stopped() {
		return e.nothing(n)
	}
	if e.varlen {
		c.w = TextWriter{Buf: out.Data[:0], off: out.Off, max: r.room, call: c}
		c.w.off[0] = 0
	}
	if !e.inPieces(c) {
		e.kernel(c)
	}
	switch {
	case e.varlen:
		c.w.finish(out)
		r.made(out, len(out.Data))
	case e.typ.Kind == column.Numeric:
		r.madeNumbers(out, sel0)
	}
	r.fan = false
	return out
}

// nothing is the result when there is nothing to compute: all NULL.
func (e *callEval) nothing(n int) *column.Vector {
	out := &e.out
	out.Resize(e.typ, n)
	if e.varlen {
		clear(out.Off)
		out.Data = out.Data[:0]
	}
	e.spare = column.FillAll(e.spare, n)
	clear(e.spare)
	out.Valid = e.spare
	return out
}

func (e *callEval) selectRows(r *run, sel, dst []int32) []int32 {
	if e.selects == nil {
		v := e.eval(r, sel)
		if r.err != nil {
			return dst
		}
		return trueRows(v, r.n, sel, dst)
	}
	if sel != nil && len(sel) == 0 {
		return dst
	}
	for i := range e.args {
		e.vecs[i] = e.args[i].eval(r, sel)
		if r.err != nil {
			return dst
		}
		if e.consts[i] && e.vecs[i].IsNull(0) {
			return dst
		}
	}
	c := &e.call
	*c = Call{Ctx: r.ctx, N: r.n, Sel: sel, Args: e.vecs, Const: e.consts, run: r, e: e}
	base := len(dst)
	dst = e.selects(c, dst)
	for i, v := range e.vecs {
		if v.Valid != nil && !e.consts[i] {
			dst = dst[:base+len(validRows(v.Valid, dst[base:], dst[base:base]))]
		}
	}
	return dst
}

// logicEval is AND and OR: each argument sees only the rows that the ones before left open.
type logicEval struct {
	args []unit
	or   bool
	out  column.Vector
	null column.Bitmap
}

func (e *logicEval) eval(r *run, sel []int32) *column.Vector {
	n := r.n
	out := &e.out
	out.Valid = nil
	out.Resize(tBool, n)
	e.null = column.FillAll(e.null, n) // a cleared bit: undecided so far, and NULL if it stays so
	nulls := false
	active := sel
	buf := r.rows.get(n)
	owned := false
	for i := range e.args {
		if active != nil && len(active) == 0 {
			break
		}
		a := &e.args[i]
		v := a.eval(r, active)
		if r.err != nil {
			break
		}
		rows := active
		if rows == nil {
			rows = allRows(n)
		}
		next := buf[:0]
		if a.konst {
			switch {
			case v.IsNull(0):
				nulls = true
				for _, row := range rows {
					e.null.Clear(int(row))
				}
				next = append(next, rows...)
			case v.Bools[0] == e.or:
				for _, row := range rows {
					out.Bools[row] = e.or
					e.null.Set(int(row))
				}
			default:
				next = append(next, rows...)
			}
		} else if v.Valid == nil {
			// Write always, keep when open. next may be the memory of rows: it is never ahead.
			if nulls { // a row that is decided now is not NULL for what came before
				for _, row := range rows {
					if v.Bools[row] == e.or {
						e.null.Set(int(row))
					}
				}
			}
			next = next[:cap(next)]
			k := 0
			for _, row := range rows {
				b := v.Bools[row]
				out.Bools[row] = b
				next[k] = row
				k += asInt(b != e.or)
			}
			next = next[:k]
		} else {
			for _, row := range rows {
				switch {
				case v.IsNull(int(row)):
					nulls = true
					e.null.Clear(int(row))
					next = append(next, row)
				case v.Bools[row] == e.or:
					out.Bools[row] = e.or
					e.null.Set(int(row))
				default:
					next = append(next, row)
				}
			}
		}
		active, owned = next, true
	}
	if owned {
		for _, row := range active {
			out.Bools[row] = !e.or
		}
	}
	r.rows.put(buf)
	if nulls {
		out.Valid = e.null
	}
	return out
}

// selectRows chains the filters of an AND: a row that is not true for one is not looked at by the next. OR tries on.
func (e *logicEval) selectRows(r *run, sel, dst []int32) []int32 {
	if e.or {
		v := e.eval(r, sel)
		if r.err != nil {
			return dst
		}
		return trueRows(v, r.n, sel, dst)
	}
	a, b := r.rows.get(r.n), r.rows.get(r.n)
	for i := range e.args {
		if i == len(e.args)-1 {
			dst = e.args[i].selectRows(r, sel, dst)
			break
		}
		a = e.args[i].selectRows(r, sel, a[:0])
		if r.err != nil || len(a) == 0 {
			break
		}
		sel = a
		a, b = b, a
	}
	r.rows.put(a)
	r.rows.put(b)
	return dst
}

// notEval is NOT.
type notEval struct {
	arg   unit
	out   column.Vector
	spare column.Bitmap
}

func (e *notEval) eval(r *run, sel []int32) *column.Vector {
	v := e.arg.eval(r, sel)
	out := &e.out
	out.Valid = nil
	out.Resize(tBool, v.Len)
	src, dst := v.Bools[:v.Len], out.Bools[:v.Len]
	for i, b := range src {
		dst[i] = !b
	}
	if v.Valid != nil {
		e.spare = column.And(e.spare, v.Valid, nil, v.Len)
		out.Valid = e.spare
	}
	return out
}

// isNullEval is IS NULL.
type isNullEval struct {
	arg unit
	out column.Vector
}

func (e *isNullEval) eval(r *run, sel []int32) *column.Vector {
	v := e.arg.eval(r, sel)
	out := &e.out
	out.Resize(tBool, v.Len)
	out.Valid = nil
	if v.Valid == nil {
		clear(out.Bools)
		return out
	}
	for i := range out.Bools {
		out.Bools[i] = v.Valid[i>>6]>>(uint(i)&63)&1 == 0
	}
	return out
}

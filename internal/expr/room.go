package expr

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// What the values of variable width that one evaluation makes may take together. Rows that take more than batchBytes are evaluated in parts: so what
// fails is decided for each row by itself, and does not depend on the batch that it comes in.
const (
	// freeBytes are not asked for: most evaluations need no more.
	freeBytes = 128 << 10
	// roomStep is how much is asked for at a time.
	roomStep = 1 << 20
	// batchBytes bounds the evaluation of several rows.
	batchBytes = 16 << 20
	// rowBytes bounds the evaluation of one row, and its values, unless Context.Memory does.
	rowBytes = 128 << 20
	// foldBytes bounds constants that are computed when a statement is planned, beside what casts are given: larger ones are left for when they are needed.
	foldBytes = 1 << 20
	// maxValueBytes bounds one value, as in PostgreSQL.
	maxValueBytes = 1<<30 - 1
	// pieceBytes of arguments are given to a kernel at a time, and then it is seen whether the evaluation is to end.
	pieceBytes = 1 << 20
)

var (
	errSplit          = pgerr.Internal("an expression of too many rows at once")
	errStopped        = pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
	errRowTooLarge    = pgerr.Newf(pgerr.ProgramLimitExceeded, "what the expressions of a row give is larger than %d MB", rowBytes>>20)
	errLengthTooLarge = pgerr.New(pgerr.ProgramLimitExceeded, "requested length too large")
)

// ErrSplit is the error of an evaluation whose results are too large together: it has to be done again, for fewer rows at a time. That of one row
// never gives it.
var ErrSplit error = errSplit

// ErrStopped is the error of an evaluation that Context.Stop has ended.
var ErrStopped error = errStopped

// begin is the room of a new evaluation, whose predecessor's results nobody needs any more. A statement's goes on with the memory of the last one, which
// would only be garbage.
func (r *run) begin() {
	spare := []byte(nil)
	if r.memory != nil && r.memory == r.ctx.Memory {
		spare = r.spare
		for _, v := range r.large {
			if c := cap(v.Data); c > cap(spare) && c <= batchBytes {
				spare = v.Data[:0]
			}
		}
	}
	keep := min((cap(spare)+roomStep-1)/roomStep*roomStep, int(r.taken))
	r.taken -= int64(keep)
	r.release()
	if keep > 0 {
		r.memory, r.spare = r.ctx.Memory, spare
		r.taken, r.granted = int64(keep), keep
	}
	r.room = freeBytes + keep
}

// release gives back what the results of the last evaluation have taken.
func (r *run) release() {
	r.memory.Give(r.taken)
	r.taken, r.memory, r.granted, r.spare = 0, nil, 0, nil
	for i, v := range r.large {
		v.Data, r.large[i] = nil, nil
		clear(v.Dec)
	}
	r.large = r.large[:0]
}

// more gets room for n bytes more. The error, if there is none, is that of the row, or ends the evaluation.
func (r *run) more(n int) *pgerr.Error {
	switch {
	case r.err != nil:
		return r.err
	case r.stopped():
		return r.err
	}
	n = (n + roomStep - 1) / roomStep * roomStep
	m := r.ctx.Memory
	if r.n > 1 && r.granted+n > r.share() {
		r.err = errSplit
		return errSplit
	}
	if r.ctx.fold > 0 && r.granted+n > r.ctx.fold || m == nil && r.granted+n > rowBytes {
		return errRowTooLarge
	}
	if err := m.Take(int64(n)); err != nil {
		if r.n > 1 { // fewer rows may fit
			r.err = errSplit
			return errSplit
		}
		return pgerr.From(err)
	}
	r.grant(n)
	return nil
}

// share is how much several rows may be granted: what they are for, behind the evaluation, needs memory, too.
func (r *run) share() int {
	if r.ctx.Memory == nil {
		return batchBytes
	}
	return int(min((r.ctx.Memory.Left()+int64(r.granted))/4, batchBytes))
}

// double gets room for n bytes more, or for as much as there is already: what grows in small steps is not copied often.
func (r *run) double(n, have int) *pgerr.Error {
	m := have
	if r.n > 1 {
		m = min(have, batchBytes-r.granted)
	}
	if r.n > 1 && m > n {
		m = min(m, r.share()-r.granted)
	}
	if m > n && r.ctx.Memory != nil && r.ctx.fold == 0 && r.err == nil && !r.stopped() && r.ctx.Memory.Take(int64(m)) == nil {
		r.grant(m)
		return nil
	}
	return r.more(n)
}

// grant notes n bytes that were taken.
func (r *run) grant(n int) {
	if r.ctx.Memory != nil {
		r.memory = r.ctx.Memory
		r.taken += int64(n)
	}
	r.granted += n
	r.room += n
}

// made takes a result of n bytes from the room. A statement's counts with all the memory that it has; a job's does not, which depends on what came before.
func (r *run) made(v *column.Vector, n int) {
	if cap(v.Data) > freeBytes {
		r.large = append(r.large, v)
		if r.ctx.Memory != nil {
			n = cap(v.Data)
		}
	}
	r.room -= n
}

// madeNumbers takes what large numbers have beside their vector from the room.
func (r *run) madeNumbers(v *column.Vector, rows []int32) {
	n := 0
	for i := range v.Dec {
		n += v.Dec[i].BigSize()
	}
	if n > 0 && r.fits(n, rows) {
		r.room -= n
		r.large = append(r.large, v)
	}
}

// fits makes room for a result of n bytes; if there is none, the evaluation ends, or the rows fail.
func (r *run) fits(n int, rows []int32) bool {
	if n <= r.room {
		return true
	}
	err := r.more(n - r.room)
	if err == nil {
		return true
	}
	if rows == nil {
		rows = allRows(r.n)
	}
	for _, row := range rows {
		r.fail(row, err)
	}
	return false
}

// stopped tells whether the evaluation is to end.
func (r *run) stopped() bool {
	if r.ctx.Stop == nil || !r.ctx.Stop.Load() {
		return false
	}
	r.err = errStopped
	return true
}

// stopped tells a kernel whose rows take long that it may leave.
func (c *Call) stopped() bool { return c.run.stopped() }

// inPieces calls the kernel for a few rows at a time, so that an evaluation over much text can be ended. It tells whether it did.
func (e *callEval) inPieces(c *Call) bool {
	size := 0
	for i, v := range e.vecs {
		if !e.consts[i] && v.Type.Kind.Varlen() {
			size += len(v.Data)
		}
	}
	if size < 2*pieceBytes || c.N == 1 {
		return false
	}
	rows := c.Rows()
	n := max(len(rows)*pieceBytes/size, 1)
	c.piece = true
	for len(rows) > 0 && c.run.err == nil && !c.run.stopped() {
		n = min(n, len(rows))
		c.Sel = rows[:n]
		e.kernel(c)
		rows = rows[n:]
	}
	return true
}

// Eval computes the expression for every row of in. The vector is valid until the next Eval or Select; for a plain column it
// is the input's own. Rows that fail go to ctx.Errors and are NULL; without ctx.Errors the first one is returned.
func (p *Program) Eval(ctx *Context, in *column.Batch) (*column.Vector, error) {
	p.memory.Give(p.held)
	p.memory, p.held = nil, 0
	v, err := p.evalAll(ctx, in)
	if err != ErrSplit {
		return v, err
	}
	if p.whole == nil {
		p.whole = &column.Vector{}
	}
	p.whole.Reset(p.typ)
	if ctx != nil {
		p.memory = ctx.Memory
	}
	size := int64(0)
	err = parts(ctx, in, func(ctx *Context, part *column.Batch, _ int) error {
		v, err := p.evalAll(ctx, part)
		if err != nil {
			return err
		}
		n := int64(v.MemSize())
		if size += n; size > maxValueBytes {
			return errLengthTooLarge
		}
		if err := p.memory.Take(n); err != nil {
			return err
		}
		p.held += n
		p.whole.AppendRange(v, 0, v.Len)
		return nil
	})
	return p.whole, err
}

// Select appends the rows for which the expression, a boolean, is true, in ascending order.
func (p *Program) Select(ctx *Context, in *column.Batch, dst []int32) ([]int32, error) {
	if p.typ.Kind != column.Bool {
		return dst, notPredicate(p.typ)
	}
	base := len(dst)
	out, err := p.selectAll(ctx, in, dst)
	if err != ErrSplit {
		return out, err
	}
	dst = dst[:base]
	err = parts(ctx, in, func(ctx *Context, part *column.Batch, from int) error {
		at := len(dst)
		var err error
		dst, err = p.selectAll(ctx, part, dst)
		for i := at; i < len(dst); i++ {
			dst[i] += int32(from)
		}
		return err
	})
	return dst, err
}

// parts calls do for the halves of a batch, and for halves of these where it gives ErrSplit, in order.
func parts(ctx *Context, in *column.Batch, do func(ctx *Context, part *column.Batch, from int) error) error {
	var c Context
	if ctx != nil {
		c = *ctx
	}
	errs := c.Errors
	var own RowErrors
	part := column.Batch{}
	var halve func(from, to int) error
	half := func(from, to int) error {
		if from == to {
			return nil
		}
		if errs != nil {
			own.Reset()
			c.Errors = &own
		}
		part.View(in, from, to)
		err := do(&c, &part, from)
		if err == ErrSplit && to-from > 1 {
			return halve(from, to)
		}
		if errs != nil {
			for i, row := range own.Rows {
				errs.Add(row+int32(from), own.Errs[i])
			}
		}
		return err
	}
	halve = func(from, to int) error {
		mid := int(uint(from+to) >> 1)
		if err := half(from, mid); err != nil {
			return err
		}
		return half(mid, to)
	}
	return halve(0, in.Len)
}

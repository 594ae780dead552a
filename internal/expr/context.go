package expr

import (
	"sync/atomic"
	"time"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/pgerr"
)

// Context is what an evaluation may depend on beside its input. The zero value means: UTC, the epoch as now(), the first
// failing row ends the evaluation.
type Context struct {
	Now    int64          // what now() is, microseconds since the Unix epoch
	Zone   *time.Location // the session's TimeZone; nil is UTC
	Errors *RowErrors     // where the failures of rows go; nil: Eval and Select return the first
	// Memory is what the statement has for values of variable width; nil: each row may have what a job's may.
	Memory *budget.Account
	// Stop ends an evaluation with ErrStopped when it is set meanwhile; nil: nothing does.
	Stop *atomic.Bool

	fold int // what a constant may take that is computed ahead; 0: it is not
}

func (c *Context) zone() *time.Location {
	if c == nil || c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// RowErrors collects the rows of one batch whose expressions failed. A row is kept once, with its first error, however
// many expressions fail on it. Rows come in no particular order.
type RowErrors struct {
	Rows []int32
	Errs []*pgerr.Error
	bits []uint64
}

// Add notes that a row failed. It keeps no memory but the error.
func (e *RowErrors) Add(row int32, err *pgerr.Error) {
	w := int(row >> 6)
	for len(e.bits) <= w {
		e.bits = append(e.bits, 0)
	}
	if e.bits[w]>>(uint(row)&63)&1 != 0 {
		return
	}
	e.bits[w] |= 1 << (uint(row) & 63)
	e.Rows = append(e.Rows, row)
	e.Errs = append(e.Errs, err)
}

// Len is how many rows failed.
func (e *RowErrors) Len() int { return len(e.Rows) }

// Failed tells whether a row failed.
func (e *RowErrors) Failed(row int32) bool {
	w := int(row >> 6)
	return w < len(e.bits) && e.bits[w]>>(uint(row)&63)&1 != 0
}

// Remaining appends those of n rows that did not fail.
func (e *RowErrors) Remaining(n int, dst []int32) []int32 {
	for i := range int32(n) {
		if !e.Failed(i) {
			dst = append(dst, i)
		}
	}
	return dst
}

// Without appends those of rows that did not fail; dst may be rows[:0].
func (e *RowErrors) Without(rows, dst []int32) []int32 {
	for _, i := range rows {
		if !e.Failed(i) {
			dst = append(dst, i)
		}
	}
	return dst
}

// Reset forgets everything, for the next batch.
func (e *RowErrors) Reset() {
	clear(e.bits)
	clear(e.Errs)
	e.Rows, e.Errs = e.Rows[:0], e.Errs[:0]
}

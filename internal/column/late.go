package column

// Late makes columns of a batch that nobody has needed yet: those whose place in Cols is nil. A batch carries it where the rows
// are about to be filtered, so that what is costly to make is made only for the rows that stay.
type Late interface {
	// Make makes column i in dst, of the given rows only: their indexes in the batch, ascending; nil is all of them. It may be
	// called for as long as the batch is valid.
	Make(i int, rows []int32, dst *Vector)
}

// lateView makes late columns of some rows of a batch.
type lateView struct {
	of   Late
	from int
	n    int
	rows []int32
}

// Make implements Late.
func (v *lateView) Make(col int, rows []int32, dst *Vector) {
	v.rows = RowsBehind(v.rows[:0], rows, v.from, v.n)
	v.of.Make(col, v.rows, dst)
}

// RowsBehind appends to dst what rows of n rows behind the first from ones are in the whole; nil are all n.
func RowsBehind(dst, rows []int32, from, n int) []int32 {
	if rows == nil {
		for row := range n {
			dst = append(dst, int32(from+row))
		}
	}
	for _, row := range rows {
		dst = append(dst, int32(from)+row)
	}
	return dst
}

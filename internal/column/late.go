package column

// Late makes columns of a batch that nobody has needed yet: those whose place in Cols is nil. A batch carries it where the rows
// are about to be filtered, so that what is costly to make is made only for the rows that stay.
type Late interface {
	// Make makes column i in dst, of the given rows only: their indexes in the batch, ascending; nil is all of them. It may be
	// called for as long as the batch is valid.
	Make(i int, rows []int32, dst *Vector)
}

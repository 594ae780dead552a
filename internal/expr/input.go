package expr

import "github.com/leat-io/leat/internal/column"

// input is the rows that a run is over: those of a batch, or some of them.
type input struct {
	batch *column.Batch
	cols  []*column.Vector // what there is; nil: late, or not gathered yet
	rows  []int32          // of the batch, when narrowed
	some  bool             // it is narrowed
	own   []*column.Vector // room for cols, when they are not just the batch's
	made  []*column.Vector // columns that were made or gathered here, kept between uses
}

// begin takes a batch.
func (in *input) begin(b *column.Batch) {
	in.batch, in.some, in.rows = b, false, nil
	in.cols = b.Cols
	if b.Late != nil { // the batch is not ours to put columns into
		in.own = append(in.own[:0], b.Cols...)
		in.cols = in.own
	}
}

// narrow goes on with some rows of what there is now.
func (in *input) narrow(rows []int32) {
	in.rows, in.some = rows, true
	if in.batch.Late == nil {
		in.own = append(in.own[:0], in.batch.Cols...)
		in.cols = in.own
	}
	clear(in.cols)
}

// column is column i of the rows.
func (in *input) column(i int) *column.Vector {
	if v := in.cols[i]; v != nil {
		return v
	}
	if len(in.made) <= i {
		in.made = append(in.made, make([]*column.Vector, len(in.cols)-len(in.made))...)
	}
	v := in.made[i]
	if v == nil {
		v = &column.Vector{}
		in.made[i] = v
	}
	switch src := in.batch.Cols[i]; {
	case src != nil:
		v.Gather(src, in.rows)
	case in.some:
		in.batch.Late.Make(i, in.rows, v)
	default:
		in.batch.Late.Make(i, nil, v)
	}
	in.cols[i] = v
	return v
}

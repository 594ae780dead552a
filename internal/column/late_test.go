package column

import "testing"

// rowsOf makes a column of its rows' numbers.
type rowsOf int

func (n rowsOf) Make(_ int, rows []int32, dst *Vector) {
	dst.Reset(TInt64)
	if rows == nil {
		rows = RowsBehind(nil, nil, 0, int(n))
	}
	for _, row := range rows {
		dst.AppendInt64(int64(row))
	}
}

// TestViewKeepsLateColumns: a view makes its late columns of its own rows, also a view of a view.
func TestViewKeepsLateColumns(t *testing.T) {
	t.Parallel()
	x := &Vector{}
	x.Resize(TInt64, 10)
	for i := range 10 {
		x.I64[i] = int64(10 * i)
	}
	whole := Batch{Len: 10, Cols: []*Vector{nil, x}, Late: rowsOf(10)}
	var part, half Batch
	part.View(&whole, 3, 9)
	half.View(&part, 2, 5)
	for _, c := range []struct {
		b     *Batch
		rows  []int32
		first int64
		n     int
	}{{&part, nil, 3, 6}, {&half, nil, 5, 3}, {&half, []int32{2}, 7, 1}} {
		if c.b.Cols[0] != nil || c.b.Cols[1].I64[0] != 10*(c.first-int64(len(c.rows))*2) {
			t.Errorf("%+v", c.b)
		}
		var made Vector
		c.b.Late.Make(0, c.rows, &made)
		if made.Len != c.n || made.I64[0] != c.first {
			t.Errorf("rows %v: %v, want %d from %d on", c.rows, made.I64, c.n, c.first)
		}
	}
	// What was a view of late columns is one of others, and forgets them.
	part.View(&Batch{Len: 10, Cols: []*Vector{x, x}}, 0, 1)
	if part.Late != nil || part.Cols[0] == nil || part.Cols[0].I64[0] != 0 {
		t.Errorf("%+v", part)
	}
}

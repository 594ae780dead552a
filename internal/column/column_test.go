package column_test

import (
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/columntest"
)

func TestTypeNames(t *testing.T) {
	t.Parallel()
	for want, typ := range map[string]column.Type{
		"integer":                     column.TInt32,
		"double precision":            column.TFloat64,
		"numeric":                     column.TNumeric,
		"numeric(10,2)":               {Kind: column.Numeric, Precision: 10, Scale: 2},
		"text":                        column.TText,
		"character varying":           column.TVarchar,
		"character varying(5)":        {Kind: column.Text, Varchar: true, Precision: 5},
		"timestamp without time zone": column.TTimestamp,
		"timestamp(3) with time zone": {Kind: column.Timestamptz, Precision: 4},
		"time(0) without time zone":   {Kind: column.Time, Precision: 1},
		"interval":                    column.TInterval,
		"text[]":                      column.TTextArray,
		"timestamp with time zone[]":  column.ArrayOf(column.Timestamptz),
		"character varying[]":         {Kind: column.Array, Elem: column.Text, Varchar: true},
	} {
		if got := typ.String(); got != want {
			t.Errorf("%+v is %q, want %q", typ, got, want)
		}
	}
}

func cols(b *column.Batch) []int {
	c := make([]int, len(b.Cols))
	for i := range c {
		c[i] = i
	}
	return c
}

// same fails unless rows of got are those of want, weights included.
func same(t *testing.T, what string, got, want *column.Batch, rows []int32) {
	t.Helper()
	if err := got.Validate(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got.Len != len(rows) {
		t.Fatalf("%s: %d rows, want %d", what, got.Len, len(rows))
	}
	c := cols(want)
	for i, r := range rows {
		if !column.RowsEqual(got, c, i, want, c, int(r)) || got.Weight(i) != want.Weight(int(r)) {
			t.Fatalf("%s: row %d is not row %d of the source", what, i, r)
		}
	}
}

// TestBatchesCopyTheirRows runs every way of moving rows over random batches of all types, into batches that are used again.
func TestBatchesCopyTheirRows(t *testing.T) {
	t.Parallel()
	r := columntest.Rand(t)
	types := columntest.Types()
	var dst, view, view2 column.Batch
	for range 60 {
		n := 1 + r.IntN(200)
		src := columntest.Batch(r, types, n)
		if err := src.Validate(); err != nil {
			t.Fatal(err)
		}
		var rows []int32
		for range r.IntN(300) {
			rows = append(rows, int32(r.IntN(n)))
		}
		dst.Gather(src, rows)
		same(t, "Gather", &dst, src, rows)

		all := make([]int32, n)
		for i := range all {
			all[i] = int32(i)
		}
		dst.CopyFrom(src)
		same(t, "CopyFrom", &dst, src, all)
		same(t, "Clone", src.Clone(), src, all)

		from := r.IntN(n)
		to := from + r.IntN(n-from+1)
		view.View(src, from, to)
		same(t, "View", &view, src, all[from:to])
		if to > from {
			at := r.IntN(to - from)
			view2.View(&view, at, to-from)
			same(t, "View of a view", &view2, src, all[from+at:to])
		}

		// Ranges, rows and single rows mixed, from a view as well.
		dst.ResetLike(src)
		dst.AppendRange(src, from, to)
		dst.AppendRows(src, rows)
		dst.AppendRow(src, from)
		dst.Append(&view)
		want := append(append(append(append([]int32{}, all[from:to]...), rows...), int32(from)), all[from:to]...)
		same(t, "appended", &dst, src, want)

		// A view that is reset and filled must not write into what it showed.
		before := src.Clone()
		view.CopyFrom(&dst)
		view2.ResetLike(src)
		for range 10 {
			view2.AppendRow(before, 0)
		}
		same(t, "the source of a view", src, before, all)
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	r := columntest.Rand(t)
	var v column.Vector
	for _, typ := range columntest.Types() {
		src := column.NewVector(typ, 2)
		columntest.AppendRandom(r, src, false)
		src.AppendNull()
		for row := range 2 {
			v.Fill(src, row, 70)
			if err := v.Validate(); err != nil {
				t.Fatal(err)
			}
			for i := range 70 {
				if !v.Equal(i, src, row) {
					t.Fatalf("%s: row %d differs", typ, i)
				}
			}
		}
		v.FillNull(typ, 65)
		if err := v.Validate(); err != nil || v.NullCount() != 65 {
			t.Fatalf("%s: FillNull: %d NULLs, %v", typ, v.NullCount(), err)
		}
	}
}

func TestBitmap(t *testing.T) {
	t.Parallel()
	r := columntest.Rand(t)
	for range 200 {
		n := 1 + r.IntN(300)
		a, b := column.FillAll(nil, n), column.FillAll(nil, n)
		want := 0
		for i := range n {
			a.SetTo(i, r.IntN(3) > 0)
			b.SetTo(i, r.IntN(3) > 0)
			if a.Get(i) && b.Get(i) {
				want++
			}
		}
		c := column.And(nil, a, b, n)
		if got := c.Count(n); got != want || c.All(n) != (want == n) {
			t.Fatalf("%d bits: %d set, want %d", n, got, want)
		}
		if d := column.And(c, a, nil, n); d.Count(n) != a.Count(n) {
			t.Fatal("And with no bitmap is not the other one")
		}
	}
	if column.And(nil, nil, nil, 5) != nil {
		t.Fatal("And of none is not none")
	}
}

func TestArrays(t *testing.T) {
	t.Parallel()
	elems := column.NewVector(column.TText, 3)
	elems.AppendString("a")
	elems.AppendNull()
	elems.AppendString("")
	enc := column.AppendArray(nil, elems, 0, 3)
	if column.ArrayLen(enc) != 3 {
		t.Fatalf("%d elements", column.ArrayLen(enc))
	}
	out := column.NewVector(column.TText, 3)
	for i := -1; i < 4; i++ {
		if err := column.ArrayElem(out, enc, i); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{true, false, true, false, true} {
		if out.IsNull(i) != want {
			t.Fatalf("element %d: NULL is %v", i-1, !want)
		}
	}
	for cut := range len(enc) {
		if column.AppendArrayElems(column.NewVector(column.TText, 3), enc[:cut]) == nil {
			t.Fatalf("an array cut at byte %d is accepted", cut)
		}
	}
}

func FuzzArray(f *testing.F) {
	types := columntest.Types()
	f.Add(byte(0), []byte{1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, kind byte, enc []byte) {
		v := column.NewVector(types[int(kind)%len(types)], 4)
		if column.AppendArrayElems(v, enc) == nil {
			if err := v.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		_ = column.ArrayElem(v, enc, 1)
		_ = column.ArrayDims(nil, enc)
	})
}

func TestGatherDoesNotAllocate(t *testing.T) {
	r := columntest.Rand(t)
	src := columntest.Batch(r, []column.Type{column.TInt64, column.TText, column.TNumeric, column.TBool}, 1000)
	rows := make([]int32, 1000)
	for i := range rows {
		rows[i] = int32(r.IntN(1000))
	}
	var dst, view column.Batch
	if n := testing.AllocsPerRun(20, func() {
		dst.Gather(src, rows)
		dst.AppendRange(src, 3, 900)
		view.View(src, 64, 900)
	}); n > 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkGather(b *testing.B) {
	r := columntest.Rand(b)
	src := columntest.Batch(r, []column.Type{column.TInt64, column.TText}, column.MaxRows)
	rows := make([]int32, column.MaxRows)
	for i := range rows {
		rows[i] = int32(r.IntN(column.MaxRows))
	}
	var dst column.Batch
	b.ReportAllocs()
	for b.Loop() {
		dst.Gather(src, rows)
	}
}

package rowenc_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/columntest"
	"github.com/leat-io/leat/internal/rowenc"
)

func all(b *column.Batch) []int {
	cols := make([]int, len(b.Cols))
	for i := range cols {
		cols[i] = i
	}
	return cols
}

func sign(x int) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}

// TestKeyOrderIsValueOrder compares every pair of rows as bytes and as values; equal rows must also hash equally.
func TestKeyOrderIsValueOrder(t *testing.T) {
	t.Parallel()
	r := columntest.Rand(t)
	for _, typ := range columntest.Types() {
		for range 6 {
			b := columntest.Batch(r, []column.Type{typ}, 60)
			checkOrder(t, b)
		}
	}
	for range 30 {
		b := columntest.Batch(r, someTypes(r), 50)
		checkOrder(t, b)
	}
}

func someTypes(r *rand.Rand) []column.Type {
	types := columntest.Types()
	out := make([]column.Type, 1+r.IntN(5))
	for i := range out {
		out[i] = types[r.IntN(len(types))]
	}
	return out
}

func checkOrder(t *testing.T, b *column.Batch) {
	t.Helper()
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	cols := all(b)
	var keys rowenc.Keys
	keys.Append([]byte("before"))
	rowenc.AppendKeys(&keys, b, cols)
	hashes := rowenc.HashRows(b, cols, nil)
	if keys.Len() != b.Len+1 || string(keys.Key(0)) != "before" {
		t.Fatalf("%d keys for %d rows", keys.Len(), b.Len)
	}
	for i := range b.Len {
		ki := keys.Key(i + 1)
		if one := rowenc.AppendKey(nil, b, cols, i); !bytes.Equal(one, ki) {
			t.Fatalf("%v row %d: AppendKey %x, AppendKeys %x", b.Types(nil), i, one, ki)
		}
		if h := rowenc.HashRow(b, cols, i); h != hashes[i] {
			t.Fatalf("%v row %d: HashRow %x, HashRows %x", b.Types(nil), i, h, hashes[i])
		}
		for j := range b.Len {
			want := column.CompareRows(b, cols, i, b, cols, j)
			if got := bytes.Compare(ki, keys.Key(j+1)); sign(got) != sign(want) {
				t.Fatalf("%v rows %d and %d: values compare %d, keys %d\n%x\n%x", b.Types(nil), i, j, want, got, ki, keys.Key(j+1))
			}
			if (want == 0) != column.RowsEqual(b, cols, i, b, cols, j) {
				t.Fatalf("%v rows %d and %d: Compare %d does not agree with Equal", b.Types(nil), i, j, want)
			}
			if want == 0 && hashes[i] != hashes[j] {
				t.Fatalf("%v rows %d and %d are equal and hash differently", b.Types(nil), i, j)
			}
		}
	}
}

// TestKeysComeBack decodes keys to equal values, and to identical ones where KeepsDisplay says so.
func TestKeysComeBack(t *testing.T) {
	t.Parallel()
	r := columntest.Rand(t)
	for range 60 {
		types := someTypes(r)
		b := columntest.Batch(r, types, 100)
		cols := all(b)
		back := column.NewBatch(types, b.Len)
		for row := range b.Len {
			key := rowenc.AppendKey(nil, b, cols, row)
			n, err := rowenc.SkipKey(append(key, "rest"...), types)
			if err != nil || n != len(key) {
				t.Fatalf("%v row %d: SkipKey %d of %d, %v", types, row, n, len(key), err)
			}
			rest, err := rowenc.DecodeKey(append(key, "rest"...), back.Cols)
			if err != nil || string(rest) != "rest" {
				t.Fatalf("%v row %d: rest %q, %v", types, row, rest, err)
			}
			back.EndRow(1)
			if !column.RowsEqual(b, cols, row, back, cols, row) {
				t.Fatalf("%v row %d comes back as another", types, row)
			}
			for c, typ := range types {
				if rowenc.KeepsDisplay(typ) && !b.Cols[c].IsNull(row) {
					x := rowenc.AppendValue(nil, b.Cols[c], row)
					if y := rowenc.AppendValue(nil, back.Cols[c], row); !bytes.Equal(x, y) {
						t.Fatalf("%v row %d: %x comes back as %x", typ, row, x, y)
					}
				}
			}
		}
		if err := back.Validate(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRowsComeBack decodes value rows to the same bytes, all columns and with some skipped.
func TestRowsComeBack(t *testing.T) {
	t.Parallel()
	r := columntest.Rand(t)
	for range 60 {
		types := someTypes(r)
		b := columntest.Batch(r, types, 100)
		cols := all(b)
		var rows, again rowenc.Keys
		rowenc.AppendRows(&rows, b, cols)
		back, part := column.NewBatch(types, b.Len), column.NewBatch(types, b.Len)
		skip := r.IntN(len(types))
		some := append([]*column.Vector(nil), part.Cols...)
		some[skip] = nil
		for row := range b.Len {
			if err := rowenc.DecodeRow(rows.Key(row), types, back.Cols); err != nil {
				t.Fatal(err)
			}
			back.EndRow(1)
			if err := rowenc.DecodeRow(rows.Key(row), types, some); err != nil {
				t.Fatal(err)
			}
			for c := range some {
				if c != skip && !part.Cols[c].Equal(row, b.Cols[c], row) {
					t.Fatalf("%v row %d column %d differs when column %d is skipped", types, row, c, skip)
				}
			}
		}
		rowenc.AppendRows(&again, back, cols)
		if !bytes.Equal(rows.Data, again.Data) {
			t.Fatalf("%v: rows differ after a round trip", types)
		}
		if part.Cols[skip].Len != 0 {
			t.Fatal("a skipped column has values")
		}
	}
}

// TestIntegersHashAlike: an exchange may meet an integer in any width.
func TestIntegersHashAlike(t *testing.T) {
	t.Parallel()
	b := column.NewBatch([]column.Type{column.TInt16, column.TInt32, column.TInt64}, 4)
	for _, x := range []int16{0, -1, 7, -32768} {
		b.Cols[0].AppendInt16(x)
		b.Cols[1].AppendInt32(int32(x))
		b.Cols[2].AppendInt64(int64(x))
		b.EndRow(1)
	}
	h0, h1, h2 := rowenc.HashRows(b, []int{0}, nil), rowenc.HashRows(b, []int{1}, nil), rowenc.HashRows(b, []int{2}, nil)
	for i := range h0 {
		if h0[i] != h1[i] || h1[i] != h2[i] {
			t.Fatalf("row %d: %x %x %x", i, h0[i], h1[i], h2[i])
		}
	}
}

// TestAppendKeysDoesNotAllocate: the way of the data allocates nothing per batch once buffers are warm.
func TestAppendKeysDoesNotAllocate(t *testing.T) {
	r := columntest.Rand(t)
	b := columntest.Batch(r, []column.Type{column.TInt64, column.TText, column.TNumeric, column.TTimestamp}, 1000)
	for i := range b.Cols[2].Dec {
		b.Cols[2].Dec[i] = columntest.Decimal(r, true)
	}
	var keys rowenc.Keys
	var hashes []uint64
	cols := []int{0, 1, 2, 3}
	if n := testing.AllocsPerRun(10, func() {
		keys.Reset()
		rowenc.AppendKeys(&keys, b, cols)
		keys.Reset()
		rowenc.AppendKeys(&keys, b, []int{0, 1})
		hashes = rowenc.HashRows(b, cols, hashes)
	}); n > 0 {
		t.Fatalf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	types := columntest.Types()
	r := rand.New(rand.NewPCG(1, 1))
	for i, typ := range types {
		b := columntest.Batch(r, []column.Type{typ}, 3)
		for row := range b.Len {
			f.Add(byte(i), rowenc.AppendKey(nil, b, []int{0}, row))
			f.Add(byte(i), rowenc.AppendRow(nil, b, []int{0}, row))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		typ := types[int(kind)%len(types)]
		v := column.NewVector(typ, 1)
		rest, err := rowenc.DecodeValueKey(data, v)
		if err == nil {
			if err := v.Validate(); err != nil {
				t.Fatal(err)
			}
			n, err := rowenc.SkipValueKey(data, typ)
			if err != nil || n != len(data)-len(rest) {
				t.Fatalf("SkipValueKey %d, %v; decoding took %d", n, err, len(data)-len(rest))
			}
			// What is decoded has a key that comes back to the same value.
			key := rowenc.AppendValueKey(nil, v, 0)
			w := column.NewVector(typ, 1)
			if _, err := rowenc.DecodeValueKey(key, w); err != nil || !v.Equal(0, w, 0) {
				t.Fatalf("%x decodes to a value whose key %x does not come back: %v", data, key, err)
			}
		}
		v.Reset(typ)
		if rowenc.DecodeRow(data, []column.Type{typ}, []*column.Vector{v}) == nil {
			if err := v.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func benchBatch(types ...column.Type) *column.Batch {
	r := rand.New(rand.NewPCG(1, 1))
	b := column.NewBatch(types, column.MaxRows)
	for _, v := range b.Cols {
		for range column.MaxRows {
			if v.Type.Kind == column.Text {
				v.AppendString(columntest.Text(r, false))
			} else if v.Type.Kind == column.Numeric {
				v.AppendDecimal(columntest.Decimal(r, true))
			} else {
				columntest.AppendRandom(r, v, false)
			}
		}
	}
	b.Len = column.MaxRows
	return b
}

func BenchmarkAppendKeys(b *testing.B) {
	for _, c := range []struct {
		name  string
		batch *column.Batch
	}{
		{"bigint", benchBatch(column.TInt64)},
		{"bigint,timestamp", benchBatch(column.TInt64, column.TTimestamp)},
		{"integer,bigint,double", benchBatch(column.TInt32, column.TInt64, column.TFloat64)},
		{"text", benchBatch(column.TText)},
		{"bigint,text", benchBatch(column.TInt64, column.TText)},
		{"numeric", benchBatch(column.TNumeric)},
	} {
		cols := all(c.batch)
		b.Run(c.name, func(b *testing.B) {
			var keys rowenc.Keys
			b.ReportAllocs()
			for b.Loop() {
				keys.Reset()
				rowenc.AppendKeys(&keys, c.batch, cols)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/column.MaxRows, "ns/row")
		})
	}
}

func BenchmarkHashRows(b *testing.B) {
	for _, c := range []struct {
		name  string
		batch *column.Batch
	}{
		{"bigint", benchBatch(column.TInt64)},
		{"bigint,timestamp", benchBatch(column.TInt64, column.TTimestamp)},
		{"text", benchBatch(column.TText)},
		{"numeric", benchBatch(column.TNumeric)},
	} {
		cols := all(c.batch)
		b.Run(c.name, func(b *testing.B) {
			var dst []uint64
			b.ReportAllocs()
			for b.Loop() {
				dst = rowenc.HashRows(c.batch, cols, dst)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/column.MaxRows, "ns/row")
		})
	}
}

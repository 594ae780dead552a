package column

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"

	"github.com/leat-io/leat/internal/column/jsonb"
)

// Span is an interval as one number of microseconds, with months of 30 days and days of 24 hours: what PostgreSQL compares. It is a
// 128-bit two's complement number.
func (iv Interval) Span() (hi int64, lo uint64) {
	days := int64(iv.Months)*30 + int64(iv.Days)
	h, l := bits.Mul64(uint64(max(days, -days)), microsPerDay)
	if days < 0 {
		var c uint64
		l, c = bits.Sub64(0, l, 0)
		h, _ = bits.Sub64(0, h, c)
	}
	var c uint64
	lo, c = bits.Add64(l, uint64(iv.Micros), 0)
	h, _ = bits.Add64(h, uint64(iv.Micros>>63), c)
	return int64(h), lo
}

const microsPerDay = 86_400_000_000

// Compare orders intervals as PostgreSQL does: 1 month equals 30 days.
func (iv Interval) Compare(o Interval) int {
	if iv == o {
		return 0
	}
	h1, l1 := iv.Span()
	h2, l2 := o.Span()
	if c := cmp.Compare(h1, h2); c != 0 {
		return c
	}
	return cmp.Compare(l1, l2)
}

// CompareFloat orders as PostgreSQL does: -0 equals 0, NaN equals NaN and is above everything.
func CompareFloat[F float32 | float64](a, b F) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	an, bn := a != a, b != b
	switch {
	case an && bn:
		return 0
	case an:
		return 1
	}
	return -1
}

// Equal reports whether row i of v and row j of o, of the same kind, are not distinct: NULL is not distinct from NULL, and values
// are equal as PostgreSQL's = has it (1.0 and 1.00, NaN and NaN, -0 and 0, 1 month and 30 days).
func (v *Vector) Equal(i int, o *Vector, j int) bool {
	if a, b := v.IsNull(i), o.IsNull(j); a || b {
		return a && b
	}
	switch v.Type.Kind {
	case Text, Bytea:
		return bytes.Equal(v.Bytes(i), o.Bytes(j))
	case Int64, Time, Timestamp, Timestamptz:
		return v.I64[i] == o.I64[j]
	}
	return v.compareValues(i, o, j) == 0
}

// Compare orders row i of v and row j of o, of the same kind, as PostgreSQL's ascending order does: NULLs last, text by bytes.
func (v *Vector) Compare(i int, o *Vector, j int) int {
	a, b := v.IsNull(i), o.IsNull(j)
	switch {
	case a && b:
		return 0
	case a:
		return 1
	case b:
		return -1
	}
	return v.compareValues(i, o, j)
}

func (v *Vector) compareValues(i int, o *Vector, j int) int {
	switch v.Type.Kind {
	case Bool:
		switch {
		case v.Bools[i] == o.Bools[j]:
			return 0
		case o.Bools[j]:
			return -1
		}
		return 1
	case Int16:
		return cmp.Compare(v.I16[i], o.I16[j])
	case Int32, Date:
		return cmp.Compare(v.I32[i], o.I32[j])
	case Int64, Time, Timestamp, Timestamptz:
		return cmp.Compare(v.I64[i], o.I64[j])
	case Float32:
		return CompareFloat(v.F32[i], o.F32[j])
	case Float64:
		return CompareFloat(v.F64[i], o.F64[j])
	case Numeric:
		return v.Dec[i].Cmp(o.Dec[j])
	case IntervalKind:
		return v.Iv[i].Compare(o.Iv[j])
	case JSONB:
		return jsonb.Compare(v.Bytes(i), o.Bytes(j))
	case Array:
		return compareArrays(v.Type.ElemType(), v.Bytes(i), o.Bytes(j))
	}
	return bytes.Compare(v.Bytes(i), o.Bytes(j))
}

// compareArrays orders arrays as PostgreSQL does: by elements, then by their number, then by dimensions.
func compareArrays(elem Type, a, b []byte) int {
	if bytes.Equal(a, b) && elem.Kind != Float32 && elem.Kind != Float64 {
		return 0
	}
	x, y := NewVector(elem, 8), NewVector(elem, 8)
	if AppendArrayElems(x, a) != nil || AppendArrayElems(y, b) != nil {
		return bytes.Compare(a, b)
	}
	for i := range min(x.Len, y.Len) {
		if c := x.Compare(i, y, i); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(x.Len, y.Len); c != 0 {
		return c
	}
	da, db := ArrayDims(nil, a), ArrayDims(nil, b)
	if c := cmp.Compare(len(da), len(db)); c != 0 {
		return c
	}
	for i := range da {
		if c := cmp.Compare(da[i].Len, db[i].Len); c != 0 {
			return c
		}
	}
	for i := range da {
		if c := cmp.Compare(da[i].Lower, db[i].Lower); c != 0 {
			return c
		}
	}
	return 0
}

// RowsEqual reports whether row i of a, in columns ac, and row j of b, in columns bc, are not distinct. Weights do not matter.
func RowsEqual(a *Batch, ac []int, i int, b *Batch, bc []int, j int) bool {
	for k, c := range ac {
		if !a.Cols[c].Equal(i, b.Cols[bc[k]], j) {
			return false
		}
	}
	return true
}

// CompareRows orders row i of a, in columns ac, and row j of b, in columns bc, column by column, ascending, NULLs last.
func CompareRows(a *Batch, ac []int, i int, b *Batch, bc []int, j int) int {
	for k, c := range ac {
		if r := a.Cols[c].Compare(i, b.Cols[bc[k]], j); r != 0 {
			return r
		}
	}
	return 0
}

// The infinities of dates and timestamps.
const (
	DateInfinity         = math.MaxInt32
	DateNegInfinity      = math.MinInt32
	TimestampInfinity    = math.MaxInt64
	TimestampNegInfinity = math.MinInt64
)

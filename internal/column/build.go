package column

import (
	"github.com/leat-io/leat/internal/decimal"
)

// keepBytes is the capacity that Reset keeps of a slice of values: a single huge batch does not pin its memory for ever.
const keepBytes = 1 << 20

// NewVector makes an empty vector with room for capacity values.
func NewVector(t Type, capacity int) *Vector {
	v := &Vector{}
	v.Reset(t)
	v.reserve(capacity)
	return v
}

func (v *Vector) reserve(n int) {
	switch v.Type.Kind {
	case Bool:
		v.Bools = room(v.Bools, n)
	case Int16:
		v.I16 = room(v.I16, n)
	case Int32, Date:
		v.I32 = room(v.I32, n)
	case Int64, Time, Timestamp, Timestamptz:
		v.I64 = room(v.I64, n)
	case Float32:
		v.F32 = room(v.F32, n)
	case Float64:
		v.F64 = room(v.F64, n)
	case Numeric:
		v.Dec = room(v.Dec, n)
	case IntervalKind:
		v.Iv = room(v.Iv, n)
	case Text, Bytea, JSONB, Array:
		v.Off = room(v.Off, n+1)
		if len(v.Off) == 0 {
			v.Off = append(v.Off, 0)
		}
	}
}

// room returns s with capacity for n values in all.
func room[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s
	}
	ns := make([]T, len(s), n)
	copy(ns, s)
	return ns
}

// resized returns s with length n, its old values unspecified.
func resized[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return make([]T, n, max(n, 2*cap(s)))
}

// emptied returns s with length 0, or nil when its memory is above the cap of size bytes a value.
func emptied[T any](s []T, size int) []T {
	if cap(s)*size > keepBytes {
		return nil
	}
	return s[:0]
}

// Reset makes v an empty vector of type t, keeping its memory for the next values (up to a megabyte a slice). A view gives up
// what it points to.
func (v *Vector) Reset(t Type) {
	if v.view {
		bits := v.bits
		if v.Valid != nil && !v.viewBits {
			bits = v.Valid
		}
		*v = Vector{bits: bits}
	}
	if v.Valid != nil {
		v.bits = v.Valid
		v.Valid = nil
	}
	v.Type, v.Len = t, 0
	v.Bools = emptied(v.Bools, 1)
	v.I16 = emptied(v.I16, 2)
	v.I32 = emptied(v.I32, 4)
	v.I64 = emptied(v.I64, 8)
	v.F32 = emptied(v.F32, 4)
	v.F64 = emptied(v.F64, 8)
	if v.Dec != nil {
		clear(v.Dec) // big coefficients must not be kept alive
		v.Dec = emptied(v.Dec, 32)
	}
	v.Iv = emptied(v.Iv, 16)
	v.Off = emptied(v.Off, 4)
	v.Data = emptied(v.Data, 1)
	if t.Kind.Varlen() {
		v.Off = append(v.Off, 0)
	}
}

// Resize makes v a vector of n valid values of type t whose contents are unspecified, for the caller to write in place. For kinds
// of variable width only Off is sized (Off[0] is 0): the caller fills Off[1:] and Data.
func (v *Vector) Resize(t Type, n int) {
	v.Reset(t)
	v.Len = n
	switch t.Kind {
	case Bool:
		v.Bools = resized(v.Bools, n)
	case Int16:
		v.I16 = resized(v.I16, n)
	case Int32, Date:
		v.I32 = resized(v.I32, n)
	case Int64, Time, Timestamp, Timestamptz:
		v.I64 = resized(v.I64, n)
	case Float32:
		v.F32 = resized(v.F32, n)
	case Float64:
		v.F64 = resized(v.F64, n)
	case Numeric:
		v.Dec = resized(v.Dec, n)
	case IntervalKind:
		v.Iv = resized(v.Iv, n)
	case Text, Bytea, JSONB, Array:
		v.Off = resized(v.Off, n+1)
		v.Off[0] = 0
	}
}

// MakeValid gives v a validity bitmap of its own with every row valid, if it has none, for the caller to clear bits in.
func (v *Vector) MakeValid() Bitmap {
	if v.Valid == nil {
		v.Valid = FillAll(v.bits, v.Len)
		if v.Valid == nil {
			v.Valid = make(Bitmap, 0, 16)
		}
		v.bits = nil
	}
	return v.Valid
}

// TakeBits returns spare words that v owns, for a bitmap that will become v.Valid (as the dst of And); nil when there are none.
func (v *Vector) TakeBits() Bitmap {
	b := v.bits
	v.bits = nil
	return b
}

// IsNull reports whether row i is NULL.
func (v *Vector) IsNull(i int) bool { return v.Valid != nil && v.Valid[i>>6]>>(uint(i)&63)&1 == 0 }

// HasNulls reports whether any row is NULL.
func (v *Vector) HasNulls() bool { return v.Valid != nil && !v.Valid.All(v.Len) }

// NullCount is the number of NULLs.
func (v *Vector) NullCount() int { return v.Len - v.Valid.Count(v.Len) }

// SetNull makes row i NULL.
func (v *Vector) SetNull(i int) { v.MakeValid().Clear(i) }

// Bytes is the value of row i of a kind of variable width. It aliases the vector.
func (v *Vector) Bytes(i int) []byte { return v.Data[v.Off[i]:v.Off[i+1]:v.Off[i+1]] }

// grew accounts a value that was appended and is valid.
func (v *Vector) grew() {
	if v.Valid != nil {
		v.Valid = v.Valid.grow(v.Len + 1)
		v.Valid.Set(v.Len)
	}
	v.Len++
}

// AppendNull appends a NULL.
func (v *Vector) AppendNull() {
	v.MakeValid()
	v.Valid = v.Valid.grow(v.Len + 1)
	v.Valid.Clear(v.Len)
	v.Len++
	switch v.Type.Kind {
	case Bool:
		v.Bools = append(v.Bools, false)
	case Int16:
		v.I16 = append(v.I16, 0)
	case Int32, Date:
		v.I32 = append(v.I32, 0)
	case Int64, Time, Timestamp, Timestamptz:
		v.I64 = append(v.I64, 0)
	case Float32:
		v.F32 = append(v.F32, 0)
	case Float64:
		v.F64 = append(v.F64, 0)
	case Numeric:
		v.Dec = append(v.Dec, decimal.Decimal{})
	case IntervalKind:
		v.Iv = append(v.Iv, Interval{})
	case Text, Bytea, JSONB, Array:
		v.Off = append(v.Off, uint32(len(v.Data)))
	}
}

// AppendBool appends a value of kind Bool.
func (v *Vector) AppendBool(x bool) { v.Bools = append(v.Bools, x); v.grew() }

// AppendInt16 appends a value of kind Int16.
func (v *Vector) AppendInt16(x int16) { v.I16 = append(v.I16, x); v.grew() }

// AppendInt32 appends a value of kind Int32 or Date.
func (v *Vector) AppendInt32(x int32) { v.I32 = append(v.I32, x); v.grew() }

// AppendInt64 appends a value of kind Int64, Time, Timestamp or Timestamptz.
func (v *Vector) AppendInt64(x int64) { v.I64 = append(v.I64, x); v.grew() }

// AppendFloat32 appends a value of kind Float32.
func (v *Vector) AppendFloat32(x float32) { v.F32 = append(v.F32, x); v.grew() }

// AppendFloat64 appends a value of kind Float64.
func (v *Vector) AppendFloat64(x float64) { v.F64 = append(v.F64, x); v.grew() }

// AppendDecimal appends a value of kind Numeric.
func (v *Vector) AppendDecimal(x decimal.Decimal) { v.Dec = append(v.Dec, x); v.grew() }

// AppendInterval appends a value of kind IntervalKind.
func (v *Vector) AppendInterval(x Interval) { v.Iv = append(v.Iv, x); v.grew() }

// AppendBytes appends a value of a kind of variable width (text as UTF-8, jsonb as canonical text, an encoded array).
func (v *Vector) AppendBytes(x []byte) {
	v.Data = append(v.Data, x...)
	v.Off = append(v.Off, uint32(len(v.Data)))
	v.grew()
}

// AppendString is AppendBytes of a string.
func (v *Vector) AppendString(x string) {
	v.Data = append(v.Data, x...)
	v.Off = append(v.Off, uint32(len(v.Data)))
	v.grew()
}

// EndBytes ends a value of variable width whose bytes the caller has appended to Data.
func (v *Vector) EndBytes() {
	v.Off = append(v.Off, uint32(len(v.Data)))
	v.grew()
}

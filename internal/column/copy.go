package column

// AppendFrom appends row of src, which has v's kind.
func (v *Vector) AppendFrom(src *Vector, row int) {
	if src.IsNull(row) {
		v.AppendNull()
		return
	}
	switch v.Type.Kind {
	case Bool:
		v.Bools = append(v.Bools, src.Bools[row])
	case Int16:
		v.I16 = append(v.I16, src.I16[row])
	case Int32, Date:
		v.I32 = append(v.I32, src.I32[row])
	case Int64, Time, Timestamp, Timestamptz:
		v.I64 = append(v.I64, src.I64[row])
	case Float32:
		v.F32 = append(v.F32, src.F32[row])
	case Float64:
		v.F64 = append(v.F64, src.F64[row])
	case Numeric:
		v.Dec = append(v.Dec, src.Dec[row])
	case IntervalKind:
		v.Iv = append(v.Iv, src.Iv[row])
	case Text, Bytea, JSONB, Array:
		v.Data = append(v.Data, src.Bytes(row)...)
		v.Off = append(v.Off, uint32(len(v.Data)))
	}
	v.grew()
}

// AppendRange appends rows [from, to) of src, which has v's kind.
func (v *Vector) AppendRange(src *Vector, from, to int) {
	n := to - from
	if n <= 0 {
		return
	}
	v.appendValid(src, n, func(dst Bitmap, at int) {
		for i := from; i < to; i++ {
			dst.SetTo(at, src.Valid.Get(i))
			at++
		}
	})
	switch v.Type.Kind {
	case Bool:
		v.Bools = append(v.Bools, src.Bools[from:to]...)
	case Int16:
		v.I16 = append(v.I16, src.I16[from:to]...)
	case Int32, Date:
		v.I32 = append(v.I32, src.I32[from:to]...)
	case Int64, Time, Timestamp, Timestamptz:
		v.I64 = append(v.I64, src.I64[from:to]...)
	case Float32:
		v.F32 = append(v.F32, src.F32[from:to]...)
	case Float64:
		v.F64 = append(v.F64, src.F64[from:to]...)
	case Numeric:
		v.Dec = append(v.Dec, src.Dec[from:to]...)
	case IntervalKind:
		v.Iv = append(v.Iv, src.Iv[from:to]...)
	case Text, Bytea, JSONB, Array:
		base := uint32(len(v.Data)) - src.Off[from]
		v.Data = append(v.Data, src.Data[src.Off[from]:src.Off[to]]...)
		for _, o := range src.Off[from+1 : to+1] {
			v.Off = append(v.Off, base+o)
		}
	}
	v.Len += n
}

// appendValid makes v's bitmap ready for n more rows before v.Len grows; fill writes their bits when src has any that are not set.
func (v *Vector) appendValid(src *Vector, n int, fill func(dst Bitmap, at int)) {
	if src.Valid != nil {
		v.MakeValid()
	}
	if v.Valid == nil {
		return
	}
	v.Valid = v.Valid.grow(v.Len + n)
	if src.Valid == nil {
		v.Valid.setRange(v.Len, v.Len+n)
		return
	}
	fill(v.Valid, v.Len)
}

// pick appends the values of src at rows.
func pick[T any](dst, src []T, rows []int32) []T {
	at := len(dst)
	dst = growLen(dst, len(rows))
	out := dst[at:]
	for i, r := range rows {
		out[i] = src[r]
	}
	return dst
}

// growLen extends s by n values with unspecified contents.
func growLen[T any](s []T, n int) []T {
	if len(s)+n <= cap(s) {
		return s[:len(s)+n]
	}
	ns := make([]T, len(s)+n, max(2*cap(s), len(s)+n))
	copy(ns, s)
	return ns
}

// AppendRows appends the given rows of src, which has v's kind, in their order; a row may come twice.
func (v *Vector) AppendRows(src *Vector, rows []int32) {
	if len(rows) == 0 {
		return
	}
	v.appendValid(src, len(rows), func(dst Bitmap, at int) {
		for _, r := range rows {
			dst.SetTo(at, src.Valid.Get(int(r)))
			at++
		}
	})
	switch v.Type.Kind {
	case Bool:
		v.Bools = pick(v.Bools, src.Bools, rows)
	case Int16:
		v.I16 = pick(v.I16, src.I16, rows)
	case Int32, Date:
		v.I32 = pick(v.I32, src.I32, rows)
	case Int64, Time, Timestamp, Timestamptz:
		v.I64 = pick(v.I64, src.I64, rows)
	case Float32:
		v.F32 = pick(v.F32, src.F32, rows)
	case Float64:
		v.F64 = pick(v.F64, src.F64, rows)
	case Numeric:
		v.Dec = pick(v.Dec, src.Dec, rows)
	case IntervalKind:
		v.Iv = pick(v.Iv, src.Iv, rows)
	case Text, Bytea, JSONB, Array:
		at := len(v.Off)
		v.Off = growLen(v.Off, len(rows))
		off, data := v.Off[at:], v.Data
		for i := 0; i < len(rows); { // rows that follow each other are one piece
			from := rows[i]
			next := from + 1
			j := i + 1
			for j < len(rows) && rows[j] == next {
				next++
				j++
			}
			base := uint32(len(data)) - src.Off[from]
			data = append(data, src.Data[src.Off[from]:src.Off[next]]...)
			for k, end := range src.Off[from+1 : next+1] {
				off[i+k] = base + end
			}
			i = j
		}
		v.Data = data
	}
	v.Len += len(rows)
}

// Gather makes v the given rows of src, in their order. v is not src.
func (v *Vector) Gather(src *Vector, rows []int32) {
	v.Reset(src.Type)
	v.AppendRows(src, rows)
}

// CopyFrom makes v a copy of src in v's own memory. v is not src.
func (v *Vector) CopyFrom(src *Vector) {
	v.Reset(src.Type)
	v.AppendRange(src, 0, src.Len)
}

// Clone is a copy of v in memory of its own.
func (v *Vector) Clone() *Vector {
	c := &Vector{}
	c.CopyFrom(v)
	return c
}

// Fill makes v n copies of row of src. v is not src.
func (v *Vector) Fill(src *Vector, row, n int) {
	v.Resize(src.Type, n)
	if src.IsNull(row) {
		clear(v.MakeValid())
	}
	switch v.Type.Kind {
	case Bool:
		repeat(v.Bools, src.Bools[row])
	case Int16:
		repeat(v.I16, src.I16[row])
	case Int32, Date:
		repeat(v.I32, src.I32[row])
	case Int64, Time, Timestamp, Timestamptz:
		repeat(v.I64, src.I64[row])
	case Float32:
		repeat(v.F32, src.F32[row])
	case Float64:
		repeat(v.F64, src.F64[row])
	case Numeric:
		repeat(v.Dec, src.Dec[row])
	case IntervalKind:
		repeat(v.Iv, src.Iv[row])
	case Text, Bytea, JSONB, Array:
		b := src.Bytes(row)
		for i := range n {
			v.Data = append(v.Data, b...)
			v.Off[i+1] = uint32(len(v.Data))
		}
	}
}

// FillNull makes v n NULLs of type t.
func (v *Vector) FillNull(t Type, n int) {
	v.Resize(t, n)
	clear(v.MakeValid())
	clear(v.Dec)
	clear(v.Off)
}

func repeat[T any](dst []T, x T) {
	for i := range dst {
		dst[i] = x
	}
}

// View makes v rows [from, to) of src without copying values: v is valid as long as src's memory is, and must only be read. Its
// bitmap is copied when from is not a multiple of 64.
func (v *Vector) View(src *Vector, from, to int) {
	bits := v.bits
	if v.Valid != nil && !v.viewBits {
		bits = v.Valid
	}
	*v = Vector{Type: src.Type, Len: to - from, bits: bits, view: true}
	if src.Valid != nil {
		if from&63 == 0 {
			v.Valid, v.viewBits = src.Valid[from>>6:], true
		} else {
			v.Valid = bits[:0].grow(to - from)
			v.bits = nil
			copyBits(v.Valid, src.Valid, from, to-from)
		}
	}
	switch v.Type.Kind {
	case Bool:
		v.Bools = src.Bools[from:to:to]
	case Int16:
		v.I16 = src.I16[from:to:to]
	case Int32, Date:
		v.I32 = src.I32[from:to:to]
	case Int64, Time, Timestamp, Timestamptz:
		v.I64 = src.I64[from:to:to]
	case Float32:
		v.F32 = src.F32[from:to:to]
	case Float64:
		v.F64 = src.F64[from:to:to]
	case Numeric:
		v.Dec = src.Dec[from:to:to]
	case IntervalKind:
		v.Iv = src.Iv[from:to:to]
	case Text, Bytea, JSONB, Array:
		v.Off, v.Data = src.Off[from:to+1:to+1], src.Data
	}
}

// MemSize is about how many bytes the values of v take.
func (v *Vector) MemSize() int {
	n := v.Len*v.Type.Kind.Width() + len(v.Valid)*8
	switch {
	case v.Type.Kind.Varlen():
		n += len(v.Off)*4 + int(v.Off[v.Len]-v.Off[0])
	case v.Type.Kind == Numeric:
		for _, d := range v.Dec {
			n += d.BigSize()
		}
	}
	return n
}

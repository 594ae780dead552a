package column

// Truncate keeps the first n values, for who appended some and must take them back.
func (v *Vector) Truncate(n int) {
	if n >= v.Len {
		return
	}
	switch v.Type.Kind {
	case Bool:
		v.Bools = v.Bools[:n]
	case Int16:
		v.I16 = v.I16[:n]
	case Int32, Date:
		v.I32 = v.I32[:n]
	case Int64, Time, Timestamp, Timestamptz:
		v.I64 = v.I64[:n]
	case Float32:
		v.F32 = v.F32[:n]
	case Float64:
		v.F64 = v.F64[:n]
	case Numeric:
		v.Dec = v.Dec[:n]
	case IntervalKind:
		v.Iv = v.Iv[:n]
	default:
		v.Off = v.Off[:n+1]
		v.Data = v.Data[:v.Off[n]]
	}
	v.Len = n
	if v.Valid != nil {
		v.Valid = v.Valid[:words(n)]
	}
}

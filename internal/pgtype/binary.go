package pgtype

import (
	"encoding/binary"
	"math"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/jsonb"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

// The wire counts from 2000-01-01.
const (
	wireDays   = 10957
	wireMicros = wireDays * microsPerDay
)

var wire = binary.BigEndian

// AppendBinary appends the binary wire form of a value that is not NULL.
func AppendBinary(dst []byte, v *column.Vector, row int) []byte {
	switch v.Type.Kind {
	case column.Bool:
		if v.Bools[row] {
			return append(dst, 1)
		}
		return append(dst, 0)
	case column.Int16:
		return wire.AppendUint16(dst, uint16(v.I16[row]))
	case column.Int32:
		return wire.AppendUint32(dst, uint32(v.I32[row]))
	case column.Int64, column.Time:
		return wire.AppendUint64(dst, uint64(v.I64[row]))
	case column.Float32:
		return wire.AppendUint32(dst, math.Float32bits(v.F32[row]))
	case column.Float64:
		if x := v.F64[row]; x == x {
			return wire.AppendUint64(dst, math.Float64bits(x))
		}
		return wire.AppendUint64(dst, 0x7ff8<<48) // the NaN that PostgreSQL sends
	case column.Numeric:
		return v.Dec[row].AppendWire(dst)
	case column.Date:
		d := v.I32[row]
		if d != column.DateInfinity && d != column.DateNegInfinity {
			d -= wireDays
		}
		return wire.AppendUint32(dst, uint32(d))
	case column.Timestamp, column.Timestamptz:
		us := v.I64[row]
		if us != column.TimestampInfinity && us != column.TimestampNegInfinity {
			us -= wireMicros
		}
		return wire.AppendUint64(dst, uint64(us))
	case column.IntervalKind:
		iv := v.Iv[row]
		dst = wire.AppendUint64(dst, uint64(iv.Micros))
		dst = wire.AppendUint32(dst, uint32(iv.Days))
		return wire.AppendUint32(dst, uint32(iv.Months))
	case column.JSONB:
		dst = append(dst, 1) // version
	case column.Array:
		return appendArrayBinary(dst, v.Type.ElemType(), v.Bytes(row))
	}
	return append(dst, v.Bytes(row)...)
}

func appendArrayBinary(dst []byte, elem column.Type, enc []byte) []byte {
	elems := column.NewVector(elem, column.ArrayLen(enc))
	var buf [column.MaxArrayDims]column.Dim
	dims := column.ArrayDims(buf[:0], enc)
	if column.AppendArrayElems(elems, enc) != nil || elems.Len == 0 {
		elems.Reset(elem)
		dims = nil
	}
	dst = wire.AppendUint32(dst, uint32(len(dims)))
	hasNull := uint32(0)
	if elems.HasNulls() {
		hasNull = 1
	}
	dst = wire.AppendUint32(dst, hasNull)
	dst = wire.AppendUint32(dst, OID(elem))
	for _, d := range dims {
		dst = wire.AppendUint32(dst, uint32(d.Len))
		dst = wire.AppendUint32(dst, uint32(int32(d.Lower)))
	}
	for i := range elems.Len {
		if elems.IsNull(i) {
			dst = wire.AppendUint32(dst, math.MaxUint32)
			continue
		}
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		dst = AppendBinary(dst, elems, i)
		wire.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst
}

func errBinary(format string, args ...any) error {
	return pgerr.Newf(pgerr.InvalidBinaryRepresentation, format, args...)
}

// ParseBinary reads the binary wire form of a value of v's type, modifiers included, and appends it to v. Nothing is appended on an
// error. The bytes are not kept.
func ParseBinary(v *column.Vector, data []byte) error {
	k := v.Type.Kind
	if w := k.Width(); k != column.Numeric && w > 0 && len(data) != w {
		return errBinary("incorrect binary data format: %d bytes for type %s, not %d", len(data), v.Type, w)
	}
	switch k {
	case column.Bool:
		v.AppendBool(data[0] != 0)
	case column.Int16:
		v.AppendInt16(int16(wire.Uint16(data)))
	case column.Int32:
		v.AppendInt32(int32(wire.Uint32(data)))
	case column.Int64:
		v.AppendInt64(int64(wire.Uint64(data)))
	case column.Float32:
		v.AppendFloat32(math.Float32frombits(wire.Uint32(data)))
	case column.Float64:
		v.AppendFloat64(math.Float64frombits(wire.Uint64(data)))
	case column.Numeric:
		d, err := decimal.FromWire(data)
		if err == nil && v.Type.Precision > 0 {
			d, err = d.Fit(int(v.Type.Precision), int(v.Type.Scale))
		}
		if err != nil {
			return err
		}
		v.AppendDecimal(d)
	case column.Date:
		d := int32(wire.Uint32(data))
		if d != column.DateInfinity && d != column.DateNegInfinity {
			if !DateInRange(int64(d) + wireDays) {
				return pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range")
			}
			d += wireDays
		}
		v.AppendInt32(d)
	case column.Time:
		us := int64(wire.Uint64(data))
		if us < 0 || us > microsPerDay {
			return pgerr.New(pgerr.DatetimeFieldOverflow, "time out of range")
		}
		v.AppendInt64(RoundMicros(us, v.Type.FractionDigits()))
	case column.Timestamp, column.Timestamptz:
		us := int64(wire.Uint64(data))
		if us != column.TimestampInfinity && us != column.TimestampNegInfinity {
			if us > maxMicros-wireMicros || us < minMicros-wireMicros {
				return pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp out of range")
			}
			us += wireMicros
		}
		v.AppendInt64(RoundMicros(us, v.Type.FractionDigits()))
	case column.IntervalKind:
		v.AppendInterval(column.Interval{
			Micros: RoundMicros(int64(wire.Uint64(data)), v.Type.FractionDigits()),
			Days:   int32(wire.Uint32(data[8:])),
			Months: int32(wire.Uint32(data[12:])),
		})
	case column.Text:
		text, err := FitText(data, v.Type)
		if err != nil {
			return err
		}
		v.AppendBytes(text)
	case column.Bytea:
		v.AppendBytes(data)
	case column.JSONB:
		if len(data) == 0 || data[0] != 1 {
			return pgerr.New(pgerr.FeatureNotSupported, "unsupported jsonb version number")
		}
		out, err := jsonb.Canonical(v.Data, data[1:])
		v.Data = out
		if err != nil {
			return err
		}
		v.EndBytes()
	case column.Array:
		return parseArrayBinary(v, data)
	default:
		return errBinary("no binary input for type %s", v.Type)
	}
	return nil
}

func parseArrayBinary(v *column.Vector, data []byte) error {
	if len(data) < 12 {
		return errBinary("insufficient data left in message")
	}
	n := wire.Uint32(data)
	if n > column.MaxArrayDims {
		return pgerr.Newf(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", n, column.MaxArrayDims)
	}
	elem := v.Type.ElemType()
	if got := wire.Uint32(data[8:]); got != OID(elem) {
		if t, ok := FromOID(got, -1); !ok || t.Kind != elem.Kind {
			return pgerr.Newf(pgerr.DatatypeMismatch, "binary data has array element type %d instead of expected %d", got, OID(elem))
		}
	}
	data = data[12:]
	if uint32(len(data)) < 8*n {
		return errBinary("insufficient data left in message")
	}
	dims, total := make([]column.Dim, n), 1
	for i := range dims {
		l := wire.Uint32(data)
		if uint64(l)*uint64(total) > uint64(len(data))/4 { // each element takes 4 bytes at least
			return errBinary("insufficient data left in message")
		}
		total *= int(l)
		dims[i] = column.Dim{Len: int(l), Lower: int(int32(wire.Uint32(data[4:])))}
		data = data[8:]
	}
	if n == 0 {
		total = 0
	}
	elems := column.NewVector(elem, total)
	for range total {
		if len(data) < 4 {
			return errBinary("insufficient data left in message")
		}
		l := wire.Uint32(data)
		data = data[4:]
		if l == math.MaxUint32 {
			elems.AppendNull()
			continue
		}
		if uint64(l) > uint64(len(data)) {
			return errBinary("insufficient data left in message")
		}
		if err := ParseBinary(elems, data[:l]); err != nil {
			return err
		}
		data = data[l:]
	}
	if len(data) != 0 {
		return errBinary("incorrect binary data format: bytes after the last element")
	}
	v.Data = column.AppendArrayDims(v.Data, dims, elems)
	v.EndBytes()
	return nil
}

package rowenc

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
)

// AppendRow appends one row in the given columns as a value row: a bit a column that is set for NULL, then the values that
// are not NULL, each in the shortest simple form of its kind. The table's header has the types; a row does not repeat them.
func AppendRow(dst []byte, b *column.Batch, cols []int, row int) []byte {
	start := len(dst)
	for range (len(cols) + 7) / 8 {
		dst = append(dst, 0)
	}
	for i, c := range cols {
		v := b.Cols[c]
		if v.IsNull(row) {
			dst[start+i/8] |= 1 << (i % 8)
			continue
		}
		dst = AppendValue(dst, v, row)
	}
	return dst
}

// AppendRows appends a value row for every row of b.
func AppendRows(dst *Keys, b *column.Batch, cols []int) {
	for row := range b.Len {
		dst.Data = AppendRow(dst.Data, b, cols, row)
		dst.EndKey()
	}
}

// AppendValue appends one value that is not NULL in the form of value rows. It delimits itself.
func AppendValue(dst []byte, v *column.Vector, row int) []byte {
	switch v.Type.Kind {
	case column.Bool:
		return append(dst, boolByte(v.Bools[row]))
	case column.Int16:
		return binary.AppendVarint(dst, int64(v.I16[row]))
	case column.Int32, column.Date:
		return binary.AppendVarint(dst, int64(v.I32[row]))
	case column.Int64:
		return binary.AppendVarint(dst, v.I64[row])
	case column.Time, column.Timestamp, column.Timestamptz:
		return binary.LittleEndian.AppendUint64(dst, uint64(v.I64[row]))
	case column.Float32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(v.F32[row]))
	case column.Float64:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.F64[row]))
	case column.Numeric:
		return v.Dec[row].AppendBinary(dst)
	case column.IntervalKind:
		iv := v.Iv[row]
		dst = binary.AppendVarint(dst, int64(iv.Months))
		dst = binary.AppendVarint(dst, int64(iv.Days))
		return binary.AppendVarint(dst, iv.Micros)
	case column.Text, column.Bytea, column.JSONB, column.Array:
		b := v.Bytes(row)
		dst = binary.AppendUvarint(dst, uint64(len(b)))
		return append(dst, b...)
	}
	return dst
}

// DecodeRow appends the values of a value row to dst, one to each vector; a nil vector skips its column. types are the types that the
// row was written with. After an error vectors may be of different lengths.
func DecodeRow(row []byte, types []column.Type, dst []*column.Vector) error {
	head := (len(types) + 7) / 8
	if len(row) < head {
		return malformed("row of %d bytes for %d columns", len(row), len(types))
	}
	nulls, rest := row[:head], row[head:]
	for i, t := range types {
		if nulls[i/8]>>(i%8)&1 != 0 {
			if dst[i] != nil {
				dst[i].AppendNull()
			}
			continue
		}
		n, err := decodeValue(rest, t.Kind, dst[i])
		if err != nil {
			return fmt.Errorf("row column %d (%s): %w", i, t, err)
		}
		rest = rest[n:]
	}
	if len(rest) != 0 {
		return malformed("%d bytes after the row's last value", len(rest))
	}
	return nil
}

// DecodeValue appends the value at the start of src, written by AppendValue, to v, and returns how many bytes it took.
func DecodeValue(src []byte, v *column.Vector) (int, error) { return decodeValue(src, v.Type.Kind, v) }

func decodeValue(src []byte, k column.Kind, v *column.Vector) (int, error) {
	switch k {
	case column.Bool:
		if len(src) < 1 || src[0] > 1 {
			return 0, malformed("no boolean")
		}
		if v != nil {
			v.AppendBool(src[0] == 1)
		}
		return 1, nil
	case column.Int16, column.Int32, column.Date, column.Int64:
		x, n := binary.Varint(src)
		if n <= 0 {
			return 0, malformed("no integer")
		}
		if v == nil {
			return n, nil
		}
		switch {
		case k == column.Int64:
			v.AppendInt64(x)
		case k == column.Int16 && int64(int16(x)) == x:
			v.AppendInt16(int16(x))
		case k != column.Int16 && int64(int32(x)) == x:
			v.AppendInt32(int32(x))
		default:
			return 0, malformed("integer %d out of range", x)
		}
		return n, nil
	case column.Time, column.Timestamp, column.Timestamptz:
		if len(src) < 8 {
			return 0, malformed("value ends early")
		}
		if v != nil {
			v.AppendInt64(int64(binary.LittleEndian.Uint64(src)))
		}
		return 8, nil
	case column.Float32:
		if len(src) < 4 {
			return 0, malformed("value ends early")
		}
		if v != nil {
			v.AppendFloat32(math.Float32frombits(binary.LittleEndian.Uint32(src)))
		}
		return 4, nil
	case column.Float64:
		if len(src) < 8 {
			return 0, malformed("value ends early")
		}
		if v != nil {
			v.AppendFloat64(math.Float64frombits(binary.LittleEndian.Uint64(src)))
		}
		return 8, nil
	case column.Numeric:
		d, n, err := decimal.Decode(src)
		if err != nil {
			return 0, malformed("%v", err)
		}
		if v != nil {
			v.AppendDecimal(d)
		}
		return n, nil
	case column.IntervalKind:
		return decodeInterval(src, v)
	case column.Text, column.Bytea, column.JSONB, column.Array:
		x, n := binary.Uvarint(src)
		if n <= 0 || x > uint64(len(src)-n) {
			return 0, malformed("value ends early")
		}
		if v != nil {
			v.AppendBytes(src[n : n+int(x)])
		}
		return n + int(x), nil
	}
	return 0, malformed("no row has type %s", k)
}

func decodeInterval(src []byte, v *column.Vector) (int, error) {
	var part [3]int64
	at := 0
	for i := range part {
		x, n := binary.Varint(src[at:])
		if n <= 0 || i < 2 && int64(int32(x)) != x {
			return 0, malformed("no interval")
		}
		part[i] = x
		at += n
	}
	if v != nil {
		v.AppendInterval(column.Interval{Months: int32(part[0]), Days: int32(part[1]), Micros: part[2]})
	}
	return at, nil
}

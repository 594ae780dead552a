// Package rowenc turns rows of batches into bytes and back: memcomparable keys, compact value rows and hashes.
//
// What always holds: two keys of the same types compare as bytes as their rows compare column by column in PostgreSQL's ascending order
// (NULLs last, text by bytes); equal values have equal bytes and equal hashes; every encoded value delimits itself, so that the
// key of the first columns is a prefix of the key of all. docs/format/rows.md draws the bytes; they are on disk, so they never change
// for a kind.
package rowenc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/jsonb"
	"github.com/leat-io/leat/internal/decimal"
)

// Tags in front of each value of a key.
const (
	tagValue = 0x01
	tagNull  = 0x02
)

// Of text and bytea in keys: a 0 byte is followed by escZero, the end of the value is 0 and escEnd.
const (
	escEnd  = 0x01
	escZero = 0xff
)

// ErrMalformed is wrapped by every error of decoding.
var ErrMalformed = errors.New("malformed row bytes")

// KeepsDisplay reports whether a key of type t decodes to exactly the value that was encoded. It does not for kinds where
// equal values can look different: numeric and jsonb lose zeros at the end of fractions (1.00 comes back as 1), real and double
// precision the sign of zero, interval its parts (1 month comes back as 30 days, 24:00:00 as 1 day). Who shows such values keeps
// them in the row's value as well.
func KeepsDisplay(t column.Type) bool {
	k := t.Kind
	if k == column.Array {
		k = t.Elem
	}
	switch k {
	case column.Numeric, column.JSONB, column.Float32, column.Float64, column.IntervalKind:
		return false
	}
	return true
}

// AppendKey appends the key of one row in the given columns.
func AppendKey(dst []byte, b *column.Batch, cols []int, row int) []byte {
	for _, c := range cols {
		dst = AppendValueKey(dst, b.Cols[c], row)
	}
	return dst
}

// fixedKeyWidth is the bytes after the tag of a kind whose keys all have one length, 0 for the others.
func fixedKeyWidth(k column.Kind) int {
	switch k {
	case column.Bool:
		return 1
	case column.Int16:
		return 2
	case column.Int32, column.Date, column.Float32:
		return 4
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz, column.Float64:
		return 8
	case column.IntervalKind:
		return 16
	}
	return 0
}

var zeros [16]byte

// AppendValueKey appends the key form of one value.
func AppendValueKey(dst []byte, v *column.Vector, row int) []byte {
	k := v.Type.Kind
	if v.IsNull(row) {
		dst = append(dst, tagNull)
		return append(dst, zeros[:fixedKeyWidth(k)]...)
	}
	dst = append(dst, tagValue)
	switch k {
	case column.Bool:
		return append(dst, boolByte(v.Bools[row]))
	case column.Int16:
		return binary.BigEndian.AppendUint16(dst, uint16(v.I16[row])^1<<15)
	case column.Int32, column.Date:
		return binary.BigEndian.AppendUint32(dst, uint32(v.I32[row])^1<<31)
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
		return binary.BigEndian.AppendUint64(dst, uint64(v.I64[row])^1<<63)
	case column.Float32:
		return binary.BigEndian.AppendUint32(dst, float32Key(v.F32[row]))
	case column.Float64:
		return binary.BigEndian.AppendUint64(dst, float64Key(v.F64[row]))
	case column.Numeric:
		return v.Dec[row].AppendKey(dst)
	case column.IntervalKind:
		hi, lo := v.Iv[row].Span()
		dst = binary.BigEndian.AppendUint64(dst, uint64(hi)^1<<63)
		return binary.BigEndian.AppendUint64(dst, lo)
	case column.Text, column.Bytea:
		return appendEscaped(dst, v.Bytes(row))
	case column.JSONB:
		return jsonb.AppendKey(dst, v.Bytes(row))
	case column.Array:
		return appendArrayKey(dst, v.Type.ElemType(), v.Bytes(row))
	}
	return dst
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// float64Key maps doubles to integers of the same order; -0 is 0, and all NaNs are one, above infinity.
func float64Key(x float64) uint64 {
	if x == 0 {
		return 1 << 63
	}
	if x != x {
		return math.MaxUint64
	}
	u := math.Float64bits(x)
	if u>>63 != 0 {
		return ^u
	}
	return u | 1<<63
}

func float64FromKey(u uint64) float64 {
	switch {
	case u == math.MaxUint64:
		return math.NaN()
	case u>>63 != 0:
		return math.Float64frombits(u &^ (1 << 63))
	}
	return math.Float64frombits(^u)
}

func float32Key(x float32) uint32 {
	if x == 0 {
		return 1 << 31
	}
	if x != x {
		return math.MaxUint32
	}
	u := math.Float32bits(x)
	if u>>31 != 0 {
		return ^u
	}
	return u | 1<<31
}

func float32FromKey(u uint32) float32 {
	switch {
	case u == math.MaxUint32:
		return float32(math.NaN())
	case u>>31 != 0:
		return math.Float32frombits(u &^ (1 << 31))
	}
	return math.Float32frombits(^u)
}

func appendEscaped(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, 0)
		if i < 0 {
			dst = append(dst, s...)
			return append(dst, 0, escEnd)
		}
		dst = append(dst, s[:i]...)
		dst = append(dst, 0, escZero)
		s = s[i+1:]
	}
}

// escapedSize is the bytes of an escaped value, its end included.
func escapedSize(src []byte) (int, error) {
	at := 0
	for {
		i := bytes.IndexByte(src[at:], 0)
		if i < 0 || at+i+1 >= len(src) {
			return 0, malformed("text without an end")
		}
		at += i + 2
		switch src[at-1] {
		case escEnd:
			return at, nil
		case escZero:
		default:
			return 0, malformed("text with an unknown escape")
		}
	}
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Of arrays in keys: the elements, then arrayEnd, then the dimensions, which order last.
const arrayEnd = 0x00

func appendArrayKey(dst []byte, elem column.Type, enc []byte) []byte {
	elems := column.NewVector(elem, column.ArrayLen(enc))
	if err := column.AppendArrayElems(elems, enc); err != nil {
		elems.Reset(elem) // only bytes that no vector should hold; an empty array keeps the key well-formed
	}
	for i := range elems.Len {
		dst = AppendValueKey(dst, elems, i)
	}
	dst = append(dst, arrayEnd)
	var buf [column.MaxArrayDims]column.Dim
	dims := column.ArrayDims(buf[:0], enc)
	if elems.Len == 0 {
		dims = nil
	}
	dst = append(dst, byte(len(dims)))
	for _, d := range dims {
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.Len))
	}
	for _, d := range dims {
		dst = binary.BigEndian.AppendUint32(dst, uint32(int32(d.Lower))^1<<31)
	}
	return dst
}

// DecodeKey appends the values of a key to dst, one to each vector, whose types are the key's, and returns what follows. After an
// error vectors may be of different lengths.
func DecodeKey(key []byte, dst []*column.Vector) (rest []byte, err error) {
	for i, v := range dst {
		if key, err = DecodeValueKey(key, v); err != nil {
			return nil, fmt.Errorf("key column %d (%s): %w", i, v.Type, err)
		}
	}
	return key, nil
}

// DecodeValueKey appends the value at the start of key to v, whose type says what it is, and returns what follows.
func DecodeValueKey(key []byte, v *column.Vector) (rest []byte, err error) {
	k := v.Type.Kind
	w := fixedKeyWidth(k)
	if len(key) < 1+w {
		return nil, malformed("key ends early")
	}
	tag := key[0]
	key = key[1:]
	if tag == tagNull {
		v.AppendNull()
		return key[w:], nil
	}
	if tag != tagValue {
		return nil, malformed("unknown tag 0x%02x", tag)
	}
	switch k {
	case column.Bool:
		v.AppendBool(key[0] != 0)
	case column.Int16:
		v.AppendInt16(int16(binary.BigEndian.Uint16(key) ^ 1<<15))
	case column.Int32, column.Date:
		v.AppendInt32(int32(binary.BigEndian.Uint32(key) ^ 1<<31))
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
		v.AppendInt64(int64(binary.BigEndian.Uint64(key) ^ 1<<63))
	case column.Float32:
		v.AppendFloat32(float32FromKey(binary.BigEndian.Uint32(key)))
	case column.Float64:
		v.AppendFloat64(float64FromKey(binary.BigEndian.Uint64(key)))
	case column.IntervalKind:
		iv, ok := intervalFromSpan(int64(binary.BigEndian.Uint64(key)^1<<63), binary.BigEndian.Uint64(key[8:]))
		if !ok {
			return nil, malformed("interval out of range")
		}
		v.AppendInterval(iv)
	case column.Numeric:
		d, n, err := decimal.DecodeKey(key)
		if err != nil {
			return nil, malformed("%v", err)
		}
		v.AppendDecimal(d)
		return key[n:], nil
	case column.Text, column.Bytea:
		n, err := escapedSize(key)
		if err != nil {
			return nil, err
		}
		s := key[:n-2]
		for {
			i := bytes.IndexByte(s, 0)
			if i < 0 {
				v.Data = append(v.Data, s...)
				break
			}
			v.Data = append(v.Data, s[:i+1]...)
			s = s[i+2:]
		}
		v.EndBytes()
		return key[n:], nil
	case column.JSONB:
		data, n, err := jsonb.DecodeKey(v.Data, key)
		if err != nil {
			return nil, malformed("%v", err)
		}
		v.Data = data
		v.EndBytes()
		return key[n:], nil
	case column.Array:
		return decodeArrayKey(key, v)
	default:
		return nil, malformed("no key has type %s", v.Type)
	}
	return key[w:], nil
}

func decodeArrayKey(key []byte, v *column.Vector) (rest []byte, err error) {
	elems := column.NewVector(v.Type.ElemType(), 8)
	for {
		if len(key) == 0 {
			return nil, malformed("array without an end")
		}
		if key[0] == arrayEnd {
			break
		}
		if key, err = DecodeValueKey(key, elems); err != nil {
			return nil, err
		}
	}
	if len(key) < 2 || key[1] > column.MaxArrayDims || len(key) < 2+8*int(key[1]) {
		return nil, malformed("array without dimensions")
	}
	n := int(key[1])
	key = key[2:]
	dims, product := make([]column.Dim, n), 1
	for i := range dims {
		dims[i].Len = int(binary.BigEndian.Uint32(key[4*i:]))
		dims[i].Lower = int(int32(binary.BigEndian.Uint32(key[4*(n+i):]) ^ 1<<31))
		product *= dims[i].Len
		if product > elems.Len {
			break
		}
	}
	if n == 0 {
		product = 0
	}
	if product != elems.Len {
		return nil, malformed("array of %d elements has other dimensions", elems.Len)
	}
	v.Data = column.AppendArrayDims(v.Data, dims, elems)
	v.EndBytes()
	return key[8*n:], nil
}

// SkipValueKey is how many bytes the key form of a value of type t takes at the start of key.
func SkipValueKey(key []byte, t column.Type) (int, error) {
	w := fixedKeyWidth(t.Kind)
	if len(key) < 1+w {
		return 0, malformed("key ends early")
	}
	switch {
	case key[0] == tagNull:
		return 1 + w, nil
	case key[0] != tagValue:
		return 0, malformed("unknown tag 0x%02x", key[0])
	case w > 0:
		return 1 + w, nil
	}
	var n int
	var err error
	switch t.Kind {
	case column.Numeric:
		n, err = decimal.KeySize(key[1:])
	case column.Text, column.Bytea:
		n, err = escapedSize(key[1:])
	case column.JSONB:
		n, err = jsonb.KeySize(key[1:])
	case column.Array:
		at := 1
		for at < len(key) && key[at] != arrayEnd {
			if n, err = SkipValueKey(key[at:], t.ElemType()); err != nil {
				return 0, err
			}
			at += n
		}
		if at+2 > len(key) || key[at+1] > column.MaxArrayDims || at+2+8*int(key[at+1]) > len(key) {
			return 0, malformed("array without an end")
		}
		n = at + 1 + 8*int(key[at+1])
	default:
		err = malformed("no key has type %s", t)
	}
	if err != nil {
		if !errors.Is(err, ErrMalformed) {
			err = malformed("%v", err)
		}
		return 0, err
	}
	return 1 + n, nil
}

// SkipKey is how many bytes the values of the given types take at the start of key: where a prefix ends.
func SkipKey(key []byte, types []column.Type) (int, error) {
	at := 0
	for _, t := range types {
		n, err := SkipValueKey(key[at:], t)
		if err != nil {
			return 0, err
		}
		at += n
	}
	return at, nil
}

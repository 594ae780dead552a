package column

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/leat-io/leat/internal/decimal"
)

// MaxArrayDims is how many dimensions an array may have.
const MaxArrayDims = 6

// maxArrayElems bounds the elements of one array.
const maxArrayElems = 1 << 27

// arrayNull is the length of an element that is NULL.
const arrayNull = math.MaxUint32

var errArray = errors.New("malformed array value")

// Dim is one dimension of an array.
type Dim struct {
	Len   int
	Lower int // the subscript of the first element, 1 unless the value says otherwise
}

// AppendArray appends rows [from, to) of elems to dst as a value of kind Array: one dimension, or none when there are no rows.
//
// The form: the number of dimensions (1 byte); for each its length and lower bound (4 bytes each); then the elements, each as its
// length (4 bytes, all ones for NULL) and its bytes. Integers are little-endian, numeric is decimal.AppendBinary.
func AppendArray(dst []byte, elems *Vector, from, to int) []byte {
	if from >= to {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(to-from))
	dst = binary.LittleEndian.AppendUint32(dst, 1)
	for i := from; i < to; i++ {
		dst = appendElem(dst, elems, i)
	}
	return dst
}

// AppendArrayDims appends all of elems, in row-major order, as an array with the given dimensions, whose lengths multiply to elems.Len.
func AppendArrayDims(dst []byte, dims []Dim, elems *Vector) []byte {
	if elems.Len == 0 {
		return append(dst, 0)
	}
	dst = append(dst, byte(len(dims)))
	for _, d := range dims {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(d.Len))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(int32(d.Lower)))
	}
	for i := range elems.Len {
		dst = appendElem(dst, elems, i)
	}
	return dst
}

func appendElem(dst []byte, v *Vector, i int) []byte {
	if v.IsNull(i) {
		return binary.LittleEndian.AppendUint32(dst, arrayNull)
	}
	if v.Type.Kind.Varlen() {
		b := v.Bytes(i)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)))
		return append(dst, b...)
	}
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	switch v.Type.Kind {
	case Bool:
		b := byte(0)
		if v.Bools[i] {
			b = 1
		}
		dst = append(dst, b)
	case Int16:
		dst = binary.LittleEndian.AppendUint16(dst, uint16(v.I16[i]))
	case Int32, Date:
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v.I32[i]))
	case Int64, Time, Timestamp, Timestamptz:
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v.I64[i]))
	case Float32:
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v.F32[i]))
	case Float64:
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.F64[i]))
	case Numeric:
		dst = v.Dec[i].AppendBinary(dst)
	case IntervalKind:
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v.Iv[i].Months))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v.Iv[i].Days))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v.Iv[i].Micros))
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// arrayHead reads the dimensions of an array.
func arrayHead(enc []byte, dims *[MaxArrayDims]Dim) (ndims, elems int, rest []byte, err error) {
	if len(enc) == 0 || int(enc[0]) > MaxArrayDims || len(enc) < 1+8*int(enc[0]) {
		return 0, 0, nil, errArray
	}
	ndims, rest = int(enc[0]), enc[1:]
	if ndims == 0 {
		return 0, 0, rest, nil
	}
	elems = 1
	for i := range ndims {
		n := binary.LittleEndian.Uint32(rest)
		if n > maxArrayElems || elems*int(n) > maxArrayElems {
			return 0, 0, nil, errArray
		}
		elems *= int(n)
		dims[i] = Dim{Len: int(n), Lower: int(int32(binary.LittleEndian.Uint32(rest[4:])))}
		rest = rest[8:]
	}
	if len(rest) < 4*elems {
		return 0, 0, nil, errArray
	}
	return ndims, elems, rest, nil
}

// ArrayLen is the number of elements of an array value (0 when it is malformed).
func ArrayLen(enc []byte) int {
	var dims [MaxArrayDims]Dim
	_, n, _, _ := arrayHead(enc, &dims)
	return n
}

// ArrayDims appends the dimensions of an array value to dst.
func ArrayDims(dst []Dim, enc []byte) []Dim {
	var dims [MaxArrayDims]Dim
	n, _, _, _ := arrayHead(enc, &dims)
	return append(dst, dims[:n]...)
}

// AppendArrayElems appends the elements of an array value to dst, whose type is the array's element type.
func AppendArrayElems(dst *Vector, enc []byte) error {
	var dims [MaxArrayDims]Dim
	_, n, rest, err := arrayHead(enc, &dims)
	if err != nil {
		return err
	}
	for range n {
		var b []byte
		var null bool
		if b, null, rest, err = nextElem(rest); err != nil {
			return err
		}
		if null {
			dst.AppendNull()
			continue
		}
		if err := appendDecoded(dst, b); err != nil {
			return err
		}
	}
	if len(rest) != 0 {
		return errArray
	}
	return nil
}

// ArrayElem appends element i (0 is the first in row-major order) of an array value to dst; NULL when there is none.
func ArrayElem(dst *Vector, enc []byte, i int) error {
	var dims [MaxArrayDims]Dim
	_, n, rest, err := arrayHead(enc, &dims)
	if err != nil {
		return err
	}
	if i < 0 || i >= n {
		dst.AppendNull()
		return nil
	}
	for {
		var b []byte
		var null bool
		if b, null, rest, err = nextElem(rest); err != nil {
			return err
		}
		if i == 0 {
			if null {
				dst.AppendNull()
				return nil
			}
			return appendDecoded(dst, b)
		}
		i--
	}
}

func nextElem(src []byte) (b []byte, null bool, rest []byte, err error) {
	if len(src) < 4 {
		return nil, false, nil, errArray
	}
	n := binary.LittleEndian.Uint32(src)
	src = src[4:]
	if n == arrayNull {
		return nil, true, src, nil
	}
	if uint64(n) > uint64(len(src)) {
		return nil, false, nil, errArray
	}
	return src[:n], false, src[n:], nil
}

func appendDecoded(v *Vector, b []byte) error {
	k := v.Type.Kind
	if k.Varlen() {
		v.AppendBytes(b)
		return nil
	}
	if k == Numeric {
		d, n, err := decimal.Decode(b)
		if err != nil || n != len(b) {
			return errArray
		}
		v.AppendDecimal(d)
		return nil
	}
	if len(b) != k.Width() {
		return errArray
	}
	switch k {
	case Bool:
		v.AppendBool(b[0] != 0)
	case Int16:
		v.AppendInt16(int16(binary.LittleEndian.Uint16(b)))
	case Int32, Date:
		v.AppendInt32(int32(binary.LittleEndian.Uint32(b)))
	case Int64, Time, Timestamp, Timestamptz:
		v.AppendInt64(int64(binary.LittleEndian.Uint64(b)))
	case Float32:
		v.AppendFloat32(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case Float64:
		v.AppendFloat64(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case IntervalKind:
		v.AppendInterval(Interval{
			Months: int32(binary.LittleEndian.Uint32(b)),
			Days:   int32(binary.LittleEndian.Uint32(b[4:])),
			Micros: int64(binary.LittleEndian.Uint64(b[8:])),
		})
	default:
		return errArray
	}
	return nil
}

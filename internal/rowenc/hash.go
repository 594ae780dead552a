package rowenc

import (
	"math/bits"

	"github.com/leat-io/leat/internal/column"
	"github.com/zeebo/xxh3"
)

// Hash is the hash of a key.
func Hash(key []byte) uint64 { return xxh3.Hash(key) }

// HashKeys makes dst the hashes of all keys.
func HashKeys(k *Keys, dst []uint64) []uint64 {
	dst = dst[:0]
	for i := range k.Len() {
		dst = append(dst, xxh3.Hash(k.Data[k.Off[i]:k.Off[i+1]]))
	}
	return dst
}

const (
	hashSeed = 0x9e3779b97f4a7c15
	hashA    = 0xa0761d6478bd642f
	hashB    = 0xe7037ed1a0b428db
	hashNull = 0x8ebc6af09c88c6e3
)

// mix folds a value into a hash.
func mix(h, x uint64) uint64 {
	hi, lo := bits.Mul64(x^hashA, h^hashB)
	return hi ^ lo
}

// HashRows makes dst the hash of every row of b in the given columns. Rows whose values are equal have equal hashes, also between
// smallint, integer and bigint and between real and double precision. The hash is not Hash of the key, and is not for storing.
func HashRows(b *column.Batch, cols []int, dst []uint64) []uint64 {
	if cap(dst) < b.Len {
		dst = make([]uint64, b.Len, max(b.Len, column.MaxRows))
	}
	dst = dst[:b.Len]
	for i := range dst {
		dst[i] = hashSeed
	}
	for _, c := range cols {
		v := b.Cols[c]
		if v.Valid != nil && !v.Valid.All(v.Len) {
			for i, h := range dst {
				dst[i] = mix(h, hashValue(v, i))
			}
			continue
		}
		hashColumn(dst, v)
	}
	return dst
}

// HashRow is HashRows of one row.
func HashRow(b *column.Batch, cols []int, row int) uint64 {
	h := uint64(hashSeed)
	for _, c := range cols {
		h = mix(h, hashValue(b.Cols[c], row))
	}
	return h
}

// hashColumn folds a column without NULLs into dst.
func hashColumn(dst []uint64, v *column.Vector) {
	switch v.Type.Kind {
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
		hashInts(dst, v.I64)
	case column.Int32, column.Date:
		hashInts(dst, v.I32)
	case column.Int16:
		hashInts(dst, v.I16)
	case column.Text, column.Bytea:
		off, data := v.Off[:len(dst)+1], v.Data
		for i, h := range dst {
			dst[i] = mix(h, xxh3.Hash(data[off[i]:off[i+1]]))
		}
	case column.Numeric:
		vals := v.Dec[:len(dst)]
		for i, h := range dst {
			dst[i] = mix(h, vals[i].Hash())
		}
	case column.Float64:
		vals := v.F64[:len(dst)]
		for i, h := range dst {
			dst[i] = mix(h, float64Key(vals[i]))
		}
	default:
		for i, h := range dst {
			dst[i] = mix(h, hashValue(v, i))
		}
	}
}

func hashInts[T int16 | int32 | int64](dst []uint64, vals []T) {
	vals = vals[:len(dst)]
	for i, h := range dst {
		dst[i] = mix(h, uint64(int64(vals[i])))
	}
}

// hashValue is what is folded in for one value.
func hashValue(v *column.Vector, i int) uint64 {
	if v.IsNull(i) {
		return hashNull
	}
	switch v.Type.Kind {
	case column.Bool:
		return uint64(boolByte(v.Bools[i]))
	case column.Int16:
		return uint64(int64(v.I16[i]))
	case column.Int32, column.Date:
		return uint64(int64(v.I32[i]))
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
		return uint64(v.I64[i])
	case column.Float32:
		return float64Key(float64(v.F32[i]))
	case column.Float64:
		return float64Key(v.F64[i])
	case column.Numeric:
		return v.Dec[i].Hash()
	case column.IntervalKind:
		hi, lo := v.Iv[i].Span()
		return mix(lo, uint64(hi))
	case column.Text, column.Bytea:
		return xxh3.Hash(v.Bytes(i))
	}
	// jsonb and arrays: equal values may differ as bytes, equal keys do not.
	var buf [256]byte
	return xxh3.Hash(AppendValueKey(buf[:0], v, i))
}

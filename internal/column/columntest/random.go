// Package columntest makes batches for tests: random ones from a seed, with the values that break things more often than chance
// would have them.
package columntest

import (
	"flag"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/jsonb"
	"github.com/leat-io/leat/internal/decimal"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0 takes a new one")

// Rand is a generator from the -seed flag, or from a new seed, which is logged when the test fails.
func Rand(tb testing.TB) *rand.Rand {
	tb.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("run again with -seed=%d", s)
		}
	})
	return rand.New(rand.NewPCG(s, 1))
}

// Types is every type that a batch can hold, and some arrays.
func Types() []column.Type {
	return []column.Type{
		column.TBool, column.TInt16, column.TInt32, column.TInt64, column.TFloat32, column.TFloat64, column.TNumeric, column.TText,
		column.TBytea, column.TDate, column.TTime, column.TTimestamp, column.TTimestamptz, column.TInterval, column.TJSONB,
		column.TTextArray, column.ArrayOf(column.Int32), column.ArrayOf(column.Numeric), column.ArrayOf(column.Float64),
	}
}

// Batch makes a batch of rows of the given types. About a tenth of the values is NULL in half of the columns; half of the batches
// have weights.
func Batch(r *rand.Rand, types []column.Type, rows int) *column.Batch {
	b := column.NewBatch(types, rows)
	for _, v := range b.Cols {
		nulls := r.IntN(2) == 0
		few := r.IntN(2) == 0 // draw from few values, so that rows are equal
		for range rows {
			if nulls && r.IntN(10) == 0 {
				v.AppendNull()
				continue
			}
			AppendRandom(r, v, few)
		}
	}
	b.Len = rows
	if r.IntN(2) == 0 {
		w := b.MakeWeights()
		for i := range w {
			w[i] = int64(r.IntN(5)) - 2
		}
	}
	return b
}

// AppendRandom appends a random value to v; one of few when asked.
func AppendRandom(r *rand.Rand, v *column.Vector, few bool) {
	switch v.Type.Kind {
	case column.Bool:
		v.AppendBool(r.IntN(2) == 0)
	case column.Int16:
		v.AppendInt16(int16(Int(r, few)))
	case column.Int32:
		v.AppendInt32(int32(Int(r, few)))
	case column.Int64:
		v.AppendInt64(Int(r, few))
	case column.Float32:
		v.AppendFloat32(float32(Float(r, few)))
	case column.Float64:
		v.AppendFloat64(Float(r, few))
	case column.Numeric:
		v.AppendDecimal(Decimal(r, few))
	case column.Text:
		v.AppendString(Text(r, few))
	case column.Bytea:
		v.AppendBytes(Bytes(r, few))
	case column.Date:
		v.AppendInt32(int32(Int(r, few) % 1_500_000))
	case column.Time:
		v.AppendInt64(abs(Int(r, few)) % 86_400_000_001)
	case column.Timestamp, column.Timestamptz:
		v.AppendInt64(Int(r, few) % 200_000_000_000_000_000)
	case column.IntervalKind:
		v.AppendInterval(Interval(r, few))
	case column.JSONB:
		text, err := jsonb.Canonical(nil, appendJSON(r, nil, few, 0))
		if err != nil {
			panic(err)
		}
		v.AppendBytes(text)
	case column.Array:
		elems := column.NewVector(v.Type.ElemType(), 4)
		for range r.IntN(4) {
			if r.IntN(6) == 0 {
				elems.AppendNull()
			} else {
				AppendRandom(r, elems, few)
			}
		}
		v.Data = column.AppendArray(v.Data, elems, 0, elems.Len)
		v.EndBytes()
	}
}

func abs(x int64) int64 {
	if x < 0 {
		return -(x + 1)
	}
	return x
}

// Int is an integer of any size.
func Int(r *rand.Rand, few bool) int64 {
	if few {
		return int64(r.IntN(4)) - 1
	}
	switch r.IntN(8) {
	case 0:
		return math.MinInt64
	case 1:
		return math.MaxInt64
	}
	return int64(r.Uint64()) >> r.IntN(64)
}

// Float is a double; zeros of both signs, NaN and infinities are common.
func Float(r *rand.Rand, few bool) float64 {
	special := [...]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, math.MaxFloat64, math.SmallestNonzeroFloat64}
	if few || r.IntN(4) == 0 {
		return special[r.IntN(len(special))]
	}
	if r.IntN(2) == 0 {
		return math.Float64frombits(r.Uint64())
	}
	return float64(r.IntN(2000)-1000) / 8
}

// Decimal is a number with up to 60 digits, or a special value. Equal values with different scales are common.
func Decimal(r *rand.Rand, few bool) decimal.Decimal {
	special := [...]string{"0", "0.00", "1", "1.0", "1.000", "-1", "-1.00", "NaN", "Infinity", "-Infinity", "100", "1e2", "0.1", "0.10"}
	s := special[r.IntN(len(special))]
	if !few && r.IntN(4) > 0 {
		digits := []byte{}
		for range 1 + r.IntN([...]int{4, 19, 40, 60}[r.IntN(4)]) {
			digits = append(digits, byte('0'+r.IntN(10)))
		}
		s = string(digits)
		if r.IntN(2) == 0 {
			s = "-" + s
		}
		s += "e" + strconv.Itoa(r.IntN(50)-40)
	}
	d, err := decimal.Parse(s)
	if err != nil {
		panic(err)
	}
	return d
}

// Text is valid UTF-8.
func Text(r *rand.Rand, few bool) string {
	if few {
		return [...]string{"", "a", "ab", "b"}[r.IntN(4)]
	}
	runes := make([]rune, r.IntN([...]int{3, 12, 80}[r.IntN(3)]))
	for i := range runes {
		runes[i] = [...]rune{'a', 'b', ' ', '"', '\\', '{', ',', '\n', 'ä', '€', '😀', 1, 0x7f, rune('a' + r.IntN(26))}[r.IntN(14)]
	}
	return string(runes)
}

// Bytes is any bytes; 0, 1 and 255 are common.
func Bytes(r *rand.Rand, few bool) []byte {
	n := r.IntN(12)
	if few {
		n = r.IntN(3)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = [...]byte{0, 0, 1, 0xff, byte(r.IntN(256))}[r.IntN(5)]
		if few {
			b[i] &= 1
		}
	}
	return b
}

// Interval is any interval; equal ones with different parts are common.
func Interval(r *rand.Rand, few bool) column.Interval {
	equal := [...]column.Interval{{}, {Months: 1}, {Days: 30}, {Micros: 30 * 86_400_000_000}, {Days: 1}, {Micros: 86_400_000_000}, {Months: -1, Days: 30}}
	if few || r.IntN(3) == 0 {
		return equal[r.IntN(len(equal))]
	}
	return column.Interval{Months: int32(r.IntN(2000) - 1000), Days: int32(r.Uint32()) >> r.IntN(32), Micros: Int(r, false) / 2}
}

func appendJSON(r *rand.Rand, dst []byte, few bool, depth int) []byte {
	n := r.IntN(8)
	if few || depth > 3 {
		n = r.IntN(5)
	}
	switch n {
	case 0:
		return append(dst, "null"...)
	case 1:
		return append(dst, "true"...)
	case 2:
		return append(dst, "false"...)
	case 3:
		return append(dst, [...]string{"0", "1", "1.0", "-1.50", "1e3", "1000", "12345678901234567890.5"}[r.IntN(7)]...)
	case 4:
		return jsonb.AppendQuoted(dst, []byte(Text(r, few)))
	case 5:
		dst = append(dst, '[')
		for i := range r.IntN(4) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(r, dst, few, depth+1)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i := range r.IntN(4) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonb.AppendQuoted(dst, []byte(Text(r, r.IntN(2) == 0))), ':')
		dst = appendJSON(r, dst, few, depth+1)
	}
	return append(dst, '}')
}

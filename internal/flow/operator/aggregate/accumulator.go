package aggregate

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// accumulator is one call's part of a group's row: width bytes at a fixed place. All values are little endian.
type accumulator interface {
	width() int
	// update adds rows of arg: rows[i] goes to the group at g[rows[i]]. Rows hold no NULL. weights is nil when all are +1.
	update(g [][]byte, at int, arg *column.Vector, rows []int32, weights []int64)
	// merge adds src's state to dst's.
	merge(dst, src []byte)
	// result appends the value.
	result(v []byte, dst *column.Vector) error
}

func get(v []byte, at int) int64    { return int64(binary.LittleEndian.Uint64(v[at:])) }
func put(v []byte, at int, x int64) { binary.LittleEndian.PutUint64(v[at:], uint64(x)) }
func add(v []byte, at int, x int64) { put(v, at, get(v, at)+x) }

func getFloat(v []byte, at int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(v[at:]))
}

func putFloat(v []byte, at int, x float64) {
	binary.LittleEndian.PutUint64(v[at:], math.Float64bits(x))
}

func weightOf(weights []int64, row int32) int64 {
	if weights == nil {
		return 1
	}
	return weights[row]
}

// newAccumulator makes the fixed part of a call, nil if the call keeps its state elsewhere (see tail.go).
func newAccumulator(c *plan.Call, appendOnly bool) (accumulator, error) {
	if c.Func == "count" {
		return counter{}, nil
	}
	if len(c.Args) != 1 || len(c.Types) != 1 {
		return nil, fmt.Errorf("%s of %d arguments", c.Func, len(c.Args))
	}
	k := c.Types[0].Kind
	switch c.Func {
	case "sum", "avg":
		switch k {
		case column.Int16, column.Int32, column.Int64:
			return integerSum{avg: c.Func == "avg", wide: c.Result.Kind == column.Numeric}, nil
		case column.Float32, column.Float64:
			return floatSum{avg: c.Func == "avg"}, nil
		case column.IntervalKind:
			return intervalSum{avg: c.Func == "avg"}, nil
		case column.Numeric:
			return nil, nil
		}
	case "min", "max":
		if !appendOnly {
			return nil, nil
		}
		switch k {
		case column.Int16, column.Int32, column.Int64, column.Date, column.Time, column.Timestamp, column.Timestamptz,
			column.Float32, column.Float64:
			return extreme{kind: k, max: c.Func == "max"}, nil
		}
		return nil, nil
	case "bool_and":
		return boolean{and: true}, nil
	case "bool_or":
		return boolean{}, nil
	}
	return nil, fmt.Errorf("aggregate %s(%s) is not supported", c.Func, c.Types[0])
}

// counter is count(x): one count.
type counter struct{}

func (counter) width() int { return 8 }

func (counter) update(g [][]byte, at int, _ *column.Vector, rows []int32, weights []int64) {
	if weights == nil {
		for _, r := range rows {
			v := g[r][at : at+8]
			binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
		}
		return
	}
	for _, r := range rows {
		add(g[r], at, weights[r])
	}
}

func (counter) merge(dst, src []byte) { add(dst, 0, get(src, 0)) }

func (counter) result(v []byte, dst *column.Vector) error {
	dst.AppendInt64(get(v, 0))
	return nil
}

// integerSum is sum and avg of integers: the number of values, then their sum in 128 bits (low, high).
type integerSum struct{ avg, wide bool }

func (integerSum) width() int { return 24 }

func (integerSum) update(g [][]byte, at int, arg *column.Vector, rows []int32, weights []int64) {
	switch arg.Type.Kind {
	case column.Int16:
		sumIntegers(g, at, arg.I16, rows, weights)
	case column.Int32:
		sumIntegers(g, at, arg.I32, rows, weights)
	default:
		sumIntegers(g, at, arg.I64, rows, weights)
	}
}

func sumIntegers[T int16 | int32 | int64](g [][]byte, at int, arg []T, rows []int32, weights []int64) {
	if weights == nil {
		for _, r := range rows {
			v := g[r][at : at+24]
			x := int64(arg[r])
			binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
			lo, c := bits.Add64(binary.LittleEndian.Uint64(v[8:]), uint64(x), 0)
			binary.LittleEndian.PutUint64(v[8:], lo)
			binary.LittleEndian.PutUint64(v[16:], binary.LittleEndian.Uint64(v[16:])+uint64(x>>63)+c)
		}
		return
	}
	for _, r := range rows {
		v := g[r][at : at+24]
		w := weights[r]
		add(v, 0, w)
		lo, hi := mul(int64(arg[r]), w)
		addWide(v[8:], lo, hi)
	}
}

// mul is the product of two integers in 128 bits of two's complement.
func mul(a, b int64) (lo, hi uint64) {
	hi, lo = bits.Mul64(uint64(a), uint64(b))
	if a < 0 {
		hi -= uint64(b)
	}
	if b < 0 {
		hi -= uint64(a)
	}
	return lo, hi
}

func addWide(v []byte, lo, hi uint64) {
	l, c := bits.Add64(binary.LittleEndian.Uint64(v), lo, 0)
	binary.LittleEndian.PutUint64(v, l)
	binary.LittleEndian.PutUint64(v[8:], binary.LittleEndian.Uint64(v[8:])+hi+c)
}

func (integerSum) merge(dst, src []byte) {
	add(dst, 0, get(src, 0))
	addWide(dst[8:], uint64(get(src, 8)), uint64(get(src, 16)))
}

func (s integerSum) result(v []byte, dst *column.Vector) error {
	n, lo, hi := get(v, 0), uint64(get(v, 8)), get(v, 16)
	switch {
	case n == 0:
		dst.AppendNull()
	case s.avg:
		d, err := decimal.FromInt128(hi, lo, 0).Div(decimal.FromInt64(n))
		if err != nil {
			return err
		}
		dst.AppendDecimal(d)
	case s.wide:
		dst.AppendDecimal(decimal.FromInt128(hi, lo, 0))
	default:
		if hi != int64(lo)>>63 {
			return pgerr.New(pgerr.NumericValueOutOfRange, "bigint out of range")
		}
		dst.AppendInt64(int64(lo))
	}
	return nil
}

// floatSum is sum and avg of real and double precision: the number of values, the sum of the finite ones with its compensation
// (Neumaier), and the numbers of NaN, Infinity and -Infinity, so that a value that leaves takes its effect with it.
type floatSum struct{ avg bool }

func (floatSum) width() int { return 48 }

func (floatSum) update(g [][]byte, at int, arg *column.Vector, rows []int32, weights []int64) {
	if arg.Type.Kind == column.Float32 {
		sumFloats(g, at, arg.F32, rows, weights)
	} else {
		sumFloats(g, at, arg.F64, rows, weights)
	}
}

func sumFloats[T float32 | float64](g [][]byte, at int, arg []T, rows []int32, weights []int64) {
	for _, r := range rows {
		v := g[r][at : at+48]
		x, w := float64(arg[r]), weightOf(weights, r)
		add(v, 0, w)
		switch {
		case x != x:
			add(v, 24, w)
		case x > math.MaxFloat64:
			add(v, 32, w)
		case x < -math.MaxFloat64:
			add(v, 40, w)
		case w == 1:
			compensate(v, x)
		case w == -1:
			compensate(v, -x)
		default:
			compensate(v, x*float64(w))
		}
		clearEmpty(v)
	}
}

// compensate adds x to the sum at v[8:] and what was rounded off to v[16:].
func compensate(v []byte, x float64) {
	s, c := getFloat(v, 8), getFloat(v, 16)
	t := s + x
	if math.Abs(s) >= math.Abs(x) {
		c += (s - t) + x
	} else {
		c += (x - t) + s
	}
	putFloat(v, 8, t)
	putFloat(v, 16, c)
}

// clearEmpty makes the sum an exact zero when no value is left.
func clearEmpty(v []byte) {
	if get(v, 0) == 0 {
		clear(v[8:24])
	}
}

func (floatSum) merge(dst, src []byte) {
	add(dst, 0, get(src, 0))
	compensate(dst, getFloat(src, 8))
	compensate(dst, getFloat(src, 16))
	for at := 24; at < 48; at += 8 {
		add(dst, at, get(src, at))
	}
	clearEmpty(dst)
}

func (s floatSum) result(v []byte, dst *column.Vector) error {
	n := get(v, 0)
	if n == 0 {
		dst.AppendNull()
		return nil
	}
	sum := getFloat(v, 8) + getFloat(v, 16)
	special := true
	switch nan, up, down := get(v, 24), get(v, 32), get(v, 40); {
	case nan > 0 || up > 0 && down > 0:
		sum = math.NaN()
	case up > 0:
		sum = math.Inf(1)
	case down > 0:
		sum = math.Inf(-1)
	default:
		special = false
	}
	if s.avg {
		sum /= float64(n)
	}
	if dst.Type.Kind == column.Float32 {
		f := float32(sum)
		if !special && math.IsInf(float64(f), 0) {
			return pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: overflow")
		}
		dst.AppendFloat32(f)
		return nil
	}
	if !special && (math.IsInf(sum, 0) || sum != sum) {
		return pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: overflow")
	}
	dst.AppendFloat64(sum)
	return nil
}

// intervalSum is sum and avg of intervals: the number of values, then the sums of months, days and microseconds.
type intervalSum struct{ avg bool }

func (intervalSum) width() int { return 32 }

func (intervalSum) update(g [][]byte, at int, arg *column.Vector, rows []int32, weights []int64) {
	for _, r := range rows {
		v, w, x := g[r][at:at+32], weightOf(weights, r), arg.Iv[r]
		add(v, 0, w)
		add(v, 8, int64(x.Months)*w)
		add(v, 16, int64(x.Days)*w)
		add(v, 24, x.Micros*w)
	}
}

func (intervalSum) merge(dst, src []byte) {
	for at := 0; at < 32; at += 8 {
		add(dst, at, get(src, at))
	}
}

const (
	daysPerMonth = 30
	microsPerDay = 24 * 3600 * 1000000
)

func (s intervalSum) result(v []byte, dst *column.Vector) error {
	n := get(v, 0)
	if n == 0 {
		dst.AppendNull()
		return nil
	}
	months, days, micros := get(v, 8), get(v, 16), get(v, 24)
	if s.avg {
		// As PostgreSQL divides an interval: what is left of months goes into days of 30, what is left of days into time.
		m := months / n
		md := float64(months%n) / float64(n) * daysPerMonth
		md = math.RoundToEven(md*1e6) / 1e6
		d := days / n
		sec := float64(days%n)/float64(n) + md - float64(int64(md))
		sec = math.RoundToEven(sec*86400*1e6) / 1e6
		d += int64(md)
		if math.Abs(sec) >= 86400 {
			d += int64(sec / 86400)
			sec -= float64(int64(sec/86400)) * 86400
		}
		months, days = m, d
		micros = int64(math.RoundToEven(float64(micros)/float64(n) + sec*1e6))
	}
	if months != int64(int32(months)) || days != int64(int32(days)) {
		return pgerr.New(pgerr.DatetimeFieldOverflow, "interval out of range")
	}
	dst.AppendInterval(column.Interval{Months: int32(months), Days: int32(days), Micros: micros})
	return nil
}

// extreme is min and max of values of fixed width that never leave: the number of values, then the value itself.
type extreme struct {
	kind column.Kind
	max  bool
}

func (extreme) width() int { return 16 }

func (e extreme) update(g [][]byte, at int, arg *column.Vector, rows []int32, _ []int64) {
	switch e.kind {
	case column.Int16:
		extremeOf(g, at, arg.I16, rows, e.max)
	case column.Int32, column.Date:
		extremeOf(g, at, arg.I32, rows, e.max)
	case column.Float32:
		for _, r := range rows {
			e.one(g[r][at:at+16], floatOrder(float64(arg.F32[r])))
		}
	case column.Float64:
		for _, r := range rows {
			e.one(g[r][at:at+16], floatOrder(arg.F64[r]))
		}
	default:
		extremeOf(g, at, arg.I64, rows, e.max)
	}
}

func extremeOf[T int16 | int32 | int64](g [][]byte, at int, arg []T, rows []int32, largest bool) {
	for _, r := range rows {
		v := g[r][at : at+16]
		x := int64(arg[r])
		n := binary.LittleEndian.Uint64(v)
		binary.LittleEndian.PutUint64(v, n+1)
		old := int64(binary.LittleEndian.Uint64(v[8:]))
		if n == 0 || (x > old) == largest && x != old {
			binary.LittleEndian.PutUint64(v[8:], uint64(x))
		}
	}
}

func (e extreme) one(v []byte, x int64) {
	n, old := get(v, 0), get(v, 8)
	put(v, 0, n+1)
	if n == 0 || (x > old) == e.max && x != old {
		put(v, 8, x)
	}
}

func (e extreme) merge(dst, src []byte) {
	n := get(src, 0)
	if n == 0 {
		return
	}
	e.one(dst, get(src, 8))
	add(dst, 0, n-1)
}

// floatOrder maps a float to an integer in PostgreSQL's order, with NaN above all; -0 equals 0.
func floatOrder(x float64) int64 {
	if x != x {
		return math.MaxInt64
	}
	if x == 0 {
		return 0
	}
	b := int64(math.Float64bits(x))
	if b < 0 {
		b = math.MinInt64 - b
	}
	return b
}

func floatFrom(b int64) float64 {
	if b == math.MaxInt64 {
		return math.NaN()
	}
	if b < 0 {
		b = math.MinInt64 - b
	}
	return math.Float64frombits(uint64(b))
}

func (e extreme) result(v []byte, dst *column.Vector) error {
	x := get(v, 8)
	switch {
	case get(v, 0) == 0:
		dst.AppendNull()
	case e.kind == column.Int16:
		dst.AppendInt16(int16(x))
	case e.kind == column.Int32 || e.kind == column.Date:
		dst.AppendInt32(int32(x))
	case e.kind == column.Float32:
		dst.AppendFloat32(float32(floatFrom(x)))
	case e.kind == column.Float64:
		dst.AppendFloat64(floatFrom(x))
	default:
		dst.AppendInt64(x)
	}
	return nil
}

// boolean is bool_and and bool_or: the numbers of true and false values.
type boolean struct{ and bool }

func (boolean) width() int { return 16 }

func (boolean) update(g [][]byte, at int, arg *column.Vector, rows []int32, weights []int64) {
	for _, r := range rows {
		to := at
		if !arg.Bools[r] {
			to += 8
		}
		add(g[r], to, weightOf(weights, r))
	}
}

func (boolean) merge(dst, src []byte) {
	add(dst, 0, get(src, 0))
	add(dst, 8, get(src, 8))
}

func (b boolean) result(v []byte, dst *column.Vector) error {
	yes, no := get(v, 0), get(v, 8)
	switch {
	case yes == 0 && no == 0:
		dst.AppendNull()
	case b.and:
		dst.AppendBool(no == 0)
	default:
		dst.AppendBool(yes > 0)
	}
	return nil
}

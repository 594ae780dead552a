package pgtype

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/leat-io/leat/internal/column"
)

// AppendText appends the text form of a value that is not NULL. Timestamps with time zone are shown in zone (nil: UTC).
func AppendText(dst []byte, v *column.Vector, row int, zone *time.Location) []byte {
	switch v.Type.Kind {
	case column.Bool:
		return AppendBool(dst, v.Bools[row])
	case column.Int16:
		return strconv.AppendInt(dst, int64(v.I16[row]), 10)
	case column.Int32:
		return strconv.AppendInt(dst, int64(v.I32[row]), 10)
	case column.Int64:
		return strconv.AppendInt(dst, v.I64[row], 10)
	case column.Float32:
		return AppendFloat32(dst, v.F32[row])
	case column.Float64:
		return AppendFloat64(dst, v.F64[row])
	case column.Numeric:
		return v.Dec[row].Append(dst)
	case column.Date:
		return AppendDate(dst, v.I32[row])
	case column.Time:
		return AppendTime(dst, v.I64[row])
	case column.Timestamp:
		return AppendTimestamp(dst, v.I64[row])
	case column.Timestamptz:
		return AppendTimestamptz(dst, v.I64[row], zone)
	case column.IntervalKind:
		return AppendInterval(dst, v.Iv[row])
	case column.Bytea:
		return AppendBytea(dst, v.Bytes(row))
	case column.Array:
		return appendArrayText(dst, v.Type.ElemType(), v.Bytes(row), zone)
	}
	return append(dst, v.Bytes(row)...)
}

// AppendBool appends t or f.
func AppendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 't')
	}
	return append(dst, 'f')
}

// AppendFloat64 appends the shortest form that reads back to the same value.
func AppendFloat64(dst []byte, x float64) []byte { return appendFloat(dst, x, 1e15, 64) }

// AppendFloat32 appends the shortest form that reads back to the same value.
func AppendFloat32(dst []byte, x float32) []byte { return appendFloat(dst, float64(x), 1e6, 32) }

func appendFloat(dst []byte, x, large float64, bits int) []byte {
	switch a := math.Abs(x); {
	case x != x:
		return append(dst, "NaN"...)
	case math.IsInf(x, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(x, -1):
		return append(dst, "-Infinity"...)
	case a >= float64(uint64(1)<<53) || bits == 32 && a >= 1<<24:
		return appendLargeFloat(dst, x, bits)
	case a >= large || a < smallest(bits) && a != 0:
		return strconv.AppendFloat(dst, x, 'e', -1, bits)
	}
	return strconv.AppendFloat(dst, x, 'f', -1, bits)
}

// appendLargeFloat writes a number whose neighbours' midpoints are integers. The shortest digits may then be exactly such a midpoint,
// which reads back right because ties go to even; PostgreSQL does not count on that and takes the next digits that do.
func appendLargeFloat(dst []byte, x float64, bits int) []byte {
	start := len(dst)
	dst = strconv.AppendFloat(dst, x, 'e', -1, bits)
	even := math.Float64bits(x)&1 == 0
	if bits == 32 {
		even = math.Float32bits(float32(x))&1 == 0
	}
	if !even || !isMidpoint(str(dst[start:]), x, bits) {
		return dst
	}
	for digits := 1; digits <= 17; digits++ {
		dst = strconv.AppendFloat(dst[:start], x, 'e', digits, bits)
		s := str(dst[start:])
		if y, err := strconv.ParseFloat(s, bits); err == nil && y == x && !isMidpoint(s, x, bits) {
			break
		}
	}
	return dst
}

// isMidpoint reports whether a decimal number lies exactly between x and a neighbour.
func isMidpoint(s string, x float64, bits int) bool {
	d, _, err := big.ParseFloat(s, 10, 1200, big.ToNearestEven)
	if err != nil {
		return false
	}
	d.Sub(d, new(big.Float).SetFloat64(x))
	if d.Sign() == 0 {
		return false
	}
	up := math.Nextafter(x, math.Inf(1))
	down := math.Nextafter(x, math.Inf(-1))
	if bits == 32 {
		up = float64(math.Nextafter32(float32(x), float32(math.Inf(1))))
		down = float64(math.Nextafter32(float32(x), float32(math.Inf(-1))))
	}
	near := down
	if d.Sign() > 0 {
		near = up
	}
	if math.IsInf(near, 0) {
		return false
	}
	half := new(big.Float).SetPrec(1200).SetFloat64(near)
	half.Sub(half, new(big.Float).SetFloat64(x))
	return half.Cmp(d.Mul(d, big.NewFloat(2))) == 0
}

// smallest is the smallest value that is written without an exponent.
func smallest(bits int) float64 {
	if bits == 32 {
		return float64(float32(1e-4))
	}
	return 1e-4
}

// AppendDate appends a date in ISO form.
func AppendDate(dst []byte, days int32) []byte {
	switch days {
	case column.DateInfinity:
		return append(dst, "infinity"...)
	case column.DateNegInfinity:
		return append(dst, "-infinity"...)
	}
	y, m, d := Civil(days)
	dst = appendYMD(dst, y, m, d)
	if y <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}

func appendYMD(dst []byte, y, m, d int) []byte {
	if y <= 0 {
		y = 1 - y
	}
	if y > 9999 {
		dst = strconv.AppendInt(dst, int64(y), 10)
	} else {
		dst = append(dst, byte('0'+y/1000), byte('0'+y/100%10), byte('0'+y/10%10), byte('0'+y%10))
	}
	return append(dst, '-', byte('0'+m/10), byte('0'+m%10), '-', byte('0'+d/10), byte('0'+d%10))
}

func append2(dst []byte, n int64) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// AppendTime appends a time of day.
func AppendTime(dst []byte, us int64) []byte {
	dst = append2(dst, us/microsPerHour)
	dst = append(dst, ':')
	dst = append2(dst, us/microsPerMinute%60)
	dst = append(dst, ':')
	dst = append2(dst, us/microsPerSecond%60)
	return appendFraction(dst, us%microsPerSecond)
}

// appendFraction appends a point and the digits of a fraction of a second, without zeros at the end; nothing for 0.
func appendFraction(dst []byte, us int64) []byte {
	if us == 0 {
		return dst
	}
	dst = append(dst, '.')
	for div := int64(100_000); us > 0; div /= 10 {
		dst = append(dst, byte('0'+us/div))
		us %= div
	}
	return dst
}

// AppendTimestamp appends a timestamp without time zone in ISO form.
func AppendTimestamp(dst []byte, us int64) []byte {
	if dst, ok := appendInfinite(dst, us); ok {
		return dst
	}
	days, micros := SplitMicros(us)
	y, m, d := Civil(days)
	dst = appendYMD(dst, y, m, d)
	dst = append(dst, ' ')
	dst = AppendTime(dst, micros)
	if y <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}

func appendInfinite(dst []byte, us int64) ([]byte, bool) {
	switch us {
	case column.TimestampInfinity:
		return append(dst, "infinity"...), true
	case column.TimestampNegInfinity:
		return append(dst, "-infinity"...), true
	}
	return dst, false
}

// AppendTimestamptz appends an instant in ISO form, in a zone (nil: UTC).
func AppendTimestamptz(dst []byte, us int64, zone *time.Location) []byte {
	if dst, ok := appendInfinite(dst, us); ok {
		return dst
	}
	off := OffsetAt(zone, us)
	days, micros := SplitMicros(us)
	micros += int64(off) * microsPerSecond
	for micros < 0 {
		micros += microsPerDay
		days--
	}
	for micros >= microsPerDay {
		micros -= microsPerDay
		days++
	}
	y, m, d := Civil(days)
	dst = appendYMD(dst, y, m, d)
	dst = append(dst, ' ')
	dst = AppendTime(dst, micros)
	sign := byte('+')
	if off < 0 {
		sign, off = '-', -off
	}
	dst = append(dst, sign)
	dst = append2(dst, int64(off/3600))
	if off%3600 != 0 {
		dst = append(dst, ':')
		dst = append2(dst, int64(off/60%60))
		if off%60 != 0 {
			dst = append(dst, ':')
			dst = append2(dst, int64(off%60))
		}
	}
	if y <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}

// AppendInterval appends an interval in PostgreSQL's own style: "1 year 2 mons 3 days 04:05:06.7".
func AppendInterval(dst []byte, iv column.Interval) []byte {
	first, before := true, false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if !first {
			dst = append(dst, ' ')
		}
		if before && n > 0 {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(dst, ' ')
		dst = append(dst, unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		first, before = false, n < 0
	}
	part(int64(iv.Months/12), "year")
	part(int64(iv.Months%12), "mon")
	part(int64(iv.Days), "day")
	if !first && iv.Micros == 0 {
		return dst
	}
	if !first {
		dst = append(dst, ' ')
	}
	us := uint64(iv.Micros)
	switch {
	case iv.Micros < 0:
		us = -us
		dst = append(dst, '-')
	case before:
		dst = append(dst, '+')
	}
	h := us / microsPerHour
	if h < 10 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendUint(dst, h, 10)
	dst = append(dst, ':')
	dst = append2(dst, int64(us/microsPerMinute%60))
	dst = append(dst, ':')
	dst = append2(dst, int64(us/microsPerSecond%60))
	return appendFraction(dst, int64(us%microsPerSecond))
}

const hexDigits = "0123456789abcdef"

// AppendBytea appends bytes in hex form.
func AppendBytea(dst, b []byte) []byte {
	dst = append(dst, '\\', 'x')
	for _, c := range b {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

func appendArrayText(dst []byte, elem column.Type, enc []byte, zone *time.Location) []byte {
	elems := column.NewVector(elem, column.ArrayLen(enc))
	if column.AppendArrayElems(elems, enc) != nil || elems.Len == 0 {
		return append(dst, "{}"...)
	}
	var buf [column.MaxArrayDims]column.Dim
	dims := column.ArrayDims(buf[:0], enc)
	plain := true
	for _, d := range dims {
		plain = plain && d.Lower == 1
	}
	if !plain {
		for _, d := range dims {
			dst = append(dst, '[')
			dst = strconv.AppendInt(dst, int64(d.Lower), 10)
			dst = append(dst, ':')
			dst = strconv.AppendInt(dst, int64(d.Lower+d.Len-1), 10)
			dst = append(dst, ']')
		}
		dst = append(dst, '=')
	}
	next := 0
	return appendArrayLevel(dst, elems, dims, &next, zone)
}

func appendArrayLevel(dst []byte, elems *column.Vector, dims []column.Dim, next *int, zone *time.Location) []byte {
	dst = append(dst, '{')
	for i := range dims[0].Len {
		if i > 0 {
			dst = append(dst, ',')
		}
		if len(dims) > 1 {
			dst = appendArrayLevel(dst, elems, dims[1:], next, zone)
			continue
		}
		row := *next
		*next++
		if elems.IsNull(row) {
			dst = append(dst, "NULL"...)
			continue
		}
		start := len(dst)
		dst = AppendText(dst, elems, row, zone)
		dst = quoteElem(dst, start)
	}
	return append(dst, '}')
}

// quoteElem puts dst[start:] into quotes if an array's element has to be.
func quoteElem(dst []byte, start int) []byte {
	s := dst[start:]
	need, escapes := len(s) == 0 || len(s) == 4 && bytes.EqualFold(s, []byte("null")), 0
	for _, c := range s {
		switch c {
		case '"', '\\':
			escapes++
			need = true
		case '{', '}', ',', ' ', '\t', '\n', '\r', '\v', '\f':
			need = true
		}
	}
	if !need {
		return dst
	}
	n := len(s)
	for range escapes + 2 {
		dst = append(dst, 0)
	}
	// From the end, so that nothing is written over before it is read.
	to := len(dst) - 1
	dst[to] = '"'
	for i := start + n - 1; i >= start; i-- {
		c := dst[i]
		to--
		dst[to] = c
		if c == '"' || c == '\\' {
			to--
			dst[to] = '\\'
		}
	}
	dst[start] = '"'
	return dst
}

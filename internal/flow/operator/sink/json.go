package sink

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
)

const hex = "0123456789abcdef"

// appendString appends a JSON string. Bytes that are not UTF-8 become U+FFFD.
func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\ufffd"...)
			i++
			start = i
			continue
		}
		i += n
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendValue appends the JSON form of a value: numbers as numbers (NaN and infinities, which JSON has not, as strings), times as
// ISO 8601 strings (a timestamptz in UTC), intervals as ISO 8601 durations, bytea as "\x" and hex digits, as PostgreSQL shows it, jsonb as
// it is, arrays as arrays.
func appendValue(dst []byte, v *column.Vector, i int) []byte {
	if v.IsNull(i) {
		return append(dst, "null"...)
	}
	switch v.Type.Kind {
	case column.Bool:
		return strconv.AppendBool(dst, v.Bools[i])
	case column.Int16:
		return strconv.AppendInt(dst, int64(v.I16[i]), 10)
	case column.Int32:
		return strconv.AppendInt(dst, int64(v.I32[i]), 10)
	case column.Int64:
		return strconv.AppendInt(dst, v.I64[i], 10)
	case column.Float32:
		return appendFloat(dst, float64(v.F32[i]), 32)
	case column.Float64:
		return appendFloat(dst, v.F64[i], 64)
	case column.Numeric:
		if !v.Dec[i].IsFinite() {
			dst = append(dst, '"')
			dst = v.Dec[i].Append(dst)
			return append(dst, '"')
		}
		return v.Dec[i].Append(dst)
	case column.Date:
		switch v.I32[i] {
		case math.MaxInt32:
			return append(dst, `"infinity"`...)
		case math.MinInt32:
			return append(dst, `"-infinity"`...)
		}
		t := time.Unix(int64(v.I32[i])*86400, 0).UTC()
		return appendTime(dst, t, true, false, "")
	case column.Time:
		t := time.UnixMicro(v.I64[i]).UTC()
		if v.I64[i] == 86400*1000000 {
			return append(dst, `"24:00:00"`...)
		}
		return appendTime(dst, t, false, true, "")
	case column.Timestamp, column.Timestamptz:
		switch v.I64[i] {
		case math.MaxInt64:
			return append(dst, `"infinity"`...)
		case math.MinInt64:
			return append(dst, `"-infinity"`...)
		}
		zone := ""
		if v.Type.Kind == column.Timestamptz {
			zone = "Z"
		}
		return appendTime(dst, time.UnixMicro(v.I64[i]).UTC(), true, true, zone)
	case column.IntervalKind:
		return appendDuration(dst, v.Iv[i])
	case column.Bytea:
		dst = append(dst, `"\\x`...)
		for _, c := range v.Bytes(i) {
			dst = append(dst, hex[c>>4], hex[c&15])
		}
		return append(dst, '"')
	case column.JSONB:
		return append(dst, v.Bytes(i)...)
	case column.Array:
		elems := column.NewVector(v.Type.ElemType(), 0)
		if column.AppendArrayElems(elems, v.Bytes(i)) != nil {
			return append(dst, "null"...)
		}
		dst = append(dst, '[')
		for k := range elems.Len {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, elems, k)
		}
		return append(dst, ']')
	}
	return appendString(dst, v.Bytes(i))
}

func appendFloat(dst []byte, x float64, bits int) []byte {
	switch {
	case x != x:
		return append(dst, `"NaN"`...)
	case math.IsInf(x, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(x, -1):
		return append(dst, `"-Infinity"`...)
	}
	format := byte('f')
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, x, format, -1, bits)
}

func pad(dst []byte, x, width int) []byte {
	for p := width - 1; p > 0; p-- {
		lim := 1
		for range p {
			lim *= 10
		}
		if x < lim {
			dst = append(dst, '0')
		}
	}
	return strconv.AppendInt(dst, int64(x), 10)
}

// appendTime appends date, time or both. Years before 1 and after 9999 have a sign and six digits, as ISO 8601 extends them.
func appendTime(dst []byte, t time.Time, date, clock bool, zone string) []byte {
	dst = append(dst, '"')
	if date {
		y := t.Year()
		switch {
		case y < 0:
			dst = append(dst, '-')
			dst = pad(dst, -y, 6)
		case y > 9999:
			dst = append(dst, '+')
			dst = pad(dst, y, 6)
		default:
			dst = pad(dst, y, 4)
		}
		dst = append(dst, '-')
		dst = pad(dst, int(t.Month()), 2)
		dst = append(dst, '-')
		dst = pad(dst, t.Day(), 2)
	}
	if date && clock {
		dst = append(dst, 'T')
	}
	if clock {
		dst = pad(dst, t.Hour(), 2)
		dst = append(dst, ':')
		dst = pad(dst, t.Minute(), 2)
		dst = append(dst, ':')
		dst = pad(dst, t.Second(), 2)
		if us := t.Nanosecond() / 1000; us != 0 {
			dst = appendFraction(dst, us)
		}
	}
	dst = append(dst, zone...)
	return append(dst, '"')
}

// appendFraction appends a point and microseconds without zeros at the end.
func appendFraction(dst []byte, us int) []byte {
	dst = append(dst, '.')
	dst = pad(dst, us, 6)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// appendDuration appends an ISO 8601 duration as PostgreSQL's iso_8601 style does: every part has its own sign.
func appendDuration(dst []byte, iv column.Interval) []byte {
	dst = append(dst, '"', 'P')
	part := func(x int64, unit byte) {
		if x != 0 {
			dst = append(strconv.AppendInt(dst, x, 10), unit)
		}
	}
	part(int64(iv.Months/12), 'Y')
	part(int64(iv.Months%12), 'M')
	part(int64(iv.Days), 'D')
	if iv.Micros != 0 || iv.Months == 0 && iv.Days == 0 {
		dst = append(dst, 'T')
		s := iv.Micros / 1000000
		part(s/3600, 'H')
		part(s/60%60, 'M')
		sec, us := s%60, int(iv.Micros%1000000)
		if sec != 0 || us != 0 || iv.Micros == 0 {
			if sec == 0 && us < 0 {
				dst = append(dst, '-')
			}
			dst = strconv.AppendInt(dst, sec, 10)
			if us < 0 {
				us = -us
			}
			if us != 0 {
				dst = appendFraction(dst, us)
			}
			dst = append(dst, 'S')
		}
	}
	return append(dst, '"')
}

package pgtype

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/jsonb"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

// Context is what text input depends on besides the text.
type Context struct {
	// Zone is the session's time zone: that of timestamps with time zone whose text has none. nil is UTC.
	Zone *time.Location
	// Now is the instant of 'now', 'today', 'tomorrow' and 'yesterday', in microseconds since 1970.
	Now int64

	// timeless: there is no instant, and those words are no times. What is read from a record must be the same whenever it is read.
	timeless bool
}

var utcContext = &Context{Zone: time.UTC, timeless: true}

// ParseText reads the text form of a value of v's type, modifiers included, and appends it to v. Nothing is appended on an error,
// which is a *pgerr.Error. ctx may be nil: UTC, and no 'now'. The text is not kept.
func ParseText(v *column.Vector, text []byte, ctx *Context) error {
	if ctx == nil {
		ctx = utcContext
	}
	switch v.Type.Kind {
	case column.Bool:
		x, err := ParseBool(text)
		if err == nil {
			v.AppendBool(x)
		}
		return err
	case column.Int16:
		x, err := parseInt(text, "smallint", 16)
		if err == nil {
			v.AppendInt16(int16(x))
		}
		return err
	case column.Int32:
		x, err := parseInt(text, "integer", 32)
		if err == nil {
			v.AppendInt32(int32(x))
		}
		return err
	case column.Int64:
		x, err := parseInt(text, "bigint", 64)
		if err == nil {
			v.AppendInt64(x)
		}
		return err
	case column.Float32:
		x, err := parseFloat(text, "real", 32)
		if err == nil {
			v.AppendFloat32(float32(x))
		}
		return err
	case column.Float64:
		x, err := parseFloat(text, "double precision", 64)
		if err == nil {
			v.AppendFloat64(x)
		}
		return err
	case column.Numeric:
		x, err := decimal.ParseBytes(text)
		if err == nil && v.Type.Precision > 0 {
			x, err = x.Fit(int(v.Type.Precision), int(v.Type.Scale))
		}
		if err == nil {
			v.AppendDecimal(x)
		}
		return err
	case column.Text:
		text, err := FitText(text, v.Type)
		if err == nil {
			v.AppendBytes(text)
		}
		return err
	case column.Bytea:
		start := len(v.Data)
		data, err := ParseBytea(v.Data, text)
		if err != nil {
			v.Data = v.Data[:start]
			return err
		}
		v.Data = data
		v.EndBytes()
		return nil
	case column.Date:
		x, err := ParseDate(text, ctx)
		if err == nil {
			v.AppendInt32(x)
		}
		return err
	case column.Time:
		x, err := ParseTime(text, ctx)
		if err == nil {
			v.AppendInt64(RoundMicros(x, v.Type.FractionDigits()))
		}
		return err
	case column.Timestamp:
		x, err := ParseTimestamp(text, ctx)
		if err == nil {
			v.AppendInt64(RoundMicros(x, v.Type.FractionDigits()))
		}
		return err
	case column.Timestamptz:
		x, err := ParseTimestamptz(text, ctx)
		if err == nil {
			v.AppendInt64(RoundMicros(x, v.Type.FractionDigits()))
		}
		return err
	case column.IntervalKind:
		x, err := ParseInterval(text)
		if err == nil {
			x.Micros = RoundMicros(x.Micros, v.Type.FractionDigits())
			v.AppendInterval(x)
		}
		return err
	case column.JSONB:
		data, err := jsonb.Canonical(v.Data, text)
		v.Data = data
		if err == nil {
			v.EndBytes()
		}
		return err
	case column.Array:
		return parseArray(v, text, ctx)
	}
	return pgerr.Internal("no text input for type %s", v.Type)
}

// RoundMicros rounds to so many fractional digits of a second, half away from zero; infinities stay.
func RoundMicros(us int64, digits int) int64 {
	if digits >= 6 || us == math.MaxInt64 || us == math.MinInt64 {
		return us
	}
	unit := int64(1)
	for ; digits < 6; digits++ {
		unit *= 10
	}
	r := us % unit
	us -= r
	switch {
	case r >= unit/2 && us <= math.MaxInt64-unit:
		us += unit
	case r <= -unit/2 && us >= math.MinInt64+unit:
		us -= unit
	}
	return us
}

// str is b as a string without a copy, for calls that do not keep it.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func trim(s []byte) []byte {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func errSyntax(typ string, text []byte) error {
	return pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", typ, shown(text))
}

// shown is text as a message shows it: valid UTF-8 of bounded length.
func shown(text []byte) string {
	const most = 1000
	cut := len(text) > most
	if cut {
		text = text[:most]
	}
	s := string(bytes.ToValidUTF8(text, []byte("\uFFFD")))
	if cut {
		s += "..."
	}
	return s
}

// ParseBool reads a boolean: a prefix of true, false, yes or no, on, off, 1 or 0, in any case.
func ParseBool(text []byte) (bool, error) {
	s := trim(text)
	if n := len(s); n > 0 && n <= 5 {
		var buf [5]byte
		l := buf[:n]
		for i, c := range s {
			l[i] = lower(c)
		}
		w := string(l)
		switch {
		case strings.HasPrefix("true", w), strings.HasPrefix("yes", w), w == "on", w == "1":
			return true, nil
		case strings.HasPrefix("false", w), strings.HasPrefix("no", w), w == "off", w == "of", w == "0":
			return false, nil
		}
	}
	return false, errSyntax("boolean", text)
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// ParseInt64 reads a bigint.
func ParseInt64(text []byte) (int64, error) { return parseInt(text, "bigint", 64) }

// ParseInt32 reads an integer.
func ParseInt32(text []byte) (int32, error) {
	x, err := parseInt(text, "integer", 32)
	return int32(x), err
}

// ParseInt16 reads a smallint.
func ParseInt16(text []byte) (int16, error) {
	x, err := parseInt(text, "smallint", 16)
	return int16(x), err
}

func parseInt(text []byte, typ string, bits uint) (int64, error) {
	s := trim(text)
	neg := false
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if len(s) == 0 {
		return 0, errSyntax(typ, text)
	}
	var x uint64
	limit := uint64(1)<<(bits-1) - 1
	if neg {
		limit++
	}
	over := false
	for _, c := range s {
		c -= '0'
		if c > 9 {
			return 0, errSyntax(typ, text)
		}
		if x > (limit-uint64(c))/10 {
			over = true
		}
		if !over {
			x = x*10 + uint64(c)
		}
	}
	if over {
		return 0, pgerr.Newf(pgerr.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", shown(text), typ)
	}
	if neg {
		return -int64(x), nil
	}
	return int64(x), nil
}

// ParseFloat64 reads a double precision.
func ParseFloat64(text []byte) (float64, error) { return parseFloat(text, "double precision", 64) }

// ParseFloat32 reads a real.
func ParseFloat32(text []byte) (float32, error) {
	x, err := parseFloat(text, "real", 32)
	return float32(x), err
}

func parseFloat(text []byte, typ string, bits int) (float64, error) {
	s := trim(text)
	if len(s) == 0 || bytes.IndexByte(s, '_') >= 0 {
		return 0, errSyntax(typ, text)
	}
	x, err := strconv.ParseFloat(str(s), bits)
	if err != nil {
		if ne, ok := err.(*strconv.NumError); ok && ne.Err == strconv.ErrRange { //nolint:errorlint // never wrapped
			return 0, errFloatRange(typ, s)
		}
		return 0, errSyntax(typ, text)
	}
	if x == 0 && bytes.ContainsAny(mantissa(s), "123456789") {
		return 0, errFloatRange(typ, s)
	}
	return x, nil
}

func mantissa(s []byte) []byte {
	if i := bytes.IndexAny(s, "eE"); i >= 0 {
		return s[:i]
	}
	return s
}

func errFloatRange(typ string, s []byte) error {
	return pgerr.Newf(pgerr.NumericValueOutOfRange, "\"%s\" is out of range for type %s", shown(s), typ)
}

// CheckText reports bytes that are not valid UTF-8 or hold a 0 byte, which text cannot (22021).
func CheckText(text []byte) error {
	if utf8.Valid(text) && bytes.IndexByte(text, 0) < 0 {
		return nil
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if text[i] == 0 || r == utf8.RuneError && n <= 1 {
			bad := text[i:]
			want := 1
			switch c := bad[0]; {
			case c >= 0xf0:
				want = 4
			case c >= 0xe0:
				want = 3
			case c >= 0xc0:
				want = 2
			}
			var b strings.Builder
			for _, c := range bad[:min(want, len(bad))] {
				b.WriteString(" 0x")
				b.WriteByte(hexDigits[c>>4])
				b.WriteByte(hexDigits[c&15])
			}
			return pgerr.Newf(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\":%s", b.String())
		}
		i += n
	}
	return nil
}

// FitText checks text for a column of type t: valid UTF-8, and for varchar(n) at most n characters (22001); spaces beyond are cut off.
// It returns the text, or a part of it.
func FitText(text []byte, t column.Type) ([]byte, error) {
	if err := CheckText(text); err != nil {
		return nil, err
	}
	if !t.Varchar || t.Precision <= 0 || len(text) <= int(t.Precision) {
		return text, nil
	}
	n := 0
	for i := range str(text) {
		if n == int(t.Precision) {
			if len(bytes.Trim(text[i:], " ")) > 0 {
				return nil, pgerr.Newf(pgerr.StringDataRightTruncation, "value too long for type %s", t)
			}
			return text[:i], nil
		}
		n++
	}
	return text, nil
}

// ParseBytea reads the hex or the escape form and appends the bytes to dst.
func ParseBytea(dst, text []byte) ([]byte, error) {
	if len(text) >= 2 && text[0] == '\\' && text[1] == 'x' {
		s := text[2:]
		for i := 0; i < len(s); {
			if isSpace(s[i]) {
				i++
				continue
			}
			hi, ok := unhex(s[i])
			if !ok {
				return dst, errHexDigit(s[i:])
			}
			if i+1 >= len(s) {
				return dst, pgerr.New(pgerr.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
			}
			lo, ok := unhex(s[i+1])
			if !ok {
				return dst, errHexDigit(s[i+1:])
			}
			dst = append(dst, hi<<4|lo)
			i += 2
		}
		return dst, nil
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		rest := text[i+1:]
		switch {
		case len(rest) >= 1 && rest[0] == '\\':
			dst = append(dst, '\\')
			i++
		case len(rest) >= 3 && rest[0] >= '0' && rest[0] <= '3' && rest[1] >= '0' && rest[1] <= '7' && rest[2] >= '0' && rest[2] <= '7':
			dst = append(dst, (rest[0]-'0')<<6|(rest[1]-'0')<<3|(rest[2]-'0'))
			i += 3
		default:
			return dst, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
	}
	return dst, nil
}

func errHexDigit(s []byte) error {
	_, n := utf8.DecodeRune(s)
	return pgerr.Newf(pgerr.InvalidParameterValue, "invalid hexadecimal digit: \"%s\"", shown(s[:n]))
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

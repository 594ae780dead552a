package jsonrow

import (
	"bytes"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgtype"
)

// Encoder writes objects with the same members again and again. Numbers are JSON numbers (NaN and the infinities, which JSON lacks, are
// strings), bytea is PostgreSQL's hexadecimal text, dates and times are ISO 8601 strings (timestamptz in UTC), an interval is PostgreSQL's
// text, jsonb is itself, an array is an array, NULL is null.
type Encoder struct {
	names [][]byte // quoted, with the colon
	table bool     // NULL of a jsonb column is left out, see the package's comment
	text  []byte
	elems column.Vector
}

// NewEncoder makes an encoder of members with the names.
func NewEncoder(names []string) *Encoder {
	e := &Encoder{}
	for _, n := range names {
		e.names = append(e.names, append(AppendString(nil, []byte(n)), ':'))
	}
	return e
}

// NewTableEncoder makes an encoder of a table's records.
func NewTableEncoder(names []string) *Encoder {
	e := NewEncoder(names)
	e.table = true
	return e
}

// Append appends row as an object whose members are the vectors cols, one for each name.
func (e *Encoder) Append(dst []byte, cols []*column.Vector, row int) []byte {
	dst = append(dst, '{')
	first := true
	for i, v := range cols {
		if e.table && v.Type.Kind == column.JSONB && v.IsNull(row) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, e.names[i]...)
		dst = e.AppendValue(dst, v, row)
	}
	return append(dst, '}')
}

// AppendValue appends one value.
func (e *Encoder) AppendValue(dst []byte, v *column.Vector, row int) []byte {
	if v.IsNull(row) {
		return append(dst, "null"...)
	}
	switch v.Type.Kind {
	case column.Bool:
		if v.Bools[row] {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case column.Int16, column.Int32, column.Int64:
		return pgtype.AppendText(dst, v, row, time.UTC)
	case column.Float32:
		return e.appendFloat(dst, v, row, float64(v.F32[row]))
	case column.Float64:
		return e.appendFloat(dst, v, row, v.F64[row])
	case column.Numeric:
		if !v.Dec[row].IsFinite() {
			return e.appendQuoted(dst, v, row)
		}
		return pgtype.AppendText(dst, v, row, time.UTC)
	case column.Text:
		return AppendString(dst, v.Bytes(row))
	case column.JSONB:
		return append(dst, v.Bytes(row)...)
	case column.Timestamp, column.Timestamptz:
		return e.appendTimestamp(dst, v, row)
	case column.Array:
		return e.appendArray(dst, v, row)
	default: // bytea, date, time, interval: their text needs no escapes but the backslash
		return e.appendQuoted(dst, v, row)
	}
}

func (e *Encoder) appendQuoted(dst []byte, v *column.Vector, row int) []byte {
	e.text = pgtype.AppendText(e.text[:0], v, row, time.UTC)
	return AppendString(dst, e.text)
}

func (e *Encoder) appendFloat(dst []byte, v *column.Vector, row int, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return e.appendQuoted(dst, v, row)
	}
	return pgtype.AppendText(dst, v, row, time.UTC)
}

// appendTimestamp writes ISO 8601: a T between date and time, and a Z behind a timestamptz, which is shown in UTC.
func (e *Encoder) appendTimestamp(dst []byte, v *column.Vector, row int) []byte {
	text := pgtype.AppendText(e.text[:0], v, row, time.UTC)
	e.text = text
	dst = append(dst, '"')
	if at := bytes.IndexByte(text, ' '); at > 0 {
		text[at] = 'T'
	}
	if at := bytes.LastIndex(text, []byte("+00")); at > 0 && v.Type.Kind == column.Timestamptz {
		dst = append(dst, text[:at]...)
		dst = append(dst, 'Z')
		text = text[at+3:] // BC
	}
	dst = append(dst, text...)
	return append(dst, '"')
}

// appendArray writes an array as one, in as many levels as it has dimensions. What JSON cannot say (that subscripts begin elsewhere than at 1, or which of the
// levels are an element's own) is in the array's text, which decodes to the same value.
func (e *Encoder) appendArray(dst []byte, v *column.Vector, row int) []byte {
	e.elems.Reset(v.Type.ElemType())
	if err := column.AppendArrayElems(&e.elems, v.Bytes(row)); err != nil {
		return append(dst, "null"...)
	}
	var buf [column.MaxArrayDims]column.Dim
	dims := column.ArrayDims(buf[:0], v.Bytes(row))
	if slices.ContainsFunc(dims, func(d column.Dim) bool { return d.Lower != 1 }) || len(dims) > 1 && v.Type.Elem == column.JSONB {
		return e.appendQuoted(dst, v, row)
	}
	if len(dims) == 0 {
		return append(dst, "[]"...)
	}
	dst, _ = e.appendLevel(dst, dims, 0)
	return dst
}

// appendLevel writes one level of an array, whose elements begin at i, and returns where those behind it do.
func (e *Encoder) appendLevel(dst []byte, dims []column.Dim, i int) ([]byte, int) {
	dst = append(dst, '[')
	for n := range dims[0].Len {
		if n > 0 {
			dst = append(dst, ',')
		}
		if len(dims) > 1 {
			dst, i = e.appendLevel(dst, dims[1:], i)
			continue
		}
		dst = e.AppendValue(dst, &e.elems, i)
		i++
	}
	return append(dst, ']'), i
}

const hexDigits = "0123456789abcdef"

// AppendString appends s, which is UTF-8, as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
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
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

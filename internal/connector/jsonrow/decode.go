// Package jsonrow turns JSON objects into rows, by the names and types of columns, and rows into JSON objects. It is the encoding of tables'
// topics, of JSON sources and of JSON sinks.
//
// Decoding follows PostgreSQL's json_populate_record: a scalar is given to its column's type as text, an object or array to a text or jsonb
// column as JSON; a member that is missing is NULL, one that no column names is passed over, of several with one name the last counts.
//
// JSON has one null, a jsonb column two: no value, and the value null. A table's encoding tells them apart, so that what is encoded decodes to the same
// values: NULL is left out of the object, null is jsonb's null. Elsewhere null is NULL, as in PostgreSQL.
package jsonrow

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgtype"
)

// maxMemberName bounds a member's name that is compared after unescaping.
const maxMemberName = 1 << 10

// Decoder decodes objects into the same columns again and again. It allocates nothing per row.
type Decoder struct {
	names   []string
	types   []column.Type
	byName  map[string]int
	tokens  []token
	scratch []byte
	// shape has the members of the last object in their order: the next one mostly has the same, and comparing a name with the one that was
	// there is cheaper than looking it up.
	shape  []member
	misses int // since the shape was learnt

	jsonNull bool // null in a jsonb column is jsonb's
}

// member is a member's name and the column that it belongs to, -1 if none.
type member struct {
	name   string
	column int
}

const (
	maxShape     = 256
	maxShapeName = 128
	maxMisses    = 4096 // after so many names that were not where the shape has them it is learnt anew
)

// NewDecoder makes a decoder of members with the names into vectors of the types.
func NewDecoder(names []string, types []column.Type) *Decoder {
	d := &Decoder{names: names, types: types, byName: make(map[string]int, len(names)), tokens: make([]token, len(names))}
	for i, n := range names {
		d.byName[n] = i
	}
	return d
}

// NewTableDecoder makes a decoder of a table's records.
func NewTableDecoder(names []string, types []column.Type) *Decoder {
	d := NewDecoder(names, types)
	d.jsonNull = true
	return d
}

// Decode appends one value to each of the vectors, which are those of the decoder's columns in order. After an error they are as they were.
func (d *Decoder) Decode(data []byte, cols []*column.Vector) error {
	if err := d.scan(data); err != nil {
		return err
	}
	for i := range d.tokens {
		if err := d.append(data, d.tokens[i], cols[i], d.types[i]); err != nil {
			for k := range i {
				cols[k].Truncate(cols[k].Len - 1)
			}
			return fmt.Errorf("field %q: %w", d.names[i], err)
		}
	}
	return nil
}

// scan finds the tokens of all columns and checks the whole text.
func (d *Decoder) scan(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("the record is not valid UTF-8")
	}
	clear(d.tokens)
	s := scanner{data: data}
	s.space()
	if s.at >= len(data) || data[s.at] != '{' {
		return s.unexpected("an object")
	}
	at := 0
	err := s.members(1, func(name, value token) error {
		n := data[name.from:name.to]
		if name.kind == escapedText {
			if len(n) > maxMemberName {
				return nil
			}
			d.scratch, _ = appendUnescaped(d.scratch[:0], n)
			n = d.scratch
		}
		column := -1
		if at < len(d.shape) && d.shape[at].name == string(n) {
			column = d.shape[at].column
		} else {
			column = d.lookup(n, at)
		}
		at++
		if column >= 0 {
			d.tokens[column] = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.space()
	if s.at < len(data) {
		return s.unexpected("the end of the record")
	}
	return nil
}

// lookup finds the column of the member at a place, -1 if there is none, and remembers it for the next object.
func (d *Decoder) lookup(name []byte, at int) int {
	column, ok := d.byName[string(name)]
	if !ok {
		column = -1
	}
	switch {
	case at == len(d.shape) && at < maxShape && len(name) <= maxShapeName:
		d.shape = append(d.shape, member{string(name), column})
	case at < len(d.shape):
		if d.misses++; d.misses > maxMisses {
			d.shape, d.misses = d.shape[:0], 0
		}
	}
	return column
}

// append appends one value.
func (d *Decoder) append(data []byte, t token, v *column.Vector, typ column.Type) error {
	if t.kind == absent || t.kind == null && !(d.jsonNull && typ.Kind == column.JSONB) {
		v.AppendNull()
		return nil
	}
	raw := data[t.from:t.to]
	switch typ.Kind {
	case column.Int64, column.Int32, column.Int16:
		if t.kind == number {
			if n, ok := integer(raw); ok {
				if appendInteger(v, typ.Kind, n) {
					return nil
				}
			}
		}
	case column.Float64:
		if t.kind == number {
			if f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(raw), len(raw)), 64); err == nil {
				v.AppendFloat64(f)
				return nil
			}
		}
	case column.Bool:
		if t.kind == boolean {
			v.AppendBool(raw[0] == 't')
			return nil
		}
	case column.Text:
		if typ.Precision == 0 {
			return d.appendText(raw, t.kind, v)
		}
	case column.JSONB:
		if t.kind == text || t.kind == escapedText {
			raw = data[t.from-1 : t.to+1] // with its quotes
		}
	case column.Array:
		if t.kind == composite {
			return d.appendArray(raw, v, typ)
		}
	}
	if t.kind == escapedText && typ.Kind != column.JSONB {
		var whole bool
		if d.scratch, whole = appendUnescaped(d.scratch[:0], raw); !whole {
			return errSurrogate
		}
		raw = d.scratch
	}
	return pgtype.ParseText(v, raw, nil)
}

var errSurrogate = errors.New(`a \u escape is half of a surrogate pair`)

func (d *Decoder) appendText(raw []byte, k kind, v *column.Vector) error {
	if k != escapedText {
		v.AppendBytes(raw)
		return nil
	}
	var whole bool
	if d.scratch, whole = appendUnescaped(d.scratch[:0], raw); !whole {
		return errSurrogate
	}
	for _, c := range d.scratch {
		if c == 0 {
			return errors.New(`\u0000 cannot be in a text`)
		}
	}
	v.AppendBytes(d.scratch)
	return nil
}

// appendArray makes PostgreSQL's array text of a JSON array of scalars, for the type's own parser.
func (d *Decoder) appendArray(raw []byte, v *column.Vector, typ column.Type) error {
	if raw[0] != '[' {
		return fmt.Errorf("an object cannot be a %s", typ)
	}
	s := scanner{data: raw, at: 1}
	out := append(d.scratch[:0], '{')
	for s.space(); raw[s.at] != ']'; s.space() {
		if raw[s.at] == ',' {
			s.at++
			s.space()
		}
		t, err := s.value(1)
		if err != nil {
			return err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		switch t.kind {
		case null:
			out = append(out, "NULL"...)
			continue
		case composite:
			return fmt.Errorf("nested arrays and objects cannot be elements of a %s", typ)
		}
		out = append(out, '"')
		from := len(out)
		if t.kind == escapedText {
			var whole bool
			if out, whole = appendUnescaped(out, raw[t.from:t.to]); !whole {
				return errSurrogate
			}
		} else {
			out = append(out, raw[t.from:t.to]...)
		}
		element := append([]byte(nil), out[from:]...)
		out = out[:from]
		for _, c := range element {
			if c == '"' || c == '\\' {
				out = append(out, '\\')
			}
			out = append(out, c)
		}
		out = append(out, '"')
	}
	out = append(out, '}')
	d.scratch = out
	return pgtype.ParseText(v, out, nil)
}

// integer reads a number token without fraction and exponent.
func integer(raw []byte) (int64, bool) {
	neg := raw[0] == '-'
	digits := raw
	if neg {
		digits = raw[1:]
	}
	if len(digits) > 18 {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		return n, err == nil
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}

func appendInteger(v *column.Vector, k column.Kind, n int64) bool {
	switch {
	case k == column.Int64:
		v.AppendInt64(n)
	case k == column.Int32 && n == int64(int32(n)):
		v.AppendInt32(int32(n))
	case k == column.Int16 && n == int64(int16(n)):
		v.AppendInt16(int16(n))
	default:
		return false
	}
	return true
}

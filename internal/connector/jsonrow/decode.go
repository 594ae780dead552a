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
	"unsafe"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgtype"
)

// Decoder decodes objects into the same columns again and again. It allocates nothing per row.
type Decoder struct {
	names   []string
	types   []column.Type
	byName  map[string]int
	tokens  []token
	scratch []byte
	element []byte // of an array
	shape   shape

	jsonNull bool // null in a jsonb column is jsonb's
}

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
			if n, ok := integer(data, t); ok && appendInteger(v, typ.Kind, n) {
				return nil
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

// appendArray makes PostgreSQL's array text of a JSON array, for the type's own parser: of several dimensions if its elements are arrays.
func (d *Decoder) appendArray(raw []byte, v *column.Vector, typ column.Type) error {
	if raw[0] != '[' {
		return fmt.Errorf("an object cannot be a %s", typ)
	}
	out, err := d.arrayText(d.scratch[:0], raw, typ, 1)
	if err != nil {
		return err
	}
	d.scratch = out
	return pgtype.ParseText(v, out, nil)
}

func (d *Decoder) arrayText(out, raw []byte, typ column.Type, depth int) ([]byte, error) {
	if depth > column.MaxArrayDims {
		return nil, fmt.Errorf("an array nests deeper than the %d dimensions that a %s can have", column.MaxArrayDims, typ)
	}
	s := scanner{data: raw, at: 1}
	out = append(out, '{')
	first := true
	for s.space(); raw[s.at] != ']'; s.space() {
		if raw[s.at] == ',' {
			s.at++
			s.space()
		}
		t, err := s.value(1)
		if err != nil {
			return nil, err
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		switch {
		case t.kind == null:
			out = append(out, "NULL"...)
			continue
		case typ.Elem == column.JSONB: // its elements are JSON themselves, whatever they are
		case t.kind == composite && raw[t.from] == '[':
			if out, err = d.arrayText(out, raw[t.from:t.to], typ, depth+1); err != nil {
				return nil, err
			}
			continue
		case t.kind == composite:
			return nil, fmt.Errorf("an object cannot be an element of a %s", typ)
		}
		element := raw[t.from:t.to]
		switch {
		case typ.Elem == column.JSONB && (t.kind == text || t.kind == escapedText):
			element = raw[t.from-1 : t.to+1] // with its quotes
		case t.kind == escapedText && typ.Elem != column.JSONB:
			var whole bool
			if d.element, whole = appendUnescaped(d.element[:0], element); !whole {
				return nil, errSurrogate
			}
			element = d.element
		}
		out = append(out, '"')
		for _, c := range element {
			if c == '"' || c == '\\' {
				out = append(out, '\\')
			}
			out = append(out, c)
		}
		out = append(out, '"')
	}
	return append(out, '}'), nil
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

package recordrow

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/connector/jsonrow"
	"github.com/leat-io/leat/internal/record"
)

// Record is what a decoder needs to know of a record.
type Record struct {
	Offset     int64
	Position   int64  // as in connector.Rows
	Timestamp  int64  // milliseconds; record.NoTimestamp: it has none
	Key, Value []byte // nil: null
}

// Decoder decodes the records of one partition into some of a layout's columns. One goroutine uses it at a time.
type Decoder struct {
	layout    *Layout
	partition int32
	columns   []field
	json      *jsonrow.Decoder
	members   []*column.Vector // the columns that json fills
}

// NewDecoder makes a decoder for the given columns, by index in the relation.
func (l *Layout) NewDecoder(partition int32, columns []int) (*Decoder, error) {
	d := &Decoder{layout: l, partition: partition}
	var names []string
	var types []column.Type
	for _, c := range columns {
		if c < 0 || c >= len(l.fields) {
			return nil, fmt.Errorf("column %d of a source with %d columns", c, len(l.fields))
		}
		f := l.fields[c]
		d.columns = append(d.columns, f)
		if f.from == fromValue && l.encode == "json" {
			names, types = append(names, f.name), append(types, f.typ)
		}
	}
	if l.encode == "json" {
		d.json = jsonrow.NewDecoder(names, types)
		if l.table {
			d.json = jsonrow.NewTableDecoder(names, types)
		}
	}
	return d, nil
}

// Begin empties out for the rows to come.
func (d *Decoder) Begin(out *connector.Rows) {
	out.Reset(len(d.columns))
	d.members = d.members[:0]
	for i, f := range d.columns {
		out.Cols[i].Reset(f.typ)
		if f.from == fromValue && d.json != nil {
			d.members = append(d.members, out.Cols[i])
		}
	}
}

// Row appends a record as a row, or says why it cannot be one: then it is for the caller to put it among the bad ones.
func (d *Decoder) Row(rec *Record, out *connector.Rows) (reason string) {
	if reason = d.decode(rec, out); reason != "" {
		return reason
	}
	appended := rec.Timestamp * microsMilli
	if rec.Timestamp == record.NoTimestamp {
		appended = connector.NotKnown
	}
	for i, f := range d.columns {
		v := out.Cols[i]
		switch f.from {
		case fromNowhere:
			v.AppendNull()
		case fromPartition:
			v.AppendInt32(d.partition)
		case fromOffset:
			v.AppendInt64(rec.Offset)
		case fromTimestamp:
			if appended == connector.NotKnown {
				v.AppendNull()
			} else {
				v.AppendInt64(appended)
			}
		case fromTombstone:
			v.AppendBool(rec.Value == nil)
		case fromKey:
			if rec.Key == nil {
				v.AppendNull()
			} else {
				v.AppendBytes(rec.Key)
			}
		}
	}
	out.Len++
	out.Offsets = append(out.Offsets, rec.Offset)
	if len(out.Positions) > 0 || rec.Position != rec.Offset {
		out.Positions = append(out.Positions, rec.Position)
	}
	out.Appended = append(out.Appended, appended)
	return ""
}

// decode appends the columns that come from the value; it leaves them as they were when it returns a reason.
func (d *Decoder) decode(rec *Record, out *connector.Rows) (reason string) {
	if d.json != nil {
		value := rec.Value
		if value == nil && d.layout.table {
			value = rec.Key // names the row that is deleted; the other columns are NULL
		}
		if value == nil {
			return "the record has no value"
		}
		if err := d.json.Decode(value, d.members); err != nil {
			return err.Error()
		}
		return ""
	}
	if d.layout.encode == "text" && !utf8.Valid(rec.Value) {
		return "the value is not valid UTF-8"
	}
	for i, f := range d.columns {
		if f.from != fromValue {
			continue
		}
		if rec.Value == nil {
			out.Cols[i].AppendNull()
		} else {
			out.Cols[i].AppendBytes(rec.Value)
		}
	}
	return ""
}

const microsMilli = int64(time.Millisecond / time.Microsecond)

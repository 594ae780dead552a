// Package recordrow makes rows of Kafka records: a member of the JSON object in the value, the whole value, the key, or where the record stands.
//
// It knows nothing of where records come from. What always holds: a record becomes one row or one reason why it cannot; a record that cannot
// leaves the columns as they were.
package recordrow

import (
	"fmt"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
)

// Layout says where each column of a relation comes from.
type Layout struct {
	fields []field
	encode string
	table  bool
}

type field struct {
	name string
	typ  column.Type
	from origin
}

type origin uint8

const (
	fromValue     origin = iota // a member of the JSON object, or the whole value
	fromNowhere                 // generated: computed by the engine
	fromPartition               // INCLUDE partition, and so on
	fromOffset
	fromTimestamp
	fromKey
	fromTombstone // of a table: whether the record deletes its key
)

// NewLayout is the layout of a source's records, or of those of a table's topic. A table has one column more than its relation: whether the
// record is a deletion.
func NewLayout(r *catalog.Relation) (*Layout, error) {
	l := &Layout{encode: r.Encode, table: r.Kind == catalog.Table}
	if l.table {
		l.encode = "json"
	}
	values := 0
	for i := range r.Columns {
		c := &r.Columns[i]
		f := field{name: c.Name, typ: c.Type}
		switch {
		case c.Generated != nil && !l.table: // a table stores what it generates
			f.from = fromNowhere
		case c.Include == catalog.IncludePartition:
			f.from = fromPartition
		case c.Include == catalog.IncludeOffset:
			f.from = fromOffset
		case c.Include == catalog.IncludeTimestamp:
			f.from = fromTimestamp
		case c.Include == catalog.IncludeKey:
			f.from = fromKey
		default:
			values++
		}
		l.fields = append(l.fields, f)
	}
	switch l.encode {
	case "json":
	case "text", "bytes":
		if values != 1 {
			return nil, fmt.Errorf("ENCODE %s has one column for the value, not %d", l.encode, values)
		}
	default:
		return nil, fmt.Errorf("ENCODE %q is not known: json, text and bytes are", l.encode)
	}
	if l.table {
		l.fields = append(l.fields, field{name: "deleted", typ: column.TBool, from: fromTombstone})
	}
	return l, nil
}

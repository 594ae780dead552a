// Package topic reads topics of the embedded log as sources: it decodes records into columns.
//
// Rows are read up to what is appended, durable or not: the epoch that holds them is committed later in the same journal. A record that
// cannot be decoded is handed out as such, with the reason; its neighbours are not affected.
package topic

import (
	"fmt"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
)

// Source is a topic as a source. The topic need not exist yet: until it does there is nothing to read.
type Source struct {
	broker *broker.Broker
	topic  string
	fields []field
	encode string
	table  bool
}

// field says where one column of the relation comes from.
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

// New is the source of a relation: a source with the kafka connector over the embedded log, or a table, whose topic holds its changes. A table has
// one column more than its relation: whether the record is a deletion.
func New(b *broker.Broker, r *catalog.Relation) (*Source, error) {
	s := &Source{broker: b, topic: r.Topic, encode: r.Encode, table: r.Kind == catalog.Table}
	if s.table {
		s.encode = "json"
	}
	values := 0
	for i := range r.Columns {
		c := &r.Columns[i]
		f := field{name: c.Name, typ: c.Type}
		switch {
		case c.Generated != nil && !s.table: // a table stores what it generates
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
		s.fields = append(s.fields, f)
	}
	switch s.encode {
	case "json":
	case "text", "bytes":
		if values != 1 {
			return nil, fmt.Errorf("ENCODE %s has one column for the value, not %d", s.encode, values)
		}
	default:
		return nil, fmt.Errorf("ENCODE %q is not known: json, text and bytes are", s.encode)
	}
	if s.table {
		s.fields = append(s.fields, field{name: "deleted", typ: column.TBool, from: fromTombstone})
	}
	return s, nil
}

// LogPartitions are the topic's partitions, none while it does not exist.
func (s *Source) LogPartitions() []*broker.Partition {
	t, ok := s.broker.Topic(s.topic)
	if !ok {
		return nil
	}
	return t.Partitions()
}

// Partitions implements connector.Source.
func (s *Source) Partitions() int { return len(s.LogPartitions()) }

// Ends implements connector.Source.
func (s *Source) Ends(dst []int64) []int64 {
	return append(dst, s.broker.Cut(s.LogPartitions(), nil)...)
}

// Start implements connector.Source: the oldest record there is, or what is written from now on.
func (s *Source) Start(mode string) ([]int64, error) {
	parts := s.LogPartitions()
	if mode == "latest" {
		return s.broker.Cut(parts, nil), nil
	}
	out := make([]int64, len(parts))
	for i, p := range parts {
		start, err := p.StartOffset()
		if err != nil {
			return nil, err
		}
		out[i] = start
	}
	return out, nil
}

// Open implements connector.Source.
func (s *Source) Open(partition int, columns []int) (connector.Partition, error) {
	parts := s.LogPartitions()
	if partition >= len(parts) {
		return nil, fmt.Errorf("topic %q has no partition %d", s.topic, partition)
	}
	return newReader(s, parts[partition], columns)
}

const (
	fetchBytes  = 256 << 10
	microsMilli = int64(time.Millisecond / time.Microsecond)
)

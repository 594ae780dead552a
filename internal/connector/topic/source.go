// Package topic reads topics of the embedded log as sources: it decodes records into columns.
//
// Rows are read up to what is appended, durable or not: the epoch that holds them is committed later in the same journal. A record that
// cannot be decoded is handed out as such, with the reason; its neighbours are not affected.
package topic

import (
	"fmt"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/connector/recordrow"
)

// Source is a topic as a source. The topic need not exist yet: until it does there is nothing to read.
type Source struct {
	broker *broker.Broker
	topic  string
	layout *recordrow.Layout
}

// New is the source of a relation: a source with the kafka connector over the embedded log, or a table, whose topic holds its changes. A table has
// one column more than its relation: whether the record is a deletion.
func New(b *broker.Broker, r *catalog.Relation) (*Source, error) {
	l, err := recordrow.NewLayout(r)
	if err != nil {
		return nil, err
	}
	return &Source{broker: b, topic: r.Topic, layout: l}, nil
}

// LogPartitions are the topic's partitions, none while it does not exist.
func (s *Source) LogPartitions() []*broker.Partition {
	t, ok := s.broker.Topic(s.topic)
	if !ok {
		return nil
	}
	return t.Partitions()
}

// Identity implements connector.Identified: the topic's id.
func (s *Source) Identity() connector.Identity {
	t, ok := s.broker.Topic(s.topic)
	if !ok {
		return connector.Identity{}
	}
	return connector.Identity(t.ID)
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

const fetchBytes = 256 << 10

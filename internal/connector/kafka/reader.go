package kafka

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/connector/recordrow"
	"github.com/leat-io/leat/internal/record"
)

// reader decodes one partition of a source for one worker.
type reader struct {
	s         *Source
	partition int
	decoder   *recordrow.Decoder
	records   []*kgo.Record // of the last Read, for dead letters
	rows      []int32       // which of them each row is
}

// Open implements connector.Source.
func (s *Source) Open(partition int, columns []int) (connector.Partition, error) {
	d, err := s.layout.NewDecoder(int32(partition), columns)
	if err != nil {
		return nil, err
	}
	return &reader{s: s, partition: partition, decoder: d}, nil
}

// Close implements connector.Partition.
func (r *reader) Close() error {
	r.records = nil
	return nil
}

// Read implements connector.Partition: what Fetch has told is here.
func (r *reader) Read(from, to int64, limit int, out *connector.Rows) (int64, error) {
	r.decoder.Begin(out)
	r.rows = r.rows[:0]
	out.Original = r.original
	s := r.s
	s.mu.Lock()
	if r.partition >= len(s.parts) {
		s.mu.Unlock()
		return from, fmt.Errorf("topic \"%s\" of the cluster has no partition %d", s.cluster.Topic, r.partition)
	}
	p := s.parts[r.partition]
	r.records = p.between(from, to)
	next, err := p.next, p.err
	s.mu.Unlock()
	if next <= from && err != nil {
		return from, err
	}
	if next < to {
		return from, fmt.Errorf("topic \"%s\" of the cluster, partition %d: offsets %d to %d are to be read, but have been fetched up to %d", s.cluster.Topic, r.partition, from, to, next)
	}
	at := to
	for i, rec := range r.records {
		if out.Len == limit || len(out.Bad) == limit {
			at = rec.Offset
			break
		}
		one := recordrow.Record{Offset: rec.Offset, Position: rec.Offset, Timestamp: rec.Timestamp.UnixMilli(), Key: rec.Key, Value: rec.Value}
		if reason := r.decoder.Row(&one, out); reason != "" {
			out.Bad = append(out.Bad, connector.Bad{Record: asRecord(rec), Position: rec.Offset, Reason: reason})
		} else {
			r.rows = append(r.rows, int32(i))
		}
	}
	return at, nil
}

func (r *reader) original(row int) record.Record { return asRecord(r.records[r.rows[row]]) }

// asRecord is a record of a cluster as the log here would have it; its memory is that of rec.
func asRecord(rec *kgo.Record) record.Record {
	out := record.Record{Offset: rec.Offset, Timestamp: rec.Timestamp.UnixMilli(), Key: rec.Key, Value: rec.Value}
	headers := make([]record.HeaderKV, len(rec.Headers))
	for i, h := range rec.Headers {
		headers[i] = record.HeaderKV{Key: h.Key, Value: h.Value}
	}
	out.SetHeaders(headers...)
	return out
}

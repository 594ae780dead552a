package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/leat-io/leat/internal/record"
)

// A compacted partition may end in batches without a record: the last offset of a producer, or the marker of a transaction, stays where it was. The client
// passes over them and tells nobody, so a position that stands before them would never come to the end. What lies behind a position that stands still is
// therefore looked at once more, batch by batch.

// restBytes is how much is looked at in one answer.
const restBytes = 1 << 20

// lookAtRest moves positions that have stood still before the end past what has no records.
func (s *Source) lookAtRest(ctx context.Context, topic kadm.TopicDetail) {
	for p, at := range s.standing() {
		ask, cancel := context.WithTimeout(ctx, askTimeout)
		to, err := s.emptyFrom(ask, topic, p, at)
		cancel()
		if err != nil { // the client meets it, too, and what it says is reported
			s.o.Logger.Debug("looking for the end of a partition", "source", s.name, "partition", p, "err", err)
			continue
		}
		if to > at {
			s.skip(p, at, to)
		}
	}
}

// standing returns the partitions that are not at their end, and have come no further since they were asked for the last time.
func (s *Source) standing() map[int32]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out map[int32]int64
	for i, p := range s.parts {
		if p.err == nil && p.next < p.end && p.next == p.seen && !s.starved {
			if out == nil {
				out = map[int32]int64{}
			}
			out[int32(i)] = p.next
		}
		p.seen = p.next
	}
	return out
}

// skip moves a position from one place to another, unless it has moved by itself.
func (s *Source) skip(partition int32, from, to int64) {
	s.mu.Lock()
	p := s.parts[partition]
	moved := p.next == from
	if moved {
		p.next = min(to, max(p.end, from))
		p.settle()
	}
	wake := s.wake
	s.mu.Unlock()
	if moved {
		wake()
	}
}

// emptyFrom returns how far there is no record from a position on.
func (s *Source) emptyFrom(ctx context.Context, topic kadm.TopicDetail, partition int32, at int64) (int64, error) {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.IsolationLevel = restBytes, 1
	ft := kmsg.NewFetchRequestTopic()
	ft.Topic, ft.TopicID = topic.Topic, topic.ID
	fp := kmsg.NewFetchRequestTopicPartition()
	fp.Partition, fp.FetchOffset, fp.PartitionMaxBytes, fp.CurrentLeaderEpoch = partition, at, restBytes, -1
	ft.Partitions = append(ft.Partitions, fp)
	req.Topics = append(req.Topics, ft)
	got, err := s.client.Broker(int(topic.Partitions[partition].Leader)).RetriableRequest(ctx, req)
	if err != nil {
		return at, err
	}
	resp := got.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return at, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || resp.Topics[0].Partitions[0].Partition != partition {
		return at, fmt.Errorf("the answer is about something else than partition %d", partition)
	}
	rp := &resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
		return at, err
	}
	return emptyUpTo(rp.RecordBatches, at)
}

// emptyUpTo walks batches as a broker gives them, the last of which may be cut off, and returns the end of the last one before the first record at or after
// a position.
func emptyUpTo(batches []byte, at int64) (int64, error) {
	var r record.Reader
	defer r.Close()
	for len(batches) >= record.HeaderLen {
		h, err := record.ParseHeader(batches)
		if err != nil {
			return at, err
		}
		n := h.Size()
		if n > len(batches) {
			break
		}
		if h.LastOffset() >= at {
			if h.Control() && h.Count > 0 {
				break // the client gives it out
			}
			if h.Count > 0 {
				if err := r.Reset(batches[:n]); err != nil {
					return at, err
				}
				for r.Next() {
					if r.Record().Offset >= at {
						return at, nil
					}
				}
				if err := r.Err(); err != nil {
					return at, err
				}
			}
			at = h.LastOffset() + 1
		}
		batches = batches[n:]
	}
	return at, nil
}

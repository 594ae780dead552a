package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/connector"
)

// fetch takes what the client brings, as long as there is room.
func (s *Source) fetch(ctx context.Context) {
	for {
		got := s.client.PollRecords(ctx, 4096)
		if ctx.Err() != nil || got.IsClientClosed() {
			return
		}
		got.EachError(func(_ string, p int32, err error) {
			if ctx.Err() == nil {
				s.failed(ctx, p, err)
			}
		})
		var n int64
		got.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				n += sizeOf(r)
			}
		})
		if !s.room(ctx, n) {
			return
		}
		s.mu.Lock()
		var kept int64
		got.EachPartition(func(fp kgo.FetchTopicPartition) {
			if int(fp.Partition) >= len(s.parts) {
				return
			}
			p := s.parts[fp.Partition]
			for _, r := range fp.Records {
				kept += p.add(r)
			}
		})
		s.held += kept
		s.giveBack(n - kept)
		wake := s.wake
		s.mu.Unlock()
		wake()
	}
}

// room takes n bytes from the buffer, and waits for them. More than there can ever be is taken when the buffer is empty: a single fetch is bounded.
func (s *Source) room(ctx context.Context, n int64) bool {
	if n == 0 {
		return true
	}
	if s.buffer.TryAcquire(n) {
		return true
	}
	s.mu.Lock()
	s.starved = true
	wake := s.wake
	s.mu.Unlock()
	wake() // what waits for the end of a transaction is read now
	most := min(n, s.buffer.Limit())
	if err := s.buffer.Acquire(ctx, most); err != nil {
		return false
	}
	if n > most {
		s.buffer.Force(n - most)
	}
	s.mu.Lock()
	s.starved = false
	s.mu.Unlock()
	return true
}

// giveBack returns room that was taken and not used; mu is held.
func (s *Source) giveBack(n int64) {
	if n > 0 {
		s.buffer.Release(n)
	}
}

// failed notes why a partition, or the cluster, gave nothing.
func (s *Source) failed(ctx context.Context, p int32, err error) {
	if p < 0 || !errors.Is(err, kerr.OffsetOutOfRange) {
		return // the client tries again; watch sees whether the cluster is there
	}
	adm := kadm.NewClient(s.client)
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	starts, err1 := s.ask(ask, adm.ListStartOffsets)
	ends, err2 := s.ask(ask, adm.ListEndOffsets)
	s.mu.Lock()
	if int(p) >= len(s.parts) {
		s.mu.Unlock()
		return
	}
	part := s.parts[p]
	if err1 == nil && err2 == nil && int(p) < len(starts) && int(p) < len(ends) {
		part.err = outOfRange(s.cluster.Topic, p, part.next, starts[p], ends[p])
	} else {
		part.err = fmt.Errorf("topic \"%s\" of the cluster, partition %d: offset %d is not there any more: %w", s.cluster.Topic, p, part.next, err)
	}
	wake := s.wake
	s.mu.Unlock()
	wake()
}

// watch asks, again and again, where the partitions end: how far the reader is behind, whether there are more partitions, and whether the
// cluster is there at all.
func (s *Source) watch(ctx context.Context) {
	adm := kadm.NewClient(s.client)
	timer := s.o.Clock.NewTimer(askEvery)
	defer timer.Stop()
	for {
		ask, cancel := context.WithTimeout(ctx, askTimeout)
		topics, err := adm.ListTopics(ask, s.cluster.Topic) // first: what it is, then where it ends
		var ends, highs []int64
		if err == nil {
			ends, err = s.ask(ask, adm.ListCommittedOffsets)
		}
		if err == nil && s.hasOpen() { // after those: where both are the same, no transaction was open
			highs, err = s.ask(ask, adm.ListEndOffsets)
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.learn(connector.Identity(topics[s.cluster.Topic].ID), ends, highs, err)
		if err == nil {
			s.lookAtRest(ctx, topics[s.cluster.Topic])
		}
		timer.Reset(askEvery)
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
	}
}

// learn takes the cluster's answer.
func (s *Source) learn(id connector.Identity, ends, highs []int64, err error) {
	now := s.o.Clock.Now()
	s.mu.Lock()
	before, first := s.health.Err, s.health.Since.IsZero()
	s.noTopic = err == nil && len(ends) == 0
	s.health.Err = s.cluster.explain(err)
	switch {
	case s.health.Err != nil && before == nil:
		s.health.Since = now
		s.o.Logger.Warn("a source cannot be read now; what reads it waits, and its time stands still", "source", s.name, "err", s.health.Err)
	case s.health.Err == nil && (before != nil || first):
		s.health.Since = now
		if before != nil {
			s.o.Logger.Info("a source can be read again", "source", s.name)
		}
	}
	if !id.IsZero() {
		s.identity = id
	}
	add := map[int32]kgo.Offset{}
	for i, end := range ends {
		if i == len(s.parts) {
			at := s.at(i)
			s.parts = append(s.parts, &partition{next: at, first: end, seen: -1})
			add[int32(i)] = kgo.NewOffset().At(at)
		}
		p := s.parts[i]
		p.end, p.asked = end, now
		if i < len(highs) && highs[i] == end {
			if p.quiet = end; p.next >= end {
				p.settle()
			}
		}
	}
	wake := s.wake
	s.mu.Unlock()
	if len(add) > 0 {
		s.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{s.cluster.Topic: add})
	}
	if len(add) > 0 || first || (err == nil) != (before == nil) {
		wake()
	}
}

package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/connector/recordrow"
)

// BufferBytes is how much a source fetches ahead of who reads it.
const BufferBytes = 16 << 20

// Options are what sources work with.
type Options struct {
	Logger *slog.Logger
	Clock  clock.Clock
	Budget *budget.Budget // the pool that each source's buffer is below
}

// Source is a topic of a cluster as a source for one reader.
type Source struct {
	o       Options
	cluster Cluster
	layout  *recordrow.Layout
	name    string

	mu       sync.Mutex
	parts    []*partition
	from     []int64 // where the reader stood at the last Fetch
	wake     func()
	client   *kgo.Client // nil until the first Fetch
	buffer   *budget.Budget
	held     int64
	starved  bool // the fetcher waits for room
	health   connector.Health
	noTopic  bool
	identity connector.Identity // of the topic, as the cluster has said; zero before, and for clusters without
	stop     context.CancelFunc
	stopped  sync.WaitGroup
	closed   bool
	startErr error
}

// NewSource is the source of a relation.
func NewSource(r *catalog.Relation, o Options) (*Source, error) {
	l, err := recordrow.NewLayout(r)
	if err != nil {
		return nil, err
	}
	return &Source{o: o, cluster: ClusterOf(r), layout: l, name: r.QualifiedName()}, nil
}

// Partitions implements connector.Source.
func (s *Source) Partitions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts)
}

// Ends implements connector.Source: the ends of what is here.
func (s *Source) Ends(dst []int64) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.parts {
		dst = append(dst, p.whole(s.at(i), s.starved))
	}
	return dst
}

func (s *Source) at(partition int) int64 {
	if partition < len(s.from) {
		return s.from[partition]
	}
	return 0
}

// Start implements connector.Source. It asks the cluster.
func (s *Source) Start(mode string) ([]int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	cl, err := kgo.NewClient(s.cluster.options(s.o.Logger)...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if err := cl.Ping(ctx); err != nil { // a question about offsets would be asked again and again
		return nil, s.cluster.refused(err)
	}
	ask := adm.ListStartOffsets
	if mode == "latest" {
		ask = adm.ListCommittedOffsets
	}
	ends, err := s.ask(ctx, ask)
	if err != nil {
		return nil, s.cluster.refused(err)
	}
	return ends, nil
}

// ask puts a question about all partitions; nil if there is no such topic.
func (s *Source) ask(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error)) ([]int64, error) {
	got, err := list(ctx, s.cluster.Topic)
	if err != nil {
		return nil, err
	}
	of := got[s.cluster.Topic]
	out := make([]int64, 0, len(of))
	for p := int32(0); ; p++ {
		l, ok := of[p]
		if !ok {
			break
		}
		if l.Err != nil {
			return nil, l.Err
		}
		out = append(out, l.Offset)
	}
	for p, l := range of {
		if int(p) < len(out) || errors.Is(l.Err, kerr.UnknownTopicOrPartition) {
			continue
		}
		if l.Err != nil {
			return nil, l.Err
		}
		return nil, fmt.Errorf("topic \"%s\" has partition %d, but no partition %d", s.cluster.Topic, p, len(out))
	}
	return out, nil
}

// hasOpen tells whether a partition has a transaction whose end has not come.
func (s *Source) hasOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.parts, func(p *partition) bool { return len(p.open) > 0 })
}

// Fetch implements connector.Fetched.
func (s *Source) Fetch(from []int64, wake func(), dst []int64) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
	s.from = append(s.from[:0], from...)
	if s.client == nil && s.startErr == nil && !s.closed {
		s.start()
	}
	var freed int64
	for i, p := range s.parts {
		at := s.at(i)
		freed += p.giveUp(at)
		if at > p.next {
			s.seek(i, at)
		}
		end := p.whole(at, s.starved)
		if p.err != nil && end <= at {
			end = at + 1 // its Read tells
		}
		dst = append(dst, end)
	}
	if freed > 0 {
		s.held -= freed
		s.buffer.Release(freed)
	}
	return dst
}

// seek goes on from elsewhere; mu is held.
func (s *Source) seek(i int, at int64) {
	p := s.parts[i]
	freed := p.bytes
	*p = partition{next: at, end: p.end, asked: p.asked, first: p.first, quiet: p.quiet, seen: -1}
	s.held -= freed
	s.buffer.Release(freed)
	s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{s.cluster.Topic: {int32(i): {Epoch: -1, Offset: at}}})
}

// Cut implements connector.Fetched.
func (s *Source) Cut(partition int, from, limit int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if partition >= len(s.parts) {
		return limit
	}
	x := s.parts[partition].spanAt(limit)
	switch {
	case x == nil:
		return limit
	case x.from > from:
		return x.from
	}
	return x.to
}

// Identity implements connector.Identified: the id that the cluster has given the topic. It is known before there is anything to read.
func (s *Source) Identity() connector.Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.identity
}

// AtEnd implements connector.Fetched.
func (s *Source) AtEnd(partition int, pos int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if partition >= len(s.parts) || s.health.Err != nil {
		return false
	}
	p := s.parts[partition]
	return !p.asked.IsZero() && s.o.Clock.Now().Sub(p.asked) < 3*askEvery && pos >= p.end && pos >= p.next
}

// Reached implements connector.Fetched.
func (s *Source) Reached(at []int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parts) == 0 && !s.noTopic {
		return false
	}
	for i, p := range s.parts {
		if p.err != nil {
			continue
		}
		if p.asked.IsZero() || i >= len(at) && p.first > 0 || i < len(at) && at[i] < p.first {
			return false
		}
	}
	return true
}

// Health implements connector.Fetched.
func (s *Source) Health() connector.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.health
	for i, p := range s.parts {
		h.Lag += max(p.end-s.at(i), 0)
	}
	return h
}

// Close implements connector.Fetched.
func (s *Source) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	stop, client := s.stop, s.client
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	if client != nil {
		client.Close()
	}
	s.stopped.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buffer != nil {
		s.buffer.Close()
	}
	return nil
}

// start begins the fetching; mu is held.
func (s *Source) start() {
	client, err := kgo.NewClient(append(s.cluster.options(s.o.Logger),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{}), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxBytes(4<<20), kgo.FetchMaxPartitionBytes(1<<20),
		kgo.MaxConcurrentFetches(2), kgo.FetchMaxWait(500*time.Millisecond))...)
	if err != nil {
		s.startErr = s.cluster.explain(err)
		s.health.Err, s.health.Since = s.startErr, s.o.Clock.Now()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.client, s.stop = client, cancel
	s.buffer = s.o.Budget.Child(s.name, BufferBytes)
	s.stopped.Go(func() { s.fetch(ctx) })
	s.stopped.Go(func() { s.watch(ctx) })
}

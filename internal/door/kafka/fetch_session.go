package kafka

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sessions are the fetch sessions (KIP-227): a client names its partitions once, and from then on only what changes. The oldest make room for new
// ones; whoever lost his is told so and begins again.
type sessions struct {
	limit int // how many there may be
	most  int // partitions of all of them
	mu    sync.Mutex
	byID  map[int32]*session
	tick  uint64
	parts int // partitions of all sessions
}

// Bounds of what one session remembers, and of what all do. A larger fetch is served without a session; of the sessions the oldest give way.
const (
	maxSessionPartitions  = 200_000
	maxSessionsPartitions = 500_000
)

type session struct {
	id     int32
	mu     sync.Mutex // held while a fetch runs
	epoch  int32      // that the next request must have
	used   uint64     // under sessions.mu
	parts  int        // under sessions.mu: partitions that are counted there
	order  []*fetchPartition
	byKey  map[sessionKey]*fetchPartition
	topics map[fetchTopic]*fetchTopic
}

type sessionKey struct {
	topic fetchTopic
	index int32
}

func newSessions(limit int) *sessions {
	return &sessions{limit: limit, most: maxSessionsPartitions, byID: map[int32]*session{}}
}

// open returns what the request asks for. A session comes with its lock held.
func (ss *sessions) open(req *kmsg.FetchRequest) (*session, []*fetchPartition, int16) {
	if req.Version < 7 {
		return nil, oneOff(req), 0
	}
	const initial, final = 0, -1
	switch req.SessionEpoch {
	case final:
		ss.close(req.SessionID)
		return nil, oneOff(req), 0
	case initial:
		ss.close(req.SessionID)
		want := oneOff(req)
		if len(want) == 0 || len(want) > maxSessionPartitions {
			return nil, want, 0
		}
		s := ss.create(want)
		return s, s.order, 0
	}
	ss.mu.Lock()
	s := ss.byID[req.SessionID]
	if s != nil {
		ss.tick++
		s.used = ss.tick
	}
	ss.mu.Unlock()
	if s == nil {
		return nil, nil, kerr.FetchSessionIDNotFound.Code
	}
	s.mu.Lock()
	if req.SessionEpoch != s.epoch {
		s.mu.Unlock()
		return nil, nil, kerr.InvalidFetchSessionEpoch.Code
	}
	s.epoch = nextEpoch(s.epoch)
	s.update(req)
	ss.mu.Lock()
	ss.count(s)
	ss.mu.Unlock()
	return s, s.order, 0
}

// count takes note of how many partitions a session has, whose lock is held, and makes room if that are too many; mu is held.
func (ss *sessions) count(s *session) {
	if ss.byID[s.id] != s {
		return // it has given way meanwhile
	}
	ss.parts += len(s.order) - s.parts
	s.parts = len(s.order)
	for ss.parts > ss.most && len(ss.byID) > 1 {
		ss.forget(ss.oldest(s))
	}
}

// oldest is the session that was unused for longest, but for one; mu is held.
func (ss *sessions) oldest(but *session) *session {
	var oldest *session
	for _, o := range ss.byID {
		if o != but && (oldest == nil || o.used < oldest.used) {
			oldest = o
		}
	}
	return oldest
}

// forget ends a session; mu is held.
func (ss *sessions) forget(s *session) {
	ss.parts -= s.parts
	delete(ss.byID, s.id)
}

// nextEpoch counts up and wraps to 1, since 0 begins a session.
func nextEpoch(e int32) int32 {
	if e == 1<<31-1 {
		return 1
	}
	return e + 1
}

func (ss *sessions) close(id int32) {
	if id == 0 {
		return
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.byID[id]; s != nil {
		ss.forget(s)
	}
}

// create makes a session, whose lock is held. The one unused for longest gives way.
func (ss *sessions) create(want []*fetchPartition) *session {
	s := &session{epoch: 1, byKey: map[sessionKey]*fetchPartition{}, topics: map[fetchTopic]*fetchTopic{}}
	for _, fp := range want {
		s.put(fp)
	}
	s.mu.Lock()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if len(ss.byID) >= ss.limit {
		ss.forget(ss.oldest(nil))
	}
	for s.id == 0 || ss.byID[s.id] != nil {
		s.id = rand.Int32N(1<<31-1) + 1
	}
	ss.tick++
	s.used = ss.tick
	ss.byID[s.id] = s
	ss.count(s)
	return s
}

// put adds a partition, or renews what is known of it.
func (s *session) put(fp *fetchPartition) {
	key := sessionKey{*fp.topic, fp.index}
	if old := s.byKey[key]; old != nil {
		old.offset, old.maxBytes, old.epoch = fp.offset, fp.maxBytes, fp.epoch
		return
	}
	if t := s.topics[*fp.topic]; t != nil {
		fp.topic = t
	} else {
		s.topics[*fp.topic] = fp.topic
	}
	s.byKey[key] = fp
	s.order = append(s.order, fp)
}

// update applies an incremental request.
func (s *session) update(req *kmsg.FetchRequest) {
	forgotten := false
	for _, t := range req.ForgottenTopics {
		for _, i := range t.Partitions {
			key := sessionKey{fetchTopic{t.Topic, t.TopicID}, i}
			if _, ok := s.byKey[key]; ok {
				delete(s.byKey, key)
				forgotten = true
			}
		}
	}
	if forgotten {
		s.order = slices.DeleteFunc(s.order, func(fp *fetchPartition) bool {
			return s.byKey[sessionKey{*fp.topic, fp.index}] != fp
		})
	}
	for _, fp := range oneOff(req) {
		if len(s.order) < maxSessionPartitions || s.byKey[sessionKey{*fp.topic, fp.index}] != nil {
			s.put(fp)
		}
	}
}

// wants reports whether the client must be told of the result: without a session of every one, in a session of what is news.
func (s *session) wants(fp *fetchPartition, out *fetched) bool {
	return s == nil || !fp.told || out.size() > 0 || out.code != 0 || fp.failed || out.high != fp.high || out.start != fp.start
}

// rotate lets another topic be first the next time, so that a full response does not always leave out the same ones.
func (s *session) rotate() {
	if len(s.order) < 2 {
		return
	}
	n := 1
	for n < len(s.order) && s.order[n].topic == s.order[0].topic {
		n++
	}
	if n == len(s.order) { // one topic: its partitions take turns
		n = 1
	}
	head := slices.Clone(s.order[:n])
	copy(s.order, s.order[n:])
	copy(s.order[len(s.order)-n:], head)
}

// oneOff lists the partitions that a request names.
func oneOff(req *kmsg.FetchRequest) []*fetchPartition {
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	if n == 0 {
		return nil
	}
	all := make([]fetchPartition, 0, n)
	out := make([]*fetchPartition, 0, n)
	for i := range req.Topics {
		rt := &req.Topics[i]
		t := &fetchTopic{name: rt.Topic, id: broker.TopicID(rt.TopicID)}
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			all = append(all, fetchPartition{
				topic: t, index: rp.Partition, offset: rp.FetchOffset, maxBytes: rp.PartitionMaxBytes, epoch: rp.CurrentLeaderEpoch,
			})
			out = append(out, &all[len(all)-1])
		}
	}
	return out
}

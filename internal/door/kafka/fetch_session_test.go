package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/leat-io/leat/internal/broker"
)

// asking is a fetch request for the first n partitions of a topic.
func asking(topic string, n int, session, epoch int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.SessionID, req.SessionEpoch = 12, session, epoch
	if n > 0 {
		rt := kmsg.NewFetchRequestTopic()
		rt.Topic = topic
		for i := range n {
			rp := kmsg.NewFetchRequestTopicPartition()
			rp.Partition, rp.FetchOffset = int32(i), int64(10*i)
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	return req
}

// opened opens a session and gives its lock up, as the end of a fetch does.
func opened(t *testing.T, ss *sessions, req *kmsg.FetchRequest) (*session, []*fetchPartition) {
	t.Helper()
	s, want, code := ss.open(req)
	if code != 0 {
		t.Fatalf("session %d, epoch %d: code %d", req.SessionID, req.SessionEpoch, code)
	}
	if s != nil {
		s.mu.Unlock()
	}
	return s, want
}

func TestASessionRemembersItsPartitions(t *testing.T) {
	t.Parallel()
	ss := newSessions(10)
	s, want := opened(t, ss, asking("t", 3, 0, 0))
	if len(want) != 3 {
		t.Fatalf("%d partitions at first", len(want))
	}
	// One is forgotten, one moves on, one is new.
	req := asking("u", 1, s.id, 1)
	gone := kmsg.NewFetchRequestForgottenTopic()
	gone.Topic, gone.Partitions = "t", []int32{1}
	req.ForgottenTopics = append(req.ForgottenTopics, gone)
	moved := kmsg.NewFetchRequestTopic()
	moved.Topic = "t"
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset = 2, 99
	moved.Partitions = append(moved.Partitions, p)
	req.Topics = append(req.Topics, moved)
	_, want = opened(t, ss, req)
	got := map[string]int64{}
	for _, fp := range want {
		got[fp.topic.name+string(rune('0'+fp.index))] = fp.offset
	}
	if len(got) != 3 || got["t0"] != 0 || got["t2"] != 99 || got["u0"] != 0 {
		t.Errorf("the session has %v", got)
	}
	if ss.parts != 3 {
		t.Errorf("%d partitions are counted", ss.parts)
	}
}

func TestASessionThatIsLostIsSaidToBe(t *testing.T) {
	t.Parallel()
	ss := newSessions(2)
	first, _ := opened(t, ss, asking("t", 1, 0, 0))
	second, _ := opened(t, ss, asking("t", 1, 0, 0))
	opened(t, ss, asking("", 0, first.id, 1))
	third, _ := opened(t, ss, asking("t", 1, 0, 0)) // the second was unused for longest
	for _, c := range []struct {
		name  string
		id    int32
		epoch int32
		want  int16
	}{
		{"the one that gave way", second.id, 1, kerr.FetchSessionIDNotFound.Code},
		{"an epoch that was used", first.id, 1, kerr.InvalidFetchSessionEpoch.Code},
		{"an epoch of the future", third.id, 7, kerr.InvalidFetchSessionEpoch.Code},
	} {
		if _, _, code := ss.open(asking("", 0, c.id, c.epoch)); code != c.want {
			t.Errorf("%s: code %d, want %d", c.name, code, c.want)
		}
	}
	if s, _ := opened(t, ss, asking("t", 1, first.id, -1)); s != nil {
		t.Error("a session is there after it was ended")
	}
	if ss.parts != 1 || len(ss.byID) != 1 {
		t.Errorf("%d sessions with %d partitions are left", len(ss.byID), ss.parts)
	}
}

// TestSessionsAreBoundedTogether opens more than may be there, by their partitions.
func TestSessionsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	ss := newSessions(1000)
	ss.most = 50
	for range 4 {
		opened(t, ss, asking("t", 20, 0, 0))
	}
	if ss.parts != 40 || len(ss.byID) != 2 {
		t.Errorf("%d sessions with %d partitions", len(ss.byID), ss.parts)
	}
	large, _ := opened(t, ss, asking("t", 70, 0, 0)) // one by itself may be larger
	if ss.parts != 70 || ss.byID[large.id] != large {
		t.Errorf("%d sessions with %d partitions", len(ss.byID), ss.parts)
	}
}

// TestWhatIsNews tells which partitions an incremental answer names.
func TestWhatIsNews(t *testing.T) {
	t.Parallel()
	known := fetchPartition{told: true, high: 5, start: 1}
	s := &session{}
	for _, c := range []struct {
		name string
		fp   fetchPartition
		out  fetched
		want bool
	}{
		{"nothing", known, fetched{high: 5, start: 1}, false},
		{"never told", fetchPartition{high: 5, start: 1}, fetched{high: 5, start: 1}, true},
		{"records", known, fetched{high: 5, start: 1, records: []byte{1}}, true},
		{"an end that moved", known, fetched{high: 6, start: 1}, true},
		{"a start that moved", known, fetched{high: 5, start: 2}, true},
		{"an error", known, fetched{high: 5, start: 1, code: 3}, true},
		{"the end of an error", fetchPartition{told: true, high: 5, start: 1, failed: true}, fetched{high: 5, start: 1}, true},
	} {
		if got := s.wants(&c.fp, &c.out); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestEachTopicIsFirstInTurn rotates a session.
func TestEachTopicIsFirstInTurn(t *testing.T) {
	t.Parallel()
	a, b := &fetchTopic{name: "a"}, &fetchTopic{name: "b", id: broker.TopicID{1}}
	s := &session{order: []*fetchPartition{{topic: a, index: 0}, {topic: a, index: 1}, {topic: b, index: 0}}}
	names := func() (out string) {
		for _, fp := range s.order {
			out += fp.topic.name + string(rune('0'+fp.index)) + " "
		}
		return out
	}
	for _, want := range []string{"b0 a0 a1 ", "a0 a1 b0 "} {
		if s.rotate(); names() != want {
			t.Errorf("the order is %s, want %s", names(), want)
		}
	}
	s.order = s.order[:2] // of one topic
	if s.rotate(); names() != "a1 a0 " {
		t.Errorf("the order is %s", names())
	}
}

// TestAFetchWaitsForNoMoreThanItMayHave looks at when an answer need not wait.
func TestAFetchWaitsForNoMoreThanItMayHave(t *testing.T) {
	t.Parallel()
	c := &conn{s: &Server{o: Options{MaxFetchBytes: 1000}}}
	for _, x := range []struct {
		name             string
		least, most, has int
		want             bool
	}{
		{"nothing there", 1, 500, 0, false},
		{"less than is wanted", 100, 500, 99, false},
		{"as much as is wanted", 100, 500, 100, true},
		{"more wanted than the request allows", 900, 500, 500, true},
		{"more wanted than the node allows", 5000, 9000, 1000, true},
		{"nothing wanted", 0, 500, 0, true},
	} {
		req := kmsg.NewPtrFetchRequest()
		req.MinBytes, req.MaxBytes = int32(x.least), int32(x.most)
		f := fetchRun{c: c, req: req, want: make([]*fetchPartition, 1), bytes: x.has}
		if got := f.enough(); got != x.want {
			t.Errorf("%s: %t", x.name, got)
		}
	}
}

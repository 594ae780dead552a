package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func topicImage(counts ...int32) *Topics {
	var all []Topic
	for i, n := range counts {
		all = append(all, Topic{Name: string(rune('a' + i)), ID: TopicID{byte(i + 1)}, Partitions: n})
	}
	return NewTopics(all)
}

// cscript drives a group of the new protocol.
type cscript struct {
	t   *testing.T
	c   *Consumer
	now time.Time
	all *Topics
}

func newConsumerScript(t *testing.T, counts ...int32) *cscript {
	return &cscript{t: t, c: NewConsumer(fleetConfig, epoch), now: epoch, all: topicImage(counts...)}
}

func (s *cscript) join(id string, topics ...string) ConsumerReply {
	return s.say(&ConsumerHeartbeat{MemberID: id, Rebalance: 5 * time.Second, HasTopics: true, Topics: topics, HasOwned: true})
}

// holds is a heartbeat that says what the member has.
func (s *cscript) holds(id string, epoch int32, owned Partitions) ConsumerReply {
	return s.say(&ConsumerHeartbeat{MemberID: id, Epoch: epoch, Rebalance: -1, HasOwned: true, Owned: owned})
}

// keep is a heartbeat that says nothing.
func (s *cscript) keep(id string, epoch int32) ConsumerReply {
	return s.say(&ConsumerHeartbeat{MemberID: id, Epoch: epoch, Rebalance: -1})
}

func (s *cscript) say(ev *ConsumerHeartbeat) ConsumerReply {
	s.t.Helper()
	ev.All = s.all
	if r := ev.Check(); r.Code != OK {
		return r
	}
	return s.c.Heartbeat(s.now, ev)
}

func (s *cscript) want(r ConsumerReply, epoch int32, assignment Partitions) {
	s.t.Helper()
	switch {
	case r.Code != OK || r.Epoch != epoch:
		s.t.Fatalf("answered %d %q, epoch %d; want epoch %d", r.Code, r.Message, r.Epoch, epoch)
	case r.HasAssignment != (assignment != nil), assignment != nil && !r.Assignment.equal(assignment):
		s.t.Fatalf("assigned %v (%v), want %v", r.Assignment, r.HasAssignment, assignment)
	}
}

func parts(list ...int32) Partitions { return Partitions{TopicID{1}: list} }

// The example of KIP-848: partitions move one member at a time, and nobody else stops.
func TestPartitionsMoveWhenTheyAreLetGo(t *testing.T) {
	t.Parallel()
	s := newConsumerScript(t, 6)
	s.want(s.join("A", "a"), 1, parts(0, 1, 2, 3, 4, 5))
	// B has to wait for what A has.
	s.want(s.join("B", "a"), 2, Partitions{})
	if st := s.c.State(); st != "Reconciling" {
		t.Fatal(st)
	}
	s.want(s.keep("B", 2), 2, nil)
	s.want(s.keep("A", 1), 1, parts(0, 1, 2)) // at its epoch until it has let go
	s.want(s.holds("A", 1, parts(0, 1, 2, 3, 4, 5)), 1, nil)
	s.want(s.keep("B", 2), 2, nil)
	s.want(s.holds("A", 1, parts(0, 1, 2)), 2, nil)
	s.want(s.keep("B", 2), 2, parts(3, 4, 5))
	if st := s.c.State(); st != "Stable" {
		t.Fatal(st)
	}
	// C gets two, from A and B, as each lets go of one.
	s.want(s.join("C", "a"), 3, Partitions{})
	s.want(s.keep("A", 2), 2, parts(0, 1))
	s.want(s.keep("B", 2), 2, parts(3, 4))
	s.want(s.holds("B", 2, parts(3, 4)), 3, nil)
	s.want(s.keep("C", 3), 3, parts(5))
	s.want(s.holds("A", 2, parts(0, 1)), 3, nil)
	s.want(s.keep("C", 3), 3, parts(2, 5))
	// One that leaves frees all it had.
	r := s.say(&ConsumerHeartbeat{MemberID: "A", Epoch: EpochLeave, Rebalance: -1})
	if r.Code != OK || r.Epoch != EpochLeave {
		t.Fatalf("%+v", r)
	}
	b, c := s.keep("B", 3), s.keep("C", 3)
	if b.Epoch != 4 || c.Epoch != 4 || b.Assignment.size()+c.Assignment.size() != 6 {
		t.Fatalf("%+v %+v", b, c)
	}
}

// TestAssignmentsKeepTheirDistance: who comes and goes within the interval is assigned together, when it is over (KIP-1263). A group's first member does
// not wait.
func TestAssignmentsKeepTheirDistance(t *testing.T) {
	t.Parallel()
	s := newConsumerScript(t, 6)
	cfg := fleetConfig
	cfg.Assignment = time.Second
	s.c.SetConfig(cfg)
	s.want(s.join("A", "a"), 1, parts(0, 1, 2, 3, 4, 5))
	s.now = s.now.Add(300 * time.Millisecond)
	r := s.join("B", "a")
	s.want(r, 1, Partitions{})
	if due := epoch.Add(time.Second); !r.Wake.Equal(due) || s.c.State() != "Assigning" || s.c.Epoch() != 2 {
		t.Fatalf("to be looked at again at %v, want %v; %s, epoch %d", r.Wake, due, s.c.State(), s.c.Epoch())
	}
	s.now = s.now.Add(300 * time.Millisecond)
	s.want(s.join("C", "a"), 1, Partitions{})
	s.want(s.keep("A", 1), 1, nil)
	if wake := s.c.Tick(s.now); !wake.Equal(epoch.Add(time.Second)) {
		t.Fatalf("woken at %v", wake)
	}
	s.now = epoch.Add(time.Second)
	s.c.Tick(s.now)
	if s.c.Epoch() != 3 || s.c.TargetEpoch() != 3 {
		t.Fatalf("epoch %d, target %d", s.c.Epoch(), s.c.TargetEpoch())
	}
	s.want(s.keep("A", 1), 1, parts(0, 1))
	s.want(s.holds("A", 1, parts(0, 1)), 3, nil)
	b, c := s.keep("B", 1), s.keep("C", 1)
	if b.Epoch != 3 || c.Epoch != 3 || b.Assignment.size() != 2 || c.Assignment.size() != 2 {
		t.Fatalf("%+v %+v", b, c)
	}
	// After a restart that came within the interval nobody knows the topics at first.
	s.want(s.join("E", "a"), 3, Partitions{})
	changes := s.c.Changes()
	back, err := RestoreConsumer(cfg, changes.Group, s.now)
	if err != nil {
		t.Fatal(err)
	}
	for id, raw := range changes.Members {
		if err := back.RestoreMember(id, raw, s.now); err != nil {
			t.Fatal(err)
		}
	}
	s.c = back
	s.c.Tick(s.now)
	if r := s.keep("E", 3); r.Epoch != 4 || s.c.TargetEpoch() != 4 || s.c.members["E"].Target.size() == 0 || s.c.members["A"].Target.size() == 0 {
		t.Fatalf("%+v, target %d: %v", r, s.c.TargetEpoch(), s.c.members["E"].Target)
	}
	s.say(&ConsumerHeartbeat{MemberID: "E", Epoch: EpochLeave, Rebalance: -1})
	// The last one to leave ends the wait.
	for _, id := range []string{"A", "B", "C"} {
		s.say(&ConsumerHeartbeat{MemberID: id, Epoch: EpochLeave, Rebalance: -1})
	}
	if s.c.State() != "Empty" || s.c.Epoch() != s.c.TargetEpoch() {
		t.Fatalf("%s, epoch %d of %d", s.c.State(), s.c.TargetEpoch(), s.c.Epoch())
	}
	if r := s.join("D", "a"); r.Assignment.size() != 6 {
		t.Fatalf("%+v", r)
	}
}

func TestALostHeartbeatIsAnsweredAgain(t *testing.T) {
	t.Parallel()
	s := newConsumerScript(t, 2)
	s.want(s.join("A", "a"), 1, parts(0, 1))
	s.want(s.join("B", "a"), 2, Partitions{})
	s.want(s.keep("A", 1), 1, parts(0))
	s.want(s.holds("A", 1, parts(0)), 2, nil) // this answer is lost
	s.want(s.holds("A", 1, parts(0)), 2, nil)
	if r := s.holds("A", 1, parts(0, 1)); r.Code != FencedMemberEpoch {
		t.Errorf("one that holds more than it may under its last epoch: %+v", r)
	}
	if r := s.keep("A", 1); r.Code != FencedMemberEpoch {
		t.Errorf("one that does not say what it holds under its last epoch: %+v", r)
	}
	if r := s.keep("A", 0); r.Code != InvalidRequest {
		t.Errorf("a join that says nothing: %+v", r)
	}
	// It starts over, and is where it was.
	s.want(s.join("A", "a"), 2, parts(0))
}

func TestALateJoinFreesNothing(t *testing.T) {
	t.Parallel()
	s := newConsumerScript(t, 2)
	s.want(s.join("A", "a"), 1, parts(0, 1))
	s.join("B", "a")
	s.want(s.keep("A", 1), 1, parts(0)) // it still has partition 1
	s.join("A", "a")                    // a copy of its first request comes late, which says that it has nothing
	s.want(s.keep("B", 2), 2, nil)
	s.want(s.holds("A", 1, parts(0)), 2, nil)
	s.want(s.keep("B", 2), 2, parts(1))
}

func TestMembersThatDoNotLetGoInTimeAreRemoved(t *testing.T) {
	t.Parallel()
	s := newConsumerScript(t, 2)
	s.join("A", "a")
	s.join("B", "a")
	s.keep("A", 1)
	for range 5 {
		s.now = s.now.Add(time.Second)
		s.keep("A", 1)
		s.keep("B", 2)
		s.c.Tick(s.now)
	}
	if r := s.keep("A", 1); r.Code != UnknownMember {
		t.Errorf("a member that was told five seconds ago to let go: %+v", r)
	}
	s.want(s.keep("B", 2), 3, parts(0, 1))
	s.now = s.now.Add(fleetConfig.Session)
	s.c.Tick(s.now)
	if s.c.Len() != 0 || s.c.State() != "Empty" || s.c.EmptySince() != s.now {
		t.Error("a silent member stays")
	}
}

func TestSubscriptionsFollowTheTopics(t *testing.T) {
	t.Parallel()
	s := newConsumerScript(t, 2, 2)
	regex := "[bc]"
	r := s.say(&ConsumerHeartbeat{MemberID: "A", Rebalance: 0, HasTopics: true, Topics: []string{"a"}, Regex: &regex, HasOwned: true})
	s.want(r, 1, Partitions{TopicID{1}: {0, 1}, TopicID{2}: {0, 1}})
	s.all = topicImage(2, 3, 1)
	s.want(s.keep("A", 1), 2, Partitions{TopicID{1}: {0, 1}, TopicID{2}: {0, 1, 2}, TopicID{3}: {0}})
	s.all = NewTopics([]Topic{{Name: "a", ID: TopicID{9}, Partitions: 1}, {Name: "x", ID: TopicID{8}, Partitions: 1}}) // "a" is another one
	s.want(s.keep("A", 2), 2, Partitions{})
	s.want(s.holds("A", 2, Partitions{}), 3, Partitions{TopicID{9}: {0}})
	// Topics that nobody reads change nothing.
	s.all = NewTopics([]Topic{{Name: "a", ID: TopicID{9}, Partitions: 1}, {Name: "x", ID: TopicID{8}, Partitions: 5}})
	s.want(s.keep("A", 3), 3, nil)
}

func TestCommitsOfTheEpochBefore(t *testing.T) {
	t.Parallel()
	s := newConsumerScript(t, 4)
	s.join("A", "a")
	s.join("B", "a")
	s.keep("A", 1)
	s.holds("A", 1, parts(0, 1)) // A is at 2 now, and holds 0 and 1 since 1
	s.keep("B", 2)
	commit := func(id string, epoch, p int32) Code {
		return s.c.MayCommit(id, "", epoch, true, func(yield func(string, int32) bool) { yield("a", p) })
	}
	for _, c := range []struct {
		id       string
		epoch, p int32
		want     Code
	}{
		{"A", 2, 0, OK},
		{"A", 1, 0, OK},                // has it since then
		{"A", 1, 3, StaleMemberEpoch},  // gave it away
		{"B", 1, 3, StaleMemberEpoch},  // had nothing then
		{"A", 3, 0, StaleMemberEpoch},  // not yet
		{"A", -1, 0, StaleMemberEpoch}, // without an epoch
		{"C", 1, 0, UnknownMember},
		{"", -1, 0, UnknownMember}, // the group is in use
	} {
		if got := commit(c.id, c.epoch, c.p); got != c.want {
			t.Errorf("%s commits partition %d under epoch %d: %d, want %d", c.id, c.p, c.epoch, got, c.want)
		}
	}
	if got := s.c.MayCommit("A", "", 2, false, nil); got != UnsupportedVersion {
		t.Errorf("a request of an old version: %d", got)
	}
}

func TestUniformAssignments(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = 1
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	for round := range 200 {
		var topics []Topic
		total := 0
		for i := range 1 + rng.IntN(5) {
			topics = append(topics, Topic{Name: fmt.Sprint("t", i), ID: TopicID{byte(i + 1)}, Partitions: int32(1 + rng.IntN(12))})
			total += int(topics[i].Partitions)
		}
		same := rng.IntN(2) == 0
		var subs []*subscriber
		for i := range 1 + rng.IntN(6) {
			sub := &subscriber{id: fmt.Sprint("m", i), key: fmt.Sprint("m", i), topics: topics}
			if !same {
				sub.topics = slices.DeleteFunc(slices.Clone(topics), func(Topic) bool { return rng.IntN(3) == 0 })
			}
			subs = append(subs, sub)
		}
		check := func(got map[string]Partitions, even bool) {
			t.Helper()
			owner := map[place]string{}
			for _, s := range subs {
				for id, list := range got[s.id] {
					if !slices.ContainsFunc(s.topics, func(t Topic) bool { return t.ID == id }) {
						t.Fatalf("seed %d round %d: %s gets a topic that it does not read", seed, round, s.id)
					}
					if !slices.IsSorted(list) {
						t.Fatalf("seed %d round %d: %v is not in order", seed, round, list)
					}
					for _, p := range list {
						if other, dup := owner[place{id, p}]; dup {
							t.Fatalf("seed %d round %d: %s and %s get partition %d", seed, round, other, s.id, p)
						}
						owner[place{id, p}] = s.id
					}
				}
			}
			for _, topic := range topics {
				if !slices.ContainsFunc(subs, func(s *subscriber) bool { return slices.Contains(s.topics, topic) }) {
					continue
				}
				for p := range topic.Partitions {
					if owner[place{topic.ID, p}] == "" {
						t.Fatalf("seed %d round %d: nobody gets partition %d of %s", seed, round, p, topic.Name)
					}
				}
			}
			if !even {
				return
			}
			for _, s := range subs {
				if n := got[s.id].size(); n != total/len(subs) && n != (total+len(subs)-1)/len(subs) {
					t.Fatalf("seed %d round %d: %s gets %d of %d partitions of %d members", seed, round, s.id, n, total, len(subs))
				}
			}
		}
		check(assign(assignorRange, subs), false)
		got := assign(assignorUniform, subs)
		check(got, same)
		for _, s := range subs {
			s.had = got[s.id]
		}
		again := assign(assignorUniform, subs)
		for _, s := range subs {
			if !again[s.id].equal(got[s.id]) {
				t.Fatalf("seed %d round %d: nothing has changed, and %s has %v instead of %v", seed, round, s.id, again[s.id], got[s.id])
			}
		}
		if !same {
			continue
		}
		// One more member takes its share, and nothing moves between the others.
		subs = append(subs, &subscriber{id: "new", key: "new", topics: topics})
		more := assign(assignorUniform, subs)
		check(more, true)
		for _, s := range subs[:len(subs)-1] {
			for id, list := range more[s.id] {
				for _, p := range list {
					if !s.had.has(id, p) {
						t.Fatalf("seed %d round %d: partition %d moves to %s, which was there before", seed, round, p, s.id)
					}
				}
			}
		}
	}
}

func TestRangeAssignments(t *testing.T) {
	t.Parallel()
	all := topicImage(5, 2)
	var topics []Topic
	for _, name := range []string{"a", "b"} {
		topic, _ := all.ByName(name)
		topics = append(topics, topic)
	}
	subs := []*subscriber{{id: "x", key: "3", topics: topics}, {id: "y", key: "1", topics: topics}, {id: "z", key: "2", topics: topics[:1]}}
	got := assign(assignorRange, subs)
	for id, want := range map[string]Partitions{
		"y": {TopicID{1}: {0, 1}, TopicID{2}: {0}}, "z": {TopicID{1}: {2, 3}}, "x": {TopicID{1}: {4}, TopicID{2}: {1}},
	} {
		if !got[id].equal(want) {
			t.Errorf("%s gets %v, want %v", id, got[id], want)
		}
	}
}

func FuzzStoredMember(f *testing.F) {
	s := NewConsumer(fleetConfig, epoch)
	ev := ConsumerHeartbeat{MemberID: "m", HasTopics: true, Topics: []string{"a"}, HasOwned: true, All: topicImage(3)}
	s.Heartbeat(epoch, &ev)
	f.Add(s.Changes().Members["m"])
	f.Add([]byte(`{"id":"m","regex":"("}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := NewConsumer(fleetConfig, epoch)
		if c.RestoreMember("m", raw, epoch) != nil {
			return
		}
		for range 3 {
			ev := ConsumerHeartbeat{MemberID: "m", Rebalance: time.Second, HasTopics: true, HasOwned: true, All: topicImage(3)}
			c.Heartbeat(epoch, &ev)
			c.Tick(epoch)
			c.Members()
			c.Changes()
		}
	})
}

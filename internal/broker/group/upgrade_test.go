package group

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A group that becomes one of the new protocol: who has not joined again yet holds what it was assigned last, and commits it; nobody else may be given
// that before it has let go. Who has joined again holds what it said then.
func TestUpgradeKeepsWhatMembersHold(t *testing.T) {
	t.Parallel()
	all := topicImage(2)
	metadata := func(owned ...int32) []Protocol {
		m := kmsg.NewConsumerMemberMetadata()
		m.Version, m.Topics = 1, []string{"a"}
		m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "a", Partitions: owned}}
		return []Protocol{{Name: "x", Metadata: m.AppendTo(nil)}}
	}
	assignment := kmsg.NewConsumerMemberAssignment()
	assignment.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "a", Partitions: []int32{0, 1}}}
	quick := Config{InitialDelay: -1, MinSession: time.Second, MaxSession: time.Minute, MaxMembers: 10}
	join := func(s *script, id, newID string, owned ...int32) {
		s.join(id, newID, func(ev *Join) { ev.Protocols = metadata(owned...) })
	}
	tests := []struct {
		name  string
		after func(s *script) // the member "old" was assigned both partitions
		holds []int32
	}{
		{"a stable group", func(*script) {}, []int32{0, 1}},
		{"a rebalance, and it has not joined again", func(s *script) { join(s, "", "other") }, []int32{0, 1}},
		{"it has joined again and let everything go", func(s *script) { join(s, "", "other"); join(s, "old", "") }, nil},
		{"it has joined again and keeps one", func(s *script) { join(s, "", "other"); join(s, "old", "", 1) }, []int32{1}},
		{"it was assigned less, and has not let go of the rest", func(s *script) {
			join(s, "", "other")
			join(s, "old", "", 0, 1)
			one := kmsg.NewConsumerMemberAssignment()
			one.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "a", Partitions: []int32{0}}}
			s.sync("old", 2, map[string][]byte{"old": one.AppendTo(nil)})
		}, []int32{0, 1}},
		{"it was assigned less, and another one the rest", func(s *script) {
			join(s, "", "other")
			join(s, "old", "", 0, 1)
			one, two := kmsg.NewConsumerMemberAssignment(), kmsg.NewConsumerMemberAssignment()
			one.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "a", Partitions: []int32{0}}}
			two.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "a", Partitions: []int32{1}}}
			s.sync("old", 2, map[string][]byte{"old": one.AppendTo(nil), "other": two.AppendTo(nil)})
		}, []int32{0}},
		{"a restart in the rebalance", func(s *script) {
			snapshot := s.g.Snapshot()
			join(s, "", "other")
			var err error
			if s.g, err = Restore(quick, snapshot, s.now); err != nil {
				s.t.Fatal(err)
			}
		}, []int32{0, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, quick)
			join(s, "", "old")
			s.pass(time.Second)
			s.sync("old", 1, map[string][]byte{"old": assignment.AppendTo(nil)})
			s.state(Stable)
			tt.after(s)
			c, _, ok := Upgrade(s.g, fleetConfig, s.now, all)
			if !ok {
				t.Fatal("the group cannot become one of the new protocol")
			}
			var holds []int32
			for _, p := range slices.Sorted(maps.Keys(c.holders[TopicID{1}])) {
				if c.holders[TopicID{1}][p] == "old" {
					holds = append(holds, p)
				}
			}
			if !slices.Equal(holds, tt.holds) {
				t.Errorf("it holds %v, want %v", holds, tt.holds)
			}
		})
	}
}

package group

import (
	"fmt"
	"testing"
	"time"
)

// crowd is a group of n members that share 10,000 partitions, at rest.
func crowd(n int) (*Consumer, *Topics, []string) {
	cfg := fleetConfig
	cfg.MaxMembers = n
	c, all := NewConsumer(cfg, epoch), topicImage(5000, 5000)
	ids := make([]string, n)
	epochs := make([]int32, n)
	for i := range ids {
		ids[i] = fmt.Sprint("m", i)
		ev := ConsumerHeartbeat{MemberID: ids[i], Rebalance: time.Minute, HasTopics: true, Topics: []string{"a", "b"}, HasOwned: true, All: all}
		epochs[i] = c.Heartbeat(epoch, &ev).Epoch
		c.Changes()
	}
	for range 3 {
		for i, id := range ids {
			ev := ConsumerHeartbeat{MemberID: id, Epoch: epochs[i], Rebalance: -1, HasOwned: true, Owned: c.members[id].Assigned.partitions(), All: all}
			if r := c.Heartbeat(epoch, &ev); r.Code == OK {
				epochs[i] = r.Epoch
			}
			c.Changes()
		}
	}
	return c, all, ids
}

func BenchmarkHeartbeatAtRest(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, all, ids := crowd(n)
			if c.State() != "Stable" {
				b.Fatal(c.State())
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				ev := ConsumerHeartbeat{MemberID: ids[i%n], Epoch: c.targetEpoch, Rebalance: -1, All: all}
				if r := c.Heartbeat(epoch, &ev); r.Code != OK || !c.Changes().Empty() {
					b.Fatal(r)
				}
			}
		})
	}
}

func BenchmarkMembersJoin(b *testing.B) {
	for _, n := range []int{10, 300} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				crowd(n)
			}
		})
	}
}

package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetFetch (9)
//
// v2 all topics of a group, v5 leader epoch, v7 on request UNSTABLE_OFFSET_COMMIT where a transaction that is not over has committed an offset, v8 several groups, v9 the member's epoch is checked in
// groups of the new protocol, v10 topic ids. A group or a partition without a position has offset -1 and no
// error.
func init() { register(api{key: 9, min: 1, max: 10, handle: offsetFetch}) }

func offsetFetch(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.OffsetFetchRequest)
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	if req.Version >= 8 {
		for _, rg := range req.Groups {
			resp.Groups = append(resp.Groups, c.fetchGroup(req.Version, req.RequireStable, rg))
		}
		return resp, nil
	}
	// The older versions ask for one group; the answer of the newer ones holds all that they have.
	rg := kmsg.OffsetFetchRequestGroup{Group: req.Group}
	if req.Topics != nil {
		rg.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, rt := range req.Topics {
		rg.Topics = append(rg.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: rt.Topic, Partitions: rt.Partitions})
	}
	g := c.fetchGroup(req.Version, req.RequireStable && req.Version >= 7, rg)
	resp.ErrorCode = g.ErrorCode
	for _, gt := range g.Topics {
		st := kmsg.NewOffsetFetchResponseTopic()
		st.Topic = gt.Topic
		for _, gp := range gt.Partitions {
			st.Partitions = append(st.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: gp.Partition, Offset: gp.Offset, LeaderEpoch: gp.LeaderEpoch, Metadata: gp.Metadata, ErrorCode: gp.ErrorCode,
			})
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp, nil
}

func (c call) fetchGroup(version int16, stable bool, rg kmsg.OffsetFetchRequestGroup) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = rg.Group
	groups := c.s.b.Groups()
	if version >= 9 {
		who := broker.Committer{MemberID: text(rg.MemberID), Generation: rg.MemberEpoch, KnowsEpochs: true}
		if out.ErrorCode = groupCode(groups.MayFetch(rg.Group, who)); out.ErrorCode != 0 {
			return out
		}
	}
	if rg.Topics == nil { // everything the group has
		all, err := groups.AllCommitted(rg.Group)
		out.ErrorCode = groupCode(0, err)
		for _, o := range all {
			n := len(out.Topics)
			if n == 0 || out.Topics[n-1].Topic != o.Topic {
				t := kmsg.NewOffsetFetchResponseGroupTopic()
				t.Topic = o.Topic
				if topic, ok := c.s.b.Topic(o.Topic); ok {
					t.TopicID = topic.ID
				}
				out.Topics = append(out.Topics, t)
				n++
			}
			sp := committedPartition(o)
			if stable && groups.Unstable(rg.Group, o.Topic, o.Partition) {
				sp = unstablePartition(o.Partition)
			}
			out.Topics[n-1].Partitions = append(out.Topics[n-1].Partitions, sp)
		}
		return out
	}
	for _, rt := range rg.Topics {
		t := kmsg.NewOffsetFetchResponseGroupTopic()
		t.Topic, t.TopicID = rt.Topic, rt.TopicID
		name, missing := rt.Topic, int16(0)
		if version >= 10 {
			if topic, ok := c.s.b.TopicByID(rt.TopicID); ok {
				name = topic.Name
			} else {
				missing = kerr.UnknownTopicID.Code
			}
		}
		for _, partition := range rt.Partitions {
			o := broker.Offset{Partition: partition, Offset: -1, LeaderEpoch: -1}
			if missing == 0 {
				found, ok, err := groups.Committed(rg.Group, name, partition)
				if err != nil {
					out.ErrorCode = groupCode(0, err)
				}
				if ok {
					o = found
				}
			}
			sp := committedPartition(o)
			sp.ErrorCode = missing
			if missing == 0 && stable && groups.Unstable(rg.Group, name, partition) {
				sp = unstablePartition(partition)
			}
			t.Partitions = append(t.Partitions, sp)
		}
		out.Topics = append(out.Topics, t)
	}
	return out
}

// unstablePartition is the answer where a transaction that is not over has committed an offset.
func unstablePartition(partition int32) kmsg.OffsetFetchResponseGroupTopicPartition {
	sp := committedPartition(broker.Offset{Partition: partition, Offset: -1, LeaderEpoch: -1})
	sp.ErrorCode = kerr.UnstableOffsetCommit.Code
	return sp
}

func committedPartition(o broker.Offset) kmsg.OffsetFetchResponseGroupTopicPartition {
	sp := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	sp.Partition, sp.Offset, sp.LeaderEpoch = o.Partition, o.Offset, o.LeaderEpoch
	sp.Metadata = kmsg.StringPtr(o.Metadata)
	return sp
}

package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetForLeaderEpoch (23)
//
// v2 current leader epoch, v3 for replicas, v4 flexible. The leader epoch is that of the node's start, the same for all partitions.
func init() { register(api{key: 23, min: 2, max: 4, handle: offsetForLeaderEpoch}) }

func offsetForLeaderEpoch(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.OffsetForLeaderEpochRequest)
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, rt := range req.Topics {
		st := kmsg.NewOffsetForLeaderEpochResponseTopic()
		st.Topic = rt.Topic
		topic, ok := c.s.b.Topic(rt.Topic)
		for _, rp := range rt.Partitions {
			sp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			sp.Partition, sp.LeaderEpoch, sp.EndOffset = rp.Partition, -1, -1
			var p *broker.Partition
			if ok {
				p = topic.Partition(rp.Partition)
			}
			switch {
			case p == nil:
				sp.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case rp.CurrentLeaderEpoch >= 0 && rp.CurrentLeaderEpoch != c.s.b.LeaderEpoch():
				sp.ErrorCode = epochCode(rp.CurrentLeaderEpoch, c.s.b.LeaderEpoch())
			default:
				epoch, end, err := p.EndOfEpoch(rp.LeaderEpoch)
				sp.LeaderEpoch, sp.EndOffset, sp.ErrorCode = epoch, end, code(err)
			}
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp, nil
}

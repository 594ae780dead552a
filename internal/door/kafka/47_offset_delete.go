package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetDelete (47)
//
// A group's positions are forgotten, but for those in topics that a member subscribes to. What is gone is durably gone when the answer comes.

func init() { register(api{key: 47, min: 0, max: 0, handle: offsetDelete}) }

func offsetDelete(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.OffsetDeleteRequest)
	resp := req.ResponseKind().(*kmsg.OffsetDeleteResponse)
	var places []broker.Offset
	for _, rt := range req.Topics {
		for _, rp := range rt.Partitions {
			places = append(places, broker.Offset{Topic: rt.Topic, Partition: rp.Partition})
		}
	}
	codes, err := c.s.b.Groups().DeleteOffsets(ctx, req.Group, places)
	if err != nil {
		resp.ErrorCode = groupCode(0, err)
		return resp, nil
	}
	i := 0
	for _, rt := range req.Topics {
		st := kmsg.NewOffsetDeleteResponseTopic()
		st.Topic = rt.Topic
		t, ok := c.s.b.Topic(rt.Topic)
		for _, rp := range rt.Partitions {
			sp := kmsg.NewOffsetDeleteResponseTopicPartition()
			sp.Partition, sp.ErrorCode = rp.Partition, int16(codes[i])
			if !hasPartition(t, ok, rp.Partition) {
				sp.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
			st.Partitions = append(st.Partitions, sp)
			i++
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp, nil
}

package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteRecords (21)
//
// v2 flexible. Records below an offset (-1: the high watermark) cannot be read any more when the answer comes, and that is durable; their segments go with the
// next pass of retention. A topic that is only compacted refuses, as in Kafka,
// and so does one that holds a table.

func init() { register(api{key: 21, min: 0, max: 2, handle: deleteRecords}) }

func deleteRecords(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DeleteRecordsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	var deletions []broker.Deletion
	type place struct{ topic, partition int }
	var places []place
	for _, rt := range req.Topics {
		st := kmsg.NewDeleteRecordsResponseTopic()
		st.Topic = rt.Topic
		topic, ok := c.s.b.Topic(rt.Topic)
		for _, rp := range rt.Partitions {
			sp := kmsg.NewDeleteRecordsResponseTopicPartition()
			sp.Partition, sp.LowWatermark = rp.Partition, -1
			var p *broker.Partition
			if ok {
				p = topic.Partition(rp.Partition)
			}
			if p == nil {
				sp.ErrorCode = kerr.UnknownTopicOrPartition.Code
			} else {
				deletions = append(deletions, broker.Deletion{P: p, Before: rp.Offset})
				places = append(places, place{len(resp.Topics), len(st.Partitions)})
			}
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	c.s.b.DeleteRecordsOfClient(ctx, deletions)
	for i, d := range deletions {
		sp := &resp.Topics[places[i].topic].Partitions[places[i].partition]
		if sp.ErrorCode = code(d.Err); d.Err == nil {
			sp.LowWatermark = d.Start
		}
	}
	return resp, nil
}

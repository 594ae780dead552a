package kafka

import (
	"context"
	"slices"
	"strings"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeTopicPartitions (75)
//
// KIP-966: partitions of topics in pages, in the order of names. There is one replica, so that no other could be elected.

func init() { register(api{key: 75, min: 0, max: 0, handle: describeTopicPartitions}) }

// maxDescribed bounds the partitions of one answer, as Kafka's max.request.partition.size.limit.
const maxDescribed = 2000

func describeTopicPartitions(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DescribeTopicPartitionsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeTopicPartitionsResponse)
	var names []string
	for _, rt := range req.Topics {
		names = append(names, rt.Topic)
	}
	all := len(names) == 0
	if all {
		for _, t := range c.s.b.Topics() {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	first := int32(0)
	if cur := req.Cursor; cur != nil {
		at, _ := slices.BinarySearchFunc(names, cur.Topic, strings.Compare)
		names = names[at:]
		if len(names) > 0 && names[0] == cur.Topic {
			first = max(cur.Partition, 0)
		}
	}
	left := min(int(req.ResponsePartitionLimit), maxDescribed)
	if left <= 0 {
		left = maxDescribed
	}
	for _, name := range names {
		t, ok := c.s.b.Topic(name)
		if !ok {
			if !all {
				resp.Topics = append(resp.Topics, undescribed(name))
			}
			first = 0
			continue
		}
		parts := t.Partitions()
		if int(first) > len(parts) {
			first = int32(len(parts))
		}
		if left == 0 {
			resp.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name, Partition: first}
			return resp, nil
		}
		st := kmsg.NewDescribeTopicPartitionsResponseTopic()
		st.Topic, st.TopicID = kmsg.StringPtr(name), t.ID
		node := []int32{c.s.o.NodeID} // shared: the response is only read
		for _, p := range parts[first:min(int(first)+left, len(parts))] {
			sp := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
			sp.Partition, sp.LeaderID, sp.LeaderEpoch = p.Index, c.s.o.NodeID, c.s.b.LeaderEpoch()
			sp.Replicas, sp.ISR, sp.EligibleLeaderReplicas, sp.LastKnownELR = node, node, []int32{}, []int32{}
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
		left -= len(st.Partitions)
		if next := int(first) + len(st.Partitions); next < len(parts) {
			resp.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name, Partition: int32(next)}
			return resp, nil
		}
		first = 0
	}
	return resp, nil
}

func undescribed(name string) kmsg.DescribeTopicPartitionsResponseTopic {
	st := kmsg.NewDescribeTopicPartitionsResponseTopic()
	st.Topic, st.ErrorCode = &name, kerr.UnknownTopicOrPartition.Code
	if broker.CheckTopicName(name) != nil {
		st.ErrorCode = kerr.InvalidTopicException.Code
	}
	return st
}

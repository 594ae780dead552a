package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ElectLeaders (43)
//
// v1 kind of election and an error for the whole, v2 flexible. The only node leads every partition, so that no election is ever needed.

func init() { register(api{key: 43, min: 0, max: 2, handle: electLeaders}) }

func electLeaders(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.ElectLeadersRequest)
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	if req.ElectionType != 0 && req.ElectionType != 1 {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp, nil
	}
	if req.Topics == nil { // all, and those that need no election are not listed
		return resp, nil
	}
	for _, rt := range req.Topics {
		st := kmsg.NewElectLeadersResponseTopic()
		st.Topic = rt.Topic
		t, ok := c.s.b.Topic(rt.Topic)
		for _, partition := range rt.Partitions {
			sp := kmsg.NewElectLeadersResponseTopicPartition()
			sp.Partition = partition
			if !hasPartition(t, ok, partition) {
				sp.ErrorCode, sp.ErrorMessage = kerr.UnknownTopicOrPartition.Code, kmsg.StringPtr("no such topic or partition")
			} else {
				sp.ErrorCode, sp.ErrorMessage = kerr.ElectionNotNeeded.Code, kmsg.StringPtr("the only node leads the partition")
			}
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp, nil
}

func hasPartition(t *broker.Topic, ok bool, partition int32) bool {
	return ok && t.Partition(partition) != nil
}

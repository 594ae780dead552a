package kafka

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ConsumerGroupHeartbeat (68)
//
// The whole of the new group protocol (KIP-848): members join, tell what they hold, are told what they may hold, and leave. v1 subscriptions by regular
// expression, and member ids that the client makes. The answer comes when what it tells is durable.

func init() { register(api{key: 68, min: 0, max: 1, handle: consumerGroupHeartbeat}) }

func consumerGroupHeartbeat(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.ConsumerGroupHeartbeatRequest)
	resp := req.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
	if refused, why := strangeHeartbeat(req); why != "" {
		resp.ErrorCode, resp.ErrorMessage = refused, &why
		return resp, nil
	}
	ev := group.ConsumerHeartbeat{
		MemberID: req.MemberID, Instance: text(req.InstanceID), Rack: text(req.RackID), ClientID: c.header.clientID, Host: c.remote,
		Epoch: req.MemberEpoch, Rebalance: time.Duration(req.RebalanceTimeoutMillis) * time.Millisecond,
		HasTopics: req.SubscribedTopicNames != nil, Topics: req.SubscribedTopicNames, Regex: req.SubscribedTopicRegex, Assignor: req.ServerAssignor,
		HasOwned: req.Topics != nil, Owned: make(group.Partitions, len(req.Topics)),
	}
	for _, t := range req.Topics {
		list := append(ev.Owned[t.TopicID], t.Partitions...)
		slices.Sort(list)
		ev.Owned[t.TopicID] = slices.Compact(list)
	}
	r, err := c.s.b.Groups().ConsumerHeartbeat(ctx, req.Group, ev)
	if resp.ErrorCode = groupCode(r.Code, err); resp.ErrorCode != 0 {
		resp.ErrorMessage = &r.Message
		if err != nil {
			resp.ErrorMessage = explain(err)
		}
		return resp, nil
	}
	resp.MemberID, resp.MemberEpoch, resp.HeartbeatIntervalMillis = &r.MemberID, r.Epoch, int32(r.Heartbeat.Milliseconds())
	if r.HasAssignment {
		resp.Assignment = &kmsg.ConsumerGroupHeartbeatResponseAssignment{Topics: []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{}}
		for id, partitions := range r.Assignment {
			t := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
			t.TopicID, t.Partitions = id, partitions
			resp.Assignment.Topics = append(resp.Assignment.Topics, t)
		}
		slices.SortFunc(resp.Assignment.Topics, func(a, b kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic) int {
			return bytes.Compare(a.TopicID[:], b.TopicID[:])
		})
	}
	return resp, nil
}

// strangeHeartbeat refuses what only the wire can say.
func strangeHeartbeat(req *kmsg.ConsumerGroupHeartbeatRequest) (code int16, why string) {
	code = kerr.InvalidRequest.Code
	empty := func(s *string) bool { return s != nil && *s == "" }
	switch {
	case req.Group == "":
		return code, "GroupId can't be empty."
	case req.Version >= 1 && req.MemberID == "":
		return code, "MemberId can't be empty."
	case empty(req.InstanceID):
		return code, "InstanceId can't be empty."
	case empty(req.RackID):
		return code, "RackId can't be empty."
	case req.RebalanceTimeoutMillis < -1:
		return code, "RebalanceTimeoutMs can't be negative."
	}
	return 0, ""
}

package kafka

import (
	"context"
	"slices"
	"strings"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ConsumerGroupDescribe (69)
//
// Groups of the new protocol. v1 which protocol each member speaks. Operations that the client is authorised to are not told.

func init() { register(api{key: 69, min: 0, max: 1, handle: consumerGroupDescribe}) }

func consumerGroupDescribe(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.ConsumerGroupDescribeRequest)
	resp := req.ResponseKind().(*kmsg.ConsumerGroupDescribeResponse)
	for _, id := range req.Groups {
		sg := kmsg.NewConsumerGroupDescribeResponseGroup()
		sg.Group = id
		info, ok, err := c.s.b.Groups().DescribeConsumer(id)
		switch {
		case err != nil:
			sg.ErrorCode, sg.ErrorMessage = groupCode(0, err), explain(err)
		case !ok:
			_, exists, _ := c.s.b.Groups().Describe(id)
			sg.ErrorCode, sg.ErrorMessage = kerr.GroupIDNotFound.Code, kmsg.StringPtr("Group "+id+notThere(exists, " is not a consumer group."))
		default:
			sg.State, sg.Epoch, sg.AssignmentEpoch, sg.AssignorName = info.State, info.Epoch, info.TargetEpoch, info.Assignor
			for _, m := range info.Members {
				sm := kmsg.NewConsumerGroupDescribeResponseGroupMember()
				sm.MemberID, sm.InstanceID, sm.RackID, sm.MemberEpoch = m.MemberID, nullable(m.Instance), nullable(m.Rack), m.Epoch
				sm.ClientID, sm.ClientHost, sm.SubscribedTopics, sm.SubscribedTopicRegex = m.ClientID, m.Host, m.Topics, nullable(m.Regex)
				sm.Assignment.TopicPartitions = c.describeAssignment(m.Assigned)
				sm.TargetAssignment.TopicPartitions = c.describeAssignment(m.Target)
				sm.MemberType = 1
				if m.Classic {
					sm.MemberType = 0
				}
				sg.Members = append(sg.Members, sm)
			}
		}
		resp.Groups = append(resp.Groups, sg)
	}
	return resp, nil
}

// describeAssignment names the topics; those that are gone are left out.
func (c call) describeAssignment(parts group.Partitions) []kmsg.AssignmentTopicPartition {
	out := []kmsg.AssignmentTopicPartition{}
	for id, partitions := range parts {
		t, ok := c.s.b.TopicByID([16]byte(id))
		if !ok {
			continue
		}
		tp := kmsg.NewAssignmentTopicPartition()
		tp.TopicID, tp.Topic, tp.Partitions = id, t.Name, partitions
		out = append(out, tp)
	}
	slices.SortFunc(out, func(a, b kmsg.AssignmentTopicPartition) int { return strings.Compare(a.Topic, b.Topic) })
	return out
}

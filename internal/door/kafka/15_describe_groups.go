package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/broker/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeGroups (15)
//
// v3 authorised operations (not told), v4 static members, v5 flexible, v6 a group that does not exist, or is of the new
// protocol, is an error; before, it is described as Dead.
func init() { register(api{key: 15, min: 0, max: 6, handle: describeGroups}) }

func describeGroups(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DescribeGroupsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	for _, id := range req.Groups {
		sg := kmsg.NewDescribeGroupsResponseGroup()
		sg.Group = id
		info, ok, err := c.s.b.Groups().Describe(id)
		switch {
		case err != nil:
			sg.ErrorCode, sg.ErrorMessage = groupCode(0, err), explain(err)
		case !ok || info.Type != broker.GroupClassic:
			sg.State = "Dead"
			if req.Version >= 6 {
				sg.ErrorCode, sg.ErrorMessage = kerr.GroupIDNotFound.Code, kmsg.StringPtr("Group "+id+notThere(ok, " is not a classic group."))
			}
		default:
			sg.State, sg.ProtocolType = info.State, info.Kind
			stable := info.State == group.Stable.String() // otherwise what members have is on its way to be something else
			if stable {
				sg.Protocol = info.Protocol
			}
			for _, m := range info.Members {
				sm := kmsg.NewDescribeGroupsResponseGroupMember()
				sm.MemberID, sm.InstanceID, sm.ClientID, sm.ClientHost = m.MemberID, nullable(m.Instance), m.ClientID, m.Host
				if stable {
					sm.ProtocolMetadata, sm.MemberAssignment = m.Metadata, m.Assignment
				}
				sg.Members = append(sg.Members, sm)
			}
		}
		resp.Groups = append(resp.Groups, sg)
	}
	return resp, nil
}

// notThere says why a group is not described.
func notThere(exists bool, otherType string) string {
	if exists {
		return otherType
	}
	return " not found."
}

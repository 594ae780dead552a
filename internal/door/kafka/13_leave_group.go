package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// LeaveGroup (13)
//
// v3 several members, static ones by their instance (KIP-345), v4 flexible, v5 reason.
func init() { register(api{key: 13, min: 0, max: 5, handle: leaveGroup}) }

func leaveGroup(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.LeaveGroupRequest)
	resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
	leavers := []group.Leaver{{MemberID: req.MemberID}}
	if req.Version >= 3 {
		leavers = leavers[:0]
		for _, m := range req.Members {
			leavers = append(leavers, group.Leaver{MemberID: m.MemberID, Instance: text(m.InstanceID)})
		}
	}
	r, err := c.s.b.Groups().Leave(ctx, req.Group, leavers)
	if err != nil {
		resp.ErrorCode = groupCode(0, err)
		return resp, nil
	}
	for i, l := range leavers {
		left := r.Code // of a group that does not exist
		if i < len(r.Leavers) {
			left = r.Leavers[i]
		}
		if req.Version < 3 {
			resp.ErrorCode = int16(left)
			return resp, nil
		}
		sm := kmsg.NewLeaveGroupResponseMember()
		sm.MemberID, sm.InstanceID, sm.ErrorCode = l.MemberID, nullable(l.Instance), int16(left)
		resp.Members = append(resp.Members, sm)
	}
	return resp, nil
}

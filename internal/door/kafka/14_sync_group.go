package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// SyncGroup (14)
//
// v3 static members, v4 flexible, v5 protocol type and name are needed, checked and returned (KIP-559). The answer comes when the leader has assigned, and that
// is durable.
func init() { register(api{key: 14, min: 0, max: 5, handle: syncGroup}) }

func syncGroup(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.SyncGroupRequest)
	resp := req.ResponseKind().(*kmsg.SyncGroupResponse)
	if req.Version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) {
		resp.ErrorCode = kerr.InconsistentGroupProtocol.Code
		return resp, nil
	}
	ev := group.Sync{
		MemberID: req.MemberID, Instance: text(req.InstanceID), Generation: req.Generation,
		Kind: text(req.ProtocolType), Protocol: text(req.Protocol),
		Assignments: make(map[string][]byte, len(req.GroupAssignment)),
	}
	for _, a := range req.GroupAssignment {
		ev.Assignments[a.MemberID] = a.MemberAssignment
	}
	r, err := c.s.b.Groups().Sync(ctx, req.Group, ev)
	if resp.ErrorCode = groupCode(r.Code, err); resp.ErrorCode != 0 {
		return resp, nil
	}
	resp.ProtocolType, resp.Protocol, resp.MemberAssignment = &r.Kind, &r.Protocol, r.Assignment
	return resp, nil
}

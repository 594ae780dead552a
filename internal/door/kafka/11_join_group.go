package kafka

import (
	"context"
	"time"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// JoinGroup (11)
//
// v1 rebalance timeout, v4 a member without an id is given one and must come back with it (KIP-394), v5 static members (KIP-345), v6 flexible, v8 reason,
// v9 a returning static leader may leave the assignment alone (KIP-814). The answer comes when the generation begins.
func init() { register(api{key: 11, min: 0, max: 9, handle: joinGroup}) }

func joinGroup(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.JoinGroupRequest)
	resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
	ev := group.Join{
		MemberID: req.MemberID, Instance: text(req.InstanceID),
		KnownIDOnly: req.Version >= 4, SkipAssignment: req.Version >= 9,
		ClientID: c.header.clientID, Host: c.remote,
		Session:   time.Duration(req.SessionTimeoutMillis) * time.Millisecond,
		Rebalance: time.Duration(req.RebalanceTimeoutMillis) * time.Millisecond,
		Kind:      req.ProtocolType,
	}
	for _, p := range req.Protocols {
		ev.Protocols = append(ev.Protocols, group.Protocol{Name: p.Name, Metadata: p.Metadata})
	}
	r, err := c.s.b.Groups().Join(ctx, req.Group, ev)
	resp.ErrorCode = groupCode(r.Code, err)
	resp.MemberID, resp.Generation = r.MemberID, r.Generation
	if resp.MemberID == "" {
		resp.MemberID = req.MemberID
	}
	if resp.ErrorCode != 0 {
		resp.Generation = -1
		if req.Version < 7 {
			resp.Protocol = kmsg.StringPtr("")
		}
		return resp, nil
	}
	resp.ProtocolType, resp.Protocol, resp.LeaderID, resp.SkipAssignment = &r.Kind, &r.Protocol, r.Leader, r.SkipAssignment
	for _, m := range r.Members {
		sm := kmsg.NewJoinGroupResponseMember()
		sm.MemberID, sm.InstanceID, sm.ProtocolMetadata = m.MemberID, nullable(m.Instance), m.Metadata
		resp.Members = append(resp.Members, sm)
	}
	return resp, nil
}

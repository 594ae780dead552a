package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Heartbeat (12)
//
// v3 static members, v4 flexible.
func init() { register(api{key: 12, min: 0, max: 4, handle: heartbeat}) }

func heartbeat(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.HeartbeatRequest)
	resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
	answer, err := c.s.b.Groups().Heartbeat(ctx, req.Group, group.Heartbeat{
		MemberID: req.MemberID, Instance: text(req.InstanceID), Generation: req.Generation,
	})
	resp.ErrorCode = groupCode(answer, err)
	return resp, nil
}

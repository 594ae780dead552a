package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// InitProducerID (22)
//
// v2 flexible, v3 a producer may ask to go on under a higher epoch (KIP-360). An idempotent producer that does gets a new id instead, which serves it as
// well: its old sequence numbers are of no use to it. A transactional id is refused.
func init() { register(api{key: 22, min: 0, max: 5, handle: initProducerID}) }

func initProducerID(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.InitProducerIDRequest)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code // final for every client, where "not available" would be tried again for ever
		c.s.log.Warn("a client asked for transactions, which are not supported yet: leave transactional.id out", "client", c.header.clientID)
		return resp, nil
	}
	id, err := c.s.b.ProducerID(ctx)
	if err != nil {
		resp.ErrorCode = groupCode(0, err)
		return resp, nil
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp, nil
}

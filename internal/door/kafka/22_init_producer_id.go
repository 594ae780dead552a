package kafka

import (
	"context"
	"time"

	"github.com/leat-io/leat/internal/broker/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// InitProducerID (22)
//
// v2 flexible, v3 a producer may ask to go on under a higher epoch (KIP-360), v4 PRODUCER_FENCED, v5 the second transaction protocol (KIP-890). An idempotent producer
// that asks for a higher epoch gets a new id instead, which serves it as well: its old sequence numbers are of no use to it. With a transactional id
// what the producer's predecessor has left open is aborted first, so that CONCURRENT_TRANSACTIONS is never answered. v6 (KIP-939, keeping prepared
// transactions) is not served.
func init() { register(api{key: 22, min: 0, max: 5, handle: initProducerID}) }

func initProducerID(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.InitProducerIDRequest)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID == nil {
		id, err := c.s.b.ProducerID(ctx)
		if err != nil {
			resp.ErrorCode = groupCode(0, err)
			return resp, nil
		}
		resp.ProducerID, resp.ProducerEpoch = id, 0
		return resp, nil
	}
	ev := txn.Init{Timeout: time.Duration(req.TransactionTimeoutMillis) * time.Millisecond, ProducerID: -1, Epoch: -1}
	if req.Version >= 3 {
		if ev.ProducerID, ev.Epoch = req.ProducerID, req.ProducerEpoch; (ev.ProducerID < 0) != (ev.Epoch < 0) {
			resp.ErrorCode = kerr.InvalidRequest.Code
			return resp, nil
		}
	}
	out, err := c.s.b.Transactions().Init(ctx, *req.TransactionalID, ev)
	if resp.ErrorCode = txnCode(out.Code, err, req.Version >= 4); resp.ErrorCode == 0 {
		resp.ProducerID, resp.ProducerEpoch = out.ProducerID, out.Epoch
	}
	return resp, nil
}

// txnCode is the code of a transaction's coordinator, or of why there is no answer. Older versions know one code less for a producer that is fenced.
func txnCode(c txn.Code, err error, knowsFenced bool) int16 {
	switch {
	case err != nil:
		return groupCode(0, err)
	case c == txn.ProducerFenced && !knowsFenced:
		return kerr.InvalidProducerEpoch.Code
	}
	return int16(c)
}

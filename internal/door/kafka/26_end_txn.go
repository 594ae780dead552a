package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker/txn"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// EndTxn (26)
//
// v2 PRODUCER_FENCED, v3 flexible, v5 the second protocol (KIP-890): the epoch goes up with every transaction, and the answer has the id and epoch to go on with.
// When the answer comes the transaction has ended in all its partitions, and its offsets count. It may be asked for again.
func init() { register(api{key: 26, min: 0, max: 5, handle: endTxn}) }

func endTxn(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.EndTxnRequest)
	resp := req.ResponseKind().(*kmsg.EndTxnResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	out, err := c.s.b.Transactions().End(ctx, req.TransactionalID, txn.End{
		ProducerID: req.ProducerID, Epoch: req.ProducerEpoch, Commit: req.Commit, Bump: req.Version >= 5,
	})
	if resp.ErrorCode = txnCode(out.Code, err, req.Version >= 2); resp.ErrorCode == 0 {
		resp.ProducerID, resp.ProducerEpoch = out.ProducerID, out.Epoch
	}
	return resp, nil
}

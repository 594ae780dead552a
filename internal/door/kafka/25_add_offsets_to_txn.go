package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker/txn"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AddOffsetsToTxn (25)
//
// v2 PRODUCER_FENCED, v3 flexible. The transaction will commit offsets of the group. Clients of the second protocol (KIP-890) do not send it: TxnOffsetCommit
// v5 adds the group.
func init() { register(api{key: 25, min: 0, max: 4, handle: addOffsetsToTxn}) }

func addOffsetsToTxn(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.AddOffsetsToTxnRequest)
	resp := req.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
	code, err := c.s.b.Transactions().Add(ctx, req.TransactionalID, txn.Add{ProducerID: req.ProducerID, Epoch: req.ProducerEpoch, Groups: []string{req.Group}})
	resp.ErrorCode = txnCode(code, err, req.Version >= 2)
	return resp, nil
}

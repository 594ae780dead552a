package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/broker/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TxnOffsetCommit (28)
//
// v2 leader epoch, v3 flexible, and the member and generation that the group checks (KIP-447), v5 the group becomes part of the transaction by it (KIP-890), v6 topic
// ids. The offsets count when the transaction is committed.
func init() { register(api{key: 28, min: 0, max: 6, handle: txnOffsetCommit}) }

func txnOffsetCommit(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.TxnOffsetCommitRequest)
	resp := req.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
	var offsets []broker.Offset
	for _, rt := range req.Topics {
		st := kmsg.NewTxnOffsetCommitResponseTopic()
		st.Topic, st.TopicID = rt.Topic, rt.TopicID
		topic, missing := c.topic(req.Version >= 6, rt.Topic, rt.TopicID)
		for _, rp := range rt.Partitions {
			sp := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			sp.Partition, sp.ErrorCode = rp.Partition, missing
			if topic != nil {
				o := broker.Offset{Topic: topic.Name, Partition: rp.Partition, Offset: rp.Offset, LeaderEpoch: rp.LeaderEpoch, Metadata: text(rp.Metadata)}
				if sp.ErrorCode = mayBeCommitted(topic, &o); sp.ErrorCode == 0 {
					offsets = append(offsets, o)
				}
			}
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	who := broker.Committer{Generation: -1, KnowsEpochs: true}
	if req.Version >= 3 {
		who.MemberID, who.Instance, who.Generation = req.MemberID, text(req.InstanceID), req.Generation
	}
	coordinator, refused, err := c.s.b.Transactions().CommitOffsets(ctx, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Version >= 5, who, offsets)
	failed := txnCode(coordinator, err, false)
	switch {
	case err == nil && coordinator == txn.NotInTransaction:
		failed = kerr.InvalidTxnState.Code
	case failed == 0:
		failed = refused
	}
	if failed != 0 {
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				if sp := &resp.Topics[i].Partitions[j]; sp.ErrorCode == 0 {
					sp.ErrorCode = failed
				}
			}
		}
	}
	return resp, nil
}

package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AddPartitionsToTxn (24)
//
// v2 PRODUCER_FENCED, v3 flexible, v4 several transactions at once, and asking only whether the partitions are part of them: that is the form between brokers,
// which this one serves all the same. Clients of the second protocol (KIP-890) do not send it: Produce v12 adds the partition. Either all partitions of
// a transaction are added or none.
func init() { register(api{key: 24, min: 0, max: 5, handle: addPartitionsToTxn}) }

func addPartitionsToTxn(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.AddPartitionsToTxnRequest)
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	if req.Version < 4 {
		rt := kmsg.AddPartitionsToTxnRequestTransaction{TransactionalID: req.TransactionalID, ProducerID: req.ProducerID, ProducerEpoch: req.ProducerEpoch}
		for _, t := range req.Topics {
			rt.Topics = append(rt.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.Topic, Partitions: t.Partitions})
		}
		for _, t := range c.addPartitions(ctx, &rt, req.Version >= 2) {
			st := kmsg.AddPartitionsToTxnResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				st.Partitions = append(st.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: p.Partition, ErrorCode: p.ErrorCode})
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil
	}
	for i := range req.Transactions {
		rt := &req.Transactions[i]
		resp.Transactions = append(resp.Transactions, kmsg.AddPartitionsToTxnResponseTransaction{
			TransactionalID: rt.TransactionalID, Topics: c.addPartitions(ctx, rt, true),
		})
	}
	return resp, nil
}

func (c call) addPartitions(ctx context.Context, rt *kmsg.AddPartitionsToTxnRequestTransaction, knowsFenced bool) []kmsg.AddPartitionsToTxnResponseTransactionTopic {
	ev := txn.Add{ProducerID: rt.ProducerID, Epoch: rt.ProducerEpoch, VerifyOnly: rt.VerifyOnly}
	topics := make([]kmsg.AddPartitionsToTxnResponseTransactionTopic, 0, len(rt.Topics))
	refused := false
	for _, t := range rt.Topics {
		st := kmsg.AddPartitionsToTxnResponseTransactionTopic{Topic: t.Topic}
		topic, known := c.s.b.Topic(t.Topic)
		for _, index := range t.Partitions {
			sp := kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{Partition: index}
			switch {
			case !known || topic.Partition(index) == nil:
				sp.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case !topic.Transactional():
				sp.ErrorCode = kerr.InvalidTopicException.Code
				c.s.log.Warn("a transaction cannot write to the topic of a table", "topic", t.Topic, "client", c.header.clientID)
			default:
				ev.Partitions = append(ev.Partitions, topic.Partition(index).Place())
			}
			refused = refused || sp.ErrorCode != 0
			st.Partitions = append(st.Partitions, sp)
		}
		topics = append(topics, st)
	}
	answer := kerr.OperationNotAttempted.Code
	if !refused {
		code, err := c.s.b.Transactions().Add(ctx, rt.TransactionalID, ev)
		answer = txnCode(code, err, knowsFenced)
	}
	for i := range topics {
		for k := range topics[i].Partitions {
			if sp := &topics[i].Partitions[k]; sp.ErrorCode == 0 {
				sp.ErrorCode = answer
			}
		}
	}
	return topics
}

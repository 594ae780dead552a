package kafka

import (
	"context"
	"errors"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeTransactions (65)
//
// What coordinators know. Groups whose offsets a transaction commits are not listed: Kafka shows them as partitions of its own topic for offsets, which
// there is not here.
func init() { register(api{key: 65, min: 0, max: 0, handle: describeTransactions}) }

func describeTransactions(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DescribeTransactionsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
	for _, id := range req.TransactionalIDs {
		st := kmsg.NewDescribeTransactionsResponseTransactionState()
		st.TransactionalID, st.ProducerID, st.ProducerEpoch, st.StartTimestamp = id, -1, -1, -1
		info, ok, err := c.s.b.Transactions().Describe(id)
		switch {
		case errors.Is(err, broker.ErrInvalidTransactionalID), err == nil && !ok:
			st.ErrorCode = kerr.TransactionalIDNotFound.Code
		case err != nil:
			st.ErrorCode = groupCode(0, err)
		default:
			c.describeTransaction(&st, &info)
		}
		resp.TransactionStates = append(resp.TransactionStates, st)
	}
	return resp, nil
}

func (c call) describeTransaction(st *kmsg.DescribeTransactionsResponseTransactionState, info *broker.TransactionInfo) {
	st.State, st.TimeoutMillis = info.State.String(), int32(info.Timeout.Milliseconds())
	st.ProducerID, st.ProducerEpoch = info.ProducerID, info.Epoch
	if !info.Started.IsZero() {
		st.StartTimestamp = info.Started.UnixMilli()
	}
	last := broker.TopicID{}
	for _, p := range info.Partitions { // sorted by topic
		topic, ok := c.s.b.TopicByID(p.Topic)
		if !ok {
			continue
		}
		if n := len(st.Topics); n == 0 || last != p.Topic {
			last = p.Topic
			t := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
			t.Topic = topic.Name
			st.Topics = append(st.Topics, t)
		}
		t := &st.Topics[len(st.Topics)-1]
		t.Partitions = append(t.Partitions, p.Index)
	}
}

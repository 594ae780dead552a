package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeProducers (61)
//
// The idempotent and transactional producers that partitions remember.
func init() { register(api{key: 61, min: 0, max: 0, handle: describeProducers}) }

func describeProducers(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DescribeProducersRequest)
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	for _, rt := range req.Topics {
		st := kmsg.NewDescribeProducersResponseTopic()
		st.Topic = rt.Topic
		topic, known := c.s.b.Topic(rt.Topic)
		for _, index := range rt.Partitions {
			sp := kmsg.NewDescribeProducersResponseTopicPartition()
			sp.Partition = index
			if !known || topic.Partition(index) == nil {
				sp.ErrorCode = kerr.UnknownTopicOrPartition.Code
				st.Partitions = append(st.Partitions, sp)
				continue
			}
			producers, err := topic.Partition(index).Producers()
			if err != nil {
				sp.ErrorCode, sp.ErrorMessage = code(err), explain(err)
			}
			for _, p := range producers {
				sp.ActiveProducers = append(sp.ActiveProducers, kmsg.DescribeProducersResponseTopicPartitionActiveProducer{
					ProducerID: p.ID, ProducerEpoch: int32(p.Epoch), LastSequence: p.LastSequence, LastTimestamp: p.LastTimestamp,
					CoordinatorEpoch: p.CoordinatorEpoch, CurrentTxnStartOffset: p.TransactionStart,
				})
			}
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp, nil
}

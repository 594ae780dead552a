package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// WriteTxnMarkers (27)
//
// v1 flexible, v2 the protocol of the transaction. Between Kafka's brokers it ends a transaction in one partition. Here the coordinator does that itself, so that only an
// administrator's abort is left (Kafka's `transactions abort`): it aborts the whole transaction, in all its partitions. To commit is refused.
func init() { register(api{key: 27, min: 1, max: 2, handle: writeTxnMarkers}) }

func writeTxnMarkers(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.WriteTxnMarkersRequest)
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	for _, m := range req.Markers {
		sm := kmsg.NewWriteTxnMarkersResponseMarker()
		sm.ProducerID = m.ProducerID
		for _, t := range m.Topics {
			st := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			st.Topic = t.Topic
			topic, known := c.s.b.Topic(t.Topic)
			for _, index := range t.Partitions {
				sp := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
				sp.Partition = index
				switch {
				case !known || topic.Partition(index) == nil:
					sp.ErrorCode = kerr.UnknownTopicOrPartition.Code
				case m.Committed:
					sp.ErrorCode = kerr.InvalidTxnState.Code
				default:
					sp.ErrorCode = code(c.s.b.Transactions().Abort(ctx, m.ProducerID, m.ProducerEpoch, topic.Partition(index)))
				}
				st.Partitions = append(st.Partitions, sp)
			}
			sm.Topics = append(sm.Topics, st)
		}
		resp.Markers = append(resp.Markers, sm)
	}
	return resp, nil
}

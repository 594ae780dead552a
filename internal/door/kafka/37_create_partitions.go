package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreatePartitions (37)
//
// v2 flexible. Partitions can only be added. Records stay where they are, so some keys go to another partition from then on.
func init() { register(api{key: 37, min: 0, max: 3, handle: createPartitions}) }

func createPartitions(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.CreatePartitionsRequest)
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	for _, rt := range req.Topics {
		st := kmsg.NewCreatePartitionsResponseTopic()
		st.Topic = rt.Topic
		err := c.s.b.CreatePartitions(ctx, rt.Topic, rt.Count, req.ValidateOnly)
		st.ErrorCode, st.ErrorMessage = code(err), explain(err)
		resp.Topics = append(resp.Topics, st)
	}
	return resp, nil
}

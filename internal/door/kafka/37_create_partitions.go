package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreatePartitions (37)
//
// v2 flexible. Partitions can only be added. Records stay where they are, so some keys go to another partition from then on.
func init() { register(api{key: 37, min: 0, max: 3, handle: createPartitions}) }

func createPartitions(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.CreatePartitionsRequest)
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	seen := map[string]int{}
	for i := range req.Topics {
		seen[req.Topics[i].Topic]++
	}
	for i := range req.Topics {
		rt := &req.Topics[i]
		st := kmsg.NewCreatePartitionsResponseTopic()
		st.Topic = rt.Topic
		if seen[rt.Topic] > 1 {
			st.ErrorCode, st.ErrorMessage = kerr.InvalidRequest.Code, kmsg.StringPtr("the request names the topic twice")
		} else if why := c.misplaced(rt); why != "" {
			st.ErrorCode, st.ErrorMessage = kerr.InvalidReplicaAssignment.Code, &why
		} else {
			err := c.s.b.CreatePartitions(ctx, rt.Topic, rt.Count, req.ValidateOnly)
			st.ErrorCode, st.ErrorMessage = code(err), explain(err)
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp, nil
}

// misplaced says what is wrong with an assignment by hand of the partitions that are added.
func (c call) misplaced(rt *kmsg.CreatePartitionsRequestTopic) string {
	t, ok := c.s.b.Topic(rt.Topic)
	if rt.Assignment == nil || !ok {
		return ""
	}
	if added := int(rt.Count) - len(t.Partitions()); added > 0 && len(rt.Assignment) != added {
		return fmt.Sprintf("%d partitions are added, and %d assigned", added, len(rt.Assignment))
	}
	for _, a := range rt.Assignment {
		if len(a.Replicas) != 1 || a.Replicas[0] != c.s.o.NodeID {
			return fmt.Sprintf("the only node is %d", c.s.o.NodeID)
		}
	}
	return ""
}

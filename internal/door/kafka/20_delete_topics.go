package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteTopics (20)
//
// v4 flexible, v5 messages, v6 by topic id. A topic is gone when the answer comes. What the engine needs, a table's or what a view reads, is refused.
func init() { register(api{key: 20, min: 1, max: 6, handle: deleteTopics}) }

func deleteTopics(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DeleteTopicsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	asked := req.Topics
	for i := range req.TopicNames {
		asked = append(asked, kmsg.DeleteTopicsRequestTopic{Topic: &req.TopicNames[i]})
	}
	for _, rt := range asked {
		st := kmsg.NewDeleteTopicsResponseTopic()
		st.Topic, st.TopicID = rt.Topic, rt.TopicID
		var t *broker.Topic
		var ok bool
		if rt.Topic != nil {
			if t, ok = c.s.b.Topic(*rt.Topic); !ok {
				st.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
		} else if t, ok = c.s.b.TopicByID(rt.TopicID); !ok {
			st.ErrorCode = kerr.UnknownTopicID.Code
		}
		if ok {
			st.Topic, st.TopicID = &t.Name, t.ID
			err := c.s.b.DeleteTopicOfClient(ctx, t.Name)
			st.ErrorCode, st.ErrorMessage = code(err), explain(err)
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp, nil
}

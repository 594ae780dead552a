package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/broker/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetCommit (8)
//
// v6 leader epoch, v7 static members, v8 flexible, v9 the new group protocol's errors, v10 topic ids. The offsets of a request are stored together and
// are durable when the answer comes. Offsets kept per request (v2 to v4) are not: the node has one retention.
func init() { register(api{key: 8, min: 2, max: 10, handle: offsetCommit}) }

func offsetCommit(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.OffsetCommitRequest)
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	var offsets []broker.Offset
	for _, rt := range req.Topics {
		st := kmsg.NewOffsetCommitResponseTopic()
		st.Topic, st.TopicID = rt.Topic, rt.TopicID
		topic, missing := c.topic(req.Version >= 10, rt.Topic, rt.TopicID)
		for _, rp := range rt.Partitions {
			sp := kmsg.NewOffsetCommitResponseTopicPartition()
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
	who := broker.Committer{MemberID: req.MemberID, Instance: text(req.InstanceID), Generation: req.Generation, KnowsEpochs: req.Version >= 9}
	answer, err := c.s.b.Groups().Commit(ctx, req.Group, who, offsets)
	failed := groupCode(answer, err)
	if answer == group.IllegalGeneration && req.Version >= 9 {
		if _, ok, _ := c.s.b.Groups().Describe(req.Group); !ok {
			failed = kerr.GroupIDNotFound.Code
		}
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

// mayBeCommitted judges one offset of those that are to be committed.
func mayBeCommitted(t *broker.Topic, o *broker.Offset) int16 {
	switch {
	case t.Partition(o.Partition) == nil:
		return kerr.UnknownTopicOrPartition.Code
	case len(o.Metadata) > broker.MaxOffsetMetaLen:
		return kerr.OffsetMetadataTooLarge.Code
	}
	return 0
}

// topic looks a topic up by name or id; if it is not there, missing is the code for that.
func (c *conn) topic(byID bool, name string, id [16]byte) (t *broker.Topic, missing int16) {
	ok := false
	if byID {
		if t, ok = c.s.b.TopicByID(id); !ok {
			return nil, kerr.UnknownTopicID.Code
		}
		return t, 0
	}
	if t, ok = c.s.b.Topic(name); !ok {
		return nil, kerr.UnknownTopicOrPartition.Code
	}
	return t, 0
}

// text is the string, or nothing for null.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// nullable is null for nothing.
func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

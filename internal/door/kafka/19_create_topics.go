package kafka

import (
	"context"
	"fmt"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreateTopics (19)
//
// v4 the node's default number of partitions, v5 what was created, v7 topic ids. Any replication factor from 1 on is taken, and 1 is reported: tools ask for 3,
// and there is one replica.
func init() { register(api{key: 19, min: 2, max: 7, handle: createTopics}) }

func createTopics(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.CreateTopicsRequest)
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	specs := make([]broker.TopicSpec, 0, len(req.Topics))
	at := make([]int, 0, len(req.Topics)) // of each spec in the response
	for i := range req.Topics {
		st := kmsg.NewCreateTopicsResponseTopic()
		st.Topic = req.Topics[i].Topic
		st.NumPartitions, st.ReplicationFactor = -1, -1
		spec, refused, why := c.topicSpec(&req.Topics[i], req.Topics)
		if refused != 0 {
			st.ErrorCode, st.ErrorMessage = refused, &why
		} else {
			specs, at = append(specs, spec), append(at, i)
		}
		resp.Topics = append(resp.Topics, st)
	}
	topics, errs := c.s.b.CreateTopics(ctx, specs, req.ValidateOnly)
	for i, err := range errs {
		st := &resp.Topics[at[i]]
		if err != nil {
			st.ErrorCode, st.ErrorMessage = code(err), explain(err)
			continue
		}
		t := topics[i]
		if !req.ValidateOnly {
			st.TopicID = t.ID
		}
		st.NumPartitions, st.ReplicationFactor = int32(len(t.Partitions())), 1
		for _, def := range broker.TopicConfigs {
			value, explicit := t.Config(def.Name)
			sc := kmsg.NewCreateTopicsResponseTopicConfig()
			sc.Name, sc.Value, sc.Source = def.Name, &value, int8(kmsg.ConfigSourceDefaultConfig)
			if explicit {
				sc.Source = int8(kmsg.ConfigSourceDynamicTopicConfig)
			}
			st.Configs = append(st.Configs, sc)
		}
	}
	return resp, nil
}

func (c call) topicSpec(rt *kmsg.CreateTopicsRequestTopic, all []kmsg.CreateTopicsRequestTopic) (spec broker.TopicSpec, refused int16, why string) {
	spec = broker.TopicSpec{Name: rt.Topic, Partitions: rt.NumPartitions}
	same := 0
	for i := range all {
		if all[i].Topic == rt.Topic {
			same++
		}
	}
	switch {
	case same > 1:
		return spec, kerr.InvalidRequest.Code, "the request names the topic twice"
	case len(rt.ReplicaAssignment) > 0:
		if spec.Partitions, why = c.assigned(rt); why != "" {
			return spec, kerr.InvalidReplicaAssignment.Code, why
		}
	case rt.NumPartitions == 0 || rt.NumPartitions < -1:
		return spec, kerr.InvalidPartitions.Code, fmt.Sprintf("%d partitions: at least one is needed, or -1 for the default", rt.NumPartitions)
	case rt.ReplicationFactor == 0 || rt.ReplicationFactor < -1:
		return spec, kerr.InvalidReplicationFactor.Code, fmt.Sprintf("a replication factor of %d: at least 1 is needed, or -1 for the default", rt.ReplicationFactor)
	}
	for _, cfg := range rt.Configs {
		if cfg.Value == nil {
			return spec, kerr.InvalidConfig.Code, fmt.Sprintf("%s has no value", cfg.Name)
		}
		if spec.Configs == nil {
			spec.Configs = map[string]string{}
		}
		spec.Configs[cfg.Name] = *cfg.Value
	}
	return spec, 0, ""
}

// assigned checks an assignment by hand, which must put partitions 0 to n-1 on this node.
func (c call) assigned(rt *kmsg.CreateTopicsRequestTopic) (partitions int32, why string) {
	if rt.NumPartitions != -1 || rt.ReplicationFactor != -1 {
		return 0, "with an assignment, the number of partitions and the replication factor must be -1"
	}
	n := len(rt.ReplicaAssignment)
	seen := make([]bool, n)
	for _, a := range rt.ReplicaAssignment {
		if a.Partition < 0 || int(a.Partition) >= n || seen[a.Partition] {
			return 0, "the assignment must name each partition from 0 on once"
		}
		seen[a.Partition] = true
		if len(a.Replicas) != 1 || a.Replicas[0] != c.s.o.NodeID {
			return 0, fmt.Sprintf("the only node is %d", c.s.o.NodeID)
		}
	}
	return int32(n), ""
}

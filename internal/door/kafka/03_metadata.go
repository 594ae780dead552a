package kafka

import (
	"context"
	"errors"
	"net"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Metadata (3)
//
// v0 an empty list of topics means all, from v1 on null does. v4 may forbid automatic creation, v7 leader epochs, v10 topic ids, v12 topics by id,
// v13 an error for the whole. A topic that is created on the way is there when the answer is.
func init() { register(api{key: 3, min: 0, max: 13, handle: metadata}) }

func metadata(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.MetadataRequest)
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	host, port := c.advertised()
	b := kmsg.NewMetadataResponseBroker()
	b.NodeID, b.Host, b.Port = c.s.o.NodeID, host, port
	resp.Brokers = append(resp.Brokers, b)
	resp.ClusterID = kmsg.StringPtr(c.s.o.ClusterID)
	resp.ControllerID = c.s.o.NodeID

	if req.Topics == nil || req.Version == 0 && len(req.Topics) == 0 {
		for _, t := range c.s.b.Topics() {
			resp.Topics = append(resp.Topics, c.describe(t))
		}
		return resp, nil
	}
	if c.s.b.AutoCreates() && (req.AllowAutoTopicCreation || req.Version < 4) {
		c.autoCreate(ctx, req)
	}
	for _, rt := range req.Topics {
		resp.Topics = append(resp.Topics, c.lookUp(rt))
	}
	return resp, nil
}

// autoCreate makes the topics that are asked for by name and are not there, all in one go.
func (c call) autoCreate(ctx context.Context, req *kmsg.MetadataRequest) {
	var specs []broker.TopicSpec
	seen := map[string]bool{}
	for _, rt := range req.Topics {
		if rt.Topic == nil || *rt.Topic == "" || seen[*rt.Topic] {
			continue
		}
		seen[*rt.Topic] = true
		if _, ok := c.s.b.Topic(*rt.Topic); !ok {
			specs = append(specs, broker.TopicSpec{Name: *rt.Topic})
		}
	}
	if len(specs) == 0 {
		return
	}
	_, errs := c.s.b.CreateTopics(ctx, specs, false)
	for i, err := range errs {
		switch {
		case err == nil:
			c.s.log.Info("a topic was created because a client asked for it", "topic", specs[i].Name, "client", c.header.clientID)
		case errors.Is(err, broker.ErrTopicExists), errors.Is(err, broker.ErrInvalidTopic):
		default:
			c.s.log.Warn("a topic that a client asked for cannot be created", "topic", specs[i].Name, "err", err)
		}
	}
}

func (c call) lookUp(rt kmsg.MetadataRequestTopic) kmsg.MetadataResponseTopic {
	fail := func(code int16) kmsg.MetadataResponseTopic {
		t := kmsg.NewMetadataResponseTopic()
		t.ErrorCode, t.Topic, t.TopicID = code, rt.Topic, rt.TopicID
		return t
	}
	if rt.Topic != nil {
		if t, ok := c.s.b.Topic(*rt.Topic); ok {
			return c.describe(t)
		}
		if broker.CheckTopicName(*rt.Topic) != nil {
			return fail(kerr.InvalidTopicException.Code)
		}
		return fail(kerr.UnknownTopicOrPartition.Code)
	}
	if t, ok := c.s.b.TopicByID(rt.TopicID); ok {
		return c.describe(t)
	}
	return fail(kerr.UnknownTopicID.Code)
}

func (c call) describe(t *broker.Topic) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID = kmsg.StringPtr(t.Name), t.ID
	node := []int32{c.s.o.NodeID} // shared: the response is only read
	out.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions()))
	for i := range out.Partitions {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch = int32(i), c.s.o.NodeID, c.s.b.LeaderEpoch()
		p.Replicas, p.ISR = node, node
		out.Partitions[i] = p
	}
	return out
}

// advertised is the address for clients: the configured one, or the one that this client used.
func (c *conn) advertised() (host string, port int32) {
	if c.s.host != "" {
		return c.s.host, c.s.port
	}
	if a, ok := c.nc.LocalAddr().(*net.TCPAddr); ok {
		return a.IP.String(), int32(a.Port)
	}
	return "localhost", 9092
}

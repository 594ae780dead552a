package kafka

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListConfigResources (74)
//
// v0 lists client metrics resources, of which there are none; v1 (KIP-1142) resources of the kinds asked for, or of all: topics, the broker, and groups with
// settings of their own.

func init() { register(api{key: 74, min: 0, max: 1, handle: listConfigResources}) }

func listConfigResources(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.ListConfigResourcesRequest)
	resp := req.ResponseKind().(*kmsg.ListConfigResourcesResponse)
	if req.Version == 0 {
		return resp, nil
	}
	const (
		topic, broker, brokerLogger = int8(kmsg.ConfigResourceTypeTopic), int8(kmsg.ConfigResourceTypeBroker), int8(kmsg.ConfigResourceTypeBrokerLogger)
		clientMetrics, group        = int8(kmsg.ConfigResourceTypeClientMetrics), int8(kmsg.ConfigResourceTypeGroupConfig)
	)
	wanted := map[int8]bool{}
	for _, kind := range req.ResourceTypes {
		switch kind {
		case topic, broker, brokerLogger, clientMetrics, group:
			wanted[kind] = true
		default:
			resp.ErrorCode = kerr.UnsupportedVersion.Code
			return resp, nil
		}
	}
	add := func(kind int8, name string) {
		if len(wanted) > 0 && !wanted[kind] {
			return
		}
		sr := kmsg.NewListConfigResourcesResponseConfigResource()
		sr.Type, sr.Name = kind, name
		resp.ConfigResources = append(resp.ConfigResources, sr)
	}
	for _, id := range c.s.b.Groups().Configured() {
		add(group, id)
	}
	node := strconv.Itoa(int(c.s.o.NodeID))
	add(brokerLogger, node)
	add(broker, node)
	for _, t := range c.s.b.Topics() {
		add(topic, t.Name)
	}
	return resp, nil
}

package kafka

import (
	"context"
	"slices"
	"strconv"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeConfigs (32)
//
// v1 sources and synonyms, v3 types and documentation, v4 flexible. Of the broker, what tools ask for: Debezium reads default.replication.factor, others
// num.partitions.
func init() { register(api{key: 32, min: 1, max: 4, handle: describeConfigs}) }

func describeConfigs(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DescribeConfigsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for _, rr := range req.Resources {
		sr := kmsg.NewDescribeConfigsResponseResource()
		sr.ResourceType, sr.ResourceName = rr.ResourceType, rr.ResourceName
		switch rr.ResourceType {
		case kmsg.ConfigResourceTypeTopic:
			c.topicConfigs(&sr)
		case kmsg.ConfigResourceTypeBroker:
			c.brokerConfigs(&sr)
		default:
			sr.ErrorCode, sr.ErrorMessage = kerr.InvalidRequest.Code, kmsg.StringPtr("only topics (2) and the broker (4) have settings")
		}
		if rr.ConfigNames != nil {
			sr.Configs = slices.DeleteFunc(sr.Configs, func(cfg kmsg.DescribeConfigsResponseResourceConfig) bool {
				return !slices.Contains(rr.ConfigNames, cfg.Name)
			})
		}
		for i := range sr.Configs {
			if !req.IncludeSynonyms {
				sr.Configs[i].ConfigSynonyms = nil
			}
			if !req.IncludeDocumentation {
				sr.Configs[i].Documentation = nil
			}
		}
		resp.Resources = append(resp.Resources, sr)
	}
	return resp, nil
}

func (c call) topicConfigs(sr *kmsg.DescribeConfigsResponseResource) {
	t, ok := c.s.b.Topic(sr.ResourceName)
	if !ok {
		sr.ErrorCode, sr.ErrorMessage = kerr.UnknownTopicOrPartition.Code, kmsg.StringPtr("no such topic")
		return
	}
	for _, def := range broker.TopicConfigs {
		value, explicit := t.Config(def.Name)
		cfg := configOf(def.Name, value, kmsg.ConfigType(def.Type), kmsg.ConfigSourceDefaultConfig)
		if explicit {
			cfg.Source, cfg.IsDefault = kmsg.ConfigSourceDynamicTopicConfig, false
			cfg.ConfigSynonyms[0].Source = cfg.Source
			cfg.ConfigSynonyms = append(cfg.ConfigSynonyms, synonym(def.Name, def.Default, kmsg.ConfigSourceDefaultConfig))
		}
		cfg.Documentation = kmsg.StringPtr(def.Doc)
		sr.Configs = append(sr.Configs, cfg)
	}
}

func (c call) brokerConfigs(sr *kmsg.DescribeConfigsResponseResource) {
	if sr.ResourceName != "" && sr.ResourceName != strconv.Itoa(int(c.s.o.NodeID)) {
		sr.ErrorCode = kerr.InvalidRequest.Code
		sr.ErrorMessage = kmsg.StringPtr("no such broker: the only one is " + strconv.Itoa(int(c.s.o.NodeID)))
		return
	}
	for _, s := range []struct {
		name, value string
		kind        kmsg.ConfigType
	}{
		{"auto.create.topics.enable", strconv.FormatBool(c.s.b.AutoCreates()), kmsg.ConfigTypeBoolean},
		{"broker.id", strconv.Itoa(int(c.s.o.NodeID)), kmsg.ConfigTypeInt},
		{"compression.type", "producer", kmsg.ConfigTypeString},
		{"default.replication.factor", "1", kmsg.ConfigTypeInt},
		{"delete.topic.enable", "true", kmsg.ConfigTypeBoolean},
		{"fetch.max.bytes", strconv.Itoa(int(c.s.o.MaxFetchBytes)), kmsg.ConfigTypeInt},
		{"log.retention.ms", "604800000", kmsg.ConfigTypeLong},
		{"log.retention.bytes", "-1", kmsg.ConfigTypeLong},
		{"message.max.bytes", "1048588", kmsg.ConfigTypeInt},
		{"min.insync.replicas", "1", kmsg.ConfigTypeInt},
		{"node.id", strconv.Itoa(int(c.s.o.NodeID)), kmsg.ConfigTypeInt},
		{"num.partitions", strconv.Itoa(int(c.s.b.DefaultPartitions())), kmsg.ConfigTypeInt},
		{"offsets.topic.replication.factor", "1", kmsg.ConfigTypeShort},
		{"socket.request.max.bytes", strconv.Itoa(int(c.s.o.MaxRequestBytes)), kmsg.ConfigTypeInt},
		{"transaction.state.log.replication.factor", "1", kmsg.ConfigTypeShort},
	} {
		cfg := configOf(s.name, s.value, s.kind, kmsg.ConfigSourceStaticBrokerConfig)
		cfg.ReadOnly, cfg.IsDefault = true, false
		sr.Configs = append(sr.Configs, cfg)
	}
}

func configOf(name, value string, kind kmsg.ConfigType, source kmsg.ConfigSource) kmsg.DescribeConfigsResponseResourceConfig {
	cfg := kmsg.NewDescribeConfigsResponseResourceConfig()
	cfg.Name, cfg.Value, cfg.Source, cfg.ConfigType = name, kmsg.StringPtr(value), source, kind
	cfg.IsDefault = source == kmsg.ConfigSourceDefaultConfig
	cfg.ConfigSynonyms = append(cfg.ConfigSynonyms, synonym(name, value, source))
	return cfg
}

func synonym(name, value string, source kmsg.ConfigSource) kmsg.DescribeConfigsResponseResourceConfigConfigSynonym {
	s := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
	s.Name, s.Value, s.Source = name, kmsg.StringPtr(value), source
	return s
}

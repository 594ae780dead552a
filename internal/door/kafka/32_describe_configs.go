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
// v1 sources and synonyms, v3 types and documentation, v4 flexible. Topics, groups, and of the broker what tools ask for (nodeconfigs.go).
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
		case kmsg.ConfigResourceTypeGroupConfig:
			c.groupConfigs(&sr)
		case kmsg.ConfigResourceTypeBrokerLogger, kmsg.ConfigResourceTypeClientMetrics: // there are none of them
		default:
			sr.ErrorCode, sr.ErrorMessage = kerr.InvalidRequest.Code, kmsg.StringPtr("only topics (2), the broker (4) and groups (32) have settings")
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
	if err := broker.CheckTopicName(sr.ResourceName); err != nil {
		sr.ErrorCode, sr.ErrorMessage = code(err), explain(err)
		return
	}
	if !ok {
		sr.ErrorCode, sr.ErrorMessage = kerr.UnknownTopicOrPartition.Code, kmsg.StringPtr("no such topic")
		return
	}
	for _, def := range broker.TopicConfigs {
		value, explicit := t.Config(def.Name)
		cfg := configOf(def.Name, value, kmsg.ConfigType(def.Type), kmsg.ConfigSourceDefaultConfig)
		cfg.ConfigSynonyms = nil
		if explicit {
			cfg.Source, cfg.IsDefault = kmsg.ConfigSourceDynamicTopicConfig, false
			cfg.ConfigSynonyms = append(cfg.ConfigSynonyms, synonym(def.Name, value, cfg.Source))
		}
		node, hasSynonym := broker.NodeDefaultOf(def.Name)
		if told, ok := c.s.b.TopicDefault(def.Name); ok {
			if !explicit {
				cfg.Source, cfg.IsDefault = kmsg.ConfigSourceStaticBrokerConfig, false
			}
			cfg.ConfigSynonyms = append(cfg.ConfigSynonyms, synonym(node, told, kmsg.ConfigSourceStaticBrokerConfig))
		}
		if hasSynonym {
			cfg.ConfigSynonyms = append(cfg.ConfigSynonyms, synonym(node, def.Default, kmsg.ConfigSourceDefaultConfig))
		}
		cfg.Documentation = kmsg.StringPtr(def.Doc)
		sr.Configs = append(sr.Configs, cfg)
	}
}

func (c call) groupConfigs(sr *kmsg.DescribeConfigsResponseResource) {
	if err := broker.CheckGroupID(sr.ResourceName); err != nil {
		sr.ErrorCode, sr.ErrorMessage = kerr.InvalidRequest.Code, explain(err)
		return
	}
	explicit := c.s.b.Groups().Configs(sr.ResourceName)
	for _, def := range c.s.b.Groups().GroupConfigs() {
		cfg := configOf(def.Name, def.Default, kmsg.ConfigType(def.Type), kmsg.ConfigSourceDefaultConfig)
		cfg.ConfigSynonyms[0].Name = "group." + def.Name
		if value, ok := explicit[def.Name]; ok {
			cfg.Value, cfg.Source, cfg.IsDefault = &value, kmsg.ConfigSourceGroupConfig, false
			cfg.ConfigSynonyms = append([]kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{
				synonym(def.Name, value, kmsg.ConfigSourceGroupConfig),
			}, cfg.ConfigSynonyms...)
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
	if sr.ResourceName == "" { // what holds for all brokers, changed while they run: nothing
		return
	}
	for _, s := range c.nodeConfigs() {
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

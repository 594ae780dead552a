package kafka

import (
	"context"
	"fmt"
	"maps"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// IncrementalAlterConfigs (44)
//
// v1 flexible. Topics only; setting (0) and deleting (1) a setting. Appending to and subtracting from a list (2, 3) are refused: the only list,
// cleanup.policy, has two values.
func init() { register(api{key: 44, min: 0, max: 1, handle: incrementalAlterConfigs}) }

func incrementalAlterConfigs(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.IncrementalAlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	for _, rr := range req.Resources {
		sr := kmsg.NewIncrementalAlterConfigsResponseResource()
		sr.ResourceType, sr.ResourceName = rr.ResourceType, rr.ResourceName
		if rr.ResourceType != kmsg.ConfigResourceTypeTopic {
			sr.ErrorCode, sr.ErrorMessage = kerr.InvalidRequest.Code, kmsg.StringPtr("only the settings of topics can be changed")
		} else if err := c.alterTopic(ctx, &rr, req.ValidateOnly); err != nil {
			sr.ErrorCode, sr.ErrorMessage = code(err), explain(err)
		}
		resp.Resources = append(resp.Resources, sr)
	}
	return resp, nil
}

func (c call) alterTopic(ctx context.Context, rr *kmsg.IncrementalAlterConfigsRequestResource, validateOnly bool) error {
	t, ok := c.s.b.Topic(rr.ResourceName)
	if !ok {
		return broker.ErrUnknownTopic
	}
	configs := maps.Clone(t.Configs())
	if configs == nil {
		configs = map[string]string{}
	}
	for _, cfg := range rr.Configs {
		switch {
		case cfg.Op == 0 && cfg.Value != nil:
			configs[cfg.Name] = *cfg.Value
		case cfg.Op == 1:
			delete(configs, cfg.Name)
		default:
			return fmt.Errorf("%w: %s: only setting and deleting are supported", broker.ErrInvalidConfig, cfg.Name)
		}
	}
	if validateOnly {
		return broker.CheckConfigs(configs)
	}
	return c.s.b.AlterConfigs(ctx, rr.ResourceName, configs)
}

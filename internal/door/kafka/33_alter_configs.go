package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterConfigs (33)
//
// v2 flexible. Replaces all explicit settings of a topic or a group by those of the request; what it leaves out gets its default.

func init() { register(api{key: 33, min: 0, max: 2, handle: alterConfigs}) }

func alterConfigs(ctx context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.AlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	seen := map[configResource]int{}
	for i := range req.Resources {
		seen[configResource{req.Resources[i].ResourceType, req.Resources[i].ResourceName}]++
	}
	for i := range req.Resources {
		rr := &req.Resources[i]
		sr := kmsg.NewAlterConfigsResponseResource()
		sr.ResourceType, sr.ResourceName = rr.ResourceType, rr.ResourceName
		r := configResource{rr.ResourceType, rr.ResourceName}
		err := error(nil)
		if seen[r] > 1 {
			err = errTwice
		} else {
			configs := make(map[string]string, len(rr.Configs))
			for _, cfg := range rr.Configs {
				if cfg.Value == nil {
					err = noValue(cfg.Name)
					break
				}
				configs[cfg.Name] = *cfg.Value
			}
			if err == nil {
				err = c.alter(ctx, r, req.ValidateOnly, func(map[string]string) (map[string]string, error) { return configs, nil })
			}
		}
		sr.ErrorCode, sr.ErrorMessage = configCode(err), explain(err)
		resp.Resources = append(resp.Resources, sr)
	}
	return resp, nil
}

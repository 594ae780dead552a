package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// UpdateFeatures (57)
//
// v1 kinds of upgrade and dry runs, v2 no result per feature. A feature's level is that of the binary: asking for the level that it has succeeds, and
// every other one is refused.

func init() { register(api{key: 57, min: 0, max: 2, handle: updateFeatures}) }

func updateFeatures(_ context.Context, _ call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.UpdateFeaturesRequest)
	resp := req.ResponseKind().(*kmsg.UpdateFeaturesResponse)
	for _, u := range req.FeatureUpdates {
		sr := kmsg.NewUpdateFeaturesResponseResult()
		sr.Feature = u.Feature
		f, ok := featureNamed(u.Feature)
		switch {
		case !ok:
			sr.ErrorCode, sr.ErrorMessage = kerr.InvalidUpdateVersion.Code, kmsg.StringPtr(fmt.Sprintf("no feature is called %s", u.Feature))
		case u.MaxVersionLevel != f.level:
			sr.ErrorCode = kerr.InvalidUpdateVersion.Code
			sr.ErrorMessage = kmsg.StringPtr(fmt.Sprintf("%s is at level %d, and only another version of Leat changes that", f.name, f.level))
		}
		if sr.ErrorCode != 0 { // all or nothing
			resp.ErrorCode, resp.ErrorMessage, resp.Results = sr.ErrorCode, sr.ErrorMessage, nil
			return resp, nil
		}
		resp.Results = append(resp.Results, sr)
	}
	return resp, nil
}

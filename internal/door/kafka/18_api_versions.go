package kafka

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ApiVersions (18)
//
// A version that is not known is answered with a version 0 body, UNSUPPORTED_VERSION and what is served, so that the client can ask again
// (KIP-511). The response header is always version 0. No features are announced: transactions, share groups and the new group protocol are not
// served yet, and clients switch on them.
const keyAPIVersions = 18

func init() { register(api{key: keyAPIVersions, min: 0, max: 4, handle: apiVersions}) }

func apiVersions(_ context.Context, _ call, req kmsg.Request) (kmsg.Response, error) {
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	resp.ApiKeys = servedVersions()
	resp.FinalizedFeaturesEpoch = -1
	return resp, nil
}

func servedVersions() []kmsg.ApiVersionsResponseApiKey {
	out := make([]kmsg.ApiVersionsResponseApiKey, 0, len(apis))
	for _, a := range apis {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = a.key, a.min, a.max
		out = append(out, k)
	}
	slices.SortFunc(out, func(x, y kmsg.ApiVersionsResponseApiKey) int { return int(x.ApiKey) - int(y.ApiKey) })
	return out
}

func unsupportedAPIVersions() response {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.SetVersion(0)
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	resp.ApiKeys = servedVersions()
	return plain{resp}
}

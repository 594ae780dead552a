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
// (KIP-511). The response header is always version 0. v3 features, on which clients switch (features.go); before v4 those with a lowest level of 0 are left
// out, which clients of then do not understand. v5 the client may say which cluster and node it believes to talk to (KIP-1242).
const keyAPIVersions = 18

func init() { register(api{key: keyAPIVersions, min: 0, max: 5, handle: apiVersions}) }

func apiVersions(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.ApiVersionsRequest)
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	if req.Version >= 5 {
		switch {
		case (req.ClusterID == nil) != (req.NodeID == -1):
			resp.ErrorCode = kerr.InvalidRequest.Code
			return resp, nil
		case req.ClusterID != nil && (*req.ClusterID != c.s.o.ClusterID || req.NodeID != c.s.o.NodeID):
			resp.ErrorCode = kerr.RebootstrapRequired.Code
			return resp, nil
		}
	}
	resp.ApiKeys = servedVersions()
	resp.FinalizedFeaturesEpoch = int64(c.s.b.LeaderEpoch())
	for _, f := range features {
		if f.min > 0 || req.Version >= 4 {
			sf := kmsg.NewApiVersionsResponseSupportedFeature()
			sf.Name, sf.MinVersion, sf.MaxVersion = f.name, f.min, f.max
			resp.SupportedFeatures = append(resp.SupportedFeatures, sf)
		}
		ff := kmsg.NewApiVersionsResponseFinalizedFeature()
		ff.Name, ff.MinVersionLevel, ff.MaxVersionLevel = f.name, f.level, f.level
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, ff)
	}
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

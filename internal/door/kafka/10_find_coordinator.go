package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FindCoordinator (10)
//
// v1 kinds of key, v3 flexible, v4 several keys, v6 share groups. This node coordinates every group and every transactional id (kind
// 1). Share groups (kind 2) are not served yet, and are refused by name.
func init() { register(api{key: 10, min: 0, max: 6, handle: findCoordinator}) }

func findCoordinator(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.FindCoordinatorRequest)
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	host, port := c.advertised()
	refused, why := int16(0), ""
	switch req.CoordinatorType {
	case 0, 1:
	case 2:
		refused, why = kerr.InvalidRequest.Code, "share groups are not supported yet"
	default:
		refused, why = kerr.InvalidRequest.Code, "unknown kind of coordinator"
	}
	if req.Version < 4 {
		resp.NodeID, resp.Host, resp.Port = c.s.o.NodeID, host, port
		if refused != 0 {
			resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Host, resp.Port = refused, &why, -1, "", -1
		}
		return resp, nil
	}
	for _, key := range req.CoordinatorKeys {
		sc := kmsg.NewFindCoordinatorResponseCoordinator()
		sc.Key, sc.NodeID, sc.Host, sc.Port = key, c.s.o.NodeID, host, port
		if refused != 0 {
			sc.ErrorCode, sc.ErrorMessage, sc.NodeID, sc.Host, sc.Port = refused, &why, -1, "", -1
		}
		resp.Coordinators = append(resp.Coordinators, sc)
	}
	return resp, nil
}

package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeCluster (60)
//
// v1 kind of endpoint, v2 fenced brokers. There is one node, which is also the controller.
func init() { register(api{key: 60, min: 0, max: 2, handle: describeCluster}) }

// brokerEndpoint is the kind of address at which a client finds this node.
const brokerEndpoint = 1

func describeCluster(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DescribeClusterRequest)
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	resp.EndpointType = brokerEndpoint
	if req.EndpointType != brokerEndpoint {
		resp.ErrorCode = kerr.MismatchedEndpointType.Code
		resp.ErrorMessage = kmsg.StringPtr("this is the endpoint of a broker, and the request is for one of a controller")
		return resp, nil
	}
	resp.ClusterID, resp.ControllerID = c.s.o.ClusterID, c.s.o.NodeID
	b := kmsg.NewDescribeClusterResponseBroker()
	b.NodeID = c.s.o.NodeID
	b.Host, b.Port = c.advertised()
	resp.Brokers = append(resp.Brokers, b)
	return resp, nil
}

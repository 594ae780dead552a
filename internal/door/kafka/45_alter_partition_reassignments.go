package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterPartitionReassignments (45)
//
// v1 whether the number of replicas may change. An assignment to the only node is what is there already; to another one it is refused. There is never
// a reassignment under way that could be cancelled.

func init() { register(api{key: 45, min: 0, max: 1, handle: alterPartitionReassignments}) }

func alterPartitionReassignments(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.AlterPartitionAssignmentsRequest)
	resp := req.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
	resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	for _, rt := range req.Topics {
		st := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		st.Topic = rt.Topic
		t, ok := c.s.b.Topic(rt.Topic)
		for _, rp := range rt.Partitions {
			sp := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			sp.Partition = rp.Partition
			refuse := func(code int16, why string) { sp.ErrorCode, sp.ErrorMessage = code, &why }
			switch {
			case !hasPartition(t, ok, rp.Partition):
				refuse(kerr.UnknownTopicOrPartition.Code, "no such topic or partition")
			case rp.Replicas == nil:
				refuse(kerr.NoReassignmentInProgress.Code, "no reassignment is in progress")
			case len(rp.Replicas) != 1 || rp.Replicas[0] != c.s.o.NodeID:
				refuse(kerr.InvalidReplicaAssignment.Code, fmt.Sprintf("the only node is %d", c.s.o.NodeID))
			}
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp, nil
}

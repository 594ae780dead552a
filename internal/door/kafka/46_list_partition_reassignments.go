package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListPartitionReassignments (46)
//
// Partitions never move, for there is one node.

func init() { register(api{key: 46, min: 0, max: 0, handle: listPartitionReassignments}) }

func listPartitionReassignments(_ context.Context, _ call, kreq kmsg.Request) (kmsg.Response, error) {
	return kreq.(*kmsg.ListPartitionReassignmentsRequest).ResponseKind(), nil
}

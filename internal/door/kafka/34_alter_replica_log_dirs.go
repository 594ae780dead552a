package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterReplicaLogDirs (34)
//
// v2 flexible. There is one folder: moving a partition to where it is is done, and every other folder is unknown.

func init() { register(api{key: 34, min: 1, max: 2, handle: alterReplicaLogDirs}) }

func alterReplicaLogDirs(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.AlterReplicaLogDirsRequest)
	resp := req.ResponseKind().(*kmsg.AlterReplicaLogDirsResponse)
	for _, rd := range req.Dirs {
		for _, rt := range rd.Topics {
			st := kmsg.NewAlterReplicaLogDirsResponseTopic()
			st.Topic = rt.Topic
			t, ok := c.s.b.Topic(rt.Topic)
			for _, partition := range rt.Partitions {
				sp := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				sp.Partition = partition
				switch {
				case rd.Dir != c.s.b.Dir():
					sp.ErrorCode = kerr.LogDirNotFound.Code
				case !ok || t.Partition(partition) == nil:
					sp.ErrorCode = kerr.UnknownTopicOrPartition.Code
				}
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
	}
	return resp, nil
}

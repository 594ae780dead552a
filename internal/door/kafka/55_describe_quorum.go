package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeQuorum (55)
//
// v1 timestamps, v2 nodes and messages. The quorum of one: this node leads its metadata, and what is durable in its journal is the metadata log's end.

func init() { register(api{key: 55, min: 0, max: 2, handle: describeQuorum}) }

const metadataTopic = "__cluster_metadata"

func describeQuorum(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DescribeQuorumRequest)
	resp := req.ResponseKind().(*kmsg.DescribeQuorumResponse)
	for _, rt := range req.Topics {
		st := kmsg.NewDescribeQuorumResponseTopic()
		st.Topic = rt.Topic
		for _, rp := range rt.Partitions {
			sp := kmsg.NewDescribeQuorumResponseTopicPartition()
			sp.Partition = rp.Partition
			if rt.Topic != metadataTopic || rp.Partition != 0 {
				sp.ErrorCode, sp.ErrorMessage = kerr.UnknownTopicOrPartition.Code, kmsg.StringPtr("only "+metadataTopic+"-0 has a quorum")
			} else {
				end := c.s.b.MetadataEnd()
				sp.LeaderID, sp.LeaderEpoch, sp.HighWatermark = c.s.o.NodeID, c.s.b.LeaderEpoch(), end
				voter := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
				now := c.s.o.Clock.Now().UnixMilli()
				voter.ReplicaID, voter.LogEndOffset, voter.LastFetchTimestamp, voter.LastCaughtUpTimestamp = c.s.o.NodeID, end, now, now
				sp.CurrentVoters = append(sp.CurrentVoters, voter)
			}
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	n := kmsg.NewDescribeQuorumResponseNode()
	l := kmsg.NewDescribeQuorumResponseNodeListener()
	host, port := c.advertised()
	n.NodeID, l.Name, l.Host, l.Port = c.s.o.NodeID, "PLAINTEXT", host, uint16(port)
	n.Listeners = append(n.Listeners, l)
	resp.Nodes = append(resp.Nodes, n)
	return resp, nil
}

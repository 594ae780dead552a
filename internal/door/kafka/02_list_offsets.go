package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListOffsets (2)
//
// v1 one offset per partition, v2 isolation level, v4 leader epochs, v6 flexible, v7 the record with the largest timestamp (-3, KIP-734), v8 the earliest
// local offset (-4, KIP-405), v9 the end of what is tiered (-5), v11 the earliest that waits to be tiered (-6). Nothing is tiered: -4 is the earliest, -5 and
// -6 are -1. Who reads committed records only is told of what lies below the last stable offset.
func init() { register(api{key: 2, min: 1, max: 11, handle: listOffsets}) }

// Special timestamps.
const (
	latestOffset        = -1
	earliestOffset      = -2
	maxTimestampOffset  = -3
	earliestLocalOffset = -4
	latestTieredOffset  = -5
	pendingUploadOffset = -6
)

func listOffsets(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.ListOffsetsRequest)
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, rt := range req.Topics {
		st := kmsg.NewListOffsetsResponseTopic()
		st.Topic = rt.Topic
		topic, ok := c.s.b.Topic(rt.Topic)
		for _, rp := range rt.Partitions {
			sp := kmsg.NewListOffsetsResponseTopicPartition()
			sp.Partition, sp.Offset, sp.Timestamp, sp.LeaderEpoch = rp.Partition, -1, -1, -1
			var p *broker.Partition
			if ok {
				p = topic.Partition(rp.Partition)
			}
			switch {
			case p == nil:
				sp.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case rp.CurrentLeaderEpoch >= 0 && rp.CurrentLeaderEpoch != c.s.b.LeaderEpoch():
				sp.ErrorCode = epochCode(rp.CurrentLeaderEpoch, c.s.b.LeaderEpoch())
			default:
				view := broker.ViewDurable
				if req.IsolationLevel == 1 {
					view = broker.ViewCommitted
				}
				listOffset(p, req.Version, rp.Timestamp, view, &sp)
				if sp.Offset >= 0 {
					sp.LeaderEpoch = c.s.b.LeaderEpoch()
				}
			}
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp, nil
}

// epochCode says why a client's leader epoch is not ours (KIP-320).
func epochCode(theirs, ours int32) int16 {
	if theirs > ours {
		return kerr.UnknownLeaderEpoch.Code
	}
	return kerr.FencedLeaderEpoch.Code
}

func listOffset(p *broker.Partition, version int16, ms int64, view broker.View, sp *kmsg.ListOffsetsResponseTopicPartition) {
	var err error
	var found bool
	switch {
	case ms == latestOffset:
		if err = p.Err(); err == nil {
			sp.Offset = p.End(view)
		}
	case ms == earliestOffset, ms == earliestLocalOffset && version >= 8:
		sp.Offset, err = p.StartOffset()
	case ms == maxTimestampOffset && version >= 7:
		if sp.Offset, sp.Timestamp, found, err = p.MaxTimestamp(view); !found {
			sp.Offset, sp.Timestamp = -1, -1
		}
	case ms == latestTieredOffset && version >= 9, ms == pendingUploadOffset && version >= 11:
	case ms < 0:
		sp.ErrorCode = kerr.UnsupportedVersion.Code
	default:
		if sp.Offset, sp.Timestamp, found, err = p.OffsetForTime(ms, view); !found {
			sp.Offset, sp.Timestamp = -1, -1
		}
	}
	if err != nil {
		sp.Offset, sp.Timestamp, sp.ErrorCode = -1, -1, code(err)
	}
}

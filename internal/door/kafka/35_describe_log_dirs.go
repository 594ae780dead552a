package kafka

import (
	"context"

	"github.com/leat-io/leat/internal/broker"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeLogDirs (35)
//
// v2 flexible, v3 an error for the whole, v4 bytes of the disk, v5 whether the folder takes no new partitions (never). There is one folder. Every partition's
// size is that of its files; one that was not touched in this run is looked up, which opens no file that was not opened before it.

func init() { register(api{key: 35, min: 1, max: 5, handle: describeLogDirs}) }

func describeLogDirs(_ context.Context, c call, kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.DescribeLogDirsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeLogDirsResponse)
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir = c.s.b.Dir()
	dir.TotalBytes, dir.UsableBytes = c.s.b.DiskSpace()
	add := func(t *broker.Topic, wanted func(int32) bool) {
		st := kmsg.NewDescribeLogDirsResponseDirTopic()
		st.Topic = t.Name
		for _, p := range t.Partitions() {
			if wanted != nil && !wanted(p.Index) {
				continue
			}
			sp := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
			sp.Partition, sp.Size = p.Index, p.Bytes()
			st.Partitions = append(st.Partitions, sp)
		}
		if len(st.Partitions) > 0 {
			dir.Topics = append(dir.Topics, st)
		}
	}
	if req.Topics == nil {
		for _, t := range c.s.b.Topics() {
			add(t, nil)
		}
	}
	for _, rt := range req.Topics {
		t, ok := c.s.b.Topic(rt.Topic)
		if !ok {
			continue
		}
		wanted := make(map[int32]bool, len(rt.Partitions))
		for _, p := range rt.Partitions {
			wanted[p] = true
		}
		add(t, func(p int32) bool { return wanted[p] })
	}
	resp.Dirs = append(resp.Dirs, dir)
	return resp, nil
}

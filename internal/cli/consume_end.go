package cli

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// endLook is how long --until-end waits for records before it looks whether there are any.
	endLook = 100 * time.Millisecond
	// endPatience is how long it waits for records that are there, or may be.
	endPatience = 3 * time.Second
	// lookBytes is how much it looks at.
	lookBytes = 1 << 20
)

// ends are the offsets that each partition is read to.
type ends struct {
	left map[string]map[int32]int64 // what is not reached yet
	at   map[string]map[int32]int64 // how far these are read
	all  map[string]map[int32]int64

	topics kadm.TopicDetails
	level  kgo.IsolationLevel
}

// findEnds asks where the partitions end, and which have nothing between where they are read from and there.
func (c *consuming) findEnds(ctx context.Context, a *cluster, partitions map[string][]int32) (*ends, error) {
	names := make([]string, 0, len(partitions))
	for t := range partitions {
		names = append(names, t)
	}
	b, err := listBounds(ctx, a, names...)
	if err != nil {
		return nil, err
	}
	if c.isolation == "read_committed" { // an open transaction is not waited for
		if b.ends, err = a.ListCommittedOffsets(ctx, names...); err != nil {
			return nil, err
		}
	}
	from, err := c.start.resolver(ctx, a, b, names...)
	if err != nil {
		return nil, err
	}
	to := func(topic string, partition int32) (int64, error) {
		_, end, err := b.of(topic, partition)
		return end, err
	}
	if !c.until.IsZero() {
		if to, err = (target{kind: targetTime, at: c.until}).resolver(ctx, a, b, names...); err != nil {
			return nil, err
		}
	}
	var committed map[string]map[int32]int64
	if c.group != "" {
		if committed, err = committedOffsets(ctx, a, c.group); err != nil {
			return nil, err
		}
	}
	e := &ends{left: map[string]map[int32]int64{}, at: map[string]map[int32]int64{}, all: map[string]map[int32]int64{}}
	for t, ps := range partitions {
		e.left[t], e.at[t], e.all[t] = map[int32]int64{}, map[int32]int64{}, map[int32]int64{}
		for _, p := range ps {
			start, _, err := b.of(t, p)
			if err != nil {
				return nil, err
			}
			at, err := from(t, p)
			if err != nil {
				return nil, err
			}
			if o, ok := committed[t][p]; ok {
				at = o
			}
			end, err := to(t, p)
			if err != nil {
				return nil, err
			}
			e.all[t][p] = end
			if at = max(at, start); at < end {
				e.left[t][p], e.at[t][p] = end, at
			}
		}
	}
	return e, nil
}

// before reports whether a record lies before the end of its partition, and notes that it was met.
func (e *ends) before(r *kgo.Record) bool {
	e.reach(r.Topic, r.Partition, r.Offset+1)
	end, ok := e.all[r.Topic][r.Partition]
	return ok && r.Offset < end
}

// reach notes that a partition has been read up to an offset.
func (e *ends) reach(topic string, partition int32, at int64) {
	end, ok := e.left[topic][partition]
	switch {
	case !ok:
	case at >= end:
		delete(e.left[topic], partition)
	default:
		e.at[topic][partition] = max(e.at[topic][partition], at)
	}
}

// look passes over what gives no records: aborted transactions, and what compaction has left. The client passes over it, too, but does not say so.
func (e *ends) look(ctx context.Context, client *kgo.Client) {
	for topic, ps := range e.left {
		for p := range ps {
			if next, ok := e.emptyUntil(ctx, client, topic, p); ok {
				e.reach(topic, p, next)
			}
		}
	}
}

// emptyUntil returns how far a partition has no records from where it has been read to, as far as one look goes; ok is false if that cannot be told:
// then the client meets the reason, too.
func (e *ends) emptyUntil(ctx context.Context, client *kgo.Client, topic string, partition int32) (next int64, ok bool) {
	detail := e.topics[topic]
	at := e.at[topic][partition]
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = partition, at, lookBytes
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID, rt.Partitions = topic, detail.ID, []kmsg.FetchRequestTopicPartition{rp}
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch, req.Topics = lookBytes, -1, []kmsg.FetchRequestTopic{rt}
	if e.level == kgo.ReadCommitted() {
		req.IsolationLevel = 1
	}
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	answer, err := client.Broker(int(detail.Partitions[partition].Leader)).Request(ctx, req)
	resp, isFetch := answer.(*kmsg.FetchResponse)
	if err != nil || !isFetch || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, false
	}
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: at, IsolationLevel: e.level, Topic: topic, Partition: partition,
	}, &resp.Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
	if len(fetched.Records) > 0 {
		next = fetched.Records[0].Offset
	}
	return next, fetched.Err == nil
}

func (e *ends) reached() bool {
	for _, ps := range e.left {
		if len(ps) > 0 {
			return false
		}
	}
	return true
}

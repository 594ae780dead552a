package flow

import (
	"bytes"
	"container/heap"
	"slices"

	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/flow/operator/sink"
)

// heapInit restores the order of a heap of timers after some were taken out.
func heapInit(h *timerHeap) { heap.Init(h) }

// Quiet says that nobody reads the node's output.
func (o *output) Quiet() bool { return len(o.n.outs) == 0 }

// collectSink adds the records that a sink's instances made in the epoch.
func (i *Island) collectSink(r *Result, jr *JobResult, n *node) error {
	var lists []*sink.Records
	for k, in := range n.inst {
		if in == nil || in.op == nil {
			continue
		}
		s := in.op.(*sink.Sink)
		jr.Checksum += s.Sum()
		if in.epoch == i.workers[k].visit {
			lists = append(lists, s.Take())
		}
	}
	i.addRecords(r, jr.Job, lists)
	for _, in := range n.inst {
		if in != nil && in.op != nil {
			in.op.(*sink.Sink).Clear()
		}
	}
	return nil
}

// collectLate adds the records of rows that came too late.
func (i *Island) collectLate(r *Result, j *job) {
	var lists []*sink.Records
	for _, n := range j.windows {
		for _, l := range n.lates {
			if l != nil {
				lists = append(lists, l.Take())
			}
		}
	}
	i.addRecords(r, j.spec.ID, lists)
	for _, n := range j.windows {
		for _, l := range n.lates {
			if l != nil {
				l.Clear()
			}
		}
	}
}

// addRecords brings the workers' records of an epoch into one order and splits them by topic and partition.
func (i *Island) addRecords(r *Result, job uint64, lists []*sink.Records) {
	type item struct {
		topic string
		*sink.Keyed
	}
	var all []item
	for _, l := range lists {
		for k := range l.List {
			all = append(all, item{l.Topic, &l.List[k]})
		}
	}
	slices.SortStableFunc(all, func(a, b item) int {
		if a.topic != b.topic {
			if a.topic < b.topic {
				return -1
			}
			return 1
		}
		if a.Partition != b.Partition {
			return int(a.Partition) - int(b.Partition)
		}
		if c := bytes.Compare(a.Sort, b.Sort); c != 0 {
			return c
		}
		return bytes.Compare(a.Value, b.Value)
	})
	for at := 0; at < len(all); {
		t := TopicBatch{Job: job, Topic: all[at].topic, Partition: all[at].Partition}
		for ; at < len(all) && all[at].topic == t.Topic && all[at].Partition == t.Partition; at++ {
			t.Records = append(t.Records, operator.Record{Key: all[at].Key, Value: all[at].Value, Timestamp: all[at].Timestamp})
		}
		r.Appends = append(r.Appends, t)
	}
}

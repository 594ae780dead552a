package job

import (
	"slices"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/catalog"
)

// outputs are the topics that an island's epochs write to: of sinks, of late rows, of dead letters. Whoever administers topics may delete one
// while it is written to. Making it again waits for the journal, which an epoch must not, so it happens between epochs and beside the island;
// until it is there no epoch begins.
type outputs struct {
	of     []uint64 // the members that these are of
	topics []output
	making chan error // of the topics that are being made, nil if none are
	after  time.Time  // not to be tried before
}

type output struct {
	topic    string
	relation *catalog.Relation // whose topic it is
}

// retryTopics is how long after a failure the topics are tried again.
const retryTopics = time.Second

// outputsThere tells whether all topics are there that the next epoch may write to, and if not, when to look again. It has missing ones made.
// mu is held.
func (x *island) outputsThere(now time.Time) (ok bool, wakeAt time.Time) {
	o := &x.outputs
	if o.making != nil {
		select {
		case err := <-o.making:
			o.making = nil
			if err != nil {
				x.m.log.Error("making topics that were deleted while results are written to them; it is tried again", "err", err)
				o.after = now.Add(retryTopics)
			}
		default:
			return false, time.Time{}
		}
	}
	x.findOutputs()
	var missing []*catalog.Relation
	for _, t := range o.topics {
		if _, there := x.m.o.Broker.Topic(t.topic); !there && !slices.Contains(missing, t.relation) {
			missing = append(missing, t.relation)
		}
	}
	if len(missing) == 0 {
		return true, time.Time{}
	}
	if now.Before(o.after) {
		return false, o.after
	}
	made := make(chan error, 1)
	o.making = made
	x.m.beside(func() {
		var err error
		for _, r := range missing {
			if err = x.m.makeTopics(r); err != nil {
				break
			}
		}
		made <- err
		x.watcher.Wake()
	})
	return false, time.Time{}
}

// beside runs fn on a goroutine that Close waits for. When the caller steps the node, which steps the journal that fn waits for, it does not.
func (m *Manager) beside(fn func()) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.running {
		go fn()
		return
	}
	m.stopped.Go(fn)
}

// findOutputs brings the list in step with the members; mu is held.
func (x *island) findOutputs() {
	o := &x.outputs
	if slices.Equal(o.of, x.members) {
		return
	}
	o.of, o.topics = append(o.of[:0], x.members...), o.topics[:0]
	cat := x.m.Catalog()
	add := func(topic string, r *catalog.Relation) {
		if topic != "" {
			o.topics = append(o.topics, output{topic, r})
		}
	}
	for _, id := range x.members {
		j := x.m.job(id)
		if j == nil || j.failure() != nil {
			continue
		}
		r := j.relation
		if r.Kind == catalog.Sink {
			add(r.Topic, r)
		}
		if r.Plan == nil {
			continue
		}
		for _, n := range r.Plan.Nodes {
			add(lateTopic(n), r)
			if n.Scan != nil && n.Scan.Source {
				if src := cat.Relation(n.Scan.Relation); src != nil && src.Kind == catalog.Source && src.Connector == "kafka" {
					add(src.Name+".errors", src)
				}
			}
		}
	}
}

// partition finds the partition of a topic that the epoch writes to; nil if the topic was deleted since the epoch began: what the epoch would
// have written is gone with it, as if it had come just before the deletion.
func (x *island) partition(topic string, partition int32) *broker.Partition {
	t, ok := x.m.o.Broker.Topic(topic)
	if !ok {
		return nil
	}
	return t.Partition(partition % int32(len(t.Partitions())))
}

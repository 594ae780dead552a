package job

import (
	"fmt"
	"slices"

	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/flow"
)

// stopMistaken stops the jobs whose positions are of something that is not there any more: a topic that was deleted, even if one of its name is there now.
// Going on would pass over, or read twice, what is in the new one. No client can delete a topic of the embedded log that a job reads; whoever administers
// a cluster can, at any time, and a data folder may have been put together from copies. It returns whether any were. mu is held, and no epoch is running.
func (x *island) stopMistaken(readers []flow.Reader) (stopped bool, err error) {
	for _, r := range readers {
		src, ok := r.Source.(connector.Identified)
		if !ok {
			continue
		}
		now, was := src.Identity(), r.State.Identity
		_, embedded := r.Source.(LogSource)
		switch {
		case now == was:
			continue
		case was.IsZero():
			x.flow.Identify(r.ID, now)
			continue
		case now.IsZero() && !embedded:
			continue // the cluster has not been asked
		}
		cause := x.mistaken(&r, now)
		for _, id := range slices.Clone(r.Jobs) {
			if err := x.stopJob(id, cause); err != nil {
				return stopped, err
			}
		}
		stopped, x.due = true, len(x.members) > 0 // where they stopped is saved with the others' next epoch
	}
	if stopped {
		x.note()
	}
	return stopped, nil
}

func (x *island) mistaken(r *flow.Reader, now connector.Identity) error {
	name := "?"
	topic := "its topic"
	if rel := x.m.Catalog().Relation(r.Relation); rel != nil {
		name, topic = rel.QualifiedName(), fmt.Sprintf("topic \"%s\"", rel.Options["topic"])
		if rel.Topic != "" {
			topic = fmt.Sprintf("topic \"%s\"", rel.Topic)
		}
	}
	happened := "was deleted, and another one was made under its name"
	if now.IsZero() {
		happened = "was deleted"
	}
	return fmt.Errorf("%s reads %s, which %s: the positions that were read to are of the old one; %s", name, topic, happened, connector.BeginAnew)
}

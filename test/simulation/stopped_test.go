package simulation

import (
	"context"
	"errors"
	"testing"

	"github.com/leat-io/leat/internal/job"
)

// TestAJobThatStopsShowsNothingTooSoon: an epoch in which a job stops is not taken for committed before it is durable. Who waits for its own write to be in the
// views would otherwise read them without it.
func TestAJobThatStopsShowsNothingTooSoon(t *testing.T) {
	t.Parallel()
	n := newStepped(t)
	n.execute("CREATE TABLE t (id int PRIMARY KEY, x numeric)")
	n.execute("CREATE MATERIALIZED VIEW total AS SELECT sum(x) AS total FROM t")
	n.execute("CREATE MATERIALIZED VIEW held AS SELECT count(*) AS n FROM t")
	table := n.core.Jobs.Catalog().Lookup("", "t")
	at := job.Position{Relation: table.ID, Offset: 2}
	stopped := func() bool {
		for _, s := range n.core.Jobs.Status() {
			if s.Relation.Name == "total" && s.Err != nil {
				return true
			}
		}
		return false
	}

	inserted := n.begin("INSERT INTO t VALUES (1, 9e131071), (2, 9e131071)") // their sum is no numeric any more
	n.step(stopped)
	// The epoch has run. Its unit is ordered, and not written.
	ctx, cancel := context.WithCancel(n.ctx)
	cancel()
	if p, err := n.core.Jobs.Publish(ctx, at); !errors.Is(err, context.Canceled) {
		t.Errorf("the rows are said to be committed: %v", err)
		if err == nil {
			p.Release()
		}
	}
	n.step(func() bool { return len(inserted) > 0 })
	if err := <-inserted; err != nil {
		t.Fatal(err)
	}
	n.execute("SELECT n FROM held")
	p, err := n.core.Jobs.Publish(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	p.Release()
}

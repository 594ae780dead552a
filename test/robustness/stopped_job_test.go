package robustness

import (
	"context"
	"strings"
	"testing"

	"github.com/leat-io/leat/test/nodetest"
)

// TestStoppedViewThatMissedChanges: what a table changes after a view over it has stopped cannot be read again, so the view stays stopped after restarts, and
// says why; what is made anew has everything.
func TestStoppedViewThatMissedChanges(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	c.Do("CREATE TABLE t (id int PRIMARY KEY, v double precision)",
		"CREATE MATERIALIZED VIEW beside AS SELECT count(*) AS n FROM t",
		"CREATE MATERIALIZED VIEW m AS SELECT sum(v) AS v FROM t",
		"CREATE MATERIALIZED VIEW above AS SELECT v + 1 AS v FROM m",
		"INSERT INTO t VALUES (10, 5)", "FLUSH",
		"INSERT INTO t VALUES (1, 1e308), (2, 1e308)")
	eventually(t, "the sum to stop", func() bool { return len(n.Failed()) == 2 })
	c.Do("DELETE FROM t WHERE id < 10", "INSERT INTO t VALUES (3, 1)")
	for _, workers := range []int{1, 2} {
		n.Restart(workers)
		c = n.Connect()
		if got := c.Query("SELECT n FROM beside"); got[0] != "2" {
			t.Errorf("the view beside has %v", got)
		}
		for _, view := range []string{"m", "above"} {
			if got, err := c.Run("SELECT v FROM " + view); err == nil || !strings.Contains(err.Error(), "it has missed changes of t since it stopped") ||
				!strings.Contains(err.Error(), "value out of range: overflow") {
				t.Errorf("%s: %v, %v", view, got, err)
			}
		}
	}
	c.Do("DROP MATERIALIZED VIEW above, m", "CREATE MATERIALIZED VIEW m AS SELECT sum(v) AS v FROM t")
	if got := c.Query("SELECT v FROM m"); got[0] != "6" {
		t.Errorf("made anew it has %v", got)
	}
	n.Restart(1)
	if got := n.Connect().Query("SELECT v FROM m"); got[0] != "6" {
		t.Errorf("after another restart it has %v", got)
	}
}

// TestStoppedViewsShareAnIsland: what all jobs of an island have stopped on is dropped one by one; what is left knows at the next start where it was, and
// new views over the source run.
func TestStoppedViewsShareAnIsland(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	must(t, produce(t, kafka(t, n.Node), "in", "", `{"k":1}`))
	c.Do("CREATE SOURCE s (k int) WITH (connector='kafka', topic='in') FORMAT PLAIN ENCODE JSON",
		"CREATE MATERIALIZED VIEW v1 AS SELECT count(*) AS n FROM s", "CREATE MATERIALIZED VIEW v2 AS SELECT count(*) AS n FROM s")
	replaced(t, n.Node, "in", `{"k":1}`, `{"k":2}`)
	eventually(t, "both to stop", func() bool { return len(n.Failed()) == 2 })
	c.Do("DROP MATERIALIZED VIEW v1")
	ctx, cancel := context.WithTimeout(t.Context(), nodetest.Patience)
	defer cancel()
	if _, err := c.Exec(ctx, "CREATE MATERIALIZED VIEW v3 AS SELECT count(*) AS n FROM s").ReadAll(); err != nil {
		t.Fatalf("a view beside one that has stopped: %v", err)
	}
	n.Restart(1)
	c = n.Connect()
	eventually(t, "v2 to stop again", func() bool { return len(n.Failed()) == 1 })
	if got, err := c.Run("SELECT n FROM v2"); err == nil || !strings.Contains(err.Error(), "was deleted, and another one was made under its name") {
		t.Errorf("v2: %v, %v", got, err)
	}
	if got := c.Query("SELECT n FROM v3"); got[0] != "2" {
		t.Errorf("v3 has %v", got)
	}
}

// TestCountsOfTables: a table's counts go on after a restart.
func TestCountsOfTables(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	c.Do("CREATE TABLE t (id int PRIMARY KEY, v int)", "CREATE MATERIALIZED VIEW m AS SELECT sum(v) AS v FROM t",
		"INSERT INTO t VALUES (1, 1), (2, 1)", "FLUSH", "UPDATE t SET v = 2", "FLUSH")
	before := n.Counts("t")
	if before.In != 4 || before.Out != 6 {
		t.Errorf("before: %+v", before)
	}
	n.Restart(1)
	if after := n.Counts("t"); after != before {
		t.Errorf("after: %+v, before: %+v", after, before)
	}
}

// TestDropForgetsDeadLetters: nothing is left of a source that had dead letters.
func TestDropForgetsDeadLetters(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	c.Do("CREATE SOURCE s (k int) WITH (connector='kafka', topic='in') FORMAT PLAIN ENCODE JSON", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s")
	must(t, produce(t, kafka(t, n.Node), "in", "", `{"k":"x"}`))
	eventually(t, "the dead letter", func() bool {
		dead, _ := n.Metric("leat_records_dead_total", "s")
		return dead == 1
	})
	c.Do("DROP MATERIALIZED VIEW v", "DROP SOURCE s")
	must(t, n.DB.ScanMeta("job/", func(key string, value []byte) error {
		t.Errorf("left behind: %s %s", key, value)
		return nil
	}))
}

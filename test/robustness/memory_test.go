package robustness

import (
	"slices"
	"testing"

	"github.com/leat-io/leat/test/nodetest"
)

// TestMemoryViewShowsTheTree: every pool is in the system view, and what is above others is their sum.
func TestMemoryViewShowsTheTree(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{Workers: 2})
	c := n.Connect()
	c.Do("CREATE TABLE t (id int PRIMARY KEY, v int)", "CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v",
		"INSERT INTO t VALUES (1, 1), (2, 1)")
	got := c.Query("SELECT pool FROM leat_memory ORDER BY pool")
	want := []string{
		"node", "node/clusters", "node/database", "node/database/cache", "node/database/memtables", "node/doors", "node/doors/kafka",
		"node/engine", "node/engine/applier", "node/engine/state", "node/log", "node/log/journal", "node/queries",
	}
	if !slices.Equal(got, want) {
		t.Errorf("pools %v, want %v", got, want)
	}
	if got := c.Query(`SELECT bool_and(bytes <= limit_bytes), count(limit_bytes) FROM leat_memory`); !slices.Equal(got, []string{"t|5"}) {
		t.Errorf("pools within their limits, pools with a limit: %v", got)
	}
	if got := c.Query("SELECT count(*) FROM leat_memory WHERE pool LIKE 'node/engine/state' AND bytes > 0"); got[0] != "1" {
		t.Error("state takes no memory")
	}
}

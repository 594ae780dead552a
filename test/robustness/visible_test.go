package robustness

import (
	"fmt"
	"testing"

	"github.com/leat-io/leat/test/nodetest"
)

// TestAcknowledgedIsVisibleAfterCrash: the first query after a crash, of a session that has written nothing, sees every row whose INSERT was
// acknowledged before, in the table and in a view over it.
func TestAcknowledgedIsVisibleAfterCrash(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	c.Do("CREATE TABLE t (id int PRIMARY KEY, v int)")
	c.Do("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(v) AS v FROM t")
	rows := 0
	for round := range 8 {
		for range 5 {
			rows++
			c.Do(fmt.Sprintf("INSERT INTO t VALUES (%d, 1)", rows))
		}
		n.Crash(1 + round%3)
		c = n.Connect()
		want := fmt.Sprintf("%d|%d", rows, rows)
		if got := c.Query("SELECT n, v FROM total"); len(got) != 1 || got[0] != want {
			t.Fatalf("round %d: the view has %v, want %s", round, got, want)
		}
		if got := c.Query("SELECT count(*) FROM t"); len(got) != 1 || got[0] != fmt.Sprint(rows) {
			t.Fatalf("round %d: the table has %v rows, want %d", round, got, rows)
		}
	}
}

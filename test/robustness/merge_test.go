package robustness

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leat-io/leat/test/nodetest"
)

// TestIslandsMergeUnderWaiters: sessions that wait for their own rows, and for FLUSH, get on when the islands of what they wait for become one.
func TestIslandsMergeUnderWaiters(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	var conns []*nodetest.Conn
	for range 3 {
		conns = append(conns, n.Connect())
	}
	for i := range 30 {
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		c.Do("CREATE TABLE "+a+" (id int PRIMARY KEY, v int)", "CREATE TABLE "+b+" (id int PRIMARY KEY, v int)")
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for k, conn := range conns {
			wg.Go(func() {
				for row := 0; ; row++ {
					select {
					case <-stop:
						return
					default:
					}
					sql := "FLUSH"
					if k < 2 {
						table := []string{a, b}[k]
						sql = fmt.Sprintf("INSERT INTO %s VALUES (%d, 1); SELECT count(*) FROM %s", table, row, table)
					}
					if _, err := conn.Run(sql); err != nil {
						t.Errorf("round %d: %v", i, err)
						return
					}
				}
			})
		}
		c.Do(fmt.Sprintf("CREATE MATERIALIZED VIEW m%d AS SELECT a.id, a.v + b.v AS v FROM %s a JOIN %s b ON a.id = b.id", i, a, b))
		close(stop)
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}

// TestIslandsMergeUnderNewViews: views that have not run an epoch yet when their island is united with another one are filled all the same.
func TestIslandsMergeUnderNewViews(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	var rows []string
	for i := range 100 {
		rows = append(rows, fmt.Sprintf("(%d, 1)", i))
	}
	const tables = 12
	for i := range tables {
		c.Do(fmt.Sprintf("CREATE TABLE t%d (id int PRIMARY KEY, v int)", i), fmt.Sprintf("INSERT INTO t%d VALUES %s", i, strings.Join(rows, ", ")))
	}
	var wg sync.WaitGroup
	create := func(sql string) {
		conn := n.Connect()
		wg.Go(func() {
			if _, err := conn.Exec(context.WithoutCancel(t.Context()), sql).ReadAll(); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		})
	}
	for i := range tables - 1 {
		create(fmt.Sprintf("CREATE MATERIALIZED VIEW c%d AS SELECT count(*) AS n FROM t%d", i, i))
		create(fmt.Sprintf("CREATE MATERIALIZED VIEW j%d AS SELECT count(*) AS n FROM t%d a JOIN t%d b ON a.id = b.id", i, i, i+1))
	}
	wg.Wait()
	for i := range tables - 1 {
		for _, view := range []string{"c", "j"} {
			if got := c.Query(fmt.Sprintf("SELECT n FROM %s%d", view, i)); len(got) != 1 || got[0] != "100" {
				t.Errorf("%s%d has %v", view, i, got)
			}
		}
	}
}

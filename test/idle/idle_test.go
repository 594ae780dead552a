// Package idle bounds what views cost that no row reaches.
package idle

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"

	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/test/nodetest"
)

// TestIdleViews bounds the heap that a view holds in a whole node, from the catalog to the engine, and the goroutines: none.
func TestIdleViews(t *testing.T) { // measures the process: not parallel
	const views, limit = 1000, 9 << 10
	n, err := node.Start(t.Context(), node.Config{
		Dir: t.TempDir(), Kafka: "127.0.0.1:0", Postgres: "127.0.0.1:0", HTTP: "127.0.0.1:0", Workers: 2,
		AutoCreateTopics: true, DefaultPartitions: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := nodetest.Connect(t, "postgres://tester@"+n.PostgresAddr()+"/leat?sslmode=disable")
	c.Do(
		"CREATE SOURCE events (k bigint, v bigint) WITH (connector='kafka', topic='events') FORMAT PLAIN ENCODE JSON",
		"CREATE MATERIALIZED VIEW first AS SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k",
	)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, running := heap(), runtime.NumGoroutine()
	for i := range views {
		c.Do(fmt.Sprintf("CREATE MATERIALIZED VIEW v%d AS SELECT k, count(*) AS n, sum(v) AS total FROM events WHERE v > %d GROUP BY k", i, i))
	}
	each := (heap() - before) / views
	t.Logf("%d bytes of heap an idle view", each)
	if name := os.Getenv("LEAT_HEAP_PROFILE"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := pprof.WriteHeapProfile(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if each > limit {
		t.Errorf("an idle view costs %d bytes of heap, the limit is %d", each, limit)
	}
	if more := runtime.NumGoroutine() - running; more > 10 {
		t.Errorf("%d views brought %d goroutines", views, more)
	}
}

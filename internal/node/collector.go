package node

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/leat-io/leat/internal/budget"
)

// collector keeps the Go heap close to what the budgets say while SQL statements hold much: what they allocate and give up comes fast, in large pieces
// without pointers, so that collecting it often costs little. A limit of the operator's (GOMEMLIMIT) stays as it is.
type collector struct {
	queries *budget.Budget
	mu      sync.Mutex
	tight   bool
	rest    int64 // of the heap, for all but statements, when it was made tight
}

const (
	// tightShare is which part of the statements' memory they hold when it begins.
	tightShare = 8
	// tightSlack is what the rest of the node may grow by meanwhile.
	tightSlack = 256 << 20
)

// watchQueries has a collector follow what statements hold.
func watchQueries(queries *budget.Budget) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 || queries.Limit() == 0 {
		return
	}
	c := &collector{queries: queries}
	queries.Watch(queries.Limit()/tightShare, func() { go c.look() })
}

// look makes the collector's limit fit what statements hold now.
func (c *collector) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	tight := c.queries.Used() > c.queries.Limit()/tightShare/2
	if tight == c.tight {
		return
	}
	if c.tight = tight; !tight {
		debug.SetMemoryLimit(math.MaxInt64)
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() == metrics.KindUint64 {
		c.rest = int64(live[0].Value.Uint64())
	}
	limit := c.queries.Limit()
	debug.SetMemoryLimit(c.rest + tightSlack + limit + limit/4)
}

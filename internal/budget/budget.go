// Package budget owns the tree of memory budgets: node, below it the log, the engine, the database and the doors, below those
// their pools. Parts with bounds of their own (the journal's queue, the database's cache) are measured, so that the tree shows all.
//
// What always holds: what a budget has handed out is also counted in every budget above it; Acquire and TryAcquire never
// take one of them over its limit; only Force does, for who is already inside and must go on, and then nobody gets in at the
// edge until enough has been given back. Acquire waits, so it is for the edge (a connection, a source) alone.
package budget

import (
	"context"
	"fmt"
	"sync"
)

// Budget is a pool of bytes, or the sum of the pools below it. Safe for concurrent use.
type Budget struct {
	name   string
	parent *Budget
	tree   *tree

	// Under tree.mu.
	limit    int64
	used     int64
	peak     int64
	children []*Budget
	measure  func() int64
	edge     int64 // see Watch
	above    bool
	crossed  func()
}

// tree is what all budgets of one tree share. One lock for all: every change touches a path up to the root.
type tree struct {
	mu      sync.Mutex
	waiters []*waiter // in order of arrival
}

type waiter struct {
	b     *Budget
	n     int64
	ready chan struct{}
}

// New makes the root of a tree. A limit of 0 is no limit.
func New(name string, limit int64) *Budget {
	return &Budget{name: name, limit: limit, tree: &tree{}}
}

// Child makes a budget below b. A limit of 0 leaves it to the limits above.
func (b *Budget) Child(name string, limit int64) *Budget {
	c := &Budget{name: name, parent: b, tree: b.tree, limit: limit}
	b.tree.mu.Lock()
	b.children = append(b.children, c)
	b.tree.mu.Unlock()
	return c
}

// Measured makes a budget below b of a part that keeps its own bounds: what it uses is asked for when the tree is listed. measure may take
// locks, but none that is held while memory is taken.
func (b *Budget) Measured(name string, limit int64, measure func() int64) *Budget {
	c := b.Child(name, limit)
	c.measure = measure
	return c
}

// Watch has crossed called when use goes above an edge, and when it goes below half of it. It must return at once, and not touch the tree.
func (b *Budget) Watch(edge int64, crossed func()) {
	b.tree.mu.Lock()
	b.edge, b.crossed = edge, crossed
	b.tree.mu.Unlock()
}

// look tells who watches.
func (b *Budget) look() {
	if b.crossed == nil {
		return
	}
	if above := b.used > b.edge; above != b.above && (above || b.used < b.edge/2) {
		b.above = above
		b.crossed()
	}
}

// refresh asks the measured pools below b for what they use.
func (b *Budget) refresh() {
	b.tree.mu.Lock()
	measured := b.measured(nil)
	b.tree.mu.Unlock()
	for _, c := range measured {
		n := max(c.measure(), 0)
		b.tree.mu.Lock()
		if n >= c.used {
			c.take(n - c.used)
		} else {
			c.release(c.used - n)
		}
		b.tree.mu.Unlock()
	}
}

func (b *Budget) measured(dst []*Budget) []*Budget {
	if b.measure != nil {
		dst = append(dst, b)
	}
	for _, c := range b.children {
		dst = c.measured(dst)
	}
	return dst
}

// Close takes b out of the tree, and gives back what it still holds.
func (b *Budget) Close() {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	b.release(b.used)
	if p := b.parent; p != nil {
		for i, c := range p.children {
			if c == b {
				p.children = append(p.children[:i], p.children[i+1:]...)
				break
			}
		}
	}
}

// Name is the pool's name, as in leat_memory_bytes{pool="..."}.
func (b *Budget) Name() string { return b.name }

// Limit is the most that b hands out at the edge; 0 is no limit of its own.
func (b *Budget) Limit() int64 {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	return b.limit
}

// SetLimit changes the limit. A lower one takes nothing away from who has it.
func (b *Budget) SetLimit(limit int64) {
	b.tree.mu.Lock()
	b.limit = limit
	b.wake()
	b.tree.mu.Unlock()
}

// Used is what b and the budgets below it have handed out.
func (b *Budget) Used() int64 {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	return b.used
}

// Peak is the largest Used so far.
func (b *Budget) Peak() int64 {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	return b.peak
}

// Free is how much could be taken now; negative after Force went over a limit. Without any limit on the path it is MaxInt64.
func (b *Budget) Free() int64 {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	free := int64(1<<63 - 1)
	for p := b; p != nil; p = p.parent {
		if p.limit > 0 {
			free = min(free, p.limit-p.used)
		}
	}
	return free
}

// TryAcquire takes n bytes if they are there, and says whether it did.
func (b *Budget) TryAcquire(n int64) bool {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	if b.queued() || !b.fits(n) {
		return false
	}
	b.take(n)
	return true
}

// Acquire takes n bytes, and waits for them in order of arrival. An n that can never fit is an error at once.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	t := b.tree
	t.mu.Lock()
	for p := b; p != nil; p = p.parent {
		if p.limit > 0 && n > p.limit {
			limit := p.limit
			t.mu.Unlock()
			return fmt.Errorf("memory: %d bytes for %s are more than the whole budget %s of %d bytes; raise it or ask for less", n, b.name, p.name, limit)
		}
	}
	if !b.queued() && b.fits(n) {
		b.take(n)
		t.mu.Unlock()
		return nil
	}
	w := &waiter{b: b, n: n, ready: make(chan struct{})}
	t.waiters = append(t.waiters, w)
	t.mu.Unlock()

	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.ready: // both at once: it has the bytes
		b.release(n)
	default:
		for i, o := range t.waiters {
			if o == w {
				t.waiters = append(t.waiters[:i], t.waiters[i+1:]...)
				break
			}
		}
		b.wake() // those behind it may fit
	}
	return fmt.Errorf("memory: waiting for %d bytes of budget %s: %w", n, b.name, ctx.Err())
}

// Force takes n bytes whether or not they are there. For who is inside and cannot wait.
func (b *Budget) Force(n int64) {
	b.tree.mu.Lock()
	b.take(n)
	b.tree.mu.Unlock()
}

// Release gives n bytes back. Giving back more than was taken is a mistake of the caller, and panics.
func (b *Budget) Release(n int64) {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	b.release(n)
}

func (b *Budget) fits(n int64) bool {
	for p := b; p != nil; p = p.parent {
		if p.limit > 0 && p.used+n > p.limit {
			return false
		}
	}
	return true
}

// queued says whether somebody waits on b's path, so that a small request cannot overtake a large one for ever.
func (b *Budget) queued() bool {
	for _, w := range b.tree.waiters {
		if w.b == b {
			return true
		}
	}
	return false
}

func (b *Budget) take(n int64) {
	for p := b; p != nil; p = p.parent {
		p.used += n
		p.peak = max(p.peak, p.used)
		p.look()
	}
}

func (b *Budget) release(n int64) {
	if n < 0 || n > b.used {
		panic(fmt.Sprintf("budget %s: release of %d bytes with %d in use", b.name, n, b.used))
	}
	for p := b; p != nil; p = p.parent {
		p.used -= n
		p.look()
	}
	if n > 0 {
		b.wake()
	}
}

// wake serves waiters in order; one that does not fit holds up only those of the same budget.
func (b *Budget) wake() {
	t := b.tree
	kept := t.waiters[:0]
	for i, w := range t.waiters {
		blocked := false
		for _, o := range kept {
			if o.b == w.b {
				blocked = true
				break
			}
		}
		if blocked || !w.b.fits(w.n) {
			kept = append(kept, t.waiters[i])
			continue
		}
		w.b.take(w.n)
		close(w.ready)
	}
	for i := len(kept); i < len(t.waiters); i++ {
		t.waiters[i] = nil
	}
	t.waiters = kept
}

// Usage is one budget's figures in a listing of the tree.
type Usage struct {
	Path  string // names from the root down, joined by '/'
	Depth int
	Used  int64
	Peak  int64
	Limit int64
	Leaf  bool
}

// Tree lists b and everything below it, parents first, as of one instant.
func (b *Budget) Tree() []Usage {
	b.refresh()
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	return b.list(nil, "", 0)
}

func (b *Budget) list(dst []Usage, above string, depth int) []Usage {
	path := b.name
	if above != "" {
		path = above + "/" + b.name
	}
	dst = append(dst, Usage{Path: path, Depth: depth, Used: b.used, Peak: b.peak, Limit: b.limit, Leaf: len(b.children) == 0})
	for _, c := range b.children {
		dst = c.list(dst, path, depth+1)
	}
	return dst
}

// Pools is Tree with the pools of one path (those of the workers, say) summed up. Their peak is the sum of the peaks.
func (b *Budget) Pools() []Usage {
	var out []Usage
	at := map[string]int{}
	for _, u := range b.Tree() {
		i, ok := at[u.Path]
		if !ok {
			at[u.Path] = len(out)
			out = append(out, u)
			continue
		}
		out[i].Used += u.Used
		out[i].Peak += u.Peak
		out[i].Limit += u.Limit
	}
	return out
}

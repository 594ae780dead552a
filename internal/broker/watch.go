package broker

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Watcher is woken when partitions that it watches have new data. It carries no count: whoever is woken looks again.
// One Watcher may watch any number of partitions; C holds at most one pending wake-up.
type Watcher struct {
	C chan struct{}
}

// NewWatcher returns a watcher that watches nothing yet.
func NewWatcher() *Watcher { return &Watcher{C: make(chan struct{}, 1)} }

// Wake leaves a wake-up in C unless there is one already. It never blocks.
func (w *Watcher) Wake() {
	select {
	case w.C <- struct{}{}:
	default:
	}
}

// Edge is an end of a partition that moves as records arrive.
type Edge uint8

const (
	// EdgeDurable is the high watermark: what Kafka clients read up to.
	EdgeDurable Edge = iota
	// EdgeAppended is the end of what was appended, durable or not: what the engine reads up to.
	EdgeAppended
)

// watchers are those who wait for an edge of one partition. While nobody does, wake costs one atomic load.
type watchers struct {
	n    atomic.Int32
	mu   sync.Mutex
	list []*Watcher
}

func (ws *watchers) add(w *Watcher) {
	ws.mu.Lock()
	ws.list = append(ws.list, w)
	ws.n.Store(int32(len(ws.list)))
	ws.mu.Unlock()
}

func (ws *watchers) remove(w *Watcher) {
	ws.mu.Lock()
	if i := slices.Index(ws.list, w); i >= 0 {
		last := len(ws.list) - 1
		ws.list[i] = ws.list[last]
		ws.list[last] = nil
		ws.list = ws.list[:last]
		if last == 0 {
			ws.list = nil
		}
	}
	ws.n.Store(int32(len(ws.list)))
	ws.mu.Unlock()
}

func (ws *watchers) wake() {
	if ws.n.Load() == 0 {
		return
	}
	ws.mu.Lock()
	for _, w := range ws.list {
		w.Wake()
	}
	ws.mu.Unlock()
}

// Watch wakes w each time the edge moves, and once when the partition is deleted, until Unwatch. Look at the edge after Watch and
// before waiting: what came in between wakes nobody.
func (p *Partition) Watch(w *Watcher, e Edge) { p.edge(e).add(w) }

// Unwatch undoes one Watch.
func (p *Partition) Unwatch(w *Watcher, e Edge) { p.edge(e).remove(w) }

func (p *Partition) edge(e Edge) *watchers {
	if e == EdgeAppended {
		return &p.onAppend
	}
	return &p.onDurable
}

// WatchTopics wakes w each time a topic is made or gets more partitions, until UnwatchTopics.
func (b *Broker) WatchTopics(w *Watcher) { b.onTopics.add(w) }

// UnwatchTopics undoes one WatchTopics.
func (b *Broker) UnwatchTopics(w *Watcher) { b.onTopics.remove(w) }

package journal

import (
	"context"
	"sync"
)

// waiters are the goroutines in Wait, a heap by LSN: each wakes once, when its unit is durable.
type waiters struct {
	mu   sync.Mutex
	heap []*waiter
	free []*waiter // for the next ones: of this journal, for a channel must not be met by another simulation
}

// keptWaiters bounds those that are kept for later.
const keptWaiters = 1024

type waiter struct {
	lsn   LSN
	index int // in the heap; -1 when it is not there
	ready chan struct{}
}

// add returns a waiter that is woken when lsn is durable or the journal fails, or nil if that is so already.
func (w *waiters) add(j *Journal, lsn LSN) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j.Durable() >= lsn || j.failure.Load() != nil {
		return nil
	}
	var x *waiter
	if n := len(w.free); n > 0 {
		x, w.free = w.free[n-1], w.free[:n-1]
	} else {
		x = &waiter{ready: make(chan struct{}, 1)}
	}
	x.lsn, x.index = lsn, len(w.heap)
	w.heap = append(w.heap, x)
	w.up(x.index)
	return x
}

// wake wakes all up to lsn.
func (w *waiters) wake(lsn LSN) {
	w.mu.Lock()
	for len(w.heap) > 0 && w.heap[0].lsn <= lsn {
		x := w.heap[0]
		w.removeAt(0)
		x.ready <- struct{}{}
	}
	w.mu.Unlock()
}

// wait blocks until x is woken or ctx ends, and gives x back.
func (w *waiters) wait(ctx context.Context, x *waiter) error {
	var err error
	select {
	case <-x.ready:
		w.mu.Lock()
	case <-ctx.Done():
		err = ctx.Err()
		w.mu.Lock()
		if x.index >= 0 {
			w.removeAt(x.index)
		} else {
			<-x.ready
		}
	}
	if len(w.free) < keptWaiters {
		w.free = append(w.free, x)
	}
	w.mu.Unlock()
	return err
}

func (w *waiters) removeAt(i int) {
	x, last := w.heap[i], len(w.heap)-1
	w.swap(i, last)
	w.heap[last] = nil
	w.heap = w.heap[:last]
	x.index = -1
	if i < last {
		w.up(i)
		w.down(i)
	}
}

func (w *waiters) swap(i, k int) {
	h := w.heap
	h[i], h[k] = h[k], h[i]
	h[i].index, h[k].index = i, k
}

func (w *waiters) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if w.heap[p].lsn <= w.heap[i].lsn {
			return
		}
		w.swap(i, p)
		i = p
	}
}

func (w *waiters) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(w.heap) {
			return
		}
		if c+1 < len(w.heap) && w.heap[c+1].lsn < w.heap[c].lsn {
			c++
		}
		if w.heap[i].lsn <= w.heap[c].lsn {
			return
		}
		w.swap(i, c)
		i = c
	}
}

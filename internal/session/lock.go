package session

import (
	"context"
	"sync"

	"github.com/leat-io/leat/internal/pgerr"
)

// lockTable is who writes to which table, and who waits for whom. Transactions hold their tables until they end; one that would wait for
// itself through others is refused (40P01).
type lockTable struct {
	mu      sync.Mutex
	waiting map[*tx]*writer
}

// acquire makes t the one that writes to the table; it waits for the one that does.
func (l *lockTable) acquire(ctx context.Context, w *writer, t *tx) error {
	l.mu.Lock()
	if w.holder == nil || w.holder == t {
		w.holder = t
		l.mu.Unlock()
		return nil
	}
	for at := w; at != nil && at.holder != nil; at = l.waiting[at.holder] {
		if at.holder == t {
			l.mu.Unlock()
			return pgerr.New("40P01", "deadlock detected").
				WithDetail("This transaction waits for a table that a transaction holds which, directly or through others, waits for this one.").
				WithHint("Write to tables in the same order in all transactions, and repeat this one.")
		}
	}
	if l.waiting == nil {
		l.waiting = map[*tx]*writer{}
	}
	turn := make(chan struct{})
	w.queue = append(w.queue, waiter{t, turn})
	l.waiting[t] = w
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, t)
	for i, q := range w.queue {
		if q.tx == t {
			w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
			return ctx.Err()
		}
	}
	if w.holder == t { // it was given to us at the same moment
		l.pass(w)
	}
	return ctx.Err()
}

// release lets the next one in.
func (l *lockTable) release(w *writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(w)
}

// pass gives the table to the first that waits; mu is held.
func (l *lockTable) pass(w *writer) {
	w.holder = nil
	if len(w.queue) == 0 {
		return
	}
	next := w.queue[0]
	w.queue = w.queue[1:]
	w.holder = next.tx
	delete(l.waiting, next.tx)
	close(next.turn)
}

type waiter struct {
	tx   *tx
	turn chan struct{}
}

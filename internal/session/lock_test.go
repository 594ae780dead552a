package session

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/leat-io/leat/internal/pgerr"
)

// asks has t acquire the table in the background, and returns when it waits.
func asks(ctx context.Context, l *lockTable, w *writer, t *tx) <-chan error {
	got := make(chan error, 1)
	go func() { got <- l.acquire(ctx, w, t) }()
	for waits := false; !waits; runtime.Gosched() {
		l.mu.Lock()
		waits = l.waiting[t] == w
		l.mu.Unlock()
	}
	return got
}

func mustAcquire(t *testing.T, l *lockTable, w *writer, of *tx) {
	t.Helper()
	if err := l.acquire(t.Context(), w, of); err != nil {
		t.Fatal(err)
	}
}

func TestTablesAreGivenInTurn(t *testing.T) {
	t.Parallel()
	var l lockTable
	var w writer
	first, second, third := &tx{bytes: 1}, &tx{bytes: 2}, &tx{bytes: 3}
	mustAcquire(t, &l, &w, first)
	mustAcquire(t, &l, &w, first) // it has it
	two := asks(t.Context(), &l, &w, second)
	three := asks(t.Context(), &l, &w, third)
	for i, next := range []<-chan error{two, three} {
		l.release(&w)
		if err := <-next; err != nil {
			t.Errorf("waiter %d: %v", i, err)
		}
	}
	l.release(&w)
	if w.holder != nil || len(l.waiting) > 0 || len(w.queue) > 0 {
		t.Errorf("left behind: %+v, %d wait", w, len(l.waiting))
	}
}

func TestADeadlockIsRefused(t *testing.T) {
	t.Parallel()
	var l lockTable
	var a, b, c writer
	first, second, third := &tx{bytes: 1}, &tx{bytes: 2}, &tx{bytes: 3}
	mustAcquire(t, &l, &a, first)
	mustAcquire(t, &l, &b, second)
	mustAcquire(t, &l, &c, third)
	one := asks(t.Context(), &l, &b, first)
	two := asks(t.Context(), &l, &c, second)
	var pe *pgerr.Error
	if err := l.acquire(t.Context(), &a, third); !errors.As(err, &pe) || pe.Code != "40P01" {
		t.Fatalf("the third waits for itself through two others: %v", err)
	}
	l.release(&c) // as its transaction ends
	if err := <-two; err != nil {
		t.Error(err)
	}
	l.release(&b)
	if err := <-one; err != nil {
		t.Error(err)
	}
}

func TestWhoGivesUpWaitingLeavesNothing(t *testing.T) {
	t.Parallel()
	var l lockTable
	var w writer
	first, second, third := &tx{bytes: 1}, &tx{bytes: 2}, &tx{bytes: 3}
	mustAcquire(t, &l, &w, first)
	ctx, cancel := context.WithCancel(t.Context())
	two := asks(ctx, &l, &w, second)
	three := asks(t.Context(), &l, &w, third)
	cancel()
	if err := <-two; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up: %v", err)
	}
	l.release(&w)
	if err := <-three; err != nil || w.holder != third {
		t.Errorf("the next one: %v", err)
	}
	if len(l.waiting) > 0 {
		t.Errorf("%d are said to wait", len(l.waiting))
	}
}

// TestGivenAndGivenUpAtOnce releases a table to one whose context has ended: whichever comes first, the next one gets it.
func TestGivenAndGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	for range 200 {
		var l lockTable
		var w writer
		first, second, third := &tx{bytes: 1}, &tx{bytes: 2}, &tx{bytes: 3}
		mustAcquire(t, &l, &w, first)
		ctx, cancel := context.WithCancel(t.Context())
		two := asks(ctx, &l, &w, second)
		three := asks(t.Context(), &l, &w, third)
		go cancel()
		l.release(&w)
		if err := <-two; err == nil {
			l.release(&w)
		}
		if err := <-three; err != nil {
			t.Fatal(err)
		}
	}
}

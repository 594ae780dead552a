// Package clock is the seam to time. Code that waits, ages or expires anything takes a Clock, so that a test or a seeded
// simulation decides what time it is.
//
// What always holds: a Manual clock moves only when it is told to, never backwards, and fires what became due in order of
// the due time, in the goroutine that moved it.
package clock

import (
	"sort"
	"sync"
	"time"
)

// Clock tells the time and calls back later.
type Clock interface {
	Now() time.Time
	// AfterFunc calls fn, in a goroutine of its own choosing, once d has passed.
	AfterFunc(d time.Duration, fn func()) Timer
	// NewTimer sends the time on C once d has passed.
	NewTimer(d time.Duration) Timer
}

// Timer is one pending call or send. C is nil for a timer made by AfterFunc.
type Timer interface {
	C() <-chan time.Time
	// Stop reports whether it prevented the timer from firing.
	Stop() bool
	// Reset arms the timer again; it reports whether it had been pending.
	Reset(d time.Duration) bool
}

// Real is the system's clock.
var Real Clock = realClock{}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, fn func()) Timer {
	return realTimer{t: time.AfterFunc(d, fn)}
}

func (realClock) NewTimer(d time.Duration) Timer {
	t := time.NewTimer(d)
	return realTimer{t: t, c: t.C}
}

type realTimer struct {
	t *time.Timer
	c <-chan time.Time
}

func (t realTimer) C() <-chan time.Time        { return t.c }
func (t realTimer) Stop() bool                 { return t.t.Stop() }
func (t realTimer) Reset(d time.Duration) bool { return t.t.Reset(d) }

// Manual is a clock that stands still until Advance or Set.
type Manual struct {
	mu      sync.Mutex
	now     time.Time
	seq     uint64
	pending []*manualTimer
}

// NewManual returns a clock that shows t.
func NewManual(t time.Time) *Manual { return &Manual{now: t} }

// Now returns the time the clock was last moved to.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Advance moves the clock by d and fires what became due.
func (m *Manual) Advance(d time.Duration) { m.Set(m.Now().Add(d)) }

// Set moves the clock to t and fires what became due; a t in the past changes nothing.
func (m *Manual) Set(t time.Time) {
	for {
		m.mu.Lock()
		if len(m.pending) == 0 || m.pending[0].due.After(t) {
			if t.After(m.now) {
				m.now = t
			}
			m.mu.Unlock()
			return
		}
		next := m.pending[0]
		m.pending = m.pending[1:]
		if next.due.After(m.now) {
			m.now = next.due
		}
		now := m.now
		m.mu.Unlock()
		// Outside the lock: a callback may well arm another timer.
		next.fire(now)
	}
}

// NextDue returns when the earliest pending timer fires; a simulation jumps there.
func (m *Manual) NextDue() (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pending) == 0 {
		return time.Time{}, false
	}
	return m.pending[0].due, true
}

// AfterFunc implements Clock; fn runs in the goroutine that moves the clock.
func (m *Manual) AfterFunc(d time.Duration, fn func()) Timer {
	t := &manualTimer{clock: m, fn: fn}
	t.Reset(d)
	return t
}

// NewTimer implements Clock.
func (m *Manual) NewTimer(d time.Duration) Timer {
	t := &manualTimer{clock: m, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

type manualTimer struct {
	clock *Manual
	due   time.Time
	seq   uint64
	fn    func()
	c     chan time.Time
}

func (t *manualTimer) C() <-chan time.Time { return t.c }

func (t *manualTimer) fire(now time.Time) {
	if t.fn != nil {
		t.fn()
		return
	}
	select {
	case t.c <- now:
	default:
	}
}

func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.remove()
}

func (t *manualTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.remove()
	if d < 0 {
		d = 0
	}
	t.due = t.clock.now.Add(d)
	t.clock.seq++
	t.seq = t.clock.seq
	p := t.clock.pending
	i := sort.Search(len(p), func(i int) bool { return p[i].due.After(t.due) })
	p = append(p, nil)
	copy(p[i+1:], p[i:])
	p[i] = t
	t.clock.pending = p
	return was
}

// remove takes t off the pending list; the clock's lock is held.
func (t *manualTimer) remove() bool {
	for i, p := range t.clock.pending {
		if p == t {
			t.clock.pending = append(t.clock.pending[:i:i], t.clock.pending[i+1:]...)
			return true
		}
	}
	return false
}

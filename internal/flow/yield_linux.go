package flow

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// turn is how long a worker keeps a core before it asks whether another thread waits for it. The kernel takes a core away at a tick of its clock only,
// every 4 ms where it has 250 of them a second, and somebody who produces a record or runs a query waits for several threads one after the other.
const turn = time.Millisecond

// courtesy gives up the core at the end of each turn. Nothing is lost where nobody waits.
type courtesy struct{ since time.Time }

func (c *courtesy) offer() {
	now := time.Now()
	if c.since.IsZero() {
		c.since = now
	}
	if now.Sub(c.since) < turn {
		return
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // the scheduler of Go need not know: it is over at once, or was due anyway
	c.since = time.Now()
}

// Package crash kills a real server with SIGKILL, again and again, while real clients work, and checks in the end that nothing acknowledged
// is missing and that every result is there exactly once.
package crash

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	killsFlag   = flag.Int("kills", 10, "how often the server is killed")
	recordsFlag = flag.Int("records", 60_000, "how many records are produced meanwhile")
	binaryFlag  = flag.String("binary", "", "the leat binary to test; built if not given")
	seedFlag    = flag.Uint64("seed", 0, "seed of the random choices; 0 takes one from the clock")
)

// patience bounds every wait for something that must happen.
const patience = 2 * time.Minute

// seed returns the test's seed and prints it.
func seed(t testing.TB) uint64 {
	s := *seedFlag
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", s)
	return s
}

// killer kills the server at random moments: while work is done, and sometimes while it is still starting.
type killer struct {
	s      *server
	rng    *rand.Rand
	killed int
	during int // of those, before the server was ready
}

// round waits until worked says that enough was done, and a little longer, kills the server and starts it again.
func (k *killer) round(t testing.TB, ctx context.Context, worked func() bool) {
	t.Helper()
	eventually(t, ctx, "work between two kills", worked)
	pause(ctx, time.Duration(k.rng.Int64N(int64(150*time.Millisecond))))
	k.s.kill()
	k.killed++
	for k.rng.IntN(4) == 0 {
		if k.s.start(time.After(time.Duration(k.rng.Int64N(int64(300 * time.Millisecond))))) {
			k.s.kill()
		}
		k.killed++
		k.during++
	}
	k.s.start(nil)
}

// pause waits for d or for ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// eventually waits until cond holds.
func eventually(t testing.TB, ctx context.Context, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); pause(ctx, 2*time.Millisecond) {
		if ctx.Err() != nil || time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s: %v", what, context.Cause(ctx))
		}
	}
}

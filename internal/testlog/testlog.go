// Package testlog keeps what is logged, for tests that look into it while it is written.
package testlog

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Text is an io.Writer. Safe for concurrent use; the zero value is empty.
type Text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// String is all that was written so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// Count is how often s was written.
func (t *Text) Count(s string) int { return strings.Count(t.String(), s) }

// Await waits until s was written, for half a minute.
func (t *Text) Await(tb testing.TB, s string) {
	tb.Helper()
	for deadline := time.Now().Add(30 * time.Second); t.Count(s) == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			tb.Fatalf("%q was not said:\n%s", s, t)
		}
	}
}

package postgres

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestASlowClientMayTakeItsTime: the timeout is for each piece of an answer. One that takes nothing is given up.
func TestASlowClientMayTakeItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		const timeout, pieces = time.Second, 5
		from := time.Now()
		done := make(chan error, 1)
		go func() {
			n, err := deadlineWriter{ours, timeout}.Write(make([]byte, pieces*writePiece))
			if err == nil && n != pieces*writePiece {
				err = io.ErrShortWrite
			}
			done <- err
		}()
		piece := make([]byte, writePiece)
		for range pieces {
			time.Sleep(timeout - time.Millisecond)
			if _, err := io.ReadFull(theirs, piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil || time.Since(from) < 4*timeout {
			t.Fatalf("after %s: %v", time.Since(from), err)
		}
		if _, err := (deadlineWriter{ours, timeout}).Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a client that takes nothing: %v", err)
		}
	})
}

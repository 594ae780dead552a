package postgres

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/leat-io/leat/internal/pgerr"
)

// watchAfter is how long a statement may run before somebody looks whether its client is still there.
const watchAfter = 100 * time.Millisecond

// watch ends a statement whose client has closed the connection. Nobody reads from it meanwhile, so the watcher may: it looks into what has come, and takes nothing. A
// client that has sent so much ahead that the buffer is full is not seen going.
type watch struct {
	c     *conn
	timer *time.Timer
	done  chan struct{} // closed when the watcher has left the connection
}

func (c *conn) watch(cancel context.CancelCauseFunc) *watch {
	w := &watch{c: c, done: make(chan struct{})}
	w.timer = time.AfterFunc(watchAfter, func() {
		defer close(w.done)
		if gone := w.look(); gone != nil {
			cancel(pgerr.Newf("08006", "the client has closed the connection: %v", gone))
		}
	})
	return w
}

// look returns when the client is gone, with how, or when there is nothing more to see.
func (w *watch) look() error {
	r := w.c.in.r
	for n := r.Buffered() + 1; ; n++ {
		_, err := r.Peek(n)
		switch {
		case err == nil:
			n = max(n, r.Buffered())
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, bufio.ErrBufferFull):
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
			return io.EOF
		default:
			return err
		}
	}
}

// end takes the watcher away from the connection.
func (w *watch) end() error {
	if w.timer.Stop() {
		return nil
	}
	if err := w.c.deadline(time.Unix(1, 0)); err != nil {
		return err
	}
	<-w.done
	return w.c.deadline(time.Time{})
}

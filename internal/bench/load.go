package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A load is a thread that produces the same batch again and again over connections of its own, each with so many requests that are not yet
// acknowledged. It shares the machine with what it measures, so it does as little as it can: frames are encoded once, acknowledgements are read in
// place, and the thread's CPU time is known apart from the broker's.
type load struct {
	conns []*loadConn
	took  []time.Duration
	cpu   time.Duration
}

type loadConn struct {
	fd     int
	file   interface{ Close() error }
	frame  []byte
	sent   []time.Time // of the requests that are not acknowledged, in order
	id     uint32      // of the last request
	acked  uint32      // that of the last acknowledgement
	last   int64       // offset
	answer []byte
	have   int
}

// dial adds a connection; frame is a produce request for one partition.
func (l *load) dial(ctx context.Context, addr string, frame []byte) error {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	f, err := c.(*net.TCPConn).File() // a blocking descriptor of its own
	if err != nil {
		return err
	}
	fd := int(f.Fd())
	if err := unix.SetNonblock(fd, false); err != nil {
		return errors.Join(err, f.Close())
	}
	limit := unix.NsecToTimeval(int64(loadTimeout))
	for _, opt := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, opt, &limit); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	l.conns = append(l.conns, &loadConn{fd: fd, file: f, frame: append([]byte(nil), frame...), last: -1, answer: make([]byte, 4096)})
	return nil
}

const loadTimeout = 30 * time.Second

func (l *load) close() {
	for _, c := range l.conns {
		_ = c.file.Close()
	}
}

// run produces until stop, and until what was sent is acknowledged. window is how many requests of a connection are on their way at a time.
func (l *load) run(stop *atomic.Bool, window int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadCPU()
	defer func() { l.cpu = threadCPU() - start }()
	ep, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	defer unix.Close(ep)
	pending := 0
	for i, c := range l.conns {
		if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return err
		}
		for range window {
			if err := c.send(); err != nil {
				return err
			}
			pending++
		}
	}
	events := make([]unix.EpollEvent, len(l.conns))
	for pending > 0 {
		n := 1
		if len(l.conns) > 1 { // otherwise there is nothing to choose from
			n, err = unix.EpollWait(ep, events, int(loadTimeout.Milliseconds()))
		}
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("no acknowledgement within %s", loadTimeout)
		}
		for _, e := range events[:n] {
			c := l.conns[e.Fd]
			acks, err := c.receive()
			if err != nil {
				return err
			}
			for range acks {
				l.took = append(l.took, time.Since(c.sent[0]))
				c.sent = c.sent[:copy(c.sent, c.sent[1:])]
				if stop.Load() {
					pending--
				} else if err := c.send(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *loadConn) send() error {
	c.id++
	binary.BigEndian.PutUint32(c.frame[8:], c.id) // behind the length, the key and the version
	c.sent = append(c.sent, time.Now())
	for b := c.frame; len(b) > 0; {
		n, err := unix.Write(c.fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("sending a produce request: %w", err)
		}
		b = b[n:]
	}
	return nil
}

// receive reads what there is of answers, and returns how many were whole and good.
func (c *loadConn) receive() (acks int, err error) {
	n, err := unix.Read(c.fd, c.answer[c.have:])
	switch {
	case err == unix.EINTR:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("reading an acknowledgement: %w", err)
	case n == 0:
		return 0, errors.New("the broker closed a connection")
	}
	c.have += n
	b := c.answer[:c.have]
	for len(b) >= 4 {
		size := 4 + int64(binary.BigEndian.Uint32(b))
		if size > int64(len(c.answer)) {
			return acks, fmt.Errorf("an answer of %d bytes where an acknowledgement is due", size)
		}
		if int64(len(b)) < size {
			break
		}
		if err := c.check(b[4:size]); err != nil {
			return acks, err
		}
		b = b[size:]
		acks++
	}
	c.have = copy(c.answer, b)
	return acks, nil
}

// check takes an acknowledgement of one batch apart (version 9 of the response).
func (c *loadConn) check(b []byte) error {
	malformed := errors.New("an acknowledgement is malformed")
	if len(b) < 8 || b[4] != 0 || b[5] != 2 { // no tags, one topic
		return malformed
	}
	c.acked++
	if id := binary.BigEndian.Uint32(b); id != c.acked {
		return fmt.Errorf("an acknowledgement of request %d where %d is due", id, c.acked)
	}
	name := int(b[6]) - 1
	if b = b[7:]; name < 0 || len(b) < name+1+4+2+8 || b[name] != 2 { // one partition
		return malformed
	}
	b = b[name+1+4:]
	if code := binary.BigEndian.Uint16(b); code != 0 {
		return fmt.Errorf("the broker answered with error %d", code)
	}
	offset := int64(binary.BigEndian.Uint64(b[2:]))
	if offset <= c.last {
		return fmt.Errorf("offset %d was acknowledged after %d", offset, c.last)
	}
	c.last = offset
	return nil
}

// threadCPU is what the calling thread has used.
func threadCPU() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(unix.RUSAGE_THREAD, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

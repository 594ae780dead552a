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

// A load is a thread that produces the same batch again and again over connections of its own, each waiting for its acknowledgement before
// the next. It shares the machine with what it measures, so it does as little as it can: frames are encoded once, acknowledgements are read in
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
	sent   time.Time
	id     uint32
	last   int64 // offset
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

// run produces until stop, and until what was sent is acknowledged.
func (l *load) run(stop *atomic.Bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadCPU()
	defer func() { l.cpu = threadCPU() - start }()
	if len(l.conns) == 1 { // nothing to choose from
		c := l.conns[0]
		for !stop.Load() {
			if err := c.send(); err != nil {
				return err
			}
			for done := false; !done; {
				var err error
				if done, err = c.receive(); err != nil {
					return err
				}
			}
			l.took = append(l.took, time.Since(c.sent))
		}
		return nil
	}
	ep, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	defer unix.Close(ep)
	for i, c := range l.conns {
		if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return err
		}
		if err := c.send(); err != nil {
			return err
		}
	}
	events := make([]unix.EpollEvent, len(l.conns))
	for pending := len(l.conns); pending > 0; {
		n, err := unix.EpollWait(ep, events, int(loadTimeout.Milliseconds()))
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
			done, err := c.receive()
			if err != nil {
				return err
			}
			if !done {
				continue
			}
			l.took = append(l.took, time.Since(c.sent))
			if stop.Load() {
				pending--
				continue
			}
			if err := c.send(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *loadConn) send() error {
	c.id++
	binary.BigEndian.PutUint32(c.frame[8:], c.id) // behind the length, the key and the version
	c.sent, c.have = time.Now(), 0
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

// receive reads what there is of the answer; done says that it was whole and good.
func (c *loadConn) receive() (done bool, err error) {
	n, err := unix.Read(c.fd, c.answer[c.have:])
	switch {
	case err == unix.EINTR:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading an acknowledgement: %w", err)
	case n == 0:
		return false, errors.New("the broker closed a connection")
	}
	c.have += n
	if c.have < 4 {
		return false, nil
	}
	size := int64(binary.BigEndian.Uint32(c.answer)) + 4
	if size > int64(len(c.answer)) || int64(c.have) > size {
		return false, fmt.Errorf("an answer of %d bytes where an acknowledgement is due", size)
	}
	if int64(c.have) < size {
		return false, nil
	}
	return true, c.check(c.answer[4:size])
}

// check takes an acknowledgement of one batch apart (version 9 of the response).
func (c *loadConn) check(b []byte) error {
	malformed := errors.New("an acknowledgement is malformed")
	if len(b) < 8 || b[4] != 0 || b[5] != 2 { // no tags, one topic
		return malformed
	}
	if id := binary.BigEndian.Uint32(b); id != c.id {
		return fmt.Errorf("an acknowledgement of request %d where %d is due", id, c.id)
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

package kafka

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-io/leat/internal/commitlog"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// conn is one client.
type conn struct {
	s      *Server
	nc     net.Conn
	remote string // host of the client, as groups show it
	ctx    context.Context
	cancel context.CancelFunc
	queue  chan pending // from the reader to the writer; its capacity bounds what is in flight

	stopping atomic.Bool

	queued  atomic.Int64  // bytes of requests in the queue, without what is produced, which is not kept
	drained chan struct{} // they have become less

	// The reader's:
	in        *bufio.Reader // small requests come with one system call; large ones pass it by
	frame     []byte        // reused for small produce requests
	clientID  string        // of the last request: most often it is that of the next
	lastRead  time.Time     // when the last request had been read
	readArmed time.Time     // when the deadline was set

	// The writer's:
	out        []byte // responses that are ready and not sent
	writeArmed time.Time
}

// pending is a request that has been read and has not been answered: what is produced, or anything else as a function.
type pending struct {
	header   requestHeader
	start    time.Time
	produced *produceCall
	run      func(ctx context.Context) (response, error)
	size     int // of the request, if it is kept until then
}

// ready says that the answer has nothing to wait for.
func (p *pending) ready() bool { return p.produced != nil && p.produced.ready() }

// response is what is written behind the response header.
type response interface {
	// appendTo appends the body to dst. What goes from a file to the socket without passing through here is in parts.
	appendTo(dst []byte) (body []byte, parts []part)
	// release gives back what the response holds, written or not.
	release()
	// heavy says that it holds memory that others wait for, until it is sent.
	heavy() bool
}

// part is a piece of a response that is not in its buffer: it comes where the buffer has reached the length at.
type part struct {
	at    int
	chunk commitlog.Chunk
}

// plain is a response without such pieces.
type plain struct{ kmsg.Response }

func (p plain) appendTo(dst []byte) ([]byte, []part) { return p.AppendTo(dst), nil }
func (plain) release()                               {}
func (plain) heavy() bool                            { return false }

type requestHeader struct {
	key, version  int16
	correlationID int32
	clientID      string
	flexible      bool
}

// errDrop ends the connection without an answer.
var errDrop = errors.New("the connection is closed")

func newConn(s *Server, nc net.Conn) *conn {
	ctx, cancel := context.WithCancel(s.ctx)
	c := &conn{s: s, nc: nc, ctx: ctx, cancel: cancel, queue: make(chan pending, s.o.MaxInFlight), drained: make(chan struct{}, 1), in: bufio.NewReaderSize(nc, 8<<10)}
	c.remote = nc.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(c.remote); err == nil {
		c.remote = "/" + host
	}
	return c
}

// serve runs the connection to its end.
func (c *conn) serve() {
	c.s.metrics.connections(1)
	defer c.s.metrics.connections(-1)
	defer c.s.forget(c)
	defer c.nc.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.guard("write", c.writeLoop)
		// Nothing can be answered any more: wake the reader, and let it see that.
		c.cancel()
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
		for range c.queue { // what is left is dropped
		}
	}()
	c.guard("read", c.readLoop)
	if !c.stopping.Load() {
		c.cancel() // the client is gone: nobody waits for what is pending
	}
	close(c.queue)
	<-done
	c.cancel()
}

// guard runs fn; a panic in it ends this connection only.
func (c *conn) guard(what string, fn func() error) {
	defer func() {
		if r := recover(); r != nil {
			c.s.log.Error("a bug ended a connection; the others go on", "in", what, "client", c.nc.RemoteAddr(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			c.cancel()
		}
	}()
	err := fn()
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, errDrop), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		c.s.log.Debug("connection ended", "in", what, "client", c.nc.RemoteAddr(), "err", err)
	}
}

// stopReading lets what was read be answered and takes nothing more. Waits in long polls and groups end.
func (c *conn) stopReading() {
	c.stopping.Store(true)
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	c.cancel()
}

func (c *conn) readLoop() error {
	var head [4]byte
	for {
		if err := c.awaitFrame(); err != nil {
			return err
		}
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return err
		}
		n := int32(binary.BigEndian.Uint32(head[:]))
		if n < minRequestBytes || n > c.s.o.MaxRequestBytes {
			return fmt.Errorf("a request of %d bytes; between %d and %d are taken", n, minRequestBytes, c.s.o.MaxRequestBytes)
		}
		if err := c.readRequest(int(n)); err != nil {
			return err
		}
	}
}

// awaitFrame arms the idle timeout, unless the connection is to take nothing more.
func (c *conn) awaitFrame() error {
	now := c.lastRead
	if now.IsZero() {
		now = time.Now()
	}
	if now.Sub(c.readArmed) >= c.s.o.IdleTimeout/coarse {
		if err := c.nc.SetReadDeadline(now.Add(c.s.o.IdleTimeout)); err != nil {
			return err
		}
		c.readArmed = now
	}
	if c.stopping.Load() || c.ctx.Err() != nil { // set meanwhile, and overwritten by the line above
		return errDrop
	}
	return nil
}

// coarse is by which part of itself a timeout may be shorter than it says: setting a deadline anew for every request costs more than looking at the clock.
const coarse = 8

// minRequestBytes is the header of a request without a client id.
const minRequestBytes = 8

// Frames up to smallFrame do not count against the memory of all connections, and are read in one piece. Larger ones are believed only as far as they
// have arrived, unless there is a buffer for them already.
const (
	smallFrame = 64 << 10
	keepFrame  = 1 << 20
	// controlFrame bounds every request but produce: their arrays decode into structures many times as large.
	controlFrame = 16 << 20
	decodedRatio = 16
)

// largeFrames are buffers for large produce requests, shared by all connections.
var largeFrames sync.Pool // of *[]byte

func (c *conn) readRequest(n int) error {
	if cap(c.frame) < min(n, smallFrame) {
		c.frame = make([]byte, min(n, smallFrame))
	}
	head := c.frame[:minRequestBytes]
	if _, err := io.ReadFull(c.in, head); err != nil {
		return err
	}
	key := int16(binary.BigEndian.Uint16(head))
	if n <= smallFrame {
		frame := c.frame[:n]
		if _, err := io.ReadFull(c.in, frame[minRequestBytes:]); err != nil {
			return err
		}
		if key != keyProduce {
			c.frame = nil // the request keeps pieces of it
		}
		return c.take(frame)
	}

	weight := int64(n)
	if key != keyProduce {
		if n > controlFrame {
			return fmt.Errorf("a request of %d bytes for %s; %d are taken", n, kmsg.NameForKey(key), controlFrame)
		}
		weight *= decodedRatio
	}
	weight = min(weight, c.s.o.RequestMemory)
	if err := c.s.memory.Acquire(c.ctx, weight); err != nil {
		return err
	}
	defer c.s.memory.Release(weight)
	var buf []byte
	if key == keyProduce {
		if pooled, ok := largeFrames.Get().(*[]byte); ok {
			buf = *pooled
		}
	}
	frame, err := c.readFrame(buf, head, n)
	if err != nil {
		return err
	}
	if err := c.take(frame); err != nil {
		return err
	}
	if key == keyProduce {
		largeFrames.Put(&frame)
	}
	return nil
}

// take works on a whole frame and hands what is to be answered to the writer.
func (c *conn) take(frame []byte) error {
	c.s.metrics.read(4 + len(frame))
	p, err := c.accept(frame)
	if err != nil {
		return err
	}
	c.lastRead = p.start
	if p.run == nil && p.produced == nil {
		return nil // acks=0
	}
	if p.run != nil {
		p.size = len(frame)
		c.awaitRoom(p.size)
	}
	c.queue <- p // the writer empties the queue to the end, whatever happens to it
	return nil
}

// queueBytes is how many bytes of requests wait in a connection's queue, if there is more than one.
const queueBytes = smallFrame

// awaitRoom waits until the queue has room for a request of n bytes: a client that asks, and does not take the answers, is read no further.
func (c *conn) awaitRoom(n int) {
	for {
		if have := c.queued.Load(); have == 0 || have+int64(n) <= queueBytes {
			c.queued.Add(int64(n))
			return
		}
		select {
		case <-c.drained:
		case <-c.ctx.Done(): // nothing is answered any more, or what was read is
			c.queued.Add(int64(n))
			return
		}
	}
}

// readFrame reads a frame of which head is there already, into buf as far as that has room, growing as it arrives.
func (c *conn) readFrame(buf, head []byte, n int) ([]byte, error) {
	if cap(buf) < smallFrame {
		buf = make([]byte, smallFrame)
	}
	frame := buf[:min(n, cap(buf))]
	have := copy(frame, head)
	for {
		if _, err := io.ReadFull(c.in, frame[have:]); err != nil {
			return nil, err
		}
		have = len(frame)
		if have == n {
			return frame, nil
		}
		grown := make([]byte, min(n, 4*have))
		copy(grown, frame)
		frame = grown
	}
}

// accept takes a whole frame apart, and sequences what is produced.
func (c *conn) accept(frame []byte) (pending, error) {
	h, body, err := parseHeader(frame, c.clientID)
	if err != nil {
		return pending{}, err
	}
	c.clientID = h.clientID
	p := pending{header: h, start: time.Now()}
	a := apis[h.key]
	if a == nil {
		return pending{}, fmt.Errorf("API key %d (%s) is not served", h.key, kmsg.NameForKey(h.key))
	}
	if !a.serves(h.version) {
		if h.key == keyAPIVersions {
			p.run = func(context.Context) (response, error) { return unsupportedAPIVersions(), nil }
			return p, nil
		}
		return pending{}, fmt.Errorf("%s version %d is not served; %d to %d are", a.name(), h.version, a.min, a.max)
	}
	if h.key == keyProduce {
		p.produced, err = c.produce(&p.header, body)
		return p, err
	}
	req := kmsg.RequestForKey(h.key)
	req.SetVersion(h.version)
	if err := req.ReadFrom(body); err != nil {
		return pending{}, fmt.Errorf("%s version %d is malformed: %w", a.name(), h.version, err)
	}
	if fetch, ok := req.(*kmsg.FetchRequest); ok {
		p.run = func(ctx context.Context) (response, error) { return c.fetch(ctx, fetch) }
		return p, nil
	}
	p.run = func(ctx context.Context) (response, error) {
		resp, err := a.handle(ctx, call{c, p.header}, req)
		if err != nil {
			return nil, err
		}
		if resp == nil {
			return nil, errDrop
		}
		return plain{resp}, nil
	}
	return p, nil
}

// parseHeader reads the request header, whose version depends on the API. The client's id is most often the one it gave before.
func parseHeader(frame []byte, before string) (h requestHeader, body []byte, err error) {
	bad := func() (requestHeader, []byte, error) {
		return h, nil, errors.New("a request header is malformed")
	}
	if len(frame) < minRequestBytes {
		return bad()
	}
	h.key = int16(binary.BigEndian.Uint16(frame))
	h.version = int16(binary.BigEndian.Uint16(frame[2:]))
	h.correlationID = int32(binary.BigEndian.Uint32(frame[4:]))
	frame = frame[minRequestBytes:]
	if len(frame) < 2 {
		return bad()
	}
	n := int(int16(binary.BigEndian.Uint16(frame)))
	frame = frame[2:]
	if n > len(frame) {
		return bad()
	}
	if n > 0 {
		if h.clientID = before; string(frame[:n]) != before {
			h.clientID = string(frame[:n])
		}
		frame = frame[n:]
	}
	if h.key == keyAPIVersions && !apis[h.key].serves(h.version) {
		return h, nil, nil // of a future, whose header nobody here knows; the answer is the same whatever it says
	}
	h.flexible = flexibleFrom(h.key, h.version)
	if h.flexible {
		if frame, err = skipTags(frame); err != nil {
			return bad()
		}
	}
	return h, frame, nil
}

// flexibleSince is, by API key, the first version whose request header has tags.
var flexibleSince = func() (since [128]int16) {
	for key := range since {
		since[key] = 1<<15 - 1
		req := kmsg.RequestForKey(int16(key))
		if req == nil {
			continue
		}
		for v := int16(0); v <= req.MaxVersion(); v++ {
			if req.SetVersion(v); req.IsFlexible() {
				since[key] = v
				break
			}
		}
	}
	return since
}()

func flexibleFrom(key, version int16) bool {
	return key >= 0 && int(key) < len(flexibleSince) && version >= flexibleSince[key]
}

// writeLoop answers in order. Responses that are ready together leave together.
func (c *conn) writeLoop() error {
	for p := range c.queue {
		if len(c.out) > 0 && !p.ready() {
			if err := c.flush(); err != nil {
				return err
			}
		}
		if err := c.answer(&p); err != nil {
			return err
		}
		if p.size > 0 {
			c.queued.Add(-int64(p.size))
			select {
			case c.drained <- struct{}{}:
			default:
			}
		}
		if len(c.queue) == 0 || len(c.out) >= smallFrame {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer puts the response into the buffer, or sends it if there is more to it than fits one.
func (c *conn) answer(p *pending) error {
	var resp response
	var err error
	if p.produced != nil {
		resp, err = p.produced.await()
	} else {
		resp, err = p.run(c.ctx)
	}
	if err != nil {
		return err
	}
	defer resp.release()
	from := len(c.out)
	buf := append(c.out, 0, 0, 0, 0)
	buf = binary.BigEndian.AppendUint32(buf, uint32(p.header.correlationID))
	// The header of an ApiVersions response is always version 0: a client that asks does not know yet what it can expect.
	if p.header.flexible && p.header.key != keyAPIVersions {
		buf = append(buf, 0)
	}
	buf, parts := resp.appendTo(buf)
	size := len(buf) - from - 4
	for i := range parts {
		size += parts[i].chunk.Len()
	}
	binary.BigEndian.PutUint32(buf[from:], uint32(size))
	c.out = buf
	if len(parts) > 0 {
		err = c.write(parts)
	}
	if err == nil && resp.heavy() {
		err = c.flush()
	}
	c.s.metrics.wrote(4 + size)
	c.s.metrics.request(p.header.key, time.Since(p.start))
	return err
}

// flush sends what is in the buffer.
func (c *conn) flush() error {
	err := c.writeBytes(c.out)
	if c.out = c.out[:0]; cap(c.out) > keepFrame {
		c.out = nil
	}
	return err
}

// write sends the buffer with the parts in their places.
func (c *conn) write(parts []part) error {
	sent := 0
	for i := range parts {
		if err := c.writeBytes(c.out[sent:parts[i].at]); err != nil {
			return err
		}
		sent = parts[i].at
		if err := c.armWrite(); err != nil {
			return err
		}
		if err := c.writeChunk(&parts[i].chunk); err != nil {
			return err
		}
	}
	rest := copy(c.out, c.out[sent:])
	c.out = c.out[:rest]
	return nil
}

// writePiece is how much a client has to take within the write timeout. One that is slow, and goes on taking, may take all the time it needs.
const writePiece = 256 << 10

func (c *conn) writeBytes(b []byte) error {
	for len(b) > 0 {
		n, err := pieces{c}.Write(b[:min(len(b), writePiece)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// pieces writes to the client, which has the write timeout for each piece.
type pieces struct{ *conn }

// Write implements io.Writer.
func (p pieces) Write(b []byte) (int, error) {
	if err := p.armWrite(); err != nil {
		return 0, err
	}
	return p.nc.Write(b)
}

// armWrite gives the client a while to take the next piece; less when the server is stopping.
func (c *conn) armWrite() error {
	now, d := time.Now(), c.s.o.WriteTimeout
	switch {
	case c.stopping.Load():
		d = min(d, time.Second)
	case now.Sub(c.writeArmed) < d/coarse:
		return nil
	}
	c.writeArmed = now
	return c.nc.SetWriteDeadline(now.Add(d))
}

// Package postgres is the PostgreSQL door: version 3 of the frontend/backend protocol, simple and extended, text and binary. It translates between
// the protocol and sessions (package session), and knows nothing of what they do.
//
// What always holds: lengths from the wire are bounded before anything is allocated; a panic ends one connection; after an error a session goes on.
package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-io/leat/internal/session"
)

// Options of a Server.
type Options struct {
	Engine  *session.Engine
	Logger  *slog.Logger
	Metrics prometheus.Registerer // nil: none
	// MaxConnections bounds the clients; 0 is 1,000.
	MaxConnections int
	// MaxMessage bounds a message from a client, in bytes; 0 is 64 MiB.
	MaxMessage int
	// WriteTimeout is how long a client may take to read what is sent to it; 0 is one minute.
	WriteTimeout time.Duration
}

// Server serves the door until Shutdown.
type Server struct {
	o    Options
	log  *slog.Logger
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[uint32]*conn   // by process id, for cancel requests
	strangers map[*conn]struct{} // those that have not said who they are
	next      uint32
	closing   bool

	statements prometheus.Histogram
	failures   prometheus.Counter
}

// New makes a server.
func New(o Options) *Server {
	if o.MaxConnections == 0 {
		o.MaxConnections = 1000
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = 64 << 20
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = time.Minute
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{o: o, log: o.Logger, ctx: ctx, stop: stop, conns: map[uint32]*conn{}, strangers: map[*conn]struct{}{}}
	s.statements = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "leat_statement_seconds", Help: "How long SQL statements take.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	})
	s.failures = prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_statement_errors_total", Help: "SQL statements that failed."})
	if o.Metrics != nil {
		o.Metrics.MustRegister(s.statements, s.failures, prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "leat_postgres_connections", Help: "Clients of the PostgreSQL door."},
			func() float64 {
				s.mu.Lock()
				defer s.mu.Unlock()
				return float64(len(s.conns))
			}))
	}
	return s
}

// Serve takes connections on the listeners until Shutdown; it returns at once.
func (s *Server) Serve(listeners ...net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range listeners {
		s.listeners = append(s.listeners, l)
		s.wg.Go(func() { s.accept(l) })
	}
}

func (s *Server) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || s.ctx.Err() != nil {
				return
			}
			s.log.Warn("cannot accept a connection", "door", "postgres", "err", err)
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(100 * time.Millisecond): // out of descriptors, most likely: others may end soon
			}
			continue
		}
		s.wg.Go(func() { s.serve(nc) })
	}
}

// serve runs one connection to its end.
func (s *Server) serve(nc net.Conn) {
	c := newConn(s, nc)
	if !s.meet(c) {
		_ = nc.Close()
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a connection ended by a panic", "door", "postgres", "remote", nc.RemoteAddr().String(), "panic", p, "stack", string(debug.Stack()))
		}
		s.forget(c)
		c.close()
	}()
	if err := c.run(); err != nil && !errors.Is(err, net.ErrClosed) && s.ctx.Err() == nil {
		s.log.Debug("a connection ended", "door", "postgres", "remote", nc.RemoteAddr().String(), "err", err)
	}
}

// maxStrangers bounds the connections whose clients have not said who they are; they have startupTimeout to do so.
const maxStrangers = 1000

// meet takes a new connection; false: there are too many, or the server is closing.
func (s *Server) meet(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.strangers) >= maxStrangers {
		return false
	}
	s.strangers[c] = struct{}{}
	return true
}

// register gives a connection its process id and secret; false: there are too many.
func (s *Server) register(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.conns) >= s.o.MaxConnections {
		return false
	}
	s.next++
	c.pid = s.next
	var secret [4]byte
	_, _ = rand.Read(secret[:])
	c.secret = binary.BigEndian.Uint32(secret[:])
	s.conns[c.pid] = c
	delete(s.strangers, c)
	return true
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.strangers, c)
	if s.conns[c.pid] == c {
		delete(s.conns, c.pid)
	}
}

// cancel ends the statement that a connection is running.
func (s *Server) cancel(pid, secret uint32) {
	s.mu.Lock()
	c := s.conns[pid]
	s.mu.Unlock()
	if c != nil && c.secret == secret {
		c.cancelStatement()
	}
}

// Shutdown takes no more connections, lets statements finish until ctx ends, and closes all connections.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for _, l := range s.listeners {
		_ = l.Close()
	}
	for _, c := range s.conns {
		c.drain()
	}
	for c := range s.strangers {
		_ = c.net.Close()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	s.stop()
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.net.Close()
	}
	s.mu.Unlock()
	<-done
	return nil
}

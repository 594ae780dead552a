// Package kafka is the door for Kafka clients: it translates Kafka's protocol to and from the broker, and owns nothing but connections and fetch
// sessions.
//
// Each API key is a file that registers itself with the versions it serves, so that ApiVersions cannot drift from the code. missing.go lists what is
// knowingly not there.
//
// A connection has two goroutines. The reader takes one frame after the other; a produce request gets its place in the journal right there, so the
// next one is sequenced while its sync is under way. Everything else runs in the writer, which answers in order: a fetch that waits for data holds up
// only the later responses of its own connection.
//
// What always holds:
//   - Responses of a connection come in the order of its requests.
//   - No length from the wire is believed before it is bounded. The memory of requests that are being read, and of records that wait in memory to be sent,
//     is bounded over all connections; what a client has asked for without taking the answers, for each.
//   - A panic, a malformed frame or a client that does not read ends its own connection and nothing else.
//   - On the way of a produced record nothing is allocated per record.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/clock"
	"github.com/prometheus/client_golang/prometheus"
)

// Options of a Server.
type Options struct {
	Broker  *broker.Broker
	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics prometheus.Registerer // nil: none

	// ClusterID is what clients are told; empty: "leat".
	ClusterID string
	// NodeID is this node's id; 0 means 1, which client test suites assume.
	NodeID int32
	// Advertise is the host:port that clients are told to connect to; empty: whatever address the client used.
	Advertise string

	MaxRequestBytes int32          // of one frame; default 100 MiB, as Kafka's socket.request.max.bytes
	RequestMemory   int64          // of frames being read and of records being sent, over all connections; default 256 MiB
	Memory          *budget.Budget // what these are accounted in, of the limit RequestMemory; nil accounts for the door alone
	MaxInFlight     int            // requests of one connection that wait for their response; default 128
	MaxConnections  int            // default 10,000
	IdleTimeout     time.Duration  // a connection without requests is closed; default 10 minutes
	WriteTimeout    time.Duration  // a client that takes nothing for so long is dropped; default 30 seconds
	MaxFetchBytes   int32          // of one fetch response; default 55 MiB
	MaxSessions     int            // fetch sessions; default 1,000
}

func (o *Options) setDefaults() {
	if o.Clock == nil {
		o.Clock = clock.Real
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ClusterID == "" {
		o.ClusterID = "leat"
	}
	if o.NodeID == 0 {
		o.NodeID = 1
	}
	set := func(p *int32, v int32) {
		if *p <= 0 {
			*p = v
		}
	}
	set(&o.MaxRequestBytes, 100<<20)
	set(&o.MaxFetchBytes, 55<<20)
	if o.RequestMemory <= 0 {
		o.RequestMemory = 256 << 20
	}
	if o.Memory == nil {
		o.Memory = budget.New("requests", 0)
	}
	o.Memory.SetLimit(o.RequestMemory)
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 128
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = 10_000
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = 10 * time.Minute
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 30 * time.Second
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 1000
	}
}

// Server serves Kafka clients on any number of listeners.
type Server struct {
	o        Options
	b        *broker.Broker
	log      *slog.Logger
	memory   *budget.Budget
	sessions *sessions
	metrics  *metrics
	host     string // advertised; empty: the address the client used
	port     int32

	ctx    context.Context // ends when connections must go at once
	cancel context.CancelFunc

	mu        sync.Mutex
	closing   bool
	conns     map[*conn]struct{}
	listeners []net.Listener
	wg        sync.WaitGroup
}

// New returns a server that listens on nothing yet.
func New(o Options) (*Server, error) {
	o.setDefaults()
	if o.Broker == nil {
		return nil, errors.New("kafka door: Broker is needed")
	}
	s := &Server{
		o: o, b: o.Broker, log: o.Logger, memory: o.Memory,
		sessions: newSessions(o.MaxSessions), metrics: newMetrics(o.Metrics), conns: map[*conn]struct{}{},
	}
	if o.Advertise != "" {
		host, port, err := net.SplitHostPort(o.Advertise)
		if err != nil {
			return nil, fmt.Errorf("kafka door: advertised address: %w", err)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || host == "" {
			return nil, fmt.Errorf("kafka door: advertised address %q needs a host and a port", o.Advertise)
		}
		s.host, s.port = host, int32(n)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Listen opens addr. A loopback address is opened in both families where there are two, since a client may resolve localhost to either; the first
// listener is for the address as given.
func Listen(addr string) ([]net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("kafka door: address %q: %w", addr, err)
	}
	other := ""
	switch strings.ToLower(host) {
	case "localhost", "127.0.0.1":
		host, other = "127.0.0.1", "::1"
	case "::1":
		other = "127.0.0.1"
	}
	_, port, _ := net.SplitHostPort(addr)
	first, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("kafka door: %w", err)
	}
	out := []net.Listener{first}
	if other != "" {
		_, port, _ = net.SplitHostPort(first.Addr().String())
		if second, err := net.Listen("tcp", net.JoinHostPort(other, port)); err == nil {
			out = append(out, second)
		}
	}
	return out, nil
}

// Serve accepts connections on the listeners until Shutdown, which closes them. It returns at once.
func (s *Server) Serve(listeners ...net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range listeners {
		if s.closing {
			_ = l.Close()
			continue
		}
		s.listeners = append(s.listeners, l)
		s.wg.Go(func() { s.accept(l) })
	}
}

func (s *Server) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, most likely: others may end soon.
			s.log.Warn("cannot accept a connection", "err", err)
			t := s.o.Clock.NewTimer(100 * time.Millisecond)
			select {
			case <-t.C():
				continue
			case <-s.ctx.Done():
				return
			}
		}
		s.mu.Lock()
		if s.closing || len(s.conns) >= s.o.MaxConnections {
			full := !s.closing
			s.mu.Unlock()
			_ = nc.Close()
			if full {
				s.log.Warn("a connection was refused: there are too many", "limit", s.o.MaxConnections, "from", nc.RemoteAddr())
			}
			continue
		}
		c := newConn(s, nc)
		s.conns[c] = struct{}{}
		s.wg.Go(c.serve)
		s.mu.Unlock()
	}
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// Shutdown takes no more requests, answers those that were read, and closes all connections; those that are not done when ctx ends are cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for _, l := range s.listeners {
		_ = l.Close()
	}
	for c := range s.conns {
		c.stopReading()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.cancel()
		return nil
	case <-ctx.Done():
	}
	s.cancel()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.nc.Close()
	}
	s.mu.Unlock()
	<-done
	return ctx.Err()
}

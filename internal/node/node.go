package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/door/http"
	"github.com/leat-io/leat/internal/door/kafka"
	"github.com/leat-io/leat/internal/door/postgres"
	"github.com/leat-io/leat/internal/session"
	"github.com/leat-io/leat/internal/vfs"
)

// Config is what a server is started with.
type Config struct {
	Dir                   string
	Kafka, Postgres, HTTP string // addresses to listen on; port 0 picks a free one
	StateMemory           int64  // bytes; 0 is 1 GiB
	QueryMemory           int64  // bytes that all SQL statements together may hold; 0 is session.DefaultQueryMemory
	Workers               int    // 0 is one a core
	AutoCreateTopics      bool
	DefaultPartitions     int32
	Logger                *slog.Logger
	// Core has what tests set: the file system, the clock, sizes. What Config has wins.
	Core CoreOptions
}

// reserve is what is kept free on the disk: below it producing is refused, and a ballast file is given up so that deletes and checkpoints go on.
func reserve() broker.Reserve {
	return broker.Reserve{MinFree: 256 << 20, BallastBytes: 64 << 20, FreeSpace: func(dir string) (int64, error) {
		usage, err := vfs.Default.GetDiskUsage(dir)
		return int64(min(usage.AvailBytes, 1<<62)), err
	}}
}

// Node is a server with its doors.
type Node struct {
	*Core
	Engine   *session.Engine
	Registry *prometheus.Registry

	kafka    *kafka.Server
	postgres *postgres.Server
	http     *http.Server

	kafkaAddr, postgresAddr, httpAddr string
}

// Start opens the data folder, recovers it and opens the doors. When it returns all doors accept.
func Start(ctx context.Context, c Config) (*Node, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Workers == 0 {
		c.Workers = runtime.NumCPU()
	}
	// A P is always free to poll the network and to finish syncs, however busy the workers are.
	if runtime.GOMAXPROCS(0) < c.Workers+2 {
		runtime.GOMAXPROCS(c.Workers + 2)
	}
	n := &Node{Registry: prometheus.NewRegistry()}
	n.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	o := c.Core
	o.Dir, o.Logger, o.Workers, o.StateMemory, o.Metrics = c.Dir, c.Logger, c.Workers, c.StateMemory, n.Registry
	o.Broker.AutoCreate, o.Broker.DefaultPartitions = c.AutoCreateTopics, c.DefaultPartitions
	if o.FS == nil {
		o.Broker.Reserve = reserve()
	}
	kafkaListeners, err := listen("Kafka", c.Kafka)
	if err != nil {
		return nil, err
	}
	postgresListeners, err := listen("PostgreSQL", c.Postgres)
	if err != nil {
		closeAll(kafkaListeners)
		return nil, err
	}
	httpListeners, err := listen("HTTP", c.HTTP)
	if err != nil {
		closeAll(kafkaListeners, postgresListeners)
		return nil, err
	}
	n.kafkaAddr, n.postgresAddr, n.httpAddr = address(kafkaListeners), address(postgresListeners), address(httpListeners)
	if err := n.start(ctx, c, o, kafkaListeners, postgresListeners, httpListeners); err != nil {
		closeAll(kafkaListeners, postgresListeners, httpListeners)
		return nil, err
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, c Config, o CoreOptions, kafkaListeners, postgresListeners, httpListeners []net.Listener) error {
	core, err := OpenCore(ctx, o)
	if err != nil {
		return err
	}
	n.Core = core
	queries := c.QueryMemory
	if queries == 0 {
		queries = session.DefaultQueryMemory
	}
	pool := core.Budget.Child("queries", queries)
	watchQueries(pool)
	n.Engine, err = session.NewEngine(session.Options{Jobs: core.Jobs, Memory: core.Budget, Queries: pool, Broker: core.Broker, Clock: core.o.Clock, Logger: c.Logger})
	if err != nil {
		return errors.Join(err, core.Close())
	}
	n.kafka, err = kafka.New(kafka.Options{Broker: core.Broker, Memory: core.Budget.Child("doors", 0).Child("kafka", 0), Clock: core.o.Clock, Logger: c.Logger, Metrics: n.Registry})
	if err != nil {
		return errors.Join(err, core.Close())
	}
	n.postgres = postgres.New(postgres.Options{Engine: n.Engine, Logger: c.Logger, Metrics: n.Registry})
	n.http = http.New(http.Options{Gatherer: n.Registry, Ready: n.Ready, Logger: c.Logger})
	n.kafka.Serve(kafkaListeners...)
	n.postgres.Serve(postgresListeners...)
	for _, l := range httpListeners {
		go func() {
			if err := n.http.Serve(l); err != nil {
				c.Logger.Error("the HTTP door has stopped", "err", err)
			}
		}()
	}
	return nil
}

// Ready says why the node cannot serve, nil if it can.
func (n *Node) Ready() error {
	if err := n.Journal.Err(); err != nil {
		return fmt.Errorf("the journal has failed: %w", err)
	}
	if n.Broker.StorageLow() {
		return errors.New("the disk is nearly full: writes are refused")
	}
	return nil
}

// KafkaAddr, PostgresAddr and HTTPAddr are the doors' addresses as host:port.
func (n *Node) KafkaAddr() string    { return n.kafkaAddr }
func (n *Node) PostgresAddr() string { return n.postgresAddr }
func (n *Node) HTTPAddr() string     { return n.httpAddr }

// shutdownTimeout is how long clients have to finish what they do when the node stops.
const shutdownTimeout = 3 * time.Second

// Stop closes the doors, lets what is running finish, and closes the data folder. Clients that have not finished within shutdownTimeout are cut
// off, which is no error.
func (n *Node) Stop() error {
	n.interrupt() // on a full disk clients wait for room, and the doors would wait for them
	var errs []error
	for _, shutdown := range []func(context.Context) error{n.http.Shutdown, n.postgres.Shutdown, n.kafka.Shutdown} {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		if err := shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			errs = append(errs, err)
		}
		cancel()
	}
	return errors.Join(append(errs, n.Core.Close())...)
}

// listen opens a door's address. An IPv4 loopback address is opened for IPv6 too if that can be had: clients resolve localhost to either.
func listen(door, addr string) ([]net.Listener, error) {
	first, err := net.Listen("tcp", addr)
	if err != nil {
		remedy := ""
		if errors.Is(err, syscall.EADDRINUSE) {
			remedy = ": another server has it; choose another port, or 0 for a free one"
		}
		var op *net.OpError
		var call *os.SyscallError
		if errors.As(err, &op) { // which has the address once more
			err = op.Err
		}
		if errors.As(err, &call) {
			err = call.Err
		}
		return nil, fmt.Errorf("the %s door cannot listen on %s: %w%s", door, addr, err, remedy)
	}
	out := []net.Listener{first}
	if tcp, ok := first.Addr().(*net.TCPAddr); ok && tcp.IP.Equal(net.IPv4(127, 0, 0, 1)) {
		if second, err := net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(tcp.Port))); err == nil {
			out = append(out, second)
		}
	}
	return out, nil
}

func address(l []net.Listener) string { return l[0].Addr().String() }

func closeAll(lists ...[]net.Listener) {
	for _, list := range lists {
		for _, l := range list {
			_ = l.Close()
		}
	}
}

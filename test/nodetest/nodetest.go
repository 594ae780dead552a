// Package nodetest starts whole nodes for tests, in the test's process and over a file system that loses what was not synced, and has the clients that
// tests talk to them with: PostgreSQL's protocol for SQL, Kafka's for records.
//
// What always holds: a Node is stopped when its test ends, however it ends; Crash leaves nothing of the old node behind but what its file system had
// been told to keep.
package nodetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/job"
	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/internal/vfs"
)

// Patience bounds every wait for something that must happen.
const Patience = 60 * time.Second

// Options change what a Node is started with; zero values serve.
type Options struct {
	Workers   int   // 0 is 1
	BatchRows int   // 0 is the engine's own
	Memory    int64 // of operator state, in bytes; 0 is the node's default
	Spill     int64 // what of an epoch goes to files: see job.Options.SpillBytes
	Queries   int64 // what SQL statements may hold together, in bytes; 0 is the node's default
	Clock     clock.Clock
	Logger    *slog.Logger
}

// Node is a running node.
type Node struct {
	*node.Node
	tb    testing.TB
	o     Options
	fs    *vfs.Mem
	rng   *rand.Rand
	kafka *kgo.Client
	down  bool
}

// Start starts a node on free ports.
func Start(tb testing.TB, o Options) *Node {
	tb.Helper()
	h := fnv.New64a()
	h.Write([]byte(tb.Name()))
	n := &Node{tb: tb, o: o, fs: vfs.NewCrashable(), rng: rand.New(rand.NewPCG(h.Sum64(), 1))}
	n.start()
	tb.Cleanup(n.Stop)
	return n
}

func (n *Node) start() {
	n.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	c := node.Config{
		Dir: "/data", Kafka: "127.0.0.1:0", Postgres: "127.0.0.1:0", HTTP: "127.0.0.1:0",
		StateMemory: n.o.Memory, QueryMemory: n.o.Queries, Workers: max(n.o.Workers, 1), AutoCreateTopics: true, DefaultPartitions: 1, Logger: n.o.Logger,
		Core: node.CoreOptions{FS: n.fs, Clock: n.o.Clock, BatchRows: n.o.BatchRows, SpillBytes: n.o.Spill, JournalSegmentBytes: 4 << 20, CacheBytes: 8 << 20, MemTableBytes: 4 << 20},
	}
	started, err := node.Start(ctx, c)
	if err != nil {
		n.tb.Fatalf("starting a node: %v", err)
	}
	n.Node, n.down = started, false
}

// Stop stops the node cleanly.
func (n *Node) Stop() {
	if n.down {
		return
	}
	n.down = true
	n.closeKafka()
	if err := n.Node.Stop(); err != nil {
		n.tb.Errorf("stopping the node: %v", err)
	}
}

// Restart stops the node cleanly and starts it again with so many workers.
func (n *Node) Restart(workers int) {
	n.tb.Helper()
	n.Stop()
	n.o.Workers = workers
	n.start()
}

// Files are the names in a folder of the data folder.
func (n *Node) Files(dir string) []string {
	n.tb.Helper()
	names, err := n.fs.List(n.fs.PathJoin("/data", dir))
	if err != nil {
		n.tb.Fatal(err)
	}
	return names
}

// Crash ends the node as a loss of power does, each unsynced write lost or not by chance, and starts it again with so many workers.
// Connections are gone.
func (n *Node) Crash(workers int) {
	n.tb.Helper()
	after := vfs.CrashClone(n.fs, []int{0, 50, 100}[n.rng.IntN(3)], n.rng)
	n.down = true
	n.closeKafka()
	_ = n.Node.Stop() // on the file system that nobody will look at again
	n.fs, n.o.Workers = after, workers
	n.start()
}

// Conn is a connection to the PostgreSQL door.
type Conn struct {
	*pgconn.PgConn
	tb      testing.TB
	Notices []string // SQLSTATE and text of what the last statement was told
}

// Connect opens a connection that is closed when the test ends.
func (n *Node) Connect() *Conn {
	n.tb.Helper()
	return Connect(n.tb, "postgres://tester@"+n.PostgresAddr()+"/leat?sslmode=disable")
}

// Connect opens a connection to whatever speaks PostgreSQL's protocol, closed when the test ends.
func Connect(tb testing.TB, dsn string) *Conn {
	tb.Helper()
	c := &Conn{tb: tb}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		c.Notices = append(c.Notices, notice.Code+" "+notice.Message)
	}
	if c.PgConn, err = pgconn.ConnectConfig(ctx, config); err != nil {
		tb.Fatalf("connecting: %v", err)
	}
	tb.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// Run runs statements through the simple protocol and returns the rows of the last one as text, NULL as "NULL", columns joined by "|".
func (c *Conn) Run(sql string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	c.Notices = nil
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var rows []string
	if len(results) == 0 {
		return nil, nil
	}
	for _, row := range results[len(results)-1].Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = string(cell)
			if cell == nil {
				cells[i] = "NULL"
			}
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	return rows, nil
}

// Query is Run that must succeed.
func (c *Conn) Query(sql string) []string {
	c.tb.Helper()
	rows, err := c.Run(sql)
	if err != nil {
		c.tb.Fatalf("%s\n%v", sql, err)
	}
	return rows
}

// Do runs statements that must succeed.
func (c *Conn) Do(sql ...string) {
	c.tb.Helper()
	for _, s := range sql {
		c.Query(s)
	}
}

// Counts returns what a relation has counted in committed epochs.
func (n *Node) Counts(relation string) job.Counts {
	n.tb.Helper()
	for _, s := range n.Jobs.Status() {
		if s.Relation.Name == relation {
			if s.Err != nil {
				n.tb.Errorf("%s has stopped: %v", relation, s.Err)
			}
			return s.Counts
		}
	}
	n.tb.Fatalf("there is no job of relation %q", relation)
	return job.Counts{}
}

// Failed lists the jobs that have stopped, with why.
func (n *Node) Failed() []string {
	var out []string
	for _, s := range n.Jobs.Status() {
		if s.Err != nil {
			out = append(out, fmt.Sprintf("%s %q has stopped: %v", s.Relation.Kind, s.Relation.Name, s.Err))
		}
	}
	return out
}

// Metric is the value that /metrics shows of a relation's counter.
func (n *Node) Metric(name, relation string) (float64, bool) {
	n.tb.Helper()
	return Metric(n.tb, n.Registry, name, relation)
}

// Metric is the value of a relation's counter or gauge; ok is false if there is none.
func Metric(tb testing.TB, from prometheus.Gatherer, name, relation string) (value float64, ok bool) {
	tb.Helper()
	families, err := from.Gather()
	if err != nil {
		tb.Fatalf("metrics: %v", err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "relation" && l.GetValue() == relation {
					return m.GetCounter().GetValue() + m.GetGauge().GetValue(), true
				}
			}
		}
	}
	return 0, false
}

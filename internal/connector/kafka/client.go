// Package kafka has topics of an Apache Kafka cluster, or of anything that speaks its protocol, as sources and as targets of sinks.
//
// A source fetches at isolation level read_committed in the background, into memory of a fixed size; a target writes transactions that hold the data and the
// position in the sink's changelog, as an offset of a consumer group in the same cluster.
//
// What always holds: a position is an offset of the cluster and means the same record for ever; nothing is passed over that retention deleted before it was
// read; a cluster that does not answer is never taken for one that has nothing; a target's data and position are one transaction.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/pgerr"
)

const (
	dialTimeout = 5 * time.Second
	// askTimeout is how long the cluster has for the answer to one question.
	askTimeout = 10 * time.Second
	// askEvery is how often a source asks where its partitions end and whether there are more.
	askEvery = time.Second
)

// Cluster says which cluster, and topic of it, a relation is over.
type Cluster struct {
	Servers     []string
	Topic       string
	ClientID    string
	Compression string // of what is written: none, gzip, snappy, lz4 or zstd
}

// ClusterOf reads a relation's options, which the binder has checked.
func ClusterOf(r *catalog.Relation) Cluster {
	c := Cluster{Topic: r.Options["topic"], ClientID: r.Options[catalog.ClientIDOption], Compression: r.Options[catalog.CompressionOption]}
	for s := range strings.SplitSeq(r.Options[catalog.ServersOption], ",") {
		c.Servers = append(c.Servers, strings.TrimSpace(s))
	}
	if c.ClientID == "" {
		c.ClientID = "leat"
	}
	return c
}

func (c *Cluster) String() string { return strings.Join(c.Servers, ",") }

func (c *Cluster) options(log *slog.Logger) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(c.Servers...), kgo.ClientID(c.ClientID), kgo.DialTimeout(dialTimeout),
		kgo.MetadataMinAge(250 * time.Millisecond), kgo.MetadataMaxAge(time.Minute), kgo.WithLogger(logger{log}),
		kgo.DisableClientMetrics(),
	}
}

// explain says what went wrong with the cluster, in one line.
func (c *Cluster) explain(err error) error {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &dns), errors.As(err, &op), errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, kgo.ErrClientClosed):
		return fmt.Errorf("the Kafka cluster at %s cannot be reached: %w", c, err)
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.TransactionalIDAuthorizationFailed),
		errors.Is(err, kerr.ClusterAuthorizationFailed):
		return fmt.Errorf("the Kafka cluster at %s does not allow it: %w", c, err)
	}
	return fmt.Errorf("the Kafka cluster at %s: %w", c, err)
}

// refused is explain for a statement that waits.
func (c *Cluster) refused(err error) error {
	e := c.explain(err)
	return pgerr.New("08001", e.Error()).WithHint("Check properties.bootstrap.server, and that the brokers' advertised listeners can be reached from here.")
}

// logger passes the client's warnings on as debug messages: what matters is reported by who uses the client, once.
type logger struct{ log *slog.Logger }

// Level implements kgo.Logger.
func (l logger) Level() kgo.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelWarn
	}
	return kgo.LogLevelNone
}

// Log implements kgo.Logger.
func (l logger) Log(_ kgo.LogLevel, msg string, keyvals ...any) {
	l.log.Debug("kafka client: "+msg, keyvals...)
}

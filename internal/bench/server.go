package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/node"
)

// startServer starts a node with its doors, as the server command does.
func startServer(ctx context.Context, o Options) (*node.Node, *epochs, error) {
	e := &epochs{}
	n, err := node.Start(ctx, node.Config{
		Dir: o.Dir, Kafka: "127.0.0.1:0", Postgres: "127.0.0.1:0", HTTP: "127.0.0.1:0", StateMemory: o.StateMemory, Workers: o.Workers,
		AutoCreateTopics: true, DefaultPartitions: 1, Logger: o.Logger, Core: node.CoreOptions{ObserveEpoch: e.add},
	})
	return n, e, err
}

// kafkaClient is a client that sends records as they come and waits for all acknowledgements.
func kafkaClient(n *node.Node) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(n.KafkaAddr()), kgo.AllowAutoTopicCreation(), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
}

func postgresClient(ctx context.Context, n *node.Node) (*pgx.Conn, error) {
	c, err := pgx.Connect(ctx, "postgres://leat@"+n.PostgresAddr()+"/leat?sslmode=disable")
	if err != nil {
		return nil, fmt.Errorf("connecting to the PostgreSQL door: %w", err)
	}
	return c, nil
}

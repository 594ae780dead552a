package cli

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/internal/session"
)

func serverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "server", Short: "Run a node", Args: cobra.NoArgs,
		Long: "Runs a node on a data folder until it gets SIGTERM or an interrupt. Its log is JSON lines on standard error; the line with\n" +
			"\"msg\":\"ready\" has the addresses of the doors.",
	}
	c := node.Config{}
	memory := memoryFlag{1 << 30}
	queries := memoryFlag{session.DefaultQueryMemory}
	level := cmd.Flags().String("log-level", "info", "debug, info, warn or error")
	cmd.Flags().StringVar(&c.Dir, "data", "", "data folder; made if it is not there")
	listenFlag(cmd.Flags(), &c.Kafka, "kafka", "127.0.0.1:9092", "address of the Kafka door; port 0 picks a free one")
	listenFlag(cmd.Flags(), &c.Postgres, "postgres", "127.0.0.1:4566", "address of the PostgreSQL door")
	listenFlag(cmd.Flags(), &c.HTTP, "http", "127.0.0.1:8080", "address of the HTTP door: health and metrics")
	cmd.Flags().Var(&memory, "state-memory", "memory for the state of queries; what does not fit stays on disk")
	cmd.Flags().Var(&queries, "query-memory", "memory for all SQL statements together; one gets half of it at most")
	workersFlag(cmd.Flags(), &c.Workers)
	cmd.Flags().BoolVar(&c.AutoCreateTopics, "auto-create-topics", true, "make a topic when a Kafka client asks for one that does not exist")
	numberFlag(cmd.Flags(), &c.DefaultPartitions, "default-partitions", "", 1, 1, 100_000, "partitions of topics made without saying how many")
	rate := boundedSize{64 << 20, 64 << 10}
	spanFlag(cmd.Flags(), &c.Core.Broker.CompactionInterval, "compaction-interval", 15*time.Second, 10*time.Millisecond, 24*time.Hour, "", "how often partitions are looked at for compaction")
	cmd.Flags().Var(&rate, "compaction-rate", "what compaction may read and write in a second")
	cmd.Flags().Var(&brokerConfigs{o: &c.Core.Broker}, "broker-config", "a setting of the broker under Kafka's name, such as group.initial.rebalance.delay.ms=0 or log.retention.hours=24; may be repeated, or have commas between")
	alerts := &c.Core.Broker.LagAlerts
	numberFlag(cmd.Flags(), &alerts.Records, "alert-lag-records", "", 0, 0, math.MaxInt64, "report a consumer group that has more than this left to read in a partition; 0: none")
	spanFlag(cmd.Flags(), &alerts.Age, "alert-lag-time", 0, time.Millisecond, math.MaxInt64, "no alert", "report a consumer group whose next record to read is older than this; 0: none")
	spanFlag(cmd.Flags(), &alerts.Deletion, "alert-deletion", time.Hour, time.Millisecond, math.MaxInt64, "no alert", "report a consumer group when retention may delete what it has not read within this time, or a tenth of retention.ms; 0: none")
	numberFlag(cmd.Flags(), &c.Core.Broker.MetricPartitions, "metric-partitions", "", 1000, 1, 1_000_000, "how many partitions of consumer groups, and topics, have metrics of their own")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.Dir == "" {
			return usage("--data is needed: the folder that the node keeps everything in")
		}
		var l slog.Level
		if err := l.UnmarshalText([]byte(*level)); err != nil {
			return usage("--log-level %q: debug, info, warn and error are known", *level)
		}
		c.StateMemory = int64(memory.size)
		c.QueryMemory = int64(queries.size)
		c.Core.Broker.CompactionRate = int64(rate.size)
		c.Logger = slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: l}))
		// Rows live outside the collector's heap or in pooled buffers, so the heap is small: a lower target keeps an idle node small too.
		debug.SetGCPercent(75)
		return serve(cmd.Context(), c)
	}
	return cmd
}

// serve runs a node until ctx ends or its journal fails. What goes wrong is in the log, which is JSON lines and nothing else.
func serve(ctx context.Context, c node.Config) error {
	n, err := node.Start(ctx, c)
	if err != nil {
		c.Logger.Error("cannot start", "err", err)
		return &codeError{exitFailed, err, true}
	}
	c.Logger.Info("ready", "kafka", n.KafkaAddr(), "postgres", n.PostgresAddr(), "http", n.HTTPAddr(), "data", c.Dir)
	select {
	case <-ctx.Done():
	case <-n.Journal.Done():
	}
	failed := n.Journal.Err()
	c.Logger.Info("stopping")
	if err := n.Stop(); err != nil && failed == nil {
		c.Logger.Error("stopping", "err", err)
		return &codeError{exitFailed, err, true}
	}
	if failed != nil {
		c.Logger.Error("stopped: the journal has failed, nothing more was acknowledged", "err", failed)
		return &codeError{exitFailed, failed, true}
	}
	c.Logger.Info("stopped")
	return nil
}

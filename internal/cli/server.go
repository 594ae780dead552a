package cli

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/leat-io/leat/internal/node"
)

func serverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "server", Short: "Run a node", Args: cobra.NoArgs,
		Long: "Runs a node on a data folder until it gets SIGTERM or an interrupt. Its log is JSON lines on standard error; the line with\n" +
			"\"msg\":\"ready\" has the addresses of the doors.",
	}
	c := node.Config{}
	memory := size(1 << 30)
	level := cmd.Flags().String("log-level", "info", "debug, info, warn or error")
	cmd.Flags().StringVar(&c.Dir, "data", "", "data folder; made if it is not there")
	cmd.Flags().StringVar(&c.Kafka, "kafka", "127.0.0.1:9092", "address of the Kafka door; port 0 picks a free one")
	cmd.Flags().StringVar(&c.Postgres, "postgres", "127.0.0.1:4566", "address of the PostgreSQL door")
	cmd.Flags().StringVar(&c.HTTP, "http", "127.0.0.1:8080", "address of the HTTP door: health and metrics")
	cmd.Flags().Var(&memory, "state-memory", "memory for the state of queries; what does not fit stays on disk")
	cmd.Flags().IntVar(&c.Workers, "workers", 0, "workers of the engine; 0: one a core")
	cmd.Flags().BoolVar(&c.AutoCreateTopics, "auto-create-topics", true, "make a topic when a Kafka client asks for one that does not exist")
	cmd.Flags().Int32Var(&c.DefaultPartitions, "default-partitions", 1, "partitions of topics made without saying how many")
	rate := size(64 << 20)
	cmd.Flags().DurationVar(&c.Core.Broker.CompactionInterval, "compaction-interval", 15*time.Second, "how often partitions are looked at for compaction")
	cmd.Flags().Var(&rate, "compaction-rate", "what compaction may read and write in a second")
	alerts := &c.Core.Broker.LagAlerts
	cmd.Flags().Int64Var(&alerts.Records, "alert-lag-records", 0, "report a consumer group that has more than this left to read in a partition; 0: none")
	cmd.Flags().DurationVar(&alerts.Age, "alert-lag-time", 0, "report a consumer group whose next record to read is older than this; 0: none")
	cmd.Flags().DurationVar(&alerts.Deletion, "alert-deletion", time.Hour, "report a consumer group when retention may delete what it has not read within this time, or a tenth of retention.ms; 0: none")
	cmd.Flags().IntVar(&c.Core.Broker.MetricPartitions, "metric-partitions", 1000, "how many partitions of consumer groups, and topics, have metrics of their own")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if alerts.Records < 0 || alerts.Age < 0 || alerts.Deletion < 0 {
			return usage("--alert-lag-records, --alert-lag-time and --alert-deletion cannot be negative; 0 is no alert")
		}
		if c.Core.Broker.MetricPartitions < 1 {
			return usage("--metric-partitions must be at least 1")
		}
		if c.Dir == "" {
			return usage("--data is needed: the folder that the node keeps everything in")
		}
		var l slog.Level
		if err := l.UnmarshalText([]byte(*level)); err != nil {
			return usage("--log-level %q: debug, info, warn and error are known", *level)
		}
		c.StateMemory = int64(memory)
		c.Core.Broker.CompactionRate = int64(rate)
		c.Logger = slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: l}))
		// Rows live outside the collector's heap or in pooled buffers, so the heap is small: a lower target keeps an idle node small too.
		debug.SetGCPercent(75)
		return serve(cmd.Context(), c)
	}
	return cmd
}

// serve runs a node until ctx ends or its journal fails.
func serve(ctx context.Context, c node.Config) error {
	n, err := node.Start(ctx, c)
	if err != nil {
		c.Logger.Error("cannot start", "err", err)
		return err
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
		return err
	}
	if failed != nil {
		return fmt.Errorf("the journal has failed, nothing more is acknowledged: %w", failed)
	}
	c.Logger.Info("stopped")
	return nil
}

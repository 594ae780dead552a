package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leat-io/leat/internal/bench"
)

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure this machine and this binary",
		Long: "Each benchmark starts a node of its own on a temporary folder (--data names another), measures, and prints one JSON object on one line.\n" +
			"bench/README.md says what the figures mean.",
	}
	profile := cmd.PersistentFlags().String("cpuprofile", "", "write a CPU profile to this file")
	cmd.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := fromEnvironment(cmd, args); err != nil {
			return err
		}
		debug.SetGCPercent(75) // as the server does
		if *profile == "" {
			return nil
		}
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		return pprof.StartCPUProfile(f)
	}
	cmd.PersistentPostRun = func(*cobra.Command, []string) { pprof.StopCPUProfile() }
	cmd.AddCommand(benchNexmark(), benchLatency(), benchState(), benchMixed(), benchLog(), benchPartitions())
	return cmd
}

// benchFlags adds the flags that all benchmarks have.
func benchFlags(cmd *cobra.Command, o *bench.Options) *size {
	memory := size(1 << 30)
	cmd.Flags().StringVar(&o.Dir, "data", "", "data folder on the file system to be measured; a temporary one if empty")
	cmd.Flags().IntVar(&o.Workers, "workers", 0, "workers of the engine; 0: one a core")
	cmd.Flags().Var(&memory, "state-memory", "memory for the state of queries")
	return &memory
}

// printResult writes a result as one line of JSON.
func printResult(cmd *cobra.Command, r any) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line)
	return err
}

func benchNexmark() *cobra.Command {
	o := bench.NexmarkOptions{}
	cmd := &cobra.Command{
		Use: "nexmark", Short: "Run a query of the Nexmark benchmark", Args: cobra.NoArgs,
		Long: "Runs a query over generated events into a sink that counts rows and sums up their hashes, with epochs on and durable.\n" +
			"The queries are " + strings.Join(bench.Queries(), ", ") + " (q5 is its inner query: bids per auction and window).",
	}
	memory := benchFlags(cmd, &o.Options)
	cmd.Flags().StringVar(&o.Query, "query", "q0", "the query")
	cmd.Flags().Int64Var(&o.Events, "events", 1_000_000, "how many events, of all kinds together")
	cmd.Flags().Int64Var(&o.Rate, "rate", 10_000, "events a second of event time")
	cmd.Flags().Int64Var(&o.Seed, "seed", 0, "seed of the generator")
	cmd.Flags().BoolVar(&o.FromTopics, "from-topics", false, "read the events as JSON from topics of the embedded log (filled before)")
	dump := cmd.Flags().Int64("dump", 0, "print the first so many events as JSON lines and do nothing else")
	toTopics := cmd.Flags().Bool("to-topics", false, "write the events as JSON to the topics bid, auction and person and do nothing else")
	brokers := cmd.Flags().StringSlice("brokers", nil, "with --to-topics: a running server; without it a node is started on --data")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.StateMemory = int64(*memory)
		switch {
		case *dump > 0:
			o.Events = *dump
			return bench.Dump(cmd.OutOrStdout(), o)
		case *toTopics:
			return bench.ToTopics(cmd.Context(), o, *brokers)
		case !slices.Contains(bench.Queries(), o.Query):
			return usage("--query %q is not known; there are %s", o.Query, strings.Join(bench.Queries(), ", "))
		}
		r, err := bench.Nexmark(cmd.Context(), o)
		if err != nil {
			return err
		}
		return printResult(cmd, r)
	}
	return cmd
}

func benchLatency() *cobra.Command {
	o := bench.LatencyOptions{}
	cmd := &cobra.Command{
		Use: "latency", Short: "From an acknowledged event to the answer of a SELECT that contains it", Args: cobra.NoArgs,
		Long: "A Kafka client produces JSON events at a rate with acks=all; another client asks a view over them through the PostgreSQL door.",
	}
	memory := benchFlags(cmd, &o.Options)
	cmd.Flags().IntVar(&o.Rate, "rate", 1000, "events a second")
	cmd.Flags().DurationVar(&o.For, "for", 10*time.Second, "how long")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.StateMemory = int64(*memory)
		r, err := bench.Latency(cmd.Context(), o)
		if err != nil {
			return err
		}
		return printResult(cmd, r)
	}
	return cmd
}

func benchState() *cobra.Command {
	o := bench.StateOptions{}
	cmd := &cobra.Command{
		Use: "state", Short: "An aggregate whose state does not fit into memory", Args: cobra.NoArgs,
		Long: "Runs an aggregate with --size of state in --state-memory, and compares its result with that of a plain program.",
	}
	memory := benchFlags(cmd, &o.Options)
	*memory = 64 << 20
	state := size(2 << 30)
	cmd.Flags().Var(&state, "size", "keys and values of the aggregate's groups")
	cmd.Flags().Float64Var(&o.Rounds, "rounds", 2, "how often each group is met, on average")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.StateMemory, o.Size = int64(*memory), int64(state)
		r, err := bench.State(cmd.Context(), o)
		if r != nil {
			if e := printResult(cmd, r); e != nil {
				return e
			}
		}
		return err
	}
	return cmd
}

func benchMixed() *cobra.Command {
	o := bench.MixedOptions{}
	cmd := &cobra.Command{
		Use: "mixed", Short: "Single durable produces while a query saturates all workers", Args: cobra.NoArgs,
	}
	memory := benchFlags(cmd, &o.Options)
	cmd.Flags().StringVar(&o.Query, "query", "q1", "the Nexmark query that saturates the workers")
	cmd.Flags().IntVar(&o.Records, "records", 1000, "how many records are produced, one after the other, before and during the query")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.StateMemory = int64(*memory)
		r, err := bench.Mixed(cmd.Context(), o)
		if err != nil {
			return err
		}
		return printResult(cmd, r)
	}
	return cmd
}

func benchLog() *cobra.Command {
	o := bench.LogOptions{}
	cmd := &cobra.Command{
		Use: "log", Short: "Durable produce: single records over many connections, and large batches", Args: cobra.NoArgs,
	}
	memory := benchFlags(cmd, &o.Options)
	cmd.Flags().IntVar(&o.Connections, "connections", 64, "connections that produce single records")
	cmd.Flags().IntVar(&o.Partitions, "partitions", 0, "partitions of the topic; 0: one a connection")
	cmd.Flags().DurationVar(&o.For, "for", 3*time.Second, "how long each part takes")
	cmd.Flags().StringVar(&o.Broker, "broker", "", "measure the broker at this address, Leat or Apache Kafka, instead of a node of its own; the topic is left there")
	cmd.Flags().IntVar(&o.BrokerPID, "broker-pid", 0, "with --broker: its process, for its CPU time")
	cmd.Flags().StringToStringVar(&o.Configs, "topic-config", nil, "with --broker: configs of the topic, as flush.messages=1")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.StateMemory = int64(*memory)
		if o.Broker == "" && (o.BrokerPID != 0 || len(o.Configs) > 0) {
			return usage("--broker-pid and --topic-config go with --broker")
		}
		r, err := bench.Log(cmd.Context(), o)
		if err != nil {
			return err
		}
		return printResult(cmd, r)
	}
	return cmd
}

func benchPartitions() *cobra.Command {
	o := bench.PartitionsOptions{}
	cmd := &cobra.Command{
		Use: "partitions", Short: "Very many partitions: making them, and writing 1 KB to each of them, durable", Args: cobra.NoArgs,
	}
	memory := benchFlags(cmd, &o.Options)
	cmd.Flags().IntVar(&o.Partitions, "partitions", 10_000, "partitions of the topic")
	cmd.Flags().IntVar(&o.Rounds, "rounds", 6, "how often each is written to")
	cmd.Flags().StringVar(&o.Broker, "broker", "", "measure the broker at this address, Leat or Apache Kafka, instead of a node of its own; the topic is left there")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.StateMemory = int64(*memory)
		r, err := bench.Partitions(cmd.Context(), o)
		if err != nil {
			return err
		}
		return printResult(cmd, r)
	}
	return cmd
}

package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	memory := memoryFlag{1 << 30}
	cmd.Flags().StringVar(&o.Dir, "data", "", "data folder on the file system to be measured; a temporary one if empty")
	workersFlag(cmd.Flags(), &o.Workers)
	cmd.Flags().Var(&memory, "state-memory", "memory for the state of queries")
	return &memory.size
}

// printResult writes a result as one line of JSON.
// workersFlag adds --workers. Rows are spread over 256 groups of keys, so more workers than that would have nothing to do.
func workersFlag(f *pflag.FlagSet, p *int) {
	numberFlag(f, p, "workers", "", 0, 0, 256, "workers of the engine; 0: one a core")
}

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
	cmd.Flags().StringVar(&o.SQL, "sql", "", "another query over bid instead, such as 'SELECT count(*) FROM bid'")
	numberFlag(cmd.Flags(), &o.Events, "events", "", 1_000_000, 1, math.MaxInt64, "how many events, of all kinds together")
	numberFlag(cmd.Flags(), &o.Rate, "rate", "", 10_000, 1, 1_000_000_000, "events a second of event time")
	cmd.Flags().Int64Var(&o.Seed, "seed", 0, "seed of the generator")
	cmd.Flags().BoolVar(&o.FromTopics, "from-topics", false, "read the events as JSON from topics of the embedded log (filled before)")
	var dump int64
	numberFlag(cmd.Flags(), &dump, "dump", "", 0, 0, math.MaxInt64, "print the first so many events as JSON lines and do nothing else; 0: no")
	toTopics := cmd.Flags().Bool("to-topics", false, "write the events as JSON to the topics bid, auction and person and do nothing else")
	brokers := cmd.Flags().StringSlice("brokers", nil, "with --to-topics: a running server; without it a node is started on --data")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.StateMemory = int64(*memory)
		switch {
		case dump > 0:
			o.Events = dump
			return bench.Dump(cmd.OutOrStdout(), o)
		case *toTopics:
			return bench.ToTopics(cmd.Context(), o, *brokers)
		case o.SQL == "" && !slices.Contains(bench.Queries(), o.Query):
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
	numberFlag(cmd.Flags(), &o.Rate, "rate", "", 1000, 1, 1_000_000, "events a second")
	spanFlag(cmd.Flags(), &o.For, "for", 10*time.Second, 100*time.Millisecond, 24*time.Hour, "", "how long")
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
	state := boundedSize{2 << 30, 1 << 20}
	cmd.Flags().Var(&state, "size", "keys and values of the aggregate's groups")
	cmd.Flags().Float64Var(&o.Rounds, "rounds", 2, "how often each group is met, on average")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !(o.Rounds >= 1 && o.Rounds <= 1000) { // nor is it no number
			return usage("--rounds %v: 1 to 1000 are allowed", o.Rounds)
		}
		o.StateMemory, o.Size = int64(*memory), int64(state.size)
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
	numberFlag(cmd.Flags(), &o.Records, "records", "", 1000, 1, 100_000_000, "how many records are produced, one after the other, before and during the query")
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
	numberFlag(cmd.Flags(), &o.Connections, "connections", "", 64, 1, 100_000, "connections that produce single records")
	numberFlag(cmd.Flags(), &o.Partitions, "partitions", "", 0, 0, 100_000, "partitions of the topic; 0: one a connection")
	spanFlag(cmd.Flags(), &o.For, "for", 3*time.Second, 100*time.Millisecond, 24*time.Hour, "", "how long each part takes")
	cmd.Flags().StringVar(&o.Broker, "broker", "", "measure the broker at this address, Leat or Apache Kafka, instead of a node of its own; the topic is left there")
	numberFlag(cmd.Flags(), &o.BrokerPID, "broker-pid", "", 0, 1, 1<<31-1, "with --broker: its process, for its CPU time")
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
	numberFlag(cmd.Flags(), &o.Partitions, "partitions", "", 10_000, 1, 100_000, "partitions of the topic")
	numberFlag(cmd.Flags(), &o.Rounds, "rounds", "", 6, 2, 1000, "how often each is written to")
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

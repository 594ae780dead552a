package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strings"

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
	cmd.AddCommand(benchNexmark())
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
		}
		r, err := bench.Nexmark(cmd.Context(), o)
		if err != nil {
			return err
		}
		return printResult(cmd, r)
	}
	return cmd
}

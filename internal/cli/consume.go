package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

func consumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "consume TOPIC", Short: "Print records to standard output, one a line", Args: cobra.ExactArgs(1),
		Long: "Prints the values of records as they come, one a line, until -n of them or an interrupt.",
	}
	brokers := brokerFlag(cmd)
	beginning := cmd.Flags().Bool("from-beginning", false, "start at the oldest record, not at what comes next (a group with a position goes on from it)")
	group := cmd.Flags().String("group", "", "consumer group whose position is used and committed")
	limit := cmd.Flags().IntP("number", "n", 0, "stop after so many records; 0: never")
	separator := cmd.Flags().String("key-separator", "", "print the key and this in front of each value")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		start := kgo.NewOffset().AtEnd()
		if *beginning {
			start = kgo.NewOffset().AtStart()
		}
		opts := []kgo.Opt{kgo.ConsumeTopics(args[0]), kgo.ConsumeResetOffset(start)}
		if *group != "" {
			opts = append(opts, kgo.ConsumerGroup(*group), kgo.DisableAutoCommit())
		}
		client, err := connectBrokers(*brokers, opts...)
		if err != nil {
			return err
		}
		defer client.Close()
		ctx := cmd.Context()
		if err := ping(ctx, client, *brokers); err != nil {
			return err
		}
		out := bufio.NewWriter(cmd.OutOrStdout())
		defer out.Flush()
		for seen := 0; *limit == 0 || seen < *limit; {
			records := 0
			if *limit > 0 {
				records = *limit - seen
			}
			fetches := client.PollRecords(ctx, records)
			if err := fetches.Err(); err != nil {
				if errors.Is(err, context.Canceled) {
					return nil // interrupted: that is how consuming ends
				}
				return err
			}
			fetches.EachRecord(func(r *kgo.Record) {
				if *separator != "" {
					fmt.Fprintf(out, "%s%s", r.Key, *separator)
				}
				_, _ = out.Write(r.Value)
				_ = out.WriteByte('\n')
				seen++
			})
			if err := out.Flush(); err != nil {
				return err
			}
			if *group != "" {
				if err := client.CommitUncommittedOffsets(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return cmd
}

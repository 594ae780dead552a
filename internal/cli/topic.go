package cli

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokerFlag adds --brokers, and returns where its value is.
func brokerFlag(cmd *cobra.Command) *string {
	return cmd.PersistentFlags().StringP("brokers", "b", "127.0.0.1:9092", "addresses of the Kafka door, separated by commas")
}

func connectBrokers(brokers string, opts ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.ClientID("leat")}, opts...)...)
	if err != nil {
		return nil, usage("--brokers %q: %w", brokers, err)
	}
	return client, nil
}

// ping tells early, and in one line, that there is no server.
func ping(ctx context.Context, client *kgo.Client, brokers string) error {
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("no Kafka door answers at %s (is `leat server` running? --brokers names another): %w", brokers, err)
	}
	return nil
}

func topicCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "topic", Short: "Create, list, describe and delete topics"}
	brokers := brokerFlag(cmd)
	admin := func(ctx context.Context, fn func(*kadm.Client) error) error {
		client, err := connectBrokers(*brokers)
		if err != nil {
			return err
		}
		defer client.Close()
		if err := ping(ctx, client, *brokers); err != nil {
			return err
		}
		return fn(kadm.NewClient(client))
	}

	var partitions int32
	var configs []string
	create := &cobra.Command{
		Use: "create TOPIC...", Short: "Create topics", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			settings := map[string]*string{}
			for _, c := range configs {
				k, v, ok := strings.Cut(c, "=")
				if !ok {
					return usage("--config %q is not of the form key=value", c)
				}
				settings[k] = &v
			}
			return admin(cmd.Context(), func(a *kadm.Client) error {
				made, err := a.CreateTopics(cmd.Context(), partitions, 1, settings, names...)
				if err != nil {
					return err
				}
				for _, t := range made.Sorted() {
					if t.Err != nil {
						return fmt.Errorf("topic %q: %w %s", t.Topic, t.Err, t.ErrMessage)
					}
					fmt.Fprintf(cmd.OutOrStdout(), "created %s with %d partition(s)\n", t.Topic, max(t.NumPartitions, 1))
				}
				return nil
			})
		},
	}
	create.Flags().Int32VarP(&partitions, "partitions", "p", 1, "number of partitions")
	create.Flags().StringArrayVarP(&configs, "config", "c", nil, "a setting, key=value; may be repeated")

	list := &cobra.Command{
		Use: "list", Short: "List topics", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return admin(cmd.Context(), func(a *kadm.Client) error {
				topics, err := a.ListTopics(cmd.Context())
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "NAME\tPARTITIONS")
				for _, t := range topics.Sorted() {
					fmt.Fprintf(w, "%s\t%d\n", t.Topic, len(t.Partitions))
				}
				return w.Flush()
			})
		},
	}

	describe := &cobra.Command{
		Use: "describe TOPIC", Short: "Show a topic's partitions, offsets and settings", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return admin(cmd.Context(), func(a *kadm.Client) error { return describeTopic(cmd, a, names[0]) })
		},
	}

	del := &cobra.Command{
		Use: "delete TOPIC...", Short: "Delete topics and their records", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return admin(cmd.Context(), func(a *kadm.Client) error {
				gone, err := a.DeleteTopics(cmd.Context(), names...)
				if err != nil {
					return err
				}
				for _, t := range gone.Sorted() {
					if t.Err != nil {
						return fmt.Errorf("topic %q: %w %s", t.Topic, t.Err, t.ErrMessage)
					}
					fmt.Fprintf(cmd.OutOrStdout(), "deleted %s\n", t.Topic)
				}
				return nil
			})
		},
	}
	cmd.AddCommand(create, list, describe, del)
	return cmd
}

func describeTopic(cmd *cobra.Command, a *kadm.Client, name string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	topics, err := a.ListTopics(ctx, name)
	if err != nil {
		return err
	}
	t := topics[name]
	if t.Err != nil {
		return fmt.Errorf("topic %q: %w", name, t.Err)
	}
	starts, err := a.ListStartOffsets(ctx, name)
	if err != nil {
		return err
	}
	ends, err := a.ListEndOffsets(ctx, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "name        %s\nid          %s\npartitions  %d\n\n", t.Topic, t.ID, len(t.Partitions))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTITION\tSTART\tEND\tRECORDS")
	for _, p := range t.Partitions.Sorted() {
		start, _ := starts.Lookup(name, p.Partition)
		end, _ := ends.Lookup(name, p.Partition)
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\n", p.Partition, start.Offset, end.Offset, end.Offset-start.Offset)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	configs, err := a.DescribeTopicConfigs(ctx, name)
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for _, c := range configs {
		sort.Slice(c.Configs, func(i, k int) bool { return c.Configs[i].Key < c.Configs[k].Key })
		for _, s := range c.Configs {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, s.MaybeValue(), strings.ToLower(s.Source.String()))
		}
	}
	return w.Flush()
}

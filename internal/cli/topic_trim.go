package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// trimRow is a partition whose start moves.
type trimRow struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Start     int64  `json:"start" col:"START"`
	NewStart  int64  `json:"new_start" col:"NEW-START"`
	End       int64  `json:"end"`
	Deleted   int64  `json:"deleted"`
	Error     string `json:"error,omitempty" empty:"hide"`
}

func topicDeleteRecords(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete-records TOPIC", Aliases: []string{"trim", "trim-prefix"}, Short: "Delete a topic's oldest records", Args: cobra.ExactArgs(1),
		ValidArgsFunction: completeTopics,
		Long: "Deletes the records before a place in each partition: they cannot be read any more, and their files go when all of a segment is deleted.\n\n" +
			targetHelp,
	}
	before := cmd.Flags().String("before", "", "the place that the topic is to start at; needed")
	partitions := numbersFlag[int32](cmd.Flags(), "partition", "p", "only in this partition; may be repeated")
	dryRun := cmd.Flags().Bool("dry-run", false, "only show what would go")
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *before == "" {
			return usage("--before is needed: the place that the topic is to start at, such as 42, end or yesterday")
		}
		at, err := parseTarget(*before, time.Now())
		if err != nil {
			return usage("--before %w", err)
		}
		ctx, topic := cmd.Context(), args[0]
		return admin(ctx, *brokers, func(a *cluster) error {
			topics, err := a.ListTopics(ctx, topic)
			if err != nil {
				return err
			}
			if err := topics[topic].Err; err != nil {
				return refused(fmt.Sprintf("topic %q", topic), err, "")
			}
			b, err := listBounds(ctx, a, topic)
			if err != nil {
				return err
			}
			resolve, err := at.resolver(ctx, a, b, topic)
			if err != nil {
				return err
			}
			var rows []trimRow
			offsets := kadm.Offsets{}
			for _, p := range topics[topic].Partitions.Numbers() {
				if len(partitions.list) > 0 && !slices.Contains(partitions.list, p) {
					continue
				}
				start, end, err := b.of(topic, p)
				if err != nil {
					return err
				}
				to, err := resolve(topic, p)
				if err != nil {
					return err
				}
				if at.kind == targetOffset && to > end {
					return fmt.Errorf("%s-%d ends at %d: it cannot start at %d (nothing was deleted)", topic, p, end, to)
				}
				to = min(max(to, start), end)
				rows = append(rows, trimRow{topic, p, start, to, end, to - start, ""})
				offsets.AddOffset(topic, p, to, -1)
			}
			for _, p := range partitions.list {
				if !slices.ContainsFunc(rows, func(r trimRow) bool { return r.Partition == p }) {
					return fmt.Errorf("topic %q has no partition %d: it has %d (nothing was deleted)", topic, p, len(topics[topic].Partitions))
				}
			}
			var failed []error
			if !*dryRun {
				done, err := a.DeleteRecords(ctx, offsets)
				if err != nil {
					return err
				}
				for i := range rows {
					r := &rows[i]
					gone, _ := done.Lookup(topic, r.Partition)
					if gone.Err != nil {
						message := "" // the protocol has no room for the server's
						if errors.Is(gone.Err, kerr.PolicyViolation) {
							message = "its records must stay: a table is changed by SQL, a topic that is only compacted by tombstones, a changelog by its sink"
						}
						err := refused(fmt.Sprintf("%s-%d", topic, r.Partition), gone.Err, message)
						r.Error, r.NewStart, r.Deleted = err.Error(), r.Start, 0
						failed = append(failed, err)
						continue
					}
					r.NewStart = gone.LowWatermark
					r.Deleted = max(r.NewStart-r.Start, 0)
				}
			}
			if err := out.list(cmd.OutOrStdout(), rows); err != nil {
				return err
			}
			if *dryRun {
				fmt.Fprintln(cmd.ErrOrStderr(), "dry run: nothing was deleted")
			}
			return errors.Join(failed...)
		})
	}
	return cmd
}

package cli

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// topicRow is a topic in a list.
type topicRow struct {
	Name       string `json:"name"`
	Partitions int    `json:"partitions"`
	Replicas   int    `json:"replicas"`
	Internal   bool   `json:"internal" col:"-"`
}

func topicList(brokers *string) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List topics", Args: cobra.NoArgs}
	out := outputFlag(cmd)
	internal := cmd.Flags().BoolP("internal", "i", false, "those that the server keeps for itself, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			topics, err := a.ListTopicsWithInternal(cmd.Context())
			if err != nil {
				return err
			}
			var rows []topicRow
			for _, t := range topics.Sorted() {
				if !t.IsInternal || *internal {
					rows = append(rows, topicRow{t.Topic, len(t.Partitions), t.Partitions.NumReplicas(), t.IsInternal})
				}
			}
			return out.list(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

// describedTopic is what there is to know of a topic.
type describedTopic struct {
	Name       string         `json:"name"`
	ID         string         `json:"id"`
	Replicas   int            `json:"replicas"`
	Internal   bool           `json:"internal" col:"-"`
	Size       *byteCount     `json:"bytes" col:"SIZE"`
	Records    int64          `json:"records"`
	Partitions []partitionRow `json:"partitions"`
	Settings   []settingRow   `json:"settings"`
}

type partitionRow struct {
	Partition int32      `json:"partition"`
	Leader    int32      `json:"leader"`
	Start     *int64     `json:"start"`
	End       *int64     `json:"end"`
	Records   *int64     `json:"records"`
	Size      *byteCount `json:"bytes" col:"SIZE"`
	Error     string     `json:"error,omitempty" empty:"hide"`
}

type settingRow struct {
	Setting string  `json:"setting"`
	Value   *string `json:"value"`
	From    string  `json:"from"`
}

func topicDescribe(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "describe TOPIC...", Short: "Show the partitions, offsets and settings of topics", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeTopics,
		Long: "Shows where each partition of a topic starts and ends, its size, and the topic's settings with where they come from. RECORDS counts offsets:\n" +
			"compaction leaves gaps, and the markers of transactions count.",
	}
	out := outputFlag(cmd)
	changed := cmd.Flags().Bool("changed", false, "of the settings, only those that are not the built-in default")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			return eachNamed(names, func(name string) error {
				t, err := describeTopic(cmd.Context(), a, name, *changed)
				if err != nil {
					return err
				}
				return out.describe(cmd.OutOrStdout(), t)
			})
		})
	}
	return cmd
}

func describeTopic(ctx context.Context, a *cluster, name string, changed bool) (*describedTopic, error) {
	topics, err := a.ListTopics(ctx, name)
	if err != nil {
		return nil, err
	}
	t := topics[name]
	if t.Err != nil {
		return nil, refused(fmt.Sprintf("topic %q", name), t.Err, "")
	}
	b, err := listBounds(ctx, a, name)
	if err != nil {
		return nil, err
	}
	d := &describedTopic{Name: t.Topic, ID: base64.RawURLEncoding.EncodeToString(t.ID[:]), Replicas: t.Partitions.NumReplicas(), Internal: t.IsInternal}
	sizes := partitionSizes(ctx, a, t)
	for _, p := range t.Partitions.Sorted() {
		row := partitionRow{Partition: p.Partition, Leader: p.Leader}
		if start, end, err := b.of(name, p.Partition); err != nil {
			row.Error = err.Error()
		} else {
			n := end - start
			row.Start, row.End, row.Records = &start, &end, &n
			d.Records += n
		}
		if n, ok := sizes[p.Partition]; ok {
			row.Size = &n
			if d.Size == nil {
				d.Size = new(byteCount)
			}
			*d.Size += n
		}
		d.Partitions = append(d.Partitions, row)
	}
	d.Settings, err = settingsOf(ctx, a, topicSettings, name, changed)
	return d, err
}

// partitionSizes asks for the bytes of each partition's files; there are none where the server does not tell.
func partitionSizes(ctx context.Context, a *cluster, t kadm.TopicDetail) map[int32]byteCount {
	set := kadm.TopicsSet{}
	for p := range t.Partitions {
		set.Add(t.Topic, p)
	}
	dirs, err := a.DescribeAllLogDirs(ctx, set)
	if err != nil {
		return nil
	}
	out := map[int32]byteCount{}
	dirs.Each(func(d kadm.DescribedLogDir) {
		if d.Err != nil {
			return
		}
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if !p.IsFuture { // replicas are about the same: the largest counts
				out[p.Partition] = max(out[p.Partition], byteCount(p.Size))
			}
		})
	})
	return out
}

package cli

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
)

func topicCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "topic", Aliases: []string{"topics"}, Short: "Create, show, change and delete topics",
		Example: `  leat topic create orders --partitions 6 --config retention.ms=604800000
  leat topic describe orders
  leat topic alter-config orders --set retention.bytes=1073741824 --delete retention.ms
  leat topic add-partitions orders --to 12
  leat topic delete-records orders --before yesterday --dry-run`,
	}
	brokers := brokerFlag(cmd)
	cmd.AddCommand(topicCreate(brokers), topicList(brokers), topicDescribe(brokers), topicDelete(brokers),
		topicAlterConfig(brokers), topicAddPartitions(brokers), topicDeleteRecords(brokers))
	return cmd
}

// parseSettings reads key=value.
func parseSettings(list []string, flag string) (map[string]*string, error) {
	settings := map[string]*string{}
	for _, c := range list {
		k, v, ok := strings.Cut(c, "=")
		if !ok || k == "" {
			return nil, usage("%s%q is not of the form key=value", flag, c)
		}
		settings[k] = &v
	}
	return settings, nil
}

func topicCreate(brokers *string) *cobra.Command {
	cmd := &cobra.Command{Use: "create TOPIC...", Short: "Create topics", Args: cobra.MinimumNArgs(1)}
	var (
		partitions int32
		replicas   int16
	)
	numberFlag(cmd.Flags(), &partitions, "partitions", "p", -1, 1, math.MaxInt32, "number of partitions; without it the server's default")
	numberFlag(cmd.Flags(), &replicas, "replicas", "r", -1, 1, math.MaxInt16, "copies of each partition, for an Apache Kafka cluster; without it the server's default")
	configs := cmd.Flags().StringArrayP("config", "c", nil, "a setting, key=value; may be repeated")
	ifMissing := cmd.Flags().Bool("if-not-exists", false, "a topic that exists already is no error")
	dryRun := cmd.Flags().Bool("dry-run", false, "only check whether it could be done")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		settings, err := parseSettings(*configs, "--config ")
		if err != nil {
			return err
		}
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			create, done := a.CreateTopics, "created"
			if *dryRun {
				create, done = a.ValidateCreateTopics, "could create"
			}
			made, err := create(cmd.Context(), partitions, replicas, settings, names...)
			if err != nil {
				return err
			}
			return eachNamed(names, func(name string) error {
				t := made[name]
				if t.Err != nil && *ifMissing && errors.Is(t.Err, kerr.TopicAlreadyExists) {
					fmt.Fprintf(cmd.OutOrStdout(), "%s exists already\n", name)
					return nil
				}
				if t.Err != nil {
					return refused(fmt.Sprintf("topic %q", name), t.Err, t.ErrMessage)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s with %d partition(s)\n", done, t.Topic, max(t.NumPartitions, partitions, 1))
				return nil
			})
		})
	}
	return cmd
}

func topicDelete(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete TOPIC...", Short: "Delete topics and their records", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeTopics,
	}
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			gone, err := a.DeleteTopics(cmd.Context(), names...)
			if err != nil {
				return err
			}
			return eachNamed(names, func(name string) error {
				if t := gone[name]; t.Err != nil {
					return refused(fmt.Sprintf("topic %q", name), t.Err, t.ErrMessage)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "deleted %s\n", name)
				return nil
			})
		})
	}
	return cmd
}

func topicAlterConfig(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "alter-config TOPIC...", Short: "Set and delete settings of topics", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeTopics,
		Long: "Sets settings, and deletes others so that their defaults hold again, all at once: either every change is made or none.",
	}
	set := cmd.Flags().StringArrayP("set", "s", nil, "a setting, key=value; may be repeated")
	del := cmd.Flags().StringArrayP("delete", "d", nil, "a setting whose default is to hold again; may be repeated")
	dryRun := cmd.Flags().Bool("dry-run", false, "only check whether it could be done")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		changes, err := configChanges(*set, *del)
		if err != nil {
			return err
		}
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			return alterConfigs(cmd, a, topicSettings, names, changes, *dryRun)
		})
	}
	return cmd
}

func topicAddPartitions(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "add-partitions TOPIC...", Short: "Let topics grow", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeTopics,
		Long: "Adds partitions to topics. Records stay where they are, but clients choose a partition by the key and the number of partitions:\n" +
			"some keys go to another partition from then on, so that their new records may be read before their older ones. A topic cannot shrink.",
	}
	var add, total int32
	numberFlag(cmd.Flags(), &add, "num", "n", 0, 1, math.MaxInt32, "how many partitions to add")
	numberFlag(cmd.Flags(), &total, "to", "", 0, 1, math.MaxInt32, "how many partitions there are to be")
	dryRun := cmd.Flags().Bool("dry-run", false, "only check whether it could be done")
	cmd.MarkFlagsOneRequired("num", "to")
	cmd.MarkFlagsMutuallyExclusive("num", "to")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			topics, err := a.ListTopics(cmd.Context(), names...)
			if err != nil {
				return err
			}
			return eachNamed(names, func(name string) error {
				if err := topics[name].Err; err != nil {
					return refused(fmt.Sprintf("topic %q", name), err, "")
				}
				before := len(topics[name].Partitions)
				after := int(total)
				if add > 0 {
					after = before + int(add)
				}
				if after < before {
					return fmt.Errorf("topic %q has %d partitions and cannot shrink to %d: make a new topic and copy what is to stay", name, before, after)
				}
				update, done := a.UpdatePartitions, "has"
				if *dryRun {
					update, done = a.ValidateUpdatePartitions, "could have"
				}
				made, err := update(cmd.Context(), after, name)
				if err != nil {
					return err
				}
				if r := made[name]; r.Err != nil {
					return refused(fmt.Sprintf("topic %q", name), r.Err, r.ErrMessage)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s %d partitions, before %d\n", name, done, after, before)
				fmt.Fprintf(cmd.OutOrStdout(), "Old records stay where they are. A key's new records may go to another partition than its old ones: %s.\n", moved(before, after))
				return nil
			})
		})
	}
	return cmd
}

// moved says how many keys change their partition when a hash is taken modulo another number. A key stays where its hash leaves the same
// remainder for both: that is min(before, after) out of their least common multiple.
func moved(before, after int) string {
	common := before
	for a, b := before, after; ; a, b = b, a%b {
		if b == 0 {
			common = before / a * after
			break
		}
	}
	return fmt.Sprintf("about %d %% of the keys do", 100-100*min(before, after)/common)
}

// eachNamed runs fn for each name once, and returns the first error after the last.
func eachNamed(names []string, fn func(name string) error) error {
	var failed []error
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		if err := fn(name); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

func groupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "group", Aliases: []string{"groups"}, Short: "Show, move and delete consumer groups",
		Example: `  leat group describe billing
  leat group reset-offsets billing --to "last week" --dry-run
  leat group reset-offsets billing --to earliest --topic orders:0,3
  leat group reset-offsets billing --shift -1000
  leat group delete billing`,
	}
	brokers := brokerFlag(cmd)
	cmd.AddCommand(groupList(brokers), groupDescribe(brokers), groupDelete(brokers), groupDeleteOffsets(brokers), groupReset(brokers))
	return cmd
}

// groupRow is a group in a list.
type groupRow struct {
	Group       string `json:"group"`
	Type        string `json:"type"`
	State       string `json:"state"`
	Protocol    string `json:"protocol"`
	Coordinator int32  `json:"coordinator"`
}

func groupList(brokers *string) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List groups", Args: cobra.NoArgs}
	out := outputFlag(cmd)
	states := wordsFlag(cmd, "state", []string{"Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead", "NotReady"}, "only groups in this state")
	types := wordsFlag(cmd, "type", []string{"classic", "consumer", "share", "streams"}, "only groups of this type")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			groups, err := a.ListGroupsByType(cmd.Context(), types.list, states.list...)
			if err != nil {
				return err
			}
			var rows []groupRow
			for _, g := range groups.Sorted() {
				rows = append(rows, groupRow{g.Group, strings.ToLower(g.GroupType), g.State, g.ProtocolType, g.Coordinator})
			}
			return out.list(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

func groupDelete(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete GROUP...", Short: "Delete groups that have no members, with their offsets", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeGroups,
	}
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			gone, err := a.DeleteGroups(cmd.Context(), names...)
			if err != nil {
				return err
			}
			return eachNamed(names, func(name string) error {
				if g := gone[name]; g.Err != nil {
					return refused(fmt.Sprintf("group %q", name), g.Err, g.ErrMessage)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "deleted %s\n", name)
				return nil
			})
		})
	}
	return cmd
}

func groupDeleteOffsets(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete-offsets GROUP", Aliases: []string{"offset-delete"}, Short: "Forget a group's offsets in topics that none of its members reads",
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeGroups,
	}
	topics := cmd.Flags().StringArrayP("topic", "t", nil, "a topic, or some of its partitions (orders:0,1); needed, may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(*topics) == 0 {
			return usage("--topic is needed: the topic whose offsets are to be forgotten")
		}
		name := args[0]
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			committed, err := committedOffsets(cmd.Context(), a, name)
			if err != nil {
				return err
			}
			set := kadm.TopicsSet{}
			for _, text := range *topics {
				topic, partitions, err := parsePartitions(text)
				if err != nil {
					return err
				}
				if partitions == nil {
					for p := range committed[topic] {
						partitions = append(partitions, p)
					}
				}
				if len(partitions) == 0 {
					return fmt.Errorf("group %q has no offsets in topic %q", name, topic)
				}
				set.Add(topic, partitions...)
			}
			gone, err := a.DeleteOffsets(cmd.Context(), name, set)
			if err != nil {
				return refused(fmt.Sprintf("group %q", name), err, "")
			}
			var failed []error
			for _, t := range set.Sorted() {
				slices.Sort(t.Partitions)
				for _, p := range t.Partitions {
					if err, _ := gone.Lookup(t.Topic, p); err != nil {
						failed = append(failed, refused(fmt.Sprintf("%s-%d", t.Topic, p), err, ""))
						continue
					}
					fmt.Fprintf(cmd.OutOrStdout(), "deleted the offset of %s in %s-%d\n", name, t.Topic, p)
				}
			}
			return errors.Join(failed...)
		})
	}
	return cmd
}

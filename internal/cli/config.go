package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// settingKind is a kind of thing that has settings.
type settingKind struct {
	name string
	kind kmsg.ConfigResourceType
}

var (
	topicSettings  = settingKind{"topic", kmsg.ConfigResourceTypeTopic}
	brokerSettings = settingKind{"broker", kmsg.ConfigResourceTypeBroker}
	groupSettings  = settingKind{"group", kmsg.ConfigResourceTypeGroupConfig}
)

func parseSettingKind(name string) (settingKind, error) {
	for _, k := range []settingKind{topicSettings, brokerSettings, groupSettings} {
		if name == k.name || name == k.name+"s" {
			return k, nil
		}
	}
	return settingKind{}, usage("%q has no settings: topic, broker and group have", name)
}

// settingsOf returns the settings of one thing, by name. A broker without a name is the one that was reached.
func settingsOf(ctx context.Context, a *cluster, kind settingKind, name string, changed bool) ([]settingRow, error) {
	if kind == brokerSettings && name == "" {
		meta, err := a.BrokerMetadata(ctx)
		if err != nil {
			return nil, err
		}
		if len(meta.Brokers) == 0 {
			return nil, errors.New("the server names no broker")
		}
		name = strconv.Itoa(int(meta.Brokers[0].NodeID))
	}
	req := kmsg.NewPtrDescribeConfigsRequest()
	rr := kmsg.NewDescribeConfigsRequestResource()
	rr.ResourceType, rr.ResourceName = kind.kind, name
	req.Resources = append(req.Resources, rr)
	resp, err := req.RequestWith(ctx, a.kafka)
	if err != nil {
		return nil, fmt.Errorf("settings of %s %q: %w", kind.name, name, err)
	}
	rows := []settingRow{}
	for _, r := range resp.Resources {
		if err := answer(fmt.Sprintf("%s %q", kind.name, name), r.ErrorCode, r.ErrorMessage); err != nil {
			return nil, err
		}
		for _, c := range r.Configs {
			from := strings.ToLower(c.Source.String())
			if changed && strings.HasPrefix(from, "default") {
				continue
			}
			if c.IsSensitive {
				c.Value = nil
			}
			rows = append(rows, settingRow{c.Name, c.Value, from})
		}
	}
	slices.SortFunc(rows, func(a, b settingRow) int { return strings.Compare(a.Setting, b.Setting) })
	return rows, nil
}

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Aliases: []string{"configs"}, Short: "Show and change settings of topics, brokers and groups",
		Example: `  leat config get topic orders
  leat config get topic orders retention.ms cleanup.policy
  leat config set topic orders retention.ms=86400000 cleanup.policy=compact,delete
  leat config delete topic orders retention.ms
  leat config get broker
  leat config set group billing consumer.session.timeout.ms=60000`,
	}
	brokers := brokerFlag(cmd)
	cmd.AddCommand(configGet(brokers), configSet(brokers), configDelete(brokers))
	return cmd
}

func configGet(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get topic|broker|group [NAME [SETTING...]]", Aliases: []string{"describe"}, Short: "Show settings, with where they come from",
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeSettings,
	}
	out := outputFlag(cmd)
	changed := cmd.Flags().Bool("changed", false, "only those that are not the built-in default")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, err := parseSettingKind(args[0])
		if err != nil {
			return err
		}
		name := ""
		switch {
		case len(args) > 1:
			name = args[1]
		case kind != brokerSettings:
			return usage("which %s?", kind.name)
		}
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			rows, err := settingsOf(cmd.Context(), a, kind, name, *changed)
			if err != nil {
				return err
			}
			if len(args) > 2 {
				wanted := args[2:]
				for _, w := range wanted {
					if !slices.ContainsFunc(rows, func(r settingRow) bool { return r.Setting == w }) && !*changed {
						return fmt.Errorf("%s %q has no setting %q", kind.name, name, w)
					}
				}
				rows = slices.DeleteFunc(rows, func(r settingRow) bool { return !slices.Contains(wanted, r.Setting) })
			}
			return out.list(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

func configSet(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set topic|broker|group NAME SETTING=VALUE...", Short: "Set settings", Args: cobra.MinimumNArgs(3), ValidArgsFunction: completeSettings,
		Long: "Sets settings, all at once: either every change is made or none.",
	}
	dryRun := cmd.Flags().Bool("dry-run", false, "only check whether it could be done")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return changeConfig(cmd, *brokers, args, args[2:], nil, *dryRun)
	}
	return cmd
}

func configDelete(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete topic|broker|group NAME SETTING...", Aliases: []string{"unset"}, Short: "Delete settings, so that their defaults hold again",
		Args: cobra.MinimumNArgs(3), ValidArgsFunction: completeSettings,
	}
	dryRun := cmd.Flags().Bool("dry-run", false, "only check whether it could be done")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return changeConfig(cmd, *brokers, args, nil, args[2:], *dryRun)
	}
	return cmd
}

func changeConfig(cmd *cobra.Command, brokers string, args, set, del []string, dryRun bool) error {
	kind, err := parseSettingKind(args[0])
	if err != nil {
		return err
	}
	changes, err := configChanges(set, del)
	if err != nil {
		return err
	}
	return admin(cmd.Context(), brokers, func(a *cluster) error { return alterConfigs(cmd, a, kind, args[1:2], changes, dryRun) })
}

// configChanges are settings to set (key=value) and to delete (key).
func configChanges(set, del []string) ([]kmsg.IncrementalAlterConfigsRequestResourceConfig, error) {
	settings, err := parseSettings(set, "")
	if err != nil {
		return nil, err
	}
	if len(settings)+len(del) == 0 {
		return nil, usage("nothing to change: --set key=value sets a setting, --delete key deletes one")
	}
	var changes []kmsg.IncrementalAlterConfigsRequestResourceConfig
	for k, v := range settings {
		changes = append(changes, configChange(kmsg.IncrementalAlterConfigOpSet, k, v))
	}
	for _, k := range del {
		if settings[k] != nil {
			return nil, usage("%s is both to be set and to be deleted", k)
		}
		changes = append(changes, configChange(kmsg.IncrementalAlterConfigOpDelete, k, nil))
	}
	return changes, nil
}

func configChange(op kmsg.IncrementalAlterConfigOp, name string, value *string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Op, c.Name, c.Value = op, name, value
	return c
}

// alterConfigs changes the same settings of several things.
func alterConfigs(cmd *cobra.Command, a *cluster, kind settingKind, names []string, changes []kmsg.IncrementalAlterConfigsRequestResourceConfig, dryRun bool) error {
	done := "changed"
	if dryRun {
		done = "could change"
	}
	return eachNamed(names, func(name string) error {
		about := fmt.Sprintf("%s %q", kind.name, name)
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.ValidateOnly = dryRun
		rr := kmsg.NewIncrementalAlterConfigsRequestResource()
		rr.ResourceType, rr.ResourceName, rr.Configs = kind.kind, name, changes
		req.Resources = append(req.Resources, rr)
		resp, err := req.RequestWith(cmd.Context(), a.kafka)
		if err != nil {
			return fmt.Errorf("%s: %w", about, err)
		}
		for _, r := range resp.Resources {
			if err := answer(about, r.ErrorCode, r.ErrorMessage); err != nil {
				return err
			}
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s %d setting(s) of %s %s\n", done, len(changes), kind.name, name)
		return nil
	})
}

// completeSettings offers the kinds, then the names of topics and groups.
func completeSettings(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return []string{topicSettings.name, brokerSettings.name, groupSettings.name}, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && args[0] == topicSettings.name:
		return completeTopics(cmd, nil, prefix)
	case len(args) == 1 && args[0] == groupSettings.name:
		return completeGroups(cmd, nil, prefix)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

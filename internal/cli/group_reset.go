package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// moveRow is a position before and after a reset.
type moveRow struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Before    *int64 `json:"before"`
	After     int64  `json:"after"`
	Change    *int64 `json:"change"`
	Lag       int64  `json:"lag_after" col:"LAG-AFTER"`
	Note      string `json:"note,omitempty" empty:"hide"`
}

func groupReset(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reset-offsets GROUP", Aliases: []string{"reset", "seek"}, Short: "Move a group that has no members to another place",
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeGroups,
		Long: "Moves the committed offsets of a group, so that its members go on from there when they start again. The group must have none: they would\n" +
			"go on from what they have in memory, and commit that. Without --topic all partitions that the group has offsets in are moved; --topic also\n" +
			"gives it its first offsets in a topic. What lies before the start or behind the end of a partition is moved to there.\n\n" + targetHelp + `

A file of --to-file has a line for each partition: topic, partition and offset, with blanks or commas between.`,
		Example: `  leat group reset-offsets billing --to "last week" --dry-run
  leat group reset-offsets billing --to 2026-01-31T09:00:00Z --topic orders
  leat group reset-offsets billing --to earliest --topic orders:0,3
  leat group reset-offsets billing --shift -1000
  leat group reset-offsets billing --to-group billing-copy`,
	}
	f := cmd.Flags()
	to := f.String("to", "", "place to go to: start, end, an offset, +N, -N or a time (\"last week\", yesterday, -24h, 2026-01-31T09:00:00Z)")
	shift := f.Int64("shift", 0, "move by so many offsets from where the group stands; negative: back")
	toGroup := f.String("to-group", "", "go to where another group stands")
	toFile := f.String("to-file", "", "go to the offsets in a file; - is standard input")
	topics := f.StringArrayP("topic", "t", nil, "only this topic, or some of its partitions (orders:0,1); may be repeated")
	dryRun := f.Bool("dry-run", false, "only show what would be moved")
	out := outputFlag(cmd)
	cmd.MarkFlagsOneRequired("to", "shift", "to-group", "to-file")
	cmd.MarkFlagsMutuallyExclusive("to", "shift", "to-group", "to-file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r := reset{group: args[0], selected: map[string][]int32{}}
		for _, text := range *topics {
			topic, partitions, err := parsePartitions(text)
			if err != nil {
				return err
			}
			r.selected[topic] = append(r.selected[topic], partitions...)
		}
		switch {
		case f.Changed("to"):
			at, err := parseTarget(*to, time.Now())
			if err != nil {
				return usage("--to %w", err)
			}
			r.at = &at
		case f.Changed("shift"):
			r.shift = *shift
		case *toFile != "":
			in := cmd.InOrStdin()
			if *toFile != "-" {
				file, err := os.Open(*toFile)
				if err != nil {
					return err
				}
				defer file.Close()
				in = file
			}
			offsets, err := readOffsets(in)
			if err != nil {
				return usage("--to-file %s: %w", *toFile, err)
			}
			r.given = offsets
		}
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			if *toGroup != "" {
				other, err := committedOffsets(cmd.Context(), a, *toGroup)
				if err != nil {
					return err
				}
				if len(other) == 0 {
					return fmt.Errorf("group %q has no offsets to go to", *toGroup)
				}
				r.given = other
			}
			rows, err := r.plan(cmd.Context(), a)
			if err != nil {
				return err
			}
			if r.at != nil && r.at.kind == targetTime {
				fmt.Fprintf(cmd.ErrOrStderr(), "to the first records at or after %s\n", r.at.at.Format(time.RFC3339))
			}
			var failed error
			if !*dryRun {
				failed = r.commit(cmd.Context(), a, rows)
			}
			if failed == nil {
				failed = out.list(cmd.OutOrStdout(), rows)
			}
			if *dryRun {
				fmt.Fprintln(cmd.ErrOrStderr(), "dry run: nothing was moved")
			}
			return failed
		})
	}
	return cmd
}

// reset is a move of a group's offsets: to a target, by a distance, or to given offsets.
type reset struct {
	group    string
	selected map[string][]int32 // topics and their partitions, no partitions: all of them; empty: what the group has offsets in
	at       *target
	shift    int64
	given    map[string]map[int32]int64
}

// plan says what would be moved where.
func (r *reset) plan(ctx context.Context, a *cluster) ([]moveRow, error) {
	if err := r.mustBeEmpty(ctx, a); err != nil {
		return nil, err
	}
	committed, err := committedOffsets(ctx, a, r.group)
	if err != nil {
		return nil, err
	}
	places, err := r.places(ctx, a, committed)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(places))
	b, err := listBounds(ctx, a, names...)
	if err != nil {
		return nil, err
	}
	var resolve func(string, int32) (int64, error)
	if r.at != nil {
		if resolve, err = r.at.resolver(ctx, a, b, names...); err != nil {
			return nil, err
		}
	}
	var rows []moveRow
	for _, t := range names {
		for _, p := range places[t] {
			before, has := committed[t][p]
			var to int64
			switch {
			case resolve != nil:
				if to, err = resolve(t, p); err != nil {
					return nil, err
				}
			case r.given != nil:
				to = r.given[t][p]
			case !has:
				return nil, fmt.Errorf("group %q has no offset in %s-%d that could be shifted: --to gives it one", r.group, t, p)
			default:
				to = before + r.shift
			}
			start, end, err := b.of(t, p)
			if err != nil {
				return nil, err
			}
			row := moveRow{Topic: t, Partition: p, After: min(max(to, start), end)}
			switch {
			case to < start:
				row.Note = fmt.Sprintf("%d is before the start", to)
			case to > end:
				row.Note = fmt.Sprintf("%d is behind the end", to)
			}
			if has {
				change := row.After - before
				row.Before, row.Change = &before, &change
			}
			row.Lag = end - row.After
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// mustBeEmpty refuses a group that has members.
func (r *reset) mustBeEmpty(ctx context.Context, a *cluster) error {
	groups, err := a.ListGroups(ctx)
	if err != nil {
		return err
	}
	listed, ok := groups[r.group]
	if !ok {
		if len(r.selected) == 0 && r.given == nil {
			return fmt.Errorf("group %q does not exist: --topic names what a new group is to read, `leat group list` shows those there are", r.group)
		}
		return nil
	}
	g := describedGroup{Group: r.group, Type: strings.ToLower(listed.GroupType)}
	if err := g.addMembers(ctx, a); err != nil {
		return err
	}
	if g.MemberCount == 0 {
		return nil
	}
	clients := map[string]bool{}
	for _, m := range g.Members {
		clients[m.Client+" at "+m.Host] = true
	}
	return fmt.Errorf("group %q has %d active member(s) (%s): stop them first, they would commit over the new offsets; nothing was moved",
		r.group, g.MemberCount, printable(strings.Join(slices.Sorted(maps.Keys(clients)), ", ")))
}

// places lists the partitions that are moved.
func (r *reset) places(ctx context.Context, a *cluster, committed map[string]map[int32]int64) (map[string][]int32, error) {
	from := committed
	if r.given != nil {
		from = r.given
	}
	out := map[string][]int32{}
	if len(r.selected) == 0 {
		for t, ps := range from {
			out[t] = slices.Sorted(maps.Keys(ps))
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("group %q has no offsets: --topic names what it is to read", r.group)
		}
		return out, nil
	}
	topics, err := a.ListTopics(ctx, slices.Sorted(maps.Keys(r.selected))...)
	if err != nil {
		return nil, err
	}
	for t, some := range r.selected {
		if err := topics[t].Err; err != nil {
			return nil, refused(fmt.Sprintf("topic %q", t), err, "")
		}
		for _, p := range some {
			if _, ok := topics[t].Partitions[p]; !ok {
				return nil, fmt.Errorf("topic %q has no partition %d: it has %d", t, p, len(topics[t].Partitions))
			}
		}
		if len(some) == 0 {
			some = topics[t].Partitions.Numbers()
		}
		if r.given != nil {
			some = slices.DeleteFunc(slices.Clone(some), func(p int32) bool { _, ok := r.given[t][p]; return !ok })
		}
		if len(some) > 0 {
			slices.Sort(some)
			out[t] = slices.Compact(some)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("what is to be gone to has no offsets in the topics that were named")
	}
	return out, nil
}

func (r *reset) commit(ctx context.Context, a *cluster, rows []moveRow) error {
	offsets := kadm.Offsets{}
	for _, row := range rows {
		offsets.AddOffset(row.Topic, row.Partition, row.After, -1)
	}
	done, err := a.CommitOffsets(ctx, r.group, offsets)
	if err != nil {
		return refused(fmt.Sprintf("group %q", r.group), err, "")
	}
	var failed []error
	for _, o := range done.Sorted() {
		if o.Err != nil {
			failed = append(failed, refused(fmt.Sprintf("group %q, %s-%d", r.group, o.Topic, o.Partition), o.Err, ""))
		}
	}
	return errors.Join(failed...)
}

// readOffsets reads lines of topic, partition and offset.
func readOffsets(in io.Reader) (map[string]map[int32]int64, error) {
	out := map[string]map[int32]int64{}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		words := strings.FieldsFunc(lines.Text(), func(c rune) bool { return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '"' })
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 3 {
			return nil, fmt.Errorf("line %d: %q is not of the form topic partition offset", n, lines.Text())
		}
		p, err := strconv.ParseInt(words[1], 10, 32)
		if err != nil || p < 0 {
			return nil, fmt.Errorf("line %d: %q is no partition", n, words[1])
		}
		o, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil || o < 0 {
			return nil, fmt.Errorf("line %d: %q is no offset", n, words[2])
		}
		if out[words[0]] == nil {
			out[words[0]] = map[int32]int64{}
		}
		out[words[0]][int32(p)] = o
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errors.New("it has no offsets")
	}
	return out, nil
}

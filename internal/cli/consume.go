package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consuming is what the flags of consume say.
type consuming struct {
	brokers                    *string
	beginning, untilEnd, regex bool
	offset, fromTime, toTime   string
	group, isolation           string
	format, separator          string
	limit                      int
	partitions                 numbers[int32]
	output                     *output

	start    target
	until    time.Time // of --to-time; zero: no such
	print    recordFormat
	out      *bufio.Writer
	seen     int
	assigned atomic.Bool // the group has given this member its partitions
}

func consumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "consume TOPIC...", Short: "Print records to standard output", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeTopics,
		Long: "Prints records as they come, the value of each on a line of its own, until -n of them, the end (-e), a time (--to-time) or an interrupt.\n" +
			"It starts behind the newest record unless told otherwise. Records of transactions that are open or aborted are not shown, unless\n" +
			"--isolation is read_uncommitted.\n\n" + targetHelp + "\n\n" + recordFormatHelp,
		Example: `  leat consume orders --from-beginning -n 10
  leat consume orders --offset -5 -e
  leat consume orders --from-time "2 hours ago" --to-time "1 hour ago"
  leat consume orders --partition 0 --offset 42 -n 1 --output json
  leat consume orders -f '%t-%p @ %o: %k = %s\n'
  leat consume orders --group billing --from-beginning`,
	}
	c := &consuming{brokers: brokerFlag(cmd)}
	f := cmd.Flags()
	f.BoolVar(&c.beginning, "from-beginning", false, "start at the oldest record (a group with a position goes on from it)")
	f.StringVarP(&c.offset, "offset", "o", "", "start at this place: start, end, an offset, +N, -N or a time")
	f.StringVar(&c.fromTime, "from-time", "", "start at the first record at or after this time")
	f.StringVar(&c.toTime, "to-time", "", "end before the first record at or after this time, in each partition")
	f.StringVarP(&c.group, "group", "g", "", "consumer group whose position is used and committed")
	f.VarP(&c.partitions, "partition", "p", "only this partition; may be repeated")
	f.BoolVarP(&c.regex, "regex", "r", false, "topics are regular expressions")
	numberFlag(f, &c.limit, "number", "n", 0, 0, math.MaxInt, "stop after so many records; 0: never")
	f.BoolVarP(&c.untilEnd, "until-end", "e", false, "stop at what is the end when it starts")
	f.StringVar(&c.isolation, "isolation", "read_committed", "read_committed or read_uncommitted")
	f.StringVar(&c.separator, "key-separator", "", "print the key and this in front of each value")
	f.StringVarP(&c.format, "format", "f", "", `how to print a record, such as '%t %p %o %k %s\n'`)
	c.output = outputFlag(cmd)
	f.Lookup("output").Usage = "json: an object a line, with topic, partition, offset, timestamp, key, value and headers"
	_ = cmd.RegisterFlagCompletionFunc("isolation", cobra.FixedCompletions([]string{"read_committed", "read_uncommitted"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("group", completeGroups)
	cmd.MarkFlagsMutuallyExclusive("from-beginning", "offset", "from-time")
	cmd.MarkFlagsMutuallyExclusive("format", "output", "key-separator")
	cmd.MarkFlagsMutuallyExclusive("group", "partition")
	cmd.MarkFlagsMutuallyExclusive("regex", "partition")
	cmd.RunE = func(cmd *cobra.Command, topics []string) error {
		c.out = bufio.NewWriter(cmd.OutOrStdout())
		defer c.out.Flush()
		err := c.run(cmd.Context(), topics)
		if errors.Is(err, context.Canceled) {
			return nil // interrupted: that is how consuming ends
		}
		return err
	}
	return cmd
}

// parse makes sense of the flags.
func (c *consuming) parse() error {
	now := time.Now()
	c.start = target{kind: targetEnd}
	var err error
	switch {
	case c.beginning:
		c.start = target{kind: targetStart}
	case c.offset != "":
		if c.start, err = parseTarget(c.offset, now); err != nil {
			return usage("--offset %w", err)
		}
	case c.fromTime != "":
		at, err := parseWhen(c.fromTime, now)
		if err != nil {
			return usage("--from-time %w", err)
		}
		c.start = target{kind: targetTime, at: at}
	}
	if c.toTime != "" {
		if c.until, err = parseWhen(c.toTime, now); err != nil {
			return usage("--to-time %w", err)
		}
	}
	switch {
	case c.output.json:
		c.print = recordAsJSON
	case c.format != "":
		if c.print, err = parseRecordFormat(c.format); err != nil {
			return usage("--format: %w", err)
		}
	case c.separator != "":
		c.print = recordFormat{recordPieces['k'], func(dst []byte, _ *kgo.Record) []byte { return append(dst, c.separator...) }, recordPieces['s'], appendNewline}
	default:
		c.print = recordFormat{recordPieces['s'], appendNewline}
	}
	return nil
}

func appendNewline(dst []byte, _ *kgo.Record) []byte { return append(dst, '\n') }

func (c *consuming) run(ctx context.Context, topics []string) error {
	if err := c.parse(); err != nil {
		return err
	}
	levels := map[string]kgo.IsolationLevel{"read_committed": kgo.ReadCommitted(), "read_uncommitted": kgo.ReadUncommitted()}
	level, ok := levels[c.isolation]
	if !ok {
		return usage("--isolation %q: read_committed and read_uncommitted are known", c.isolation)
	}
	opts := []kgo.Opt{kgo.FetchIsolationLevel(level), kgo.ConsumeResetOffset(c.start.offset()), kgo.FetchMaxWait(500 * time.Millisecond)}
	var ends *ends
	err := admin(ctx, *c.brokers, func(a *cluster) error {
		partitions, details, err := c.choose(ctx, a, topics)
		if err != nil {
			return err
		}
		if c.untilEnd || !c.until.IsZero() {
			if ends, err = c.findEnds(ctx, a, partitions); err != nil {
				return err
			}
			ends.topics, ends.level = details, level
		}
		switch {
		case c.regex:
			opts = append(opts, kgo.ConsumeTopics(topics...), kgo.ConsumeRegex())
		case len(c.partitions.list) > 0:
			from := map[string]map[int32]kgo.Offset{}
			for t, ps := range partitions {
				from[t] = map[int32]kgo.Offset{}
				for _, p := range ps {
					from[t][p] = c.start.offset()
				}
			}
			opts = append(opts, kgo.ConsumePartitions(from))
		default:
			opts = append(opts, kgo.ConsumeTopics(topics...))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.group != "" {
		opts = append(opts, kgo.ConsumerGroup(c.group), kgo.DisableAutoCommit(),
			kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { c.assigned.Store(true) }))
	}
	if ends != nil {
		if ends.reached() {
			return nil
		}
		opts = append(opts, kgo.KeepControlRecords()) // a marker may be the last one
	}
	client, err := connectBrokers(*c.brokers, opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	return c.poll(ctx, client, ends)
}

// choose returns the partitions that are read, by topic.
func (c *consuming) choose(ctx context.Context, a *cluster, names []string) (map[string][]int32, kadm.TopicDetails, error) {
	if c.regex {
		if c.untilEnd || !c.until.IsZero() {
			return nil, nil, usage("--regex: topics that come later have no end yet, so there is no --until-end and no --to-time")
		}
		return nil, nil, nil
	}
	topics, err := a.ListTopics(ctx, names...)
	if err != nil {
		return nil, nil, err
	}
	out := map[string][]int32{}
	for _, name := range names {
		t := topics[name]
		if t.Err != nil {
			return nil, nil, refused(fmt.Sprintf("topic %q", name), t.Err, "")
		}
		out[name] = t.Partitions.Numbers()
		if len(c.partitions.list) == 0 {
			continue
		}
		for _, p := range c.partitions.list {
			if _, ok := t.Partitions[p]; !ok {
				return nil, nil, fmt.Errorf("topic %q has no partition %d: it has %d", name, p, len(t.Partitions))
			}
		}
		out[name] = c.partitions.list
	}
	return out, topics, nil
}

// poll prints records until there is nothing left to do.
func (c *consuming) poll(ctx context.Context, client *kgo.Client, ends *ends) error {
	var line []byte
	idle := time.Now()
	for c.limit == 0 || c.seen < c.limit {
		records := 0
		if c.limit > 0 {
			records = c.limit - c.seen
		}
		wait, cancel := ctx, context.CancelFunc(func() {})
		if ends != nil {
			wait, cancel = context.WithTimeout(ctx, endLook)
		}
		fetches := client.PollRecords(wait, records)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return refused("consuming", err, "")
		}
		fetches.EachRecord(func(r *kgo.Record) {
			idle = time.Now()
			if ends != nil && !ends.before(r) || r.Attrs.IsControl() {
				return
			}
			line = line[:0]
			for _, piece := range c.print {
				line = piece(line, r)
			}
			_, _ = c.out.Write(line) // Flush has the error
			c.seen++
		})
		if err := c.out.Flush(); err != nil {
			return err
		}
		if c.group != "" && !fetches.Empty() {
			if err := client.CommitUncommittedOffsets(ctx); err != nil {
				return refused(fmt.Sprintf("group %q", c.group), err, "")
			}
		}
		if c.group != "" && !c.assigned.Load() {
			idle = time.Now()
		}
		if ends == nil {
			continue
		}
		if fetches.Empty() {
			ends.look(ctx, client)
		}
		if ends.reached() || time.Since(idle) > endPatience { // in a group others may read the rest
			return nil
		}
	}
	return nil
}

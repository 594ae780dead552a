package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// describedGroup is what there is to know of a group.
type describedGroup struct {
	Group       string        `json:"group"`
	Type        string        `json:"type"`
	State       string        `json:"state"`
	Assignor    string        `json:"assignor"`
	Coordinator int32         `json:"coordinator"`
	MemberCount int           `json:"member_count" col:"MEMBERS"`
	Lag         int64         `json:"lag" col:"LAG"`
	Partitions  []positionRow `json:"partitions"`
	Members     []memberRow   `json:"members"`
}

// positionRow is where a group stands in a partition. What it does not know is null.
type positionRow struct {
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Committed  *int64   `json:"committed"`
	Start      *int64   `json:"start"`
	End        *int64   `json:"end"`
	Lag        *int64   `json:"lag"`
	ToDeletion *int64   `json:"records_to_deletion" col:"TO-DELETION"`
	Age        *seconds `json:"lag_seconds" col:"BEHIND" empty:"hide"`
	Left       *seconds `json:"seconds_to_deletion" col:"DELETED-IN" empty:"hide"`
	Member     string   `json:"member_id"`
	Note       string   `json:"note,omitempty" empty:"hide"`
}

type memberRow struct {
	Member     string   `json:"member_id" col:"MEMBER-ID"`
	Instance   string   `json:"instance_id" col:"INSTANCE"`
	Client     string   `json:"client_id" col:"CLIENT"`
	Host       string   `json:"host"`
	Partitions []string `json:"assigned" col:"ASSIGNED"`

	assigned kadm.TopicsSet
}

func groupDescribe(brokers *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "describe GROUP...", Short: "Show a group's members, positions, lag and distance to deletion", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: completeGroups,
		Long: "Shows the members of a group, and for each partition where the group stands: LAG is how many offsets are left to read, TO-DELETION how many\n" +
			"retention may delete before it meets what the group has not read. With --times also how old the next record to read is, and how long\n" +
			"the topic's retention.ms keeps it at least.",
	}
	out := outputFlag(cmd)
	times := cmd.Flags().Bool("times", false, "also lag and distance to deletion in time: reads the next record of each partition")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return admin(cmd.Context(), *brokers, func(a *cluster) error {
			types, err := a.ListGroups(cmd.Context())
			if err != nil {
				return err
			}
			return eachNamed(names, func(name string) error {
				listed, ok := types[name]
				if !ok {
					return fmt.Errorf("group %q does not exist: `leat group list` shows what there is", name)
				}
				g, err := describeGroup(cmd.Context(), a, listed)
				if err != nil {
					return err
				}
				if *times {
					if err := g.addTimes(cmd.Context(), a, *brokers); err != nil {
						return err
					}
				}
				return out.describe(cmd.OutOrStdout(), g)
			})
		})
	}
	return cmd
}

func describeGroup(ctx context.Context, a *cluster, listed kadm.ListedGroup) (*describedGroup, error) {
	g := &describedGroup{Group: listed.Group, Type: strings.ToLower(listed.GroupType), State: listed.State, Coordinator: listed.Coordinator, Members: []memberRow{}}
	if err := g.addMembers(ctx, a); err != nil {
		return nil, err
	}
	committed, err := committedOffsets(ctx, a, g.Group)
	if err != nil {
		return nil, err
	}
	at := map[string]map[int32]string{} // who reads what
	for _, m := range g.Members {
		m.assigned.Each(func(topic string, p int32) {
			if at[topic] == nil {
				at[topic] = map[int32]string{}
			}
			at[topic][p] = m.Member
		})
	}
	topics := maps.Clone(committed)
	for t, ps := range at {
		if topics[t] == nil {
			topics[t] = map[int32]int64{}
		}
		for p := range ps {
			if _, ok := topics[t][p]; !ok {
				topics[t][p] = -1
			}
		}
	}
	names := slices.Sorted(maps.Keys(topics))
	b := bounds{}
	if len(names) > 0 {
		if b, err = listBounds(ctx, a, names...); err != nil {
			return nil, err
		}
	}
	g.Partitions = []positionRow{}
	for _, t := range names {
		for _, p := range slices.Sorted(maps.Keys(topics[t])) {
			row := newPosition(t, p, topics[t][p], b)
			row.Member = at[t][p]
			if row.Lag != nil {
				g.Lag += *row.Lag
			}
			g.Partitions = append(g.Partitions, row)
		}
	}
	return g, nil
}

// newPosition judges a committed offset; -1: there is none.
func newPosition(topic string, partition int32, committed int64, b bounds) positionRow {
	row := positionRow{Topic: topic, Partition: partition}
	if committed >= 0 {
		row.Committed = &committed
	}
	start, end, err := b.of(topic, partition)
	if err != nil {
		row.Note = err.Error()
		return row
	}
	row.Start, row.End = &start, &end
	if committed < 0 {
		return row
	}
	lag, left := max(end-max(committed, start), 0), max(committed-start, 0)
	row.Lag, row.ToDeletion = &lag, &left
	switch {
	case committed < start:
		row.Note = fmt.Sprintf("%d deleted unread (%d to %d)", start-committed, committed, start-1)
	case committed > end:
		row.Note = "behind the end: it will be reset"
	}
	return row
}

// committedOffsets returns where a group stands, by topic and partition.
func committedOffsets(ctx context.Context, a *cluster, group string) (map[string]map[int32]int64, error) {
	fetched, err := a.FetchOffsets(ctx, group)
	if err != nil {
		return nil, refused(fmt.Sprintf("group %q", group), err, "")
	}
	out := map[string]map[int32]int64{}
	for _, o := range fetched.Sorted() {
		if o.Err != nil {
			return nil, refused(fmt.Sprintf("group %q, %s-%d", group, o.Topic, o.Partition), o.Err, "")
		}
		if o.At < 0 {
			continue
		}
		if out[o.Topic] == nil {
			out[o.Topic] = map[int32]int64{}
		}
		out[o.Topic][o.Partition] = o.At
	}
	return out, nil
}

// addMembers describes the group's members, by the request that its protocol has.
func (g *describedGroup) addMembers(ctx context.Context, a *cluster) error {
	about := fmt.Sprintf("group %q", g.Group)
	if g.Type == "consumer" {
		all, err := a.DescribeConsumerGroups(ctx, g.Group)
		if err != nil {
			return refused(about, err, "")
		}
		d := all[g.Group]
		if d.Err != nil {
			return refused(about, d.Err, "")
		}
		g.State, g.Assignor = d.State, d.AssignorName
		for _, m := range d.Members {
			g.addMember(m.MemberID, m.InstanceID, m.ClientID, m.ClientHost, m.Assignment)
		}
		return nil
	}
	all, err := a.DescribeGroups(ctx, g.Group)
	if err != nil {
		return refused(about, err, "")
	}
	d := all[g.Group]
	if d.Err != nil {
		return refused(about, d.Err, d.ErrMessage)
	}
	g.State, g.Assignor = d.State, d.Protocol
	for _, m := range d.Members {
		assigned := kadm.TopicsSet{}
		if c, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range c.Topics {
				assigned.Add(t.Topic, t.Partitions...)
			}
		}
		g.addMember(m.MemberID, m.InstanceID, m.ClientID, m.ClientHost, assigned)
	}
	return nil
}

func (g *describedGroup) addMember(id string, instance *string, client, host string, assigned kadm.TopicsSet) {
	row := memberRow{Member: id, Client: client, Host: host, Partitions: []string{}, assigned: assigned}
	if instance != nil {
		row.Instance = *instance
	}
	for _, t := range assigned.Sorted() {
		slices.Sort(t.Partitions)
		for _, p := range t.Partitions {
			row.Partitions = append(row.Partitions, fmt.Sprintf("%s-%d", t.Topic, p))
		}
	}
	g.Members = append(g.Members, row)
	g.MemberCount++
}

// timesPatience is how long addTimes waits for records.
const timesPatience = 10 * time.Second

// addTimes reads the next record of each partition that has one, for its age.
func (g *describedGroup) addTimes(ctx context.Context, a *cluster, brokers string) error {
	from := map[string]map[int32]kgo.Offset{}
	left := 0
	for _, r := range g.Partitions {
		if r.Lag == nil || *r.Lag == 0 {
			continue
		}
		if from[r.Topic] == nil {
			from[r.Topic] = map[int32]kgo.Offset{}
		}
		from[r.Topic][r.Partition] = kgo.NewOffset().At(max(*r.Committed, *r.Start))
		left++
	}
	if left == 0 {
		return nil
	}
	keeps, err := retentions(ctx, a, slices.Sorted(maps.Keys(from)))
	if err != nil {
		return err
	}
	client, err := connectBrokers(brokers, kgo.ConsumePartitions(from), kgo.FetchMaxPartitionBytes(1<<16))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, timesPatience)
	defer cancel()
	now := time.Now()
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			break // what is there is shown; only markers of transactions may be left
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) == 0 {
				return
			}
			i, ok := slices.BinarySearchFunc(g.Partitions, positionRow{Topic: p.Topic, Partition: p.Partition}, func(x, y positionRow) int {
				return cmp.Or(strings.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
			})
			if !ok || g.Partitions[i].Age != nil {
				return
			}
			age := seconds(now.Sub(p.Records[0].Timestamp).Seconds())
			g.Partitions[i].Age = &age
			if keep, ok := keeps[p.Topic]; ok {
				rest := keep - age
				g.Partitions[i].Left = &rest
			}
			left--
			client.PauseFetchPartitions(map[string][]int32{p.Topic: {p.Partition}})
		})
	}
	return nil
}

// retentions returns how long topics keep records, of those that have a bound.
func retentions(ctx context.Context, a *cluster, topics []string) (map[string]seconds, error) {
	out := map[string]seconds{}
	configs, err := a.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return nil, err
	}
	for _, c := range configs {
		deletes := false
		keep := int64(-1)
		for _, s := range c.Configs {
			switch s.Key {
			case "cleanup.policy":
				deletes = strings.Contains(s.MaybeValue(), "delete")
			case "retention.ms":
				if n, err := strconv.ParseInt(s.MaybeValue(), 10, 64); err == nil {
					keep = n
				}
			}
		}
		if deletes && keep >= 0 {
			out[c.Name] = seconds(float64(keep) / 1000)
		}
	}
	return out, nil
}

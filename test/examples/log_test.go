package examples

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/cli"
	"github.com/leat-io/leat/test/nodetest"
)

// leat runs a command line against the node, and returns its output and exit code.
func leat(n *nodetest.Node, args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	code = cli.Main(append(args, "--brokers", n.KafkaAddr()), strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

// consumer is a client that is closed when the test ends.
func consumer(t *testing.T, n *nodetest.Node, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(n.KafkaAddr()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.HeartbeatInterval(200 * time.Millisecond), kgo.DisableAutoCommit(),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// read takes so many records, and returns their values by partition.
func read(t *testing.T, c *kgo.Client, n int) map[int32][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nodetest.Patience)
	defer cancel()
	out := map[int32][]string{}
	for got := 0; got < n; {
		fetches := c.PollRecords(ctx, n-got)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", got, n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			out[r.Partition] = append(out[r.Partition], string(r.Value))
			got++
		})
	}
	return out
}

// L8: a group reset to last week reads the same records again, in the same order per partition.
func TestL8AGroupIsResetToLastWeek(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	if out, errs, code := leat(n, "topic", "create", "orders", "--partitions", "2", "--config", "retention.ms=-1"); code != 0 {
		t.Fatal(out, errs)
	}
	// A record every 12 hours for two weeks, in each of two partitions.
	start := time.Now().Add(-14*24*time.Hour + time.Hour)
	for i := range 28 {
		for p := range int32(2) {
			n.Produce(&kgo.Record{Topic: "orders", Partition: p, Value: fmt.Appendf(nil, "%d", i), Timestamp: start.Add(time.Duration(i) * 12 * time.Hour)})
		}
	}
	billing := consumer(t, n, kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("billing"))
	first := read(t, billing, 56)
	if err := billing.CommitUncommittedOffsets(t.Context()); err != nil {
		t.Fatal(err)
	}
	// While it runs it would only commit over what is set.
	if _, errs, code := leat(n, "group", "reset-offsets", "billing", "--to", "last week"); code != 1 || !strings.Contains(errs, "active member") {
		t.Errorf("a group with a member: exit code %d, %s", code, errs)
	}
	billing.Close()

	const table = `TOPIC   PARTITION  BEFORE  AFTER  CHANGE  LAG-AFTER
orders          0      28     14     -14         14
orders          1      28     14     -14         14
`
	for _, dry := range []bool{true, false} {
		args := []string{"group", "reset-offsets", "billing", "--to", "last week"}
		if dry {
			args = append(args, "--dry-run")
		}
		if out, errs, code := leat(n, args...); code != 0 || out != table {
			t.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
	}
	again := read(t, consumer(t, n, kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("billing")), 28)
	for p := range int32(2) {
		if !slices.Equal(again[p], first[p][14:]) {
			t.Errorf("partition %d: %q, want %q again", p, again[p], first[p][14:])
		}
	}
}

// L9: partitions 4 -> 3 is refused; 4 -> 6: old records stay and some keys move, which is said.
func TestL9PartitionsGrow(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	n.CreateTopic("orders", 4)
	const keys = 300
	place := func(value string) map[string]int32 {
		producer, err := kgo.NewClient(kgo.SeedBrokers(n.KafkaAddr())) // as Java's: murmur2 of the key
		if err != nil {
			t.Fatal(err)
		}
		defer producer.Close()
		var rs []*kgo.Record
		for i := range keys {
			rs = append(rs, &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "k%d", i), Value: []byte(value)})
		}
		if err := producer.ProduceSync(t.Context(), rs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		at := map[string]int32{}
		for _, r := range rs {
			at[string(r.Key)] = r.Partition
		}
		return at
	}
	before := place("old")
	if _, errs, code := leat(n, "topic", "add-partitions", "orders", "--to", "3"); code != 1 || !strings.Contains(errs, "has 4 partitions and cannot shrink to 3") {
		t.Errorf("4 -> 3: exit code %d, %s", code, errs)
	}
	out, errs, code := leat(n, "topic", "add-partitions", "orders", "--to", "6")
	if code != 0 || !strings.Contains(out, "has 6 partitions, before 4") || !strings.Contains(out, "Old records stay where they are") || !strings.Contains(out, "about 67 % of the keys do") {
		t.Errorf("4 -> 6: exit code %d, %s%s", code, out, errs)
	}
	after := place("new")
	moved := 0
	for k, p := range before {
		if after[k] != p {
			moved++
		}
	}
	if share := 100 * moved / keys; share < 57 || share > 77 {
		t.Errorf("%d %% of the keys moved, and about 67 %% were announced", share)
	}
	for _, r := range n.Consume("orders") {
		want := before
		if string(r.Value) == "new" {
			want = after
		}
		if r.Partition != want[string(r.Key)] {
			t.Errorf("the %s record of %s is in partition %d, and was written to %d", r.Value, r.Key, r.Partition, want[string(r.Key)])
		}
	}
}

// L10: a slow record in one partition; only that partition waits.
func TestL10ASlowRecord(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	n.CreateTopic("work", 2)
	for i := range 50 {
		n.Produce(&kgo.Record{Topic: "work", Partition: 0, Value: fmt.Append(nil, i)}, &kgo.Record{Topic: "work", Partition: 1, Value: fmt.Append(nil, i)})
	}
	release, slow := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	done := map[int32][]string{}
	count := func(p int32) int {
		mu.Lock()
		defer mu.Unlock()
		return len(done[p])
	}
	ctx, cancel := context.WithTimeout(t.Context(), nodetest.Patience)
	defer cancel()
	var members sync.WaitGroup
	for range 2 { // two members of a group, a partition each
		c := consumer(t, n, kgo.ConsumeTopics("work"), kgo.ConsumerGroup("workers"))
		members.Go(func() {
			for count(0)+count(1) < 100 && ctx.Err() == nil {
				polled, cancel := context.WithTimeout(ctx, time.Second)
				fetches := c.PollRecords(polled, 10)
				cancel()
				fetches.EachRecord(func(r *kgo.Record) {
					if r.Partition == 0 && string(r.Value) == "7" {
						once.Do(func() { close(slow) })
						<-release
					}
					mu.Lock()
					defer mu.Unlock()
					done[r.Partition] = append(done[r.Partition], string(r.Value))
				})
			}
		})
	}
	<-slow
	for count(1) < 50 {
		if ctx.Err() != nil {
			t.Fatalf("the other partition is at %d of 50", count(1))
		}
		runtime.Gosched()
	}
	if got := count(0); got != 7 {
		t.Errorf("%d records of the slow partition are done, want those before the slow one", got)
	}
	close(release)
	members.Wait()
	for p := range int32(2) {
		for i, v := range done[p] {
			if v != fmt.Sprint(i) {
				t.Fatalf("partition %d, record %d: %s", p, i, v)
			}
		}
		if len(done[p]) != 50 {
			t.Errorf("partition %d: %d of 50", p, len(done[p]))
		}
	}
}

// L11: a rolling restart of k members: k rebalances in the classic protocol (two for a member that is away for long), none with static members within the session timeout.
func TestL11RollingRestart(t *testing.T) {
	t.Parallel()
	const k = 3
	for _, static := range []bool{false, true} {
		t.Run(fmt.Sprintf("static=%t", static), func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t, nodetest.Options{})
			n.CreateTopic("t", 6)
			join := func(i int) *kgo.Client {
				opts := []kgo.Opt{kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"), kgo.Balancers(kgo.RangeBalancer())}
				if static {
					opts = append(opts, kgo.InstanceID(fmt.Sprintf("member-%d", i)))
				}
				return consumer(t, n, opts...)
			}
			var members []*kgo.Client
			for i := range k {
				members = append(members, join(i))
			}
			start := stable(t, n, members)
			for i := range k {
				members[i].Close()
				members[i] = join(i)
				stable(t, n, members)
			}
			rebalances := stable(t, n, members) - start
			if static && rebalances != 0 || !static && (rebalances < k || rebalances > 2*k) {
				t.Errorf("%d rebalances for %d restarts", rebalances, k)
			}
			// Whoever it is now: every record is read once.
			for p := range int32(6) {
				n.Produce(&kgo.Record{Topic: "t", Partition: p, Value: []byte("x")})
			}
			seen := map[int32]int{}
			ctx, cancel := context.WithTimeout(t.Context(), nodetest.Patience)
			defer cancel()
			for len(seen) < 6 && ctx.Err() == nil {
				for _, m := range members {
					short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
					m.PollFetches(short).EachRecord(func(r *kgo.Record) { seen[r.Partition]++ })
					cancel()
				}
			}
			for p := range int32(6) {
				if seen[p] != 1 {
					t.Errorf("the record of partition %d was read %d times", p, seen[p])
				}
			}
		})
	}
}

// stable waits until all members are in one generation, the group is stable, and returns the generation.
func stable(t *testing.T, n *nodetest.Node, members []*kgo.Client) int32 {
	t.Helper()
	for deadline := time.Now().Add(nodetest.Patience); time.Now().Before(deadline); {
		same := true
		_, first := members[0].GroupMetadata()
		for _, m := range members {
			short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			m.PollFetches(short) // a client rebalances between polls
			cancel()
			id, generation := m.GroupMetadata()
			same = same && id != "" && generation == first
		}
		info, ok, err := n.Broker.Groups().Describe("g")
		if same && ok && err == nil && info.State == "Stable" && len(info.Members) == len(members) {
			return first
		}
	}
	t.Fatal("the group does not become stable")
	return 0
}

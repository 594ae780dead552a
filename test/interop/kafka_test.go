package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/door/kafka/kafkatest"
	"github.com/leat-io/leat/internal/record"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestEveryCompressionFromAndToEveryClient(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	text := strings.Repeat("a stream through a mill ", 20)
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := "c-" + name
			produce(t, client(t, n, kgo.ProducerBatchCompression(codec)), numbered(topic, text, 100)...)
			var input strings.Builder
			for i := range 100 {
				fmt.Fprintf(&input, "%s%d\n", text, 100+i)
			}
			kcat(t, n, input.String(), "-P", "-t", topic, "-z", name, "-X", "enable.idempotence=true")

			var want strings.Builder
			for i := range 200 {
				fmt.Fprintf(&want, "%s%d\n", text, i)
			}
			if got := kcat(t, n, "", "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-X", "check.crcs=true"); got != want.String() {
				t.Errorf("kcat reads something else: %d bytes, want %d", len(got), want.Len())
			}
			got := consume(t, client(t, n, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 200)
			for i, r := range got {
				if string(r.Value) != fmt.Sprint(text, i) || r.Offset != int64(i) {
					t.Fatalf("record %d is %q at offset %d", i, r.Value, r.Offset)
				}
			}
			if ct := got[0].Attrs.CompressionType(); name != "none" && ct == 0 {
				t.Errorf("batches are not %s any more", name)
			}
		})
	}
}

// Worked example L4.
func TestByTime(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	today := time.Now().Truncate(24 * time.Hour)
	yesterday := today.Add(-24 * time.Hour)
	cl := client(t, n, kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	for h := -30; h < 0; h += 3 { // from before yesterday on
		produce(t, cl, &kgo.Record{Topic: "t", Value: fmt.Append(nil, h), Timestamp: today.Add(time.Duration(h) * time.Hour)})
	}
	produce(t, cl, &kgo.Record{Topic: "t", Value: []byte("0"), Timestamp: today})
	from, err := kadm.NewClient(cl).ListOffsetsAfterMilli(within(t), yesterday.UnixMilli(), "t")
	if err != nil {
		t.Fatal(err)
	}
	to, err := kadm.NewClient(cl).ListOffsetsAfterMilli(within(t), today.UnixMilli(), "t")
	if err != nil {
		t.Fatal(err)
	}
	first, _ := from.Lookup("t", 0)
	last, _ := to.Lookup("t", 0)
	if first.Offset != 2 || last.Offset != 10 {
		t.Fatalf("yesterday is [%d, %d), want [2, 10)", first.Offset, last.Offset)
	}
	got := kcat(t, n, "", "-C", "-t", "t", "-q", "-e", "-o", fmt.Sprintf("s@%d", yesterday.UnixMilli()), "-o", fmt.Sprintf("e@%d", today.UnixMilli()))
	if want := "-24\n-21\n-18\n-15\n-12\n-9\n-6\n-3\n"; got != want {
		t.Errorf("kcat reads %q, want %q", got, want)
	}
	if after, err := kadm.NewClient(cl).ListOffsetsAfterMilli(within(t), today.Add(time.Hour).UnixMilli(), "t"); err != nil {
		t.Error(err)
	} else if o, _ := after.Lookup("t", 0); o.Offset != 11 {
		t.Errorf("after the last record comes %d, want the end", o.Offset)
	}
	newest, err := kadm.NewClient(cl).ListMaxTimestampOffsets(within(t), "t")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := newest.Lookup("t", 0); o.Offset != 10 {
		t.Errorf("the newest is %d, want 10", o.Offset)
	}
}

// Worked example L2, the log's half.
func TestReadingDeletesNothing(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	produce(t, client(t, n), numbered("t", "", 10)...)
	cl := client(t, n, kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"), kgo.DisableAutoCommit(), kgo.FetchMaxBytes(1<<20),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	got := consume(t, cl, 10)
	if err := cl.CommitRecords(within(t), got[:8]...); err != nil {
		t.Fatal(err)
	}
	cl.Close()
	adm := kadm.NewClient(client(t, n))
	offsets, err := adm.FetchOffsets(within(t), "g")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := offsets.Lookup("t", 0); o.At != 8 {
		t.Fatalf("committed is %d, want 8: the next to read", o.At)
	}
	rest := consume(t, client(t, n, kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g")), 2)
	if values(rest) != "8 9" {
		t.Errorf("the group goes on with %s", values(rest))
	}
	if all := consume(t, client(t, n, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 10); all[0].Offset != 0 {
		t.Error("the log has lost its beginning")
	}
}

// member is one consumer of a group that notes what it reads and owns.
type member struct {
	cl   *kgo.Client
	mu   sync.Mutex
	own  map[int32]bool
	seen map[string]int
	done chan struct{}
	quit context.CancelFunc
}

func newMember(t *testing.T, n *kafkatest.Node, group, topic string, opts ...kgo.Opt) *member {
	m := &member{own: map[int32]bool{}, seen: map[string]int{}, done: make(chan struct{})}
	change := func(now bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, p := range parts[topic] {
				if now {
					m.own[p] = true
				} else {
					delete(m.own, p)
				}
			}
		}
	}
	m.cl = client(t, n, append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(2 * time.Second), kgo.HeartbeatInterval(100 * time.Millisecond), kgo.RebalanceTimeout(5 * time.Second),
		kgo.Balancers(kgo.RangeBalancer()), kgo.AutoCommitInterval(100 * time.Millisecond),
		kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)), kgo.OnPartitionsLost(change(false)),
	}, opts...)...)
	ctx, cancel := context.WithCancel(context.Background())
	m.quit = cancel
	t.Cleanup(cancel)
	go func() {
		defer close(m.done)
		for {
			fs := m.cl.PollFetches(ctx)
			if ctx.Err() != nil || fs.IsClientClosed() {
				return
			}
			m.mu.Lock()
			for _, r := range fs.Records() {
				m.seen[string(r.Value)]++
			}
			m.mu.Unlock()
		}
	}()
	return m
}

func (m *member) owns() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.own)
}

// eventually waits for a condition; what says what is missing.
func eventually(t *testing.T, what func() string) {
	t.Helper()
	ctx := within(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := what()
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(missing)
		}
	}
}

// Worked example L6.
func TestSixMembersFourPartitions(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t", Partitions: 4}); err != nil {
		t.Fatal(err)
	}
	producer := client(t, n, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	produce(t, producer, numbered("t", "a", 400)...)
	var members []*member
	for range 6 {
		members = append(members, newMember(t, n, "g", "t"))
	}
	working := func(ms []*member) (busy, owned int) {
		for _, m := range ms {
			if o := m.owns(); o > 0 {
				busy++
				owned += o
			}
		}
		return busy, owned
	}
	seen := func() map[string]int {
		all := map[string]int{}
		for _, m := range members {
			m.mu.Lock()
			for v, c := range m.seen {
				all[v] += c
			}
			m.mu.Unlock()
		}
		return all
	}
	eventually(t, func() string {
		if info, ok, _ := n.Broker.Groups().Describe("g"); !ok || len(info.Members) != 6 || info.State != "Stable" {
			return fmt.Sprintf("the group is %s with %d members", info.State, len(info.Members))
		}
		if busy, owned := working(members); busy != 4 || owned != 4 {
			return fmt.Sprintf("%d members work on %d partitions, want 4 on 4", busy, owned)
		}
		if s := seen(); len(s) != 400 {
			return fmt.Sprintf("seen %d of 400 records", len(s))
		}
		return ""
	})
	committed := func() int64 {
		offsets, err := n.Broker.Groups().AllCommitted("g")
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, o := range offsets {
			sum += o.Offset
		}
		return sum
	}
	eventually(t, func() string {
		if c := committed(); c != 400 {
			return fmt.Sprintf("committed %d of 400", c)
		}
		return ""
	})
	// One that works dies without a word: no leave, no heartbeat.
	var alive []*member
	dead := -1
	for i, m := range members {
		if dead < 0 && m.owns() > 0 {
			dead = i
			m.quit()
			<-m.done
			m.cl.PauseFetchTopics("t")
			kill(m.cl)
			continue
		}
		alive = append(alive, m)
	}
	produce(t, producer, numbered("t", "b", 400)...)
	eventually(t, func() string {
		if busy, owned := working(alive); busy != 4 || owned != 4 {
			return fmt.Sprintf("%d survivors work on %d partitions, want 4 on 4", busy, owned)
		}
		if s := seen(); len(s) != 800 {
			return fmt.Sprintf("seen %d of 800 records", len(s))
		}
		return ""
	})
	for v, c := range seen() {
		// The second half may be read again as partitions move; the first was committed before.
		if c != 1 && v[0] == 'a' {
			t.Errorf("%s was read %d times: the survivors did not go on at the committed offset", v, c)
		}
	}
}

// kill closes a client's connections for good, without leaving its groups.
func kill(cl *kgo.Client) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Leaving takes a context: an ended one means that nobody is told.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = cl.LeaveGroupContext(ctx)
		cl.Close()
	}()
	<-done
}

// Worked example L7.
func TestGroupsDoNotDelayEachOther(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	produce(t, client(t, n), numbered("t", "", 1000)...)
	slow := client(t, n, kgo.ConsumerGroup("slow"), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if rs := slow.PollRecords(within(t), 1).Records(); len(rs) != 1 { // reads one, and no more for now
		t.Fatalf("%d records", len(rs))
	}
	if fast := consume(t, client(t, n, kgo.ConsumerGroup("fast"), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 1000); len(fast) != 1000 {
		t.Fatal("the fast group does not get all")
	}
	if rest := consume(t, slow, 999); string(rest[998].Value) != "999" {
		t.Fatal("the slow group does not get all")
	}
	if got := kcat(t, n, "", "-G", "kcats", "-X", "auto.offset.reset=earliest", "-e", "-q", "-c", "1000", "t"); strings.Count(got, "\n") != 1000 {
		t.Errorf("kcat's group reads %d records", strings.Count(got, "\n"))
	}
}

// Worked example L5.
func TestAPositionThatRetentionDeletedIsReported(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	for _, topic := range []string{"t", "other"} {
		spec := broker.TopicSpec{Name: topic, Configs: map[string]string{"internal.segment.bytes": "10000", "retention.bytes": "30000"}}
		if _, err := n.Broker.CreateTopic(within(t), spec); err != nil {
			t.Fatal(err)
		}
	}
	pad := strings.Repeat("x", 1000)
	cl := client(t, n, kgo.ProducerBatchCompression(kgo.NoCompression()))
	other := client(t, n, kgo.ConsumeTopics("other"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	produce(t, cl, numbered("other", "", 1)...)
	consume(t, other, 1)
	slow := client(t, n, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(0)}}), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	produce(t, cl, numbered("t", pad, 1)...)
	consume(t, slow, 1)
	slow.PauseFetchTopics("t")
	for i := range 100 {
		produce(t, cl, &kgo.Record{Topic: "t", Value: fmt.Append(nil, pad, i)})
	}
	n.Checkpoint() // what the journal would have to replay is kept
	n.Broker.ApplyRetention()
	topic, _ := n.Broker.Topic("t")
	start, err := topic.Partition(0).StartOffset()
	if err != nil || start < 50 || start > 90 {
		t.Fatalf("the log starts at %d (%v)", start, err)
	}
	if size := topic.Partition(0).Bytes(); size > 45_000 {
		t.Errorf("the log has %d bytes", size)
	}
	// Somebody who asks for what is gone gets out of range, and the gap can be told: from his position to the start.
	_, err = topic.Partition(0).Read(1, 1<<20, broker.ViewDurable, true)
	if !errors.Is(err, broker.ErrOffsetOutOfRange) || !strings.Contains(err.Error(), fmt.Sprintf("starts at %d, so 1 to %d are gone", start, start-1)) {
		t.Errorf("reading what is gone: %v", err)
	}
	lost := client(t, n, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(1)}}), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	var got error
	ctx := within(t)
	for got == nil && ctx.Err() == nil {
		lost.PollFetches(ctx).EachError(func(_ string, _ int32, err error) { got = err })
	}
	if !errors.Is(got, kerr.OffsetOutOfRange) {
		t.Errorf("the client is told %v", got)
	}
	produce(t, cl, numbered("other", "still", 1)...)
	if r := consume(t, other, 1); string(r[0].Value) != "still0" {
		t.Error("the other consumer is disturbed")
	}
}

func TestTwoClientsOnTwoThousandPartitions(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t", Partitions: 2000}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for c := range 2 {
		wg.Go(func() {
			cl := client(t, n, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(5*time.Millisecond),
				kgo.MaxBufferedRecords(20_000))
			var rs []*kgo.Record
			for i := range 2000 * 3 {
				rs = append(rs, &kgo.Record{Topic: "t", Partition: int32(i % 2000), Value: fmt.Appendf(nil, "%d/%d", c, i/2000)})
			}
			if err := cl.ProduceSync(within(t), rs...).FirstErr(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	n.Restart()
	got := consume(t, client(t, n, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 2*3*2000)
	next := map[string]int{}
	for _, r := range got {
		c, i, _ := strings.Cut(string(r.Value), "/")
		key := fmt.Sprint(r.Partition, "/", c)
		if fmt.Sprint(next[key]) != i {
			t.Fatalf("partition %d: client %s's record %s comes when %d is due", r.Partition, c, i, next[key])
		}
		next[key]++
	}
}

func TestSmallestAndLargestRecords(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t", Configs: map[string]string{"max.message.bytes": "100000"}}); err != nil {
		t.Fatal(err)
	}
	cl := client(t, n, kgo.ProducerBatchMaxBytes(200_000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	largest := 100_000
	for ; ; largest-- { // the batch around the record takes some
		err := cl.ProduceSync(within(t), &kgo.Record{Topic: "t", Value: bytes.Repeat([]byte("x"), largest)}).FirstErr()
		if err == nil {
			break
		}
		if !errors.Is(err, kerr.MessageTooLarge) || largest < 99_900 {
			t.Fatalf("%d bytes: %v", largest, err)
		}
	}
	produce(t, cl, &kgo.Record{Topic: "t"}, &kgo.Record{Topic: "t", Value: []byte{}, Key: []byte{}})
	rs := consume(t, client(t, n, kgo.ConsumeTopics("t"), kgo.FetchMaxBytes(1), kgo.FetchMaxPartitionBytes(1), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 3)
	if len(rs[0].Value) != largest || rs[1].Value != nil || rs[2].Value == nil || len(rs[2].Value) != 0 {
		t.Errorf("%d bytes, then %v and %v", len(rs[0].Value), rs[1].Value, rs[2].Value)
	}
}

func TestARefusedRecordIsNamed(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	topic, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	topic.SetRecordCheck(func(_ int32, r *record.Record) string {
		if string(r.Value) == "bad" {
			return `"bad" is not a row of this table`
		}
		return ""
	})
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()} {
		cl := client(t, n, kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(50*time.Millisecond))
		produce(t, cl, numbered("t", "good", 3)...)
		err := cl.ProduceSync(within(t), &kgo.Record{Topic: "t", Value: []byte("good")}, &kgo.Record{Topic: "t", Value: []byte("bad")}).FirstErr()
		if !errors.Is(err, kerr.InvalidRecord) {
			t.Errorf("got %v", err)
		}
	}
	if end := topic.Partition(0).HighWatermark(); end != 6 {
		t.Errorf("%d records are in, want 6", end)
	}
	if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "compacted", Configs: map[string]string{"cleanup.policy": "compact"}}); err != nil {
		t.Fatal(err)
	}
	if err := client(t, n).ProduceSync(within(t), &kgo.Record{Topic: "compacted", Value: []byte("no key")}).FirstErr(); !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("a record without a key on a compacted topic: %v", err)
	}
}

func TestTopicsComeAndGo(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	cl := client(t, n)
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(within(t), 3, 3, map[string]*string{"retention.ms": kadm.StringPtr("1000000")}, "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.CreateTopic(within(t), 3, 3, nil, "t"); !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Errorf("a second time: %v", err)
	}
	if _, err := adm.CreateTopic(within(t), 1, 1, map[string]*string{"retention.ms": kadm.StringPtr("soon")}, "u"); !errors.Is(err, kerr.InvalidConfig) {
		t.Errorf("a bad setting: %v", err)
	}
	if _, err := adm.CreateTopic(within(t), 1, 1, nil, "not/valid"); !errors.Is(err, kerr.InvalidTopicException) {
		t.Errorf("a bad name: %v", err)
	}
	configs, err := adm.DescribeTopicConfigs(within(t), "t")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, c := range configs[0].Configs {
		switch {
		case c.Key == "retention.ms" && c.MaybeValue() == "1000000" && c.Source.String() == "DYNAMIC_TOPIC_CONFIG",
			c.Key == "cleanup.policy" && c.MaybeValue() == "delete" && c.Source.String() == "DEFAULT_CONFIG":
			found++
		}
	}
	if found != 2 {
		t.Errorf("settings: %+v", configs[0].Configs)
	}
	broker, err := adm.DescribeBrokerConfigs(within(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	found = 0
	for _, c := range broker[0].Configs {
		if (c.Key == "default.replication.factor" || c.Key == "num.partitions") && c.MaybeValue() == "1" {
			found++
		}
	}
	if found != 2 {
		t.Errorf("settings of the broker: %+v", broker[0].Configs)
	}
	before, _ := n.Broker.Topic("t")
	produce(t, cl, numbered("t", "", 10)...)
	if resp, err := adm.UpdatePartitions(within(t), 5, "t"); err != nil || resp.Error() != nil {
		t.Errorf("growing: %v %v", err, resp.Error())
	}
	if resp, err := adm.UpdatePartitions(within(t), 4, "t"); err == nil && !errors.Is(resp.Error(), kerr.InvalidPartitions) {
		t.Errorf("shrinking: %v %v", err, resp.Error())
	}
	n.Restart()
	adm = kadm.NewClient(client(t, n))
	topics, err := adm.ListTopics(within(t))
	if err != nil || len(topics["t"].Partitions) != 5 || topics["t"].ID != kadm.TopicID(before.ID) {
		t.Errorf("after a restart: %+v %v", topics, err)
	}
	if _, err := adm.DeleteTopic(within(t), "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.CreateTopic(within(t), 1, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	after, _ := n.Broker.Topic("t")
	if after.ID == before.ID || after.Partition(0).HighWatermark() != 0 {
		t.Error("a topic that is made again is the old one")
	}
	produce(t, client(t, n), numbered("t", "again", 1)...)
	n.Restart()
	if rs := consume(t, client(t, n, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 1); string(rs[0].Value) != "again0" {
		t.Errorf("got %s", rs[0].Value)
	}
}

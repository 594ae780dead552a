// Command sarama drives Sarama against the broker at $BOOTSTRAP: a line per check, and "done" at the end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var (
	bootstrap = []string{os.Getenv("BOOTSTRAP")}
	names     int
)

// fresh is a name of its own for a topic, group or transactional id.
func fresh(prefix string) string {
	names++
	return fmt.Sprintf("%s-%d-%d", prefix, time.Now().UnixNano(), names)
}

func config(change ...func(*sarama.Config)) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.ClientID = "compat"
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Metadata.RefreshFrequency = time.Second
	for _, f := range change {
		f(c)
	}
	return c
}

func idempotent(c *sarama.Config) {
	c.Producer.Idempotent = true
	c.Net.MaxOpenRequests = 1
}

func admin() (sarama.ClusterAdmin, error) { return sarama.NewClusterAdmin(bootstrap, config()) }

func create(prefix string, partitions int32) (string, error) {
	a, err := admin()
	if err != nil {
		return "", err
	}
	defer a.Close()
	name := fresh(prefix)
	return name, a.CreateTopic(name, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
}

func messages(topic string, partition int32, n int, stamp func(int) time.Time) []*sarama.ProducerMessage {
	out := make([]*sarama.ProducerMessage, n)
	for i := range out {
		out[i] = &sarama.ProducerMessage{
			Topic: topic, Partition: partition, Value: sarama.StringEncoder(strings.Repeat(fmt.Sprint("v", i, "."), 20)),
			Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: []byte("1")}},
		}
		if stamp != nil {
			out[i].Timestamp = stamp(i)
		}
	}
	return out
}

func send(c *sarama.Config, ms []*sarama.ProducerMessage) error {
	p, err := sarama.NewSyncProducer(bootstrap, c)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.SendMessages(ms)
}

// expect reads a partition from an offset and wants these messages, and no more.
func expect(c *sarama.Config, topic string, partition int32, from int64, want []*sarama.ProducerMessage) error {
	consumer, err := sarama.NewConsumer(bootstrap, c)
	if err != nil {
		return err
	}
	defer consumer.Close()
	pc, err := consumer.ConsumePartition(topic, partition, from)
	if err != nil {
		return err
	}
	defer pc.Close()
	wait := 30 * time.Second
	for i := 0; ; i++ {
		if i >= len(want) {
			wait = time.Second // so that one too many is seen
		}
		select {
		case m := <-pc.Messages():
			if i >= len(want) {
				return fmt.Errorf("offset %d has %q, which nobody should see", m.Offset, m.Value)
			}
			v, _ := want[i].Value.Encode()
			if string(m.Value) != string(v) {
				return fmt.Errorf("message %d is %q, want %q", i, m.Value, v)
			}
			if len(m.Headers) != len(want[i].Headers) {
				return fmt.Errorf("message %d has %d headers", i, len(m.Headers))
			}
		case err := <-pc.Errors():
			return err
		case <-time.After(wait):
			if i < len(want) {
				return fmt.Errorf("read %d of %d messages", i, len(want))
			}
			return nil
		}
	}
}

func compression(codec sarama.CompressionCodec) error {
	topic, err := create("compress", 1)
	if err != nil {
		return err
	}
	ms := messages(topic, 0, 200, nil)
	if err := send(config(func(c *sarama.Config) { c.Producer.Compression = codec }), ms); err != nil {
		return err
	}
	return expect(config(), topic, 0, sarama.OffsetOldest, ms)
}

func byTimestamp() error {
	topic, err := create("time", 1)
	if err != nil {
		return err
	}
	base := time.Now().Add(-time.Hour).Truncate(time.Millisecond) // older ones would soon be deleted
	ms := messages(topic, 0, 10, func(i int) time.Time { return base.Add(time.Duration(i) * time.Second) })
	if err := send(config(), ms); err != nil {
		return err
	}
	cl, err := sarama.NewClient(bootstrap, config())
	if err != nil {
		return err
	}
	defer cl.Close()
	for _, c := range []struct{ at, want int64 }{
		{base.UnixMilli() + 4500, 5}, {base.UnixMilli() + 60_000, -1}, {sarama.OffsetOldest, 0}, {sarama.OffsetNewest, 10},
	} {
		got, err := cl.GetOffset(topic, 0, c.at)
		if err != nil {
			return err
		}
		if got != c.want {
			return fmt.Errorf("the offset at %d is %d, want %d", c.at, got, c.want)
		}
	}
	return expect(config(), topic, 0, 5, ms[5:])
}

// member is one of a group: it keeps what it owns and hands on what it reads.
type member struct {
	group sarama.ConsumerGroup
	stop  context.CancelFunc
	ended chan struct{}

	mu    sync.Mutex
	owned []int32
	read  []*sarama.ConsumerMessage
	mark  int64 // commits up to this offset
	topic string
}

func (m *member) Setup(s sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned = s.Claims()[m.topic]
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned = nil
	return nil
}

func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-s.Context().Done():
			return nil
		case r, ok := <-c.Messages():
			if !ok {
				return nil
			}
			m.mu.Lock()
			m.read = append(m.read, r)
			if r.Offset+1 == m.mark {
				s.MarkOffset(r.Topic, r.Partition, m.mark, "here")
				s.Commit()
			}
			m.mu.Unlock()
		}
	}
}

func join(group, topic string, mark int64, change ...func(*sarama.Config)) (*member, error) {
	g, err := sarama.NewConsumerGroup(bootstrap, group, config(change...))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{group: g, stop: cancel, ended: make(chan struct{}), mark: mark, topic: topic}
	go func() {
		defer close(m.ended)
		for ctx.Err() == nil {
			if err := g.Consume(ctx, []string{topic}, m); errors.Is(err, sarama.ErrClosedConsumerGroup) {
				return
			}
		}
	}()
	return m, nil
}

func (m *member) close() {
	m.stop()
	<-m.ended
	_ = m.group.Close()
}

func (m *member) owns() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.owned)
}

func (m *member) has() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.read)
}

func until(what string, f func() bool) error {
	for end := time.Now().Add(60 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New(what)
		}
	}
	return nil
}

func rebalance(strategy sarama.BalanceStrategy) error {
	topic, err := create("balance", 4)
	if err != nil {
		return err
	}
	how := func(c *sarama.Config) {
		c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
		c.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	}
	group := fresh("balance")
	a, err := join(group, topic, 0, how)
	if err != nil {
		return err
	}
	if err := until("the first member did not get all partitions", func() bool { return a.owns() == 4 }); err != nil {
		return err
	}
	b, err := join(group, topic, 0, how)
	if err != nil {
		return err
	}
	defer b.close()
	if err := until("the members did not share the partitions", func() bool { return a.owns() == 2 && b.owns() == 2 }); err != nil {
		return err
	}
	a.close()
	return until("the second member did not inherit", func() bool { return b.owns() == 4 })
}

func offsets() error {
	topic, err := create("offsets", 1)
	if err != nil {
		return err
	}
	if err := send(config(), messages(topic, 0, 10, nil)); err != nil {
		return err
	}
	group := fresh("offsets")
	a, err := join(group, topic, 7)
	if err != nil {
		return err
	}
	if err := until("the member did not read all", func() bool { return a.has() == 10 }); err != nil {
		return err
	}
	a.close()
	ad, err := admin()
	if err != nil {
		return err
	}
	defer ad.Close()
	got, err := ad.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
	if err != nil {
		return err
	}
	if b := got.GetBlock(topic, 0); b == nil || b.Offset != 7 || b.Metadata != "here" {
		return fmt.Errorf("the committed offset is %+v, want 7 (here)", b)
	}
	b, err := join(group, topic, 0)
	if err != nil {
		return err
	}
	defer b.close()
	if err := until("the next member read nothing", func() bool { return b.has() == 3 }); err != nil {
		return err
	}
	if b.read[0].Offset != 7 {
		return fmt.Errorf("the next member began at %d, want 7", b.read[0].Offset)
	}
	return nil
}

func idempotence() error {
	topic, err := create("idempotent", 1)
	if err != nil {
		return err
	}
	ms := messages(topic, 0, 500, nil)
	if err := send(config(idempotent), ms); err != nil {
		return err
	}
	return expect(config(), topic, 0, sarama.OffsetOldest, ms)
}

func transaction(commit bool) error {
	source, err := create("source", 1)
	if err != nil {
		return err
	}
	target, err := create("target", 2)
	if err != nil {
		return err
	}
	group := fresh("txn")
	p, err := sarama.NewSyncProducer(bootstrap, config(idempotent, func(c *sarama.Config) { c.Producer.Transaction.ID = fresh("id") }))
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.BeginTxn(); err != nil {
		return err
	}
	first, second := messages(target, 0, 3, nil), messages(target, 1, 3, nil)
	if err := p.SendMessages(append(append([]*sarama.ProducerMessage{}, first...), second...)); err != nil {
		return err
	}
	if err := p.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{source: {{Partition: 0, Offset: 5}}}, group); err != nil {
		return err
	}
	end, committed := p.AbortTxn, int64(-1)
	if commit {
		end, committed = p.CommitTxn, 5
	}
	if err := end(); err != nil {
		return err
	}
	for i, ms := range [][]*sarama.ProducerMessage{first, second} {
		if err := expect(config(), target, int32(i), 0, ms); err != nil {
			return fmt.Errorf("read_uncommitted: %w", err)
		}
		if !commit {
			ms = nil
		}
		if err := expect(config(func(c *sarama.Config) { c.Consumer.IsolationLevel = sarama.ReadCommitted }), target, int32(i), 0, ms); err != nil {
			return fmt.Errorf("read_committed: %w", err)
		}
	}
	a, err := admin()
	if err != nil {
		return err
	}
	defer a.Close()
	got, err := a.ListConsumerGroupOffsets(group, map[string][]int32{source: {0}})
	if err != nil {
		return err
	}
	if b := got.GetBlock(source, 0); b == nil || b.Offset != committed {
		return fmt.Errorf("the committed offset is %+v, want %d", b, committed)
	}
	return nil
}

func adminTopics() error {
	topic, err := create("admin", 2)
	if err != nil {
		return err
	}
	a, err := admin()
	if err != nil {
		return err
	}
	defer a.Close()
	value := "12345"
	err = a.IncrementalAlterConfig(sarama.TopicResource, topic,
		map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}}, false)
	if err != nil {
		return err
	}
	if err := until("retention.ms did not change", func() bool {
		got, err := a.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}})
		return err == nil && len(got) == 1 && got[0].Value == value
	}); err != nil {
		return err
	}
	if err := a.CreatePartitions(topic, 5, nil, false); err != nil {
		return err
	}
	if err := until("there are no five partitions", func() bool {
		d, err := a.DescribeTopics([]string{topic})
		return err == nil && len(d) == 1 && len(d[0].Partitions) == 5
	}); err != nil {
		return err
	}
	if err := a.DeleteTopic(topic); err != nil {
		return err
	}
	return until("the topic is still listed", func() bool {
		all, err := a.ListTopics()
		_, there := all[topic]
		return err == nil && !there
	})
}

func adminRecords() error {
	topic, err := create("records", 1)
	if err != nil {
		return err
	}
	ms := messages(topic, 0, 10, nil)
	if err := send(config(), ms); err != nil {
		return err
	}
	a, err := admin()
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.DeleteRecords(topic, map[int32]int64{0: 4}); err != nil {
		return err
	}
	return expect(config(), topic, 0, sarama.OffsetOldest, ms[4:])
}

func adminGroups() error {
	topic, err := create("groups", 1)
	if err != nil {
		return err
	}
	if err := send(config(), messages(topic, 0, 3, nil)); err != nil {
		return err
	}
	group := fresh("groups")
	m, err := join(group, topic, 3)
	if err != nil {
		return err
	}
	if err := until("the member read nothing", func() bool { return m.has() == 3 }); err != nil {
		return err
	}
	a, err := admin()
	if err != nil {
		return err
	}
	defer a.Close()
	d, err := a.DescribeConsumerGroups([]string{group})
	if err != nil {
		return err
	}
	if d[0].State != "Stable" || len(d[0].Members) != 1 {
		return fmt.Errorf("the group is %s with %d members", d[0].State, len(d[0].Members))
	}
	m.close()
	all, err := a.ListConsumerGroups()
	if err != nil {
		return err
	}
	if _, there := all[group]; !there {
		return errors.New("the group is not listed")
	}
	if err := a.DeleteConsumerGroupOffset(group, topic, 0); err != nil {
		return err
	}
	return a.DeleteConsumerGroup(group)
}

func adminCluster() error {
	a, err := admin()
	if err != nil {
		return err
	}
	defer a.Close()
	brokers, _, err := a.DescribeCluster()
	if err != nil {
		return err
	}
	if len(brokers) != 1 {
		return fmt.Errorf("%d brokers, want 1", len(brokers))
	}
	dirs, err := a.DescribeLogDirs([]int32{brokers[0].ID()})
	if err == nil && len(dirs[brokers[0].ID()]) == 0 {
		err = errors.New("no log folders")
	}
	return err
}

func main() {
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"produce and consume, none", func() error { return compression(sarama.CompressionNone) }},
		{"produce and consume, gzip", func() error { return compression(sarama.CompressionGZIP) }},
		{"produce and consume, snappy", func() error { return compression(sarama.CompressionSnappy) }},
		{"produce and consume, lz4", func() error { return compression(sarama.CompressionLZ4) }},
		{"produce and consume, zstd", func() error { return compression(sarama.CompressionZSTD) }},
		{"consume by timestamp", byTimestamp},
		{"group with rebalance, range", func() error { return rebalance(sarama.NewBalanceStrategyRange()) }},
		{"group with rebalance, sticky", func() error { return rebalance(sarama.NewBalanceStrategySticky()) }},
		{"commit and fetch offsets", offsets},
		{"idempotent producer", idempotence},
		{"transaction committed", func() error { return transaction(true) }},
		{"transaction aborted", func() error { return transaction(false) }},
		{"admin: topics", adminTopics},
		{"admin: records", adminRecords},
		{"admin: groups", adminGroups},
		{"admin: cluster", adminCluster},
	} {
		if err := c.run(); err != nil {
			fmt.Printf("FAIL %s: %s\n", c.name, strings.Join(strings.Fields(err.Error()), " "))
			continue
		}
		fmt.Println("ok", c.name)
	}
	fmt.Println("n/a group.protocol=consumer: Sarama has the classic protocol alone")
	fmt.Println("done")
}

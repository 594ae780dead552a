package nodetest

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Kafka returns a client of the node's Kafka door that writes to the partition that a record names.
func (n *Node) Kafka() *kgo.Client {
	n.tb.Helper()
	if n.kafka == nil {
		client, err := kgo.NewClient(
			kgo.SeedBrokers(n.KafkaAddr()), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(20*time.Millisecond),
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
			kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }),
		)
		if err != nil {
			n.tb.Fatalf("a Kafka client: %v", err)
		}
		n.kafka = client
	}
	return n.kafka
}

func (n *Node) closeKafka() {
	if n.kafka != nil {
		n.kafka.Close()
		n.kafka = nil
	}
}

// CreateTopic makes a topic.
func (n *Node) CreateTopic(name string, partitions int) {
	n.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	r, err := kadm.NewClient(n.Kafka()).CreateTopic(ctx, int32(partitions), 1, nil, name)
	if err = errors.Join(err, r.Err); err != nil {
		n.tb.Fatalf("creating topic %s: %v", name, err)
	}
}

// Produce writes records, each to the partition that it names, and waits until they are durable.
func (n *Node) Produce(records ...*kgo.Record) {
	n.tb.Helper()
	if err := n.TryProduce(records...); err != nil {
		n.tb.Fatalf("produce: %v", err)
	}
}

// TryProduce is Produce that may fail.
func (n *Node) TryProduce(records ...*kgo.Record) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	return n.Kafka().ProduceSync(ctx, records...).FirstErr()
}

// Lines makes a record of each value for partition 0 of a topic.
func Lines(topic string, values ...string) []*kgo.Record {
	out := make([]*kgo.Record, len(values))
	for i, v := range values {
		out[i] = &kgo.Record{Topic: topic, Value: []byte(v)}
	}
	return out
}

// Consume reads all that a topic has now, uncommitted records included, partition by partition. A topic that does not exist has none.
func (n *Node) Consume(topic string) []*kgo.Record {
	n.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	ends, err := kadm.NewClient(n.Kafka()).ListEndOffsets(ctx, topic)
	if err != nil {
		n.tb.Fatalf("the end of topic %s: %v", topic, err)
	}
	from := map[int32]kgo.Offset{}
	left, most := int64(0), int32(0)
	for p, o := range ends[topic] {
		if errors.Is(o.Err, kerr.UnknownTopicOrPartition) {
			return nil
		}
		if o.Err != nil {
			n.tb.Fatalf("the end of topic %s, partition %d: %v", topic, p, o.Err)
		}
		from[p] = kgo.NewOffset().AtStart()
		left += o.Offset
		most = max(most, p)
	}
	if left == 0 {
		return nil
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(n.KafkaAddr()), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		n.tb.Fatalf("a Kafka client: %v", err)
	}
	defer reader.Close()
	byPartition := make([][]*kgo.Record, most+1)
	for left > 0 {
		fs := reader.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			n.tb.Fatalf("consuming %s, %d records left: %v", topic, left, err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			byPartition[r.Partition] = append(byPartition[r.Partition], r)
			left--
		})
	}
	var out []*kgo.Record
	for _, rs := range byPartition {
		out = append(out, rs...)
	}
	return out
}

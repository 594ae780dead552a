package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/connector/nexmark"
	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/internal/record"
)

// topics are where events go, by kind.
var topics = [...]string{nexmark.Person: "person", nexmark.Auction: "auction", nexmark.Bid: "bid"}

func (o *NexmarkOptions) generator() *nexmark.Generator {
	c := nexmark.DefaultConfig()
	c.Seed, c.Rate = uint64(o.Seed), o.Rate
	return nexmark.New(c)
}

// Dump writes the events as JSON lines, each with its number and type.
func Dump(w io.Writer, o NexmarkOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	g := o.generator()
	out := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	var scratch nexmark.Scratch
	for k := range o.Events {
		line = append(g.AppendJSON(line[:0], k, true, &scratch), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// fillTopics writes the events to topics of one partition each, as JSON, in batches of about 256 KB.
func fillTopics(ctx context.Context, c *node.Core, o *NexmarkOptions) error {
	const batchBytes = 256 << 10
	var parts [len(topics)]*broker.Partition
	var builders [len(topics)]*record.Builder
	for kind, name := range topics {
		t, err := c.Broker.CreateTopic(ctx, broker.TopicSpec{Name: name, Partitions: 1, Configs: map[string]string{"retention.ms": "-1"}}) // event times are of the past
		if err != nil {
			return fmt.Errorf("topic %s: %w", name, err)
		}
		parts[kind], builders[kind] = t.Partition(0), record.NewBuilder(record.None)
	}
	var batch []byte
	send := func(kind nexmark.Kind) error {
		if builders[kind].Len() == 0 {
			return nil
		}
		batch = builders[kind].Build(nil)
		builders[kind].Reset()
		if _, err := parts[kind].Produce(ctx, batch, 1); err != nil {
			return fmt.Errorf("topic %s: %w", topics[kind], err)
		}
		return nil
	}
	g := o.generator()
	var value []byte
	var scratch nexmark.Scratch
	for k := range o.Events {
		kind := nexmark.KindOf(g.ID(k))
		value = g.AppendJSON(value[:0], k, false, &scratch)
		builders[kind].Append(g.TimeMillis(k), nil, value)
		if builders[kind].Size() > batchBytes {
			if err := send(kind); err != nil {
				return err
			}
		}
	}
	for kind := range topics {
		if err := send(nexmark.Kind(kind)); err != nil {
			return err
		}
	}
	return nil
}

// ToTopics writes the events to the topics bid, auction and person of a running server, or of a node on o.Dir if brokers is empty.
func ToTopics(ctx context.Context, o NexmarkOptions, brokers []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if len(brokers) == 0 {
		if o.Dir == "" {
			return fmt.Errorf("there must be a running server's address or a data folder: the events would be gone with a temporary one")
		}
		clean, err := o.prepare()
		if err != nil {
			return err
		}
		defer clean()
		in, err := open(ctx, o.Options)
		if err != nil {
			return err
		}
		err = fillTopics(ctx, in.Core, &o)
		if e := in.close(); err == nil {
			err = e
		}
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.AllowAutoTopicCreation(), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(900<<10))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := o.generator()
	var scratch nexmark.Scratch
	for k := range o.Events {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		r := &kgo.Record{Topic: topics[nexmark.KindOf(g.ID(k))], Value: g.AppendJSON(nil, k, false, &scratch)}
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				cancel(fmt.Errorf("writing to %s: %w", r.Topic, err))
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

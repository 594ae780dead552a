package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// endToEnd sends durable records of 1 KB one after the other to the topic's first partition, for a time: from the call of the producer until another client
// has the record.
func (t *target) endToEnd(ctx context.Context, during time.Duration) (spread, error) {
	producer, err := kgo.NewClient(kgo.SeedBrokers(t.addr), kgo.DefaultProduceTopic(t.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return spread{}, err
	}
	defer producer.Close()
	value := make([]byte, recordBytes)
	// The first says where the consumer begins.
	first, err := producer.ProduceSync(ctx, &kgo.Record{Value: value}).First()
	if err != nil {
		return spread{}, err
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(t.addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		t.topic: {0: kgo.NewOffset().At(first.Offset)},
	}))
	if err != nil {
		return spread{}, err
	}
	defer consumer.Close()
	await := func(want uint64) error {
		for {
			fetches := consumer.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				return err
			}
			for _, r := range fetches.Records() {
				if len(r.Value) != recordBytes {
					return fmt.Errorf("a record of %d bytes at offset %d of %s, which is of this run alone", len(r.Value), r.Offset, t.topic)
				}
				if binary.BigEndian.Uint64(r.Value) == want {
					return nil
				}
			}
		}
	}
	if err := await(0); err != nil {
		return spread{}, err
	}
	// A record that is refused never arrives.
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	var took []time.Duration
	for n, end := uint64(1), time.Now().Add(during); time.Now().Before(end); n++ {
		value := make([]byte, recordBytes)
		binary.BigEndian.PutUint64(value, n)
		start := time.Now()
		producer.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				refuse(err)
			}
		})
		if err := await(n); err != nil {
			return spread{}, errors.Join(context.Cause(ctx), err)
		}
		took = append(took, time.Since(start))
	}
	return spreadOf(took), nil
}

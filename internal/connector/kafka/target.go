package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/leat-io/leat/internal/connector"
)

// transactionTimeout is how long the cluster keeps a transaction open whose writer is gone, and with it those who read its topic.
const transactionTimeout = 30 * time.Second

// Target is a topic of a cluster as what a sink delivers to. Its position is the offset of a consumer group of its own, for partition 0 of that topic, and is
// committed in the same transaction as the records.
type Target struct {
	cluster Cluster
	id      string // transactional id and group
	log     *slog.Logger
	client  *kgo.Client
	records []kgo.Record
}

// NewTarget is the target of the sink whose transactional id, and consumer group, is id.
func NewTarget(c Cluster, id string, log *slog.Logger) *Target {
	return &Target{cluster: c, id: id, log: log}
}

// versions leaves out what ties the group's offset to a protocol of transactions that the cluster may not have enabled.
func versions() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 4)
	return v
}

// Open implements connector.Target.
func (t *Target) Open(ctx context.Context) (int64, error) {
	t.shut()
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout+askTimeout) // what the last writer has left open may have to time out
	defer cancel()
	opts := append(t.cluster.options(t.log),
		kgo.MaxVersions(versions()), kgo.TransactionalID(t.id), kgo.TransactionTimeout(transactionTimeout), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.DefaultProduceTopic(t.cluster.Topic), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.UnknownTopicRetries(3),
		kgo.MaxBufferedRecords(connector.MaxRecords+1), kgo.ProducerBatchMaxBytes(1_000_000)) // (no timeout of records: it would count from their timestamps)
	codecs := map[string]kgo.CompressionCodec{
		"": kgo.Lz4Compression(), "none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	client, err := kgo.NewClient(append(opts, kgo.ProducerBatchCompression(codecs[t.cluster.Compression], kgo.NoCompression()))...)
	if err != nil {
		return 0, err
	}
	t.client = client
	at, err := t.open(ctx)
	if err != nil {
		t.shut()
		return 0, t.cluster.explain(err)
	}
	return at, nil
}

func (t *Target) open(ctx context.Context) (int64, error) {
	ping, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := t.client.Ping(ping); err != nil {
		return 0, err
	}
	if err := t.ensureTopic(ping); err != nil {
		return 0, err
	}
	if _, _, err := t.client.ProducerID(ctx); err != nil { // fences who used the id before, and ends its transaction
		return 0, fmt.Errorf("the transactional id %s: %w", t.id, err)
	}
	for {
		at, err := t.position(ctx)
		if !errors.Is(err, kerr.UnstableOffsetCommit) {
			return at, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil { // the end of the last transaction is on its way to the group
			return 0, err
		}
	}
}

// pause waits in a place where only a cluster's state changes with time.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// ensureTopic makes the topic if it is not there.
func (t *Target) ensureTopic(ctx context.Context) error {
	adm := kadm.NewClient(t.client)
	topics, err := adm.ListTopics(ctx, t.cluster.Topic)
	if err != nil {
		return err
	}
	d := topics[t.cluster.Topic]
	switch {
	case d.Err == nil && len(d.Partitions) > 0:
		return nil
	case d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("topic \"%s\": %w", t.cluster.Topic, d.Err)
	}
	made, err := adm.CreateTopic(ctx, -1, -1, nil, t.cluster.Topic)
	if err == nil {
		err = made.Err
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("topic \"%s\" is not there and cannot be made (%w); make it, and the sink goes on", t.cluster.Topic, err)
	}
	return nil
}

// position is the group's offset.
func (t *Target) position(ctx context.Context) (int64, error) {
	got, err := kadm.NewClient(t.client).FetchOffsetsForTopics(kadm.RequireStable(ctx), t.id, t.cluster.Topic)
	if err != nil {
		if errors.Is(err, kerr.GroupIDNotFound) {
			return connector.NoPosition, nil
		}
		return 0, err
	}
	o, ok := got.Lookup(t.cluster.Topic, 0)
	switch {
	case !ok, errors.Is(o.Err, kerr.GroupIDNotFound):
		return connector.NoPosition, nil
	case o.Err != nil:
		return 0, o.Err
	case o.At < 0:
		return connector.NoPosition, nil
	}
	return o.At, nil
}

// Write implements connector.Target.
func (t *Target) Write(ctx context.Context, records []connector.Record, next int64) error {
	if t.client == nil {
		return errors.New("the target is not open")
	}
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	err := t.write(ctx, records, next)
	if err != nil {
		t.shut() // nobody knows what became of the transaction
	}
	return t.cluster.explain(err)
}

func (t *Target) write(ctx context.Context, records []connector.Record, next int64) error {
	if err := t.client.BeginTransaction(); err != nil {
		return err
	}
	failed := make(chan error, 1)
	if cap(t.records) < len(records) {
		t.records = make([]kgo.Record, len(records))
	}
	t.records = t.records[:len(records)]
	for i := range records {
		r := &records[i]
		t.records[i] = kgo.Record{Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)}
		t.client.Produce(ctx, &t.records[i], func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	if err := t.client.Flush(ctx); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
	}
	if err := t.addPosition(ctx, next); err != nil {
		return err
	}
	return t.client.EndTransaction(ctx, kgo.TryCommit)
}

// addPosition has the group's offset move with the transaction.
func (t *Target) addPosition(ctx context.Context, next int64) error {
	id, epoch, err := t.client.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = t.id, id, epoch, t.id
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = t.id, id, epoch, t.id
	commit.Generation = -1
	part := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	part.Offset = next
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.Partitions = t.cluster.Topic, append(topic.Partitions, part)
	commit.Topics = append(commit.Topics, topic)
	err = t.again(ctx, func() error {
		resp, err := add.RequestWith(ctx, t.client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	if err != nil {
		return err
	}
	return t.again(ctx, func() error {
		resp, err := commit.RequestWith(ctx, t.client)
		if err != nil {
			return err
		}
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// again repeats what the cluster says to try again, as long as ctx lasts: the coordinator is moving, or ends the transaction before.
func (t *Target) again(ctx context.Context, fn func() error) error {
	for {
		err := fn()
		if err == nil || !kerr.IsRetriable(err) {
			return err
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}

// Keep implements connector.Target.
func (t *Target) Keep(ctx context.Context, position int64) error {
	if t.client == nil {
		return errors.New("the target is not open")
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	offsets := kadm.Offsets{}
	offsets.AddOffset(t.cluster.Topic, 0, position, -1)
	return t.cluster.explain(kadm.NewClient(t.client).CommitAllOffsets(ctx, t.id, offsets))
}

// Forget implements connector.Target.
func (t *Target) Forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client, err := kgo.NewClient(t.cluster.options(t.log)...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return t.cluster.explain(err)
	}
	_, err = kadm.NewClient(client).DeleteGroup(ctx, t.id)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil
	}
	return t.cluster.explain(err)
}

func (t *Target) shut() {
	if t.client != nil {
		t.client.Close()
		t.client, t.records = nil, nil // it may look at them for a moment yet
	}
}

// Close implements connector.Target.
func (t *Target) Close() error {
	t.shut()
	return nil
}

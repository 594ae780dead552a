package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/leat-io/leat/internal/record"
)

// PartitionsOptions are those of Partitions.
type PartitionsOptions struct {
	Options
	Partitions int
	Rounds     int
	// Broker is the address of one that runs already, and is measured instead of a node of its own.
	Broker string
}

// PartitionsResult is what Partitions gave. Times are in milliseconds.
type PartitionsResult struct {
	Partitions int     `json:"partitions"`
	Create     float64 `json:"create_ms"`     // until the topic is acknowledged
	First      float64 `json:"first_ms"`      // 1 KB to each for the first time, from the first byte sent to the last acknowledgement
	Later      float64 `json:"later_ms"`      // the same later, the median
	FirstTail  float64 `json:"first_tail_ms"` // from the last byte sent to the last acknowledgement
	LaterTail  float64 `json:"later_tail_ms"`
}

// Partitions makes a topic with very many partitions and writes 1 KB to each of them, durable, again and again.
func Partitions(ctx context.Context, o PartitionsOptions) (r *PartitionsResult, err error) {
	if o.Partitions < 1 || o.Rounds < 2 {
		return nil, errors.New("there must be partitions, and two rounds or more")
	}
	t := target{addr: o.Broker, topic: "leat-bench-partitions", partitions: o.Partitions}
	if t.addr == "" {
		clean, err := o.prepare()
		if err != nil {
			return nil, err
		}
		defer clean()
		n, _, err := startServer(ctx, o.Options)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, n.Stop()) }()
		t.addr = n.KafkaAddr()
	}
	r = &PartitionsResult{Partitions: o.Partitions}
	start := time.Now()
	if err := t.create(ctx, nil); err != nil {
		return nil, err
	}
	r.Create = milliseconds(time.Since(start))
	var whole, tail []time.Duration
	for round := range o.Rounds {
		if round > 0 {
			time.Sleep(time.Second) // each is a burst, not a load
		}
		w, l, err := t.writeToAll(ctx, round)
		if err != nil {
			return nil, err
		}
		if round == 0 {
			r.First, r.FirstTail = milliseconds(w), milliseconds(l)
			continue
		}
		whole, tail = append(whole, w), append(tail, l)
	}
	r.Later, r.LaterTail = milliseconds(spreadOf(whole).p50), milliseconds(spreadOf(tail).p50)
	return r, nil
}

const (
	partitionsPerRequest = 500
	partitionConnections = 4
)

// writeToAll writes 1 KB to every partition; whole is the time from the first byte sent, tail from the last one, to the last acknowledgement.
func (t *target) writeToAll(ctx context.Context, round int) (whole, tail time.Duration, err error) {
	b := record.NewBuilder(record.None)
	value := make([]byte, recordBytes)
	value[0] = byte(round)
	b.Append(time.Now().UnixMilli(), nil, value)
	batch := b.Build(nil)
	frames := make([][][]byte, partitionConnections)
	for i, from := 0, 0; from < t.partitions; i, from = i+1, from+partitionsPerRequest {
		c := i % partitionConnections
		frames[c] = append(frames[c], t.frameOf(from, min(t.partitions, from+partitionsPerRequest), batch))
	}
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	var dialer net.Dialer
	for range partitionConnections {
		c, err := dialer.DialContext(ctx, "tcp", t.addr)
		if err != nil {
			return 0, 0, err
		}
		conns = append(conns, c)
		_ = c.SetDeadline(time.Now().Add(time.Minute))
	}
	begun := time.Now()
	var mu sync.Mutex
	var sent, done time.Time
	fail := func(e error) {
		mu.Lock()
		err = errors.Join(err, e)
		mu.Unlock()
	}
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			for _, f := range frames[i] {
				if _, err := c.Write(f); err != nil {
					fail(err)
					return
				}
			}
			mu.Lock()
			sent = time.Now()
			mu.Unlock()
		})
		wg.Go(func() {
			for range frames[i] {
				if err := readAcknowledgement(c); err != nil {
					fail(err)
					return
				}
			}
			mu.Lock()
			done = time.Now()
			mu.Unlock()
		})
	}
	wg.Wait()
	return done.Sub(begun), done.Sub(sent), err
}

// frameOf is a produce request for the partitions from..to.
func (t *target) frameOf(from, to int, batch []byte) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(produceVersion)
	req.Acks, req.TimeoutMillis = -1, 30_000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = t.topic
	for p := from; p < to; p++ {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = int32(p), batch
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 1)
}

// readAcknowledgement reads one response and says whether every batch was taken.
func readAcknowledgement(r io.Reader) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 5 || size > 16<<20 {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	resp := kmsg.NewPtrProduceResponse()
	resp.SetVersion(produceVersion)
	if err := resp.ReadFrom(b[5:]); err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return fmt.Errorf("the broker answered with error %d for partition %d", p.ErrorCode, p.Partition)
			}
		}
	}
	return nil
}

package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/internal/record"
)

// LogOptions are those of Log.
type LogOptions struct {
	Options
	Connections int
	For         time.Duration // each of the parts
}

// LogResult is what Log gave.
type LogResult struct {
	Connections      int     `json:"connections"`
	RecordsPerSecond int64   `json:"single_records_per_second"`
	SingleP50        float64 `json:"single_p50_ms"`
	SingleP99        float64 `json:"single_p99_ms"`
	SingleCPU        float64 `json:"single_cpu_us_per_record"` // client and server
	DeviceP50        float64 `json:"device_sync_p50_ms"`
	DeviceP99        float64 `json:"device_sync_p99_ms"`
	BatchBytes       int     `json:"batch_bytes"`
	BatchConnections int     `json:"batch_connections"`
	BytesPerSecond   int64   `json:"batch_bytes_per_second"`
	DeviceBytes      int64   `json:"device_bytes_per_second"` // the same bytes, synced as often, written by a plain program
	ToDevice         float64 `json:"batch_to_device"`
}

const (
	recordBytes      = 1 << 10
	batchRecords     = 900 // of 1 KB: a batch below Kafka's default limit of 1 MB
	batchConnections = 4
)

// Log measures durable produce: single records of 1 KB over many connections, then large batches, the latter next to the disk's own speed.
func Log(ctx context.Context, o LogOptions) (r *LogResult, err error) {
	if o.Connections < 1 || o.For <= 0 {
		return nil, errors.New("the connections and the time must be positive")
	}
	clean, err := o.prepare()
	if err != nil {
		return nil, err
	}
	defer clean()
	r = &LogResult{Connections: o.Connections, BatchConnections: batchConnections}
	d, err := openDevice(o.Dir, 256<<20)
	if err != nil {
		return nil, err
	}
	defer d.close()
	own, err := d.syncs(300, 4096)
	if err != nil {
		return nil, err
	}
	r.DeviceP50, r.DeviceP99 = milliseconds(own.p50), milliseconds(own.p99)
	n, _, err := startServer(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	if _, err := n.Broker.CreateTopic(ctx, broker.TopicSpec{Name: "log", Partitions: int32(o.Connections)}); err != nil {
		return nil, err
	}
	start := used()
	took, _, err := produceFrames(ctx, n, o.Connections, 1, o.For)
	if err != nil {
		return nil, err
	}
	wall, cpu := start.since()
	s := spreadOf(took)
	r.RecordsPerSecond, r.SingleCPU = int64(float64(len(took))/wall), round(cpu*1e6/float64(len(took)), 1)
	r.SingleP50, r.SingleP99 = milliseconds(s.p50), milliseconds(s.p99)

	// The disk may be faster at one time than at another: its own speed is taken before and after.
	before, err := d.sequential(batchConnections*batchRecords*recordBytes, o.For/2)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	took, size, err := produceFrames(ctx, n, batchConnections, batchRecords, o.For)
	if err != nil {
		return nil, err
	}
	speed := float64(len(took)) * float64(size) / time.Since(begun).Seconds()
	after, err := d.sequential(batchConnections*batchRecords*recordBytes, o.For/2)
	if err != nil {
		return nil, err
	}
	r.BatchBytes, r.BytesPerSecond, r.DeviceBytes = size, int64(speed), int64((before+after)/2)
	r.ToDevice = round(speed/((before+after)/2), 2)
	return r, nil
}

// produceFrames sends one batch again and again over so many connections, each to a partition of its own and waiting for the answer, for a time.
func produceFrames(ctx context.Context, n *node.Node, connections, records int, during time.Duration) (took []time.Duration, batch int, err error) {
	b := record.NewBuilder(record.None)
	value := make([]byte, recordBytes)
	for i := range records {
		copy(value, strconv.Itoa(i))
		b.Append(time.Now().UnixMilli(), nil, value)
	}
	bytes := b.Build(nil)
	ctx, cancel := context.WithTimeout(ctx, during+30*time.Second)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var stop atomic.Bool
	var failed error
	timer := time.AfterFunc(during, func() { stop.Store(true) })
	defer timer.Stop()
	for c := range connections {
		wg.Go(func() {
			mine, e := produceLoop(ctx, n.KafkaAddr(), frame(int32(c), bytes), &stop)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			failed = errors.Join(failed, e)
		})
	}
	wg.Wait()
	if failed == nil && len(took) == 0 {
		failed = errors.New("no record was produced")
	}
	return took, len(bytes), failed
}

const produceVersion = 9

// frame is a produce request with its length.
func frame(partition int32, batch []byte) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(produceVersion)
	req.Acks, req.TimeoutMillis = -1, 30_000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = "log"
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, batch
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 1)
}

func produceLoop(ctx context.Context, addr string, frame []byte, stop *atomic.Bool) ([]time.Duration, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if end, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(end)
	}
	answer := make([]byte, 4096)
	resp := kmsg.NewPtrProduceResponse()
	resp.SetVersion(produceVersion)
	var took []time.Duration
	for !stop.Load() {
		start := time.Now()
		if _, err := c.Write(frame); err != nil {
			return took, err
		}
		if _, err := io.ReadFull(c, answer[:4]); err != nil {
			return took, err
		}
		size := binary.BigEndian.Uint32(answer[:4])
		if size < 5 || int(size) > len(answer) {
			return took, fmt.Errorf("an answer of %d bytes", size)
		}
		if _, err := io.ReadFull(c, answer[:size]); err != nil {
			return took, err
		}
		took = append(took, time.Since(start))
		if err := resp.ReadFrom(answer[5:size]); err != nil { // behind the correlation id and the header's tags
			return took, err
		}
		if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
			return took, fmt.Errorf("the broker answered with error %d", code)
		}
	}
	return took, nil
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/record"
)

// LogOptions are those of Log.
type LogOptions struct {
	Options
	Connections int
	Partitions  int           // 0: one a connection
	For         time.Duration // each of the parts

	// Broker is the address of one that runs already and is measured instead of a node of its own; its topic is made with Configs, and is left there.
	// With its process id its CPU time is known, too.
	Broker    string
	BrokerPID int
	Configs   map[string]string
}

// LogResult is what Log gave.
type LogResult struct {
	Connections      int     `json:"connections"`
	RecordsPerSecond int64   `json:"single_records_per_second"`
	SingleP50        float64 `json:"single_p50_ms"`
	SingleP99        float64 `json:"single_p99_ms"`
	BrokerCPU        float64 `json:"single_broker_cpu_us_per_record"`
	ClientCPU        float64 `json:"single_client_cpu_us_per_record"`
	EndToEndP50      float64 `json:"end_to_end_p50_ms"` // of one durable record after the other, from a client to another
	EndToEndP99      float64 `json:"end_to_end_p99_ms"`
	DeviceP50        float64 `json:"device_sync_p50_ms"`
	DeviceP99        float64 `json:"device_sync_p99_ms"`
	BatchBytes       int     `json:"batch_bytes"`
	BatchConnections int     `json:"batch_connections"`
	BatchInFlight    int     `json:"batch_in_flight"` // of each of them
	BytesPerSecond   int64   `json:"batch_bytes_per_second"`
	BatchBrokerCPU   float64 `json:"batch_broker_cpu_s_per_gb"`
	BatchClientCPU   float64 `json:"batch_client_cpu_s_per_gb"`
	DeviceBytes      int64   `json:"device_bytes_per_second"` // the same bytes, synced as often, written by a plain program
	ToDevice         float64 `json:"batch_to_device"`
}

const (
	recordBytes      = 1 << 10
	batchRecords     = 900 // of 1 KB: a batch below Kafka's default limit of 1 MB
	batchConnections = 4
	batchInFlight    = 4 // clients have five by default
)

// Log measures durable produce: single records of 1 KB over many connections, one after the other from a client to another, then large batches, the latter next
// to the disk's own speed.
func Log(ctx context.Context, o LogOptions) (r *LogResult, err error) {
	if o.Connections < 1 || o.For <= 0 || o.Partitions < 0 {
		return nil, errors.New("the connections and the time must be positive")
	}
	if o.Partitions == 0 {
		o.Partitions = o.Connections
	}
	clean, err := o.prepare()
	if err != nil {
		return nil, err
	}
	defer clean()
	r = &LogResult{Connections: o.Connections, BatchConnections: batchConnections, BatchInFlight: batchInFlight}
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
	t := target{addr: o.Broker, pid: o.BrokerPID, topic: "leat-bench-log", partitions: o.Partitions}
	if t.addr != "" {
		if err := t.create(ctx, o.Configs); err != nil {
			return nil, err
		}
	} else {
		n, _, err := startServer(ctx, o.Options)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, n.Stop()) }()
		if _, err := n.Broker.CreateTopic(ctx, broker.TopicSpec{Name: t.topic, Partitions: int32(o.Partitions)}); err != nil {
			return nil, err
		}
		t.addr = n.KafkaAddr()
	}
	// A while before, for what is made once: files, and the journal's segments.
	if _, err := t.produce(ctx, batchConnections, batchConnections, batchRecords, batchInFlight, o.For/2); err != nil {
		return nil, err
	}
	single, err := t.produce(ctx, o.Connections, 1, 1, 1, o.For)
	if err != nil {
		return nil, err
	}
	s := spreadOf(single.took)
	count := float64(len(single.took))
	r.RecordsPerSecond, r.SingleP50, r.SingleP99 = int64(count/single.wall), milliseconds(s.p50), milliseconds(s.p99)
	r.BrokerCPU, r.ClientCPU = round(single.broker*1e6/count, 1), round(single.client*1e6/count, 1)
	one, err := t.endToEnd(ctx, o.For)
	if err != nil {
		return nil, err
	}
	r.EndToEndP50, r.EndToEndP99 = milliseconds(one.p50), milliseconds(one.p99)

	// The disk may be faster at one time than at another: its own speed is taken before and after.
	before, err := d.sequential(batchConnections*batchRecords*recordBytes, o.For/2)
	if err != nil {
		return nil, err
	}
	large, err := t.produce(ctx, batchConnections, batchConnections, batchRecords, batchInFlight, o.For)
	if err != nil {
		return nil, err
	}
	after, err := d.sequential(batchConnections*batchRecords*recordBytes, o.For/2)
	if err != nil {
		return nil, err
	}
	bytes := float64(len(large.took)) * float64(large.batch)
	speed := bytes / large.wall
	r.BatchBytes, r.BytesPerSecond, r.DeviceBytes = large.batch, int64(speed), int64((before+after)/2)
	r.BatchBrokerCPU, r.BatchClientCPU = round(large.broker*1e9/bytes, 2), round(large.client*1e9/bytes, 2)
	r.ToDevice = round(speed/((before+after)/2), 2)
	return r, nil
}

// target is a broker with a topic to produce to.
type target struct {
	addr       string
	pid        int // 0: this process
	topic      string
	partitions int
}

// create makes the topic on a broker that runs already, anew.
func (t *target) create(ctx context.Context, configs map[string]string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.addr))
	if err != nil {
		return err
	}
	defer client.Close()
	t.topic += "-" + strconv.FormatInt(time.Now().UnixMilli(), 36)
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.topic, int32(t.partitions), 1
	for name, value := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, &value
		topic.Configs = append(topic.Configs, c)
	}
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 60_000
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("creating %s: %w", t.topic, err)
	}
	if code := resp.Topics[0].ErrorCode; code != 0 {
		return fmt.Errorf("creating %s: error %d", t.topic, code)
	}
	return t.awaitLeaders(ctx, client)
}

// awaitLeaders waits until every partition answers for itself: metadata names a leader before it takes requests (Kafka then answers with error 6).
func (t *target) awaitLeaders(ctx context.Context, client *kgo.Client) error {
	req := kmsg.NewPtrListOffsetsRequest()
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = t.topic
	for i := range t.partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = int32(i), -1
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	for end := time.Now().Add(time.Minute); ; {
		led := 0
		for _, shard := range client.RequestSharded(ctx, req) {
			if resp, ok := shard.Resp.(*kmsg.ListOffsetsResponse); ok && shard.Err == nil {
				for _, answered := range resp.Topics {
					for _, p := range answered.Partitions {
						if p.ErrorCode == 0 {
							led++
						}
					}
				}
			}
		}
		if led == t.partitions {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d partitions of %s have a leader after a minute", led, t.partitions, t.topic)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// cpu is what the broker's process has used, in seconds.
func (t *target) cpu() float64 {
	if t.pid == 0 {
		return used().cpu.Seconds()
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // ticks, of which there are a hundred a second for all that Linux tells programs
}

// produced is what a run of loads gave.
type produced struct {
	took           []time.Duration
	batch          int     // bytes
	wall           float64 // seconds
	broker, client float64 // CPU seconds
}

// produce sends one batch again and again over so many connections, spread over the partitions and run by so many threads, for a time. Each
// connection has at most so many requests in flight.
func (t *target) produce(ctx context.Context, connections, threads, records, window int, during time.Duration) (p produced, err error) {
	b := record.NewBuilder(record.None)
	value := make([]byte, recordBytes)
	for i := range records {
		copy(value, strconv.Itoa(i))
		b.Append(time.Now().UnixMilli(), nil, value)
	}
	batch := b.Build(nil)
	p.batch = len(batch)
	loads := make([]load, threads)
	defer func() {
		for i := range loads {
			loads[i].close()
		}
	}()
	for c := range connections {
		if err := loads[c%threads].dial(ctx, t.addr, t.frame(int32(c%t.partitions), batch)); err != nil {
			return p, err
		}
	}
	var stop atomic.Bool
	unhook := context.AfterFunc(ctx, func() { stop.Store(true) })
	defer unhook()
	timer := time.AfterFunc(during, func() { stop.Store(true) })
	defer timer.Stop()
	var mu sync.Mutex
	var wg sync.WaitGroup
	begun, cpu := time.Now(), t.cpu()
	for i := range loads {
		wg.Go(func() {
			e := loads[i].run(&stop, window)
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, e)
		})
	}
	wg.Wait()
	p.wall, p.broker = time.Since(begun).Seconds(), t.cpu()-cpu
	for i := range loads {
		p.took = append(p.took, loads[i].took...)
		p.client += loads[i].cpu.Seconds()
	}
	if t.pid == 0 {
		p.broker -= p.client
	}
	if err == nil && len(p.took) == 0 {
		err = errors.New("no record was produced")
	}
	return p, errors.Join(err, ctx.Err())
}

const produceVersion = 9

// frame is a produce request with its length.
func (t *target) frame(partition int32, batch []byte) []byte {
	return t.frameOf(int(partition), int(partition)+1, batch)
}

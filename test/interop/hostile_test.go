package interop

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/door/kafka"
	"github.com/leat-io/leat/internal/door/kafka/kafkatest"
	"github.com/leat-io/leat/internal/record"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// raw is a connection on which a test says exactly what it wants.
type raw struct {
	t    *testing.T
	nc   net.Conn
	next int32
	sent map[int32]kmsg.Request

	pushed []byte // read from the connection ahead of a frame
}

func dial(t *testing.T, n *kafkatest.Node) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", n.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	return &raw{t: t, nc: nc, sent: map[int32]kmsg.Request{}}
}

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("raw"))

func (r *raw) send(req kmsg.Request) int32 {
	r.t.Helper()
	r.next++
	r.sent[r.next] = req
	if _, err := r.nc.Write(formatter.AppendRequest(nil, req, r.next)); err != nil {
		r.t.Fatal(err)
	}
	return r.next
}

// receive reads the next response.
func (r *raw) receive() (id int32, resp kmsg.Response) {
	r.t.Helper()
	id, body := r.frame()
	req, ok := r.sent[id]
	if !ok {
		r.t.Fatalf("a response to request %d, which was not sent", id)
	}
	if req.IsFlexible() && req.Key() != 18 {
		body = body[1:]
	}
	resp = req.ResponseKind()
	if err := resp.ReadFrom(body); err != nil {
		r.t.Fatalf("%s version %d: %v", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	return id, resp
}

func (r *raw) frame() (id int32, body []byte) {
	r.t.Helper()
	var head [8]byte
	in := io.MultiReader(bytes.NewReader(r.pushed), r.nc)
	if _, err := io.ReadFull(in, head[:]); err != nil {
		r.t.Fatal(err)
	}
	body = make([]byte, binary.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(in, body); err != nil {
		r.t.Fatal(err)
	}
	r.pushed = nil
	return int32(binary.BigEndian.Uint32(head[4:])), body
}

// closed waits until the other side has ended the connection.
func (r *raw) closed(what string) {
	r.t.Helper()
	_, err := io.Copy(io.Discard, r.nc)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Fatalf("%s: the connection stays open", what)
	}
}

func batchOf(values ...string) []byte {
	b := record.NewBuilder(record.None)
	b.Reset()
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), nil, []byte(v))
	}
	return b.Build(nil)
}

func produceRequest(version int16, topic string, partition int32, acks int16, batch []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(version)
	req.Acks = acks
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, batch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func fetchRequest(version int16, topic string, offset int64, wait time.Duration) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(version)
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = int32(wait.Milliseconds()), 1, 50<<20, -1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = offset, 10<<20, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func withTopic(t *testing.T, o kafkatest.Options, configs map[string]string) *kafkatest.Node {
	t.Helper()
	n := kafkatest.Start(t, o)
	if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t", Configs: configs}); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestGarbageEndsItsConnectionOnly(t *testing.T) {
	t.Parallel()
	n := withTopic(t, kafkatest.Options{}, nil)
	good := dial(t, n)
	frame := func(n uint32, body ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, n), body...) }
	for name, bytes := range map[string][]byte{
		"http":               []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"a giant length":     frame(0x7fffffff),
		"a negative length":  frame(0xffffffff, 0, 18, 0, 0),
		"an empty frame":     frame(0),
		"an unknown key":     frame(10, 0x7f, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff),
		"a negative key":     frame(10, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff),
		"an unknown version": frame(10, 0, 3, 0x7f, 0, 0, 0, 0, 1, 0xff, 0xff),
		"a client id that is longer than the frame": frame(10, 0, 3, 0, 0, 0, 0, 0, 1, 0x7f, 0xff),
		"an array that is longer than the frame":    frame(14, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff),
		"produce of nothing":                        frame(10, 0, 0, 0, 9, 0, 0, 0, 1, 0xff, 0xff),
		"a metadata request of 50 MB":               frame(50<<20, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff),
	} {
		r := dial(t, n)
		if _, err := r.nc.Write(bytes); err != nil {
			t.Fatal(err)
		}
		r.closed(name)
	}
	for cut := 1; cut < 40; cut++ { // a frame that ends anywhere
		r := dial(t, n)
		whole := formatter.AppendRequest(nil, produceRequest(9, "t", 0, -1, batchOf("cut")), 1)
		_, _ = r.nc.Write(whole[:len(whole)*cut/40])
		_ = r.nc.(*net.TCPConn).CloseWrite()
		r.closed("a cut frame")
	}
	// Many who announce a lot and send nothing cost nothing, and hinder nobody.
	for range 50 {
		r := dial(t, n)
		_, _ = r.nc.Write(frame(100<<20, 0, 0, 0, 9))
	}
	good.send(produceRequest(9, "t", 0, -1, batchOf("fine")))
	if _, resp := good.receive(); resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode != 0 {
		t.Errorf("a good client is refused: %+v", resp)
	}
}

func TestBadBatchesAreRefusedOneByOne(t *testing.T) {
	t.Parallel()
	n := withTopic(t, kafkatest.Options{}, nil)
	change := func(at int, v byte) []byte {
		b := batchOf("value")
		b[at] ^= v
		return b
	}
	r := dial(t, n)
	for name, c := range map[string]struct {
		batch []byte
		want  *kerr.Error
	}{
		"no bytes":            {[]byte{}, kerr.CorruptMessage},
		"null":                {nil, kerr.CorruptMessage},
		"short":               {batchOf("value")[:40], kerr.CorruptMessage},
		"a flipped bit":       {change(70, 1), kerr.CorruptMessage},
		"a wrong length":      {change(11, 1), kerr.CorruptMessage},
		"format 1":            {change(16, 3), kerr.UnsupportedForMessageFormat},
		"two batches":         {append(batchOf("a"), batchOf("b")...), kerr.CorruptMessage},
		"larger than allowed": {batchOf(strings.Repeat("x", 2<<20)), kerr.MessageTooLarge},
	} {
		r.send(produceRequest(9, "t", 0, -1, c.batch))
		_, resp := r.receive()
		if got := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; got != c.want.Code {
			t.Errorf("%s: %v, want %v", name, kerr.ErrorForCode(got), c.want)
		}
	}
	for _, old := range []int16{0, 1, 2} {
		r.send(produceRequest(old, "t", 0, -1, batchOf("old")))
		if _, resp := r.receive(); resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode != kerr.UnsupportedForMessageFormat.Code {
			t.Errorf("produce version %d is not refused", old)
		}
	}
	if topic, _ := n.Broker.Topic("t"); topic.Partition(0).Appended() != 0 {
		t.Error("something is in")
	}
}

// TestMutatedRequests sends requests of every API with bytes changed at random. Whatever becomes of them, the node serves the next one.
func TestMutatedRequests(t *testing.T) {
	t.Parallel()
	n := withTopic(t, kafkatest.Options{Broker: func(o *broker.Options) { o.AutoCreate = false }}, nil)
	rng := rand.New(rand.NewPCG(*seedFlag, 4))
	probe := dial(t, n)
	probe.send(kmsg.NewPtrApiVersionsRequest())
	_, resp := probe.receive()
	for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
		if k.ApiKey == 20 || k.ApiKey == 19 { // the topic must stay what it is
			continue
		}
		for range 30 {
			req := kmsg.RequestForKey(k.ApiKey)
			req.SetVersion(k.MinVersion + int16(rng.IntN(int(k.MaxVersion-k.MinVersion)+1)))
			switch f := req.(type) {
			case *kmsg.ProduceRequest:
				req = produceRequest(f.Version, "t", 0, 1, batchOf("m"))
			case *kmsg.FetchRequest:
				req = fetchRequest(f.Version, "t", 0, 0)
			}
			frame := formatter.AppendRequest(nil, req, 1)
			for range 1 + rng.IntN(4) {
				frame[4+2+rng.IntN(len(frame)-6)] = byte(rng.IntN(256))
			}
			frame[4], frame[5] = byte(k.ApiKey>>8), byte(k.ApiKey)
			nc, err := net.Dial("tcp", n.Addr)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = nc.Write(frame)
			_ = nc.SetDeadline(time.Now().Add(20 * time.Millisecond))
			_, _ = io.Copy(io.Discard, nc)
			nc.Close()
		}
	}
	r := dial(t, n)
	r.send(produceRequest(9, "t", 0, -1, batchOf("fine")))
	if _, resp := r.receive(); resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode != 0 {
		t.Errorf("seed %d: a good client is refused: %+v", *seedFlag, resp)
	}
}

func TestAnUnknownApiVersionsVersionIsAnsweredInVersion0(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	r := dial(t, n)
	_, _ = r.nc.Write([]byte{0, 0, 0, 10, 0, 18, 0, 99, 0, 0, 0, 7, 0xff, 0xff})
	id, body := r.frame()
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.SetVersion(0)
	if err := resp.ReadFrom(body); err != nil || id != 7 || resp.ErrorCode != kerr.UnsupportedVersion.Code || len(resp.ApiKeys) < 20 {
		t.Fatalf("request %d: %+v %v", id, resp, err)
	}
	r.send(kmsg.NewPtrApiVersionsRequest()) // and the connection goes on
	r.receive()
}

func TestRequestsArePipelined(t *testing.T) {
	t.Parallel()
	n := withTopic(t, kafkatest.Options{}, nil)
	r := dial(t, n)
	// The fetch waits for data that comes behind it on the same connection: it is sequenced although the fetch is not answered yet.
	start := time.Now()
	first := r.send(fetchRequest(12, "t", 0, patience))
	var ids []int32
	for range 100 {
		ids = append(ids, r.send(produceRequest(9, "t", 0, -1, batchOf("v"))))
	}
	id, resp := r.receive()
	if got := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]; id != first || len(got.RecordBatches) == 0 || time.Since(start) > patience/2 {
		t.Fatalf("the fetch is answered with %+v after %v", got, time.Since(start))
	}
	for i, want := range ids {
		id, resp := r.receive()
		if base := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].BaseOffset; id != want || base != int64(i) {
			t.Fatalf("response %d is to request %d, offset %d", i, id, base)
		}
	}
}

func TestAClientThatDoesNotReadIsDropped(t *testing.T) {
	t.Parallel()
	n := withTopic(t, kafkatest.Options{Door: func(o *kafka.Options) { o.WriteTimeout = 200 * time.Millisecond }}, map[string]string{"max.message.bytes": "5000000"})
	r := dial(t, n)
	for range 8 {
		r.send(produceRequest(9, "t", 0, -1, batchOf(strings.Repeat("x", 4<<20))))
		r.receive()
	}
	for range 20 {
		if _, err := r.nc.Write(formatter.AppendRequest(nil, fetchRequest(12, "t", 0, 0), 1)); err != nil {
			break
		}
	}
	eventually(t, func() string {
		families, err := n.Metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "leat_kafka_connections" && f.Metric[0].Gauge.GetValue() == 0 {
				return ""
			}
		}
		return "the connection is still there"
	})
}

func TestADuplicateIsAnsweredWithTheFirstOffset(t *testing.T) {
	t.Parallel()
	n := withTopic(t, kafkatest.Options{}, nil)
	sequenced := func(seq int32, v string) []byte {
		b := record.NewBuilder(record.None)
		b.ProducerID, b.ProducerEpoch, b.BaseSequence = 77, 0, seq
		b.Reset()
		b.Append(time.Now().UnixMilli(), nil, []byte(v))
		return b.Build(nil)
	}
	r := dial(t, n)
	produce := func(batch []byte) (int64, int16) {
		r.send(produceRequest(9, "t", 0, -1, batch))
		_, resp := r.receive()
		p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		return p.BaseOffset, p.ErrorCode
	}
	batches := [][]byte{sequenced(0, "a"), sequenced(1, "b"), sequenced(2, "c")}
	for i, b := range batches {
		if base, code := produce(b); code != 0 || base != int64(i) {
			t.Fatalf("batch %d: offset %d, code %d", i, base, code)
		}
	}
	check := func(when string) {
		t.Helper()
		for i, b := range batches {
			if base, code := produce(b); code != 0 || base != int64(i) {
				t.Errorf("%s: batch %d again: offset %d, code %d", when, i, base, code)
			}
		}
		if _, code := produce(sequenced(4, "gap")); code != kerr.OutOfOrderSequenceNumber.Code {
			t.Errorf("%s: a gap: code %d", when, code)
		}
	}
	check("at once")
	n.Crash(0, rand.New(rand.NewPCG(1, 1)))
	r = dial(t, n)
	check("after a crash")
	n.Checkpoint()
	n.Restart()
	r = dial(t, n)
	check("after a checkpoint and a restart")
	if topic, _ := n.Broker.Topic("t"); topic.Partition(0).HighWatermark() != 3 {
		t.Errorf("%d records are in, want 3", topic.Partition(0).HighWatermark())
	}
}

func TestAFullDiskRefusesToProduceUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	free := make(chan int64, 1)
	free <- 1 << 30
	now := func(string) (int64, error) {
		v := <-free
		free <- v
		return v, nil
	}
	n := withTopic(t, kafkatest.Options{Broker: func(o *broker.Options) {
		o.Reserve = broker.Reserve{BallastBytes: 1 << 20, MinFree: 10 << 20, FreeSpace: now}
	}}, nil)
	r := dial(t, n)
	code := func() int16 {
		r.send(produceRequest(9, "t", 0, -1, batchOf("v")))
		_, resp := r.receive()
		return resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
	}
	if c := code(); c != 0 {
		t.Fatalf("with room: %d", c)
	}
	<-free
	free <- 1 << 20
	eventually(t, func() string {
		if c := code(); c != kerr.KafkaStorageError.Code {
			return fmt.Sprintf("code %d, though the disk is full", c)
		}
		return ""
	})
	r.send(fetchRequest(12, "t", 0, 0)) // reading goes on
	if _, resp := r.receive(); len(resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches) == 0 {
		t.Error("nothing can be read")
	}
	<-free
	free <- 1 << 30
	eventually(t, func() string {
		if c := code(); c != 0 {
			return "producing does not resume"
		}
		return ""
	})
}

package interop

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/door/kafka"
	"github.com/leat-io/leat/internal/door/kafka/kafkatest"
	"github.com/leat-io/leat/internal/vfs"
)

// TestAFetchDoesNotWaitForWhatItsLimitsKeepOut asks for more bytes than a partition may return at a time, although there are enough: whole batches never fill
// the limit to the last byte, and waiting would bring nothing.
func TestAFetchDoesNotWaitForWhatItsLimitsKeepOut(t *testing.T) {
	t.Parallel()
	n := withTopic(t, kafkatest.Options{}, nil)
	r := dial(t, n)
	for range 3 {
		r.send(produceRequest(9, "t", 0, -1, batchOf(strings.Repeat("x", 400))))
		r.receive()
	}
	for _, committed := range []int8{0, 1} {
		req := fetchRequest(12, "t", 0, 10*time.Minute) // longer than the connection lasts
		req.MinBytes, req.IsolationLevel, req.Topics[0].Partitions[0].PartitionMaxBytes = 1000, committed, 1000
		r.send(req)
		_, resp := r.receive()
		p := &resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if got := len(p.RecordBatches); p.ErrorCode != 0 || got < 800 || got >= 1000 {
			t.Errorf("isolation %d: %d bytes, code %d", committed, got, p.ErrorCode)
		}
	}
}

// TestSlowClientsHoldNoMemory has more clients ask for a lot, in small pieces, and take it slowly than there is memory for: no more than that is used,
// everybody gets everything, and it is free again in the end.
func TestSlowClientsHoldNoMemory(t *testing.T) {
	t.Parallel()
	const partitions, clients, limit = 200, 4, 512 << 10
	memory := budget.New("test", 0)
	n := kafkatest.Start(t, kafkatest.Options{Door: func(o *kafka.Options) { o.Memory, o.RequestMemory = memory, limit }})
	if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t", Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	w := dial(t, n)
	value := func(p int) string { return strings.Repeat(strconv.Itoa(p)+" ", 5000) }
	req := fetchRequest(12, "t", 0, 0)
	for p := range partitions {
		w.send(produceRequest(9, "t", int32(p), -1, batchOf(value(p))))
		w.receive()
		rp := req.Topics[0].Partitions[0]
		rp.Partition = int32(p)
		if p > 0 {
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, rp)
		}
	}
	var slow []*raw
	for range clients {
		r := dial(t, n)
		if err := r.nc.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
		r.send(req)
		slow = append(slow, r)
	}
	var head [1]byte
	for _, r := range slow { // all have an answer under way
		if _, err := io.ReadFull(r.nc, head[:]); err != nil {
			t.Fatal(err)
		}
		r.pushed = append(r.pushed, head[0])
	}
	for _, r := range slow {
		_, resp := r.receive()
		for _, p := range resp.(*kmsg.FetchResponse).Topics[0].Partitions {
			var batch kmsg.RecordBatch
			if err := batch.ReadFrom(p.RecordBatches); err != nil || !strings.Contains(string(batch.Records), value(int(p.Partition))) {
				t.Fatalf("partition %d: code %d, %d bytes, %v", p.Partition, p.ErrorCode, len(p.RecordBatches), err)
			}
		}
	}
	if peak := memory.Peak(); peak > limit || peak == 0 {
		t.Errorf("%d bytes of memory were used, of %d", peak, limit)
	}
	w.send(kmsg.NewPtrMetadataRequest()) // whatever was before it is done
	w.receive()
	for _, r := range slow {
		r.send(kmsg.NewPtrMetadataRequest())
		r.receive()
	}
	if used := memory.Used(); used != 0 {
		t.Errorf("%d bytes are still in use", used)
	}
}

// TestASlowClientGetsAllOfIt has a client take a large answer slowly, over more than the time after which one that takes nothing is dropped: from memory,
// and from a file.
func TestASlowClientGetsAllOfIt(t *testing.T) {
	t.Parallel()
	const timeout, size, pieces = 3 * time.Second, 24 << 20, 24
	for name, o := range map[string]kafkatest.Options{"memory": {}, "file": {FS: vfs.Default, Dir: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Door = func(o *kafka.Options) { o.WriteTimeout = timeout }
			n := withTopic(t, o, map[string]string{"max.message.bytes": "30000000"})
			r := dial(t, n)
			value := strings.Repeat("0123456789abcdef", size/16)
			r.send(produceRequest(9, "t", 0, -1, batchOf(value)))
			r.receive()
			if err := r.nc.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
				t.Fatal(err)
			}
			r.send(fetchRequest(12, "t", 0, 0))
			pace := time.NewTicker(2 * timeout / pieces)
			defer pace.Stop()
			piece := make([]byte, size/pieces)
			for range pieces {
				<-pace.C
				if _, err := io.ReadFull(r.nc, piece); err != nil {
					t.Fatal(err)
				}
				r.pushed = append(r.pushed, piece...)
			}
			_, resp := r.receive()
			var batch kmsg.RecordBatch
			if err := batch.ReadFrom(resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches); err != nil || !strings.Contains(string(batch.Records), value) {
				t.Fatalf("%d bytes, %v", len(batch.Records), err)
			}
		})
	}
}

// TestManyRequestsBeforeTheFirstAnswer has a client ask for much more than may wait in its queue before it reads: all of it is answered, in order.
func TestManyRequestsBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	n := withTopic(t, kafkatest.Options{}, nil)
	r := dial(t, n)
	sent := make(chan struct{})
	const requests = 100
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(9)
	for i := range 1000 {
		topic := fmt.Sprintf("%s%d", strings.Repeat("no such topic ", 2), i)
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &topic})
	}
	r.sent = map[int32]kmsg.Request{}
	for i := range requests {
		r.sent[int32(i+1)] = req
	}
	go func() {
		defer close(sent)
		for i := range requests {
			if _, err := r.nc.Write(formatter.AppendRequest(nil, req, int32(i+1))); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for i := range requests {
		if id, resp := r.receive(); id != int32(i+1) || len(resp.(*kmsg.MetadataResponse).Topics) != 1000 {
			t.Fatalf("answer %d is to request %d", i+1, id)
		}
	}
	<-sent
}

// TestALongPollBesideADeletion has a topic deleted and made again, and written to, while a fetch by its name waits: the fetch is answered, with the error or
// with the new topic's record, and not when its time is up.
func TestALongPollBesideADeletion(t *testing.T) {
	t.Parallel()
	n := withTopic(t, kafkatest.Options{}, nil)
	r, w := dial(t, n), dial(t, n)
	for range 10 {
		r.send(fetchRequest(12, "t", 0, 10*time.Minute))
		adm := make(chan error, 1)
		go func() {
			if err := n.Broker.DeleteTopic(within(t), "t"); err != nil {
				adm <- err
				return
			}
			_, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t"})
			adm <- err
		}()
		if err := <-adm; err != nil {
			t.Fatal(err)
		}
		w.send(produceRequest(9, "t", 0, -1, batchOf("x")))
		w.receive()
		_, resp := r.receive()
		p := &resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if p.ErrorCode != kerr.UnknownTopicOrPartition.Code && (p.ErrorCode != 0 || len(p.RecordBatches) == 0) {
			t.Errorf("code %d, %d bytes", p.ErrorCode, len(p.RecordBatches))
		}
		if err := n.Broker.DeleteTopic(within(t), "t"); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Broker.CreateTopic(within(t), broker.TopicSpec{Name: "t"}); err != nil {
			t.Fatal(err)
		}
	}
}

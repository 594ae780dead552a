package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/door/kafka/kafkatest"
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

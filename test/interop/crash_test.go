package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/leat-io/leat/internal/door/kafka/kafkatest"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestARestartKeepsRecordsOffsetsAndGroups(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	produce(t, client(t, n), numbered("t", "", 20)...)
	cl := client(t, n, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.DisableAutoCommit(), kgo.InstanceID("one"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err := cl.CommitRecords(within(t), consume(t, cl, 20)[:12]...); err != nil {
		t.Fatal(err)
	}
	cl.Close() // a static member stays in the group
	for _, checkpoint := range []bool{false, true, false} {
		if checkpoint {
			n.Checkpoint()
		}
		n.Restart()
		info, ok, err := n.Broker.Groups().Describe("g")
		if err != nil || !ok || info.State != "Stable" || len(info.Members) != 1 || info.Members[0].Instance != "one" {
			t.Fatalf("the group is %+v %v", info, err)
		}
	}
	produce(t, client(t, n), numbered("t", "new", 1)...)
	cl = client(t, n, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.InstanceID("one"))
	if got := values(consume(t, cl, 9)); got != "12 13 14 15 16 17 18 19 new0" {
		t.Errorf("the group goes on with %s", got)
	}
}

// TestACrashLosesNothingAcknowledged cuts the power again and again while clients produce, commit offsets and make topics, and checks after each that
// whatever was acknowledged is there, once, where it was said to be.
func TestACrashLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	rng := rand.New(rand.NewPCG(seed, 3))
	n := kafkatest.Start(t, kafkatest.Options{})
	acked := map[string]int64{} // value -> offset, of partition value's topic
	committed := int64(-1)
	topics := map[string]bool{}
	for round := range 12 {
		var mu sync.Mutex
		stop, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for c := range 3 {
			topic := fmt.Sprint("t", c)
			wg.Go(func() {
				opts := []kgo.Opt{kgo.RecordRetries(0), kgo.ProducerLinger(0)}
				if c == 2 {
					opts = append(opts, kgo.DisableIdempotentWrite())
				}
				cl := client(t, n, opts...)
				for i := 0; stop.Err() == nil; i++ {
					r := &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%s/%d/%d", topic, round, i)}
					cl.Produce(stop, r, func(r *kgo.Record, err error) {
						if err == nil {
							mu.Lock()
							acked[string(r.Value)] = r.Offset
							mu.Unlock()
						}
					})
					if i%20 == 0 {
						_ = cl.Flush(stop)
					}
				}
				cl.AbortBufferedRecords(context.Background())
				cl.Close()
			})
		}
		wg.Go(func() {
			adm := kadm.NewClient(client(t, n, kgo.RequestRetries(0)))
			for i := 0; stop.Err() == nil; i++ {
				at := int64(round*1_000_000 + i)
				var os kadm.Offsets
				os.Add(kadm.Offset{Topic: "t0", Partition: 0, At: at, LeaderEpoch: -1})
				if err := adm.CommitAllOffsets(stop, "g", os); err == nil {
					mu.Lock()
					committed = at
					mu.Unlock()
				}
				name := fmt.Sprint("made", round, "-", i)
				if i%50 == 0 {
					if _, err := adm.CreateTopic(stop, 1, 1, nil, name); err == nil {
						mu.Lock()
						topics[name] = true
						mu.Unlock()
					}
				}
			}
		})
		mu.Lock()
		enough := len(acked) + 50 + rng.IntN(300)
		mu.Unlock()
		eventually(t, func() string {
			mu.Lock()
			defer mu.Unlock()
			if len(acked) < enough {
				return fmt.Sprintf("round %d: %d of %d records are acknowledged", round, len(acked), enough)
			}
			return ""
		})
		if round%3 == 1 {
			n.Checkpoint()
		}
		mu.Lock() // whatever is acknowledged from here on may be lost, so it must not be noted
		before := make(map[string]int64, len(acked))
		for v, o := range acked {
			before[v] = o
		}
		wantCommitted, made := committed, len(topics)
		mu.Unlock()
		unsynced := []int{0, 30, 100}[round%3]
		n.CrashAfter(unsynced, rng, func() {
			cancel()
			wg.Wait()
		})
		acked, committed = before, wantCommitted

		got := map[string]int64{}
		total := int64(0)
		for _, topic := range n.Broker.Topics() {
			total += topic.Partition(0).HighWatermark()
		}
		if total > 0 {
			for _, r := range consume(t, client(t, n, kgo.ConsumeTopics("t0", "t1", "t2"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), int(total)) {
				if old, dup := got[string(r.Value)]; dup {
					t.Fatalf("seed %d, round %d: %s is there twice, at %d and %d", seed, round, r.Value, old, r.Offset)
				}
				got[string(r.Value)] = r.Offset
			}
		}
		for v, o := range acked {
			if at, ok := got[v]; !ok || at != o {
				t.Fatalf("seed %d, round %d: %s was acknowledged at %d; found %v at %d", seed, round, v, o, ok, at)
			}
		}
		if o, _, err := n.Broker.Groups().Committed("g", "t0", 0); err != nil || o.Offset < committed {
			t.Fatalf("seed %d, round %d: committed was %d, found %d (%v)", seed, round, committed, o.Offset, err)
		}
		found := 0
		for name := range topics {
			if _, ok := n.Broker.Topic(name); ok {
				found++
			}
		}
		if found < made {
			t.Fatalf("seed %d, round %d: %d of %d topics are there", seed, round, found, made)
		}
		clear(topics)
		for _, topic := range n.Broker.Topics() {
			topics[topic.Name] = true
		}
		acked = got
		committed = max(committed, -1)
	}
}

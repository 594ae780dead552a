package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/door/kafka/kafkatest"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

var fromStart = kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())

var committedOnly = kgo.FetchIsolationLevel(kgo.ReadCommitted())

// firstProtocol is what a client may use that knows nothing of KIP-890.
func firstProtocol() *kversion.Versions {
	v := kversion.Tip()
	v.SetMaxKeyVersion(0, 11)
	v.SetMaxKeyVersion(26, 4)
	v.SetMaxKeyVersion(28, 4)
	v.SetMaxKeyVersion(22, 4)
	return v
}

// protocols are both forms of transactions.
func protocols(t *testing.T, fn func(t *testing.T, opt kgo.Opt)) {
	for name, v := range map[string]*kversion.Versions{"first": firstProtocol(), "second": kversion.Tip()} {
		t.Run(name+" protocol", func(t *testing.T) {
			t.Parallel()
			fn(t, kgo.MaxVersions(v))
		})
	}
}

// transact writes the records in one transaction and ends it.
func transact(t testing.TB, cl *kgo.Client, commit kgo.TransactionEndTry, records ...*kgo.Record) {
	t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, records...)
	if err := cl.EndTransaction(within(t), commit); err != nil {
		t.Fatalf("end: %v", err)
	}
}

func TestTransactionsAreSeenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, versions kgo.Opt) {
		n := kafkatest.Start(t, kafkatest.Options{Broker: func(o *broker.Options) { o.DefaultPartitions = 1 }})
		cl := client(t, n, kgo.TransactionalID("x"), versions)
		plain := client(t, n)
		transact(t, cl, kgo.TryCommit, append(numbered("a", "one", 3), numbered("b", "one", 2)...)...)
		transact(t, cl, kgo.TryAbort, append(numbered("a", "bad", 2), numbered("b", "bad", 2)...)...)
		produce(t, plain, numbered("a", "plain", 1)...)
		transact(t, cl, kgo.TryCommit, numbered("a", "two", 1)...)

		read := func(topic string, count int, opts ...kgo.Opt) string {
			return values(consume(t, client(t, n, append(opts, kgo.ConsumeTopics(topic), fromStart)...), count))
		}
		for range 2 {
			if got := read("a", 5, committedOnly); got != "one0 one1 one2 plain0 two0" {
				t.Errorf("committed: %s", got)
			}
			if got := read("b", 2, committedOnly); got != "one0 one1" {
				t.Errorf("committed: %s", got)
			}
			if got := read("a", 7); got != "one0 one1 one2 bad0 bad1 plain0 two0" {
				t.Errorf("uncommitted: %s", got)
			}
			if out := kcat(t, n, "", "-C", "-t", "a", "-e", "-q", "-o", "beginning", "-X", "isolation.level=read_committed"); strings.Join(strings.Fields(out), " ") != "one0 one1 one2 plain0 two0" {
				t.Errorf("kcat, committed: %s", out)
			}
			n.Checkpoint()
			n.Restart()
		}
	})
}

func TestAnOpenTransactionHoldsCommittedReadersBack(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, versions kgo.Opt) {
		n := kafkatest.Start(t, kafkatest.Options{})
		cl := client(t, n, kgo.TransactionalID("x"), versions)
		plain := client(t, n)
		produce(t, plain, numbered("t", "before", 2)...)
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, cl, numbered("t", "open", 1)...)
		produce(t, plain, numbered("t", "behind", 1)...)
		end := func(committed bool) int64 {
			req := kmsg.NewPtrListOffsetsRequest()
			if committed {
				req.IsolationLevel = 1
			}
			rt := kmsg.NewListOffsetsRequestTopic()
			rt.Topic = "t"
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Timestamp = -1
			rt.Partitions = append(rt.Partitions, rp)
			req.Topics = append(req.Topics, rt)
			resp, err := req.RequestWith(within(t), plain)
			if err != nil {
				t.Fatal(err)
			}
			return resp.Topics[0].Partitions[0].Offset
		}
		check := func(committed, all int64) {
			t.Helper()
			if got := end(true); got != committed {
				t.Errorf("the last stable offset is %d, want %d", got, committed)
			}
			if got := end(false); got != all {
				t.Errorf("the high watermark is %d, want %d", got, all)
			}
		}
		check(2, 4)
		n.Checkpoint()
		n.Restart()
		plain = client(t, n)
		check(2, 4)
		p, _ := n.Broker.Topic("t")
		if h, ok := n.Broker.HeldBack(p.Partition(0)); !ok || h.Transactional != "x" || h.Offset != 2 || h.Since.IsZero() {
			t.Errorf("held back by %+v %v", h, ok)
		}
		reader := client(t, n, kgo.ConsumeTopics("t"), fromStart, committedOnly)
		if got := values(consume(t, reader, 2)); got != "before0 before1" {
			t.Errorf("%s", got)
		}
		fresh := client(t, n, kgo.TransactionalID("x"), versions) // aborts what it finds
		transact(t, fresh, kgo.TryCommit, numbered("t", "new", 1)...)
		if got := values(consume(t, reader, 2)); got != "behind0 new0" {
			t.Errorf("%s", got)
		}
		check(7, 7)
	})
}

func TestAProducerIsFencedByTheNextOne(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, versions kgo.Opt) {
		n := kafkatest.Start(t, kafkatest.Options{})
		old := client(t, n, kgo.TransactionalID("x"), versions)
		if err := old.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, old, numbered("t", "old", 1)...)
		transact(t, client(t, n, kgo.TransactionalID("x"), versions), kgo.TryCommit, numbered("t", "new", 1)...)
		if err := old.ProduceSync(within(t), numbered("t", "zombie", 1)...).FirstErr(); !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
			t.Errorf("a zombie's record: %v", err)
		}
		if err := old.EndTransaction(within(t), kgo.TryCommit); err == nil {
			t.Error("a zombie has committed")
		}
		if got := values(consume(t, client(t, n, kgo.ConsumeTopics("t"), fromStart, committedOnly), 1)); got != "new0" {
			t.Errorf("%s", got)
		}
	})
}

func TestATransactionTimesOut(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	cl := client(t, n, kgo.TransactionalID("x"), kgo.TransactionTimeout(300*time.Millisecond))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, numbered("t", "slow", 1)...)
	produce(t, client(t, n), numbered("t", "plain", 1)...)
	if got := values(consume(t, client(t, n, kgo.ConsumeTopics("t"), fromStart, committedOnly), 1)); got != "plain0" {
		t.Errorf("%s", got)
	}
	if err := cl.EndTransaction(within(t), kgo.TryCommit); err == nil {
		t.Error("it was committed after its timeout")
	}
}

func TestATransactionCommitsOffsets(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	produce(t, client(t, n), numbered("in", "", 10)...)
	cl := client(t, n)
	init := kmsg.NewPtrInitProducerIDRequest()
	init.TransactionalID, init.TransactionTimeoutMillis = kmsg.StringPtr("x"), 60_000
	initialised, err := init.RequestWith(within(t), cl)
	if err != nil || initialised.ErrorCode != 0 {
		t.Fatal(err, initialised)
	}
	epoch := initialised.ProducerEpoch
	commit := func(version int16, group string, at int64, generation int32) int16 {
		t.Helper()
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = "x", group, initialised.ProducerID, epoch, generation
		if generation >= 0 {
			req.MemberID = "nobody"
		}
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic = "in"
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Offset = at
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		v := kversion.Tip()
		v.SetMaxKeyVersion(28, version)
		resp, err := req.RequestWith(within(t), client(t, n, kgo.MaxVersions(v)))
		if err != nil {
			t.Fatal(err)
		}
		return resp.Topics[0].Partitions[0].ErrorCode
	}
	end := func(ok bool) int16 {
		t.Helper()
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = "x", initialised.ProducerID, epoch, ok
		resp, err := req.RequestWith(within(t), client(t, n))
		if err != nil {
			t.Fatal(err)
		}
		if resp.ErrorCode == 0 {
			epoch = resp.ProducerEpoch
		}
		return resp.ErrorCode
	}
	fetch := func(stable bool) (int64, int16) {
		t.Helper()
		req := kmsg.NewPtrOffsetFetchRequest()
		req.RequireStable = stable
		rg := kmsg.NewOffsetFetchRequestGroup()
		rg.Group = "g"
		rt := kmsg.NewOffsetFetchRequestGroupTopic()
		rt.Topic, rt.Partitions = "in", []int32{0}
		rg.Topics = append(rg.Topics, rt)
		req.Groups = append(req.Groups, rg)
		v := kversion.Tip()
		v.SetMaxKeyVersion(9, 9)
		resp, err := req.RequestWith(within(t), client(t, n, kgo.MaxVersions(v)))
		if err != nil {
			t.Fatal(err)
		}
		p := resp.Groups[0].Topics[0].Partitions[0]
		return p.Offset, p.ErrorCode
	}
	want := func(at int64, stableCode int16) {
		t.Helper()
		if got, code := fetch(false); got != at || code != 0 {
			t.Errorf("the group is at %d (code %d), want %d", got, code, at)
		}
		if _, code := fetch(true); code != stableCode {
			t.Errorf("stable offsets: code %d, want %d", code, stableCode)
		}
	}
	if code := commit(4, "g", 3, -1); code != kerr.InvalidTxnState.Code {
		t.Errorf("a group that is not part of the transaction: code %d", code)
	}
	if code := commit(5, "g", 3, 7); code != kerr.IllegalGeneration.Code {
		t.Errorf("a member of no group: code %d", code)
	}
	if code := commit(5, "g", 3, -1); code != 0 {
		t.Fatalf("code %d", code)
	}
	want(-1, kerr.UnstableOffsetCommit.Code)
	n.Restart()
	want(-1, kerr.UnstableOffsetCommit.Code)
	if code := end(true); code != 0 {
		t.Fatalf("code %d", code)
	}
	want(3, 0)
	if code := commit(5, "g", 9, -1); code != 0 {
		t.Fatalf("code %d", code)
	}
	if code := end(false); code != 0 {
		t.Fatalf("code %d", code)
	}
	want(3, 0)
	epoch-- // a request of the transaction before
	if code := commit(5, "g", 9, -1); code != kerr.InvalidProducerEpoch.Code {
		t.Errorf("a stale epoch: code %d", code)
	}
	if code := end(true); code != kerr.InvalidTxnState.Code {
		t.Errorf("it was aborted, and is asked to be committed: code %d", code)
	}
	n.Restart()
	want(3, 0)
}

// TestEveryRecordIsProcessedOnce copies a topic to another in transactions, by members of a group that die or lose their node at random, and aborts now and then.
func TestEveryRecordIsProcessedOnce(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	rng := rand.New(rand.NewPCG(seed, 11))
	n := kafkatest.Start(t, kafkatest.Options{Broker: func(o *broker.Options) { o.DefaultPartitions = 3 }})
	const total = 3000
	produce(t, client(t, n), numbered("in", "", total)...)
	worker := func(ctx context.Context, id int, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, uint64(id)))
		session, err := kgo.NewGroupTransactSession(
			kgo.SeedBrokers(n.Addr), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(50*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
			kgo.TransactionalID(fmt.Sprint("copy", id)), kgo.ConsumerGroup("copiers"), kgo.ConsumeTopics("in"), fromStart, committedOnly,
			kgo.SessionTimeout(6*time.Second), kgo.RebalanceTimeout(2*time.Second), kgo.FetchMaxBytes(2000), kgo.TransactionTimeout(5*time.Second),
		)
		if err != nil {
			t.Error(err)
			return
		}
		defer session.Close()
		for ctx.Err() == nil {
			fs := session.PollRecords(ctx, 60)
			if fs.NumRecords() == 0 {
				continue
			}
			if err := session.Begin(); err != nil {
				return
			}
			failed := false
			fs.EachRecord(func(r *kgo.Record) {
				session.Produce(ctx, &kgo.Record{Topic: "out", Value: r.Value}, func(_ *kgo.Record, err error) { failed = failed || err != nil })
			})
			flushed := session.Client().Flush(ctx)
			if rng.IntN(20) == 0 { // dies within a transaction
				return
			}
			try := kgo.TransactionEndTry(flushed == nil && !failed && rng.IntN(10) > 0)
			if _, err := session.End(ctx, try); err != nil {
				return
			}
		}
	}
	out := map[string]int{}
	for round := 0; len(out) < total; round++ {
		if round > 200 {
			t.Fatalf("seed %d: %d of %d records after %d rounds", seed, len(out), total, round)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(500+rng.IntN(1500))*time.Millisecond)
		var wg sync.WaitGroup
		for id := range 2 {
			wg.Go(func() {
				for ctx.Err() == nil {
					worker(ctx, id, seed+uint64(1000*round))
				}
			})
		}
		<-ctx.Done()
		wg.Wait()
		cancel()
		if rng.IntN(3) == 0 {
			n.Checkpoint()
		}
		n.Crash([]int{0, 50, 100}[rng.IntN(3)], rng)
		out = committedValues(t, n, "out")
		for v, times := range out {
			if times > 1 {
				t.Fatalf("seed %d, round %d: %s came out %d times", seed, round, v, times)
			}
		}
	}
}

// committedValues reads a topic up to its last stable offsets.
func committedValues(t *testing.T, n *kafkatest.Node, topic string) map[string]int {
	t.Helper()
	out := map[string]int{}
	if _, ok := n.Broker.Topic(topic); !ok {
		return out
	}
	cl := client(t, n, kgo.ConsumeTopics(topic), fromStart, committedOnly, kgo.KeepControlRecords())
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(within(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	ctx := within(t)
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("reading %s: not at %v", topic, left)
		}
		fs.EachRecord(func(r *kgo.Record) {
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				out[string(r.Value)]++
			}
		})
	}
	return out
}

// TestACrashLeavesNoTransactionHalf cuts the power while transactions over two topics are committed and aborted.
func TestACrashLeavesNoTransactionHalf(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	rng := rand.New(rand.NewPCG(seed, 17))
	n := kafkatest.Start(t, kafkatest.Options{})
	var mu sync.Mutex
	outcome := map[string]string{} // by transaction: committed, aborted, "" when the answer was lost
	for round := range 8 {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for c := range 3 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(round*10+c)))
				opts := []kgo.Opt{kgo.TransactionalID(fmt.Sprint("x", c))}
				if c == 0 {
					opts = append(opts, kgo.MaxVersions(firstProtocol()))
				}
				cl := client(t, n, opts...)
				defer cl.Close()
				for i := 0; ctx.Err() == nil; i++ {
					id := fmt.Sprintf("%d/%d/%d", round, c, i)
					if cl.BeginTransaction() != nil {
						return
					}
					mu.Lock()
					outcome[id] = ""
					mu.Unlock()
					err := cl.ProduceSync(ctx, &kgo.Record{Topic: "from", Value: []byte(id)}, &kgo.Record{Topic: "to", Value: []byte(id)}).FirstErr()
					commit := kgo.TransactionEndTry(rng.IntN(3) > 0 && err == nil)
					if cl.EndTransaction(ctx, commit) != nil {
						return
					}
					mu.Lock()
					outcome[id] = map[kgo.TransactionEndTry]string{kgo.TryCommit: "committed", kgo.TryAbort: "aborted"}[commit]
					mu.Unlock()
				}
			})
		}
		eventually(t, func() string {
			mu.Lock()
			defer mu.Unlock()
			if len(outcome) < 60*(round+1) {
				return "few transactions"
			}
			return ""
		})
		if round%3 == 1 {
			n.Checkpoint()
		}
		mu.Lock()
		known := map[string]string{}
		for id, o := range outcome {
			known[id] = o
		}
		mu.Unlock()
		n.CrashAfter([]int{0, 40, 100}[round%3], rng, func() {
			cancel()
			wg.Wait()
		})
		for c := range 3 { // whose producers come back ends what they left
			transact(t, client(t, n, kgo.TransactionalID(fmt.Sprint("x", c))), kgo.TryCommit, &kgo.Record{Topic: "from", Value: []byte("-")}, &kgo.Record{Topic: "to", Value: []byte("-")})
		}
		from, to := committedValues(t, n, "from"), committedValues(t, n, "to")
		for id, o := range known {
			if from[id] != to[id] || from[id] > 1 {
				t.Fatalf("seed %d, round %d: transaction %s is there %d and %d times", seed, round, id, from[id], to[id])
			}
			if o == "committed" && from[id] != 1 || o == "aborted" && from[id] != 0 {
				t.Fatalf("seed %d, round %d: transaction %s was %s, and is there %d times", seed, round, id, o, from[id])
			}
		}
		mu.Lock()
		outcome = known
		mu.Unlock()
	}
}

func TestAdministratorsSeeTransactions(t *testing.T) {
	t.Parallel()
	n := kafkatest.Start(t, kafkatest.Options{})
	cl := client(t, n, kgo.TransactionalID("open"))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, numbered("t", "", 2)...)
	transact(t, client(t, n, kgo.TransactionalID("done")), kgo.TryCommit, numbered("t", "", 1)...)
	adm := kadm.NewClient(client(t, n))
	list, err := adm.ListTransactions(within(t), nil, []string{"Ongoing"})
	if err != nil || len(list) != 1 || list["open"].State != "Ongoing" {
		t.Fatalf("%v %v", list, err)
	}
	if list, err = adm.ListTransactions(within(t), nil, nil); err != nil || len(list) != 2 || list["done"].State != "CompleteCommit" {
		t.Fatalf("%v %v", list, err)
	}
	described, err := adm.DescribeTransactions(within(t), "open", "none")
	if err != nil || described["open"].State != "Ongoing" || !described["open"].Topics.Lookup("t", 0) || !errors.Is(described["none"].Err, kerr.TransactionalIDNotFound) {
		t.Fatalf("%+v %v", described, err)
	}
	producers, err := adm.DescribeProducers(within(t), kadm.TopicsSet{"t": {0: {}}})
	if err != nil {
		t.Fatal(err)
	}
	started := int64(-1)
	for _, p := range producers["t"].Partitions[0].ActiveProducers {
		if p.ProducerID == described["open"].ProducerID {
			started = p.CurrentTxnStartOffset
		}
	}
	if started != 0 {
		t.Errorf("%+v", producers)
	}
	listReq := kmsg.NewPtrListTransactionsRequest()
	listReq.TransactionalIDPattern = kmsg.StringPtr("do.*")
	resp, err := listReq.RequestWith(within(t), client(t, n))
	if err != nil || len(resp.TransactionStates) != 1 || resp.TransactionStates[0].TransactionalID != "done" {
		t.Errorf("%+v %v", resp, err)
	}
	abort := kmsg.NewPtrWriteTxnMarkersRequest()
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch = described["open"].ProducerID, described["open"].ProducerEpoch
	mt := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	mt.Topic, mt.Partitions = "t", []int32{0}
	m.Topics = append(m.Topics, mt)
	abort.Markers = append(abort.Markers, m)
	aborted, err := abort.RequestWith(within(t), client(t, n))
	if err != nil || aborted.Markers[0].Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v %v", aborted, err)
	}
	if got := values(consume(t, client(t, n, kgo.ConsumeTopics("t"), fromStart, committedOnly), 1)); got != "0" {
		t.Errorf("%s", got)
	}
	if err := cl.EndTransaction(within(t), kgo.TryCommit); err == nil {
		t.Error("it was committed after an administrator aborted it")
	}
}

package crash

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leat-io/leat/test/logcheck"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

const (
	original      = "log"
	copied        = "copy"
	reader        = "the reader" // by name in the history
	logPartitions = 3
)

// TestLogThroughKills has all kinds of clients of a log at work while the server is killed: idempotent producers, transactional ones of both protocols
// that commit and abort, readers at both isolation levels, groups of both protocols that commit positions, and one that copies the log exactly once.
// logcheck says what must hold for what they have seen.
func TestLogThroughKills(t *testing.T) {
	t.Parallel()
	seed := seed(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Minute)
	defer cancel()
	w := &logWorld{t: t, s: newServer(t), h: logcheck.New(), seed: seed}
	w.h.Copy(original, copied)
	adm := kadm.NewClient(w.client())
	defer adm.Close()
	segment := "200000" // many of them
	if _, err := adm.CreateTopics(ctx, logPartitions, 1, map[string]*string{"internal.segment.bytes": &segment}, original, copied); err != nil {
		t.Fatal(err)
	}

	work, stop := context.WithCancel(ctx)
	watched, unwatch := context.WithCancel(ctx)
	var writing, others sync.WaitGroup
	var plain []*plainProducer
	for id := range 2 {
		p := &plainProducer{logWorld: w, id: id, rng: w.rng(id), cl: w.client(kgo.RecordRetries(math.MaxInt32), kgo.UnknownTopicRetries(-1), kgo.StopProducerOnDataLossDetected(),
			kgo.ProducerLinger(time.Duration(id)*3*time.Millisecond), kgo.ProducerBatchCompression([]kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()}[id]))}
		defer p.cl.Close()
		plain = append(plain, p)
		writing.Go(func() { p.run(work) })
	}
	var transactional []*txnProducer
	for id := 2; id < 5; id++ {
		p := &txnProducer{logWorld: w, id: id, rng: w.rng(id)}
		transactional = append(transactional, p)
		writing.Go(func() { p.run(work) })
	}
	for _, level := range []logcheck.Isolation{logcheck.Uncommitted, logcheck.Committed} {
		others.Go(func() { w.read(watched, level) })
	}
	for i := range 2 {
		others.Go(func() { w.member(watched, "classic", w.rng(10+i)) })
		others.Go(func() { w.member(watched, "consumer", w.rng(20+i), kgo.ServerSideBalancer()) })
		others.Go(func() { w.copier(watched, i, w.rng(30+i)) })
	}
	others.Go(func() { w.watch(watched, adm) })

	k := &killer{s: w.s, rng: w.rng(100)}
	for k.killed < *killsFlag && !t.Failed() {
		enough := w.done.Load() + 20 + int64(k.rng.IntN(300))
		k.round(t, ctx, func() bool { return w.done.Load() >= enough })
	}
	stop()
	writing.Wait()
	for _, p := range plain {
		p.flush(ctx)
	}
	for _, p := range transactional { // whose next start ends what the last one left
		p.finish(ctx)
	}
	ends := w.final(ctx, original)
	for _, group := range []string{"classic", "consumer", "copier"} {
		eventually(t, ctx, "the group "+group+" to come to the end of the log", func() bool {
			at, err := adm.FetchOffsets(ctx, group)
			if err != nil {
				return false
			}
			for p, end := range ends {
				if o, ok := at.Lookup(p.Topic, p.Index); !ok || o.At < end {
					return false
				}
			}
			return true
		})
	}
	for p, end := range ends {
		for _, level := range []logcheck.Isolation{logcheck.Uncommitted, logcheck.Committed} {
			eventually(t, ctx, fmt.Sprintf("the reader to come to the end of %s (%s)", p, level), func() bool { return w.h.Next(reader, level, p) >= end })
		}
	}
	unwatch()
	others.Wait()
	w.final(ctx, copied)
	breaches, sum := w.h.Judge()
	for _, b := range breaches {
		t.Errorf("seed %d: %s", seed, b)
	}
	if sum.Committed == 0 || sum.Aborted == 0 || sum.Delivered == 0 || sum.ReaderGots == 0 {
		t.Error("the history shows less than it should")
	}
	t.Logf("%d kills, %d of them while starting; %+v", k.killed, k.during, sum)
}

// logWorld is what the clients of the log share.
type logWorld struct {
	t    testing.TB
	s    *server
	h    *logcheck.History
	seed uint64
	done atomic.Int64 // acknowledgements and ends of transactions
}

func (w *logWorld) rng(client int) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed, 1_000+uint64(client)))
}

func (w *logWorld) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(w.options(opts...)...)
	if err != nil {
		w.t.Error(err)
		panic(err)
	}
	return cl
}

func (w *logWorld) options(opts ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(w.s.kafka), kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchMaxWait(100 * time.Millisecond),
	}, opts...)
}

func partitionOf(r *kgo.Record) logcheck.Partition {
	return logcheck.Partition{Topic: r.Topic, Index: r.Partition}
}

// valueOf is what a record holds. One that no client of the history wrote is given as a value that none can have.
func (w *logWorld) valueOf(r *kgo.Record) logcheck.Value {
	v, err := logcheck.ParseValue(r.Value)
	if err != nil {
		w.t.Errorf("%s at %d: %v", partitionOf(r), r.Offset, err)
		return logcheck.Value{Producer: -1, Seq: -1}
	}
	return v
}

// plainProducer writes with one idempotent client that lives through all kills.
type plainProducer struct {
	*logWorld
	id  int
	rng *rand.Rand
	cl  *kgo.Client
	seq int64
}

func (p *plainProducer) run(ctx context.Context) {
	for ctx.Err() == nil {
		for range 1 + p.rng.IntN(40) {
			p.seq++
			v := logcheck.Value{Producer: p.id, Seq: p.seq}
			to := logcheck.Partition{Topic: original, Index: int32(p.rng.IntN(logPartitions))}
			p.h.Write(v, to, logcheck.Txn{})
			// The record's own context does not end: what was handed over is sent until it is acknowledged.
			p.cl.Produce(context.Background(), &kgo.Record{Topic: to.Topic, Partition: to.Index, Value: []byte(v.String())}, func(r *kgo.Record, err error) {
				if err != nil {
					p.t.Errorf("%s was given up: %v", v, err)
					return
				}
				p.h.Acknowledge(v, to, r.Offset)
				p.done.Add(1)
			})
		}
		if p.rng.IntN(2) == 0 || p.cl.BufferedProduceRecords() > 1_000 {
			_ = p.cl.Flush(ctx)
		} else {
			pause(ctx, time.Duration(p.rng.IntN(8))*time.Millisecond)
		}
	}
}

func (p *plainProducer) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := p.cl.Flush(ctx); err != nil {
		p.t.Errorf("producer %d has %d records without an answer: %v", p.id, p.cl.BufferedProduceRecords(), err)
	}
}

// txnProducer writes transactions with one transactional id. A client that has an error is closed, and the next one begins anew.
type txnProducer struct {
	*logWorld
	id     int
	rng    *rand.Rand
	seq    int64
	number int64
}

func (p *txnProducer) newClient() *kgo.Client {
	opts := []kgo.Opt{kgo.TransactionalID(fmt.Sprint("writer", p.id)), kgo.TransactionTimeout(20 * time.Second)}
	if p.id == 2 { // a client from before the second protocol
		v := kversion.Tip()
		for key, most := range map[int16]int16{0: 11, 22: 4, 26: 4, 28: 4} {
			v.SetMaxKeyVersion(key, most)
		}
		opts = append(opts, kgo.MaxVersions(v))
	}
	return p.client(opts...)
}

func (p *txnProducer) run(ctx context.Context) {
	for ctx.Err() == nil {
		cl := p.newClient()
		var err error
		for err == nil && ctx.Err() == nil {
			err = p.transaction(ctx, cl, p.rng.IntN(3) > 0)
		}
		cl.Close()
		pause(ctx, 20*time.Millisecond)
	}
}

func (p *txnProducer) finish(ctx context.Context) {
	cl := p.newClient()
	defer cl.Close()
	if err := p.transaction(ctx, cl, true); err != nil {
		p.t.Errorf("the last transaction of producer %d: %v", p.id, err)
	}
}

func (p *txnProducer) transaction(ctx context.Context, cl *kgo.Client, commit bool) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	p.number++
	txn := logcheck.Txn{Producer: p.id, Number: p.number}
	p.h.EndTxn(txn, logcheck.Unknown)
	for range 1 + p.rng.IntN(3) {
		var records []*kgo.Record
		for range 1 + p.rng.IntN(8) {
			p.seq++
			v := logcheck.Value{Producer: p.id, Seq: p.seq}
			to := logcheck.Partition{Topic: original, Index: int32(p.rng.IntN(logPartitions))}
			p.h.Write(v, to, txn)
			records = append(records, &kgo.Record{Topic: to.Topic, Partition: to.Index, Value: []byte(v.String())})
		}
		results := cl.ProduceSync(ctx, records...)
		for _, r := range results {
			if r.Err == nil {
				p.h.Acknowledge(p.valueOf(r.Record), partitionOf(r.Record), r.Record.Offset)
			}
		}
		if err := results.FirstErr(); err != nil {
			return err
		}
	}
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return err
	}
	end := logcheck.AbortedEnd
	if commit {
		end = logcheck.CommittedEnd
	}
	p.h.EndTxn(txn, end)
	p.done.Add(1)
	return nil
}

func kgoLevel(level logcheck.Isolation) kgo.Opt {
	if level == logcheck.Committed {
		return kgo.FetchIsolationLevel(kgo.ReadCommitted())
	}
	return kgo.FetchIsolationLevel(kgo.ReadUncommitted())
}

// read follows both topics with one client from their starts on.
func (w *logWorld) read(ctx context.Context, level logcheck.Isolation) {
	cl := w.client(kgo.ConsumeTopics(original, copied), kgoLevel(level), kgo.ConsumeResetOffset(kgo.NoResetOffset().AtStart()))
	defer cl.Close()
	for ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { w.h.Read(reader, level, partitionOf(r), r.Offset, w.valueOf(r)) })
	}
}

// member is one member of a group that commits what it got. It leaves now and then, and comes back as another.
func (w *logWorld) member(ctx context.Context, group string, rng *rand.Rand, opts ...kgo.Opt) {
	opts = append(opts, kgo.ConsumerGroup(group), kgo.ConsumeTopics(original), kgoLevel(logcheck.Committed), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.Balancers(kgo.CooperativeStickyBalancer()))
	for ctx.Err() == nil {
		cl := w.client(opts...)
		for left := 20 + rng.IntN(200); left > 0 && ctx.Err() == nil; left-- {
			w.process(ctx, cl, group)
		}
		cl.CloseAllowingRebalance()
	}
}

func (w *logWorld) process(ctx context.Context, cl *kgo.Client, group string) {
	poll, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	got := cl.PollRecords(poll, 100)
	defer cl.AllowRebalance()
	last := map[logcheck.Partition]*kgo.Record{}
	got.EachRecord(func(r *kgo.Record) {
		w.h.Deliver(group, partitionOf(r), r.Offset, w.valueOf(r))
		last[partitionOf(r)] = r
	})
	var records []*kgo.Record
	for p, r := range last {
		w.h.Commit(group, p, r.Offset+1, false)
		records = append(records, r)
	}
	commit, cancelCommit := context.WithTimeout(ctx, 5*time.Second)
	defer cancelCommit()
	if len(records) == 0 || cl.CommitRecords(commit, records...) != nil {
		return // who has the partition next goes on where the last commit was
	}
	for p, r := range last {
		w.h.Commit(group, p, r.Offset+1, true)
	}
}

// copier is one member of the group that copies each committed record, in transactions that hold the group's positions.
func (w *logWorld) copier(ctx context.Context, i int, rng *rand.Rand) {
	for ctx.Err() == nil {
		s, err := kgo.NewGroupTransactSession(w.options(kgo.TransactionalID(fmt.Sprint("copier", i)), kgo.TransactionTimeout(20*time.Second), kgo.ConsumerGroup("copier"),
			kgo.ConsumeTopics(original), kgoLevel(logcheck.Committed), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
		if err != nil {
			w.t.Error(err)
			return
		}
		for left := 50 + rng.IntN(400); left > 0 && ctx.Err() == nil && w.copyOnce(ctx, s, rng.IntN(10) > 0) == nil; left-- {
		}
		s.Close()
	}
}

func (w *logWorld) copyOnce(ctx context.Context, s *kgo.GroupTransactSession, commit bool) error {
	poll, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	got := s.PollRecords(poll, 200)
	if got.Empty() {
		return nil
	}
	ctx, cancelRest := context.WithTimeout(ctx, 15*time.Second)
	defer cancelRest()
	if err := s.Begin(); err != nil {
		return err
	}
	var records []*kgo.Record
	got.EachRecord(func(r *kgo.Record) {
		records = append(records, &kgo.Record{Topic: copied, Partition: r.Partition, Value: r.Value})
	})
	if s.ProduceSync(ctx, records...).FirstErr() != nil {
		commit = false
	}
	_, err := s.End(ctx, kgo.TransactionEndTry(commit))
	return err
}

// watch asks for the ends of partitions and the positions of groups all the time.
func (w *logWorld) watch(ctx context.Context, adm *kadm.Client) {
	asked := 0
	for ; ctx.Err() == nil; pause(ctx, 20*time.Millisecond) {
		for name, list := range map[string]func(context.Context, ...string) (kadm.ListedOffsets, error){
			"high watermark": adm.ListEndOffsets, "last stable offset": adm.ListCommittedOffsets, "start": adm.ListStartOffsets,
		} {
			offsets, err := list(ctx, original, copied)
			if err != nil {
				continue
			}
			offsets.Each(func(o kadm.ListedOffset) {
				if o.Err == nil {
					w.h.Bound(name, logcheck.Partition{Topic: o.Topic, Index: o.Partition}, o.Offset)
					asked++
				}
			})
		}
		for _, group := range []string{"classic", "consumer", "copier"} {
			var acked [logPartitions]int64
			for i := range acked {
				acked[i] = w.h.Acked(group, logcheck.Partition{Topic: original, Index: int32(i)})
			}
			offsets, err := adm.FetchOffsets(ctx, group)
			if err != nil {
				continue
			}
			for i := range acked {
				p := logcheck.Partition{Topic: original, Index: int32(i)}
				o, ok := offsets.Lookup(p.Topic, p.Index)
				switch {
				case ok && o.Err != nil:
				case group == "copier": // what its commits were is in its transactions
					w.h.Bound("position of the copier", p, o.At)
				case ok || acked[i] > 0:
					w.h.Position(group, p, o.At, acked[i])
				}
			}
		}
	}
	w.t.Logf("offsets were asked for %d times", asked)
}

// final reads a topic at both levels as it is now, and returns where its last visible records end.
func (w *logWorld) final(ctx context.Context, topic string) map[logcheck.Partition]int64 {
	ends := map[logcheck.Partition]int64{}
	for _, level := range []logcheck.Isolation{logcheck.Uncommitted, logcheck.Committed} {
		readToEnd(w.t, ctx, w.s.kafka, topic, kgoLevel(level), func(r *kgo.Record) {
			w.h.Read(logcheck.Final, level, partitionOf(r), r.Offset, w.valueOf(r))
			if level == logcheck.Committed {
				ends[partitionOf(r)] = r.Offset + 1
			}
		})
	}
	return ends
}

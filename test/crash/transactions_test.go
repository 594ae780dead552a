package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestKafkaTransactionsThroughKills moves money in Kafka transactions over two topics, some of which are aborted, by producers of both protocols whose
// transactions overlap all the time. No reader of the view, nor of the topics, ever sees another total than 0; what was acknowledged is there in the
// end, once, and nothing that was aborted is; and the view advances meanwhile.
func TestKafkaTransactionsThroughKills(t *testing.T) {
	t.Parallel()
	seed := seed(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Minute)
	defer cancel()
	s := newServer(t, "--workers", "2")
	s.must(
		`CREATE SOURCE debits (id bigint, amount bigint) WITH (connector = 'kafka', topic = 'debits') FORMAT PLAIN ENCODE JSON`,
		`CREATE SOURCE credits (id bigint, amount bigint) WITH (connector = 'kafka', topic = 'credits') FORMAT PLAIN ENCODE JSON`,
		`CREATE MATERIALIZED VIEW total AS SELECT coalesce(sum(amount), 0)::bigint AS total, count(*) AS n
			FROM (SELECT amount FROM debits UNION ALL SELECT amount FROM credits) AS entries`,
	)
	work, stop := context.WithCancel(ctx)
	var running, producing sync.WaitGroup
	tellers := make([]*teller, 3)
	var done atomic.Int64
	for i := range tellers {
		tellers[i] = &teller{t: t, s: s, id: i, rng: rand.New(rand.NewPCG(seed, uint64(10+i))), done: &done, ends: map[int64]string{}}
		producing.Go(func() { tellers[i].run(work) })
	}
	watched, unwatch := context.WithCancel(ctx)
	running.Go(func() { watchZero(t, watched, s, "SELECT total, n FROM total") })
	running.Go(func() {
		watchZero(t, watched, s, "SELECT coalesce(sum(amount), 0)::bigint, count(*) FROM (SELECT amount FROM debits UNION ALL SELECT amount FROM credits) AS entries")
	})
	k := &killer{s: s, rng: rand.New(rand.NewPCG(seed, 3))}
	for k.killed < *killsFlag {
		enough := done.Load() + 10 + int64(k.rng.IntN(40))
		k.round(t, ctx, func() bool { return done.Load() >= enough })
	}
	stop()
	producing.Wait()
	for _, teller := range tellers { // whose next start ends what the last one left
		teller.finish(ctx)
	}
	s.must("FLUSH")
	unwatch()
	running.Wait()

	conn, err := s.sql(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, topic := range []string{"debits", "credits"} {
		found := map[int64]int{}
		rows, _ := conn.Query(ctx, "SELECT id FROM "+topic)
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			found[id]++
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		for _, teller := range tellers {
			for id, end := range teller.ends {
				if n := found[id]; n > 1 || end == "committed" && n != 1 || end == "aborted" && n != 0 {
					t.Errorf("seed %d: transaction %d was %s, and %s has it %d times", seed, id, end, topic, n)
				}
			}
		}
	}
	t.Logf("%d kills, %d of them while starting; %d transactions committed", k.killed, k.during, done.Load())
}

// teller makes transfers with one transactional id.
type teller struct {
	t    testing.TB
	s    *server
	id   int
	rng  *rand.Rand
	next int64
	done *atomic.Int64
	ends map[int64]string // committed, aborted, or lost: nobody knows
}

func (x *teller) client() (*kgo.Client, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(x.s.kafka), kgo.TransactionalID(fmt.Sprint("teller", x.id)), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }), kgo.TransactionTimeout(20 * time.Second),
	}
	if x.id == 0 { // a client from before the second protocol
		v := kversion.Tip()
		for key, most := range map[int16]int16{0: 11, 22: 4, 26: 4, 28: 4} {
			v.SetMaxKeyVersion(key, most)
		}
		opts = append(opts, kgo.MaxVersions(v))
	}
	return kgo.NewClient(opts...)
}

func (x *teller) run(ctx context.Context) {
	for ctx.Err() == nil {
		cl, err := x.client()
		if err != nil {
			x.t.Error(err)
			return
		}
		for err == nil && ctx.Err() == nil {
			err = x.transfer(ctx, cl)
		}
		cl.Close()
		pause(ctx, 20*time.Millisecond)
	}
}

func (x *teller) finish(ctx context.Context) {
	cl, err := x.client()
	if err != nil {
		x.t.Fatal(err)
	}
	defer cl.Close()
	if err := x.transfer(ctx, cl); err != nil {
		x.t.Fatalf("teller %d: %v", x.id, err)
	}
}

func (x *teller) transfer(ctx context.Context, cl *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	id := x.next*10 + int64(x.id)
	x.next++
	x.ends[id] = "lost"
	amount := x.rng.Int64N(1000)
	commit := x.rng.IntN(4) > 0
	if !commit {
		amount += 1_000_000 // what is seen of it is seen
	}
	entry := func(topic string, amount int64) *kgo.Record {
		return &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"id":%d,"amount":%d}`, id, amount)}
	}
	if err := cl.ProduceSync(ctx, entry("debits", -amount)).FirstErr(); err != nil {
		return err
	}
	if err := cl.ProduceSync(ctx, entry("credits", amount)).FirstErr(); err != nil {
		return err
	}
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return err
	}
	if !commit {
		x.ends[id] = "aborted"
		return nil
	}
	x.ends[id] = "committed"
	x.done.Add(1)
	return nil
}

// watchZero reads a total all the time; it is always 0, of an even number of entries, and it goes on.
func watchZero(t testing.TB, ctx context.Context, s *server, query string) {
	moved, last := 0, int64(-1)
	reads, ok := readAllTheTime(t, ctx, s, 5*time.Millisecond, func(conn *pgx.Conn) (bool, error) {
		var sum, n int64
		if err := conn.QueryRow(ctx, query).Scan(&sum, &n); err != nil {
			return false, fmt.Errorf("%s: %w", query, err)
		}
		if sum != 0 || n%2 != 0 {
			t.Errorf("%s: %d in %d entries", query, sum, n)
			return false, nil
		}
		if n < last {
			t.Errorf("%s: %d entries, after %d", query, n, last)
			return false, nil
		}
		if n > last {
			moved, last = moved+1, n
		}
		return true, nil
	})
	if !ok {
		return
	}
	if moved < 10 {
		t.Errorf("%s: it moved %d times", query, moved)
	}
	t.Logf("%s: read %d times, with %d results", query, reads, moved)
}

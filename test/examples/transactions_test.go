package examples

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/test/nodetest"
)

// transactional is a producer with a transactional id.
func transactional(t *testing.T, n *nodetest.Node, id string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(n.KafkaAddr()), kgo.TransactionalID(id), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func amount(topic string, id int, n int64) *kgo.Record {
	return &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"id":%d,"amount":%d}`, id, n)}
}

func begin(t *testing.T, cl *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	write(t, cl, records...)
}

func write(t *testing.T, cl *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), nodetest.Patience)
	defer cancel()
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func end(t *testing.T, cl *kgo.Client, commit kgo.TransactionEndTry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), nodetest.Patience)
	defer cancel()
	if err := cl.EndTransaction(ctx, commit); err != nil {
		t.Fatal(err)
	}
}

// ledger runs examples/transfers: two topics whose transfers are Kafka transactions, with a view of the total.
func ledger(t *testing.T, c *nodetest.Conn) {
	t.Helper()
	script, err := os.ReadFile("../../examples/transfers/transfers.sql")
	if err != nil {
		t.Fatal(err)
	}
	c.Do(string(script))
}

func TestAViewSeesTransactionsWhole(t *testing.T) {
	t.Parallel()
	for _, o := range []nodetest.Options{{}, {BatchRows: 1}, {BatchRows: 7, Workers: 2}} {
		t.Run(fmt.Sprint(o.BatchRows, " rows, ", o.Workers, " workers"), func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t, o)
			c := n.Connect()
			n.Produce(nodetest.Lines("debits", `{"id":0,"amount":0}`)...)
			n.Produce(nodetest.Lines("credits", `{"id":0,"amount":0}`)...)
			ledger(t, c)
			a, b := transactional(t, n, "a"), transactional(t, n, "b")

			begin(t, a, amount("debits", 1, -5), amount("credits", 1, 5))
			begin(t, b, amount("credits", 2, 7))
			write(t, b, &kgo.Record{Topic: "credits", Value: []byte("not JSON")}) // aborted: not even a dead letter
			end(t, a, kgo.TryCommit)
			c.Do("FLUSH")
			// The record of a in credits lies before that of b, its marker behind: nothing of a is there before b has ended.
			want(t, "held back", c.Query(`SELECT * FROM total`), "0|2")
			want(t, "held back, ad hoc", c.Query(`SELECT sum(amount), count(*) FROM (SELECT amount FROM debits UNION ALL SELECT amount FROM credits) x`), "0|2")
			held := strings.Join(c.Query(`SELECT held_by FROM leat_jobs WHERE name LIKE '%total'`), "")
			if !strings.Contains(held, `"b"`) || !strings.Contains(held, "credits-0 from offset 2") {
				t.Errorf("leat_jobs says %q", held)
			}
			end(t, b, kgo.TryAbort)
			c.Do("FLUSH")
			want(t, "when b is aborted", c.Query(`SELECT * FROM total`), "0|4")
			want(t, "nothing holds it", c.Query(`SELECT held_by IS NULL FROM leat_jobs WHERE name LIKE '%total'`), "t")
			if dead := n.Counts("total").Dead; dead != 0 {
				t.Errorf("%d dead letters of an aborted transaction", dead)
			}

			// A transaction larger than what is read at once, with others in between.
			begin(t, a, amount("debits", 3, -1))
			var many []*kgo.Record
			for i := range 9000 {
				many = append(many, amount("debits", i, -1), amount("credits", i, 1))
				if i%1000 == 0 {
					write(t, a, many...)
					many = many[:0]
					begin(t, b, amount("debits", i, -9), amount("credits", i, 9))
					end(t, b, kgo.TransactionEndTry(i%2000 == 0))
				}
			}
			write(t, a, append(many, amount("credits", 3, 1))...)
			n.Crash(50)
			c = n.Connect()
			want(t, "after a crash", c.Query(`SELECT * FROM total`), "0|4")
			a2 := transactional(t, n, "a")
			begin(t, a2, amount("debits", 4, -2), amount("credits", 4, 2)) // aborts what a has left
			end(t, a2, kgo.TryCommit)
			c.Do("FLUSH")
			want(t, "in the end", c.Query(`SELECT * FROM total`), "0|16")
			want(t, "the same, ad hoc", c.Query(`SELECT sum(amount), count(*) FROM (SELECT amount FROM debits UNION ALL SELECT amount FROM credits) x`), "0|16")
		})
	}
}

// TestALargeTransactionIsOneEpoch commits more than is read at once, interleaved with records of nobody.
func TestALargeTransactionIsOneEpoch(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{BatchRows: 100})
	c := n.Connect()
	n.Produce(nodetest.Lines("debits", `{"id":0,"amount":0}`)...)
	n.Produce(nodetest.Lines("credits", `{"id":0,"amount":0}`)...)
	ledger(t, c)
	a := transactional(t, n, "a")
	begin(t, a)
	for range 30 {
		var some []*kgo.Record
		for i := range 1000 {
			some = append(some, amount("debits", i, -1), amount("credits", i, 1))
		}
		write(t, a, some...)
		n.Produce(nodetest.Lines("debits", `{"id":0,"amount":0}`)...)
	}
	c.Do("FLUSH")
	want(t, "while it is open", c.Query(`SELECT * FROM total`), "0|2")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		c := n.Connect()
		for ctx.Err() == nil {
			if got := c.Query(`SELECT total FROM total`); len(got) != 1 || got[0] != "0" {
				t.Errorf("a reader sees %v", got)
				return
			}
		}
	})
	end(t, a, kgo.TryCommit)
	c.Do("FLUSH")
	want(t, "when it is committed", c.Query(`SELECT * FROM total`), "0|60032")
	cancel()
	wg.Wait()
}

// TestViewsAdvanceUnderOverlappingTransactions keeps transactions of several producers open all the time, each over both topics: the view is never torn, and
// never waits for an instant without any.
func TestViewsAdvanceUnderOverlappingTransactions(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{Workers: 2})
	c := n.Connect()
	n.Produce(nodetest.Lines("debits", `{"id":0,"amount":0}`)...)
	n.Produce(nodetest.Lines("credits", `{"id":0,"amount":0}`)...)
	ledger(t, c)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	clients := make([]*kgo.Client, 4)
	for i := range clients {
		clients[i] = transactional(t, n, fmt.Sprint("p", i))
	}
	for i, cl := range clients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for k := 0; ctx.Err() == nil; k++ {
				if cl.BeginTransaction() != nil {
					return
				}
				x := rng.Int64N(100)
				if cl.ProduceSync(ctx, amount("debits", k, -x)).FirstErr() != nil {
					return
				}
				if cl.ProduceSync(ctx, amount("credits", k, x)).FirstErr() != nil {
					return
				}
				if cl.EndTransaction(ctx, kgo.TransactionEndTry(rng.IntN(4) > 0)) != nil {
					return
				}
			}
		})
	}
	deadline := time.Now().Add(nodetest.Patience)
	last := ""
	for moved := 0; moved < 20; {
		got := c.Query(`SELECT total, n FROM total`)
		if len(got) != 1 || !strings.HasPrefix(got[0], "0|") {
			t.Fatalf("a reader sees %v", got)
		}
		if got[0] != last {
			moved++
			last = got[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("the view stands at %s while transactions are committed", last)
		}
	}
}

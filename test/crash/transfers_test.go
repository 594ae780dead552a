package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	accounts = 8
	opening  = 1_000
)

// TestTransfersThroughKills moves money between accounts in SQL transactions. No reader ever sees another total, whatever is killed when, and
// in the end the balances are those of the transfers that are on record; all that were acknowledged are.
func TestTransfersThroughKills(t *testing.T) {
	t.Parallel()
	seed := seed(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Minute)
	defer cancel()
	s := newServer(t, "--workers", "2")
	s.must(
		`CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL)`,
		`CREATE TABLE transfers (id bigint PRIMARY KEY, source int NOT NULL, target int NOT NULL, amount bigint NOT NULL)`,
		`CREATE MATERIALIZED VIEW total AS SELECT sum(balance)::bigint AS total, count(*) AS n FROM accounts`,
	)
	insert := "INSERT INTO accounts VALUES (0, 1000)"
	for i := 1; i < accounts; i++ {
		insert += fmt.Sprintf(", (%d, %d)", i, opening)
	}
	s.must(insert)

	work, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	c := &cashier{t: t, s: s, rng: rand.New(rand.NewPCG(seed, 2)), acked: map[int64]bool{}}
	running.Go(func() { c.run(work) })
	running.Go(func() { watchTotal(t, work, s, "SELECT total, n FROM total") })
	running.Go(func() { watchTotal(t, work, s, "SELECT sum(balance)::bigint, count(*) FROM accounts") })

	k := &killer{s: s, rng: rand.New(rand.NewPCG(seed, 3))}
	for k.killed < *killsFlag {
		enough := c.done.Load() + int64(k.rng.IntN(20))
		k.round(t, ctx, func() bool { return c.done.Load() >= enough })
		if k.killed == *killsFlag/2 {
			// A view that is made in the middle of it all is right from its first answer on.
			created := fmt.Sprintf("CREATE MATERIALIZED VIEW total%d AS SELECT sum(balance)::bigint AS total, count(*) AS n FROM accounts", k.killed)
			s.must(created)
			running.Go(func() { watchTotal(t, work, s, fmt.Sprintf("SELECT total, n FROM total%d", *killsFlag/2)) })
		}
	}
	stop()
	running.Wait()
	t.Logf("%d kills, %d of them while starting; %d transfers acknowledged, %d with an unknown end", k.killed, k.during, len(c.acked), c.unknown)

	s.must("FLUSH")
	balances := map[int]int64{}
	for i := range accounts {
		balances[i] = opening
	}
	conn, err := s.sql(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var id, amount int64
	var from, to int
	rows, _ := conn.Query(ctx, "SELECT id, source, target, amount FROM transfers")
	_, err = pgx.ForEachRow(rows, []any{&id, &from, &to, &amount}, func() error {
		balances[from] -= amount
		balances[to] += amount
		delete(c.acked, id)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.acked) > 0 {
		t.Errorf("seed %d: %d transfers were acknowledged and are missing", seed, len(c.acked))
	}
	rows, _ = conn.Query(ctx, "SELECT id, balance FROM accounts")
	_, err = pgx.ForEachRow(rows, []any{&from, &amount}, func() error {
		if balances[from] != amount {
			t.Errorf("seed %d: account %d has %d; its transfers make %d", seed, from, amount, balances[from])
		}
		delete(balances, from)
		return nil
	})
	if err != nil || len(balances) > 0 {
		t.Errorf("seed %d: %d accounts are missing (%v)", seed, len(balances), err)
	}
}

// cashier makes transfers, one transaction each.
type cashier struct {
	t       testing.TB
	s       *server
	rng     *rand.Rand
	next    int64
	acked   map[int64]bool
	unknown int // the connection was lost at the commit
	done    atomic.Int64
}

func (c *cashier) run(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := c.s.sql(ctx)
		if err != nil {
			pause(ctx, 20*time.Millisecond)
			continue
		}
		for err == nil && ctx.Err() == nil {
			err = c.transfer(ctx, conn)
		}
		if !lost(err) {
			c.t.Errorf("transfer %d: %v", c.next, err)
			return
		}
		_ = conn.Close(ctx)
	}
}

func (c *cashier) transfer(ctx context.Context, conn *pgx.Conn) error {
	from := c.rng.IntN(accounts)
	to := (from + 1 + c.rng.IntN(accounts-1)) % accounts
	amount := c.rng.Int64N(100)
	id := c.next
	c.next++
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	for _, q := range []string{
		fmt.Sprintf("UPDATE accounts SET balance = balance - %d WHERE id = %d", amount, from),
		fmt.Sprintf("INSERT INTO transfers VALUES (%d, %d, %d, %d)", id, from, to, amount),
		fmt.Sprintf("UPDATE accounts SET balance = balance + %d WHERE id = %d", amount, to),
	} {
		if _, err := tx.Exec(ctx, q); err != nil {
			return err
		}
	}
	if c.rng.IntN(10) == 0 {
		return tx.Rollback(ctx)
	}
	if err := tx.Commit(ctx); err != nil {
		c.unknown++
		return err
	}
	c.acked[id] = true
	c.done.Add(1)
	return nil
}

// watchTotal reads a total all the time; it is always the same.
func watchTotal(t testing.TB, ctx context.Context, s *server, query string) {
	reads, ok := readAllTheTime(t, ctx, s, 5*time.Millisecond, func(conn *pgx.Conn) (bool, error) {
		var sum, n int64
		if err := conn.QueryRow(ctx, query).Scan(&sum, &n); err != nil {
			return false, fmt.Errorf("%s: %w", query, err)
		}
		if sum != accounts*opening || n != accounts {
			t.Errorf("%s: %d in %d accounts, not %d in %d", query, sum, n, accounts*opening, accounts)
			return false, nil
		}
		return true, nil
	})
	if ok {
		t.Logf("%s: read %d times", query, reads)
	}
}

// lost tells whether err is what a client gets when its server is killed, or when it is told to stop; an answer of the server is not.
func lost(err error) bool {
	var answer *pgconn.PgError
	return err == nil || !errors.As(err, &answer) || answer.Code == "57P01"
}

package robustness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leat-io/leat/test/nodetest"
)

// tenThousand makes a table n of the integers from 0 to 9,999, with a column k of ones to join on.
func tenThousand(c *nodetest.Conn) {
	digits := "(SELECT * FROM (VALUES (1,0),(1,1),(1,2),(1,3),(1,4),(1,5),(1,6),(1,7),(1,8),(1,9)) v(k, d))"
	c.Do("CREATE TABLE n (i int PRIMARY KEY, k int)",
		fmt.Sprintf("INSERT INTO n SELECT 1000*a.d+100*b.d+10*c.d+e.d, 1 FROM %[1]s a JOIN %[1]s b ON a.k=b.k JOIN %[1]s c ON b.k=c.k JOIN %[1]s e ON c.k=e.k", digits))
}

// sqlState is the code of an error from the server.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return fmt.Sprint(err)
}

// TestStatementsStayWithinTheirMemory runs statements that would take far more than there is: each is refused, or is done within it; the pool ends empty, and
// was never used beyond its limit.
func TestStatementsStayWithinTheirMemory(t *testing.T) {
	t.Parallel()
	const limit = 32 << 20
	n := nodetest.Start(t, nodetest.Options{Queries: limit})
	c := n.Connect()
	tenThousand(c)
	c.Do("CREATE TABLE w (i int PRIMARY KEY, s text)")
	refused := "53200"
	for _, s := range []struct{ sql, want string }{
		{"SELECT length(repeat('x', 10000000)) FROM n WHERE i < 2", "10000000"},
		{"SELECT sum(length(repeat('x' || i, 2000))) FROM n", "97780000"},
		{"SELECT sum(length(CASE WHEN i >= 0 THEN repeat('x', 20000) ELSE '' END)) FROM n", "200000000"},
		{"SELECT length(repeat('x', 100000000))", refused},
		{"SELECT length(array_to_string(string_to_array(repeat('x,', 5000000), ','), 'abcdefgh'))", refused},
		{"SELECT length(format(repeat('%1$s', 1000), repeat('x', 100000)))", refused},
		{"SELECT length(replace(repeat('x', 1000000), 'x', 'abcdefghijklmnopqrstuvwxyz'))", refused},
		{"SELECT length(jsonb_build_object('a', repeat('x', 9000000), 'b', repeat('y', 9000000))::text)", refused},
		{"SELECT i, repeat('x' || i, 2000) AS s FROM n ORDER BY s", refused},
		{"SELECT i FROM (SELECT i, repeat('x' || i, 2000) AS s FROM n) q ORDER BY s DESC LIMIT 1", "9"},
		{"SELECT repeat('x' || i, 2000), count(*) FROM n GROUP BY 1", refused},
		{"SELECT count(*) FROM n a JOIN n b ON a.k = b.k WHERE a.i < 100", "1000000"},
		{"SELECT a.i FROM n a JOIN n b ON a.k = b.k ORDER BY a.i + b.i", refused},
		{"INSERT INTO w SELECT i, repeat('x' || i, 2000) FROM n", refused},
		{"UPDATE n SET k = 2 WHERE i < 10 RETURNING repeat('x', 5000000 + i)", refused},
		{"SELECT count(*) FROM w", "0"},
		{"SELECT count(*) FROM n WHERE k = 2", "0"},
		{"SELECT length('" + strings.Repeat("x", 8<<20) + "')", refused},
	} {
		got := func() string {
			rows, err := c.Exec(context.Background(), s.sql).ReadAll()
			if err != nil {
				return sqlState(err)
			}
			return string(rows[0].Rows[0][0])
		}()
		if got != s.want {
			t.Errorf("%.100s: %.100s, want %s", s.sql, got, s.want)
		}
	}
	if got := c.Query("SELECT bytes < 1000000, peak_bytes <= limit_bytes FROM leat_memory WHERE pool = 'node/queries'"); got[0] != "t|t" {
		t.Errorf("the pool is empty, and was within its limit: %v; %v", got, c.Query("SELECT * FROM leat_memory WHERE pool = 'node/queries'"))
	}
}

// TestManyLargeStatementsAtOnce: however many there are, small ones go on.
func TestManyLargeStatementsAtOnce(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{Queries: 16 << 20})
	c := n.Connect()
	tenThousand(c)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 20 {
		other := n.Connect()
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = other.Exec(ctx, "SELECT repeat('x' || i, 500) AS s FROM n ORDER BY s DESC").ReadAll()
			}
		})
	}
	for i := range 20 {
		if got := c.Query(fmt.Sprintf("SELECT count(*) FROM n WHERE i < %d", i)); got[0] != fmt.Sprint(i) {
			t.Errorf("count %v, want %d", got, i)
		}
	}
	cancel()
	wg.Wait()
}

// TestLongKernelsAreCancelled: what spends its time within one function over few rows ends soon after it is to.
func TestLongKernelsAreCancelled(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	tenThousand(c)
	c.Do("SET statement_timeout = '200ms'")
	for _, sql := range []string{
		"SELECT sum(regexp_count(repeat('abcdefgh' || i, 200000), '[a-d]+(e|f)')) FROM n",
		"SELECT sum(length(regexp_replace(repeat('abcdefgh' || i, 200000), '[a-d]', 'xx', 'g'))) FROM n",
		"SELECT sum(length(repeat('a' || i, 500000))) FROM n",
		"SELECT count(*) FROM n a JOIN n b ON a.k = b.k",
	} {
		begun := time.Now()
		_, err := c.Exec(context.Background(), sql).ReadAll()
		if took := time.Since(begun); sqlState(err) != "57014" || took > 20*time.Second {
			t.Errorf("%s: %v after %v", sql, err, took)
		}
	}
}

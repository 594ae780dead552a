package examples

import (
	"fmt"
	"testing"

	"github.com/leat-io/leat/test/nodetest"
)

const withinTheHour = `s.id = c.id AND c.at BETWEEN s.at AND s.at + INTERVAL '1 hour'`

// searches starts a node with the streams searches and clicks.
func searches(t *testing.T) (*nodetest.Node, *nodetest.Conn) {
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	source(c, "searches", "1 minute")
	source(c, "clicks", "1 minute")
	return n, c
}

// pass lets the time of both streams come to a minute, with events that match nothing.
func pass(n *nodetest.Node, minute float64) {
	n.Produce(append(nodetest.Lines("searches", event("time-s", minute)), nodetest.Lines("clicks", event("time-c", minute))...)...)
}

// J1: 10 searches, 5 clicks within the hour on the same session ids: 5 clicked, 5 not clicked. Click-only data would say 5 of 5.
func TestJ1ClickThrough(t *testing.T) {
	t.Parallel()
	n, c := searches(t)
	c.Do(`CREATE MATERIALIZED VIEW followed AS SELECT s.id, c.at AS clicked FROM searches s LEFT JOIN clicks c ON ` + withinTheHour)
	for i := range 10 {
		n.Produce(nodetest.Lines("searches", event(fmt.Sprint("session", i), float64(i)))...)
	}
	for i := range 5 {
		n.Produce(nodetest.Lines("clicks", event(fmt.Sprint("session", 2*i), float64(2*i+30)))...)
	}
	c.Do("FLUSH")
	const shares = `SELECT count(*) FILTER (WHERE clicked IS NOT NULL), count(*) FILTER (WHERE clicked IS NULL) FROM followed WHERE id LIKE 'session%'`
	want(t, "before the hour is over nobody has not clicked", c.Query(shares), "5|0")
	pass(n, 300)
	c.Do("FLUSH")
	want(t, "clicked, not clicked", c.Query(shares), "5|5")
	want(t, "clicks alone", c.Query(`SELECT count(*) FROM (SELECT id FROM clicks WHERE id LIKE 'session%' GROUP BY id) sessions`), "5")
}

// J3: a click that arrives before its search is matched.
func TestJ3ClickBeforeSearch(t *testing.T) {
	t.Parallel()
	n, c := searches(t)
	c.Do(`CREATE MATERIALIZED VIEW matched AS SELECT s.id, c.at - s.at AS after FROM searches s JOIN clicks c ON ` + withinTheHour)
	n.Produce(nodetest.Lines("clicks", event("a", 10))...)
	c.Do("FLUSH")
	want(t, "without its search", c.Query(`SELECT * FROM matched`))
	n.Produce(nodetest.Lines("searches", event("a", 5))...)
	c.Do("FLUSH")
	want(t, "with it", c.Query(`SELECT * FROM matched`), "a|00:05:00")
}

// J5: a change on either side of two joined tables is one change of the view; at the end it equals the join.
func TestJ5TableTable(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	c.Do(`CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)`, `CREATE TABLE customers (id int PRIMARY KEY, name text)`)
	c.Do(`CREATE MATERIALIZED VIEW named AS SELECT o.id, c.name, o.amount, c.id AS customer FROM orders o JOIN customers c ON o.customer = c.id`)
	c.Do(`CREATE SINK changes FROM named WITH (connector = 'kafka', topic = 'changes') FORMAT UPSERT ENCODE JSON`)
	c.Do(`INSERT INTO customers VALUES (1, 'ada'), (2, 'bob')`, `INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, 3, 7)`, `FLUSH`)
	changes := func() int { return len(n.Consume("changes")) }
	before := changes()
	for _, statement := range []string{
		`UPDATE orders SET amount = 50 WHERE id = 10`,
		`UPDATE customers SET name = 'eve' WHERE id = 2`,
		`INSERT INTO customers VALUES (3, 'cyd')`,
		`DELETE FROM orders WHERE id = 11`,
	} {
		c.Do(statement, `FLUSH`)
		if got := changes() - before; got != 1 {
			t.Errorf("%s: %d changes of the view, want 1", statement, got)
		}
		before = changes()
	}
	join := c.Query(`SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON o.customer = c.id ORDER BY o.id`)
	want(t, "the join itself", join, "10|ada|50", "12|cyd|7")
	want(t, "the view", c.Query(`SELECT id, name, amount FROM named ORDER BY id`), join...)
}

// J6: what finds no partner in an inner join of streams is dropped when its time is over, and counted.
func TestJ6Unmatched(t *testing.T) {
	t.Parallel()
	n, c := searches(t)
	c.Do(`CREATE MATERIALIZED VIEW matched AS SELECT s.id FROM searches s JOIN clicks c ON ` + withinTheHour)
	n.Produce(nodetest.Lines("searches", event("a", 0), event("b", 1), event("c", 2))...)
	n.Produce(nodetest.Lines("clicks", event("b", 20), event("x", 21))...)
	c.Do("FLUSH")
	want(t, "matched", c.Query(`SELECT * FROM matched`), "b")
	want(t, "nothing is over yet", c.Query(`SELECT rows_unmatched FROM leat_jobs WHERE name = 'matched'`), "0")
	pass(n, 600)
	c.Do("FLUSH")
	want(t, "a, c and x have found nobody", c.Query(`SELECT rows_unmatched, rows_late FROM leat_jobs WHERE name = 'matched'`), "3|0")
	n.Produce(nodetest.Lines("clicks", event("a", 30))...)
	c.Do("FLUSH")
	want(t, "what is over is not matched any more", c.Query(`SELECT * FROM matched`), "b")
	want(t, "the click is late", c.Query(`SELECT rows_late FROM leat_jobs WHERE name = 'matched'`), "1")
}

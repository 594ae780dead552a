package examples

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leat-io/leat/test/nodetest"
)

// numbered are records from..to-1, one every 100 ms, in five groups.
func numbered(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, event(fmt.Sprint("g", i%5), float64(i)/600))
	}
	return out
}

// X1: an aggregate over 4,000 records, killed, goes on at record 4,001 with its state. A consumer that keeps its offset and loses its state
// is wrong.
func TestX1Resume(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	source(c, "events", "1 second")
	c.Do(`CREATE MATERIALIZED VIEW counts AS SELECT id, count(*) AS n FROM events GROUP BY id`)
	n.Produce(nodetest.Lines("events", numbered(0, 4000)...)...)
	c.Do("FLUSH")
	read := n.Counts("counts").In
	n.Crash(0)
	c = n.Connect()
	n.Produce(nodetest.Lines("events", numbered(4000, 4010)...)...)
	c.Do("FLUSH")
	want(t, "with its state", c.Query(`SELECT * FROM counts ORDER BY id`), "g0|802", "g1|802", "g2|802", "g3|802", "g4|802")
	if got := n.Counts("counts").In; read != 4000 || got != 4010 {
		t.Errorf("the job has read %d records before the crash and %d in all, want 4000 and 4010: it goes on where it was", read, got)
	}
	naive := c.Query(`SELECT id, count(*) FROM (SELECT id FROM events WHERE at >= TIMESTAMP '2024-01-01' + INTERVAL '400 seconds') rest GROUP BY id ORDER BY id`)
	want(t, "a consumer without its state", naive, "g0|2", "g1|2", "g2|2", "g3|2", "g4|2")
}

// X2: two inputs, one of them slow: the state of the operator is that of one instant of both, and nothing is joined twice or lost.
func TestX2SlowInput(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	source(c, "quick", "1 second")
	source(c, "slow", "1 second")
	c.Do(`CREATE MATERIALIZED VIEW pairs AS SELECT q.id, count(*) AS n FROM quick q JOIN slow s ON q.id = s.id GROUP BY q.id`)
	n.Produce(nodetest.Lines("quick", numbered(0, 100)...)...)
	n.Produce(nodetest.Lines("slow", numbered(0, 5)...)...)
	c.Do("FLUSH")
	want(t, "before", c.Query(`SELECT * FROM pairs ORDER BY id`), "g0|20", "g1|20", "g2|20", "g3|20", "g4|20")
	n.Produce(nodetest.Lines("quick", numbered(100, 200)...)...) // they may be in an epoch, or not, when the node dies
	n.Crash(0)
	c = n.Connect()
	n.Produce(nodetest.Lines("slow", numbered(5, 10)...)...)
	c.Do("FLUSH")
	want(t, "after", c.Query(`SELECT * FROM pairs ORDER BY id`), "g0|80", "g1|80", "g2|80", "g3|80", "g4|80")
}

const perTenSeconds = `CREATE SINK closed AS SELECT window_start, id, count(*) AS n FROM TUMBLE(events, at, INTERVAL '10 seconds') GROUP BY window_start, window_end, id
EMIT ON WINDOW CLOSE WITH (connector = 'kafka', topic = 'closed') FORMAT PLAIN ENCODE JSON`

// run feeds 2,000 records in pieces and returns the sink's records, sorted; between tells what happens between two pieces.
func run(t *testing.T, between func(n *nodetest.Node, piece int)) []string {
	t.Helper()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	source(c, "events", "1 second")
	c.Do(perTenSeconds)
	for piece := range 10 {
		n.Produce(nodetest.Lines("events", numbered(piece*200, piece*200+200)...)...)
		between(n, piece)
	}
	n.Connect().Do("FLUSH")
	var out []string
	for _, r := range n.Consume("closed") {
		out = append(out, string(r.Key)+string(r.Value))
	}
	slices.Sort(out)
	return out
}

// X3 and X8: killed again and again, before or after an epoch has ended, the sink holds the same records, byte for byte and each once, as
// after a run without failure.
func TestX3X8SameOutput(t *testing.T) {
	t.Parallel()
	quiet := run(t, func(*nodetest.Node, int) {})
	killed := run(t, func(n *nodetest.Node, piece int) {
		if piece%2 == 0 {
			n.Connect().Do("FLUSH")
		}
		n.Crash(1 + piece%3)
	})
	if len(quiet) != 19*5 { // 200 seconds are 20 windows of 10; the last one is open
		t.Errorf("%d records, want %d", len(quiet), 19*5)
	}
	if !slices.Equal(quiet, killed) {
		t.Errorf("without failure %d records, with crashes %d:\n%q\n%q", len(quiet), len(killed), quiet, killed)
	}
}

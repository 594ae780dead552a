package robustness

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/leat-io/leat/internal/node"
	"github.com/leat-io/leat/internal/vfs"
	"github.com/leat-io/leat/test/nodetest"
)

// peakOfState is the most that rows of state have taken of the memory.
func peakOfState(t *testing.T, c *nodetest.Conn) int64 {
	t.Helper()
	peak, err := strconv.ParseInt(c.Query("SELECT peak_bytes FROM leat_memory WHERE pool = 'node/engine/state'")[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return peak
}

// manyRows are the VALUES of n rows (id, k, text).
func manyRows(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d, %d, 'some text that makes the row longer, and is another one in each: %d')", i, i%2, i)
	}
	return b.String()
}

// TestOneRowThatJoinsMany: an epoch that changes many times more rows than may be in memory gives the right rows, all of them at once, crashes in between or
// not; it takes a bounded part of the memory, says so in a metric, and leaves no files.
func TestOneRowThatJoinsMany(t *testing.T) {
	t.Parallel()
	const rows, share = 6_000, 32 << 10
	peaks := map[int64]int64{}
	for _, spill := range []int64{0, share} {
		n := nodetest.Start(t, nodetest.Options{Workers: 2, Memory: 2 << 20, Spill: spill})
		c := n.Connect()
		c.Do(
			"CREATE TABLE f (id int PRIMARY KEY, k int, pad text)", "CREATE TABLE d (k int PRIMARY KEY, v int)",
			"CREATE MATERIALIZED VIEW j AS SELECT f.id, f.pad, d.v FROM f JOIN d ON f.k = d.k",
			"CREATE MATERIALIZED VIEW above AS SELECT id, v * 2 AS twice FROM j",
			"INSERT INTO d VALUES (0, 0), (1, 0)", "INSERT INTO f VALUES "+manyRows(rows), "FLUSH",
		)
		for round := 1; round <= 4; round++ {
			c.Do("BEGIN", fmt.Sprintf("UPDATE d SET v = %d WHERE k = 0", round), fmt.Sprintf("UPDATE d SET v = %d WHERE k = 1", round), "COMMIT")
			if round%2 == 0 {
				n.Crash(1 + round%3)
				c = n.Connect()
			}
			// Another session need not see the last change, but sees all of one.
			other := n.Connect()
			for range 5 {
				got := other.Query("SELECT count(*), min(v) = max(v), min(v) FROM j UNION ALL SELECT count(*), min(twice) = max(twice), min(twice) / 2 FROM above")
				if len(got) != 2 || got[0] != got[1] || !strings.HasPrefix(got[0], fmt.Sprintf("%d|t|", rows)) {
					t.Fatalf("spill %d, round %d: the views have %v", spill, round, got)
				}
			}
			want := fmt.Sprintf("%d|%d|%d|%d", rows, round, round, rows*(rows-1)/2)
			c.Do("FLUSH")
			if got := c.Query("SELECT count(*), min(v), max(v), sum(id) FROM j"); got[0] != want {
				t.Fatalf("spill %d, round %d: the view has %v, want %s", spill, round, got, want)
			}
		}
		c.Do("DELETE FROM d WHERE k = 1", "FLUSH")
		if got := c.Query("SELECT count(*), min(id % 2), max(id % 2) FROM j"); got[0] != fmt.Sprintf("%d|0|0", rows/2) {
			t.Fatalf("spill %d: what is left of the view: %v", spill, got)
		}
		if written := n.Core.Spill.Written(); (written > 0) != (spill > 0) {
			t.Errorf("spill %d: %d bytes were written to files", spill, written)
		}
		peaks[spill] = peakOfState(t, c)
		n.Restart(2)
		if files := n.Files("spill"); len(files) > 0 {
			t.Errorf("spill %d: files are left: %v", spill, files)
		}
	}
	t.Logf("the most memory that rows of state took: %d bytes, with files %d", peaks[0], peaks[share])
	if peaks[share] > peaks[0]*2/3 {
		t.Errorf("rows took %d bytes of the memory where most of them go to files, and %d where none do", peaks[share], peaks[0])
	}
}

// TestATransactionThatIsLargerThanMemory: a transaction that writes a table's rows many times over, and deletes some that it has written before, comes to
// what it comes to in memory.
func TestATransactionThatIsLargerThanMemory(t *testing.T) {
	t.Parallel()
	results := map[int64]string{}
	for _, spill := range []int64{0, 2 << 10} {
		n := nodetest.Start(t, nodetest.Options{Workers: 3, Spill: spill})
		c := n.Connect()
		c.Do(
			"CREATE TABLE t (id int PRIMARY KEY, k int, pad text)",
			"CREATE MATERIALIZED VIEW m AS SELECT k, count(*) AS n, sum(id) AS s, max(length(pad)) AS l FROM t GROUP BY k",
			"INSERT INTO t VALUES (7, 7, 'there before'), (100000, 7, 'untouched')",
			"BEGIN", "INSERT INTO t VALUES (-1, 9, 'comes and goes')", "DELETE FROM t WHERE id = 7", "INSERT INTO t VALUES "+manyRows(1500),
			"UPDATE t SET k = 5 WHERE id % 3 = 0", "DELETE FROM t WHERE id % 5 = 0 AND id < 50000", "DELETE FROM t WHERE id = -1",
			"INSERT INTO t VALUES (5, 6, 'again')", "COMMIT", "FLUSH",
		)
		if written := n.Core.Spill.Written(); (written > 0) != (spill > 0) {
			t.Errorf("spill %d: %d bytes were written to files", spill, written)
		}
		results[spill] = strings.Join(c.Query("SELECT k, n, s, l FROM m ORDER BY k"), "; ") + " of " +
			strings.Join(c.Query("SELECT count(*), sum(id), sum(k), sum(length(pad)) FROM t"), "")
		n.Crash(2)
		c = n.Connect()
		c.Do("INSERT INTO t VALUES (-2, 5, 'after the crash')", "DELETE FROM t WHERE id = -2", "FLUSH")
		again := strings.Join(c.Query("SELECT k, n, s, l FROM m ORDER BY k"), "; ") + " of " +
			strings.Join(c.Query("SELECT count(*), sum(id), sum(k), sum(length(pad)) FROM t"), "")
		if again != results[spill] {
			t.Errorf("spill %d: after a crash %s, before %s", spill, again, results[spill])
		}
	}
	if results[0] != results[2<<10] {
		t.Errorf("in memory: %s\nthrough files: %s", results[0], results[2<<10])
	}
}

// TestAWindowOfManyGroups: closing one window that has many groups, into a view and into a view over it.
func TestAWindowOfManyGroups(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{Workers: 2, Spill: 4 << 10})
	c := n.Connect()
	c.Do(
		`CREATE SOURCE events (id int, at timestamp, WATERMARK FOR at AS at) WITH (connector = 'kafka', topic = 'events') FORMAT PLAIN ENCODE JSON`,
		`CREATE MATERIALIZED VIEW w AS SELECT window_end, id, count(*) AS n FROM TUMBLE(events, at, INTERVAL '1 minute') GROUP BY window_start, window_end, id EMIT ON WINDOW CLOSE`,
		`CREATE MATERIALIZED VIEW total AS SELECT window_end, count(*) AS groups, sum(n) AS events FROM w GROUP BY window_end`,
	)
	const groups = 3000
	lines := make([]string, 0, 2*groups+1)
	for i := range 2 * groups {
		lines = append(lines, fmt.Sprintf(`{"id":%d,"at":"2024-01-01T00:00:%02d"}`, i%groups, i*59/(2*groups)))
	}
	n.Produce(nodetest.Lines("events", append(lines, `{"id":0,"at":"2024-01-01T00:02:00"}`)...)...)
	c.Do("FLUSH")
	if got := c.Query("SELECT groups, events FROM total"); len(got) != 1 || got[0] != fmt.Sprintf("%d|%d", groups, 2*groups) {
		t.Errorf("the window has %v", got)
	}
	if got := c.Query("SELECT count(*), min(n), max(n) FROM w"); got[0] != fmt.Sprintf("%d|2|2", groups) {
		t.Errorf("its groups: %v", got)
	}
	if n.Core.Spill.Written() == 0 {
		t.Error("nothing went to files")
	}
}

// TestADiskThatFailsUnderAnEpochLosesNoView: when the files of an epoch cannot be made durable the epoch is not committed, for none of the jobs, and so none has
// missed changes: the next start runs it again.
func TestADiskThatFailsUnderAnEpochLosesNoView(t *testing.T) {
	t.Parallel()
	disk := vfs.NewFaults(vfs.NewMem())
	start := func() *node.Node {
		c := config("/data")
		c.Core = node.CoreOptions{FS: disk, SpillBytes: 1 << 10}
		n, err := node.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := start()
	const rows = 500
	run(t, n, "CREATE TABLE f (id int PRIMARY KEY, k int, pad text)")
	run(t, n, "CREATE TABLE d (k int PRIMARY KEY, v int)")
	run(t, n, "CREATE MATERIALIZED VIEW j AS SELECT f.id, f.pad, d.v FROM f JOIN d ON f.k = d.k")
	run(t, n, "INSERT INTO d VALUES (0, 0), (1, 0)")
	run(t, n, "INSERT INTO f VALUES "+manyRows(rows))
	run(t, n, "FLUSH")
	disk.FailSync(".spill", syscall.EIO)
	run(t, n, "UPDATE d SET v = 1")
	eventually(t, "the view's job stops", func() bool {
		return run(t, n, "SELECT count(*) FROM leat_jobs WHERE state LIKE 'stopped%' AND name = 'j'") == "1"
	})
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	disk.FailSync("", nil)
	n = start()
	defer n.Stop()
	run(t, n, "FLUSH")
	if got := run(t, n, "SELECT count(*) || ' ' || min(v) || ' ' || max(v) FROM j"); got != fmt.Sprintf("%d 1 1", rows) {
		t.Errorf("after the next start the view has %s", got)
	}
}

package examples

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/test/nodetest"
)

// zero is minute 0 of the examples whose times are minutes.
var zero = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// event is a JSON record with an id and a time, in minutes.
func event(id string, minutes float64) string {
	return fmt.Sprintf(`{"id":%q,"at":%q}`, id, zero.Add(time.Duration(minutes*float64(time.Minute))).Format("2006-01-02T15:04:05.999999"))
}

// at is a JSON record with an id and a time of day.
func at(id, clock string) string { return fmt.Sprintf(`{"id":%q,"at":"2024-01-01T%s"}`, id, clock) }

// source declares a source of such records over the topic of the same name.
func source(c *nodetest.Conn, name, delay string) {
	c.Do(fmt.Sprintf(`CREATE SOURCE %[1]s (id text, at timestamp, WATERMARK FOR at AS at - INTERVAL '%[2]s') WITH (connector = 'kafka', topic = '%[1]s') FORMAT PLAIN ENCODE JSON`, name, delay))
}

// letters are the events A to J, one a minute.
func letters() (out []string) {
	for i, id := range strings.Split("ABCDEFGHIJ", "") {
		out = append(out, event(id, float64(i)))
	}
	return out
}

// members reads a view of (window_start, id) as the ids of each window, by the window's start in minutes.
func members(t *testing.T, c *nodetest.Conn, view string) map[int]string {
	t.Helper()
	out := map[int]string{}
	for _, row := range c.Query("SELECT extract(epoch FROM window_start - TIMESTAMP '2024-01-01')::int / 60, id FROM " + view + " ORDER BY window_start, id") {
		var minute int
		var id string
		if _, err := fmt.Sscanf(strings.ReplaceAll(row, "|", " "), "%d %s", &minute, &id); err != nil {
			t.Fatalf("%q: %v", row, err)
		}
		out[minute] += id
	}
	return out
}

func want(t *testing.T, what string, got []string, rows ...string) {
	t.Helper()
	if !slices.Equal(got, rows) {
		t.Errorf("%s: got %q, want %q", what, got, rows)
	}
}

// W1: TUMBLE 5 over A..J. [0,5): A B C D E; [5,10): F G H I J; each event once.
func TestW1Tumble(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	source(c, "events", "1 minute")
	c.Do(`CREATE MATERIALIZED VIEW w AS SELECT window_start, id FROM TUMBLE(events, at, INTERVAL '5 minutes')`)
	n.Produce(nodetest.Lines("events", letters()...)...)
	c.Do("FLUSH")
	if got, want := members(t, c, "w"), map[int]string{0: "ABCDE", 5: "FGHIJ"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// W2: HOP every 1, size 5: 14 windows, starts -4 (A) to 9 (J); every event in exactly 5.
func TestW2Hop(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{Workers: 2})
	c := n.Connect()
	source(c, "events", "1 minute")
	c.Do(`CREATE MATERIALIZED VIEW w AS SELECT window_start, id FROM HOP(events, at, INTERVAL '1 minute', INTERVAL '5 minutes')`,
		`CREATE MATERIALIZED VIEW counts AS SELECT window_start, count(*) AS n FROM HOP(events, at, INTERVAL '1 minute', INTERVAL '5 minutes') GROUP BY window_start, window_end`)
	n.Produce(nodetest.Lines("events", letters()...)...)
	c.Do("FLUSH")
	windows := map[int]string{}
	for start := -4; start <= 9; start++ {
		windows[start] = "ABCDEFGHIJ"[max(start, 0):min(start+5, 10)]
	}
	if got := members(t, c, "w"); !maps.Equal(got, windows) || windows[-4] != "A" || windows[0] != "ABCDE" || windows[1] != "BCDEF" || windows[2] != "CDEFG" || windows[9] != "J" {
		t.Errorf("got %v, want %v", got, windows)
	}
	want(t, "windows and events in them", c.Query("SELECT count(*), sum(n) FROM counts"), "14|50")
	want(t, "windows of each event", c.Query("SELECT id, count(*) FROM w GROUP BY id HAVING count(*) <> 5"))
}

// W7: TUMBLE 1 min. 10:03:00.000 and 10:03:59.999 together; 10:04:00.000 in the next.
// W8: HOP 1 min, size 5 min. [10:03,10:08) holds 10:03:00 to 10:07:59.999; next [10:04,10:09).
func TestW7W8Edges(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	source(c, "events", "1 hour")
	c.Do(`CREATE MATERIALIZED VIEW w7 AS SELECT window_start, count(*) AS n FROM TUMBLE(events, at, INTERVAL '1 minute') GROUP BY window_start, window_end`,
		`CREATE MATERIALIZED VIEW w8 AS SELECT window_start, window_end, min(at) AS first, max(at) AS last FROM HOP(events, at, INTERVAL '1 minute', INTERVAL '5 minutes') GROUP BY window_start, window_end`)
	n.Produce(nodetest.Lines("events", at("a", "10:03:00.000"), at("b", "10:03:59.999"), at("c", "10:04:00.000"), at("d", "10:07:59.999"), at("e", "10:08:00"))...)
	c.Do("FLUSH")
	want(t, "W7", c.Query("SELECT window_start, n FROM w7 WHERE window_start < '2024-01-01 10:05' ORDER BY 1"), "2024-01-01 10:03:00|2", "2024-01-01 10:04:00|1")
	want(t, "W8", c.Query("SELECT * FROM w8 WHERE window_start BETWEEN '2024-01-01 10:03' AND '2024-01-01 10:04' ORDER BY 1"),
		"2024-01-01 10:03:00|2024-01-01 10:08:00|2024-01-01 10:03:00|2024-01-01 10:07:59.999",
		"2024-01-01 10:04:00|2024-01-01 10:09:00|2024-01-01 10:04:00|2024-01-01 10:08:00")
}

// W10: HOP 5 min, size 1 h: a window is the sum of 12 panes, the next one reuses 11 and reads no raw row. avg is sum / count of the panes. A size that
// is no multiple of the hop is right too.
func TestW10Panes(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	source(c, "events", "1 minute")
	hop := func(name, slide, size string) string {
		return fmt.Sprintf(`CREATE MATERIALIZED VIEW %s AS SELECT window_start, count(*) AS n, sum(length(id)) AS s, avg(length(id)) AS a FROM HOP(events, at, INTERVAL '%s', INTERVAL '%s') GROUP BY window_start, window_end EMIT ON WINDOW CLOSE`, name, slide, size)
	}
	c.Do(hop("hours", "5 minutes", "1 hour"), hop("odd", "5 minutes", "12 minutes"))
	var records []string
	var ends []int // minute and length of each event
	for m := range 240 {
		records = append(records, event(strings.Repeat("x", m%7+1), float64(m)))
		ends = append(ends, m%7+1)
	}
	n.Produce(nodetest.Lines("events", records...)...)
	c.Do("FLUSH")
	for view, size := range map[string]int{"hours": 60, "odd": 12} {
		var direct []string
		first := 0
		for first-5+size > 0 {
			first -= 5
		}
		for start := first; start+size <= 238; start += 5 { // the watermark is at minute 238
			count, sum := 0, 0
			for m := max(start, 0); m < start+size; m++ {
				count, sum = count+1, sum+ends[m]
			}
			direct = append(direct, fmt.Sprintf("%d|%d|%d|t", start, count, sum))
		}
		want(t, view, c.Query(`SELECT extract(epoch FROM window_start - TIMESTAMP '2024-01-01')::int / 60, n, s, a = s::numeric / n FROM `+view+` ORDER BY window_start`), direct...)
	}
	// Each raw row was read once, however many windows it is in.
	if got := n.Counts("hours"); got.RowsProcessed != 240 || got.PanesMerged == 0 || got.PanesMerged > 60*12 {
		t.Errorf("hours: %d raw rows read, %d panes merged; 240 rows are in 48 panes", got.RowsProcessed, got.PanesMerged)
	}
}

// W15: at the edges of windows by one microsecond, on both sides.
func TestW15Edges(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	source(c, "events", "1 hour")
	c.Do(`CREATE MATERIALIZED VIEW tumble AS SELECT window_start, id FROM TUMBLE(events, at, INTERVAL '5 minutes')`,
		`CREATE MATERIALIZED VIEW hop AS SELECT window_start, id FROM HOP(events, at, INTERVAL '5 minutes', INTERVAL '10 minutes')`)
	n.Produce(nodetest.Lines("events", at("before", "00:04:59.999999"), at("on", "00:05:00"), at("after", "00:05:00.000001"))...)
	c.Do("FLUSH")
	want(t, "tumble", c.Query("SELECT * FROM tumble ORDER BY 1, 2"),
		"2024-01-01 00:00:00|before", "2024-01-01 00:05:00|after", "2024-01-01 00:05:00|on")
	want(t, "hop", c.Query("SELECT * FROM hop ORDER BY 1, 2"),
		"2023-12-31 23:55:00|before", "2024-01-01 00:00:00|after", "2024-01-01 00:00:00|before", "2024-01-01 00:00:00|on",
		"2024-01-01 00:05:00|after", "2024-01-01 00:05:00|on")
	// A row at the very end of a window is not in it; the watermark at the very end closes it.
	source(c, "edge", "0 seconds")
	c.Do(`CREATE MATERIALIZED VIEW closed AS SELECT window_start, count(*) AS n FROM TUMBLE(edge, at, INTERVAL '5 minutes') GROUP BY window_start, window_end EMIT ON WINDOW CLOSE`)
	n.Produce(nodetest.Lines("edge", at("a", "00:00:00"), at("b", "00:04:59.999999"))...)
	c.Do("FLUSH")
	want(t, "a microsecond before its end", c.Query("SELECT * FROM closed"))
	n.Produce(nodetest.Lines("edge", at("c", "00:05:00"))...)
	c.Do("FLUSH")
	want(t, "at its end", c.Query("SELECT * FROM closed"), "2024-01-01 00:00:00|2")
}

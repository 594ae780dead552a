package examples

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/test/nodetest"
)

// T1: window 14:00-14:01; E1, E3, E2 in that order; the watermark passes 14:01; then E4 at 14:00:45. 3 at the close. E4 is late. Count: stays 3,
// late = 1. Correct: -3, +4. Side topic: E4 is there.
func TestT1Late(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	c := n.Connect()
	source(c, "events", "30 seconds")
	view := func(name, with string) string {
		return fmt.Sprintf("CREATE MATERIALIZED VIEW %s%s AS SELECT window_start, count(*) AS n FROM TUMBLE(events, at, INTERVAL '1 minute') GROUP BY window_start, window_end", name, with)
	}
	c.Do(view("counted", "")+" EMIT ON WINDOW CLOSE", view("corrected", " WITH (late = 'correct', allowed_lateness = '1 hour')"),
		view("aside", " WITH (late = 'topic', late_topic = 'late')"))
	c.Do(`CREATE SINK corrections FROM corrected WITH (connector = 'kafka', topic = 'corrections') FORMAT UPSERT ENCODE JSON`)
	n.Produce(nodetest.Lines("events", at("E1", "14:00:10"), at("E3", "14:00:30"), at("E2", "14:00:20"))...)
	c.Do("FLUSH")
	want(t, "before the close", c.Query("SELECT * FROM counted"))
	n.Produce(nodetest.Lines("events", at("next", "14:01:30"))...)
	c.Do("FLUSH")
	first := "2024-01-01 14:00:00"
	want(t, "at the close", c.Query("SELECT * FROM counted"), first+"|3")
	want(t, "to be corrected", c.Query("SELECT n FROM corrected WHERE window_start = '"+first+"'"), "3")
	n.Produce(nodetest.Lines("events", at("E4", "14:00:45"))...)
	c.Do("FLUSH")
	want(t, "count", c.Query("SELECT * FROM counted"), first+"|3")
	want(t, "correct", c.Query("SELECT n FROM corrected WHERE window_start = '"+first+"'"), "4")
	want(t, "side topic's view", c.Query("SELECT n FROM aside WHERE window_start = '"+first+"'"), "3")
	for view, late := range map[string]float64{"counted": 1, "corrected": 0, "aside": 1} {
		if got, ok := n.Metric("leat_rows_late_total", view); !ok || got != late {
			t.Errorf("%s: late = %v, not %v", view, got, late)
		}
	}
	var side, corrections []string
	for _, r := range n.Consume("late") {
		side = append(side, string(r.Value))
	}
	want(t, "side topic", side, `{"id":"E4","at":"2024-01-01T14:00:45"}`)
	for _, r := range n.Consume("corrections") {
		if string(r.Key) == `{"window_end":"2024-01-01T14:01:00"}` {
			corrections = append(corrections, string(r.Value))
		}
	}
	if len(corrections) < 2 || corrections[len(corrections)-1] != `{"window_start":"2024-01-01T14:00:00","n":4}` {
		t.Errorf("corrections: %q", corrections)
	}
}

// setClock is a clock that starts at a given time and can be stopped at one. Timers are real.
type setClock struct {
	clock.Clock
	start, began time.Time
	stopped      atomic.Pointer[time.Time]
}

func (s *setClock) Now() time.Time {
	if at := s.stopped.Load(); at != nil {
		return *at
	}
	return s.start.Add(time.Since(s.began))
}

// T2: event 14:00:01.234, processed 14:00:03.789: event-time lag 2.555 s in a metric.
func TestT2Lag(t *testing.T) {
	t.Parallel()
	now := &setClock{Clock: clock.Real, start: time.Date(2024, 1, 1, 14, 0, 0, 0, time.UTC), began: time.Now()}
	n := nodetest.Start(t, nodetest.Options{Clock: now})
	c := n.Connect()
	source(c, "events", "0 seconds")
	c.Do(`CREATE MATERIALIZED VIEW w AS SELECT window_start, count(*) AS n FROM TUMBLE(events, at, INTERVAL '1 minute') GROUP BY window_start, window_end`)
	record := nodetest.Lines("events", at("e", "14:00:01.234"))[0]
	record.Timestamp = now.Now()
	n.Produce(record)
	c.Do("FLUSH")
	processed := time.Date(2024, 1, 1, 14, 0, 3, 789_000_000, time.UTC)
	now.stopped.Store(&processed)
	if lag, ok := n.Metric("leat_event_time_lag_seconds", "w"); !ok || lag < 2.5549 || lag > 2.5551 {
		t.Errorf("leat_event_time_lag_seconds is %v (there: %t), not 2.555", lag, ok)
	}
	now.stopped.Store(nil)
}

// T6: one topic, two sources with watermarks of 1 s and of 1 min: the first is earlier with more late rows; with correction both end equal.
func TestT6TwoDelays(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{Workers: 2})
	c := n.Connect()
	for name, delay := range map[string]string{"fast": "1 second", "slow": "1 minute"} {
		c.Do(fmt.Sprintf(`CREATE SOURCE %s (id text, at timestamp, WATERMARK FOR at AS at - INTERVAL '%s') WITH (connector = 'kafka', topic = 'events') FORMAT PLAIN ENCODE JSON`, name, delay))
		q := fmt.Sprintf("AS SELECT window_start, count(*) AS n FROM TUMBLE(%s, at, INTERVAL '10 seconds') GROUP BY window_start, window_end", name)
		c.Do("CREATE MATERIALIZED VIEW "+name+"_closed "+q+" EMIT ON WINDOW CLOSE",
			"CREATE MATERIALIZED VIEW "+name+"_corrected WITH (late = 'correct', allowed_lateness = '1 hour') "+q)
	}
	var records []string
	for s := range 60 { // each second's event, and before it one that is up to 40 seconds old
		records = append(records, at("e", fmt.Sprintf("10:00:%02d", s)), at("old", fmt.Sprintf("10:00:%02d", max(s-s*7%41, 0))))
	}
	n.Produce(nodetest.Lines("events", records...)...)
	c.Do("FLUSH")
	late := func(view string) float64 {
		v, _ := n.Metric("leat_rows_late_total", view)
		return v
	}
	if late("fast_closed") == 0 || late("slow_closed") != 0 {
		t.Errorf("late: %v with 1 second, %v with 1 minute", late("fast_closed"), late("slow_closed"))
	}
	want(t, "closed so far", append(c.Query("SELECT count(*) FROM fast_closed"), c.Query("SELECT count(*) FROM slow_closed")...), "5", "0")
	fast, slow := c.Query("SELECT * FROM fast_corrected ORDER BY 1"), c.Query("SELECT * FROM slow_corrected ORDER BY 1")
	want(t, "corrected", fast, slow...)
	want(t, "all rows", c.Query("SELECT sum(n) FROM fast_corrected"), "120")
}

// T7: two inputs into one operator, one slow: its watermark is the smaller one; what it gives holds exactly what came before.
func TestT7SlowInput(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{Workers: 2})
	c := n.Connect()
	source(c, "quick", "0 seconds")
	source(c, "slow", "0 seconds")
	c.Do(`CREATE MATERIALIZED VIEW w AS SELECT window_start, count(*) AS n, min(id) AS one, max(id) AS other FROM TUMBLE((SELECT id, at FROM quick UNION ALL SELECT id, at FROM slow), at, INTERVAL '1 minute') GROUP BY window_start, window_end EMIT ON WINDOW CLOSE`)
	n.Produce(nodetest.Lines("quick", event("q0", 0), event("q1", 1), event("q5", 5))...)
	n.Produce(nodetest.Lines("slow", event("s0", 0.5))...)
	c.Do("FLUSH")
	want(t, "the slow one is at 0:30", c.Query("SELECT * FROM w"))
	if mark, _ := n.Metric("leat_watermark_seconds", "w"); mark != float64(zero.Unix()+30) {
		t.Errorf("watermark %v, not that of the slow input, %d", mark, zero.Unix()+30)
	}
	n.Produce(nodetest.Lines("slow", event("s0b", 0.9), event("s1", 1))...)
	c.Do("FLUSH")
	want(t, "the slow one is at 1:00", c.Query("SELECT * FROM w"), "2024-01-01 00:00:00|3|q0|s0b")
	n.Produce(nodetest.Lines("slow", event("s9", 9))...)
	c.Do("FLUSH")
	want(t, "the quick one is at 5:00", c.Query("SELECT * FROM w ORDER BY 1"), "2024-01-01 00:00:00|3|q0|s0b", "2024-01-01 00:01:00|2|q1|s1")
}

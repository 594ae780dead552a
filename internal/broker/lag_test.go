package broker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/leat-io/leat/internal/testlog"
)

func TestLagIsMeasured(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what                  string
		committed, start, end int64
		records, spare, lost  int64
	}{
		{"in the middle", 40, 10, 100, 60, 30, 0},
		{"at the end", 100, 10, 100, 0, 90, 0},
		{"at the start", 10, 10, 100, 90, 0, 0},
		{"before the start", 4, 10, 100, 90, 0, 6},
		{"behind the end, after records were lost", 120, 10, 100, 0, 110, 0},
		{"all deleted unread", 4, 100, 100, 0, 0, 96},
		{"empty", 0, 0, 0, 0, 0, 0},
	} {
		var l Lag
		l.measure(c.committed, c.start, c.end)
		if l.Records != c.records || l.Spare != c.spare || l.Lost != c.lost {
			t.Errorf("%s: got %+v, want %+v", c.what, l, c)
		}
	}
	var l Lag
	l.setAge(-time.Second, -1)
	if l.Age != 0 || !l.AgeKnown || l.LeftKnown {
		t.Errorf("a record from the future, kept for ever: %+v", l)
	}
	if l.setAge(time.Hour, 3*time.Hour); l.Left != 2*time.Hour || !l.LeftKnown {
		t.Errorf("kept for 3 hours, an hour old: %+v", l)
	}
}

// An alert is raised once when a threshold is crossed, and ends once when the group is well within it again.
func TestAlertsAreRaisedOncePerCrossing(t *testing.T) {
	t.Parallel()
	limits := LagAlerts{Records: 100, Age: time.Minute, Deletion: time.Hour}
	lag := func(partition int32, records, lost int64, age, retention time.Duration) Lag {
		l := Lag{Group: "g", Topic: "t", Partition: partition, Records: records, Lost: lost}
		l.setAge(age, retention)
		return l
	}
	const week = 7 * 24 * time.Hour
	var a alerts
	for i, step := range []struct {
		lags []Lag
		want string // kind, + or -, number of partitions, worst partition
	}{
		{[]Lag{lag(0, 99, 0, time.Second, week), lag(1, 50, 0, 0, week)}, ""},
		{[]Lag{lag(0, 100, 0, time.Second, week), lag(1, 150, 0, 0, week)}, "lag_records+2/1"},
		{[]Lag{lag(0, 500, 0, time.Second, week), lag(1, 10, 0, 0, week)}, ""},
		{[]Lag{lag(0, 81, 0, time.Second, week)}, ""}, // not calm yet
		{[]Lag{lag(0, 79, 0, time.Second, week)}, "lag_records-"},
		{[]Lag{lag(0, 90, 0, time.Second, week)}, ""}, // not raised again below the threshold
		{[]Lag{lag(0, 1, 0, 2*time.Minute, week)}, "lag_seconds+1/0"},
		{[]Lag{lag(0, 1, 0, week-time.Minute, week)}, "deletion+1/0"},
		{[]Lag{lag(0, 1, 0, week+time.Minute, week)}, ""},
		{[]Lag{lag(0, 1, 7, time.Second, week), lag(1, 1, 9, time.Second, week)}, "lag_seconds- deletion- lost+2/1"},
		{[]Lag{lag(0, 1, 0, 0, week)}, "lost-"},
		// A topic that keeps its records for ten minutes only: an hour is not the threshold, a minute is.
		{[]Lag{lag(0, 1, 0, 30*time.Second, 10*time.Minute)}, ""},
		{[]Lag{lag(0, 1, 0, 9*time.Minute+time.Second, 10*time.Minute)}, "lag_seconds+1/0 deletion+1/0"},
		{nil, "lag_seconds- deletion-"},
	} {
		var got []string
		for _, c := range a.judge(step.lags, limits) {
			s := alertNames[c.kind] + "-"
			if c.raised {
				s = fmt.Sprintf("%s+%d/%d", alertNames[c.kind], c.partitions, c.worst.Partition)
			}
			got = append(got, s)
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
	if want := [alertKinds]int64{1, 2, 2, 1}; a.total != want {
		t.Errorf("raised %v times, want %v", a.total, want)
	}
	if got := (&alerts{}).judge([]Lag{lag(0, 1<<40, 0, week, week)}, LagAlerts{}); len(got) != 0 {
		t.Errorf("without thresholds: %+v", got)
	}
}

// gathered are metrics, by name and label values.
func gathered(t testing.TB, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			out[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// A group that reads slowly: its lag, the distance to deletion, the warning before, and the loss after.
func TestAGroupFallsBehind(t *testing.T) {
	t.Parallel()
	logged, registry := &testlog.Text{}, prometheus.NewRegistry()
	s := newSteppedWith(t, func(o *Options) {
		o.Logger, o.Metrics = slog.New(slog.NewTextHandler(logged, nil)), registry
		o.LagAlerts, o.RetentionInterval = LagAlerts{Deletion: time.Hour}, 1000*time.Hour
	})
	p := s.topicWith("orders", 1, map[string]string{"retention.ms": "36000000", "segment.ms": "3600000"}).Partition(0)
	for range 12 { // a record an hour, ten of which are kept
		produceOne(s, p)
		s.ck.Advance(time.Hour)
	}
	commit := func(offset int64) {
		s.pump(func() {
			code, err := s.b.Groups().Commit(context.Background(), "slow", Committer{Generation: -1}, []Offset{{Topic: "orders", Offset: offset, LeaderEpoch: -1}})
			if err != nil || code != group.OK {
				t.Errorf("commit: %v, %v", code, err)
			}
		})
	}
	show := func(want ...string) {
		t.Helper()
		s.ck.Advance(lagFreshness)
		s.b.watchLags()
		got := gathered(t, registry)
		for _, w := range want {
			name, value, _ := strings.Cut(w, "=")
			if have, ok := got[name]; fmt.Sprint(have) != value || !ok && value != "0" {
				t.Errorf("%s is %v, want %s", name, have, value)
			}
		}
	}
	commit(4)
	show("leat_group_lag_records slow 0 orders=8", "leat_group_deletion_records slow 0 orders=4", "leat_group_lag_seconds slow 0 orders=28801",
		"leat_group_deletion_seconds slow 0 orders=7199", "leat_group_topic_lag_records slow orders=8", "leat_group_alerts_total deletion=0")
	if logged.Count("group") > 0 {
		t.Errorf("too early: %s", logged)
	}
	s.ck.Advance(time.Hour)
	show("leat_group_alerts_total deletion=1", "leat_group_alert deletion slow orders=1")
	show("leat_group_alerts_total deletion=1")
	logged.Await(t, "retention will soon delete what a group has not read")
	s.ck.Advance(4 * time.Hour)
	s.pump(func() {
		if _, err := s.b.PrepareCheckpoint(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s.b.ApplyRetention()
	start, err := p.StartOffset()
	if err != nil || start <= 4 {
		t.Fatalf("the log starts at %d, %v", start, err)
	}
	show(fmt.Sprintf("leat_group_lost_records slow 0 orders=%d", start-4), fmt.Sprintf("leat_group_lag_records slow 0 orders=%d", 12-start), "leat_group_alerts_total lost=1")
	logged.Await(t, "records were deleted before a group had read them")
	commit(12)
	show("leat_group_lag_records slow 0 orders=0", "leat_group_lost_records slow 0 orders=0", "leat_group_alert lost slow orders=0")
	logged.Await(t, "alert=lost group=slow")
	if n := logged.Count("retention will soon delete"); n != 1 {
		t.Errorf("said %d times:\n%s", n, logged)
	}
}

func produceOne(s *stepped, p *Partition) {
	items := []ProduceItem{{P: p, Batch: s.batch("x")}}
	s.b.Produce(items)
	s.must(items[0].Err)
	s.settle()
}

// What there is a lot of has no metrics of its own, but is in the sums.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s := newSteppedWith(t, func(o *Options) { o.Metrics, o.MetricPartitions = registry, 10 })
	s.topic("wide", 50)
	for i := range 20 {
		s.topic(fmt.Sprintf("t%d", i), 1)
	}
	var offsets []Offset
	for p := range int32(50) {
		offsets = append(offsets, Offset{Topic: "wide", Partition: p, LeaderEpoch: -1})
	}
	s.pump(func() {
		if _, err := s.b.Groups().Commit(context.Background(), "g\xff", Committer{Generation: -1}, offsets); err != nil {
			t.Error(err)
		}
	})
	got := gathered(t, registry)
	count := func(prefix string) (n int) {
		for k := range got {
			if strings.HasPrefix(k, prefix+" ") {
				n++
			}
		}
		return n
	}
	if n := count("leat_group_lag_records"); n != 10 {
		t.Errorf("%d partitions of groups, want 10", n)
	}
	if n := count("leat_topic_bytes"); n != 10 {
		t.Errorf("%d topics, want 10", n)
	}
	if got["leat_metrics_left_out group partitions"] != 40 || got["leat_metrics_left_out topics"] != 11 || got["leat_log_partitions"] != 70 {
		t.Errorf("left out: %v", got)
	}
	if _, ok := got[`leat_group_topic_lag_records "g\xff" wide`]; !ok {
		t.Errorf("no sum of the group whose name is no text: %v", slices.Collect(func(yield func(string) bool) {
			for k := range got {
				if strings.HasPrefix(k, "leat_group") && !yield(k) {
					return
				}
			}
		}))
	}
}

// A scrape of a node with 10,000 partitions, all read by a group that is behind in each.
func BenchmarkScrape10000Partitions(b *testing.B) {
	registry := prometheus.NewRegistry()
	s := newSteppedWith(b, func(o *Options) { o.Metrics = registry })
	t := s.topic("wide", 10_000)
	for some := range slices.Chunk(t.Partitions(), 500) {
		var items []ProduceItem
		var offsets []Offset
		for _, p := range some {
			items = append(items, ProduceItem{P: p, Batch: s.batch("x")})
			offsets = append(offsets, Offset{Topic: "wide", Partition: p.Index, LeaderEpoch: -1})
		}
		s.b.Produce(items)
		s.pump(func() {
			if _, err := s.b.Groups().Commit(context.Background(), "g", Committer{Generation: -1}, offsets); err != nil {
				b.Error(err)
			}
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		s.ck.Advance(lagFreshness)
		families, err := registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range families {
			fmt.Fprint(io.Discard, f.GetName(), len(f.GetMetric()))
		}
	}
}

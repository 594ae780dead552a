package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions = 3
	window     = 10_000 // milliseconds
	delay      = 5_000  // milliseconds
	startMs    = 1_750_000_000_000
)

// click is one record; all of it follows from its id.
type click struct {
	ID int    `json:"id"`
	K  string `json:"k"`
	V  int64  `json:"v"`
	At string `json:"at"`
}

func clickOf(id int) click {
	h := rand.New(rand.NewPCG(uint64(id), 7))
	at := int64(startMs + id*20 - h.IntN(delay-2_000)) // out of order, but within the delay
	if h.IntN(200) == 0 {
		at -= 3 * delay // behind the watermark
	}
	return click{ID: id, K: "k" + strconv.Itoa(h.IntN(5)), V: int64(h.IntN(1_000)), At: timestamp(at)}
}

func timestamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000") }

func (c click) ms(t testing.TB) int64 {
	at, err := time.Parse("2006-01-02T15:04:05.000", c.At)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

// group and total are a row of the result.
type group struct {
	K     string
	Start int64 // milliseconds
}

type total struct{ N, Sum int64 }

// TestWindowsThroughKills produces records with one client, which lives through all kills of the server, while a view and a sink count them
// by key and window, and compares both with what the topic holds in the end.
func TestWindowsThroughKills(t *testing.T) {
	t.Parallel()
	seed := seed(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Minute)
	defer cancel()
	s := newServer(t, "--workers", "2")
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(s.kafka), kgo.DefaultProduceTopic("clicks"), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }), kgo.ProducerBatchMaxBytes(16<<10),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(4_000), kgo.RecordRetries(math.MaxInt32), kgo.UnknownTopicRetries(-1),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, nil, "clicks"); err != nil {
		t.Fatal(err)
	}
	const query = `SELECT k, window_start, count(*) AS n, sum(v) AS total FROM TUMBLE(clicks, at, INTERVAL '10 seconds') GROUP BY k, window_start, window_end`
	s.must(
		`CREATE SOURCE clicks (id bigint, k text, v bigint, at timestamp, WATERMARK FOR at AS at - INTERVAL '5 seconds')
			WITH (connector = 'kafka', topic = 'clicks') FORMAT PLAIN ENCODE JSON`,
		`CREATE MATERIALIZED VIEW per_window AS `+query,
		`CREATE SINK closed AS `+query+` EMIT ON WINDOW CLOSE WITH (connector = 'kafka', topic = 'closed') FORMAT PLAIN ENCODE JSON`,
	)

	p := &producing{t: t, cl: cl, acked: map[int]place{}}
	work, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	others.Go(func() { watchCount(t, work, s) })
	others.Go(func() { watchEnds(t, work, s, "clicks", "closed") })
	followed := followSink(t, work, s, &others)

	k := &killer{s: s, rng: rand.New(rand.NewPCG(seed, 1))}
	for round := 0; k.killed < *killsFlag; round++ {
		quota := max((*recordsFlag-p.next)/(*killsFlag-k.killed), 1)
		from := p.count()
		p.send(ctx, quota)
		enough := from + k.rng.IntN(quota)
		k.round(t, ctx, func() bool { return p.count() >= enough })
	}
	p.send(ctx, max(*recordsFlag-p.next, 1))
	p.finish(ctx)
	stop()
	others.Wait()
	t.Logf("%d kills, %d of them while starting; %d records acknowledged", k.killed, k.during, p.count())
	if t.Failed() {
		return
	}

	want, wantClosed, late := p.oracle(readTopic(t, ctx, s, "clicks"))
	s.must("FLUSH")
	if diff := cmp.Diff(want, readView(t, ctx, s)); diff != "" {
		t.Errorf("seed %d: the view differs (-want +got):\n%s", seed, clip(diff))
	}
	sink := readTopic(t, ctx, s, "closed")
	if diff := cmp.Diff(wantClosed, closedWindows(t, sink)); diff != "" {
		t.Errorf("seed %d: the sink's topic differs (-want +got):\n%s", seed, clip(diff))
	}
	for i, r := range followed() {
		if i >= len(sink) || string(r.Value) != string(sink[i].Value) || r.Offset != sink[i].Offset {
			t.Fatalf("seed %d: record %d of the sink's topic was %q at offset %d when it was consumed during the kills; now it is another", seed, i, r.Value, r.Offset)
		}
	}
	if late == 0 && *recordsFlag > 1_000 {
		t.Error("no row is late: the test shows less than it should")
	}
	for _, relation := range []string{"per_window", "closed"} {
		if got := lateRows(t, s, relation); got != late {
			t.Errorf("seed %d: %s has counted %d late rows, not %d", seed, relation, got, late)
		}
	}
}

// producing is a client that produces each id until it is acknowledged.
type producing struct {
	t    testing.TB
	cl   *kgo.Client
	next int

	n     atomic.Int64
	mu    sync.Mutex
	acked map[int]place
}

type place struct {
	partition int32
	offset    int64
}

func (p *producing) count() int { return int(p.n.Load()) }

// send hands n more records to the client; it does not wait for their acknowledgement.
func (p *producing) send(ctx context.Context, n int) {
	for range n {
		c := clickOf(p.next)
		p.produce(ctx, c, int32(c.ID%partitions))
		p.next++
	}
}

func (p *producing) produce(ctx context.Context, c click, partition int32) {
	value, err := json.Marshal(c)
	if err != nil {
		p.t.Fatal(err)
	}
	p.cl.Produce(ctx, &kgo.Record{Value: value, Partition: partition}, func(r *kgo.Record, err error) {
		if err != nil {
			p.t.Errorf("record %d was given up: %v", c.ID, err)
			return
		}
		p.mu.Lock()
		p.acked[c.ID] = place{r.Partition, r.Offset}
		p.mu.Unlock()
		p.n.Add(1)
	})
}

// finish moves event time so far that all windows of what was sent are closed, and waits until all is acknowledged.
func (p *producing) finish(ctx context.Context) {
	for i := range int32(partitions) {
		p.produce(ctx, click{ID: p.next, K: "end", V: 1, At: timestamp(startMs + int64(p.next)*20 + 60_000)}, i)
		p.next++
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := p.cl.Flush(wait); err != nil {
		p.t.Fatalf("%d of %d records are acknowledged: %v", p.count(), p.next, err)
	}
}

// oracle checks that the topic holds each record once, where it was acknowledged and in the order of the producer, and returns what the
// view and the sink must hold, and how many rows are late.
func (p *producing) oracle(records []*kgo.Record) (view, closed map[group]total, late int64) {
	p.t.Helper()
	view, closed = map[group]total{}, map[group]total{}
	seen := map[int]bool{}
	last := [partitions]int{-1, -1, -1}
	marks := [partitions]int64{math.MinInt64, math.MinInt64, math.MinInt64}
	for _, r := range records {
		var c click
		if err := json.Unmarshal(r.Value, &c); err != nil {
			p.t.Fatalf("record at %d-%d: %v", r.Partition, r.Offset, err)
		}
		at, ok := p.acked[c.ID]
		switch {
		case seen[c.ID]:
			p.t.Fatalf("record %d is there twice, the second time at %d-%d", c.ID, r.Partition, r.Offset)
		case !ok || at != place{r.Partition, r.Offset}:
			p.t.Fatalf("record %d was acknowledged at %v (%v), and is at %d-%d", c.ID, at, ok, r.Partition, r.Offset)
		case c.ID < last[r.Partition]:
			p.t.Fatalf("record %d of partition %d stands behind record %d", c.ID, r.Partition, last[r.Partition])
		}
		seen[c.ID], last[r.Partition] = true, c.ID
		ms := c.ms(p.t)
		start := ms - ms%window
		marks[r.Partition] = max(marks[r.Partition], ms-delay)
		if start+window <= marks[r.Partition] {
			late++
			continue
		}
		w := view[group{c.K, start}]
		view[group{c.K, start}] = total{w.N + 1, w.Sum + c.V}
	}
	for id := range p.acked {
		if !seen[id] {
			p.t.Fatalf("record %d was acknowledged and is missing", id)
		}
	}
	mark := slices.Min(marks[:])
	for g, w := range view {
		if g.Start+window <= mark {
			closed[g] = w
		}
	}
	return view, closed, late
}

// readTopic reads a topic from its beginning to its end, a partition after the other, and checks that offsets have no gap.
func readTopic(t testing.TB, ctx context.Context, s *server, topic string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.kafka), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	ends.Each(func(o kadm.ListedOffset) { want += o.Offset })
	by := map[int32][]*kgo.Record{}
	for n := int64(0); n < want; {
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			t.Fatalf("read %d of %d records of %s: %v", n, want, topic, err)
		}
		for _, r := range fs.Records() {
			if r.Offset != int64(len(by[r.Partition])) {
				t.Fatalf("%s-%d: offset %d comes where %d should", topic, r.Partition, r.Offset, len(by[r.Partition]))
			}
			by[r.Partition] = append(by[r.Partition], r)
			n++
		}
	}
	var out []*kgo.Record
	for _, p := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[p]...)
	}
	return out
}

func readView(t testing.TB, ctx context.Context, s *server) map[group]total {
	t.Helper()
	conn, err := s.sql(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT k, window_start, n, total::bigint FROM per_window")
	if err != nil {
		t.Fatal(err)
	}
	got := map[group]total{}
	for rows.Next() {
		var g group
		var w total
		var at time.Time
		if err := rows.Scan(&g.K, &at, &w.N, &w.Sum); err != nil {
			t.Fatal(err)
		}
		g.Start = at.UnixMilli()
		if _, dup := got[g]; dup {
			t.Errorf("the view has two rows of %v", g)
		}
		got[g] = w
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

// closedWindows decodes the sink's records; each window may be there once.
func closedWindows(t testing.TB, records []*kgo.Record) map[group]total {
	t.Helper()
	got := map[group]total{}
	for _, r := range records {
		var row struct {
			K     string      `json:"k"`
			Start string      `json:"window_start"`
			N     int64       `json:"n"`
			Total json.Number `json:"total"`
		}
		if err := json.Unmarshal(r.Value, &row); err != nil {
			t.Fatalf("the sink wrote %q: %v", r.Value, err)
		}
		at, err := time.Parse("2006-01-02T15:04:05", strings.Replace(row.Start, " ", "T", 1))
		if err != nil {
			t.Fatalf("the sink wrote %q: %v", r.Value, err)
		}
		sum, err := row.Total.Int64()
		if err != nil {
			t.Fatalf("the sink wrote %q: %v", r.Value, err)
		}
		g := group{row.K, at.UnixMilli()}
		if _, dup := got[g]; dup {
			t.Errorf("the sink wrote window %v twice; the second is %q at offset %d", g, r.Value, r.Offset)
		}
		got[g] = total{row.N, sum}
	}
	return got
}

// watchCount reads the view all the time: what it has counted never gets less, for the records are only ever added to.
func watchCount(t testing.TB, ctx context.Context, s *server) {
	last := int64(0)
	reads, ok := readAllTheTime(t, ctx, s, 10*time.Millisecond, func(conn *pgx.Conn) (bool, error) {
		var n int64
		if err := conn.QueryRow(ctx, "SELECT coalesce(sum(n), 0)::bigint FROM per_window").Scan(&n); err != nil {
			return false, fmt.Errorf("the view: %w", err)
		}
		if n < last {
			t.Errorf("the view showed %d records, and now %d", last, n)
		}
		last = n
		return true, nil
	})
	if ok {
		t.Logf("the view was read %d times", reads)
	}
}

// watchEnds asks for the ends of topics all the time: they never go back.
func watchEnds(t testing.TB, ctx context.Context, s *server, topics ...string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.kafka), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
	if err != nil {
		t.Error(err)
		return
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	last := map[string]int64{}
	for ; ctx.Err() == nil; pause(ctx, 20*time.Millisecond) {
		ends, err := adm.ListEndOffsets(ctx, topics...)
		if err != nil {
			continue
		}
		ends.Each(func(o kadm.ListedOffset) {
			key := fmt.Sprint(o.Topic, "-", o.Partition)
			if o.Err != nil {
				return
			}
			if o.Offset < last[key] {
				t.Errorf("the end of %s was %d, and is %d now", key, last[key], o.Offset)
			}
			last[key] = max(last[key], o.Offset)
		})
	}
}

// followSink consumes the sink's topic through all kills. What it returns gives what was consumed, once the others are done.
func followSink(t testing.TB, ctx context.Context, s *server, others *sync.WaitGroup) func() []*kgo.Record {
	var got []*kgo.Record
	others.Go(func() {
		cl, err := kgo.NewClient(kgo.SeedBrokers(s.kafka), kgo.ConsumeTopics("closed"), kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
		if err != nil {
			t.Error(err)
			return
		}
		defer cl.Close()
		for ctx.Err() == nil {
			for _, r := range cl.PollFetches(ctx).Records() {
				if r.Offset != int64(len(got)) {
					t.Errorf("a consumer of the sink's topic got offset %d behind %d", r.Offset, len(got)-1)
					return
				}
				got = append(got, r)
			}
		}
	})
	return func() []*kgo.Record { return got }
}

// lateRows is what a relation has counted, as the metrics say.
func lateRows(t testing.TB, s *server, relation string) int64 {
	t.Helper()
	res, err := http.Get("http://" + s.http + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	name := `leat_rows_late_total{relation="` + relation + `"} `
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return int64(n)
		}
	}
	t.Fatalf("/metrics has no %s", name)
	return 0
}

func clip(s string) string {
	if len(s) > 4_000 {
		return s[:4_000] + " ..."
	}
	return s
}

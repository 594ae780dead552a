package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
)

// LatencyOptions are those of Latency.
type LatencyOptions struct {
	Options
	Rate int           // events a second
	For  time.Duration // how long
}

// LatencyResult is what Latency gave. Visible is the time from an event's acknowledgement at the client that produced it until another client has
// the answer of a SELECT that contains it.
type LatencyResult struct {
	Events          int     `json:"events"`
	EventsPerSecond float64 `json:"events_per_second"`
	AckP50          float64 `json:"acknowledged_p50_ms"`
	AckP99          float64 `json:"acknowledged_p99_ms"`
	VisibleP50      float64 `json:"visible_p50_ms"`
	VisibleP99      float64 `json:"visible_p99_ms"`
	VisibleMax      float64 `json:"visible_max_ms"`
	SelectP50       float64 `json:"select_p50_ms"`
	Selects         int     `json:"selects"`
	EpochP50        float64 `json:"epoch_p50_ms"`
	EpochP99        float64 `json:"epoch_p99_ms"`
	DeviceP50       float64 `json:"device_sync_p50_ms"`
	DeviceP99       float64 `json:"device_sync_p99_ms"`
	CPUSeconds      float64 `json:"cpu_seconds"` // of everything, clients included
	Seconds         float64 `json:"seconds"`
}

// Latency produces JSON events at a rate from a Kafka client with acks=all, and asks a view over them through the PostgreSQL door as fast as it
// answers.
func Latency(ctx context.Context, o LatencyOptions) (r *LatencyResult, err error) {
	if o.Rate < 1 || o.For <= 0 {
		return nil, errors.New("the rate and the time must be positive")
	}
	clean, err := o.prepare()
	if err != nil {
		return nil, err
	}
	defer clean()
	r = &LatencyResult{}
	d, err := openDevice(o.Dir, 16<<20)
	if err != nil {
		return nil, err
	}
	own, err := d.syncs(200, 4096)
	d.close()
	if err != nil {
		return nil, err
	}
	r.DeviceP50, r.DeviceP99 = milliseconds(own.p50), milliseconds(own.p99)
	n, epochs, err := startServer(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	reader, err := postgresClient(ctx, n)
	if err != nil {
		return nil, err
	}
	defer reader.Close(context.WithoutCancel(ctx))
	for _, sql := range []string{
		`CREATE SOURCE events (id bigint, kind varchar, amount bigint) WITH (connector='kafka', topic='events', scan.startup.mode='earliest') FORMAT PLAIN ENCODE JSON`,
		`CREATE MATERIALIZED VIEW totals AS SELECT kind, count(*) AS n, max(id) AS last, sum(amount) AS amount FROM events GROUP BY kind`,
	} {
		if _, err := reader.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("%w in: %s", err, sql)
		}
	}
	client, err := kafkaClient(n)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	// The first record makes connections and the topic; it is not measured.
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "events", Value: []byte(`{"id":0,"kind":"all","amount":1}`)}).FirstErr(); err != nil {
		return nil, err
	}
	total := int(o.For.Seconds() * float64(o.Rate))
	run := &latencyRun{acked: make([]time.Time, total+1), sent: make([]time.Time, total+1)}
	epochs.take()
	start := used()
	var wg sync.WaitGroup
	var produced error
	wg.Go(func() { produced = run.produce(ctx, client, o.Rate, total) })
	visible, selects, asked := run.poll(ctx, total, func(ctx context.Context) (last, count int64, err error) {
		err = reader.QueryRow(ctx, "SELECT last, n FROM totals WHERE kind = $1", "all").Scan(&last, &count)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, 1, nil // not even the first record is visible yet
		}
		return last, count, err
	})
	wg.Wait()
	if err := errors.Join(produced, asked, ctx.Err()); err != nil {
		return nil, err
	}
	wall, cpu := start.since()
	var seen, acks []time.Duration
	for id := 1; id <= total; id++ {
		seen = append(seen, max(visible[id].Sub(run.acked[id]), 0))
		acks = append(acks, run.acked[id].Sub(run.sent[id]))
	}
	v, a, s := spreadOf(seen), spreadOf(acks), spreadOf(selects)
	_, ep, _ := epochs.take()
	r.Events, r.EventsPerSecond, r.Seconds, r.CPUSeconds = total, round(float64(total)/wall, 1), round(wall, 3), round(cpu, 3)
	r.AckP50, r.AckP99 = milliseconds(a.p50), milliseconds(a.p99)
	r.VisibleP50, r.VisibleP99, r.VisibleMax = milliseconds(v.p50), milliseconds(v.p99), milliseconds(v.longest)
	r.SelectP50, r.Selects = milliseconds(s.p50), len(selects)
	r.EpochP50, r.EpochP99 = milliseconds(ep.p50), milliseconds(ep.p99)
	return r, nil
}

// latencyRun notes when each event was sent and acknowledged, by its id from 1.
type latencyRun struct {
	sent, acked []time.Time
	mu          sync.Mutex // of acked
	failed      error
}

func (run *latencyRun) produce(ctx context.Context, client *kgo.Client, rate, total int) error {
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for id := 1; id <= total; id++ {
		due := start.Add(time.Duration(id) * time.Second / time.Duration(rate))
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		value := append(strconv.AppendInt([]byte(`{"id":`), int64(id), 10), `,"kind":"all","amount":1}`...)
		run.sent[id] = time.Now()
		client.Produce(ctx, &kgo.Record{Topic: "events", Value: value}, func(_ *kgo.Record, err error) {
			now := time.Now()
			run.mu.Lock()
			run.acked[id] = now
			run.failed = errors.Join(run.failed, err)
			run.mu.Unlock()
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return run.failed
}

// poll asks until all events are visible. It returns when each was first seen, and how long the questions took.
func (run *latencyRun) poll(ctx context.Context, total int, ask func(context.Context) (last, count int64, err error)) ([]time.Time, []time.Duration, error) {
	visible := make([]time.Time, total+1)
	var took []time.Duration
	seen := int64(0)
	progress := time.Now()
	for seen < int64(total) {
		start := time.Now()
		last, count, err := ask(ctx)
		now := time.Now()
		if err != nil {
			return visible, took, err
		}
		if count != last+1 { // each id from 0 on once
			return visible, took, fmt.Errorf("the view counts %d events up to id %d", count, last)
		}
		took = append(took, now.Sub(start))
		if last == seen && now.Sub(progress) > 30*time.Second {
			return visible, took, fmt.Errorf("nothing new has become visible for 30 s behind event %d of %d", seen, total)
		}
		if last > seen {
			progress = now
		}
		for ; seen < last; seen++ {
			visible[seen+1] = now
		}
	}
	return visible, took, nil
}

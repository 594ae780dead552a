package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"
)

// MixedOptions are those of Mixed.
type MixedOptions struct {
	Options
	Query   string
	Records int // produced one by one, before and during the query
}

// MixedResult is what Mixed gave.
type MixedResult struct {
	Query              string  `json:"query"`
	Records            int     `json:"records"`
	IdleP50            float64 `json:"produce_idle_p50_ms"`
	IdleP99            float64 `json:"produce_idle_p99_ms"`
	BusyP50            float64 `json:"produce_busy_p50_ms"`
	BusyP99            float64 `json:"produce_busy_p99_ms"`
	BusyMax            float64 `json:"produce_busy_max_ms"`
	DeviceP50          float64 `json:"device_sync_p50_ms"`
	DeviceP99          float64 `json:"device_sync_p99_ms"`
	BusyToDevice       float64 `json:"busy_p99_to_device_p99"`
	EventsPerSecond    int64   `json:"events_per_second"`
	EventsPerCPUSecond int64   `json:"events_per_cpu_second"`
	Workers            int     `json:"workers"`
}

// Mixed measures single durable produces while all workers are saturated by a query.
func Mixed(ctx context.Context, o MixedOptions) (r *MixedResult, err error) {
	text, err := queryText(o.Query)
	if err != nil {
		return nil, err
	}
	if o.Records < 1 {
		return nil, errors.New("there must be records to produce")
	}
	clean, err := o.prepare()
	if err != nil {
		return nil, err
	}
	defer clean()
	r = &MixedResult{Query: o.Query, Records: o.Records, Workers: o.Workers}
	d, err := openDevice(o.Dir, 16<<20)
	if err != nil {
		return nil, err
	}
	own, err := d.syncs(o.Records, 4096)
	d.close()
	if err != nil {
		return nil, err
	}
	n, _, err := startServer(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	client, err := kafkaClient(n)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	conn, err := postgresClient(ctx, n)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	nexmark := NexmarkOptions{Events: 1 << 50}
	if err := nexmark.check(); err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, bidSource(&nexmark)); err != nil {
		return nil, err
	}
	if _, err := produceSingly(ctx, client, 10); err != nil { // connections and the topic
		return nil, err
	}
	idle, err := produceSingly(ctx, client, o.Records)
	if err != nil {
		return nil, err
	}
	// Closing the connection would not end the statement at once: it is cancelled as psql would.
	cancel := func() { _ = conn.PgConn().CancelRequest(context.WithoutCancel(ctx)) }
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, "CREATE SINK result AS "+text+" WITH (connector = 'checksum')") // does not end by itself
		ended <- err
	}()
	begun, err := waitForRows(ctx, n.Jobs.Status, 1)
	if err != nil {
		cancel()
		return nil, errors.Join(err, <-ended)
	}
	start := used()
	loaded, err := produceSingly(ctx, client, o.Records)
	wall, cpu := start.since()
	var read int64
	if err == nil {
		read, err = waitForRows(ctx, n.Jobs.Status, begun+1)
	}
	cancel()
	if e := <-ended; err == nil && !isCancelled(e) {
		err = e
	}
	if err != nil {
		return nil, err
	}
	i, b := spreadOf(idle), spreadOf(loaded)
	r.IdleP50, r.IdleP99 = milliseconds(i.p50), milliseconds(i.p99)
	r.BusyP50, r.BusyP99, r.BusyMax = milliseconds(b.p50), milliseconds(b.p99), milliseconds(b.longest)
	r.DeviceP50, r.DeviceP99 = milliseconds(own.p50), milliseconds(own.p99)
	r.BusyToDevice = round(float64(b.p99)/float64(max(own.p99, 1)), 2)
	events := float64(read-begun) * 50 / 46 // of all kinds
	r.EventsPerSecond, r.EventsPerCPUSecond = int64(events/wall), int64(events/cpu)
	return r, nil
}

// produceSingly produces records one after the other, each acknowledged before the next.
func produceSingly(ctx context.Context, client *kgo.Client, n int) ([]time.Duration, error) {
	value := make([]byte, 1000)
	took := make([]time.Duration, 0, n)
	for range n {
		start := time.Now()
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: "single", Value: value}).FirstErr(); err != nil {
			return nil, fmt.Errorf("producing: %w", err)
		}
		took = append(took, time.Since(start))
	}
	return took, nil
}

// isCancelled says that a statement ended as it was asked to.
func isCancelled(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "57014"
}

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// NexmarkOptions are those of Nexmark.
type NexmarkOptions struct {
	Options
	Query  string // one of Queries
	SQL    string // another query over bid instead
	Events int64
	Rate   int64 // events a second of event time; 0 is 10,000
	Seed   int64
	// FromTopics: the events are read as JSON from the topics of the embedded log, after they were written there, which is not measured.
	FromTopics bool
}

// NexmarkResult is what a run gave.
type NexmarkResult struct {
	Query              string  `json:"query"`
	Events             int64   `json:"events"`
	Seconds            float64 `json:"seconds"`
	RunSeconds         float64 `json:"run_seconds"` // of these: epochs were run; the rest went into waiting for their commits
	EventsPerSecond    int64   `json:"events_per_second"`
	CPUSeconds         float64 `json:"cpu_seconds"`
	EventsPerCPUSecond int64   `json:"events_per_cpu_second"`
	PeakRSSBytes       int64   `json:"peak_rss_bytes"`
	Epochs             int     `json:"epochs"`
	EpochP50           float64 `json:"epoch_p50_ms"`
	EpochP99           float64 `json:"epoch_p99_ms"`
	RowsOut            int64   `json:"rows_out"` // into the sink, retractions included
	Checksum           string  `json:"checksum"` // of the result as a set of rows, whatever the epochs were
	Workers            int     `json:"workers"`
	Source             string  `json:"source"`
}

func (o *NexmarkOptions) check() error {
	if o.Rate == 0 {
		o.Rate = 10_000
	}
	switch {
	case o.Events < 1:
		return fmt.Errorf("%d events: there must be some", o.Events)
	case o.Rate < 1 || o.Seed < 0:
		return errors.New("rate and seed cannot be negative")
	}
	return nil
}

// Nexmark runs one query over the events into a checksum sink, all of it durable epoch by epoch, to its end.
func Nexmark(ctx context.Context, o NexmarkOptions) (r *NexmarkResult, err error) {
	text := o.SQL
	if text == "" {
		if text, err = queryText(o.Query); err != nil {
			return nil, err
		}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	clean, err := o.prepare()
	if err != nil {
		return nil, err
	}
	defer clean()
	in, err := open(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	r = &NexmarkResult{Query: cmp.Or(o.SQL, o.Query), Events: o.Events, Workers: o.Workers, Source: "generator"}
	source := bidSource(&o)
	if o.FromTopics {
		r.Source, source = "topics", bidTopic
		if err := fillTopics(ctx, in.Core, &o); err != nil {
			return nil, err
		}
		if err := in.Checkpoint(ctx); err != nil { // what the events cost to write is not the query's
			return nil, err
		}
	}
	if err := in.exec(ctx, source); err != nil {
		return nil, err
	}
	in.epochs.take()
	start := used()
	if err := in.exec(ctx, "CREATE SINK result AS "+text+" WITH (connector = 'checksum')"); err != nil { // returns when all is read
		return nil, err
	}
	wall, cpu := start.since()
	s, err := in.status("result")
	if err != nil {
		return nil, err
	}
	if s.Counts.Failed+s.Counts.Dead+s.Counts.Late > 0 {
		return nil, fmt.Errorf("%d rows failed, %d records were bad, %d rows were late: there must be none", s.Counts.Failed, s.Counts.Dead, s.Counts.Late)
	}
	n, spread, run := in.epochs.take()
	r.Seconds, r.RunSeconds, r.CPUSeconds = round(wall, 3), round(run.Seconds(), 3), round(cpu, 3)
	r.EventsPerSecond, r.EventsPerCPUSecond = int64(float64(o.Events)/wall), int64(float64(o.Events)/cpu)
	r.Epochs, r.EpochP50, r.EpochP99 = n, milliseconds(spread.p50), milliseconds(spread.p99)
	r.RowsOut, r.Checksum, r.PeakRSSBytes = s.Counts.Out, fmt.Sprintf("%016x", s.Checksum), peakRSS()
	return r, nil
}

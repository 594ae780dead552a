package job

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/flow"
)

// metrics are the engine's; those of relations are read from Status when they are scraped.
type metrics struct {
	epochs      prometheus.Counter
	epoch       prometheus.Histogram
	epochRun    prometheus.Histogram
	recordsRead prometheus.Counter
}

func newMetrics() *metrics {
	buckets := prometheus.ExponentialBuckets(0.0005, 2, 14)
	return &metrics{
		epochs: prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_epochs_total", Help: "Epochs committed."}),
		epoch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leat_epoch_seconds", Help: "From the start of an epoch until it is durable.", Buckets: buckets,
		}),
		epochRun: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leat_epoch_run_seconds", Help: "What the workers took for an epoch.", Buckets: buckets,
		}),
		recordsRead: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "leat_records_read_total", Help: "Records that sources have read in committed epochs.",
		}),
	}
}

var (
	lateDesc = prometheus.NewDesc("leat_rows_late_total",
		"(row, window) pairs and rows behind the watermark, by the relation that counted them.", []string{"relation"}, nil)
	failedDesc = prometheus.NewDesc("leat_rows_failed_total",
		"Rows dropped from a relation because an expression failed on them.", []string{"relation"}, nil)
	deadDesc = prometheus.NewDesc("leat_records_dead_total",
		"Records that could not be decoded or had no usable event time, by their source.", []string{"relation"}, nil)
	unmatchedDesc = prometheus.NewDesc("leat_rows_unmatched_total",
		"Rows of a stream join that expired without a match.", []string{"relation"}, nil)
	watermarkDesc = prometheus.NewDesc("leat_watermark_seconds",
		"The watermark that a relation has reached, seconds since the Unix epoch.", []string{"relation"}, nil)
	lagDesc = prometheus.NewDesc("leat_event_time_lag_seconds",
		"How far a relation's watermark is behind the clock.", []string{"relation"}, nil)
	heldDesc = prometheus.NewDesc("leat_job_held_seconds",
		"How long the oldest open Kafka transaction has been open that keeps a source of the relation from being read to its end; 0: there is none.", []string{"relation"}, nil)
	outsideLagDesc = prometheus.NewDesc("leat_outside_lag_records",
		"How many records of clusters outside a relation has not read, or has not delivered.", []string{"relation"}, nil)
	outsideUpDesc = prometheus.NewDesc("leat_outside_up",
		"1 if the clusters outside that a relation reads or delivers to can be used, 0 if not.", []string{"relation"}, nil)
	runningDesc = prometheus.NewDesc("leat_job_running", "1 if the job runs, 0 if it has stopped.", []string{"relation"}, nil)
)

// Describe implements prometheus.Collector.
func (m *Manager) Describe(ch chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(m, ch)
	ch <- outsideLagDesc // only where there is something outside
	ch <- outsideUpDesc
}

// Collect implements prometheus.Collector.
func (m *Manager) Collect(ch chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{m.metrics.epochs, m.metrics.epoch, m.metrics.epochRun, m.metrics.recordsRead} {
		c.Collect(ch)
	}
	for _, r := range m.Catalog().Relations() {
		if r.Kind == catalog.Source {
			ch <- prometheus.MustNewConstMetric(deadDesc, prometheus.CounterValue, float64(m.sources.total(r.ID).Dead), r.QualifiedName())
		}
	}
	now := float64(m.o.Clock.Now().UnixMicro())
	for _, s := range m.Status() {
		name := s.Relation.QualifiedName()
		count := func(d *prometheus.Desc, n int64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), name)
		}
		gauge := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
		}
		count(lateDesc, s.Counts.Late)
		count(failedDesc, s.Counts.Failed)
		count(unmatchedDesc, s.Counts.Unmatched)
		running := 1.0
		if s.Err != nil {
			running = 0
		}
		gauge(runningDesc, running)
		held := 0.0
		if s.Held != nil {
			held = m.o.Clock.Now().Sub(s.Held.Since).Seconds()
		}
		gauge(heldDesc, held)
		if h := s.Outside; h != nil {
			gauge(outsideLagDesc, float64(h.Lag))
			up := 1.0
			if h.Err != nil {
				up = 0
			}
			gauge(outsideUpDesc, up)
		}
		if s.Watermark != flow.NoTime && s.Watermark != flow.EndOfTime {
			gauge(watermarkDesc, float64(s.Watermark)/1e6)
			gauge(lagDesc, math.Max(0, (now-float64(s.Watermark))/1e6))
		}
	}
}

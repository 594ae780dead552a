package node

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-io/leat/internal/journal"
)

// journalMetrics are what the journal says of itself.
type journalMetrics struct {
	sync  prometheus.Histogram
	group prometheus.Histogram
}

func newJournalMetrics() *journalMetrics {
	return &journalMetrics{
		sync: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leat_journal_sync_seconds", Help: "How long syncs of the journal take.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
		group: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leat_journal_group_units", Help: "How many units one sync of the journal makes durable.", Buckets: prometheus.ExponentialBuckets(1, 2, 14),
		}),
	}
}

func (m *journalMetrics) observe(g journal.Group) {
	m.sync.Observe(g.Sync.Seconds())
	m.group.Observe(float64(g.Units))
}

func (m *journalMetrics) register(r prometheus.Registerer, c *Core) error {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	return errors.Join(
		r.Register(m.sync), r.Register(m.group),
		r.Register(gauge("leat_pending_rows_bytes", "Committed rows of views and tables that are not published yet.",
			func() float64 { return float64(c.Applier.Pending().RowsBytes) })),
		r.Register(gauge("leat_pending_state_bytes", "Committed operator state that waits for the next checkpoint.",
			func() float64 { return float64(c.Applier.Pending().StateBytes) })),
	)
}

package node

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// registerMetrics registers what the parts say of themselves, and what only the whole knows.
func (c *Core) registerMetrics(r prometheus.Registerer) error {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	return errors.Join(
		r.Register(c.Jobs), r.Register(c.Budget.Collector()),
		r.Register(gauge("leat_pending_rows_bytes", "Committed rows of views and tables that are not published yet.",
			func() float64 { return float64(c.Applier.Pending().RowsBytes) })),
		r.Register(gauge("leat_pending_state_bytes", "Committed operator state that waits for the next checkpoint.",
			func() float64 { return float64(c.Applier.Pending().StateBytes) })),
		r.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "leat_spill_bytes_total", Help: "Written to files because an epoch changed more than fits in its share of the memory.",
		}, func() float64 { return float64(c.Spill.Written()) })),
		r.Register(gauge("leat_journal_age_seconds", "Time since the last checkpoint, while the journal holds something newer; a restart replays that.", c.journalAge)),
		r.Register(gauge("leat_journal_checkpoint_bytes", "Bytes in the journal at which a checkpoint is made.",
			func() float64 { return checkpointBytes })),
	)
}

// journalAge is how long the journal has grown since the last checkpoint.
func (c *Core) journalAge() float64 {
	if c.Journal.Stats().LiveBytes == 0 {
		return 0
	}
	return max(c.o.Clock.Now().Sub(time.Unix(0, c.checkpointed.Load())).Seconds(), 0)
}

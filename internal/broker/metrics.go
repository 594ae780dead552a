package broker

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/leat-io/leat/internal/journal"
	"github.com/prometheus/client_golang/prometheus"
)

const metaProducerID = "broker/producer-id"

func formatInt(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func (ids *producerIDs) load(b *Broker) error {
	ids.mu = make(chan struct{}, 1)
	raw, ok, err := b.kv.GetMeta(metaProducerID)
	if err != nil {
		return fmt.Errorf("broker: read producer ids: %w", err)
	}
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return fmt.Errorf("broker: stored producer id is malformed: %w", err)
	}
	ids.next, ids.end = n, n
	return nil
}

// metrics are the broker's figures; nil takes none.
type metrics struct{}

func newMetrics(b *Broker) *metrics {
	r := b.o.Metrics
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_log_bytes", Help: "Bytes in partition files."},
			func() float64 { return float64(b.size.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_log_partitions", Help: "Partitions of all topics."},
			func() float64 {
				b.topicsMu.RLock()
				defer b.topicsMu.RUnlock()
				return float64(b.partitions)
			}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_journal_live_bytes", Help: "Bytes in the journal since the last checkpoint."},
			func() float64 { return float64(b.journal.Stats().LiveBytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_journal_queued_bytes", Help: "Bytes that wait to be written to the journal."},
			func() float64 { return float64(b.journal.Stats().QueuedBytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_transactions_open", Help: "Kafka transactions that are ongoing."},
			func() float64 {
				n, _ := b.txns.open()
				return float64(n)
			}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "leat_transaction_oldest_age_seconds", Help: "How long the oldest ongoing Kafka transaction has been open; it holds back who reads committed records. 0: there is none.",
		}, func() float64 {
			if _, oldest := b.txns.open(); !oldest.IsZero() {
				return b.clock.Now().Sub(oldest).Seconds()
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_storage_low", Help: "1 while producing is refused because the disk is nearly full."},
			func() float64 {
				if b.low.Load() {
					return 1
				}
				return 0
			}),
	} {
		var dup prometheus.AlreadyRegisteredError
		if err := r.Register(c); err != nil && !errors.As(err, &dup) {
			b.log.Warn("a metric cannot be registered", "err", err)
		}
	}
	return &metrics{}
}

// ObserveJournal returns what a journal's Options.Observe is to be, to have its groups in the metrics.
func ObserveJournal(r prometheus.Registerer) func(journal.Group) {
	buckets := []float64{.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1}
	syncs := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "leat_journal_sync_seconds", Help: "Time of a sync of the journal.", Buckets: buckets})
	applies := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "leat_journal_apply_seconds", Help: "Time to apply a group of units.", Buckets: buckets})
	units := prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_journal_units_total", Help: "Units that became durable."})
	bytes := prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_journal_bytes_total", Help: "Bytes that were written to the journal."})
	r.MustRegister(syncs, applies, units, bytes)
	return func(g journal.Group) {
		syncs.Observe(g.Sync.Seconds())
		applies.Observe(g.Apply.Seconds())
		units.Add(float64(g.Units))
		bytes.Add(float64(g.Bytes))
	}
}

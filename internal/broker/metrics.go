package broker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

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

// The broker's metrics are read from its state when they are scraped: they cost nothing between scrapes. What there can be many of (topics,
// partitions of groups) has metrics of its own up to Options.MetricPartitions, and is in the sums in any case.
var (
	logBytesDesc      = desc("leat_log_bytes", "Bytes in partition files.")
	partitionsDesc    = desc("leat_log_partitions", "Partitions of all topics.")
	damagedDesc       = desc("leat_partitions_damaged", "Partitions that are out of service because their files are damaged.")
	damagedOneDesc    = desc("leat_partition_damaged", "1 for each partition that is out of service because its files are damaged.", "topic", "partition")
	topicBytesDesc    = desc("leat_topic_bytes", "Bytes in the files of a topic; of the largest topics if there are many.", "topic")
	topicRecordsDesc  = desc("leat_topic_records_total", "Offsets that were given out in a topic; of the same topics as leat_topic_bytes.", "topic")
	liveBytesDesc     = desc("leat_journal_live_bytes", "Bytes in the journal since the last checkpoint.")
	queuedBytesDesc   = desc("leat_journal_queued_bytes", "Bytes that wait to be written to the journal.")
	segmentsDesc      = desc("leat_journal_segments", "Segments of the journal, in use and free.", "state")
	storageLowDesc    = desc("leat_storage_low", "1 while producing is refused because the disk is nearly full.")
	txnOpenDesc       = desc("leat_transactions_open", "Kafka transactions that are ongoing.")
	txnAgeDesc        = desc("leat_transaction_oldest_age_seconds", "How long the oldest ongoing Kafka transaction has been open; it holds back who reads committed records. 0: there is none.")
	groupsDesc        = desc("leat_groups", "Consumer groups, by state.", "state")
	lagDesc           = desc("leat_group_lag_records", "Offsets that a group has left to read in a partition; of those furthest behind if there are many.", "group", "topic", "partition")
	lagAgeDesc        = desc("leat_group_lag_seconds", "Age of the next record that a group is to read in a partition; there is none when nothing is left to read.", "group", "topic", "partition")
	spareDesc         = desc("leat_group_deletion_records", "Offsets that retention may delete in a partition before it meets what the group has not read.", "group", "topic", "partition")
	leftDesc          = desc("leat_group_deletion_seconds", "How long retention.ms keeps the next record that a group is to read in a partition, at least.", "group", "topic", "partition")
	lostDesc          = desc("leat_group_lost_records", "Offsets of a partition that were deleted before the group had read them.", "group", "topic", "partition")
	topicLagDesc      = desc("leat_group_topic_lag_records", "Offsets that a group has left to read in a topic.", "group", "topic")
	topicLagAgeDesc   = desc("leat_group_topic_lag_seconds", "Age of the oldest next record of a group in a topic.", "group", "topic")
	topicSpareDesc    = desc("leat_group_topic_deletion_records", "The smallest leat_group_deletion_records of a group in a topic.", "group", "topic")
	topicLeftDesc     = desc("leat_group_topic_deletion_seconds", "The smallest leat_group_deletion_seconds of a group in a topic.", "group", "topic")
	topicLostDesc     = desc("leat_group_topic_lost_records", "Offsets of a topic that were deleted before the group had read them.", "group", "topic")
	seriesLeftOutDesc = desc("leat_metrics_left_out", "What is without metrics of its own because there is too much of it.", "kind")
	alertDesc         = desc("leat_group_alert", "1 for each group and topic over a threshold.", "group", "topic", "alert")
	alertsDesc        = desc("leat_group_alerts_total", "How often a group has gone over a threshold.", "alert")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// registerMetrics makes the broker's metrics known, if somebody takes them.
func (b *Broker) registerMetrics() {
	if b.o.Metrics == nil {
		return
	}
	if err := b.o.Metrics.Register(collector{b}); err != nil {
		b.log.Warn("the broker's metrics cannot be registered", "err", err)
	}
}

// collector is a scrape of a broker.
type collector struct{ b *Broker }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		logBytesDesc, partitionsDesc, damagedDesc, damagedOneDesc, topicBytesDesc, topicRecordsDesc, liveBytesDesc, queuedBytesDesc, segmentsDesc,
		storageLowDesc, txnOpenDesc, txnAgeDesc, groupsDesc, lagDesc, lagAgeDesc, spareDesc, leftDesc, lostDesc, topicLagDesc, topicLagAgeDesc,
		topicSpareDesc, topicLeftDesc, topicLostDesc, seriesLeftOutDesc, alertDesc, alertsDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	s := scrape{ch, c.b}
	s.log()
	s.journal()
	s.groups()
}

// scrape is one collection.
type scrape struct {
	ch chan<- prometheus.Metric
	b  *Broker
}

func (s scrape) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s scrape) count(d *prometheus.Desc, v int64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

// maxDamagedShown bounds the damaged partitions that are named.
const maxDamagedShown = 100

// log shows topics and partitions.
func (s scrape) log() {
	type sum struct {
		name           string
		bytes, records int64
	}
	topics := s.b.Topics()
	sums := make([]sum, 0, len(topics))
	partitions, damaged := 0, 0
	for _, t := range topics {
		sum := sum{name: t.Name}
		for _, p := range t.partitions {
			sum.bytes += p.size.Load()
			sum.records += p.Appended()
			if p.damage.Load() != nil {
				if damaged++; damaged <= maxDamagedShown {
					s.gauge(damagedOneDesc, 1, t.Name, strconv.Itoa(int(p.Index)))
				}
			}
		}
		partitions += len(t.partitions)
		sums = append(sums, sum)
	}
	s.gauge(logBytesDesc, float64(s.b.size.Load()))
	s.gauge(partitionsDesc, float64(partitions))
	s.gauge(damagedDesc, float64(damaged))
	most := s.b.o.MetricPartitions
	if len(sums) > most {
		slices.SortStableFunc(sums, func(x, y sum) int { return cmp.Compare(y.bytes, x.bytes) })
	}
	s.gauge(seriesLeftOutDesc, float64(max(len(sums)-most, 0)), "topics")
	for _, t := range sums[:min(len(sums), most)] {
		s.gauge(topicBytesDesc, float64(t.bytes), t.name)
		s.count(topicRecordsDesc, t.records, t.name)
	}
}

// journal shows what is on its way to where it stays.
func (s scrape) journal() {
	j := s.b.journal.Stats()
	s.gauge(liveBytesDesc, float64(j.LiveBytes))
	s.gauge(queuedBytesDesc, float64(j.QueuedBytes))
	s.gauge(segmentsDesc, float64(j.Segments), "used")
	s.gauge(segmentsDesc, float64(j.FreeSegments), "free")
	low := 0.0
	if s.b.low.Load() {
		low = 1
	}
	s.gauge(storageLowDesc, low)
	open, oldest := s.b.txns.open()
	age := 0.0
	if open > 0 {
		age = max(s.b.clock.Now().Sub(oldest).Seconds(), 0)
	}
	s.gauge(txnOpenDesc, float64(open))
	s.gauge(txnAgeDesc, age)
}

// groups shows how far groups are behind.
func (s scrape) groups() {
	states := map[string]int{}
	for _, g := range s.b.groups.List() {
		states[g.State]++
	}
	for state, n := range states {
		s.gauge(groupsDesc, float64(n), state)
	}
	lags, leftOut := s.b.lookAtLags()
	most := s.b.o.MetricPartitions
	s.topicLags(lags, most)
	shown := lags
	if len(shown) > most {
		shown = slices.Clone(lags)
		slices.SortStableFunc(shown, func(x, y Lag) int { return cmp.Compare(y.Records, x.Records) })
		leftOut += len(shown) - most
		shown = shown[:most]
	}
	s.gauge(seriesLeftOutDesc, float64(leftOut), "group partitions")
	for i := range shown {
		l := &shown[i]
		group, partition := label(l.Group), strconv.Itoa(int(l.Partition))
		s.gauge(lagDesc, float64(l.Records), group, l.Topic, partition)
		s.gauge(spareDesc, float64(l.Spare), group, l.Topic, partition)
		if l.AgeKnown {
			s.gauge(lagAgeDesc, l.Age.Seconds(), group, l.Topic, partition)
		}
		if l.LeftKnown {
			s.gauge(leftDesc, l.Left.Seconds(), group, l.Topic, partition)
		}
		if l.Lost > 0 {
			s.gauge(lostDesc, float64(l.Lost), group, l.Topic, partition)
		}
	}
	s.b.lagMu.Lock()
	total := s.b.lagWatch.alerts.total
	raised := slices.Collect(maps.Keys(s.b.lagWatch.alerts.raised))
	s.b.lagMu.Unlock()
	for kind, n := range total {
		s.count(alertsDesc, n, alertNames[kind])
	}
	if len(raised) > most {
		s.gauge(seriesLeftOutDesc, float64(len(raised)-most), "alerts")
		raised = raised[:most]
	}
	for _, key := range raised {
		s.gauge(alertDesc, 1, label(key.group), key.topic, alertNames[key.kind])
	}
}

// topicLags shows the sums over the partitions of each topic.
func (s scrape) topicLags(lags []Lag, most int) {
	var sums []Lag // of each group and topic
	for i := range lags {
		l := &lags[i]
		if n := len(sums); n == 0 || sums[n-1].Group != l.Group || sums[n-1].Topic != l.Topic {
			sums = append(sums, *l)
			continue
		}
		t := &sums[len(sums)-1]
		t.Records += l.Records
		t.Lost += l.Lost
		t.Spare = min(t.Spare, l.Spare)
		if l.AgeKnown {
			t.Age, t.AgeKnown = max(t.Age, l.Age), true
		}
		if l.LeftKnown && (!t.LeftKnown || l.Left < t.Left) {
			t.Left, t.LeftKnown = l.Left, true
		}
	}
	if len(sums) > most {
		slices.SortStableFunc(sums, func(x, y Lag) int { return cmp.Compare(y.Records, x.Records) })
	}
	s.gauge(seriesLeftOutDesc, float64(max(len(sums)-most, 0)), "group topics")
	for i := range sums[:min(len(sums), most)] {
		t := &sums[i]
		group := label(t.Group)
		s.gauge(topicLagDesc, float64(t.Records), group, t.Topic)
		s.gauge(topicSpareDesc, float64(t.Spare), group, t.Topic)
		s.gauge(topicLostDesc, float64(t.Lost), group, t.Topic)
		if t.AgeKnown {
			s.gauge(topicLagAgeDesc, t.Age.Seconds(), group, t.Topic)
		}
		if t.LeftKnown {
			s.gauge(topicLeftDesc, t.Left.Seconds(), group, t.Topic)
		}
	}
}

// label makes a value for a label of what a client calls a group, which need not be UTF-8.
func label(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// ObserveJournal returns what a journal's Options.Observe is to be, to have its groups in the metrics; without a registry that is nothing.
func ObserveJournal(r prometheus.Registerer) (func(journal.Group), error) {
	if r == nil {
		return nil, nil
	}
	buckets := prometheus.ExponentialBuckets(0.0001, 2, 16)
	syncs := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "leat_journal_sync_seconds", Help: "How long syncs of the journal take.", Buckets: buckets})
	applies := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "leat_journal_apply_seconds", Help: "How long it takes to apply a group of units.", Buckets: buckets})
	group := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "leat_journal_group_units", Help: "How many units one sync of the journal makes durable.", Buckets: prometheus.ExponentialBuckets(1, 2, 14),
	})
	bytes := prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_journal_bytes_total", Help: "Bytes that were written to the journal."})
	if err := errors.Join(r.Register(syncs), r.Register(applies), r.Register(group), r.Register(bytes)); err != nil {
		return nil, fmt.Errorf("broker: the journal's metrics: %w", err)
	}
	return func(g journal.Group) {
		syncs.Observe(g.Sync.Seconds())
		applies.Observe(g.Apply.Seconds())
		group.Observe(float64(g.Units))
		bytes.Add(float64(g.Bytes))
	}, nil
}

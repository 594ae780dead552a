package kafka

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the door's figures; nil takes none.
type metrics struct {
	seconds  map[int16]*latency
	received prometheus.Counter
	sent     prometheus.Counter
	conns    prometheus.Gauge
	pushed   prometheus.Counter
}

// latency is the histogram of one API, made at its first request: most clients use few of them.
type latency struct {
	once sync.Once
	of   prometheus.Observer
	make func() prometheus.Observer
}

func (l *latency) observe(d time.Duration) {
	l.once.Do(func() { l.of = l.make() })
	l.of.Observe(d.Seconds())
}

func newMetrics(r prometheus.Registerer) *metrics {
	if r == nil {
		return nil
	}
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "leat_request_seconds", Help: "Time from the last byte of a Kafka request to its response, waits included.",
		Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 5, 30},
	}, []string{"api"})
	m := &metrics{
		seconds:  map[int16]*latency{},
		received: prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_kafka_received_bytes_total", Help: "Bytes of requests from Kafka clients."}),
		sent:     prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_kafka_sent_bytes_total", Help: "Bytes of responses to Kafka clients."}),
		conns:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "leat_kafka_connections", Help: "Open connections of Kafka clients."}),
		pushed:   prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_kafka_telemetry_bytes_total", Help: "Bytes of metrics that Kafka clients have pushed, which are not kept."}),
	}
	for _, c := range []prometheus.Collector{seconds, m.received, m.sent, m.conns, m.pushed} {
		var dup prometheus.AlreadyRegisteredError
		if err := r.Register(c); errors.As(err, &dup) {
			if v, ok := dup.ExistingCollector.(*prometheus.HistogramVec); ok {
				seconds = v
			}
		}
	}
	for key, a := range apis {
		m.seconds[key] = &latency{make: func() prometheus.Observer { return seconds.WithLabelValues(a.name()) }}
	}
	return m
}

func (m *metrics) request(key int16, d time.Duration) {
	if m != nil {
		if l, ok := m.seconds[key]; ok {
			l.observe(d)
		}
	}
}

func (m *metrics) read(n int) {
	if m != nil {
		m.received.Add(float64(n))
	}
}

func (m *metrics) wrote(n int) {
	if m != nil {
		m.sent.Add(float64(n))
	}
}

func (m *metrics) connections(delta float64) {
	if m != nil {
		m.conns.Add(delta)
	}
}

func (m *metrics) telemetry(n int) {
	if m != nil {
		m.pushed.Add(float64(n))
	}
}

package budget

import "github.com/prometheus/client_golang/prometheus"

var (
	usedDesc = prometheus.NewDesc("leat_memory_bytes",
		"Bytes in use of a pool of the memory budget, its sub-pools included.", []string{"pool"}, nil)
	limitDesc = prometheus.NewDesc("leat_memory_limit_bytes",
		"Limit of a pool of the memory budget; pools without one of their own are absent.", []string{"pool"}, nil)
)

// Collector gives the tree from b down as leat_memory_bytes{pool} and leat_memory_limit_bytes{pool}. Pools of the same path
// (those of the workers, say) are summed.
func (b *Budget) Collector() prometheus.Collector { return collector{b} }

type collector struct{ b *Budget }

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) { ch <- usedDesc; ch <- limitDesc }

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, u := range c.b.Pools() {
		ch <- prometheus.MustNewConstMetric(usedDesc, prometheus.GaugeValue, float64(u.Used), u.Path)
		if u.Limit > 0 {
			ch <- prometheus.MustNewConstMetric(limitDesc, prometheus.GaugeValue, float64(u.Limit), u.Path)
		}
	}
}

package cli

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// figures are what the demo shows beside the views.
type figures struct {
	d      *demo
	events int64
	at     time.Time

	perSecond float64
	watermark string
	late      string
	epochs    histogram // before the last read
	p50, p99  float64   // of the epochs since, milliseconds
	memory    int64
}

func newFigures(d *demo) *figures { return &figures{d: d, at: time.Now()} }

func (f *figures) read(ctx context.Context) error {
	now, events := time.Now(), f.d.feed.events.Load()
	f.perSecond = float64(events-f.events) / now.Sub(f.at).Seconds()
	f.events, f.at = events, now
	jobs, err := f.d.query(ctx, "SHOW JOBS")
	if err != nil {
		return err
	}
	f.watermark, f.late = "none", "0"
	for _, j := range jobs {
		if j[1] == "per_window" {
			f.late = j[7]
			if at := strings.IndexByte(j[5], ' '); at > 0 {
				f.watermark = strings.TrimSuffix(j[5][at+1:], "+00")
			}
		}
	}
	f.memory = residentBytes()
	return f.readEpochs()
}

// readEpochs takes the latency of the epochs since the last time from the node's metrics.
func (f *figures) readEpochs() error {
	families, err := f.d.node.Registry.Gather()
	if err != nil {
		return err
	}
	for _, fam := range families {
		if fam.GetName() != "leat_epoch_seconds" {
			continue
		}
		now := newHistogram(fam.GetMetric()[0].GetHistogram())
		since := now.minus(f.epochs)
		f.epochs = now
		if since.count > 0 {
			f.p50, f.p99 = since.quantile(0.5)*1000, since.quantile(0.99)*1000
		}
	}
	return nil
}

func (f *figures) line() string {
	return fmt.Sprintf("%.0f events/s | watermark %s | epoch p50 %.1f ms p99 %.1f ms | late rows %s | memory %d MB",
		f.perSecond, f.watermark, f.p50, f.p99, f.late, f.memory>>20)
}

// histogram is a Prometheus histogram: how many observations are at or below each bound.
type histogram struct {
	bounds []float64
	counts []uint64
	count  uint64
}

func newHistogram(h *dto.Histogram) histogram {
	out := histogram{count: h.GetSampleCount()}
	for _, b := range h.GetBucket() {
		out.bounds, out.counts = append(out.bounds, b.GetUpperBound()), append(out.counts, b.GetCumulativeCount())
	}
	return out
}

func (h histogram) minus(o histogram) histogram {
	out := histogram{bounds: h.bounds, counts: append([]uint64(nil), h.counts...), count: h.count - o.count}
	for i := range o.counts {
		out.counts[i] -= o.counts[i]
	}
	return out
}

// quantile is an estimate within the bucket that holds it.
func (h histogram) quantile(q float64) float64 {
	rank := q * float64(h.count)
	low := 0.0
	below := uint64(0)
	for i, c := range h.counts {
		if float64(c) >= rank && c > below {
			return low + (h.bounds[i]-low)*(rank-float64(below))/float64(c-below)
		}
		low, below = h.bounds[i], c
	}
	if len(h.bounds) == 0 {
		return math.NaN()
	}
	return h.bounds[len(h.bounds)-1]
}

// residentBytes is the memory of the process that is in RAM.
func residentBytes() int64 {
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(text)); len(f) > 1 {
			if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

package broker

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// LagAlerts are the thresholds at which a group that falls behind is reported, once when a threshold is crossed and once when it is kept again.
// Zero: no such alert. Records that were deleted before a group has read them are always reported.
type LagAlerts struct {
	Records  int64         // left to read in one partition
	Age      time.Duration // of the next record to read
	Deletion time.Duration // until retention may delete the next record to read; at most a tenth of the topic's retention.ms counts
}

// alertKind is what an alert is about.
type alertKind uint8

const (
	alertRecords alertKind = iota
	alertAge
	alertDeletion
	alertLost
	alertKinds
)

var alertNames = [alertKinds]string{"lag_records", "lag_seconds", "deletion", "lost"}

// alertKey is an alert: of a group in a topic, whatever the number of partitions.
type alertKey struct {
	group, topic string
	kind         alertKind
}

// alerts are those that are raised now.
type alerts struct {
	raised map[alertKey]bool
	total  [alertKinds]int64 // since the start
}

// crossing is an alert that has been raised, or is over.
type crossing struct {
	alertKey
	raised     bool
	worst      Lag // the partition that is furthest over the threshold
	partitions int // how many are
}

// over says by how much a partition is over a threshold: 1 is at it.
func (t *LagAlerts) over(kind alertKind, l *Lag) float64 {
	ratio := func(have, limit float64) float64 {
		if limit <= 0 {
			return 0
		}
		return have / limit
	}
	switch kind {
	case alertRecords:
		return ratio(float64(l.Records), float64(t.Records))
	case alertAge:
		if l.AgeKnown {
			return ratio(float64(l.Age), float64(t.Age))
		}
	case alertDeletion:
		if l.LeftKnown && t.Deletion > 0 {
			limit := min(t.Deletion, l.retention/10)
			return ratio(float64(max(limit, 1)), float64(max(l.Left, 1)))
		}
	case alertLost:
		return float64(l.Lost)
	}
	return 0
}

// calm is how far below a threshold a group must be for its alert to end, so that one at the threshold is not reported again and again.
const calm = 0.8

// judge compares what was measured with the thresholds, and returns what has changed.
func (a *alerts) judge(lags []Lag, t LagAlerts) []crossing {
	found := map[alertKey]*crossing{}
	for i := range lags {
		l := &lags[i]
		for kind := range alertKinds {
			over := t.over(kind, l)
			key := alertKey{l.Group, l.Topic, kind}
			if over < 1 && (over < calm || !a.raised[key]) {
				continue
			}
			c := found[key]
			if c == nil {
				c = &crossing{alertKey: key, raised: true, worst: *l}
				found[key] = c
			} else if over > t.over(kind, &c.worst) {
				c.worst = *l
			}
			c.partitions++
		}
	}
	var out []crossing
	now := make(map[alertKey]bool, len(found))
	for key, c := range found {
		now[key] = true
		if !a.raised[key] {
			a.total[key.kind]++
			out = append(out, *c)
		}
	}
	for key := range a.raised {
		if !now[key] {
			out = append(out, crossing{alertKey: key})
		}
	}
	a.raised = now
	slices.SortFunc(out, func(x, y crossing) int {
		return cmp.Or(strings.Compare(x.group, y.group), strings.Compare(x.topic, y.topic), cmp.Compare(x.kind, y.kind))
	})
	return out
}

// lagInterval is how often groups are looked at when nobody asks.
const lagInterval = 10 * time.Second

// watchLags looks at all groups and reports what has crossed a threshold.
func (b *Broker) watchLags() {
	b.lagMu.Lock()
	w := &b.lagWatch
	b.measureLags(w, b.clock.Now())
	crossed := w.alerts.judge(w.lags, b.o.LagAlerts)
	b.lagMu.Unlock()
	for i := range crossed {
		b.report(&crossed[i])
	}
	b.learnSizes()
}

func (b *Broker) report(c *crossing) {
	if !c.raised {
		b.log.Info("a group is no longer over a threshold", "alert", alertNames[c.kind], "group", clip(c.group), "topic", c.topic)
		return
	}
	l := &c.worst
	args := []any{"alert", alertNames[c.kind], "group", clip(c.group), "topic", c.topic, "partitions", c.partitions, "worst_partition", l.Partition}
	switch c.kind {
	case alertRecords:
		b.log.Warn("a group is behind by too many records", append(args, "records", l.Records, "threshold", b.o.LagAlerts.Records)...)
	case alertAge:
		b.log.Warn("a group is behind by too much time", append(args, "age", l.Age.Round(time.Second).String(), "threshold", b.o.LagAlerts.Age.String())...)
	case alertDeletion:
		b.log.Warn("retention will soon delete what a group has not read: let it catch up, or raise retention.ms",
			append(args, "left", l.Left.Round(time.Second).String(), "records", l.Records, "threshold", min(b.o.LagAlerts.Deletion, l.retention/10).String())...)
	case alertLost:
		b.log.Error("records were deleted before a group had read them", append(args, "records", l.Lost)...)
	}
}

// maxSizesLearned bounds how many partitions learnSizes looks at.
const maxSizesLearned = 1_000

// learnSizes looks at the files of partitions that were not used in this run, some at a time, so that sums of sizes become whole.
func (b *Broker) learnSizes() {
	looked := 0
	for _, t := range b.Topics() {
		for _, p := range t.partitions {
			if p.size.Load() > 0 || p.Appended() == 0 || p.deleted.Load() || p.sized.Load() {
				continue
			}
			if looked++; looked > maxSizesLearned || b.closed.Load() {
				return
			}
			p.sized.Store(true)
			if n := p.Bytes(); p.size.CompareAndSwap(0, n) {
				b.size.Add(n)
			}
		}
	}
}

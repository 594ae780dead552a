package broker

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-io/leat/internal/commitlog"
	"github.com/leat-io/leat/internal/vfs"
	"github.com/prometheus/client_golang/prometheus"
)

// cleaner compacts partitions, one at a time. What can be compacted is the log's to know; which one is next is decided here.
type cleaner struct {
	run sync.Mutex // held by who compacts

	mu    sync.Mutex
	notes map[*Partition]cleanNote
	held  map[*Partition]*heldNote

	passes                           atomic.Int64
	failures, read, written, removed prometheus.Counter
}

// cleanNote remembers why a partition is left alone.
type cleanNote struct {
	err   error     // it cannot be compacted
	until time.Time // when it is tried again
	// A pass that changed nothing need not be repeated until these are other ones.
	dirt  commitlog.Dirt
	below int64
}

// An error that does not go away by itself is met again an hour later; a full disk may have room in a minute.
const (
	cleanAgain     = time.Hour
	cleanAgainSoon = time.Minute
)

// Compact compacts what is due, all of it, and returns when there is nothing left to do; the broker does so by itself, in the background and at a bounded
// rate.
func (b *Broker) Compact() { b.compactAll(nil) }

func (b *Broker) compactInBackground() {
	last := b.clock.Now()
	b.compactAll(func(bytes int, closing <-chan struct{}) error {
		rest := max(time.Duration(float64(bytes)/float64(b.o.CompactionRate)*float64(time.Second)), b.clock.Now().Sub(last))
		t := b.clock.NewTimer(rest)
		defer t.Stop()
		select {
		case <-t.C():
		case <-closing:
		case <-b.stop:
			return commitlog.ErrClosed
		}
		last = b.clock.Now()
		return nil
	})
}

func (b *Broker) compactAll(pause func(int, <-chan struct{}) error) {
	b.cleaner.run.Lock()
	defer b.cleaner.run.Unlock()
	for !b.closed.Load() && b.compactNext(pause) {
	}
}

// compactNext runs one pass over the partition that needs it most; false if there is none.
func (b *Broker) compactNext(pause func(int, <-chan struct{}) error) bool {
	if b.low.Load() {
		return false // a pass needs room before it gives some back
	}
	now := b.clock.Now()
	var worst *Partition
	var dirt commitlog.Dirt
	var below int64
	for _, p := range b.compacted() {
		d, limit, ok := p.due(now)
		p.noteHeld(now, ok)
		if ok && (worst == nil || d.Overdue && !dirt.Overdue || d.Overdue == dirt.Overdue && d.Ratio() > dirt.Ratio()) {
			worst, dirt, below = p, d, limit
		}
	}
	if worst == nil {
		return false
	}
	worst.compact(now, dirt, below, pause)
	return true
}

// compacted are the partitions of the topics that are compacted.
func (b *Broker) compacted() []*Partition {
	b.topicsMu.RLock()
	defer b.topicsMu.RUnlock()
	var out []*Partition
	for _, t := range b.byName {
		if t.settings.compacted {
			out = append(out, t.partitions...)
		}
	}
	return out
}

// due tells whether the partition is to be compacted, and up to where.
func (p *Partition) due(now time.Time) (d commitlog.Dirt, below int64, ok bool) {
	c := &p.b.cleaner
	if p.Err() != nil || p.Appended() == 0 {
		return d, 0, false
	}
	below, _ = p.compactable()
	c.mu.Lock()
	note, noted := c.notes[p]
	c.mu.Unlock()
	if below == 0 || noted && now.Before(note.until) {
		return d, below, false
	}
	d, err := p.log.Dirt(now, below)
	if err != nil {
		p.uncleanable(now, err)
		return d, below, false
	}
	if !p.dirtyEnough(d) {
		return d, below, false
	}
	return d, below, !noted || note.err != nil || note.dirt != d || note.below != below
}

func (p *Partition) dirtyEnough(d commitlog.Dirt) bool {
	return d.Overdue || d.Dirty > 0 && d.Ratio() >= p.Topic().settings.dirtyRatio
}

// compactable is the offset from which on records must stay as they are: what is not durable, what belongs to an open transaction, and what the engine
// has yet to read, for it must see the partition as it was at each instant. by is the reader that is furthest behind, nil if it is not the engine.
func (p *Partition) compactable() (below int64, by *Reader) {
	e := &p.b.ends
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ready {
		return 0, nil
	}
	below = p.StableOffset()
	for r := range e.readers {
		if at, ok := r.at[p]; ok && at < below {
			below, by = at, r
		}
	}
	return below, by
}

// compact runs one pass.
func (p *Partition) compact(now time.Time, d commitlog.Dirt, below int64, pause func(int, <-chan struct{}) error) {
	c := &p.b.cleaner
	st, err := p.log.Clean(commitlog.CleanOptions{Below: below, MapBytes: p.b.o.CompactionMapBytes, Pause: pause})
	c.passes.Add(1)
	c.read.Add(float64(st.BytesRead))
	c.written.Add(float64(st.BytesWritten))
	c.removed.Add(float64(st.RecordsRead - st.RecordsKept))
	p.noteSize()
	if st.Keyless > 0 {
		p.b.log.Warn("compaction dropped records without a key, which a compacted topic cannot keep", "partition", p.String(), "records", st.Keyless)
	}
	if err != nil {
		p.uncleanable(now, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.Replaced > 0 || st.More {
		delete(c.notes, p)
	} else {
		c.note(p, cleanNote{dirt: d, below: below})
	}
	p.b.log.Debug("compacted", "partition", p.String(), "segments", st.Replaced, "became", st.Segments, "before", st.BytesBefore, "after", st.BytesAfter)
}

// note keeps a note; mu is held.
func (c *cleaner) note(p *Partition, n cleanNote) {
	if c.notes == nil {
		c.notes = map[*Partition]cleanNote{}
	}
	for old := range c.notes {
		if old.Deleted() {
			delete(c.notes, old)
		}
	}
	c.notes[p] = n
}

// uncleanable notes that the partition cannot be compacted. The others are.
func (p *Partition) uncleanable(now time.Time, err error) {
	c := &p.b.cleaner
	if errors.Is(err, commitlog.ErrClosed) || p.Deleted() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures.Inc()
	again := cleanAgain
	if vfs.NoSpace(err) {
		again = cleanAgainSoon
	}
	p.b.log.Error("a partition cannot be compacted and keeps all its records; the others are compacted", "partition", p.String(), "again", again, "err", err)
	c.note(p, cleanNote{err: err, until: now.Add(again)})
}

// Uncleanable returns the partitions that cannot be compacted, and why.
func (b *Broker) Uncleanable() map[*Partition]error {
	b.cleaner.mu.Lock()
	defer b.cleaner.mu.Unlock()
	out := map[*Partition]error{}
	for p, n := range b.cleaner.notes {
		if n.err != nil && !p.Deleted() {
			out[p] = n.err
		}
	}
	return out
}

// register makes the metrics.
func (c *cleaner) register(b *Broker) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	c.failures = counter("leat_compaction_failures_total", "Passes of compaction that failed.")
	c.read = counter("leat_compaction_read_bytes_total", "Bytes that compaction has read.")
	c.written = counter("leat_compaction_written_bytes_total", "Bytes that compaction has written.")
	c.removed = counter("leat_compaction_removed_records_total", "Records that compaction has removed.")
	r := b.o.Metrics
	if r == nil {
		return
	}
	uncleanable := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_compaction_uncleanable_partitions", Help: "Partitions that cannot be compacted."},
		func() float64 { return float64(len(b.Uncleanable())) })
	passes := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "leat_compaction_passes_total", Help: "Passes of compaction over partitions."},
		func() float64 { return float64(c.passes.Load()) })
	held := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_compaction_held_partitions", Help: "Partitions that would be compacted if a job had read them."},
		func() float64 { n, _ := c.heldBack(b.clock.Now()); return float64(n) })
	heldFor := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_compaction_held_seconds", Help: "How long the first of the partitions that would be compacted waits for a job to read it; 0: none waits."},
		func() float64 { _, longest := c.heldBack(b.clock.Now()); return longest.Seconds() })
	for _, m := range []prometheus.Collector{passes, c.failures, c.read, c.written, c.removed, uncleanable, held, heldFor} {
		var dup prometheus.AlreadyRegisteredError
		if err := r.Register(m); err != nil && !errors.As(err, &dup) {
			b.log.Warn("a metric cannot be registered", "err", err)
		}
	}
}

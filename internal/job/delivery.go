package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/record"
)

// delivery brings the changelog of one sink to its target, outside. It is a job of its own, in nobody's island: a target that is dead costs disk and shows
// as lag. Where it stands is kept in the target, in the transaction of the data; here the changelog begins at, or before, that position.
type delivery struct {
	m      *Manager
	sink   *catalog.Relation
	target connector.Target
	// settled is a position behind which nothing can have been sent in an earlier run: where the changelog began when this run did, if it ended there too. A
	// target that has forgotten its position may be believed only then. NoPosition otherwise.
	settled int64
	started sync.Once
	stop    context.CancelFunc
	ctx     context.Context
	done    chan struct{}

	mu        sync.Mutex
	partition *broker.Partition
	at        int64 // position; NoPosition before the target has told
	health    connector.Health
	fatal     bool // it is not tried again

	buffer  []byte
	records []connector.Record
	reader  record.Reader
	trimmed time.Time
	kept    time.Time
}

const (
	// deliverBytes bounds one transaction, beside connector.MaxRecords: batches of the changelog are not split, unless one alone is larger.
	deliverBytes = 4 << 20
	// trimEvery is how often the changelog is trimmed behind the position.
	trimEvery = 5 * time.Second
	// keepEvery is how often an idle target is told the position again: clusters forget offsets after days without commits.
	keepEvery = time.Hour

	minRetry, maxRetry = 100 * time.Millisecond, 15 * time.Second
)

// changelogConfigs: nothing goes but what was delivered, and soon.
var changelogConfigs = map[string]string{"retention.ms": "-1", "retention.bytes": "-1", "segment.bytes": "33554432"}

// deliver makes the delivery of a sink whose changelog is there, and starts it if the node runs.
func (m *Manager) deliver(r *catalog.Relation) {
	d := &delivery{m: m, sink: r, settled: connector.NoPosition, at: connector.NoPosition, done: make(chan struct{})}
	d.ctx, d.stop = context.WithCancel(m.ctx)
	if t, ok := m.o.Broker.Topic(r.Topic); ok {
		p := t.Partition(0)
		if start, err := p.StartOffset(); err == nil && start == p.Appended() {
			d.settled = start
		}
		if target, err := m.o.Target(r, targetID(r, t)); err != nil {
			d.broken(err)
		} else {
			d.target, d.partition = target, p
		}
	} else {
		d.broken(fmt.Errorf("its changelog, topic \"%s\", is not there", r.Topic))
	}
	m.mu.Lock()
	m.deliveries[r.ID] = d
	running := m.running
	m.mu.Unlock()
	if running {
		d.run()
	}
}

// targetID names a sink and its changelog: positions mean nothing for another one.
func targetID(r *catalog.Relation, changelog *broker.Topic) string {
	return fmt.Sprintf("leat.sink.%s.%d.%s", r.Name, r.ID, changelog.ID)
}

// undeliver ends the deliveries of sinks that are dropped and has their targets forget them, which may take as long as it takes.
func (m *Manager) undeliver(dropped []*catalog.Relation) {
	for _, r := range dropped {
		m.mu.Lock()
		d := m.deliveries[r.ID]
		delete(m.deliveries, r.ID)
		m.mu.Unlock()
		if d == nil {
			continue
		}
		d.stop()
		d.started.Do(func() { close(d.done) }) // it was never run
		<-d.done
		if d.target == nil {
			continue
		}
		m.closing.Go(func() {
			if err := d.target.Forget(m.ctx); err != nil {
				m.log.Warn("the position of a dropped sink is left in its target", "sink", r.QualifiedName(), "err", err)
			}
		})
	}
}

func (d *delivery) run() {
	d.started.Do(func() {
		d.m.closing.Go(func() {
			defer close(d.done)
			if d.target == nil {
				return
			}
			d.loop()
			if err := d.target.Close(); err != nil {
				d.m.log.Warn("closing the target of a sink", "sink", d.sink.QualifiedName(), "err", err)
			}
		})
	})
}

// loop opens the target and delivers until that fails, again and again.
func (d *delivery) loop() {
	timer := d.m.o.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	retry := minRetry
	for d.ctx.Err() == nil {
		delivered, err := d.session(timer)
		if d.ctx.Err() != nil {
			return
		}
		d.failed(err)
		if d.isFatal() {
			return
		}
		if delivered {
			retry = minRetry
		}
		timer.Reset(retry/2 + rand.N(retry/2))
		select {
		case <-d.ctx.Done():
			return
		case <-timer.C():
		}
		retry = min(2*retry, maxRetry)
	}
}

// session opens the target and delivers until something fails.
func (d *delivery) session(timer clock.Timer) (delivered bool, err error) {
	told, err := d.target.Open(d.ctx)
	if err != nil {
		return false, err
	}
	begun, err := d.begun()
	if err != nil {
		return false, err
	}
	at, err := d.agree(told, begun)
	if err != nil {
		return false, err
	}
	if !begun {
		// First the target has a position, then it is noted here that it has, then comes data: one without a position has lost it.
		if err := d.target.Keep(d.ctx, at); err != nil {
			return false, err
		}
		if err := d.begin(); err != nil {
			return false, err
		}
	}
	w := broker.NewWatcher()
	d.partition.Watch(w, broker.EdgeDurable)
	defer d.partition.Unwatch(w, broker.EdgeDurable)
	d.mu.Lock()
	d.at = at
	d.mu.Unlock()
	d.kept = time.Time{} // a position that is as old as the last data is kept at once
	for {
		next, err := d.take(at)
		if err != nil {
			return delivered, err
		}
		now := d.m.o.Clock.Now()
		switch {
		case len(d.records) > 0:
			if err := d.target.Write(d.ctx, d.records, next); err != nil {
				d.buffer, d.records = nil, nil // the target may look at them for a moment yet
				return delivered, err
			}
			delivered, at, d.kept = true, next, now
			d.came(at)
		case next > at: // nothing but gaps
			at = next
		}
		if now.Sub(d.kept) >= keepEvery {
			if err := d.target.Keep(d.ctx, at); err != nil {
				return delivered, err
			}
			d.kept = now
		}
		wait := keepEvery
		if start, err := d.partition.StartOffset(); err == nil && start < at {
			if wait = trimEvery - now.Sub(d.trimmed); wait <= 0 {
				d.trim(at)
				d.trimmed, wait = now, keepEvery
			}
		}
		if len(d.records) > 0 {
			continue
		}
		d.came(at)
		timer.Reset(wait)
		select {
		case <-d.ctx.Done():
			return delivered, d.ctx.Err()
		case <-w.C:
		case <-timer.C():
		}
	}
}

// agree compares where the target says it is with the changelog.
func (d *delivery) agree(told int64, begun bool) (int64, error) {
	start, err := d.partition.StartOffset()
	if err != nil {
		return 0, d.forGood(err)
	}
	end := d.partition.HighWatermark()
	const remedy = "drop the sink and create it again to begin anew"
	switch {
	case told == connector.NoPosition && d.current() != connector.NoPosition:
		return 0, d.forGood(fmt.Errorf("the target has lost the position while it was in use, so nobody knows what it has of offsets %d to %d of the changelog; %s", d.current(), end, remedy))
	case told == connector.NoPosition && (!begun || d.settled == start):
		return start, nil
	case told == connector.NoPosition:
		return 0, d.forGood(fmt.Errorf("the target has forgotten the position, so nobody knows what it has of offsets %d to %d of the changelog; %s", start, end, remedy))
	case told < start:
		return 0, d.forGood(fmt.Errorf("the target's position has gone back to %d; the changelog begins at offset %d, what was before is delivered and gone; %s", told, start, remedy))
	case told > end:
		return 0, d.forGood(fmt.Errorf("the target has come to offset %d, but the changelog ends at %d: the data folder is older than what was delivered; %s", told, end, remedy))
	}
	return told, nil
}

// deliveryPrefix is of the metadata keys of sinks, by id, whose target was given a position.
const deliveryPrefix = "job/delivery/"

func deliveryKey(sink uint64) string { return deliveryPrefix + strconv.FormatUint(sink, 10) }

// begun tells whether the target of this changelog was ever given a position.
func (d *delivery) begun() (bool, error) {
	changelog, ok, err := d.m.o.DB.GetMeta(deliveryKey(d.sink.ID))
	return ok && string(changelog) == d.partition.Topic().ID.String(), err
}

// begin notes that the target has a position.
func (d *delivery) begin() error {
	u := d.m.o.Broker.NewUnit()
	u.AddMeta(deliveryKey(d.sink.ID), []byte(d.partition.Topic().ID.String()))
	lsn, _, err := u.Commit(d.ctx)
	if err != nil {
		return err
	}
	return d.m.o.Broker.Wait(d.ctx, lsn)
}

// take reads whole batches of the changelog from a position on into records.
func (d *delivery) take(at int64) (next int64, err error) {
	d.records = d.records[:0]
	if at >= d.partition.HighWatermark() {
		return at, nil
	}
	c, err := d.partition.Read(at, deliverBytes, broker.ViewDurable, true)
	if err != nil {
		return at, d.forGood(err)
	}
	if cap(d.buffer) > 2*deliverBytes {
		d.buffer = nil
	}
	d.buffer, err = c.AppendTo(d.buffer[:0])
	c.Release()
	if err != nil {
		return at, err
	}
	next = at
	for rest := d.buffer; len(rest) > 0; {
		var batch []byte
		if batch, rest, err = record.Next(rest); err == nil {
			err = d.reader.Reset(batch)
		}
		if err != nil {
			return at, d.forGood(fmt.Errorf("its changelog at offset %d: %w", next, err))
		}
		h := d.reader.Header()
		if len(d.records) > 0 && len(d.records)+int(h.Count) > connector.MaxRecords {
			break
		}
		whole := true
		for d.reader.Next() {
			r := d.reader.Record()
			if r.Offset < next {
				continue
			}
			if len(d.records) == connector.MaxRecords { // of one batch that is larger
				whole = false
				break
			}
			key, value := r.Key, r.Value
			if h.Codec() != record.None {
				key, value = bytes.Clone(key), bytes.Clone(value)
			}
			d.records = append(d.records, connector.Record{Timestamp: r.Timestamp, Key: key, Value: value})
			next = r.Offset + 1
		}
		if err := d.reader.Err(); err != nil {
			return at, d.forGood(fmt.Errorf("its changelog at offset %d: %w", next, err))
		}
		if !whole {
			break
		}
		next = h.NextOffset()
	}
	return next, nil
}

// trim gives up what was delivered.
func (d *delivery) trim(at int64) {
	ds := []broker.Deletion{{P: d.partition, Before: at}}
	d.m.o.Broker.DeleteRecords(d.ctx, ds)
	if ds[0].Err != nil && d.ctx.Err() == nil {
		d.m.log.Warn("trimming the changelog of a sink", "sink", d.sink.QualifiedName(), "err", ds[0].Err)
	}
}

// came notes that the target is at a position, and well.
func (d *delivery) came(at int64) {
	d.mu.Lock()
	before := d.health.Err
	d.at, d.health.Err = at, nil
	if before != nil {
		d.health.Since = d.m.o.Clock.Now()
	}
	d.mu.Unlock()
	if before != nil {
		d.m.log.Info("a sink delivers again", "sink", d.sink.QualifiedName(), "position", at)
	}
}

func (d *delivery) current() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

// finalError ends a delivery for good.
type finalError struct{ error }

func (d *delivery) forGood(err error) error { return finalError{err} }

// failed notes why the target could not be used, and says so once.
func (d *delivery) failed(err error) {
	var final finalError
	if errors.As(err, &final) {
		d.broken(err)
		return
	}
	d.mu.Lock()
	before := d.health.Err
	d.health.Err = err
	if before == nil {
		d.health.Since = d.m.o.Clock.Now()
	}
	d.mu.Unlock()
	if before == nil {
		d.m.log.Warn("a sink cannot deliver; its results are kept, and it is tried again", "sink", d.sink.QualifiedName(), "err", err)
	}
}

// broken notes that the delivery will not go on in this run.
func (d *delivery) broken(err error) {
	d.mu.Lock()
	d.health.Err, d.health.Since, d.fatal = err, d.m.o.Clock.Now(), true
	d.mu.Unlock()
	d.m.log.Error("a sink has stopped delivering; its results are kept", "sink", d.sink.QualifiedName(), "err", err)
}

func (d *delivery) isFatal() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fatal
}

// status is how the delivery is, and whether it has ended for good.
func (d *delivery) status() (h connector.Health, fatal bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h = d.health
	if d.partition != nil {
		at := d.at
		if at == connector.NoPosition {
			at, _ = d.partition.StartOffset()
		}
		h.Lag = max(d.partition.HighWatermark()-at, 0)
	}
	return h, d.fatal
}

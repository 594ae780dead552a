package job

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/state"
)

// maxBatchBytes is where a sink's records are cut into batches: Kafka clients fetch a megabyte at a time by default.
const maxBatchBytes = 512 << 10

// Names of a dead letter's headers.
const (
	headerReason    = "leat.error.reason"
	headerTopic     = "leat.error.source"
	headerPartition = "leat.error.partition"
	headerOffset    = "leat.error.offset"
)

// commit orders the epoch's unit and returns its LSN; mu is held.
func (x *island) commit(r *flow.Result) (journal.LSN, error) {
	u := x.m.o.Broker.NewUnit()
	for _, c := range r.Changes {
		for _, payload := range c.State {
			u.Append(journal.KindState, payload)
		}
		for _, payload := range c.Rows {
			u.Append(journal.KindRows, payload)
		}
	}
	x.tellSpill(r)
	if err := x.addAppends(u, r.Appends); err != nil {
		u.Free()
		return 0, err
	}
	x.onlyFresh(r)
	if err := x.addDeadLetters(u, r.DeadLetters); err != nil {
		u.Free()
		return 0, err
	}
	if err := x.addPositions(u, r); err != nil {
		u.Free()
		return 0, err
	}
	lsn, _, err := u.Commit(x.m.ctx)
	return lsn, err
}

// finishCommit is called when the epoch's unit is durable; mu is held.
func (x *island) finishCommit(now time.Time) {
	r, lsn := x.result, x.committing
	x.committing, x.result = 0, nil
	for _, t := range x.tables {
		t.Committed(lsn)
	}
	if slices.ContainsFunc(r.Changes, (*state.Changes).Settled) {
		// Rows that went to files are not in memory: the database must have them before anybody looks for one.
		if err := errors.Join(x.m.o.Applier.Publish(lsn), x.m.o.Applier.ApplyState(lsn)); err != nil {
			x.failLocked(fmt.Errorf("the rows of an epoch that went to files cannot be brought into the database: %w", err))
			return
		}
	}
	for _, g := range x.groups {
		x.advance(g)
	}
	backfilling := false
	for i := range r.Jobs {
		res := &r.Jobs[i]
		j := x.m.job(res.Job)
		if j == nil {
			continue
		}
		j.committed(res)
		if res.Err == nil && !res.Live {
			backfilling = true
		}
	}
	x.due = x.due || backfilling
	x.building = slices.DeleteFunc(x.building, func(id uint64) bool {
		j := x.m.job(id)
		if j != nil && !j.isLive() && x.caughtUp(j) {
			x.m.live(j)
		}
		return j == nil || j.isLive()
	})
	x.committedLSN = lsn
	loads := int64(0)
	for _, t := range x.tables {
		loads += t.Loads()
	}
	x.pace.committed(x.started, x.ordered.Sub(x.computed), x.read, x.computed.Sub(x.started), loads)
	if x.m.o.Observe != nil {
		x.m.o.Observe(EpochStats{Records: x.read, Run: x.ordered.Sub(x.started), Total: now.Sub(x.started)})
	}
	x.m.metrics.epochs.Inc()
	x.m.metrics.epoch.Observe(now.Sub(x.started).Seconds())
	x.m.metrics.recordsRead.Add(float64(x.read))
	x.evict(lsn)
	if x.ahead += x.computed.Sub(x.started) / preloadShare; x.ahead >= preloadSpan {
		begun := x.m.o.Clock.Now()
		x.preload(0)
		x.ahead -= x.m.o.Clock.Now().Sub(begun)
	}
	select {
	case x.m.unpublished <- struct{}{}:
	default:
	}
	x.note()
}

// tellSpill says in the log, once in a while, that an epoch was larger than memory; mu is held.
func (x *island) tellSpill(r *flow.Result) {
	n := int64(0)
	for _, c := range r.Changes {
		n += c.Spilled()
	}
	if n == 0 || x.now-x.toldSpill < tellSpillEvery.Microseconds() {
		return
	}
	x.toldSpill = x.now
	x.m.log.Info("an epoch gives more than its share of memory: the rest goes through files",
		"epoch", r.Epoch, "megabytes", n>>20, "records", x.read, "island", x.lowest.Load())
}

const tellSpillEvery = time.Minute

// advance tells the broker how far a group has come.
func (x *island) advance(g cutGroup) {
	readers := map[int]*flow.Reader{}
	for _, r := range x.flow.Readers() {
		readers[r.ID] = &r
	}
	to := make([]int64, len(g.members))
	for i, c := range g.members {
		if r := readers[c.reader]; r != nil {
			to[i] = offsetOf(r, c.partition)
		}
	}
	g.reader.Advance(to)
}

// setTargets notes where the job's sources end now; mu is held.
func (x *island) setTargets(j *job) {
	j.targets = j.targets[:0]
	ends := x.readerEnds()
	for i, r := range x.flow.Readers() {
		if !slices.Contains(r.Jobs, j.relation.ID) {
			continue
		}
		if _, ok := r.Source.(connector.Fetched); ok {
			continue // it knows itself, when it has been reached
		}
		for p, end := range ends[i] {
			if end < unboundedEnd {
				j.targets = append(j.targets, target{r.Relation, p, end})
			}
		}
	}
}

// caughtUp tells whether a job that is being built can be read: its scans are live, and its readers have come to where its sources ended
// when it was created. mu is held.
func (x *island) caughtUp(j *job) bool {
	if _, ok := x.backfill[j.relation.ID]; ok || !x.ran[j.relation.ID] {
		return false
	}
	for _, r := range x.flow.Readers() {
		if !slices.Contains(r.Jobs, j.relation.ID) {
			continue
		}
		if f, ok := r.Source.(connector.Fetched); ok && !f.Reached(offsetsOf(&r)) {
			return false
		}
		for _, t := range j.targets {
			if t.relation == r.Relation && offsetOf(&r, t.partition) < t.offset {
				return false
			}
		}
	}
	return true
}

// addAppends adds the records that sinks and late policies write to topics.
func (x *island) addAppends(u *broker.Unit, appends []flow.TopicBatch) error {
	ms := x.now / 1000
	b := &x.builder
	for i := range appends {
		a := &appends[i]
		p := x.partition(a.Topic, a.Partition)
		if p == nil {
			continue
		}
		b.Reset()
		for k := range a.Records {
			rec := &a.Records[k]
			if b.Len() > 0 && b.Size()+len(rec.Key)+len(rec.Value) > maxBatchBytes {
				if err := x.addBatch(u, p); err != nil {
					return err
				}
			}
			at := ms
			if rec.Timestamp != 0 {
				at = rec.Timestamp / 1000
			}
			b.Append(at, rec.Key, rec.Value)
		}
		if err := x.addBatch(u, p); err != nil {
			return err
		}
	}
	return nil
}

func (x *island) addBatch(u *broker.Unit, p *broker.Partition) error {
	if x.builder.Len() == 0 {
		return nil
	}
	x.batch = x.builder.Build(x.batch[:0])
	x.builder.Reset()
	_, err := u.AddBatch(p, x.batch)
	return err
}

// onlyFresh leaves the dead letters that were not written before, and has them counted: a record is dead once, however many views read it.
func (x *island) onlyFresh(r *flow.Result) {
	var identities map[uint64]connector.Identity
	if len(r.DeadLetters) > 0 {
		identities = make(map[uint64]connector.Identity, len(r.Readers))
		for i := range r.Readers {
			identities[r.Readers[i].Relation] = r.Readers[i].State.Identity
		}
	}
	r.DeadLetters = x.m.sources.fresh(r.DeadLetters, identities)
	dead := map[uint64]int64{}
	for i := range r.DeadLetters {
		dead[r.DeadLetters[i].Relation]++
	}
	for i := range r.Readers {
		rd := &r.Readers[i]
		rd.Counts.Dead = dead[rd.Relation]
		delete(dead, rd.Relation)
	}
}

// addDeadLetters adds what sources could not use to <source>.errors: the record as it came, with the reason and where it stands as further headers.
func (x *island) addDeadLetters(u *broker.Unit, letters []flow.DeadLetter) error {
	if err := x.m.sources.save(u, letters); err != nil {
		return err
	}
	for i := 0; i < len(letters); {
		source := letters[i].Source
		p := x.partition(source+".errors", 0)
		x.builder.Reset()
		for ; i < len(letters) && letters[i].Source == source; i++ {
			l := &letters[i]
			if p == nil {
				continue
			}
			rec := &l.Record
			if x.builder.Len() > 0 && x.builder.Size()+len(rec.Key)+len(rec.Value)+len(rec.Headers) > maxBatchBytes {
				if err := x.addBatch(u, p); err != nil {
					return err
				}
			}
			ms := rec.Timestamp
			if ms == record.NoTimestamp {
				ms = x.now / 1000
			}
			headers := make([]record.HeaderKV, 0, rec.HeaderCount+4)
			rec.EachHeader(func(key, value []byte) bool {
				headers = append(headers, record.HeaderKV{Key: string(key), Value: value})
				return true
			})
			headers = append(headers,
				record.HeaderKV{Key: headerReason, Value: []byte(l.Reason)},
				record.HeaderKV{Key: headerTopic, Value: []byte(l.Source)},
				record.HeaderKV{Key: headerPartition, Value: strconv.AppendInt(nil, int64(l.Partition), 10)},
				record.HeaderKV{Key: headerOffset, Value: strconv.AppendInt(nil, rec.Offset, 10)})
			x.builder.Append(ms, rec.Key, rec.Value, headers...)
		}
		if p == nil {
			continue
		}
		if err := x.addBatch(u, p); err != nil {
			return err
		}
	}
	return nil
}

// ensureTopic returns a topic, making it if need be. partitions and configs count only then.
func (m *Manager) ensureTopic(name string, partitions int32, configs map[string]string) (*broker.Topic, error) {
	if t, ok := m.o.Broker.Topic(name); ok {
		return t, nil
	}
	t, err := m.o.Broker.CreateTopic(m.ctx, broker.TopicSpec{Name: name, Partitions: partitions, Configs: configs})
	if errors.Is(err, broker.ErrTopicExists) {
		if t, ok := m.o.Broker.Topic(name); ok {
			return t, nil
		}
	}
	return t, err
}

// committed notes what a committed epoch did for the job.
func (j *job) committed(r *flow.JobResult) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.Watermark != math.MinInt64 {
		j.mark = r.Watermark
	}
	j.counts.Add(&r.Counts)
	j.checksum = r.Checksum
}

// live makes a job's relation readable.
func (m *Manager) live(j *job) {
	if !j.isLive() {
		close(j.live) // only its island's goroutine does
	}
}

// evict brings the memory of the island's tables down to their limit; what is not in the database yet is brought there first. mu is held.
func (x *island) evict(lsn journal.LSN) {
	inTurn := x.m.o.Seed != 0
	if state.Evict(x.tables, inTurn) == 0 {
		if limit := x.m.o.StateMemory; limit > 0 && x.m.o.Applier.Pending().StateBytes > limit/3 {
			select {
			case x.m.relief <- struct{}{}:
			default:
			}
		}
		return
	}
	if err := errors.Join(x.m.o.Applier.Publish(lsn), x.m.o.Applier.ApplyState(lsn)); err != nil {
		x.m.log.Error("bringing rows into the database, to free memory", "err", err)
		return
	}
	state.Evict(x.tables, inTurn)
}

const (
	// preloadRows are looked at at a time when rows are read ahead after a start.
	preloadRows = 4096
	// preloadShare is which part of the time of epochs that takes while there are some, in spans of about preloadSpan.
	preloadShare = 32
	preloadSpan  = 5 * time.Millisecond
)

// preload reads rows ahead that operators had in memory before the node was started, for about so long; mu is held, and no epoch is running. It says whether
// there is more to do.
func (x *island) preload(spend time.Duration) bool {
	inTurn := x.m.o.Seed != 0
	for begun := x.m.o.Clock.Now(); ; {
		more, err := state.Preload(x.tables, preloadRows, inTurn)
		if err != nil {
			x.m.log.Warn("reading rows of state ahead", "err", err)
		}
		if !more {
			return false
		}
		if inTurn || x.m.o.Clock.Now().Sub(begun) > spend {
			return true
		}
	}
}

// reliefLoop brings changed rows of state into the database before memory is short, so that eviction finds some that it may take and no
// island waits for it.
func (m *Manager) reliefLoop() {
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.relief:
		}
		lsn := m.o.Journal.Durable()
		if err := errors.Join(m.o.Applier.Publish(lsn), m.o.Applier.ApplyState(lsn)); err != nil && m.ctx.Err() == nil {
			m.log.Error("bringing rows into the database ahead of eviction", "err", err)
		}
	}
}

// publishLoop publishes committed rows at most publishEvery after their epoch, so that nobody who reads later has to wait for much. It sleeps
// while there are none.
func (m *Manager) publishLoop() {
	timer := m.o.Clock.NewTimer(publishEvery)
	defer timer.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.unpublished:
		}
		timer.Reset(publishEvery)
		select {
		case <-m.ctx.Done():
			return
		case <-timer.C():
		}
		if m.o.Applier.Pending().Rows > 0 {
			if err := m.o.Applier.Publish(m.o.Journal.Durable()); err != nil && m.ctx.Err() == nil {
				m.log.Error("publishing rows", "err", err)
			}
		}
	}
}

const publishEvery = 20 * time.Millisecond

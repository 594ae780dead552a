package job

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/kv"
)

// What an island saves with every epoch, as metadata: "job/positions/<smallest job id>" for where its readers are, and "job/counts/<id>" for
// what a job has counted. An island whose members change takes over, or gives up, keys in the unit of its next epoch. Where a job was that has
// stopped is in "job/stopped/<id>", with the last epoch that it had part in, until it has part in one again.
const (
	positionsPrefix  = "job/positions/"
	stoppedPrefix    = "job/stopped/"
	countsPrefix     = "job/counts/"
	lettersPrefix    = "job/letters/" // of a source: up to which offset of each partition dead letters were written
	positionsVersion = 1
)

type savedPositions struct {
	Version  int             `json:"version"`
	Epoch    uint64          `json:"epoch"`
	Now      int64           `json:"now"`
	Jobs     []uint64        `json:"jobs"`
	Building []uint64        `json:"building,omitempty"` // jobs that cannot be read yet
	Why      string          `json:"why,omitempty"`      // of one job that has stopped: for what
	Readers  []savedReader   `json:"readers,omitempty"`
	Backfill []savedBackfill `json:"backfill,omitempty"`
}

type savedReader struct {
	Start string           `json:"start,omitempty"`
	Jobs  []uint64         `json:"jobs"`
	State flow.SourceState `json:"state"`
}

type savedBackfill struct {
	Job   uint64               `json:"job"`
	Scans []flow.BackfillState `json:"scans"`
}

// saved is what was found at a start.
type saved struct {
	epoch   uint64
	jobs    map[uint64]savedJob
	counts  map[uint64]operator.Counts
	letters map[uint64]letterMarks
}

type savedJob struct {
	key       string
	epoch     uint64
	now       int64
	building  bool
	why       string // it had stopped
	positions []flow.SourceState
	backfill  []flow.BackfillState
}

func loadSaved(db *kv.DB) (*saved, error) {
	s := &saved{jobs: map[uint64]savedJob{}, counts: map[uint64]operator.Counts{}, letters: map[uint64]letterMarks{}}
	for _, prefix := range []string{positionsPrefix, stoppedPrefix} {
		if err := db.ScanMeta(prefix, s.addPositions); err != nil {
			return nil, err
		}
	}
	err := db.ScanMeta(countsPrefix, func(key string, value []byte) error {
		id, err := strconv.ParseUint(strings.TrimPrefix(key, countsPrefix), 10, 64)
		if err != nil {
			return fmt.Errorf("metadata key %q: %w", key, err)
		}
		var c operator.Counts
		if err := json.Unmarshal(value, &c); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		s.counts[id] = c
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = db.ScanMeta(lettersPrefix, func(key string, value []byte) error {
		id, err := strconv.ParseUint(strings.TrimPrefix(key, lettersPrefix), 10, 64)
		if err != nil {
			return fmt.Errorf("metadata key %q: %w", key, err)
		}
		var marks letterMarks
		if err := json.Unmarshal(value, &marks); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		s.letters[id] = marks
		return nil
	})
	return s, err
}

// addPositions takes what one island, or one job that had stopped, has saved.
func (s *saved) addPositions(key string, value []byte) error {
	var p savedPositions
	if err := json.Unmarshal(value, &p); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if p.Version != positionsVersion {
		return fmt.Errorf("%s has version %d; this binary knows version %d", key, p.Version, positionsVersion)
	}
	s.epoch = max(s.epoch, p.Epoch)
	for _, id := range p.Jobs {
		if have, ok := s.jobs[id]; ok && have.epoch > p.Epoch {
			continue // of an island that this one was merged into later
		}
		s.jobs[id] = p.of(id, key)
	}
	return nil
}

// of is what p says of one of its jobs.
func (p *savedPositions) of(id uint64, key string) savedJob {
	j := savedJob{key: key, epoch: p.Epoch, now: p.Now, building: slices.Contains(p.Building, id), why: p.Why}
	for _, r := range p.Readers {
		if slices.Contains(r.Jobs, id) {
			j.positions = append(j.positions, r.State)
		}
	}
	for _, b := range p.Backfill {
		if b.Job == id {
			j.backfill = b.Scans
		}
	}
	return j
}

// alone is what a job saves that has stopped, for a cause that may be that of an earlier run.
func (j *savedJob) alone(id uint64, cause error) savedPositions {
	p := savedPositions{Version: positionsVersion, Epoch: j.epoch, Now: j.now, Jobs: []uint64{id}, Why: j.why}
	if p.Why == "" && cause != nil {
		p.Why = cause.Error()
	}
	if j.building {
		p.Building = p.Jobs
	}
	for _, state := range j.positions {
		p.Readers = append(p.Readers, savedReader{Jobs: p.Jobs, State: state})
	}
	if j.backfill != nil {
		p.Backfill = []savedBackfill{{Job: id, Scans: j.backfill}}
	}
	return p
}

// keepStopped notes where a job is that stops, for the next unit: the start after next would take it for a new one otherwise. What was never
// committed is one. mu is held.
func (x *island) keepStopped(id uint64) error {
	var cause error
	if j := x.m.job(id); j != nil {
		cause = j.failure()
	}
	if st, ok := x.restored[id]; ok {
		x.stopped = append(x.stopped, st.alone(id, cause))
		return nil
	}
	if x.saved == nil {
		return nil
	}
	var p savedPositions
	if err := json.Unmarshal(x.saved, &p); err != nil {
		return fmt.Errorf("positions of the last epoch: %w", err)
	}
	if slices.Contains(p.Jobs, id) {
		st := p.of(id, "")
		x.stopped = append(x.stopped, st.alone(id, cause))
	}
	return nil
}

// addStopped puts where stopped jobs are into the epoch's unit; mu is held.
func (x *island) addStopped(u *broker.Unit) error {
	for i := range x.stopped {
		value, err := json.Marshal(&x.stopped[i])
		if err != nil {
			return err
		}
		u.AddMeta(stoppedKey(x.stopped[i].Jobs[0]), value)
	}
	x.stopped = nil
	return nil
}

// missed is a table or view that the relation reads and that has gone on since the relation's job, which is at st, stopped; nil if there is none. Unlike
// the records of a source, changes cannot be read again.
func (s *saved) missed(c *catalog.Snapshot, r *catalog.Relation, st *savedJob) *catalog.Relation {
	for _, n := range r.Plan.Nodes {
		if n.Scan == nil || n.Scan.Source {
			continue
		}
		if on, ok := s.jobs[n.Scan.Relation]; ok && on.epoch > st.epoch {
			return c.Relation(n.Scan.Relation)
		}
	}
	return nil
}

func stoppedKey(id uint64) string { return stoppedPrefix + strconv.FormatUint(id, 10) }

func lettersKey(id uint64) string { return lettersPrefix + strconv.FormatUint(id, 10) }

func countsKey(id uint64) string { return countsPrefix + strconv.FormatUint(id, 10) }

// addPositions puts where the readers are, and what jobs have counted, into the epoch's unit; mu is held.
func (x *island) addPositions(u *broker.Unit, r *flow.Result) error {
	p := savedPositions{Version: positionsVersion, Epoch: r.Epoch, Now: x.now, Jobs: x.members}
	for i := range r.Readers {
		rd := &r.Readers[i]
		p.Readers = append(p.Readers, savedReader{Start: rd.Start, Jobs: rd.Jobs, State: rd.State})
	}
	for i := range r.Jobs {
		res := &r.Jobs[i]
		x.ran[res.Job] = true
		delete(x.fresh, res.Job)
		if res.Err != nil {
			continue
		}
		if res.Live {
			delete(x.backfill, res.Job)
		} else {
			x.backfill[res.Job] = res.Backfill
		}
		if j := x.m.job(res.Job); j != nil && res.Counts != (operator.Counts{}) {
			total := j.total()
			total.Add(&res.Counts)
			value, err := json.Marshal(total)
			if err != nil {
				return err
			}
			u.AddMeta(countsKey(res.Job), value)
		}
	}
	if err := x.addSourceCounts(u, r.Readers); err != nil {
		return err
	}
	for _, id := range x.building {
		// What CREATE has told its client must hold after a crash: the epoch that makes a job readable says so itself.
		if j := x.m.job(id); j != nil && !j.isLive() && !x.caughtUp(j) {
			p.Building = append(p.Building, id)
		}
	}
	for id, scans := range x.backfill {
		p.Backfill = append(p.Backfill, savedBackfill{Job: id, Scans: scans})
	}
	slices.SortFunc(p.Backfill, func(a, b savedBackfill) int { return cmp.Compare(a.Job, b.Job) })
	key := ""
	if len(x.members) > 0 { // all may have stopped in this epoch
		value, err := json.Marshal(&p)
		if err != nil {
			return err
		}
		key = positionsPrefix + strconv.FormatUint(x.members[0], 10)
		u.AddMeta(key, value)
		x.saved = value
	}
	for old := range x.savedAs {
		if old != key {
			u.AddMeta(old, nil)
		}
	}
	clear(x.savedAs)
	clear(x.restored)
	if key != "" {
		x.savedAs[key] = struct{}{}
	}
	return x.addStopped(u)
}

// addSourceCounts puts what sources have counted into the epoch's unit. Two readers may be of one source, one that catches up with the other; a table's
// reader counts for nothing, its job does. mu is held.
func (x *island) addSourceCounts(u *broker.Unit, readers []flow.Reader) error {
	moved := make([]uint64, 0, len(readers))
	for i := range readers {
		rd := &readers[i]
		if rd.Counts == (operator.Counts{}) || x.m.job(rd.Relation) != nil {
			continue
		}
		x.m.sources.add(rd.Relation, &rd.Counts)
		if !slices.Contains(moved, rd.Relation) {
			moved = append(moved, rd.Relation)
		}
	}
	for _, id := range moved {
		value, err := json.Marshal(x.m.sources.total(id))
		if err != nil {
			return err
		}
		u.AddMeta(countsKey(id), value)
	}
	return nil
}

// positionsOf is what a job is to be attached with when it moves to another island.
func (x *island) positionsOf(id uint64) (positions []flow.SourceState, backfill []flow.BackfillState) {
	for _, r := range x.flow.Readers() {
		if slices.Contains(r.Jobs, id) {
			positions = append(positions, r.State)
		}
	}
	return positions, x.backfill[id]
}

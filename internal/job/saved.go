package job

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/kv"
)

// What an island saves with every epoch, as metadata: "job/positions/<smallest job id>" for where its readers are, and "job/counts/<id>" for
// what a job has counted. An island whose members change takes over, or gives up, keys in the unit of its next epoch.
const (
	positionsPrefix  = "job/positions/"
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
	letters map[uint64][]int64
}

type savedJob struct {
	key       string
	epoch     uint64
	now       int64
	building  bool
	positions []flow.SourceState
	backfill  []flow.BackfillState
}

func loadSaved(db *kv.DB) (*saved, error) {
	s := &saved{jobs: map[uint64]savedJob{}, counts: map[uint64]operator.Counts{}, letters: map[uint64][]int64{}}
	err := db.ScanMeta(positionsPrefix, func(key string, value []byte) error {
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
			j := savedJob{key: key, epoch: p.Epoch, now: p.Now, building: slices.Contains(p.Building, id)}
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
			s.jobs[id] = j
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = db.ScanMeta(countsPrefix, func(key string, value []byte) error {
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
		var offsets []int64
		if err := json.Unmarshal(value, &offsets); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		s.letters[id] = offsets
		return nil
	})
	return s, err
}

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
	for i := range r.Readers {
		rd := &r.Readers[i]
		if rd.Counts == (operator.Counts{}) {
			continue
		}
		total := x.m.sources.total(rd.Relation)
		total.Add(&rd.Counts)
		value, err := json.Marshal(total)
		if err != nil {
			return err
		}
		u.AddMeta(countsKey(rd.Relation), value)
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
	value, err := json.Marshal(&p)
	if err != nil {
		return err
	}
	key := positionsPrefix + strconv.FormatUint(x.members[0], 10)
	u.AddMeta(key, value)
	for old := range x.savedAs {
		if old != key {
			u.AddMeta(old, nil)
		}
	}
	clear(x.savedAs)
	x.savedAs[key] = struct{}{}
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

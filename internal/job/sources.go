package job

import (
	"encoding/json"
	"maps"
	"sync"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/flow/operator"
)

// sources are what all islands know of each source: what was counted, and up to which offset of each partition dead letters were written. A new
// job reads a source from its start; what it cannot use was reported when it was first read, and is not reported again.
type sources struct {
	mu      sync.Mutex
	counts  map[uint64]operator.Counts
	letters map[uint64]letterMarks
}

// letterMarks are the offsets of a source's partitions up to which dead letters were written, and what the offsets are of: in a topic that was made anew
// under the name all are new.
type letterMarks struct {
	Identity connector.Identity `json:"identity,omitzero"`
	Offsets  []int64            `json:"offsets"`
}

// UnmarshalJSON reads them, and the offsets alone, as which they were stored first.
func (m *letterMarks) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, &m.Offsets)
	}
	type plain letterMarks
	return json.Unmarshal(b, (*plain)(m))
}

// of returns the marks in the source as it is now.
func (m letterMarks) of(now connector.Identity) letterMarks {
	switch {
	case now.IsZero() || now == m.Identity:
		return m
	case m.Identity.IsZero():
		return letterMarks{now, m.Offsets}
	}
	return letterMarks{Identity: now}
}

func (s *sources) restore(saved *saved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts, s.letters = maps.Clone(saved.counts), saved.letters
}

func (s *sources) add(source uint64, c *operator.Counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[uint64]operator.Counts{}
	}
	total := s.counts[source]
	total.Add(c)
	s.counts[source] = total
}

// forget gives up what is known of a source that is dropped.
func (s *sources) forget(source uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.counts, source)
	delete(s.letters, source)
}

func (s *sources) total(source uint64) operator.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[source]
}

// fresh keeps the dead letters that were not written before, and remembers them. identities are of the sources that have one.
func (s *sources) fresh(letters []flow.DeadLetter, identities map[uint64]connector.Identity) []flow.DeadLetter {
	if len(letters) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.letters == nil {
		s.letters = map[uint64]letterMarks{}
	}
	before := map[uint64][]int64{}
	type place struct {
		relation  uint64
		partition int32
		offset    int64
	}
	taken := map[place]bool{} // two readers of a source may come past a record in one epoch
	out := letters[:0:0]
	for _, l := range letters {
		marks, ok := before[l.Relation]
		if !ok {
			now := s.letters[l.Relation].of(identities[l.Relation])
			s.letters[l.Relation] = now
			marks = append([]int64(nil), now.Offsets...)
			before[l.Relation] = marks
		}
		if int(l.Partition) < len(marks) && l.Position < marks[l.Partition] {
			continue
		}
		at := place{l.Relation, int32(l.Partition), l.Record.Offset}
		if taken[at] {
			continue
		}
		taken[at] = true
		now := s.letters[l.Relation]
		for len(now.Offsets) <= int(l.Partition) {
			now.Offsets = append(now.Offsets, 0)
		}
		now.Offsets[l.Partition] = max(now.Offsets[l.Partition], l.Position+1)
		s.letters[l.Relation] = now
		out = append(out, l)
	}
	return out
}

// save puts the marks of the sources that the letters are of into a unit.
func (s *sources) save(u *broker.Unit, letters []flow.DeadLetter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := map[uint64]bool{}
	for _, l := range letters {
		if done[l.Relation] {
			continue
		}
		done[l.Relation] = true
		value, err := json.Marshal(s.letters[l.Relation])
		if err != nil {
			return err
		}
		u.AddMeta(lettersKey(l.Relation), value)
	}
	return nil
}

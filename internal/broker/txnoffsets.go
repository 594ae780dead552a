package broker

import (
	"github.com/leat-io/leat/internal/broker/group"
)

// mayHold judges offsets that a transaction is to commit. Who says nothing of a member is taken at its word, as Kafka does: its transactional id is what
// fences it.
func (gs *Groups) mayHold(id string, who Committer, offsets []Offset) (group.Code, error) {
	simple := who.MemberID == "" && who.Instance == "" && who.Generation < 0
	s, code, err := gs.toCommit(id, who, simple)
	if s == nil {
		return code, err
	}
	defer s.mu.Unlock()
	if simple {
		return group.OK, nil
	}
	code = gs.mayCommit(s, gs.b.clock.Now(), who, offsets)
	if code == group.RebalanceInProgress && s.c == nil {
		return group.OK, nil // the generation is right, which is all that a transaction needs
	}
	return code, nil
}

// hold keeps offsets that a transaction is to commit with the group: it is not deleted meanwhile, and who asks for stable offsets is told to wait.
// The transaction's lock is held.
func (gs *Groups) hold(id string, t *txnShell, offsets []Offset) error {
	s, err := gs.locked(id, true)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if t.pending == nil {
		t.pending = map[string][]Offset{}
	}
	held, again := t.pending[id]
	if !again {
		s.inFlight++
	}
next:
	for _, o := range offsets {
		for i := range held {
			if held[i].Partition == o.Partition && held[i].Topic == o.Topic {
				held[i] = o
				continue next
			}
		}
		held = append(held, o)
		t.offsets++
		if s.unstable == nil {
			s.unstable = map[string]map[int32]int{}
		}
		if s.unstable[o.Topic] == nil {
			s.unstable[o.Topic] = map[int32]int{}
		}
		s.unstable[o.Topic][o.Partition]++
	}
	t.pending[id] = held
	return nil
}

// depart says that what a transaction holds is on its way to the journal's end; the transaction's lock is held.
func (gs *Groups) depart(id string, f *flight) {
	if s, err := gs.locked(id, false); err == nil && s != nil {
		s.take(f)
		s.mu.Unlock()
	}
}

// letGo forgets that a transaction holds offsets in a topic that was deleted; its lock is held.
func (gs *Groups) letGo(id string, offsets []Offset) {
	s, err := gs.locked(id, false)
	if err != nil || s == nil {
		return
	}
	defer s.mu.Unlock()
	for i := range offsets {
		s.stabilize(&offsets[i])
	}
}

// stabilize undoes for one offset what hold did; the group's lock is held.
func (s *groupShell) stabilize(o *Offset) {
	parts := s.unstable[o.Topic]
	if parts == nil {
		return
	}
	if parts[o.Partition]--; parts[o.Partition] <= 0 {
		delete(parts, o.Partition)
	}
	if len(parts) == 0 {
		delete(s.unstable, o.Topic)
	}
}

// release lets offsets count that were held, or forgets them; the end of their transaction is durable.
func (gs *Groups) release(id string, held heldOffsets, e *ended) {
	s, err := gs.locked(id, false)
	if err != nil || s == nil {
		return
	}
	defer s.mu.Unlock()
	s.inFlight--
	for i := range held.offsets {
		s.stabilize(&held.offsets[i])
	}
	if held.flight == nil {
		return
	}
	s.land(held.flight)
	now := gs.b.clock.Now().UnixMilli()
	for i := range held.flight.offsets {
		o := &held.flight.offsets[i]
		c := o.committed(now)
		c.lsn = e.lsn
		s.set(o.Topic, o.Partition, c)
	}
}

// Unstable reports whether a transaction that is not over has committed an offset of the group in the partition.
func (gs *Groups) Unstable(id, topic string, partition int32) bool {
	s, err := gs.locked(id, false)
	if err != nil || s == nil {
		return false
	}
	defer s.mu.Unlock()
	return s.unstable[topic][partition] > 0
}

package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
)

// committed is a group's position in one partition.
type committed struct {
	offset      int64
	leaderEpoch int32
	metadata    string
	ms          int64 // wall clock of the commit
	lsn         journal.LSN
}

// expired reports whether a position has outlived its use: nobody has been in the group, and nobody has committed, for the retention time.
func (c committed) expired(emptySince, now time.Time, retention time.Duration) bool {
	since := time.UnixMilli(c.ms)
	if emptySince.After(since) {
		since = emptySince
	}
	return now.Sub(since) > retention
}

// Offset is a position that a group commits or has committed: the offset of the next record to read.
type Offset struct {
	Topic       string
	Partition   int32
	Offset      int64
	LeaderEpoch int32 // -1: not known
	Metadata    string
}

const offsetPrefix = "offset/"

// offsetKey is where a position is stored: "offset/" group NUL topic NUL partition.
func offsetKey(groupID, topic string, partition int32) string {
	return offsetPrefix + groupID + "\x00" + topic + "\x00" + strconv.Itoa(int(partition))
}

func parseOffsetKey(key string) (groupID, topic string, partition int32, err error) {
	parts := strings.Split(strings.TrimPrefix(key, offsetPrefix), "\x00")
	if len(parts) != 3 {
		return "", "", 0, fmt.Errorf("metadata key %q is malformed", key)
	}
	n, err := strconv.ParseInt(parts[2], 10, 32)
	if err != nil {
		return "", "", 0, fmt.Errorf("metadata key %q is malformed: %w", key, err)
	}
	return parts[0], parts[1], int32(n), nil
}

// A stored position is: u8 version 1, i64 offset, i32 leader epoch, i64 milliseconds, then the metadata.
const offsetHeader = 1 + 8 + 4 + 8

func (c committed) encode() []byte {
	dst := make([]byte, 0, offsetHeader+len(c.metadata))
	dst = append(dst, 1)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.offset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.leaderEpoch))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.ms))
	return append(dst, c.metadata...)
}

func decodeCommitted(raw []byte) (committed, error) {
	if len(raw) < offsetHeader || raw[0] != 1 {
		return committed{}, errors.New("a stored offset is malformed, or of a later version")
	}
	return committed{
		offset: int64(binary.BigEndian.Uint64(raw[1:])), leaderEpoch: int32(binary.BigEndian.Uint32(raw[9:])),
		ms: int64(binary.BigEndian.Uint64(raw[13:])), metadata: string(raw[offsetHeader:]),
	}, nil
}

func (gs *Groups) loadOffsets(stale map[string][]byte) error {
	return gs.b.kv.ScanMeta(offsetPrefix, func(key string, value []byte) error {
		id, topic, partition, err := parseOffsetKey(key)
		if err != nil {
			return err
		}
		c, err := decodeCommitted(value)
		if err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		if _, ok := gs.b.Topic(topic); !ok { // deleted, and the node ended before this was forgotten
			stale[key] = nil
			return nil
		}
		s := gs.byID[id]
		if s == nil { // a client without the group protocol: only its commits say how old it is
			s = gs.newShell(id, group.New(gs.cfg, time.UnixMilli(0)))
		}
		s.set(topic, partition, c)
		return nil
	})
}

func (s *groupShell) set(topic string, partition int32, c committed) {
	if s.offsets == nil {
		s.offsets = map[string]map[int32]committed{}
	}
	parts := s.offsets[topic]
	if parts == nil {
		parts = map[int32]committed{}
		s.offsets[topic] = parts
	}
	if old, ok := parts[partition]; ok && old.lsn > c.lsn {
		return // a later commit was faster
	}
	parts[partition] = c
}

// flight is a commit that is ordered and not known to be durable.
type flight struct{ offsets []Offset }

// take adds a flight; the group's lock is held.
func (s *groupShell) take(f *flight) { s.flights = append(s.flights, f) }

// land ends a flight; the group's lock is held.
func (s *groupShell) land(f *flight) {
	if i := slices.Index(s.flights, f); i >= 0 {
		s.flights = slices.Delete(s.flights, i, i+1)
	}
}

// standing are the offsets in topics that are there. One that was deleted since the door looked is like one that is deleted just after the commit.
func (gs *Groups) standing(offsets []Offset) []Offset {
	for i := range offsets {
		if _, ok := gs.b.Topic(offsets[i].Topic); ok {
			continue
		}
		kept := slices.Clone(offsets[:i])
		for _, o := range offsets[i+1:] {
			if _, ok := gs.b.Topic(o.Topic); ok {
				kept = append(kept, o)
			}
		}
		return kept
	}
	return offsets
}

// Committer is who commits offsets, or asks for them.
type Committer struct {
	MemberID, Instance string
	Generation         int32 // or the epoch of a member of the new protocol; -1: a client without the group protocol
	KnowsEpochs        bool  // the request is of a version that has the new protocol's errors
}

// mayCommit judges a commit; the group's lock is held.
func (gs *Groups) mayCommit(s *groupShell, now time.Time, who Committer, offsets []Offset) group.Code {
	if s.c == nil {
		return s.g.MayCommit(now, who.MemberID, who.Instance, who.Generation)
	}
	return s.c.MayCommit(who.MemberID, who.Instance, who.Generation, who.KnowsEpochs, func(yield func(string, int32) bool) {
		for _, o := range offsets {
			if !yield(o.Topic, o.Partition) {
				return
			}
		}
	})
}

// MayFetch judges who asks for a group's offsets; only groups in the new protocol care.
func (gs *Groups) MayFetch(id string, who Committer) (group.Code, error) {
	s, err := gs.locked(id, false)
	if err != nil || s == nil {
		return group.OK, err
	}
	defer s.mu.Unlock()
	if s.c == nil {
		return group.OK, nil
	}
	return s.c.MayFetch(who.MemberID, who.Generation), nil
}

// toCommit returns the group with its lock held, or the code for there being none. With create it is made if need be.
func (gs *Groups) toCommit(id string, who Committer, create bool) (*groupShell, group.Code, error) {
	s, err := gs.locked(id, create)
	switch {
	case err != nil:
		return nil, 0, err
	case s != nil:
		return s, group.OK, nil
	case who.Generation >= 0:
		return nil, group.IllegalGeneration, nil
	}
	return nil, group.UnknownMember, nil
}

// Commit stores positions; it returns when they are durable. The code is for all of them: they are stored together or not at all.
func (gs *Groups) Commit(ctx context.Context, id string, who Committer, offsets []Offset) (group.Code, error) {
	s, code, err := gs.toCommit(id, who, who.MemberID == "" && who.Generation < 0)
	if s == nil {
		return code, err
	}
	now := gs.b.clock.Now()
	code = gs.mayCommit(s, now, who, offsets)
	if offsets = gs.standing(offsets); code != group.OK || len(offsets) == 0 {
		s.mu.Unlock()
		return code, nil
	}
	u := journal.NewUnit()
	for i := range offsets {
		o := &offsets[i]
		kv.AppendMeta(u, offsetKey(id, o.Topic, o.Partition), o.committed(now.UnixMilli()).encode())
	}
	lsn, err := gs.b.journal.Commit(u, nil)
	if err != nil {
		s.mu.Unlock()
		return 0, err
	}
	f := &flight{offsets: offsets}
	s.inFlight++
	s.take(f)
	s.mu.Unlock()

	err = gs.b.journal.Wait(context.WithoutCancel(ctx), lsn)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	s.land(f)
	if err != nil {
		return 0, err
	}
	for i := range f.offsets {
		o := &f.offsets[i]
		c := o.committed(now.UnixMilli())
		c.lsn = lsn
		s.set(o.Topic, o.Partition, c)
	}
	return group.OK, nil
}

// Committed returns a group's position in one partition; ok is false if there is none.
func (gs *Groups) Committed(id, topic string, partition int32) (o Offset, ok bool, err error) {
	s, err := gs.locked(id, false)
	if err != nil || s == nil {
		return Offset{}, false, err
	}
	defer s.mu.Unlock()
	c, ok := s.offsets[topic][partition]
	return Offset{topic, partition, c.offset, c.leaderEpoch, c.metadata}, ok, nil
}

// AllCommitted returns all positions of a group, by topic and partition.
func (gs *Groups) AllCommitted(id string) ([]Offset, error) {
	s, err := gs.locked(id, false)
	if err != nil || s == nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []Offset
	for topic, parts := range s.offsets {
		for p, c := range parts {
			out = append(out, Offset{topic, p, c.offset, c.leaderEpoch, c.metadata})
		}
	}
	slices.SortFunc(out, func(a, b Offset) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition - b.Partition)
	})
	return out, nil
}

// expireOffsets forgets positions that have outlived their use, and groups of which nothing is left.
func (gs *Groups) expireOffsets() {
	now := gs.b.clock.Now()
	for _, s := range gs.all() {
		s.mu.Lock()
		if s.gone || s.inFlight > 0 {
			s.mu.Unlock()
			continue
		}
		since := s.emptySince()
		gs.forgetOffsets(s, func(topic string, c committed) bool {
			// While there are members, what none of them reads any more ages from its commit on.
			return (!since.IsZero() || !s.subscribedTo(topic)) && c.expired(since, now, gs.b.o.OffsetsRetention)
		})
		if since.IsZero() {
			s.mu.Unlock()
			continue
		}
		if len(s.offsets) == 0 && now.Sub(since) > time.Minute {
			if _, err := gs.drop(s); err != nil {
				gs.b.log.Warn("an empty group cannot be removed", "group", s.id, "err", err)
			}
		}
		s.mu.Unlock()
	}
}

// subscribedTo reports whether the positions in a topic are in use; the lock is held.
func (s *groupShell) subscribedTo(topic string) bool {
	if s.c != nil {
		return s.c.SubscribedTo(topic)
	}
	return s.g.SubscribedTo(topic)
}

// DeleteOffsets forgets a group's positions; the codes are one for each. Those in topics that a member subscribes to stay.
func (gs *Groups) DeleteOffsets(ctx context.Context, id string, places []Offset) ([]group.Code, error) {
	s, err := gs.locked(id, false)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknownGroup, clip(id))
	}
	codes := make([]group.Code, len(places))
	doomed := map[string]map[int32]bool{}
	for i, o := range places {
		if s.subscribedTo(o.Topic) {
			codes[i] = group.SubscribedToTopic
			continue
		}
		if doomed[o.Topic] == nil {
			doomed[o.Topic] = map[int32]bool{}
		}
		doomed[o.Topic][o.Partition] = true
	}
	lsn, err := gs.forgetPlaces(s, func(topic string, partition int32, _ committed) bool { return doomed[topic][partition] })
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return codes, gs.b.journal.Wait(context.WithoutCancel(ctx), lsn)
}

// topicDeleted forgets the positions in a topic that was deleted: one that is made anew under the name starts from nothing.
func (gs *Groups) topicDeleted(topic string) {
	in := func(o Offset) bool { return o.Topic == topic }
	for _, s := range gs.all() {
		s.mu.Lock()
		if !s.gone && s.offsets[topic] != nil {
			gs.forgetOffsets(s, func(t string, _ committed) bool { return t == topic })
		}
		u := journal.NewUnit()
		for _, f := range s.flights {
			if !slices.ContainsFunc(f.offsets, in) {
				continue
			}
			for _, o := range f.offsets {
				if in(o) {
					kv.AppendMeta(u, offsetKey(s.id, o.Topic, o.Partition), nil)
				}
			}
			f.offsets = slices.DeleteFunc(slices.Clone(f.offsets), in) // a copy: it may be somebody else's, too
		}
		if u.Len() == 0 {
			u.Free()
		} else {
			_, _ = gs.b.journal.Commit(u, nil) // as in forgetOffsets
		}
		s.mu.Unlock()
	}
}

// forgetOffsets deletes the positions that match; the group's lock is held. A journal that has failed ends the process, so there is nothing to do then.
func (gs *Groups) forgetOffsets(s *groupShell, match func(topic string, c committed) bool) {
	_, _ = gs.forgetPlaces(s, func(topic string, _ int32, c committed) bool { return match(topic, c) })
}

// forgetPlaces is forgetOffsets for those who look at partitions, and want to wait.
func (gs *Groups) forgetPlaces(s *groupShell, match func(topic string, partition int32, c committed) bool) (journal.LSN, error) {
	u := journal.NewUnit()
	type place struct {
		topic     string
		partition int32
	}
	var places []place
	for topic, parts := range s.offsets {
		for p, c := range parts {
			if match(topic, p, c) {
				kv.AppendMeta(u, offsetKey(s.id, topic, p), nil)
				places = append(places, place{topic, p})
			}
		}
	}
	if len(places) == 0 {
		u.Free()
		return 0, nil
	}
	lsn, err := gs.b.journal.Commit(u, nil)
	if err != nil {
		return 0, err
	}
	for _, p := range places {
		delete(s.offsets[p.topic], p.partition)
		if len(s.offsets[p.topic]) == 0 {
			delete(s.offsets, p.topic)
		}
	}
	return lsn, nil
}

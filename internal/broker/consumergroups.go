package broker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
)

// Groups in the new protocol are stored under "consumer-group/" id, and each member under "consumer-member/" group NUL member: a change of one member
// does not write the others.
const (
	consumerPrefix = "consumer-group/"
	memberPrefix   = "consumer-member/"
)

func memberKey(groupID, member string) string { return memberPrefix + groupID + "\x00" + member }

// maxMemberIDLen bounds what a client may call itself.
const maxMemberIDLen = 1024

func (gs *Groups) loadConsumers(now time.Time) error {
	err := gs.b.kv.ScanMeta(consumerPrefix, func(key string, value []byte) error {
		id := strings.TrimPrefix(key, consumerPrefix)
		c, err := group.RestoreConsumer(gs.consumerConfig(id), value, now)
		if err != nil {
			return fmt.Errorf("group %q: %w", id, err)
		}
		gs.newShell(id, nil).c = c
		return nil
	})
	if err != nil {
		return err
	}
	return gs.b.kv.ScanMeta(memberPrefix, func(key string, value []byte) error {
		id, member, _ := strings.Cut(strings.TrimPrefix(key, memberPrefix), "\x00")
		s := gs.byID[id]
		if s == nil || s.c == nil {
			return fmt.Errorf("metadata key %q: the group is missing", key)
		}
		if err := s.c.RestoreMember(member, value, now); err != nil {
			return fmt.Errorf("group %q: %w", id, err)
		}
		return nil
	})
}

// ConsumerHeartbeat handles what a member of the new protocol says. The event's All and NewID are set here.
func (gs *Groups) ConsumerHeartbeat(ctx context.Context, id string, ev group.ConsumerHeartbeat) (group.ConsumerReply, error) {
	if len(ev.MemberID) > maxMemberIDLen || len(ev.Instance) > maxMemberIDLen {
		return group.ConsumerReply{Code: group.InvalidRequest, Message: "the member id or instance id is too long"}, nil
	}
	ev.NewID = newTopicID().String()
	ev.All = gs.b.Image()
	if r := ev.Check(); r.Code != group.OK {
		return r, nil
	}
	joins := ev.Epoch == group.EpochJoin
	s, err := gs.locked(id, joins)
	if err != nil {
		return group.ConsumerReply{}, err
	}
	missing := group.ConsumerReply{Code: group.GroupIDNotFound, Message: fmt.Sprintf("Group %s not found.", clip(id))}
	if s == nil {
		return missing, nil
	}
	now := gs.b.clock.Now()
	c, replies := s.c, []group.Reply(nil)
	if c == nil {
		switch {
		case !joins:
			s.mu.Unlock()
			missing.Message = fmt.Sprintf("Group %s is not a consumer group.", clip(id))
			return missing, nil
		case s.empty():
			c = group.NewConsumer(gs.consumerConfig(id), now)
		default:
			var ok bool
			if c, replies, ok = group.Upgrade(s.g, gs.consumerConfig(id), now, ev.All); !ok {
				s.mu.Unlock()
				missing.Message = fmt.Sprintf("Group %s is not a consumer group, and its members cannot become those of one.", clip(id))
				return missing, nil
			}
		}
	}
	r := c.Heartbeat(now, &ev)
	if r.Code != group.OK {
		if s.c == nil && s.empty() && !s.stored && len(s.offsets) == 0 && s.inFlight == 0 {
			_, _ = gs.drop(s) // it was made for this member; nothing of it is stored
		}
		s.mu.Unlock()
		return r, nil
	}
	u := journal.NewUnit()
	if s.c == nil {
		s.c, s.g = c, nil
		if s.stored {
			kv.AppendMeta(u, groupPrefix+id, nil)
			s.stored = false
		}
	}
	err = gs.storeConsumer(s, u)
	s.deliver(replies, err)
	gs.arm(s, r.Wake)
	lsn := s.persisted
	s.mu.Unlock()
	if err != nil {
		return r, err
	}
	if lsn > gs.b.journal.Durable() {
		err = gs.b.journal.Wait(ctx, lsn)
	}
	return r, err
}

// storeConsumer orders what has changed of a group in the new protocol, in the unit if there is one. A group that only has members of the classic
// protocol left becomes a classic group. The group's lock is held.
func (gs *Groups) storeConsumer(s *groupShell, u *journal.Unit) error {
	if u == nil {
		u = journal.NewUnit()
	}
	changes := s.c.Changes()
	if s.c.AllClassic() {
		for id := range changes.Members {
			kv.AppendMeta(u, memberKey(s.id, id), nil)
		}
		s.deleteConsumer(u)
		s.g, s.c = s.c.Downgrade(gs.cfg, gs.b.clock.Now()), nil
		kv.AppendMeta(u, groupPrefix+s.id, s.g.Snapshot())
		s.stored = true
		defer gs.step(s, group.Tick{}) // arms its timer
	} else {
		if changes.Group != nil {
			kv.AppendMeta(u, consumerPrefix+s.id, changes.Group)
		}
		for id, raw := range changes.Members {
			kv.AppendMeta(u, memberKey(s.id, id), raw)
		}
	}
	if u.Len() == 0 {
		u.Free()
		return nil
	}
	lsn, err := gs.b.journal.Commit(u, nil)
	if err != nil {
		return err
	}
	s.persisted = lsn
	return nil
}

// deleteConsumer removes what is stored of a group in the new protocol.
func (s *groupShell) deleteConsumer(u *journal.Unit) {
	kv.AppendMeta(u, consumerPrefix+s.id, nil)
	for _, id := range s.c.MemberIDs() {
		kv.AppendMeta(u, memberKey(s.id, id), nil)
	}
}

// backToClassic makes a group in the new protocol a classic one, if it has no members and one of the classic protocol wants to join; the lock is held.
func (gs *Groups) backToClassic(s *groupShell, ev group.Event) bool {
	if _, joins := ev.(group.Join); !joins || s.c.Len() > 0 {
		return false
	}
	u := journal.NewUnit()
	s.deleteConsumer(u)
	s.g, s.c = group.New(gs.cfg, gs.b.clock.Now()), nil
	if lsn, err := gs.b.journal.Commit(u, nil); err == nil { // otherwise the process ends
		s.persisted = lsn
	}
	return true
}

// stepClassicMember runs an event of the classic protocol in a group of the new one; the lock is held.
func (gs *Groups) stepClassicMember(s *groupShell, ev group.Event) {
	now := gs.b.clock.Now()
	var r group.Reply
	var wake time.Time
	switch ev := ev.(type) {
	case group.Join:
		if len(ev.MemberID) > maxMemberIDLen || len(ev.Instance) > maxMemberIDLen {
			r = group.Reply{Token: ev.Token, Code: group.InvalidRequest, Generation: -1}
			break
		}
		r, wake = s.c.Join(now, &ev, gs.b.Image())
	case group.Sync:
		r, wake = s.c.Sync(now, &ev)
	case group.Heartbeat:
		r.Token = ev.Token
		r.Code, wake = s.c.Beat(now, &ev, gs.b.Image())
	case group.Leave:
		r, wake = s.c.Leave(now, &ev)
	default:
		return
	}
	err := gs.storeConsumer(s, nil)
	s.deliver([]group.Reply{r}, err)
	if s.c != nil {
		gs.arm(s, wake)
	}
}

// ConsumerInfo describes a group in the new protocol to administrators.
type ConsumerInfo struct {
	ID, State, Assignor string
	Epoch, TargetEpoch  int32
	Members             []group.ConsumerMember
}

// DescribeConsumer returns what there is to know of a group in the new protocol; ok is false if there is none of that id.
func (gs *Groups) DescribeConsumer(id string) (info ConsumerInfo, ok bool, err error) {
	s, err := gs.locked(id, false)
	if err != nil || s == nil {
		return ConsumerInfo{}, false, err
	}
	defer s.mu.Unlock()
	if s.c == nil {
		return ConsumerInfo{}, false, nil
	}
	return ConsumerInfo{
		ID: id, State: s.c.State(), Assignor: s.c.Assignor(), Epoch: s.c.Epoch(), TargetEpoch: s.c.TargetEpoch(), Members: s.c.Members(),
	}, true, nil
}

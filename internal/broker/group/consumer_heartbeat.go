package group

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
)

// ConsumerHeartbeat is all that a member of the new protocol ever says. What has not changed since its last one may be left out.
type ConsumerHeartbeat struct {
	MemberID, Instance, Rack string
	NewID                    string // what a member without an id is to be called (version 0)
	ClientID, Host           string
	Epoch                    int32
	Rebalance                time.Duration // negative: as before
	HasTopics                bool
	Topics                   []string
	Regex                    *string // nil: as before; empty: none
	Assignor                 *string // nil: as before
	HasOwned                 bool
	Owned                    Partitions // what the member holds
	All                      *Topics    // that there are

	regex *regexp.Regexp
}

// ConsumerReply answers a heartbeat.
type ConsumerReply struct {
	Code      Code
	Message   string
	MemberID  string
	Epoch     int32
	Heartbeat time.Duration // when to be heard of again
	// Assignment is what the member may hold; only if HasAssignment.
	HasAssignment bool
	Assignment    Partitions
	// Wake is when Tick is due at the latest.
	Wake time.Time
}

func refused(c Code, format string, args ...any) ConsumerReply {
	return ConsumerReply{Code: c, Message: fmt.Sprintf(format, args...)}
}

// Heartbeat handles what a member says, which must have passed Check.
func (c *Consumer) Heartbeat(now time.Time, ev *ConsumerHeartbeat) ConsumerReply {
	if ev.Epoch < 0 {
		return c.leave(now, ev)
	}
	m, r := c.admit(now, ev)
	if r.Code != OK {
		return r
	}
	c.update(m, ev)
	c.refresh(now, ev.All)
	before, state := m.Assigned, m.State
	// One that joins again says that it holds nothing, but it may be its older self that says so, late. What it has to let go is free when it says
	// so under an epoch.
	moved := c.reconcile(m, ev.Owned, ev.HasOwned && ev.Epoch != EpochJoin)

	m.session = now.Add(c.cfg.Session)
	if m.State != unrevoked {
		m.revoke = time.Time{}
	} else if state != unrevoked || m.revoke.IsZero() {
		m.revoke = now.Add(m.Rebalance)
	}
	r = ConsumerReply{MemberID: m.ID, Epoch: m.Epoch, Heartbeat: c.cfg.Heartbeat, Wake: sooner(m.deadline(), c.due())}
	whole := ev.Rebalance >= 0 && (ev.HasTopics || ev.Regex != nil) && ev.HasOwned
	if ev.Epoch == EpochJoin || whole || moved && !m.Assigned.samePlaces(before) {
		r.HasAssignment, r.Assignment = true, m.Assigned.partitions()
	}
	return r
}

// Check refuses what makes no sense in any group.
func (ev *ConsumerHeartbeat) Check() ConsumerReply {
	switch {
	case ev.Epoch < EpochLeaveStatic:
		return refused(InvalidRequest, "MemberEpoch is invalid.")
	case ev.Epoch != EpochJoin && ev.MemberID == "", ev.MemberID == "" && ev.NewID == "":
		return refused(InvalidRequest, "MemberId can't be empty.")
	case ev.Epoch == EpochLeaveStatic && ev.Instance == "":
		return refused(InvalidRequest, "InstanceId can't be null.")
	case ev.Assignor != nil && *ev.Assignor != "" && !slices.Contains(Assignors, *ev.Assignor):
		return refused(UnsupportedAssignor, "ServerAssignor %s is not supported. Supported assignors: %s.", *ev.Assignor, strings.Join(Assignors, ", "))
	}
	if ev.Regex != nil && *ev.Regex != "" {
		var err error
		if ev.regex, err = compile(*ev.Regex); err != nil {
			why := err.Error()
			if bad := (*syntax.Error)(nil); errors.As(err, &bad) {
				why = bad.Code.String()
			}
			return refused(InvalidRegex, "SubscribedTopicRegex `%s` is not a valid regular expression: %s.", *ev.Regex, why)
		}
	}
	if ev.Epoch != EpochJoin {
		return ConsumerReply{}
	}
	switch {
	case ev.Rebalance < 0:
		return refused(InvalidRequest, "RebalanceTimeoutMs must be provided in first request.")
	case !ev.HasOwned || ev.Owned.size() > 0:
		return refused(InvalidRequest, "TopicPartitions must be empty when (re-)joining.")
	case !ev.HasTopics && ev.Regex == nil:
		return refused(InvalidRequest, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
	}
	return ConsumerReply{}
}

// admit finds the member that speaks, or takes it in.
func (c *Consumer) admit(now time.Time, ev *ConsumerHeartbeat) (*consumer, ConsumerReply) {
	id := ev.MemberID
	if id == "" {
		id = ev.NewID
	}
	m := c.members[id]
	if ev.Instance != "" {
		return c.admitStatic(now, ev, id)
	}
	switch {
	case m == nil && ev.Epoch == EpochJoin:
		if len(c.members) >= c.cfg.MaxMembers {
			return nil, refused(GroupFull, "The consumer group has reached its maximum capacity of %d members.", c.cfg.MaxMembers)
		}
		return c.add(id, ""), ConsumerReply{}
	case m == nil:
		return nil, refused(UnknownMember, "Member %s is not a member of the group.", id)
	case ev.Epoch == EpochJoin:
		return m, ConsumerReply{}
	}
	return m, m.checkEpoch(ev)
}

func (c *Consumer) admitStatic(now time.Time, ev *ConsumerHeartbeat, id string) (*consumer, ConsumerReply) {
	holder := c.members[c.static[ev.Instance]]
	if ev.Epoch != EpochJoin {
		switch {
		case holder == nil:
			return nil, refused(UnknownMember, "Instance id %s is unknown.", ev.Instance)
		case holder.ID != id:
			return nil, refused(FencedInstance, "Static member %s with instance id %s was fenced by member %s.", id, ev.Instance, holder.ID)
		}
		return holder, holder.checkEpoch(ev)
	}
	switch {
	case holder == nil:
		if len(c.members) >= c.cfg.MaxMembers {
			return nil, refused(GroupFull, "The consumer group has reached its maximum capacity of %d members.", c.cfg.MaxMembers)
		}
		if m := c.members[id]; m != nil { // it was a dynamic member until now
			c.drop(now, m)
		}
		return c.add(id, ev.Instance), ConsumerReply{}
	case holder.Classic == nil && holder.Epoch != EpochLeaveStatic:
		return nil, refused(UnreleasedInstance, "Static member %s with instance id %s cannot join the group because the instance id is owned by %s member.", id, ev.Instance, holder.ID)
	}
	return c.succeed(holder, id), ConsumerReply{}
}

// succeed lets a static member that was restarted take its old place, target and partitions under a new id. Nobody else notices.
func (c *Consumer) succeed(old *consumer, id string) *consumer {
	c.free(old)
	delete(c.members, old.ID)
	if old.ID != id {
		c.removed = append(c.removed, old.ID)
	}
	m := old
	// Its older self has no partitions any more: it was stopped, or is fenced by its instance.
	m.ID, m.Epoch, m.Previous, m.State, m.Assigned, m.Revoking = id, EpochJoin, EpochJoin, reconciled, nil, nil
	c.change(m)
	m.Classic, m.revoke, m.rejoin = nil, time.Time{}, time.Time{}
	c.members[id], c.static[m.Instance] = m, id
	return m
}

func (c *Consumer) add(id, instance string) *consumer {
	m := &consumer{ID: id, Instance: instance}
	c.change(m)
	c.members[id] = m
	if instance != "" {
		c.static[instance] = id
	}
	c.stale = true
	return m
}

// checkEpoch sees that the member is where the group believes it to be, or one answer behind.
func (m *consumer) checkEpoch(ev *ConsumerHeartbeat) ConsumerReply {
	switch {
	case ev.Epoch > m.Epoch:
		return refused(FencedMemberEpoch, "The consumer group member has a greater member epoch (%d) than the one known by the group coordinator (%d). The member must abandon all its partitions and rejoin.", ev.Epoch, m.Epoch)
	case ev.Epoch == m.Epoch, ev.Epoch == m.Previous && ev.HasOwned && m.holds(ev.Owned):
		return ConsumerReply{}
	}
	return refused(FencedMemberEpoch, "The consumer group member has a smaller member epoch (%d) than the one known by the group coordinator (%d). The member must abandon all its partitions and rejoin.", ev.Epoch, m.Epoch)
}

func (m *consumer) holds(owned Partitions) bool {
	for id, list := range owned {
		for _, p := range list {
			if !m.Assigned.has(id, p) {
				return false
			}
		}
	}
	return true
}

// update takes over what the member says of itself.
func (c *Consumer) update(m *consumer, ev *ConsumerHeartbeat) {
	changed := false
	if ev.Regex != nil && *ev.Regex != m.Regex {
		m.Regex, m.regex = *ev.Regex, ev.regex
		changed, c.stale = true, true
	}
	if ev.HasTopics {
		topics := slices.Clone(ev.Topics)
		slices.Sort(topics)
		topics = slices.Compact(topics)
		if !slices.Equal(topics, m.Topics) {
			m.Topics = topics
			changed, c.stale = true, true
		}
	}
	if ev.Assignor != nil && *ev.Assignor != m.Assignor {
		m.Assignor = *ev.Assignor
		changed, c.stale = true, true
	}
	set := func(to *string, from string) {
		if from != "" && *to != from {
			*to, changed = from, true
		}
	}
	set(&m.Rack, ev.Rack)
	set(&m.ClientID, ev.ClientID)
	set(&m.Host, ev.Host)
	if ev.Rebalance >= 0 && ev.Rebalance != m.Rebalance {
		m.Rebalance, changed = ev.Rebalance, true
	}
	if m.Classic != nil { // it has changed over to the new protocol
		m.Classic, m.rejoin, changed = nil, time.Time{}, true
	}
	if changed {
		c.change(m)
	}
}

func (c *Consumer) leave(now time.Time, ev *ConsumerHeartbeat) ConsumerReply {
	m := c.members[ev.MemberID]
	if ev.Instance != "" {
		holder := c.members[c.static[ev.Instance]]
		switch {
		case holder == nil:
			return refused(UnknownMember, "Instance id %s is unknown.", ev.Instance)
		case holder.ID != ev.MemberID:
			return refused(FencedInstance, "Static member %s with instance id %s was fenced by member %s.", ev.MemberID, ev.Instance, holder.ID)
		}
	}
	if m == nil {
		return refused(UnknownMember, "Member %s is not a member of the group.", ev.MemberID)
	}
	r := ConsumerReply{MemberID: m.ID, Epoch: ev.Epoch}
	if ev.Epoch == EpochLeaveStatic {
		// It keeps its place and partitions until its session ends.
		m.moveTo(EpochLeaveStatic)
		c.change(m)
		m.session = now.Add(c.cfg.Session)
		r.Wake = m.deadline()
		return r
	}
	c.drop(now, m)
	c.settle(now)
	r.Wake = c.due()
	return r
}

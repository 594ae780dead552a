package group

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// classicMember is what a member that speaks the classic protocol says beyond what others do. Such a member lives in a group of the new protocol while
// a fleet is being moved from one to the other: its generation is its epoch, and it is told to join again whenever it has to let go or could get more.
type classicMember struct {
	Session   time.Duration `json:"session"`
	Protocols []Protocol    `json:"protocols"`
}

func (m *classicMember) offers(protocol string) bool {
	return slices.ContainsFunc(m.Protocols, func(p Protocol) bool { return p.Name == protocol })
}

// consumerKind is the protocol type whose subscriptions and assignments the server can read.
const consumerKind = "consumer"

// subscription is what a classic consumer says in the metadata of its protocols.
type subscription struct {
	topics []string
	owned  Partitions
	rack   string
}

// parseSubscription reads the metadata of the protocol that the member prefers.
func parseSubscription(protocols []Protocol, all *Topics) (subscription, bool) {
	var out subscription
	if len(protocols) == 0 {
		return out, false
	}
	var meta kmsg.ConsumerMemberMetadata
	if err := meta.ReadFrom(protocols[0].Metadata); err != nil {
		return out, false
	}
	out.topics, out.owned = meta.Topics, Partitions{}
	if meta.Rack != nil {
		out.rack = *meta.Rack
	}
	for _, o := range meta.OwnedPartitions {
		if t, ok := all.ByName(o.Topic); ok {
			list := append(out.owned[t.ID], o.Partitions...)
			slices.Sort(list)
			out.owned[t.ID] = slices.Compact(list)
		}
	}
	return out, true
}

// Join lets a member of the classic protocol in, or lets it get on. The answer comes at once; wake is when Tick is due at the latest.
func (c *Consumer) Join(now time.Time, ev *Join, all *Topics) (r Reply, wake time.Time) {
	refuse := func(code Code) (Reply, time.Time) {
		return Reply{Token: ev.Token, Code: code, Generation: -1, MemberID: ev.MemberID}, time.Time{}
	}
	if ev.Session < c.cfg.Classic.MinSession || ev.Session > c.cfg.Classic.MaxSession {
		return refuse(InvalidSession)
	}
	sub, ok := parseSubscription(ev.Protocols, all)
	if !ok || ev.Kind != consumerKind || !c.compatible(ev) {
		return refuse(InconsistentProtocol)
	}
	id := ev.MemberID
	holder := c.members[c.static[ev.Instance]]
	if ev.Instance == "" {
		holder = nil
	}
	switch {
	case id == "" && ev.Instance == "" && ev.KnownIDOnly:
		if len(c.members)+len(c.pending) >= c.cfg.MaxMembers {
			return refuse(GroupFull)
		}
		c.pending[ev.NewID] = now.Add(ev.Session)
		r, _ := refuse(MemberIDRequired)
		r.MemberID = ev.NewID
		return r, c.pending[ev.NewID]
	case id == "":
		id = ev.NewID
	case ev.Instance != "" && holder == nil, ev.Instance == "" && c.members[id] == nil && c.pending[id].IsZero():
		// It was removed, and must not go on as if it had not been.
		return refuse(UnknownMember)
	case holder != nil && holder.ID != id:
		return refuse(FencedInstance)
	}
	m := c.members[id]
	switch {
	case holder != nil && holder.ID != id:
		m = c.succeed(holder, id)
	case m == nil:
		if len(c.members) >= c.cfg.MaxMembers {
			return refuse(GroupFull)
		}
		delete(c.pending, id)
		m = c.add(id, ev.Instance)
	}
	c.updateClassic(m, ev, sub)
	c.refresh(now, all)
	// A heartbeat may have told it to join although the group's epoch is the one it has.
	c.reconcile(m, sub.owned, true)

	m.session, m.rejoin = now.Add(ev.Session), time.Time{}
	if m.State == unrevoked {
		m.revoke = now.Add(m.Rebalance)
	} else {
		m.revoke = time.Time{}
	}
	return Reply{Token: ev.Token, Generation: m.Epoch, Kind: consumerKind, Protocol: m.Classic.Protocols[0].Name, MemberID: id}, sooner(m.deadline(), c.due())
}

// compatible reports whether the newcomer offers a protocol that all other classic members do.
func (c *Consumer) compatible(ev *Join) bool {
	return slices.ContainsFunc(ev.Protocols, func(p Protocol) bool {
		for id, m := range c.members {
			if m.Classic != nil && id != ev.MemberID && (ev.Instance == "" || m.Instance != ev.Instance) && !m.Classic.offers(p.Name) {
				return false
			}
		}
		return true
	})
}

func (c *Consumer) updateClassic(m *consumer, ev *Join, sub subscription) {
	rebalance := ev.Rebalance
	if rebalance <= 0 {
		rebalance = ev.Session
	}
	topics := slices.Clone(sub.topics)
	slices.Sort(topics)
	topics = slices.Compact(topics)
	if !slices.Equal(topics, m.Topics) || m.Regex != "" {
		m.Topics, m.Regex, m.regex = topics, "", nil
		c.stale = true
	}
	m.Rack, m.ClientID, m.Host, m.Rebalance, m.Assignor = sub.rack, ev.ClientID, ev.Host, rebalance, ""
	m.Classic = &classicMember{Session: ev.Session, Protocols: ev.Protocols}
	c.change(m)
}

// classic finds a member that speaks the classic protocol.
func (c *Consumer) classic(id, instance string) (*consumer, Code) {
	m, code := c.find(id, instance)
	if code == OK && m.Classic == nil {
		return nil, UnknownMember
	}
	return m, code
}

// find finds a member, which must be the one that holds its instance.
func (c *Consumer) find(id, instance string) (*consumer, Code) {
	if instance != "" {
		holder, ok := c.static[instance]
		switch {
		case !ok:
			return nil, UnknownMember
		case holder != id:
			return nil, FencedInstance
		}
	}
	m := c.members[id]
	if m == nil {
		return nil, UnknownMember
	}
	return m, OK
}

// mustRejoin reports whether a classic member has something to let go, or to get.
func (c *Consumer) mustRejoin(m *consumer) bool {
	return m.Epoch < c.targetEpoch || m.State == unrevoked || m.State == unreleased && c.somethingFree(m)
}

// askToRejoin notes that the member was told to join again, which it has to do in time.
func (m *consumer) askToRejoin(now time.Time) {
	if m.rejoin.IsZero() {
		m.rejoin = now.Add(m.Rebalance)
	}
}

// Sync tells a classic member its assignment.
func (c *Consumer) Sync(now time.Time, ev *Sync) (r Reply, wake time.Time) {
	r.Token = ev.Token
	m, code := c.classic(ev.MemberID, ev.Instance)
	switch {
	case code != OK:
		r.Code = code
		return r, time.Time{}
	case ev.Generation != m.Epoch:
		r.Code = IllegalGeneration
		return r, time.Time{}
	case ev.Kind != "" && ev.Kind != consumerKind, ev.Protocol != "" && ev.Protocol != m.Classic.Protocols[0].Name:
		r.Code = InconsistentProtocol
		return r, time.Time{}
	}
	m.session = now.Add(m.Classic.Session)
	if m.Epoch < c.targetEpoch && m.State != unrevoked {
		m.askToRejoin(now)
		r.Code = RebalanceInProgress
		return r, m.deadline()
	}
	r.Kind, r.Protocol = consumerKind, m.Classic.Protocols[0].Name
	r.Assignment = c.encodeAssignment(m)
	return r, m.deadline()
}

// encodeAssignment writes what a classic member has as it reads it, by topic name, in the version of its subscription.
func (c *Consumer) encodeAssignment(m *consumer) []byte {
	var a kmsg.ConsumerMemberAssignment
	var sub kmsg.ConsumerMemberMetadata
	if err := sub.ReadFrom(m.Classic.Protocols[0].Metadata); err == nil {
		a.Version = sub.Version
	}
	parts := m.Assigned.partitions()
	for _, id := range parts.ids() {
		if t, ok := c.topics.ByID(id); ok {
			a.Topics = append(a.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: t.Name, Partitions: parts[id]})
		}
	}
	return a.AppendTo(nil)
}

// Beat is the heartbeat of a classic member.
func (c *Consumer) Beat(now time.Time, ev *Heartbeat, all *Topics) (code Code, wake time.Time) {
	m, code := c.classic(ev.MemberID, ev.Instance)
	switch {
	case code != OK:
		return code, time.Time{}
	case ev.Generation != m.Epoch:
		return IllegalGeneration, time.Time{}
	}
	c.refresh(now, all)
	m.session = now.Add(m.Classic.Session)
	if c.mustRejoin(m) {
		m.askToRejoin(now)
		return RebalanceInProgress, sooner(m.deadline(), c.due())
	}
	return OK, sooner(m.deadline(), c.due())
}

// Leave removes members, as classic members and administrators ask; the reply has a code for each.
func (c *Consumer) Leave(now time.Time, ev *Leave) (r Reply, wake time.Time) {
	r.Token = ev.Token
	for _, l := range ev.Members {
		id := l.MemberID
		if id == "" && l.Instance != "" {
			id = c.static[l.Instance]
		}
		m, code := c.find(id, l.Instance)
		r.Leavers = append(r.Leavers, code)
		if code == OK {
			c.drop(now, m)
		}
	}
	c.settle(now)
	return r, c.due()
}

// AllClassic reports whether there are members, and none of them speaks the new protocol.
func (c *Consumer) AllClassic() bool {
	for _, m := range c.members {
		if m.Classic == nil {
			return false
		}
	}
	return len(c.members) > 0
}

// Upgrade makes a group of the new protocol of a classic one that has members: they stay, with what they hold. ok is false if they are no consumers whose
// subscriptions can be read. Whoever waits for the old group gets one of the replies.
func Upgrade(g *Group, cfg ConsumerConfig, now time.Time, all *Topics) (c *Consumer, replies []Reply, ok bool) {
	if g.kind != consumerKind || len(g.members) == 0 || len(g.members) > cfg.MaxMembers {
		return nil, nil, false
	}
	c = NewConsumer(cfg, now)
	c.epoch, c.targetEpoch, c.topics = g.generation, g.generation, all
	// What a member said when it joined it has not let go; not even when it was assigned less since: it says so by joining again. What others were
	// assigned comes first.
	var rest []func()
	for _, old := range g.inOrder() {
		sub, ok := parseSubscription(old.Protocols, all)
		if !ok {
			return nil, nil, false
		}
		m := &consumer{
			ID: old.ID, Instance: old.Instance, Rack: sub.rack, ClientID: old.ClientID, Host: old.Host, Rebalance: old.Rebalance, Topics: sub.topics,
			Epoch: g.generation, Previous: g.generation, Classic: &classicMember{Session: old.Session, Protocols: old.Protocols},
		}
		c.change(m)
		slices.Sort(m.Topics)
		m.Topics = slices.Compact(m.Topics)
		m.Assigned = held{}
		keep := func(owned Partitions) {
			for id, list := range owned {
				for _, p := range list {
					if _, taken := c.holders[id][p]; !taken {
						m.Assigned.put(id, p, g.generation)
						c.hold(m.ID, id, p)
					}
				}
			}
		}
		if g.assigned && old.join == 0 {
			keep(parseAssignment(old.Assignment, all))
			rest = append(rest, func() { keep(sub.owned) })
		} else {
			keep(sub.owned)
		}
		m.Target = m.Assigned.partitions() // not the rest: it is to be let go
		m.session = now.Add(old.Session)
		if g.state != Stable {
			m.askToRejoin(now)
		}
		c.members[m.ID] = m
		if m.Instance != "" {
			c.static[m.Instance] = m.ID
		}
		for _, t := range []Token{old.join, old.sync} {
			if t != 0 {
				replies = append(replies, Reply{Token: t, Code: RebalanceInProgress, Generation: -1, MemberID: old.ID})
			}
		}
	}
	for _, keep := range rest {
		keep()
	}
	maps.Copy(c.pending, g.pending)
	c.interest = c.look()
	return c, replies, true
}

func parseAssignment(raw []byte, all *Topics) Partitions {
	out := Partitions{}
	var a kmsg.ConsumerMemberAssignment
	if len(raw) == 0 || a.ReadFrom(raw) != nil {
		return out
	}
	for _, at := range a.Topics {
		if t, ok := all.ByName(at.Topic); ok {
			out[t.ID] = append(out[t.ID], at.Partitions...)
		}
	}
	return out
}

// Downgrade makes a classic group of one whose members all speak the classic protocol. They keep what they hold until they have joined again, which they
// are told to do.
func (c *Consumer) Downgrade(cfg Config, now time.Time) *Group {
	g := New(cfg, now)
	g.kind, g.state, g.assigned = consumerKind, Stable, true
	for _, old := range c.inOrder() {
		g.seq++
		g.generation = max(g.generation, old.Epoch) // which no member has been ahead of that may still be heard of
		m := &member{
			ID: old.ID, Instance: old.Instance, ClientID: old.ClientID, Host: old.Host, Session: old.Classic.Session, Rebalance: old.Rebalance,
			Protocols: old.Classic.Protocols, Assignment: c.encodeAssignment(old), seq: g.seq, synced: true, deadline: old.session,
		}
		g.members[m.ID] = m
		if m.Instance != "" {
			g.static[m.Instance] = m.ID
		}
		if g.leader == "" {
			g.leader = m.ID
		}
	}
	g.protocol = g.choose()
	var out Output
	g.prepare(now, &out) // nobody waits yet, so nobody is answered
	return g
}

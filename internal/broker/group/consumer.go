package group

import (
	"cmp"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"time"
)

// The epochs by which a member of the new protocol says that it comes or goes.
const (
	EpochJoin        int32 = 0
	EpochLeave       int32 = -1
	EpochLeaveStatic int32 = -2 // for a while: it comes back under its instance
)

// ConsumerConfig is what an operator may set of groups in the new protocol.
type ConsumerConfig struct {
	Session    time.Duration // a member that is silent for so long is removed
	Heartbeat  time.Duration // how often members are told to be heard of
	Assignment time.Duration // least time between two assignments (KIP-1263); 0: each change is followed by one at once
	MaxMembers int
	Classic    Config // for members that speak the classic protocol
}

// memberState is where a member is on its way to the target assignment.
type memberState uint8

const (
	reconciled memberState = iota
	unrevoked              // it has to let partitions go before it gets on
	unreleased             // it waits for partitions that others have not let go
)

// consumer is one member of a group in the new protocol. Exported fields are stored.
type consumer struct {
	ID        string         `json:"id"`
	Instance  string         `json:"instance,omitempty"`
	Rack      string         `json:"rack,omitempty"`
	ClientID  string         `json:"client"`
	Host      string         `json:"host"`
	Rebalance time.Duration  `json:"rebalance"`
	Topics    []string       `json:"topics,omitempty"`
	Regex     string         `json:"regex,omitempty"`
	Assignor  string         `json:"assignor,omitempty"`
	Epoch     int32          `json:"epoch"`
	Previous  int32          `json:"previous"`
	State     memberState    `json:"state"`
	Assigned  held           `json:"assigned,omitempty"`
	Revoking  held           `json:"revoking,omitempty"`
	Target    Partitions     `json:"target,omitempty"`
	Classic   *classicMember `json:"classic,omitempty"` // of one that speaks the classic protocol

	regex   *regexp.Regexp
	session time.Time // removed then, unless heard of
	revoke  time.Time // removed then, unless it has let go what it must; zero: it must not
	rejoin  time.Time // removed then, unless it has joined again, which one in the classic protocol has been told to; zero: it has not
	dirty   bool      // differs from what is stored: it is in the group's changed
}

// moveTo sets the epoch. The one before is remembered, for the answer that tells of the new one may be lost.
func (m *consumer) moveTo(epoch int32) {
	if epoch != m.Epoch {
		m.Previous, m.Epoch = m.Epoch, epoch
	}
}

// Consumer is the state of one group in the new protocol (KIP-848). It is not safe for concurrent use.
type Consumer struct {
	cfg         ConsumerConfig
	epoch       int32 // of the group: moves with members, subscriptions and topics
	targetEpoch int32 // of the group that the members' targets were computed for
	assignor    string
	members     map[string]*consumer
	static      map[string]string // instance to member id
	holders     map[TopicID]map[int32]string
	pending     map[string]time.Time // ids given to members of the classic protocol, until when they may be used
	topics      *Topics
	matches     map[string][]string // of each expression, in topics
	interest    uint64              // what was subscribed to, and how it looked, when the epoch moved last
	stale       bool                // members or subscriptions have changed since
	assigned    time.Time           // when the targets were computed last; zero: it does not matter
	emptySince  time.Time

	header  bool // the group's own part differs from what is stored
	changed []*consumer
	removed []string
}

// change notes that a member differs from what is stored.
func (c *Consumer) change(m *consumer) {
	if !m.dirty {
		m.dirty = true
		c.changed = append(c.changed, m)
	}
}

// NewConsumer returns an empty group that has existed since now.
func NewConsumer(cfg ConsumerConfig, now time.Time) *Consumer {
	return &Consumer{
		cfg: cfg, assignor: Assignors[0], members: map[string]*consumer{}, static: map[string]string{}, holders: map[TopicID]map[int32]string{},
		pending: map[string]time.Time{}, topics: noTopics, matches: map[string][]string{}, emptySince: now, header: true,
	}
}

// SetConfig changes what an operator may set; it holds from each member's next heartbeat on.
func (c *Consumer) SetConfig(cfg ConsumerConfig) { c.cfg = cfg }

// Epoch is the group's epoch, and TargetEpoch the one that its target assignment is for.
func (c *Consumer) Epoch() int32 { return c.epoch }

// TargetEpoch is the group epoch that the target assignment is for.
func (c *Consumer) TargetEpoch() int32 { return c.targetEpoch }

// Assignor is the name of the assignor in use.
func (c *Consumer) Assignor() string { return c.assignor }

// Len is the number of members.
func (c *Consumer) Len() int { return len(c.members) }

// EmptySince is when the last member left; zero while there are members.
func (c *Consumer) EmptySince() time.Time {
	if len(c.members) > 0 {
		return time.Time{}
	}
	return c.emptySince
}

// State is the group's state as the protocol calls it.
func (c *Consumer) State() string {
	switch {
	case len(c.members) == 0:
		return "Empty"
	case c.epoch > c.targetEpoch:
		return "Assigning"
	}
	for _, m := range c.members {
		if m.State != reconciled || m.Epoch != c.targetEpoch {
			return "Reconciling"
		}
	}
	return "Stable"
}

// ConsumerMember is a member as administrators see it.
type ConsumerMember struct {
	MemberID, Instance, Rack, ClientID, Host string
	Epoch                                    int32
	Topics                                   []string
	Regex                                    string
	Assigned, Target                         Partitions
	Classic                                  bool
}

// Members describes the members by id.
func (c *Consumer) Members() []ConsumerMember {
	out := make([]ConsumerMember, 0, len(c.members))
	for _, m := range c.inOrder() {
		out = append(out, ConsumerMember{
			MemberID: m.ID, Instance: m.Instance, Rack: m.Rack, ClientID: m.ClientID, Host: m.Host, Epoch: m.Epoch, Topics: m.Topics,
			Regex: m.Regex, Assigned: m.Assigned.partitions(), Target: m.Target, Classic: m.Classic != nil,
		})
	}
	return out
}

func (c *Consumer) inOrder() []*consumer {
	return slices.SortedFunc(maps.Values(c.members), func(a, b *consumer) int { return cmp.Compare(a.ID, b.ID) })
}

// subscribes reports whether the member's subscription names the topic.
func (c *Consumer) subscribes(m *consumer, topic string) bool {
	if slices.Contains(m.Topics, topic) {
		return true
	}
	_, ok := slices.BinarySearch(c.matched(m), topic)
	return ok
}

// SubscribedTo reports whether any member subscribes to the topic: its offsets are in use then.
func (c *Consumer) SubscribedTo(topic string) bool {
	for _, m := range c.members {
		if c.subscribes(m, topic) {
			return true
		}
	}
	return false
}

// matched returns the topics that the member's expression matches.
func (c *Consumer) matched(m *consumer) []string {
	if m.regex == nil {
		return nil
	}
	names, ok := c.matches[m.Regex]
	if !ok {
		names = c.topics.matching(m.regex)
		c.matches[m.Regex] = names
	}
	return names
}

// subscription returns the topics that there are of those that the member wants, each once.
func (c *Consumer) subscription(m *consumer) []Topic {
	var out []Topic
	seen := make(map[TopicID]struct{}, len(m.Topics))
	for _, names := range [2][]string{m.Topics, c.matched(m)} {
		for _, name := range names {
			t, ok := c.topics.ByName(name)
			if _, dup := seen[t.ID]; ok && !dup {
				seen[t.ID] = struct{}{}
				out = append(out, t)
			}
		}
	}
	return out
}

// refresh takes the topics as they are now, moves the epoch if that, or the members, or what they want have changed, and computes a target for the
// new epoch, if that is due.
func (c *Consumer) refresh(now time.Time, topics *Topics) {
	if topics != c.topics {
		c.topics = topics
		clear(c.matches)
		if c.look() != c.interest {
			c.stale = true
		}
	}
	if c.stale {
		c.stale = false
		c.epoch = nextGeneration(c.epoch)
		c.interest = c.look()
		c.header = true
	}
	if c.targetEpoch != c.epoch && !now.Before(c.due()) {
		c.retarget()
		if c.assigned = now; len(c.members) == 0 {
			c.assigned = time.Time{} // whoever comes next has nobody to wait for
		}
	}
}

// due is when the target for the group's epoch may be computed; zero: at once, or it has been.
func (c *Consumer) due() time.Time {
	if c.targetEpoch == c.epoch || c.assigned.IsZero() || len(c.members) == 0 {
		return time.Time{}
	}
	return c.assigned.Add(c.cfg.Assignment)
}

// look condenses what the members' subscriptions find: topics, their ids and partitions.
func (c *Consumer) look() uint64 {
	all := map[TopicID]Topic{}
	for _, m := range c.members {
		for _, t := range c.subscription(m) {
			all[t.ID] = t
		}
	}
	h := fnv.New64a()
	for _, id := range sortedIDs(all) {
		t := all[id]
		_, _ = h.Write(id[:])
		_, _ = h.Write([]byte{byte(t.Partitions >> 24), byte(t.Partitions >> 16), byte(t.Partitions >> 8), byte(t.Partitions)})
	}
	return h.Sum64()
}

// retarget computes the members' targets for the group's epoch.
func (c *Consumer) retarget() {
	votes := map[string]int{}
	subs := make([]*subscriber, 0, len(c.members))
	for _, m := range c.inOrder() {
		if m.Assignor != "" {
			votes[m.Assignor]++
		}
		key := m.Instance
		if key == "" {
			key = m.ID
		}
		subs = append(subs, &subscriber{id: m.ID, key: key, topics: c.subscription(m), had: m.Target})
	}
	c.assignor = Assignors[0]
	for _, name := range Assignors {
		if votes[name] > votes[c.assignor] {
			c.assignor = name
		}
	}
	for id, target := range assign(c.assignor, subs) {
		if m := c.members[id]; !m.Target.equal(target) {
			m.Target = target
			c.change(m)
		}
	}
	c.targetEpoch = c.epoch
	c.header = true
}

// drop takes a member out; what it held is free.
func (c *Consumer) drop(now time.Time, m *consumer) {
	c.free(m)
	delete(c.members, m.ID)
	if c.static[m.Instance] == m.ID {
		delete(c.static, m.Instance)
	}
	c.removed = append(c.removed, m.ID)
	c.stale = true
	if len(c.members) == 0 {
		c.emptySince = now
		c.header = true
	}
}

func (c *Consumer) free(m *consumer) {
	for _, h := range []held{m.Assigned, m.Revoking} {
		for id, list := range h {
			for p := range list {
				c.release(m.ID, id, p)
			}
		}
	}
}

func (c *Consumer) release(member string, id TopicID, p int32) {
	if c.holders[id][p] != member {
		return
	}
	delete(c.holders[id], p)
	if len(c.holders[id]) == 0 {
		delete(c.holders, id)
	}
}

func (c *Consumer) hold(member string, id TopicID, p int32) {
	if c.holders[id] == nil {
		c.holders[id] = map[int32]string{}
	}
	c.holders[id][p] = member
}

// Tick removes the members that are overdue and says when to look again; zero: never.
func (c *Consumer) Tick(now time.Time) (wake time.Time) {
	for id, until := range c.pending {
		if !now.Before(until) {
			delete(c.pending, id)
		} else {
			wake = sooner(wake, until)
		}
	}
	for _, m := range c.inOrder() {
		if at := m.deadline(); !now.Before(at) {
			c.drop(now, m)
		} else {
			wake = sooner(wake, at)
		}
	}
	c.settle(now)
	return sooner(wake, c.due())
}

// sooner is the earlier of two times, of which zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// settle moves the epoch after members were removed, so that those who are left are told, and does what has become due. Which topics there are is not known
// after a restart, until a member is heard of: what is due then waits for that.
func (c *Consumer) settle(now time.Time) {
	if c.stale || c.targetEpoch != c.epoch && c.topics != noTopics {
		c.refresh(now, c.topics)
	}
}

// deadline is when the member is removed if nothing is heard of it.
func (m *consumer) deadline() time.Time {
	return sooner(m.session, sooner(m.revoke, m.rejoin))
}

// MayCommit says whether a member may commit offsets for the partitions. A commit for an epoch that has just ended is taken, as long as it is for what
// the member has held since (KIP-1251). Without a member it is a client that does without the group protocol, which is fine as long as nobody uses it.
func (c *Consumer) MayCommit(memberID, instance string, epoch int32, versionOK bool, places func(yield func(topic string, partition int32) bool)) Code {
	if epoch < 0 && len(c.members) == 0 {
		return OK
	}
	m := c.members[memberID]
	switch {
	case m == nil:
		return UnknownMember
	case m.Classic == nil && !versionOK:
		return UnsupportedVersion
	case m.Classic != nil && instance != "" && c.static[instance] != memberID:
		return FencedInstance
	case epoch == m.Epoch:
		return OK
	}
	stale := StaleMemberEpoch
	if m.Classic != nil {
		stale = IllegalGeneration
	}
	if epoch > m.Epoch || epoch < 0 {
		return stale
	}
	for topic, p := range places {
		t, _ := c.topics.ByName(topic)
		since, ok := m.Assigned[t.ID][p]
		if !ok {
			since, ok = m.Revoking[t.ID][p]
		}
		if !ok || since > epoch {
			return stale
		}
	}
	return OK
}

// MayFetch says whether a member may read the group's offsets (KIP-848). Without a member nothing is checked.
func (c *Consumer) MayFetch(memberID string, epoch int32) Code {
	if memberID == "" && epoch < 0 {
		return OK
	}
	m := c.members[memberID]
	switch {
	case m == nil:
		return UnknownMember
	case epoch != m.Epoch && m.Classic != nil:
		return IllegalGeneration
	case epoch != m.Epoch:
		return StaleMemberEpoch
	}
	return OK
}

// Package group is the coordinator of one consumer group, as pure state machines: Group in Kafka's classic protocol, Consumer in the new one
// (KIP-848). Each takes an event at a time and returns replies and the time of the next tick. There is no goroutine, clock, disk, socket or random
// number in it; the shell around it delivers replies, stores what has to be stored, and wakes the machine up.
//
// A classic group goes
//
//	Empty -> PreparingRebalance (members join) -> CompletingRebalance (the leader assigns) -> Stable -> PreparingRebalance ...
//
// What always holds:
//   - Generations only grow.
//   - In one generation every member has the assignment that the generation's leader sent, or none.
//   - A member that is removed or fenced gets no assignment and commits no offset any more.
//   - Each token is answered at most once, and exactly once if the group is stepped until its timers have run out.
//   - What a reply of a changed group promises is in Output.Persist: the shell makes the group's Snapshot durable before it delivers.
//
// Of a group in the new protocol, whose members each follow the target assignment at their own pace:
//   - Epochs only grow. A partition is with one member at a time: it is given to the next one only when the last one has said that it let go, has left,
//     or was fenced.
//   - A member that is fenced or whose epoch is stale commits no offset any more.
//   - What a reply promises is among the Changes that come with it.
package group

import (
	"slices"
	"time"
)

// Code is an error code of the protocol.
type Code int16

// The codes that a group answers with.
const (
	OK                   Code = 0
	IllegalGeneration    Code = 22
	InconsistentProtocol Code = 23
	UnknownMember        Code = 25
	InvalidSession       Code = 26
	RebalanceInProgress  Code = 27
	UnsupportedVersion   Code = 35
	InvalidRequest       Code = 42
	GroupIDNotFound      Code = 69
	MemberIDRequired     Code = 79
	GroupFull            Code = 81
	FencedInstance       Code = 82
	SubscribedToTopic    Code = 86
	FencedMemberEpoch    Code = 110
	UnreleasedInstance   Code = 111
	UnsupportedAssignor  Code = 112
	StaleMemberEpoch     Code = 113
	InvalidRegex         Code = 128
)

// State of a group.
type State uint8

const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
)

// String is the state's name in the protocol.
func (s State) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[s]
}

// Config is what an operator may set.
type Config struct {
	// InitialDelay is how long the first members of an empty group wait for others, so that a fleet that starts together forms one
	// generation instead of many. Each newcomer prolongs the wait, up to the rebalance timeout.
	InitialDelay           time.Duration
	MinSession, MaxSession time.Duration
	MaxMembers             int
}

// Token identifies a request that waits for a reply.
type Token uint64

// Protocol is one assignment strategy that a member offers, with its subscription.
type Protocol struct {
	Name     string `json:"name"`
	Metadata []byte `json:"metadata"`
}

// member is one member. Exported fields are stored.
type member struct {
	ID         string        `json:"id"`
	Instance   string        `json:"instance,omitempty"` // of a static member
	ClientID   string        `json:"client"`
	Host       string        `json:"host"`
	Session    time.Duration `json:"session"`
	Rebalance  time.Duration `json:"rebalance"`
	Protocols  []Protocol    `json:"protocols"`
	Assignment []byte        `json:"assignment,omitempty"`

	seq      uint64 // order of arrival
	deadline time.Time
	join     Token // waiting for the generation to begin; 0: not
	sync     Token // waiting for the assignment; 0: not
	synced   bool  // has asked for its assignment in this generation
}

func (m *member) offers(protocol string) bool {
	return slices.ContainsFunc(m.Protocols, func(p Protocol) bool { return p.Name == protocol })
}

func (m *member) metadata(protocol string) []byte {
	for _, p := range m.Protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

func sameProtocols(a, b []Protocol) bool {
	return slices.EqualFunc(a, b, func(x, y Protocol) bool { return x.Name == y.Name && string(x.Metadata) == string(y.Metadata) })
}

// Group is the state of one group. It is not safe for concurrent use.
type Group struct {
	cfg        Config
	state      State
	generation int32
	kind       string // protocol type, such as "consumer"
	protocol   string
	leader     string
	members    map[string]*member
	static     map[string]string    // instance to member id
	pending    map[string]time.Time // ids given out, until when they may be used
	seq        uint64

	deadline time.Time // of the phase: joins (PreparingRebalance), or the leader's assignment (CompletingRebalance)
	initial  bool      // the first generation, still waiting for more members
	opened   time.Time // when the initial wait began
	assigned bool      // the leader has assigned in this generation: until the next one begins, who has not joined again holds what it was given

	emptySince time.Time
}

// New returns an empty group that has existed since now.
func New(cfg Config, now time.Time) *Group {
	return &Group{
		cfg: cfg, members: map[string]*member{}, static: map[string]string{}, pending: map[string]time.Time{}, emptySince: now,
	}
}

// Event is one of Join, Sync, Heartbeat, Leave, Tick.
type Event interface{ event() }

// Join asks to be in the next generation.
type Join struct {
	Token              Token
	MemberID, Instance string
	NewID              string // what a member without an id is to be called
	KnownIDOnly        bool   // protocol v4+: a member without an id is told its id and must ask again with it
	SkipAssignment     bool   // protocol v9+: a leader that returns can be told to leave the assignment alone
	ClientID, Host     string
	Session, Rebalance time.Duration
	Kind               string
	Protocols          []Protocol
}

// Sync asks for the member's assignment; the leader brings those of all.
type Sync struct {
	Token              Token
	MemberID, Instance string
	Generation         int32
	Kind, Protocol     string // empty: not said
	Assignments        map[string][]byte
}

// Heartbeat keeps a member alive.
type Heartbeat struct {
	Token              Token
	MemberID, Instance string
	Generation         int32
}

// Leave removes members.
type Leave struct {
	Token   Token
	Members []Leaver
}

// Leaver is a member that leaves; a static one may be named by its instance alone.
type Leaver struct{ MemberID, Instance string }

// Tick lets what is overdue happen.
type Tick struct{}

func (Join) event()      {}
func (Sync) event()      {}
func (Heartbeat) event() {}
func (Leave) event()     {}
func (Tick) event()      {}

// Reply answers the request with the token.
type Reply struct {
	Token Token
	Code  Code

	// Of a join:
	Generation     int32
	Kind, Protocol string
	Leader         string
	MemberID       string
	Members        []Described // for the leader only
	SkipAssignment bool

	// Of a sync:
	Assignment []byte

	// Of a leave, one for each leaver:
	Leavers []Code
}

// Described is a member as the leader and administrators see it.
type Described struct {
	MemberID, Instance, ClientID, Host string
	Metadata, Assignment               []byte
}

// Output is what a step leads to.
type Output struct {
	Replies []Reply
	// Persist asks the shell to make Snapshot durable before it delivers Replies.
	Persist bool
	// Wake is when the next Tick is due; zero: never.
	Wake time.Time
}

// Step handles one event.
func (g *Group) Step(now time.Time, ev Event) Output {
	var out Output
	switch ev := ev.(type) {
	case Join:
		g.join(now, &ev, &out)
	case Sync:
		g.sync(now, &ev, &out)
	case Heartbeat:
		out.Replies = append(out.Replies, Reply{Token: ev.Token, Code: g.heartbeat(now, &ev)})
	case Leave:
		g.leave(now, &ev, &out)
	case Tick:
	}
	g.expire(now, &out)
	out.Wake = g.nextDeadline()
	return out
}

// State returns where the group is.
func (g *Group) State() State { return g.state }

// Generation returns the number of the current generation.
func (g *Group) Generation() int32 { return g.generation }

// Kind is the protocol type that the members share.
func (g *Group) Kind() string { return g.kind }

// Protocol is the assignment strategy of the current generation.
func (g *Group) Protocol() string { return g.protocol }

// EmptySince is when the last member left; zero while there are members.
func (g *Group) EmptySince() time.Time {
	if g.state != Empty || len(g.pending) > 0 {
		return time.Time{}
	}
	return g.emptySince
}

// Members describes the members in order of arrival.
func (g *Group) Members() []Described {
	out := make([]Described, 0, len(g.members))
	for _, m := range g.inOrder() {
		out = append(out, Described{m.ID, m.Instance, m.ClientID, m.Host, m.metadata(g.protocol), m.Assignment})
	}
	return out
}

// SubscribedTo reports whether any member may subscribe to the topic: its offsets are in use then. Only what consumers say of themselves can be read,
// so that of other groups with members every topic counts.
func (g *Group) SubscribedTo(topic string) bool {
	for _, m := range g.members {
		sub, ok := parseSubscription(m.Protocols, noTopics)
		if !ok || g.kind != consumerKind || slices.Contains(sub.topics, topic) {
			return true
		}
	}
	return false
}

func (g *Group) inOrder() []*member {
	ms := make([]*member, 0, len(g.members))
	for _, m := range g.members {
		ms = append(ms, m)
	}
	slices.SortFunc(ms, func(a, b *member) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
	return ms
}

// MayCommit says whether a member may commit offsets. Generation -1 with no member id is a client that does without the group protocol, which is
// fine as long as nobody uses it.
func (g *Group) MayCommit(now time.Time, memberID, instance string, generation int32) Code {
	if generation < 0 && memberID == "" && instance == "" {
		if g.state == Empty {
			return OK
		}
		return UnknownMember
	}
	m, code := g.find(memberID, instance)
	switch {
	case code != OK:
		return code
	case generation != g.generation:
		return IllegalGeneration
	}
	m.touch(now)
	if g.state == CompletingRebalance {
		return RebalanceInProgress
	}
	return OK
}

// find returns a member and sees that a static one is still who holds its instance.
func (g *Group) find(memberID, instance string) (*member, Code) {
	if instance != "" {
		holder, ok := g.static[instance]
		switch {
		case !ok:
			return nil, UnknownMember
		case holder != memberID:
			return nil, FencedInstance
		}
	}
	m := g.members[memberID]
	if m == nil {
		return nil, UnknownMember
	}
	return m, OK
}

func (m *member) touch(now time.Time) { m.deadline = now.Add(m.Session) }

func (g *Group) heartbeat(now time.Time, ev *Heartbeat) Code {
	m, code := g.find(ev.MemberID, ev.Instance)
	switch {
	case code != OK:
		return code
	case ev.Generation != g.generation:
		return IllegalGeneration
	}
	m.touch(now)
	if g.state == PreparingRebalance {
		return RebalanceInProgress
	}
	return OK
}

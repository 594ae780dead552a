package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/broker/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The fleet is a consumer group over the topic clicks. Its members die, come back, and change from the classic protocol of groups to the new one and
// back, so that the group does; what they are told and what they commit goes through the node that loses its power.
const (
	fleetGroup   = "fleet"
	fleetSession = 300 * time.Millisecond
)

type fleet struct {
	members []*member
	keeps   bool                // members of the classic protocol are cooperative: they keep what they hold when they join again
	commits map[int32][]*commit // by partition: what the position may be, from the last one on that is certain
	given   map[int32]gift      // who was given a partition last
	serial  int                 // of requests
}

// member is a consumer. It believes what it is told, and takes its time to let go.
type member struct {
	name     string
	life     int // an answer to an earlier life is nobody's
	busy     bool
	dead     bool
	classic  bool
	id       string
	epoch    int32
	joined   bool
	syncing  bool // of the classic protocol: it has joined and has no assignment yet
	again    bool // say everything
	protocol string
	deal     map[string][]byte // what a leader brings
	owns     map[int32]int64   // with the position that it has read up to
	wants    []int32
	told     bool // wants is an assignment
	said     []int32
}

type commit struct {
	position int64
	certain  bool // the member was told that it is stored
}

// gift is a partition that a member was given in the answer to its request serial.
type gift struct {
	to     string
	serial int
}

func newFleet(n int, keeps bool) *fleet {
	f := &fleet{keeps: keeps, commits: map[int32][]*commit{}, given: map[int32]gift{}}
	for i := range n {
		f.members = append(f.members, &member{name: fmt.Sprint("m", i), dead: true, owns: map[int32]int64{}})
	}
	return f
}

// clone is what is left when the power goes: calls under way have no answer.
func (f *fleet) clone() *fleet {
	out := &fleet{keeps: f.keeps, commits: map[int32][]*commit{}, given: maps.Clone(f.given), serial: f.serial}
	for _, m := range f.members {
		c := *m
		c.owns, c.wants, c.said = maps.Clone(m.owns), slices.Clone(m.wants), slices.Clone(m.said)
		c.again, c.busy, c.syncing, c.deal = true, false, false, nil
		out.members = append(out.members, &c)
	}
	for p, list := range f.commits {
		for _, c := range list {
			same := *c
			out.commits[p] = append(out.commits[p], &same)
		}
	}
	return out
}

func (m *member) key() string { return fmt.Sprint(m.name, ".", m.life) }

func (m *member) forget() {
	clear(m.owns)
	m.wants, m.told, m.joined, m.syncing, m.epoch = nil, false, false, false, 0
}

// revive starts the process anew.
func (m *member) revive(classic bool) {
	m.forget()
	m.life++
	m.id, m.again, m.dead, m.busy, m.classic = "", false, false, false, classic
}

// stepFleet lets one member do something.
func (h *run1) stepFleet() {
	f := h.world.fleet
	m := f.members[h.rng.IntN(len(f.members))]
	what, classic, coin := h.rng.IntN(40), h.rng.IntN(2) == 0, h.rng.IntN(3)
	if h.clicksTopic() == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case m.dead:
		m.revive(classic)
	case what == 0: // it dies without a word, whatever it waits for
		m.revive(classic)
		m.dead = true
	case m.busy:
	case what < 4 && m.joined:
		h.leave1(m, !m.classic)
	case what < 16 && len(m.owns) > 0:
		h.commit(m)
	default:
		h.drive(m, coin > 0)
	}
	h.noteKind()
}

// drive lets a member do what its protocol wants next; mu is held.
func (h *run1) drive(m *member, letGo bool) {
	if held := len(m.owns); m.told && letGo {
		maps.DeleteFunc(m.owns, func(p int32, _ int64) bool { return !slices.Contains(m.wants, p) })
		if m.classic && len(m.owns) < held {
			m.again = true // so that others get it
		}
	}
	switch {
	case !m.classic:
		h.beat(m)
	case m.syncing:
		h.sync(m)
	case !m.joined || m.again:
		h.join(m)
	default:
		h.beatClassic(m)
	}
}

func (h *run1) clicksTopic() *broker.Topic {
	t, ok := h.core.Broker.Topic("clicks")
	if !ok {
		return nil
	}
	return t
}

// noteKind counts how often the group changes from one protocol to the other while it has members.
func (h *run1) noteKind() {
	info, ok, err := h.core.Broker.Groups().Describe(fleetGroup)
	if err != nil || !ok || info.State == "Empty" {
		h.kind = ""
		return
	}
	switch {
	case h.kind == broker.GroupClassic && info.Type == broker.GroupConsumer:
		h.upgrades++
	case h.kind == broker.GroupConsumer && info.Type == broker.GroupClassic:
		h.downgrades++
	}
	h.kind = info.Type
}

// call lets a member ask the node something; mu is held. ask runs without it, and what it returns with it, if the member still lives and the node does.
func (h *run1) call(m *member, ask func(ctx context.Context, serial int) (hear func() error)) {
	h.world.fleet.serial++
	serial, life, ctx := h.world.fleet.serial, m.life, h.ctx
	m.busy = true
	h.tasks.Go(func() {
		hear := ask(ctx, serial)
		h.mu.Lock()
		defer h.mu.Unlock()
		if ctx.Err() != nil || m.life != life {
			return
		}
		m.busy = false
		if err := hear(); err != nil && h.err == nil {
			h.err = fmt.Errorf("%s: %w", m.name, err)
		}
	})
}

// positions asks for the group's position in each partition of a new assignment.
func (h *run1) positions(parts []int32) (map[int32]int64, error) {
	out := map[int32]int64{}
	for _, p := range parts {
		h.mu.Lock()
		possible := slices.Clone(h.world.fleet.commits[p])
		h.mu.Unlock()
		at, ok, err := h.core.Broker.Groups().Committed(fleetGroup, "clicks", p)
		if err != nil {
			return nil, err
		}
		h.mu.Lock()
		possible = append(possible, h.world.fleet.commits[p]...)
		h.mu.Unlock()
		if err := possiblePosition(possible, at.Offset, ok); err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, err)
		}
		out[p] = at.Offset
	}
	return out, nil
}

// possiblePosition sees that a position is the last one that is certain, or one after it.
func possiblePosition(possible []*commit, at int64, ok bool) error {
	if !ok {
		if slices.ContainsFunc(possible, func(c *commit) bool { return c.certain }) {
			return fmt.Errorf("the group has no position; %s", positionsOf(possible))
		}
		return nil
	}
	if !slices.ContainsFunc(possible, func(c *commit) bool { return c.position == at }) {
		return fmt.Errorf("the group's position is %d; %s", at, positionsOf(possible))
	}
	return nil
}

func positionsOf(possible []*commit) string {
	text := "committed was"
	for _, c := range possible {
		text += fmt.Sprintf(" %d", c.position)
		if c.certain {
			text += " (acknowledged)"
		}
	}
	return text
}

// take begins to work on what was given, and remembers what is not any more; mu is held.
func (h *run1) take(m *member, parts []int32, at map[int32]int64, serial int) {
	m.wants, m.told = parts, true
	for _, p := range parts {
		if last := h.world.fleet.given[p]; serial > last.serial {
			h.world.fleet.given[p] = gift{m.key(), serial}
		}
		if _, has := m.owns[p]; !has {
			m.owns[p] = at[p]
		}
	}
}

func (h *run1) beat(m *member) {
	topic := group.TopicID(h.clicksTopic().ID)
	held := slices.Sorted(maps.Keys(m.owns))
	ev := group.ConsumerHeartbeat{MemberID: m.id, Epoch: m.epoch, Rebalance: -1}
	if !m.joined {
		if m.id == "" {
			m.id = fmt.Sprint(m.name, "-", h.world.fleet.serial)
		}
		m.forget()
		ev.MemberID, ev.Epoch, held = m.id, group.EpochJoin, nil
	}
	if !m.joined || m.again || !slices.Equal(held, m.said) {
		none := ""
		ev.Rebalance, ev.HasTopics, ev.Topics, ev.Regex, ev.HasOwned, ev.Owned = fleetSession, true, []string{"clicks"}, &none, true, group.Partitions{}
		if len(held) > 0 {
			ev.Owned[topic] = held
		}
	}
	who := m.key()
	h.call(m, func(ctx context.Context, serial int) func() error {
		r, err := h.core.Broker.Groups().ConsumerHeartbeat(ctx, fleetGroup, ev)
		say("%s beats at epoch %d with %v: %+v %v", who, ev.Epoch, held, r, err)
		parts := r.Assignment[topic]
		at, wrong := h.positions(parts)
		return func() error {
			switch {
			case err != nil:
				return err
			case wrong != nil:
				return wrong
			}
			switch r.Code {
			case group.OK:
				m.joined, m.epoch, m.again = true, r.Epoch, false
				if ev.HasOwned {
					m.said = held
				}
				if r.HasAssignment {
					h.take(m, parts, at, serial)
				}
			case group.UnknownMember, group.GroupIDNotFound:
				m.forget()
				m.id = ""
			case group.FencedMemberEpoch:
				m.forget()
			default:
				return fmt.Errorf("a heartbeat is answered with %d: %s", r.Code, r.Message)
			}
			return nil
		}
	})
}

func (h *run1) join(m *member) {
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Version, subscription.Topics = 1, []string{"clicks"}
	if h.world.fleet.keeps {
		subscription.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "clicks", Partitions: slices.Sorted(maps.Keys(m.owns))}}
		m.wants, m.told, m.joined, m.syncing = nil, false, false, false
	} else {
		m.forget()
	}
	ev := group.Join{
		MemberID: m.id, KnownIDOnly: true, SkipAssignment: true, Session: fleetSession, Rebalance: fleetSession, Kind: "consumer",
		Protocols: []group.Protocol{{Name: "range", Metadata: subscription.AppendTo(nil)}},
	}
	who := m.key()
	h.call(m, func(ctx context.Context, _ int) func() error {
		r, err := h.core.Broker.Groups().Join(ctx, fleetGroup, ev)
		say("%s joins as %q: %+v %v", who, ev.MemberID, r, err)
		return func() error {
			switch {
			case err != nil:
				return err
			case r.Code == group.MemberIDRequired:
				m.id = r.MemberID
				return nil
			case r.Code != group.OK:
				return m.refused(r.Code)
			}
			m.id, m.epoch, m.joined, m.syncing, m.again, m.protocol, m.deal = r.MemberID, r.Generation, true, true, false, r.Protocol, nil
			if r.Leader == m.id && !r.SkipAssignment {
				m.deal = h.dealt(r.Members)
			}
			return nil
		}
	})
}

// dealt gives each partition to one member, as a leader does; to none while another one holds it.
func (h *run1) dealt(members []group.Described) map[string][]byte {
	holders := map[int32]string{}
	for _, m := range members {
		var said kmsg.ConsumerMemberMetadata
		if err := said.ReadFrom(m.Metadata); err != nil {
			panic(err)
		}
		for _, t := range said.OwnedPartitions {
			for _, p := range t.Partitions {
				holders[p] = m.MemberID
			}
		}
	}
	parts := map[string][]int32{}
	for i := range h.world.clicks {
		to := members[i%len(members)].MemberID
		if held := holders[int32(i)]; held == "" || held == to {
			parts[to] = append(parts[to], int32(i))
		}
	}
	out := map[string][]byte{}
	for _, m := range members {
		a := kmsg.NewConsumerMemberAssignment()
		a.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "clicks", Partitions: parts[m.MemberID]}}
		out[m.MemberID] = a.AppendTo(nil)
	}
	return out
}

func (h *run1) sync(m *member) {
	ev := group.Sync{MemberID: m.id, Generation: m.epoch, Protocol: m.protocol, Assignments: m.deal}
	who := m.key()
	h.call(m, func(ctx context.Context, serial int) func() error {
		r, err := h.core.Broker.Groups().Sync(ctx, fleetGroup, ev)
		say("%s syncs in generation %d: %+v %v", who, ev.Generation, r, err)
		var parts []int32
		if err == nil && r.Code == group.OK && len(r.Assignment) > 0 {
			var a kmsg.ConsumerMemberAssignment
			err = a.ReadFrom(r.Assignment)
			for _, t := range a.Topics {
				parts = append(parts, t.Partitions...)
			}
		}
		at, wrong := h.positions(parts)
		return func() error {
			switch {
			case err != nil:
				return err
			case wrong != nil:
				return wrong
			case r.Code != group.OK:
				return m.refused(r.Code)
			}
			m.syncing = false
			h.take(m, parts, at, serial)
			return nil
		}
	})
}

func (h *run1) beatClassic(m *member) {
	ev := group.Heartbeat{MemberID: m.id, Generation: m.epoch}
	who := m.key()
	h.call(m, func(ctx context.Context, _ int) func() error {
		code, err := h.core.Broker.Groups().Heartbeat(ctx, fleetGroup, ev)
		say("%s beats in generation %d: %d %v", who, ev.Generation, code, err)
		return func() error {
			if err != nil || code == group.OK {
				return err
			}
			return m.refused(code)
		}
	})
}

// refused is what a member of the classic protocol does with an error.
func (m *member) refused(code group.Code) error {
	switch code {
	case group.RebalanceInProgress:
		m.again, m.syncing = true, false
	case group.IllegalGeneration:
		m.forget()
	case group.UnknownMember:
		m.forget()
		m.id = ""
	default:
		return fmt.Errorf("it is answered with %d", code)
	}
	return nil
}

// leave1 takes a member out of the group; it comes back with the other protocol.
func (h *run1) leave1(m *member, classic bool) {
	id, old := m.id, m.classic
	who := m.key()
	h.call(m, func(ctx context.Context, _ int) func() error {
		var err error
		if old {
			_, err = h.core.Broker.Groups().Leave(ctx, fleetGroup, []group.Leaver{{MemberID: id}})
		} else {
			_, err = h.core.Broker.Groups().ConsumerHeartbeat(ctx, fleetGroup, group.ConsumerHeartbeat{MemberID: id, Epoch: group.EpochLeave, Rebalance: -1})
		}
		say("%s leaves: %v", who, err)
		return func() error {
			m.revive(classic)
			return err
		}
	})
}

// commit reads on and stores where the member is. Only who was given a partition last may.
func (h *run1) commit(m *member) {
	f := h.world.fleet
	who := broker.Committer{MemberID: m.id, Generation: m.epoch, KnowsEpochs: true}
	var offsets []broker.Offset
	var made []*commit
	rightful := true
	stranger := ""
	for _, p := range slices.Sorted(maps.Keys(m.owns)) {
		end := h.end(h.world.clicks[p])
		m.owns[p] = min(m.owns[p]+h.rng.Int64N(4), max(end, m.owns[p]))
		c := &commit{position: m.owns[p]}
		offsets, made = append(offsets, broker.Offset{Topic: "clicks", Partition: p, Offset: c.position, LeaderEpoch: -1}), append(made, c)
		f.commits[p] = append(f.commits[p], c)
		if to := f.given[p].to; to != m.key() {
			rightful, stranger = false, fmt.Sprintf("partition %d, which %s was given", p, to)
		}
	}
	name := m.key()
	h.call(m, func(ctx context.Context, _ int) func() error {
		code, err := h.core.Broker.Groups().Commit(ctx, fleetGroup, who, offsets)
		say("%s commits %v: %d %v", name, offsets, code, err)
		return func() error {
			if err != nil {
				return err
			}
			if code == group.OK {
				if !rightful {
					return fmt.Errorf("a commit is taken for %s", stranger)
				}
				h.fleetCommits++
				for i, o := range offsets {
					f.settled(o.Partition, made[i])
				}
				return nil
			}
			for i, o := range offsets {
				f.commits[o.Partition] = slices.DeleteFunc(f.commits[o.Partition], func(c *commit) bool { return c == made[i] })
			}
			if m.classic {
				return m.refused(code)
			}
			switch code {
			case group.StaleMemberEpoch:
			case group.UnknownMember:
				m.forget()
				m.id = ""
			case group.FencedMemberEpoch, group.IllegalGeneration: // the latter when the group has been forgotten since it was empty
				m.forget()
			default:
				return fmt.Errorf("a commit is answered with %d", code)
			}
			return nil
		}
	})
}

// settled notes that a commit is certain: what was committed before it cannot be the position any more.
func (f *fleet) settled(p int32, c *commit) {
	c.certain = true
	if i := slices.Index(f.commits[p], c); i > 0 {
		f.commits[p] = f.commits[p][i:]
	}
}

// recoveredFleet takes up the fleet as it was when the power went, and sees which positions have survived. Nobody else runs.
func (h *run1) recoveredFleet(k *fleet) error {
	f := k.clone()
	h.world.fleet, h.kind = f, ""
	for i := range h.world.clicks {
		p := int32(i)
		at, ok, err := h.core.Broker.Groups().Committed(fleetGroup, "clicks", p)
		if err == nil {
			err = possiblePosition(f.commits[p], at.Offset, ok)
		}
		if err != nil {
			return fmt.Errorf("the fleet, partition %d: %w", p, err)
		}
		if end := h.end(h.world.clicks[i]); ok && at.Offset > end {
			return fmt.Errorf("the fleet has committed %d of partition %d, which ends at %d", at.Offset, p, end)
		}
		f.commits[p] = nil
		if ok {
			f.commits[p] = []*commit{{position: at.Offset, certain: true}}
		}
	}
	return nil
}

// settleFleet lets all members be well for a while: the group must come to rest, with one owner of each partition, in the protocol of its members.
func (h *run1) settleFleet() error {
	if h.clicksTopic() == nil || h.fs.lost() {
		return nil
	}
	f := h.world.fleet
	why := ""
	for range 600 {
		h.mu.Lock()
		for _, m := range f.members {
			switch {
			case m.busy:
			case m.dead:
				m.revive(h.rng.IntN(2) == 0)
			default:
				h.drive(m, true)
			}
		}
		h.mu.Unlock()
		h.clock.Advance(5 * time.Millisecond)
		h.settle()
		for h.core.Journal.Step() {
			h.acknowledge()
			h.settle()
		}
		if h.fs.lost() {
			return nil
		}
		if err := h.failure(); err != nil {
			return err
		}
		if why = h.fleetUnrest(); why == "" {
			return nil
		}
	}
	return fmt.Errorf("the fleet does not come to rest: %s", why)
}

// fleetUnrest says what is missing until the fleet is as it should be.
func (h *run1) fleetUnrest() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	info, _, err := h.core.Broker.Groups().Describe(fleetGroup)
	if err != nil || info.State != "Stable" {
		return fmt.Sprintf("it is %s (%v)", info.State, err)
	}
	want := broker.GroupClassic
	owners := map[int32]string{}
	for _, m := range h.world.fleet.members {
		if !m.joined || m.syncing || m.again {
			return m.name + " is on its way"
		}
		if !m.classic {
			want = broker.GroupConsumer
		}
		for p := range m.owns {
			if owners[p] != "" {
				return fmt.Sprintf("partition %d has two owners, %s and %s", p, owners[p], m.name)
			}
			owners[p] = m.name
		}
	}
	if info.Type != want {
		return fmt.Sprintf("it is a %s group, and its members make it a %s one", info.Type, want)
	}
	if len(owners) != len(h.world.clicks) {
		return fmt.Sprintf("%d of %d partitions have owners", len(owners), len(h.world.clicks))
	}
	h.fleetRests++
	return ""
}

package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leat-io/leat/internal/broker/group"
	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
)

// Errors of groups that have no place in the protocol's per-member codes.
var (
	ErrInvalidGroup  = errors.New("not a valid group id")
	ErrUnknownGroup  = errors.New("no such group")
	ErrGroupNotEmpty = errors.New("the group has members")
	ErrTooManyGroups = errors.New("the node has too many groups")
	ErrStopping      = errors.New("the node is stopping")
)

// Bounds of what a client can make the node keep.
const (
	maxGroups        = 100_000
	maxGroupIDLen    = 1024
	MaxOffsetMetaLen = 4096 // of the text that a client may store with an offset
)

// Groups runs the consumer groups: the pure coordinator of package group, one state for each group, with timers, durable metadata and committed
// offsets around it.
type Groups struct {
	b   *Broker
	cfg group.Config

	registry[*groupShell]
	configs map[string]map[string]string // settings of single groups, which need not be there; under mu
}

// groupShell is one group. Its lock is held while the journal takes a unit, never while one is waited for.
type groupShell struct {
	id string

	mu        sync.Mutex
	g         *group.Group    // in the classic protocol, or
	c         *group.Consumer // in the new one; the other is nil
	offsets   map[string]map[int32]committed
	unstable  map[string]map[int32]int // by how many open transactions
	waiting   map[group.Token]chan groupAnswer
	lastToken group.Token
	timer     clock.Timer
	armed     time.Time   // when the timer fires; zero: it does not
	persisted journal.LSN // the last unit that a reply may depend on
	stored    bool        // the group itself is in the metadata (a classic one; see storeConsumer)
	inFlight  int         // commits on their way to the journal's end, and transactions that hold offsets
	flights   []*flight   // positions on their way to the journal's end
	gone      bool        // deleted; look again in Groups.byID
}

type groupAnswer struct {
	reply group.Reply
	lsn   journal.LSN
	err   error
}

const groupPrefix = "group/"

// Groups returns the coordinator of all groups.
func (b *Broker) Groups() *Groups { return b.groups }

func newGroups(b *Broker) (*Groups, error) {
	gs := &Groups{b: b, registry: registry[*groupShell]{byID: map[string]*groupShell{}}, configs: map[string]map[string]string{}, cfg: group.Config{
		InitialDelay: b.o.InitialRebalanceDelay, MinSession: b.o.MinSessionTimeout, MaxSession: b.o.MaxSessionTimeout, MaxMembers: b.o.MaxGroupSize,
	}}
	if err := gs.loadConfigs(); err != nil {
		return nil, fmt.Errorf("broker: load group settings: %w", err)
	}
	now := b.clock.Now()
	err := b.kv.ScanMeta(groupPrefix, func(key string, value []byte) error {
		id := strings.TrimPrefix(key, groupPrefix)
		g, err := group.Restore(gs.cfg, value, now)
		if err != nil {
			return fmt.Errorf("group %q: %w", id, err)
		}
		s := gs.newShell(id, g)
		s.stored = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("broker: load groups: %w", err)
	}
	if err := gs.loadConsumers(now); err != nil {
		return nil, fmt.Errorf("broker: load groups: %w", err)
	}
	stale := map[string][]byte{}
	if err := gs.loadOffsets(stale); err != nil {
		return nil, fmt.Errorf("broker: load committed offsets: %w", err)
	}
	if err := b.orderMeta(stale); err != nil {
		return nil, fmt.Errorf("broker: forget the offsets in deleted topics: %w", err)
	}
	for _, s := range gs.byID {
		s.mu.Lock()
		gs.tick(s)
		s.mu.Unlock()
	}
	return gs, nil
}

// newShell adds a group; mu is held, or nobody else is there yet.
func (gs *Groups) newShell(id string, g *group.Group) *groupShell {
	s := &groupShell{id: id, g: g, waiting: map[group.Token]chan groupAnswer{}}
	gs.byID[id] = s
	return s
}

// CheckGroupID refuses ids that cannot be kept.
func CheckGroupID(id string) error {
	return checkID(id, maxGroupIDLen, ErrInvalidGroup)
}

// checkID refuses an id that cannot be part of a metadata key.
func checkID(id string, most int, invalid error) error {
	if id == "" || len(id) > most || strings.IndexByte(id, 0) >= 0 {
		return fmt.Errorf("%w: %q", invalid, clip(id))
	}
	return nil
}

// locked returns the group with its lock held, or nil. With create it is made if need be.
func (gs *Groups) locked(id string, create bool) (*groupShell, error) {
	if err := CheckGroupID(id); err != nil {
		return nil, err
	}
	if !create {
		return gs.registry.locked(id, nil)
	}
	return gs.registry.locked(id, func() (*groupShell, error) {
		if len(gs.byID) >= maxGroups {
			return nil, ErrTooManyGroups
		}
		return gs.newShell(id, group.New(gs.cfg, gs.b.clock.Now())), nil
	})
}

func (s *groupShell) guard() (*sync.Mutex, *bool) { return &s.mu, &s.gone }

// step runs one event, stores what has to be, delivers the replies and arms the timer; the group's lock is held.
func (gs *Groups) step(s *groupShell, ev group.Event) {
	if s.c != nil && !gs.backToClassic(s, ev) {
		gs.stepClassicMember(s, ev)
		return
	}
	out := s.g.Step(gs.b.clock.Now(), ev)
	var failed error
	if out.Persist {
		u := journal.NewUnit()
		kv.AppendMeta(u, groupPrefix+s.id, s.g.Snapshot())
		lsn, err := gs.b.journal.Commit(u, nil)
		if err != nil {
			failed = err
		} else {
			s.persisted, s.stored = lsn, true
		}
	}
	s.deliver(out.Replies, failed)
	gs.arm(s, out.Wake)
}

// deliver answers those who wait; the group's lock is held.
func (s *groupShell) deliver(replies []group.Reply, failed error) {
	for _, r := range replies {
		if ch, ok := s.waiting[r.Token]; ok {
			delete(s.waiting, r.Token)
			ch <- groupAnswer{reply: r, lsn: s.persisted, err: failed}
		}
	}
}

// tick lets what is overdue happen; the group's lock is held.
func (gs *Groups) tick(s *groupShell) {
	if s.c == nil {
		gs.step(s, group.Tick{})
		return
	}
	wake := s.c.Tick(gs.b.clock.Now())
	_ = gs.storeConsumer(s, nil) // a journal that has failed ends the process; nobody waits here
	if s.c != nil {
		gs.arm(s, wake)
	}
}

// arm makes the timer fire at wake or before: one that fires early only looks and is armed again, which is cheaper than moving it at each heartbeat.
func (gs *Groups) arm(s *groupShell, wake time.Time) {
	if wake.IsZero() || !s.armed.IsZero() && !wake.Before(s.armed) {
		return
	}
	s.armed = wake
	d := wake.Sub(gs.b.clock.Now())
	if s.timer == nil {
		s.timer = gs.b.clock.AfterFunc(d, func() { gs.fire(s) })
		return
	}
	s.timer.Reset(d)
}

func (gs *Groups) fire(s *groupShell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = time.Time{}
	if !s.gone {
		gs.tick(s)
	}
}

// ask runs an event that has a token and waits for its reply, and for what the reply depends on to be durable.
func (gs *Groups) ask(ctx context.Context, id string, create bool, event func(group.Token) group.Event) (group.Reply, error) {
	s, err := gs.locked(id, create)
	if err != nil {
		return group.Reply{}, err
	}
	if s == nil {
		return group.Reply{Code: group.UnknownMember, Generation: -1}, nil
	}
	s.lastToken++
	token := s.lastToken
	ch := make(chan groupAnswer, 1)
	s.waiting[token] = ch
	gs.step(s, event(token))
	s.mu.Unlock()

	select {
	case a := <-ch:
		if a.err == nil && a.lsn > gs.b.journal.Durable() {
			a.err = gs.b.journal.Wait(ctx, a.lsn)
		}
		return a.reply, a.err
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.waiting, token)
		s.mu.Unlock()
		return group.Reply{}, ctx.Err()
	}
}

// Join joins a group; it returns when the generation begins. The event's Token and NewID are set here.
func (gs *Groups) Join(ctx context.Context, id string, ev group.Join) (group.Reply, error) {
	name := ev.ClientID
	if ev.Instance != "" {
		name = ev.Instance
	}
	if len(name) > 255 {
		name = name[:255]
	}
	ev.NewID = name + "-" + newTopicID().String()
	return gs.ask(ctx, id, ev.MemberID == "", func(t group.Token) group.Event {
		ev.Token = t
		return ev
	})
}

// Sync asks for the assignment; it returns when the leader has brought it.
func (gs *Groups) Sync(ctx context.Context, id string, ev group.Sync) (group.Reply, error) {
	return gs.ask(ctx, id, false, func(t group.Token) group.Event {
		ev.Token = t
		return ev
	})
}

// Heartbeat keeps a member alive.
func (gs *Groups) Heartbeat(ctx context.Context, id string, ev group.Heartbeat) (group.Code, error) {
	r, err := gs.ask(ctx, id, false, func(t group.Token) group.Event {
		ev.Token = t
		return ev
	})
	return r.Code, err
}

// Leave removes members; the reply has a code for each.
func (gs *Groups) Leave(ctx context.Context, id string, leavers []group.Leaver) (group.Reply, error) {
	return gs.ask(ctx, id, false, func(t group.Token) group.Event { return group.Leave{Token: t, Members: leavers} })
}

// The types of groups, as the protocol calls them.
const (
	GroupClassic  = "classic"
	GroupConsumer = "consumer"
)

// GroupInfo describes a group to administrators.
type GroupInfo struct {
	ID, Type, State, Kind, Protocol string
	Members                         []group.Described // of a classic group
}

func (s *groupShell) info(members bool) GroupInfo {
	if s.c != nil {
		return GroupInfo{ID: s.id, Type: GroupConsumer, State: s.c.State(), Kind: "consumer", Protocol: s.c.Assignor()}
	}
	info := GroupInfo{ID: s.id, Type: GroupClassic, State: s.g.State().String(), Kind: s.g.Kind(), Protocol: s.g.Protocol()}
	if members {
		info.Members = s.g.Members()
	}
	return info
}

// empty reports whether the group has no members; the lock is held.
func (s *groupShell) empty() bool {
	if s.c != nil {
		return s.c.Len() == 0
	}
	return s.g.State() == group.Empty
}

// emptySince is when the last member left; zero while there are members. The lock is held.
func (s *groupShell) emptySince() time.Time {
	if s.c != nil {
		return s.c.EmptySince()
	}
	return s.g.EmptySince()
}

// Describe returns what there is to know of a group; ok is false if it does not exist.
func (gs *Groups) Describe(id string) (info GroupInfo, ok bool, err error) {
	s, err := gs.locked(id, false)
	if err != nil || s == nil {
		return GroupInfo{}, false, err
	}
	defer s.mu.Unlock()
	return s.info(true), true, nil
}

// List describes all groups, by id, without their members.
func (gs *Groups) List() []GroupInfo {
	var out []GroupInfo
	for _, s := range gs.all() {
		s.mu.Lock()
		if !s.gone {
			out = append(out, s.info(false))
		}
		s.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b GroupInfo) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Delete removes a group without members, with its offsets.
func (gs *Groups) Delete(ctx context.Context, id string) error {
	s, err := gs.locked(id, false)
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("%w: %q", ErrUnknownGroup, clip(id))
	}
	if !s.empty() || s.inFlight > 0 {
		s.mu.Unlock()
		return fmt.Errorf("%w: %q", ErrGroupNotEmpty, clip(id))
	}
	lsn, err := gs.drop(s)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return gs.b.journal.Wait(context.WithoutCancel(ctx), lsn)
}

// drop deletes a group that is empty; its lock is held. An LSN of zero: nothing was stored of it.
func (gs *Groups) drop(s *groupShell) (journal.LSN, error) {
	u := journal.NewUnit()
	if s.stored {
		kv.AppendMeta(u, groupPrefix+s.id, nil)
	}
	if s.c != nil {
		s.deleteConsumer(u)
	}
	for topic, parts := range s.offsets {
		for p := range parts {
			kv.AppendMeta(u, offsetKey(s.id, topic, p), nil)
		}
	}
	var lsn journal.LSN
	if u.Len() == 0 {
		u.Free()
	} else {
		var err error
		if lsn, err = gs.b.journal.Commit(u, nil); err != nil {
			return 0, err
		}
	}
	s.gone = true
	if s.timer != nil {
		s.timer.Stop()
	}
	gs.mu.Lock()
	delete(gs.byID, s.id)
	gs.mu.Unlock()
	return lsn, nil
}

// close answers everyone who waits and stops the timers.
func (gs *Groups) close() {
	gs.mu.Lock()
	gs.closed = true
	gs.mu.Unlock()
	for _, s := range gs.all() {
		s.mu.Lock()
		s.gone = true
		if s.timer != nil {
			s.timer.Stop()
		}
		for t, ch := range s.waiting {
			delete(s.waiting, t)
			ch <- groupAnswer{err: ErrStopping}
		}
		s.mu.Unlock()
	}
}

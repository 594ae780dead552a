package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// place is a partition.
type place struct {
	topic TopicID
	p     int32
}

// fleetClient is a client of a group in the new protocol as a test plays it. It believes what it is told, and takes its time to let go.
type fleetClient struct {
	name     string
	instance string
	classic  bool // speaks the classic protocol, cooperatively
	eager    bool // or lets everything go before it joins again
	topics   []string
	regex    string

	id       string
	epoch    int32
	joined   bool
	dead     bool
	owns     map[place]int64 // with the position in it
	wants    map[place]bool  // the last assignment; nil: none
	full     bool            // the last answer was lost: say everything again
	said     Partitions      // what it said last that it holds
	heard    time.Time
	lateJoin *ConsumerHeartbeat // a copy of a request to join that is still under way
}

// fleet is the group, its clients, and what a checker knows.
type fleet struct {
	t       *testing.T
	rng     *rand.Rand
	cfg     ConsumerConfig
	c       *Consumer
	now     time.Time
	wake    time.Time
	topics  *Topics
	counts  map[string]int32 // partitions by name
	ids     map[string]TopicID
	nextID  byte
	clients []*fleetClient
	serial  int
	faults  bool

	target   int32     // the epoch of the last target that was seen
	targeted time.Time // and when it came; zero: the next may come at once

	header    []byte
	members   map[string][]byte
	committed map[place]int64
}

var fleetConfig = ConsumerConfig{
	Session: 10 * time.Second, Heartbeat: time.Second, MaxMembers: 20,
	Classic: Config{MinSession: time.Second, MaxSession: time.Minute},
}

func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{
		t: t, rng: rand.New(rand.NewPCG(seed, 2)), cfg: fleetConfig, now: epoch, faults: true, ids: map[string]TopicID{},
		counts: map[string]int32{"a": 4, "b": 2, "c1": 3}, members: map[string][]byte{}, committed: map[place]int64{},
	}
	if seed%3 == 0 {
		f.cfg.Assignment = 1500 * time.Millisecond
	}
	f.c = NewConsumer(f.cfg, f.now)
	f.lookAtTopics()
	for i := range 6 {
		cl := &fleetClient{name: fmt.Sprintf("m%d", i), topics: []string{"a", "b"}, owns: map[place]int64{}}
		switch {
		case i == 1:
			cl.topics = []string{"a"}
		case i == 2:
			cl.topics, cl.regex = nil, "[abc].?"
		case i == 3:
			cl.instance = "static"
		case i >= 4 && f.rng.IntN(2) == 0:
			cl.classic, cl.eager = true, f.rng.IntN(2) == 0
		}
		f.clients = append(f.clients, cl)
	}
	return f
}

func (f *fleet) lookAtTopics() {
	var all []Topic
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		if _, ok := f.ids[name]; !ok {
			f.nextID++
			f.ids[name] = TopicID{f.nextID}
		}
		all = append(all, Topic{Name: name, ID: f.ids[name], Partitions: f.counts[name]})
	}
	f.topics = NewTopics(all)
}

func (f *fleet) lost() bool { return f.faults && f.rng.IntN(12) == 0 }

// settle stores what has changed, or loses it in a crash, and then checks. It reports whether the answer gets through.
func (f *fleet) settle(wake time.Time) bool {
	ch := f.c.Changes()
	if f.faults && f.rng.IntN(60) == 0 { // the node dies before the unit is durable
		f.restart()
		return false
	}
	if ch.Group != nil {
		f.header = ch.Group
	}
	for id, raw := range ch.Members {
		if raw == nil {
			delete(f.members, id)
		} else {
			f.members[id] = raw
		}
	}
	if !wake.IsZero() && (f.wake.IsZero() || wake.Before(f.wake)) {
		f.wake = wake
	}
	f.check()
	return !f.lost()
}

func (f *fleet) restart() {
	if f.header == nil {
		f.c = NewConsumer(f.cfg, f.now)
		f.wake, f.targeted = time.Time{}, time.Time{}
		return
	}
	c, err := RestoreConsumer(f.cfg, f.header, f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	for id, raw := range f.members {
		if err := c.RestoreMember(id, raw, f.now); err != nil {
			f.t.Fatal(err)
		}
	}
	f.c, f.targeted = c, time.Time{}
	f.wake = f.c.Tick(f.now)
	f.settle(time.Time{})
}

// check sees that of all clients that believe to own a partition the group would take a commit of one at most, and that targets do not come too often.
func (f *fleet) check() {
	f.t.Helper()
	if len(f.c.members) == 0 {
		f.targeted = time.Time{}
	} else if f.c.targetEpoch != f.target {
		if !f.targeted.IsZero() && f.now.Sub(f.targeted) < f.cfg.Assignment {
			f.t.Fatalf("a target comes %s after the one before", f.now.Sub(f.targeted))
		}
		f.target, f.targeted = f.c.targetEpoch, f.now
	}
	owner := map[place]string{}
	for _, cl := range f.clients {
		if cl.dead || !cl.joined {
			continue
		}
		for pl := range cl.owns {
			if f.mayCommit(cl, pl) != OK {
				continue
			}
			if other, dup := owner[pl]; dup {
				f.t.Fatalf("%s and %s both own partition %d of %x", other, cl.name, pl.p, pl.topic[0])
			}
			owner[pl] = cl.name
		}
	}
	held := map[place]string{}
	for _, m := range f.c.members {
		for _, part := range []map[TopicID]map[int32]int32{m.Assigned, m.Revoking} {
			for id, list := range part {
				for p := range list {
					pl := place{id, p}
					if other, dup := held[pl]; dup {
						f.t.Fatalf("the group has given partition %d of %x to %s and to %s", p, id[0], other, m.ID)
					}
					held[pl] = m.ID
					if f.c.holders[id][p] != m.ID {
						f.t.Fatalf("the group has forgotten who has partition %d of %x", p, id[0])
					}
				}
			}
		}
	}
	n := 0
	for _, list := range f.c.holders {
		n += len(list)
	}
	if n != len(held) {
		f.t.Fatalf("%d partitions are taken, and %d members' say so", n, len(held))
	}
}

func (f *fleet) topicName(id TopicID) string {
	for name, i := range f.ids {
		if i == id {
			return name
		}
	}
	return "?"
}

func (f *fleet) mayCommit(cl *fleetClient, pl place) Code {
	return f.c.MayCommit(cl.id, cl.instance, cl.epoch, true, func(yield func(string, int32) bool) { yield(f.topicName(pl.topic), pl.p) })
}

// work reads on in what the client owns, and commits now and then. What is committed never goes back.
func (f *fleet) work(cl *fleetClient) {
	for _, pl := range sortedPlaces(cl.owns) {
		cl.owns[pl] += int64(f.rng.IntN(3))
		if f.rng.IntN(2) == 0 && f.mayCommit(cl, pl) == OK {
			if f.committed[pl] > cl.owns[pl] {
				f.t.Fatalf("%s commits %d in partition %d of %x, which is at %d", cl.name, cl.owns[pl], pl.p, pl.topic[0], f.committed[pl])
			}
			f.committed[pl] = cl.owns[pl]
		}
	}
}

func sortedPlaces[V any](m map[place]V) []place {
	return slices.SortedFunc(maps.Keys(m), func(a, b place) int {
		if c := compareIDs(a.topic, b.topic); c != 0 {
			return c
		}
		return int(a.p - b.p)
	})
}

func (cl *fleetClient) owned() Partitions {
	out := Partitions{}
	for _, pl := range sortedPlaces(cl.owns) {
		out[pl.topic] = append(out[pl.topic], pl.p)
	}
	return out
}

// forget is what a client does that was fenced.
func (cl *fleetClient) forget() {
	clear(cl.owns)
	cl.wants, cl.joined, cl.epoch = nil, false, 0
}

// take begins to work on what was assigned, at the committed positions, and lets go what was not. It reports whether there was something to let go.
func (f *fleet) take(cl *fleetClient, assigned Partitions) {
	cl.wants = map[place]bool{}
	for id, list := range assigned {
		for _, p := range list {
			cl.wants[place{id, p}] = true
		}
	}
	for pl := range cl.wants {
		if _, ok := cl.owns[pl]; !ok {
			cl.owns[pl] = f.committed[pl]
		}
	}
}

// letGo commits and releases what the client must not own any more.
func (f *fleet) letGo(cl *fleetClient) (any bool) {
	if cl.wants == nil {
		return false
	}
	for _, pl := range sortedPlaces(cl.owns) {
		if !cl.wants[pl] {
			if f.mayCommit(cl, pl) == OK && f.committed[pl] <= cl.owns[pl] {
				f.committed[pl] = cl.owns[pl]
			}
			delete(cl.owns, pl)
			any = true
		}
	}
	return any
}

func (f *fleet) join(cl *fleetClient) {
	if cl.id == "" {
		f.serial++
		cl.id = fmt.Sprintf("%s-%d", cl.name, f.serial)
	}
	cl.forget()
	f.beat(cl)
}

// request is what the client says now.
func (f *fleet) request(cl *fleetClient) *ConsumerHeartbeat {
	ev := &ConsumerHeartbeat{MemberID: cl.id, Instance: cl.instance, Epoch: cl.epoch, Rebalance: -1, All: f.topics}
	if !cl.joined || cl.full || !cl.said.equal(cl.owned()) || f.rng.IntN(3) == 0 {
		ev.Rebalance, ev.HasTopics, ev.Topics, ev.HasOwned, ev.Owned = 5*time.Second, true, cl.topics, true, cl.owned()
		regex := cl.regex
		ev.Regex = &regex
	}
	return ev
}

func (f *fleet) beat(cl *fleetClient) {
	if f.rng.IntN(3) > 0 {
		f.letGo(cl)
	}
	ev := f.request(cl)
	if f.lost() {
		cl.full = true
		return
	}
	if ev.Epoch == EpochJoin && f.faults && f.rng.IntN(3) == 0 {
		late := *ev
		cl.lateJoin = &late
	}
	if r := ev.Check(); r.Code != OK {
		f.t.Fatal(r.Message)
	}
	r := f.c.Heartbeat(f.now, ev)
	through := f.settle(r.Wake)
	if f.faults && f.rng.IntN(10) == 0 { // the request comes twice
		again := f.request(cl)
		*again = *ev
		again.All = f.topics
		f.settle(f.c.Heartbeat(f.now, again).Wake)
	}
	if !through {
		cl.full = true
		return
	}
	cl.full = false
	if ev.HasOwned {
		cl.said = ev.Owned
	}
	f.hear(cl, &r)
}

func (f *fleet) hear(cl *fleetClient, r *ConsumerReply) {
	switch r.Code {
	case OK:
		cl.joined, cl.epoch, cl.heard = true, r.Epoch, f.now
		if r.HasAssignment {
			f.take(cl, r.Assignment)
		}
	case UnknownMember, GroupIDNotFound:
		cl.forget()
		cl.id = ""
	case FencedMemberEpoch, UnreleasedInstance:
		cl.forget()
	case FencedInstance:
		cl.forget()
		cl.id = ""
	default:
		f.t.Fatalf("%s is told %d: %s", cl.name, r.Code, r.Message)
	}
}

func (f *fleet) leave(cl *fleetClient, static bool) {
	if !cl.joined {
		return
	}
	f.letGo(cl)
	for _, pl := range sortedPlaces(cl.owns) {
		if f.mayCommit(cl, pl) == OK {
			f.committed[pl] = cl.owns[pl]
		}
	}
	clear(cl.owns)
	ev := &ConsumerHeartbeat{MemberID: cl.id, Instance: cl.instance, Epoch: EpochLeave, Rebalance: -1, All: f.topics}
	if static && cl.instance != "" {
		ev.Epoch = EpochLeaveStatic
	}
	f.settle(f.c.Heartbeat(f.now, ev).Wake)
	cl.forget()
	cl.id = ""
}

// metadata is a classic consumer's subscription.
func (f *fleet) metadata(cl *fleetClient) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics = 1, cl.topics
	for id, list := range cl.owned() {
		m.OwnedPartitions = append(m.OwnedPartitions, kmsg.ConsumerMemberMetadataOwnedPartition{Topic: f.topicName(id), Partitions: list})
	}
	return m.AppendTo(nil)
}

// rejoin is the classic way into a group, join and sync.
func (f *fleet) rejoin(cl *fleetClient) {
	if cl.eager {
		f.work(cl)
		clear(cl.owns)
		cl.wants = nil
	}
	f.serial++
	ev := Join{
		MemberID: cl.id, NewID: fmt.Sprintf("%s-%d", cl.name, f.serial), Session: 10 * time.Second, Rebalance: 5 * time.Second, Kind: "consumer",
		KnownIDOnly: true, Protocols: []Protocol{{Name: "x", Metadata: f.metadata(cl)}},
	}
	cl.full = true // until it has its assignment it tries again
	if f.lost() {
		return
	}
	r, wake := f.c.Join(f.now, &ev, f.topics)
	if !f.settle(wake) {
		return
	}
	switch r.Code {
	case MemberIDRequired:
		cl.id = r.MemberID
		return
	case OK:
	case UnknownMember:
		cl.forget()
		cl.id = ""
		return
	default:
		f.t.Fatalf("%s joins and is told %d", cl.name, r.Code)
	}
	cl.id, cl.epoch, cl.joined = r.MemberID, r.Generation, true
	if f.lost() {
		return
	}
	s, wake := f.c.Sync(f.now, &Sync{MemberID: cl.id, Generation: cl.epoch})
	if !f.settle(wake) {
		return
	}
	switch s.Code {
	case OK:
		cl.full = false
		f.take(cl, parseAssignment(s.Assignment, f.topics))
		if f.letGo(cl) {
			cl.full = true // join again, at once or soon
		}
	case RebalanceInProgress:
	case IllegalGeneration:
		cl.forget()
	case UnknownMember:
		cl.forget()
		cl.id = ""
	default:
		f.t.Fatalf("%s syncs and is told %d", cl.name, s.Code)
	}
}

func (f *fleet) classicBeat(cl *fleetClient) {
	if !cl.joined || cl.full {
		f.rejoin(cl)
		return
	}
	if f.lost() {
		return
	}
	code, wake := f.c.Beat(f.now, &Heartbeat{MemberID: cl.id, Generation: cl.epoch}, f.topics)
	if !f.settle(wake) {
		return
	}
	switch code {
	case OK:
	case RebalanceInProgress:
		f.rejoin(cl)
	case IllegalGeneration:
		cl.forget()
	case UnknownMember:
		cl.forget()
		cl.id = ""
	default:
		f.t.Fatalf("%s beats and is told %d", cl.name, code)
	}
}

func (f *fleet) act(cl *fleetClient) {
	switch {
	case cl.dead:
		if f.rng.IntN(20) == 0 { // the process is started again
			cl.dead = false
			cl.forget()
			cl.id, cl.full = "", false
		}
	case cl.lateJoin != nil && f.rng.IntN(4) == 0:
		late := cl.lateJoin
		cl.lateJoin = nil
		late.All = f.topics
		f.settle(f.c.Heartbeat(f.now, late).Wake)
	case cl.classic:
		if f.rng.IntN(40) == 0 && cl.joined {
			f.work(cl)
			clear(cl.owns)
			f.c.Leave(f.now, &Leave{Members: []Leaver{{MemberID: cl.id}}})
			f.settle(time.Time{})
			cl.forget()
			cl.id = ""
			return
		}
		f.classicBeat(cl)
	case !cl.joined:
		f.join(cl)
	case f.rng.IntN(40) == 0:
		f.leave(cl, f.rng.IntN(2) == 0)
	case f.rng.IntN(60) == 0:
		cl.dead = true
		clear(cl.owns)
	case f.rng.IntN(30) == 0:
		cl.topics = [][]string{{"a"}, {"a", "b"}, {"b", "c1"}, {"c1", "new"}}[f.rng.IntN(4)]
		cl.full = true
		f.beat(cl)
	default:
		f.beat(cl)
	}
}

func (f *fleet) pass(d time.Duration) {
	f.now = f.now.Add(d)
	if !f.wake.IsZero() && !f.now.Before(f.wake) {
		f.wake = f.c.Tick(f.now)
		f.settle(time.Time{})
	}
}

func (f *fleet) changeTopics() {
	switch f.rng.IntN(4) {
	case 0:
		name := []string{"a", "b", "c1"}[f.rng.IntN(3)]
		if f.counts[name] > 0 && f.counts[name] < 8 {
			f.counts[name]++
		}
	case 1:
		if _, ok := f.counts["new"]; ok {
			delete(f.counts, "new")
			delete(f.ids, "new")
		} else {
			f.counts["new"] = 2
		}
	}
	f.lookAtTopics()
}

func TestConsumerSimulation(t *testing.T) {
	t.Parallel()
	n, first := *historyFlag/3, uint64(1)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for i := range n {
		seed := first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newFleet(t, seed).run() })
	}
}

func (f *fleet) run() {
	for range 600 {
		cl := f.clients[f.rng.IntN(len(f.clients))]
		if cl.joined && !cl.dead {
			f.work(cl)
		}
		f.act(cl)
		if f.rng.IntN(25) == 0 {
			f.changeTopics()
		}
		f.pass(time.Duration(f.rng.IntN(400)) * time.Millisecond)
	}
	// From now on nothing goes wrong: the fleet must come to rest, with every partition in the hands of one that wants it.
	f.faults = false
	for range 60 {
		for _, cl := range f.clients {
			cl.lateJoin = nil
			switch {
			case cl.dead:
				cl.dead = false
				cl.forget()
				cl.id = ""
			case cl.classic:
				f.classicBeat(cl)
			case !cl.joined:
				f.join(cl)
			default:
				f.letGo(cl)
				f.beat(cl)
			}
		}
		f.pass(time.Second)
	}
	if s := f.c.State(); s != "Stable" {
		for _, m := range f.c.inOrder() {
			f.t.Logf("%s: epoch %d state %d assigned %v revoking %v target %v", m.ID, m.Epoch, m.State, m.Assigned, m.Revoking, m.Target)
		}
		f.t.Fatalf("the group is %s in the end, at epoch %d of %d", s, f.c.TargetEpoch(), f.c.Epoch())
	}
	owners := map[place]string{}
	for _, cl := range f.clients {
		for pl := range cl.owns {
			if owners[pl] != "" {
				f.t.Fatalf("partition %d of %x has two owners in the end", pl.p, pl.topic[0])
			}
			owners[pl] = cl.name
		}
		if m := f.c.members[cl.id]; m == nil || !m.Assigned.partitions().equal(cl.owned()) {
			f.t.Fatalf("%s and the group disagree in the end: %+v, %v", cl.name, m, cl.owned())
		}
	}
	for name, count := range f.counts {
		if !f.c.SubscribedTo(name) {
			continue
		}
		for p := range count {
			if owners[place{f.ids[name], p}] == "" {
				f.t.Fatalf("partition %d of %s has no owner in the end", p, name)
			}
		}
	}
}

package group

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "run only the simulation with this seed")
	historyFlag = flag.Int("histories", 300, "how many simulations to run")
)

// simulated is a client of the group as a test plays it: it joins, syncs, beats, dies, comes back and leaves, and believes what it is told.
type simulated struct {
	name       string
	instance   string
	id         string
	generation int32
	owns       string // the partitions it believes to own in generation, "" for none
	joining    Token
	syncing    Token
	dead       bool
}

// world is the group, its clients, and what a checker knows.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	g       *Group
	now     time.Time
	wake    time.Time
	token   Token
	clients []*simulated
	asked   map[Token]*simulated // nil for answers that nobody cares about

	// The checker's:
	stored     []byte
	generation int32
	owners     map[int32]map[string]string // generation -> partition -> member
	committed  map[string]int64
}

const simulatedPartitions = "0123"

func TestSimulation(t *testing.T) {
	t.Parallel()
	n := *historyFlag
	first := uint64(1)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for i := range n {
		seed := first + uint64(i)
		w := &world{
			t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: epoch, g: New(config, epoch),
			asked: map[Token]*simulated{}, owners: map[int32]map[string]string{}, committed: map[string]int64{},
		}
		for c := range 3 + w.rng.IntN(4) {
			s := &simulated{name: fmt.Sprint("c", c), dead: true}
			if w.rng.IntN(3) == 0 {
				s.instance = "i" + s.name
			}
			w.clients = append(w.clients, s)
		}
		for range 400 {
			w.act()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		w.settle()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// act lets something happen.
func (w *world) act() {
	c := w.clients[w.rng.IntN(len(w.clients))]
	switch w.rng.IntN(20) {
	case 0, 1, 2, 3:
		w.pass(time.Duration(w.rng.IntN(4000)) * time.Millisecond)
	case 4: // the process dies; if it is not static it forgets who it was
		w.die(c)
	case 5:
		if !c.dead && c.id != "" {
			w.step(nil, Leave{Token: w.next(nil), Members: []Leaver{{MemberID: c.id, Instance: c.instance}}})
			w.die(c)
		}
	case 6:
		w.restart()
	case 7: // a subscription that changes
		if !c.dead && c.joining == 0 {
			w.join(c)
		}
	default:
		w.drive(c)
	}
}

// drive lets a client do what its protocol wants next.
func (w *world) drive(c *simulated) {
	switch {
	case c.dead:
		c.dead = false
		w.join(c)
	case c.joining != 0 || c.syncing != 0:
	case c.generation <= 0:
		w.join(c)
	case w.rng.IntN(2) == 0:
		w.step(c, Heartbeat{Token: w.next(c), MemberID: c.id, Instance: c.instance, Generation: c.generation})
	default:
		w.commit(c)
	}
}

func (w *world) die(c *simulated) {
	delete(w.asked, c.joining)
	delete(w.asked, c.syncing)
	*c = simulated{name: c.name, instance: c.instance, dead: true}
}

func (w *world) join(c *simulated) {
	c.joining = w.next(c)
	w.step(c, Join{
		Token: c.joining, MemberID: c.id, Instance: c.instance, NewID: fmt.Sprint(c.name, "-", c.joining), KnownIDOnly: true, SkipAssignment: true,
		Session: 6 * time.Second, Rebalance: 10 * time.Second, Kind: "consumer",
		Protocols: []Protocol{{Name: "range", Metadata: []byte{byte(w.rng.IntN(2))}}},
	})
}

// commit checks that only an owner of the current generation may move a position.
func (w *world) commit(c *simulated) {
	code := w.g.MayCommit(w.now, c.id, c.instance, c.generation)
	if code == OK {
		if c.generation != w.g.Generation() {
			w.t.Errorf("%s committed in generation %d, the group is in %d", c.name, c.generation, w.g.Generation())
		}
		for _, p := range c.owns {
			w.committed[string(p)]++
		}
		return
	}
	w.rejected(c, code)
}

func (w *world) rejected(c *simulated, code Code) {
	switch code {
	case OK:
	case RebalanceInProgress:
		if c.joining == 0 {
			w.join(c)
		}
	case UnknownMember, IllegalGeneration, FencedInstance, MemberIDRequired:
		if code != IllegalGeneration {
			c.id = ""
		}
		c.generation, c.owns = 0, ""
	default:
		w.t.Errorf("%s: unexpected code %d", c.name, code)
	}
}

func (w *world) next(c *simulated) Token {
	w.token++
	w.asked[w.token] = c
	return w.token
}

func (w *world) step(_ *simulated, ev Event) {
	out := w.g.Step(w.now, ev)
	w.wake = out.Wake
	if w.g.Generation() < w.generation {
		w.t.Errorf("the generation went from %d back to %d", w.generation, w.g.Generation())
	}
	w.generation = w.g.Generation()
	if out.Persist {
		w.stored = w.g.Snapshot()
	}
	for _, r := range out.Replies {
		c, ok := w.asked[r.Token]
		if !ok {
			continue // of one who died, or a second answer: see below
		}
		delete(w.asked, r.Token)
		if c != nil {
			w.deliver(c, r)
		}
	}
}

func (w *world) deliver(c *simulated, r Reply) {
	switch r.Token {
	case c.joining:
		c.joining = 0
		switch {
		case r.Code == MemberIDRequired:
			c.id = r.MemberID
			w.join(c)
		case r.Code != OK:
			w.rejected(c, r.Code)
		default:
			c.id, c.generation, c.owns = r.MemberID, r.Generation, ""
			ev := Sync{Token: w.next(c), MemberID: c.id, Instance: c.instance, Generation: c.generation, Protocol: r.Protocol}
			if r.Leader == c.id && !r.SkipAssignment {
				ev.Assignments = deal(r.Members)
			}
			c.syncing = ev.Token
			w.step(c, ev)
		}
	case c.syncing:
		c.syncing = 0
		if r.Code != OK {
			w.rejected(c, r.Code)
			return
		}
		c.owns = string(r.Assignment)
		w.own(c)
	default:
		w.rejected(c, r.Code)
	}
}

// own is the checker: in one generation a partition has one owner, a static member under a new id being the same one.
func (w *world) own(c *simulated) {
	of := w.owners[c.generation]
	if of == nil {
		of = map[string]string{}
		w.owners[c.generation] = of
	}
	for _, p := range c.owns {
		if old, ok := of[string(p)]; ok && old != c.name {
			w.t.Errorf("partition %c has two owners in generation %d: %s and %s", p, c.generation, old, c.name)
		}
		of[string(p)] = c.name
	}
}

// deal gives each partition to one member.
func deal(members []Described) map[string][]byte {
	out := map[string][]byte{}
	for i := range simulatedPartitions {
		m := members[i%len(members)].MemberID
		out[m] = append(out[m], simulatedPartitions[i])
	}
	return out
}

func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for !w.wake.IsZero() && !w.wake.After(end) {
		if w.wake.After(w.now) {
			w.now = w.wake
		}
		w.step(nil, Tick{})
	}
	w.now = end
}

// restart loses what is not stored, and every connection.
func (w *world) restart() {
	g := New(config, w.now)
	if w.stored != nil {
		var err error
		if g, err = Restore(config, w.stored, w.now); err != nil {
			w.t.Error(err)
			return
		}
	}
	w.g = g
	// A generation that began and was never assigned may come again: nobody got anything in it.
	w.generation = g.Generation()
	for gen := range w.owners {
		if gen > g.Generation() {
			w.t.Errorf("generation %d was assigned, and is forgotten", gen)
		}
	}
	for t, c := range w.asked {
		delete(w.asked, t)
		if c != nil {
			c.joining, c.syncing = 0, 0
			if c.owns == "" {
				c.generation = 0
			}
		}
	}
	w.step(nil, Tick{})
}

// settle lets everyone be well for a while: the group must become stable, with all of them in it and every partition owned.
func (w *world) settle() {
	for range 60 {
		for _, c := range w.clients {
			w.drive(c)
		}
		w.pass(time.Second)
	}
	if w.g.State() != Stable {
		w.t.Errorf("the group does not settle: it is %v", w.g.State())
		return
	}
	owned := ""
	for _, c := range w.clients {
		if c.generation != w.g.Generation() {
			w.t.Errorf("%s is in generation %d, the group in %d", c.name, c.generation, w.g.Generation())
		}
		owned += c.owns
	}
	if len(owned) != len(simulatedPartitions) {
		w.t.Errorf("owned are %q of %q", owned, simulatedPartitions)
	}
}

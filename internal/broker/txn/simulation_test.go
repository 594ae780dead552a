package txn

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "run only the simulation with this seed")
	historyFlag = flag.Int("histories", 2000, "how many simulations to run")
)

const simulatedPartitions = 3

// instance is a process with the transactional id: it may be replaced by another one without knowing, die, and hear answers late or never.
type instance struct {
	v2      bool
	id      int64
	epoch   int16
	running int // the number of the transaction that it is in; 0: none
}

// attempt is one transaction as its instance knows it.
type attempt struct {
	wrote  map[int32]bool
	asked  map[bool]bool // to commit, to abort
	answer map[bool]bool
}

// entry is a batch or marker in a simulated partition.
type entry struct {
	producer int64
	epoch    int16
	number   int // of the transaction; 0: a marker
	commit   bool
}

// request is on its way; it may come twice, late, or both.
type request struct {
	from   *instance
	ev     Event
	number int   // of the transaction
	place  int32 // of a batch
	write  bool
}

type world struct {
	t         *testing.T
	rng       *rand.Rand
	now       time.Time
	tx        *Transaction
	stored    []byte // what a restart finds: the log below is in the same units
	logs      [simulatedPartitions][]entry
	instances []*instance
	attempts  map[int]*attempt
	network   []request
	numbers   int
	nextID    int64
	highest   map[int64]int16
}

// TestSimulation runs instances of one transactional id through deaths, restarts, timeouts and a network that delays and repeats, and checks the log:
// a transaction is in all its partitions or in none, what was acknowledged holds, nothing that did not ask to be committed is, and every transaction ends.
func TestSimulation(t *testing.T) {
	t.Parallel()
	n, first := *historyFlag, uint64(1)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for i := range n {
		seed := first + uint64(i)
		w := &world{
			t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: epoch0, tx: New(epoch0), attempts: map[int]*attempt{}, nextID: 100, highest: map[int64]int16{},
		}
		w.stored = w.tx.Snapshot()
		for range 2 {
			w.instances = append(w.instances, &instance{v2: w.rng.IntN(3) > 0, id: -1, epoch: -1})
		}
		for range 150 {
			w.act()
		}
		w.settle()
		w.check()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (w *world) act() {
	c := w.instances[w.rng.IntN(len(w.instances))]
	switch w.rng.IntN(24) {
	case 0:
		w.pass(time.Duration(w.rng.IntN(40)) * time.Second)
	case 1:
		w.restart()
	case 2:
		*c = instance{v2: w.rng.IntN(3) > 0, id: -1, epoch: -1} // dies; another one starts
	case 3:
		if w.tx.epoch >= 0 && w.tx.epoch < maxEpoch-1 && w.tx.state != Ongoing && w.rng.IntN(3) == 0 { // nearly used up
			w.tx.epoch, w.tx.lastEpoch = maxEpoch-1, -1
			w.stored = w.tx.Snapshot()
		}
	case 4, 5, 6, 7, 8, 9, 10:
		w.deliver()
	default:
		w.drive(c)
	}
}

// pass lets time pass and timers fire.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	if wake := w.tx.Wake(); !wake.IsZero() && !w.now.Before(wake) {
		w.step(Tick{})
	}
}

// restart loses what was not stored, which is nothing: a unit is stored whole before anybody is told.
func (w *world) restart() {
	tx, err := Restore(w.stored)
	if err != nil {
		w.t.Fatal(err)
	}
	w.tx = tx
	w.pass(0)
}

// step runs an event, and stores what it leads to, as one unit.
func (w *world) step(ev Event) Output {
	out := w.tx.Step(w.now, ev)
	if out.Ended != nil {
		for _, p := range out.Ended.Partitions {
			w.logs[p.Index] = append(w.logs[p.Index], entry{producer: out.Ended.ProducerID, epoch: out.Ended.Epoch, commit: out.Ended.Commit})
		}
	}
	if out.Persist {
		w.stored = w.tx.Snapshot()
	}
	if w.tx.epoch >= 0 {
		if w.tx.epoch < w.highest[w.tx.producerID] {
			w.t.Errorf("the epoch of producer %d goes back from %d to %d", w.tx.producerID, w.highest[w.tx.producerID], w.tx.epoch)
		}
		w.highest[w.tx.producerID] = w.tx.epoch
	}
	return out
}

// drive lets an instance do what comes next. Its requests may be repeated on the network; those of the first protocol are not delayed beyond the next
// one, since nothing in them tells two transactions apart.
func (w *world) drive(c *instance) {
	if c.epoch < 0 {
		w.send(request{from: c, ev: Init{Timeout: time.Minute, MaxTimeout: time.Hour, ProducerID: -1, Epoch: -1}}, true)
		return
	}
	if c.running == 0 {
		if w.rng.IntN(8) == 0 {
			w.send(request{from: c, ev: Init{Timeout: time.Minute, MaxTimeout: time.Hour, ProducerID: c.id, Epoch: c.epoch}}, true)
			return
		}
		w.numbers++
		c.running = w.numbers
		w.attempts[c.running] = &attempt{wrote: map[int32]bool{}, asked: map[bool]bool{}, answer: map[bool]bool{}}
	}
	if len(w.attempts[c.running].asked) == 0 && w.rng.IntN(3) > 0 {
		p := int32(w.rng.IntN(simulatedPartitions))
		add := Add{ProducerID: c.id, Epoch: c.epoch, Partitions: []Partition{{Index: p}}}
		w.send(request{from: c, ev: add, number: c.running, place: p, write: true}, c.v2)
		return
	}
	commit := w.rng.IntN(2) == 0
	a := w.attempts[c.running]
	if len(a.asked) == 0 {
		a.asked[commit] = true
	}
	w.send(request{from: c, ev: End{ProducerID: c.id, Epoch: c.epoch, Commit: a.asked[true], Bump: c.v2}, number: c.running}, c.v2)
}

// send gives a request to the coordinator now, and, if it may be, keeps a copy to come late.
func (w *world) send(r request, repeats bool) {
	if repeats && w.rng.IntN(3) == 0 {
		w.network = append(w.network, r)
	}
	if w.rng.IntN(10) == 0 && repeats { // lost, but for the copy
		return
	}
	w.receive(r, w.rng.IntN(10) > 0)
}

// deliver lets a request come that was delayed. Nobody hears the answer.
func (w *world) deliver() {
	if len(w.network) == 0 {
		return
	}
	i := w.rng.IntN(len(w.network))
	r := w.network[i]
	if w.rng.IntN(2) == 0 {
		w.network = append(w.network[:i], w.network[i+1:]...)
	}
	w.receive(r, false)
}

func (w *world) receive(r request, heard bool) {
	current := w.tx.Describe()
	var id int64
	var epoch int16
	switch ev := r.ev.(type) {
	case Init:
		w.nextID++
		ev.NewProducerID = w.nextID
		r.ev = ev
		id, epoch = ev.ProducerID, ev.Epoch
	case Add:
		id, epoch = ev.ProducerID, ev.Epoch
	case End:
		w.nextID++
		ev.NewProducerID = w.nextID
		r.ev = ev
		id, epoch = ev.ProducerID, ev.Epoch
	}
	out := w.step(r.ev)
	stale := id >= 0 && (id != current.ProducerID || epoch != current.Epoch)
	if stale && (out.Ended != nil || out.Persist) {
		w.t.Errorf("%#v has changed producer %d, epoch %d", r.ev, current.ProducerID, current.Epoch)
	}
	if _, adds := r.ev.(Add); adds && stale && out.Code == OK {
		w.t.Errorf("%#v was taken from producer %d, epoch %d", r.ev, current.ProducerID, current.Epoch)
	}
	if r.write && out.Code == OK { // the batch is in the same order as its partition
		w.logs[r.place] = append(w.logs[r.place], entry{producer: id, epoch: epoch, number: r.number})
		w.attempts[r.number].wrote[r.place] = true
	}
	if !heard {
		return
	}
	c := r.from
	switch r.ev.(type) {
	case Init:
		if out.Code == OK {
			c.id, c.epoch, c.running = out.ProducerID, out.Epoch, 0
		} else {
			*c = instance{v2: c.v2, id: -1, epoch: -1}
		}
	case Add:
		if out.Code != OK {
			*c = instance{v2: c.v2, id: -1, epoch: -1}
		}
	case End:
		a := w.attempts[r.number]
		if out.Code != OK {
			if c.running == r.number {
				*c = instance{v2: c.v2, id: -1, epoch: -1}
			}
			return
		}
		a.answer[a.asked[true]] = true
		if c.running == r.number {
			c.id, c.epoch, c.running = out.ProducerID, out.Epoch, 0
		}
	}
}

// settle lets every transaction end.
func (w *world) settle() {
	w.pass(2 * time.Minute)
	if w.tx.state == Ongoing {
		w.t.Error("a transaction does not end")
	}
}

// check judges the log.
func (w *world) check() {
	visible := map[int]map[int32]bool{}
	for p, log := range w.logs {
		open := map[int64][]int{}
		for _, e := range log {
			if e.number > 0 {
				open[e.producer] = append(open[e.producer], e.number)
				continue
			}
			for _, n := range open[e.producer] {
				if e.commit {
					if visible[n] == nil {
						visible[n] = map[int32]bool{}
					}
					visible[n][int32(p)] = true
				}
			}
			delete(open, e.producer)
		}
		for producer, rest := range open {
			w.t.Errorf("partition %d: producer %d has left transactions %v open", p, producer, rest)
		}
	}
	for n, a := range w.attempts {
		seen := len(visible[n])
		switch {
		case seen > 0 && seen < len(a.wrote):
			w.t.Errorf("transaction %d is in %d of its %d partitions", n, seen, len(a.wrote))
		case seen > 0 && !a.asked[true]:
			w.t.Errorf("transaction %d was committed without asking", n)
		case seen == 0 && len(a.wrote) > 0 && a.answer[true]:
			w.t.Errorf("transaction %d was acknowledged as committed and is not", n)
		}
	}
}

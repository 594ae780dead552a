// Package txn is the coordinator of one transactional id, as a pure state machine: Step takes an event at a time and returns the reply, what the
// shell has to make durable with it, and the time of the next tick. It has no goroutine, clock, disk, socket or random number in it.
//
// A transactional id goes
//
//	Empty -> Ongoing (partitions, groups) -> CompleteCommit or CompleteAbort -> Ongoing ...
//
// There is no prepared state: the shell writes the markers of all partitions, the offsets and the coordinator's Snapshot in one atomic unit, so that
// a transaction that has ended for its coordinator has ended everywhere.
//
// Both protocols are served. In the first (KIP-98, KIP-360) an epoch is one start of a producer. In the second (KIP-890) it is one transaction:
// ending one raises the epoch, so that a request that was delayed in one transaction is fenced in the next.
//
// What always holds:
//   - The epoch of a producer id only grows; a producer id is never used by two transactional ids.
//   - At most one transaction is ongoing; what belongs to an epoch that is not the current one changes nothing.
//   - An ongoing transaction ends: by its producer, by the next start of the producer, or by its timeout.
//   - A marker has an epoch that is not below that of what it ends, and above it if the producer is fenced by it.
//   - What a reply promises is in Output.Persist: the shell makes Snapshot durable, together with what Output.Ended asks for, before it answers.
package txn

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"time"
)

// Code is an error code of the protocol.
type Code int16

// The codes that a coordinator answers with.
const (
	OK                        Code = 0
	InvalidTxnState           Code = 48
	InvalidProducerIDMapping  Code = 49
	InvalidTransactionTimeout Code = 50
	ProducerFenced            Code = 90
	// NotInTransaction is TRANSACTION_ABORTABLE: the partition is not part of the transaction.
	NotInTransaction Code = 120
)

// State of a transactional id.
type State uint8

// The states.
const (
	Empty State = iota
	Ongoing
	CompleteCommit
	CompleteAbort
)

// String is the state's name in the protocol.
func (s State) String() string {
	return [...]string{"Empty", "Ongoing", "CompleteCommit", "CompleteAbort"}[s]
}

// maxEpoch is the last epoch that a producer is given; the one above it is for the marker that fences it.
const maxEpoch = math.MaxInt16 - 1

// Partition is a partition of a topic, which is named by its id.
type Partition struct {
	Topic [16]byte
	Index int32
}

func comparePartitions(a, b Partition) int {
	return cmp.Or(bytes.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Index, b.Index))
}

// Transaction is the state of one transactional id. It is not safe for concurrent use.
type Transaction struct {
	producerID     int64
	epoch          int16 // -1: no producer has started yet
	lastProducerID int64 // before the epochs of the last one were used up; -1: none
	lastEpoch      int16 // before the producer itself raised it; -1: not by itself
	endedEpoch     int16 // of the transaction whose end raised the epoch to the current one; -1: something else did
	timeout        time.Duration
	state          State
	partitions     []Partition // sorted
	groups         []string    // sorted
	started        time.Time   // of the transaction, or of the last one when it is complete
	updated        time.Time
}

// New returns the state of a transactional id that nobody has used.
func New(now time.Time) *Transaction {
	return &Transaction{producerID: -1, epoch: -1, lastProducerID: -1, lastEpoch: -1, endedEpoch: -1, updated: now}
}

// Event is one of Init, Add, End, Tick.
type Event interface{ event() }

// Init is a producer that starts (InitProducerId), or one that goes on under a higher epoch.
type Init struct {
	Timeout, MaxTimeout time.Duration
	// ProducerID and Epoch are what the producer has, -1 if it is new.
	ProducerID int64
	Epoch      int16
	// NewProducerID is an id that no producer has had, used if NeedsProducerID.
	NewProducerID int64
}

// Add makes partitions and groups part of the transaction, which begins if need be.
type Add struct {
	ProducerID int64
	Epoch      int16
	Partitions []Partition
	Groups     []string
	// VerifyOnly asks whether they are part of it already.
	VerifyOnly bool
}

// End commits or aborts.
type End struct {
	ProducerID int64
	Epoch      int16
	Commit     bool
	Bump       bool // the second protocol: the epoch is raised
	// NewProducerID is an id that no producer has had, used if NeedsProducerID.
	NewProducerID int64
}

// Tick lets what is overdue happen.
type Tick struct{}

func (Init) event() {}
func (Add) event()  {}
func (End) event()  {}
func (Tick) event() {}

// Output is what a step leads to.
type Output struct {
	Code Code
	// ProducerID and Epoch are what the producer goes on with, after Init and End.
	ProducerID int64
	Epoch      int16
	// Persist asks the shell to make Snapshot durable, in one unit with what Ended asks for.
	Persist bool
	Ended   *Ended
	// Wake is when the next Tick is due; zero: never.
	Wake time.Time
}

// Ended is a transaction that has ended: a marker goes to each partition, and the offsets of the groups count or are forgotten.
type Ended struct {
	Commit     bool
	ProducerID int64
	Epoch      int16 // of the markers
	Partitions []Partition
	Groups     []string
	TimedOut   bool
}

// Step handles one event.
func (t *Transaction) Step(now time.Time, ev Event) Output {
	var out Output
	switch ev := ev.(type) {
	case Init:
		t.init(now, &ev, &out)
	case Add:
		t.add(now, &ev, &out)
	case End:
		t.end(now, &ev, &out)
	case Tick:
		t.tick(now, &out)
	}
	out.ProducerID, out.Epoch = t.producerID, t.epoch
	if out.Persist {
		t.updated = now
	}
	out.Wake = t.Wake()
	return out
}

// Wake is when the next Tick is due; zero: never.
func (t *Transaction) Wake() time.Time {
	if t.state != Ongoing {
		return time.Time{}
	}
	return t.started.Add(t.timeout)
}

// NeedsProducerID tells whether Init or End may need a new producer id.
func (t *Transaction) NeedsProducerID() bool { return t.epoch < 0 || t.epoch >= maxEpoch }

func (t *Transaction) init(now time.Time, ev *Init, out *Output) {
	if ev.Timeout <= 0 || ev.Timeout > ev.MaxTimeout {
		out.Code = InvalidTransactionTimeout
		return
	}
	resumes := ev.ProducerID >= 0 && ev.Epoch >= 0
	switch {
	case t.epoch < 0: // a producer that comes back after its id was forgotten is as good as a new one
		t.producerID, t.epoch = ev.NewProducerID, 0
	case resumes && !t.mayResume(ev):
		out.Code = ProducerFenced
		return
	case resumes && ev.Epoch != t.epoch: // its first request was heard, the answer was not
		return
	default:
		if t.state == Ongoing {
			t.finish(false, t.epoch+1, out)
		}
		t.raise(ev.NewProducerID, resumes)
	}
	t.timeout, t.state, t.started, t.endedEpoch = ev.Timeout, Empty, time.Time{}, -1
	out.Persist = true
}

// mayResume tells whether a producer that says who it is is the current one, or was until its own last request.
func (t *Transaction) mayResume(ev *Init) bool {
	if ev.ProducerID == t.producerID && ev.Epoch == t.epoch {
		return true
	}
	if t.state == Ongoing || ev.Epoch != t.lastEpoch {
		return false
	}
	return ev.ProducerID == t.producerID || ev.ProducerID == t.lastProducerID && ev.Epoch >= maxEpoch
}

// raise gives the producer the next epoch, under a new id if there is none left. byItself says that it asked for that knowing the old one.
func (t *Transaction) raise(newID int64, byItself bool) {
	last := int16(-1)
	if byItself {
		last = t.epoch
	}
	if t.epoch >= maxEpoch {
		t.lastProducerID, t.producerID, t.epoch, t.lastEpoch = t.producerID, newID, 0, last
		return
	}
	t.epoch, t.lastEpoch = t.epoch+1, last
}

// current checks that a request is of the producer that the transactional id has now.
func (t *Transaction) current(id int64, epoch int16) Code {
	switch {
	case t.epoch < 0 || id != t.producerID:
		return InvalidProducerIDMapping
	case epoch != t.epoch:
		return ProducerFenced
	}
	return OK
}

func (t *Transaction) add(now time.Time, ev *Add, out *Output) {
	if out.Code = t.current(ev.ProducerID, ev.Epoch); out.Code != OK {
		return
	}
	fresh := t.state != Ongoing
	var partitions []Partition
	var groups []string
	for _, p := range ev.Partitions {
		if _, ok := slices.BinarySearchFunc(t.partitions, p, comparePartitions); !ok {
			partitions = append(partitions, p)
		}
	}
	for _, g := range ev.Groups {
		if _, ok := slices.BinarySearch(t.groups, g); !ok {
			groups = append(groups, g)
		}
	}
	switch {
	case ev.VerifyOnly:
		if fresh || len(partitions)+len(groups) > 0 {
			out.Code = NotInTransaction
		}
		return
	case len(partitions)+len(groups) == 0:
		return
	}
	if fresh {
		t.state, t.started = Ongoing, now
	}
	for _, p := range partitions {
		if i, ok := slices.BinarySearchFunc(t.partitions, p, comparePartitions); !ok {
			t.partitions = slices.Insert(t.partitions, i, p)
		}
	}
	for _, g := range groups {
		if i, ok := slices.BinarySearch(t.groups, g); !ok {
			t.groups = slices.Insert(t.groups, i, g)
		}
	}
	out.Persist = true
}

func (t *Transaction) end(_ time.Time, ev *End, out *Output) {
	if ev.Bump {
		t.endAndRaise(ev, out)
		return
	}
	if out.Code = t.current(ev.ProducerID, ev.Epoch); out.Code != OK {
		return
	}
	switch {
	case t.state == Ongoing:
		t.finish(ev.Commit, t.epoch, out)
		t.endedEpoch = -1
	case t.state == CompleteCommit && ev.Commit, t.state == CompleteAbort && !ev.Commit: // again: the answer was lost
	default:
		out.Code = InvalidTxnState
	}
}

// endAndRaise is end in the second protocol. What is asked for again is known by its epoch: that of the transaction whose end raised the epoch. Where
// something else has raised it, a new start of the producer above all, who comes with the epoch before is fenced.
func (t *Transaction) endAndRaise(ev *End, out *Output) {
	complete := t.state == CompleteCommit || t.state == CompleteAbort
	again := complete && t.endedEpoch >= 0 && ev.Epoch == t.endedEpoch &&
		(ev.ProducerID == t.producerID || ev.ProducerID == t.lastProducerID && t.epoch == 0)
	if again {
		if ev.Commit != (t.state == CompleteCommit) {
			out.Code = InvalidTxnState
		}
		return
	}
	if out.Code = t.current(ev.ProducerID, ev.Epoch); out.Code != OK {
		return
	}
	if t.state != Ongoing && ev.Commit {
		out.Code = InvalidTxnState
		return
	}
	t.finish(ev.Commit, t.epoch+1, out) // an abort without a transaction raises the epoch, too
	t.endedEpoch = t.epoch
	t.raise(ev.NewProducerID, true)
}

func (t *Transaction) tick(now time.Time, out *Output) {
	if t.state != Ongoing || now.Before(t.started.Add(t.timeout)) {
		return
	}
	t.finish(false, t.epoch+1, out)
	out.Ended.TimedOut = true
	t.endedEpoch = t.epoch
	t.epoch, t.lastEpoch = t.epoch+1, -1 // beyond maxEpoch at the most by one: then only Init helps, with a new id
}

// Abort ends an ongoing transaction from outside, as an administrator asks, and fences its producer as the timeout does.
func (t *Transaction) Abort(now time.Time) Output {
	var out Output
	if t.state == Ongoing {
		t.finish(false, t.epoch+1, &out)
		t.epoch, t.lastEpoch, t.endedEpoch, t.updated = t.epoch+1, -1, t.epoch, now
	}
	out.ProducerID, out.Epoch = t.producerID, t.epoch
	return out
}

// finish ends the transaction, if there is one.
func (t *Transaction) finish(commit bool, markers int16, out *Output) {
	out.Persist = true
	out.Ended = &Ended{Commit: commit, ProducerID: t.producerID, Epoch: markers, Partitions: t.partitions, Groups: t.groups}
	t.state = CompleteAbort
	if commit {
		t.state = CompleteCommit
	}
	t.partitions, t.groups = nil, nil
}

// Described is what administrators see.
type Described struct {
	State      State
	ProducerID int64
	Epoch      int16
	Timeout    time.Duration
	Started    time.Time // of the transaction, or of the last one when it is complete; zero: there has been none since the producer started
	Updated    time.Time
	Partitions []Partition // the transaction's own: not to be changed
	Groups     []string
}

// Describe returns what there is to know.
func (t *Transaction) Describe() Described {
	return Described{
		State: t.state, ProducerID: t.producerID, Epoch: t.epoch, Timeout: t.timeout, Started: t.started, Updated: t.updated,
		Partitions: t.partitions, Groups: t.groups,
	}
}

// Copy returns a state that later steps of t do not change.
func (t *Transaction) Copy() *Transaction {
	c := *t
	c.partitions, c.groups = slices.Clone(t.partitions), slices.Clone(t.groups)
	return &c
}

// Has tells whether a request of the current producer finds the partition in the ongoing transaction: then nothing needs to be added.
func (t *Transaction) Has(id int64, epoch int16, p Partition) bool {
	if t.state != Ongoing || t.current(id, epoch) != OK {
		return false
	}
	_, ok := slices.BinarySearchFunc(t.partitions, p, comparePartitions)
	return ok
}

// NeverUsed tells whether no producer has started under the id yet.
func (t *Transaction) NeverUsed() bool { return t.epoch < 0 }

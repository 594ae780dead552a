// Package logcheck judges what clients of a broker have seen, whatever happened to the broker meanwhile. Clients note what they do in a History:
// what they write, what is acknowledged, how transactions end, what readers and groups see. Judge then names every breach of what a log promises:
//
//   - one value per offset: whoever sees an offset of a partition, at any time, sees the same record there;
//   - nothing acknowledged is lost: it is in the log in the end, where the acknowledgement said;
//   - nothing aborted is read by who reads committed records, and of a transaction whose end nobody knows, all or nothing;
//   - offsets never go back: those that one reader gets, the ends of a partition, the positions of a group;
//   - order: in each partition, the records of a producer stand in the order in which it wrote them, each once, and readers skip none.
//
// The judgement rests on two reads of the whole log after all is over, one at each isolation level, as readers named Final.
package logcheck

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Value names a record: the Seq-th of a producer. No two records of a history are equal.
type Value struct {
	Producer int
	Seq      int64
}

func (v Value) String() string { return fmt.Sprintf("%d:%d", v.Producer, v.Seq) }

// ParseValue is the reverse of String.
func ParseValue(text []byte) (Value, error) {
	producer, seq, ok := strings.Cut(string(text), ":")
	p, err := strconv.Atoi(producer)
	s, err2 := strconv.ParseInt(seq, 10, 64)
	if !ok || err != nil || err2 != nil {
		return Value{}, fmt.Errorf("%.40q is no value of a history", text)
	}
	return Value{p, s}, nil
}

// Partition is one partition of a topic.
type Partition struct {
	Topic string
	Index int32
}

func (p Partition) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.Index) }

// Isolation is what a reader asks for.
type Isolation int

// The isolation levels of Kafka.
const (
	Uncommitted Isolation = iota
	Committed
)

func (i Isolation) String() string { return [...]string{"read_uncommitted", "read_committed"}[i] }

// End is how a transaction ended, as far as its producer knows.
type End int

// A transaction whose producer was told nothing is Unknown.
const (
	Unknown End = iota
	CommittedEnd
	AbortedEnd
)

// Txn is one transaction of a producer. The zero Txn is none at all.
type Txn struct {
	Producer int
	Number   int64 // from 1 on
}

// Final names the reader whose reads are the log as it is in the end.
const Final = "final"

// History collects what clients see. Its methods may be called by all of them at once.
type History struct {
	mu       sync.Mutex
	written  map[Value]*written
	ends     map[Txn]End
	at       map[place]Value // what was first seen at an offset
	readers  map[readerKey]*reader
	bounds   map[boundKey]int64
	groups   map[groupKey]*group
	copies   []copyOf
	breaches []string
}

type written struct {
	partition Partition
	txn       Txn
	acked     bool
	offset    int64
}

type place struct {
	Partition
	offset int64
}

type entry struct {
	offset int64
	value  Value
}

type readerKey struct {
	name string
	Partition
	Isolation
}

type reader struct{ got []entry }

type boundKey struct {
	name string
	Partition
}

type groupKey struct {
	name string
	Partition
}

// group is what a group has done in one partition.
type group struct {
	delivered map[int64]bool // offsets that some member was given
	acked     int64          // the largest position whose commit was acknowledged
	asked     int64          // the largest that was sent
	fetched   int64          // the last that was asked for
}

type copyOf struct{ from, to string }

// New makes an empty history.
func New() *History {
	return &History{
		written: map[Value]*written{}, ends: map[Txn]End{}, at: map[place]Value{}, readers: map[readerKey]*reader{}, bounds: map[boundKey]int64{},
		groups: map[groupKey]*group{},
	}
}

// maxBreaches bounds what one history tells: the first are the ones to look at.
const maxBreaches = 20

func (h *History) breach(format string, args ...any) {
	if len(h.breaches) < maxBreaches {
		h.breaches = append(h.breaches, fmt.Sprintf(format, args...))
	}
}

// Write is called before a record is handed to a client.
func (h *History) Write(v Value, p Partition, txn Txn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.written[v] = &written{partition: p, txn: txn}
}

// Acknowledge is called when the broker has said where a record is.
func (h *History) Acknowledge(v Value, p Partition, offset int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.written[v]
	switch {
	case w == nil || w.partition != p:
		h.breach("one value per offset: %s was acknowledged in %s, where it was not written", v, p)
	case w.acked:
		h.breach("one value per offset: %s was acknowledged at %d and at %d", v, w.offset, offset)
	default:
		w.acked, w.offset = true, offset
		h.see(v, p, offset, "an acknowledgement")
	}
}

// EndTxn is called when a producer knows how its transaction ended.
func (h *History) EndTxn(txn Txn, end End) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends[txn] = end
}

// Read is called for each record that a reader gets, which reads its partitions from their starts on.
func (h *History) Read(name string, level Isolation, p Partition, offset int64, v Value) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.written[v]; w == nil || w.partition.Index != p.Index {
		h.breach("one value per offset: %s has %s at %d, which nobody wrote there", p, v, offset)
	}
	h.see(v, p, offset, name)
	key := readerKey{name, p, level}
	r := h.readers[key]
	if r == nil {
		r = &reader{}
		h.readers[key] = r
	}
	if n := len(r.got); n > 0 && r.got[n-1].offset >= offset {
		h.breach("offsets never go back: %s got %d of %s after %d", name, offset, p, r.got[n-1].offset)
	}
	r.got = append(r.got, entry{offset, v})
}

// Next is where a reader is in a partition: behind the last offset that it got, 0 at its start.
func (h *History) Next(name string, level Isolation, p Partition) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.readers[readerKey{name, p, level}]
	if r == nil {
		return 0
	}
	return r.got[len(r.got)-1].offset + 1
}

func (h *History) see(v Value, p Partition, offset int64, who string) {
	where := place{p, offset}
	if first, ok := h.at[where]; ok && first != v {
		h.breach("one value per offset: %d of %s was %s, and is %s to %s", offset, p, first, v, who)
		return
	}
	h.at[where] = v
}

// Bound is called with an offset of a partition that may only grow, as its high watermark.
func (h *History) Bound(name string, p Partition, offset int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := boundKey{name, p}
	if last := h.bounds[key]; offset < last {
		h.breach("offsets never go back: the %s of %s was %d, and is %d", name, p, last, offset)
	}
	h.bounds[key] = offset
}

// Deliver is called for each record that a member of a group gets; a group may get it more than once.
func (h *History) Deliver(name string, p Partition, offset int64, v Value) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.see(v, p, offset, "the group "+name)
	h.group(name, p).delivered[offset] = true
}

// Commit is called before a group commits a position, and once more when the commit was acknowledged.
func (h *History) Commit(name string, p Partition, position int64, acknowledged bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.group(name, p)
	g.asked = max(g.asked, position)
	if acknowledged {
		g.acked = max(g.acked, position)
	}
}

// Acked is the largest acknowledged position of a group. A position that is asked for afterwards is at least this.
func (h *History) Acked(name string, p Partition) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.group(name, p).acked
}

// Position is called with the position that a group has, as the broker says when it is asked; acked is what Acked gave before it was asked.
func (h *History) Position(name string, p Partition, position, acked int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.group(name, p)
	switch {
	case position < acked:
		h.breach("nothing acknowledged is lost: the group %s had committed %d of %s, and is at %d", name, acked, p, position)
	case position < g.fetched:
		h.breach("offsets never go back: the group %s was at %d of %s, and is at %d", name, g.fetched, p, position)
	case position > g.asked:
		h.breach("one value per offset: the group %s is at %d of %s, and never committed more than %d", name, position, p, g.asked)
	}
	g.fetched = max(g.fetched, position)
}

func (h *History) group(name string, p Partition) *group {
	key := groupKey{name, p}
	g := h.groups[key]
	if g == nil {
		g = &group{delivered: map[int64]bool{}}
		h.groups[key] = g
	}
	return g
}

// Copy says that each committed record of one topic is written into another, into the same partition, in order and exactly once.
func (h *History) Copy(from, to string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.copies = append(h.copies, copyOf{from, to})
}

// Breaches are those that were seen so far.
func (h *History) Breaches() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.breaches)
}

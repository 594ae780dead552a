package flow

import (
	"sync"

	"github.com/leat-io/leat/internal/column"
)

// message is what one worker tells another: a batch of an exchange, or that it is done with a depth of the epoch. Messages
// from one worker to another keep their order, so a done comes after the batches of its depth.
type message struct {
	exchange *exchange
	batch    *column.Batch
	partial  bool // the batch has folded rows
	size     int64
	next     int // the edge of the exchange that the batch is at

	// done is the depth that the sender is done with, plus one; with the first one come its partitions' maximum event times.
	done  int
	times []partitionTime
}

// partitionTime is the greatest event time that a worker has seen in a partition.
type partitionTime struct {
	reader, partition int
	max               int64
}

// mailbox takes messages for a worker. Putting never blocks; what is in it is bounded by admission at the senders.
type mailbox struct {
	mu     sync.Mutex
	in     []message
	notify chan struct{} // capacity 1
}

func (m *mailbox) put(msg message) {
	m.mu.Lock()
	m.in = append(m.in, msg)
	m.mu.Unlock()
	m.wake()
}

func (m *mailbox) wake() {
	select {
	case m.notify <- struct{}{}:
	default:
	}
}

// take swaps the messages for an empty slice.
func (m *mailbox) take(empty []message) []message {
	m.mu.Lock()
	got := m.in
	m.in = empty[:0]
	m.mu.Unlock()
	return got
}

// fifo is a queue of messages in one slice.
type fifo struct {
	items []message
	head  int
}

func (q *fifo) push(m message) { q.items = append(q.items, m) }
func (q *fifo) empty() bool    { return q.head == len(q.items) }
func (q *fifo) front() *message {
	return &q.items[q.head]
}

func (q *fifo) pop() {
	q.items[q.head] = message{}
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head >= 256 && q.head*2 >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}

package flow

import (
	"container/heap"
	"fmt"
	"runtime/debug"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/flow/operator/aggregate"
	"github.com/leat-io/leat/internal/pgerr"
)

// worker runs the whole graph over its share of the keys. Step does one piece of work and never waits.
type worker struct {
	isl  *Island
	id   int
	mail mailbox
	buf  []message

	visit   uint64 // number of this Run, tells which instances were reached in it
	visited []*instance

	queue   []fifo          // by depth: batches to be pushed
	sending [][]*exchange   // by depth: exchanges with unsent rows
	touched []instanceHeap  // by depth: instances that wait for their end of epoch
	dones   []int           // by depth: workers that are done with it
	folded  int64           // bytes of rows that are folded for all exchanges
	depth   int             // the lowest depth that this worker is not done with
	times   []partitionTime // of all workers, complete when all are done with depth 0
	timed   bool            // watermarks of this epoch are known
	timers  map[*timeGroup]*timerHeap

	epoch *Epoch
	ops   operator.Epoch
	tasks []readTask
	fills []*backfillTask
	ended []partitionTime // partitions that were read to the epoch's end
	reads map[int]*readerInstance
	dead  []DeadLetter
	marks map[int]int64 // readers' watermarks of the epoch
	parts []PartitionState
	ctx   expr.Context
}

// begin makes the worker ready for an epoch. The island calls it on all workers before any steps.
func (w *worker) begin(e *Epoch, depths int) {
	w.visit++
	w.visited = w.visited[:0]
	for len(w.queue) < depths {
		w.queue = append(w.queue, fifo{})
		w.sending = append(w.sending, nil)
		w.touched = append(w.touched, nil)
		w.dones = append(w.dones, 0)
	}
	clear(w.dones)
	// The others' done messages of the last epoch's deepest depth may still lie here: nobody waited for them, and in a deeper graph they
	// would count for this epoch.
	w.buf = w.mail.take(w.buf)
	clear(w.buf)
	w.depth, w.times, w.timed = 0, w.times[:0], false
	w.epoch = e
	w.dead, w.ended = nil, w.ended[:0]
	w.ctx.Now = e.Now
}

// finished says that the worker has done all of the epoch.
func (w *worker) finished() bool { return w.depth >= w.isl.depths }

// step does one piece of work, the deepest first, and says whether there was any.
func (w *worker) step() (progress bool) {
	w.receive()
	for d := w.isl.depths - 1; d >= 0; d-- {
		if !w.queue[d].empty() {
			if w.pushFront(d) {
				return true
			}
			continue // stopped for want of room: deeper work makes it
		}
		if d == w.depth && w.ready(d) && w.advance(d) {
			return true
		}
	}
	return false
}

func (w *worker) receive() {
	in := w.mail.take(w.buf)
	for _, m := range in {
		if m.done > 0 {
			w.dones[m.done-1]++
			w.times = append(w.times, m.times...)
			continue
		}
		w.queue[m.exchange.n.depth+1].push(m)
	}
	clear(in)
	w.buf = in
}

// ready says that all input of depth d of the epoch has come.
func (w *worker) ready(d int) bool { return d == 0 || w.dones[d-1] == len(w.isl.workers) }

// pushFront pushes the first batch in the queue of depth d; false: it stopped without doing anything for want of room.
func (w *worker) pushFront(d int) bool {
	if w.full(d) && w.queue[d].front().exchange.amplifies() {
		return false
	}
	m := w.queue[d].front()
	x := m.exchange
	w.reach(w.at(x.n))
	for m.next < len(x.n.outs) {
		e := x.n.outs[m.next]
		if m.partial {
			e.port = aggregate.Partials
		}
		if !w.deliver(e, m.batch, false) {
			return true
		}
		m.next++
	}
	size, b, pool := m.size, m.batch, &x.pool
	if m.partial {
		pool = &x.partials
	}
	w.queue[d].pop()
	pool.Put(b)
	w.isl.release(d, size)
	return true
}

// amplifies says that an operator right behind the exchange may emit more than it takes in.
func (x *exchange) amplifies() bool {
	for _, e := range x.n.outs {
		if resumable(e.to) {
			return true
		}
	}
	return false
}

// full says that operators of depth d should stop emitting.
func (w *worker) full(d int) bool {
	return d+1 < w.isl.depths && len(w.isl.workers) > 1 && w.isl.inflight[d+1].Load() >= w.isl.share
}

// advance does the next piece of depth d's own work: sources, then ends of epochs, then the done message.
func (w *worker) advance(d int) bool {
	if d == 0 {
		if w.full(0) && (len(w.tasks) > 0 || len(w.fills) > 0) {
			return false
		}
		if w.readSome() || w.fillSome() {
			return true
		}
	}
	if !w.timed && (d > 0 || len(w.isl.workers) == 1) {
		w.wakeTimers()
	}
	if len(w.touched[d]) > 0 {
		if w.full(d) {
			return false
		}
		w.endOne(d)
		return true
	}
	w.flushExchanges(d)
	w.tellDone(d)
	w.depth++
	return true
}

// tellDone tells all workers, itself included, that this one is done with a depth.
func (w *worker) tellDone(d int) {
	m := message{done: d + 1}
	if d == 0 {
		m.times = w.ended
		w.times = append(w.times, m.times...)
	}
	w.dones[d]++
	if d+1 >= w.isl.depths {
		return // nobody waits for the deepest
	}
	for _, p := range w.isl.workers {
		if p != w {
			p.mail.put(m)
		}
	}
}

// wakeTimers finds the watermarks of the epoch, which are the same on all workers, and touches what is due.
func (w *worker) wakeTimers() {
	w.timed = true
	if len(w.isl.workers) == 1 {
		w.times = append(w.times[:0], w.ended...)
	}
	w.isl.fixWatermarks(w)
	for g, h := range w.timers {
		wm := w.isl.groupWatermark(w, g)
		for len(*h) > 0 && (*h)[0].at <= wm {
			t := heap.Pop(h).(timer)
			if t.at == t.inst.timer {
				t.inst.timer = EndOfTime
				w.touch(t.inst)
			}
		}
	}
}

// endOne calls EndEpoch of the first touched instance of a depth.
func (w *worker) endOne(d int) {
	in := w.touched[d][0]
	n := in.n
	done := true
	if !n.job.failed() {
		w.guard(n, func() error {
			w.ops = operator.Epoch{
				Number: w.epoch.Number, Now: w.epoch.Now, First: n.job.first,
				Watermark: w.isl.nodeWatermark(w, n),
			}
			err := in.open()
			if err != nil {
				return err
			}
			done, err = in.op.EndEpoch(&w.ops, (*output)(in))
			return err
		})
	}
	if !done && !n.job.failed() {
		return
	}
	// What this EndEpoch touched at the same depth is later in the order: the instance is still the first.
	heap.Pop(&w.touched[d])
	in.touched = false
	if t, ok := in.op.(operator.Timed); ok && !n.job.failed() {
		w.setTimer(in, t.NextTimer())
	}
}

func (w *worker) setTimer(in *instance, at int64) {
	if at == in.timer {
		return
	}
	in.timer = at
	if at == EndOfTime {
		return
	}
	h := w.timers[in.n.group]
	if h == nil {
		h = &timerHeap{}
		w.timers[in.n.group] = h
	}
	heap.Push(h, timer{at, in})
}

// at is a node on this worker.
func (w *worker) at(n *node) *instance {
	in := n.inst[w.id]
	if in == nil {
		in = &instance{n: n, w: w, timer: EndOfTime}
		n.inst[w.id] = in
	}
	return in
}

// reach notes that the epoch came to an instance.
func (w *worker) reach(in *instance) *instance {
	if in.epoch != w.visit {
		in.epoch = w.visit
		w.visited = append(w.visited, in)
		if j := in.n.job; j != nil {
			j.touch()
		}
	}
	return in
}

// touch makes an instance be visited at the end of the epoch.
func (w *worker) touch(in *instance) {
	w.reach(in)
	if !in.touched && !in.n.stateless {
		in.touched = true
		heap.Push(&w.touched[in.n.depth], in)
	}
}

// deliver pushes a batch along an edge. Where the edge enters another job it is a fire wall: what goes wrong behind it is that
// job's failure and the batch counts as taken. direct: the batch comes from an operator, not from a queue, so an operator
// that stops for want of room is called again at once.
func (w *worker) deliver(e edge, b *column.Batch, direct bool) (done bool) {
	to := e.to
	if to.job.failed() {
		return true
	}
	done = true
	w.guard(to, func() error {
		var err error
		done, err = w.pushTo(e, b, direct)
		return err
	})
	return done || to.job.failed()
}

// pushTo hands a batch to a node.
func (w *worker) pushTo(e edge, b *column.Batch, direct bool) (bool, error) {
	to := e.to
	in := w.at(to)
	if to.exchange != nil {
		w.reach(in).counts.In += int64(b.Len)
		if len(w.isl.workers) == 1 {
			return true, (*output)(in).Push(b)
		}
		return true, w.route(to.exchange, b)
	}
	w.touch(in)
	if in.op == nil {
		if err := in.open(); err != nil {
			return true, &nodeError{to, err}
		}
	}
	for {
		done, err := in.op.Push(e.port, b, (*output)(in))
		if err != nil {
			return true, &nodeError{to, err}
		}
		if done || !direct {
			return done, nil
		}
	}
}

// nodeError carries which node failed through the operators before it.
type nodeError struct {
	n   *node
	err error
}

func (e *nodeError) Error() string { return e.err.Error() }
func (e *nodeError) Unwrap() error { return e.err }

// guard runs fn and makes its error or panic the failure of n's job.
func (w *worker) guard(n *node, fn func() error) {
	defer func() {
		r := recover()
		if refused, ok := r.(*pgerr.Error); ok { // memory, where there is no other way out
			n.job.fail(n, refused)
		} else if r != nil {
			n.job.fail(n, fmt.Errorf("panic: %v\n%s", r, debug.Stack()))
		}
	}()
	if err := fn(); err != nil {
		at := n
		if ne, ok := err.(*nodeError); ok {
			at, err = ne.n, ne.err
		}
		n.job.fail(at, err)
	}
}

// output is an instance as the Output of its operator.
type output instance

// Push hands a batch to the nodes behind.
func (o *output) Push(b *column.Batch) error {
	in := (*instance)(o)
	if once := in.w.isl.once; once != nil {
		if err := once.check(); err != nil { // a join may make many batches of one, or none for long: here is where it passes by
			return err
		}
	}
	if b.Len == 0 {
		return nil
	}
	in.counts.Out += int64(b.Len)
	for _, e := range in.n.outs {
		if e.to.job != in.n.job {
			in.w.deliver(e, b, true)
			continue
		}
		if _, err := in.w.pushTo(e, b, true); err != nil {
			return err
		}
	}
	return nil
}

// Full says that what is behind the next exchange has used its share of the budget.
func (o *output) Full() bool { return o.w.full(o.n.depth) }

// instanceHeap is instances in the order of the graph.
type instanceHeap []*instance

func (h instanceHeap) Len() int           { return len(h) }
func (h instanceHeap) Less(i, j int) bool { return h[i].n.seq < h[j].n.seq }
func (h instanceHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is heap.Interface's.
func (h *instanceHeap) Push(x any) { *h = append(*h, x.(*instance)) }

// Pop is heap.Interface's.
func (h *instanceHeap) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	(*h)[n] = nil
	*h = (*h)[:n]
	return x
}

// timer is when an instance wants its end of epoch though nothing touches it.
type timer struct {
	at   int64
	inst *instance
}

type timerHeap []timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is heap.Interface's.
func (h *timerHeap) Push(x any) { *h = append(*h, x.(timer)) }

// Pop is heap.Interface's.
func (h *timerHeap) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	*h = (*h)[:n]
	return x
}

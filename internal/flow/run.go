package flow

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/spill"
	"github.com/leat-io/leat/internal/state"
)

// Run takes an epoch to completion on all workers.
func (i *Island) Run(e *Epoch) (*Result, error) {
	begun := time.Now()
	if e.Changes != nil && len(e.Changes) != len(i.workers) {
		return nil, fmt.Errorf("flow: changes for %d workers, there are %d", len(e.Changes), len(i.workers))
	}
	i.untouch()
	for _, w := range i.workers {
		w.begin(e, i.depths)
	}
	if err := i.assign(e); err != nil {
		return nil, err
	}
	if err := i.chooseBackfill(e); err != nil {
		return nil, err
	}
	for _, j := range i.starting {
		for _, n := range j.nodes {
			if n.initial() {
				for _, w := range i.workers {
					w.touch(w.at(n))
				}
			}
		}
	}
	i.runWorkers()
	i.finish(e)
	r, err := i.collect(e)
	if err != nil {
		return nil, err
	}
	r.CPU = time.Since(begun)
	return r, nil
}

// untouch begins the list of the jobs that an epoch comes to. One that has failed and was not detached stays in it.
func (i *Island) untouch() {
	old := i.touched
	i.touched = i.touched[:0]
	for _, j := range old {
		if j.failed() {
			i.touched = append(i.touched, j)
		} else {
			j.touched.Store(false)
		}
	}
	clear(old[len(i.touched):])
}

// assign gives the epoch's reads to the workers: a partition is one worker's, a striped one is cut into ranges.
func (i *Island) assign(e *Epoch) error {
	for _, w := range i.workers {
		w.tasks = w.tasks[:0]
	}
	for _, x := range e.Idle {
		r := i.reader(x.Reader)
		if r == nil || x.Partition < 0 {
			return fmt.Errorf("flow: epoch %d: no reader %d", e.Number, x.Reader)
		}
		r.state.grow(x.Partition + 1)
		r.state.Partitions[x.Partition].Idle = x.Idle
	}
	for _, rd := range e.Reads {
		r := i.reader(rd.Reader)
		if r == nil || rd.Partition < 0 {
			return fmt.Errorf("flow: epoch %d reads from reader %d, which is not there", e.Number, rd.Reader)
		}
		r.state.grow(rd.Partition + 1)
		p := &r.state.Partitions[rd.Partition]
		if rd.From != p.Offset || rd.To < rd.From {
			return fmt.Errorf("flow: epoch %d reads source %s, partition %d from %d to %d, the reader is at %d",
				e.Number, r.spec.Name, rd.Partition, rd.From, rd.To, p.Offset)
		}
		if rd.From == rd.To {
			continue
		}
		p.Idle = false
		if wm := r.state.Watermark; r.spec.EventTime >= 0 && wm != NoTime && wm != EndOfTime && minus(p.MaxTime, r.spec.Delay) < wm {
			// It was idle, or is new: time went on without it, and windows are closed. Its rows are late by that.
			p.MaxTime = wm + r.spec.Delay
		}
		if err := i.assignRead(r, rd, p.MaxTime); err != nil {
			return err
		}
	}
	return nil
}

func (i *Island) assignRead(r *reader, rd Read, top int64) error {
	give := func(w *worker, from, to, top int64) error {
		in, err := w.openReader(r)
		if err != nil {
			for _, j := range r.jobs {
				j.fail(nil, err)
			}
			return nil
		}
		w.tasks = append(w.tasks, readTask{r: r, in: in, p: rd.Partition, next: from, to: to, max: top})
		return nil
	}
	striped, ok := r.spec.Source.(connector.Striped)
	workers := int64(len(i.workers))
	if !ok || workers == 1 {
		return give(i.workers[rd.Partition%len(i.workers)], rd.From, rd.To, top)
	}
	span := (rd.To - rd.From + workers - 1) / workers
	for k, w := range i.workers {
		from := rd.From + int64(k)*span
		to := min(from+span, rd.To)
		if from >= to {
			break
		}
		at := top
		if from > rd.From {
			if m, ok := striped.MaxTimeBefore(rd.Partition, from); ok {
				at = max(at, m)
			}
		}
		if err := give(w, from, to, at); err != nil {
			return err
		}
	}
	return nil
}

func (i *Island) reader(id int) *reader {
	for _, r := range i.readers {
		if r.id == id {
			return r
		}
	}
	return nil
}

// runWorkers steps all workers until they have done the epoch: each on a goroutine of its own, or all on this one in an order
// that the seed gives.
func (i *Island) runWorkers() {
	if i.random != nil {
		left := slices.Clone(i.workers)
		idle := 0
		for len(left) > 0 {
			k := i.random.IntN(len(left))
			w := left[k]
			if w.step() {
				idle = 0
			} else if idle++; idle > 1000*len(i.workers) {
				panic("flow: no worker can go on: the engine is stuck")
			}
			if w.finished() {
				left = slices.Delete(left, k, k+1)
			}
		}
		return
	}
	if len(i.workers) == 1 {
		var c courtesy
		for w := i.workers[0]; !w.finished(); {
			w.step()
			c.offer()
		}
		return
	}
	var wg sync.WaitGroup
	for _, w := range i.workers[1:] {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w.drive()
		}()
	}
	i.workers[0].drive()
	wg.Wait()
}

// drive steps a worker to the end of the epoch, sleeping while it can only wait for the others.
func (w *worker) drive() {
	var c courtesy
	for !w.finished() {
		if w.step() {
			c.offer()
			continue
		}
		<-w.mail.notify
	}
}

// finish moves the readers to where the epoch came.
func (i *Island) finish(e *Epoch) {
	w := i.workers[0]
	for _, rd := range e.Reads {
		r := i.reader(rd.Reader)
		r.state.Partitions[rd.Partition].Offset = rd.To
	}
	for _, t := range w.times {
		p := &i.reader(t.reader).state.Partitions[t.partition]
		p.MaxTime = max(p.MaxTime, t.max)
	}
	for _, j := range i.filling {
		for _, f := range j.fills {
			f.done = f.done || f.last
		}
	}
	for _, r := range i.readers {
		r.state.Watermark = max(r.state.Watermark, w.marks[r.id])
		r.setBounds()
	}
}

// collect makes the result of what the workers did. What failed jobs did is left out.
func (i *Island) collect(e *Epoch) (*Result, error) {
	r := &Result{Epoch: e.Number, Changes: e.Changes}
	if r.Changes == nil {
		for range i.workers {
			r.Changes = append(r.Changes, &state.Changes{})
		}
	}
	for _, j := range i.touched {
		if f := j.failure.Load(); f != nil && errors.Is(f.err, spill.ErrFiles) {
			// Not the job's: run again, when the files can be used, the epoch will do. Without it the job would have missed changes.
			return nil, fmt.Errorf("flow: epoch %d: %w", e.Number, f.err)
		}
	}
	i.spreadFailures()
	reported := i.reported(e)
	counts := map[uint64]*operator.Counts{}
	for _, w := range i.workers {
		for _, in := range w.visited {
			if in.n.job != nil {
				c := counts[in.n.job.spec.ID]
				if c == nil {
					c = &operator.Counts{}
					counts[in.n.job.spec.ID] = c
				}
				c.Late += in.counts.Late
				c.Failed += in.counts.Failed
				c.Unmatched += in.counts.Unmatched
				c.PanesMerged += in.counts.PanesMerged
				c.RowsProcessed += in.counts.RowsProcessed
				if in.n.plan.Scan != nil {
					c.In += in.counts.Out
				}
				if in.n == in.n.job.nodes[len(in.n.job.nodes)-1] {
					c.Out += in.counts.Out
				}
			}
			in.counts = operator.Counts{}
		}
		r.DeadLetters = append(r.DeadLetters, w.dead...)
	}
	slices.SortStableFunc(r.DeadLetters, func(a, b DeadLetter) int {
		switch {
		case a.Relation != b.Relation:
			return compare(a.Relation, b.Relation)
		case a.Partition != b.Partition:
			return compare(a.Partition, b.Partition)
		}
		return compare(a.Record.Offset, b.Record.Offset)
	})
	for _, j := range reported {
		jr := JobResult{Job: j.spec.ID, Watermark: i.groupWatermark(i.workers[0], j.nodes[len(j.nodes)-1].group)}
		if f := j.failure.Load(); f != nil {
			jr.Err = f.err
			i.dropTables(j)
		} else {
			for _, n := range j.sinks {
				if err := i.collectSink(r, &jr, n); err != nil {
					j.fail(n, err)
					jr.Err = j.failure.Load().err
					i.dropTables(j)
					break
				}
			}
			i.collectLate(r, j)
			if c := counts[j.spec.ID]; c != nil {
				jr.Counts.Add(c)
			}
		}
		j.first = false
		for _, rd := range i.readers {
			if j.readers[rd.spec.Relation] == rd {
				jr.Positions = append(jr.Positions, rd.state.clone())
			}
		}
		jr.Backfill, jr.Live = j.backfillStates()
		r.Jobs = append(r.Jobs, jr)
	}
	clear(i.starting)
	i.starting = i.starting[:0]
	i.filling = slices.DeleteFunc(i.filling, func(j *job) bool {
		_, live := j.backfillStates()
		return live
	})
	if err := state.EndEpochs(i.tables, r.Changes, i.random != nil); err != nil {
		return nil, fmt.Errorf("flow: epoch %d: %w", e.Number, err)
	}
	if i.own {
		for _, t := range i.tables {
			t.Committed(0) // nobody else tells them
		}
	}
	i.mergeReaders()
	for _, rd := range i.readers {
		p := rd.public()
		for _, w := range i.workers {
			if in := w.reads[rd.id]; in != nil {
				p.Counts.Add(&in.counts)
				in.counts = operator.Counts{}
			}
		}
		r.Readers = append(r.Readers, p)
	}
	return r, nil
}

// spreadFailures fails the jobs that read what a failed one makes: they have missed some of it.
func (i *Island) spreadFailures() {
	if !slices.ContainsFunc(i.touched, (*job).failed) {
		return
	}
	for _, j := range i.jobs {
		for _, n := range j.nodes {
			for _, in := range n.inputs {
				if in.job != nil && in.job != j && in.job.failed() && !j.failed() {
					j.fail(nil, fmt.Errorf("it reads %s, which failed", in.job.spec.Name))
				}
			}
		}
	}
}

// reported are the jobs that the epoch has a result for, in order of attachment: those that it came to, that began, that are in backfill, or
// whose readers it moved. It looks at no other job.
func (i *Island) reported(e *Epoch) []*job {
	for _, j := range i.starting {
		j.touch()
	}
	for _, j := range i.filling {
		j.touch()
	}
	moved := func(id int) {
		if r := i.reader(id); r != nil {
			for _, j := range r.jobs {
				j.touch()
			}
		}
	}
	for _, x := range e.Reads {
		moved(x.Reader)
	}
	for _, x := range e.Idle {
		moved(x.Reader)
	}
	for _, x := range e.Advance {
		moved(x.Reader)
	}
	slices.SortFunc(i.touched, func(a, b *job) int { return a.nodes[0].seq - b.nodes[0].seq })
	return i.touched
}

func compare[T uint64 | int32 | int64](a, b T) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

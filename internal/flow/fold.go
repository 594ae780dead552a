package flow

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/flow/operator/aggregate"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Before the exchange of an aggregate each worker folds its rows of the epoch by group, and sends a partial row for each group instead: a key
// that most rows have is then not the work of one worker. It is chosen when the graph is built; plans say nothing of it. Where groups have
// hardly more than a row each, which is measured, rows go as they are.

// foldBytes is how much a worker brings together for one exchange: about what fits the processor's cache. Beyond it the groups are sent, and it
// begins anew.
const foldBytes = 512 << 10

// folder is what one worker has of an exchange that folds.
type folder struct {
	fold    *aggregate.Fold
	bytes   int64           // as accounted for in the worker
	partial []*column.Batch // by destination
	gain    gain
}

// gain decides whether folding pays. It is pure.
type gain struct {
	rows, groups int64 // that came in and went out since it was judged last
	pass         int64 // rows that are to go as they are before it is tried again
	retry        int64 // how many the next time
}

// Bounds of gain. A group that is folded and merged costs about as much as a row that goes as it is, a row that is folded about half of that.
const (
	judgeRows = 4 << 10
	leastGain = 1.5 // rows a group
	firstPass = 64 << 10
	mostPass  = 4 << 20
)

// passes says whether the next n rows go as they are.
func (g *gain) passes(n int) bool {
	if g.pass <= 0 {
		return false
	}
	g.pass -= int64(n)
	return true
}

// sent notes that so many groups were sent for the rows.
func (g *gain) sent(groups int) {
	g.groups += int64(groups)
	if g.rows < judgeRows {
		return
	}
	if float64(g.rows) < leastGain*float64(g.groups) {
		g.retry = min(max(2*g.retry, firstPass), mostPass)
		g.pass = g.retry
	} else {
		g.retry = 0
	}
	g.rows, g.groups = 0, 0
}

// foldBefore makes the exchanges right before a job's aggregates fold, where an aggregate is alone behind its exchange and its state can be merged.
func (i *Island) foldBefore(j *job) error {
	for _, n := range j.nodes {
		if n.plan.Kind != plan.KindAggregate || n.inputs[0].exchange == nil || len(n.inputs[0].outs) != 1 {
			continue
		}
		x := n.inputs[0].exchange
		f, err := x.newFold(n)
		if err != nil {
			return err
		}
		if f != nil {
			x.into = n
		}
	}
	return nil
}

func (x *exchange) newFold(n *node) (*aggregate.Fold, error) {
	return aggregate.NewFold(n.plan.Aggregate, x.types, n.inputs[0].plan.AppendOnly, x.keys)
}

// fold brings the rows of b into what the worker folds for x, and says whether it did: otherwise they go as they are.
func (w *worker) fold(x *exchange, s *exchangeSender, b *column.Batch) (bool, error) {
	f := s.folder
	if f == nil {
		fold, err := x.newFold(x.into)
		if err != nil {
			return false, err
		}
		f = &folder{fold: fold, partial: make([]*column.Batch, len(x.send))}
		s.folder = f
	}
	if f.gain.passes(b.Len) {
		return false, nil
	}
	if err := f.fold.Add(b); err != nil {
		return false, &nodeError{x.into, err}
	}
	w.at(x.n).counts.RowsProcessed += int64(b.Len)
	f.gain.rows += int64(b.Len)
	f.account(w)
	// Many exchanges at once share what a worker may have.
	if share := w.isl.o.InFlightBytes / int64(8*len(x.send)); f.bytes >= foldBytes || w.folded >= share {
		w.sendFolded(x, f)
	}
	return true, nil
}

func (f *folder) account(w *worker) {
	n := f.fold.Bytes()
	w.folded += n - f.bytes
	f.bytes = n
}

// sendFolded sends the groups that are folded to the workers that own them.
func (w *worker) sendFolded(x *exchange, f *folder) {
	for i := range f.fold.Len() {
		d := 0
		if len(x.keys) > 0 {
			d = workerOf(groupOf(f.fold.Hash(i)), len(x.send))
		}
		p := f.partial[d]
		if p == nil {
			p = x.partials.Get(aggregate.PartialTypes)
			f.partial[d] = p
		}
		f.fold.AppendTo(p, i)
		if p.Len >= column.MaxRows {
			f.partial[d] = nil
			w.send(message{exchange: x, batch: p, partial: true}, d)
		}
	}
	f.gain.sent(f.fold.Len())
	f.fold.Reset()
	f.account(w)
}

// flushFolded sends all that is folded.
func (w *worker) flushFolded(x *exchange, f *folder) {
	w.sendFolded(x, f)
	for d, p := range f.partial {
		if p != nil {
			f.partial[d] = nil
			w.send(message{exchange: x, batch: p, partial: true}, d)
		}
	}
}

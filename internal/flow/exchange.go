package flow

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/rowenc"
)

// keyGroups is how many groups keys are hashed into; groups, not keys, are assigned to workers.
const keyGroups = 256

// groupOf is the key group of a row's hash.
func groupOf(hash uint64) int { return int(hash >> 56) }

// workerOf is the worker that owns a key group.
func workerOf(group, workers int) int { return group * workers / keyGroups }

// exchange sends rows to the workers that own their keys.
type exchange struct {
	n        *node
	keys     []int
	types    []column.Type
	pool     column.Pool
	partials column.Pool
	send     []exchangeSender // by worker
	into     *node            // the aggregate whose rows are folded before they are sent, nil if they are not
}

// exchangeSender is what one worker has not sent yet.
type exchangeSender struct {
	pending []*column.Batch // by destination
	hashes  []uint64
	rows    [][]int32 // by destination, of the batch at hand
	listed  bool      // in the worker's list of exchanges to flush
	folder  *folder   // nil until the first rows that may be folded
}

func newExchange(n *node, keys []int, types []column.Type, workers int) *exchange {
	x := &exchange{n: n, keys: keys, types: types, send: make([]exchangeSender, workers)}
	return x
}

// route folds b, or splits it by owner and sends batches that are full.
func (w *worker) route(x *exchange, b *column.Batch) error {
	s := &x.send[w.id]
	workers := len(x.send)
	if s.pending == nil {
		s.pending = make([]*column.Batch, workers)
		s.rows = make([][]int32, workers)
	}
	if !s.listed {
		s.listed = true
		w.sending[x.n.depth] = append(w.sending[x.n.depth], x)
	}
	if x.into != nil {
		if folded, err := w.fold(x, s, b); folded || err != nil {
			return err
		}
	}
	if len(x.keys) == 0 {
		w.stage(x, s, 0, b, nil)
		return nil
	}
	s.hashes = rowenc.HashRows(b, x.keys, s.hashes)
	for d := range s.rows {
		s.rows[d] = s.rows[d][:0]
	}
	for i, h := range s.hashes {
		d := workerOf(groupOf(h), workers)
		s.rows[d] = append(s.rows[d], int32(i))
	}
	for d, rows := range s.rows {
		if len(rows) > 0 {
			w.stage(x, s, d, b, rows)
		}
	}
	return nil
}

// stage adds rows of b (all if rows is nil) to what goes to worker d.
func (w *worker) stage(x *exchange, s *exchangeSender, d int, b *column.Batch, rows []int32) {
	p := s.pending[d]
	if p == nil {
		p = x.pool.Get(x.types)
		s.pending[d] = p
	}
	if rows == nil {
		p.Append(b)
	} else {
		p.AppendRows(b, rows)
	}
	if p.Full() {
		s.pending[d] = nil
		w.send(message{exchange: x, batch: p}, d)
	}
}

// flushExchanges sends what the exchanges of a depth still hold.
func (w *worker) flushExchanges(depth int) {
	for _, x := range w.sending[depth] {
		s := &x.send[w.id]
		s.listed = false
		if s.folder != nil {
			w.flushFolded(x, s.folder)
		}
		for d, p := range s.pending {
			if p != nil {
				s.pending[d] = nil
				w.send(message{exchange: x, batch: p}, d)
			}
		}
	}
	w.sending[depth] = w.sending[depth][:0]
}

// send gives worker d a batch, which is now its own.
func (w *worker) send(m message, d int) {
	m.size = int64(m.batch.MemSize()) + 256
	depth := m.exchange.n.depth + 1
	w.isl.inflight[depth].Add(m.size)
	if d == w.id {
		w.queue[depth].push(m)
		return
	}
	w.isl.workers[d].mail.put(m)
}

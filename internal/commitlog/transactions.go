package commitlog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leat-io/leat/internal/record"
)

// OpenTransaction is a transaction of a producer that has records in the partition and no marker yet.
type OpenTransaction struct {
	ProducerID int64
	First      int64 // offset of its first record here
}

// openTransactions are those of a partition in the order of their first offsets: a new one begins behind all others, so the first in the list is
// what holds the last stable offset back.
type openTransactions []OpenTransaction

func (o openTransactions) first(id int64) int64 {
	for i := range o {
		if o[i].ProducerID == id {
			return o[i].First
		}
	}
	return -1
}

func (o openTransactions) begin(id, first int64) openTransactions {
	if o.first(id) >= 0 {
		return o
	}
	i := len(o)
	for i > 0 && o[i-1].First > first { // from a snapshot, which has no order
		i--
	}
	return slices.Insert(o, i, OpenTransaction{ProducerID: id, First: first})
}

// end takes the producer's transaction out; first is -1 if it had none.
func (o openTransactions) end(id int64) (rest openTransactions, first int64) {
	for i := range o {
		if o[i].ProducerID == id {
			first = o[i].First
			return slices.Delete(o, i, i+1), first
		}
	}
	return o, -1
}

// OpenTransactions are the transactions that are open at the end of the log, by their first offsets.
func (l *Log) OpenTransactions() ([]OpenTransaction, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return nil, err
	}
	if err := l.loadProducers(); err != nil {
		return nil, err
	}
	return slices.Clone(l.undecided), nil
}

// follow keeps the open transactions in step with a batch of a producer that is in the file now; mu is held.
func (l *Log) follow(h *record.Header) (first int64) {
	switch {
	case h.Control():
		l.undecided, first = l.undecided.end(h.ProducerID)
		return first
	case h.Transactional():
		l.undecided = l.undecided.begin(h.ProducerID, h.BaseOffset)
	}
	return -1
}

// noteAppended keeps what is known of transactions in step with an append to segment s; mu is held.
func (l *Log) noteAppended(s *segment, h *record.Header, batch []byte) error {
	if h.ProducerID >= 0 {
		l.producers.Update(h, l.m.o.Clock.Now().UnixMilli())
		if first := l.follow(h); h.Control() {
			if err := l.noteMarker(s, h, batch, first); err != nil {
				return err
			}
		}
	}
	if s.aborted.loaded {
		s.aborted.covered = h.NextOffset()
	}
	return nil
}

// noteMarker puts an aborted transaction into the segment's index.
func (l *Log) noteMarker(s *segment, h *record.Header, batch []byte, first int64) error {
	m, ok, err := record.ParseEndMarker(batch)
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.name, err)
	}
	if !ok || m.Commit {
		return nil
	}
	if first < 0 {
		first = m.First
	}
	if first < 0 || first >= h.BaseOffset { // nothing of it is here
		return nil
	}
	if !s.aborted.loaded {
		return nil // found by its marker when somebody asks
	}
	s.aborted.tail = append(s.aborted.tail, AbortedTransaction{ProducerID: h.ProducerID, First: first, Last: h.LastOffset(), Stable: l.stableAfter(h)})
	if len(s.aborted.tail) >= keptAborted {
		return l.saveAborted(s)
	}
	return nil
}

// stableAfter is where the first transaction begins that is still open after the batch.
func (l *Log) stableAfter(h *record.Header) int64 {
	if len(l.undecided) > 0 {
		return l.undecided[0].First
	}
	return h.NextOffset()
}

// Aborted appends to dst the aborted transactions that have records in [from, to), by their first offsets. It is asked for readers of committed
// records only, with to at most the last stable offset. Files are read without the lock.
func (l *Log) Aborted(from, to int64, dst []AbortedTransaction) ([]AbortedTransaction, error) {
	begin := len(dst)
	for at, done := from, false; !done; {
		x, next, err := l.abortedOf(at)
		if err != nil {
			return dst[:begin], l.readError(err)
		}
		if next < 0 {
			break
		}
		dst, done, err = x.find(from, to, dst)
		x.release()
		if err != nil {
			return dst[:begin], err
		}
		at = next
	}
	slices.SortFunc(dst[begin:], func(a, b AbortedTransaction) int { return cmp.Compare(a.First, b.First) })
	return dst, nil
}

// abortedOf returns what is known of the aborted transactions of the segment that has the offset, and where the next one begins; next is -1 at the
// end of the log.
func (l *Log) abortedOf(offset int64) (x abortedView, next int64, err error) {
	for {
		l.mu.Lock()
		if err := l.ready(); err != nil {
			l.mu.Unlock()
			return x, -1, err
		}
		if offset >= l.end || len(l.segments) == 0 {
			l.mu.Unlock()
			return x, -1, nil
		}
		i := l.segmentAt(offset)
		if s := l.segments[i]; s.aborted.loaded || s.size == 0 {
			x, next, err = abortedView{abortedIndex: s.aborted}, l.segmentEnd(i), nil
			if x.saved > 0 {
				x.f, err = l.m.files.acquire(s.abortedPath())
			}
			l.mu.Unlock()
			return x, next, err
		}
		v, err := l.viewUnlocking(i)
		if err != nil {
			return x, -1, err
		}
		if v == nil {
			continue
		}
		slot := l.coldSlot(v, v.end-1)
		err = v.loadAborted()
		slot()
		l.mu.Lock()
		current := l.learn(v)
		if s := v.of; err == nil && current && !s.aborted.loaded {
			s.aborted = v.aborted
			s.aborted.loaded, s.aborted.tail = false, slices.Clip(s.aborted.tail)
			err = l.loadAborted(s) // what has come meanwhile
		}
		l.mu.Unlock()
		v.release()
		if err != nil && current {
			return x, -1, err
		}
	}
}

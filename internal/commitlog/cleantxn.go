package commitlog

import (
	"hash/crc32"
	"slices"

	"github.com/leat-io/leat/internal/record"
)

// abortedTxn is a transaction that was aborted.
type abortedTxn struct {
	producer    int64
	first, last int64 // offsets of its first batch and of its marker
}

// maxAborted bounds how many aborted transactions one pass of compaction deals with: 24 MB.
const maxAborted = 1 << 20

// txnSurvey finds out how the transactions of a stretch of log ended.
type txnSurvey struct {
	open    map[int64]int64 // producer to first offset
	aborted []abortedTxn
	most    int
	// bound is the first offset of an aborted transaction that did not fit in: a segment that reaches behind it is left to the next pass.
	bound int64
}

// note looks at the next batch.
func (s *txnSurvey) note(h *record.Header, batch []byte) error {
	switch {
	case h.ProducerID < 0:
	case h.Control():
		first, open := s.open[h.ProducerID]
		if !open {
			return nil
		}
		m, ok, err := record.ParseEndMarker(batch)
		if err != nil || !ok {
			return err
		}
		delete(s.open, h.ProducerID)
		switch {
		case m.Commit:
			return nil
		case len(s.aborted) >= s.most:
			s.bound = min(s.bound, first)
			return nil
		}
		s.aborted = append(s.aborted, abortedTxn{producer: h.ProducerID, first: first, last: h.BaseOffset})
	case h.Transactional():
		if _, ok := s.open[h.ProducerID]; !ok {
			if s.open == nil {
				s.open = map[int64]int64{}
			}
			s.open[h.ProducerID] = h.BaseOffset
		}
	}
	return nil
}

// unstable is the first offset whose transaction's end is not known, or end.
func (s *txnSurvey) unstable(end int64) int64 {
	for _, first := range s.open {
		end = min(end, first)
	}
	return end
}

// sort puts the aborted transactions in the order in which a sweep wants them.
func (s *txnSurvey) sort() {
	slices.SortFunc(s.aborted, func(a, b abortedTxn) int { return int(min(1, max(-1, a.first-b.first))) })
}

// txnSweep goes through batches in order and knows of each whether it was aborted, and of each marker whether its transaction has data left. It
// starts at the first segment of the log.
type txnSweep struct {
	aborted []abortedTxn         // in order of first
	inside  map[int64]abortedTxn // by producer: those that the sweep is in
	data    map[int64]struct{}   // producers with a transactional batch since their last marker
}

func newTxnSweep(aborted []abortedTxn) txnSweep {
	return txnSweep{aborted: aborted, inside: map[int64]abortedTxn{}, data: map[int64]struct{}{}}
}

// batch notes a batch of data, and reports whether it was aborted.
func (s *txnSweep) batch(h *record.Header) bool {
	if !h.Transactional() {
		return false
	}
	s.data[h.ProducerID] = struct{}{}
	for len(s.aborted) > 0 && s.aborted[0].first <= h.LastOffset() {
		s.inside[s.aborted[0].producer] = s.aborted[0]
		s.aborted = s.aborted[1:]
	}
	t, ok := s.inside[h.ProducerID]
	return ok && h.BaseOffset < t.last
}

// marker notes the end of a transaction: whether it left batches behind, and whether it was aborted.
func (s *txnSweep) marker(h *record.Header) (t abortedTxn, aborted, data bool) {
	t, aborted = s.inside[h.ProducerID]
	_, data = s.data[h.ProducerID]
	delete(s.inside, h.ProducerID)
	delete(s.data, h.ProducerID)
	return t, aborted, data
}

// appendTxnIndex appends a .txnindex file for the transactions, which is complete up to the offset covered.
func appendTxnIndex(dst []byte, aborted []abortedTxn, covered int64) []byte {
	from := len(dst)
	for _, t := range aborted {
		dst = appendAborted(dst, &AbortedTransaction{ProducerID: t.producer, First: t.first, Last: t.last})
	}
	return appendAbortedTrailer(dst, crc32.Checksum(dst[from:], castagnoli), covered)
}

// lastBatches are the last offsets of a producer's batches that say where it stands.
type lastBatches struct {
	data   int64 // the last batch, which has its last sequence; -1: there is none
	marker int64 // the last marker, if there is no batch of its epoch; else -1
}

// lastBatches returns where the producers stood below the offset.
func (ps *Producers) lastBatches(below int64) map[int64]lastBatches {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	out := make(map[int64]lastBatches, len(ps.byID))
	for id, p := range ps.byID {
		last := lastBatches{data: -1, marker: -1}
		for i := p.n - 1; i >= 0 && last.data < 0; i-- {
			if p.batches[i].last < below {
				last.data = p.batches[i].last
			}
		}
		if p.newest() == nil {
			last.marker = p.seen
		}
		out[id] = last
	}
	return out
}

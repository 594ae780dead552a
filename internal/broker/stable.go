package broker

import (
	"slices"
	"time"

	"github.com/leat-io/leat/internal/commitlog"
)

// openTransaction is a transaction that has records in a partition and, as far as somebody may see, no marker yet.
type openTransaction struct {
	producer int64
	first    int64
}

// openTransactions are in the order of their first offsets: the first in the list is what holds readers of committed records back.
type openTransactions []openTransaction

// follow keeps the list in step with what one batch wrote, and returns where the first open transaction begins, or the end of the batch.
func (o *openTransactions) follow(s *span) int64 {
	if s.producer >= 0 {
		i := slices.IndexFunc(*o, func(t openTransaction) bool { return t.producer == s.producer })
		switch {
		case s.marker && i >= 0:
			*o = slices.Delete(*o, i, i+1)
		case !s.marker && i < 0:
			*o = append(*o, openTransaction{producer: s.producer, first: s.base})
		}
	}
	if len(*o) > 0 {
		return (*o)[0].first
	}
	return s.end
}

// StableOffset is the last stable offset: where the first transaction begins that is open as far as is durable, or the high watermark. Clients that
// want committed records only read up to here.
func (p *Partition) StableOffset() int64 { return p.stable.Load() }

// Decided is the same for the engine: where the first transaction begins that is open as far as is appended, or the end of that.
func (p *Partition) Decided() int64 { return p.decided.Load() }

// Held is what holds a partition back from those who read committed records only.
type Held struct {
	Partition     *Partition
	Offset        int64 // where the transaction begins
	ProducerID    int64
	Transactional string // its id; empty if no coordinator knows the transaction
	Since         time.Time
}

// HeldBack tells what keeps the partition from being read to its end; ok is false if nothing does.
func (b *Broker) HeldBack(p *Partition) (h Held, ok bool) {
	b.ends.mu.Lock()
	if len(p.undecided) == 0 {
		b.ends.mu.Unlock()
		return h, false
	}
	first := p.undecided[0]
	b.ends.mu.Unlock()
	h = Held{Partition: p, Offset: first.first, ProducerID: first.producer}
	h.Transactional, h.Since = b.txns.ofProducer(first.producer)
	return h, true
}

// restoreOpen takes over which transactions are open in the files of a partition, after recovery.
func (b *Broker) restoreOpen(p *Partition) error {
	open, err := p.log.OpenTransactions()
	if err != nil {
		return p.judge(err)
	}
	b.ends.mu.Lock()
	defer b.ends.mu.Unlock()
	p.undecided, p.unstable = nil, nil
	for _, t := range open {
		o := openTransaction{producer: t.ProducerID, first: t.First}
		p.undecided, p.unstable = append(p.undecided, o), append(p.unstable, o)
	}
	if len(open) > 0 {
		p.decided.Store(open[0].First)
		p.stable.Store(open[0].First)
	}
	return nil
}

// Aborted returns the aborted transactions that have records in [from, to), which lies below the last stable offset, by their first offsets.
func (p *Partition) Aborted(from, to int64) ([]commitlog.AbortedTransaction, error) {
	if err := p.Err(); err != nil {
		return nil, err
	}
	list, err := p.log.Aborted(from, to, nil)
	if err != nil {
		return nil, p.judge(err)
	}
	return list, nil
}

// Producers describes the idempotent and transactional producers that the partition remembers.
func (p *Partition) Producers() ([]commitlog.ProducerState, error) {
	if err := p.Err(); err != nil {
		return nil, err
	}
	ps, err := p.log.Producers()
	if err != nil {
		return nil, p.judge(err)
	}
	return ps.States(), nil
}

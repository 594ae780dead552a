package kafka

import (
	"fmt"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/connector"
)

// partition is what has been fetched of one partition, and what is known of it. The Source's mu guards it; records themselves never change.
type partition struct {
	records []*kgo.Record // ascending, those that are not given up
	next    int64         // position after what was fetched
	bytes   int64         // of records
	open    map[int64]int64
	spans   []span // whole transactions within records; disjoint, ascending
	err     error  // it cannot be read on from next

	end   int64     // as the cluster has said
	asked time.Time // when it did; zero: not yet
	first int64     // end when it was first said
	seen  int64     // next when it was last said
	quiet int64     // where it ended when no transaction was open
}

// span is the positions from a transaction's first record to behind its end, interleaved ones together.
type span struct{ from, to int64 }

// recordOverhead is what a record costs beside its key and value.
const recordOverhead = 160

func sizeOf(r *kgo.Record) int64 {
	n := int64(recordOverhead + len(r.Key) + len(r.Value))
	for i := range r.Headers {
		n += int64(len(r.Headers[i].Key) + len(r.Headers[i].Value))
	}
	return n
}

// add takes a fetched record and returns what it costs to keep. Control records are not kept, but the position goes past them.
func (p *partition) add(r *kgo.Record) int64 {
	if r.Offset < p.next {
		return 0
	}
	if r.Offset >= p.quiet {
		p.settle()
	}
	p.next = r.Offset + 1
	if r.Attrs.IsControl() {
		if from, ok := p.open[r.ProducerID]; ok {
			delete(p.open, r.ProducerID)
			p.close(span{from, p.next})
		}
		return 0
	}
	if r.Attrs.IsTransactional() {
		if _, ok := p.open[r.ProducerID]; !ok {
			if p.open == nil {
				p.open = map[int64]int64{}
			}
			p.open[r.ProducerID] = r.Offset
		}
	}
	n := sizeOf(r)
	p.records = append(p.records, r)
	p.bytes += n
	return n
}

// close notes a transaction that has ended; ends come in ascending order.
func (p *partition) close(s span) {
	for n := len(p.spans); n > 0 && p.spans[n-1].to > s.from; n = len(p.spans) {
		s.from = min(s.from, p.spans[n-1].from)
		p.spans = p.spans[:n-1]
	}
	p.spans = append(p.spans, s)
}

// settle ends the transactions that have no marker any more: compaction removes those of old transactions, and leaves the records. What began before the
// partition was quiet had ended then.
func (p *partition) settle() {
	for id, from := range p.open {
		if from < p.quiet {
			delete(p.open, id)
			p.close(span{from, p.next})
		}
	}
}

// whole is the end of what can be read without splitting a transaction; full says that there is no room to wait for a transaction's end.
func (p *partition) whole(from int64, full bool) int64 {
	end := p.next
	for _, at := range p.open {
		end = min(end, at)
	}
	end = p.down(end)
	if end <= from && full {
		return p.next
	}
	return max(end, from)
}

// down moves an end that is within a transaction to where that begins.
func (p *partition) down(end int64) int64 {
	if s := p.spanAt(end); s != nil {
		return s.from
	}
	return end
}

// spanAt is the transaction that a cut at this position would split, nil if there is none.
func (p *partition) spanAt(at int64) *span {
	i := sort.Search(len(p.spans), func(i int) bool { return p.spans[i].to > at })
	if i < len(p.spans) && p.spans[i].from < at && at < p.spans[i].to {
		return &p.spans[i]
	}
	return nil
}

// giveUp forgets what lies before a position, and returns what that gives back.
func (p *partition) giveUp(before int64) (freed int64) {
	n := p.index(before)
	for _, r := range p.records[:n] {
		freed += sizeOf(r)
	}
	clear(p.records[:n])
	p.records = p.records[n:]
	p.bytes -= freed
	i := sort.Search(len(p.spans), func(i int) bool { return p.spans[i].to > before })
	p.spans = append(p.spans[:0], p.spans[i:]...)
	return freed
}

// index is the place of the first record at or after a position.
func (p *partition) index(at int64) int {
	return sort.Search(len(p.records), func(i int) bool { return p.records[i].Offset >= at })
}

// between are the records from one position to before another.
func (p *partition) between(from, to int64) []*kgo.Record {
	i, k := p.index(from), p.index(to)
	return p.records[i:k:k]
}

// outOfRange is the error of a position that the cluster does not have.
func outOfRange(topic string, partition int32, at, start, end int64) error {
	where := fmt.Sprintf("topic \"%s\" of the cluster, partition %d", topic, partition)
	if start > at {
		return connector.DeletedUnread(where, at, start)
	}
	return fmt.Errorf("%s: the position is %d, but the log ends at offset %d: the topic was made anew, or has lost records that were read; %s", where, at, end, connector.BeginAnew)
}

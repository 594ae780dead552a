package kafka

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random choices; 0 takes one from the clock")

// log is a partition as a cluster has it at read_committed: whose transaction each record is of, 0 for none, negative for its end.
type log []int64

func (l log) record(offset int) *kgo.Record {
	r := &kgo.Record{Offset: int64(offset), Value: []byte("v")}
	switch id := l[offset]; {
	case id > 0:
		r.ProducerID, r.Attrs = id, kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true})
	case id < 0:
		r.ProducerID, r.Attrs = -id, kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true, Control: true})
	}
	return r
}

// splits tells whether a cut at this offset divides a transaction.
func (l log) splits(at int) bool {
	open := map[int64]bool{}
	for _, id := range l[:at] {
		if id > 0 {
			open[id] = true
		} else if id < 0 {
			delete(open, -id)
		}
	}
	return len(open) > 0
}

// TestCutsSplitNoTransaction: whatever is fetched in whatever pieces, no cut lies within a transaction while there is room for the whole of it.
func TestCutsSplitNoTransaction(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 2_000 {
		var l log
		open := map[int64]bool{}
		for range 1 + rng.IntN(40) {
			id := int64(1 + rng.IntN(3))
			switch rng.IntN(4) {
			case 0:
				l = append(l, 0)
			case 1:
				delete(open, id)
				l = append(l, -id)
			default:
				open[id] = true
				l = append(l, id)
			}
		}
		p := &partition{}
		at := int64(0)
		for fetched := 0; fetched < len(l); {
			for range min(1+rng.IntN(8), len(l)-fetched) {
				p.add(l.record(fetched))
				fetched++
			}
			end := p.whole(at, false)
			if l.splits(int(end)) && end > at {
				t.Fatalf("%v, fetched to %d, read to %d: the end %d is within a transaction", l, fetched, at, end)
			}
			for e := int(end) + 1; e <= fetched; e++ {
				if !l.splits(e) {
					t.Fatalf("%v, fetched to %d, read to %d: the end is %d, but could be %d", l, fetched, at, end, e)
				}
			}
			if limit := at + 1 + rng.Int64N(8); limit < end {
				cut := limit
				if s := p.spanAt(limit); s != nil {
					if cut = s.from; cut <= at {
						cut = s.to
					}
				}
				if l.splits(int(cut)) {
					t.Fatalf("%v, fetched to %d, read to %d: limit %d is cut at %d, within a transaction", l, fetched, at, limit, cut)
				}
				end = cut
			}
			before := p.bytes
			freed := p.giveUp(end)
			if before-freed != p.bytes || len(p.records) > 0 && p.records[0].Offset < end {
				t.Fatalf("given up to %d: %d of %d bytes, %d left", end, freed, before, p.bytes)
			}
			at = end
		}
		if full := p.whole(at, true); p.next > at && full <= at {
			t.Fatalf("%v: nothing can be read from %d on although there is no more room", l, at)
		}
	}
}

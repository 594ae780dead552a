package kafka

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leat-io/leat/internal/record"
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

// TestTransactionsWithoutMarkers: compaction has removed the marker of an old transaction, and left its records. They are held back only until it is known
// that no transaction was open behind them.
func TestTransactionsWithoutMarkers(t *testing.T) {
	t.Parallel()
	old := log{0, 1, 1, 0, 2, 2}
	for _, known := range []string{"before", "after"} {
		p := &partition{}
		if known == "before" {
			p.quiet = 4
		}
		for i := range old {
			p.add(old.record(i))
			if want := map[string]int64{"before": 4, "after": 1}[known]; i == 4 && p.whole(0, false) != want {
				t.Errorf("known %s: with the second transaction begun the end is %d, want %d", known, p.whole(0, false), want)
			}
		}
		if known == "after" {
			p.quiet = 4
			p.settle()
		}
		if _, open := p.open[1]; open || len(p.open) != 1 {
			t.Errorf("known %s: open are %v", known, p.open)
		}
		p.quiet = 6
		p.settle()
		if got := p.whole(0, false); got != 6 {
			t.Errorf("known %s: the end is %d, want 6", known, got)
		}
	}
}

// TestEmptyBatchesAtTheEnd: the end of a partition whose last batches have lost their records to compaction is reached.
func TestEmptyBatchesAtTheEnd(t *testing.T) {
	t.Parallel()
	batch := func(base int64, lastDelta, records int, control bool) []byte {
		b := record.NewBuilder(record.None)
		for range records {
			b.Append(1, []byte("k"), []byte("v"))
		}
		raw := b.Build(nil)
		if records == 0 {
			b.Append(1, nil, nil)
			raw = b.Build(nil)[:record.HeaderLen]
			binary.BigEndian.PutUint32(raw[8:], record.HeaderLen-12)
			binary.BigEndian.PutUint32(raw[57:], 0)
		}
		binary.BigEndian.PutUint64(raw, uint64(base))
		binary.BigEndian.PutUint32(raw[23:], uint32(lastDelta))
		if control {
			raw[22] |= 0x20
		}
		return raw
	}
	join := func(batches ...[]byte) []byte { return bytes.Join(batches, nil) }
	empty, full := batch(10, 4, 0, false), batch(15, 1, 2, false)
	for name, test := range map[string]struct {
		batches  []byte
		at, want int64
	}{
		"nothing":                              {nil, 10, 10},
		"one without records":                  {empty, 10, 15},
		"from within":                          {empty, 12, 15},
		"behind records that were read":        {join(batch(5, 4, 2, false), empty), 8, 15},
		"before records":                       {join(empty, full), 10, 15},
		"records":                              {full, 15, 15},
		"two without, behind a gap":            {join(empty, batch(20, 0, 0, false)), 10, 21},
		"one that is cut off":                  {join(empty, batch(15, 0, 0, false)[:40]), 10, 15},
		"records that are cut off":             {join(empty, full[:len(full)-1]), 10, 15},
		"a marker, which the client gives":     {join(empty, batch(15, 0, 1, true)), 10, 15},
		"what is left of a marker":             {join(empty, batch(15, 0, 0, true)), 10, 16},
		"what was before the first to be read": {batch(3, 2, 0, false), 10, 10},
	} {
		got, err := emptyUpTo(test.batches, test.at)
		if err != nil || got != test.want {
			t.Errorf("%s: from %d there is nothing up to %d (%v), want %d", name, test.at, got, err, test.want)
		}
	}
	if _, err := emptyUpTo(make([]byte, 100), 0); err == nil {
		t.Error("what is no batch is taken for one")
	}
}

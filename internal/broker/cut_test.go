package broker

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seedFlag = flag.Uint64("seed", 0, "run only the random test with this seed")

// seeds are the seeds of a random test.
func seeds(n int) []uint64 {
	if *seedFlag != 0 {
		return []uint64{*seedFlag}
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = uint64(i + 1)
	}
	return out
}

func TestAUnitThatDoesNotFitIsLeftOut(t *testing.T) {
	t.Parallel()
	a, b, c := &Partition{Index: 0}, &Partition{Index: 1}, &Partition{Index: 2}
	units := []atomicUnit{
		{lsn: 1, spans: []span{{p: a, base: 0, end: 5}, {p: b, base: 0, end: 5}}},
		{lsn: 2, spans: []span{{p: b, base: 5, end: 8}, {p: c, base: 0, end: 3}}},
		{lsn: 3, spans: []span{{p: a, base: 7, end: 9}, {p: c, base: 3, end: 4}}},
	}
	for name, test := range map[string]struct {
		a, b, c             int64
		wantA, wantB, wantC int64
	}{
		"all whole":                        {9, 8, 4, 9, 8, 4},
		"the last is cut":                  {8, 8, 4, 7, 8, 3},
		"a cut carries over":               {9, 6, 4, 7, 5, 0},
		"nothing of the first":             {9, 4, 4, 0, 0, 0},
		"between units nothing is lowered": {6, 8, 3, 6, 8, 3},
		"units that are not seen at all":   {0, 0, 0, 0, 0, 0},
	} {
		ends := map[*Partition]int64{a: test.a, b: test.b, c: test.c}
		lowerToWholeUnits(units, ends)
		if ends[a] != test.wantA || ends[b] != test.wantB || ends[c] != test.wantC {
			t.Errorf("%s: got %d %d %d, want %d %d %d", name, ends[a], ends[b], ends[c], test.wantA, test.wantB, test.wantC)
		}
	}
}

// split reports whether the ends see the unit in part.
func split(u atomicUnit, ends map[*Partition]int64) bool {
	in, out := false, false
	for _, s := range u.spans {
		if end, ok := ends[s.p]; ok {
			in = in || end > s.base
			out = out || end < s.end
		}
	}
	return in && out
}

func TestCutsSplitNoUnitAndTakeAsMuchAsTheyCan(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		parts := make([]*Partition, 2+rng.IntN(4))
		next := map[*Partition]int64{}
		for i := range parts {
			parts[i] = &Partition{Index: int32(i)}
		}
		var units []atomicUnit
		for lsn := range 1 + rng.IntN(12) {
			u := atomicUnit{lsn: uint64(lsn)}
			for _, p := range parts {
				if rng.IntN(2) == 0 {
					n := int64(1 + rng.IntN(3))
					u.spans = append(u.spans, span{p: p, base: next[p], end: next[p] + n})
					next[p] += n
				}
				if rng.IntN(3) == 0 { // records of nobody's unit
					next[p]++
				}
			}
			units = append(units, u)
		}
		limits := map[*Partition]int64{}
		for _, p := range parts {
			if rng.IntN(4) > 0 { // some partitions are not read
				limits[p] = rng.Int64N(next[p] + 1)
			}
		}
		check := func(what string, units, all []atomicUnit) map[*Partition]int64 {
			ends := map[*Partition]int64{}
			for p, l := range limits {
				ends[p] = l
			}
			lowerToWholeUnits(units, ends)
			for _, u := range all {
				if split(u, ends) {
					t.Fatalf("seed %d: %s: unit %d is split", seed, what, u.lsn)
				}
			}
			for p, l := range limits {
				if ends[p] > l {
					t.Fatalf("seed %d: %s: above the limit", seed, what)
				}
			}
			return ends
		}
		got := check("list", units, units)
		// The largest answer: raise each end alone, by brute force, and see that it cannot be.
		for p, l := range limits {
			for end := got[p] + 1; end <= l; end++ {
				try := map[*Partition]int64{}
				for q, e := range got {
					try[q] = e
				}
				try[p] = end
				ok := true
				for _, u := range units {
					ok = ok && !split(u, try)
				}
				if ok {
					t.Fatalf("seed %d: partition %d could have been read to %d instead of %d", seed, p.Index, end, got[p])
				}
			}
		}
		merged := halve(append([]atomicUnit(nil), units...))
		check("merged list", merged, units)
	}
}

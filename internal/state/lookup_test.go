package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestLookupsOfManyKeys probes thousands of keys that are in kv alone, more than a reader collects at once, with equal ones and ones that are not
// there among them.
func TestLookupsOfManyKeys(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(3) {
		rng := rand.New(rand.NewPCG(seed, 9))
		db, a := testDB(t)
		key := func(i int) string { return fmt.Sprintf("key %05d", i*7919%100_003) }
		const there = 3000
		values := map[string][]byte{}
		groups := map[string][]string{} // suffixes, in order; the value is the suffix and the key
		written := NewTables(Options{DB: db, Applier: a})
		point := written.Point(Spec{ID: 1, Name: "point", Fresh: true})
		ordered := written.Ordered(Spec{ID: 2, Name: "ordered", Fresh: true})
		for i := range there {
			k := key(i)
			values[k] = bytes.Repeat([]byte(k[4:]), rng.IntN(100))
			r, err := point.ProbeOne([]byte(k))
			if err != nil {
				t.Fatal(err)
			}
			point.Set(r, values[k])
			n := rng.IntN(20)
			if rng.IntN(100) == 0 {
				n = 400 // more than is kept in memory
			}
			g, err := ordered.ProbeOne([]byte(k))
			if err != nil {
				t.Fatal(err)
			}
			for s := range n {
				suffix := fmt.Sprintf("%04d", s)
				groups[k] = append(groups[k], suffix)
				if err := ordered.Set(g, []byte(suffix), []byte(suffix+k)); err != nil {
					t.Fatal(err)
				}
			}
		}
		commitState(t, written, a, 1)
		if err := a.ApplyState(1); err != nil {
			t.Fatal(err)
		}
		written.Close()

		tables := NewTables(Options{DB: db, Applier: a})
		point = tables.Point(Spec{ID: 1, Name: "point"})
		ordered = tables.Ordered(Spec{ID: 2, Name: "ordered"})
		ordered.big = 4000
		keys := Keys{Off: []uint32{0}}
		var asked []string
		for range 2 * there {
			k := key(rng.IntN(there + there/4))
			asked = append(asked, k)
			keys.Data = append(keys.Data, k...)
			keys.Off = append(keys.Off, uint32(len(keys.Data)))
		}
		refs := make([]Ref, len(asked))
		if err := point.Probe(&keys, refs); err != nil {
			t.Fatal(err)
		}
		first := map[string]Ref{}
		for i, k := range asked {
			want, ok := values[k]
			if got := point.Value(refs[i]); (got != nil) != ok || !bytes.Equal(got, want) {
				t.Fatalf("seed %d: %q has a value of %d bytes (there: %v), want %d (%v)", seed, k, len(got), got != nil, len(want), ok)
			}
			if string(point.Key(refs[i])) != k {
				t.Fatalf("seed %d: the row of %q is that of %q", seed, k, point.Key(refs[i]))
			}
			if r, ok := first[k]; ok && r != refs[i] {
				t.Fatalf("seed %d: %q has two rows", seed, k)
			}
			first[k] = refs[i]
		}
		if got := tables.Loads(); got > there || got < there/2 {
			t.Fatalf("seed %d: %d rows were loaded", seed, got)
		}
		if err := ordered.Probe(&keys, refs); err != nil {
			t.Fatal(err)
		}
		clear(first)
		for i, k := range asked {
			if r, ok := first[k]; ok && r != refs[i] {
				t.Fatalf("seed %d: %q has two groups", seed, k)
			}
			if _, ok := first[k]; ok {
				continue
			}
			first[k] = refs[i]
			var it OrderedIter
			if err := ordered.Scan(&it, refs[i], nil, nil, false); err != nil {
				t.Fatal(err)
			}
			n := 0
			for it.Next() {
				if n == len(groups[k]) || string(it.Suffix()) != groups[k][n] || string(it.Value()) != groups[k][n]+k {
					t.Fatalf("seed %d: row %d of %q is %q: %q", seed, n, k, it.Suffix(), it.Value())
				}
				n++
			}
			if err := it.Close(); err != nil || n != len(groups[k]) {
				t.Fatalf("seed %d: %q has %d rows, want %d (%v)", seed, k, n, len(groups[k]), err)
			}
		}
		tables.Close()
	}
}

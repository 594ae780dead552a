package keyed

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/spill"
	"github.com/leat-io/leat/internal/state"
	"github.com/leat-io/leat/internal/vfs"
)

var seedFlag = flag.Uint64("seed", 0, "run the random tests with this seed")

// TestOneEpochsChangesAreBounded: rows that one row multiplies into within an epoch count in the accounts of memory, and end in an error before
// they take more than an epoch may.
func TestOneEpochsChangesAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	b := budget.New("engine", 0)
	tables := state.NewTables(state.Options{Name: "state", Budget: b, EpochBytes: limit})
	defer tables.Close()
	var c Changes
	var key [8]byte
	row := make([]byte, 100)
	for i := range uint64(5_000_000) {
		binary.BigEndian.PutUint64(key[:], i)
		c.Add(key[:], row, 1)
		if i%1000 > 0 {
			continue
		}
		if err := c.Account(tables, "its rows"); err != nil {
			if !strings.Contains(err.Error(), "one epoch changes more than 1 MB of its rows") {
				t.Errorf("error %q", err)
			}
			if used := b.Used(); used < limit || used > 2*limit {
				t.Errorf("%d bytes are accounted for at the end, want a little more than %d", used, limit)
			}
			c.Release(tables)
			if used := b.Used(); used != 0 {
				t.Errorf("%d bytes are accounted for when all is forgotten", used)
			}
			return
		}
	}
	t.Error("there was no end")
}

// TestRunsAreSortedAndWhole: rows that go to files come back in the order of their keys, each with its weight, those of a key in the order of their runs,
// also when there are so many runs that some are merged on the way; and memory stays below the bound.
func TestRunsAreSortedAndWhole(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	fs := vfs.NewMem()
	folder, err := spill.OpenFolder(fs, "spill", nil)
	if err != nil {
		t.Fatal(err)
	}
	const bound = 20_000
	b := budget.New("engine", 0)
	tables := state.NewTables(state.Options{Name: "state", Budget: b, Spill: folder, SpillBytes: bound})
	defer tables.Close()
	for _, n := range []int{100, 3_000, 60_000} { // no run, a few, two levels of them
		scratch := folder.NewScratch()
		var c Changes
		var runs Runs
		type row struct{ key, row string }
		want := map[row]int64{}
		for range n {
			key, r := fmt.Appendf(nil, "key %d", rng.IntN(n/2)), fmt.Appendf(nil, "row %d", rng.IntN(3))
			weight := int64(rng.IntN(3) - 1)
			want[row{string(key), string(r)}] += weight
			c.Add(key, r, weight)
			if err := c.Keep(tables, &runs, scratch, "rows"); err != nil {
				t.Fatal(err)
			}
			if used := b.Used(); used > bound+200 {
				t.Fatalf("%d bytes in memory, the bound is %d", used, bound)
			}
		}
		if runs.Any() != (n > 1000) {
			t.Errorf("%d rows went to files: %t", n, runs.Any())
		}
		if n > 10_000 && (len(runs.levels) < 2 || len(runs.levels[1]) == 0) {
			t.Errorf("no runs were merged: %d levels", len(runs.levels))
		}
		if err := runs.Add(&c, tables, scratch); err != nil {
			t.Fatal(err)
		}
		if used := b.Used(); used != 0 {
			t.Errorf("%d bytes in memory behind the last run", used)
		}
		if err := runs.Open(); err != nil {
			t.Fatal(err)
		}
		var last []byte
		for runs.Next() {
			if err := runs.Fill(&c, 64, 2_000); err != nil {
				t.Fatal(err)
			}
			if c.Len() == 0 || c.Len() > 64 || c.Bytes() > 4_000 {
				t.Fatalf("%d keys of %d bytes at once", c.Len(), c.Bytes())
			}
			for id := range c.Len() {
				key := c.Keys.Key(id)
				if last != nil && bytes.Compare(last, key) >= 0 {
					t.Fatalf("key %q behind %q", key, last)
				}
				last = append(last[:0], key...)
				c.Each(id, func(r []byte, w int64) { want[row{string(key), string(r)}] -= w })
			}
			c.Reset()
		}
		for r, w := range want {
			if w != 0 {
				t.Fatalf("%q: %d are missing", r, w)
			}
		}
		if err := runs.Close(); err != nil {
			t.Fatal(err)
		}
		if names, err := fs.List("spill"); err != nil || len(names) > 0 {
			t.Errorf("left behind: %v, %v", names, err)
		}
	}
}

// TestRunsKeepTheOrderOfTheirMaking: of one key, what was written first comes first.
func TestRunsKeepTheOrderOfTheirMaking(t *testing.T) {
	t.Parallel()
	folder, err := spill.OpenFolder(vfs.NewMem(), "spill", nil)
	if err != nil {
		t.Fatal(err)
	}
	scratch := folder.NewScratch()
	var runs Runs
	const n = 3*maxRuns + 5
	for i := range n {
		w, err := runs.Begin(scratch)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "b"} {
			if err := w.Append([]byte(key), nil, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
	}
	if err := runs.Open(); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for runs.Next() {
		got = append(got, runs.Weight())
		if err := runs.Move(); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2*n || !slices.IsSorted(got[:n]) || !slices.IsSorted(got[n:]) || got[0] != 0 || got[n] != 0 {
		t.Errorf("order %v", got)
	}
	if err := runs.Close(); err != nil {
		t.Fatal(err)
	}
}

// FuzzRecord: no bytes make the decoder of a run's records read beyond them.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("\x03key\x02\x03row"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := cursor{left: b}
		for len(c.left) > 0 {
			before := len(c.left)
			if err := c.next(); err != nil {
				return
			}
			if n := before - len(c.left); n < len(c.key)+len(c.row)+3 {
				t.Fatalf("%d bytes of key and %d of row out of %d", len(c.key), len(c.row), n)
			}
		}
	})
}

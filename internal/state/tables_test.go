package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/vfs"
)

func testDB(t *testing.T) (*kv.DB, *Applier) {
	t.Helper()
	db, err := kv.Open(kv.Options{FS: vfs.NewMem(), Dir: "kv", CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewApplier(ApplierOptions{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.FinishRecovery(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, a
}

// commitState ends an epoch of the tables, and hands its changes of state to the applier.
func commitState(t *testing.T, tables *Tables, a *Applier, lsn journal.LSN) {
	t.Helper()
	var c Changes
	if err := tables.EndEpoch(&c); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.State {
		if err := a.Apply(lsn, journal.KindState, p); err != nil {
			t.Fatal(err)
		}
	}
	tables.Committed(lsn)
}

// TestPool hands out and takes back random blocks: none overlap, all is accounted, and in the end all can be used again.
func TestPool(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(5) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := budget.New("pool", 0)
		p := newPool(b)
		type block struct {
			addr  uint32
			order uint8
			fill  byte
		}
		var blocks []block
		want := int64(0)
		check := func(bl block) {
			mem := p.bytes(bl.addr, 0, orderBytes(bl.order))
			if bytes.Count(mem, []byte{bl.fill}) != len(mem) {
				t.Fatalf("seed %d: block %x of order %d was written by somebody else", seed, bl.addr, bl.order)
			}
		}
		for i := range 3000 {
			if rng.IntN(5) < 3 && want < 64<<20 {
				order := uint8(rng.IntN(9))
				if rng.IntN(50) == 0 {
					order = uint8(9 + rng.IntN(6))
				}
				bl := block{p.alloc(order), order, byte(i)}
				mem := p.bytes(bl.addr, 0, orderBytes(order))
				for j := range mem {
					mem[j] = bl.fill
				}
				blocks = append(blocks, bl)
				want += int64(orderBytes(order))
			} else if n := len(blocks); n > 0 {
				j := rng.IntN(n)
				check(blocks[j])
				p.release(blocks[j].addr, blocks[j].order)
				want -= int64(orderBytes(blocks[j].order))
				blocks[j] = blocks[n-1]
				blocks = blocks[:n-1]
			}
			if p.used != want || b.Used() != want {
				t.Fatalf("seed %d: %d bytes used, budget has %d, want %d", seed, p.used, b.Used(), want)
			}
		}
		for _, bl := range blocks {
			check(bl)
			p.release(bl.addr, bl.order)
		}
		if p.mapped > 2*regionBytes {
			t.Errorf("seed %d: %d bytes are mapped with nothing in use", seed, p.mapped)
		}
		p.close()
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	last := uint8(0)
	for n := 1; n <= 200_000; n++ {
		c := classFor(n)
		size := classBytes(c)
		if size < n || size%8 != 0 {
			t.Fatalf("%d bytes get class %d of %d", n, c, size)
		}
		if c < last || n > 256 && n <= maxClassed && size > n+n/4 {
			t.Fatalf("%d bytes get class %d of %d after class %d", n, c, size, last)
		}
		last = c
	}
}

// TestIndex compares the index with a map under random inserts and removals.
func TestIndex(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(5) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := newPool(nil)
		var a arena
		var x index
		have := map[string]uint32{}
		hash := func(k string) uint64 { return uint64(binary.BigEndian.Uint32([]byte(k))%97) << 57 } // many collide
		for range 4000 {
			k := fmt.Sprintf("%04d", rng.IntN(600))
			addr := x.find(p, hash(k), []byte(k), rowHeader)
			if addr != have[k] {
				t.Fatalf("seed %d: find %q gives %x, want %x", seed, k, addr, have[k])
			}
			if addr == 0 {
				addr, _ = p.newRow(&a, []byte(k), 0)
				x.insert(p, hash(k), addr)
				have[k] = addr
			} else if rng.IntN(2) == 0 {
				x.remove(hash(k), addr)
				p.freeRow(&a, addr)
				delete(have, k)
				if rng.IntN(20) == 0 {
					x.shrink(p)
				}
			}
			if x.n != len(have) {
				t.Fatalf("seed %d: %d rows, want %d", seed, x.n, len(have))
			}
		}
		p.close()
	}
}

// TestScanInOrder reads tables of many sizes in chunks, as a backfill does.
func TestScanInOrder(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 255, 256, 257, 1000, 20_000} {
		for _, spread := range []int{1, 50, 1 << 30} { // few different heads, or many
			rng := rand.New(rand.NewPCG(uint64(n), uint64(spread)))
			tables := NewTables(Options{})
			p := tables.Point(Spec{Name: "scan", Ephemeral: true})
			have := map[string]bool{}
			for i := range n {
				key := fmt.Sprintf("%08x%d", rng.IntN(spread), i%(n/2+1))
				r, err := p.ProbeOne([]byte(key))
				if err != nil {
					t.Fatal(err)
				}
				p.Set(r, nil)
				have[key] = true
			}
			var got []string
			var it PointIter
			for from := []byte{}; ; {
				if err := p.Scan(&it, from, nil); err != nil {
					t.Fatal(err)
				}
				k := 0
				for ; k < 700 && it.Next(); k++ {
					got = append(got, string(it.Key()))
				}
				if k < 700 {
					break
				}
				from = []byte(got[len(got)-1] + "\x00")
			}
			if len(got) != len(have) || !slices.IsSorted(got) {
				t.Errorf("%d keys, %d heads: got %d of %d keys, sorted %v", n, spread, len(got), len(have), slices.IsSorted(got))
			}
			tables.Close()
		}
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	p := newPool(nil)
	defer p.close()
	var f filter
	rng := rand.New(rand.NewPCG(1, 3))
	in := make([]uint64, 100_000)
	for i := range in {
		in[i] = rng.Uint64()
		f.add(p, in[i])
	}
	for _, h := range in {
		if !f.has(h) {
			t.Fatal("a key that was added is not there")
		}
	}
	wrong := 0
	for range 100_000 {
		if f.has(rng.Uint64()) {
			wrong++
		}
	}
	if wrong > 4000 {
		t.Errorf("%d of 100,000 absent keys are said to be there", wrong)
	}
	if f.bytes() > 100_000*10/8*4 {
		t.Errorf("%d bytes for 100,000 keys", f.bytes())
	}
}

// TestLargeGroup grows and shrinks one group far beyond a leaf, in random and in rising order, and compares every step's
// neighbourhood with a sorted slice.
func TestLargeGroup(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(4) {
		rng := rand.New(rand.NewPCG(seed, 4))
		tables := NewTables(Options{})
		o := tables.Ordered(Spec{Name: "large", Ephemeral: true})
		g, err := o.ProbeOne([]byte("g"))
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		next := 0
		grow := true
		for step := range 12_000 {
			if len(have) > 3000 {
				grow = false
			} else if len(have) == 0 {
				grow = true
			}
			k := fmt.Sprintf("%06d", rng.IntN(4000))
			if seed%2 == 0 && grow {
				k = fmt.Sprintf("%06d", next)
				next++
			}
			if !grow && len(have) > 0 && rng.IntN(4) > 0 {
				k = have[rng.IntN(len(have))]
				if seed%3 == 0 {
					k = have[0] // as a queue
				}
			}
			i := sort.SearchStrings(have, k)
			found := i < len(have) && have[i] == k
			got, _ := o.Get(g, []byte(k))
			if found != (got != nil) {
				t.Fatalf("seed %d step %d: %q is there: %v, want %v", seed, step, k, got != nil, found)
			}
			if grow || rng.IntN(5) == 0 {
				if err := o.Set(g, []byte(k), []byte(k)); err != nil {
					t.Fatal(err)
				}
				if !found {
					have = slices.Insert(have, i, k)
				}
			} else {
				if err := o.Delete(g, []byte(k)); err != nil {
					t.Fatal(err)
				}
				if found {
					have = slices.Delete(have, i, i+1)
				}
			}
			if step%701 == 0 {
				if err := tables.EndEpoch(nil); err != nil {
					t.Fatal(err)
				}
			}
			if step%97 != 0 {
				continue
			}
			g, _ = o.ProbeOne([]byte("g"))
			for _, reverse := range []bool{false, true} {
				want := slices.Clone(have)
				if reverse {
					slices.Reverse(want)
				}
				var it OrderedIter
				_ = o.Scan(&it, g, nil, nil, reverse)
				n := 0
				for it.Next() {
					if n == len(want) || string(it.Suffix()) != want[n] {
						t.Fatalf("seed %d step %d: row %d is %q", seed, step, n, it.Suffix())
					}
					n++
				}
				if n != len(want) {
					t.Fatalf("seed %d step %d: %d rows, want %d", seed, step, n, len(want))
				}
			}
		}
		tables.Close()
	}
}

// TestAbsentKeysAreForgotten: looking for what is not there must not fill memory.
func TestAbsentKeysAreForgotten(t *testing.T) {
	t.Parallel()
	db, a := testDB(t)
	tables := NewTables(Options{DB: db, Applier: a})
	defer tables.Close()
	p := tables.Point(Spec{ID: 10, Name: "point", Fresh: true})
	o := tables.Ordered(Spec{ID: 11, Name: "ordered", Fresh: true})
	refs := make([]Ref, 1000)
	for i := range 100 {
		var keys Keys
		for j := range refs {
			keys.Append(binary.BigEndian.AppendUint64(nil, uint64(i*len(refs)+j)))
		}
		if err := errors.Join(p.Probe(&keys, refs), o.Probe(&keys, refs)); err != nil {
			t.Fatal(err)
		}
		if err := tables.EndEpoch(&Changes{}); err != nil {
			t.Fatal(err)
		}
		tables.Committed(journal.LSN(i + 1))
	}
	if used := tables.Used(); used > 1<<20 {
		t.Errorf("%d bytes for rows that are not there", used)
	}
	if a.Pending() != (Pending{}) {
		t.Errorf("absent rows were journaled: %+v", a.Pending())
	}
}

// TestMemoryStaysInBudget updates far more rows than fit.
func TestMemoryStaysInBudget(t *testing.T) {
	t.Parallel()
	const limit, rowsIn = 1 << 20, 40_000
	db, a := testDB(t)
	b := budget.New("engine", 0)
	tables := NewTables(Options{Name: "state", DB: db, Applier: a, Budget: b, Limit: limit})
	defer tables.Close()
	p := tables.Point(Spec{ID: 10, Name: "point", Fresh: true, ValueBytes: 8})
	o := tables.Ordered(Spec{ID: 11, Name: "ordered", Fresh: true})
	rng := rand.New(rand.NewPCG(9, 9))
	counts := make([]uint64, rowsIn)
	groups := make([]map[uint64]bool, rowsIn/4)
	refs, grefs := make([]Ref, 256), make([]Ref, 256)
	var c Changes
	lsn := journal.LSN(0)
	for step := range 400 {
		var keys, prefixes Keys
		for range refs {
			k := uint64(rng.IntN(rowsIn))
			keys.Append(binary.BigEndian.AppendUint64(nil, k))
			prefixes.Append(binary.BigEndian.AppendUint64(nil, k%uint64(len(groups))))
		}
		if err := errors.Join(p.Probe(&keys, refs), o.Probe(&prefixes, grefs)); err != nil {
			t.Fatal(err)
		}
		for i, r := range refs {
			k := binary.BigEndian.Uint64(keys.At(i))
			v, _ := p.Fixed(r, 8)
			counts[k]++
			binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
			if got := binary.LittleEndian.Uint64(v); got != counts[k] {
				t.Fatalf("step %d: row %d is %d, want %d", step, k, got, counts[k])
			}
			m := k % uint64(len(groups))
			if groups[m] == nil {
				groups[m] = map[uint64]bool{}
			}
			groups[m][k] = true
			if err := o.Set(grefs[i], keys.At(i), nil); err != nil {
				t.Fatal(err)
			}
			n := 0
			var it OrderedIter
			_ = o.Scan(&it, grefs[i], nil, nil, false)
			for it.Next() {
				n++
			}
			if n != len(groups[m]) {
				t.Fatalf("step %d: group %d has %d rows, want %d", step, m, n, len(groups[m]))
			}
		}
		if used := b.Used(); used > limit*3/2 {
			t.Fatalf("step %d: %d bytes in use with a limit of %d", step, used, limit)
		}
		if tables.ChangedBytes() < limit/8 {
			continue
		}
		c.Reset()
		if err := tables.EndEpoch(&c); err != nil {
			t.Fatal(err)
		}
		lsn++
		for _, payload := range c.State {
			if err := a.Apply(lsn, journal.KindState, payload); err != nil {
				t.Fatal(err)
			}
		}
		tables.Committed(lsn)
		if tables.Evict() > 0 {
			if err := a.ApplyState(lsn); err != nil {
				t.Fatal(err)
			}
			if over := tables.Evict(); over > 0 {
				t.Errorf("step %d: %d bytes over the limit after all was applied", step, over)
			}
		}
	}
	if tables.Evictions() == 0 || tables.Loads() == 0 {
		t.Error("nothing was evicted or loaded")
	}
}

// TestWindowsThatCloseBeforeACheckpointLeaveNoTrace: neither rows nor a range deletion.
func TestWindowsThatCloseBeforeACheckpointLeaveNoTrace(t *testing.T) {
	t.Parallel()
	db, a := testDB(t)
	tables := NewTables(Options{DB: db, Applier: a})
	defer tables.Close()
	p := tables.Point(Spec{ID: 10, Name: "windows", Fresh: true, Windowed: true})
	commit := func(lsn journal.LSN) { commitState(t, tables, a, lsn) }
	put := func(end int64) {
		r, err := p.ProbeOne([]byte(windowKey(end, "k")))
		if err != nil {
			t.Fatal(err)
		}
		p.Set(r, []byte("v"))
	}
	for i := range journal.LSN(20) {
		put(int64(i))
		p.DropWindows(int64(i) - 3)
		commit(i + 1)
	}
	if got, err := p.Windows(nil, 100); err != nil || !slices.Equal(got, []int64{17, 18, 19}) {
		t.Fatalf("open windows %v %v", got, err)
	}
	if err := a.ApplyState(20); err != nil {
		t.Fatal(err)
	}
	snap := db.Snapshot()
	defer snap.Release()
	it, err := snap.ScanPrefix(10, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for it.Next() {
		n++
	}
	if err := it.Close(); err != nil || n != 3 {
		t.Errorf("%d rows in kv, want those of 3 windows (%v)", n, err)
	}
	p.DropWindows(50)
	commit(21)
	if err := a.ApplyState(21); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := db.Get(10, []byte(windowKey(18, "k")), nil); ok || err != nil {
		t.Errorf("a dropped window is still in kv (%v)", err)
	}
}

// TestDropTable removes a table's rows, and those that come after it in the same unit stay.
func TestDropTable(t *testing.T) {
	t.Parallel()
	db, a := testDB(t)
	var c Changes
	for i := range 3000 { // so many that the merge's index grows
		c.Set(journal.KindRows, 10, fmt.Appendf(nil, "k%d", i), nil, []byte("v"))
		c.Set(journal.KindRows, 11, fmt.Appendf(nil, "k%d", i), []byte("s"), []byte("v"))
	}
	apply := func(lsn journal.LSN) {
		for _, b := range c.Rows {
			if err := a.Apply(lsn, journal.KindRows, b); err != nil {
				t.Fatal(err)
			}
		}
		c.Reset()
	}
	apply(1)
	if err := a.Publish(1); err != nil {
		t.Fatal(err)
	}
	old, lsn := a.Snapshot()
	defer old.Release()
	if lsn != 1 || a.Published() != 1 {
		t.Fatalf("published %d", lsn)
	}
	c.DropTable(journal.KindRows, 10)
	c.Set(journal.KindRows, 10, []byte("k1"), nil, []byte("new"))
	c.Set(journal.KindRows, 10, []byte("k1"), nil, []byte("newer"))
	c.Delete(journal.KindRows, 11, []byte("k7"), []byte("s"))
	apply(2)
	if err := a.Publish(2); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		table               uint32
		prefix, suffix, was string
		want                string
	}{
		{10, "k1", "", "v", "newer"},
		{10, "k2", "", "v", ""},
		{10, "k2999", "", "v", ""},
		{11, "k1", "s", "v", "v"},
		{11, "k7", "s", "v", ""},
	} {
		v, _, err := db.Get(test.table, []byte(test.prefix), []byte(test.suffix))
		if err != nil || string(v) != test.want {
			t.Errorf("table %d %s: %q %v, want %q", test.table, test.prefix, v, err, test.want)
		}
		if v, _, err := old.Get(test.table, []byte(test.prefix), []byte(test.suffix)); err != nil || string(v) != test.was {
			t.Errorf("old snapshot, table %d %s: %q %v, want %q", test.table, test.prefix, v, err, test.was)
		}
	}
	if got := a.Pending(); got != (Pending{}) {
		t.Errorf("pending %+v", got)
	}
	// What kv has is skipped; what it cannot read is an error.
	c.Set(journal.KindRows, 10, []byte("k1"), nil, []byte("old"))
	apply(2)
	if got := a.Pending(); got != (Pending{}) {
		t.Errorf("a unit that is in kv was taken again: %+v", got)
	}
	if err := a.Apply(3, journal.KindState, []byte{9}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("unknown version: %v", err)
	}
}

// TestPayloadsAreBounded: a large epoch becomes several payloads, each complete in itself.
func TestPayloadsAreBounded(t *testing.T) {
	t.Parallel()
	var c Changes
	value := bytes.Repeat([]byte("x"), 1000)
	const n = 5000
	for i := range n {
		c.Set(journal.KindState, uint32(10+i%2), binary.BigEndian.AppendUint32(nil, uint32(i)), nil, value)
	}
	seen := 0
	for _, b := range c.State {
		if len(b) > payloadBytes {
			t.Errorf("a payload of %d bytes", len(b))
		}
		d := NewDecoder(b)
		for ch := (Change{}); d.Next(&ch); seen++ {
			if ch.Table != uint32(10+seen%2) || ch.Op != OpSet || binary.BigEndian.Uint32(ch.Prefix) != uint32(seen) || !bytes.Equal(ch.Value, value) {
				t.Fatalf("change %d is %+v", seen, ch)
			}
		}
		if d.Err() != nil {
			t.Fatal(d.Err())
		}
	}
	if seen != n || len(c.State) < 5 || c.Bytes() < n*1000 {
		t.Errorf("%d changes in %d payloads, %d bytes", seen, len(c.State), c.Bytes())
	}
}

func FuzzDecoder(f *testing.F) {
	var c Changes
	c.Set(journal.KindState, 7, []byte("p"), []byte("s"), []byte("v"))
	c.Delete(journal.KindState, 7, []byte("p"), nil)
	c.dropBelow(journal.KindState, 8, []byte("b"))
	c.DropTable(journal.KindState, 8)
	f.Add(c.State[0])
	f.Add([]byte{})
	f.Add(ref{changes: 1}.encode())
	f.Add([]byte{1, 1, 0, 0, 0, 7, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, payload []byte) {
		if _, file, err := inspect(payload); err != nil && !errors.Is(err, ErrCorrupt) || err == nil && file.Bytes < 0 {
			t.Errorf("file %+v, error %v", file, err)
		}
		d := NewDecoder(payload)
		total := 0
		for ch := (Change{}); d.Next(&ch); {
			total += len(ch.Prefix) + len(ch.Suffix) + len(ch.Value)
		}
		if total > len(payload) {
			t.Errorf("%d bytes out of %d", total, len(payload))
		}
		if err := d.Err(); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("error %v", err)
		}
	})
}

// TestUpdatesDoNotAllocate holds the hot path to what the package promises.
func TestUpdatesDoNotAllocate(t *testing.T) {
	tables := NewTables(Options{})
	defer tables.Close()
	p := tables.Point(Spec{Name: "hot", Ephemeral: true, ValueBytes: 16})
	var keys Keys
	for i := range 256 {
		keys.Append(binary.BigEndian.AppendUint64(nil, uint64(i)))
	}
	refs := make([]Ref, 256)
	step := func() {
		if err := p.Probe(&keys, refs); err != nil {
			t.Fatal(err)
		}
		for _, r := range refs {
			v, _ := p.Fixed(r, 16)
			v[0]++
		}
		if err := tables.EndEpoch(nil); err != nil {
			t.Fatal(err)
		}
		tables.Committed(0)
	}
	step()
	if n := testing.AllocsPerRun(100, step); n > 3 { // per epoch, none per row
		t.Errorf("%v allocations an epoch of 256 updates", n)
	}
}

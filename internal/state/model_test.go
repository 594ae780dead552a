package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/spill"
	"github.com/leat-io/leat/internal/vfs"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run the random tests with this seed only")
	histories = flag.Int("histories", 20, "random histories of the model test")
)

// seeds are those a random test runs with.
func seeds(n int) []uint64 {
	if *seedFlag != 0 {
		return []uint64{*seedFlag}
	}
	s := make([]uint64, n)
	for i := range s {
		s[i] = uint64(i + 1)
	}
	return s
}

// rowKey is a row of the model: group prefix and suffix.
type rowKey struct{ prefix, suffix string }

// rows is one table of the model.
type rows map[rowKey]string

func (r rows) sorted(keep func(rowKey) bool) []rowKey {
	var keys []rowKey
	for k := range r {
		if keep == nil || keep(k) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b rowKey) int {
		if c := bytes.Compare([]byte(a.prefix), []byte(b.prefix)); c != 0 {
			return c
		}
		return bytes.Compare([]byte(a.suffix), []byte(b.suffix))
	})
	return keys
}

// model is the content of all tables at one instant.
type model [numModelTables]rows

func (m model) clone() (c model) {
	for i := range m {
		c[i] = maps.Clone(m[i])
	}
	return c
}

const (
	plain = iota
	windowed
	view
	ordered
	orderedWindows
	fixed
	numModelTables
)

func modelSpec(i int, fresh bool) Spec {
	return Spec{
		ID: uint32(10 + i), Name: fmt.Sprintf("t%d", i), Fresh: fresh,
		Rows: i == view || i == orderedWindows, Windowed: i == windowed || i == orderedWindows,
	}
}

// unit is one of the simulated journal's.
type unit struct {
	lsn         journal.LSN
	state, rows [][]byte
	after       model
}

type world struct {
	t   *testing.T
	rng *rand.Rand

	fs      *vfs.Mem
	db      *kv.DB
	applier *Applier
	tables  *Tables
	budget  *budget.Budget
	points  [numModelTables]*Point
	ordered [numModelTables]*Ordered

	units      []unit // since the checkpoint
	durable    int    // of units
	lsn        journal.LSN
	checkpoint model // content at the checkpoint
	now, start model
	floor      int64 // windows at or below were dropped

	spills           bool // in this history
	folder           *spill.Folder
	settled          [numModelTables]bool // in this epoch; its rows are not in memory
	spilled          int64
	keptCrash        int // crashes with files that units name
	loads, evictions int64
	torn             int // crashes between two batches of rows or state
}

var errCrash = errors.New("crash")

func windowKey(end int64, key string) string {
	var b [WindowBytes]byte
	putWindowEnd(&b, 1, end)
	return string(b[:]) + key
}

func (w *world) openDB() {
	w.t.Helper()
	db, err := kv.Open(kv.Options{FS: w.fs, Dir: "kv", CacheBytes: 1 << 20, MemTableBytes: 256 << 10})
	if err != nil {
		w.t.Fatal(err)
	}
	w.db = db
	if w.folder, err = spill.OpenFolder(w.fs, "spill", nil); err != nil {
		w.t.Fatal(err)
	}
	if w.applier, err = NewApplier(ApplierOptions{DB: db, Budget: budget.New("applier", 0), Spill: w.folder, RecoverBytes: 2 << 10}); err != nil {
		w.t.Fatal(err)
	}
	w.applier.batchBytes = 300
}

func (w *world) openTables(fresh bool) {
	w.budget = budget.New("node", 0)
	limit := int64(24 << 10)
	if w.rng.IntN(3) == 0 { // all that was read ahead fits
		limit = 1 << 20
	}
	o := Options{Name: "state", DB: w.db, Applier: w.applier, Budget: w.budget, Limit: limit}
	if w.spills {
		o.Spill, o.SpillBytes = w.folder, 500
	}
	w.tables = NewTables(o)
	w.settled = [numModelTables]bool{}
	for i := range numModelTables {
		spec := modelSpec(i, fresh)
		spec.Mine = func([]byte) bool { return true }
		if i == ordered || i == orderedWindows {
			w.ordered[i] = w.tables.Ordered(spec)
			w.ordered[i].big = 600
		} else {
			w.points[i] = w.tables.Point(spec)
		}
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) randomValue() []byte {
	n := w.rng.IntN(40)
	if w.rng.IntN(50) == 0 {
		n = w.rng.IntN(3000)
	}
	if w.rng.IntN(4000) == 0 {
		n = 40 << 10
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.rng.IntN(4))
	}
	return b
}

func (w *world) randomPrefix(table int) string {
	switch table {
	case windowed, orderedWindows:
		return windowKey(w.floor+1+w.rng.Int64N(6), fmt.Sprintf("k%d", w.rng.IntN(12)))
	case ordered:
		return fmt.Sprintf("g%d", w.rng.IntN(12))
	}
	return fmt.Sprintf("key%d", w.rng.IntN(150))
}

func opt(m rows, k rowKey) []byte {
	if v, ok := m[k]; ok {
		return append([]byte{}, v...)
	}
	return nil
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// pointStep probes some keys and does something with them.
func (w *world) pointStep(i int) {
	p := w.points[i]
	if w.settled[i] {
		return
	}
	if w.rng.IntN(40) == 0 {
		p.Revert()
		was := w.now[i]
		w.now[i] = maps.Clone(w.start[i])
		maps.DeleteFunc(w.now[i], func(k rowKey, _ string) bool { // what was dropped stays so
			_, there := was[k]
			return modelSpec(i, false).Windowed && WindowEnd([]byte(k.prefix)) <= w.floor && !there
		})
		return
	}
	var keys Keys
	n := 1 + w.rng.IntN(12)
	for range n {
		keys.Append([]byte(w.randomPrefix(i)))
	}
	refs := make([]Ref, n)
	w.must(p.Probe(&keys, refs))
	for j, r := range refs {
		k := rowKey{prefix: string(keys.At(j))}
		want, old := opt(w.now[i], k), opt(w.start[i], k)
		if !same(p.Value(r), want) {
			w.t.Fatalf("table %d key %q: value %q, want %q", i, k.prefix, p.Value(r), want)
		}
		if !same(p.Old(r), old) {
			w.t.Fatalf("table %d key %q: old value %q, want %q", i, k.prefix, p.Old(r), old)
		}
		if string(p.Key(r)) != k.prefix {
			w.t.Fatalf("table %d: key %q, want %q", i, p.Key(r), k.prefix)
		}
		if i == fixed {
			v, created := p.Fixed(r, 16)
			if created != (want == nil) {
				w.t.Fatalf("key %q: created %v with %q", k.prefix, created, want)
			}
			binary.LittleEndian.PutUint64(v[8:], binary.LittleEndian.Uint64(v[8:])+1)
			w.now[i][k] = string(v)
			continue
		}
		switch w.rng.IntN(6) {
		case 0:
		case 1:
			p.Delete(r)
			delete(w.now[i], k)
		case 2:
			if m := p.Mutable(r); len(m) > 0 {
				m[0]++
				w.now[i][k] = string(m)
			}
		case 3: // the old value again
			if old != nil {
				p.Set(r, old)
				w.now[i][k] = string(old)
			}
		default:
			v := w.randomValue()
			p.Set(r, v)
			w.now[i][k] = string(v)
		}
	}
}

// settle lets go of what the epoch has changed in a table.
func (w *world) settle(i int) {
	p := w.points[i]
	before := len(p.Changed())
	p.Settle()
	if before > 0 && len(p.Changed()) == 0 {
		if p.Changing() != 0 || !w.spills {
			w.t.Fatalf("table %d: %d bytes changed after they were settled", i, p.Changing())
		}
		w.settled[i] = true
	}
}

// orderedStep probes some groups and does something with them.
func (w *world) orderedStep(i int) {
	o := w.ordered[i]
	var keys Keys
	n := 1 + w.rng.IntN(4)
	for range n {
		keys.Append([]byte(w.randomPrefix(i)))
	}
	refs := make([]Ref, n)
	w.must(o.Probe(&keys, refs))
	suffix := func() []byte {
		if w.rng.IntN(20) == 0 {
			return []byte{}
		}
		return []byte(fmt.Sprintf("s%03d", w.rng.IntN(60)))
	}
	for j, g := range refs {
		prefix := string(keys.At(j))
		for range w.rng.IntN(6) {
			s := suffix()
			k := rowKey{prefix, string(s)}
			got, err := o.Get(g, s)
			w.must(err)
			if want := opt(w.now[i], k); !same(got, want) {
				w.t.Fatalf("table %d %q: value %q, want %q", i, k, got, want)
			}
			switch w.rng.IntN(5) {
			case 0, 1:
				w.must(o.Delete(g, s))
				delete(w.now[i], k)
			default:
				v := w.randomValue()
				w.must(o.Set(g, s, v))
				w.now[i][k] = string(v)
			}
		}
		w.scanGroup(i, g, prefix)
	}
}

// scanGroup compares a random scan, first and last with the model, deleting some rows on the way.
func (w *world) scanGroup(i int, g Ref, prefix string) {
	o := w.ordered[i]
	var from, to []byte
	if w.rng.IntN(2) == 0 {
		from = []byte(fmt.Sprintf("s%03d", w.rng.IntN(60)))
	}
	if w.rng.IntN(2) == 0 {
		to = []byte(fmt.Sprintf("s%03d", w.rng.IntN(60)))
	}
	reverse := w.rng.IntN(2) == 0
	want := w.now[i].sorted(func(k rowKey) bool {
		return k.prefix == prefix && (from == nil || k.suffix >= string(from)) && (to == nil || k.suffix < string(to))
	})
	if reverse {
		slices.Reverse(want)
	}
	deletes := w.rng.IntN(8) == 0
	var it OrderedIter
	w.must(o.Scan(&it, g, from, to, reverse))
	n := 0
	for it.Next() {
		if n >= len(want) || string(it.Suffix()) != want[n].suffix || string(it.Value()) != w.now[i][want[n]] {
			w.t.Fatalf("table %d group %q scan %q to %q reverse %v: row %d is %q, want %q", i, prefix, from, to, reverse, n, it.Suffix(), want[n:])
		}
		if deletes && w.rng.IntN(2) == 0 {
			w.must(it.Delete())
			delete(w.now[i], want[n])
		}
		n++
	}
	w.must(it.Close())
	if n != len(want) {
		w.t.Fatalf("table %d group %q scan %q to %q reverse %v: %d rows, want %d", i, prefix, from, to, reverse, n, len(want))
	}
	all := w.now[i].sorted(func(k rowKey) bool { return k.prefix == prefix })
	first, v, ok, err := o.First(g)
	w.must(err)
	if ok != (len(all) > 0) || ok && (string(first) != all[0].suffix || string(v) != w.now[i][all[0]]) {
		w.t.Fatalf("table %d group %q: first %q %v, want %q", i, prefix, first, ok, all)
	}
	last, v, ok, err := o.Last(g)
	w.must(err)
	if ok != (len(all) > 0) || ok && (string(last) != all[len(all)-1].suffix || string(v) != w.now[i][all[len(all)-1]]) {
		w.t.Fatalf("table %d group %q: last %q %v, want %q", i, prefix, last, ok, all)
	}
}

func (w *world) dropWindows() {
	w.floor += w.rng.Int64N(3)
	for _, i := range []int{windowed, orderedWindows} {
		var min int64
		var ok bool
		var err error
		if i == windowed {
			w.points[i].DropWindows(w.floor)
			min, ok, err = w.points[i].MinWindow()
		} else {
			w.ordered[i].DropWindows(w.floor)
			min, ok, err = w.ordered[i].MinWindow()
		}
		w.must(err)
		if ok && min <= w.floor {
			w.t.Fatalf("table %d: window %d after dropping up to %d", i, min, w.floor)
		}
		for k := range w.now[i] {
			if WindowEnd([]byte(k.prefix)) <= w.floor {
				delete(w.now[i], k)
			} else if !ok || WindowEnd([]byte(k.prefix)) < min {
				w.t.Fatalf("table %d: first window %d %v, but there is %q", i, min, ok, k)
			}
		}
	}
}

// checkChanged compares Changed with the difference of the models.
func (w *world) checkChanged() {
	for i := range numModelTables {
		if w.settled[i] {
			continue
		}
		got := map[rowKey]bool{}
		if p := w.points[i]; p != nil {
			for _, r := range p.Changed() {
				k := rowKey{prefix: string(p.Key(r))}
				if got[k] {
					w.t.Fatalf("table %d: %q twice in Changed", i, k)
				}
				got[k] = true
				if !same(p.Old(r), opt(w.start[i], k)) || !same(p.Value(r), opt(w.now[i], k)) {
					w.t.Fatalf("table %d changed %q: %q to %q, want %q to %q", i, k, p.Old(r), p.Value(r), opt(w.start[i], k), opt(w.now[i], k))
				}
			}
		} else {
			o := w.ordered[i]
			groups := map[string]bool{}
			for _, g := range o.ChangedGroups() {
				groups[string(o.Prefix(g))] = true
			}
			for j := range o.Changed() {
				g, suffix, old, value := o.Change(j)
				k := rowKey{string(o.Prefix(g)), string(suffix)}
				if got[k] || !groups[k.prefix] {
					w.t.Fatalf("table %d: %q twice in Changed, or not in ChangedGroups", i, k)
				}
				got[k] = true
				if !same(old, opt(w.start[i], k)) || !same(value, opt(w.now[i], k)) {
					w.t.Fatalf("table %d changed %q: %q to %q, want %q to %q", i, k, old, value, opt(w.start[i], k), opt(w.now[i], k))
				}
			}
		}
		for _, pair := range [][2]rows{{w.start[i], w.now[i]}, {w.now[i], w.start[i]}} {
			for k, v := range pair[0] {
				if v2, ok := pair[1][k]; (!ok || v2 != v) && !got[k] {
					if modelSpec(i, false).Windowed && WindowEnd([]byte(k.prefix)) <= w.floor {
						continue // forgotten as a whole
					}
					w.t.Fatalf("table %d: change of %q is not in Changed", i, k)
				}
			}
		}
	}
}

func (w *world) endEpoch() {
	w.checkChanged()
	var c Changes
	w.must(w.tables.EndEpoch(&c))
	w.lsn += journal.LSN(1 + w.rng.IntN(100))
	u := unit{lsn: w.lsn, state: c.State, rows: c.Rows, after: w.now.clone()}
	w.units = append(w.units, u)
	w.start = w.now.clone()
	for _, b := range c.State {
		w.must(w.applier.Apply(u.lsn, journal.KindState, b))
	}
	for _, b := range c.Rows {
		w.must(w.applier.Apply(u.lsn, journal.KindRows, b))
	}
	w.tables.Committed(u.lsn)
	w.spilled += c.Spilled()
	if c.Settled() {
		w.durable = len(w.units)
		w.must(w.applier.Publish(u.lsn))
		w.must(w.applier.ApplyState(u.lsn))
	} else if w.settled != [numModelTables]bool{} {
		w.t.Fatal("rows were settled, and nothing is in files")
	}
	w.settled = [numModelTables]bool{}
}

func (w *world) publish() {
	if w.durable == 0 {
		return
	}
	u := w.units[w.rng.IntN(w.durable)]
	w.must(w.applier.Publish(u.lsn))
	snap, lsn := w.applier.Snapshot()
	defer snap.Release()
	want := w.checkpoint
	for _, u := range w.units {
		if u.lsn <= lsn {
			want = u.after
		}
	}
	for _, i := range []int{view, orderedWindows} {
		w.compareStored(snap, i, want[i], fmt.Sprintf("published at %d", lsn))
	}
}

func (w *world) compareStored(snap *kv.Snapshot, i int, want rows, what string) {
	it, err := snap.ScanPrefix(modelSpec(i, false).ID, nil)
	w.must(err)
	got := rows{}
	for it.Next() {
		got[rowKey{string(it.Prefix()), string(it.Suffix())}] = string(it.Value())
	}
	w.must(it.Close())
	if !maps.Equal(got, want) {
		w.t.Fatalf("table %d, %s: kv has %d rows, want %d", i, what, len(got), len(want))
	}
}

func (w *world) doCheckpoint() {
	if w.durable == 0 {
		return
	}
	lsn := w.units[w.durable-1].lsn
	w.must(w.applier.ApplyState(lsn))
	w.must(w.applier.Publish(lsn))
	w.must(w.db.Flush())
	w.must(w.applier.Checkpointed(lsn))
	w.checkpoint = w.units[w.durable-1].after
	w.units = slices.Clone(w.units[w.durable:])
	w.durable = 0
}

// crash loses memory, what the disk has not synced, and units that are not durable, or some of them.
func (w *world) crash() {
	keep := w.durable + w.rng.IntN(len(w.units)-w.durable+1)
	w.loads += w.tables.Loads()
	w.evictions += w.tables.Evictions()
	w.tables.Close()
	w.applier.Close()
	fs := vfs.CrashClone(w.fs, w.rng.IntN(101), w.rng)
	_ = w.db.Close()
	w.fs = fs
	w.units = w.units[:keep]
	w.durable = keep
	w.openDB()
	w.now = w.checkpoint.clone()
	last := w.db.Mark(journal.KindState)
	for _, u := range w.units {
		for _, b := range u.state {
			w.must(w.applier.Apply(u.lsn, journal.KindState, b))
		}
		for _, b := range u.rows {
			w.must(w.applier.Apply(u.lsn, journal.KindRows, b))
		}
		w.now, last = u.after.clone(), u.lsn
	}
	w.must(w.applier.FinishRecovery(last))
	names, err := w.fs.List("spill")
	w.must(err)
	if len(names) != len(w.applier.named) {
		w.t.Fatalf("%d files after recovery, units name %d", len(names), len(w.applier.named))
	}
	if len(names) > 0 {
		w.keptCrash++
	}
	w.lsn = max(w.lsn, last)
	w.start = w.now.clone()
	w.openTables(false)
	if w.rng.IntN(3) == 0 {
		w.checkAll()
	}
}

// checkAll reads every table whole.
func (w *world) checkAll() {
	for i := range numModelTables {
		want := w.now[i].sorted(nil)
		n := 0
		check := func(k rowKey, v []byte) {
			w.t.Helper()
			if n >= len(want) || k != want[n] || string(v) != w.now[i][k] {
				w.t.Fatalf("table %d: row %d of the scan is %q, want %q", i, n, k, want[n:min(len(want), n+1)])
			}
			n++
		}
		if p := w.points[i]; p != nil {
			var it PointIter
			w.must(p.Scan(&it, nil, nil))
			for it.Next() {
				check(rowKey{prefix: string(it.Key())}, it.Value())
			}
			w.must(it.Close())
		} else {
			o := w.ordered[i]
			w.must(o.ScanGroups(nil, nil, func(prefix []byte) (bool, error) {
				g, err := o.ProbeOne(prefix)
				if err != nil {
					return false, err
				}
				var it OrderedIter
				if err := o.Scan(&it, g, nil, nil, false); err != nil {
					return false, err
				}
				for it.Next() {
					check(rowKey{string(prefix), string(it.Suffix())}, it.Value())
				}
				return true, it.Close()
			}))
		}
		if n != len(want) {
			w.t.Fatalf("table %d: a scan has %d rows, want %d", i, n, len(want))
		}
	}
	// Window by window.
	ends, err := w.points[windowed].Windows(nil, 1<<40)
	w.must(err)
	got := rows{}
	for _, end := range ends {
		var it PointIter
		w.must(w.points[windowed].ScanWindow(&it, end))
		for it.Next() {
			got[rowKey{prefix: string(it.Key())}] = string(it.Value())
		}
		w.must(it.Close())
	}
	if !maps.Equal(got, w.now[windowed]) {
		w.t.Fatalf("windows have %d rows, want %d", len(got), len(w.now[windowed]))
	}
}

func (w *world) step() {
	switch n := w.rng.IntN(100); {
	case n < 45:
		w.pointStep([]int{plain, windowed, view, fixed}[w.rng.IntN(4)])
	case n < 65:
		w.orderedStep([]int{ordered, orderedWindows}[w.rng.IntN(2)])
	case n < 67:
		w.dropWindows()
	case n < 68:
		w.settle([]int{plain, windowed, view, fixed}[w.rng.IntN(4)])
	case n < 80:
		w.endEpoch()
	case n < 85:
		w.durable += w.rng.IntN(len(w.units) - w.durable + 1)
	case n < 88:
		w.publish()
	case n < 90:
		if w.durable > 0 {
			w.must(w.applier.ApplyState(w.units[w.rng.IntN(w.durable)].lsn))
		}
	case n < 95:
		w.endEpoch()
		w.tables.Evict()
		for range w.rng.IntN(4) {
			_, err := w.tables.Preload(1 + w.rng.IntN(50))
			w.must(err)
		}
	case n < 96:
		w.doCheckpoint()
	case n < 97:
		if w.settled == [numModelTables]bool{} {
			w.checkAll()
		}
	case n < 98:
		if w.durable > 0 {
			w.must(w.db.Flush())
		}
	default:
		switch w.rng.IntN(6) {
		case 0, 1:
			w.crash()
		case 2:
			w.crashWhileApplying()
		}
	}
}

// crashWhileApplying crashes between two batches of ApplyState, the first of which are on disk.
func (w *world) crashWhileApplying() {
	if w.durable == 0 {
		return
	}
	w.applier.afterBatch = func() error {
		if w.rng.IntN(4) > 0 {
			return nil
		}
		w.must(w.db.Flush())
		w.torn++
		return errCrash
	}
	last := w.units[w.durable-1].lsn
	if err := errors.Join(w.applier.ApplyState(last), w.applier.Publish(last)); err != nil && !errors.Is(err, errCrash) {
		w.t.Fatal(err)
	}
	w.crash()
}

// TestModel runs random histories of changes, epochs, eviction, publishing, checkpoints and crashes against plain maps.
func TestModel(t *testing.T) {
	t.Parallel()
	var loads, evictions, spilled int64
	torn, kept := 0, 0
	for _, seed := range seeds(*histories) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), fs: vfs.NewCrashable(), spills: seed%2 == 0}
			w.openDB()
			w.must(w.applier.FinishRecovery(0))
			w.openTables(true)
			for i := range w.now {
				w.now[i], w.start[i], w.checkpoint[i] = rows{}, rows{}, rows{}
			}
			for range 1500 {
				w.step()
			}
			w.endEpoch()
			w.checkAll()
			spilled += w.spilled
			kept += w.keptCrash
			loads += w.loads + w.tables.Loads()
			evictions += w.evictions + w.tables.Evictions()
			torn += w.torn
			w.tables.Close()
			if used := w.budget.Used(); used != 0 {
				t.Errorf("%d bytes in the budget after Close", used)
			}
			w.applier.Close()
			if used := w.applier.budget.Used(); used != 0 {
				t.Errorf("%d bytes in the applier's budget after Close", used)
			}
			w.must(w.db.Close())
		})
	}
	t.Logf("%d loads, %d evictions, %d bytes spilled, %d crashes between batches, %d with files that are named", loads, evictions, spilled, torn, kept)
	if *seedFlag == 0 && (loads == 0 || evictions == 0 || torn == 0 || spilled == 0 || kept == 0) {
		t.Error("the histories do not reach what they are for")
	}
}

package kv

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/vfs"
)

var seedFlag = flag.Uint64("seed", 0, "run only this seed")

func seeds(n uint64) []uint64 {
	if *seedFlag != 0 {
		return []uint64{*seedFlag}
	}
	s := make([]uint64, n)
	for i := range s {
		s[i] = uint64(i) + 1
	}
	return s
}

type row struct {
	table          uint32
	prefix, suffix string
}

func randomBytes(rng *rand.Rand, most int) string {
	b := make([]byte, rng.IntN(most+1))
	for i := range b {
		b[i] = []byte{0, 0, 1, 2, 0xff, 'a'}[rng.IntN(6)]
	}
	return string(b)
}

func compareRows(a, b row) int {
	if a.table != b.table {
		return int(a.table) - int(b.table)
	}
	if c := bytes.Compare([]byte(a.prefix), []byte(b.prefix)); c != 0 {
		return c
	}
	return bytes.Compare([]byte(a.suffix), []byte(b.suffix))
}

// TestComparer holds the comparer to the order of the contract and to what Pebble demands of one.
func TestComparer(t *testing.T) {
	t.Parallel()
	sign := func(n int) int { return max(-1, min(1, n)) }
	for _, seed := range seeds(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var rows []row
		for range 150 {
			rows = append(rows, row{uint32(rng.IntN(3)), randomBytes(rng, 5), randomBytes(rng, 5)})
		}
		rows = append(rows, row{1, "", ""}, row{1, "p", string(bytes.Repeat([]byte{7}, maxSuffix))}, row{1, "p", string(bytes.Repeat([]byte{7}, 254))})
		for _, a := range rows {
			ka := AppendKey(nil, a.table, []byte(a.prefix), []byte(a.suffix))
			if p, s := splitKey(ka); string(p) != a.prefix || string(s) != a.suffix {
				t.Fatalf("seed %d: %+v splits into %q, %q", seed, a, p, s)
			}
			bare := ka[:split(ka)]
			if split(bare) != len(bare) || split(ka[len(bare):]) != 0 {
				t.Fatalf("seed %d: %+v: a prefix or suffix of its key is none by itself", seed, a)
			}
			if next := comparer.ImmediateSuccessor(nil, bare); split(next) != len(next) || compareKeys(bare, next) >= 0 {
				t.Fatalf("seed %d: immediate successor of %x is %x", seed, bare, next)
			}
			if s := comparer.Successor(nil, ka); compareKeys(ka, s) > 0 {
				t.Fatalf("seed %d: successor of %x is %x", seed, ka, s)
			}
			for _, b := range rows {
				kb := AppendKey(nil, b.table, []byte(b.prefix), []byte(b.suffix))
				want := sign(compareRows(a, b))
				if got := compareKeys(ka, kb); got != want {
					t.Fatalf("seed %d: compare %+v %+v = %d, want %d", seed, a, b, got, want)
				}
				if x, y := comparer.AbbreviatedKey(ka), comparer.AbbreviatedKey(kb); x < y && want >= 0 {
					t.Fatalf("seed %d: abbreviated keys of %+v %+v", seed, a, b)
				}
				if want < 0 {
					if s := comparer.Separator(nil, ka, kb); compareKeys(ka, s) > 0 || compareKeys(s, kb) >= 0 {
						t.Fatalf("seed %d: separator of %x and %x is %x", seed, ka, kb, s)
					}
				}
			}
		}
	}
	if err := pebble.CheckComparer(comparer, [][]byte{AppendKey(nil, 1, nil, nil), AppendKey(nil, 1, []byte("a"), nil), AppendKey(nil, 1, []byte("b"), nil)},
		[][]byte{nil, {1, 0, 3}, {1, 2, 0, 4}}); err != nil {
		t.Fatal(err)
	}
}

// TestScans compares everything that reads with a sorted slice, across flushes.
func TestScans(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(6) {
		rng := rand.New(rand.NewPCG(seed, 2))
		d, err := Open(Options{FS: vfs.NewMem(), Dir: "db", CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		model := map[row]string{}
		for range 40 {
			b := d.NewBatch()
			for range rng.IntN(30) {
				r := row{uint32(1 + rng.IntN(2)), randomBytes(rng, 3), randomBytes(rng, 3)}
				switch rng.IntN(12) {
				case 0, 1:
					b.Delete(r.table, []byte(r.prefix), []byte(r.suffix))
					delete(model, r)
				case 2:
					from, to := []byte(r.prefix), []byte(randomBytes(rng, 3))
					if bytes.Compare(from, to) > 0 {
						from, to = to, from
					}
					if rng.IntN(4) == 0 {
						to = nil
					}
					b.DeleteRange(r.table, from, to)
					for k := range model {
						if k.table == r.table && k.prefix >= string(from) && (to == nil || k.prefix < string(to)) {
							delete(model, k)
						}
					}
				default:
					v := fmt.Sprint(rng.Uint32())
					b.Set(r.table, []byte(r.prefix), []byte(r.suffix), []byte(v))
					model[r] = v
				}
			}
			if err := b.Commit(); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(4) == 0 {
				if err := d.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := d.Snapshot()
		check := func(what string, it *Iter, err error, keep func(row) bool) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			var keys []row
			for k := range model {
				if keep(k) {
					keys = append(keys, k)
				}
			}
			slices.SortFunc(keys, compareRows)
			for _, k := range keys {
				want = append(want, fmt.Sprintf("%q %q %s", k.prefix, k.suffix, model[k]))
			}
			for it.Next() {
				got = append(got, fmt.Sprintf("%q %q %s", it.Prefix(), it.Suffix(), it.Value()))
			}
			if err := it.Close(); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: %s\n got %q\nwant %q", seed, what, got, want)
			}
		}
		it, err := s.NewIter(1)
		check("table", it, err, func(r row) bool { return r.table == 1 })
		for range 60 {
			p, f := randomBytes(rng, 3), randomBytes(rng, 2)
			it, err := s.ScanGroup(2, []byte(p), []byte(f))
			check("group", it, err, func(r row) bool { return r.table == 2 && r.prefix == p && r.suffix >= f })
			it, err = s.ScanPrefix(1, []byte(p))
			check("prefix", it, err, func(r row) bool { return r.table == 1 && len(r.prefix) >= len(p) && r.prefix[:len(p)] == p })
			it, err = s.ScanRange(1, []byte(p), nil)
			check("range", it, err, func(r row) bool { return r.table == 1 && r.prefix >= p })
			it, err = s.NewIter(1)
			if err == nil {
				it.SeekGE([]byte(p), []byte(f))
			}
			check("seek", it, err, func(r row) bool { return r.table == 1 && compareRows(r, row{1, p, f}) >= 0 })
			r := row{1, p, f}
			v, ok, err := s.Get(1, []byte(p), []byte(f))
			if want, has := model[r]; err != nil || ok != has || string(v) != want {
				t.Fatalf("seed %d: get %+v: %q %v %v, want %q %v", seed, r, v, ok, err, want, has)
			}
		}
		s.Release()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPrefixWithoutLog is what the design stands on: without its write-ahead log, a crash leaves the database at
// exactly the first n batches.
func TestPrefixWithoutLog(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		fs := vfs.NewCrashable()
		d, err := Open(Options{FS: fs, Dir: "db", CacheBytes: 1 << 20, MemTableBytes: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		batches := 300 + rng.IntN(300)
		flushed := 0
		for n := 1; n <= batches; n++ {
			b := d.NewBatch()
			var v [8]byte
			binary.BigEndian.PutUint64(v[:], uint64(n))
			b.Set(1, []byte("last"), nil, v[:])
			b.Set(1, fmt.Appendf(nil, "batch/%06d", n), []byte("s"), bytes.Repeat([]byte{byte(n)}, rng.IntN(2000)))
			b.SetMark(journal.KindRows, journal.LSN(n))
			if err := b.Commit(); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(100) == 0 {
				if err := d.Flush(); err != nil {
					t.Fatal(err)
				}
				flushed = n
			}
		}
		crashed := vfs.CrashClone(fs, rng.IntN(101), rng)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d, err = Open(Options{FS: crashed, Dir: "db", CacheBytes: 1 << 20})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		last := int(d.Mark(journal.KindRows))
		v, _, err := d.Get(1, []byte("last"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if last > 0 && int(binary.BigEndian.Uint64(v)) != last || last < flushed {
			t.Fatalf("seed %d: mark %d, last %x, flushed %d", seed, last, v, flushed)
		}
		for n := 1; n <= batches; n++ {
			_, ok, err := d.Get(1, fmt.Appendf(nil, "batch/%06d", n), []byte("s"))
			if err != nil || ok != (n <= last) {
				t.Fatalf("seed %d: batch %d there %v, last %d: %v", seed, n, ok, last, err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMetaReplay applies units again from their start, as recovery does, after a crash in the middle of one.
func TestMetaReplay(t *testing.T) {
	t.Parallel()
	entry := func(key, value string) []byte {
		u := journal.NewUnit()
		var v []byte
		if value != "" {
			v = []byte(value)
		}
		AppendMeta(u, key, v)
		_, p := u.Entry(0)
		return p
	}
	type step struct {
		lsn        journal.LSN
		key, value string
	}
	steps := []step{{10, "topic/a", "1"}, {20, "topic/a", ""}, {20, "topic/b", "2"}, {20, "topic/a", "3"}, {30, "group/x", "9"}}
	for stop := range len(steps) + 1 {
		fs := vfs.NewCrashable()
		d, err := Open(Options{FS: fs, Dir: "db"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps[:stop] {
			if err := d.ApplyMeta(s.lsn, entry(s.key, s.value)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Flush(); err != nil {
			t.Fatal(err)
		}
		count := 0
		if d, err = Open(Options{FS: vfs.CrashClone(fs, 0, nil), Dir: "db"}); err != nil {
			t.Fatal(err)
		}
		before := d.meta.done
		for i, s := range steps {
			if err := d.ApplyMeta(s.lsn, entry(s.key, s.value)); err != nil {
				t.Fatal(err)
			}
			if i < stop && d.meta.done != before {
				t.Fatalf("stop %d: step %d, which is at the mark, was applied again", stop, i)
			}
		}
		want := []string{"topic/a=3", "topic/b=2"}
		err = d.ScanMeta("topic/", func(key string, value []byte) error {
			if got := key + "=" + string(value); got != want[count] {
				t.Fatalf("stop %d: %s, want %s", stop, got, want[count])
			}
			count++
			return nil
		})
		if err != nil || count != len(want) || d.Mark(journal.KindMeta) != 30 {
			t.Fatal(count, err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzDecodeMeta(f *testing.F) {
	f.Add([]byte("\x01a\x01b"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		key, value, err := DecodeMeta(b)
		if err != nil {
			return
		}
		u := journal.NewUnit()
		AppendMeta(u, key, value)
		_, p := u.Entry(0)
		k2, v2, err := DecodeMeta(p)
		if err != nil || k2 != key || !bytes.Equal(value, v2) || (value == nil) != (v2 == nil) {
			t.Fatal(k2, v2, err)
		}
	})
}

package commitlog_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/commitlog"
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

const partitions = 3

// parts are the journal, the partitions and the database of one process.
type parts struct {
	j    *journal.Journal
	m    *commitlog.Manager
	db   *kv.DB
	logs [partitions]*commitlog.Log
	next [partitions]int64
}

// apply is a small applier: what the broker and the engine do, without them.
func (p *parts) apply(lsn journal.LSN, kind journal.Kind, payload []byte) error {
	switch kind {
	case journal.KindBatch:
		return p.logs[binary.BigEndian.Uint32(payload)].Append(payload[4:])
	case journal.KindMeta:
		return p.db.ApplyMeta(lsn, payload)
	case journal.KindRows:
		if lsn <= p.db.Mark(journal.KindRows) {
			return nil
		}
		b := p.db.NewBatch()
		b.Set(1, payload[:4], payload[4:8], payload[8:])
		b.SetMark(journal.KindRows, lsn)
		return b.Commit()
	}
	return fmt.Errorf("unexpected kind %d", kind)
}

func openParts(t *testing.T, fs vfs.FS, c clock.Clock) (*parts, journal.LSN) {
	t.Helper()
	p := &parts{}
	var err error
	if p.db, err = kv.Open(kv.Options{FS: fs, Dir: "d/kv", CacheBytes: 1 << 20, MemTableBytes: 64 << 10}); err != nil {
		t.Fatal(err)
	}
	if p.m, err = commitlog.NewManager(commitlog.ManagerOptions{FS: fs, Dir: "d/log", Clock: c, MaxFiles: 8}); err != nil {
		t.Fatal(err)
	}
	for i := range p.logs {
		if p.logs[i], err = p.m.Open(fmt.Sprintf("t-%d", i), [16]byte{7}, commitlog.Config{SegmentBytes: 3000, IndexIntervalBytes: 200}); err != nil {
			t.Fatal(err)
		}
	}
	if p.j, err = journal.Open(journal.Options{FS: fs, Dir: "d/journal", SegmentBytes: 64 << 10, FragmentBytes: 3 << 10}); err != nil {
		t.Fatal(err)
	}
	last, err := p.j.Recover(p.apply)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range p.logs {
		p.next[i] = l.EndOffset()
	}
	p.j.SetApply(p.apply)
	return p, last
}

type modelUnit struct {
	lsn     journal.LSN
	batches [][]byte // with the partition in front
	meta    [][2]string
	row     string // key, suffix and value
}

var (
	togetherSeed = flag.Uint64("together-seed", 0, "run only this history of TestTogether")
	togetherN    = flag.Uint64("together", 40, "how many histories of TestTogether to run")
)

// TestTogether crashes journal, partitions and database at once, between any two steps and any number of times: what is found is always
// a prefix of the units, with all that was acknowledged, at the offsets that were assigned.
func TestTogether(t *testing.T) {
	t.Parallel()
	from, n := uint64(1), *togetherN
	if *togetherSeed != 0 {
		from, n = *togetherSeed, 1
	}
	for seed := from; seed < from+n; seed++ {
		if !t.Run(fmt.Sprintf("together-seed=%d", seed), func(t *testing.T) { together(t, rand.New(rand.NewPCG(seed, 8))) }) {
			return
		}
	}
}

func together(t *testing.T, rng *rand.Rand) {
	fs := vfs.NewCrashable()
	now := clock.NewManual(time.UnixMilli(1000))
	var model []modelUnit
	var acked, ckpt journal.LSN
	for life := range 2 + rng.IntN(5) {
		p, last := openParts(t, fs, now)
		last = max(last, ckpt-min(ckpt, 1))
		for len(model) > 0 && model[len(model)-1].lsn > last {
			if lost := model[len(model)-1]; lost.lsn <= acked {
				t.Fatalf("life %d: unit %d was acknowledged and is lost", life, lost.lsn)
			}
			model = model[:len(model)-1]
		}
		compareWithModel(t, p, model)

		var crashed *vfs.Mem
		crash := func() {
			if crashed == nil {
				crashed = vfs.CrashClone(fs, []int{0, 30, 70, 100}[rng.IntN(4)], rng)
			}
		}
		step := func() bool {
			ok := p.j.Step()
			if err := p.j.Err(); err != nil {
				t.Fatal(err)
			}
			if crashed == nil {
				acked = max(acked, p.j.Durable())
			}
			return ok
		}
		for range rng.IntN(80) {
			switch op := rng.IntN(20); {
			case op < 9:
				model = append(model, commitRandom(t, p, rng, len(model)))
			case op < 19:
				step()
			default:
				// A checkpoint, and perhaps the crash in the middle of it.
				where := rng.IntN(12)
				lsn := p.j.Durable()
				if err := p.db.Flush(); err != nil {
					t.Fatal(err)
				}
				if where == 0 {
					crash()
				}
				err := p.m.Sync(context.Background(), func(context.Context) error {
					for p.j.Durable() < p.j.Ordered() && step() {
						if where == 1 && rng.IntN(4) == 0 {
							crash()
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if where == 2 {
					crash()
				}
				if crashed == nil {
					if err := p.j.Checkpoint(lsn); err != nil {
						t.Fatal(err)
					}
					ckpt = max(ckpt, lsn)
				}
			}
			if crashed != nil {
				// What was acknowledged after the crash never was.
				break
			}
		}
		crash()
		if err := p.db.Close(); err != nil {
			t.Fatal(err)
		}
		fs = crashed
	}
}

func commitRandom(t *testing.T, p *parts, rng *rand.Rand, number int) modelUnit {
	t.Helper()
	u := journal.NewUnit()
	var m modelUnit
	type ref struct{ payload []byte }
	var refs []ref
	for range rng.IntN(3) {
		b := record.NewBuilder(record.None)
		for range 1 + rng.IntN(3) {
			b.Append(int64(number), nil, make([]byte, rng.IntN(400)*(1+7*rng.IntN(2))))
		}
		batch := b.Build(nil)
		payload := u.Reserve(journal.KindBatch, 4+len(batch))
		binary.BigEndian.PutUint32(payload, uint32(rng.IntN(partitions)))
		copy(payload[4:], batch)
		refs = append(refs, ref{payload})
	}
	for range rng.IntN(3) {
		key, value := fmt.Sprintf("k/%d", rng.IntN(5)), fmt.Sprint(rng.IntN(1000))
		if rng.IntN(4) == 0 {
			kv.AppendMeta(u, key, nil)
			value = ""
		} else {
			kv.AppendMeta(u, key, []byte(value))
		}
		m.meta = append(m.meta, [2]string{key, value})
	}
	m.row = fmt.Sprintf("r%03dsuffv%d", rng.IntN(6), number)
	u.Append(journal.KindRows, []byte(m.row))
	lsn, err := p.j.Commit(u, func(journal.LSN) {
		for _, r := range refs {
			part := binary.BigEndian.Uint32(r.payload)
			record.Patch(r.payload[4:], p.next[part], 0)
			h, err := record.ParseHeader(r.payload[4:])
			if err != nil {
				t.Fatal(err)
			}
			p.next[part] = h.NextOffset()
			m.batches = append(m.batches, bytes.Clone(r.payload))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	m.lsn = lsn
	return m
}

func compareWithModel(t *testing.T, p *parts, model []modelUnit) {
	t.Helper()
	var logs [partitions][]byte
	meta, rows := map[string]string{}, map[string]string{}
	for _, u := range model {
		for _, b := range u.batches {
			i := binary.BigEndian.Uint32(b)
			logs[i] = append(logs[i], b[4:]...)
		}
		for _, kv := range u.meta {
			if kv[1] == "" {
				delete(meta, kv[0])
			} else {
				meta[kv[0]] = kv[1]
			}
		}
		rows[u.row[:8]] = u.row[8:]
	}
	for i, l := range p.logs {
		var got []byte
		for at := int64(0); at < l.EndOffset(); {
			c, err := l.Read(at, 2000, math.MaxInt64, true)
			if err != nil {
				t.Fatal(err)
			}
			if got, err = c.AppendTo(got); err != nil {
				t.Fatal(err)
			}
			at = c.Next
			c.Release()
		}
		if !bytes.Equal(got, logs[i]) {
			t.Fatalf("partition %d has %d bytes, want %d", i, len(got), len(logs[i]))
		}
	}
	err := p.db.ScanMeta("k/", func(key string, value []byte) error {
		if meta[key] != string(value) {
			return fmt.Errorf("metadata %s is %q, want %q", key, value, meta[key])
		}
		delete(meta, key)
		return nil
	})
	if err != nil || len(meta) > 0 {
		t.Fatal(err, meta)
	}
	s := p.db.Snapshot()
	defer s.Release()
	it, err := s.ScanPrefix(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		key := string(it.Prefix()) + string(it.Suffix())
		if rows[key] != string(it.Value()) {
			t.Fatalf("row %q is %q, want %q", key, it.Value(), rows[key])
		}
		delete(rows, key)
	}
	if err := it.Close(); err != nil || len(rows) > 0 {
		t.Fatal(err, rows)
	}
}

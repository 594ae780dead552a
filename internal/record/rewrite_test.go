package record

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

type plainRecord struct {
	offset, ms int64
	key, value []byte
	headers    []byte
}

func plainRecords(t *testing.T, batch []byte) []plainRecord {
	t.Helper()
	if _, err := Validate(batch); err != nil {
		t.Fatal(err)
	}
	var r Reader
	if err := r.Reset(batch); err != nil {
		t.Fatal(err)
	}
	var out []plainRecord
	for r.Next() {
		x := r.Record()
		out = append(out, plainRecord{x.Offset, x.Timestamp, bytes.Clone(x.Key), bytes.Clone(x.Value), bytes.Clone(x.Headers)})
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return out
}

// TestRewrite drops records at random, twice, and sets a horizon in between: what stays is as it was.
func TestRewrite(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 1))
	var w Rewriter
	for i := range 300 {
		c := codecs[i%len(codecs)]
		batch, _ := build(c, 1+rng.IntN(40), rng)
		Patch(batch, 1000, 7)
		SetProducer(batch, 5, 2, 77)
		if rng.IntN(4) == 0 {
			SetLogAppendTime(batch, 5000)
		}
		horizonSet := int64(-1)
		for range 3 {
			was, _ := Validate(batch)
			all := plainRecords(t, batch)
			horizon := NoHorizon
			if _, ok := was.DeleteHorizon(); !ok && rng.IntN(2) == 0 {
				horizon = 90_000 + rng.Int64N(1e12)
			}
			if err := w.Reset(batch); err != nil {
				t.Fatal(err)
			}
			var want []plainRecord
			share := rng.IntN(5)
			for k := 0; w.Next(); k++ {
				if rng.IntN(4) < share {
					w.Keep()
					want = append(want, all[k])
				}
			}
			if w.Err() != nil || w.Kept() != len(want) {
				t.Fatal(w.Err(), w.Kept())
			}
			out := w.AppendTo([]byte("x"), horizon)[1:]
			h, err := Validate(out)
			if err != nil {
				t.Fatal(err)
			}
			if h.BaseOffset != 1000 || h.LastOffset() != was.LastOffset() || h.BaseSequence != 77 || h.ProducerID != 5 || h.ProducerEpoch != 2 ||
				h.LeaderEpoch != 7 || int(h.Count) != len(want) || h.LogAppendTime() != was.LogAppendTime() {
				t.Fatalf("%+v of %+v", h, was)
			}
			if horizon != NoHorizon && len(want) > 0 {
				horizonSet = horizon
			}
			if ms, ok := h.DeleteHorizon(); len(want) > 0 && (ok != (horizonSet >= 0) || ok && ms != horizonSet) {
				t.Fatalf("horizon %d %v, want %d", ms, ok, horizonSet)
			}
			if len(want) > 0 && h.Codec() != c {
				t.Fatalf("codec %v, was %v", h.Codec(), c)
			}
			got := plainRecords(t, out)
			largest := int64(-1 << 62)
			for k, g := range got {
				largest = max(largest, g.ms)
				if v := want[k]; g.offset != v.offset || g.ms != v.ms || !bytes.Equal(g.key, v.key) || !bytes.Equal(g.value, v.value) ||
					(g.value == nil) != (v.value == nil) || (g.key == nil) != (v.key == nil) || !bytes.Equal(g.headers, v.headers) {
					t.Fatalf("record %d is %+v, was %+v", k, g, v)
				}
			}
			if len(got) > 0 && h.MaxTimestamp != largest {
				t.Fatalf("largest timestamp %d, want %d", h.MaxTimestamp, largest)
			}
			if len(got) == 0 && (len(out) != HeaderLen || h.MaxTimestamp != was.MaxTimestamp) {
				t.Fatalf("an empty batch has %d bytes, %+v", len(out), h)
			}
			batch = bytes.Clone(out)
			if len(got) == 0 {
				break
			}
		}
	}
}

// TestRewriteVerbatim keeps all: not a byte changes, compressed or not.
func TestRewriteVerbatim(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(10, 1))
	var w Rewriter
	for _, c := range codecs {
		batch, _ := build(c, 30, rng)
		if err := w.Reset(batch); err != nil {
			t.Fatal(err)
		}
		for w.Next() {
			w.Keep()
		}
		if out := w.AppendTo(nil, NoHorizon); !bytes.Equal(out, batch) {
			t.Fatal(c)
		}
	}
}

package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var codecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

func build(c Codec, n int, rng *rand.Rand) ([]byte, []Record) {
	b := NewBuilder(c)
	var want []Record
	for i := range n {
		r := Record{Offset: int64(i), Timestamp: 1000 + rng.Int64N(100) - 50}
		if rng.IntN(4) > 0 {
			r.Key = fmt.Appendf(nil, "key-%d", rng.IntN(100))
		}
		if rng.IntN(8) > 0 {
			r.Value = bytes.Repeat([]byte{byte(i)}, rng.IntN(300))
		}
		var hs []HeaderKV
		for k := range rng.IntN(3) {
			hs = append(hs, HeaderKV{Key: fmt.Sprint("h", k), Value: [][]byte{nil, {}, []byte("v")}[rng.IntN(3)]})
		}
		r.HeaderCount = len(hs)
		b.Append(r.Timestamp, r.Key, r.Value, hs...)
		want = append(want, r)
	}
	return b.Build(nil), want
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	var r Reader
	for _, c := range codecs {
		for _, n := range []int{1, 2, 100, 5000} {
			batch, want := build(c, n, rng)
			Patch(batch, 70, 3)
			h, err := Validate(batch)
			if err != nil || h.BaseOffset != 70 || h.LeaderEpoch != 3 || h.NextOffset() != 70+int64(n) || h.Codec() != c {
				t.Fatal(c, n, h, err)
			}
			if i, err := r.ValidateRecords(batch, false); err != nil {
				t.Fatal(c, n, i, err)
			}
			if err := r.Reset(batch); err != nil {
				t.Fatal(err)
			}
			for i := 0; r.Next(); i++ {
				g, w := r.Record(), want[i]
				if g.Offset != 70+w.Offset || g.Timestamp != w.Timestamp || !bytes.Equal(g.Key, w.Key) || (g.Key == nil) != (w.Key == nil) ||
					!bytes.Equal(g.Value, w.Value) || (g.Value == nil) != (w.Value == nil) || g.HeaderCount != w.HeaderCount {
					t.Fatalf("%v record %d: %+v, want %+v", c, i, g, w)
				}
				count := 0
				g.EachHeader(func(key, _ []byte) bool { count++; return key[0] == 'h' })
				if count != w.HeaderCount {
					t.Fatal(count)
				}
			}
			if r.Err() != nil || int(r.read) != n {
				t.Fatal(r.read, r.Err())
			}
			SetLogAppendTime(batch, 99)
			if _, err := Validate(batch); err != nil {
				t.Fatal(err)
			}
			if err := r.Reset(batch); err != nil || !r.Next() || r.Record().Timestamp != 99 {
				t.Fatal(err, r.Record().Timestamp)
			}
		}
	}
}

// TestAgainstKgo lets franz-go decode what the Builder made, and the Reader what franz-go's compressors made.
func TestAgainstKgo(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(2, 1))
	kcodecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	for i, c := range codecs {
		batch, want := build(c, 500, rng)
		h, _ := ParseHeader(batch)
		p := kmsg.NewFetchResponseTopicPartition()
		p.RecordBatches, p.HighWatermark = batch, 500
		fp, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: "t"}, &p, kgo.DefaultDecompressor(), nil)
		if fp.Err != nil || len(fp.Records) != len(want) {
			t.Fatal(c, fp.Err, len(fp.Records))
		}
		for k, r := range fp.Records {
			if !bytes.Equal(r.Key, want[k].Key) || !bytes.Equal(r.Value, want[k].Value) || r.Timestamp.UnixMilli() != want[k].Timestamp {
				t.Fatal(c, k, r)
			}
		}
		plain, err := (&decompressor{}).decompress(c, batch[HeaderLen:h.Size()], 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		z, err := kgo.DefaultCompressor(kcodecs[i])
		if err != nil {
			t.Fatal(err)
		}
		if z == nil {
			continue
		}
		out, _ := z.Compress(new(bytes.Buffer), plain)
		got, err := (&decompressor{}).decompress(c, out, 1<<20)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatal(c, err)
		}
	}
	_ = context.Background()
}

func TestBombs(t *testing.T) {
	t.Parallel()
	b := NewBuilder(None)
	b.Append(0, nil, make([]byte, 10<<20))
	for _, c := range codecs {
		b.Codec = c
		batch := b.Build(nil)
		r := Reader{MaxBytes: 1 << 20}
		if err := r.Reset(batch); !errors.Is(err, ErrTooLarge) {
			t.Fatalf("%v: %v", c, err)
		}
		r.MaxBytes = 11 << 20
		if err := r.Reset(batch); err != nil || !r.Next() || len(r.Record().Value) != 10<<20 {
			t.Fatalf("%v: %v", c, err)
		}
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 1))
	good, _ := build(None, 3, rng)
	for _, c := range []struct {
		name string
		make func(b []byte) []byte
		want error
	}{
		{"empty", func([]byte) []byte { return nil }, ErrTruncated},
		{"cut", func(b []byte) []byte { return b[:len(b)-1] }, ErrTruncated},
		{"longer", func(b []byte) []byte { return append(b, 0) }, ErrInvalid},
		{"magic 1", func(b []byte) []byte { b[16] = 1; return b }, ErrMagic},
		{"flipped", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, ErrChecksum},
		{"negative length", func(b []byte) []byte { b[8] = 0xff; return b }, ErrInvalid},
		{"giant length", func(b []byte) []byte { b[8] = 0x7f; return b }, ErrTruncated},
		{"codec 7", func(b []byte) []byte { b[22] = 7; return b }, ErrInvalid},
		{"count", func(b []byte) []byte { b[60] = 200; return b }, ErrInvalid},
	} {
		if _, err := Validate(c.make(append([]byte(nil), good...))); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	var r Reader
	b := NewBuilder(None)
	b.Append(0, []byte("k"), nil)
	b.Append(0, nil, nil)
	if i, err := r.ValidateRecords(b.Build(nil), true); i != 1 || !errors.Is(err, ErrInvalid) {
		t.Error(i, err)
	}
}

func TestNoAllocationPerRecord(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for _, c := range []Codec{None, Snappy, Zstd} {
		batch, _ := build(c, 2000, rng)
		var r Reader
		n := testing.AllocsPerRun(20, func() {
			if err := r.Reset(batch); err != nil {
				t.Fatal(err)
			}
			for r.Next() {
			}
		})
		if n > 5 {
			t.Errorf("%v: %v allocations for a batch of 2000 records", c, n)
		}
	}
}

func FuzzReader(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 1))
	for _, c := range codecs {
		batch, _ := build(c, 5, rng)
		f.Add(batch)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		batch, _, err := Next(b)
		if err != nil {
			return
		}
		r := Reader{MaxBytes: 1 << 20}
		if r.Reset(batch) != nil {
			return
		}
		for r.Next() {
			rec := r.Record()
			rec.EachHeader(func(k, v []byte) bool { return true })
			again, err := Parse(rec.Body)
			if err != nil || !bytes.Equal(again.Key, rec.Key) || !bytes.Equal(again.Value, rec.Value) || !bytes.Equal(again.Headers, rec.Headers) || again.HeaderCount != rec.HeaderCount {
				t.Fatalf("%+v comes back as %+v, %v", rec, again, err)
			}
		}
		_, _ = r.ValidateRecords(batch, true)
	})
}

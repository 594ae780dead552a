package record

import (
	"bytes"
	"fmt"
	"testing"
)

func TestRecompressKeepsAllButTheCodec(t *testing.T) {
	t.Parallel()
	codecs := []Codec{None, Gzip, Snappy, LZ4, Zstd}
	for _, from := range codecs {
		b := NewBuilder(from)
		for i := range 100 {
			b.Append(int64(1000+i), fmt.Append(nil, "key", i), bytes.Repeat([]byte("v"), i), HeaderKV{Key: "h", Value: []byte("x")})
		}
		batch := b.Build(nil)
		SetProducer(batch, 7, 3, 11)
		for _, to := range codecs {
			out, err := Recompress(batch, to)
			if err != nil {
				t.Fatal(err)
			}
			h, err := Validate(out)
			was, _ := ParseHeader(batch)
			if err != nil || h.Codec() != to || h.ProducerID != 7 || h.BaseSequence != 11 || h.Count != 100 || h.MaxTimestamp != was.MaxTimestamp {
				t.Fatalf("%s to %s: %+v %v", from, to, h, err)
			}
			var r, o Reader
			if err := r.Reset(out); err != nil {
				t.Fatal(err)
			}
			if err := o.Reset(batch); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(r.rest, o.rest) {
				t.Fatalf("%s to %s changes the records", from, to)
			}
		}
	}
}

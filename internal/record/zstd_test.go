package record

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Frames that do not say their size, as librdkafka writes them, of records that compress well.
func TestZstdFramesOfUnknownSizeFindTheirRoom(t *testing.T) {
	t.Parallel()
	for size := 1000; size < 3<<20; size = size*3/2 + 7 {
		var frame, plain bytes.Buffer
		w, err := zstd.NewWriter(&frame, zstd.WithSingleSegment(false))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; plain.Len() < size; i++ {
			fmt.Fprintf(&plain, "record %d of a batch that compresses well, ", i)
		}
		for b := plain.Bytes(); len(b) > 0; { // in pieces, so that the size is not known when the frame begins
			n := min(len(b), 1000)
			if _, err := w.Write(b[:n]); err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var d decompressor
		out, err := d.decompress(Zstd, frame.Bytes(), 4<<20)
		if err != nil || !bytes.Equal(out, plain.Bytes()) {
			t.Fatalf("%d bytes as %d: %v", plain.Len(), frame.Len(), err)
		}
		if _, err := d.decompress(Zstd, frame.Bytes(), plain.Len()-1); !errors.Is(err, ErrTooLarge) {
			t.Fatalf("%d bytes with room for one less: %v", plain.Len(), err)
		}
	}
}

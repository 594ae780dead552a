package broker

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/leat-io/leat/internal/record"
)

// TestForgedCounts checks that a batch with another number of records than it says gets no offsets, compressed or not.
func TestForgedCounts(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p := s.topic("t", 1).Partition(0)
	for _, codec := range []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		for _, count := range []uint32{1, 3, 1000} {
			b := record.NewBuilder(codec)
			b.Append(s.ck.Now().UnixMilli(), nil, []byte("one"))
			b.Append(s.ck.Now().UnixMilli(), nil, []byte("two"))
			batch := b.Build(nil)
			binary.BigEndian.PutUint32(batch[23:], count-1) // the last offset delta
			binary.BigEndian.PutUint32(batch[57:], count)
			binary.BigEndian.PutUint32(batch[17:], record.Checksum(batch))
			items := []ProduceItem{{P: p, Batch: batch}}
			if s.b.Produce(items); items[0].Err == nil {
				t.Errorf("codec %v: two records that say they are %d were taken", codec, count)
			} else if !errors.Is(items[0].Err, ErrCorruptBatch) && !errors.As(items[0].Err, new(*InvalidRecordsError)) {
				t.Errorf("codec %v, %d records: %v", codec, count, items[0].Err)
			}
		}
	}
	s.settle()
	if end := p.Appended(); end != 0 {
		t.Errorf("the partition ends at %d, want 0", end)
	}
}

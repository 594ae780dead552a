package topic

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/connector/recordrow"
	"github.com/leat-io/leat/internal/record"
)

// stretch is a stretch of a log, in memory.
type stretch struct {
	t     *testing.T
	codec record.Codec
	raw   []byte
	next  int64
	first map[int64]int64 // of open transactions, by producer
}

// put appends a batch; a producer of -1 writes outside transactions.
func (s *stretch) put(producer int64, values ...string) {
	b := record.NewBuilder(s.codec)
	if producer >= 0 {
		b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = producer, 0, 0, true
		if _, ok := s.first[producer]; !ok {
			if s.first == nil {
				s.first = map[int64]int64{}
			}
			s.first[producer] = s.next
		}
	}
	for _, v := range values {
		b.Append(int64(100+len(v)), []byte("key of "+v), []byte(v), record.HeaderKV{Key: "of", Value: []byte(v)})
	}
	s.add(b.Build(nil))
}

func (s *stretch) end(producer int64, commit bool) {
	first, ok := s.first[producer]
	if !ok {
		first = -1
	}
	delete(s.first, producer)
	m := record.EndMarker{ProducerID: producer, Commit: commit, First: first, Timestamp: 1}
	s.add(m.AppendTo(nil))
}

// empty appends what compaction leaves of a batch with so many records: its header.
func (s *stretch) empty(records int) {
	b := record.NewBuilder(record.None)
	for range records {
		b.Append(1, []byte("k"), nil)
	}
	s.add(record.AppendEmpty(nil, b.Build(nil)))
}

func (s *stretch) add(batch []byte) {
	s.t.Helper()
	record.Patch(batch, s.next, 1)
	h, err := record.ParseHeader(batch)
	if err != nil {
		s.t.Fatal(err)
	}
	s.raw = append(s.raw, batch...)
	s.next = h.NextOffset()
}

// reader returns one that has fetched the stretch.
func (s *stretch) reader() *reader {
	s.t.Helper()
	layout, err := recordrow.NewLayout(&catalog.Relation{Kind: catalog.Source, Encode: "text", Columns: []catalog.Column{{Name: "v", Type: column.TText}}})
	if err != nil {
		s.t.Fatal(err)
	}
	d, err := layout.NewDecoder(0, []int{0})
	if err != nil {
		s.t.Fatal(err)
	}
	return &reader{source: &Source{topic: "t", layout: layout}, decoder: d, buffer: s.raw, chunk: s.raw}
}

// read reads everything in pieces of at most limit rows. A row is its offset, its position if that is another one, and its value.
func (s *stretch) read(r *reader, limit int) string {
	s.t.Helper()
	var found []string
	for at := int64(0); at < s.next; {
		var rows connector.Rows
		next, err := r.Read(at, s.next, limit, &rows)
		if err != nil {
			s.t.Fatalf("at %d: %v", at, err)
		}
		if next < at || next == at && rows.Len == 0 {
			s.t.Fatalf("at %d: nothing is read", at)
		}
		for i := range rows.Len {
			row := fmt.Sprint(rows.Offsets[i])
			if len(rows.Positions) > 0 && rows.Positions[i] != rows.Offsets[i] {
				row += fmt.Sprint("@", rows.Positions[i])
			}
			value := string(rows.Cols[0].Bytes(i))
			rec := rows.Original(i)
			header := ""
			rec.EachHeader(func(key, v []byte) bool { header += string(key) + "=" + string(v); return true })
			if rec.Offset != rows.Offsets[i] || rec.Timestamp != int64(100+len(value)) || string(rec.Key) != "key of "+value || string(rec.Value) != value || header != "of="+value {
				s.t.Errorf("the row %q was made of %+v with the headers %s", value, rec, header)
			}
			found = append(found, row+"="+value)
		}
		at = next
	}
	if err := r.Close(); err != nil {
		s.t.Error(err)
	}
	return strings.Join(found, " ")
}

// TestWhatAReaderGivesOut reads stretches of a log in pieces of any size.
func TestWhatAReaderGivesOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		write func(s *stretch)
		want  string
	}{
		{"records", func(s *stretch) {
			s.put(-1, "a", "b")
			s.put(-1, "c")
		}, "0=a 1=b 2=c"},
		{"what compaction has left", func(s *stretch) {
			s.empty(3)
			s.put(-1, "a")
			s.empty(1)
		}, "3=a"},
		{"a transaction stands where it is committed", func(s *stretch) {
			s.put(7, "a")
			s.put(-1, "x")
			s.put(7, "b")
			s.end(7, true)
			s.put(-1, "y")
		}, "1=x 0@3=a 2@3=b 4=y"},
		{"an aborted one is not given out", func(s *stretch) {
			s.put(7, "a")
			s.put(-1, "x")
			s.end(7, false)
		}, "1=x"},
		{"those that overlap come in the order of their ends", func(s *stretch) {
			s.put(7, "a")
			s.put(8, "b")
			s.put(7, "c")
			s.end(8, true)
			s.end(7, true)
		}, "1@3=b 0@4=a 2@4=c"},
		{"the same producer again", func(s *stretch) {
			s.put(7, "a")
			s.end(7, false)
			s.put(7, "b")
			s.end(7, true)
		}, "2@3=b"},
		{"a marker of nothing", func(s *stretch) {
			s.end(7, true)
			s.put(-1, "x")
		}, "1=x"},
	} {
		for _, codec := range []record.Codec{record.None, record.Zstd} {
			for _, limit := range []int{1, 2, 1000} {
				s := &stretch{t: t, codec: codec}
				c.write(s)
				if got := s.read(s.reader(), limit); got != c.want {
					t.Errorf("%s, %s, %d rows at a time: %s, want %s", c.name, codec, limit, got, c.want)
				}
			}
		}
	}
}

// TestARangeEndsWithinABatch reads up to an offset in the middle of a batch, and from there on.
func TestARangeEndsWithinABatch(t *testing.T) {
	t.Parallel()
	s := &stretch{t: t}
	s.put(-1, "a", "b", "c")
	r := s.reader()
	for _, x := range []struct {
		from, to int64
		want     []int64
	}{{0, 2, []int64{0, 1}}, {2, 3, []int64{2}}} {
		var rows connector.Rows
		next, err := r.Read(x.from, x.to, 10, &rows)
		if err != nil || next != x.to || !slices.Equal(rows.Offsets, x.want) {
			t.Errorf("offsets %v, then %d (%v)", rows.Offsets, next, err)
		}
	}
}

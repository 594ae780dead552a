package commitlog

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/leat-io/leat/internal/record"
)

// written is a record that was appended, and what became of its transaction.
type written struct {
	offset, ms int64
	key, value []byte
	headers    int
	producer   int64 // -1: no transaction
	state      txnState
}

type txnState uint8

const (
	noTxn txnState = iota
	openTxn
	committedTxn
	abortedState
)

// model is the oracle: all that was ever appended, in order, and the batches as the journal has them.
type model struct {
	records []written
	batches [][]byte
	ends    []int64 // after each batch
	end     int64
	seqs    map[int64]int32

	builders map[record.Codec]*record.Builder
}

func newModel() *model {
	return &model{seqs: map[int64]int32{}, builders: map[record.Codec]*record.Builder{}}
}

type input struct {
	key, value []byte
	ms         int64
	headers    int
}

// batch makes the next batch; producer -1 is none.
func (m *model) batch(codec record.Codec, producer int64, txn bool, in []input) []byte {
	b := m.builders[codec] // encoders are large
	if b == nil {
		b = record.NewBuilder(codec)
		m.builders[codec] = b
	}
	b.Reset()
	b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = -1, -1, -1, false
	if producer >= 0 {
		b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = producer, 0, m.seqs[producer], txn
		m.seqs[producer] = record.AddSequence(m.seqs[producer], int32(len(in)))
	}
	for i, r := range in {
		var hs []record.HeaderKV
		for k := range r.headers {
			hs = append(hs, record.HeaderKV{Key: fmt.Sprint("h", k), Value: r.key})
		}
		b.Append(r.ms, r.key, r.value, hs...)
		w := written{offset: m.end + int64(i), ms: r.ms, key: r.key, value: r.value, headers: r.headers, producer: -1}
		if txn {
			w.producer, w.state = producer, openTxn
		}
		m.records = append(m.records, w)
	}
	return m.add(b.Build(nil), len(in))
}

// marker makes the end of the producer's transaction.
func (m *model) marker(producer, ms int64, commit bool) []byte {
	e := record.EndMarker{ProducerID: producer, Commit: commit, Timestamp: ms, First: -1}
	for i := range m.records {
		if w := &m.records[i]; w.producer == producer && w.state == openTxn {
			e.First = w.offset
			break
		}
	}
	m.ended(producer, m.end, commit)
	return m.add(e.AppendTo(nil), 1)
}

func (m *model) add(batch []byte, n int) []byte {
	record.Patch(batch, m.end, 3)
	m.end += int64(n)
	m.batches, m.ends = append(m.batches, batch), append(m.ends, m.end)
	return batch
}

// stable is the first offset of an open transaction, or the end.
func (m *model) stable() int64 {
	for i := range m.records {
		if m.records[i].state == openTxn {
			return m.records[i].offset
		}
	}
	return m.end
}

// values are the last values, from start on, that a reader of committed records must find: tombstones are nil.
func (m *model) values(start int64) map[string][]byte {
	out, end := map[string][]byte{}, m.stable()
	for _, w := range m.records {
		if w.offset >= start && w.offset < end && w.state != abortedState {
			out[string(w.key)] = w.value
		}
	}
	return out
}

// read is what the log has: its records, with what a reader of committed records would know of them.
type readRecord struct {
	record.Record
	aborted, open bool
}

// readLog reads everything, decides on transactions by the markers alone, and checks that every record is what was written.
func readLog(t *testing.T, l *Log, m *model) []readRecord {
	t.Helper()
	if l.EndOffset() != m.end {
		t.Fatalf("the log ends at %d, want %d", l.EndOffset(), m.end)
	}
	raw := readAll(t, l, l.StartOffset(), 3000)
	var out []readRecord
	running := map[int64][]int{}
	next := int64(-1)
	for len(raw) > 0 {
		batch, rest, err := record.Next(raw)
		if err != nil {
			t.Fatal(err)
		}
		raw = rest
		h, err := record.Validate(batch)
		if err != nil {
			t.Fatal(err)
		}
		if h.BaseOffset < next {
			t.Fatalf("offset %d comes after %d", h.BaseOffset, next-1)
		}
		next = h.NextOffset()
		if h.Control() {
			mk, ok, err := record.ParseEndMarker(batch)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			for _, i := range running[h.ProducerID] {
				out[i].open, out[i].aborted = false, !mk.Commit
			}
			delete(running, h.ProducerID)
			continue
		}
		var r record.Reader
		if err := r.Reset(batch); err != nil {
			t.Fatal(err)
		}
		for r.Next() {
			x := *r.Record()
			x.Key, x.Value = bytes.Clone(x.Key), bytes.Clone(x.Value)
			w := m.at(x.Offset)
			if w == nil || x.Timestamp != w.ms || !bytes.Equal(x.Key, w.key) || !bytes.Equal(x.Value, w.value) || (x.Value == nil) != (w.value == nil) || x.HeaderCount != w.headers {
				t.Fatalf("record %d is %+v, was %+v", x.Offset, x, w)
			}
			if h.Transactional() {
				running[h.ProducerID] = append(running[h.ProducerID], len(out))
			}
			out = append(out, readRecord{Record: x, open: h.Transactional()})
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
	return out
}

func (m *model) at(offset int64) *written {
	lo, hi := 0, len(m.records)
	for lo < hi {
		if mid := (lo + hi) / 2; m.records[mid].offset < offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(m.records) || m.records[lo].offset != offset {
		return nil
	}
	return &m.records[lo]
}

// consume reads as Kafka's consumers of committed records do: a producer whose transaction was aborted is not listened to from its first offset, as the
// list says, to its marker.
func consume(t *testing.T, l *Log, from, to int64) map[int64]bool {
	t.Helper()
	aborted, err := l.Aborted(from, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, deaf := map[int64]bool{}, map[int64]bool{}
	var r record.Reader
	for at := from; at < to; {
		c, err := l.Read(at, 2000, to, true)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.AppendTo(nil)
		if err != nil {
			t.Fatal(err)
		}
		at = c.Next
		c.Release()
		for len(raw) > 0 {
			batch, rest, err := record.Next(raw)
			if err != nil {
				t.Fatal(err)
			}
			raw = rest
			h, err := record.ParseHeader(batch)
			if err != nil {
				t.Fatal(err)
			}
			for len(aborted) > 0 && aborted[0].First <= h.LastOffset() {
				deaf[aborted[0].ProducerID] = true
				aborted = aborted[1:]
			}
			switch {
			case h.Control():
				if !commits(batch) {
					delete(deaf, h.ProducerID)
				}
				continue
			case h.Transactional() && deaf[h.ProducerID]:
				continue
			}
			if err := r.Reset(batch); err != nil {
				t.Fatal(err)
			}
			for r.Next() {
				if r.Record().Offset >= from {
					out[r.Record().Offset] = true
				}
			}
		}
	}
	return out
}

// check compares what a reader of committed records finds with the oracle.
func (m *model) check(t *testing.T, l *Log) {
	t.Helper()
	start := l.StartOffset()
	got, end := map[string][]byte{}, m.stable()
	committed := consume(t, l, start, max(start, end))
	for _, r := range readLog(t, l, m) {
		w := m.at(r.Offset)
		if r.Offset < start || r.Offset >= end {
			continue
		}
		if r.open {
			t.Fatalf("the transaction of record %d has lost its end", r.Offset)
		}
		if r.aborted != (w.state == abortedState) {
			t.Fatalf("record %d: aborted is %v, and its transaction's state %d", r.Offset, r.aborted, w.state)
		}
		if r.aborted == committed[r.Offset] {
			t.Fatalf("record %d: aborted is %v, and a consumer sees it %v", r.Offset, r.aborted, committed[r.Offset])
		}
		if !r.aborted {
			got[string(r.Key)] = r.Value
		}
	}
	want := m.values(start)
	for k, v := range want {
		g, ok := got[k]
		if v == nil && g == nil {
			continue // deleted, with its tombstone or without
		}
		if !ok || !bytes.Equal(g, v) || g == nil || v == nil {
			t.Fatalf("key %s is %q (%v), want %q", k, g, ok, v)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Fatalf("key %s has come from nowhere", k)
		}
	}
}

var allCodecs = []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd}

func randomInput(rng *rand.Rand, ms int64, keys, n int) []input {
	in := make([]input, n)
	for i := range in {
		in[i] = input{key: fmt.Appendf(nil, "k%d", rng.IntN(keys)), value: fmt.Appendf(nil, "v%d-%0*d", rng.IntN(1000), rng.IntN(60), 0), ms: ms + rng.Int64N(20) - 10, headers: rng.IntN(3)}
		if rng.IntN(5) == 0 {
			in[i].value = nil
		}
	}
	return in
}

const never = math.MaxInt64

// forget drops all batches but the first n: they came after the crash, in a life that was not.
func (m *model) forget(n int) {
	m.batches, m.ends = m.batches[:n], m.ends[:n]
	all := *m
	*m = *newModel()
	m.builders = all.builders
	for i, w := range all.records {
		if n == 0 || w.offset >= all.ends[n-1] {
			all.records = all.records[:i]
			break
		}
	}
	m.records = all.records
	for i := range m.records {
		if w := &m.records[i]; w.state == committedTxn || w.state == abortedState {
			w.state = openTxn
		}
	}
	for _, b := range all.batches {
		h, err := record.ParseHeader(b)
		if err != nil {
			panic(err)
		}
		m.batches, m.end = append(m.batches, b), h.NextOffset()
		m.ends = append(m.ends, m.end)
		switch {
		case h.Control():
			m.ended(h.ProducerID, h.BaseOffset, commits(b))
		case h.ProducerID >= 0:
			m.seqs[h.ProducerID] = record.AddSequence(h.LastSequence(), 1)
		}
	}
}

// ended says how the producer's transaction, as far as it lies below the offset, has ended.
func (m *model) ended(producer, below int64, commit bool) {
	for i := range m.records {
		if w := &m.records[i]; w.producer == producer && w.state == openTxn && w.offset < below {
			if w.state = abortedState; commit {
				w.state = committedTxn
			}
		}
	}
}

func commits(marker []byte) bool {
	m, ok, err := record.ParseEndMarker(marker)
	return ok && err == nil && m.Commit
}

// Package sink makes records for topics of the embedded log: the net changes of each epoch as JSON, and rows that came too late.
//
// What always holds: the records of an epoch and their order depend on the rows alone, not on workers, batches or time: they
// are ordered by the rows' stream key.
package sink

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector/jsonrow"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/flow/operator/keyed"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Checksum is the format of a sink that only counts its rows and sums their hashes: what benchmarks write to.
const Checksum = "checksum"

// Sink writes the net changes of each epoch. Format "plain": every row is a record. "upsert": the record's key is a JSON object
// of the key columns, a row that is gone is a tombstone.
type Sink struct {
	env    *operator.Env
	p      *plan.Sink
	name   string
	order  []int // the columns that the net changes are taken by
	upsert bool
	keyed  []string
	time   int // event time column, -1
	parts  int

	changes keyed.Changes
	keys    rowenc.Keys
	rows    rowenc.Keys
	cols    []int
	types   []column.Type
	row     []*column.Vector
	ids     []int32
	hashes  []uint64
	sum     uint64
	out     Records
	mem     arena
}

// Records are what an epoch gave on one worker, in the order of their sort keys.
type Records struct {
	Topic string
	List  []Keyed
}

// Keyed is a record with its place in the epoch's order.
type Keyed struct {
	Sort      []byte
	Partition int32
	operator.Record
}

// New makes a sink over rows of the given types whose stream key is key.
func New(env *operator.Env, name string, p *plan.Sink, key []int, eventTime int, in []column.Type) (*Sink, error) {
	s := &Sink{env: env, p: p, name: name, order: key, types: in, time: eventTime, upsert: p.Format == "upsert", parts: 1}
	switch {
	case p.Format == Checksum:
		return s, nil
	case p.Format != "plain" && !s.upsert:
		return nil, fmt.Errorf("sink format %q is not known; there are plain and upsert", p.Format)
	case p.Encode != "json":
		return nil, fmt.Errorf("sink encoding %q is not known; there is json", p.Encode)
	case len(p.Columns) != len(p.Names):
		return nil, fmt.Errorf("%d columns have %d names", len(p.Columns), len(p.Names))
	case s.upsert && len(p.Key) == 0 && len(key) > 0:
		return nil, fmt.Errorf("an upsert sink needs a key")
	}
	if len(p.KeyNames) > 0 && len(p.KeyNames) != len(p.Key) {
		return nil, fmt.Errorf("%d key columns have %d names", len(p.Key), len(p.KeyNames))
	}
	s.keyed = p.KeyNames
	for _, k := range p.Key {
		if len(p.KeyNames) > 0 {
			break
		}
		i := slices.Index(p.Columns, k)
		if i < 0 {
			return nil, fmt.Errorf("key column %d is not among the sink's columns", k)
		}
		s.keyed = append(s.keyed, p.Names[i])
	}
	if s.upsert {
		s.order = p.Key
	}
	if env.Partitions != nil {
		if n := env.Partitions(p.Topic); n > 0 {
			s.parts = n
		}
	}
	for i, t := range in {
		s.cols = append(s.cols, i)
		s.row = append(s.row, column.NewVector(t, 1))
	}
	return s, nil
}

// Push is operator.Operator's.
func (s *Sink) Push(_ int, b *column.Batch, _ operator.Output) (bool, error) {
	if s.p.Format == Checksum {
		s.check(b)
		return true, nil
	}
	s.env.Counts.Out += int64(b.Len)
	s.keys.Reset()
	if len(s.order) == 0 {
		for range b.Len {
			s.keys.EndKey()
		}
	} else {
		rowenc.AppendKeys(&s.keys, b, s.order)
	}
	s.rows.Reset()
	rowenc.AppendRows(&s.rows, b, s.cols)
	for i := range b.Len {
		s.changes.Add(s.keys.Key(i), s.rows.Key(i), b.Weight(i))
	}
	return true, s.changes.Account(s.env.Tables, "the sink's rows")
}

func (s *Sink) check(b *column.Batch) {
	cols := s.p.Columns
	if len(cols) == 0 {
		for i := len(s.cols); i < len(b.Cols); i++ {
			s.cols = append(s.cols, i)
		}
		cols = s.cols
	}
	s.env.Counts.Out += int64(b.Len)
	s.hashes = rowenc.HashRows(b, cols, s.hashes)
	if b.Weights == nil {
		for _, h := range s.hashes {
			s.sum += h
		}
		return
	}
	for i, h := range s.hashes {
		s.sum += h * uint64(b.Weights[i])
	}
}

// Sum is the checksum so far: equal for equal rows in any order.
func (s *Sink) Sum() uint64 { return s.sum }

// Take returns the epoch's records; valid until the next epoch's end.
func (s *Sink) Take() *Records { return &s.out }

// Clear forgets the records of the epoch.
func (s *Sink) Clear() { s.out.List = nil }

// EndEpoch is operator.Operator's.
func (s *Sink) EndEpoch(*operator.Epoch, operator.Output) (bool, error) {
	if s.p.Format == Checksum {
		return true, nil
	}
	s.out, s.mem.buf = Records{Topic: s.p.Topic}, nil
	s.ids = s.changes.Sorted(s.ids[:0])
	for _, id := range s.ids {
		if err := s.records(int(id)); err != nil {
			return false, err
		}
	}
	s.changes.Release(s.env.Tables)
	return true, nil
}

// records makes the records of one key's net changes.
func (s *Sink) records(id int) error {
	var is, was []byte
	var err error
	sort := s.mem.keep(s.changes.Keys.Key(id))
	s.changes.Each(id, func(row []byte, w int64) {
		switch {
		case err != nil:
		case s.upsert && w > 0:
			if is == nil || bytes.Compare(row, is) > 0 {
				is = row
			}
		case s.upsert:
			was = row
		case w < 0:
			err = fmt.Errorf("a plain sink cannot take back a row; use FORMAT UPSERT")
		default:
			for ; w > 0 && err == nil; w-- {
				err = s.record(sort, row, false)
			}
		}
	})
	switch {
	case err != nil:
		return err
	case is != nil:
		return s.record(sort, is, false)
	case was != nil:
		return s.record(sort, was, true)
	}
	return nil
}

// record appends one record.
func (s *Sink) record(sort, row []byte, tombstone bool) error {
	for i, v := range s.row {
		v.Reset(s.types[i])
	}
	if err := rowenc.DecodeRow(row, s.types, s.row); err != nil {
		return err
	}
	r := Keyed{Sort: sort}
	if len(s.p.Key) > 0 || s.upsert {
		r.Key = s.mem.object(s.row, s.p.Key, s.keyed)
	}
	if !tombstone {
		r.Value = s.mem.object(s.row, s.p.Columns, s.p.Names)
	}
	if s.time >= 0 && !s.row[s.time].IsNull(0) {
		if t := s.row[s.time].I64[0]; t > 0 && t < 1<<62 {
			r.Timestamp = t
		}
	}
	hashed := r.Key
	if hashed == nil {
		hashed = r.Value // no key: still a pure function of the row
	}
	r.Partition = record.Partition(hashed, s.parts)
	s.out.List = append(s.out.List, r)
	return nil
}

// arena holds the bytes of an epoch's records in large pieces, which the records share.
type arena struct {
	buf, scratch []byte
	encoder      *jsonrow.Encoder
}

const arenaPiece = 64 << 10

// keep copies b into the arena.
func (a *arena) keep(b []byte) []byte {
	if cap(a.buf)-len(a.buf) < len(b) {
		a.buf = make([]byte, 0, max(arenaPiece, len(b)))
	}
	at := len(a.buf)
	a.buf = append(a.buf, b...)
	return a.buf[at:len(a.buf):len(a.buf)]
}

// object is the JSON object of columns of a one-row batch.
func (a *arena) object(row []*column.Vector, cols []int, names []string) []byte {
	if a.encoder == nil {
		a.encoder = &jsonrow.Encoder{}
	}
	dst := append(a.scratch[:0], '{')
	for i, c := range cols {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonrow.AppendString(dst, []byte(names[i]))
		dst = append(dst, ':')
		dst = a.encoder.AppendValue(dst, row[c], 0)
	}
	a.scratch = append(dst, '}')
	return a.keep(a.scratch)
}

// Late collects rows that came too late for a window, as JSON records of the input's visible columns.
type Late struct {
	out   Records
	cols  []int
	names []string
	parts int
	rows  rowenc.Keys
	all   []int
	mem   arena
}

// NewLate makes a collector for a topic.
func NewLate(env *operator.Env, topic string, columns []plan.Column) *Late {
	l := &Late{out: Records{Topic: topic}, parts: 1}
	if env.Partitions != nil {
		l.parts = max(env.Partitions(topic), 1)
	}
	for i, c := range columns {
		l.all = append(l.all, i)
		if !c.Hidden {
			l.cols = append(l.cols, i)
			l.names = append(l.names, c.Name)
		}
	}
	return l
}

// Add takes late rows.
func (l *Late) Add(b *column.Batch) error {
	l.rows.Reset()
	rowenc.AppendKeys(&l.rows, b, l.all)
	one := column.Batch{}
	for i := range b.Len {
		one.View(b, i, i+1)
		r := Keyed{Sort: l.mem.keep(l.rows.Key(i))}
		r.Value = l.mem.object(one.Cols, l.cols, l.names)
		r.Partition = record.Partition(r.Value, l.parts)
		l.out.List = append(l.out.List, r)
	}
	return nil
}

// Take returns the records since the last Clear.
func (l *Late) Take() *Records { return &l.out }

// Clear forgets the records.
func (l *Late) Clear() { l.out.List, l.mem.buf = nil, nil }

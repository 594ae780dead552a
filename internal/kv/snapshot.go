package kv

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// Snapshot is a view of one instant, counted by reference: made with one, freed with the last Release. Safe for
// concurrent use.
type Snapshot struct {
	s    *pebble.Snapshot
	refs atomic.Int64
}

// Snapshot returns the database as it is now.
func (d *DB) Snapshot() *Snapshot {
	s := &Snapshot{s: d.db.NewSnapshot()}
	s.refs.Store(1)
	return s
}

// Retain adds a reference; only who holds one may add another.
func (s *Snapshot) Retain() *Snapshot {
	s.refs.Add(1)
	return s
}

// Release gives a reference back.
func (s *Snapshot) Release() {
	switch n := s.refs.Add(-1); {
	case n == 0:
		_ = s.s.Close()
	case n < 0:
		panic("kv: a snapshot was released once too often")
	}
}

// Get returns a copy of the value.
func (s *Snapshot) Get(table uint32, prefix, suffix []byte) (value []byte, ok bool, err error) {
	return appendGet(nil, s.s, table, prefix, suffix)
}

// AppendGet appends the value to dst.
func (s *Snapshot) AppendGet(dst []byte, table uint32, prefix, suffix []byte) ([]byte, bool, error) {
	return appendGet(dst, s.s, table, prefix, suffix)
}

type getter interface {
	Get(key []byte) ([]byte, io.Closer, error)
}

func appendGet(dst []byte, g getter, table uint32, prefix, suffix []byte) ([]byte, bool, error) {
	var room [128]byte
	v, closer, err := g.Get(AppendKey(room[:0], table, prefix, suffix))
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, err
	}
	if dst == nil {
		dst = make([]byte, 0, len(v))
	}
	dst = append(dst, v...)
	return dst, true, closer.Close()
}

// ScanGroup walks the rows of exactly one group prefix, from suffix `from` (nil: the first) on; the bloom filters spare the files
// that have none.
func (s *Snapshot) ScanGroup(table uint32, prefix, from []byte) (*Iter, error) {
	it, err := s.NewIter(table)
	if err != nil {
		return nil, err
	}
	it.SeekGroup(prefix, from)
	return it, nil
}

// ScanPrefix walks the rows whose group prefix starts with prefix (nil: the whole table).
func (s *Snapshot) ScanPrefix(table uint32, prefix []byte) (*Iter, error) {
	return s.ScanRange(table, prefix, after(prefix))
}

// after returns the first prefix beyond all that start with p; nil if there is none.
func after(p []byte) []byte {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] != 0xff {
			q := append([]byte(nil), p[:i+1]...)
			q[i]++
			return q
		}
	}
	return nil
}

// ScanRange walks the rows whose group prefix p is from <= p < to, as bytes; a nil to is the end of the table.
func (s *Snapshot) ScanRange(table uint32, from, to []byte) (*Iter, error) {
	return s.iter(table, AppendKey(nil, table, from, nil), appendEnd(nil, table, to))
}

// NewIter returns one iterator over a table, for many seeks; sorted ones are the cheapest. Seek before the first Next, or
// Next starts at the table's first row.
func (s *Snapshot) NewIter(table uint32) (*Iter, error) { return s.ScanRange(table, nil, nil) }

func (s *Snapshot) iter(table uint32, lower, upper []byte) (*Iter, error) {
	it, err := s.s.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper, UseL6Filters: true})
	if err != nil {
		return nil, err
	}
	return &Iter{it: it, table: table, snap: s.Retain()}, nil
}

// NewIter is Snapshot.NewIter for the database as it is now, without making a snapshot: for what is read and closed at once. present: what
// SeekGroup will be asked for is mostly there, so that the filters of the last level, where nearly all rows are, would only cost.
func (d *DB) NewIter(table uint32, present bool) (*Iter, error) {
	it, err := d.db.NewIter(&pebble.IterOptions{
		LowerBound: AppendKey(nil, table, nil, nil), UpperBound: appendEnd(nil, table, nil), UseL6Filters: !present,
	})
	if err != nil {
		return nil, err
	}
	return &Iter{it: it, table: table}, nil
}

// Iter walks rows in order; it starts before the first: for it.Next() { ... }, then Err or Close. It keeps its snapshot
// alive. Not safe for concurrent use.
type Iter struct {
	it     *pebble.Iterator
	snap   *Snapshot // nil: of the database itself
	table  uint32
	key    []byte
	group  []byte // of SeekGroupBefore
	began  bool
	seeked bool // a seek stands on the row that Next is to yield
	valid  bool
}

// Next moves to the next row.
func (i *Iter) Next() bool {
	switch {
	case i.seeked:
		i.seeked = false
	case !i.began:
		i.valid = i.it.First()
	case i.valid:
		i.valid = i.it.Next()
	}
	i.began = true
	return i.valid
}

// SeekGroup moves to just before the group's first row with a suffix >= from; Next then yields that group's rows only.
func (i *Iter) SeekGroup(prefix, from []byte) {
	i.key = AppendKey(i.key[:0], i.table, prefix, from)
	i.valid = i.it.SeekPrefixGE(i.key)
	i.began, i.seeked = true, true
}

// SeekGE moves to just before the first row at or after (prefix, suffix).
func (i *Iter) SeekGE(prefix, suffix []byte) {
	i.key = AppendKey(i.key[:0], i.table, prefix, suffix)
	i.valid = i.it.SeekGE(i.key)
	i.began, i.seeked = true, true
}

// Prefix is the group prefix of the row; valid until the next move.
func (i *Iter) Prefix() []byte {
	p, _ := splitKey(i.it.Key())
	return p
}

// Suffix is what follows the prefix in the row's key; valid until the next move.
func (i *Iter) Suffix() []byte {
	_, s := splitKey(i.it.Key())
	return s
}

// Value is valid until the next move.
func (i *Iter) Value() []byte { return i.it.Value() }

// Err says why Next returned false; nil at the end.
func (i *Iter) Err() error { return i.it.Error() }

// Close gives the iterator back, and returns Err.
func (i *Iter) Close() error {
	err := i.it.Close()
	if i.snap != nil {
		i.snap.Release()
	}
	return err
}

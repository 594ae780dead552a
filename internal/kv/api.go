package kv

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/vfs"
)

// Options of the database.
type Options struct {
	FS            vfs.FS
	Dir           string
	CacheBytes    int64 // 0: 64 MiB
	MemTableBytes int64 // 0: 16 MiB
	Logger        *slog.Logger
}

// DB is the node's one database.
type DB struct{}

// Open opens or creates the database in o.Dir.
func Open(o Options) (*DB, error) { panic("TODO") }

// Batch is a set of changes that become visible together. Not safe for concurrent use.
type Batch struct{}

func (d *DB) NewBatch() *Batch { panic("TODO") }

// Set, Delete and DeleteRange copy what they are given. DeleteRange covers the group prefixes from <= p < to, as bytes; a nil to is
// the end of the table.
func (b *Batch) Set(table uint32, prefix, suffix, value []byte)        { panic("TODO") }
func (b *Batch) Delete(table uint32, prefix, suffix []byte)            { panic("TODO") }
func (b *Batch) DeleteRange(table uint32, fromPrefix, toPrefix []byte) { panic("TODO") }

// SetMark records in the same batch that everything of the kind up to and including lsn is in the database.
func (b *Batch) SetMark(kind journal.Kind, lsn journal.LSN) { panic("TODO") }
func (b *Batch) Len() int                                   { panic("TODO") }
func (b *Batch) Commit() error                              { panic("TODO") } // gives the batch back
func (b *Batch) Close() error                               { panic("TODO") } // gives up an uncommitted batch

// Get returns a copy of the value.
func (d *DB) Get(table uint32, prefix, suffix []byte) (value []byte, ok bool, err error) {
	panic("TODO")
}

// Mark is the LSN up to which everything of the kind is in the database.
func (d *DB) Mark(kind journal.Kind) journal.LSN { panic("TODO") }

// Snapshot is a view of one instant, counted by reference: made with one, freed with the last Release.
func (d *DB) Snapshot() *Snapshot { panic("TODO") }

type Snapshot struct{}

func (s *Snapshot) Retain() *Snapshot { panic("TODO") }
func (s *Snapshot) Release()          { panic("TODO") }
func (s *Snapshot) Get(table uint32, prefix, suffix []byte) (value []byte, ok bool, err error) {
	panic("TODO")
}

// AppendGet appends the value to dst.
func (s *Snapshot) AppendGet(dst []byte, table uint32, prefix, suffix []byte) ([]byte, bool, error) {
	panic("TODO")
}

// ScanGroup walks the rows of exactly one group prefix, from suffix `from` (nil: the first) on, with the bloom filters' help.
func (s *Snapshot) ScanGroup(table uint32, prefix, from []byte) (*Iter, error) { panic("TODO") }

// ScanPrefix walks the rows whose group prefix starts with prefix (nil: the whole table).
func (s *Snapshot) ScanPrefix(table uint32, prefix []byte) (*Iter, error) { panic("TODO") }

// ScanRange walks the rows whose group prefix is in [from, to), as bytes; nil to: to the end of the table.
func (s *Snapshot) ScanRange(table uint32, from, to []byte) (*Iter, error) { panic("TODO") }

// NewIter is one iterator over a table for many sorted seeks.
func (s *Snapshot) NewIter(table uint32) (*Iter, error) { panic("TODO") }

// Iter walks rows in order. It starts before the first row: for it.Next() {...}; then Err and Close.
type Iter struct{}

func (it *Iter) Next() bool { panic("TODO") }

// SeekGroup moves to just before the first row of the group with a suffix >= from; Next then yields only that group's rows.
func (it *Iter) SeekGroup(prefix, from []byte) { panic("TODO") }

// SeekGE moves to just before the first row at or after (prefix, suffix).
func (it *Iter) SeekGE(prefix, suffix []byte) { panic("TODO") }

// Prefix, Suffix and Value are valid until the next move.
func (it *Iter) Prefix() []byte { panic("TODO") }
func (it *Iter) Suffix() []byte { panic("TODO") }
func (it *Iter) Value() []byte  { panic("TODO") }
func (it *Iter) Err() error     { panic("TODO") }
func (it *Iter) Close() error   { panic("TODO") }

// Flush makes everything committed so far durable.
func (d *DB) Flush() error             { panic("TODO") }
func (d *DB) Metrics() *pebble.Metrics { panic("TODO") }
func (d *DB) Close() error             { panic("TODO") }

// AppendMeta adds a change of metadata to the unit; a nil value deletes the key.
func AppendMeta(u *journal.Unit, key string, value []byte) { panic("TODO") }

// DecodeMeta splits a KindMeta payload; value is nil for a deletion.
func DecodeMeta(payload []byte) (key string, value []byte, err error) { panic("TODO") }

// ApplyMeta writes a KindMeta entry and moves the mark in one batch; an entry that is already in is skipped.
func (d *DB) ApplyMeta(lsn journal.LSN, payload []byte) error { panic("TODO") }

func (d *DB) GetMeta(key string) (value []byte, ok bool, err error) { panic("TODO") }

// ScanMeta calls fn for the keys that start with prefix, in order; fn must not keep value.
func (d *DB) ScanMeta(prefix string, fn func(key string, value []byte) error) error { panic("TODO") }

// Package kv owns the node's one Pebble database: metadata, rows of tables and views, operator state.
//
// Pebble's own write-ahead log is off; the journal is the log. So a crash leaves a prefix of the batches that were committed, and
// what is missing comes again when the journal is replayed. How far each kind of entry had come stands in the database
// itself: a mark is written in the batch of the data that it speaks of.
//
// What always holds:
//   - After a crash the database is exactly the first n batches, for some n; the marks are those of that n.
//   - Everything committed before a Flush that returned is in it.
//   - Keys order by table, then group prefix, then suffix, each as bytes.
package kv

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/vfs"
)

// MetaTable is the table of metadata; the tables of relations come after it, up to MaxTable.
const (
	MetaTable uint32 = 0
	MaxTable  uint32 = 0xfffffffe
	// systemTable holds the marks.
	systemTable uint32 = 0xffffffff
)

// memTables is how many memtables there may be, the one that is written to included, before writers wait for a flush.
const memTables = 4

// l0Threshold is twice the number of layers of level 0 that Pebble merges into the level below at once. State changes all over its keys, so each
// merge writes that whole level again: the fewer merges the better. A layer costs a reader one look at a filter, which is in the cache; so few
// large layers (of a memtable each) are better than many small ones.
const l0Threshold = 8

// Options of the database.
type Options struct {
	FS            vfs.FS
	Dir           string
	CacheBytes    int64 // of the block cache, beside two memtables; 0: 64 MiB
	MemTableBytes int64 // 0: 32 MiB
	Logger        *slog.Logger
	// Fatal is called when Pebble cannot go on (a disk that fails); nil ends the process.
	Fatal func(msg string)
}

// DB is the node's one database.
type DB struct {
	db    *pebble.DB
	fs    vfs.FS // without patience
	room  *patience
	marks [journal.KindState + 1]atomic.Uint64

	cacheBytes, memTables int64 // limits

	metaMu sync.Mutex // one ApplyMeta at a time
	meta   metaProgress
}

// Open opens or creates the database in o.Dir.
func Open(o Options) (*DB, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = 64 << 20
	}
	if o.MemTableBytes <= 0 {
		o.MemTableBytes = 32 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := vfs.MkdirAll(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	// Pebble takes its memtables out of the cache. There are mostly two, one that is written to and one that is being flushed; without room for
	// them there would be little left for filters and indexes, and each look at one a read.
	o.CacheBytes += 2 * o.MemTableBytes
	cache := pebble.NewCache(o.CacheBytes)
	defer cache.Unref() // the database holds its own reference
	room := newPatience(o.Logger)
	po := &pebble.Options{
		FS:                          orderedMarkers{bulkFS{patientFS{o.FS, room}}},
		Cache:                       cache,
		Comparer:                    comparer,
		DisableWAL:                  true,
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                uint64(o.MemTableBytes),
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       l0Threshold,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               256 << 20,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 2 },
		MaxOpenFiles:                1000,
		BytesPerSync:                1 << 20,
		Logger:                      logger{o.Logger, o.Fatal},
	}
	for i := range po.Levels {
		l := &po.Levels[i]
		l.FilterPolicy = bloom.FilterPolicy(10)
		l.FilterType = pebble.TableFilter
		// State that is larger than memory is read by keys that lie far apart: one row costs one block, so blocks are small. What is
		// above the last level is a tenth of the data and is soon rewritten: compressing it costs more than it saves.
		l.BlockSize = 4 << 10
		l.IndexBlockSize = 64 << 10
		l.Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	}
	po.Levels[len(po.Levels)-1].Compression = func() *sstable.CompressionProfile { return sstable.FastestCompression }
	db, err := pebble.Open(o.Dir, po)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", o.Dir, err)
	}
	room.waits.Store(true)
	d := &DB{db: db, fs: o.FS, room: room, cacheBytes: o.CacheBytes, memTables: o.MemTableBytes * memTables}
	if err := d.loadMarks(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return d, nil
}

// Get returns a copy of the value.
func (d *DB) Get(table uint32, prefix, suffix []byte) (value []byte, ok bool, err error) {
	return appendGet(nil, d.db, table, prefix, suffix)
}

// ErrNoRoom says that the disk is full and that waiting for room was interrupted. What is committed is not durable here; the journal has it.
var ErrNoRoom = errors.New("the database was stopped while it waited for room on a full disk")

// Flush makes everything committed so far durable. On a full disk it waits for room, until Interrupt.
func (d *DB) Flush() error {
	if err := d.db.Flush(); err != nil {
		return err
	}
	if d.room.frozen.Load() {
		return ErrNoRoom
	}
	return nil
}

// Patient is the database's file system for what lies beside it: a write waits for room on a full disk, until Interrupt. From then on nothing that is written
// stays, which nothing but Interrupted tells.
func (d *DB) Patient() vfs.FS { return patientFS{d.fs, d.room} }

// Interrupted tells whether a wait for room was interrupted.
func (d *DB) Interrupted() bool { return d.room.frozen.Load() }

// Interrupt ends waits for room on a full disk, now and later: the database is to be closed.
func (d *DB) Interrupt() { d.room.interrupt() }

// Memory is what the database's block cache and its memtables take, in bytes.
func (d *DB) Memory() (cache, memtables int64) {
	m := d.db.Metrics()
	return m.BlockCache.Size, int64(m.MemTable.Size)
}

// Limits are the bounds of both. The cache gives way to memtables: as long as its own bound is above theirs, it is that of both together.
func (d *DB) Limits() (cache, memtables int64) { return d.cacheBytes, d.memTables }

// Metrics returns Pebble's.
func (d *DB) Metrics() *pebble.Metrics { return d.db.Metrics() }

// Close flushes and closes the database; all snapshots and iterators must have been given back.
func (d *DB) Close() error { return errors.Join(d.db.Flush(), d.db.Close()) }

type logger struct {
	l     *slog.Logger
	fatal func(string)
}

func (l logger) Infof(format string, args ...any) {
	l.l.Debug("pebble", "message", fmt.Sprintf(format, args...))
}

func (l logger) Errorf(format string, args ...any) {
	l.l.Error("pebble", "message", fmt.Sprintf(format, args...))
}

// Fatalf must not return: Pebble goes on as if it had not failed.
func (l logger) Fatalf(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	l.l.Error("the database cannot go on", "message", msg)
	if l.fatal != nil {
		l.fatal(msg)
	}
	os.Exit(1)
}

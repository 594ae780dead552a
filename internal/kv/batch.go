package kv

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/leat-io/leat/internal/journal"
)

// Batch is a set of changes that become visible, and durable, together. Not safe for concurrent use.
type Batch struct {
	d     *DB
	b     *pebble.Batch
	key   []byte
	end   []byte
	marks [journal.KindState + 1]mark
	err   error
}

// NewBatch returns an empty batch; Commit or Close it.
func (d *DB) NewBatch() *Batch { return &Batch{d: d, b: d.db.NewBatch()} }

func (b *Batch) keep(err error) {
	if err != nil && b.err == nil {
		b.err = err
	}
}

// Set copies what it is given. An error, such as that of a suffix beyond 65,533 bytes, is reported by Commit.
func (b *Batch) Set(table uint32, prefix, suffix, value []byte) {
	if len(suffix) > maxSuffix {
		b.keep(fmt.Errorf("kv: a key suffix of %d bytes is longer than %d", len(suffix), maxSuffix))
		return
	}
	b.key = AppendKey(b.key[:0], table, prefix, suffix)
	b.keep(b.b.Set(b.key, value, nil))
}

// Delete removes the row, if it is there.
func (b *Batch) Delete(table uint32, prefix, suffix []byte) {
	b.key = AppendKey(b.key[:0], table, prefix, suffix)
	b.keep(b.b.Delete(b.key, nil))
}

// DeleteRange removes the rows whose group prefix p is fromPrefix <= p < toPrefix, as bytes; a nil fromPrefix is the start of the
// table, a nil toPrefix its end.
func (b *Batch) DeleteRange(table uint32, fromPrefix, toPrefix []byte) {
	b.key = AppendKey(b.key[:0], table, fromPrefix, nil)
	b.end = appendEnd(b.end[:0], table, toPrefix)
	b.keep(b.b.DeleteRange(b.key, b.end, nil))
}

// appendEnd appends the exclusive upper bound of a range of group prefixes.
func appendEnd(dst []byte, table uint32, to []byte) []byte {
	if to == nil {
		return AppendKey(dst, table+1, nil, nil)
	}
	return AppendKey(dst, table, to, nil)
}

// SetMark records in the same batch that everything of the kind up to and including lsn is in the database.
func (b *Batch) SetMark(kind journal.Kind, lsn journal.LSN) {
	b.setMark(kind, mark{lsn: lsn, entries: allEntries})
}

// Len is the size of the batch in bytes; Count the number of changes.
func (b *Batch) Len() int { return b.b.Len() }

// Count is the number of changes, marks included.
func (b *Batch) Count() int { return int(b.b.Count()) }

// Commit makes the changes visible and gives the batch back. They are durable after a Flush, or sooner.
func (b *Batch) Commit() error {
	if b.err != nil {
		return b.giveUp(b.err)
	}
	if err := b.b.Commit(pebble.NoSync); err != nil {
		return b.giveUp(err)
	}
	for kind, m := range b.marks {
		if m.lsn > 0 {
			b.d.marks[kind].Store(uint64(m.lsn))
		}
	}
	return b.b.Close()
}

// Close gives up a batch that was not committed.
func (b *Batch) Close() error { return b.b.Close() }

func (b *Batch) giveUp(err error) error {
	_ = b.b.Close()
	return err
}

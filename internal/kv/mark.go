package kv

import (
	"encoding/binary"
	"fmt"

	"github.com/leat-io/leat/internal/journal"
)

// mark says how far the entries of one kind are in the database: all of the units before lsn, and the first `entries` of the
// kind in the unit at lsn.
type mark struct {
	lsn     journal.LSN
	entries uint32
}

const (
	allEntries = ^uint32(0)
	markLen    = 12
)

func markKey(kind journal.Kind) []byte { return []byte{'m', 'a', 'r', 'k', byte(kind)} }

func (b *Batch) setMark(kind journal.Kind, m mark) {
	var v [markLen]byte
	binary.BigEndian.PutUint64(v[:], uint64(m.lsn))
	binary.BigEndian.PutUint32(v[8:], m.entries)
	b.Set(systemTable, markKey(kind), nil, v[:])
	b.marks[kind] = m
}

func (d *DB) loadMarks() error {
	for kind := range d.marks {
		v, ok, err := d.Get(systemTable, markKey(journal.Kind(kind)), nil)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if len(v) != markLen {
			return fmt.Errorf("database: the mark of kind %d has %d bytes", kind, len(v))
		}
		m := mark{lsn: journal.LSN(binary.BigEndian.Uint64(v)), entries: binary.BigEndian.Uint32(v[8:])}
		d.marks[kind].Store(uint64(m.lsn))
		if journal.Kind(kind) == journal.KindMeta {
			d.meta.done = m
		}
	}
	return nil
}

// Mark is the LSN up to which the kind's entries are in the database. For KindMeta the unit at the mark itself may be
// in only in part; ApplyMeta knows.
func (d *DB) Mark(kind journal.Kind) journal.LSN { return journal.LSN(d.marks[kind].Load()) }

var checkpointKey = []byte("checkpoint")

// SetCheckpoint notes that everything before the LSN is in the database. It is called before the Flush that makes that so on disk, and so before
// the journal hears of it: a database that knows of less than the journal's checkpoint is not the one that the journal was written beside.
func (d *DB) SetCheckpoint(lsn journal.LSN) error {
	b := d.NewBatch()
	b.Set(systemTable, checkpointKey, nil, binary.BigEndian.AppendUint64(nil, uint64(lsn)))
	if err := b.Commit(); err != nil {
		return fmt.Errorf("database: note checkpoint %d: %w", lsn, err)
	}
	return nil
}

// Checkpoint is what SetCheckpoint noted last, 0 if it never did.
func (d *DB) Checkpoint() (journal.LSN, error) {
	v, ok, err := d.Get(systemTable, checkpointKey, nil)
	if err != nil || !ok {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("database: the mark of the checkpoint has %d bytes", len(v))
	}
	return journal.LSN(binary.BigEndian.Uint64(v)), nil
}

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/leat-io/leat/internal/journal"
)

// metaProgress counts the KindMeta entries of the unit that is being applied, so that a crash between two of them is
// made good by the replay without doing the first twice.
type metaProgress struct {
	done mark // in the database
	lsn  journal.LSN
	seen uint32
}

// The payload of a KindMeta entry: length of the key (uvarint), key, 1 and the value, or 0 for a deletion.

// AppendMeta adds a change of metadata to the unit; a nil value deletes the key.
func AppendMeta(u *journal.Unit, key string, value []byte) {
	var n [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(n[:], uint64(len(key)))
	p := u.Reserve(journal.KindMeta, k+len(key)+1+len(value))
	p = p[copy(p, n[:k]):]
	p = p[copy(p, key):]
	p[0] = 0
	if value != nil {
		p[0] = 1
		copy(p[1:], value)
	}
}

var errMetaEntry = errors.New("malformed metadata entry")

// DecodeMeta takes a KindMeta payload apart; value is nil for a deletion. Both point into the payload's bytes or copies of them.
func DecodeMeta(payload []byte) (key string, value []byte, err error) {
	n, k := binary.Uvarint(payload)
	if k <= 0 || n >= uint64(len(payload)-k) {
		return "", nil, errMetaEntry
	}
	key = string(payload[k : k+int(n)])
	rest := payload[k+int(n):]
	switch rest[0] {
	case 0:
		return key, nil, nil
	case 1:
		return key, rest[1:len(rest):len(rest)], nil
	}
	return "", nil, errMetaEntry
}

// ApplyMeta writes a KindMeta entry and moves the mark in one batch; an entry that is in the database already is skipped. All
// entries of a unit must come, in order, also when it is replayed.
func (d *DB) ApplyMeta(lsn journal.LSN, payload []byte) error {
	d.metaMu.Lock()
	defer d.metaMu.Unlock()
	p := &d.meta
	if p.lsn != lsn {
		p.lsn, p.seen = lsn, 0
	}
	p.seen++
	if lsn < p.done.lsn || (lsn == p.done.lsn && p.seen <= p.done.entries) {
		return nil
	}
	key, value, err := DecodeMeta(payload)
	if err != nil {
		return fmt.Errorf("unit %d: %w", lsn, err)
	}
	b := d.NewBatch()
	if value == nil {
		b.Delete(MetaTable, []byte(key), nil)
	} else {
		b.Set(MetaTable, []byte(key), nil, value)
	}
	m := mark{lsn: lsn, entries: p.seen}
	b.setMark(journal.KindMeta, m)
	if err := b.Commit(); err != nil {
		return fmt.Errorf("apply metadata %q: %w", key, err)
	}
	p.done = m
	return nil
}

// GetMeta returns a copy of the key's value.
func (d *DB) GetMeta(key string) (value []byte, ok bool, err error) {
	return d.Get(MetaTable, []byte(key), nil)
}

// ScanMeta calls fn for the keys that start with prefix, in order; fn must not keep value.
func (d *DB) ScanMeta(prefix string, fn func(key string, value []byte) error) error {
	s := d.Snapshot()
	defer s.Release()
	it, err := s.ScanPrefix(MetaTable, []byte(prefix))
	if err != nil {
		return err
	}
	for it.Next() {
		if err := fn(string(it.Prefix()), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return it.Close()
}

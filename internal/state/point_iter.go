package state

import (
	"bytes"

	"github.com/zeebo/xxh3"

	"github.com/leat-io/leat/internal/kv"
)

// PointIter walks rows: for it.Next() {...}; then Err and Close. Reusable; the caller owns it.
type PointIter struct {
	p *Point

	// Of a window: the slots of the index, then what only kv has. Of a scan: rows in order, merged with kv.
	w      *part
	slot   int
	rows   lazySort
	merged bool

	stored *kv.Iter
	began  bool
	has    bool // stored stands on a row that was not yielded

	key, value []byte
	err        error
}

// ScanWindow starts it over the live rows of one window, in no order; the table must not be changed until it ends.
func (p *Point) ScanWindow(it *PointIter, end int64) error {
	if it.stored != nil {
		_ = it.Close()
	}
	*it = PointIter{p: p, rows: it.rows}
	if err := p.open(); err != nil {
		return err
	}
	for _, w := range p.parts {
		if w.end == end {
			it.w = w
		}
	}
	if it.w == nil || it.w.complete() {
		return nil
	}
	to := it.w.prefix
	var bound []byte
	if nextPrefix(to[:]) {
		bound = to[:]
	}
	return it.openStored(it.w.prefix[:], bound)
}

// Scan starts it over the live rows with from <= key < to, in order of the key (nil: no bound), merged with kv. The table must
// not be changed or probed until it ends. Starting costs a pass over the keys that are in memory, and they are sorted as far as the
// scan goes: it is for backfills and restarts, not for the way of the data.
func (p *Point) Scan(it *PointIter, from, to []byte) error {
	if it.stored != nil {
		_ = it.Close()
	}
	*it = PointIter{p: p, merged: true, rows: it.rows}
	if err := p.open(); err != nil {
		return err
	}
	if p.inMemory(&it.rows, from, to) {
		return nil
	}
	return it.openStored(from, to)
}

func (it *PointIter) openStored(from, to []byte) error {
	snap := it.p.db.Snapshot()
	defer snap.Release() // the iterator keeps it
	stored, err := snap.ScanRange(it.p.spec.ID, from, to)
	if err != nil {
		return it.p.wrap("scan", err)
	}
	it.stored = stored
	return nil
}

// Next moves to the next live row.
func (it *PointIter) Next() bool {
	if it.merged {
		return it.nextMerged()
	}
	p := it.p.pool
	if it.w == nil {
		return false
	}
	for it.slot < len(it.w.index.slots) {
		addr := uint32(it.w.index.slots[it.slot])
		it.slot++
		if addr != 0 && it.atRow(addr) {
			return true
		}
	}
	for it.stored != nil && it.stored.Next() {
		key := it.stored.Prefix()
		hash := xxh3.Hash(key)
		if it.w.known && !it.w.filter.has(hash) || it.w.index.find(p, hash, key, rowHeader) != 0 {
			continue
		}
		it.key, it.value = key, it.stored.Value()
		return true
	}
	return it.end()
}

func (it *PointIter) nextMerged() bool {
	p := it.p.pool
	if it.stored != nil && !it.began {
		it.began, it.has = true, it.stored.Next()
	}
	for {
		addr := it.rows.peek()
		if addr == 0 && !it.has {
			return it.end()
		}
		order := -1 // memory first
		if it.has {
			order = 1
			if addr != 0 {
				order = bytes.Compare(p.keyAt(addr, rowHeader), it.stored.Prefix())
			}
		}
		if order > 0 {
			if !it.p.storedCounts(it.stored.Prefix()) {
				it.has = it.stored.Next()
				continue
			}
			// Copied, since the iterator moves on before the caller is done with it.
			it.key = append(it.key[:0:0], it.stored.Prefix()...)
			it.value = append([]byte{}, it.stored.Value()...)
			it.has = it.stored.Next()
			return true
		}
		if order == 0 {
			it.has = it.stored.Next()
		}
		it.rows.at++
		if it.atRow(addr) {
			return true
		}
	}
}

func (it *PointIter) atRow(addr uint32) bool {
	p := it.p.pool
	r := p.row(addr)
	if r.valLen == absentLen {
		return false
	}
	it.key, it.value = p.keyAt(addr, rowHeader), p.valueOf(addr, r)
	return true
}

func (it *PointIter) end() bool {
	if it.stored != nil {
		it.err = it.stored.Err()
	}
	return false
}

// Key is that of the row; valid until the next move.
func (it *PointIter) Key() []byte { return it.key }

// Value is that of the row; valid until the next move.
func (it *PointIter) Value() []byte {
	if it.value == nil {
		return []byte{}
	}
	return it.value
}

// Err is why Next returned false, nil at the end.
func (it *PointIter) Err() error { return it.err }

// Close gives the iterator back, and returns Err.
func (it *PointIter) Close() error {
	if it.stored != nil {
		if err := it.stored.Close(); it.err == nil && err != nil {
			it.err = it.p.wrap("scan", err)
		}
		it.stored = nil
	}
	if cap(it.rows.rows) > 1<<16 {
		it.rows = lazySort{}
	}
	return it.err
}

package state

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/leat-io/leat/internal/budget"
)

// A merge turns the payloads of many epochs into one sorted list of rows, the last change of each, and writes it. It works on
// positions in the payloads: there is no Go object a row. Memory of a usual merge is kept for the next one.
type merge struct {
	payloads [][]byte

	rows  []mergedRow
	slots []uint64 // open addressing: upper half of the hash, then 1 + number of the row
	drops []drop
	taken int64 // from the budget
}

// mergedRow is the last change of one row.
type mergedRow struct {
	head    uint64 // table, and the first four bytes of the prefix
	next    uint64 // the eight bytes of the prefix after those, zeros behind its end: most comparisons end here
	payload uint32
	off     uint32 // of the operation in its payload
	seq     uint32 // of the operation in all payloads
}

// drop is a deletion of many rows: of the table those with a prefix below bound, all if it is nil.
type drop struct {
	table uint32
	bound []byte
	seq   uint32
}

func (m *merge) reset(b *budget.Budget) {
	if cap(m.rows) > 1<<16 {
		m.rows, m.slots = nil, nil
		b.Release(m.taken)
		m.taken = 0
	}
	clear(m.payloads)
	m.payloads = m.payloads[:0]
	m.rows = m.rows[:0]
	m.drops = m.drops[:0]
}

// account keeps the budget in step with the lists.
func (m *merge) account(b *budget.Budget) {
	if now := int64(cap(m.rows)*32 + cap(m.slots)*8); now > m.taken {
		b.Force(now - m.taken)
		m.taken = now
	}
}

// write gives w what the payloads come to. Everything that w was given before is in kv.
func (m *merge) write(w *writer, b *budget.Budget) error {
	defer m.reset(b)
	if err := m.collect(b); err != nil {
		return err
	}
	m.forgetDropped()
	slices.SortFunc(m.rows, m.compare)
	for _, d := range m.drops {
		if err := w.drop(d.table, d.bound); err != nil {
			return err
		}
	}
	var c Change
	for i := range m.rows {
		m.decode(&m.rows[i], &c)
		if err := w.row(&c); err != nil {
			return err
		}
	}
	return nil
}

// collect finds the last change of every row.
func (m *merge) collect(b *budget.Budget) error {
	if len(m.slots) == 0 {
		m.slots = make([]uint64, 1<<10)
	} else {
		clear(m.slots)
	}
	var key []byte
	seq := uint32(0)
	for i, payload := range m.payloads {
		d := NewDecoder(payload)
		var c Change
		for {
			if !d.Next(&c) {
				break
			}
			seq++
			switch c.Op {
			case OpDropWindows:
				m.addDrop(drop{c.Table, c.Prefix, seq})
			case OpDropTable:
				m.addDrop(drop{c.Table, nil, seq})
			default:
				key = binary.BigEndian.AppendUint32(key[:0], c.Table)
				key = binary.BigEndian.AppendUint32(key, uint32(len(c.Suffix)))
				key = append(append(key, c.Prefix...), c.Suffix...)
				m.put(&c, xxh3.Hash(key), mergedRow{payload: uint32(i), off: uint32(d.at), seq: seq})
				m.account(b)
			}
		}
		if err := d.Err(); err != nil {
			return err
		}
	}
	return nil
}

// addDrop keeps the latest drops: one that covers an older one of its table replaces it.
func (m *merge) addDrop(n drop) {
	m.drops = slices.DeleteFunc(m.drops, func(o drop) bool {
		return o.table == n.table && (n.bound == nil || o.bound != nil && bytes.Compare(o.bound, n.bound) <= 0)
	})
	m.drops = append(m.drops, n)
}

// put makes r the row's last change.
func (m *merge) put(c *Change, hash uint64, r mergedRow) {
	mask := len(m.slots) - 1
	var have Change
	for i := int(hash >> 32 >> m.shift()); ; i++ {
		s := m.slots[i&mask]
		if s == 0 {
			r.head, r.next = uint64(c.Table)<<32|head4(c.Prefix), next8(c.Prefix)
			m.rows = append(m.rows, r)
			m.slots[i&mask] = hash&^0xffffffff | uint64(len(m.rows))
			break
		}
		if s>>32 != hash>>32 {
			continue
		}
		row := &m.rows[uint32(s)-1]
		m.decode(row, &have)
		if row.head>>32 == uint64(c.Table) && bytes.Equal(have.Prefix, c.Prefix) && bytes.Equal(have.Suffix, c.Suffix) {
			r.head, r.next = row.head, row.next
			*row = r
			return
		}
	}
	if len(m.rows) > len(m.slots)/2 {
		m.grow()
	}
}

func (m *merge) grow() {
	old := m.slots
	m.slots = make([]uint64, 2*len(old))
	mask, shift := len(m.slots)-1, m.shift()
	for _, s := range old {
		if s == 0 {
			continue
		}
		j := int(s >> 32 >> shift)
		for m.slots[j&mask] != 0 {
			j++
		}
		m.slots[j&mask] = s
	}
}

// shift takes the upper half of a hash to its home.
func (m *merge) shift() int { return 33 - bits.Len(uint(len(m.slots))) }

func head4(b []byte) uint64 {
	if len(b) >= 4 {
		return uint64(binary.BigEndian.Uint32(b))
	}
	var h [4]byte
	copy(h[:], b)
	return uint64(binary.BigEndian.Uint32(h[:]))
}

func next8(b []byte) uint64 {
	if len(b) >= 12 {
		return binary.BigEndian.Uint64(b[4:])
	}
	var h [8]byte
	if len(b) > 4 {
		copy(h[:], b[4:])
	}
	return binary.BigEndian.Uint64(h[:])
}

// decode reads the row's change again.
func (m *merge) decode(r *mergedRow, c *Change) {
	d := Decoder{payload: m.payloads[r.payload], off: int(r.off), table: uint32(r.head >> 32), any: true}
	d.Next(c)
}

func (m *merge) compare(a, b mergedRow) int {
	if a.head != b.head {
		if a.head < b.head {
			return -1
		}
		return 1
	}
	if a.next != b.next {
		if a.next < b.next {
			return -1
		}
		return 1
	}
	var x, y Change
	m.decode(&a, &x)
	m.decode(&b, &y)
	if d := bytes.Compare(x.Prefix, y.Prefix); d != 0 {
		return d
	}
	return bytes.Compare(x.Suffix, y.Suffix)
}

// forgetDropped takes out the rows whose last change is before a drop that covers them.
func (m *merge) forgetDropped() {
	if len(m.drops) == 0 {
		return
	}
	var c Change
	m.rows = slices.DeleteFunc(m.rows, func(r mergedRow) bool {
		for _, d := range m.drops {
			if d.table != uint32(r.head>>32) || d.seq < r.seq {
				continue
			}
			if d.bound == nil {
				return true
			}
			m.decode(&r, &c)
			if bytes.Compare(c.Prefix, d.bound) < 0 {
				return true
			}
		}
		return false
	})
}

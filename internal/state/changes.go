package state

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/leat-io/leat/internal/journal"
)

// A payload of KindRows or KindState, format 1 (docs/format/state.md): a version byte, then operations in order.
const (
	payloadVersion = 1

	opTable       = 1 // id, 4 bytes big-endian: the table of the operations that follow
	opSet         = 2 // prefix, suffix, value: each a uvarint length and its bytes
	opDelete      = 3 // prefix, suffix
	opDropWindows = 4 // bound: all rows whose group prefix is below it as bytes
	opDropTable   = 5 // all rows of the table
)

// payloadBytes is the length at which another payload is begun.
const payloadBytes = 1 << 20

// Changes collects the payloads of one epoch: each element is one journal entry's payload, of about a MiB at most (unless one row
// is larger). The memory is the caller's until Reset.
type Changes struct {
	State, Rows [][]byte
	open        [2]openPayload // by kind
	spare       [][]byte
	spilling    spilling
}

// openPayload says which table the last payload of a kind is at.
type openPayload struct {
	table uint32
	any   bool
}

// Reset empties c and keeps some of its memory.
func (c *Changes) Reset() {
	for _, list := range [][][]byte{c.State, c.Rows} {
		for _, b := range list {
			if len(c.spare) < 4 && cap(b) <= 2*payloadBytes {
				c.spare = append(c.spare, b[:0])
			}
		}
	}
	clear(c.State)
	clear(c.Rows)
	c.spilling.discard()
	*c = Changes{State: c.State[:0], Rows: c.Rows[:0], spare: c.spare}
}

// Bytes is the size of all payloads that are in memory.
func (c *Changes) Bytes() (n int) {
	for _, b := range c.State {
		n += len(b)
	}
	for _, b := range c.Rows {
		n += len(b)
	}
	return n
}

// AddTo appends all payloads to the unit, which copies them.
func (c *Changes) AddTo(u *journal.Unit) {
	for _, b := range c.State {
		u.Append(journal.KindState, b)
	}
	for _, b := range c.Rows {
		u.Append(journal.KindRows, b)
	}
}

// Set adds a row's value by hand, behind what is there: the table writer's. What is added last wins.
func (c *Changes) Set(kind journal.Kind, table uint32, prefix, suffix, value []byte) {
	b := c.begin(kind, table, len(prefix)+len(suffix)+len(value))
	*b = append(*b, opSet)
	*b = appendBytes(*b, prefix)
	*b = appendBytes(*b, suffix)
	*b = appendBytes(*b, value)
}

// Delete adds a row's deletion.
func (c *Changes) Delete(kind journal.Kind, table uint32, prefix, suffix []byte) {
	b := c.begin(kind, table, len(prefix)+len(suffix))
	*b = append(*b, opDelete)
	*b = appendBytes(*b, prefix)
	*b = appendBytes(*b, suffix)
}

// DropTable adds the deletion of all rows of a table.
func (c *Changes) DropTable(kind journal.Kind, table uint32) {
	b := c.begin(kind, table, 0)
	*b = append(*b, opDropTable)
}

// dropBelow adds the deletion of all rows whose group prefix is below bound.
func (c *Changes) dropBelow(kind journal.Kind, table uint32, bound []byte) {
	b := c.begin(kind, table, len(bound))
	*b = append(*b, opDropWindows)
	*b = appendBytes(*b, bound)
}

// encodeDrop puts the windows that were dropped in this epoch before the rows that were set after that.
func (tb *table) encodeDrop(dst *Changes) {
	if !tb.dropped {
		return
	}
	tb.dropped = false
	if tb.spec.Ephemeral {
		return
	}
	var bound [WindowBytes]byte
	putWindowEnd(&bound, tb.tag, tb.dropTo)
	nextPrefix(bound[:])
	dst.dropBelow(tb.spec.kind(), tb.spec.ID, bound[:])
}

// begin makes room for an operation of about n bytes on the table, in a new payload if need be.
func (c *Changes) begin(kind journal.Kind, table uint32, n int) *[]byte {
	list, open := &c.State, &c.open[0]
	switch kind {
	case journal.KindState:
	case journal.KindRows:
		list, open = &c.Rows, &c.open[1]
	default:
		panic(fmt.Sprintf("state: a change of kind %d", kind))
	}
	last := len(*list) - 1
	if last < 0 || len((*list)[last])+n+32 > c.spilling.payloadBytes() && len((*list)[last]) > 1 {
		if last >= 0 {
			last = c.spill(kind, list)
		}
		var b []byte
		if k := len(c.spare); k > 0 {
			b, c.spare = c.spare[k-1], c.spare[:k-1]
		}
		*list = append(*list, append(b, payloadVersion))
		last++
		open.any = false
	}
	c.spilling.of(kind).changes++
	b := &(*list)[last]
	if !open.any || open.table != table {
		*b = binary.BigEndian.AppendUint32(append(*b, opTable), table)
		open.any, open.table = true, table
	}
	return b
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// ErrCorrupt is a payload that cannot be read.
var ErrCorrupt = errors.New("state: corrupt payload")

// Change is one decoded operation of a payload. Its bytes are the payload's.
type Change struct {
	Table  uint32
	Op     Op
	Prefix []byte // for OpDropWindows: the bound
	Suffix []byte
	Value  []byte
}

// Op is what a Change does.
type Op uint8

// The operations.
const (
	OpSet         Op = opSet
	OpDelete      Op = opDelete
	OpDropWindows Op = opDropWindows
	OpDropTable   Op = opDropTable
)

// Decoder reads a payload: for d.Next(&c) {...}; then Err.
type Decoder struct {
	payload []byte
	off     int
	at      int // of the operation that was read last
	table   uint32
	any     bool
	err     error
}

// NewDecoder starts at the front of the payload.
func NewDecoder(payload []byte) Decoder {
	d := Decoder{payload: payload, off: 1}
	switch {
	case len(payload) == 0:
		d.err = fmt.Errorf("%w: it is empty", ErrCorrupt)
	case payload[0] != payloadVersion:
		d.err = fmt.Errorf("%w: format version %d, this binary reads version %d", ErrCorrupt, payload[0], payloadVersion)
	}
	return d
}

// Err is why Next returned false, nil at the end.
func (d *Decoder) Err() error { return d.err }

// Next reads one operation.
func (d *Decoder) Next(c *Change) bool {
	for d.err == nil && d.off < len(d.payload) {
		op := d.payload[d.off]
		if op == opTable {
			if len(d.payload)-d.off < 5 {
				d.corrupt("a table id that is cut off")
				return false
			}
			d.table = binary.BigEndian.Uint32(d.payload[d.off+1:])
			d.any = true
			d.off += 5
			continue
		}
		if !d.any {
			d.corrupt("a change before the first table id")
			return false
		}
		d.at = d.off
		d.off++
		*c = Change{Table: d.table, Op: Op(op)}
		switch op {
		case opSet:
			c.Prefix, c.Suffix, c.Value = d.bytes(), d.bytes(), d.bytes()
		case opDelete:
			c.Prefix, c.Suffix = d.bytes(), d.bytes()
		case opDropWindows:
			c.Prefix = d.bytes()
		case opDropTable:
		default:
			d.corrupt(fmt.Sprintf("an operation %d that is not known", op))
		}
		return d.err == nil
	}
	return false
}

func (d *Decoder) bytes() []byte {
	if d.err != nil {
		return nil
	}
	n, k := binary.Uvarint(d.payload[d.off:])
	if k <= 0 || n > uint64(len(d.payload)-d.off-k) {
		d.corrupt("a length beyond the payload's end")
		return nil
	}
	start := d.off + k
	d.off = start + int(n)
	return d.payload[start:d.off:d.off]
}

func (d *Decoder) corrupt(what string) {
	d.err = fmt.Errorf("%w: %s, at byte %d of %d", ErrCorrupt, what, d.off, len(d.payload))
}

// resetList empties a list, and lets go of a large one's memory.
func resetList[T any](s []T) []T {
	if cap(s) > 1<<18 {
		return nil
	}
	return s[:0]
}

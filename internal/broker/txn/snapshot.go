package txn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// A snapshot is, in big endian: u8 version 1, u8 state, i64 producer id, i16 epoch, i64 last producer id, i16 last epoch, i16 ended epoch, i64 timeout, i64 start, i64 last
// change (all in milliseconds; the start is -1 before the first transaction); uvarint number of topics, each: 16 bytes id, uvarint number of partitions,
// each a uvarint; uvarint number of groups, each: uvarint length, name.
const (
	snapshotVersion = 1
	snapshotHead    = 1 + 1 + 8 + 2 + 8 + 2 + 2 + 3*8
)

// Snapshot encodes what must survive a restart.
func (t *Transaction) Snapshot() []byte {
	be := binary.BigEndian
	b := make([]byte, 0, snapshotHead+2+24*len(t.partitions))
	b = append(b, snapshotVersion, byte(t.state))
	b = be.AppendUint64(b, uint64(t.producerID))
	b = be.AppendUint16(b, uint16(t.epoch))
	b = be.AppendUint64(b, uint64(t.lastProducerID))
	b = be.AppendUint16(b, uint16(t.lastEpoch))
	b = be.AppendUint16(b, uint16(t.endedEpoch))
	b = be.AppendUint64(b, uint64(t.timeout.Milliseconds()))
	started := int64(-1)
	if !t.started.IsZero() {
		started = t.started.UnixMilli()
	}
	b = be.AppendUint64(b, uint64(started))
	b = be.AppendUint64(b, uint64(t.updated.UnixMilli()))
	topics := 0
	for i := range t.partitions {
		if i == 0 || t.partitions[i].Topic != t.partitions[i-1].Topic {
			topics++
		}
	}
	b = binary.AppendUvarint(b, uint64(topics))
	for rest := t.partitions; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Topic == rest[0].Topic {
			n++
		}
		b = append(b, rest[0].Topic[:]...)
		b = binary.AppendUvarint(b, uint64(n))
		for _, p := range rest[:n] {
			b = binary.AppendUvarint(b, uint64(p.Index))
		}
		rest = rest[n:]
	}
	b = binary.AppendUvarint(b, uint64(len(t.groups)))
	for _, g := range t.groups {
		b = binary.AppendUvarint(b, uint64(len(g)))
		b = append(b, g...)
	}
	return b
}

var errSnapshot = errors.New("a stored transaction is malformed")

// Restore rebuilds the state of a transactional id.
func Restore(b []byte) (*Transaction, error) {
	be := binary.BigEndian
	switch {
	case len(b) > 0 && b[0] != snapshotVersion:
		return nil, fmt.Errorf("a stored transaction has version %d, this binary reads version %d", b[0], snapshotVersion)
	case len(b) < snapshotHead || State(b[1]) > CompleteAbort:
		return nil, errSnapshot
	}
	ms := func(at int) int64 { return int64(be.Uint64(b[at:])) }
	t := &Transaction{
		state: State(b[1]), producerID: ms(2), epoch: int16(be.Uint16(b[10:])), lastProducerID: ms(12), lastEpoch: int16(be.Uint16(b[20:])),
		endedEpoch: int16(be.Uint16(b[22:])), timeout: time.Duration(min(ms(24), math.MaxInt32)) * time.Millisecond, updated: time.UnixMilli(ms(40)),
	}
	if at := ms(32); at >= 0 {
		t.started = time.UnixMilli(at)
	}
	if t.timeout < 0 || t.state == Ongoing && t.started.IsZero() {
		return nil, errSnapshot
	}
	b = b[snapshotHead:]
	count := func(least int) (int, bool) {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)-w)/uint64(least) {
			return 0, false
		}
		b = b[w:]
		return int(n), true
	}
	topics, ok := count(17)
	for ; ok && topics > 0; topics-- {
		if len(b) < 16 {
			return nil, errSnapshot
		}
		var p Partition
		b = b[copy(p.Topic[:], b):]
		var n int
		for n, ok = count(1); ok && n > 0; n-- {
			index, w := binary.Uvarint(b)
			if w <= 0 || index > math.MaxInt32 {
				return nil, errSnapshot
			}
			b, p.Index = b[w:], int32(index)
			if k := len(t.partitions); k > 0 && comparePartitions(t.partitions[k-1], p) >= 0 {
				return nil, errSnapshot
			}
			t.partitions = append(t.partitions, p)
		}
	}
	if !ok {
		return nil, errSnapshot
	}
	groups, ok := count(1)
	for ; ok && groups > 0; groups-- {
		var n int
		if n, ok = count(1); ok {
			if k := len(t.groups); k > 0 && t.groups[k-1] >= string(b[:n]) {
				return nil, errSnapshot
			}
			t.groups = append(t.groups, string(b[:n]))
			b = b[n:]
		}
	}
	if !ok || len(b) > 0 {
		return nil, errSnapshot
	}
	return t, nil
}

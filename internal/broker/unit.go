package broker

import (
	"context"
	"fmt"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/record"
)

// Unit is a journal unit that is being filled: batches for any partitions, metadata, and entries of others. All of it becomes visible at once, or
// none of it: readers see its batches whole (see Cut). For the engine's epochs and the table writer; not safe for concurrent use.
type Unit struct {
	b       *Broker
	u       *journal.Unit
	batches []unitBatch
	order   []func(journal.LSN)
}

type unitBatch struct {
	p       *Partition
	payload []byte
	deltas  int64 // offsets that it takes
}

// NewUnit returns an empty unit. It ends with Commit or Free.
func (b *Broker) NewUnit() *Unit { return &Unit{b: b, u: journal.NewUnit()} }

// AddBatch copies a batch into the unit; its offset is assigned when the unit is committed. The result is the batch's place in what Commit returns.
func (u *Unit) AddBatch(p *Partition, batch []byte) (ref int, err error) {
	h, err := record.ParseHeader(batch)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", p, err)
	}
	if h.Size() != len(batch) {
		return -1, fmt.Errorf("%w: %s: %d bytes for a batch of %d", ErrInvalidBatch, p, len(batch), h.Size())
	}
	payload := u.u.Reserve(journal.KindBatch, payloadHeader+len(batch))
	putPayloadHeader(payload, 0, p.Topic().ID, p.Index)
	copy(payload[payloadHeader:], batch)
	u.batches = append(u.batches, unitBatch{p: p, payload: payload, deltas: int64(h.LastOffsetDelta) + 1})
	return len(u.batches) - 1, nil
}

// AddMeta adds a change of metadata; a nil value deletes the key.
func (u *Unit) AddMeta(key string, value []byte) { kv.AppendMeta(u.u, key, value) }

// Append adds an entry of another kind (rows, state); the parts are copied.
func (u *Unit) Append(kind journal.Kind, parts ...[]byte) { u.u.Append(kind, parts...) }

// Reserve adds an entry of another kind with n bytes for the caller to fill in place.
func (u *Unit) Reserve(kind journal.Kind, n int) []byte { return u.u.Reserve(kind, n) }

// Size is the number of bytes in the unit so far.
func (u *Unit) Size() int { return u.u.Size() }

// OnOrder has fn called under the journal's ordering lock when the unit gets its place; it must not call the journal or the broker.
func (u *Unit) OnOrder(fn func(journal.LSN)) { u.order = append(u.order, fn) }

// Commit orders the unit and returns the base offset of each batch, -1 for one whose topic was deleted meanwhile. It blocks only while the journal
// has too much queued; use Broker.Wait to know the unit durable. After an error nothing of the unit was written, and it is freed.
func (u *Unit) Commit(ctx context.Context) (journal.LSN, []int64, error) {
	if err := ctx.Err(); err != nil {
		u.Free()
		return 0, nil, err
	}
	atomic := len(u.batches) > 1
	for i := range u.batches {
		if atomic {
			u.batches[i].payload[1] |= flagAtomic
		}
		if atomic && i == len(u.batches)-1 {
			u.batches[i].payload[1] |= flagLast
		}
	}
	offsets := make([]int64, len(u.batches))
	lsn, err := u.b.journal.Commit(u.u, func(lsn journal.LSN) {
		for i := range u.batches {
			ub := &u.batches[i]
			if ub.p.deleted.Load() {
				ub.payload[1] |= flagVoid
				offsets[i] = -1
				continue
			}
			offsets[i] = ub.p.next
			record.Patch(ub.payload[payloadHeader:], ub.p.next, u.b.epoch)
			ub.p.next += ub.deltas
		}
		for _, fn := range u.order {
			fn(lsn)
		}
	})
	u.u = nil // the journal's, error or not
	if err != nil {
		return 0, nil, err
	}
	return lsn, offsets, nil
}

// Free gives up a unit that was not committed.
func (u *Unit) Free() {
	if u.u != nil {
		u.u.Free()
		u.u = nil
	}
}

package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Reader is a registered reader of partitions: an island of the engine. While it is registered the broker remembers which offsets belong to
// one atomic unit, as far as the reader has not passed them. A Reader is for one goroutine.
type Reader struct {
	b     *Broker
	parts []*Partition
	at    map[*Partition]int64 // under ends.mu
	name  string               // under ends.mu
}

// SetName says who reads, for messages.
func (r *Reader) SetName(name string) {
	r.b.ends.mu.Lock()
	defer r.b.ends.mu.Unlock()
	r.name = name
}

// Name is who reads; it may be called by any goroutine.
func (r *Reader) Name() string {
	r.b.ends.mu.Lock()
	defer r.b.ends.mu.Unlock()
	return r.name
}

// NewReader registers a reader that stands at the offsets from, one for each of parts.
func (b *Broker) NewReader(parts []*Partition, from []int64) *Reader {
	r := &Reader{b: b, at: make(map[*Partition]int64, len(parts))}
	b.ends.mu.Lock()
	defer b.ends.mu.Unlock()
	r.add(parts, from)
	b.ends.readers[r] = struct{}{}
	return r
}

// Add lets the reader read more partitions.
func (r *Reader) Add(parts []*Partition, from []int64) {
	r.b.ends.mu.Lock()
	defer r.b.ends.mu.Unlock()
	r.add(parts, from)
}

func (r *Reader) add(parts []*Partition, from []int64) {
	for i, p := range parts {
		if _, ok := r.at[p]; !ok {
			r.parts = append(r.parts, p)
		}
		r.at[p] = from[i]
	}
}

// Partitions are those the reader reads, in the order of Cut's result.
func (r *Reader) Partitions() []*Partition { return r.parts }

// Advance says that everything below the offsets, one for each of Partitions, is done with.
func (r *Reader) Advance(to []int64) {
	e := &r.b.ends
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, p := range r.parts {
		r.at[p] = max(r.at[p], to[i])
	}
	// The common case, checked in constant time: everything in the list is still ahead of nobody.
	if e.ready && len(e.units) > 0 && !e.wanted(e.units[0]) {
		e.trim()
	}
}

// Close unregisters the reader.
func (r *Reader) Close() {
	r.b.ends.mu.Lock()
	defer r.b.ends.mu.Unlock()
	delete(r.b.ends.readers, r)
	r.b.ends.trim()
}

// Cut returns where the reader may read to, one offset for each of Partitions, as appended at one instant, at most limits (nil: no limits), such that no
// atomic unit is seen in part. If the limits would leave the reader where it is although there is more, they are raised to the end of the unit that
// it stands before: a reader always gets on.
func (r *Reader) Cut(limits []int64) []int64 {
	e := &r.b.ends
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]int64, len(r.parts))
	limits = append([]int64(nil), limits...)
	for {
		moved, more := false, false
		ends := e.cut(r.parts, limits)
		for i, p := range r.parts {
			out[i] = max(ends[p], r.at[p])
			moved = moved || out[i] > r.at[p]
			more = more || p.decided.Load() > r.at[p] && (limits == nil || limits[i] > r.at[p])
		}
		if moved || !more || len(limits) == 0 {
			return out
		}
		u, ok := blockingUnit(e.units, r.at)
		if !ok {
			return out
		}
		raised := false
		for i, p := range r.parts {
			for _, s := range u.spans {
				if s.p == p && limits[i] < s.end {
					limits[i], raised = s.end, true
				}
			}
		}
		if !raised {
			return out
		}
	}
}

// Cut returns, for each of parts, where a reader may read to: the ends as appended at one instant, each at most its limit (nil: no limits) and at most
// where an open transaction begins, lowered until no atomic unit is seen in part. The markers that end a transaction are such a unit: who gives the
// records of a transaction out when it meets its marker gives all of them out between the same two cuts. Units are known from the time a Reader was
// registered on, and while an open transaction keeps one of them from being seen; see Reader.Cut for one that always gets on.
func (b *Broker) Cut(parts []*Partition, limits []int64) []int64 {
	b.ends.mu.Lock()
	ends := b.ends.cut(parts, limits)
	b.ends.mu.Unlock()
	out := make([]int64, len(parts))
	for i, p := range parts {
		out[i] = ends[p]
	}
	return out
}

// cut is Cut; mu is held.
func (e *ends) cut(parts []*Partition, limits []int64) map[*Partition]int64 {
	ends := make(map[*Partition]int64, len(parts))
	lowered := false
	for i, p := range parts {
		end := p.decided.Load()
		lowered = lowered || end < p.appended.Load()
		if len(limits) > 0 && limits[i] < end {
			end, lowered = limits[i], true
		}
		ends[p] = end
	}
	if lowered { // the appended ends themselves never split a unit
		lowerToWholeUnits(e.units, ends)
	}
	return ends
}

// wanted reports whether some reader may still meet the unit, or a new one could see it in part; mu is held.
func (e *ends) wanted(u atomicUnit) bool {
	if u.held() {
		return true
	}
	for r := range e.readers {
		if u.needed(r.at) {
			return true
		}
	}
	return false
}

// trim forgets units that every reader has passed; mu is held.
func (e *ends) trim() {
	if !e.ready {
		return
	}
	kept := e.units[:0]
	for _, u := range e.units {
		if e.wanted(u) {
			kept = append(kept, u)
		}
	}
	clear(e.units[len(kept):])
	e.units = kept
	if len(kept) == 0 {
		e.units = nil
	}
}

// ReadersReady says that all readers of the last run are registered again, so that units nobody needs can be forgotten. Until then all that the
// journal still had are kept.
func (b *Broker) ReadersReady() {
	b.ends.mu.Lock()
	defer b.ends.mu.Unlock()
	b.ends.ready = true
	b.ends.trim()
}

// Stored atomic units: u8 version, then each: u64 lsn, u32 spans, each: 16 topic id, u32 partition, u64 base, u64 end.
const unitsVersion = 1

func (e *ends) appendUnits(dst []byte) []byte {
	dst = append(dst, unitsVersion)
	for _, u := range e.units {
		dst = binary.BigEndian.AppendUint64(dst, u.lsn)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(u.spans)))
		for _, s := range u.spans {
			id := s.p.Topic().ID
			dst = append(dst, id[:]...)
			dst = binary.BigEndian.AppendUint32(dst, uint32(s.p.Index))
			dst = binary.BigEndian.AppendUint64(dst, uint64(s.base))
			dst = binary.BigEndian.AppendUint64(dst, uint64(s.end))
		}
	}
	return dst
}

var errUnits = errors.New("the stored list of atomic units is malformed")

func (b *Broker) loadAtomicUnits() error {
	raw, ok, err := b.kv.GetMeta(metaUnits)
	if err != nil {
		return fmt.Errorf("broker: read atomic units: %w", err)
	}
	if !ok || len(raw) == 0 {
		return nil
	}
	if raw[0] != unitsVersion {
		return fmt.Errorf("broker: %w: version %d", errUnits, raw[0])
	}
	raw = raw[1:]
	for len(raw) > 0 {
		if len(raw) < 12 {
			return fmt.Errorf("broker: %w", errUnits)
		}
		u := atomicUnit{lsn: binary.BigEndian.Uint64(raw)}
		n := int(binary.BigEndian.Uint32(raw[8:]))
		raw = raw[12:]
		const spanBytes = 16 + 4 + 8 + 8
		if n > len(raw)/spanBytes {
			return fmt.Errorf("broker: %w", errUnits)
		}
		for range n {
			var id TopicID
			copy(id[:], raw)
			t, ok := b.TopicByID(id)
			if ok {
				if p := t.Partition(int32(binary.BigEndian.Uint32(raw[16:]))); p != nil {
					u.spans = append(u.spans, span{p: p, base: int64(binary.BigEndian.Uint64(raw[20:])), end: int64(binary.BigEndian.Uint64(raw[28:]))})
				}
			}
			raw = raw[spanBytes:]
		}
		if len(u.spans) > 0 {
			b.ends.units = append(b.ends.units, u)
		}
	}
	return nil
}

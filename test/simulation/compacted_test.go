package simulation

import (
	"fmt"
	"strings"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/record"
)

// The topic keyed is compacted at random steps, under an idempotent producer and losses of power. A record of it is "key=value", or "key" for a
// tombstone.
const keyed = "keyed"

// produceKeyed sends a batch of records of a few keys.
func (h *run1) produceKeyed() {
	p := h.world.keyed
	at := h.at(p)
	if at == nil || len(p.waiting) == maxInFlight {
		return
	}
	s := &sent{}
	for range 1 + h.rng.IntN(4) {
		v := fmt.Sprint("k", h.rng.IntN(5))
		if h.rng.IntN(5) > 0 {
			v += fmt.Sprintf("=%d %s", h.rng.IntN(1_000_000), strings.Repeat("x", h.rng.IntN(60)))
		}
		s.values = append(s.values, v)
	}
	s.bytes = build(s.values, 200, p.seq, true)
	if h.send(p, at, s) {
		p.seq += int32(len(s.values))
	}
}

// compact compacts what is due.
func (h *run1) compact() {
	before := h.removed()
	h.core.Broker.Compact()
	if n := h.removed() - before; n > 0 {
		say("compacted: %d bytes less", n)
		h.compactions++
	}
	for p, err := range h.core.Broker.Uncleanable() {
		h.mu.Lock()
		if h.err == nil && !h.fs.lost() {
			h.err = fmt.Errorf("%s cannot be compacted: %w", p, err)
		}
		h.mu.Unlock()
	}
}

// removed is how much compaction has taken out of the partition, as far as its size tells.
func (h *run1) removed() int64 {
	if at := h.at(h.world.keyed); at != nil {
		return -at.Bytes()
	}
	return 0
}

// kept reads a compacted partition up to its high watermark, checks what is there and what is missing, and returns the log as if all were there.
func (h *run1) kept(p *partition, at *broker.Partition) ([]string, error) {
	end := at.HighWatermark()
	if end > int64(len(p.log)) {
		return nil, fmt.Errorf("%s ends at %d; clients wrote %d records", p.key(), end, len(p.log))
	}
	there, err := readKept(at, end)
	if err != nil {
		return nil, err
	}
	last, any := map[string]int64{}, map[string]bool{}
	for offset, v := range p.log[:end] {
		last[keyOf(v)] = int64(offset)
	}
	for offset, v := range there {
		if v != p.log[offset] {
			return nil, fmt.Errorf("%s has %q at %d, where %q was written", p.key(), v, offset, p.log[offset])
		}
		any[keyOf(v)] = true
	}
	for key, offset := range last {
		if _, ok := there[offset]; ok {
			continue
		}
		if gone := p.log[offset] == key && h.world.forgetful; !gone || any[key] {
			return nil, fmt.Errorf("%s lacks %q of %d, the last of its key; it holds %v", p.key(), p.log[offset], offset, there)
		}
	}
	return p.log[:end], nil
}

func keyOf(v string) string {
	key, _, _ := strings.Cut(v, "=")
	return key
}

// readKept reads what there is below end, by offset; offsets only rise.
func readKept(p *broker.Partition, end int64) (map[int64]string, error) {
	at, err := p.StartOffset()
	if err != nil {
		return nil, err
	}
	out := map[int64]string{}
	var r record.Reader
	defer r.Close()
	for last := int64(-1); at < end; {
		c, err := p.Read(at, 1<<20, broker.ViewDurable, true)
		if err != nil {
			return nil, fmt.Errorf("reading %s at %d: %w", p, at, err)
		}
		buf, err := c.AppendTo(nil)
		next := c.Next
		c.Release()
		if err != nil {
			return nil, err
		}
		if next <= at {
			return nil, fmt.Errorf("%s: a read at %d goes on at %d", p, at, next)
		}
		for len(buf) > 0 {
			var batch []byte
			if batch, buf, err = record.Next(buf); err != nil {
				return nil, err
			}
			if err := r.Reset(batch); err != nil {
				return nil, err
			}
			for r.Next() {
				rec := r.Record()
				if rec.Offset <= last {
					return nil, fmt.Errorf("%s: offset %d comes after %d", p, rec.Offset, last)
				}
				last = rec.Offset
				v := string(rec.Key)
				if rec.Value != nil {
					v += "=" + string(rec.Value)
				}
				if rec.Offset < end {
					out[rec.Offset] = v
				}
			}
			if err := r.Err(); err != nil {
				return nil, err
			}
		}
		at = next
	}
	return out, nil
}

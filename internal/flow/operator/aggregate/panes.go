package aggregate

import (
	"encoding/binary"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/plan"
	"github.com/leat-io/leat/internal/state"
)

// A HOP's rows come with the bounds of their pane, the greatest part that every window holds whole or not at all. The rows of
// an epoch are brought together by pane, once each; at its end each pane group is merged into the groups of the windows that it
// is part of, which keep the state. A row that was late for some of its windows comes with the bounds of each window that it
// is not late for, and goes to that window's group directly.

// spreader finds the windows of a pane.
type spreader struct {
	size, slide, offset, pane int64
}

func newSpreader(p *plan.Aggregate) spreader {
	h := p.Hop
	pane, d := h.Size, h.Slide
	for d != 0 {
		pane, d = d, pane%d
	}
	return spreader{size: h.Size, slide: h.Slide, offset: h.Offset, pane: pane}
}

// windows gives the first and last start of the windows that hold the pane which starts at s; first > last: none.
func (s *spreader) windows(start int64) (first, last int64) {
	r := (start - s.offset) % s.slide
	if r < 0 {
		r += s.slide
	}
	last = start - r
	if r+s.pane > s.size {
		return last + s.slide, last
	}
	return last - (s.size-s.pane-r)/s.slide*s.slide, last
}

// pushPanes takes a batch whose window columns are panes' or windows' bounds.
func (a *Aggregate) pushPanes(b *column.Batch) error {
	from, to := b.Cols[a.p.Groups[a.p.WindowStart]], b.Cols[a.p.Groups[a.p.WindowEnd]]
	whole := a.paneIdx[:0] // rows with a window's bounds
	for i := range b.Len {
		if to.I64[i]-from.I64[i] != a.pane || a.pane == a.spread.size {
			whole = append(whole, int32(i))
		}
	}
	a.paneIdx = whole
	if len(whole) == b.Len {
		return a.add(b)
	}
	if len(whole) > 0 {
		a.direct.Gather(b, whole)
		if err := a.add(&a.direct); err != nil {
			return err
		}
		rest := a.rows[:0]
		k := 0
		for i := range b.Len {
			if k < len(whole) && whole[k] == int32(i) {
				k++
				continue
			}
			rest = append(rest, int32(i))
		}
		a.rows = rest
		var g column.Batch
		g.Gather(b, rest)
		b = &g
	}
	if !a.doPanes {
		return a.spreadRows(b)
	}
	return a.addPanes(b)
}

// addPanes brings rows into the pane groups of the epoch.
func (a *Aggregate) addPanes(b *column.Batch) error {
	a.keys.Reset()
	appendKeys(a, b)
	ids := a.paneIdx[:0]
	for i := range b.Len {
		id, created := a.panes.Add(a.keys.Key(i))
		if created {
			a.paneVals = append(a.paneVals, a.empty...)
		}
		ids = append(ids, int32(id))
	}
	a.paneIdx = ids
	if cap(a.vals) < b.Len {
		a.refs = make([]state.Ref, max(b.Len, column.MaxRows))
		a.vals = make([][]byte, max(b.Len, column.MaxRows))
	}
	vals := a.vals[:b.Len]
	for i, id := range ids {
		at := int(id) * a.fixed
		vals[i] = a.paneVals[at : at+a.fixed : at+a.fixed]
	}
	a.apply(b, vals)
	return nil
}

// spreadRows gives each row of panes to all windows of its pane: for calls whose state cannot be merged.
func (a *Aggregate) spreadRows(b *column.Batch) error {
	s, e := a.p.Groups[a.p.WindowStart], a.p.Groups[a.p.WindowEnd]
	var rows []int32
	var starts []int64
	for i := range b.Len {
		first, last := a.spread.windows(b.Cols[s].I64[i])
		for w := first; w <= last; w += a.spread.slide {
			rows = append(rows, int32(i))
			starts = append(starts, w)
		}
	}
	var g column.Batch
	g.Gather(b, rows)
	for i, w := range starts {
		g.Cols[s].I64[i], g.Cols[e].I64[i] = w, w+a.spread.size
	}
	return a.add(&g)
}

// mergePanes merges the epoch's pane groups into their windows' groups.
func (a *Aggregate) mergePanes() (bool, error) {
	if a.panes.Len() == 0 {
		return true, nil
	}
	var keys state.Keys
	var from []int32
	chunk := 1024
	if !a.groups.Complete() {
		chunk = a.env.Tables.Batch()
	}
	for next := 0; next < a.panes.Len(); {
		keys.Reset()
		from = from[:0]
		for next < a.panes.Len() && len(from) < chunk {
			from = a.spread.appendKeys(&keys, a.panes.Key(next), from, int32(next))
			next++
		}
		if len(from) == 0 {
			continue
		}
		if cap(a.refs) < len(from) {
			a.refs = make([]state.Ref, len(from))
			a.vals = make([][]byte, len(from))
		}
		refs := a.refs[:len(from)]
		if err := a.groups.Probe(&keys, refs); err != nil {
			return false, err
		}
		for i, p := range from {
			dst, _ := a.groups.Fixed(refs[i], a.fixed)
			a.merge(dst, a.paneVals[int(p)*a.fixed:])
		}
		a.env.Counts.PanesMerged += int64(len(from))
	}
	a.panes.Reset()
	a.paneVals = a.paneVals[:0]
	return true, nil
}

func appendKeys(a *Aggregate, b *column.Batch) { rowenc.AppendKeys(&a.keys, b, a.keyOf) }

// paneBounds are the bounds in a stored key: the end comes first, then the start.
func paneBounds(key []byte) (start, end int64) {
	return int64(binary.BigEndian.Uint64(key[10:]) ^ 1<<63), int64(binary.BigEndian.Uint64(key[1:]) ^ 1<<63)
}

// appendKeys appends the keys of the windows that hold a pane, whose key is given, and for each of them the pane's number.
func (s *spreader) appendKeys(dst *state.Keys, key []byte, from []int32, pane int32) []int32 {
	start, _ := paneBounds(key)
	first, last := s.windows(start)
	for w := first; w <= last; w += s.slide {
		at := len(dst.Data)
		dst.Append(key)
		k := dst.Data[at:]
		binary.BigEndian.PutUint64(k[1:], uint64(w+s.size)^1<<63)
		binary.BigEndian.PutUint64(k[10:], uint64(w)^1<<63)
		from = append(from, pane)
	}
	return from
}

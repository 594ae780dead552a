package aggregate

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/state"
)

// PartialTypes are the columns of what Folds make: a group's stored key, and the row of the group as far as a Fold has seen it.
var PartialTypes = []column.Type{column.TBytea, column.TBytea}

// keysOf are the stored keys of a batch of partial rows; valid as long as they.
func keysOf(b *column.Batch) state.Keys {
	return state.Keys{Data: b.Cols[0].Data, Off: b.Cols[0].Off[:b.Len+1]}
}

// addPartials is add of partial rows.
func (a *Aggregate) addPartials(b *column.Batch) error {
	return a.take(&a.partsHeld, b, a.mergePartials)
}

// mergePartials merges partial rows into their groups.
func (a *Aggregate) mergePartials(b *column.Batch) error {
	if b.Len == 0 {
		return nil
	}
	a.skey = keysOf(b)
	refs, err := a.probe(b.Len)
	if err != nil {
		return err
	}
	if a.tails == 0 {
		for i, r := range refs {
			dst, _ := a.groups.Fixed(r, a.fixed)
			a.merge(dst, b.Cols[1].Bytes(i))
		}
		return nil
	}
	for i, r := range refs {
		if a.groups.Value(r) == nil {
			a.groups.Set(r, a.empty)
		}
		src := b.Cols[1].Bytes(i)
		a.merge(a.groups.Mutable(r), src)
		for k := range a.calls {
			c := &a.calls[k]
			if c.sec == nil {
				continue
			}
			part, _ := section(src, a.fixed, c.section)
			if len(part) == 0 {
				continue
			}
			old, _ := section(a.groups.Value(r), a.fixed, c.section)
			if a.body, err = c.sec.merge(a.body[:0], old, part); err != nil {
				return err
			}
			a.setSection(r, c.section, a.body)
		}
	}
	return nil
}

// pushPartialPanes takes partial rows whose window columns are panes' or windows' bounds.
func (a *Aggregate) pushPartialPanes(b *column.Batch) error {
	whole, panes := a.paneIdx[:0], a.rows[:0]
	keys := keysOf(b)
	for i := range b.Len {
		if from, to := paneBounds(keys.At(i)); to-from != a.pane || a.pane == a.spread.size {
			whole = append(whole, int32(i))
		} else {
			panes = append(panes, int32(i))
		}
	}
	a.paneIdx, a.rows = whole, panes
	if len(panes) == 0 {
		return a.addPartials(b)
	}
	if len(whole) > 0 {
		a.direct.Gather(b, whole)
		if err := a.addPartials(&a.direct); err != nil {
			return err
		}
	}
	if !a.doPanes {
		return a.spreadPartials(b, panes)
	}
	for _, i := range panes {
		id, created := a.panes.Add(keys.At(int(i)))
		if created {
			a.paneVals = append(a.paneVals, a.empty...)
		}
		at := id * a.fixed
		a.merge(a.paneVals[at:at+a.fixed], b.Cols[1].Bytes(int(i)))
	}
	return nil
}

// spreadPartials gives each of some partial rows of panes to all windows of its pane, where groups have sections.
func (a *Aggregate) spreadPartials(b *column.Batch, panes []int32) error {
	keys := keysOf(b)
	var windows state.Keys
	var from []int32
	for _, i := range panes {
		from = a.spread.appendKeys(&windows, keys.At(int(i)), from, i)
	}
	out := &a.direct
	out.Reset(PartialTypes)
	for k, i := range from {
		out.Cols[0].AppendBytes(windows.At(k))
		out.Cols[1].AppendBytes(b.Cols[1].Bytes(int(i)))
		out.EndRow(1)
	}
	return a.addPartials(out)
}

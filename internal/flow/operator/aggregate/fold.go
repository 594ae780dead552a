package aggregate

import (
	"encoding/binary"
	"sync"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/flow/operator/keyed"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Fold brings rows together by group before they go to the workers that own the groups: an Aggregate merges what several Folds have made of
// rows, in any order, into what it would have made of the rows themselves, bit for bit. One goroutine uses it at a time.
type Fold struct {
	layout
	owner []int // input columns whose hash says which worker owns a group
	ids   []int32
	vals  [][]byte
	body  []byte
	of    *folded // nil while it holds nothing
}

// folded is what a Fold holds: by group, in the order of their first rows.
type folded struct {
	groups keyed.Table
	hashes []uint64 // of the owner columns
	fixed  []byte
	tails  [][]tail // by section
	bytes  int64    // besides what grows with the number of groups
}

// tail is a section as long as rows are added: of a numeric sum decoded, of others their bytes.
type tail struct {
	sum  numericState
	body []byte
}

// foldeds are kept for the next epoch, while memory is not short.
var foldeds = sync.Pool{New: func() any { return &folded{} }}

// NewFold makes a Fold for an aggregate's input, nil if the aggregate's state cannot be merged: sums of real and double precision depend in
// their last digits on what was added to what; values that may leave, and the looks of groups that are equal and look different, are kept one by
// one. The hash of the owner columns, which are among the groups', says which worker owns a group.
func NewFold(p *plan.Aggregate, in []column.Type, appendOnly bool, owner []int) (*Fold, error) {
	l, err := newLayout(p, in, appendOnly)
	if err != nil || l.show != nil {
		return nil, err
	}
	for i := range l.calls {
		if _, ok := l.calls[i].acc.(floatSum); ok || l.calls[i].ret != nil {
			return nil, nil
		}
	}
	return &Fold{layout: l, owner: owner}, nil
}

// Len is the number of groups.
func (f *Fold) Len() int {
	if f.of == nil {
		return 0
	}
	return len(f.of.hashes)
}

// Bytes is about how much memory the groups take.
func (f *Fold) Bytes() int64 {
	if f.of == nil {
		return 0
	}
	const hash, perTail = 8, 128
	return f.of.groups.Bytes() + int64(f.Len())*int64(hash+f.fixed+perTail*f.tails) + f.of.bytes
}

// Add brings the rows of b into their groups.
func (f *Fold) Add(b *column.Batch) error {
	if b.Len == 0 {
		return nil
	}
	if f.of == nil {
		f.of = foldeds.Get().(*folded)
		for len(f.of.tails) < f.tails {
			f.of.tails = append(f.of.tails, nil)
		}
	}
	f.find(b)
	f.apply(b, f.vals[:b.Len])
	for i := range f.calls {
		if c := &f.calls[i]; c.sec != nil {
			if err := f.addTails(c, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// find makes ids and vals the rows' groups and their fixed parts.
func (f *Fold) find(b *column.Batch) {
	if cap(f.vals) < b.Len {
		n := max(b.Len, column.MaxRows)
		f.vals, f.ids = make([][]byte, n), make([]int32, n)
	}
	f.vals, f.ids = f.vals[:b.Len], f.ids[:b.Len]
	if f.global {
		if f.Len() == 0 {
			f.create(b, 0)
		}
		v := f.of.fixed[:f.fixed:f.fixed]
		for i := range f.vals {
			f.vals[i], f.ids[i] = v, 0
		}
		return
	}
	f.keys.Reset()
	rowenc.AppendKeys(&f.keys, b, f.keyOf)
	for i := range f.ids {
		id, created := f.of.groups.Add(f.keys.Key(i))
		if created {
			f.create(b, i)
		}
		f.ids[i] = int32(id)
	}
	for i, id := range f.ids {
		at := int(id) * f.fixed
		f.vals[i] = f.of.fixed[at : at+f.fixed : at+f.fixed]
	}
}

// create makes the next group, that of a row of b.
func (f *Fold) create(b *column.Batch, row int) {
	f.of.hashes = append(f.of.hashes, rowenc.HashRow(b, f.owner, row))
	f.of.fixed = append(f.of.fixed, f.empty[:f.fixed]...)
	for i := range f.tails {
		t := f.of.tails[i]
		if len(t) == cap(t) {
			t = append(t, tail{})
		} else {
			t = t[:len(t)+1] // its memory is of an earlier group, which reset has emptied
		}
		f.of.tails[i] = t
	}
}

// addTails brings the rows that a call takes into its sections.
func (f *Fold) addTails(c *call, b *column.Batch) error {
	tails, arg := f.of.tails[c.section], b.Cols[c.arg]
	_, sums := c.sec.(*numericSum)
	for _, r := range f.selected(b, c) {
		t := &tails[f.ids[r]]
		if sums {
			before := t.sum.sum.BigSize()
			if err := t.sum.add(arg.Dec[r], weightOf(b.Weights, r)); err != nil {
				return err
			}
			f.of.bytes += int64(t.sum.sum.BigSize() - before)
			continue
		}
		var err error
		if f.body, err = c.sec.update(f.body[:0], t.body, arg, int(r), weightOf(b.Weights, r)); err != nil {
			return err
		}
		f.of.bytes += int64(len(f.body) - len(t.body))
		t.body = append(t.body[:0], f.body...)
	}
	return nil
}

// Hash is that of the owner columns of group i.
func (f *Fold) Hash(i int) uint64 { return f.of.hashes[i] }

// AppendTo appends group i to a batch of PartialTypes.
func (f *Fold) AppendTo(b *column.Batch, i int) {
	key, row := b.Cols[0], b.Cols[1]
	if !f.global {
		key.Data = append(key.Data, f.of.groups.Key(i)...)
	}
	key.EndBytes()
	row.Data = append(row.Data, f.of.fixed[i*f.fixed:(i+1)*f.fixed]...)
	for k := range f.calls {
		c := &f.calls[k]
		if c.sec == nil {
			continue
		}
		at, t := len(row.Data), &f.of.tails[c.section][i]
		row.Data = append(row.Data, 0, 0, 0, 0)
		switch c.sec.(type) {
		case *numericSum:
			if len(t.sum.scales) > 0 || t.sum.n|t.sum.nan|t.sum.up|t.sum.down != 0 {
				row.Data = t.sum.encode(row.Data)
			}
		default:
			row.Data = append(row.Data, t.body...)
		}
		binary.LittleEndian.PutUint32(row.Data[at:], uint32(len(row.Data)-at-4))
	}
	row.EndBytes()
	b.EndRow(1)
}

// Reset forgets the groups.
func (f *Fold) Reset() {
	s := f.of
	if s == nil {
		return
	}
	f.of = nil
	s.groups.Reset()
	s.hashes, s.fixed, s.bytes = s.hashes[:0], s.fixed[:0], 0
	for i, list := range s.tails {
		for k := range list {
			t := &list[k]
			t.sum = numericState{scales: t.sum.scales[:0]}
			if t.body = t.body[:0]; cap(t.body) > keepTail {
				t.body = nil
			}
		}
		s.tails[i] = list[:0]
	}
	foldeds.Put(s)
}

// keepTail is up to how many bytes of memory a section keeps for the next group.
const keepTail = 256

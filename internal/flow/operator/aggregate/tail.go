package aggregate

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/state"
)

// A group's row is the fixed part of all calls, then a section (4 bytes of length, then bytes) for each call whose state has no
// fixed size. The section of a call that never had a value is empty.

var errRow = errors.New("aggregate: malformed row of state")

// section returns the bytes of section i of a row, and where its length stands.
func section(row []byte, fixed, i int) (body []byte, at int) {
	at = fixed
	for ; i > 0; i-- {
		at += 4 + int(binary.LittleEndian.Uint32(row[at:]))
	}
	n := int(binary.LittleEndian.Uint32(row[at:]))
	return row[at+4 : at+4+n : at+4+n], at
}

// setSection replaces section i of a group's row, in place if the length stays.
func (a *Aggregate) setSection(ref state.Ref, i int, body []byte) {
	row := a.groups.Mutable(ref)
	old, at := section(row, a.fixed, i)
	if len(old) == len(body) {
		copy(old, body)
		return
	}
	s := append(a.scratch[:0], row[:at]...)
	s = binary.LittleEndian.AppendUint32(s, uint32(len(body)))
	s = append(s, body...)
	s = append(s, row[at+4+len(old):]...)
	a.scratch = s
	a.groups.Set(ref, s)
}

// sectioned is a call whose state is in a section.
type sectioned interface {
	// update changes a section by one value; body is the old one, the new one is appended to dst.
	update(dst, body []byte, arg *column.Vector, row int, weight int64) ([]byte, error)
	// merge brings part, a section of other rows of the group, into body; the new one is appended to dst.
	merge(dst, body, part []byte) ([]byte, error)
	result(body []byte, dst *column.Vector) error
}

// numericSum is sum and avg of numeric: counts of values, NaN and infinities, the sum of the finite values, and how many values
// have which display scale: the result shows the largest of those that are left.
type numericSum struct {
	avg     bool
	s, part numericState
}

type numericState struct {
	n, nan, up, down int64
	sum              decimal.Decimal
	scales           []scaleCount
}

type scaleCount struct {
	scale int
	n     int64
}

func (s *numericState) decode(b []byte) error {
	*s = numericState{scales: s.scales[:0]}
	if len(b) == 0 {
		return nil
	}
	for _, p := range []*int64{&s.n, &s.nan, &s.up, &s.down} {
		x, k := binary.Varint(b)
		if k <= 0 {
			return errRow
		}
		*p, b = x, b[k:]
	}
	d, k, err := decimal.Decode(b)
	if err != nil {
		return err
	}
	s.sum, b = d, b[k:]
	for len(b) > 0 {
		scale, k := binary.Uvarint(b)
		if k <= 0 {
			return errRow
		}
		n, m := binary.Varint(b[k:])
		if m <= 0 {
			return errRow
		}
		s.scales = append(s.scales, scaleCount{int(scale), n})
		b = b[k+m:]
	}
	return nil
}

func (s *numericState) encode(b []byte) []byte {
	b = binary.AppendVarint(b, s.n)
	b = binary.AppendVarint(b, s.nan)
	b = binary.AppendVarint(b, s.up)
	b = binary.AppendVarint(b, s.down)
	b = s.sum.AppendBinary(b)
	for _, c := range s.scales {
		if c.n != 0 {
			b = binary.AppendUvarint(b, uint64(c.scale))
			b = binary.AppendVarint(b, c.n)
		}
	}
	return b
}

// add adds a value w times.
func (s *numericState) add(x decimal.Decimal, w int64) error {
	s.n += w
	switch {
	case x.IsNaN():
		s.nan += w
	case x.IsInf() && x.Sign() > 0:
		s.up += w
	case x.IsInf():
		s.down += w
	default:
		s.count(x.Scale(), w)
		var err error
		switch w {
		case 1:
		case -1:
			x = x.Neg()
		default:
			if x, err = x.Mul(decimal.FromInt64(w)); err != nil {
				return err
			}
		}
		if s.sum, err = s.sum.Add(x); err != nil {
			return err
		}
	}
	return nil
}

// count notes n values of a scale.
func (s *numericState) count(scale int, n int64) {
	for i := range s.scales {
		if s.scales[i].scale == scale {
			s.scales[i].n += n
			return
		}
	}
	s.scales = append(s.scales, scaleCount{scale, n})
}

// merge adds the values that o has.
func (s *numericState) merge(o *numericState) (err error) {
	s.n, s.nan, s.up, s.down = s.n+o.n, s.nan+o.nan, s.up+o.up, s.down+o.down
	for _, c := range o.scales {
		s.count(c.scale, c.n)
	}
	s.sum, err = s.sum.Add(o.sum)
	return err
}

func (c *numericSum) update(dst, body []byte, arg *column.Vector, row int, w int64) ([]byte, error) {
	if err := c.s.decode(body); err != nil {
		return nil, err
	}
	if err := c.s.add(arg.Dec[row], w); err != nil {
		return nil, err
	}
	return c.s.encode(dst), nil
}

func (c *numericSum) merge(dst, body, part []byte) ([]byte, error) {
	if err := c.s.decode(body); err != nil {
		return nil, err
	}
	if err := c.part.decode(part); err != nil {
		return nil, err
	}
	if err := c.s.merge(&c.part); err != nil {
		return nil, err
	}
	return c.s.encode(dst), nil
}

func (c *numericSum) result(body []byte, dst *column.Vector) error {
	s := &c.s
	if err := s.decode(body); err != nil {
		return err
	}
	var d decimal.Decimal
	switch {
	case s.n == 0:
		dst.AppendNull()
		return nil
	case s.nan > 0 || s.up > 0 && s.down > 0:
		d = decimal.NaN
	case s.up > 0:
		d = decimal.Inf
	case s.down > 0:
		d = decimal.NegInf
	default:
		scale := 0
		for _, x := range s.scales {
			if x.n > 0 {
				scale = max(scale, x.scale)
			}
		}
		var err error
		if d, err = s.sum.Round(scale); err != nil {
			return err
		}
	}
	if c.avg {
		var err error
		if d, err = d.Div(decimal.FromInt64(s.n)); err != nil {
			return err
		}
	}
	dst.AppendDecimal(d)
	return nil
}

// kept is min and max of values that are kept as bytes: a uvarint length, the value's key, then the value as it is shown. Of values that are equal and look
// different (1.0 and 1.00) the one is shown whose bytes are least, whichever came first.
type kept struct {
	max   bool
	key   []byte
	shown []byte
}

func (k *kept) update(dst, body []byte, arg *column.Vector, row int, _ int64) ([]byte, error) {
	k.key = rowenc.AppendValueKey(k.key[:0], arg, row)
	if len(body) > 0 {
		old, value, err := splitKept(body)
		if err != nil {
			return nil, err
		}
		c := bytes.Compare(k.key, old)
		if c == 0 && !rowenc.KeepsDisplay(arg.Type) {
			k.shown = rowenc.AppendValue(k.shown[:0], arg, row)
			if bytes.Compare(k.shown, value) < 0 {
				return append(append(dst, body[:len(body)-len(value)]...), k.shown...), nil
			}
		}
		if c == 0 || (c > 0) != k.max {
			return append(dst, body...), nil
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(k.key)))
	dst = append(dst, k.key...)
	return rowenc.AppendValue(dst, arg, row), nil
}

func (k *kept) merge(dst, body, part []byte) ([]byte, error) {
	if len(part) == 0 {
		return append(dst, body...), nil
	}
	if len(body) > 0 {
		old, value, err := splitKept(body)
		if err != nil {
			return nil, err
		}
		key, other, err := splitKept(part)
		if err != nil {
			return nil, err
		}
		c := bytes.Compare(key, old)
		if c == 0 && bytes.Compare(other, value) >= 0 || c != 0 && (c > 0) != k.max {
			return append(dst, body...), nil
		}
	}
	return append(dst, part...), nil
}

func splitKept(body []byte) (key, value []byte, err error) {
	n, k := binary.Uvarint(body)
	if k <= 0 || n > uint64(len(body)-k) {
		return nil, nil, errRow
	}
	return body[k : k+int(n)], body[k+int(n):], nil
}

func (k *kept) result(body []byte, dst *column.Vector) error {
	if len(body) == 0 {
		dst.AppendNull()
		return nil
	}
	_, value, err := splitKept(body)
	if err != nil {
		return err
	}
	_, err = rowenc.DecodeValue(value, dst)
	return err
}

// retracted is min and max of values that may leave: an ordered table has each value with its count, and at the end of the epoch
// the first or last becomes the section. Values that are equal and look different are counted apart: the one that leaves is not shown any more.
type retracted struct {
	kept
	table *state.Ordered
	value []byte
	epoch []state.Ref
}

// change adds a weight to a value's count.
func (r *retracted) change(g state.Ref, arg *column.Vector, row int, w int64) error {
	r.key = rowenc.AppendValueKey(r.key[:0], arg, row)
	if !rowenc.KeepsDisplay(arg.Type) {
		r.key = rowenc.AppendValue(r.key, arg, row)
	}
	old, err := r.table.Get(g, r.key)
	if err != nil {
		return err
	}
	if old == nil {
		r.value = binary.LittleEndian.AppendUint64(r.value[:0], uint64(w))
		r.value = rowenc.AppendValue(r.value, arg, row)
		return r.table.Set(g, r.key, r.value)
	}
	n := get(old, 0) + w
	if n == 0 {
		return r.table.Delete(g, r.key)
	}
	r.value = append(r.value[:0], old...)
	put(r.value, 0, n)
	return r.table.Set(g, r.key, r.value)
}

// extreme appends the section for the value that is first or last now.
func (r *retracted) extreme(dst []byte, g state.Ref) ([]byte, error) {
	var key, value []byte
	var ok bool
	var err error
	if r.max {
		key, value, ok, err = r.table.Last(g)
	} else {
		key, value, ok, err = r.table.First(g)
	}
	if err != nil || !ok {
		return dst, err
	}
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = append(dst, key...)
	return append(dst, value[8:]...), nil
}

// display keeps how the group columns look whose keys lose it: 1.00 and 1 are one group, shown as the row of it whose bytes are least, in whatever order
// they came. Its section has the rows that there are, ascending: a uvarint length, the bytes, a varint of how many; of an append-only input the least alone.
type display struct {
	cols  []int // of the input
	types []column.Type
	least bool // rows never leave
	row   []byte
	body  []byte
	shown []*column.Vector // one row
}

// update gives the section after w rows more that look like d.row, nil if it stays.
func (d *display) update(old []byte, w int64) ([]byte, error) {
	dst, placed := d.body[:0], false
	for at := old; len(at) > 0; {
		row, n, rest, err := displayed(at)
		if err != nil {
			return nil, err
		}
		at = rest
		switch c := bytes.Compare(row, d.row); {
		case c == 0:
			placed = true
			n += w
			if d.least {
				return nil, nil
			}
		case c > 0 && !placed:
			placed = true
			dst = appendDisplayed(dst, d.row, w)
			if d.least {
				at, n = nil, 0
			}
		case d.least:
			return nil, nil
		}
		dst = appendDisplayed(dst, row, n)
	}
	if !placed {
		dst = appendDisplayed(dst, d.row, w)
	}
	d.body = dst
	return dst, nil
}

// decode makes shown of a section.
func (d *display) decode(body []byte) error {
	var least []byte
	for at := body; len(at) > 0; {
		row, n, rest, err := displayed(at)
		if err != nil {
			return err
		}
		if least = row; n > 0 {
			break
		}
		at = rest
	}
	if d.shown == nil {
		for _, t := range d.types {
			d.shown = append(d.shown, column.NewVector(t, 1))
		}
	}
	for i, v := range d.shown {
		v.Reset(d.types[i])
	}
	return rowenc.DecodeRow(least, d.types, d.shown)
}

func appendDisplayed(dst, row []byte, n int64) []byte {
	if n == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(row)))
	dst = append(dst, row...)
	return binary.AppendVarint(dst, n)
}

// displayed takes the first row with its number off a section.
func displayed(b []byte) (row []byte, n int64, rest []byte, err error) {
	size, k := binary.Uvarint(b)
	if k <= 0 || size > uint64(len(b)-k) {
		return nil, 0, nil, errRow
	}
	row, b = b[k:k+int(size)], b[k+int(size):]
	n, k = binary.Varint(b)
	if k <= 0 {
		return nil, 0, nil, errRow
	}
	return row, n, b[k:], nil
}

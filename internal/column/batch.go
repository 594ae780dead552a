package column

import "fmt"

// NewBatch makes an empty batch with room for capacity rows.
func NewBatch(types []Type, capacity int) *Batch {
	b := &Batch{Cols: make([]*Vector, len(types))}
	for i, t := range types {
		b.Cols[i] = NewVector(t, capacity)
	}
	return b
}

// Reset makes b an empty batch with columns of the given types, keeping memory.
func (b *Batch) Reset(types []Type) {
	b.resize(len(types))
	for i, t := range types {
		b.Cols[i].Reset(t)
	}
}

// ResetLike makes b an empty batch with src's columns, keeping memory.
func (b *Batch) ResetLike(src *Batch) {
	b.resize(len(src.Cols))
	for i, c := range src.Cols {
		b.Cols[i].Reset(c.Type)
	}
}

func (b *Batch) resize(cols int) {
	b.Len = 0
	if b.Weights != nil && !b.view {
		b.spare = b.Weights[:0]
	}
	b.Weights, b.view = nil, false
	for i, c := range b.Cols[:min(cols, len(b.Cols))] {
		if c == nil {
			b.Cols[i] = &Vector{}
		}
	}
	if cap(b.Cols) < cols {
		n := make([]*Vector, len(b.Cols), cols)
		copy(n, b.Cols)
		b.Cols = n
	}
	old := len(b.Cols)
	b.Cols = b.Cols[:cols]
	for i := old; i < cols; i++ {
		if b.Cols[i] == nil { // vectors behind the length are kept from before
			b.Cols[i] = &Vector{}
		}
	}
}

// Types appends the columns' types to dst.
func (b *Batch) Types(dst []Type) []Type {
	for _, c := range b.Cols {
		dst = append(dst, c.Type)
	}
	return dst
}

// Weight is the weight of row i.
func (b *Batch) Weight(i int) int64 {
	if b.Weights == nil {
		return 1
	}
	return b.Weights[i]
}

// MakeWeights gives b a weight column, all +1, if it has none.
func (b *Batch) MakeWeights() []int64 {
	if b.Weights == nil {
		b.Weights = resized(b.spare, b.Len)
		b.spare = nil
		if b.Weights == nil {
			b.Weights = make([]int64, 0, MaxRows)
		}
		repeat(b.Weights, 1)
	}
	return b.Weights
}

// EndRow ends a row whose values the caller has appended to every column, with a weight.
func (b *Batch) EndRow(weight int64) {
	if weight != 1 {
		b.MakeWeights()
	}
	if b.Weights != nil {
		b.Weights = append(b.Weights, weight)
	}
	b.Len++
}

// AppendRow appends row of src, which has b's types, with its weight.
func (b *Batch) AppendRow(src *Batch, row int) {
	for i, c := range b.Cols {
		c.AppendFrom(src.Cols[i], row)
	}
	b.EndRow(src.Weight(row))
}

// AppendRange appends rows [from, to) of src, which has b's types, with their weights.
func (b *Batch) AppendRange(src *Batch, from, to int) {
	if to <= from {
		return
	}
	for i, c := range b.Cols {
		c.AppendRange(src.Cols[i], from, to)
	}
	if src.Weights != nil {
		b.Weights = append(b.MakeWeights(), src.Weights[from:to]...)
	} else if b.Weights != nil {
		at := len(b.Weights)
		b.Weights = growLen(b.Weights, to-from)
		repeat(b.Weights[at:], 1)
	}
	b.Len += to - from
}

// Append appends all of src, which has b's types.
func (b *Batch) Append(src *Batch) { b.AppendRange(src, 0, src.Len) }

// AppendRows appends the given rows of src, which has b's types, with their weights.
func (b *Batch) AppendRows(src *Batch, rows []int32) {
	if len(rows) == 0 {
		return
	}
	for i, c := range b.Cols {
		c.AppendRows(src.Cols[i], rows)
	}
	if src.Weights != nil {
		b.Weights = pick(b.MakeWeights(), src.Weights, rows)
	} else if b.Weights != nil {
		at := len(b.Weights)
		b.Weights = growLen(b.Weights, len(rows))
		repeat(b.Weights[at:], 1)
	}
	b.Len += len(rows)
}

// Gather makes b the given rows of src, weights included.
func (b *Batch) Gather(src *Batch, rows []int32) {
	b.ResetLike(src)
	b.AppendRows(src, rows)
}

// CopyFrom makes b a copy of src in b's own memory.
func (b *Batch) CopyFrom(src *Batch) {
	b.ResetLike(src)
	b.Append(src)
}

// Clone is a copy of b in memory of its own.
func (b *Batch) Clone() *Batch {
	c := &Batch{}
	c.CopyFrom(b)
	return c
}

// View makes b rows [from, to) of src without copying values; see Vector.View. Late columns stay late.
func (b *Batch) View(src *Batch, from, to int) {
	b.resize(len(src.Cols))
	for i, c := range src.Cols {
		if c == nil {
			b.Cols[i] = nil
			continue
		}
		b.Cols[i].View(c, from, to)
	}
	b.Late = nil
	if src.Late != nil {
		b.Late = &lateView{of: src.Late, from: from, n: to - from}
	}
	if src.Weights != nil {
		b.Weights, b.view = src.Weights[from:to:to], true
	}
	b.Len = to - from
}

// MemSize is about how many bytes the rows of b take.
func (b *Batch) MemSize() int {
	n := len(b.Weights) * 8
	for _, c := range b.Cols {
		n += c.MemSize()
	}
	return n
}

// Full tells who fills b with rows one by one that it is to be passed on: it has MaxRows rows, or many bytes.
func (b *Batch) Full() bool { return b.Len >= MaxRows || b.Heavy() }

// Heavy tells that the values of variable width of b have MaxBytes together, or more.
func (b *Batch) Heavy() bool {
	n := 0
	for _, c := range b.Cols {
		n += len(c.Data)
	}
	return n >= MaxBytes
}

// Validate checks what always holds of a batch: lengths, offsets and bitmaps. It is for tests and for bytes from outside.
func (b *Batch) Validate() error {
	if b.Weights != nil && len(b.Weights) != b.Len {
		return fmt.Errorf("batch of %d rows has %d weights", b.Len, len(b.Weights))
	}
	for i, c := range b.Cols {
		if c.Len != b.Len {
			return fmt.Errorf("batch of %d rows: column %d has %d", b.Len, i, c.Len)
		}
		if err := c.Validate(); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
	}
	return nil
}

// Validate checks what always holds of a vector.
func (v *Vector) Validate() error {
	var n int
	switch v.Type.Kind {
	case Bool:
		n = len(v.Bools)
	case Int16:
		n = len(v.I16)
	case Int32, Date:
		n = len(v.I32)
	case Int64, Time, Timestamp, Timestamptz:
		n = len(v.I64)
	case Float32:
		n = len(v.F32)
	case Float64:
		n = len(v.F64)
	case Numeric:
		n = len(v.Dec)
	case IntervalKind:
		n = len(v.Iv)
	case Text, Bytea, JSONB, Array:
		n = len(v.Off) - 1
		for i := range n {
			if v.Off[i] > v.Off[i+1] || int(v.Off[i+1]) > len(v.Data) {
				return fmt.Errorf("%s vector: value %d has offsets %d and %d of %d bytes", v.Type, i, v.Off[i], v.Off[i+1], len(v.Data))
			}
		}
	default:
		return fmt.Errorf("a vector cannot have type %s", v.Type)
	}
	if n != v.Len {
		return fmt.Errorf("%s vector of %d rows holds %d values", v.Type, v.Len, n)
	}
	if v.Valid != nil && len(v.Valid) < words(v.Len) {
		return fmt.Errorf("%s vector of %d rows: bitmap of %d words", v.Type, v.Len, len(v.Valid))
	}
	return nil
}

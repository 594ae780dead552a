package rowenc

import (
	"bytes"
	"encoding/binary"

	"github.com/leat-io/leat/internal/column"
)

// Keys is a list of byte strings in one slice: keys of a batch, or value rows. Its memory is kept between uses.
type Keys struct {
	Data []byte
	Off  []uint32 // Len()+1 offsets into Data; empty when there is none

	at []uint32 // scratch: where each row's next column goes
}

// Len is the number of keys.
func (k *Keys) Len() int { return max(len(k.Off)-1, 0) }

// Key is key i. It aliases k.
func (k *Keys) Key(i int) []byte { return k.Data[k.Off[i]:k.Off[i+1]:k.Off[i+1]] }

// Reset empties k, keeping its memory.
func (k *Keys) Reset() {
	k.Data = k.Data[:0]
	k.Off = append(k.Off[:0], 0)
}

// Append adds one key that is there already.
func (k *Keys) Append(key []byte) {
	if len(k.Off) == 0 {
		k.Off = append(k.Off, 0)
	}
	k.Data = append(k.Data, key...)
	k.Off = append(k.Off, uint32(len(k.Data)))
}

// EndKey ends a key whose bytes the caller has appended to Data.
func (k *Keys) EndKey() {
	if len(k.Off) == 0 {
		k.Off = append(k.Off, 0)
	}
	k.Off = append(k.Off, uint32(len(k.Data)))
}

// AppendKeys appends the keys of all rows of b in the given columns, the same bytes as AppendKey's, a column at a time.
func AppendKeys(dst *Keys, b *column.Batch, cols []int) {
	if len(dst.Off) == 0 {
		dst.Off = append(dst.Off, 0)
	}
	n := b.Len
	fixed, text := 0, 0
	for _, c := range cols {
		k := b.Cols[c].Type.Kind
		switch w := fixedKeyWidth(k); {
		case w > 0:
			fixed += 1 + w
		case k == column.Text || k == column.Bytea:
			text++
		default: // its size is known only once it is encoded
			for row := range n {
				dst.Data = AppendKey(dst.Data, b, cols, row)
				dst.Off = append(dst.Off, uint32(len(dst.Data)))
			}
			return
		}
	}
	if cap(dst.at) < n {
		dst.at = make([]uint32, max(n, column.MaxRows))
	}
	at := dst.at[:n]
	base := len(dst.Data)
	if text == 0 {
		dst.extend(n, base+n*fixed)
		off := dst.Off[len(dst.Off)-n:]
		end := uint32(base)
		for i := range off {
			end += uint32(fixed)
			off[i] = end
		}
		for _, c := range cols {
			putFixed(dst.Data, base, fixed, at, b.Cols[c])
			base += 1 + fixedKeyWidth(b.Cols[c].Type.Kind)
		}
		return
	}
	for i := range at {
		at[i] = uint32(fixed)
	}
	for _, c := range cols {
		if b.Cols[c].Type.Kind.Varlen() {
			addTextSizes(at, b.Cols[c])
		}
	}
	end := uint32(base)
	dst.extend(n, 0)
	off := dst.Off[len(dst.Off)-n:]
	for i, size := range at {
		at[i] = end
		end += size
		off[i] = end
	}
	dst.extend(0, int(end))
	for _, c := range cols {
		putColumn(dst.Data, at, b.Cols[c])
	}
}

// extend makes room for n more offsets, and for data up to end.
func (k *Keys) extend(n, end int) {
	if need := len(k.Off) + n; need > cap(k.Off) {
		o := make([]uint32, len(k.Off), max(need, 2*cap(k.Off), column.MaxRows+1))
		copy(o, k.Off)
		k.Off = o
	}
	k.Off = k.Off[:len(k.Off)+n]
	if end > cap(k.Data) {
		d := make([]byte, len(k.Data), max(end, 2*cap(k.Data), 1024))
		copy(d, k.Data)
		k.Data = d
	}
	k.Data = k.Data[:max(end, len(k.Data))]
}

// putFixed writes a column of a fixed width; the first row's value goes to data[from:], the next ones' every stride bytes.
func putFixed(data []byte, from, stride int, at []uint32, v *column.Vector) {
	if len(at) == 0 {
		return
	}
	if v.Valid == nil {
		switch v.Type.Kind {
		case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
			vals := v.I64[:len(at)]
			d := data[from:]
			for i, x := range vals {
				if i > 0 {
					d = d[stride:]
				}
				_ = d[8]
				d[0] = tagValue
				binary.BigEndian.PutUint64(d[1:9], uint64(x)^1<<63)
			}
			return
		case column.Int32, column.Date:
			vals := v.I32[:len(at)]
			d := data[from:]
			for i, x := range vals {
				if i > 0 {
					d = d[stride:]
				}
				_ = d[4]
				d[0] = tagValue
				binary.BigEndian.PutUint32(d[1:5], uint32(x)^1<<31)
			}
			return
		}
	}
	for i := range at {
		at[i] = uint32(from + i*stride)
	}
	putColumn(data, at, v)
}

// addTextSizes adds the size of each row's key of a text column.
func addTextSizes(size []uint32, v *column.Vector) {
	off := v.Off[:len(size)+1]
	hasZero := bytes.IndexByte(v.Data[off[0]:off[len(size)]], 0) >= 0
	if v.Valid == nil && !hasZero {
		for i := range size {
			size[i] += off[i+1] - off[i] + 3
		}
		return
	}
	for i := range size {
		if v.IsNull(i) {
			size[i]++
			continue
		}
		s := v.Data[off[i]:off[i+1]]
		size[i] += uint32(len(s)) + 3
		if hasZero {
			size[i] += uint32(bytes.Count(s, zeros[:1]))
		}
	}
}

// putColumn writes a column's key forms at each row's position and moves the positions.
func putColumn(data []byte, at []uint32, v *column.Vector) {
	switch v.Type.Kind {
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
		vals := v.I64[:len(at)]
		for i, p := range at {
			d := data[p : p+9 : p+9]
			d[0] = tagValue
			binary.BigEndian.PutUint64(d[1:], uint64(vals[i])^1<<63)
			at[i] = p + 9
		}
		putNulls(data, at, v.Valid, 8)
	case column.Int32, column.Date:
		vals := v.I32[:len(at)]
		for i, p := range at {
			d := data[p : p+5 : p+5]
			d[0] = tagValue
			binary.BigEndian.PutUint32(d[1:], uint32(vals[i])^1<<31)
			at[i] = p + 5
		}
		putNulls(data, at, v.Valid, 4)
	case column.Int16:
		vals := v.I16[:len(at)]
		for i, p := range at {
			d := data[p : p+3 : p+3]
			d[0] = tagValue
			binary.BigEndian.PutUint16(d[1:], uint16(vals[i])^1<<15)
			at[i] = p + 3
		}
		putNulls(data, at, v.Valid, 2)
	case column.Bool:
		vals := v.Bools[:len(at)]
		for i, p := range at {
			d := data[p : p+2 : p+2]
			d[0] = tagValue
			d[1] = boolByte(vals[i])
			at[i] = p + 2
		}
		putNulls(data, at, v.Valid, 1)
	case column.Float64:
		vals := v.F64[:len(at)]
		for i, p := range at {
			d := data[p : p+9 : p+9]
			d[0] = tagValue
			binary.BigEndian.PutUint64(d[1:], float64Key(vals[i]))
			at[i] = p + 9
		}
		putNulls(data, at, v.Valid, 8)
	case column.Float32:
		vals := v.F32[:len(at)]
		for i, p := range at {
			d := data[p : p+5 : p+5]
			d[0] = tagValue
			binary.BigEndian.PutUint32(d[1:], float32Key(vals[i]))
			at[i] = p + 5
		}
		putNulls(data, at, v.Valid, 4)
	case column.IntervalKind:
		vals := v.Iv[:len(at)]
		for i, p := range at {
			d := data[p : p+17 : p+17]
			hi, lo := vals[i].Span()
			d[0] = tagValue
			binary.BigEndian.PutUint64(d[1:], uint64(hi)^1<<63)
			binary.BigEndian.PutUint64(d[9:], lo)
			at[i] = p + 17
		}
		putNulls(data, at, v.Valid, 16)
	case column.Text, column.Bytea:
		putText(data, at, v)
	}
}

// putNulls writes NULL over the values of width w that end at each row's position.
func putNulls(data []byte, at []uint32, valid column.Bitmap, w uint32) {
	if valid == nil {
		return
	}
	for i, p := range at {
		if !valid.Get(i) {
			d := data[p-w-1 : p]
			d[0] = tagNull
			clear(d[1:])
		}
	}
}

func putText(data []byte, at []uint32, v *column.Vector) {
	for i, p := range at {
		if v.IsNull(i) {
			data[p] = tagNull
			at[i] = p + 1
			continue
		}
		s := v.Data[v.Off[i]:v.Off[i+1]]
		data[p] = tagValue
		p++
		if bytes.IndexByte(s, 0) < 0 {
			p += uint32(copy(data[p:], s))
		} else {
			p += uint32(len(appendEscaped(data[p:p:len(data)], s))) - 2
		}
		data[p], data[p+1] = 0, escEnd
		at[i] = p + 2
	}
}

package expr

import (
	"slices"

	"github.com/leat-io/leat/internal/column"
)

// choiceEval is CASE and COALESCE: several branches, each evaluated for the rows that it is for, put together.
type choiceEval struct {
	conds []unit // CASE: conds[i] leads to branches[i]; nil for COALESCE, where a branch keeps the rows that are not NULL
	// branches has one more than conds, the ELSE.
	branches []unit
	out      column.Vector
	valid    column.Bitmap
	typ      column.Type
	from     []uint16 // per row, the branch, for results of variable width
	vecs     []*column.Vector
	parts    []TextCol // the same, of results of variable width
	consts   []byte    // those of parts that are constants, and where they end
	ends     [][2]uint32
}

func newCase(args []unit, t column.Type) *choiceEval {
	e := &choiceEval{typ: t}
	for i, a := range args {
		if i%2 == 0 && i+1 < len(args) {
			e.conds = append(e.conds, a)
		} else {
			e.branches = append(e.branches, a)
		}
	}
	return e
}

func newCoalesce(args []unit, t column.Type) *choiceEval { return &choiceEval{typ: t, branches: args} }

func (e *choiceEval) eval(r *run, sel []int32) *column.Vector {
	n := r.n
	out := &e.out
	out.Valid = nil
	out.Resize(e.typ, n)
	e.valid = column.FillAll(e.valid, n)
	e.vecs = e.vecs[:0]
	varlen := e.typ.Kind.Varlen()
	if varlen {
		e.from = slices.Grow(e.from[:0], n)[:n]
	}
	rest, taken := r.rows.get(n), r.rows.get(n)
	rows := sel
	nulls := false
	for b := range e.branches {
		if rows != nil && len(rows) == 0 {
			break
		}
		last := b == len(e.branches)-1
		var v *column.Vector
		mine := rows
		switch {
		case last:
			v = e.branches[b].eval(r, rows)
		case e.conds != nil:
			taken = e.conds[b].selectRows(r, rows, taken[:0])
			if r.err != nil {
				break
			}
			mine = taken
			rest = without(rest, rows, n, taken)
			if len(taken) > 0 {
				v = e.branches[b].eval(r, taken)
			}
		default:
			v = e.branches[b].eval(r, rows)
			if r.err != nil {
				break
			}
			all := rows
			if all == nil {
				all = allRows(n)
			}
			switch {
			case v.Valid == nil:
				mine, rest = all, rest[:0]
			case e.branches[b].konst: // NULL
				mine, rest = nil, append(rest[:0], all...)
				v = nil
			default:
				taken = validRows(v.Valid, all, taken[:0])
				mine = taken
				rest = without(rest, rows, n, taken)
			}
		}
		if r.err != nil {
			break
		}
		e.vecs = append(e.vecs, v)
		if v != nil {
			if mine == nil {
				mine = allRows(n)
			}
			konst := e.branches[b].konst
			nulls = e.place(v, konst, mine, uint16(b), varlen) || nulls
		}
		rows = rest
	}
	r.rows.put(rest)
	r.rows.put(taken)
	if varlen && r.err == nil {
		e.assemble(r, sel, n)
	} else if varlen {
		clear(out.Off)
	}
	if nulls {
		out.Valid = e.valid
	}
	return out
}

// without is rows (nil: all n) without taken, both ascending, in dst's memory, which may be that of rows.
func without(dst, rows []int32, n int, taken []int32) []int32 {
	if rows == nil {
		rows = allRows(n)
	}
	if len(taken) == 0 {
		return append(dst[:0], rows...)
	}
	taken = append(taken, -1)
	dst = grow(dst[:0], len(rows))
	k, t := 0, 0
	for _, row := range rows {
		dst[k] = row
		hit := asInt(taken[t] == row)
		t += hit
		k += 1 - hit
	}
	return dst[:k]
}

// place puts a branch's values into the result, or remembers where they are.
func (e *choiceEval) place(v *column.Vector, konst bool, rows []int32, branch uint16, varlen bool) (nulls bool) {
	if v.Valid != nil {
		for _, row := range rows {
			i := int(row)
			if konst {
				i = 0
			}
			if v.IsNull(i) {
				e.valid.Clear(int(row))
				nulls = true
			}
		}
	}
	if varlen {
		for _, row := range rows {
			e.from[row] = branch
		}
		return nulls
	}
	o := &e.out
	switch e.typ.Kind {
	case column.Bool:
		scatter(o.Bools, v.Bools, konst, rows)
	case column.Int16:
		scatter(o.I16, v.I16, konst, rows)
	case column.Int32, column.Date:
		scatter(o.I32, v.I32, konst, rows)
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
		scatter(o.I64, v.I64, konst, rows)
	case column.Float32:
		scatter(o.F32, v.F32, konst, rows)
	case column.Float64:
		scatter(o.F64, v.F64, konst, rows)
	case column.Numeric:
		scatter(o.Dec, v.Dec, konst, rows)
	case column.IntervalKind:
		scatter(o.Iv, v.Iv, konst, rows)
	}
	return nulls
}

func scatter[T any](dst, src []T, konst bool, rows []int32) {
	if konst {
		x := src[0]
		for _, row := range rows {
			dst[row] = x
		}
		return
	}
	for _, row := range rows {
		dst[row] = src[row]
	}
}

// assemble writes a result of variable width from the branches' vectors, row by row.
func (e *choiceEval) assemble(r *run, sel []int32, n int) {
	rows := sel
	if rows == nil {
		rows = allRows(n)
	}
	e.parts, e.consts = e.parts[:0], e.consts[:0]
	e.ends = slices.Grow(e.ends[:0], len(e.vecs))[:len(e.vecs)]
	for b, v := range e.vecs {
		part := TextCol{off: noTexts, mask: 0}
		if v != nil {
			part = TextCol{off: v.Off, data: v.Data, mask: -1}
			if e.branches[b].konst {
				part.mask = 0
				from := len(e.consts)
				e.consts = append(append(e.consts, v.Bytes(0)...), make([]byte, 16)...) // to be copied with a fixed size
				e.ends[b] = [2]uint32{0, uint32(len(v.Bytes(0)))}
				part.data, part.off = e.consts[from:], e.ends[b][:]
			}
		}
		e.parts = append(e.parts, part)
	}
	buf, off := e.out.Data[:cap(e.out.Data)], e.out.Off[:n+1]
	off[0] = 0
	next, at := 0, 0
	for _, row := range rows {
		for ; next < int(row); next++ {
			off[next+1] = uint32(at)
		}
		p := &e.parts[e.from[row]]
		i := int(row) & p.mask
		from, size := int(p.off[i]), int(p.off[i+1]-p.off[i])
		if at+size > r.room {
			if err := r.more(at + size - r.room); err != nil {
				r.fail(row, err)
				size = 0
			}
		}
		if size <= 16 && from+16 <= len(p.data) && at+16 <= len(buf) { // what is written too much is written over
			*(*[16]byte)(buf[at:]) = *(*[16]byte)(p.data[from:])
		} else {
			buf = append(buf[:at], p.data[from:from+size]...)
			buf = buf[:cap(buf)]
		}
		at += size
		next++
		off[next] = uint32(at)
	}
	for ; next < n; next++ {
		off[next+1] = uint32(at)
	}
	e.out.Data = buf[:at]
	r.made(&e.out, at)
}

// noTexts are the ends of texts of which there are none.
var noTexts = []uint32{0, 0}

// inEval is x IN (constants).
type inEval struct {
	arg   unit
	out   column.Vector
	spare column.Bitmap
	null  bool // NULL is in the list: no match is NULL then

	ints   map[int64]struct{}
	few    []int64 // instead of ints, when there are few
	texts  map[string]struct{}
	words  []shortText    // instead of texts, when they are few and short
	sorted *column.Vector // the others, ascending
}

func newIn(n *Node, args []unit) (*inEval, error) {
	e := &inEval{arg: args[0]}
	k := args[0].typ.Kind
	list := column.NewVector(args[0].typ, len(args))
	for _, a := range args[1:] {
		if a.value == nil || !sameType(a.typ, args[0].typ) {
			return nil, badArgs(n)
		}
		if a.value.IsNull(0) {
			e.null = true
			continue
		}
		list.AppendFrom(a.value, 0)
	}
	switch {
	case intOf(list, 0) != nil:
		for i := range list.Len {
			e.few = append(e.few, *intOf(list, i))
		}
		if len(e.few) > 8 {
			e.ints = map[int64]struct{}{}
			for _, x := range e.few {
				e.ints[x] = struct{}{}
			}
			e.few = nil
		}
	case k == column.Text || k == column.Bytea:
		e.texts = map[string]struct{}{}
		short := list.Len <= 8
		for i := range list.Len {
			e.texts[string(list.Bytes(i))] = struct{}{}
			short = short && len(list.Bytes(i)) <= 8
		}
		if short {
			for text := range e.texts {
				e.words = append(e.words, wordOf([]byte(text)))
			}
		}
	default:
		rows := slices.Clone(allRows(list.Len))
		slices.SortFunc(rows, func(a, b int32) int { return list.Compare(int(a), list, int(b)) })
		e.sorted = column.NewVector(args[0].typ, list.Len)
		e.sorted.AppendRows(list, rows)
	}
	return e, nil
}

// intOf is the value of a kind that is an integer of at most 64 bits in memory; nil for other kinds and for an empty vector.
func intOf(v *column.Vector, i int) *int64 {
	var x int64
	switch {
	case i >= v.Len:
		switch v.Type.Kind {
		case column.Int16, column.Int32, column.Date, column.Int64, column.Time, column.Timestamp, column.Timestamptz:
			return &x
		}
		return nil
	case v.Type.Kind == column.Int16:
		x = int64(v.I16[i])
	case v.Type.Kind == column.Int32 || v.Type.Kind == column.Date:
		x = int64(v.I32[i])
	case v.Type.Kind == column.Int64 || v.Type.Kind == column.Time || v.Type.Kind == column.Timestamp || v.Type.Kind == column.Timestamptz:
		x = v.I64[i]
	default:
		return nil
	}
	return &x
}

func inInts[T int16 | int32 | int64](e *inEval, out []bool, in []T, rows []int32) {
	if e.ints != nil {
		for _, row := range rows {
			_, out[row] = e.ints[int64(in[row])]
		}
		return
	}
	few := e.few
	for _, row := range rows {
		x, found := int64(in[row]), false
		for _, y := range few {
			found = found || x == y
		}
		out[row] = found
	}
}

func (e *inEval) eval(r *run, sel []int32) *column.Vector {
	v := e.arg.eval(r, sel)
	out := &e.out
	out.Valid = nil
	n := v.Len
	out.Resize(tBool, n)
	if r.err != nil {
		return out
	}
	rows := sel
	if rows == nil || e.arg.konst {
		rows = allRows(n)
	}
	if v.Valid != nil {
		// Values of NULL rows of variable width may be anything, but harmless: they are looked up, too.
		e.spare = column.And(e.spare, v.Valid, nil, n)
		out.Valid = e.spare
	}
	switch v.Type.Kind {
	case column.Int16:
		inInts(e, out.Bools, v.I16, rows)
	case column.Int32, column.Date:
		inInts(e, out.Bools, v.I32, rows)
	case column.Int64, column.Time, column.Timestamp, column.Timestamptz:
		inInts(e, out.Bools, v.I64, rows)
	case column.Text, column.Bytea:
		e.inTexts(TextCol{v.Off, v.Data, -1}, rows)
	default:
		for _, row := range rows {
			out.Bools[row] = e.search(v, int(row))
		}
	}
	if e.null {
		if out.Valid == nil {
			e.spare = column.FillAll(e.spare, n)
			out.Valid = e.spare
		}
		for _, row := range rows {
			if !out.Bools[row] {
				out.Valid.Clear(int(row))
			}
		}
	}
	return out
}

func (e *inEval) inTexts(t TextCol, rows []int32) {
	out := e.out.Bools
	if e.words == nil {
		for _, row := range rows {
			_, out[row] = e.texts[string(t.At(row))]
		}
		return
	}
	inside := t.inside(rows)
	for _, row := range rows[:inside] {
		found := 0
		for i := range e.words {
			found |= asInt(e.words[i].is(t.off, t.data, row))
		}
		out[row] = found != 0
	}
	for _, row := range rows[inside:] {
		out[row] = slices.Contains(e.words, wordOf(t.At(row)))
	}
}

func (e *inEval) search(v *column.Vector, row int) bool {
	lo, hi := 0, e.sorted.Len
	for lo < hi {
		mid := (lo + hi) / 2
		switch c := e.sorted.Compare(mid, v, row); {
		case c == 0:
			return true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return false
}

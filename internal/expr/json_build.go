package expr

import (
	"bytes"
	"math"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/jsonb"
	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

// jsonBuild make and change jsonb values. Every result is canonical text.
var jsonBuild = []Overload{
	{Name: "||", Args: []column.Type{tJSONB, tJSONB}, Result: tJSONB, Make: kernel(jsonConcat)},
	{Name: "-", Args: []column.Type{tJSONB, tText}, Result: tJSONB, Make: kernel(jsonDeleteKey)},
	{Name: "-", Args: []column.Type{tJSONB, tInt4}, Result: tJSONB, Make: kernel(jsonDeleteIndex)},
	{Name: "-", Args: []column.Type{tJSONB, tTextArray}, Result: tJSONB, Make: func(*Site) (Kernel, error) { return jsonDeleteKeys(), nil }},
	{Name: "to_jsonb", Args: []column.Type{tElement}, Result: tJSONB, Volatility: Zoned, Make: kernel(func(c *Call) {
		w := c.Text()
		for _, row := range c.Rows() {
			w.Buf = c.appendJSON(w.Buf, 0, row)
			w.End(row)
		}
	})},
	{Name: "jsonb_build_array", Result: tJSONB, Make: kernel(jsonArray)},
	{Name: "jsonb_build_array", Args: []column.Type{tAny}, Variadic: true, Result: tJSONB, CallsOnNull: true, Volatility: Zoned, Make: kernel(jsonArray)},
	{Name: "jsonb_build_object", Result: tJSONB, Make: makeJSONObject},
	{Name: "jsonb_build_object", Args: []column.Type{tAny}, Variadic: true, Result: tJSONB, CallsOnNull: true, Volatility: Zoned, Make: makeJSONObject},
	{Name: "jsonb_strip_nulls", Args: []column.Type{tJSONB}, Result: tJSONB, Make: kernel(func(c *Call) {
		a, w := c.Texts(0), c.Text()
		for _, row := range c.Rows() {
			w.Buf = stripNulls(w.Buf, a.At(row))
			w.End(row)
		}
	})},
	{Name: "jsonb_pretty", Args: []column.Type{tJSONB}, Result: tText, Make: kernel(func(c *Call) {
		a, w := c.Texts(0), c.Text()
		for _, row := range c.Rows() {
			w.Buf = appendPretty(w.Buf, a.At(row), 0)
			w.End(row)
		}
	})},
}

var (
	errDeleteScalar = pgerr.New(pgerr.InvalidParameterValue, "cannot delete from scalar")
	errDeleteObject = pgerr.New(pgerr.InvalidParameterValue, "cannot delete from object using integer index")
	errObjectArgs   = pgerr.New(pgerr.InvalidParameterValue, "argument list must have even number of elements").
			WithHint("The arguments of jsonb_build_object() must consist of alternating keys and values.")
	errObjectKey = pgerr.New(pgerr.InvalidParameterValue, "key value must be scalar, not array, composite, or json")
)

// jsonList writes the members of an array or object.
type jsonList struct {
	dst   []byte
	first bool
	end   byte
}

func newJSONList(dst []byte, kind jsonb.Kind) jsonList {
	if kind == jsonb.Object {
		return jsonList{append(dst, '{'), true, '}'}
	}
	return jsonList{append(dst, '['), true, ']'}
}

func (l *jsonList) add(key, v []byte) {
	l.next(key)
	l.dst = append(l.dst, v...)
}

// next starts a member, whose value the caller appends to dst.
func (l *jsonList) next(key []byte) {
	if !l.first {
		l.dst = append(l.dst, ", "...)
	}
	l.first = false
	if key != nil {
		l.dst = append(append(l.dst, key...), ": "...)
	}
}

func (l *jsonList) addAll(v []byte) {
	for it := jsonb.Members(v); ; {
		k, m, ok := it.Next()
		if !ok {
			return
		}
		l.add(k, m)
	}
}

func (l *jsonList) close() []byte { return append(l.dst, l.end) }

func jsonConcat(c *Call) {
	a, b, w := c.Texts(0), c.Texts(1), c.Text()
	for _, row := range c.Rows() {
		x, y := a.At(row), b.At(row)
		kx, ky := jsonb.KindOf(x), jsonb.KindOf(y)
		if kx == jsonb.Object && ky == jsonb.Object {
			w.Buf = mergeObjects(w.Buf, x, y)
			w.End(row)
			continue
		}
		l := newJSONList(w.Buf, jsonb.Array)
		for _, v := range [][]byte{x, y} {
			if jsonb.KindOf(v) == jsonb.Array {
				l.addAll(v)
			} else {
				l.add(nil, v)
			}
		}
		w.Buf = l.close()
		w.End(row)
	}
}

// mergeObjects merges two ordered lists of members; of equal keys the second's value counts.
func mergeObjects(dst, x, y []byte) []byte {
	l := newJSONList(dst, jsonb.Object)
	ix, iy := jsonb.Members(x), jsonb.Members(y)
	kx, vx, okx := ix.Next()
	ky, vy, oky := iy.Next()
	for okx || oky {
		order := 0
		switch {
		case !okx:
			order = 1
		case !oky:
			order = -1
		case !bytes.Equal(kx, ky):
			order = compareKeys(kx, ky)
		}
		if order < 0 {
			l.add(kx, vx)
		} else {
			l.add(ky, vy)
		}
		if order <= 0 {
			kx, vx, okx = ix.Next()
		}
		if order >= 0 {
			ky, vy, oky = iy.Next()
		}
	}
	return l.close()
}

// compareKeys is the order of an object's keys: by length, then by bytes, of what they say.
func compareKeys(a, b []byte) int {
	if bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0 {
		a, b = jsonb.AppendString(nil, a), jsonb.AppendString(nil, b)
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return bytes.Compare(a, b)
}

// jsonFilter copies an array or object without the members that drop names.
func jsonFilter(dst, v []byte, drop func(i int, key, member []byte) bool) []byte {
	l := newJSONList(dst, jsonb.KindOf(v))
	it := jsonb.Members(v)
	for i := 0; ; i++ {
		k, m, ok := it.Next()
		if !ok {
			return l.close()
		}
		if !drop(i, k, m) {
			l.add(k, m)
		}
	}
}

// dropsKey tells whether a member has the key, or is the string in an array; quoted is the key as JSON.
func dropsKey(key, member, quoted []byte) bool {
	if key == nil {
		key = member
	}
	return bytes.Equal(key, quoted)
}

func jsonDeleteKey(c *Call) {
	a, b, w := c.Texts(0), c.Texts(1), c.Text()
	var quoted []byte
	for _, row := range c.Rows() {
		v := a.At(row)
		if !isContainer(v) {
			c.Fail(row, errDeleteScalar)
			continue
		}
		quoted = jsonb.AppendQuoted(quoted[:0], b.At(row))
		w.Buf = jsonFilter(w.Buf, v, func(_ int, k, m []byte) bool { return dropsKey(k, m, quoted) })
		w.End(row)
	}
}

func jsonDeleteKeys() Kernel {
	var keys textList
	var quoted []byte
	return func(c *Call) {
		a, w := c.Texts(0), c.Text()
		for _, row := range c.Rows() {
			v := a.At(row)
			if !isContainer(v) {
				c.Fail(row, errDeleteScalar)
				continue
			}
			if !keys.read(c, 1, row) {
				continue
			}
			w.Buf = jsonFilter(w.Buf, v, func(_ int, k, m []byte) bool {
				for i := range keys.v.Len {
					if keys.v.IsNull(i) {
						continue
					}
					quoted = jsonb.AppendQuoted(quoted[:0], keys.v.Bytes(i))
					if dropsKey(k, m, quoted) {
						return true
					}
				}
				return false
			})
			w.End(row)
		}
	}
}

func jsonDeleteIndex(c *Call) {
	a, b, w := c.Texts(0), c.Int32s(1), c.Text()
	for _, row := range c.Rows() {
		v, at := a.At(row), int(b.At(row))
		switch jsonb.KindOf(v) {
		case jsonb.Array:
		case jsonb.Object:
			c.Fail(row, errDeleteObject)
			continue
		default:
			c.Fail(row, errDeleteScalar)
			continue
		}
		if at < 0 {
			if at += jsonb.Len(v); at < 0 {
				at = math.MaxInt
			}
		}
		w.Buf = jsonFilter(w.Buf, v, func(i int, _, _ []byte) bool { return i == at })
		w.End(row)
	}
}

// appendJSON appends argument k as JSON.
func (c *Call) appendJSON(dst []byte, k int, row int32) []byte {
	if c.IsNull(k, row) {
		return append(dst, "null"...)
	}
	return appendJSONValue(dst, c.Args[k], int(row)&c.mask(k), c.Ctx)
}

func appendJSONValue(dst []byte, v *column.Vector, i int, ctx *Context) []byte {
	switch v.Type.Kind {
	case column.JSONB:
		return append(dst, v.Bytes(i)...)
	case column.Text:
		return jsonb.AppendQuoted(dst, v.Bytes(i))
	case column.Bool:
		if v.Bools[i] {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case column.Int16, column.Int32, column.Int64:
		return formatText(dst, v, i, ctx)
	case column.Array:
		return appendJSONArray(dst, v.Type.ElemType(), v.Bytes(i), ctx)
	}
	text := formatText(nil, v, i, ctx)
	switch v.Type.Kind {
	case column.Numeric, column.Float32, column.Float64:
		if d, err := decimal.ParseBytes(text); err == nil && d.IsFinite() {
			return d.Append(dst)
		}
	case column.Timestamp, column.Timestamptz:
		text = isoTimestamp(text, v.Type.Kind == column.Timestamptz)
	}
	return jsonb.AppendQuoted(dst, text)
}

// isoTimestamp writes a timestamp's text as ISO 8601 has it: a T between, and minutes in the offset.
func isoTimestamp(text []byte, zoned bool) []byte {
	at := bytes.IndexByte(text, ' ')
	if at < 0 {
		return text
	}
	text[at] = 'T'
	if !zoned {
		return text
	}
	suffix := []byte(nil)
	if b, ok := bytes.CutSuffix(text, []byte(" BC")); ok {
		text, suffix = b, []byte(" BC")
	}
	if n := len(text); n > 3 && (text[n-3] == '+' || text[n-3] == '-') {
		text = append(text[:n:n], ":00"...)
	}
	return append(text, suffix...)
}

func appendJSONArray(dst []byte, t column.Type, enc []byte, ctx *Context) []byte {
	elems := column.NewVector(t, 8)
	if err := column.AppendArrayElems(elems, enc); err != nil {
		return append(dst, "null"...)
	}
	dims := column.ArrayDims(nil, enc)
	if len(dims) == 0 {
		return append(dst, "[]"...)
	}
	next := 0
	var level func(d int)
	level = func(d int) {
		l := newJSONList(dst, jsonb.Array)
		for range dims[d].Len {
			l.next(nil)
			switch {
			case d+1 < len(dims):
				dst = l.dst
				level(d + 1)
				l.dst = dst
			case elems.IsNull(next):
				l.dst = append(l.dst, "null"...)
				next++
			default:
				l.dst = appendJSONValue(l.dst, elems, next, ctx)
				next++
			}
		}
		dst = l.close()
	}
	level(0)
	return dst
}

func jsonArray(c *Call) {
	w := c.Text()
	for _, row := range c.Rows() {
		l := newJSONList(w.Buf, jsonb.Array)
		for k := range c.Args {
			if !w.Room(len(l.dst) - len(w.Buf)) {
				break // End will say so
			}
			l.next(nil)
			l.dst = c.appendJSON(l.dst, k, row)
		}
		w.Buf = l.close()
		w.End(row)
	}
}

func makeJSONObject(s *Site) (Kernel, error) {
	var text, object []byte
	return func(c *Call) {
		w := c.Text()
	rows:
		for _, row := range c.Rows() {
			if len(c.Args)%2 != 0 {
				c.Fail(row, errObjectArgs)
				continue
			}
			l := newJSONList(object[:0], jsonb.Object)
			for k := 0; k < len(c.Args); k += 2 {
				if c.IsNull(k, row) {
					c.Fail(row, pgerr.Newf(pgerr.InvalidParameterValue, "argument %d: key must not be null", k+1))
					continue rows
				}
				switch c.Args[k].Type.Kind {
				case column.JSONB, column.Array:
					c.Fail(row, errObjectKey)
					continue rows
				}
				if !w.Room(2 * len(l.dst)) {
					w.Refuse(row)
					continue rows
				}
				text = c.appendWord(text[:0], k, row)
				if kind := c.Args[k].Type.Kind; kind == column.Timestamp || kind == column.Timestamptz {
					text = isoTimestamp(text, kind == column.Timestamptz)
				}
				l.next(jsonb.AppendQuoted(nil, text))
				l.dst = c.appendJSON(l.dst, k+1, row)
			}
			object = l.close()
			var err error
			if w.Buf, err = jsonb.Canonical(w.Buf, object); err != nil {
				c.fail(row, err)
				continue
			}
			w.End(row)
		}
	}, nil
}

func stripNulls(dst, v []byte) []byte {
	kind := jsonb.KindOf(v)
	if kind < jsonb.Array {
		return append(dst, v...)
	}
	l := newJSONList(dst, kind)
	for it := jsonb.Members(v); ; {
		k, m, ok := it.Next()
		if !ok {
			return l.close()
		}
		if kind == jsonb.Object && jsonb.KindOf(m) == jsonb.Null {
			continue
		}
		l.next(k)
		l.dst = stripNulls(l.dst, m)
	}
}

func appendPretty(dst, v []byte, depth int) []byte {
	kind := jsonb.KindOf(v)
	if kind < jsonb.Array {
		return append(dst, v...)
	}
	dst = append(dst, v[0])
	first := true
	for it := jsonb.Members(v); ; first = false {
		k, m, ok := it.Next()
		if !ok {
			break
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = appendSpaces(append(dst, '\n'), 4*(depth+1))
		if k != nil {
			dst = append(append(dst, k...), ": "...)
		}
		dst = appendPretty(dst, m, depth+1)
	}
	return append(appendSpaces(append(dst, '\n'), 4*depth), v[len(v)-1])
}

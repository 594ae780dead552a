package expr

import (
	"bytes"
	"strconv"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/jsonb"
	"github.com/leat-io/leat/internal/pgerr"
)

// jsonAccess take jsonb values apart. They walk the canonical text; a member of it is a value as it stands.
var jsonAccess = []Overload{
	{Name: "->", Args: []column.Type{tJSONB, tText}, Result: tJSONB, Make: kernel(func(c *Call) { jsonField(c, false) })},
	{Name: "->>", Args: []column.Type{tJSONB, tText}, Result: tText, Make: kernel(func(c *Call) { jsonField(c, true) })},
	{Name: "->", Args: []column.Type{tJSONB, tInt4}, Result: tJSONB, Make: kernel(func(c *Call) { jsonIndex(c, false) })},
	{Name: "->>", Args: []column.Type{tJSONB, tInt4}, Result: tText, Make: kernel(func(c *Call) { jsonIndex(c, true) })},
	{Name: "#>", Args: []column.Type{tJSONB, tTextArray}, Result: tJSONB, Make: func(*Site) (Kernel, error) { return jsonPath(false), nil }},
	{Name: "#>>", Args: []column.Type{tJSONB, tTextArray}, Result: tText, Make: func(*Site) (Kernel, error) { return jsonPath(true), nil }},
	{Name: "jsonb_extract_path", Args: []column.Type{tJSONB, tText}, Variadic: true, Result: tJSONB, Make: kernel(func(c *Call) { jsonExtract(c, false) })},
	{Name: "jsonb_extract_path_text", Args: []column.Type{tJSONB, tText}, Variadic: true, Result: tText, Make: kernel(func(c *Call) { jsonExtract(c, true) })},
	{Name: "jsonb_typeof", Args: []column.Type{tJSONB}, Result: tText, Make: kernel(func(c *Call) {
		a, w := c.Texts(0), c.Text()
		for _, row := range c.Rows() {
			w.Buf = append(w.Buf, jsonb.KindOf(a.At(row)).String()...)
			w.End(row)
		}
	})},
	{Name: "jsonb_array_length", Args: []column.Type{tJSONB}, Result: tInt4, Make: kernel(func(c *Call) {
		out, a := c.Out.I32, c.Texts(0)
		for _, row := range c.Rows() {
			switch v := a.At(row); jsonb.KindOf(v) {
			case jsonb.Array:
				out[row] = int32(jsonb.Len(v))
			case jsonb.Object:
				c.Fail(row, errLengthOfObject)
			default:
				c.Fail(row, errLengthOfScalar)
			}
		}
	})},
	{Name: "@>", Args: []column.Type{tJSONB, tJSONB}, Result: tBool, Make: kernel(func(c *Call) { jsonContains(c, 0, 1) })},
	{Name: "<@", Args: []column.Type{tJSONB, tJSONB}, Result: tBool, Make: kernel(func(c *Call) { jsonContains(c, 1, 0) })},
	{Name: "?", Args: []column.Type{tJSONB, tText}, Result: tBool, Make: kernel(func(c *Call) {
		out, a, b := c.Out.Bools, c.Texts(0), c.Texts(1)
		for _, row := range c.Rows() {
			out[row] = jsonHasKey(a.At(row), b.At(row))
		}
	})},
	{Name: "?|", Args: []column.Type{tJSONB, tTextArray}, Result: tBool, Make: func(*Site) (Kernel, error) { return jsonHasKeys(false), nil }},
	{Name: "?&", Args: []column.Type{tJSONB, tTextArray}, Result: tBool, Make: func(*Site) (Kernel, error) { return jsonHasKeys(true), nil }},
}

var (
	errLengthOfObject = pgerr.New(pgerr.InvalidParameterValue, "cannot get array length of a non-array")
	errLengthOfScalar = pgerr.New(pgerr.InvalidParameterValue, "cannot get array length of a scalar")
)

// setJSON is the result of an access: the value, or as text, where null is NULL.
func (c *Call) setJSON(w *TextWriter, row int32, v []byte, ok, text bool) {
	switch {
	case !ok, text && jsonb.KindOf(v) == jsonb.Null:
		c.Null(row)
	case text:
		w.Buf = jsonb.AppendText(w.Buf, v)
		w.End(row)
	default:
		w.Set(row, v)
	}
}

func jsonField(c *Call, text bool) {
	a, b, w := c.Texts(0), c.Texts(1), c.Text()
	for _, row := range c.Rows() {
		v, ok := jsonb.Field(a.At(row), b.At(row))
		c.setJSON(w, row, v, ok, text)
	}
}

func jsonIndex(c *Call, text bool) {
	a, b, w := c.Texts(0), c.Int32s(1), c.Text()
	for _, row := range c.Rows() {
		v, i := a.At(row), b.At(row)
		ok := i == 0 || i == -1 // a scalar is, in PostgreSQL, the one element of an array
		if isContainer(v) {
			v, ok = jsonb.Index(v, int(i))
		}
		c.setJSON(w, row, v, ok, text)
	}
}

// step goes to a member by name, or by index in an array.
func step(v, name []byte) ([]byte, bool) {
	switch jsonb.KindOf(v) {
	case jsonb.Object:
		return jsonb.Field(v, name)
	case jsonb.Array:
		i, err := strconv.ParseInt(string(bytes.TrimLeft(name, " \t\n\v\f\r")), 10, 32)
		if err != nil {
			return nil, false
		}
		return jsonb.Index(v, int(i))
	}
	return nil, false
}

// texts are the elements of an argument that is a text[].
type textList struct{ v *column.Vector }

func (l *textList) read(c *Call, k int, row int32) bool {
	if l.v == nil {
		l.v = column.NewVector(tText, 8)
	}
	l.v.Reset(tText)
	if err := column.AppendArrayElems(l.v, c.Texts(k).At(row)); err != nil {
		c.fail(row, err)
		return false
	}
	return true
}

func jsonPath(text bool) Kernel {
	var path textList
	return func(c *Call) {
		a, w := c.Texts(0), c.Text()
		first := true
		for _, row := range c.Rows() {
			if (first || !c.Const[1]) && !path.read(c, 1, row) {
				continue
			}
			first = false
			v, ok := a.At(row), true
			for i := 0; i < path.v.Len && ok; i++ {
				if ok = !path.v.IsNull(i); ok {
					v, ok = step(v, path.v.Bytes(i))
				}
			}
			c.setJSON(w, row, v, ok, text)
		}
	}
}

func jsonExtract(c *Call, text bool) {
	a, w := c.Texts(0), c.Text()
	for _, row := range c.Rows() {
		v, ok := a.At(row), true
		for k := 1; k < len(c.Args) && ok; k++ {
			v, ok = step(v, c.Texts(k).At(row))
		}
		c.setJSON(w, row, v, ok, text)
	}
}

func isContainer(v []byte) bool { return jsonb.KindOf(v) >= jsonb.Array }

func jsonContains(c *Call, whole, piece int) {
	out, a, b := c.Out.Bools, c.Texts(whole), c.Texts(piece)
	for _, row := range c.Rows() {
		x, y := a.At(row), b.At(row)
		switch {
		case isContainer(y):
			out[row] = contains(x, y)
		case jsonb.KindOf(x) == jsonb.Array: // an array contains its scalars
			out[row] = hasElement(x, y)
		default:
			out[row] = !isContainer(x) && jsonb.Compare(x, y) == 0
		}
	}
}

// contains tells whether everything in y is in x.
func contains(x, y []byte) bool {
	kind := jsonb.KindOf(y)
	if jsonb.KindOf(x) != kind {
		return false
	}
	switch kind {
	case jsonb.Object:
		have := jsonb.Members(x)
		key, v, ok := have.Next()
		for want := jsonb.Members(y); ; {
			k, w, more := want.Next()
			if !more {
				return true
			}
			for ok && !bytes.Equal(key, k) { // both are in the order of keys
				key, v, ok = have.Next()
			}
			if !ok || !contains(v, w) {
				return false
			}
		}
	case jsonb.Array:
		for want := jsonb.Members(y); ; {
			_, w, more := want.Next()
			if !more {
				return true
			}
			if !hasElement(x, w) {
				return false
			}
		}
	}
	return jsonb.Compare(x, y) == 0
}

func hasElement(x, y []byte) bool {
	for it := jsonb.Members(x); ; {
		_, v, ok := it.Next()
		if !ok {
			return false
		}
		if contains(v, y) {
			return true
		}
	}
}

// jsonHasKey tells whether a string is a key of an object, an element of an array, or the value itself.
func jsonHasKey(v, key []byte) bool {
	switch jsonb.KindOf(v) {
	case jsonb.Object:
		_, ok := jsonb.Field(v, key)
		return ok
	case jsonb.Array:
		var b [64]byte
		quoted := jsonb.AppendQuoted(b[:0], key)
		for it := jsonb.Members(v); ; {
			_, e, ok := it.Next()
			if !ok {
				return false
			}
			if bytes.Equal(e, quoted) {
				return true
			}
		}
	case jsonb.String:
		var b [64]byte
		return bytes.Equal(v, jsonb.AppendQuoted(b[:0], key))
	}
	return false
}

func jsonHasKeys(all bool) Kernel {
	var keys textList
	return func(c *Call) {
		out, a := c.Out.Bools, c.Texts(0)
		for _, row := range c.Rows() {
			if !keys.read(c, 1, row) {
				continue
			}
			out[row] = all
			for i := range keys.v.Len {
				if !keys.v.IsNull(i) && jsonHasKey(a.At(row), keys.v.Bytes(i)) != all {
					out[row] = !all
					break
				}
			}
		}
	}
}

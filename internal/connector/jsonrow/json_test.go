package jsonrow

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/column/columntest"
	"github.com/leat-io/leat/internal/pgtype"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	types := []column.Type{column.TInt32, column.TText, column.TTimestamp}
	for _, c := range []struct{ in, want, err string }{
		{in: `{"a":1,"b":"x","c":"2024-01-02T03:04:05"}`, want: `1|x|2024-01-02 03:04:05`},
		{in: ` { "c" : null , "a" : -7 } `, want: `-7|NULL|NULL`},
		{in: `{}`, want: `NULL|NULL|NULL`},
		{in: `{"a":"12","b":3.50,"x":{"deep":[1,{"y":null}]}}`, want: `12|3.50|NULL`},
		{in: `{"b":{"k":[1,2]}}`, want: `NULL|{"k":[1,2]}|NULL`},
		{in: `{"b":true}`, want: `NULL|true|NULL`},
		{in: `{"a":1,"a":2}`, want: `2|NULL|NULL`},
		{in: `{"b":"\u00e9\n\ud83d\ude00\""}`, want: "NULL|\u00e9\n\U0001F600\"|NULL"},
		{in: `{"\u0061":5}`, want: `5|NULL|NULL`},
		{in: `{"a":1.5}`, err: `field "a": invalid input syntax for type integer: "1.5"`},
		{in: `{"a":3000000000}`, err: `field "a": value "3000000000" is out of range for type integer`},
		{in: `{"a":01}`, err: `a number has no leading zeros`},
		{in: `{"a":1`, err: `the text ends where ',' or '}' is expected`},
		{in: `{"a":1}x`, err: `'x' where the end of the record is expected`},
		{in: `[1]`, err: `'[' where an object is expected`},
		{in: ``, err: `the text ends where an object is expected`},
		{in: `{"b":"` + "\x01" + `"}`, err: `control character`},
		{in: `{"b":"\q"}`, err: `unknown escape`},
		{in: `{"b":"\ud83d"}`, err: `field "b": a \u escape is half of a surrogate pair`},
		{in: `{"b":"\ude00\ud83d"}`, err: `half of a surrogate pair`},
		{in: `{"c":"\ud83dx"}`, err: `half of a surrogate pair`},
		{in: `{"\ud83d":1,"a":2}`, want: `2|NULL|NULL`},
		{in: `{"b":"\u0000"}`, err: `\u0000 cannot be in a text`},
		{in: "{\"b\":\"\xff\"}", err: `not valid UTF-8`},
		{in: "{\"b\":\"long enough for words \xc3\",\"a\":1}", err: `not valid UTF-8`},
		{in: "{\"\xc3\xa9\xff\":\"x\",\"a\":1}", err: `not valid UTF-8`},
		{in: "{\"x\":[\"\xff\"],\"a\":1}", err: `not valid UTF-8`},
		{in: "{\"a\":1\xff}", err: `not valid UTF-8`},
		{in: `{"é":1,"b":"a long text with é and 漢字 in it","a":12345678}`, want: `12345678|a long text with é and 漢字 in it|NULL`},
		{in: `{"a":123456789,"b":12345678.5e0}`, want: `123456789|12345678.5e0|NULL`},
		{in: `{"a":12x}`, err: `'x' where ',' or '}' is expected`},
		{in: `{"a":1,}`, err: `'}' where a member's name is expected`},
		{in: `{"a": 1 , "b" : "x"}`, want: `1|x|NULL`},
		{in: `{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, err: `nested deeper than 100`},
	} {
		for _, before := range []string{``, `{"a":1,"b":"x","c":null}`, c.in} {
			d := NewDecoder(names, types)
			if before != "" { // its members are where the next ones are expected
				_ = d.Decode([]byte(before), column.NewBatch(types, 1).Cols)
			}
			for _, behind := range []string{"", "                "} { // what is near the end is not taken by words
				if got, want := decoded(t, d, c.in+behind, types), c.want; c.err == "" && got != want {
					t.Errorf("%s behind %s: %s, want %s", c.in, before, got, want)
				} else if c.err != "" && behind == "" && !strings.Contains(got, c.err) {
					t.Errorf("%s behind %s: %s, want the error %q", c.in, before, got, c.err)
				}
			}
		}
	}
}

// decoded is a record's row as text, or its error.
func decoded(t *testing.T, d *Decoder, in string, types []column.Type) string {
	b := column.NewBatch(types, 1)
	if err := d.Decode([]byte(in), b.Cols); err != nil {
		for i, v := range b.Cols {
			if v.Len != 0 {
				t.Errorf("%s: column %d has %d values after an error", in, i, v.Len)
			}
		}
		return "error: " + err.Error()
	}
	var got []string
	for _, v := range b.Cols {
		if v.IsNull(0) {
			got = append(got, "NULL")
		} else {
			got = append(got, string(pgtype.AppendText(nil, v, 0, time.UTC)))
		}
	}
	return strings.Join(got, "|")
}

func TestIntegers(t *testing.T) {
	t.Parallel()
	r := columntest.Rand(t)
	types := []column.Type{column.TInt64}
	for range 20_000 {
		n := r.Int64() >> r.IntN(64)
		if r.IntN(2) == 0 {
			n = -n
		}
		want := strconv.FormatInt(n, 10)
		for _, behind := range []string{"}", `,"b":"xxxxxxxx"}`} {
			d := NewDecoder([]string{"a"}, types)
			for range 2 {
				if got := decoded(t, d, `{"a":`+want+behind, types); got != want {
					t.Fatalf("%s is decoded as %s", want, got)
				}
			}
		}
	}
}

// TestRoundTrip: what is encoded is JSON, and decodes to the same values, for every type.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	r := columntest.Rand(t)
	var types []column.Type
	var names []string
	for _, typ := range columntest.Types() {
		if typ.Kind == column.Array && typ.Elem == column.JSONB {
			continue // its null elements are NULL
		}
		types, names = append(types, typ), append(names, typ.String())
	}
	in := columntest.Batch(r, types, 500)
	for _, table := range []bool{false, true} {
		e, d := NewEncoder(names), NewDecoder(names, types)
		if table {
			e, d = NewTableEncoder(names), NewTableDecoder(names, types)
		}
		out := column.NewBatch(types, in.Len)
		for row := range in.Len {
			text := e.Append(nil, in.Cols, row)
			if !json.Valid(text) {
				t.Fatalf("row %d is not JSON: %s", row, text)
			}
			if err := d.Decode(text, out.Cols); err != nil {
				t.Fatalf("row %d: %s: %v", row, text, err)
			}
			for c, v := range in.Cols {
				if types[c].Kind == column.JSONB && !v.IsNull(row) && string(v.Bytes(row)) == "null" && !table {
					continue // JSON's null and SQL's are one here, as in json_populate_record
				}
				if !v.Equal(row, out.Cols[c], row) {
					t.Fatalf("row %d, %s: %s decodes to another value", row, names[c], text)
				}
			}
		}
	}
}

// Arrays of several dimensions, and those whose subscripts begin elsewhere, are what they were.
func TestArrays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		elem     column.Kind
		in, json string
	}{
		{column.Text, `{}`, `{"a":[]}`},
		{column.Text, `{a,NULL,"b c"}`, `{"a":["a",null,"b c"]}`},
		{column.Text, `{{a,b},{c,NULL}}`, `{"a":[["a","b"],["c",null]]}`},
		{column.Int32, `{{{1},{2}},{{3},{4}}}`, `{"a":[[[1],[2]],[[3],[4]]]}`},
		{column.Text, `[2:3]={a,"\"q\\"}`, `{"a":"[2:3]={a,\"\\\"q\\\\\"}"}`},
		{column.JSONB, `{"{\"x\": [1]}","[1, 2]","\"s\\n\"",3}`, `{"a":[{"x": [1]},[1, 2],"s\n",3]}`},
		{column.JSONB, `{{1,"[2]"},{3,4}}`, `{"a":"{{1,[2]},{3,4}}"}`},
	} {
		types := []column.Type{column.ArrayOf(c.elem)}
		b := column.NewBatch(types, 1)
		if err := pgtype.ParseText(b.Cols[0], []byte(c.in), nil); err != nil {
			t.Fatalf("%s: %v", c.in, err)
		}
		text := NewEncoder([]string{"a"}).Append(nil, b.Cols, 0)
		if string(text) != c.json {
			t.Errorf("%s is encoded as %s, want %s", c.in, text, c.json)
		}
		out := column.NewBatch(types, 1)
		if err := NewDecoder([]string{"a"}, types).Decode(text, out.Cols); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if !b.Cols[0].Equal(0, out.Cols[0], 0) {
			t.Errorf("%s decodes to another value than %s", text, c.in)
		}
	}
	types := []column.Type{column.ArrayOf(column.Text)}
	for _, text := range []string{`{"a":[["a"],"b"]}`, `{"a":["b",["a"]]}`, `{"a":[["a"],["b","c"]]}`, `{"a":[{"b":1}]}`, `{"a":[[[[[[["a"]]]]]]]}`} {
		if err := NewDecoder([]string{"a"}, types).Decode([]byte(text), column.NewBatch(types, 1).Cols); err == nil {
			t.Errorf("%s is taken as a text[]", text)
		}
	}
}

// TestTwoNulls: a table's records tell jsonb's null from NULL; elsewhere both are NULL.
func TestTwoNulls(t *testing.T) {
	t.Parallel()
	names, types := []string{"j", "k"}, []column.Type{column.TJSONB, column.TInt32}
	for _, c := range []struct {
		in          string
		table, null bool
	}{
		{`{"j":null,"k":1}`, true, false},
		{`{"k":1}`, true, true},
		{`{"j":null,"k":1}`, false, true},
		{`{"k":1}`, false, true},
		{`{"j":[null],"k":null}`, true, false},
	} {
		b := column.NewBatch(types, 1)
		d := NewDecoder(names, types)
		if c.table {
			d = NewTableDecoder(names, types)
		}
		if err := d.Decode([]byte(c.in), b.Cols); err != nil {
			t.Fatal(err)
		}
		if got := b.Cols[0].IsNull(0); got != c.null {
			t.Errorf("%s, table %v: NULL is %v, want %v", c.in, c.table, got, c.null)
		}
		if c.table {
			if got := string(NewTableEncoder(names).Append(nil, b.Cols, 0)); got != c.in {
				t.Errorf("%s is encoded as %s", c.in, got)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":"x\u00e9","c":"2024-01-02T03:04:05","d":[1,"x",null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		names := []string{"a", "b", "c", "d", "e"}
		types := []column.Type{column.TInt64, column.TText, column.TTimestamp, column.ArrayOf(column.Text), column.TJSONB}
		b := column.NewBatch(types, 1)
		d := NewDecoder(names, types)
		err := d.Decode(data, b.Cols)
		first, again := decoded(t, NewDecoder(names, types), string(data), types), decoded(t, d, string(data), types)
		if first != again {
			t.Fatalf("%q is decoded as %s, and as %s when an object like it was before", data, first, again)
		}
		if err != nil && json.Valid(data) && !utf8.Valid(data) != (err == errNotUTF8) {
			t.Fatalf("%q: %v", data, err)
		}
		for _, v := range b.Cols {
			if err == nil && v.Len != 1 || err != nil && v.Len != 0 {
				t.Fatalf("%q: %d values, error %v", data, v.Len, err)
			}
		}
		if err == nil && !json.Valid(data) {
			t.Fatalf("%q is taken and is not JSON", data)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	line := []byte(`{"auction":1012,"bidder":2001,"price":394,"channel":"Facebook","url":"https://www.nexmark.com/eaj/gvly/dxj/item.htm?query=1","dateTime":1436918400000,"extra":"mxudlffujvzn_MWWKLTJYXVUJVPLclxthoTXNLVQfgljluayubgvovhygi"}`)
	names := []string{"auction", "bidder", "price", "channel", "dateTime"}
	types := []column.Type{column.TInt64, column.TInt64, column.TInt64, column.TText, column.TInt64}
	d := NewDecoder(names, types)
	batch := column.NewBatch(types, 1024)
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if batch.Cols[0].Len == 1024 {
			batch.Reset(types)
		}
		if err := d.Decode(line, batch.Cols); err != nil {
			b.Fatal(err)
		}
	}
}

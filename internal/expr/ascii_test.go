package expr

import (
	"bytes"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/leat-io/leat/internal/column"
)

// TestWholeTexts compares what works on the bytes of all rows at once with what goes row by row, for ASCII and other text, with NULLs and
// selections.
func TestWholeTexts(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	letters := []rune("abzAZ@[`{ 09~ÄéßıİΣ世\U0001F600")
	word := func(ascii bool) string {
		var b []rune
		for range r.IntN(40) {
			c := letters[r.IntN(len(letters))]
			if ascii && c >= utf8.RuneSelf {
				c = rune(1 + r.IntN(127))
			}
			b = append(b, c)
		}
		return string(b)
	}
	for round := range 300 {
		in := &column.Batch{Len: 1 + r.IntN(100)}
		v := column.NewVector(tText, in.Len)
		in.Cols = []*column.Vector{v, column.NewVector(tBool, in.Len)}
		for range in.Len {
			if r.IntN(10) == 0 {
				v.AppendNull()
			} else {
				v.AppendString(word(round%2 == 0))
			}
			in.Cols[1].AppendBool(r.IntN(3) > 0)
		}
		for text, want := range map[string]func(s []byte) string{
			"lower(x)":  func(s []byte) string { return string(appendLower(nil, s)) },
			"upper(x)":  func(s []byte) string { return string(appendUpper(nil, s)) },
			"length(x)": func(s []byte) string { return fmt.Sprint(utf8.RuneCount(s)) },
		} {
			call, err := Resolve(text[:len(text)-3], []*Node{Column(0, tText, 0)}, 0)
			if err != nil {
				t.Fatal(err)
			}
			some, err := Case([]*Node{Column(1, tBool, 0)}, []*Node{call}, call, 0) // some rows first, then the others
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []*Node{call, some} {
				p, err := Compile(n, []column.Type{tText, tBool})
				if err != nil {
					t.Fatal(err)
				}
				got, err := p.Eval(nil, in)
				if err != nil {
					t.Fatal(err)
				}
				if err := got.Validate(); err != nil {
					t.Fatal(err)
				}
				for i := range in.Len {
					if v.IsNull(i) != got.IsNull(i) {
						t.Fatalf("%s of row %d: NULL is wrong", text, i)
					}
					if !v.IsNull(i) && string(formatText(nil, got, i, nil)) != want(v.Bytes(i)) {
						t.Fatalf("%s of %q is %q, want %q", text, v.Bytes(i), formatText(nil, got, i, nil), want(v.Bytes(i)))
					}
				}
			}
		}
		key := v.Bytes(r.IntN(in.Len))
		eq, err := Resolve("=", []*Node{Const(tText, string(key), 0), Column(0, tText, 0)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(eq, []column.Type{tText, tBool})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := p.Select(nil, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int32(in.Len) {
			is := !v.IsNull(int(i)) && bytes.Equal(v.Bytes(int(i)), key)
			if len(rows) > 0 && rows[0] == i {
				rows = rows[1:]
				if !is {
					t.Fatalf("row %d, %q, is selected as equal to %q", i, v.Bytes(int(i)), key)
				}
			} else if is {
				t.Fatalf("row %d, %q, is not selected", i, key)
			}
		}
	}
}

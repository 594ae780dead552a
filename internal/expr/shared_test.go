package expr

import (
	"testing"

	"github.com/leat-io/leat/internal/column"
)

// TestSharedCalls: a call that occurs in several branches of a CASE is computed once, and each branch sees its own rows' values, also when the
// first to ask wants some rows only.
func TestSharedCalls(t *testing.T) {
	t.Parallel()
	x := &Node{Op: OpColumn, Type: tText, Index: 0}
	lower := func() *Node {
		n, err := Resolve("lower", []*Node{x}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	is := func(text string) *Node {
		n, err := Resolve("=", []*Node{lower(), textConst(text)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	both, err := Resolve("||", []*Node{lower(), lower()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	first := &Node{Op: OpCase, Type: tText, Args: []*Node{is("a"), textConst("1"), is("b"), both, lower()}}
	starts, err := Resolve("starts_with", []*Node{x, textConst("A")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	late := &Node{Op: OpCase, Type: tText, Args: []*Node{starts, lower(), both}} // nobody asks for all rows
	in := column.NewBatch([]column.Type{tText}, 4)
	for _, s := range []string{"A", "B", "C", "b", "Ab"} {
		in.Cols[0].AppendString(s)
		in.EndRow(1)
	}
	for _, c := range []struct {
		name string
		n    *Node
		want []string
	}{
		{"all rows first", first, []string{"1", "bb", "c", "bb", "ab"}},
		{"some rows first", late, []string{"a", "bb", "cc", "bb", "ab"}},
	} {
		p, err := Compile(c.n, []column.Type{tText})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			v, err := p.Eval(nil, in)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				if got := string(v.Bytes(i)); got != want {
					t.Errorf("%s: row %d is %q, want %q", c.name, i, got, want)
				}
			}
		}
	}
}

func textConst(s string) *Node { return &Node{Op: OpConst, Type: tText, Text: &s} }

package expr

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/column"
)

// lateColumns makes columns of a batch when they are asked for, and counts how many values it made.
type lateColumns struct {
	of   *column.Batch
	made []int // values, by column
}

func (l *lateColumns) Make(i int, rows []int32, dst *column.Vector) {
	if rows == nil {
		l.made[i] += l.of.Len
		dst.CopyFrom(l.of.Cols[i])
		return
	}
	l.made[i] += len(rows)
	dst.Gather(l.of.Cols[i], rows)
}

// randomBatch is rows over testColumns.
func randomBatch(t *testing.T, g generator, rows int) (*column.Batch, []column.Type) {
	types := make([]column.Type, len(testColumns))
	b := &column.Batch{Len: rows}
	for i, name := range testColumns {
		types[i] = typesByName[name]
		v := column.NewVector(types[i], rows)
		b.Cols = append(b.Cols, v)
		for range rows {
			lit := edges[name][g.r.IntN(len(edges[name]))]
			if name == "int4" && g.r.IntN(2) == 0 {
				lit = fmt.Sprint(g.r.IntN(10) - 2)
			}
			if lit == "NULL" || g.r.IntN(5) == 0 {
				v.AppendNull()
				continue
			}
			one, err := parseOne(types[i], strings.Trim(lit, "'"), background)
			if err != nil {
				t.Fatal(err)
			}
			v.AppendFrom(one, 0)
		}
	}
	return b, types
}

// bindAs binds a text as an expression of a type.
func bindAs(t *testing.T, text string, typ column.Type) *Node {
	n, err := bindText(text)
	if err == nil && n.Type.Kind == column.Unknown {
		n, err = CastTo(n, typ, Implicit)
	}
	if err != nil {
		return nil // some random expressions cannot be bound
	}
	return n
}

// values are the results of a vector as text, with what failed.
func values(v *column.Vector, n int, errs *RowErrors) []string {
	var out []string
	for i := range n {
		switch {
		case errs.Failed(int32(i)):
			out = append(out, "failed")
		case v.IsNull(i):
			out = append(out, "NULL")
		default:
			out = append(out, string(formatText(nil, v, i, nil)))
		}
	}
	return out
}

// columnsOf notes the columns that an expression names.
func columnsOf(n *Node, seen map[int]bool) {
	if n.Op == OpColumn {
		seen[n.Index] = true
	}
	for _, a := range n.Args {
		columnsOf(a, seen)
	}
}

// TestGroupIsItsParts compares a group of random expressions that have parts in common with programs that each compute one of them: a filter
// first, then the others over a copy of the rows that it leaves. Which rows fail must be the same.
func TestGroupIsItsParts(t *testing.T) {
	t.Parallel()
	g := generator{newRand(t)}
	for range 400 {
		in, types := randomBatch(t, g, 1+g.r.IntN(200))
		part := g.number(2)
		texts := []string{part, fmt.Sprintf("(%s) + 1", part), g.text(2), fmt.Sprintf("CASE WHEN %s THEN %s ELSE c2 END", g.boolean(1), part), "c3", "'x'::text"}
		conds := []string{
			fmt.Sprintf("(%s) > 0", part),
			fmt.Sprintf("%s OR (%s) IS NOT NULL", g.boolean(1), part),
			fmt.Sprintf("c7 AND (%s) < 100", part),
			g.boolean(2),
		}
		filter := bindAs(t, conds[g.r.IntN(len(conds))], tBool)
		var list []*Node
		for _, text := range texts {
			list = append(list, bindAs(t, text, tText))
		}
		if filter == nil || slices.Contains(list, nil) {
			continue
		}
		name := fmt.Sprintf("%s -> %s", conds, texts)
		errs := &RowErrors{}
		ctx := &Context{Errors: errs}

		p, err := Compile(filter, types)
		if err != nil {
			t.Fatal(err)
		}
		wantRows, err := p.Select(ctx, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantRows = errs.Without(wantRows, nil)
		var left column.Batch
		left.Gather(in, wantRows)

		group, err := CompileGroup(filter, list, types)
		if err != nil {
			t.Fatal(err)
		}
		late := &lateColumns{of: in, made: make([]int, len(types))}
		shown := &column.Batch{Len: in.Len, Cols: slices.Clone(in.Cols), Late: late}
		seen := map[int]bool{}
		columnsOf(filter, seen)
		for c := range shown.Cols {
			if !seen[c] && g.r.IntN(2) == 0 {
				shown.Cols[c] = nil
			}
		}
		for range 2 { // what is left of one batch does not show in the next
			errs.Reset()
			group.Start(ctx, shown)
			rows, err := group.Select(nil)
			if err != nil {
				t.Fatal(err)
			}
			rows = errs.Without(rows, rows[:0])
			if !slices.Equal(rows, wantRows) {
				t.Fatalf("%s: the filter leaves %d, want %d", name, rows, wantRows)
			}
			if len(rows) == 0 {
				break
			}
			if len(rows) < in.Len || g.r.IntN(2) == 0 {
				group.Narrow(rows)
			}
			errs.Reset()
			failed := &RowErrors{} // by the programs so far: what failed once is shared
			for i := range list {
				v, err := group.Eval(i)
				if err != nil {
					t.Fatal(err)
				}
				p, err := Compile(list[i], types)
				if err != nil {
					t.Fatal(err)
				}
				alone := &Context{Errors: failed}
				w, err := p.Eval(alone, &left)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := values(v, len(rows), errs), values(w, len(rows), failed); !slices.Equal(got, want) {
					t.Fatalf("%s: expression %d is\n%s, alone\n%s", name, i, got, want)
				}
			}
			for c, n := range late.made {
				if n > len(rows) {
					t.Fatalf("%s: column %d was made for %d rows, %d are left", name, c, n, len(rows))
				}
				late.made[c] = 0
			}
		}
	}
}

// TestGroupComputesOnce: what the filter has computed is not computed again behind it, nor is it where the filter did not need it.
func TestGroupComputesOnce(t *testing.T) { // counts allocations: not parallel
	in, types := benchBatch()
	late := &lateColumns{of: in, made: make([]int, len(types))}
	shown := &column.Batch{Len: in.Len, Cols: slices.Clone(in.Cols), Late: late}
	shown.Cols[2], shown.Cols[4] = nil, nil
	filter := bindBench(t, "b0 + 1 > 500 AND b0 + 1 < 900")
	list := []*Node{bindBench(t, "b0 + 1"), bindBench(t, "(b0 + 1) * 2"), bindBench(t, "b2"), bindBench(t, "CASE WHEN b0 > 0 THEN b4 END")}
	g, err := CompileGroup(filter, list, types)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.carried) != 1 {
		t.Fatalf("%d calls are carried over the filter, want 1", len(g.carried))
	}
	var ctx Context
	var rows []int32
	run := func() {
		g.Start(&ctx, shown)
		rows, _ = g.Select(rows[:0])
		g.Narrow(rows)
		for i := range list {
			if _, err := g.Eval(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	if late.made[2] != len(rows) || late.made[4] != len(rows) || len(rows) == 0 || len(rows) == in.Len {
		t.Errorf("%d of %d rows are left; late columns were made for %d", len(rows), in.Len, late.made)
	}
	if g.run.in.cols[0] == nil {
		t.Error("b0 is needed behind the filter")
	}
	list = list[:1]
	run()
	if g.run.in.cols[0] != nil {
		t.Error("b0 was copied though nothing behind the filter needs it")
	}
	if a := testing.AllocsPerRun(20, run); a != 0 {
		t.Errorf("a batch allocates %g times", a)
	}
}

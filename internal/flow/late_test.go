package flow

import (
	"slices"
	"testing"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// lateSource makes its texts late, and counts how many it made.
type lateSource struct {
	memSource
	made *int
}

func (s *lateSource) MakesLate(c int) bool { return s.types[c].Kind == column.Text }

func (s *lateSource) OpenLate(p int, cols, late []int) (connector.Partition, error) {
	return &latePart{memPart{s: &s.memSource, p: p, cols: cols}, late, s.made}, nil
}

type latePart struct {
	memPart
	late []int
	made *int
}

func (l *latePart) Read(from, to int64, most int, out *connector.Rows) (int64, error) {
	next, err := l.memPart.Read(from, to, most, out)
	out.Make = func(i int, rows []int32, dst *column.Vector) {
		dst.Reset(l.s.types[l.late[i]])
		for k, at := range out.Offsets {
			if rows == nil || slices.Contains(rows, int32(k)) {
				*l.made++
				appendAny(dst, l.s.parts[l.p][at][l.late[i]])
			}
		}
	}
	return next, err
}

func bigger(t *testing.T, c int, than string) *expr.Node {
	n, err := expr.Resolve(">", []*expr.Node{expr.Column(c, column.TInt64, 0), expr.Const(column.TInt64, than, 0)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLateColumns: a text that only rows behind a filter show is made for those rows; when a second job reads it, it is made once for
// all; when that is gone, late again. A dead letter among the rows changes nothing.
func TestLateColumns(t *testing.T) {
	t.Parallel()
	made := 0
	src := &lateSource{memSource: memSource{types: []column.Type{column.TInt64, column.TText}}, made: &made}
	spec := &SourceSpec{
		Relation: 1, Name: "s", Source: src, EventTime: -1,
		Columns: []SourceColumn{{Name: "n", Type: column.TInt64, NotNull: true}, {Name: "text", Type: column.TText}},
	}
	var rows [][]any
	for i := range 30 {
		row := []any{i % 10, string(rune('a' + i%10))}
		if i == 15 {
			row[0] = nil // a dead letter
		}
		rows = append(rows, row)
	}
	src.parts = [][][]any{rows}
	job := func(id uint64, filter bool) JobSpec {
		var b builder
		in := b.source(spec, 0, 1)
		if filter {
			n := *b.node(in)
			n.Kind, n.Scan, n.Filter = plan.KindFilter, nil, &plan.Filter{Predicate: bigger(t, 0, "7")}
			in = b.add(n, in)
			in = b.project(in, nil, []string{"text"}, expr.Column(1, column.TText, 0))
		}
		b.node(in).AppendOnly = true
		s := b.sink(in, "plain")
		b.node(s).Sink.Topic = map[uint64]string{1: "a", 2: "b"}[id]
		return JobSpec{ID: id, Name: "j", Plan: &b.p, Sources: map[uint64]*SourceSpec{1: spec}, Fresh: true}
	}
	r := newRig(t, Options{Workers: 1, BatchRows: 7})
	r.attach(job(1, true))
	r.run(10)
	if made != 2 {
		t.Errorf("alone: %d texts were made, want 2", made)
	}
	second := job(2, false)
	second.Positions = []SourceState{r.last.Readers[0].State}
	r.attach(second)
	made = 0
	r.run(10)
	if made != 0 {
		t.Errorf("two jobs read the text: it was made late %d times", made)
	}
	if err := r.i.Detach(2); err != nil {
		t.Fatal(err)
	}
	r.run(10)
	if made != 2 {
		t.Errorf("alone again: %d texts were made, want 2", made)
	}
	var got []string
	for _, a := range r.append {
		if a[0] == 'a' {
			got = append(got, a)
		}
	}
	if len(got) != 6 || len(r.append) != 15 || len(r.dead) != 1 {
		t.Errorf("%d records of the first job, %d in all, %d dead letters: %q", len(got), len(r.append), len(r.dead), r.append)
	}
}

package bind

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/parse"
	"github.com/leat-io/leat/internal/sql/plan"
)

// session is a catalog that statements are bound against and that DDL changes, as a node's session would.
type session struct {
	catalog *catalog.Snapshot
}

// env is the environment of tests: a fixed time and zone.
func (s *session) env(text string) Env {
	return Env{
		Catalog: s.catalog, Text: text,
		Context: &expr.Context{Now: time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro(), Zone: time.UTC},
	}
}

// run binds the statements of a text and applies DDL to the catalog.
func (s *session) run(text string) (string, error) {
	statements, err := parse.Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, st := range statements {
		b, err := dispatch(s.env(text), st.Node)
		if err != nil {
			return out.String(), err
		}
		for _, n := range b.Common().Notices {
			fmt.Fprintf(&out, "NOTICE: %s\n", n.Message)
		}
		if err := s.apply(b, &out); err != nil {
			return out.String(), err
		}
	}
	return out.String(), nil
}

func (s *session) apply(b Bound, out *strings.Builder) error {
	switch b := b.(type) {
	case *Create:
		next, changes, err := s.catalog.Create(b.Relation, b.IDs)
		if err != nil {
			return err
		}
		// What is stored must give the same relation again.
		for _, c := range changes {
			if c.Key != catalog.Key(b.Relation.ID) {
				continue
			}
			again, err := catalog.Decode(c.Value)
			if err != nil {
				return err
			}
			if again.PlanError != nil {
				return again.PlanError
			}
			v1, _ := catalog.Encode(b.Relation)
			v2, _ := catalog.Encode(again)
			if string(v1) != string(v2) {
				return fmt.Errorf("the stored form changes:\n%s\n%s", v1, v2)
			}
		}
		s.catalog = next
		if p := b.Relation.Plan; p != nil && out != nil {
			for _, line := range plan.Explain(p, s.name) {
				fmt.Fprintln(out, line)
			}
		}
	case *Drop:
		var ids []uint64
		for _, r := range b.Relations {
			ids = append(ids, r.ID)
		}
		next, _, _, err := s.catalog.Drop(ids, b.Cascade)
		if err != nil {
			return err
		}
		s.catalog = next
	case *Select:
		for _, line := range plan.Explain(b.Plan, s.name) {
			fmt.Fprintln(out, line)
		}
	case *Insert:
		s.insert(b, out)
	case *Update:
		fmt.Fprintf(out, "update %s%s\n", b.Target.Name, where(b.Where, b.Target))
		assignments(b.Set, rowOf(b.Target), b.Target, out)
		returned(b.Returning, b.Target, &b.Head, out)
	case *Delete:
		fmt.Fprintf(out, "delete %s%s\n", b.Target.Name, where(b.Where, b.Target))
		returned(b.Returning, b.Target, &b.Head, out)
	case *Explain:
		fmt.Fprintln(out, strings.Join(b.Lines, "\n"))
	}
	return nil
}

func (s *session) insert(b *Insert, out *strings.Builder) {
	fmt.Fprintf(out, "insert %s\n", b.Target.Name)
	for _, row := range b.Rows {
		var values []string
		for _, n := range row {
			values = append(values, plan.Text(n, nil))
		}
		fmt.Fprintf(out, "  row (%s)\n", strings.Join(values, ", "))
	}
	if b.Source != nil {
		for _, line := range plan.Explain(b.Source, s.name) {
			fmt.Fprintln(out, "  "+line)
		}
	}
	if c := b.Conflict; c != nil {
		both := rowOf(b.Target)
		for _, col := range rowOf(b.Target) {
			col.Name = "excluded." + col.Name
			both = append(both, col)
		}
		fmt.Fprintf(out, "  on conflict nothing=%v", c.Nothing)
		if c.Where != nil {
			fmt.Fprintf(out, " where %s", plan.Text(c.Where, both))
		}
		fmt.Fprintln(out)
		assignments(c.Set, both, b.Target, out)
	}
	returned(b.Returning, b.Target, &b.Head, out)
}

func rowOf(r *catalog.Relation) []plan.Column {
	var out []plan.Column
	for _, c := range r.Columns {
		out = append(out, plan.Column{Name: c.Name, Type: c.Type})
	}
	return out
}

func where(n *expr.Node, r *catalog.Relation) string {
	if n == nil {
		return ""
	}
	return " where " + plan.Text(n, rowOf(r))
}

func assignments(set []Assignment, cols []plan.Column, r *catalog.Relation, out *strings.Builder) {
	for _, a := range set {
		fmt.Fprintf(out, "  set %s = %s\n", r.Columns[a.Column].Name, plan.Text(a.Value, cols))
	}
}

func returned(list []*expr.Node, r *catalog.Relation, h *Head, out *strings.Builder) {
	for i, n := range list {
		fmt.Fprintf(out, "  returning %s as %s %s\n", plan.Text(n, rowOf(r)), h.Columns[i].Name, h.Columns[i].Type)
	}
}

func (s *session) name(id uint64) string {
	if r := s.catalog.Relation(id); r != nil {
		return r.Name
	}
	return ""
}

// message writes an error as psql would show it: the line with a caret under its position.
func message(text string, err error) string {
	e := pgerr.From(err)
	var out strings.Builder
	fmt.Fprintf(&out, "ERROR %s: %s\n", e.Code, e.Message)
	if e.Position > 0 {
		at := e.Position - 1
		if at > len(text) {
			return out.String() + "position is outside of the statement\n"
		}
		from := strings.LastIndexByte(text[:at], '\n') + 1
		line, _, _ := strings.Cut(text[from:], "\n")
		fmt.Fprintf(&out, "%s\n%s^\n", line, strings.Repeat(" ", at-from))
	}
	if e.Detail != "" {
		fmt.Fprintf(&out, "DETAIL: %s\n", e.Detail)
	}
	if e.Hint != "" {
		fmt.Fprintf(&out, "HINT: %s\n", e.Hint)
	}
	return out.String()
}

// TestGolden runs the files of testdata. "ddl" applies statements and prints nothing but errors and notices; "sql" also
// prints plans; "columns" prints the names and types of a query's result; "catalog" lists a relation.
func TestGolden(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		s := &session{catalog: catalog.Empty()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "ddl":
				out, err := s.run(d.Input)
				notices := ""
				for line := range strings.Lines(out) {
					if strings.HasPrefix(line, "NOTICE") {
						notices += line
					}
				}
				if err != nil {
					return notices + message(d.Input, err)
				}
				return notices
			case "sql":
				out, err := s.run(d.Input)
				if err != nil {
					out += message(d.Input, err)
				}
				return out
			case "columns":
				return s.columns(d.Input)
			case "catalog":
				return s.describe(d.Input)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func (s *session) columns(text string) string {
	statements, err := parse.Parse(text)
	if err != nil {
		return message(text, err)
	}
	var out strings.Builder
	for _, st := range statements {
		b, err := dispatch(s.env(text), st.Node)
		if err != nil {
			return out.String() + message(text, err)
		}
		for _, c := range b.Common().Columns {
			fmt.Fprintf(&out, "%s %s\n", c.Name, c.Type)
		}
		for i, p := range b.Common().Params {
			fmt.Fprintf(&out, "$%d %s\n", i+1, p)
		}
	}
	return out.String()
}

func (s *session) describe(name string) string {
	r := s.catalog.Lookup("", strings.TrimSpace(name))
	if r == nil {
		return "no such relation\n"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s id %d key %v append-only %v topic %q format %s %s\n", r.Kind, r.Name, r.ID, r.PrimaryKey, r.AppendOnly, r.Topic, r.Format, r.Encode)
	for _, c := range r.Columns {
		fmt.Fprintf(&out, "  %s %s", c.Name, c.Type)
		if c.NotNull {
			out.WriteString(" not null")
		}
		if c.Hidden {
			out.WriteString(" hidden")
		}
		if c.Include != "" {
			out.WriteString(" include " + c.Include)
		}
		if c.Default != nil {
			out.WriteString(" default " + plan.Text(c.Default, nil))
		}
		if c.Generated != nil {
			out.WriteString(" as " + plan.Text(c.Generated, rowOf(r)))
		}
		out.WriteString("\n")
	}
	for _, c := range r.Checks {
		fmt.Fprintf(&out, "  check %s: %s\n", c.Name, plan.Text(c.Expr, rowOf(r)))
	}
	if w := r.Watermark; w != nil {
		fmt.Fprintf(&out, "  watermark %s - %dus\n", r.Columns[w.Column].Name, w.Delay)
	}
	var deps []string
	for _, id := range r.DependsOn {
		deps = append(deps, s.name(id))
	}
	fmt.Fprintf(&out, "  depends on %v\n", deps)
	return out.String()
}

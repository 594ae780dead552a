package bind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/parse"
	"github.com/leat-io/leat/internal/sql/plan"
)

const fuzzSchema = `
CREATE TABLE t (a int PRIMARY KEY, b text, c timestamptz, d numeric(10,2), e boolean, f jsonb);
CREATE TABLE u (a int, d double precision);
CREATE SOURCE s (a int, b text, at timestamp, g int AS (a + 1), WATERMARK FOR at AS at - INTERVAL '1 second') WITH (connector = 'kafka', topic = 's') FORMAT PLAIN ENCODE JSON;
CREATE SOURCE r (a bigint, at timestamp, WATERMARK FOR at AS at) WITH (connector = 'kafka', topic = 'r') FORMAT PLAIN ENCODE JSON;
CREATE MATERIALIZED VIEW mv AS SELECT b, count(*) AS n, max(a) AS top FROM t GROUP BY b;
CREATE VIEW v AS SELECT window_start, window_end, count(*) AS n FROM TUMBLE(s, at, INTERVAL '10 seconds') GROUP BY window_start, window_end;
`

func fuzzSession(t testing.TB) *session {
	s := &session{catalog: catalog.Empty()}
	if _, err := s.run(fuzzSchema); err != nil {
		t.Fatal(message(fuzzSchema, err))
	}
	return s
}

// goldenInputs are all statements of the golden files.
func goldenInputs(t testing.TB) []string {
	files, err := filepath.Glob("testdata/golden/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	var out []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for block := range strings.SplitSeq(string(text), "\n\n") {
			input, _, _ := strings.Cut(block, "\n----")
			if _, sql, ok := strings.Cut(input, "\n"); ok {
				out = append(out, sql)
			}
		}
	}
	return out
}

// bindAll binds whatever a text parses to, and checks what always holds of the results.
func bindAll(t *testing.T, s *session, text string) {
	statements, err := parse.Parse(text)
	if err != nil {
		return
	}
	for _, st := range statements {
		b, err := dispatch(s.env(text), st.Node)
		if err != nil {
			e := pgerr.From(err)
			if e.Code == pgerr.InternalError {
				t.Fatalf("%s\n%s", text, message(text, err))
			}
			if e.Position < 0 || e.Position > len(text)+1 {
				t.Fatalf("%s\nposition %d is outside of the statement", text, e.Position)
			}
			continue
		}
		for i, p := range b.Common().Params {
			if !p.Kind.Valid() {
				t.Fatalf("%s\nparameter $%d has no type", text, i+1)
			}
		}
		switch b := b.(type) {
		case *Select:
			checkPlan(t, text, b.Plan)
			if n := len(visibleColumns(b.Plan)); n != len(b.Columns) {
				t.Fatalf("%s\n%d columns are shown, %d are announced", text, n, len(b.Columns))
			}
			for _, n := range b.Plan.Nodes {
				if len(n.Tables) > 0 {
					t.Fatalf("%s\nan ad hoc plan has durable tables", text)
				}
			}
		case *Insert:
			for _, row := range b.Rows {
				if len(row) != len(b.Target.Columns) {
					t.Fatalf("%s\na row has %d values for %d columns", text, len(row), len(b.Target.Columns))
				}
			}
			if b.Source != nil {
				checkPlan(t, text, b.Source)
				if n := len(visibleColumns(b.Source)); n != len(b.Target.Columns) {
					t.Fatalf("%s\nthe rows have %d values for %d columns", text, n, len(b.Target.Columns))
				}
			}
		case *Create:
			if p := b.Relation.Plan; p != nil {
				checkPlan(t, text, p)
				checkStored(t, text, p)
			}
		}
	}
}

func checkPlan(t *testing.T, text string, p *plan.Plan) {
	raw, err := plan.Encode(p)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	again, err := plan.Decode(raw)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	raw2, err := plan.Encode(again)
	if err != nil || string(raw) != string(raw2) {
		t.Fatalf("%s\nthe stored plan changes: %v\n%s\n%s", text, err, raw, raw2)
	}
}

// checkStored checks what operators rely on in a stored plan.
func checkStored(t *testing.T, text string, p *plan.Plan) {
	ids := map[uint32]bool{}
	for i, n := range p.Nodes {
		for _, table := range n.Tables {
			if ids[table.ID] {
				t.Fatalf("%s\ntable id %d is used twice", text, table.ID)
			}
			ids[table.ID] = true
		}
		in := func(j int) *plan.Node { return p.Nodes[n.Inputs[j]] }
		switch n.Kind {
		case plan.KindJoin, plan.KindIntervalJoin:
			if len(n.Tables) != 2 || in(0).Key == nil || in(1).Key == nil {
				t.Fatalf("%s\nnode %d joins inputs without a key or has not two tables", text, i)
			}
		case plan.KindMaterialize, plan.KindUpsert:
			if n.Key == nil || len(n.Tables) != 1 {
				t.Fatalf("%s\nnode %d stores rows without a key or a table", text, i)
			}
		case plan.KindAggregate:
			if len(n.Tables) == 0 || n.Aggregate.WindowEnd >= 0 && n.Aggregate.WindowStart < 0 {
				t.Fatalf("%s\nnode %d aggregates without a table or has half a window", text, i)
			}
			if n.Aggregate.EmitOnClose && n.Aggregate.WindowEnd < 0 {
				t.Fatalf("%s\nnode %d emits when no window closes", text, i)
			}
		case plan.KindWindow:
			if n.EventTime == n.Window.Time && in(0).EventTime != n.Window.Time {
				t.Fatalf("%s\nnode %d invents an event time", text, i)
			}
		}
	}
}

func TestGoldenStatementsHoldTogether(t *testing.T) {
	t.Parallel()
	s := fuzzSession(t)
	for _, text := range goldenInputs(t) {
		bindAll(t, s, text)
	}
}

// FuzzBind: whatever parses is bound or refused; nothing panics, and what is bound hangs together.
func FuzzBind(f *testing.F) {
	for _, text := range goldenInputs(f) {
		f.Add(text)
	}
	s := fuzzSession(f)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		bindAll(t, s, text)
	})
}

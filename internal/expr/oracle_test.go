package expr

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/parse"
	"github.com/leat-io/leat/internal/testpg"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0 picks one")

var perOverload = flag.Int("calls", 4, "calls of each overload in the test of every overload")

func TestMain(m *testing.M) { os.Exit(testpg.Run(m)) }

func newRand(t testing.TB) *rand.Rand {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", s)
	return rand.New(rand.NewPCG(s, s))
}

// oracle evaluates expressions in PostgreSQL. An answer is "type|text" or "ERROR code|message".
type oracle struct{ conn *pgx.Conn }

func newOracle(t *testing.T) *oracle {
	t.Helper()
	conn := testpg.Connect(t)
	_, err := conn.Exec(context.Background(), `
		CREATE FUNCTION answer(e text) RETURNS text LANGUAGE plpgsql AS $f$
		DECLARE r text;
		BEGIN
			EXECUTE 'SELECT pg_typeof(x)::text || ''|'' || CASE WHEN x IS NULL THEN ''NULL'' ELSE format(''%s'', x) END FROM (SELECT '
				|| e || ' AS x OFFSET 0) AS s' INTO r;
			RETURN r;
		EXCEPTION WHEN OTHERS THEN
			RETURN 'ERROR ' || SQLSTATE || '|' || SQLERRM;
		END $f$;
		SET timezone = 'UTC'`)
	if err != nil {
		t.Fatal(err)
	}
	return &oracle{conn}
}

func (o *oracle) answers(t *testing.T, exprs []string) []string {
	t.Helper()
	var out []string
	for len(exprs) > 0 {
		n := min(len(exprs), 2000)
		rows, err := o.conn.Query(context.Background(), `SELECT answer(e) FROM unnest($1::text[]) WITH ORDINALITY AS u(e, n) ORDER BY n`, exprs[:n])
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		out, exprs = append(out, got...), exprs[n:]
	}
	return out
}

// mode is how constants reach the kernels.
type mode int

const (
	asWritten   mode = iota
	folded           // through Fold
	stored           // through JSON
	allColumns       // every constant is a column
	evenColumns      // every other one
	oddColumns       // the others
	underCase        // as allColumns, under a CASE that lets a few rows through
	modes
)

// evaluate is our answer, in the oracle's form.
func evaluate(text string, m mode) string {
	n, err := bindText(text)
	if err != nil {
		return failure(err)
	}
	if n.Type.Kind == column.Unknown {
		if n, err = CastTo(n, tText, Implicit); err != nil {
			return failure(err)
		}
	}
	const rows = 70
	in := &column.Batch{Len: 1}
	var types []column.Type
	switch m {
	case folded:
		n = Fold(n, &Context{Now: 1, Zone: time.UTC})
	case stored:
		data, err := json.Marshal(n)
		if err != nil {
			return failure(err)
		}
		n = &Node{}
		if err := json.Unmarshal(data, n); err != nil {
			return failure(err)
		}
	case allColumns, evenColumns, oddColumns, underCase:
		in.Len = rows
		k := 0
		n = columnize(n, in, func() bool {
			k++
			return m == allColumns || m == underCase || (k%2 == 0) == (m == evenColumns)
		})
		if m == underCase {
			pick := column.NewVector(tBool, rows)
			for i := range rows {
				pick.AppendBool(i%5 == 2)
			}
			in.Cols = append(in.Cols, pick)
			cond := Column(len(in.Cols)-1, tBool, 0)
			n = &Node{Op: OpCase, Type: n.Type, Args: []*Node{cond, n, Null(n.Type, 0)}}
		}
		for _, c := range in.Cols {
			types = append(types, c.Type)
		}
	}
	p, err := Compile(n, types)
	if err != nil {
		return failure(err)
	}
	errs := &RowErrors{}
	v, err := p.Eval(&Context{Errors: errs}, in)
	if err != nil {
		return failure(err)
	}
	answer := ""
	for i := range in.Len {
		if m > stored && i%5 != 2 {
			continue
		}
		s := TypeName(n.Type)
		switch {
		case errs.Failed(int32(i)):
			s = failure(errs.Errs[slices.Index(errs.Rows, int32(i))])
		case v.IsNull(i):
			s += "|NULL"
		default:
			s += "|" + string(formatText(nil, v, i, nil))
		}
		if answer != "" && answer != s {
			return fmt.Sprintf("rows differ: %s and %s", answer, s)
		}
		answer = s
	}
	return answer
}

// columnize makes columns of an expression's constants: rows 2, 7, 12 ... have the value, the others have it, or NULL.
func columnize(n *Node, in *column.Batch, pick func() bool) *Node {
	if n.Op == OpConst {
		if n.Type.Kind == column.Unknown || !pick() {
			return n
		}
		one, err := constant(n)
		if err != nil {
			return n
		}
		v := column.NewVector(n.Type, in.Len)
		for i := range in.Len {
			if i%5 == 3 {
				v.AppendNull()
			} else {
				v.AppendFrom(one, 0)
			}
		}
		in.Cols = append(in.Cols, v)
		return Column(len(in.Cols)-1, n.Type, n.Pos)
	}
	c := *n
	c.Args = append([]*Node(nil), n.Args...)
	for i, a := range c.Args {
		if n.Op == OpIn && i > 0 {
			break
		}
		c.Args[i] = columnize(a, in, pick)
	}
	return &c
}

func failure(err error) string {
	var pe *parse.Error
	if e, ok := err.(*parse.Error); ok {
		pe = e
		return "ERROR " + pe.Code + "|" + pe.Message
	}
	e := pgerr.From(err)
	return "ERROR " + e.Code + "|" + e.Message
}

// check compares our answers with PostgreSQL's, in every mode.
func (o *oracle) check(t *testing.T, exprs []string) {
	t.Helper()
	o.checkBy(t, exprs, same)
}

// checkBy is check with another comparison of an expression's answers.
func (o *oracle) checkBy(t *testing.T, exprs []string, same func(text, got, want string) bool) {
	t.Helper()
	wrong := 0
	for i, want := range o.answers(t, exprs) {
		for m := range modes {
			got := evaluate(exprs[i], m)
			if same(exprs[i], got, want) {
				continue
			}
			wrong++
			if wrong <= 60 {
				t.Errorf("%s (mode %d)\n got  %s\n want %s", exprs[i], m, got, want)
			}
			break
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d differ", wrong, len(exprs))
	}
}

// same compares two answers: errors by their code and message, doubles of functions that libraries do not agree on in the
// last digit by value.
func same(text, got, want string) bool {
	if got == want {
		return true
	}
	g, ok1 := strings.CutPrefix(got, "double precision|")
	w, ok2 := strings.CutPrefix(want, "double precision|")
	if !ok1 || !ok2 {
		return false
	}
	x, err1 := strconv.ParseFloat(g, 64)
	y, err2 := strconv.ParseFloat(w, 64)
	if x == y && math.Abs(x) >= 1<<53 {
		return true // which digits a double is shown with is tested where that is done
	}
	return strings.ContainsAny(text, "(^|") && err1 == nil && err2 == nil && math.Abs(x-y) <= 4e-16*math.Abs(y)
}

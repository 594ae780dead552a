package session

import (
	"context"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/bind"
)

// What a session keeps of prepared statements at most: their number, and the bytes of their texts.
const (
	maxKept     = 10_000
	maxKeptSize = 64 << 20
)

// Keep gives a prepared statement a name. PREPARE and the protocol share the names, as EXECUTE and DEALLOCATE do; the one without a name, which only the
// protocol has, is replaced each time.
func (s *Session) Keep(name string, p *Prepared) error {
	if name == "" {
		s.Forget("")
	}
	switch {
	case s.kept[name] != nil:
		return pgerr.Newf("42P05", "prepared statement \"%s\" already exists", name)
	case len(s.kept) >= maxKept:
		return pgerr.Newf("54000", "more than %d prepared statements", maxKept).WithHint("Use DEALLOCATE for those that are not needed any more.")
	case s.keptSize+len(p.Text) > maxKeptSize && len(s.kept) > 0:
		return pgerr.Newf("54000", "the prepared statements have more than %d MB of text", maxKeptSize>>20).
			WithHint("Use DEALLOCATE for those that are not needed any more, and give values as parameters.")
	}
	if err := s.keeps.Take(ParseSize(p.Text)); err != nil {
		return err
	}
	p.promised = true
	s.kept[name] = p
	s.keptSize += len(p.Text)
	return nil
}

// Kept is the prepared statement of that name, nil if there is none.
func (s *Session) Kept(name string) *Prepared { return s.kept[name] }

// Forget drops a prepared statement, if it is there.
func (s *Session) Forget(name string) {
	if p := s.kept[name]; p != nil {
		s.keeps.Give(ParseSize(p.Text))
		s.keptSize -= len(p.Text)
		delete(s.kept, name)
	}
}

func (s *Session) forgetAll() {
	for name := range s.kept {
		s.Forget(name)
	}
}

// ParseSize is about what the syntax of a statement, and what is made of it, take in memory, of texts that are long.
func ParseSize(text string) int64 {
	if len(text) < 4<<10 {
		return 0
	}
	return parseFactor * int64(len(text))
}

// parseFactor is what a byte of text becomes: a number and a comma are a node.
const parseFactor = 64

// prepare runs PREPARE.
func (s *Session) prepare(p *Prepared, st *ast.Prepare) error {
	switch st.Stmt.(type) {
	case *ast.Query, *ast.Insert, *ast.Update, *ast.Delete:
	default: // EXECUTE above all, which might be of itself
		return pgerr.New("42601", "only SELECT, VALUES, INSERT, UPDATE and DELETE can be prepared").At(st.Stmt.Pos() + 1)
	}
	var types []column.Type
	for _, t := range st.Types {
		typ, err := pgtype.ByName(t.Name, mods(t.Mods), t.Dims > 0)
		if err != nil {
			return err
		}
		types = append(types, typ)
	}
	q, err := s.Prepare(st.Stmt, p.Text, types)
	if err != nil {
		return err
	}
	return s.Keep(st.Name.Name, q)
}

// executeKept runs EXECUTE, whose arguments are constant expressions.
func (s *Session) executeKept(ctx context.Context, p *Prepared, st *ast.Execute) (string, error) {
	q := s.kept[st.Name.Name]
	if q == nil {
		return "", pgerr.Newf("26000", "prepared statement \"%s\" does not exist", st.Name.Name).At(st.Pos() + 1)
	}
	if _, ok := q.Stmt.(*ast.Execute); ok { // from the protocol; it might be of itself
		return "", pgerr.New("0A000", "EXECUTE of a statement that is EXECUTE itself is not supported").At(st.Pos() + 1)
	}
	if err := p.keepsPromise(q.Columns); err != nil {
		return "", err
	}
	if len(st.Args) != len(q.Params) {
		return "", pgerr.Newf("42601", "wrong number of parameters for prepared statement \"%s\"", st.Name.Name).
			WithDetail("Expected %d parameters but got %d.", len(q.Params), len(st.Args))
	}
	args := make([]*expr.Node, len(st.Args))
	for i, a := range st.Args {
		n, err := s.constant(ctx, a.Extent().Text(p.Text), q.Params[i])
		if err != nil {
			return "", err
		}
		args[i] = n
	}
	return s.execute(ctx, q, args)
}

// constant evaluates the text of an expression without columns.
func (s *Session) constant(ctx context.Context, text string, t column.Type) (*expr.Node, error) {
	sql := "SELECT CAST((" + text + ") AS " + t.String() + ")"
	statements, err := s.Parse(sql)
	if err != nil {
		return nil, err
	}
	b, err := s.bind(&Prepared{Text: sql, Stmt: statements[0].Node})
	if err != nil {
		return nil, err
	}
	q, ok := b.(*bind.Select)
	if !ok {
		return nil, pgerr.Newf("42601", "\"%s\" is not an expression", text)
	}
	n := expr.Null(t, 0)
	err = s.runPlan(ctx, q.Plan, nil, func(b *column.Batch, visible []int) error {
		if v := b.Cols[visible[0]]; b.Len == 1 && !v.IsNull(0) {
			n = expr.Const(t, string(pgtype.AppendText(nil, v, 0, s.settings.zone)), 0)
		}
		return nil
	})
	return n, err
}

// deallocate runs DEALLOCATE.
func (s *Session) deallocate(st *ast.Deallocate) (string, error) {
	name := st.Name.Name
	if name == "" {
		s.forgetAll()
		return "DEALLOCATE ALL", nil
	}
	if s.kept[name] == nil {
		return "", pgerr.Newf("26000", "prepared statement \"%s\" does not exist", name)
	}
	s.Forget(name)
	return "DEALLOCATE", nil
}

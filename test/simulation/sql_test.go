package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
	"github.com/leat-io/leat/internal/session"
	"github.com/leat-io/leat/internal/sql/bind"
	"github.com/leat-io/leat/internal/sql/plan"
)

// rows collects what a statement gives, as text: columns joined by a bar.
type rows struct{ lines []string }

func (r *rows) Columns([]plan.Column) error    { return nil }
func (r *rows) Notice(bind.Notice) error       { return nil }
func (r *rows) Parameter(string, string) error { return nil }
func (r *rows) Rows(b *column.Batch) error {
	for i := range b.Len {
		cells := make([]string, len(b.Cols))
		for c, v := range b.Cols {
			if cells[c] = "NULL"; !v.IsNull(i) {
				cells[c] = string(pgtype.AppendText(nil, v, i, time.UTC))
			}
		}
		r.lines = append(r.lines, strings.Join(cells, "|"))
	}
	return nil
}

// run executes statements in a session and returns the rows of all, sorted.
func run(ctx context.Context, s *session.Session, text string) ([]string, error) {
	statements, err := s.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	out := &rows{}
	for _, st := range statements {
		p, err := s.Prepare(st.Node, text, nil)
		if err == nil {
			_, err = s.Execute(ctx, p, nil, out)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
	}
	slices.Sort(out.lines)
	return out.lines, nil
}

// state tells the SQLSTATE of an error.
func state(err error) string {
	var e *pgerr.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

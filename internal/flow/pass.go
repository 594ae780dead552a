package flow

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/sql/plan"
)

// pass hands batches on as they are: an exchange with one worker.
type pass struct{}

// Push is operator.Operator's.
func (pass) Push(_ int, b *column.Batch, out operator.Output) (bool, error) { return true, out.Push(b) }

// EndEpoch is operator.Operator's.
func (pass) EndEpoch(*operator.Epoch, operator.Output) (bool, error) { return true, nil }

// scan picks its columns from a reader's batches or a view's changes. While it is in backfill it lets only those changes
// through whose key is at or below the cursor.
type scan struct {
	n       *node
	w       *worker
	columns []int
	out     column.Batch
	of      column.Late // of the batch at hand
	passed  column.Batch
	rows    []int32
}

// Push is operator.Operator's.
func (s *scan) Push(_ int, b *column.Batch, out operator.Output) (bool, error) {
	if f := s.n.backfill; f != nil && !f.done {
		s.rows = f.pass(b, s.rows[:0])
		if len(s.rows) == 0 {
			return true, nil
		}
		if len(s.rows) < b.Len {
			s.passed.Gather(b, s.rows)
			b = &s.passed
		}
	}
	return true, s.emit(b, out)
}

func (s *scan) emit(b *column.Batch, out operator.Output) error {
	s.out.Len, s.out.Weights, s.out.Cols = b.Len, b.Weights, s.out.Cols[:0]
	for _, c := range s.columns {
		s.out.Cols = append(s.out.Cols, b.Cols[c])
	}
	s.out.Late, s.of = nil, b.Late
	if b.Late != nil && len(s.n.late) > 0 {
		s.out.Late = s
	}
	return out.Push(&s.out)
}

// Make is column.Late's.
func (s *scan) Make(i int, rows []int32, dst *column.Vector) { s.of.Make(s.columns[i], rows, dst) }

// EndEpoch is operator.Operator's.
func (s *scan) EndEpoch(*operator.Epoch, operator.Output) (bool, error) { return true, nil }

// union numbers its inputs in its last column.
type union struct {
	input *column.Vector
	out   column.Batch
}

func newUnion(p *plan.Node) *union {
	return &union{input: column.NewVector(p.Columns[len(p.Columns)-1].Type, 0)}
}

// Push is operator.Operator's.
func (u *union) Push(port int, b *column.Batch, out operator.Output) (bool, error) {
	t := u.input.Type
	u.input.Resize(t, b.Len)
	if t.Kind == column.Int64 {
		for i := range u.input.I64 {
			u.input.I64[i] = int64(port)
		}
	} else {
		for i := range u.input.I32 {
			u.input.I32[i] = int32(port)
		}
	}
	u.out.Len, u.out.Weights = b.Len, b.Weights
	u.out.Cols = append(append(u.out.Cols[:0], b.Cols...), u.input)
	return true, out.Push(&u.out)
}

// EndEpoch is operator.Operator's.
func (u *union) EndEpoch(*operator.Epoch, operator.Output) (bool, error) { return true, nil }

// values emits its rows once, in the first epoch of its job, on worker 0.
type values struct {
	env   *operator.Env
	rows  [][]*expr.Program
	types []column.Type
	out   column.Batch
	errs  expr.RowErrors
}

func newValues(env *operator.Env, p *plan.Node) (*values, error) {
	v := &values{env: env, types: types(p)}
	for _, row := range p.Values.Rows {
		var ps []*expr.Program
		for _, e := range row {
			prog, err := expr.Compile(e, nil)
			if err != nil {
				return nil, err
			}
			ps = append(ps, prog)
		}
		v.rows = append(v.rows, ps)
	}
	return v, nil
}

// Push is operator.Operator's.
func (v *values) Push(int, *column.Batch, operator.Output) (bool, error) { return true, nil }

// EndEpoch is operator.Operator's.
func (v *values) EndEpoch(e *operator.Epoch, out operator.Output) (bool, error) {
	if !e.First || v.env.Worker != 0 {
		return true, nil
	}
	one := column.Batch{Len: 1}
	for at := 0; at < len(v.rows); {
		v.out.Reset(v.types)
		for ; at < len(v.rows) && !v.out.Full(); at++ {
			ctx := v.env.Errors(&v.errs)
			var row []*column.Vector
			for _, p := range v.rows[at] {
				x, err := p.Eval(ctx, &one)
				if err != nil {
					return false, err
				}
				row = append(row, x)
			}
			if v.errs.Len() > 0 {
				v.env.Counts.Failed++
				continue
			}
			for c, x := range row {
				v.out.Cols[c].AppendFrom(x, 0)
			}
			v.out.EndRow(1)
		}
		if err := out.Push(&v.out); err != nil {
			return false, err
		}
	}
	return true, nil
}

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/job"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/rowenc"
	"github.com/leat-io/leat/internal/sql/bind"
	"github.com/leat-io/leat/internal/sql/plan"
)

// query answers a SELECT from the published epochs.
func (s *Session) query(ctx context.Context, b *bind.Select, args []*expr.Node) (string, error) {
	if err := s.out.Columns(b.Columns); err != nil {
		return "", err
	}
	n := 0
	view := column.Batch{}
	err := s.runPlan(ctx, plan.Substitute(b.Plan, args), s.tx, func(in *column.Batch, visible []int) error {
		view.Cols = view.Cols[:0]
		for _, c := range visible {
			view.Cols = append(view.Cols, in.Cols[c])
		}
		view.Len = in.Len
		n += in.Len
		return s.out.Rows(&view)
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("SELECT %d", n), nil
}

// runPlan runs an ad hoc plan over one snapshot and calls visit with its result, each row once, and the columns that are not hidden. t, if not nil, is the
// transaction whose own writes to tables the plan sees.
func (s *Session) runPlan(ctx context.Context, p *plan.Plan, t *tx, visit func(b *column.Batch, visible []int) error) error {
	jobs := s.e.o.Jobs
	sources := map[uint64]*flow.SourceSpec{}
	stored := false
	cat := jobs.Catalog()
	for _, n := range p.Nodes {
		if n.Scan == nil {
			continue
		}
		r := cat.Relation(n.Scan.Relation)
		if r == nil {
			return pgerr.New("42P01", "a relation that the query reads was dropped")
		}
		if n.Scan.Source && r.Kind == catalog.Source {
			spec, err := jobs.SourceSpec(r)
			if err != nil {
				return err
			}
			if _, ok := spec.Source.(connector.Fetched); ok {
				return pgerr.Newf("0A000", "source \"%s\" is over a topic of a Kafka cluster: only stored queries can read it", r.Name).
					WithHint("Create a materialized view over it, and query that.")
			}
			sources[r.ID] = spec
			continue
		}
		if err := jobs.Readable(r.ID); err != nil {
			return err
		}
		stored = true
	}
	opts := flow.OnceOptions{Now: s.context().Now, Sources: sources, Memory: s.memory}
	opts.Ends = func(sources []connector.Source) [][]int64 { return job.Ends(s.e.o.Broker, sources) }
	if stored {
		published, err := jobs.Publish(ctx, s.writes...)
		if err != nil {
			return err
		}
		defer published.Release()
		for _, n := range p.Nodes { // one that has been dropped meanwhile has no rows in the snapshot, which is not the answer
			if n.Scan != nil && sources[n.Scan.Relation] == nil {
				if err := jobs.Readable(n.Scan.Relation); err != nil {
					return err
				}
			}
		}
		s.writes = s.writes[:0]
		opts.Tables = func(ctx context.Context, scan *plan.Node, emit func(*column.Batch) error) error {
			r := cat.Relation(scan.Scan.Relation)
			if r.Kind == catalog.SystemView {
				return s.emitSystem(r, scan, emit)
			}
			in := &rowInput{s: s, r: r, scan: scan, emit: emit}
			if t != nil {
				in.own = t.tables[r.ID]
			}
			id, err := rowsTable(r)
			if err != nil {
				return err
			}
			return in.run(func(fn func(key, row []byte) error) error { return scanRows(ctx, published.Rows, id, fn) })
		}
	}
	root := p.Nodes[len(p.Nodes)-1]
	var visible []int
	for i := range root.Columns {
		if !root.Columns[i].Hidden {
			visible = append(visible, i)
		}
	}
	return flow.RunOnce(ctx, p, opts, func(b *column.Batch) error { return visit(b, visible) })
}

// rowInput decodes the stored rows of a table or view for a scan.
type rowInput struct {
	s    *Session
	r    *catalog.Relation
	scan *plan.Node
	own  *txTable // the running transaction's changes of the table, nil if there are none
	emit func(*column.Batch) error

	types []column.Type
	all   *column.Batch
	view  column.Batch
}

func (in *rowInput) run(scan func(fn func(key, row []byte) error) error) error {
	in.types = relationTypes(in.r)
	in.all = column.NewBatch(in.types, column.MaxRows)
	err := scan(func(key, row []byte) error {
		if in.own != nil {
			if _, ok := in.own.rows[string(key)]; ok {
				return nil
			}
		}
		return in.add(row)
	})
	if err != nil {
		return err
	}
	if in.own != nil {
		for _, row := range in.own.rows {
			if row != nil {
				if err := in.add(row); err != nil {
					return err
				}
			}
		}
	}
	return in.flush()
}

func (in *rowInput) add(row []byte) error {
	if err := rowenc.DecodeRow(row, in.types, in.all.Cols); err != nil {
		return fmt.Errorf("a row of %s %q: %w", in.r.Kind, in.r.Name, err)
	}
	in.all.EndRow(1)
	if in.all.Full() {
		return in.flush()
	}
	return nil
}

func (in *rowInput) flush() error {
	if in.all.Len == 0 {
		return nil
	}
	in.view.Cols = in.view.Cols[:0]
	for _, c := range in.scan.Scan.Columns {
		in.view.Cols = append(in.view.Cols, in.all.Cols[c])
	}
	in.view.Len = in.all.Len
	size := int64(0)
	if in.all.Heavy() {
		size = int64(in.all.MemSize())
	}
	if err := in.s.memory.Take(size); err != nil {
		return err
	}
	if err := in.emit(&in.view); err != nil {
		return err
	}
	in.s.memory.Give(size)
	in.all.Reset(in.types)
	return nil
}

// create runs CREATE.
func (s *Session) create(ctx context.Context, b *bind.Create, p *Prepared, args []*expr.Node) (string, error) {
	if err := s.alone(ctx, b.Tag); err != nil {
		return "", err
	}
	if len(b.Params) > 0 {
		return "", pgerr.New("42P02", "there is no parameter $1: definitions cannot have parameters")
	}
	var made *bind.Create
	err := s.e.o.Jobs.Create(ctx, func(c *catalog.Snapshot) (*catalog.Relation, catalog.IDs, error) {
		// The catalog may have changed since the statement was bound: bind it to the one that is locked now.
		again, err := bind.Statement(s.env(c, p), p.Stmt)
		if err != nil {
			return nil, catalog.IDs{}, err
		}
		var ok bool
		if made, ok = again.(*bind.Create); !ok {
			return nil, catalog.IDs{}, nil // IF NOT EXISTS, and now it does
		}
		return made.Relation, made.IDs, nil
	})
	if err != nil || made == nil {
		return b.Tag, err
	}
	if err := s.e.guardTopic(made.Relation); err != nil {
		return "", err
	}
	if made.Fill != nil {
		n, err := s.fill(ctx, made, args)
		if err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			return "", errors.Join(err, s.e.o.Jobs.Drop(undo, []uint64{made.Relation.ID}, true))
		}
		return "SELECT" + n[len("INSERT 0"):], nil
	}
	return b.Tag, nil
}

// fill writes the rows of CREATE TABLE ... AS, in a transaction of its own: the table is there, or not, with all of them.
func (s *Session) fill(ctx context.Context, made *bind.Create, args []*expr.Node) (string, error) {
	grouped := s.grouped
	s.grouped = false
	defer func() { s.grouped = grouped }()
	return s.insert(ctx, &bind.Insert{Target: made.Relation, Source: made.Fill}, args)
}

// drop runs DROP.
func (s *Session) drop(ctx context.Context, b *bind.Drop) (string, error) {
	if err := s.alone(ctx, b.Tag); err != nil {
		return "", err
	}
	var ids []uint64
	for _, r := range b.Relations {
		ids = append(ids, r.ID)
	}
	if err := s.e.o.Jobs.Drop(ctx, ids, b.Cascade); err != nil {
		return "", err
	}
	for _, id := range ids {
		s.e.writers.forget(id)
	}
	return b.Tag, nil
}

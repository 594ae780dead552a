package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

// ownColumns are the result columns of the statements that the session runs itself; ok is false for those that are bound.
func (s *Session) ownColumns(stmt ast.Stmt) (cols []plan.Column, ok bool) {
	switch st := stmt.(type) {
	case *ast.Show:
		return textColumns(showColumns(st)...), true
	case *ast.Execute:
		if p := s.kept[st.Name.Name]; p != nil {
			return p.Columns, true
		}
		return nil, true
	case nil, *ast.Transaction, *ast.Set, *ast.Reset, *ast.Flush, *ast.Discard, *ast.Prepare, *ast.Deallocate, *ast.Other, *ast.Listen:
		return nil, true
	}
	return nil, false
}

// ownStatement returns what runs a statement that concerns the session and not relations, nil for the others.
func (s *Session) ownStatement(p *Prepared, args []*expr.Node) func(context.Context) (string, error) {
	switch st := p.Stmt.(type) {
	case nil:
		return func(context.Context) (string, error) { return "", nil }
	case *ast.Transaction:
		return func(ctx context.Context) (string, error) { return s.transaction(ctx, st) }
	case *ast.Set:
		return func(context.Context) (string, error) { return s.runSet(st) }
	case *ast.Reset:
		return func(context.Context) (string, error) {
			s.implicit()
			s.keepSettings()
			s.reset(st.Name)
			return "RESET", nil
		}
	case *ast.Show:
		return func(ctx context.Context) (string, error) { return "SHOW", s.show(ctx, st) }
	case *ast.Flush:
		return func(ctx context.Context) (string, error) {
			if err := s.alone(ctx, "FLUSH"); err != nil {
				return "", err
			}
			return "FLUSH", s.e.o.Jobs.Flush(ctx)
		}
	case *ast.Discard:
		return func(ctx context.Context) (string, error) {
			if st.What == "ALL" {
				if err := s.alone(ctx, "DISCARD ALL"); err != nil {
					return "", err
				}
				s.forgetAll()
				s.reset("")
				return "DISCARD ALL", nil
			}
			return "DISCARD " + st.What, nil
		}
	case *ast.Prepare:
		return func(context.Context) (string, error) { return "PREPARE", s.prepare(p, st) }
	case *ast.Execute:
		return func(ctx context.Context) (string, error) { return s.executeKept(ctx, p, st) }
	case *ast.Deallocate:
		return func(context.Context) (string, error) { return s.deallocate(st) }
	case *ast.Listen:
		return func(context.Context) (string, error) {
			if st.Verb == "UNLISTEN" {
				return "UNLISTEN", nil // pools send it when they take a connection back
			}
			return "", pgerr.Newf("0A000", "%s is not supported", st.Verb).WithHint("Follow a view through a sink's topic.").At(st.Pos() + 1)
		}
	case *ast.Other:
		return func(context.Context) (string, error) {
			switch st.Verb {
			case "ANALYZE", "VACUUM", "CHECKPOINT":
				return st.Verb, nil // there is nothing to do
			}
			return "", pgerr.Newf("0A000", "%s is not supported", st.Verb).At(st.Pos() + 1)
		}
	}
	_ = args
	return nil
}

func showColumns(st *ast.Show) []string {
	switch st.Kind {
	case ast.ShowVariable:
		if n, ok := reportedNames[st.Name]; ok {
			return []string{n}
		}
		return []string{st.Name}
	case ast.ShowAll:
		return []string{"name", "setting", "description"}
	case ast.ShowJobs:
		return catalog.SystemColumns(catalog.JobsView)
	case ast.ShowColumns:
		return []string{"name", "type", "not_null", "key"}
	case ast.ShowCreate:
		return []string{"name", "definition"}
	case ast.ShowTopics:
		return []string{"name", "partitions"}
	}
	return []string{"name"}
}

func (s *Session) show(_ context.Context, st *ast.Show) error {
	names := showColumns(st)
	var rows [][]string
	list := func(kind catalog.Kind) {
		for _, r := range s.e.o.Jobs.Catalog().Relations() {
			if r.Kind == kind {
				rows = append(rows, []string{r.QualifiedName()})
			}
		}
	}
	switch st.Kind {
	case ast.ShowVariable:
		v, ok := s.settings.get(st.Name)
		if !ok {
			return pgerr.Newf("42704", "unrecognized configuration parameter \"%s\"", st.Name).At(st.Pos() + 1)
		}
		rows = [][]string{{v}}
	case ast.ShowAll:
		for name := range defaults {
			v, _ := s.settings.get(name)
			rows = append(rows, []string{spelled(name), v, ""})
		}
	case ast.ShowTables:
		list(catalog.Table)
	case ast.ShowSources:
		list(catalog.Source)
	case ast.ShowViews:
		list(catalog.View)
	case ast.ShowMaterializedViews:
		list(catalog.MaterializedView)
	case ast.ShowSinks:
		list(catalog.Sink)
	case ast.ShowSchemas:
		rows = [][]string{{"pg_catalog"}, {"information_schema"}, {"public"}}
	case ast.ShowDatabases:
		rows = [][]string{{"leat"}}
	case ast.ShowJobs:
		b := s.jobs()
		for i := range b.Len {
			row := make([]string, len(b.Cols))
			for c, v := range b.Cols {
				if !v.IsNull(i) {
					row[c] = string(pgtype.AppendText(nil, v, i, s.settings.zone))
				}
			}
			rows = append(rows, row)
		}
	case ast.ShowTopics:
		for _, t := range s.e.o.Broker.Topics() {
			rows = append(rows, []string{t.Name, strconv.Itoa(len(t.Partitions()))})
		}
	case ast.ShowColumns, ast.ShowCreate:
		r := s.e.o.Jobs.Catalog().Lookup(st.Target.Schema(), st.Target.Last())
		if r == nil {
			return pgerr.Newf("42P01", "relation \"%s\" does not exist", st.Target.Last()).At(st.Target.Pos() + 1)
		}
		if st.Kind == ast.ShowCreate {
			rows = [][]string{{r.QualifiedName(), r.Definition}}
			break
		}
		for i, c := range r.Columns {
			if c.Hidden {
				continue
			}
			key := ""
			if slices.Contains(r.PrimaryKey, i) {
				key = "key"
			}
			rows = append(rows, []string{c.Name, c.Type.String(), strconv.FormatBool(c.NotNull), key})
		}
	case ast.ShowIndexes, ast.ShowFunctions, ast.ShowSubscriptions, ast.ShowConnections: // there are none yet
	}
	slices.SortFunc(rows, func(a, b []string) int {
		if st.Kind == ast.ShowJobs || st.Kind == ast.ShowColumns {
			return 0
		}
		return strings.Compare(a[0], b[0])
	})
	return s.table(names, rows)
}

// jobs lists what runs, with what it has counted, as rows of the system view.
func (s *Session) jobs() *column.Batch {
	r := s.e.o.Jobs.Catalog().Lookup("", catalog.JobsView)
	b := column.NewBatch(relationTypes(r), 16)
	for _, j := range s.e.o.Jobs.Status() {
		state := "running"
		switch {
		case j.Err != nil:
			state = "stopped: " + j.Err.Error()
		case j.Delivery != nil:
			state = "delivery stopped: " + j.Delivery.Error()
		case !j.Live:
			state = "backfilling"
		}
		c := b.Cols
		c[0].AppendInt64(int64(j.Relation.ID))
		c[1].AppendString(j.Relation.QualifiedName())
		c[2].AppendString(string(j.Relation.Kind))
		c[3].AppendInt64(int64(j.Island))
		c[4].AppendString(state)
		if j.Watermark == flow.NoTime {
			c[5].AppendNull()
		} else {
			c[5].AppendInt64(j.Watermark) // the end of time is infinity
		}
		c[6].AppendInt64(j.Counts.In)
		c[7].AppendInt64(j.Counts.Late)
		c[8].AppendInt64(j.Counts.Failed)
		c[9].AppendInt64(j.Counts.Unmatched)
		c[10].AppendInt64(j.Counts.Dead)
		if j.Held == nil {
			c[11].AppendNull()
		} else {
			c[11].AppendString(heldBy(j.Held, s.e.o.Clock.Now()))
		}
		if h := j.Outside; h == nil {
			c[12].AppendNull()
			c[13].AppendNull()
		} else {
			c[12].AppendInt64(h.Lag)
			if h.Err == nil {
				c[13].AppendNull()
			} else {
				c[13].AppendString(h.Err.Error())
			}
		}
		b.EndRow(1)
	}
	return b
}

// heldBy says which open transaction a relation waits for.
func heldBy(h *broker.Held, now time.Time) string {
	id := h.Transactional
	if id == "" {
		id = "unknown"
	}
	return fmt.Sprintf("open transaction of transactional id %q (producer %d) for %s, in %s from offset %d on",
		id, h.ProducerID, now.Sub(h.Since).Round(100*time.Millisecond), h.Partition, h.Offset)
}

// pools lists the pools of the memory budget as rows of the system view.
func (s *Session) pools(r *catalog.Relation) *column.Batch {
	b := column.NewBatch(relationTypes(r), 16)
	if s.e.o.Memory == nil {
		return b
	}
	for _, u := range s.e.o.Memory.Pools() {
		c := b.Cols
		c[0].AppendString(u.Path)
		c[1].AppendInt32(int32(u.Depth))
		c[2].AppendInt64(u.Used)
		c[3].AppendInt64(u.Peak)
		if u.Limit > 0 {
			c[4].AppendInt64(u.Limit)
		} else {
			c[4].AppendNull()
		}
		b.EndRow(1)
	}
	return b
}

// emitSystem gives a system view's columns to a scan.
func (s *Session) emitSystem(r *catalog.Relation, scan *plan.Node, emit func(*column.Batch) error) error {
	var all *column.Batch
	if r.Name == catalog.MemoryView {
		all = s.pools(r)
	} else {
		all = s.jobs()
	}
	if all.Len == 0 {
		return nil
	}
	view := &column.Batch{Len: all.Len}
	for _, c := range scan.Scan.Columns {
		view.Cols = append(view.Cols, all.Cols[c])
	}
	return emit(view)
}

func mods(list []int32) []int {
	out := make([]int, len(list))
	for i, m := range list {
		out[i] = int(m)
	}
	return out
}

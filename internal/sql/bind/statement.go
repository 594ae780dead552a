package bind

import (
	"encoding/json"
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/plan"
)

// bindStatement binds any statement. A panic is a fault of this package; it costs the statement, not the node.
func bindStatement(env Env, s ast.Stmt) (out Bound, err error) {
	defer contain(&err)
	return dispatch(env, s)
}

func bindAdHoc(env Env, q *ast.Query) (out *Select, err error) {
	defer contain(&err)
	return newBinder(env).adHoc(q)
}

func contain(err *error) {
	if r := recover(); r != nil {
		*err = pgerr.Internal("binding the statement failed: %v", r)
	}
}

func dispatch(env Env, s ast.Stmt) (Bound, error) {
	b := newBinder(env)
	switch s := s.(type) {
	case *ast.Query:
		return b.adHoc(s)
	case *ast.Insert:
		return b.insert(s)
	case *ast.Update:
		return b.update(s)
	case *ast.Delete:
		return b.delete(s)
	case *ast.Truncate:
		return b.truncate(s)
	case *ast.CreateSource:
		return b.createSource(s)
	case *ast.CreateTable:
		return b.createTable(s)
	case *ast.CreateView:
		return b.createView(s)
	case *ast.CreateSink:
		return b.createSink(s)
	case *ast.Drop:
		return b.drop(s)
	case *ast.Explain:
		return b.explain(s)
	case *ast.CreateIndex:
		return nil, b.unsupported(s, "CREATE INDEX")
	case *ast.CreateSchema:
		return nil, b.unsupported(s, "CREATE SCHEMA")
	case *ast.Alter:
		return nil, b.unsupported(s, "ALTER "+s.Kind.String())
	case *ast.Comment:
		return nil, b.unsupported(s, "COMMENT")
	case *ast.Subscribe:
		return nil, b.unsupported(s, "SUBSCRIBE")
	case *ast.Copy:
		return nil, b.unsupported(s, "COPY")
	case *ast.DeclareCursor:
		return nil, b.unsupported(s, "DECLARE CURSOR")
	case *ast.Other:
		return nil, b.unsupported(s, s.Verb)
	}
	return nil, b.unsupported(s, "this statement")
}

// adHoc plans a query that is answered once.
func (b *binder) adHoc(q *ast.Query) (*Select, error) {
	t, err := b.query(q, true)
	if err != nil {
		return nil, err
	}
	p, err := b.planAdHoc(t)
	if err != nil {
		return nil, err
	}
	out := &Select{Plan: p}
	out.Head, err = b.head("SELECT", visibleColumns(p))
	return out, err
}

func visibleColumns(p *plan.Plan) []plan.Column {
	out := []plan.Column{}
	for _, c := range p.Nodes[len(p.Nodes)-1].Columns {
		if !c.Hidden {
			out = append(out, c)
		}
	}
	return out
}

// planAdHoc makes the physical plan of a bound query.
func (b *binder) planAdHoc(t *tree) (*plan.Plan, error) {
	t, err := b.optimize(t)
	if err != nil {
		return nil, err
	}
	need := setOf(t, t.visible()...)
	if t.Sort != nil {
		for _, k := range t.Sort.Keys {
			need.add(k.Column)
		}
		// What is sorted must be what is narrowed: below the Sort.
		root := prune(t, need)
		return b.finish(root.tree)
	}
	return b.finish(prune(t, need).narrow(need).tree)
}

func (b *binder) finish(t *tree) (*plan.Plan, error) {
	p := &physical{b: b}
	if _, err := p.lower(t); err != nil {
		return nil, err
	}
	return p.plan()
}

// explain writes the plan of a statement.
func (b *binder) explain(s *ast.Explain) (Bound, error) {
	asJSON := false
	for _, o := range s.Options {
		switch strings.ToLower(o.Name) {
		case "format":
			switch strings.ToLower(o.Value.Text) {
			case "json":
				asJSON = true
			case "text":
			default:
				return nil, b.unsupported(o, "EXPLAIN (FORMAT "+o.Value.Text+")")
			}
		case "analyze", "analyse":
			if on(o.Value) {
				return nil, b.unsupported(o, "EXPLAIN ANALYZE")
			}
		case "verbose", "costs", "buffers", "timing", "summary", "settings", "wal":
		default:
			return nil, b.errorf(o, pgerr.SyntaxError, "unrecognized EXPLAIN option \"%s\"", o.Name)
		}
	}
	bound, err := dispatch(b.env, s.Stmt)
	if err != nil {
		return nil, err
	}
	var p *plan.Plan
	name := b.relationName
	switch x := bound.(type) {
	case *Select:
		p = x.Plan
	case *Insert:
		p = x.Source
	case *Create:
		p = x.Relation.Plan
		name = func(id uint64) string {
			if id == x.Relation.ID {
				return x.Relation.QualifiedName()
			}
			return b.relationName(id)
		}
	}
	out := &Explain{Head: Head{
		Tag: "EXPLAIN", Params: bound.Common().Params, Reads: bound.Common().Reads, Notices: bound.Common().Notices,
		Columns: []plan.Column{{Name: "QUERY PLAN", Type: column.TText}},
	}}
	switch {
	case p == nil:
		out.Lines = []string{bound.Common().Tag + ": nothing runs for this statement but the statement itself"}
	case asJSON:
		text, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			return nil, pgerr.Internal("encode the plan: %v", err)
		}
		out.Lines = strings.Split(string(text), "\n")
	default:
		out.Lines = plan.Explain(p, name)
	}
	return out, nil
}

func on(v ast.OptionValue) bool {
	switch strings.ToLower(v.Text) {
	case "false", "off", "0":
		return false
	}
	return true
}

func (b *binder) relationName(id uint64) string {
	if r := b.env.Catalog.Relation(id); r != nil {
		return r.QualifiedName()
	}
	return ""
}

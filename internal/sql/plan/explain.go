package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
)

// Explain writes a plan as a tree, a line a node, the root first: what the node does, its columns (hidden ones in brackets),
// its key, and what else is known of it. name gives a relation's name by id.
func Explain(p *Plan, name func(uint64) string) []string {
	e := explainer{plan: p, name: name}
	if n := len(p.Nodes); n > 0 {
		e.node(n-1, 0)
	}
	return e.lines
}

type explainer struct {
	plan  *Plan
	name  func(uint64) string
	lines []string
}

func (e *explainer) node(i, depth int) {
	n := e.plan.Nodes[i]
	line := strings.Repeat("  ", depth) + e.what(n) + " -> " + columns(n)
	switch {
	case n.Key == nil:
	case len(n.Key) == 0:
		line += " key: one row"
	default:
		line += " key: " + list(n.Columns, n.Key)
	}
	if n.AppendOnly {
		line += ", append-only"
	}
	if n.EventTime >= 0 {
		line += ", time: " + n.Columns[n.EventTime].Name
	}
	for j, t := range n.Tables {
		if j == 0 {
			line += ", tables:"
		}
		line += " " + t.Name + "=" + strconv.FormatUint(uint64(t.ID), 10)
	}
	e.lines = append(e.lines, line)
	for _, in := range n.Inputs {
		e.node(in, depth+1)
	}
}

func columns(n *Node) string {
	names := make([]string, len(n.Columns))
	for i, c := range n.Columns {
		names[i] = c.Name
		if c.Hidden {
			names[i] = "[" + c.Name + "]"
		}
	}
	return "(" + strings.Join(names, ", ") + ")"
}

func list(cols []Column, at []int) string {
	names := make([]string, len(at))
	for i, c := range at {
		names[i] = cols[c].Name
	}
	return strings.Join(names, ", ")
}

// what says what a node does.
func (e *explainer) what(n *Node) string {
	in := make([]*Node, len(n.Inputs))
	for i, j := range n.Inputs {
		in[i] = e.plan.Nodes[j]
	}
	switch n.Kind {
	case KindScan:
		kind := "Scan "
		if n.Scan.Source {
			kind = "Source "
		}
		if n.Scan.Topic {
			kind = "Topic of "
		}
		return kind + e.relation(n.Scan.Relation)
	case KindValues:
		return fmt.Sprintf("Values %d rows", len(n.Values.Rows))
	case KindFilter:
		return "Filter " + Text(n.Filter.Predicate, in[0].Columns)
	case KindProject:
		texts := make([]string, len(n.Project.Exprs))
		for i, x := range n.Project.Exprs {
			texts[i] = Text(x, in[0].Columns)
		}
		return "Project " + strings.Join(texts, ", ")
	case KindWindow:
		return "Window " + window(n.Window, in[0].Columns)
	case KindExchange:
		if len(n.Exchange.Keys) == 0 {
			return "Exchange to one"
		}
		return "Exchange by " + list(in[0].Columns, n.Exchange.Keys)
	case KindAggregate:
		return aggregate(n.Aggregate, in[0].Columns)
	case KindJoin:
		return "Join on " + pairs(in, n.Join.Left, n.Join.Right) + residual(n.Join.Residual, n.Columns)
	case KindIntervalJoin:
		j := n.IntervalJoin
		kind := "Interval join on "
		if j.Outer {
			kind = "Left interval join on "
		}
		return kind + pairs(in, j.Left, j.Right) + fmt.Sprintf(" within %s - %s in [%s, %s]", in[1].Columns[j.RightTime].Name,
			in[0].Columns[j.LeftTime].Name, duration(j.Lower), duration(j.Upper)) + residual(j.Residual, n.Columns)
	case KindUnion:
		return "Union"
	case KindUpsert:
		return "Upsert " + e.relation(n.Upsert.Relation) + " by " + list(n.Columns, n.Upsert.Key)
	case KindMaterialize:
		return "Materialize " + e.relation(n.Materialize.Relation)
	case KindSink:
		s := "Sink " + e.relation(n.Sink.Relation) + " to " + n.Sink.Topic + " " + n.Sink.Format + " " + n.Sink.Encode
		if len(n.Sink.Key) > 0 {
			s += " by " + list(in[0].Columns, n.Sink.Key)
		}
		return s
	case KindSort:
		return sorted(n.Sort, in[0].Columns)
	}
	return string(n.Kind)
}

func (e *explainer) relation(id uint64) string {
	if e.name != nil {
		if s := e.name(id); s != "" {
			return s
		}
	}
	return "relation " + strconv.FormatUint(id, 10)
}

func sorted(s *Sort, cols []Column) string {
	var keys []string
	for _, k := range s.Keys {
		t := cols[k.Column].Name
		if k.Descending {
			t += " desc"
		}
		if k.NullsFirst != k.Descending {
			t += map[bool]string{true: " nulls first", false: " nulls last"}[k.NullsFirst]
		}
		keys = append(keys, t)
	}
	out := "Limit"
	if len(keys) > 0 {
		out = "Sort by " + strings.Join(keys, ", ")
	}
	if s.Limit != nil {
		out += " limit " + Text(s.Limit, nil)
	}
	if s.Offset != nil {
		out += " offset " + Text(s.Offset, nil)
	}
	return out
}

func window(w *Window, cols []Column) string {
	s := "tumble "
	if w.Slide != w.Size {
		s = "hop "
	}
	s += cols[w.Time].Name + " size " + duration(w.Size)
	if w.Slide != w.Size {
		s += " slide " + duration(w.Slide)
	}
	if w.Offset != 0 {
		s += " offset " + duration(w.Offset)
	}
	if w.Panes {
		s += " panes"
	}
	return s + late(w.Late)
}

func late(l Late) string {
	switch l.Policy {
	case "", "count":
		return ""
	case "correct":
		return " late correct for " + duration(l.Allowed)
	}
	return " late " + l.Policy + " " + l.Topic
}

func aggregate(a *Aggregate, cols []Column) string {
	s := "Aggregate"
	var calls []string
	for _, c := range a.Calls {
		args := list(cols, c.Args)
		if len(c.Args) == 0 {
			args = "*"
		}
		t := c.Func + "(" + args + ")"
		if c.Filter >= 0 {
			t += " filter " + cols[c.Filter].Name
		}
		calls = append(calls, t)
	}
	if len(calls) > 0 {
		s += " " + strings.Join(calls, ", ")
	}
	if len(a.Groups) > 0 {
		s += " by " + list(cols, a.Groups)
	}
	if a.WindowEnd >= 0 {
		s += ", windowed"
	}
	if a.Hop != nil {
		s += " from panes, size " + duration(a.Hop.Size) + " slide " + duration(a.Hop.Slide)
	}
	if a.EmitOnClose {
		s += ", emit on close"
	}
	return s + late(a.Late)
}

func pairs(in []*Node, left, right []int) string {
	var s []string
	for i := range left {
		s = append(s, in[0].Columns[left[i]].Name+" = "+in[1].Columns[right[i]].Name)
	}
	return strings.Join(s, " and ")
}

func residual(n *expr.Node, cols []Column) string {
	if n == nil {
		return ""
	}
	return " where " + Text(n, cols)
}

func duration(us int64) string {
	units := []struct {
		us   int64
		name string
	}{{24 * 3600e6, "d"}, {3600e6, "h"}, {60e6, "m"}, {1e6, "s"}, {1e3, "ms"}}
	for _, u := range units {
		if us != 0 && us%u.us == 0 {
			return strconv.FormatInt(us/u.us, 10) + u.name
		}
	}
	if us == 0 {
		return "0s"
	}
	return strconv.FormatInt(us, 10) + "us"
}

// Text writes an expression for people to read; columns are named by cols. It is not SQL that could be parsed again.
func Text(n *expr.Node, cols []Column) string {
	var b strings.Builder
	text(&b, n, cols, 0)
	return b.String()
}

const maxTextDepth = 200

func text(b *strings.Builder, n *expr.Node, cols []Column, depth int) {
	if depth > maxTextDepth {
		b.WriteString("...")
		return
	}
	args := func(list []*expr.Node, sep string) {
		for i, a := range list {
			if i > 0 {
				b.WriteString(sep)
			}
			text(b, a, cols, depth+1)
		}
	}
	switch n.Op {
	case expr.OpColumn:
		if n.Index < len(cols) {
			b.WriteString(cols[n.Index].Name)
		} else {
			b.WriteString("#" + strconv.Itoa(n.Index))
		}
	case expr.OpConst:
		b.WriteString(constText(n))
	case expr.OpParam:
		b.WriteString("$" + strconv.Itoa(n.Index+1))
	case expr.OpAnd, expr.OpOr:
		b.WriteByte('(')
		args(n.Args, " "+strings.ToUpper(string(n.Op))+" ")
		b.WriteByte(')')
	case expr.OpNot:
		b.WriteString("NOT ")
		args(n.Args, "")
	case expr.OpIsNull:
		args(n.Args, "")
		b.WriteString(" IS NULL")
	case expr.OpIn:
		args(n.Args[:1], "")
		b.WriteString(" IN (")
		args(n.Args[1:], ", ")
		b.WriteByte(')')
	case expr.OpCase:
		b.WriteString("CASE")
		for i := 0; i+1 < len(n.Args); i += 2 {
			b.WriteString(" WHEN ")
			text(b, n.Args[i], cols, depth+1)
			b.WriteString(" THEN ")
			text(b, n.Args[i+1], cols, depth+1)
		}
		b.WriteString(" ELSE ")
		text(b, n.Args[len(n.Args)-1], cols, depth+1)
		b.WriteString(" END")
	case expr.OpCall:
		name, _, _ := strings.Cut(n.Func, "(")
		switch {
		case (name == "cast" || name == "cut") && len(n.Args) == 1:
			args(n.Args, "")
			b.WriteString("::" + n.Type.String())
		case len(n.Args) == 2 && !isWord(name):
			b.WriteByte('(')
			args(n.Args, " "+name+" ")
			b.WriteByte(')')
		default:
			b.WriteString(name + "(")
			args(n.Args, ", ")
			b.WriteByte(')')
		}
	default:
		b.WriteString(string(n.Op) + "(")
		args(n.Args, ", ")
		b.WriteByte(')')
	}
}

func isWord(name string) bool {
	return name != "" && (name[0] == '_' || name[0] >= 'a' && name[0] <= 'z')
}

func constText(n *expr.Node) string {
	if n.Text == nil {
		return "NULL"
	}
	plain := []column.Kind{column.Int16, column.Int32, column.Int64, column.Numeric}
	if slices.Contains(plain, n.Type.Kind) {
		return *n.Text
	}
	if n.Type.Kind == column.Bool {
		return map[bool]string{true: "true", false: "false"}[*n.Text == "t" || *n.Text == "true"]
	}
	s := "'" + strings.ReplaceAll(*n.Text, "'", "''") + "'"
	if n.Type.Kind != column.Text {
		s += "::" + n.Type.String()
	}
	return s
}

package plan

import (
	"fmt"

	"github.com/leat-io/leat/internal/expr"
)

// Check tells whether the plan hangs together: kinds match what is set, inputs come before their node, and every index
// leads to a column. The binder's plans always do; a stored one is checked when it is read.
func (p *Plan) Check() error {
	if len(p.Nodes) == 0 {
		return fmt.Errorf("the plan is empty")
	}
	if len(p.Nodes) > MaxNodes {
		return fmt.Errorf("the plan has %d nodes; the limit is %d", len(p.Nodes), MaxNodes)
	}
	for i, n := range p.Nodes {
		if n == nil {
			return fmt.Errorf("node %d of the plan is null", i)
		}
		if err := p.checkNode(i, n); err != nil {
			return fmt.Errorf("node %d of the plan (%s): %w", i, n.Kind, err)
		}
	}
	return nil
}

// inputs is how many inputs a kind has; -1: one or more.
var inputs = map[Kind]int{
	KindScan: 0, KindValues: 0, KindFilter: 1, KindProject: 1, KindWindow: 1, KindExchange: 1, KindAggregate: 1,
	KindJoin: 2, KindIntervalJoin: 2, KindUnion: -1, KindUpsert: 1, KindMaterialize: 1, KindSink: 1, KindSort: 1,
}

func (p *Plan) checkNode(i int, n *Node) error {
	want, known := inputs[n.Kind]
	if !known {
		return fmt.Errorf("this kind is not known to this binary")
	}
	if want >= 0 && len(n.Inputs) != want || want < 0 && len(n.Inputs) == 0 {
		return fmt.Errorf("it has %d inputs", len(n.Inputs))
	}
	in := make([]int, len(n.Inputs)) // widths
	all := 0
	for j, from := range n.Inputs {
		if from < 0 || from >= i {
			return fmt.Errorf("input %d is node %d, which does not come before it", j, from)
		}
		in[j] = len(p.Nodes[from].Columns)
		all += in[j]
	}
	if n.payload() == nil {
		return fmt.Errorf("it has not what its kind needs")
	}
	width := len(n.Columns)
	if err := within("key", width, n.Key...); err != nil {
		return err
	}
	if n.EventTime < -1 || n.EventTime >= width || n.RowWatermark < -1 || n.RowWatermark >= width {
		return fmt.Errorf("its event time or row watermark is no column")
	}
	return n.checkPayload(in, all)
}

// payload returns the one thing that the kind names, nil if it is missing.
func (n *Node) payload() any {
	switch n.Kind {
	case KindScan:
		return some(n.Scan)
	case KindValues:
		return some(n.Values)
	case KindFilter:
		return some(n.Filter)
	case KindProject:
		return some(n.Project)
	case KindWindow:
		return some(n.Window)
	case KindExchange:
		return some(n.Exchange)
	case KindAggregate:
		return some(n.Aggregate)
	case KindJoin:
		return some(n.Join)
	case KindIntervalJoin:
		return some(n.IntervalJoin)
	case KindUnion:
		return some(n.Union)
	case KindUpsert:
		return some(n.Upsert)
	case KindMaterialize:
		return some(n.Materialize)
	case KindSink:
		return some(n.Sink)
	case KindSort:
		return some(n.Sort)
	}
	return nil
}

// some keeps a nil pointer from becoming an interface that is not nil.
func some[T any](p *T) any {
	if p == nil {
		return nil
	}
	return p
}

func (n *Node) checkPayload(in []int, all int) error {
	width := len(n.Columns)
	switch n.Kind {
	case KindScan:
		if len(n.Scan.Columns) != width {
			return fmt.Errorf("it reads %d columns and has %d", len(n.Scan.Columns), width)
		}
	case KindValues:
		for _, row := range n.Values.Rows {
			if len(row) != width {
				return fmt.Errorf("a row has %d values for %d columns", len(row), width)
			}
			if err := exprs(0, row...); err != nil {
				return err
			}
		}
	case KindFilter:
		return firstError(sameWidth(width, in[0]), exprs(in[0], n.Filter.Predicate))
	case KindProject:
		return firstError(sameWidth(width, len(n.Project.Exprs)), exprs(in[0], n.Project.Exprs...))
	case KindWindow:
		if n.Window.Size <= 0 || n.Window.Slide <= 0 {
			return fmt.Errorf("its size and slide must be positive")
		}
		return firstError(sameWidth(width, in[0]+2), within("time", in[0], n.Window.Time))
	case KindExchange:
		return firstError(sameWidth(width, in[0]), within("key", in[0], n.Exchange.Keys...))
	case KindAggregate:
		return n.Aggregate.check(width, in[0])
	case KindJoin:
		j := n.Join
		return firstError(sameWidth(width, all), sameWidth(len(j.Left), len(j.Right)), within("left key", in[0], j.Left...),
			within("right key", in[1], j.Right...), optionalExpr(width, j.Residual))
	case KindIntervalJoin:
		j := n.IntervalJoin
		if j.Lower > j.Upper {
			return fmt.Errorf("its lower bound is above its upper one")
		}
		return firstError(sameWidth(width, all), sameWidth(len(j.Left), len(j.Right)), within("left key", in[0], j.Left...),
			within("right key", in[1], j.Right...), within("left time", in[0], j.LeftTime), within("right time", in[1], j.RightTime),
			optionalExpr(width, j.Residual))
	case KindUnion:
		for _, w := range in {
			if err := sameWidth(width, w+1); err != nil {
				return err
			}
		}
	case KindUpsert:
		return firstError(sameWidth(width+3, in[0]), within("key", width, n.Upsert.Key...))
	case KindMaterialize:
		return sameWidth(width, in[0])
	case KindSink:
		if len(n.Sink.Columns) != len(n.Sink.Names) {
			return fmt.Errorf("it has %d columns and %d names", len(n.Sink.Columns), len(n.Sink.Names))
		}
		return firstError(within("column", in[0], n.Sink.Columns...), within("key", in[0], n.Sink.Key...))
	case KindSort:
		for _, k := range n.Sort.Keys {
			if err := within("sort key", in[0], k.Column); err != nil {
				return err
			}
		}
		return firstError(sameWidth(width, in[0]), optionalExpr(0, n.Sort.Limit), optionalExpr(0, n.Sort.Offset))
	}
	return nil
}

func (a *Aggregate) check(width, in int) error {
	if err := firstError(sameWidth(width, len(a.Groups)+len(a.Calls)), within("group", in, a.Groups...)); err != nil {
		return err
	}
	for _, c := range a.Calls {
		if err := within("argument", in, c.Args...); err != nil {
			return err
		}
		if len(c.Types) != len(c.Args) || c.Filter < -1 || c.Filter >= in {
			return fmt.Errorf("the call of %s does not hang together", c.Func)
		}
	}
	if a.WindowStart < -1 || a.WindowStart >= len(a.Groups) || a.WindowEnd < -1 || a.WindowEnd >= len(a.Groups) {
		return fmt.Errorf("its window bounds are no groups")
	}
	if a.Hop != nil && (a.Hop.Size <= 0 || a.Hop.Slide <= 0) {
		return fmt.Errorf("its window's size and slide must be positive")
	}
	return nil
}

func within(what string, width int, columns ...int) error {
	for _, c := range columns {
		if c < 0 || c >= width {
			return fmt.Errorf("%s %d is not one of %d columns", what, c, width)
		}
	}
	return nil
}

func sameWidth(a, b int) error {
	if a != b {
		return fmt.Errorf("it has %d columns where %d are needed", a, b)
	}
	return nil
}

func optionalExpr(width int, e *expr.Node) error {
	if e == nil {
		return nil
	}
	return exprs(width, e)
}

// exprs checks that expressions name only columns that are there.
func exprs(width int, list ...*expr.Node) error {
	for _, e := range list {
		if e == nil {
			return fmt.Errorf("an expression is missing")
		}
		if e.Op == expr.OpColumn && (e.Index < 0 || e.Index >= width) {
			return fmt.Errorf("an expression names column %d of %d", e.Index, width)
		}
		if err := exprs(width, e.Args...); err != nil {
			return err
		}
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

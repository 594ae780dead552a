package flow

import (
	"slices"

	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator/sink"
	"github.com/leat-io/leat/internal/sql/plan"
)

// owners are the columns of a node's output whose hash says which worker has a row; ok is false when nothing is known. No
// columns: all rows are on worker 0.
func owners(n *node) (cols []int, ok bool) {
	if n.exchange != nil {
		return n.exchange.keys, true
	}
	p := n.plan
	switch p.Kind {
	case plan.KindFilter, plan.KindWindow, plan.KindMaterialize, plan.KindUpsert:
		return owners(n.inputs[0])
	case plan.KindJoin, plan.KindIntervalJoin:
		return owners(n.inputs[0]) // the left columns come first
	case plan.KindProject:
		in, ok := owners(n.inputs[0])
		if !ok {
			return nil, false
		}
		return translate(in, func(c int) int {
			return slices.IndexFunc(p.Project.Exprs, func(e *expr.Node) bool { return e.Op == expr.OpColumn && e.Index == c })
		})
	case plan.KindAggregate:
		in, ok := owners(n.inputs[0])
		if !ok {
			return nil, false
		}
		return translate(in, func(c int) int { return slices.Index(p.Aggregate.Groups, c) })
	case plan.KindScan:
		if p.Scan.Source {
			return nil, false
		}
		in, ok := owners(n.inputs[0])
		if !ok {
			return nil, false
		}
		return translate(in, func(c int) int { return slices.Index(p.Scan.Columns, c) })
	case plan.KindValues:
		return nil, true // made on worker 0
	}
	return nil, false
}

func translate(cols []int, to func(int) int) ([]int, bool) {
	var out []int
	for _, c := range cols {
		t := to(c)
		if t < 0 {
			return nil, false
		}
		out = append(out, t)
	}
	return out, true
}

// partitioned gives what node n is to read at a port in place of in: in itself, if all rows of one of n's keys are on one
// worker there, or else an exchange in between. With one worker nothing is needed.
func (i *Island) partitioned(j *job, in, n *node, port int) *node {
	if len(i.workers) == 1 {
		return in
	}
	var keys []int
	exact := false
	switch n.plan.Kind {
	case plan.KindAggregate:
		a := n.plan.Aggregate
		for i, g := range a.Groups {
			// The panes of one window must meet: their bounds cannot tell the worker.
			if a.Hop == nil || i != a.WindowStart && i != a.WindowEnd {
				keys = append(keys, g)
			}
		}
	case plan.KindMaterialize:
		keys = n.plan.Key
	case plan.KindUpsert:
		keys = n.plan.Upsert.Key
	case plan.KindSink:
		if n.plan.Sink.Format == sink.Checksum || n.plan.Sink.Format == "plain" && in.plan.AppendOnly {
			return in
		}
		keys = in.plan.Key
		if n.plan.Sink.Format == "upsert" {
			keys = n.plan.Sink.Key
		}
	case plan.KindJoin, plan.KindIntervalJoin:
		exact = true
		var left, right []int
		if n.plan.Join != nil {
			left, right = n.plan.Join.Left, n.plan.Join.Right
		} else {
			left, right = n.plan.IntervalJoin.Left, n.plan.IntervalJoin.Right
		}
		keys = left
		if port == 1 {
			keys = right
		}
	default:
		return in
	}
	have, ok := owners(in)
	if exact {
		// Both sides must hash the same keys in the same order.
		if ok && slices.Equal(have, keys) {
			return in
		}
	} else if ok && subset(have, keys) {
		return in
	}
	x := &node{job: j, index: n.index, inputs: []*node{in}, plan: &plan.Node{
		Kind: plan.KindExchange, Columns: in.plan.Columns, Key: in.plan.Key, AppendOnly: in.plan.AppendOnly,
		EventTime: in.plan.EventTime, RowWatermark: in.plan.RowWatermark, Exchange: &plan.Exchange{Keys: keys},
	}}
	if err := i.place(j, x); err != nil {
		panic(err)
	}
	return x
}

func subset(of, in []int) bool {
	for _, c := range of {
		if !slices.Contains(in, c) {
			return false
		}
	}
	return true
}

package flow

import (
	"fmt"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/flow/operator/aggregate"
	"github.com/leat-io/leat/internal/flow/operator/join"
	"github.com/leat-io/leat/internal/flow/operator/materialize"
	"github.com/leat-io/leat/internal/flow/operator/project"
	"github.com/leat-io/leat/internal/flow/operator/sink"
	"github.com/leat-io/leat/internal/flow/operator/window"
	"github.com/leat-io/leat/internal/sql/plan"
	"github.com/leat-io/leat/internal/state"
)

// ephemeralID is where the ids of tables that are in memory only begin.
const ephemeralID = 1 << 31

// resumable says that a node may emit more than it takes in, and stops when there is no room.
func resumable(n *node) bool {
	return n.plan.Kind == plan.KindJoin || n.plan.Kind == plan.KindIntervalJoin
}

// initial says that a node has rows in the first epoch of its job without any input.
func (n *node) initial() bool {
	return n.plan.Kind == plan.KindValues || n.plan.Kind == plan.KindAggregate && len(n.plan.Aggregate.Groups) == 0
}

// build makes a node's instances.
func (i *Island) build(j *job, n *node) error {
	p := n.plan
	switch p.Kind {
	case plan.KindFilter, plan.KindProject, plan.KindWindow, plan.KindUnion, plan.KindScan, plan.KindExchange:
		n.stateless = true
	}
	ids := make([]uint32, len(p.Tables))
	for k, t := range p.Tables {
		ids[k] = t.ID
	}
	tableID := func(k int) uint32 {
		for len(ids) <= k {
			ids = append(ids, 0)
		}
		if ids[k] == 0 || i.o.Ephemeral {
			i.nextID++
			ids[k] = ephemeralID + i.nextID
		}
		return ids[k]
	}
	if !i.o.Ephemeral {
		if err := checkTables(p); err != nil {
			return err
		}
	} else {
		clear(ids)
	}
	opened := map[int]bool{}
	for k := range n.inst {
		in := &n.inst[k]
		w := i.workers[k]
		env := &operator.Env{
			Worker: k, Workers: len(i.workers), Counts: &in.counts, Expr: &w.ctx, FailRows: i.o.FailRows,
			Tables: i.tables[k], Partitions: j.spec.Partitions,
		}
		env.Spec = func(t int, name string) state.Spec {
			for len(ids) <= t || ids[t] == 0 {
				tableID(t)
			}
			if !opened[t] {
				opened[t] = true
				j.tables = append(j.tables, ids[t])
			}
			return state.Spec{ID: ids[t], Name: j.spec.Name + " " + name, Fresh: j.spec.Fresh, Ephemeral: i.o.Ephemeral}
		}
		if len(n.inputs) > 0 && len(i.workers) > 1 {
			if cols, ok := owners(n.inputs[0]); ok {
				env.Owner = owner(cols, k, len(i.workers))
			}
		}
		op, err := i.operator(j, n, env)
		if err != nil {
			return err
		}
		in.op = op
		if t, ok := op.(operator.Timed); ok {
			if len(i.workers) > 1 && n.depth == 0 {
				return fmt.Errorf("it needs an exchange before it")
			}
			w.setTimer(in, t.NextTimer())
		}
	}
	return nil
}

// owner tells rows by the hash of columns; no columns: all rows are worker 0's.
func owner(cols []int, k, workers int) operator.Owner {
	if len(cols) == 0 {
		return operator.Owner{Known: true, Mine: func(uint64) bool { return k == 0 }}
	}
	return operator.Owner{Known: true, Cols: cols, Mine: func(h uint64) bool { return workerOf(groupOf(h), workers) == k }}
}

// checkTables checks that the plan's durable tables have ids.
func checkTables(p *plan.Node) error {
	for _, t := range p.Tables {
		if t.ID == 0 {
			return fmt.Errorf("state table %s has no id", t.Name)
		}
		if t.ID >= ephemeralID {
			return fmt.Errorf("state table %s has id %d, which is out of range", t.Name, t.ID)
		}
	}
	return nil
}

func (i *Island) operator(j *job, n *node, env *operator.Env) (operator.Operator, error) {
	p := n.plan
	var in []column.Type
	if len(n.inputs) > 0 && p.Scan == nil {
		in = types(n.inputs[0].plan)
	}
	appendOnly := len(n.inputs) > 0 && n.inputs[0].plan != nil && n.inputs[0].plan.AppendOnly
	reached := i.reached(n)
	switch p.Kind {
	case plan.KindScan:
		return &scan{n: n, w: i.workers[env.Worker], columns: p.Scan.Columns}, nil
	case plan.KindValues:
		return newValues(env, p)
	case plan.KindUnion:
		return newUnion(p), nil
	case plan.KindFilter:
		return project.New(env, p.Filter.Predicate, nil, in)
	case plan.KindProject:
		return project.New(env, n.filter, append([]*expr.Node{}, p.Project.Exprs...), in)
	case plan.KindWindow:
		mark := n.inputs[0].plan.RowWatermark
		var late window.Late
		if p.Window.Late.Policy == "topic" {
			l := sink.NewLate(env, p.Window.Late.Topic, n.inputs[0].plan.Columns)
			j.late = append(j.late, l)
			late = l.Add
		}
		return window.New(env, p.Window, mark, in, late)
	case plan.KindExchange:
		if env.Worker == 0 && len(i.workers) > 1 {
			n.exchange = newExchange(n, p.Exchange.Keys, in, len(i.workers))
		}
		return pass{}, nil
	case plan.KindAggregate:
		return aggregate.New(env, p.Aggregate, in, types(p), appendOnly, reached)
	case plan.KindJoin:
		return join.New(env, p.Join, in, types(n.inputs[1].plan), n.inputs[0].plan.Key, n.inputs[1].plan.Key)
	case plan.KindIntervalJoin:
		return join.NewInterval(env, p.IntervalJoin, in, types(n.inputs[1].plan),
			n.inputs[0].plan.Key, n.inputs[1].plan.Key, n.inputs[0].plan.RowWatermark, n.inputs[1].plan.RowWatermark, reached)
	case plan.KindMaterialize:
		j.maker = n
		return materialize.New(env, j.spec.Name, p.Key, types(p)), nil
	case plan.KindUpsert:
		j.maker = n
		return materialize.NewUpsert(env, p.Upsert.Key, types(p)), nil
	case plan.KindSink:
		if env.Worker == 0 {
			j.sinks = append(j.sinks, n)
		}
		return sink.New(env, j.spec.Name, p.Sink, n.inputs[0].plan.Key, n.inputs[0].plan.EventTime, in)
	}
	if i.once != nil && (p.Kind == plan.KindSort || p.Kind == kindCollect) {
		return newCollect(i.once, p, in)
	}
	return nil, fmt.Errorf("operator %q is not supported by this binary", p.Kind)
}

// reached is the watermark that the readers of a node have reached.
func (i *Island) reached(n *node) int64 {
	if len(n.readers) == 0 {
		return NoTime
	}
	low := EndOfTime
	for _, id := range n.readers {
		low = min(low, i.reader(id).state.Watermark)
	}
	return low
}

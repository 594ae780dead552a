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

// prepare does what a node needs before any rows, on all workers; it is checked that its operator can be made.
func (i *Island) prepare(j *job, n *node) error {
	p := n.plan
	timed := false
	switch p.Kind {
	case plan.KindFilter, plan.KindProject, plan.KindWindow, plan.KindUnion, plan.KindScan, plan.KindExchange:
		n.stateless = true
		if p.Window != nil && p.Window.Late.Policy == "topic" {
			n.lates = make([]*sink.Late, len(i.workers))
			j.windows = append(j.windows, n)
		}
		if p.Kind == plan.KindExchange && len(i.workers) > 1 {
			n.exchange = newExchange(n, p.Exchange.Keys, types(n.inputs[0].plan), len(i.workers))
		}
	case plan.KindAggregate, plan.KindIntervalJoin:
		timed = true
	case plan.KindMaterialize, plan.KindUpsert:
		j.maker = n
	case plan.KindSink:
		j.sinks = append(j.sinks, n)
	}
	if timed && len(i.workers) > 1 && n.depth == 0 {
		return fmt.Errorf("it needs an exchange before it")
	}
	if !i.o.Ephemeral {
		if err := checkTables(p); err != nil {
			return err
		}
	}
	if timed && !j.spec.Fresh && !i.o.Ephemeral {
		// What it kept may be due without any input.
		for _, w := range i.workers {
			if err := w.at(n).open(); err != nil {
				return err
			}
		}
		return nil
	}
	if i.once != nil {
		return nil // an ad hoc run will see
	}
	scratch := state.NewTables(state.Options{})
	defer scratch.Close()
	env := (&instance{n: n, w: i.workers[0]}).env(scratch)
	env.Spec = func(int, string) state.Spec { return state.Spec{Ephemeral: true} }
	_, err := i.operator(j, n, env)
	return err
}

// open makes the instance's operator, if there is none yet: what no row reaches costs nothing.
func (in *instance) open() error {
	if in.op != nil {
		return nil
	}
	w := in.w
	op, err := w.isl.operator(in.n.job, in.n, in.env(w.isl.tables[w.id]))
	if err != nil {
		return err
	}
	in.op = op
	if t, ok := op.(operator.Timed); ok {
		w.setTimer(in, t.NextTimer())
	}
	return nil
}

// env is what the instance's operator is made with.
func (in *instance) env(tables *state.Tables) *operator.Env {
	n, w := in.n, in.w
	i, j := w.isl, n.job
	env := &operator.Env{
		Worker: w.id, Workers: len(i.workers), Counts: &in.counts, Expr: &w.ctx, FailRows: i.o.FailRows,
		Tables: tables, Partitions: j.spec.Partitions,
	}
	ids := map[int]uint32{}
	env.Spec = func(t int, name string) state.Spec {
		id, opened := ids[t]
		if !opened {
			if t < len(n.plan.Tables) && !i.o.Ephemeral {
				id = n.plan.Tables[t].ID
			} else {
				id = ephemeralID + i.nextID.Add(1)
			}
			ids[t] = id
			in.tables = append(in.tables, id)
		}
		return state.Spec{ID: id, Name: j.spec.Name + " " + name, Fresh: j.spec.Fresh, Ephemeral: i.o.Ephemeral}
	}
	if len(n.inputs) > 0 && len(i.workers) > 1 {
		if cols, ok := owners(n.inputs[0]); ok {
			env.Owner = owner(cols, w.id, len(i.workers))
		}
	}
	return env
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
			n.lates[env.Worker], late = l, l.Add
		}
		return window.New(env, p.Window, mark, in, late)
	case plan.KindExchange:
		return pass{}, nil
	case plan.KindAggregate:
		return aggregate.New(env, p.Aggregate, in, types(p), appendOnly, reached)
	case plan.KindJoin:
		return join.New(env, p.Join, in, types(n.inputs[1].plan), n.inputs[0].plan.Key, n.inputs[1].plan.Key)
	case plan.KindIntervalJoin:
		return join.NewInterval(env, p.IntervalJoin, in, types(n.inputs[1].plan),
			n.inputs[0].plan.Key, n.inputs[1].plan.Key, n.inputs[0].plan.RowWatermark, n.inputs[1].plan.RowWatermark, reached)
	case plan.KindMaterialize:
		return materialize.New(env, j.spec.Name, p.Key, types(p)), nil
	case plan.KindUpsert:
		return materialize.NewUpsert(env, p.Upsert.Key, types(p)), nil
	case plan.KindSink:
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

package flow

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/sql/plan"
)

// Attach adds a job to the graph. Its inputs that are tables or views must be attached.
func (i *Island) Attach(spec JobSpec) (err error) {
	if spec.Plan == nil || len(spec.Plan.Nodes) == 0 {
		return fmt.Errorf("%s has no plan", spec.Name)
	}
	if spec.Plan.Version != plan.Version {
		return fmt.Errorf("the plan of %s has version %d, this binary runs version %d; create it again", spec.Name, spec.Plan.Version, plan.Version)
	}
	if i.byID[spec.ID] != nil {
		return fmt.Errorf("%s is attached already", spec.Name)
	}
	j := &job{spec: spec, island: i, first: spec.Fresh}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the plan of %s cannot be run: %v", spec.Name, r)
		}
		if err != nil {
			i.remove(j)
		}
	}()
	for k, p := range spec.Plan.Nodes {
		for _, in := range p.Inputs {
			if in < 0 || in >= k {
				return fmt.Errorf("the plan of %s: node %d reads node %d", spec.Name, k, in)
			}
		}
		for _, t := range p.Tables {
			if v := plan.TableVersion(p.Kind); t.Version != v {
				return fmt.Errorf("the state table %q (%s) of %s has version %d, this binary reads version %d; create it again", t.Name, p.Kind, spec.Name, t.Version, v)
			}
		}
	}
	readBy := onlyReaders(spec.Plan)
	made := make([]*node, len(spec.Plan.Nodes)) // by plan index
	for k, p := range spec.Plan.Nodes {
		n := &node{job: j, index: k, plan: p}
		switch next := readBy[k]; {
		case next == nil:
		case p.Kind == plan.KindFilter && next.Kind == plan.KindProject:
			made[k] = made[p.Inputs[0]] // the projection does it
			continue
		case p.Kind == plan.KindScan && next.Kind == plan.KindFilter:
			n.late = unseen(next.Filter.Predicate, len(p.Columns))
		}
		if p.Kind == plan.KindProject {
			if f := spec.Plan.Nodes[p.Inputs[0]]; f.Kind == plan.KindFilter && readBy[p.Inputs[0]] == p {
				n.filter = f.Filter.Predicate
			}
		}
		for port, in := range p.Inputs {
			src := i.partitioned(j, made[in], n, port)
			n.inputs = append(n.inputs, src)
		}
		if err := i.place(j, n); err != nil {
			return fmt.Errorf("%s: %s (node %d): %w", spec.Name, p.Kind, k, err)
		}
		made[k] = n
	}
	if err := i.foldBefore(j); err != nil {
		return fmt.Errorf("%s: %w", spec.Name, err)
	}
	i.jobs = append(i.jobs, j)
	i.byID[spec.ID] = j
	if j.first {
		i.starting = append(i.starting, j)
	}
	if _, live := j.backfillStates(); !live {
		i.filling = append(i.filling, j)
	}
	i.deepen(j)
	j.spec.Sources, j.spec.Start, j.spec.Positions, j.spec.Backfill = nil, nil, nil, nil // they have served
	return nil
}

// onlyReaders has, for each node of a plan, the one that reads it, nil if there are several or none.
func onlyReaders(p *plan.Plan) []*plan.Node {
	by := make([]*plan.Node, len(p.Nodes))
	seen := make([]bool, len(p.Nodes))
	for _, n := range p.Nodes {
		for _, in := range n.Inputs {
			by[in] = n
			if seen[in] {
				by[in] = nil
			}
			seen[in] = true
		}
	}
	return by
}

// unseen tells which of a number of columns an expression does not name.
func unseen(e *expr.Node, columns int) []bool {
	list := make([]bool, columns)
	for i := range list {
		list[i] = true
	}
	eachColumn(e, func(c int) {
		if c < columns {
			list[c] = false
		}
	})
	return list
}

// place connects a node whose inputs are known, and makes its instances.
func (i *Island) place(j *job, n *node) error {
	n.seq = i.seq
	i.seq++
	n.inst = make([]*instance, len(i.workers))
	if n.plan.Scan != nil {
		if err := i.placeScan(j, n); err != nil {
			return err
		}
	}
	readers := map[int]bool{}
	for port, in := range n.inputs {
		in.outs = append(in.outs, edge{n, port})
		d := in.depth
		if in.exchange != nil {
			d++
		}
		n.depth = max(n.depth, d)
		for _, r := range in.readers {
			readers[r] = true
		}
	}
	for r := range readers {
		n.readers = append(n.readers, r)
	}
	sort.Ints(n.readers)
	n.group = i.group(n.readers)
	j.nodes = append(j.nodes, n)
	return i.prepare(j, n)
}

// group is the one time group of a set of readers.
func (i *Island) group(readers []int) *timeGroup {
	var b strings.Builder
	for _, r := range readers {
		b.WriteString(strconv.Itoa(r))
		b.WriteByte(',')
	}
	g := i.groups[b.String()]
	if g == nil {
		g = &timeGroup{readers: slices.Clone(readers)}
		i.groups[b.String()] = g
	}
	return g
}

// placeScan connects a scan with the reader of its source, or with the node that makes its table or view.
func (i *Island) placeScan(j *job, n *node) error {
	s := n.plan.Scan
	if len(s.Columns) != len(n.plan.Columns) {
		return fmt.Errorf("reads %d columns into %d", len(s.Columns), len(n.plan.Columns))
	}
	if !s.Source && i.once != nil {
		i.once.scans = append(i.once.scans, n)
		return nil
	}
	if !s.Source {
		m := i.byID[s.Relation]
		if m == nil || m.maker == nil {
			return fmt.Errorf("relation %d, which it reads, is not attached", s.Relation)
		}
		for _, c := range s.Columns {
			if c < 0 || c >= len(m.maker.plan.Columns) {
				return fmt.Errorf("reads column %d of %s, which has %d", c, m.spec.Name, len(m.maker.plan.Columns))
			}
		}
		n.inputs = []*node{m.maker}
		return i.startBackfill(j, n, m)
	}
	spec := j.spec.Sources[s.Relation]
	if spec == nil {
		return fmt.Errorf("source %d is not known", s.Relation)
	}
	for _, c := range s.Columns {
		if c < 0 || c >= len(spec.Columns)+3 {
			return fmt.Errorf("reads column %d of source %s, which has %d", c, spec.Name, len(spec.Columns))
		}
	}
	r, err := i.readerFor(j, spec)
	if err != nil {
		return err
	}
	n.inputs = nil
	r.node.outs = append(r.node.outs, edge{n, 0})
	r.choose()
	if spec.EventTime >= 0 {
		n.readers = append(n.readers, r.id)
	}
	return nil
}

// readerFor finds a reader that started as the job did and is where the job is, or makes one.
func (i *Island) readerFor(j *job, spec *SourceSpec) (*reader, error) {
	if r := j.readers[spec.Relation]; r != nil {
		return r, nil
	}
	start := j.spec.Start[spec.Relation]
	var state SourceState
	found := false
	for _, p := range j.spec.Positions {
		if p.Relation == spec.Relation {
			state, found = p.clone(), true
		}
	}
	if !found {
		var err error
		if state, err = startState(spec, start); err != nil {
			return nil, err
		}
	}
	var r *reader
	for _, o := range i.readers {
		if o.spec.Relation == spec.Relation && o.start == start && o.state.same(&state) {
			r = o
		}
	}
	if r == nil {
		i.reads++
		r = newReader(i.reads, spec, start, state)
		i.readers = append(i.readers, r)
	}
	r.add(j)
	if j.readers == nil {
		j.readers = map[uint64]*reader{}
	}
	j.readers[spec.Relation] = r
	return r, nil
}

// mergeReaders makes one reader of two that started alike and have come to the same positions: a job that was attached later
// has caught up.
func (i *Island) mergeReaders() {
	for a := 0; a < len(i.readers); a++ {
		for b := a + 1; b < len(i.readers); b++ {
			x, y := i.readers[a], i.readers[b]
			if x.spec.Relation != y.spec.Relation || x.start != y.start || !x.state.same(&y.state) {
				continue
			}
			x.node.outs = append(x.node.outs, y.node.outs...)
			x.choose()
			for _, j := range y.jobs {
				j.readers[x.spec.Relation] = x
			}
			x.add(y.jobs...)
			i.dropReader(y)
			i.rename(y.id, x.id)
			b--
		}
	}
}

// rename gives the nodes that depend on reader from the reader to instead, and their timers with them.
func (i *Island) rename(from, to int) {
	for _, j := range i.jobs {
		for _, n := range j.nodes {
			if !slices.Contains(n.readers, from) {
				continue
			}
			n.readers = slices.DeleteFunc(slices.Clone(n.readers), func(r int) bool { return r == from || r == to })
			n.readers = append(n.readers, to)
			sort.Ints(n.readers)
			n.group = i.group(n.readers)
			for _, in := range n.inst {
				if in == nil {
					continue
				}
				if at := in.timer; at != EndOfTime {
					in.timer = EndOfTime // the entry in the old group's heap is stale now
					in.w.setTimer(in, at)
				}
			}
		}
	}
}

func (i *Island) dropReader(r *reader) {
	i.readers = slices.DeleteFunc(i.readers, func(o *reader) bool { return o == r })
	for _, w := range i.workers {
		if in := w.reads[r.id]; in != nil {
			in.close()
			delete(w.reads, r.id)
		}
	}
}

// Detach removes a job; the jobs that read it must have been detached.
func (i *Island) Detach(id uint64) error {
	j := i.byID[id]
	if j == nil {
		return fmt.Errorf("job %d is not attached", id)
	}
	if j.maker != nil {
		for _, e := range j.maker.outs {
			if e.to.job != j {
				return fmt.Errorf("%s is read by %s", j.spec.Name, e.to.job.spec.Name)
			}
		}
	}
	i.remove(j)
	return nil
}

// remove takes what there is of a job out of the graph.
func (i *Island) remove(j *job) {
	mine := func(e edge) bool { return e.to.job == j }
	for _, n := range j.nodes {
		for _, in := range n.inputs {
			if in.job != j {
				in.outs = slices.DeleteFunc(in.outs, mine)
			}
		}
	}
	for _, r := range slices.Clone(i.readers) {
		if j.readers[r.spec.Relation] != r {
			continue
		}
		r.node.outs = slices.DeleteFunc(r.node.outs, mine)
		r.forget(j)
		if len(r.jobs) == 0 {
			i.dropReader(r)
		} else {
			r.choose()
		}
	}
	for _, w := range i.workers {
		for g, h := range w.timers {
			kept := slices.DeleteFunc(*h, func(t timer) bool { return t.inst.n.job == j })
			if len(kept) == 0 {
				delete(w.timers, g)
				continue
			}
			*h = kept
			heapInit(h)
		}
		w.visited = w.visited[:0]
	}
	i.dropTables(j)
	for _, list := range []*[]*job{&i.jobs, &i.touched, &i.starting, &i.filling} {
		*list = slices.DeleteFunc(*list, func(o *job) bool { return o == j })
	}
	if i.byID[j.spec.ID] == j {
		delete(i.byID, j.spec.ID)
	}
	used := map[*timeGroup]bool{}
	for _, o := range i.jobs {
		for _, n := range o.nodes {
			used[n.group] = true
		}
	}
	for k, g := range i.groups {
		if !used[g] {
			delete(i.groups, k)
		}
	}
	i.budget()
}

// dropTables closes a job's tables on all workers.
func (i *Island) dropTables(j *job) {
	for _, n := range j.nodes {
		for k, in := range n.inst {
			if in == nil {
				continue
			}
			for _, id := range in.tables {
				i.tables[k].Drop(id)
			}
			in.tables = nil
		}
	}
}

// types are a plan node's output types.
func types(p *plan.Node) []column.Type {
	t := make([]column.Type, len(p.Columns))
	for k, c := range p.Columns {
		t[k] = c.Type
	}
	return t
}

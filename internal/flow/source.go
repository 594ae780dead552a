package flow

import (
	"fmt"
	"slices"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/flow/operator"
	"github.com/leat-io/leat/internal/record"
)

// readTask is a range of a partition that a worker reads in an epoch.
type readTask struct {
	r        *reader
	in       *readerInstance
	p        int
	next, to int64
	max      int64 // event time maximum of the partition up to next
}

// readerInstance is a reader on one worker.
type readerInstance struct {
	r      *reader
	opens  int
	parts  map[int]connector.Partition
	rows   connector.Rows
	at     *connector.Rows // those at hand: all of rows, or a part
	gens   *expr.Group     // the generated columns that are needed, nil if there are none
	gen    []int           // which they are
	in     column.Batch    // the chunk as decoded and generated
	keep   column.Batch    // the same without its dead letters
	alive  []int32
	errs   expr.RowErrors
	reason []string // of rows that are dead, by row
	meta   [3]*column.Vector
	counts operator.Counts
}

// open makes in ready for the columns that r wants now.
func (w *worker) openReader(r *reader) (*readerInstance, error) {
	in := w.reads[r.id]
	if in != nil && in.opens == r.opens {
		return in, nil
	}
	if in != nil {
		in.close()
	}
	in = &readerInstance{r: r, opens: r.opens, parts: map[int]connector.Partition{}}
	types := r.spec.types()
	var exprs []*expr.Node
	for i, c := range r.spec.Columns {
		if c.Expr != nil && r.need[i] {
			in.gen, exprs = append(in.gen, i), append(exprs, c.Expr)
		}
	}
	if exprs != nil {
		g, err := expr.CompileGroup(nil, exprs, types)
		if err != nil {
			return nil, fmt.Errorf("the generated columns of source %s: %w", r.spec.Name, err)
		}
		in.gens = g
	}
	in.in.Cols = make([]*column.Vector, len(types))
	in.keep.Cols = make([]*column.Vector, len(types))
	for i := range in.meta {
		in.meta[i] = column.NewVector(types[len(r.spec.Columns)+i], 0)
	}
	w.reads[r.id] = in
	return in, nil
}

func (in *readerInstance) close() {
	for _, p := range in.parts {
		p.Close()
	}
	in.parts = nil
}

// readSome reads one chunk of the partition that is furthest behind in event time and pushes it to the scans.
func (w *worker) readSome() bool {
	if len(w.tasks) == 0 {
		return false
	}
	low := 0
	for i := range w.tasks {
		if w.tasks[i].max < w.tasks[low].max {
			low = i
		}
	}
	t := &w.tasks[low]
	if err := w.readChunk(t); err != nil {
		err = fmt.Errorf("source %s, partition %d at offset %d: %w", t.r.spec.Name, t.p, t.next, err)
		for _, j := range t.r.jobs {
			j.fail(nil, err)
		}
		t.next = t.to
	}
	if t.next >= t.to {
		w.ended = append(w.ended, partitionTime{t.r.id, t.p, t.max})
		w.tasks = slices.Delete(w.tasks, low, low+1)
	}
	return true
}

func (w *worker) readChunk(t *readTask) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	in := t.in
	part := in.parts[t.p]
	if part == nil {
		if len(t.r.late) > 0 {
			part, err = t.r.spec.Source.(connector.Late).OpenLate(t.p, t.r.decode, t.r.late)
		} else {
			part, err = t.r.spec.Source.Open(t.p, t.r.decode)
		}
		if err != nil {
			return err
		}
		in.parts[t.p] = part
	}
	next, err := part.Read(t.next, t.to, w.isl.o.BatchRows, &in.rows)
	if err != nil {
		return err
	}
	if next <= t.next && in.rows.Len+len(in.rows.Bad) == 0 {
		return fmt.Errorf("the connector made no progress")
	}
	t.next = next
	for _, b := range in.rows.Bad {
		in.counts.Dead++
		w.letter(t.r, t.p, b.Record, max(b.Record.Offset, b.Position), b.Reason)
	}
	if in.rows.Len > 0 {
		w.takeRows(t, &in.rows)
	}
	return nil
}

// takeRows hands rows that were read to the scans, those whose generated columns are too large together in parts.
func (w *worker) takeRows(t *readTask, rows *connector.Rows) {
	in := t.in
	b := in.decode(w, t, rows)
	if b == nil {
		var half connector.Rows
		half.Part(rows, 0, rows.Len/2)
		w.takeRows(t, &half)
		half.Part(rows, rows.Len/2, rows.Len)
		w.takeRows(t, &half)
		return
	}
	if b.Len > 0 {
		in.counts.In += int64(b.Len)
		for _, e := range t.r.node.outs {
			w.deliver(e, b, true)
		}
	}
	if in.gens != nil {
		in.gens.End()
	}
}

func (w *worker) letter(r *reader, p int, rec record.Record, position int64, reason string) {
	w.dead = append(w.dead, DeadLetter{
		Relation: r.spec.Relation, Source: r.spec.Name, Partition: int32(p), Position: position, Reason: reason, Record: rec.Clone(),
	})
}

// decode makes the source's columns of rows just read, decides what is a dead letter, and gives every row its watermark. It returns nil when there are too
// many rows for their generated columns.
func (in *readerInstance) decode(w *worker, t *readTask, rows *connector.Rows) *column.Batch {
	r, spec, n := in.r, in.r.spec, rows.Len
	in.at = rows
	b := &in.in
	b.Len, b.Weights, b.Late = n, nil, nil
	for i := range b.Cols {
		b.Cols[i] = nil
	}
	for i, c := range r.decode {
		b.Cols[c] = in.at.Cols[i]
	}
	in.errs.Reset()
	if cap(in.reason) < n {
		in.reason = make([]string, n)
	}
	in.reason = in.reason[:n]
	clear(in.reason)
	bad := 0
	kill := func(row int, reason string) {
		if in.reason[row] == "" {
			in.reason[row] = reason
			bad++
		}
	}
	w.ctx.Errors = &in.errs
	if in.gens != nil {
		in.gens.Start(&w.ctx, b)
	}
	for k, i := range in.gen {
		before := in.errs.Len()
		v, err := in.gens.Eval(k)
		if err == expr.ErrSplit {
			return nil
		}
		if err != nil {
			for row := range n {
				kill(row, "generated column "+spec.Columns[i].Name+": "+err.Error())
			}
			break
		}
		b.Cols[i] = v
		for k := before; k < in.errs.Len(); k++ {
			kill(int(in.errs.Rows[k]), "generated column "+spec.Columns[i].Name+": "+in.errs.Errs[k].Error())
		}
	}
	for i, c := range spec.Columns {
		if c.NotNull && b.Cols[i] != nil && b.Cols[i].HasNulls() {
			for row := range n {
				if b.Cols[i].IsNull(row) {
					kill(row, "column "+c.Name+" is null")
				}
			}
		}
	}
	in.meta[2].Resize(in.meta[2].Type, n)
	if e := spec.EventTime; e >= 0 && b.Cols[e] != nil {
		bad += in.watermarks(t, b.Cols[e], w.epoch.Now, bad > 0)
	} else {
		for i := range in.meta[2].I64 {
			in.meta[2].I64[i] = NoTime
		}
	}
	in.meta[0].Resize(in.meta[0].Type, n)
	for i := range in.meta[0].I32 {
		in.meta[0].I32[i] = int32(t.p)
	}
	in.meta[1].Resize(in.meta[1].Type, n)
	copy(in.meta[1].I64, in.at.Offsets)
	for i := range in.meta {
		b.Cols[len(spec.Columns)+i] = in.meta[i]
	}
	if bad == 0 {
		if len(r.late) > 0 {
			b.Late = in
		}
		return b
	}
	in.alive = in.alive[:0]
	for row, why := range in.reason {
		if why == "" {
			in.alive = append(in.alive, int32(row))
			continue
		}
		in.counts.Dead++
		rec := record.Record{Offset: in.at.Offsets[row], Timestamp: record.NoTimestamp}
		if in.at.Original != nil {
			rec = in.at.Original(row)
		}
		w.letter(r, t.p, rec, in.at.Position(row), why)
	}
	for i, c := range b.Cols {
		if c == nil {
			continue
		}
		if in.keep.Cols[i] == nil {
			in.keep.Cols[i] = &column.Vector{}
		}
		in.keep.Cols[i].Gather(c, in.alive)
	}
	for i, c := range b.Cols {
		if c == nil {
			in.keep.Cols[i] = nil
		}
	}
	for i, c := range r.late {
		if in.keep.Cols[c] == nil {
			in.keep.Cols[c] = &column.Vector{}
		}
		in.at.Make(i, in.alive, in.keep.Cols[c])
	}
	in.keep.Len = len(in.alive)
	return &in.keep
}

// Make is column.Late's.
func (in *readerInstance) Make(col int, rows []int32, dst *column.Vector) {
	in.at.Make(slices.Index(in.r.late, col), rows, dst)
}

// watermarks runs the partition's maximum event time over the rows, in order, and writes each row's watermark. A row that
// has no event time, or one too far ahead of its append, does not move it and is a dead letter; it returns how many. Nor does one that is dead already; some:
// there are such.
func (in *readerInstance) watermarks(t *readTask, times *column.Vector, now int64, some bool) (bad int) {
	spec := in.r.spec
	ahead := spec.MaxAhead
	if ahead == 0 {
		ahead = DefaultMaxAhead
	}
	top, delay, out := t.max, spec.Delay, in.meta[2].I64
	appended := in.at.Appended
	if times.Valid == nil && len(appended) == 0 && !some {
		for i, x := range times.I64[:len(out)] {
			if x > top {
				top = x
			}
			out[i] = minus(top, delay)
		}
		if top != EndOfTime {
			t.max = top
			return 0
		}
		top = t.max
	}
	for i := range out {
		if in.reason[i] == "" {
			switch x := times.I64[i]; {
			case times.IsNull(i):
				in.reason[i] = "no event time: column " + spec.Columns[spec.EventTime].Name + " is null"
				bad++
			case x == EndOfTime:
				in.reason[i] = "event time is infinite"
				bad++
			case ahead > 0 && i < len(appended) && tooFar(x, appended[i], now, ahead):
				in.reason[i] = "event time is too far ahead of the time at which the record was appended"
				if appended[i] == connector.NotKnown {
					in.reason[i] = "event time is too far ahead of now, and the record has no timestamp"
				}
				in.counts.FarFuture++
				bad++
			case x > top:
				top = x
			}
		}
		out[i] = minus(top, delay)
	}
	t.max = top
	return bad
}

// tooFar tells whether an event time is further ahead of its record's append than allowed; without that, of the epoch's time.
func tooFar(x, appended, now, ahead int64) bool {
	if appended == connector.NotKnown {
		appended = now
	}
	return x > appended && uint64(x)-uint64(appended) > uint64(ahead)
}

package state

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/spill"
)

// Tables are the tables of one worker and island: opens them, accounts their memory, ends their epochs, evicts.
type Tables struct {
	db      *kv.DB
	applier *Applier
	pool    *pool
	limit   int64

	list    []*table
	byID    map[uint32]*table
	touched []*table // in this epoch

	epochArena   arena   // old values of the running epoch
	epochLarge   []chunk // its blocks that are the pool's own
	changedBytes int64
	held         int64 // by operators, see Hold
	ahead        bool  // there may be a table to be read ahead
	epochBytes   int64 // Options.EpochBytes
	spill        *spill.Folder
	spillBytes   int64 // Options.SpillBytes
	err          error

	// Generations: every changed row carries the number of one; a generation is a few epochs in a row. Rows do not carry
	// the LSN itself, since it is not known when they are encoded, and has 8 bytes.
	generation uint32
	inGen      int   // epochs in the current generation
	gens       []gen // not applied in both kinds yet, oldest first
	open       []int // for every epoch that was ended and not committed: index into gens plus genBase
	genBase    int
	applied    [2]uint32 // by kind (state, rows): generations up to here are in kv

	// What an Evict found that could not do enough.
	stuck        bool
	stuckApplied [2]uint32
	stuckUsed    int64

	loads, evictions int64
	lookups          [lookupReaders]lookup
}

type gen struct {
	number uint32
	lsn    journal.LSN // of its last epoch that is committed
	open   int         // epochs that are ended and not committed
}

// tableSort is what differs between point and ordered tables.
type tableSort interface {
	putAhead() func(w *part, key, suffix, value []byte)
	endEpoch(dst *Changes)
	evict(slots int)
	compact(w *part)
	forget()     // drops what the running epoch changed
	dirty() bool // the running epoch changed something
}

// NewTables makes an empty set.
func NewTables(o Options) *Tables {
	t := &Tables{db: o.DB, applier: o.Applier, limit: o.Limit, epochBytes: o.EpochBytes, spill: o.Spill, spillBytes: o.SpillBytes, byID: map[uint32]*table{}, generation: 1}
	b := o.Budget
	if b != nil && o.Name != "" {
		b = b.Child(o.Name, 0)
	}
	t.pool = newPool(b)
	t.pool.owned = b != o.Budget
	t.pool.account = o.Account
	return t
}

func (t *Tables) add(spec Spec, tb *table, s tableSort) {
	tb.sort = s
	t.list = append(t.list, tb)
	t.ahead = t.ahead || tb.preloads()
	switch {
	case t.byID[spec.ID] == nil && (!spec.Ephemeral || spec.ID != 0):
		t.byID[spec.ID] = tb // an Ephemeral one by its id too, so that it can be dropped
	case !spec.Ephemeral:
		panic(fmt.Sprintf("state: table %d (%s) opened twice", spec.ID, spec.Name))
	}
}

// SetLimit changes the memory at which Evict has something to do.
func (t *Tables) SetLimit(limit int64) { t.limit = limit }

// ChangedBytes is about how large the running epoch's payloads would be now (the coordinator ends an epoch early by it).
func (t *Tables) ChangedBytes() int64 { return t.changedBytes }

// Used is the memory of all tables in bytes.
func (t *Tables) Used() int64 { return t.pool.used }

// Loads and Evictions count rows (of ordered tables: groups) that were read from kv and that left memory.
func (t *Tables) Loads() int64 { return t.loads }

// Evictions is as Loads.
func (t *Tables) Evictions() int64 { return t.evictions }

// fail remembers the first error of a call that returns none; EndEpoch returns it.
func (t *Tables) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// keep copies a value into the epoch's arena.
func (t *Tables) keep(value []byte) oldValue {
	n := len(value)
	if n == 0 {
		return oldValue{}
	}
	addr, class := t.epochArena.alloc(t.pool, n)
	if class >= largeClass {
		t.epochLarge = append(t.epochLarge, chunk{addr, class - largeClass})
	}
	copy(t.pool.bytes(addr, 0, n), value)
	return oldValue{addr, uint32(n)}
}

func (t *Tables) kept(o oldValue) []byte {
	switch o.n {
	case absentLen:
		return nil
	case 0:
		return []byte{}
	}
	return t.pool.bytes(o.addr, 0, int(o.n))
}

// EndEpoch encodes the net changes of all touched tables into dst (appending to what is there; it may be nil if all tables are
// ephemeral); after it the tables may be changed for the next epoch. Refs, Old and Changed of the epoch end here. An error
// is of the epoch, some of whose changes are missing: it must not be committed.
func (t *Tables) EndEpoch(dst *Changes) error {
	if t.inGen++; t.inGen > 16 {
		t.nextGeneration()
	}
	if n := len(t.gens); n == 0 || t.gens[n-1].number != t.generation {
		t.gens = append(t.gens, gen{number: t.generation})
	}
	g := len(t.gens) - 1
	t.gens[g].open++
	t.open = append(t.open, g+t.genBase)

	if dst != nil && t.spill != nil {
		dst.SpillTo(t.spill, t.unitBytes())
	}
	for _, tb := range t.touched {
		tb.touched, tb.changing = false, 0
		if early := tb.early; early != nil {
			tb.early = nil
			if err := dst.follow(early); err != nil {
				t.fail(tb.wrap("end an epoch", err))
			}
		}
		tb.sort.endEpoch(dst)
	}
	if dst != nil {
		if err := dst.finish(); err != nil {
			t.fail(err)
		}
	}
	t.touched = t.touched[:0]
	for _, c := range t.epochLarge {
		t.pool.release(c.addr, c.order)
	}
	t.epochLarge = t.epochLarge[:0]
	t.epochArena.drop(t.pool)
	t.changedBytes = 0
	if t.held != 0 { // of an operator that has failed
		t.Hold(-t.held)
	}
	err := t.err
	t.err = nil
	return err
}

func (t *Tables) nextGeneration() {
	t.generation++
	if t.generation == 0 {
		t.generation = 1
	}
	t.inGen = 1
}

// togetherBytes is how much there must be to do for it to pay to wake other cores.
const togetherBytes = 64 << 10

// EndEpochs ends an epoch of the tables of all workers, those of each into the Changes of the same index. Unless inTurn (tests that must be repeatable) the
// workers' cores do it together where there is much. The first error is that of the lowest worker.
func EndEpochs(tables []*Tables, dst []*Changes, inTurn bool) error {
	errs := make([]error, len(tables))
	var changed int64
	for _, t := range tables {
		changed += t.changedBytes
	}
	together(len(tables), inTurn || changed < togetherBytes, func(k int) { errs[k] = tables[k].EndEpoch(dst[k]) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Evict is Tables.Evict of the tables of all workers, which the cores do together unless inTurn; over is that of the worst of them.
func Evict(tables []*Tables, inTurn bool) (over int64) {
	left := make([]int64, len(tables))
	most := int64(0)
	for _, t := range tables {
		most = max(most, t.over())
	}
	together(len(tables), inTurn || most < togetherBytes, func(k int) { left[k] = tables[k].Evict() })
	return slices.Max(left)
}

// Preload is Tables.Preload of the tables of all workers.
func Preload(tables []*Tables, n int, inTurn bool) (more bool, err error) {
	mores, errs := make([]bool, len(tables)), make([]error, len(tables))
	together(len(tables), inTurn, func(k int) { mores[k], errs[k] = tables[k].Preload(n) })
	return slices.Contains(mores, true), errors.Join(errs...)
}

// together calls do for 0 to n-1, each on a goroutine of its own unless inTurn.
func together(n int, inTurn bool, do func(k int)) {
	if inTurn || n == 1 {
		for k := range n {
			do(k)
		}
		return
	}
	var wg sync.WaitGroup
	for k := 1; k < n; k++ {
		wg.Go(func() { do(k) })
	}
	do(0)
	wg.Wait()
}

// Committed says that the oldest epoch that was ended and not committed yet is in the journal at lsn. Call it once for every
// EndEpoch, in order; for an epoch that changed nothing and has no unit, with the LSN of the one before.
func (t *Tables) Committed(lsn journal.LSN) {
	if len(t.open) == 0 {
		panic("state: Committed without an epoch that was ended")
	}
	g := &t.gens[t.open[0]-t.genBase]
	t.open = t.open[1:]
	if len(t.open) == 0 {
		t.open = nil
	}
	g.lsn = max(g.lsn, lsn)
	g.open--
}

// learnApplied finds the generations that are in kv by now.
func (t *Tables) learnApplied() {
	if t.applier == nil {
		return
	}
	state, rows := t.applier.Applied(journal.KindState), t.applier.Applied(journal.KindRows)
	both := 0
	for i := range t.gens {
		g := &t.gens[i]
		if g.open > 0 || g.number == t.generation {
			break
		}
		if g.lsn <= state {
			t.applied[0] = g.number
		}
		if g.lsn <= rows {
			t.applied[1] = g.number
		}
		if g.lsn <= state && g.lsn <= rows {
			both++ // LSNs ascend, so these are the first ones
		}
	}
	t.gens = slices.Delete(t.gens, 0, both)
	t.genBase += both
}

// later says whether generation a is after b; numbers wrap.
func later(a, b uint32) bool { return int32(a-b) > 0 }

// isApplied says whether the change of a row with this generation is in kv.
func (tb *table) isApplied(commit uint32) bool {
	if commit == 0 {
		return true
	}
	if tb.spec.Rows {
		return !later(commit, tb.applied[1])
	}
	return !later(commit, tb.applied[0])
}

// over is how far memory is above the limit.
func (t *Tables) over() int64 {
	if t.limit <= 0 {
		return 0
	}
	return t.pool.used - t.limit
}

// Hold accounts n bytes (negative: no more) that an operator keeps beside its tables until it probes them, as if they were rows. Nothing is held over an
// epoch's end.
func (t *Tables) Hold(n int64) {
	t.held += n
	if n > 0 {
		t.pool.take(n)
	} else {
		t.pool.give(-n)
	}
}

// EpochLimit is how much one epoch may change of a table, or an operator collect, where it cannot be brought to files (see SpillBytes), in bytes: beyond
// this the job stops, and its neighbours and the node do not.
func (t *Tables) EpochLimit() int64 {
	if t.epochBytes > 0 {
		return t.epochBytes
	}
	return min(max(4*t.limit, 512<<20), 1<<30)
}

// Batch is how many keys it pays to probe at once in a table that is not complete in memory: the more, the closer they lie in the
// database, and the cheaper each is. They take at most about an eighth of the memory.
func (t *Tables) Batch() int {
	const most, least, rowBytes = 64 << 10, 1 << 10, 256
	if t.limit <= 0 {
		return most
	}
	return int(min(max(t.limit/8/rowBytes, least), most))
}

// nearRows is how many rows to each missing key a table has at most for these to be near: the levels of the database above the last one then have
// so few for each that several keys share a block there.
const nearRows = 50

// plan says how n missing keys are best looked for in the database. present: the table's own filters say that nearly all are there.
// near: also, they lie so close to each other that going from one to the next in all levels of the database is cheaper than to ask the
// filters of each level about each key.
func (tb *table) plan(n int) (present, near bool) {
	stored := 0
	for _, w := range tb.parts {
		if !w.known {
			return false, false
		}
		stored += w.filter.keys()
	}
	return true, stored < nearRows*n
}

// Complete says that no key of the table needs to be looked for in the database.
func (tb *table) Complete() bool {
	if !tb.opened {
		return false
	}
	for _, w := range tb.parts {
		if !w.complete() {
			return false
		}
	}
	return true
}

// makeRoom is eviction within an epoch: of the table that is about to be probed only, whose refs end with that.
func (tb *table) makeRoom() error {
	if tb.changing > tb.EpochLimit() && !tb.spec.Ephemeral {
		return tb.TooMuch("the state of " + tb.spec.Name)
	}
	if tb.over() > 0 && !tb.spec.Ephemeral && len(tb.parts) > 0 && tb.live() > tb.limit {
		tb.sort.evict(max(16, 4096/len(tb.parts)))
	}
	return tb.err
}

func (t *Tables) live() (n int64) {
	n = t.epochArena.held
	for _, e := range t.list {
		for _, w := range e.parts {
			n += w.live()
		}
	}
	return n
}

// Evict brings memory down to the limit as far as what is applied allows, between epochs (after EndEpoch). It returns how many
// bytes it is still over the limit: the caller then lets the applier apply (ApplyState, Publish), and calls it again.
func (t *Tables) Evict() (over int64) {
	if t.over() <= 0 {
		t.stuck = false
		return 0
	}
	if len(t.touched) > 0 {
		for _, tb := range t.touched {
			if tb.sort.dirty() {
				panic("state: Evict within an epoch")
			}
		}
	}
	t.nextGeneration()
	t.learnApplied()
	if t.stuck && t.stuckApplied == t.applied && t.pool.used < t.stuckUsed+t.limit/16 {
		return t.over() // all that is left waits for the applier: do not look at every row again
	}
	target := t.limit - t.limit/8
	for range 3 {
		t.evictTo(target)
		if t.over() > 0 {
			t.compact()
		}
		if t.over() <= 0 {
			t.stuck = false
			return 0
		}
		target -= t.over() + t.limit/16 // the slack of the arenas is more than that eighth
	}
	t.stuck, t.stuckApplied, t.stuckUsed = true, t.applied, t.pool.used
	return t.over()
}

// evictTo evicts until what is live is below the target, as far as it can.
func (t *Tables) evictTo(target int64) {
	// Two rounds over all rows: the first takes the mark of use away, the second takes the row.
	const steps = 8
	for i := 0; i < 2*steps && t.live() > target; i++ {
		for _, e := range t.list {
			if e.spec.Ephemeral {
				continue
			}
			most := 0
			for _, w := range e.parts {
				most = max(most, len(w.index.slots))
			}
			e.sort.evict(most/steps + minSlots)
		}
	}
}

// compact rebuilds the arenas of which much is free, the emptiest first, until memory is below the limit.
func (t *Tables) compact() {
	type loose struct {
		e    *table
		w    *part
		free int64
	}
	var all []loose
	for _, e := range t.list {
		for _, w := range e.parts {
			if free := w.arena.held - w.arena.live; free > w.arena.held/16 && free >= 4<<10 {
				all = append(all, loose{e, w, free})
			}
		}
	}
	slices.SortFunc(all, func(a, b loose) int {
		switch { // share that is free, descending
		case a.free*b.w.arena.held > b.free*a.w.arena.held:
			return -1
		case a.free*b.w.arena.held < b.free*a.w.arena.held:
			return 1
		}
		return 0
	})
	for _, l := range all {
		if t.over() <= 0 {
			return
		}
		l.e.sort.compact(l.w)
	}
}

// Drop closes a table (its job is gone) and gives its memory back; its rows in kv go by Changes.DropTable.
func (t *Tables) Drop(id uint32) {
	e := t.byID[id]
	if e == nil {
		return
	}
	delete(t.byID, id)
	t.discard(e)
}

func (t *Tables) discard(e *table) {
	e.sort.forget()
	e.discardFiles()
	for _, w := range e.parts {
		e.freePart(w)
	}
	e.parts = nil
	t.list = slices.DeleteFunc(t.list, func(o *table) bool { return o == e })
	t.touched = slices.DeleteFunc(t.touched, func(tb *table) bool { return tb == e })
}

// Close gives all memory back.
func (t *Tables) Close() {
	for _, e := range t.list {
		e.discardFiles()
	}
	t.pool.close()
	if t.pool.owned {
		t.pool.budget.Close()
	}
	t.list, t.byID, t.touched = nil, nil, nil
}

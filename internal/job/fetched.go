package job

import (
	"slices"
	"sync"
	"time"

	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/flow"
)

// lookAgain is when a partition outside is looked at again whose end is not known for sure.
const lookAgain = time.Second

// fetched is what an island remembers of one reader of a source outside between epochs.
type fetched struct {
	source   connector.Fetched
	relation uint64
	lastData []time.Time
	ends     []int64
	from     []int64
}

// outsideHealth are the sources outside that an island reads, for who wants to know how they are while epochs run.
type outsideHealth struct {
	mu      sync.Mutex
	sources map[uint64][]connector.Fetched // by relation
}

// gatherFetched cuts a source outside: what has been fetched, at whole transactions. come is how far readers before this one read the same source: a
// reader that catches up with them stops where they do, so that one can go on for both.
func (x *island) gatherFetched(in *input, r *flow.Reader, come map[uint64][]int64, now time.Time) {
	f := x.fetched[r.ID]
	if f == nil {
		f = &fetched{source: r.Source.(connector.Fetched), relation: r.Relation}
		x.fetched[r.ID] = f
		x.health.mu.Lock()
		if x.health.sources == nil {
			x.health.sources = map[uint64][]connector.Fetched{}
		}
		x.health.sources[r.Relation] = append(x.health.sources[r.Relation], f.source)
		x.health.mu.Unlock()
	}
	f.from = f.from[:0]
	for _, p := range r.State.Partitions {
		f.from = append(f.from, p.Offset)
	}
	f.ends = f.source.Fetch(f.from, x.watcher.Wake, f.ends[:0])
	for len(f.lastData) < len(f.ends) {
		f.lastData = append(f.lastData, now)
	}
	lagging := int64(0)
	for p, end := range f.ends {
		if end > offsetOf(r, p) {
			lagging++
		}
	}
	share := max(x.pace.records/max(lagging, 1), 1)
	before, follows := come[r.Relation]
	at := make([]int64, len(f.ends))
	for p, end := range f.ends {
		from := offsetOf(r, p)
		at[p] = from
		if end > from+share {
			end = min(end, f.source.Cut(p, from, from+share))
		}
		if follows && p < len(before) && from <= before[p] {
			end = min(end, before[p])
		}
		if end <= from {
			continue
		}
		at[p] = end
		in.reads = append(in.reads, flow.Read{Reader: r.ID, Partition: p, From: from, To: end})
		in.records += end - from
		f.lastData[p] = now
	}
	if !follows {
		come[r.Relation] = at
	}
}

// ripe tells whether an epoch, if only an empty one, makes a job readable that was waiting for a source outside; mu is held.
func (x *island) ripe() bool {
	if len(x.fetched) == 0 {
		return false
	}
	return slices.ContainsFunc(x.building, func(id uint64) bool {
		j := x.m.job(id)
		return j != nil && !j.isLive() && x.caughtUp(j)
	})
}

// letGo ends a reader's fetching; mu is held.
func (x *island) letGo(reader int, f *fetched) {
	delete(x.fetched, reader)
	x.health.mu.Lock()
	list := slices.DeleteFunc(x.health.sources[f.relation], func(s connector.Fetched) bool { return s == f.source })
	x.health.sources[f.relation] = list
	x.health.mu.Unlock()
	x.m.closing.Go(func() {
		if err := f.source.Close(); err != nil {
			x.m.log.Warn("closing a source", "err", err)
		}
	})
}

// outside is how the sources outside are that a job reads; nil when there are none.
func (x *island) outside(relations []uint64) *connector.Health {
	x.health.mu.Lock()
	defer x.health.mu.Unlock()
	var out *connector.Health
	for _, id := range relations {
		for _, s := range x.health.sources[id] {
			h := s.Health()
			if out == nil {
				out = &connector.Health{}
			}
			out.Lag += h.Lag
			if out.Err == nil && h.Err != nil {
				out.Err, out.Since = h.Err, h.Since
			}
		}
	}
	return out
}

func offsetsOf(r *flow.Reader) []int64 {
	out := make([]int64, len(r.State.Partitions))
	for i := range out {
		out[i] = r.State.Partitions[i].Offset
	}
	return out
}

package job

import (
	"slices"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/connector"
	"github.com/leat-io/leat/internal/flow"
)

const (
	// idleTimeout is how long nothing must have been appended to a partition that has been read to its end until it holds no watermark back.
	idleTimeout = 5 * time.Second
	// drift is how far, in event time, a partition may be read ahead of the one that is furthest behind, in microseconds.
	drift = int64(10 * time.Minute / time.Microsecond)
)

// LogSource is a source over partitions of the embedded log. Its positions are offsets, and its cuts split no journal unit.
type LogSource interface {
	connector.Source
	// LogPartitions are the partitions as they are now; none while the topic does not exist.
	LogPartitions() []*broker.Partition
}

// PacedSource is a source whose ends move with the clock, without anybody telling.
type PacedSource interface {
	connector.Source
	// NextAt is when there will be more to read than now.
	NextAt(now time.Time) time.Time
}

// input is what an epoch will read.
type input struct {
	reads   []flow.Read
	idle    []flow.Idle
	advance []flow.Advance
	records int64
	wakeAt  time.Time // when there will be something without new records, zero if never
}

func (in *input) empty() bool { return len(in.reads) == 0 && len(in.idle) == 0 && len(in.advance) == 0 }

func (in *input) wake(at time.Time) {
	if in.wakeAt.IsZero() || at.Before(in.wakeAt) {
		in.wakeAt = at
	}
}

// watched is what an island remembers of one reader's partitions between epochs.
type watched struct {
	partitions []*broker.Partition
	lastData   []time.Time
}

// cutGroup is a set of readers over distinct partitions of the log, whose ends are taken at one instant. Two readers of one partition (two
// sources over one topic, or one that is still catching up) are in different groups.
type cutGroup struct {
	reader  *broker.Reader
	members []cutMember
}

// cutMember is one partition of a group: place i of its broker.Reader.
type cutMember struct {
	reader    int // of the island
	partition int
}

// regroup builds the cut groups anew after the readers have changed; mu is held. New registrations are made before old ones go, so that the
// broker forgets nothing in between.
func (x *island) regroup() {
	old := x.groups
	x.groups = nil
	type pending struct {
		parts   []*broker.Partition
		from    []int64
		members []cutMember
		jobs    []uint64
		used    map[*broker.Partition]bool
	}
	var groups []*pending
	for _, r := range x.flow.Readers() {
		w := x.watch(r)
		if w == nil || len(w.partitions) == 0 {
			continue
		}
		var g *pending
		for _, c := range groups {
			free := true
			for _, p := range w.partitions {
				free = free && !c.used[p]
			}
			if free {
				g = c
				break
			}
		}
		if g == nil {
			g = &pending{used: map[*broker.Partition]bool{}}
			groups = append(groups, g)
		}
		g.jobs = append(g.jobs, r.Jobs...)
		for i, p := range w.partitions {
			g.used[p] = true
			g.parts = append(g.parts, p)
			g.members = append(g.members, cutMember{reader: r.ID, partition: i})
			from := int64(0)
			if i < len(r.State.Partitions) {
				from = r.State.Partitions[i].Offset
			}
			g.from = append(g.from, from)
		}
	}
	for _, g := range groups {
		reader := x.m.o.Broker.NewReader(g.parts, g.from)
		reader.SetName(x.namesOf(g.jobs))
		x.groups = append(x.groups, cutGroup{reader: reader, members: g.members})
	}
	for _, g := range old {
		g.reader.Close()
	}
}

// namesOf are the names of jobs for a message, not too many.
func (x *island) namesOf(jobs []uint64) string {
	var names []string
	for _, id := range slices.Compact(slices.Sorted(slices.Values(jobs))) {
		if len(names) == 5 {
			names = append(names, "...")
			break
		}
		if r := x.m.Catalog().Relation(id); r != nil {
			names = append(names, r.QualifiedName())
		} else if j := x.m.job(id); j != nil { // it is being made
			names = append(names, j.relation.QualifiedName())
		}
	}
	return strings.Join(names, ", ")
}

// watch keeps a reader's partitions watched, new ones included; nil for a source that is not over the log.
func (x *island) watch(r flow.Reader) *watched {
	log, ok := r.Source.(LogSource)
	if !ok {
		return nil
	}
	w := x.watched[r.ID]
	if w == nil {
		w = &watched{}
		x.watched[r.ID] = w
	}
	now := x.m.o.Clock.Now()
	parts := log.LogPartitions() // fewer than before if the topic is gone: see stopMistaken
	for _, p := range parts[min(len(w.partitions), len(parts)):] {
		p.Watch(x.watcher, broker.EdgeAppended)
		w.partitions = append(w.partitions, p)
		w.lastData = append(w.lastData, now)
	}
	return w
}

// unwatch forgets readers that are gone; mu is held.
func (x *island) unwatch() {
	there := map[int]bool{}
	for _, r := range x.flow.Readers() {
		there[r.ID] = true
	}
	for id, w := range x.watched {
		if there[id] && !x.closed {
			continue
		}
		for _, p := range w.partitions {
			p.Unwatch(x.watcher, broker.EdgeAppended)
		}
		delete(x.watched, id)
	}
	for id, f := range x.fetched {
		if !there[id] || x.closed {
			x.letGo(id, f)
		}
	}
}

// outdated tells whether the cut groups are not those of the readers any more: a source has partitions that its reader's group lacks (a topic
// was made, or grew), or a reader is gone because it has caught up with another one, which reads for both now.
func (x *island) outdated(readers []flow.Reader) bool {
	for id := range x.watched {
		if !slices.ContainsFunc(readers, func(r flow.Reader) bool { return r.ID == id }) {
			return true
		}
	}
	for id := range x.fetched {
		if !slices.ContainsFunc(readers, func(r flow.Reader) bool { return r.ID == id }) {
			return true
		}
	}
	for _, r := range readers {
		if log, ok := r.Source.(LogSource); ok {
			w := x.watched[r.ID]
			if w == nil || len(log.LogPartitions()) > len(w.partitions) {
				return true
			}
		}
	}
	return false
}

// gather decides what the next epoch reads; mu is held.
func (x *island) gather(now time.Time) (*input, error) {
	readers := x.flow.Readers()
	stopped, err := x.stopMistaken(readers)
	if err != nil {
		return nil, err
	}
	if stopped || x.outdated(readers) {
		x.regroup()
		x.unwatch()
		readers = x.flow.Readers()
	}
	byID := make(map[int]*flow.Reader, len(readers))
	for i := range readers {
		byID[readers[i].ID] = &readers[i]
	}
	in := &input{}
	taken := map[*broker.Partition]int64{} // how far the groups before read each partition in this epoch
	for _, g := range x.groups {
		x.gatherGroup(in, g, byID, taken, now)
	}
	come := map[uint64][]int64{} // how far the readers before read each source that is fetched
	for i := range readers {
		switch readers[i].Source.(type) {
		case LogSource:
		case connector.Fetched:
			x.gatherFetched(in, &readers[i], come, now)
		default:
			x.gatherOther(in, &readers[i], now)
		}
	}
	for i := range readers {
		x.gatherNew(in, &readers[i])
	}
	x.due = x.due || x.ripe()
	for i := range readers {
		x.gatherIdle(in, &readers[i], now)
	}
	return in, nil
}

func offsetOf(r *flow.Reader, partition int) int64 {
	if partition < len(r.State.Partitions) {
		return r.State.Partitions[partition].Offset
	}
	return 0
}

func maxTimeOf(r *flow.Reader, partition int) int64 {
	if partition < len(r.State.Partitions) {
		return r.State.Partitions[partition].MaxTime
	}
	return noTime
}

func (x *island) gatherGroup(in *input, g cutGroup, readers map[int]*flow.Reader, taken map[*broker.Partition]int64, now time.Time) {
	parts := g.reader.Partitions()
	from := make([]int64, len(parts))
	behind := noTime // event time of the partition that is furthest behind among those with data
	lagging := int64(0)
	for i, c := range g.members {
		from[i] = offsetOf(readers[c.reader], c.partition)
		if parts[i].Decided() > from[i] {
			lagging++
			if t := maxTimeOf(readers[c.reader], c.partition); t != noTime && (behind == noTime || t < behind) {
				behind = t
			}
		}
	}
	if lagging == 0 {
		return
	}
	share := max(x.pace.records/lagging, 1)
	limits := make([]int64, len(parts))
	for i, c := range g.members {
		limits[i] = from[i] + share
		if t := maxTimeOf(readers[c.reader], c.partition); behind != noTime && t > behind+drift {
			limits[i] = from[i] // it waits until the others have come closer
		}
		if end, ok := taken[parts[i]]; ok {
			limits[i] = min(limits[i], max(end, from[i]))
		}
		limits[i] = wholeBatches(parts[i], from[i], limits[i])
	}
	for i, end := range g.reader.Cut(limits) {
		c := g.members[i]
		if _, ok := taken[parts[i]]; !ok {
			taken[parts[i]] = max(end, from[i])
		}
		if end <= from[i] {
			continue
		}
		in.reads = append(in.reads, flow.Read{Reader: c.reader, Partition: c.partition, From: from[i], To: end})
		in.records += end - from[i]
		x.watched[c.reader].lastData[c.partition] = now
	}
}

// wholeBatches moves a limit to an end of a batch: a statement's records in one partition are one batch, which no epoch may split. It moves
// down, or up if nothing would be left.
func wholeBatches(p *broker.Partition, from, limit int64) int64 {
	if limit <= from || limit >= p.Decided() {
		return limit
	}
	c, err := p.Read(limit, 1, broker.ViewAppended, true)
	if err != nil {
		return limit // reading it will meet the same error, and say so
	}
	defer c.Release()
	if c.First > from {
		return min(c.First, limit)
	}
	return max(c.Next, limit)
}

// gatherOther cuts a source that is not over the log.
func (x *island) gatherOther(in *input, r *flow.Reader, now time.Time) {
	ends := r.Source.Ends(nil)
	share := max(x.pace.records/int64(max(len(ends), 1)), 1)
	for p, end := range ends {
		from := offsetOf(r, p)
		if end = min(end, from+share); end > from {
			in.reads = append(in.reads, flow.Read{Reader: r.ID, Partition: p, From: from, To: end})
			in.records += end - from
		}
	}
	if paced, ok := r.Source.(PacedSource); ok {
		if at := paced.NextAt(now); !at.IsZero() {
			in.wake(at)
		}
	}
}

// gatherNew has a reader know its partitions that have given nothing yet, in the first epoch that it reads others in: they hold its watermark back like those
// that were there, and as empty, when it began. What is late does not depend on which partition of a new topic is read first.
func (x *island) gatherNew(in *input, r *flow.Reader) {
	n := 0
	if w := x.watched[r.ID]; w != nil {
		n = len(w.partitions)
	} else if f := x.fetched[r.ID]; f != nil {
		n = len(f.ends)
	}
	known := len(r.State.Partitions)
	if n <= known || !slices.ContainsFunc(in.reads, func(rd flow.Read) bool { return rd.Reader == r.ID }) {
		return
	}
	for p := known; p < n; p++ {
		in.idle = append(in.idle, flow.Idle{Reader: r.ID, Partition: p})
	}
}

// gatherIdle sets the idle flag of partitions that have been read to their end and have got nothing for the timeout. One that is behind is
// never idle, and neither is the last one that is active: then there is nothing that it holds back.
func (x *island) gatherIdle(in *input, r *flow.Reader, now time.Time) {
	var lastData []time.Time
	var read func(p int) bool // to the end
	if w := x.watched[r.ID]; w != nil {
		lastData = w.lastData
		read = func(p int) bool { return w.partitions[p].Appended() <= offsetOf(r, p) }
	} else if f := x.fetched[r.ID]; f != nil {
		lastData = f.lastData
		read = func(p int) bool { return f.source.AtEnd(p, offsetOf(r, p)) }
	}
	if len(lastData) < 2 {
		return
	}
	active := 0
	for p := range lastData {
		if !x.isIdle(r, p) {
			active++
		}
	}
	for p := range lastData {
		if active < 2 {
			return
		}
		if x.isIdle(r, p) {
			continue
		}
		if !read(p) {
			if x.fetched[r.ID] != nil {
				in.wake(now.Add(lookAgain)) // nobody tells when the cluster has said that there is no more
			}
			continue
		}
		due := lastData[p].Add(idleTimeout)
		if now.Before(due) {
			in.wake(due)
			continue
		}
		in.idle = append(in.idle, flow.Idle{Reader: r.ID, Partition: p, Idle: true})
		active--
	}
}

func (x *island) isIdle(r *flow.Reader, partition int) bool {
	return partition < len(r.State.Partitions) && r.State.Partitions[partition].Idle
}

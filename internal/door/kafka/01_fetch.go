package kafka

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/commitlog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Fetch (1)
//
// v4 is the first with record batches; v5 log start offset, v7 sessions (KIP-227), v9 leader epochs (KIP-320), v11 rack, v12 flexible, v13 topic
// ids (KIP-516), v15 replica state (replicas only), v16 node endpoints (never sent), v17 directory ids (replicas only), v18 high watermark of the
// client (replicas only).
//
// A fetch with nothing to return waits until min bytes are there or its time is up; an error of any partition ends the wait. The first partition that
// has something returns at least one batch, however large (KIP-74). The response is written by hand, since large pieces of it go from file to
// socket.
const keyFetch = 1

func init() { register(api{key: keyFetch, min: 4, max: 18}) }

// copyBelow is the size up to which records are copied into the response: a system call of their own would cost more, and the file is free again.
const copyBelow = 32 << 10

// Of one response so many bytes are copied freely. More are only while the memory of all connections has room, until they are sent: a client that takes
// its time then holds files, which it shares with others, and no memory.
const copyFreely = 64 << 10

// fetched is one partition of a response.
type fetched struct {
	topic     *fetchTopic
	index     int32
	code      int16
	high      int64
	stable    int64
	start     int64
	aborted   []commitlog.AbortedTransaction // of what is returned, for readers of committed records
	records   []byte                         // small ones
	chunk     commitlog.Chunk                // large ones
	fromChunk bool
}

func (f *fetched) size() int {
	if f.fromChunk {
		return f.chunk.Len()
	}
	return len(f.records)
}

// fetchTopic is a topic as the client names it.
type fetchTopic struct {
	name string
	id   broker.TopicID
}

// fetchPartition is one partition that a client asks for, once or in a session.
type fetchPartition struct {
	topic    *fetchTopic
	index    int32
	offset   int64
	maxBytes int32
	epoch    int32
	p        *broker.Partition // nil: look it up

	// What the client was told last, for sessions:
	told        bool
	high, start int64
	failed      bool
}

// fetchResponse is a response that has been put together.
type fetchResponse struct {
	version   int16
	code      int16
	sessionID int32
	committed bool // the client asked for committed records only
	parts     []fetched

	memory *budget.Budget
	copied int   // bytes of records
	held   int64 // of the memory
}

// mayCopy takes what it needs to have n more bytes of records in the response, twice while it is put together.
func (r *fetchResponse) mayCopy(n int) bool {
	if r.copied += n; r.copied <= copyFreely {
		return true
	}
	if !r.memory.TryAcquire(2 * int64(n)) {
		r.copied -= n
		return false
	}
	r.held += 2 * int64(n)
	return true
}

// heavy says that the response is to be sent and forgotten soon.
func (r *fetchResponse) heavy() bool { return r.held > 0 }

func (r *fetchResponse) release() {
	if r.held > 0 {
		r.memory.Release(r.held)
	}
	r.copied, r.held = 0, 0
	for i := range r.parts {
		if r.parts[i].fromChunk {
			r.parts[i].chunk.Release()
			r.parts[i].fromChunk = false
		}
	}
}

// fetch answers a fetch, waiting if need be.
func (c *conn) fetch(ctx context.Context, req *kmsg.FetchRequest) (response, error) {
	session, want, code := c.s.sessions.open(req)
	resp := &fetchResponse{version: req.Version, code: code, committed: req.IsolationLevel == 1, memory: c.s.memory}
	if code != 0 {
		return resp, nil
	}
	if session != nil {
		resp.sessionID = session.id
		defer session.mu.Unlock()
	}
	f := fetchRun{c: c, req: req, want: want, session: session, resp: resp}
	if err := f.run(ctx); err != nil {
		resp.release()
		return nil, err
	}
	return resp, nil
}

// fetchRun is one fetch while it is being worked on.
type fetchRun struct {
	c       *conn
	req     *kmsg.FetchRequest
	want    []*fetchPartition
	session *session
	resp    *fetchResponse
	left    int // bytes that still fit
	bytes   int
	failed  bool
	cut     bool // there is more than the limits let through
}

func (f *fetchRun) run(ctx context.Context) error {
	f.collect()
	if f.enough() || f.req.MaxWaitMillis <= 0 {
		f.remember()
		return nil
	}
	w := broker.NewWatcher()
	watched := make([]*broker.Partition, len(f.want))
	f.watch(w, watched)
	defer func() {
		for _, p := range watched {
			if p != nil {
				p.Unwatch(w, broker.EdgeDurable)
			}
		}
	}()
	timer := f.c.s.o.Clock.NewTimer(time.Duration(f.req.MaxWaitMillis) * time.Millisecond)
	defer timer.Stop()
	for late := false; ; {
		f.resp.release()
		f.collect()
		if f.watch(w, watched) && !f.enough() { // what came before it was watched wakes nobody
			f.resp.release()
			f.collect()
		}
		if late || f.enough() {
			f.remember()
			return nil
		}
		select {
		case <-w.C:
		case <-timer.C():
			late = true
		case <-ctx.Done():
			if !f.c.stopping.Load() {
				return ctx.Err()
			}
			late = true
		}
	}
}

// watch has w woken by the partitions that are read now: one whose topic was deleted and made again is another one. It reports whether there is
// one that was not watched.
func (f *fetchRun) watch(w *broker.Watcher, watched []*broker.Partition) (changed bool) {
	for i, fp := range f.want {
		if fp.p == watched[i] {
			continue
		}
		if watched[i] != nil {
			watched[i].Unwatch(w, broker.EdgeDurable)
		}
		if fp.p != nil {
			fp.p.Watch(w, broker.EdgeDurable)
			changed = true
		}
		watched[i] = fp.p
	}
	return changed
}

// enough reports whether the answer need not wait. What the client wants at least counts as far as it may have it at all: where there is more than fits,
// waiting would bring no more.
func (f *fetchRun) enough() bool {
	return f.failed || len(f.want) == 0 || f.bytes >= min(int(f.req.MinBytes), f.most()) || f.cut && f.bytes > 0
}

// most is how many bytes the answer may have, but for the one batch that it may always have.
func (f *fetchRun) most() int {
	most := int(f.c.s.o.MaxFetchBytes)
	if f.req.MaxBytes > 0 {
		most = min(most, int(f.req.MaxBytes))
	}
	return most
}

// collect reads what there is now.
func (f *fetchRun) collect() {
	f.resp.parts = f.resp.parts[:0]
	f.bytes, f.failed, f.cut = 0, false, false
	f.left = f.most()
	for _, fp := range f.want {
		out := f.read(fp)
		f.bytes += out.size()
		f.left -= out.size()
		f.failed = f.failed || out.code != 0
		if f.session.wants(fp, &out) {
			f.resp.parts = append(f.resp.parts, out)
		}
	}
}

// remember notes in the session what the client is about to be told.
func (f *fetchRun) remember() {
	if f.session == nil {
		return
	}
	i := 0
	for _, fp := range f.want {
		if i < len(f.resp.parts) && f.resp.parts[i].topic == fp.topic && f.resp.parts[i].index == fp.index {
			out := &f.resp.parts[i]
			fp.told, fp.high, fp.start, fp.failed = true, out.high, out.start, out.code != 0
			i++
		}
	}
	f.session.rotate()
}

// read reads one partition.
func (f *fetchRun) read(fp *fetchPartition) fetched {
	out := fetched{topic: fp.topic, index: fp.index, high: -1, stable: -1, start: -1}
	p, missing := f.find(fp)
	if missing != 0 {
		out.code = missing
		return out
	}
	if epoch := f.c.s.b.LeaderEpoch(); fp.epoch >= 0 && fp.epoch != epoch {
		out.code = kerr.FencedLeaderEpoch.Code
		if fp.epoch > epoch {
			out.code = kerr.UnknownLeaderEpoch.Code
		}
		return out
	}
	out.stable = p.StableOffset() // before the high watermark, so that it is never ahead of that
	high := p.HighWatermark()
	view := broker.ViewDurable
	if f.resp.committed {
		view = broker.ViewCommitted
	}
	end := high
	if f.resp.committed {
		end = min(high, out.stable)
	}
	limit := min(int(fp.maxBytes), f.left)
	first := f.bytes == 0
	var chunk commitlog.Chunk
	var err error
	switch {
	case limit > 0 || first:
		chunk, err = p.Read(fp.offset, max(limit, 0), view, first)
	case fp.offset > high || fp.offset < 0:
		err = broker.ErrOffsetOutOfRange
	}
	if err != nil {
		out.code = code(err)
		if out.code == kerr.UnknownServerError.Code {
			f.c.s.log.Error("a partition cannot be read", "partition", p.String(), "offset", fp.offset, "err", err)
		}
		return out
	}
	f.cut = f.cut || max(chunk.Next, fp.offset) < end
	if f.resp.committed && chunk.Len() > 0 {
		if out.aborted, err = p.Aborted(fp.offset, chunk.Next); err != nil {
			chunk.Release()
			out.code = code(err)
			return out
		}
		out.stable = max(out.stable, chunk.Next)
	}
	// Read again: it may have moved while the file was read, and must not be behind the records.
	out.high = max(high, p.HighWatermark())
	if out.start, err = p.StartOffset(); err != nil {
		chunk.Release()
		out.code = code(err)
		return out
	}
	switch n := chunk.Len(); {
	case n == 0:
		chunk.Release()
	case n <= copyBelow && f.resp.mayCopy(n):
		out.records, err = chunk.AppendTo(make([]byte, 0, n))
		chunk.Release()
		if err != nil {
			f.c.s.log.Error("a partition cannot be read", "partition", p.String(), "offset", fp.offset, "err", err)
			out.records, out.code = nil, kerr.KafkaStorageError.Code
		}
	default:
		out.chunk, out.fromChunk = chunk, true
	}
	return out
}

// find looks the partition up, by id from v13 on. A topic that was made again under its name is another one.
func (f *fetchRun) find(fp *fetchPartition) (*broker.Partition, int16) {
	if fp.p != nil && !fp.p.Deleted() {
		return fp.p, 0
	}
	var t *broker.Topic
	var ok bool
	missing := kerr.UnknownTopicOrPartition.Code
	if f.req.Version >= 13 {
		t, ok = f.c.s.b.TopicByID(fp.topic.id)
		missing = kerr.UnknownTopicID.Code
	} else {
		t, ok = f.c.s.b.Topic(fp.topic.name)
	}
	if !ok {
		fp.p = nil
		return nil, missing
	}
	if fp.p = t.Partition(fp.index); fp.p == nil {
		return nil, kerr.UnknownTopicOrPartition.Code
	}
	return fp.p, 0
}

func (r *fetchResponse) appendTo(dst []byte) ([]byte, []part) {
	be := binary.BigEndian
	v, flexible := r.version, r.version >= 12
	dst = be.AppendUint32(dst, 0) // throttle
	if v >= 7 {
		dst = be.AppendUint16(dst, uint16(r.code))
		dst = be.AppendUint32(dst, uint32(r.sessionID))
	}
	var parts []part
	groups := r.byTopic()
	dst = appendArrayLen(dst, len(groups), flexible)
	for _, g := range groups {
		if v >= 13 {
			dst = append(dst, g[0].topic.id[:]...)
		} else {
			dst = appendString(dst, g[0].topic.name, flexible)
		}
		dst = appendArrayLen(dst, len(g), flexible)
		for i := range g {
			dst, parts = r.appendPartition(dst, parts, &g[i])
		}
		if flexible {
			dst = append(dst, 0)
		}
	}
	if flexible {
		dst = append(dst, 0)
	}
	return dst, parts
}

// byTopic cuts the partitions into runs of one topic. A topic may come twice, which the protocol allows.
func (r *fetchResponse) byTopic() [][]fetched {
	var out [][]fetched
	for i := 0; i < len(r.parts); {
		n := i + 1
		for n < len(r.parts) && r.parts[n].topic == r.parts[i].topic {
			n++
		}
		out = append(out, r.parts[i:n])
		i = n
	}
	return out
}

func (r *fetchResponse) appendPartition(dst []byte, parts []part, f *fetched) ([]byte, []part) {
	be := binary.BigEndian
	v, flexible := r.version, r.version >= 12
	dst = be.AppendUint32(dst, uint32(f.index))
	dst = be.AppendUint16(dst, uint16(f.code))
	dst = be.AppendUint64(dst, uint64(f.high))
	dst = be.AppendUint64(dst, uint64(f.stable))
	if v >= 5 {
		dst = be.AppendUint64(dst, uint64(f.start))
	}
	switch { // aborted transactions: null unless the client wants committed records only
	case r.committed:
		dst = appendArrayLen(dst, len(f.aborted), flexible)
		for i := range f.aborted {
			dst = be.AppendUint64(dst, uint64(f.aborted[i].ProducerID))
			dst = be.AppendUint64(dst, uint64(f.aborted[i].First))
			if flexible {
				dst = append(dst, 0)
			}
		}
	case flexible:
		dst = append(dst, 0)
	default:
		dst = be.AppendUint32(dst, 0xffffffff)
	}
	if v >= 11 {
		dst = be.AppendUint32(dst, 0xffffffff) // preferred read replica
	}
	dst = appendArrayLen(dst, f.size(), flexible)
	if f.fromChunk {
		parts = append(parts, part{at: len(dst), chunk: f.chunk})
	} else {
		dst = append(dst, f.records...)
	}
	if flexible {
		dst = append(dst, 0)
	}
	return dst, parts
}

package broker

import (
	"context"
	"time"

	"github.com/leat-io/leat/internal/vfs"
)

// ApplyRetention runs one pass of retention over every partition now; the broker does so by itself every RetentionInterval. The decision which
// segments go is the log's; what is not yet durable is never deleted.
func (b *Broker) ApplyRetention() {
	now := b.clock.Now()
	quiet := now.Add(-b.o.ProducerExpiry).UnixMilli()
	for _, t := range b.Topics() {
		for _, p := range t.partitions {
			if b.closed.Load() {
				return
			}
			p.retain(now, quiet)
		}
	}
}

func (b *Broker) retainAll() { b.ApplyRetention() }

func (p *Partition) retain(now time.Time, quietMs int64) {
	if p.Err() != nil || p.Appended() == 0 {
		return
	}
	if bytes, ok := p.log.AtRest(now); ok {
		p.b.size.Add(bytes - p.size.Swap(bytes))
		return
	}
	start, deleted, err := p.log.ApplyRetention(now, p.HighWatermark())
	if err != nil {
		p.b.log.Error("retention failed; the partition keeps its records", "partition", p.String(), "err", p.judge(err))
		return
	}
	if ps, err := p.log.Producers(); err == nil {
		p.b.journal.Sequence(func() { ps.Expire(quietMs) })
	}
	p.noteSize()
	if deleted > 0 {
		p.b.log.Info("retention deleted segments", "partition", p.String(), "segments", deleted, "start", start)
	}
}

const ballastName = "ballast"

// checkReserve looks at the free space and does what the policy decides.
func (b *Broker) checkReserve() {
	r := b.o.Reserve
	if r.MinFree <= 0 {
		return
	}
	free, err := b.freeSpace()
	if err != nil {
		b.log.Warn("cannot tell how much disk is free", "err", err)
		return
	}
	path := b.o.FS.PathJoin(b.o.Dir, ballastName)
	st, err := b.o.FS.Stat(path)
	state := reserveState{low: b.low.Load(), ballast: err == nil && st.Size() >= r.BallastBytes && r.BallastBytes > 0}
	next, action := r.decide(state, free)
	if next.low != state.low {
		if next.low {
			b.log.Error("the disk is nearly full: producing is refused until there is room", "free", free, "needed", r.MinFree)
		} else {
			b.log.Info("the disk has room again: producing resumes", "free", free)
		}
		b.low.Store(next.low)
	}
	switch action {
	case ballastDrop:
		err = b.o.FS.Remove(path)
	case ballastCreate:
		err = b.writeBallast(path)
	default:
		err = nil
	}
	if err != nil {
		b.log.Warn("the ballast file, kept for a full disk, cannot be changed", "file", path, "err", err)
	}
}

// roomPoll is how often an append that met a full disk is tried again.
const roomPoll = 50 * time.Millisecond

// passes says whether an error of the files is one that passes: the batch can be appended later.
func passes(err error) bool { return vfs.NoSpace(err) || vfs.NoDescriptors(err) }

// awaitRoom appends a batch that the disk had no room for, or the process no file descriptor, as soon as it has. The reserve is there so that this does not happen, but a disk can be
// filled by others, and faster than it is looked at. Until then nothing that is newer is acknowledged, and producing is refused. The batch is in
// the journal, so that nothing is lost by waiting, nor by a stop: Interrupt ends it.
func (b *Broker) awaitRoom(p *Partition, batch []byte, cause error) error {
	b.low.Store(true)
	if vfs.NoDescriptors(cause) {
		b.log.Error("there is no file descriptor left: producing is refused until there is one (raise the limit of open files, ulimit -n)", "partition", p.String(), "err", cause)
	} else {
		b.log.Error("the disk is full: producing is refused until there is room", "partition", p.String(), "err", cause)
		if err := b.o.FS.Remove(b.o.FS.PathJoin(b.o.Dir, ballastName)); err != nil && !vfs.NotExist(err) {
			b.log.Warn("the ballast file cannot be removed", "err", err)
		}
	}
	for {
		timer := b.clock.NewTimer(roomPoll)
		select {
		case <-b.interrupt:
			timer.Stop()
			return cause
		case <-timer.C():
		}
		err := p.append(batch)
		if err == nil {
			if b.o.Reserve.MinFree <= 0 { // nobody else looks
				b.low.Store(false)
			}
			b.log.Info("there is room again")
			return nil
		}
		if !passes(err) {
			return err
		}
	}
}

// Interrupt ends a wait for room on a full disk, now and later: the node is to stop.
func (b *Broker) Interrupt() { b.interrupted.Do(func() { close(b.interrupt) }) }

func (b *Broker) freeSpace() (int64, error) {
	if b.o.Reserve.FreeSpace != nil {
		return b.o.Reserve.FreeSpace(b.o.Dir)
	}
	usage, err := b.o.FS.GetDiskUsage(b.o.Dir)
	return int64(min(usage.AvailBytes, 1<<62)), err
}

// writeBallast writes real bytes: a sparse file would reserve nothing.
func (b *Broker) writeBallast(path string) error {
	f, err := b.o.FS.Create(path, vfs.Unspecified)
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for left := b.o.Reserve.BallastBytes; left > 0 && err == nil; left -= int64(len(buf)) {
		_, err = f.Write(buf[:min(left, int64(len(buf)))])
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = b.o.FS.Remove(path)
	}
	return err
}

// producerIDs hands out ids of idempotent producers, a durable block at a time: an id is never given twice.
type producerIDs struct {
	mu        chan struct{} // a lock that can be waited for with a context
	next, end int64
}

const producerIDBlock = 1000

// ProducerID returns an id that no producer had before.
func (b *Broker) ProducerID(ctx context.Context) (int64, error) {
	select {
	case b.ids.mu <- struct{}{}:
		defer func() { <-b.ids.mu }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if b.ids.next == b.ids.end {
		end := b.ids.end + producerIDBlock
		if err := b.commitMeta(ctx, map[string][]byte{metaProducerID: formatInt(end)}); err != nil {
			return 0, err
		}
		b.ids.end = end
	}
	b.ids.next++
	return b.ids.next - 1, nil
}

package broker

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leat-io/leat/internal/commitlog"
	"github.com/leat-io/leat/internal/record"
)

// Partition is one partition of a topic. One that nobody uses is a few hundred bytes: its files are opened at the first touch.
type Partition struct {
	Index int32

	b       *Broker
	topic   atomic.Pointer[Topic]
	deleted atomic.Bool

	startMoved atomic.Bool // by DeleteRecords: the start is in the metadata

	// next is the offset of the next record to be ordered; under the journal's ordering lock.
	next int64

	// Moved under ends.mu, read anywhere:
	appended  atomic.Int64
	highWater atomic.Int64
	decided   atomic.Int64 // where the first transaction begins that is open as far as is appended, or appended
	stable    atomic.Int64 // the same as far as is durable
	size      atomic.Int64 // bytes of the files, as far as they were touched in this run

	undecided, unstable openTransactions // under ends.mu

	sized atomic.Bool // files that were not touched were looked at

	onAppend, onDurable watchers

	log    *commitlog.Log
	damage atomic.Pointer[error]
}

// Topic returns the topic that the partition belongs to.
func (p *Partition) Topic() *Topic { return p.topic.Load() }

// String is topic-partition, as Kafka writes it.
func (p *Partition) String() string { return p.Topic().Name + "-" + strconv.Itoa(int(p.Index)) }

// Deleted reports whether the topic was deleted.
func (p *Partition) Deleted() bool { return p.deleted.Load() }

// Appended is the end of what is appended, durable or not; the engine may read up to here, since what it commits comes later in the same
// journal.
func (p *Partition) Appended() int64 { return p.appended.Load() }

// HighWatermark is the end of what is durable; clients read up to here.
func (p *Partition) HighWatermark() int64 { return p.highWater.Load() }

// Bytes is the size of the partition's files. One that was not used in this run is looked at, and not opened.
func (p *Partition) Bytes() int64 {
	if n := p.size.Load(); n > 0 || p.Appended() == 0 {
		return n
	}
	fs, dir := p.b.o.FS, p.b.o.FS.PathJoin(p.b.o.Dir, p.String())
	names, err := fs.List(dir)
	if err != nil {
		return 0
	}
	n := int64(0)
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		if st, err := fs.Stat(fs.PathJoin(dir, name)); err == nil {
			n += st.Size()
		}
	}
	return n
}

// Err returns why the partition is out of service, or nil.
func (p *Partition) Err() error {
	if p.deleted.Load() {
		return fmt.Errorf("%w: %s", ErrUnknownTopic, p)
	}
	if e := p.damage.Load(); e != nil {
		return *e
	}
	return nil
}

// View says how far a reader may see.
type View uint8

const (
	ViewDurable   View = iota // up to the high watermark
	ViewAppended              // up to what is appended
	ViewCommitted             // up to the last stable offset
)

// End is where a view ends.
func (p *Partition) End(v View) int64 {
	switch v {
	case ViewAppended:
		return p.Appended()
	case ViewCommitted:
		return p.StableOffset()
	}
	return p.HighWatermark()
}

// Read returns whole batches from the one that holds offset on, at most maxBytes of them, or one if atLeastOne. At the end of the view the
// chunk is empty. The chunk must be released. ErrOffsetOutOfRange: offset is below the start or behind the end.
func (p *Partition) Read(offset int64, maxBytes int, v View, atLeastOne bool) (commitlog.Chunk, error) {
	if err := p.Err(); err != nil {
		return commitlog.Chunk{}, err
	}
	end := p.End(v)
	if v == ViewCommitted && offset > end && offset <= p.HighWatermark() {
		return commitlog.Chunk{}, nil // there, and not decided yet
	}
	if offset < 0 || offset > end {
		return commitlog.Chunk{}, fmt.Errorf("%w: %s has nothing at %d, it ends at %d", ErrOffsetOutOfRange, p, offset, end)
	}
	if start := p.log.StartOffset(); offset < start {
		return commitlog.Chunk{}, fmt.Errorf("%w: %s starts at %d, so %d to %d are gone", ErrOffsetOutOfRange, p, start, offset, start-1)
	}
	if offset == end {
		return commitlog.Chunk{}, nil
	}
	c, err := p.log.Read(offset, maxBytes, end, atLeastOne)
	if err != nil {
		return commitlog.Chunk{}, p.judge(err)
	}
	return c, nil
}

// judge turns an error of the files into one of the partition: damage takes the partition, and nothing else, out of service.
func (p *Partition) judge(err error) error {
	switch {
	case errors.Is(err, commitlog.ErrOffsetOutOfRange):
		return fmt.Errorf("%w: %s: %w", ErrOffsetOutOfRange, p, err)
	case errors.Is(err, commitlog.ErrCorrupt):
		return p.fail(err)
	}
	return fmt.Errorf("%s: %w", p, err)
}

// fail takes the partition out of service and says so once.
func (p *Partition) fail(cause error) error {
	err := fmt.Errorf("%w: %s: %w", ErrDamaged, p, cause)
	if p.damage.CompareAndSwap(nil, &err) {
		if p.b.recovered.Load() { // before, its topic may be found deleted
			p.complain(err)
		}
		p.onAppend.wake()
		p.onDurable.wake()
		return err
	}
	return *p.damage.Load()
}

func (p *Partition) complain(err error) {
	p.b.log.Error("a partition is out of service; the others go on", "topic", p.Topic().Name, "partition", p.Index, "err", err)
}

// StartOffset is the offset of the oldest record there is.
func (p *Partition) StartOffset() (int64, error) {
	if err := p.Err(); err != nil {
		return 0, err
	}
	return p.log.StartOffset(), nil
}

// OffsetForTime returns the first record, below the end of the view, whose timestamp is at or after ms. ok is false when there is none.
func (p *Partition) OffsetForTime(ms int64, v View) (offset, timestamp int64, ok bool, err error) {
	if err := p.Err(); err != nil {
		return 0, 0, false, err
	}
	offset, timestamp, err = p.log.OffsetForTime(ms, p.End(v))
	if err != nil {
		return 0, 0, false, p.judge(err)
	}
	return offset, timestamp, offset >= 0, nil
}

// MaxTimestamp returns the record with the largest timestamp below the end of the view. ok is false when there are no records.
func (p *Partition) MaxTimestamp(v View) (offset, timestamp int64, ok bool, err error) {
	if err := p.Err(); err != nil {
		return 0, 0, false, err
	}
	offset, timestamp, err = p.log.MaxTimestamp(p.End(v))
	if err != nil {
		return 0, 0, false, p.judge(err)
	}
	return offset, timestamp, offset >= 0, nil
}

// EndOfEpoch answers OffsetForLeaderEpoch (KIP-320): the largest epoch at or below the given one that wrote here, and where it ends. Epoch -1
// means that none did, or that its records are gone. Epochs only grow along a partition and are in its batches, so nothing else is kept.
func (p *Partition) EndOfEpoch(epoch int32) (found int32, end int64, err error) {
	if err := p.Err(); err != nil {
		return -1, -1, err
	}
	high := p.HighWatermark()
	if epoch >= p.b.epoch {
		return p.b.epoch, high, nil
	}
	// lo: everything below was written at or below the epoch; hi: everything from there on after it.
	lo, hi, found := p.log.StartOffset(), high, int32(-1)
	for lo < hi {
		at, next, e, err := p.batchAt(lo+(hi-lo)/2, high)
		if err != nil {
			return -1, -1, err
		}
		if e > epoch {
			hi = min(lo+(hi-lo)/2, at) // what lies before the batch may have been compacted away
			if at < lo {
				break
			}
		} else {
			lo, found = next, max(found, e)
		}
	}
	if found < 0 {
		return -1, -1, nil
	}
	return found, min(lo, high), nil
}

// batchAt returns where the batch that holds offset begins and ends, and its leader epoch.
func (p *Partition) batchAt(offset, limit int64) (base, next int64, epoch int32, err error) {
	c, err := p.log.Read(offset, 1, limit, true)
	if err != nil {
		return 0, 0, 0, p.judge(err)
	}
	defer c.Release()
	raw, err := c.AppendTo(nil)
	if err != nil {
		return 0, 0, 0, p.judge(err)
	}
	h, err := record.ParseHeader(raw)
	if err != nil {
		return 0, 0, 0, p.judge(err)
	}
	return h.BaseOffset, max(h.NextOffset(), offset+1), h.LeaderEpoch, nil
}

// noteSize keeps the sum over all partitions in step.
func (p *Partition) noteSize() {
	now, err := p.log.Size()
	if err == nil {
		p.b.size.Add(now - p.size.Swap(now))
	}
}

// logConfig is what the settings mean for the log of partition index.
func (s settings) logConfig(index int32) commitlog.Config {
	if most := min(s.segmentJitterMs, s.segmentMs-1); most > 0 {
		// Segments of partitions that were made together need not all end together. Any spread will do, as long as a restart does not change it.
		s.segmentMs -= int64(uint64(index+1)*0x9e3779b97f4a7c15>>1) % (most + 1)
	}
	c := commitlog.Config{
		SegmentBytes: s.segmentBytes, SegmentAge: milliseconds(s.segmentMs), IndexIntervalBytes: int(s.indexInterval),
	}
	if s.compacted {
		c.Compact, c.DeleteRetention, c.MinCompactionLag = true, milliseconds(s.deleteRetentionMs), milliseconds(s.minLagMs)
		if s.maxLagMs < math.MaxInt64 {
			c.MaxCompactionLag = milliseconds(s.maxLagMs)
		}
	}
	if s.deletes { // a topic that is only compacted keeps the last value of every key for ever
		c.RetentionBytes, c.Retention = s.retentionBytes, milliseconds(s.retentionMs)
		if s.retentionMs == 0 {
			c.Retention = 1 // the setting means: at once
		}
		if s.retentionBytes == 0 {
			c.RetentionBytes = 1 // likewise; the log knows 0 as no bound
		}
	}
	return c
}

// milliseconds converts without overflow; Kafka's "never" is the largest int64.
func milliseconds(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

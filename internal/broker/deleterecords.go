package broker

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
)

// Deletion asks that a partition's records below an offset be gone, and says what became of it.
type Deletion struct {
	P      *Partition
	Before int64 // -1: the high watermark

	Start int64 // the partition's first offset from now on
	Err   error
}

// startPrefix is where the starts of partitions are stored that were moved by deletions: "log-start/" topic id "/" partition. Retention needs no such
// thing: what it takes away is files.
const startPrefix = "log-start/"

func startKey(p *Partition) string {
	return startPrefix + p.Topic().ID.String() + "/" + strconv.Itoa(int(p.Index))
}

// DeleteRecordsOfClient is DeleteRecords for a client, who may not take away what is in use.
func (b *Broker) DeleteRecordsOfClient(ctx context.Context, ds []Deletion) {
	b.deleteRecords(ctx, ds, b.allowed)
}

// DeleteRecords takes records away, all in one journal unit. When it returns the new starts are durable and nobody reads what is below them; the files go with
// the next pass of retention.
func (b *Broker) DeleteRecords(ctx context.Context, ds []Deletion) { b.deleteRecords(ctx, ds, nil) }

func (b *Broker) deleteRecords(ctx context.Context, ds []Deletion, check TopicCheck) {
	b.ddl.Lock()
	defer b.ddl.Unlock()
	u := journal.NewUnit()
	for i := range ds {
		d := &ds[i]
		if check != nil {
			d.Err = check(d.P.Topic(), TopicChange{Records: true})
		}
		if d.Err == nil {
			d.Err = d.check()
		}
		if d.Err != nil {
			continue
		}
		if d.Before > d.P.log.StartOffset() {
			kv.AppendMeta(u, startKey(d.P), formatInt(d.Before))
		}
	}
	var err error
	if u.Len() == 0 {
		u.Free()
	} else {
		var lsn journal.LSN
		if lsn, err = b.journal.Commit(u, nil); err == nil {
			err = b.journal.Wait(context.WithoutCancel(ctx), lsn)
		}
	}
	for i := range ds {
		d := &ds[i]
		if d.Err != nil {
			continue
		}
		if d.Err = err; err == nil {
			d.P.startMoved.Store(true)
			d.Err = d.P.log.SetStartOffset(d.Before)
			d.Start = d.P.log.StartOffset()
		}
	}
}

func (d *Deletion) check() error {
	if err := d.P.Err(); err != nil {
		return err
	}
	if s := &d.P.Topic().settings; s.compacted && !s.deletes {
		return fmt.Errorf("%w: %s is compacted only; cleanup.policy must have delete", ErrPolicy, d.P)
	}
	high := d.P.HighWatermark()
	if d.Before == -1 {
		d.Before = high
	}
	if d.Before < 0 || d.Before > high {
		return fmt.Errorf("%w: %s has nothing at %d, it ends at %d", ErrOffsetOutOfRange, d.P, d.Before, high)
	}
	d.Before = max(d.Before, d.P.log.StartOffset())
	return nil
}

// loadStarts moves the starts of partitions to where deletions have put them.
func (b *Broker) loadStarts(ctx context.Context) error {
	stale := map[string][]byte{}
	err := b.kv.ScanMeta(startPrefix, func(key string, value []byte) error {
		name, index, _ := strings.Cut(strings.TrimPrefix(key, startPrefix), "/")
		id, err := parseTopicID(name)
		if err != nil {
			return fmt.Errorf("metadata key %q: %w", key, err)
		}
		n, err := strconv.ParseInt(index, 10, 32)
		if err != nil {
			return fmt.Errorf("metadata key %q is malformed: %w", key, err)
		}
		at, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return fmt.Errorf("the value of metadata key %q is malformed: %w", key, err)
		}
		t, ok := b.TopicByID(id)
		if !ok {
			stale[key] = nil
			return nil
		}
		p := t.Partition(int32(n))
		if p == nil {
			return nil
		}
		p.startMoved.Store(true)
		// A partition whose files were lost ends before it; it is damaged, and says so when it is used.
		if at <= p.log.EndOffset() {
			return p.log.SetStartOffset(at)
		}
		return nil
	})
	if err != nil || len(stale) == 0 {
		return err
	}
	return b.commitMeta(ctx, stale)
}

// forgetStarts adds to the unit of a topic's deletion what is stored of its partitions' starts.
func (t *Topic) forgetStarts(u *journal.Unit) {
	for _, p := range t.partitions {
		if p.startMoved.Load() {
			kv.AppendMeta(u, startKey(p), nil)
		}
	}
}

package broker

import (
	"context"
	"fmt"
	"strings"

	"github.com/leat-io/leat/internal/journal"
)

// PrepareCheckpoint makes durable, outside the journal, all that the broker keeps in files: when it returns, batches of units up to and including
// the LSN are in synced partition files, and metadata is in the database (its Flush is the caller's). The caller may then recycle the journal
// before that LSN.
func (b *Broker) PrepareCheckpoint(ctx context.Context) (journal.LSN, error) {
	upTo := b.journal.Durable()
	var deleted uint64
	durable := func(ctx context.Context) error {
		deleted = b.deletions.Load() // those before the ends were taken, at least
		// Records are in the files before they are durable in the journal; an end that is remembered must not lie among those.
		if err := b.journal.Wait(ctx, b.journal.Ordered()); err != nil || deleted == b.flushed {
			return err
		}
		// A folder may be that of another topic now, of the same name. The database must know before the folder's end is remembered: a replay that began
		// with the old topic would take the files for leftovers of that one.
		return b.kv.Flush()
	}
	if err := b.logs.Sync(ctx, durable); err != nil {
		return 0, fmt.Errorf("broker: sync partition files: %w", err)
	}
	b.flushed = deleted
	b.ends.mu.Lock()
	b.ends.trim()
	empty := len(b.ends.units) == 0
	raw := b.ends.appendUnits(nil)
	b.ends.mu.Unlock()
	_, stored, err := b.kv.GetMeta(metaUnits)
	if err != nil {
		return 0, fmt.Errorf("broker: %w", err)
	}
	switch {
	case !empty:
		err = b.commitMeta(ctx, map[string][]byte{metaUnits: raw})
	case stored:
		err = b.commitMeta(ctx, map[string][]byte{metaUnits: nil})
	}
	if err != nil {
		return 0, fmt.Errorf("broker: store atomic units: %w", err)
	}
	return upTo, nil
}

// finishRecovery brings memory to where the journal ended. The files are there already: each log was cut at its remembered end when it was first touched, and
// the replay brought the rest.
func (b *Broker) finishRecovery() error {
	if err := b.loadTopics(); err != nil {
		return err
	}
	b.ends.mu.Lock()
	b.ends.partial, b.ends.waiting = nil, nil
	b.ends.mu.Unlock()
	known := map[string]bool{}
	b.recovered.Store(true)
	for _, t := range b.Topics() {
		for _, p := range t.partitions {
			if err := p.damage.Load(); err != nil {
				p.complain(*err)
			}
			known[p.String()] = true
			p.appended.Store(p.next)
			p.highWater.Store(p.next)
			p.decided.Store(p.next)
			p.stable.Store(p.next)
			p.undecided, p.unstable = nil, nil
		}
	}
	names, err := b.logs.Names()
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	for _, name := range names {
		if known[name] || !strings.Contains(name, "-") {
			continue
		}
		b.log.Info("removing the files of a topic that was deleted", "folder", name)
		if err := b.logs.Remove(name); err != nil {
			return fmt.Errorf("broker: remove %s: %w", name, err)
		}
	}
	return nil
}

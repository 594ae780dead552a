package state

import (
	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
)

// A writer puts changes into kv, in batches of about limit bytes.
type writer struct {
	db    *kv.DB
	batch *kv.Batch
	size  int // of what is in the batch
	limit int

	afterBatch func() error // for tests: called between two batches
}

func newWriter(db *kv.DB, limit int) *writer {
	return &writer{db: db, batch: db.NewBatch(), limit: limit}
}

// row sets or deletes one.
func (w *writer) row(c *Change) error {
	if w.size > w.limit {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if c.Op == OpSet {
		w.batch.Set(c.Table, c.Prefix, c.Suffix, c.Value)
	} else {
		w.batch.Delete(c.Table, c.Prefix, c.Suffix)
	}
	w.size += len(c.Prefix) + len(c.Suffix) + len(c.Value) + 16
	return nil
}

// change is any operation, behind everything that w was given before.
func (w *writer) change(c *Change) error {
	switch c.Op {
	case OpDropWindows, OpDropTable:
		if err := w.flush(); err != nil {
			return err
		}
		var bound []byte
		if c.Op == OpDropWindows {
			bound = c.Prefix
		}
		return w.drop(c.Table, bound)
	}
	return w.row(c)
}

// drop deletes the rows of the table with a prefix below bound, all if it is nil. It deletes nothing where kv has nothing: a range deletion makes
// reads around it dearer, and most windows never get there.
func (w *writer) drop(table uint32, bound []byte) error {
	snap := w.db.Snapshot()
	defer snap.Release()
	it, err := snap.ScanRange(table, nil, bound)
	if err != nil {
		return err
	}
	found := it.Next()
	if err := it.Close(); err != nil {
		return err
	}
	if found {
		w.batch.DeleteRange(table, nil, bound)
		w.size += len(bound) + 16
	}
	return nil
}

// flush commits what there is.
func (w *writer) flush() error {
	if w.size == 0 {
		return nil
	}
	err := w.batch.Commit()
	w.batch, w.size = nil, 0
	if err == nil && w.afterBatch != nil {
		err = w.afterBatch()
	}
	if err == nil {
		w.batch = w.db.NewBatch()
	}
	return err
}

// finish commits the rest with the mark.
func (w *writer) finish(kind journal.Kind, upTo journal.LSN) error {
	w.batch.SetMark(kind, upTo)
	err := w.batch.Commit()
	w.batch = nil
	return err
}

// giveUp forgets what is not committed.
func (w *writer) giveUp() {
	if w.batch != nil {
		_ = w.batch.Close()
		w.batch = nil
	}
}

package state

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/leat-io/leat/internal/journal"
)

// TestApplierConcurrently has the journal apply while others publish, apply state and read snapshots: every snapshot shows all
// of a unit or nothing, and never goes back.
func TestApplierConcurrently(t *testing.T) {
	t.Parallel()
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		_, a := testDB(t)
		applyConcurrently(t, a)
	})
	t.Run("row by row", func(t *testing.T) {
		t.Parallel()
		_, a := testDB(t)
		a.batchBytes = 1
		applyConcurrently(t, a)
	})
}

func applyConcurrently(t *testing.T, a *Applier) {
	const units, width = 300, 8
	var wg sync.WaitGroup
	applied := make(chan journal.LSN, units)
	wg.Go(func() {
		defer close(applied)
		var c Changes
		for lsn := journal.LSN(1); lsn <= units; lsn++ {
			c.Reset()
			value := binary.BigEndian.AppendUint64(nil, uint64(lsn))
			for i := range width {
				c.Set(journal.KindRows, 10, []byte{byte(i)}, nil, value)
				c.Set(journal.KindState, 11, []byte{byte(i)}, nil, value)
			}
			if err := a.Apply(lsn, journal.KindRows, c.Rows[0]); err != nil {
				t.Error(err)
			}
			if err := a.Apply(lsn, journal.KindState, c.State[0]); err != nil {
				t.Error(err)
			}
			applied <- lsn
		}
	})
	done := make(chan struct{})
	publish := make(chan journal.LSN, units)
	wg.Go(func() {
		defer close(done)
		defer close(publish)
		for lsn := range applied {
			publish <- lsn
			if lsn%7 == 0 {
				if err := a.ApplyState(lsn); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 2 {
		wg.Go(func() {
			for lsn := range publish {
				if err := a.Publish(lsn); err != nil {
					t.Error(err)
				}
				if a.Published() < lsn {
					t.Errorf("published %d after Publish(%d)", a.Published(), lsn)
				}
			}
		})
	}
	wg.Go(func() {
		last := uint64(0)
		for {
			snap, lsn := a.Snapshot()
			for i := range width {
				v, ok, err := snap.Get(10, []byte{byte(i)}, nil)
				if err != nil || ok != (lsn > 0) || ok && binary.BigEndian.Uint64(v) < uint64(lsn) {
					t.Errorf("snapshot at %d has %x for row %d (%v)", lsn, v, i, err)
				}
				if !ok {
					continue
				}
				if n := binary.BigEndian.Uint64(v); i == 0 && n < last {
					t.Errorf("the snapshot went back from %d to %d", last, n)
				} else if i == 0 {
					last = n
				} else if n != last {
					t.Errorf("a snapshot shows rows of units %d and %d", last, n)
				}
			}
			snap.Release()
			select {
			case <-done:
				return
			default:
			}
		}
	})
	wg.Wait()
	if a.Published() != units {
		t.Errorf("published %d", a.Published())
	}
}

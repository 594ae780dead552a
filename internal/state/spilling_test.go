package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/spill"
	"github.com/leat-io/leat/internal/vfs"
)

// openSpilling makes a database, an applier and tables with files beside them, on one file system.
func openSpilling(t *testing.T, fs vfs.FS, o Options) (*kv.DB, *Applier, *Tables) {
	t.Helper()
	db, err := kv.Open(kv.Options{FS: fs, Dir: "kv", CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := spill.OpenFolder(db.Patient(), "spill", db.Interrupted)
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewApplier(ApplierOptions{DB: db, Spill: folder})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.FinishRecovery(0); err != nil {
		t.Fatal(err)
	}
	o.DB, o.Applier, o.Spill = db, a, folder
	tables := NewTables(o)
	t.Cleanup(func() {
		tables.Close()
		a.Close()
		_ = db.Close()
	})
	return db, a, tables
}

// fill sets n rows of a point table.
func fill(t *testing.T, p *Point, n int) error {
	t.Helper()
	for i := range n {
		ref, err := p.ProbeOne(fmt.Appendf(nil, "key %d", i))
		if err != nil {
			return err
		}
		p.Set(ref, make([]byte, 100))
	}
	return nil
}

// TestAnEpochThatCannotSpillIsBounded: what an operator changes of its own state in one epoch ends in an error of that job before it takes more than an epoch may.
func TestAnEpochThatCannotSpillIsBounded(t *testing.T) {
	t.Parallel()
	_, _, tables := openSpilling(t, vfs.NewMem(), Options{Name: "state", EpochBytes: 1 << 20})
	p := tables.Point(Spec{ID: 10, Name: "sums groups", Fresh: true})
	err := fill(t, p, 1_000_000)
	if err == nil || !strings.Contains(err.Error(), "one epoch changes more than 1 MB of the state of sums groups") {
		t.Errorf("error %v", err)
	}
	if used := tables.Used(); used > 4<<20 {
		t.Errorf("%d bytes in memory", used)
	}
}

// TestWhatTablesGiveIsBoundedInTheUnit: changes beyond the bound go to a file, whichever tables they are of, and the unit has little more than its name.
func TestWhatTablesGiveIsBoundedInTheUnit(t *testing.T) {
	t.Parallel()
	db, a, tables := openSpilling(t, vfs.NewMem(), Options{Name: "state", SpillBytes: 10 << 10})
	point := tables.Point(Spec{ID: 10, Name: "state", Fresh: true})
	view := tables.Point(Spec{ID: 11, Name: "view", Fresh: true, Rows: true})
	const n = 5_000
	for _, p := range []*Point{point, view} {
		if err := fill(t, p, n); err != nil {
			t.Fatal(err)
		}
	}
	var c Changes
	if err := tables.EndEpoch(&c); err != nil {
		t.Fatal(err)
	}
	if c.Bytes() > 2*15<<10 || c.Spilled() < 2*n*100 || c.Settled() {
		t.Errorf("%d bytes for the unit, %d in files, settled: %t", c.Bytes(), c.Spilled(), c.Settled())
	}
	for _, payload := range c.State {
		if err := a.Apply(1, journal.KindState, payload); err != nil {
			t.Fatal(err)
		}
	}
	for _, payload := range c.Rows {
		if err := a.Apply(1, journal.KindRows, payload); err != nil {
			t.Fatal(err)
		}
	}
	tables.Committed(1)
	if p := a.Pending(); p.State != n || p.Rows != n || p.StateBytes > 15<<10 || p.FileBytes != c.Spilled() {
		t.Errorf("pending: %+v", p)
	}
	if err := errors.Join(a.Publish(1), a.ApplyState(1)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uint32{10, 11} {
		it, err := db.NewIter(id, false)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for it.Next() {
			got++
		}
		if err := it.Close(); err != nil || got != n {
			t.Errorf("table %d has %d rows, error %v", id, got, err)
		}
	}
	if err := a.Checkpointed(1); err != nil || a.Pending().FileBytes != 0 {
		t.Errorf("behind the checkpoint: %+v, %v", a.Pending(), err)
	}
}

// TestAMissingFileIsAnError: a unit whose file is gone or another one is not applied, nor what comes after it, and nothing of it is shown.
func TestAMissingFileIsAnError(t *testing.T) {
	t.Parallel()
	_, a, _ := openSpilling(t, vfs.NewMem(), Options{})
	if err := a.Apply(1, journal.KindRows, ref{file: spill.File{Number: 77, Bytes: 100}, changes: 3}.encode()); err != nil {
		t.Fatal(err)
	}
	err := a.Publish(1)
	if !errors.Is(err, spill.ErrFiles) || !strings.Contains(err.Error(), "000000000000004d.spill") {
		t.Errorf("error %v", err)
	}
	if a.Published() != 0 || a.Applied(journal.KindRows) != 0 {
		t.Errorf("published %d, applied %d", a.Published(), a.Applied(journal.KindRows))
	}
	for _, n := range []int{1, refBytes - 1, refBytes + 1} {
		payload := make([]byte, n)
		payload[0] = refVersion
		if err := a.Apply(2, journal.KindState, payload); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x: %v", payload, err)
		}
	}
}

// TestAFullDiskIsWaitedFor: an epoch whose rows find no room in files goes on when there is some, and ends in an error when the node is to stop: a unit never
// names what may not be there.
func TestAFullDiskIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, stop := range []bool{false, true} {
		disk := vfs.NewFaults(vfs.NewMem())
		db, _, tables := openSpilling(t, disk, Options{Name: "state", SpillBytes: 1 << 10})
		p := tables.Point(Spec{ID: 10, Name: "state", Fresh: true})
		if err := fill(t, p, 100); err != nil {
			t.Fatal(err)
		}
		disk.Fill(true)
		done := make(chan error)
		var c Changes
		go func() {
			p.Settle()
			done <- tables.EndEpoch(&c)
		}()
		if stop {
			db.Interrupt()
			if err := <-done; !errors.Is(err, spill.ErrFiles) {
				t.Errorf("interrupted: %v", err)
			}
			continue
		}
		disk.Fill(false)
		if err := <-done; err != nil || !c.Settled() {
			t.Errorf("with room again: %v, settled %t", err, c.Settled())
		}
	}
}

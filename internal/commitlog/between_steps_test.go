package commitlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/clock"
	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// must fails the test for an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRetentionOfAllAndACrash has retention remove every record, and a crash before the next checkpoint: nothing is missing.
func TestRetentionOfAllAndACrash(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashable()
	now := clock.NewManual(time.UnixMilli(1_000_000))
	c := Config{Retention: time.Second}
	m := openManager(t, fs, now)
	l := openLog(t, m, "t-0", c)
	for i := range int64(3) {
		must(t, l.Append(makeBatch(i, 1, 1000, 10)))
	}
	must(t, m.Sync(t.Context(), nil))
	if start, deleted, err := l.ApplyRetention(now.Now(), 3); err != nil || start != 3 || deleted != 1 {
		t.Fatal(start, deleted, err)
	}
	must(t, vfs.SyncDir(fs, "log/t-0")) // a machine may do so at any time
	for _, unsynced := range []int{0, 100} {
		l = openLog(t, openManager(t, vfs.CrashClone(fs, unsynced, rand.New(rand.NewPCG(1, 1))), now), "t-0", c)
		if err := l.Append(makeBatch(3, 1, 2000, 10)); err != nil {
			t.Errorf("with %d%% of what was not synced: %v", unsynced, err)
		}
	}
}

// TestReadBelowAStartThatACrashForgot asks for what retention removed after the last checkpoint, as the first thing after a restart.
func TestReadBelowAStartThatACrashForgot(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashable()
	now := clock.NewManual(time.UnixMilli(1_000_000))
	c := Config{Retention: time.Second}
	m := openManager(t, fs, now)
	l := openLog(t, m, "t-0", c)
	must(t, l.Append(makeBatch(0, 1, 1000, 10)))
	must(t, l.Roll())
	must(t, l.Append(makeBatch(1, 1, 1_000_000, 10)))
	must(t, m.Sync(t.Context(), nil))
	if start, _, err := l.ApplyRetention(now.Now(), 2); err != nil || start != 1 {
		t.Fatal(start, err)
	}
	must(t, vfs.SyncDir(fs, "log/t-0"))
	l = openLog(t, openManager(t, vfs.CrashClone(fs, 100, rand.New(rand.NewPCG(1, 1))), now), "t-0", c)
	if _, err := l.Read(0, 100, never, true); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Errorf("a read of what retention removed: %v", err)
	}
}

// TestRecordsWithoutATimestampAreNotOld keeps records whose timestamp is -1 for as long as their file is young, as Kafka does.
func TestRecordsWithoutATimestampAreNotOld(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	now := clock.NewManual(time.Now())
	m := openManager(t, fs, now)
	l := openLog(t, m, "t-0", Config{Retention: time.Hour})
	must(t, l.Append(makeBatch(0, 1, -1, 10)))
	must(t, m.Sync(t.Context(), nil))
	if _, deleted, err := l.ApplyRetention(now.Now(), 1); err != nil || deleted != 0 {
		t.Errorf("%d segments are deleted (%v)", deleted, err)
	}
	now.Advance(2 * time.Hour)
	if _, deleted, err := l.ApplyRetention(now.Now(), 1); err != nil || deleted != 1 {
		t.Errorf("two hours later %d segments are deleted (%v)", deleted, err)
	}
}

// openFS calls back before a file is opened.
type openFS struct {
	vfs.FS
	before func(path string)
}

func (f *openFS) OpenReadWrite(path string, c vfs.WriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if f.before != nil {
		f.before(path)
	}
	return f.FS.OpenReadWrite(path, c, o...)
}

// TestSyncBesideRetention has retention remove a segment that a sync is about to open: it is not made again.
func TestSyncBesideRetention(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashable()
	now := clock.NewManual(time.UnixMilli(1_000_000))
	c := Config{Retention: time.Second}
	m := openManager(t, mem, now)
	l := openLog(t, m, "t-0", c)
	must(t, l.Append(makeBatch(0, 1, 1000, 10)))
	must(t, m.Sync(t.Context(), nil))
	must(t, l.Append(makeBatch(1, 1, 1000, 10)))
	must(t, l.Sync()) // in the file, and not recorded: the next start cuts it
	must(t, m.Close())

	fs := &openFS{FS: mem}
	m = openManager(t, fs, now)
	l = openLog(t, m, "t-0", c)
	if _, err := l.Aborted(0, 1, nil); err != nil {
		t.Fatal(err)
	}
	m.files.close() // nothing is open when the sync begins
	fs.before = func(path string) {
		fs.before = nil
		if l.mu.TryLock() { // retention can run now
			l.mu.Unlock()
			if _, _, err := l.ApplyRetention(now.Now(), 1); err != nil {
				t.Error(err)
			}
		}
	}
	must(t, l.Sync())
	if _, _, err := l.ApplyRetention(now.Now(), 1); err != nil {
		t.Error(err)
	}
	names, err := mem.List("log/t-0")
	must(t, err)
	for _, name := range names {
		if name == segmentName(0)+".log" {
			t.Errorf("a removed segment is there again: %s", strings.Join(names, " "))
		}
	}
}

// TestSnapshotsBehindTheCut has a producer's batches in a snapshot that a crash of the journal took away: they are not taken for written afterwards.
func TestSnapshotsBehindTheCut(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashable()
	batch := func(base, producer int64, seq int32) []byte {
		b := record.NewBuilder(record.None)
		b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = producer, 0, seq, producer == 7
		b.Append(1000, nil, []byte("x"))
		out := b.Build(nil)
		record.Patch(out, base, 1)
		return out
	}
	m := openManager(t, fs, clock.Real)
	l := openLog(t, m, "t-0", Config{})
	must(t, l.Append(batch(0, 1, 0)))
	must(t, m.Sync(t.Context(), nil))
	must(t, l.Append(batch(1, 7, 0)))
	must(t, l.Append(batch(2, 7, 1)))
	must(t, l.Roll()) // a snapshot at 3, of which the journal loses 1 and 2

	fs = vfs.CrashClone(fs, 100, rand.New(rand.NewPCG(1, 1)))
	m = openManager(t, fs, clock.Real)
	l = openLog(t, m, "t-0", Config{})
	for i := range int64(4) {
		must(t, l.Append(batch(1+i, 2, int32(i))))
	}
	more := func(context.Context) error { return l.Append(batch(5, 2, 4)) } // behind the ends that are recorded
	must(t, m.Sync(t.Context(), more))

	m = openManager(t, vfs.CrashClone(fs, 100, rand.New(rand.NewPCG(1, 1))), clock.Real)
	l = openLog(t, m, "t-0", Config{})
	open, err := l.OpenTransactions()
	if err != nil || len(open) > 0 {
		t.Errorf("transactions %v are open that nobody began (%v)", open, err)
	}
	ps, err := l.Producers()
	must(t, err)
	for _, p := range ps.States() {
		if p.ID == 7 {
			t.Errorf("a producer is known that never wrote: %+v", p)
		}
	}
}

// TestASnapshotBelowTheRecordedEndStays rolls often enough after a checkpoint to push the snapshots out that a restart can use.
func TestASnapshotBelowTheRecordedEndStays(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashable()
	now := clock.NewManual(time.UnixMilli(1_000_000))
	m := openManager(t, fs, now)
	l := openLog(t, m, "t-0", Config{RetentionBytes: 1})
	next := int64(0)
	write := func(producer int64, seq int32) {
		t.Helper()
		b := record.NewBuilder(record.None)
		b.ProducerID, b.ProducerEpoch, b.BaseSequence = producer, 0, seq
		b.Append(1000, nil, []byte("x"))
		out := b.Build(nil)
		record.Patch(out, next, 1)
		must(t, l.Append(out))
		next++
	}
	write(7, 0)
	must(t, l.Roll())
	write(8, 0)
	more := func(context.Context) error { write(8, 1); return nil } // behind the end that is recorded
	must(t, m.Sync(t.Context(), more))
	if _, deleted, err := l.ApplyRetention(now.Now(), next); err != nil || deleted != 1 {
		t.Fatal(deleted, err)
	}
	for seq := range int32(4) {
		write(8, 2+seq)
		must(t, l.Roll())
	}
	must(t, vfs.SyncDir(fs, "log/t-0"))
	l = openLog(t, openManager(t, vfs.CrashClone(fs, 0, nil), now), "t-0", Config{})
	ps, err := l.Producers()
	must(t, err)
	if states := ps.States(); len(states) != 2 || states[0].ID != 7 {
		t.Errorf("the producers are %+v: one of them is forgotten", states)
	}
}

// failingFS fails what a function says.
type failingFS struct {
	vfs.FS
	fail func(op, path string) error
}

func (f *failingFS) err(op, path string) error {
	if f.fail == nil {
		return nil
	}
	return f.fail(op, path)
}

func (f *failingFS) Create(path string, c vfs.WriteCategory) (vfs.File, error) {
	if err := f.err("create", path); err != nil {
		return nil, err
	}
	return f.FS.Create(path, c)
}

func (f *failingFS) Remove(path string) error {
	if err := f.err("remove", path); err != nil {
		return err
	}
	return f.FS.Remove(path)
}

func (f *failingFS) OpenDir(path string) (vfs.File, error) {
	if err := f.err("dir", path); err != nil {
		return nil, err
	}
	return f.FS.OpenDir(path)
}

// TestAFailedLoadIsStillSynced has the first load of a log fail behind its cut: what is appended later is synced like that of any log.
func TestAFailedLoadIsStillSynced(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashable()
	m := openManager(t, mem, clock.Real)
	l := openLog(t, m, "t-0", Config{})
	must(t, l.Append(makeBatch(0, 1, 1000, 10)))
	must(t, m.Sync(t.Context(), nil))
	must(t, l.Roll())
	must(t, l.Append(makeBatch(1, 1, 1000, 10)))
	must(t, l.Roll())
	must(t, l.Append(makeBatch(2, 1, 1000, 10)))
	must(t, l.Sync()) // three segments, of which the last two are cut by the next start

	fs := &failingFS{FS: mem}
	m = openManager(t, fs, clock.Real)
	l = openLog(t, m, "t-0", Config{})
	fs.fail = func(op, path string) error {
		if op == "remove" && strings.HasSuffix(path, segmentName(2)+".log") {
			return errors.New("not now")
		}
		return nil
	}
	if _, err := l.Size(); err == nil {
		t.Fatal("the load did not fail")
	}
	must(t, m.Sync(t.Context(), nil))
	fs.fail = nil
	must(t, l.Append(makeBatch(1, 1, 1000, 10)))
	must(t, m.Sync(t.Context(), nil))

	l = openLog(t, openManager(t, vfs.CrashClone(mem, 0, nil), clock.Real), "t-0", Config{})
	if _, err := l.Read(1, 100, never, true); err != nil {
		t.Errorf("what a checkpoint recorded: %v", err)
	}
}

// TestAReplacementThatFailedHalfWay has compaction fail to remove a segment that it has replaced: the next pass does, before it replaces more, and none of the
// old ones is left for a restart to find.
func TestAReplacementThatFailedHalfWay(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"remove", "dir"} {
		mem := vfs.NewCrashable()
		fs := &failingFS{FS: mem}
		now := clock.NewManual(time.UnixMilli(1_000_000))
		s := &story{t: t, fs: mem, now: now, cfg: Config{Compact: true}, m: newModel(), mgr: openManager(t, fs, now)}
		s.l = openLog(t, s.mgr, "t-0", s.cfg)
		s.put(-1, false, "a=1", "b=1")
		s.roll()
		s.put(-1, false, "a=2", "c=1")
		s.roll()
		s.put(-1, false, "b=2", "d=1")
		s.roll()
		s.sync()
		replaced := segmentName(0) + ".log" + swapSuffix
		fs.fail = func(what, path string) error {
			_, err := mem.Stat(mem.PathJoin("log/t-0", replaced))
			if what == op && err == nil && (op == "dir" || strings.HasSuffix(path, segmentName(2)+".log")) {
				return errors.New("not now")
			}
			return nil
		}
		if _, err := s.l.Clean(CleanOptions{Below: never}); err == nil {
			t.Fatalf("%s: compaction did not fail", op)
		}
		s.want("2:a=2 3:c=1 4:b=2 5:d=1")
		fs.fail = nil
		s.put(-1, false, "c=2", "d=2")
		s.roll()
		s.sync()
		s.clean(100)
		s.want("2:a=2 4:b=2 6:c=2 7:d=2")
		s.kill()
		s.want("2:a=2 4:b=2 6:c=2 7:d=2")
		for _, name := range files(t, s.fs, ".log") {
			if strings.HasSuffix(name, segmentName(2)+".log") || strings.HasSuffix(name, segmentName(4)+".log") {
				t.Errorf("%s: %s was replaced and is there", op, name)
			}
		}
	}
}

// TestTimesThatACrashLost has the index of times end before the index of offsets does: a record behind its end is found by its time.
func TestTimesThatACrashLost(t *testing.T) {
	t.Parallel()
	for _, sealed := range []bool{false, true} {
		fs := vfs.NewMem()
		c := Config{IndexIntervalBytes: 1}
		m := openManager(t, fs, clock.Real)
		l := openLog(t, m, "t-0", c)
		for i := range int64(200) {
			ms := 1000 + i
			if i == 150 {
				ms = 9000
			}
			must(t, l.Append(makeBatch(i, 1, ms, 10)))
		}
		if sealed {
			must(t, l.Roll())
		}
		must(t, m.Sync(t.Context(), nil))
		must(t, m.Close())
		path := files(t, fs, ".timeindex")[0]
		raw, err := vfs.ReadFile(fs, path, 1<<20)
		must(t, err)
		overwrite(t, fs, path, raw[:50*timeEntryLen])

		l = openLog(t, openManager(t, fs, clock.Real), "t-0", c)
		if offset, _, err := l.OffsetForTime(5000, never); err != nil || offset != 150 {
			t.Errorf("sealed %t: the record is found at offset %d (%v)", sealed, offset, err)
		}
	}
}

// TestADeletedLogLeavesNoFileOpen looks for handles of files that are gone.
func TestADeletedLogLeavesNoFileOpen(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashable()
	m := openManager(t, fs, clock.Real)
	l := openLog(t, m, "t-0", Config{})
	b := record.NewBuilder(record.None)
	b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = 7, 0, 0, true
	b.Append(1000, nil, []byte("x"))
	must(t, l.Append(b.Build(nil)))
	marker := (&record.EndMarker{ProducerID: 7, First: 0, Timestamp: 1}).AppendTo(nil)
	record.Patch(marker, 1, 0)
	must(t, l.Append(marker))
	must(t, m.Sync(t.Context(), nil))
	if list, err := l.Aborted(0, 2, nil); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	must(t, l.Delete())
	if n := m.OpenFiles(); n > 0 {
		t.Errorf("%d files of a deleted log are open", n)
	}
}

package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// compacted makes a topic with one partition and these settings besides.
func (s *stepped) compacted(name string, configs map[string]string) *Partition {
	s.t.Helper()
	all := map[string]string{"cleanup.policy": "compact", "internal.segment.bytes": "300", "min.cleanable.dirty.ratio": "0"}
	maps.Copy(all, configs)
	var topic *Topic
	s.pump(func() {
		var err error
		topic, err = s.b.CreateTopic(context.Background(), TopicSpec{Name: name, Partitions: 1, Configs: all})
		s.must(err)
	})
	return topic.Partition(0)
}

// put produces "key=value", or "key" for a tombstone, each as a batch.
func (s *stepped) put(p *Partition, records ...string) {
	s.t.Helper()
	for _, r := range records {
		k, v, ok := strings.Cut(r, "=")
		b := record.NewBuilder(record.None)
		var value []byte
		if ok {
			value = []byte(v)
		}
		b.Append(s.ck.Now().UnixMilli(), []byte(k), value)
		items := []ProduceItem{{P: p, Batch: b.Build(nil)}}
		s.b.Produce(items)
		s.must(items[0].Err)
		s.settle()
	}
}

// found are the records of a partition as offset:key=value.
func (s *stepped) found(p *Partition) string {
	s.t.Helper()
	var out []string
	at, err := p.StartOffset()
	s.must(err)
	var r record.Reader
	for at < p.HighWatermark() {
		c, err := p.Read(at, 1, ViewDurable, true)
		s.must(err)
		raw, err := c.AppendTo(nil)
		s.must(err)
		if c.Next <= at {
			s.t.Fatalf("no progress at %d", at)
		}
		at = c.Next
		c.Release()
		s.must(r.Reset(raw))
		for r.Next() {
			x := r.Record()
			v := "-"
			if x.Value != nil {
				v = string(x.Value)
			}
			out = append(out, fmt.Sprintf("%d:%s=%s", x.Offset, x.Key, v))
		}
		s.must(r.Err())
	}
	return strings.Join(out, " ")
}

func (s *stepped) wantFound(p *Partition, want string) {
	s.t.Helper()
	if got := s.found(p); got != want {
		s.t.Fatalf("found %s, want %s", got, want)
	}
}

func (s *stepped) partition(name string) *Partition {
	s.t.Helper()
	t, ok := s.b.Topic(name)
	if !ok {
		s.t.Fatal(name)
	}
	return t.Partition(0)
}

func TestCompactionKeepsTheLastValues(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p := s.compacted("t", map[string]string{"delete.retention.ms": "1000"})
	long := strings.Repeat("x", 60)
	s.put(p, "a="+long, "b=1", "a=2", "gone="+long, "b="+long, "gone", "c="+long, "filler="+long)
	all := s.found(p)
	s.b.ReadersReady()
	s.b.Compact() // nothing is recorded by a checkpoint yet
	s.wantFound(p, all)
	s.checkpoint()
	size := p.Bytes()
	s.b.Compact()
	s.wantFound(p, "2:a=2 4:b="+long+" 5:gone=- 6:c="+long+" 7:filler="+long)
	if p.Bytes() >= size {
		t.Errorf("%d bytes after compaction, %d before", p.Bytes(), size)
	}
	s.ck.Advance(2 * time.Second)
	s.b.Compact()
	s.wantFound(p, "2:a=2 4:b="+long+" 6:c="+long+" 7:filler="+long)
	for i := range int64(2) {
		s.crash(0, nil)
		p = s.partition("t")
		s.wantFound(p, "2:a=2 4:b="+long+" 6:c="+long+" 7:filler="+long+strings.Repeat(" 8:d=1", int(i)))
		if i == 0 {
			s.put(p, "d=1")
		}
		s.b.ReadersReady()
		s.b.Compact()
	}
}

// TestCompactionWaitsForTheEngine: what a registered reader has not read stays as it is.
func TestCompactionWaitsForTheEngine(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p := s.compacted("t", nil)
	long := strings.Repeat("x", 100)
	for i := range 10 {
		s.put(p, fmt.Sprintf("a=%d%s", i, long))
	}
	s.checkpoint()
	s.b.Compact() // the readers of the last run are not yet back
	all := s.found(p)
	r := s.b.NewReader([]*Partition{p}, []int64{0})
	s.b.ReadersReady()
	s.b.Compact()
	s.wantFound(p, all)
	r.Advance([]int64{5})
	s.b.Compact()
	if got := s.found(p); got == all || !strings.Contains(got, "5:a=5") || !strings.Contains(got, "6:a=6") {
		t.Fatalf("found %s", got)
	}
	r.Close()
	s.b.Compact()
	if got := s.found(p); strings.Contains(got, "6:a=6") {
		t.Fatalf("found %s", got)
	}
}

// TestCompactionHeldBackIsSeen: a reader that stands still keeps a partition from being compacted; that is counted, and after a while told once, with its name.
func TestCompactionHeldBackIsSeen(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := newSteppedWith(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	p, free := s.compacted("t", nil), s.compacted("free", nil)
	long := strings.Repeat("x", 100)
	for i := range 10 {
		s.put(p, fmt.Sprintf("a=%d%s", i, long))
		s.put(free, fmt.Sprintf("a=%d%s", i, long))
	}
	s.checkpoint()
	r := s.b.NewReader([]*Partition{p}, []int64{0})
	r.SetName("public.v")
	s.b.ReadersReady()
	want := func(partitions int, age time.Duration, lines int) {
		t.Helper()
		s.b.Compact()
		if n, longest := s.b.cleaner.heldBack(s.ck.Now()); n != partitions || longest != age {
			t.Errorf("%d partitions are held back, the first for %v, want %d and %v", n, longest, partitions, age)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != lines {
			t.Errorf("%d lines of warning, want %d:\n%s", n, lines, &log)
		}
	}
	want(1, 0, 0)
	s.ck.Advance(4 * time.Minute)
	want(1, 4*time.Minute, 0)
	s.ck.Advance(time.Minute)
	want(1, 5*time.Minute, 1)
	s.ck.Advance(time.Hour)
	want(1, 65*time.Minute, 1)
	if got := log.String(); !strings.Contains(got, "partition=t-0 read_by=public.v read_to=0 end=10 since=2030-01-01T00:00:0") {
		t.Errorf("the log has\n%s", got)
	}
	r.Advance([]int64{10})
	want(0, 0, 1)
	if got := log.String(); !strings.Contains(got, "held back no longer") {
		t.Errorf("the log has\n%s", got)
	}
	if got := s.found(p); strings.Contains(got, ":a=5") || !strings.Contains(got, ":a=9") {
		t.Errorf("found %s", got)
	}
	r.Close()
}

// TestCompactionAndRetention: a topic with both policies loses what is old, too.
func TestCompactionAndRetention(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p := s.compacted("t", map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "10000"})
	q := s.compacted("u", map[string]string{"retention.ms": "10000"})
	long := strings.Repeat("x", 100)
	for _, p := range []*Partition{p, q} {
		s.put(p, "a="+long, "b="+long, "a="+long, "b=2"+long, "c=3"+long)
	}
	s.ck.Advance(20 * time.Second)
	s.put(p, "d=1"+long, "e=1"+long)
	s.b.ReadersReady()
	s.checkpoint()
	s.b.Compact()
	s.wantFound(p, "2:a="+long+" 3:b=2"+long+" 4:c=3"+long+" 5:d=1"+long+" 6:e=1"+long)
	s.b.ApplyRetention()
	s.wantFound(p, "5:d=1"+long+" 6:e=1"+long)
	s.wantFound(q, "2:a="+long+" 3:b=2"+long+" 4:c=3"+long)
}

// TestMaxCompactionLag: a quiet topic is compacted in time, though its segment is not full.
func TestMaxCompactionLag(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p := s.compacted("t", map[string]string{"internal.segment.bytes": "1000000", "max.compaction.lag.ms": "60000", "min.cleanable.dirty.ratio": "1"})
	q := s.compacted("u", map[string]string{"min.compaction.lag.ms": "60000"})
	long := strings.Repeat("x", 300)
	s.put(p, "a=1", "a=2")
	s.put(q, "a=1"+long, "a=2"+long, "a=3"+long)
	s.b.ReadersReady()
	s.checkpoint()
	s.b.Compact()
	s.wantFound(p, "0:a=1 1:a=2")
	s.wantFound(q, "0:a=1"+long+" 1:a=2"+long+" 2:a=3"+long)
	s.ck.Advance(61 * time.Second)
	s.b.Compact() // seals the segment
	s.checkpoint()
	s.b.Compact()
	s.wantFound(p, "1:a=2")
	s.wantFound(q, "1:a=2"+long+" 2:a=3"+long) // the active segment stays as it is
}

// TestAnUncleanablePartition is named and left alone; the others are compacted.
func TestAnUncleanablePartition(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p, q := s.compacted("bad", nil), s.compacted("good", nil)
	long := strings.Repeat("x", 100)
	for _, p := range []*Partition{p, q} {
		s.put(p, "a=1"+long, "a=2"+long, "a=3"+long, "a=4"+long, "z="+long)
	}
	s.checkpoint()
	s.crash(0, nil)
	path := "/d/topics/bad-0/00000000000000000000.log"
	b, err := vfs.ReadFile(s.fs, path, 1<<20)
	s.must(err)
	flip := func() {
		b[len(b)-1] ^= 1
		f, err := s.fs.OpenReadWrite(path, vfs.Unspecified)
		s.must(err)
		_, err = f.WriteAt(b, 0)
		s.must(errors.Join(err, f.Close()))
	}
	flip()
	s.b.ReadersReady()
	s.b.Compact()
	if bad := s.b.Uncleanable(); len(bad) != 1 || bad[s.partition("bad")] == nil || !strings.Contains(bad[s.partition("bad")].Error(), path) {
		t.Fatalf("%v", bad)
	}
	s.wantFound(s.partition("good"), "3:a=4"+long+" 4:z="+long)
	passes := testCount(s)
	s.b.Compact()
	if n := testCount(s); n != passes {
		t.Errorf("%d more passes over what cannot be compacted", n-passes)
	}
	// Repaired, it is compacted an hour later.
	flip()
	s.ck.Advance(61 * time.Minute)
	s.b.Compact()
	s.wantFound(s.partition("bad"), "3:a=4"+long+" 4:z="+long)
	if bad := s.b.Uncleanable(); len(bad) > 0 {
		t.Fatalf("%v", bad)
	}
}

// testCount is how many passes were made.
func testCount(s *stepped) int { return int(s.b.cleaner.passes.Load()) }

// TestEpochsOfACompactedLog: OffsetForLeaderEpoch over holes.
func TestEpochsOfACompactedLog(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p := s.compacted("t", nil)
	long := strings.Repeat("x", 200)
	var ends []int64
	for epoch := range int32(5) {
		for i := range 6 {
			s.put(p, fmt.Sprintf("a%d=%s", i%2, long))
		}
		ends = append(ends, p.HighWatermark())
		s.checkpoint()
		s.b.ReadersReady()
		s.b.Compact()
		for e := range epoch + 1 {
			found, end, err := p.EndOfEpoch(e)
			s.must(err)
			// An epoch all of whose records are gone is answered for by the one before it, or by none.
			if found > e || end > ends[e] || e == epoch && end != ends[e] {
				t.Fatalf("epoch %d of %d: %d ends at %d; ends are %v, found %s", e, epoch, found, end, ends, s.found(p))
			}
		}
		s.crash(0, nil)
		p = s.partition("t")
	}
}

// TestClientsSetNoDeleteHorizon: a batch that says of itself when its tombstones go is refused.
func TestClientsSetNoDeleteHorizon(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	p := s.compacted("t", nil)
	b := record.NewBuilder(record.None)
	b.Append(1, []byte("k"), nil)
	batch := b.Build(nil)
	var w record.Rewriter
	s.must(w.Reset(batch))
	for w.Next() {
		w.Keep()
	}
	items := []ProduceItem{{P: p, Batch: w.AppendTo(nil, 5)}}
	s.b.Produce(items)
	if !errors.Is(items[0].Err, ErrInvalidBatch) {
		t.Fatal(items[0].Err)
	}
}

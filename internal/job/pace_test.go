package job

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	for _, c := range []struct {
		commit time.Duration
		gap    time.Duration
	}{
		{0, time.Millisecond},
		{50 * time.Microsecond, time.Millisecond},
		{2 * time.Millisecond, 20 * time.Millisecond},
		{time.Second, 200 * time.Millisecond},
	} {
		p := newPace()
		p.committed(start, c.commit, 10, time.Millisecond, 0)
		if got := p.wait(start); got != c.gap {
			t.Errorf("after a commit of %v the next epoch waits %v, want %v", c.commit, got, c.gap)
		}
		if got := p.wait(start.Add(time.Second)); got != 0 {
			t.Errorf("long after, it waits %v", got)
		}
	}
}

// TestPaceOfABacklog: the records of an epoch go to what takes epochWorkTime, and stay within their bounds.
func TestPaceOfABacklog(t *testing.T) {
	t.Parallel()
	p := newPace()
	for range 20 { // a million records a second
		p.committed(time.Unix(0, 0), 0, p.records, time.Duration(p.records)*time.Microsecond, 0)
	}
	if want := int64(epochWorkTime / time.Microsecond); p.records != want {
		t.Errorf("at a million records a second an epoch reads %d, want %d", p.records, want)
	}
	for range 40 { // very slow ones
		p.committed(time.Unix(0, 0), 0, p.records, time.Duration(p.records)*time.Second, 0)
	}
	if p.records != minRecords {
		t.Errorf("slow records: %d, want %d", p.records, minRecords)
	}
	before := p.records
	p.committed(time.Unix(0, 0), 0, 1, time.Nanosecond, 0)
	if p.records != before {
		t.Errorf("an epoch that read all there was has changed the bound to %d", p.records)
	}
}

func TestEpochsAreLongerWhileRowsComeFromTheDatabase(t *testing.T) {
	t.Parallel()
	p := newPace()
	loads := int64(0)
	for range 20 {
		loads += p.records // each record met a row that was not in memory
		p.committed(time.Unix(0, 0), 0, p.records, time.Duration(p.records)*10*time.Microsecond, loads)
	}
	if want := int64(longWorkTime / (10 * time.Microsecond)); p.records != want {
		t.Errorf("%d records an epoch, want %d", p.records, want)
	}
}

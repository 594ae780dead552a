package broker

import "time"

// heldNote remembers that a partition would be compacted if somebody had read it.
type heldNote struct {
	since time.Time
	told  bool
}

// heldReport is how long a partition must have waited for its reader until that is reported: one that catches up is no trouble.
const heldReport = 5 * time.Minute

// noteHeld notes whether a reader alone keeps the partition from being compacted. Without that nobody would see why a topic grows whose job stands still.
func (p *Partition) noteHeld(now time.Time, due bool) {
	c := &p.b.cleaner
	at, by := p.compactable()
	if due || by == nil || p.Err() != nil || !p.wouldBeDue(now) {
		c.mu.Lock()
		n := c.held[p]
		delete(c.held, p)
		c.mu.Unlock()
		if n != nil && n.told && !p.Deleted() {
			p.b.log.Info("compaction of a partition is held back no longer", "partition", p.String(), "after", now.Sub(n.since).Round(time.Second).String())
		}
		return
	}
	c.mu.Lock()
	n := c.held[p]
	if n == nil {
		if c.held == nil {
			c.held = map[*Partition]*heldNote{}
		}
		n = &heldNote{since: now}
		c.held[p] = n
	}
	tell := !n.told && now.Sub(n.since) >= heldReport
	n.told = n.told || tell
	c.mu.Unlock()
	if tell {
		p.b.log.Warn("a partition is not compacted, and grows, until what reads it has come further; SHOW JOBS says how that is",
			"partition", p.String(), "read_by", by.Name(), "read_to", at, "end", p.StableOffset(), "since", n.since.UTC().Format(time.RFC3339))
	}
}

// wouldBeDue tells whether the partition would be compacted if all that is stable had been read.
func (p *Partition) wouldBeDue(now time.Time) bool {
	d, err := p.log.Dirt(now, p.StableOffset())
	return err == nil && p.dirtyEnough(d)
}

// heldBack is how many partitions are held back, and for how long the first one has been.
func (c *cleaner) heldBack(now time.Time) (n int, longest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, note := range c.held {
		if p.Deleted() {
			continue
		}
		n++
		longest = max(longest, now.Sub(note.since))
	}
	return n, longest
}

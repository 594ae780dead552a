package broker

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/commitlog"
	"github.com/leat-io/leat/internal/record"
)

// Lag is how far a group is behind in one partition, and how far retention is from what it has not read.
type Lag struct {
	Group, Topic string
	Partition    int32

	// Records is the offsets left to read, up to the high watermark; 0 if all that is left are markers of transactions and batches that compaction has
	// emptied, which no client ever commits to have read.
	Records int64
	Spare   int64 // offsets that retention may delete before it meets what is not read
	Lost    int64 // offsets that were deleted before they were read

	// Age is that of the next record to read, by the timestamp of its batch. It is not known while nothing is left to read, nor before the batch was
	// looked at.
	Age      time.Duration
	AgeKnown bool
	// Left is how long the topic's retention.ms keeps that record at least: a segment goes when all of it is too old. It is known where Age is and
	// the topic has such a bound.
	Left      time.Duration
	LeftKnown bool

	retention time.Duration
}

// measure judges a committed offset by where its partition starts and ends.
func (l *Lag) measure(committed, start, end int64) {
	l.Records = max(end-max(committed, start), 0)
	l.Spare = max(committed-start, 0)
	l.Lost = max(min(start, end)-committed, 0)
}

// setAge takes the time of the next record to read; retention is the topic's, negative without a bound.
func (l *Lag) setAge(age, retention time.Duration) {
	l.Age, l.AgeKnown = max(age, 0), true
	if retention >= 0 {
		l.retention = retention
		l.Left, l.LeftKnown = retention-age, true
	}
}

// lagPlace is a group's position in one partition.
type lagPlace struct {
	group, topic string
	partition    int32
}

func (p lagPlace) compare(q lagPlace) int {
	return cmp.Or(strings.Compare(p.group, q.group), strings.Compare(p.topic, q.topic), cmp.Compare(p.partition, q.partition))
}

// Bounds of one look at all groups. What is over them is counted, and shown in the sums of its topic only.
const (
	maxLagPlaces = 100_000               // positions that are looked at
	maxAgeReads  = 1_000                 // batches whose time is read
	ageReadTime  = 40 * time.Millisecond // for reading them
	lagFreshness = time.Second           // a look that is younger serves again
	ageFreshness = time.Minute           // the time of a batch before the position serves so long
)

// nextTime is when the next batch with records, from an offset on, was written.
type nextTime struct {
	offset int64
	ms     int64
	empty  int64 // up to here there is none; 0: there is one
	read   time.Time
}

// lagWatch remembers what a look at the groups has found; its owner's lock is held.
type lagWatch struct {
	lags    []Lag
	at      time.Time
	leftOut int // positions over maxLagPlaces
	times   map[lagPlace]nextTime
	turn    int // where reading times begins, so that each gets its turn
	alerts  alerts
}

// Lags returns how far every group is behind, by group, topic and partition. It is at most a second old; the slice stays as it is.
func (b *Broker) Lags() []Lag {
	lags, _ := b.lookAtLags()
	return lags
}

func (b *Broker) lookAtLags() (lags []Lag, leftOut int) {
	b.lagMu.Lock()
	defer b.lagMu.Unlock()
	w := &b.lagWatch
	now := b.clock.Now()
	if since := now.Sub(w.at); w.at.IsZero() || since < 0 || since >= lagFreshness {
		b.measureLags(w, now)
	}
	return w.lags, w.leftOut
}

// measureLags looks at all positions; the lock is held.
func (b *Broker) measureLags(w *lagWatch, now time.Time) {
	places, offsets, leftOut := b.groups.positions(maxLagPlaces)
	lags := make([]Lag, 0, len(places))
	kept := make(map[lagPlace]nextTime, len(w.times))
	parts := make([]*Partition, 0, len(places))
	froms := make([]int64, 0, len(places))
	for i, place := range places {
		t, ok := b.Topic(place.topic)
		if !ok {
			continue
		}
		p := t.Partition(place.partition)
		if p == nil || p.Err() != nil {
			continue
		}
		l := Lag{Group: place.group, Topic: place.topic, Partition: place.partition}
		start, end := p.log.StartOffset(), p.HighWatermark()
		l.measure(offsets[i], start, end)
		lags, parts, froms = append(lags, l), append(parts, p), append(froms, max(offsets[i], start))
		if known, ok := w.times[place]; ok && l.Records > 0 {
			kept[place] = known
		}
	}
	w.lags, w.at, w.leftOut, w.times = lags, now, leftOut, kept
	w.addAges(now, parts, froms)
}

// addAges fills in the ages, reading what is not known as far as the bounds allow.
func (w *lagWatch) addAges(now time.Time, parts []*Partition, from []int64) {
	reads, reading, deadline := 0, true, time.Now().Add(ageReadTime) // real time: it bounds work
	n, first := len(w.lags), w.turn
	for k := range n {
		i := (first + k) % n
		l := &w.lags[i]
		if l.Records == 0 {
			continue
		}
		place := lagPlace{l.Group, l.Topic, l.Partition}
		known, ok := w.times[place]
		end := from[i] + l.Records
		if reading && (!ok || known.offset != from[i] || known.empty > 0 && known.empty < end) {
			if reads == maxAgeReads || reads%16 == 15 && time.Now().After(deadline) {
				reading, w.turn = false, i // those that come now are the first ones of the next look
			} else if ms, empty, err := parts[i].nextBatch(from[i], end); err == nil {
				known, ok = nextTime{from[i], ms, empty, now}, true
				w.times[place] = known
			}
			reads++
		}
		if ok && known.offset == from[i] && known.empty >= end {
			l.Records = 0
			continue
		}
		if ok && known.empty == 0 && known.ms >= 0 && (known.offset == from[i] || known.offset < from[i] && now.Sub(known.read) < ageFreshness) {
			l.setAge(now.Sub(time.UnixMilli(known.ms)), parts[i].Topic().settings.keeps())
		}
	}
}

// keeps is how long records are kept at least; negative: there is no bound by time.
func (s *settings) keeps() time.Duration {
	if !s.deletes || s.retentionMs < 0 {
		return -1
	}
	return milliseconds(s.retentionMs)
}

// mostEmpty bounds the batches without records that are passed in search of one with some.
const mostEmpty = 8

// nextBatch looks for the next batch with records for clients, from an offset on. It returns the timestamp, in milliseconds, that it begins with; or, if there
// is none below end, where the search ended.
func (p *Partition) nextBatch(offset, end int64) (ms, empty int64, err error) {
	for range mostEmpty {
		c, err := p.log.Read(offset, 1, end, true)
		if err != nil {
			return 0, 0, p.judge(err)
		}
		if c.Len() == 0 {
			return -1, max(c.Next, end), nil
		}
		h, err := headerOf(&c)
		c.Release()
		if err != nil {
			return 0, 0, err
		}
		ms = h.BaseTimestamp
		if h.LogAppendTime() {
			ms = h.MaxTimestamp
		}
		if h.Count > 0 && !h.Control() {
			break
		}
		if offset = h.NextOffset(); offset >= end {
			return -1, offset, nil
		}
	}
	return ms, 0, nil
}

// headerOf reads the header of a chunk's first batch, and little more.
func headerOf(c *commitlog.Chunk) (record.Header, error) {
	var w headerWriter
	if _, err := c.WriteTo(&w); err != nil && w.n < len(w.b) {
		return record.Header{}, err
	}
	return record.ParseHeader(w.b[:w.n])
}

// headerWriter keeps the first bytes and refuses the rest.
type headerWriter struct {
	b [record.HeaderLen]byte
	n int
}

func (w *headerWriter) Write(b []byte) (int, error) {
	n := copy(w.b[w.n:], b)
	w.n += n
	if n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// positions copies the committed offsets of all groups, in order, at most so many.
func (gs *Groups) positions(most int) (places []lagPlace, offsets []int64, leftOut int) {
	type position struct {
		lagPlace
		offset int64
	}
	var all []position
	shells := gs.all()
	slices.SortFunc(shells, func(a, b *groupShell) int { return strings.Compare(a.id, b.id) })
	for _, s := range shells {
		s.mu.Lock()
		for topic, parts := range s.offsets {
			for p, c := range parts {
				if len(all) >= most {
					leftOut++
					continue
				}
				all = append(all, position{lagPlace{s.id, topic, p}, c.offset})
			}
		}
		s.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b position) int { return a.compare(b.lagPlace) })
	places, offsets = make([]lagPlace, len(all)), make([]int64, len(all))
	for i, p := range all {
		places[i], offsets[i] = p.lagPlace, p.offset
	}
	return places, offsets, leftOut
}

package commitlog

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/leat-io/leat/internal/record"
	"github.com/leat-io/leat/internal/vfs"
)

// CleanOptions bounds one pass of compaction.
type CleanOptions struct {
	// Below is the first offset that must stay as it is: the high watermark, the first unstable offset, what a reader has not read.
	Below int64
	// MapBytes bounds the memory of the map from keys to offsets; 0: 32 MiB. What does not fit is left to the next pass.
	MapBytes int
	// Pause, if not nil, is called between pieces of work, with no lock held, with the bytes that were read and written since the last call. It
	// must return when closing is closed. Its error ends the pass.
	Pause func(bytes int, closing <-chan struct{}) error
	// PauseBytes is how large a piece of work is; 0: 1 MiB.
	PauseBytes int
}

// CleanStats says what a pass did.
type CleanStats struct {
	BytesRead, BytesWritten  int64
	BytesBefore, BytesAfter  int64 // of the segments that were replaced
	RecordsRead, RecordsKept int64 // of these segments
	Keyless                  int64 // records without a key, which were dropped
	Replaced, Segments       int   // segments that were replaced, and by how many
	More                     bool  // the keys did not fit in the map: another pass is due
}

const (
	defaultMapBytes = 32 << 20
	defaultPause    = 1 << 20
	cleanBuffer     = 256 << 10
	// mostBatchBytes bounds the memory that one batch takes.
	mostBatchBytes = 256 << 20
)

// pass is one pass of compaction over a log. It reads sealed segments, which nobody changes, without the log's lock; they are pinned, so that
// retention leaves them alone.
type pass struct {
	l       *Log
	o       CleanOptions
	config  Config
	now     int64 // milliseconds
	closing chan struct{}
	owed    int // bytes since the last pause

	all    []passSegment // of the whole log
	sealed int           // how many of them may be replaced
	start  int64         // of the log
	before cleanState    // as of the last pass
	lastOf map[int64]lastBatches

	// The records in [dirty, mapped) are in keys; those below dirty are older. Batches at or above end stay as they are.
	dirty, mapped, end int64
	survey             txnSurvey
	sweep              txnSweep
	keys               *keyMap
	buf                []byte
	rewriter           record.Rewriter
	rewritten          []byte
	after              cleanState
	stats              CleanStats
}

// passSegment is a segment as it was when the pass began.
type passSegment struct {
	s         *segment
	path      string
	base, end int64
	size      int64
}

// Clean runs one pass of compaction: of each key the last value stays; offsets, timestamps and headers of what stays do not change. Tombstones, and
// markers of transactions without data, go when the retention of deletes has passed since the pass that met them first. It must not be called twice
// at a time, nor for a log that is being closed.
func (l *Log) Clean(o CleanOptions) (CleanStats, error) {
	if o.MapBytes <= 0 {
		o.MapBytes = defaultMapBytes
	}
	if o.PauseBytes <= 0 {
		o.PauseBytes = defaultPause
	}
	l.cleaning.Lock()
	defer l.cleaning.Unlock()
	if err := l.finishLate(); err != nil {
		return CleanStats{}, fmt.Errorf("compact partition %s: %w", l.name, err)
	}
	p, err := l.beginPass(o)
	if err != nil || p == nil {
		return CleanStats{}, err
	}
	defer p.finish()
	if err := p.run(); err != nil {
		return p.stats, fmt.Errorf("compact partition %s: %w", l.name, err)
	}
	return p.stats, nil
}

// beginPass pins what there is to compact; nil if there is nothing.
func (l *Log) beginPass(o CleanOptions) (*pass, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == l.start && !l.loaded {
		return nil, nil
	}
	if err := l.ready(); err != nil {
		return nil, err
	}
	p := &pass{
		l: l, o: o, config: l.config, now: l.m.o.Clock.Now().UnixMilli(), start: l.start, before: l.clean,
		survey: txnSurvey{most: maxAborted, bound: math.MaxInt64},
	}
	var err error
	if p.sealed, err = l.cleanable(time.UnixMilli(p.now), o.Below); err != nil || p.sealed == 0 {
		return nil, err
	}
	if err := l.loadProducers(); err != nil {
		return nil, err
	}
	if err := l.flush(l.segments[len(l.segments)-1]); err != nil { // markers are looked for there, too
		return nil, err
	}
	p.lastOf = l.producers.lastBatches(l.segmentEnd(p.sealed - 1))
	for i, s := range l.segments {
		p.all = append(p.all, passSegment{s: s, path: s.logPath(), base: s.base, end: l.segmentEnd(i), size: s.size})
		s.pinned = i < p.sealed
	}
	p.closing = make(chan struct{})
	l.closing = p.closing
	return p, nil
}

// segmentEnd is the offset after the segment's last; mu is held.
func (l *Log) segmentEnd(i int) int64 {
	if i+1 < len(l.segments) {
		return l.segments[i+1].base
	}
	return l.end
}

// cleanable is how many segments may be replaced: sealed, recorded by a checkpoint, below the bound, and old enough; mu is held.
func (l *Log) cleanable(now time.Time, below int64) (int, error) {
	below = min(below, l.recorded)
	young := int64(math.MaxInt64)
	if l.config.MinCompactionLag > 0 {
		young = now.Add(-l.config.MinCompactionLag).UnixMilli()
	}
	n := 0
	for i := range len(l.segments) - 1 {
		s := l.segments[i]
		end := l.segmentEnd(i)
		if end > below {
			break
		}
		if end > l.clean.dirty && young < math.MaxInt64 {
			if err := l.ensureIndex(s); err != nil {
				return 0, l.readError(err)
			}
			if s.largest > young {
				break
			}
		}
		n = i + 1
	}
	return n, nil
}

// finish unpins what is left.
func (p *pass) finish() {
	p.rewriter.Close()
	l := p.l
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		s.pinned = s.swap != nil // its replacement failed half-way, and is finished by the next pass
	}
	l.closing = nil
}

// pause notes work, and now and then lets others work.
func (p *pass) pause(bytes int) error {
	p.owed += bytes
	if p.owed < p.o.PauseBytes {
		return nil
	}
	owed := p.owed
	p.owed = 0
	if p.o.Pause != nil {
		if err := p.o.Pause(owed, p.closing); err != nil {
			return err
		}
	}
	select {
	case <-p.closing:
		return ErrClosed
	default:
		return nil
	}
}

func (p *pass) run() error {
	p.dirty = max(p.before.dirty, p.start)
	p.end = p.all[p.sealed-1].end
	expired := p.before.horizon >= 0 && p.now >= p.before.horizon
	if p.dirty >= p.end && !expired {
		return nil
	}
	if err := p.look(); err != nil {
		return err
	}
	for p.sealed > 0 && p.all[p.sealed-1].end > p.survey.bound {
		p.sealed--
	}
	if p.sealed == 0 {
		return fmt.Errorf("there are more than %d aborted transactions in its first segment", p.survey.most)
	}
	p.end = p.survey.unstable(min(p.end, p.all[p.sealed-1].end))
	if p.dirty >= p.end && !expired {
		return nil
	}
	for p.sealed > 0 && p.all[p.sealed-1].base >= max(p.end, p.dirty) {
		p.sealed--
	}
	if p.sealed == 0 {
		return nil
	}
	p.survey.sort()
	p.end = max(p.end, p.dirty)
	p.mapped = p.end
	if err := p.fill(); err != nil {
		return err
	}
	p.stats.More = p.mapped < p.end
	for p.sealed > 1 && p.all[p.sealed-1].base >= p.mapped {
		p.sealed--
	}
	p.sweep = newTxnSweep(p.survey.aborted)
	// Offsets are missing from the first replacement on; how far all is compacted is known after the last.
	p.after = p.before
	p.after.holes = max(p.before.holes, p.all[p.sealed-1].end)
	if err := p.l.writeCleanState(p.after); err != nil {
		return err
	}
	p.after.horizon, p.after.transactional = -1, false
	for i := 0; i < p.sealed; {
		n := p.group(i)
		if err := p.cleanGroup(p.all[i : i+n]); err != nil {
			return err
		}
		i += n
	}
	p.after.dirty = max(p.before.dirty, p.mapped)
	return p.l.writeCleanState(p.after)
}

// look finds out how the transactions ended, and how many keys there may be.
func (p *pass) look() error {
	from := p.dirty
	if p.before.transactional {
		from = p.all[0].base
	}
	records := int64(0)
	for _, s := range p.all {
		if s.end <= from {
			continue
		}
		if s.base >= p.end && len(p.survey.open) == 0 {
			break
		}
		err := p.walk(s, func(h *record.Header, batch []byte) (bool, error) {
			if h.BaseOffset >= p.end && len(p.survey.open) == 0 {
				return false, nil
			}
			if err := p.survey.note(h, batch); err != nil {
				return false, err
			}
			if h.LastOffset() >= p.dirty && h.BaseOffset < p.end && !h.Control() {
				records += int64(h.Count)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	p.keys = newKeyMap(records, p.o.MapBytes)
	return nil
}

// fill puts the last offset of each dirty key into the map, as far as they fit.
func (p *pass) fill() error {
	sweep := newTxnSweep(p.survey.aborted)
	var r record.Reader
	defer r.Close()
	for _, s := range p.all {
		if s.end <= p.dirty {
			continue
		}
		if s.base >= p.mapped {
			break
		}
		err := p.walk(s, func(h *record.Header, batch []byte) (bool, error) {
			switch {
			case h.BaseOffset >= p.mapped:
				return false, nil
			case h.LastOffset() < p.dirty:
				return true, nil
			case h.Control():
				sweep.marker(h)
				return true, nil
			case sweep.batch(h) || h.Count == 0:
				return true, nil
			}
			if err := r.Reset(batch); err != nil {
				return false, err
			}
			for r.Next() {
				rec := r.Record()
				if rec.Key == nil || rec.Offset < p.dirty {
					continue
				}
				if !p.keys.put(rec.Key, rec.Offset) {
					p.mapped = rec.Offset
					return false, nil
				}
			}
			return true, r.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// walk calls fn with each batch of the segment until it returns false. Checksums are verified.
func (p *pass) walk(s passSegment, fn func(h *record.Header, batch []byte) (bool, error)) error {
	return p.walkTo(s, s.size, fn)
}

func (p *pass) walkTo(s passSegment, to int64, fn func(h *record.Header, batch []byte) (bool, error)) error {
	f, err := p.l.m.files.acquire(s.path)
	if err != nil {
		return err
	}
	defer f.release()
	var from, have int64 // p.buf[:have] is the file from `from` on
	expect := int64(-1)
	for pos := int64(0); pos < to; {
		damaged := func(reason string) error { return &CorruptError{File: s.path, Offset: pos, Reason: reason} }
		window := func(n int64) ([]byte, error) {
			if pos >= from && pos+n <= from+have {
				return p.buf[pos-from : pos-from+n], nil
			}
			if int64(len(p.buf)) < n {
				p.buf = make([]byte, max(n, cleanBuffer))
			}
			from, have = pos, min(int64(len(p.buf)), s.size-pos)
			if n, err := f.ReadAt(p.buf[:have], pos); err != nil && !(errors.Is(err, io.EOF) && int64(n) == have) {
				have = 0
				return nil, fmt.Errorf("read %s: %w", s.path, err)
			}
			p.stats.BytesRead += have
			if err := p.pause(int(have)); err != nil {
				return nil, err
			}
			return p.buf[:n], nil
		}
		if s.size-pos < record.HeaderLen {
			return damaged("a batch is cut off")
		}
		b, err := window(record.HeaderLen)
		if err != nil {
			return err
		}
		h, err := record.ParseHeader(b)
		if err != nil {
			return damaged(err.Error())
		}
		size := int64(h.Size())
		switch {
		case size > s.size-pos:
			return damaged(fmt.Sprintf("a batch of %d bytes is cut off after %d", size, s.size-pos))
		case size > mostBatchBytes:
			return fmt.Errorf("%s: the batch at byte %d has %d bytes, and at most %d can be compacted", s.path, pos, size, mostBatchBytes)
		case h.BaseOffset < max(expect, s.base):
			return damaged(fmt.Sprintf("the batch says that its offset is %d, and it must be at least %d", h.BaseOffset, max(expect, s.base)))
		}
		if b, err = window(size); err != nil {
			return err
		}
		if record.Checksum(b) != h.CRC {
			return damaged("the checksum of the batch does not match")
		}
		expect = h.NextOffset()
		more, err := fn(&h, b)
		if err != nil {
			return fmt.Errorf("%s, batch at byte %d: %w", s.path, pos, err)
		}
		if !more {
			return nil
		}
		pos += size
	}
	return nil
}

// group is how many segments, from i on, are put into one: as many as fit the size, and whose offsets fit the relative ones of an index.
func (p *pass) group(i int) int {
	first, size := p.all[i], int64(0)
	n := 0
	for _, s := range p.all[i:p.sealed] {
		if n > 0 && (size+s.size > p.config.SegmentBytes || s.end-1-first.base > math.MaxInt32) {
			break
		}
		size += s.size
		n++
	}
	return n
}

// cleanGroup writes what stays of the segments into one, and puts that in their place. A single segment of which all stays is left alone.
func (p *pass) cleanGroup(g []passSegment) error {
	out := newCleanFile(p, g[0].base)
	defer out.discard()
	if len(g) > 1 {
		if err := out.create(); err != nil {
			return err
		}
	}
	var before int64
	for i, s := range g {
		pos := int64(0)
		err := p.walk(s, func(h *record.Header, batch []byte) (bool, error) {
			pos += int64(len(batch))
			stays, err := p.judge(h, batch, i == len(g)-1 && pos == s.size, out)
			if err != nil || len(stays) == 0 {
				if err == nil {
					err = out.begin(s)
				}
				return true, err
			}
			if &stays[0] != &batch[0] {
				if err := out.begin(s); err != nil {
					return false, err
				}
			}
			return true, out.add(stays)
		})
		if err != nil {
			return err
		}
		before += s.size
	}
	if out.file == nil {
		return nil
	}
	if err := out.seal(g); err != nil {
		return err
	}
	if err := out.putInPlace(g); err != nil {
		return err
	}
	p.stats.BytesBefore += before
	p.stats.BytesAfter += out.segment.size
	p.stats.RecordsRead += out.read
	p.stats.RecordsKept += out.kept
	p.stats.Replaced += len(g)
	p.stats.Segments++
	return nil
}

// judge returns what stays of a batch: all (the batch itself), a part, or nothing (nil). The last one of the new segment stays at least as a header, so
// that the segment ends where the old ones did; so does the last one of each producer, which has its last sequence.
func (p *pass) judge(h *record.Header, batch []byte, last bool, out *cleanFile) ([]byte, error) {
	if h.BaseOffset >= p.end {
		if !h.Control() {
			p.sweep.batch(h)
		} else if t, aborted, _ := p.sweep.marker(h); aborted {
			out.aborted = append(out.aborted, t)
		}
		return batch, nil
	}
	if h.Control() {
		return p.judgeMarker(h, batch, last, out)
	}
	aborted := p.sweep.batch(h)
	horizon, hasHorizon := h.DeleteHorizon()
	out.read += int64(h.Count)
	if !aborted && h.Count > 0 {
		if err := p.rewriter.Reset(batch); err != nil {
			return nil, err
		}
		tombstones := false
		for p.rewriter.Next() {
			r := p.rewriter.Record()
			if r.Key == nil && r.Offset < p.mapped {
				p.stats.Keyless++
				continue
			}
			if !p.stays(r, hasHorizon && p.now >= horizon) {
				continue
			}
			tombstones = tombstones || r.Value == nil
			p.rewriter.Keep()
		}
		if err := p.rewriter.Err(); err != nil {
			return nil, err
		}
		kept := p.rewriter.Kept()
		out.kept += int64(kept)
		if kept > 0 {
			set := record.NoHorizon
			if tombstones && !hasHorizon && h.LastOffset() < p.mapped {
				set = p.newHorizon()
			}
			if tombstones {
				p.after.horizon = max(p.after.horizon, set)
				if hasHorizon {
					p.after.horizon = max(p.after.horizon, horizon)
				}
			}
			p.after.transactional = p.after.transactional || h.Transactional()
			if kept == int(h.Count) && set == record.NoHorizon {
				return batch, nil
			}
			p.rewritten = p.rewriter.AppendTo(p.rewritten[:0], set)
			return p.rewritten, nil
		}
	}
	if of, ok := p.lastOf[h.ProducerID]; !last && !(ok && of.data == h.LastOffset()) {
		return nil, nil
	}
	p.after.transactional = p.after.transactional || h.Transactional()
	if h.Count == 0 {
		return batch, nil
	}
	p.rewritten = record.AppendEmpty(p.rewritten[:0], batch)
	return p.rewritten, nil
}

// stays decides on one record.
func (p *pass) stays(r *record.Record, expired bool) bool {
	switch {
	case r.Offset >= p.mapped:
		return true
	case r.Offset < p.keys.last(r.Key):
		return false // a later one has its key
	}
	return r.Value != nil || !expired
}

// judgeMarker decides on a control batch. A marker is needed as long as its transaction has data, for a reader would take the data for that of the producer's
// next transaction, and then until the retention of deletes has passed, since a reader may have read the data.
func (p *pass) judgeMarker(h *record.Header, batch []byte, last bool, out *cleanFile) ([]byte, error) {
	t, aborted, data := p.sweep.marker(h)
	if aborted {
		out.aborted = append(out.aborted, t)
	}
	p.after.transactional = true
	if data || h.LastOffset() >= p.mapped {
		return batch, nil
	}
	if _, ok, err := record.ParseEndMarker(batch); err != nil || !ok {
		return batch, err
	}
	if of, ok := p.lastOf[h.ProducerID]; ok && of.marker == h.LastOffset() {
		return batch, nil
	}
	horizon, ok := h.DeleteHorizon()
	switch {
	case !ok:
		horizon = p.newHorizon()
		if err := p.rewriter.Reset(batch); err != nil {
			return nil, err
		}
		for p.rewriter.Next() {
			p.rewriter.Keep()
		}
		p.rewritten = p.rewriter.AppendTo(p.rewritten[:0], horizon)
		batch = p.rewritten
	case p.now >= horizon && !last:
		return nil, nil
	}
	if !last {
		p.after.horizon = max(p.after.horizon, horizon)
	}
	return batch, nil
}

func (p *pass) newHorizon() int64 {
	return p.now + min(p.config.DeleteRetention.Milliseconds(), math.MaxInt64-p.now)
}

// cleanFile is the segment that a group becomes.
type cleanFile struct {
	p          *pass
	segment    *segment
	file       vfs.File // nil: nothing has changed so far, and nothing was written
	made       bool     // there are files to be removed if the group is given up
	indexed    bool     // there is an index of aborted transactions beside it
	buf        []byte
	aborted    []abortedTxn // whose markers are in it
	read, kept int64        // records
}

func newCleanFile(p *pass, base int64) *cleanFile {
	fs := p.l.m.o.FS
	return &cleanFile{p: p, segment: &segment{base: base, path: fs.PathJoin(p.l.dir, segmentName(base)), indexed: true, largest: math.MinInt64, pinned: true}}
}

func (c *cleanFile) cleanedPath() string { return c.segment.path + ".log" + cleanedSuffix }

func (c *cleanFile) create() (err error) {
	c.file, err = c.p.l.m.o.FS.Create(c.cleanedPath(), vfs.Unspecified)
	c.made = err == nil
	return err
}

// begin makes the file at the first change, with what was left alone before it: the beginning of the segment.
func (c *cleanFile) begin(s passSegment) error {
	if c.file != nil {
		return nil
	}
	if err := c.create(); err != nil {
		return err
	}
	f, err := c.p.l.m.files.acquire(s.path)
	if err != nil {
		return err
	}
	defer f.release()
	buf := make([]byte, min(cleanBuffer, c.segment.size))
	for at := int64(0); at < c.segment.size; {
		b := buf[:min(int64(len(buf)), c.segment.size-at)]
		if n, err := f.ReadAt(b, at); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
			return fmt.Errorf("read %s: %w", s.path, err)
		}
		if _, err := c.file.Write(b); err != nil {
			return err
		}
		at += int64(len(b))
		c.p.stats.BytesRead += int64(len(b))
		c.p.stats.BytesWritten += int64(len(b))
		if err := c.p.pause(2 * len(b)); err != nil {
			return err
		}
	}
	return nil
}

// add notes a batch, and writes it unless it is where it was.
func (c *cleanFile) add(batch []byte) error {
	h, err := record.ParseHeader(batch)
	if err != nil {
		return err
	}
	s := c.segment
	if s.size+int64(len(batch)) > math.MaxInt32 || h.LastOffset()-s.base > math.MaxInt32 {
		return fmt.Errorf("segment %s would have more than 2 GiB, or offsets too far apart for its index, after compaction: set a smaller segment.bytes", s.logPath())
	}
	s.note(&h, s.size, c.p.config.IndexIntervalBytes)
	s.size += int64(len(batch))
	if c.file == nil {
		return nil
	}
	if len(c.buf)+len(batch) > cleanBuffer {
		if err := c.flush(); err != nil {
			return err
		}
	}
	c.buf = append(c.buf, batch...)
	return nil
}

func (c *cleanFile) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	n := len(c.buf)
	if _, err := c.file.Write(c.buf); err != nil {
		return err
	}
	c.buf = c.buf[:0]
	c.p.stats.BytesWritten += int64(n)
	return c.p.pause(n)
}

// seal makes the file durable, and beside it the list of the aborted transactions that readers must still be told of.
func (c *cleanFile) seal(g []passSegment) error {
	if err := c.flush(); err != nil {
		return err
	}
	err := c.file.Sync()
	if cerr := c.file.Close(); err == nil {
		err = cerr
	}
	c.file = nil
	if err != nil {
		return err
	}
	c.segment.verifiedTo = c.segment.size // it was made from bytes that were verified
	fs := c.p.l.m.o.FS
	c.indexed = len(c.aborted) > 0
	for _, s := range g {
		if c.indexed {
			break
		}
		_, err := fs.Stat(s.s.path + ".txnindex")
		if err != nil && !vfs.NotExist(err) {
			return err
		}
		c.indexed = err == nil // one without entries takes its place
	}
	if !c.indexed {
		return nil
	}
	f, err := fs.Create(c.segment.path+".txnindex"+cleanedSuffix, vfs.Unspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write(appendTxnIndex(nil, c.aborted, g[len(g)-1].end)); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// discard removes what was not put in place.
func (c *cleanFile) discard() {
	if c.file != nil {
		_ = c.file.Close()
		c.file = nil
	}
	if !c.made {
		return
	}
	fs := c.p.l.m.o.FS
	_ = fs.Remove(c.cleanedPath())
	for _, suffix := range []string{cleanedSuffix, swapSuffix} {
		_ = fs.Remove(c.segment.path + ".txnindex" + suffix)
	}
}

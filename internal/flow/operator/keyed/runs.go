package keyed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/leat-io/leat/internal/spill"
	"github.com/leat-io/leat/internal/state"
)

// Runs are rows of an epoch that are more than may be in memory: files of (key, row, weight), each sorted by key, which Open and Next read merged. Rows of
// one key come in the order in which their runs were written.
type Runs struct {
	scratch *spill.Scratch
	levels  [][]spill.File // level 0 has runs as they were written, the next ones what maxRuns of the level below were merged into
	cursors []cursor       // a heap: the first one's record is the next
	ids     []int32
}

const (
	// maxRuns of one level are merged into one: as many files are open at once, for each level.
	maxRuns = 32
	// runBlock is how long a block of a run is, a longer record apart; runBuffer is what each run is read through.
	runBlock, runBuffer = 32 << 10, 64 << 10
)

var errRun = fmt.Errorf("%w: a malformed record", spill.ErrFiles)

// Any tells whether there are runs.
func (r *Runs) Any() bool { return len(r.levels) > 0 }

// Add writes the rows of c as a run, and takes them out of memory and the accounts.
func (r *Runs) Add(c *Changes, t *state.Tables, scratch *spill.Scratch) error {
	w, err := r.Begin(scratch)
	if err != nil {
		return err
	}
	r.ids = c.Sorted(r.ids[:0])
	for _, id := range r.ids {
		key := c.Keys.Key(int(id))
		c.Each(int(id), func(row []byte, weight int64) {
			if err == nil {
				err = w.Append(key, row, weight)
			}
		})
		if err != nil {
			return err
		}
	}
	r.ids = keep(r.ids, 4)
	c.Release(t)
	return w.End()
}

// RunWriter writes one run.
type RunWriter struct {
	runs  *Runs
	w     *spill.Writer
	block []byte
}

// Begin begins a run.
func (r *Runs) Begin(scratch *spill.Scratch) (*RunWriter, error) {
	r.scratch = scratch
	w, err := scratch.Create()
	return &RunWriter{runs: r, w: w}, err
}

// Append adds a row; keys come in order.
func (w *RunWriter) Append(key, row []byte, weight int64) error {
	b := binary.AppendUvarint(w.block, uint64(len(key)))
	b = append(b, key...)
	b = binary.AppendVarint(b, weight)
	b = binary.AppendUvarint(b, uint64(len(row)))
	w.block = append(b, row...)
	if len(w.block) < runBlock {
		return nil
	}
	return w.flush()
}

func (w *RunWriter) flush() error {
	if len(w.block) == 0 {
		return nil
	}
	err := w.w.Append(w.block)
	w.block = w.block[:0]
	return err
}

// End ends the run, and merges runs if there are too many.
func (w *RunWriter) End() error {
	file, err := w.end()
	if err != nil {
		return err
	}
	return w.runs.add(0, file)
}

func (w *RunWriter) end() (spill.File, error) {
	if err := w.flush(); err != nil {
		return spill.File{}, err
	}
	return w.w.Close()
}

func (r *Runs) add(level int, file spill.File) error {
	if level == len(r.levels) {
		r.levels = append(r.levels, nil)
	}
	r.levels[level] = append(r.levels[level], file)
	if len(r.levels[level]) < maxRuns {
		return nil
	}
	merged := r.levels[level]
	r.levels[level] = nil
	file, err := r.merge(merged)
	if err != nil {
		return err
	}
	return r.add(level+1, file)
}

// merge makes one run of several, which it removes.
func (r *Runs) merge(files []spill.File) (spill.File, error) {
	if err := r.open(files); err != nil {
		return spill.File{}, err
	}
	w, err := r.Begin(r.scratch)
	if err != nil {
		return spill.File{}, err
	}
	for r.Next() {
		if err := w.Append(r.Key(), r.Row(), r.Weight()); err != nil {
			return spill.File{}, err
		}
		if err := r.Move(); err != nil {
			return spill.File{}, err
		}
	}
	for _, f := range files {
		if err := r.scratch.Remove(f); err != nil {
			return spill.File{}, err
		}
	}
	return w.end()
}

// Open begins to read all runs.
func (r *Runs) Open() error {
	var all []spill.File
	for level := len(r.levels) - 1; level >= 0; level-- { // what is in a higher one is older
		all = append(all, r.levels[level]...)
	}
	return r.open(all)
}

func (r *Runs) open(files []spill.File) error {
	r.cursors = make([]cursor, 0, len(files))
	for i, f := range files {
		in, err := r.scratch.Open(f, runBuffer)
		if err != nil {
			return err
		}
		c := cursor{in: in, number: i}
		if err := c.next(); err != nil {
			return err
		}
		if !c.done {
			r.cursors = append(r.cursors, c)
		}
	}
	for i := len(r.cursors)/2 - 1; i >= 0; i-- {
		r.sink(i)
	}
	return nil
}

// Next tells whether there is another record, which Key, Row and Weight are of, until Move.
func (r *Runs) Next() bool { return len(r.cursors) > 0 }

// Key is that of the record.
func (r *Runs) Key() []byte { return r.cursors[0].key }

// Row is that of the record.
func (r *Runs) Row() []byte { return r.cursors[0].row }

// Weight is that of the record.
func (r *Runs) Weight() int64 { return r.cursors[0].weight }

// Move goes on to the next record.
func (r *Runs) Move() error {
	c := &r.cursors[0]
	if err := c.next(); err != nil {
		return err
	}
	if c.done {
		last := len(r.cursors) - 1
		r.cursors[0] = r.cursors[last]
		r.cursors[last] = cursor{}
		r.cursors = r.cursors[:last]
	}
	r.sink(0)
	return nil
}

// Fill adds the records of the next keys to c: of n keys, or as many as have so many bytes.
func (r *Runs) Fill(c *Changes, n int, size int64) error {
	for r.Next() {
		if k := c.Len(); k > 0 && (k >= n || c.Bytes() >= size) && !bytes.Equal(c.Keys.Key(k-1), r.Key()) {
			return nil
		}
		c.Add(r.Key(), r.Row(), r.Weight())
		if err := r.Move(); err != nil {
			return err
		}
	}
	return nil
}

// Close forgets all runs.
func (r *Runs) Close() error {
	var err error
	if r.scratch != nil {
		err = r.scratch.Close()
	}
	*r = Runs{ids: r.ids}
	return err
}

// sink moves a cursor of the heap down to its place.
func (r *Runs) sink(i int) {
	h := r.cursors
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// cursor is at a record of a run.
type cursor struct {
	in       *spill.Reader
	number   int // runs that were written earlier have lower ones
	left     []byte
	key, row []byte
	weight   int64
	done     bool
}

func (c *cursor) before(o *cursor) bool {
	d := bytes.Compare(c.key, o.key)
	return d < 0 || d == 0 && c.number < o.number
}

// next moves to the next record.
func (c *cursor) next() error {
	if len(c.left) == 0 {
		block, err := c.in.Next()
		if errors.Is(err, io.EOF) {
			c.done = true
			c.in.Close()
			return nil
		}
		if err != nil {
			return fmt.Errorf("read rows that did not fit in memory: %w", err)
		}
		c.left = block
	}
	var ok [2]bool
	c.key, ok[0] = c.bytes()
	n := 0
	if c.weight, n = binary.Varint(c.left); n <= 0 {
		return errRun
	}
	c.left = c.left[n:]
	if c.row, ok[1] = c.bytes(); !ok[0] || !ok[1] {
		return errRun
	}
	return nil
}

func (c *cursor) bytes() ([]byte, bool) {
	n, k := binary.Uvarint(c.left)
	if k <= 0 || n > uint64(len(c.left)-k) {
		return nil, false
	}
	end := k + int(n)
	b := c.left[k:end:end]
	c.left = c.left[end:]
	return b, true
}

package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/spill"
)

// A payload of format 2 names a file whose blocks are payloads of format 1, to be read in its place: number, length and checksum of the file, then how many
// operations it has.
const (
	refVersion = 2
	refBytes   = 1 + 8 + 8 + 4 + 8
)

// ref is what such a payload says.
type ref struct {
	file    spill.File
	changes int64
}

func (r ref) encode() []byte {
	b := append(make([]byte, 0, refBytes), refVersion)
	b = binary.BigEndian.AppendUint64(b, r.file.Number)
	b = binary.BigEndian.AppendUint64(b, uint64(r.file.Bytes))
	b = binary.BigEndian.AppendUint32(b, r.file.Sum)
	return binary.BigEndian.AppendUint64(b, uint64(r.changes))
}

func isRef(payload []byte) bool { return len(payload) > 0 && payload[0] == refVersion }

func decodeRef(payload []byte) (r ref, err error) {
	if len(payload) != refBytes {
		return r, fmt.Errorf("%w: the name of a file of rows has %d bytes, not %d", ErrCorrupt, len(payload), refBytes)
	}
	r.file.Number = binary.BigEndian.Uint64(payload[1:])
	r.file.Bytes = int64(binary.BigEndian.Uint64(payload[9:]))
	r.file.Sum = binary.BigEndian.Uint32(payload[17:])
	r.changes = int64(binary.BigEndian.Uint64(payload[21:]))
	if r.file.Bytes < 0 || r.changes < 0 || r.changes > r.file.Bytes {
		return r, fmt.Errorf("%w: a file of rows of %d bytes with %d changes", ErrCorrupt, r.file.Bytes, r.changes)
	}
	return r, nil
}

// spilling is how a Changes keeps its payloads in bounds: beyond the limit those that are full go to a file.
type spilling struct {
	folder  *spill.Folder // nil: all stay
	limit   int64
	kinds   [2]spilledKind // state, rows
	bytes   int64          // of files that are closed
	settled bool           // some are of rows that memory let go of
	err     error
}

type spilledKind struct {
	refs    [][]byte // of files that come before everything else
	file    *spill.Writer
	inFile  int64 // operations
	full    int64 // bytes of the payloads in memory that are full
	changes int64 // operations in memory
}

func (s *spilling) of(kind journal.Kind) *spilledKind { return &s.kinds[queueOf(kind)] }

// payloadBytes is the length at which another payload is begun: some of them fit within the limit.
func (s *spilling) payloadBytes() int {
	if s.folder == nil {
		return payloadBytes
	}
	return int(min(payloadBytes, max(s.limit/4, 64)))
}

func (s *spilling) discard() {
	for i := range s.kinds {
		if w := s.kinds[i].file; w != nil {
			w.Discard()
			s.kinds[i].file = nil
		}
	}
}

// SpillTo has c keep no more than limit bytes of payloads of a kind in memory, and about one payload; the others go to a file in the folder.
func (c *Changes) SpillTo(folder *spill.Folder, limit int64) {
	c.spilling.folder, c.spilling.limit = folder, limit
}

// spill notes that the last payload of the list is full, and brings the list to the file if it is too long. It returns where the list ends.
func (c *Changes) spill(kind journal.Kind, list *[][]byte) (last int) {
	s := &c.spilling
	k := s.of(kind)
	last = len(*list) - 1
	if s.folder == nil {
		return last
	}
	if k.full += int64(len((*list)[last])); k.full <= s.limit {
		return last
	}
	c.write(kind, list)
	return -1
}

// write brings the list to the kind's file.
func (c *Changes) write(kind journal.Kind, list *[][]byte) {
	s := &c.spilling
	k := s.of(kind)
	if k.file == nil && s.err == nil {
		k.file, s.err = s.folder.Create(true)
	}
	for i, b := range *list {
		if s.err == nil {
			s.err = k.file.Append(b)
		}
		if len(c.spare) < 4 && cap(b) <= 2*payloadBytes {
			c.spare = append(c.spare, b[:0])
		}
		(*list)[i] = nil
	}
	*list = (*list)[:0]
	c.open[queueOf(kind)].any = false
	k.inFile += k.changes
	k.full, k.changes = 0, 0
}

// follow puts what early has given, all of which is in files, before what c has.
func (c *Changes) follow(early *Changes) error {
	if len(early.State) > 0 {
		early.write(journal.KindState, &early.State)
	}
	if len(early.Rows) > 0 {
		early.write(journal.KindRows, &early.Rows)
	}
	err := early.closeFiles()
	for q := range c.spilling.kinds {
		c.spilling.kinds[q].refs = append(c.spilling.kinds[q].refs, early.spilling.kinds[q].refs...)
	}
	c.spilling.bytes += early.spilling.bytes
	c.spilling.settled = true
	return err
}

// closeFiles makes the files durable, and their names the kinds' refs.
func (c *Changes) closeFiles() error {
	s := &c.spilling
	for q := range s.kinds {
		k := &s.kinds[q]
		if k.file == nil {
			continue
		}
		file, err := k.file.Close()
		k.file = nil
		if err != nil {
			s.err = errors.Join(s.err, err)
			continue
		}
		k.refs = append(k.refs, ref{file: file, changes: k.inFile}.encode())
		k.inFile = 0
		s.bytes += file.Bytes
	}
	return s.err
}

// finish ends c: what files hold is named by its first payloads. The files are durable then, so that a unit may name them.
func (c *Changes) finish() error {
	err := c.closeFiles()
	for q, list := range []*[][]byte{&c.State, &c.Rows} {
		if refs := c.spilling.kinds[q].refs; len(refs) > 0 {
			*list = append(refs, *list...)
			c.spilling.kinds[q].refs = nil
		}
	}
	return err
}

// Spilled is how many bytes of the changes are in files.
func (c *Changes) Spilled() int64 { return c.spilling.bytes }

// Settled tells whether memory has let go of some of the changes: the unit must be applied, rows and state, before the next epoch begins.
func (c *Changes) Settled() bool { return c.spilling.settled }

// readBytes is the buffer that a file is read through.
const readBytes = 256 << 10

// each calls fn for the operations in a file.
func (r ref) each(folder *spill.Folder, fn func(c *Change) error) error {
	if folder == nil {
		return errors.New("the journal names a file of rows, and there is no folder for such")
	}
	in, err := folder.Open(r.file, readBytes)
	if err != nil {
		return err
	}
	defer in.Close()
	n := int64(0)
	for {
		payload, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		d := NewDecoder(payload)
		for c := (Change{}); d.Next(&c); n++ {
			if err := fn(&c); err != nil {
				return err
			}
		}
		if err := d.Err(); err != nil {
			return fmt.Errorf("in the file of spilled rows %016x: %w", r.file.Number, err)
		}
	}
	if n != r.changes {
		return fmt.Errorf("%w: the file of spilled rows %016x has %d changes, not %d", ErrCorrupt, r.file.Number, n, r.changes)
	}
	return nil
}

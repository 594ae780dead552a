package postgres

import (
	"encoding/binary"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
	"github.com/leat-io/leat/internal/sql/bind"
	"github.com/leat-io/leat/internal/sql/plan"
)

const (
	textFormat   = int16(0)
	binaryFormat = int16(1)
	// flushBytes is how much is gathered before it is written to the client.
	flushBytes = 64 << 10
)

// formatOf is the format of item i by the rules of the Bind message.
func formatOf(codes []int16, i int) int16 {
	switch len(codes) {
	case 0:
		return textFormat
	case 1:
		return codes[0]
	}
	return codes[i]
}

func rowDescription(cols []plan.Column, formats []int16) *pgproto3.RowDescription {
	d := &pgproto3.RowDescription{}
	for i := range cols {
		t := cols[i].Type
		d.Fields = append(d.Fields, pgproto3.FieldDescription{
			Name: []byte(cols[i].Name), DataTypeOID: pgtype.OID(t), DataTypeSize: pgtype.Len(t), TypeModifier: pgtype.Typmod(t), Format: formatOf(formats, i),
		})
	}
	return d
}

// output sends what a statement gives to the client, as it comes.
type output struct {
	c        *conn
	describe bool // simple protocol: the rows are described first
	formats  []int16
	keep     *portal // where the rows go instead, nil if they are sent
	buf      []byte
	cuts     []cut // of the row at hand, in order
	taken    int64 // of the statement's memory, for the row at hand
}

// Columns implements session.Output.
func (o *output) Columns(cols []plan.Column) error {
	if o.describe {
		o.c.backend.Send(rowDescription(cols, nil))
	}
	return nil
}

// largeBytes is from where on a value is not copied before it is written, or is accounted for while it is made.
const largeBytes = 64 << 10

// cut is a value that stands as it is in the row, at a place of the encoded rows.
type cut struct {
	at    int
	value []byte
}

// Rows implements session.Output.
func (o *output) Rows(b *column.Batch) error {
	buf := o.buf[:0]
	for row := range b.Len {
		from := len(buf)
		var err error
		if buf, err = o.row(buf, b, row); err != nil {
			return err
		}
		switch {
		case o.keep != nil:
			err = o.hold(buf[from:], from)
			buf = buf[:from]
		case len(o.cuts) > 0:
			err = o.pieces(buf)
			buf = buf[:0]
		case len(buf) >= flushBytes:
			err = o.c.sendRows(buf)
			buf = buf[:0]
		}
		o.c.session.Memory().Give(o.taken)
		o.taken = 0
		if err != nil {
			return err
		}
	}
	if o.buf = buf; cap(buf) > 16*flushBytes {
		o.buf = nil
	}
	if len(buf) == 0 {
		return nil
	}
	return o.c.sendRows(buf)
}

// row appends a DataRow message, but for the large values that o.cuts has then.
func (o *output) row(buf []byte, b *column.Batch, row int) ([]byte, error) {
	from, apart := len(buf), 0
	o.cuts = o.cuts[:0]
	buf = append(buf, 'D', 0, 0, 0, 0)
	buf = binary.BigEndian.AppendUint16(buf, uint16(len(b.Cols)))
	for i, v := range b.Cols {
		if v.IsNull(row) {
			buf = append(buf, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		format := formatOf(o.formats, i)
		if v.Type.Kind.Varlen() {
			if value := v.Bytes(row); len(value) >= largeBytes {
				if v.Type.Kind == column.Text || v.Type.Kind == column.Bytea && format == binaryFormat {
					buf = binary.BigEndian.AppendUint32(buf, uint32(len(value)))
					o.cuts = append(o.cuts, cut{len(buf), value})
					apart += len(value)
					continue
				}
				size := 4 * int64(len(value)) // as text it is longer, and a buffer that grows is there twice
				if err := o.c.session.Memory().Take(size); err != nil {
					return buf, err
				}
				o.taken += size
			}
		}
		at := len(buf)
		buf = append(buf, 0, 0, 0, 0)
		if format == binaryFormat {
			buf = pgtype.AppendBinary(buf, v, row)
		} else {
			buf = pgtype.AppendText(buf, v, row, o.c.session.Zone())
		}
		binary.BigEndian.PutUint32(buf[at:], uint32(len(buf)-at-4))
	}
	size := len(buf) - from + apart - 1
	if size >= maxRow {
		return buf, pgerr.Newf(pgerr.ProgramLimitExceeded, "a row of the result is %d bytes long; the protocol takes %d", size, maxRow)
	}
	binary.BigEndian.PutUint32(buf[from+1:], uint32(size))
	return buf, nil
}

// maxRow bounds a message, as PostgreSQL does.
const maxRow = 1<<30 - 1

// pieces writes rows whose last one has large values.
func (o *output) pieces(buf []byte) error {
	at := 0
	for _, c := range o.cuts {
		if err := o.c.write(buf[at:c.at]); err != nil {
			return err
		}
		if err := o.c.write(c.value); err != nil {
			return err
		}
		at = c.at
	}
	return o.c.write(buf[at:])
}

// hold keeps a row, which stands behind base bytes, for a portal.
func (o *output) hold(row []byte, base int) error {
	size := len(row) + 8
	for _, c := range o.cuts {
		size += len(c.value)
	}
	if err := o.c.hold(o.keep, size, 2*int64(size)); err != nil { // they are gathered in memory that doubles
		return err
	}
	at := 0
	for _, c := range o.cuts {
		o.keep.rows.data = append(append(o.keep.rows.data, row[at:c.at-base]...), c.value...)
		at = c.at - base
	}
	o.keep.rows.add(row[at:])
	return nil
}

// Notice implements session.Output.
func (o *output) Notice(n bind.Notice) error {
	code := n.Code
	if code == "" {
		code = "00000"
	}
	severity := "NOTICE"
	if strings.HasPrefix(code, "25") { // what is asked of a transaction and has no effect
		severity = "WARNING"
	}
	o.c.backend.Send(&pgproto3.NoticeResponse{Severity: severity, SeverityUnlocalized: severity, Code: code, Message: n.Message, Hint: n.Hint})
	return nil
}

// encoded is messages that are encoded already.
type encoded []byte

// Backend implements pgproto3.BackendMessage.
func (encoded) Backend() {}

// Decode implements pgproto3.Message; nobody decodes one.
func (encoded) Decode([]byte) error { return nil }

// Encode implements pgproto3.Message.
func (e encoded) Encode(dst []byte) ([]byte, error) { return append(dst, e...), nil }

// suspended are the encoded rows of a portal that is fetched in pieces.
type suspended struct {
	data []byte
	ends []int
	next int
	tag  string
}

func (s *suspended) add(row []byte) {
	s.data = append(s.data, row...)
	s.ends = append(s.ends, len(s.data))
}

// send sends up to limit rows, all if it is 0, and tells whether there are more.
func (s *suspended) send(c *conn, limit uint32) (more bool, err error) {
	for sent := uint32(0); s.next < len(s.ends) && (limit == 0 || sent < limit); sent++ {
		from := 0
		if s.next > 0 {
			from = s.ends[s.next-1]
		}
		if err := c.sendRows(s.data[from:s.ends[s.next]]); err != nil {
			return false, err
		}
		s.next++
	}
	return s.next < len(s.ends), nil
}

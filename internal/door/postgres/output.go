package postgres

import (
	"encoding/binary"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/leat-io/leat/internal/column"
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
}

// Columns implements session.Output.
func (o *output) Columns(cols []plan.Column) error {
	if o.describe {
		o.c.backend.Send(rowDescription(cols, nil))
	}
	return nil
}

// Rows implements session.Output.
func (o *output) Rows(b *column.Batch) error {
	zone := o.c.session.Zone()
	buf := o.buf[:0]
	for row := range b.Len {
		from := len(buf)
		buf = append(buf, 'D', 0, 0, 0, 0)
		buf = binary.BigEndian.AppendUint16(buf, uint16(len(b.Cols)))
		for i, v := range b.Cols {
			if v.IsNull(row) {
				buf = append(buf, 0xff, 0xff, 0xff, 0xff)
				continue
			}
			at := len(buf)
			buf = append(buf, 0, 0, 0, 0)
			if formatOf(o.formats, i) == binaryFormat {
				buf = pgtype.AppendBinary(buf, v, row)
			} else {
				buf = pgtype.AppendText(buf, v, row, zone)
			}
			binary.BigEndian.PutUint32(buf[at:], uint32(len(buf)-at-4))
		}
		binary.BigEndian.PutUint32(buf[from+1:], uint32(len(buf)-from-1))
		if o.keep != nil {
			if err := o.c.hold(o.keep, len(buf)-from+8); err != nil {
				return err
			}
			o.keep.rows.add(buf[from:])
			buf = buf[:from]
		} else if len(buf) >= flushBytes {
			if err := o.c.sendRows(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	o.buf = buf
	if len(buf) == 0 {
		return nil
	}
	return o.c.sendRows(buf)
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

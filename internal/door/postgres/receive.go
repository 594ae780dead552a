package postgres

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/leat-io/leat/internal/budget"
)

const (
	maxStartup = 10_000 // bytes of a start-up message, as in PostgreSQL
	// bodyStep is what is allocated for a message before any of it has come; more is when that much is there. A client that announces much and
	// sends nothing takes no memory.
	bodyStep = 64 << 10
	maxKept  = 128 << 10 // a buffer that has become larger is given up when its message is done

	sslRequest     = 80877103
	cancelRequest  = 80877102
	gssEncRequest  = 80877104
	startupVersion = 3 // the major version of the protocol
)

// receiver reads the messages of a client. A message is valid until the next one is read.
type receiver struct {
	r      *bufio.Reader
	max    int // bytes of a message
	body   []byte
	memory *budget.Account // what bodies beyond bodyStep, and what is copied of them, are taken from; nil: no bound but max
	taken  int64

	bind     pgproto3.Bind
	closing  pgproto3.Close
	describe pgproto3.Describe
	execute  pgproto3.Execute
	parse    pgproto3.Parse
	query    pgproto3.Query
}

func newReceiver(nc net.Conn, max int) *receiver {
	return &receiver{r: bufio.NewReaderSize(nc, 8<<10), max: max}
}

// malformed is a message that is not the protocol's.
type malformed struct{ what string }

func (e *malformed) Error() string { return e.what }

// refused is a message for which there was no memory. It was passed over: the connection can go on.
type refused struct {
	kind byte
	err  error
}

func (e *refused) Error() string { return e.err.Error() }

// startup reads the first message of a connection, which has no type.
func (r *receiver) startup() (pgproto3.FrontendMessage, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length < 8 || length > maxStartup {
		return nil, &malformed{fmt.Sprintf("a start-up message of %d bytes: this is not PostgreSQL's protocol", length)}
	}
	body, err := r.read(int(length) - 4)
	if err != nil {
		return nil, err
	}
	var m pgproto3.FrontendMessage
	switch code := binary.BigEndian.Uint32(body); {
	case code == sslRequest:
		m = &pgproto3.SSLRequest{}
	case code == cancelRequest:
		m = &pgproto3.CancelRequest{}
	case code == gssEncRequest:
		m = &pgproto3.GSSEncRequest{}
	case code>>16 == startupVersion:
		m = &pgproto3.StartupMessage{}
	default:
		return nil, &malformed{fmt.Sprintf("unsupported frontend protocol %d.%d: the server supports 3.0", code>>16, code&0xffff)}
	}
	return m, decode(m, body)
}

// next reads the next message.
func (r *receiver) next() (pgproto3.FrontendMessage, error) {
	var head [5]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return nil, err
	}
	m := r.message(head[0])
	if m == nil {
		return nil, &malformed{fmt.Sprintf("invalid frontend message type %d", head[0])}
	}
	length := int64(binary.BigEndian.Uint32(head[1:]))
	if length < 4 || length-4 > int64(r.max) {
		return nil, &malformed{fmt.Sprintf("invalid message length %d: a message may have %d bytes", int32(length), r.max)}
	}
	body, err := r.read(int(length) - 4)
	if no := (*refused)(nil); errors.As(err, &no) {
		no.kind = head[0]
	}
	if err != nil {
		return nil, err
	}
	return m, decode(m, body)
}

// message is the message of a type byte, nil if there is none.
func (r *receiver) message(kind byte) pgproto3.FrontendMessage {
	switch kind {
	case 'B':
		return &r.bind
	case 'C':
		return &r.closing
	case 'D':
		return &r.describe
	case 'E':
		return &r.execute
	case 'P':
		return &r.parse
	case 'Q':
		return &r.query
	case 'S':
		return &pgproto3.Sync{}
	case 'H':
		return &pgproto3.Flush{}
	case 'X':
		return &pgproto3.Terminate{}
	case 'F':
		return &pgproto3.FunctionCall{}
	case 'd':
		return &pgproto3.CopyData{}
	case 'c':
		return &pgproto3.CopyDone{}
	case 'f':
		return &pgproto3.CopyFail{}
	case 'p':
		return &pgproto3.PasswordMessage{}
	}
	return nil
}

func decode(m pgproto3.FrontendMessage, body []byte) error {
	if err := m.Decode(body); err != nil {
		return &malformed{err.Error()}
	}
	return nil
}

// read reads a body of n bytes, taking memory as it comes.
func (r *receiver) read(n int) ([]byte, error) {
	if cap(r.body) > maxKept {
		r.free()
	}
	r.body = r.body[:0]
	for len(r.body) < n {
		from := len(r.body)
		to := min(n, max(cap(r.body), from+bodyStep, 2*from))
		if to > cap(r.body) {
			if to > bodyStep {
				size := 2 * int64(to)
				if err := r.memory.Take(size); err != nil {
					r.free()
					if _, err := io.CopyN(io.Discard, r.r, int64(n-from)); err != nil {
						return nil, err
					}
					return nil, &refused{err: err}
				}
				r.body = append(make([]byte, 0, to), r.body...)
				r.memory.Give(r.taken)
				r.taken = size
			} else {
				r.body = append(make([]byte, 0, to), r.body...)
			}
		}
		r.body = r.body[:to]
		if _, err := io.ReadFull(r.r, r.body[from:to]); err != nil {
			r.body = r.body[:0]
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return r.body[:n], nil
}

// free gives up the buffer.
func (r *receiver) free() {
	r.body = nil
	r.memory.Give(r.taken)
	r.taken = 0
}

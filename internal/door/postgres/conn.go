package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/leat-io/leat/internal/budget"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
	"github.com/leat-io/leat/internal/session"
	"github.com/leat-io/leat/internal/sql/parse"
)

// startupTimeout is how long a client may take to say who it is.
const startupTimeout = 10 * time.Second

// maxPortals bounds the portals of a connection; maxHeld is what they may hold of parameters and of results that are fetched in pieces.
const (
	maxPortals = 10_000
	maxHeld    = 256 << 20
)

// conn is one client. All but cancelStatement and drain run on its own goroutine.
type conn struct {
	s       *Server
	net     net.Conn
	in      *receiver
	out     deadlineWriter
	backend *pgproto3.Backend // what is sent
	memory  *budget.Account   // what the connection keeps, beside what a statement does while it runs
	pid     uint32
	secret  uint32
	session *session.Session

	portals  map[string]*portal
	held     int    // bytes that the portals hold
	taken    int64  // of memory, for these
	skipping bool   // an error in the extended protocol: everything up to Sync is passed over
	unsent   int    // bytes that were handed to backend since the last flush
	scratch  []byte // of one message

	draining atomic.Bool
	mu       sync.Mutex
	cancel   context.CancelCauseFunc // of the statement that runs
}

// portal is a bound statement. A client that fetches it in pieces gets them from what was buffered at its first Execute.
type portal struct {
	stmt    *session.Prepared
	args    []*expr.Node
	formats []int16
	rows    *suspended
	held    int   // of conn.held
	taken   int64 // of conn.taken
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, net: nc, portals: map[string]*portal{}}
	c.in = newReceiver(nc, s.o.MaxMessage)
	c.out = deadlineWriter{nc, s.o.WriteTimeout}
	c.backend = pgproto3.NewBackend(eof{}, c.out)
	return c
}

// eof is what the backend could read: nothing, the receiver does that.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// writePiece is how much a client has to take within the write timeout. One that is slow, and goes on taking, may take all the time it needs.
const writePiece = 256 << 10

// deadlineWriter gives every piece of what is written a time by which the client must have taken it.
type deadlineWriter struct {
	net     net.Conn
	timeout time.Duration
}

func (w deadlineWriter) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		if err := w.net.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
			return written, err
		}
		n, err := w.net.Write(p[:min(len(p), writePiece)])
		written, p = written+n, p[n:]
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func (c *conn) close() {
	if c.session != nil {
		c.session.Close()
	}
	c.memory.Close()
	_ = c.net.Close()
}

// drain ends the connection once its statement is done.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining.Store(true)
	_ = c.net.SetReadDeadline(time.Unix(1, 0)) // wakes the goroutine if it waits for the client
}

func (c *conn) cancelStatement() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel(pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request"))
	}
}

// run serves the connection until its client ends it.
func (c *conn) run() error {
	if err := c.net.SetReadDeadline(time.Now().Add(startupTimeout)); err != nil {
		return err
	}
	ok, err := c.startup()
	if err != nil || !ok {
		return err
	}
	if err := c.deadline(time.Time{}); err != nil {
		return err
	}
	for {
		if c.draining.Load() {
			c.fatal(pgerr.New(pgerr.AdminShutdown, "terminating connection due to administrator command"))
			return nil
		}
		msg, err := c.next()
		if err != nil {
			if c.draining.Load() {
				continue
			}
			if errors.Is(err, os.ErrDeadlineExceeded) && c.session.IdleTimeout() > 0 {
				c.fatal(pgerr.New("25P03", "terminating connection due to idle-in-transaction timeout"))
				return nil
			}
			if no := (*refused)(nil); errors.As(err, &no) {
				if err := c.pass(no); err != nil {
					return err
				}
				continue
			}
			var bad *malformed
			if errors.As(err, &bad) {
				c.fatal(pgerr.New(pgerr.ProtocolViolation, bad.what))
			}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
		done, err := c.handle(msg)
		if err != nil || done {
			return err
		}
	}
}

// pass answers a message that was too large for the memory that there is.
func (c *conn) pass(m *refused) error {
	switch {
	case c.skipping:
		return nil
	case m.kind == 'Q':
		c.fail(m.err, "")
		if err := c.running(c.session.EndGroup); err != nil {
			return err
		}
		return c.ready()
	}
	return c.extended(m.err)
}

// next waits for a message, as long as the client may take.
func (c *conn) next() (pgproto3.FrontendMessage, error) {
	limit := c.session.IdleTimeout()
	if limit == 0 {
		return c.in.next()
	}
	if err := c.deadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	msg, err := c.in.next()
	if err != nil {
		return nil, err
	}
	return msg, c.deadline(time.Time{})
}

// deadline bounds reads from the client, unless drain has ended them.
func (c *conn) deadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining.Load() {
		return nil
	}
	return c.net.SetReadDeadline(at)
}

// startup greets the client; ok is false if there is nothing more to do (a cancel request).
func (c *conn) startup() (ok bool, err error) {
	for range 4 { // SSL, GSS encryption, and then the real thing
		msg, err := c.in.startup()
		if err != nil {
			var bad *malformed
			if errors.As(err, &bad) {
				c.fatal(pgerr.New(pgerr.ProtocolViolation, bad.what))
			}
			return false, err
		}
		switch m := msg.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := c.net.Write([]byte{'N'}); err != nil {
				return false, err
			}
		case *pgproto3.CancelRequest:
			c.s.cancel(m.ProcessID, secretOf(m.SecretKey))
			return false, nil
		case *pgproto3.StartupMessage:
			return c.greet(m)
		default:
			return false, fmt.Errorf("unexpected %T at the start", msg)
		}
	}
	return false, errors.New("the client asks for encryption again and again")
}

func (c *conn) greet(m *pgproto3.StartupMessage) (bool, error) {
	user := m.Parameters["user"]
	if user == "" {
		c.fatal(pgerr.New("28000", "no PostgreSQL user name specified in startup packet"))
		return false, nil
	}
	database := m.Parameters["database"]
	if database == "" {
		database = user
	}
	if !c.s.register(c) {
		c.fatal(pgerr.New("53300", "sorry, too many clients already"))
		return false, nil
	}
	c.memory = c.s.o.Engine.Account()
	c.in.memory = c.memory
	c.session = c.s.o.Engine.NewSession(user, database)
	c.session.ID = int32(c.pid)
	var unknown []string // extensions of the protocol: they are declined
	for name, value := range m.Parameters {
		switch name {
		case "user", "database", "replication":
			continue
		case "options":
			if err := c.startupOptions(value); err != nil {
				c.fatal(err)
				return false, nil
			}
			continue
		}
		if strings.HasPrefix(name, "_pq_.") {
			unknown = append(unknown, name)
			continue
		}
		if err := c.session.Set(name, value); err != nil {
			c.fatal(err)
			return false, nil
		}
	}
	if len(unknown) > 0 || m.ProtocolVersion > pgproto3.ProtocolVersion30 {
		c.backend.Send(&pgproto3.NegotiateProtocolVersion{NewestMinorProtocol: 0, UnrecognizedOptions: unknown})
	}
	c.backend.Send(&pgproto3.AuthenticationOk{})
	c.reportSettings()
	c.backend.Send(&pgproto3.BackendKeyData{ProcessID: c.pid, SecretKey: secretBytes(c.secret)})
	return true, c.ready()
}

// startupOptions reads the -c name=value settings of the "options" parameter.
func (c *conn) startupOptions(options string) error {
	words := strings.Fields(options)
	for i := 0; i < len(words); i++ {
		w := words[i]
		setting := ""
		switch {
		case w == "-c" && i+1 < len(words):
			i++
			setting = words[i]
		case strings.HasPrefix(w, "-c"):
			setting = w[2:]
		case strings.HasPrefix(w, "--"):
			setting = w[2:]
		default:
			continue
		}
		if name, value, ok := strings.Cut(setting, "="); ok {
			if err := c.session.Set(strings.ReplaceAll(name, "-", "_"), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// handle serves one message; done ends the connection.
func (c *conn) handle(msg pgproto3.FrontendMessage) (done bool, err error) {
	if c.skipping {
		switch msg.(type) {
		case *pgproto3.Sync, *pgproto3.Terminate:
		default:
			return false, nil
		}
	}
	switch m := msg.(type) {
	case *pgproto3.Query:
		return false, c.query(m.String)
	case *pgproto3.Parse:
		return false, c.extended(c.parse(m))
	case *pgproto3.Bind:
		return false, c.extended(c.bind(m))
	case *pgproto3.Describe:
		return false, c.extended(c.describe(m))
	case *pgproto3.Execute:
		return false, c.extended(c.execute(m))
	case *pgproto3.Close:
		if m.ObjectType == 'S' {
			c.session.Forget(m.Name)
		} else {
			c.endPortal(m.Name)
		}
		return false, c.extended(c.send(&pgproto3.CloseComplete{}))
	case *pgproto3.Flush:
		return false, c.backend.Flush()
	case *pgproto3.Sync:
		c.skipping = false
		if err := c.running(c.session.EndGroup); err != nil {
			if err := lost(err); err != nil {
				return false, err
			}
			c.fail(err, "")
		}
		c.endPortals()
		return false, c.ready()
	case *pgproto3.Terminate:
		return true, nil
	case *pgproto3.CopyData, *pgproto3.CopyDone, *pgproto3.CopyFail:
		return false, nil // left over from a COPY that was refused
	case *pgproto3.FunctionCall:
		c.fail(pgerr.New(pgerr.FeatureNotSupported, "the function call protocol is not supported"), "")
		return false, c.ready()
	}
	c.fatal(pgerr.Newf(pgerr.ProtocolViolation, "unexpected message %T", msg))
	return true, nil
}

// endPortals drops the portals unless a transaction goes on: they live as long as it does.
func (c *conn) endPortals() {
	if c.session.Status() != session.InTx {
		clear(c.portals)
		c.memory.Give(c.taken)
		c.held, c.taken = 0, 0
	}
}

func (c *conn) endPortal(name string) {
	if p := c.portals[name]; p != nil {
		c.memory.Give(p.taken)
		c.held -= p.held
		c.taken -= p.taken
		delete(c.portals, name)
	}
}

// hold counts n bytes more that a portal keeps, for which it takes so much memory.
func (c *conn) hold(p *portal, n int, memory int64) error {
	if c.held+n > maxHeld {
		return pgerr.Newf("54000", "the portals of the connection hold more than %d MB of parameters and of results that are fetched in pieces", maxHeld>>20).
			WithHint("Fetch results without a row limit: they are then sent as they come. Close portals that are not needed any more.")
	}
	if err := c.memory.Take(memory); err != nil {
		return err
	}
	c.held += n
	p.held += n
	c.taken += memory
	p.taken += memory
	return nil
}

// send hands a message of the extended protocol to the client. What is gathered is written at times: a client may ask for ever before it sends Sync or Flush.
func (c *conn) send(m pgproto3.BackendMessage) error {
	buf, err := m.Encode(c.scratch[:0])
	if err != nil {
		return err
	}
	c.scratch = buf
	return c.sendRows(buf)
}

// flush writes everything that was sent to the client.
func (c *conn) flush() error {
	c.unsent = 0
	if err := c.backend.Flush(); err != nil {
		return &lostError{err}
	}
	return nil
}

// sendRows hands encoded rows to the client. What is gathered is written at times, so that a large result is never held whole: what runs waits for the
// client then.
func (c *conn) sendRows(rows []byte) error {
	if len(rows) >= flushBytes {
		return c.write(rows)
	}
	c.backend.Send(encoded(rows))
	if c.unsent += len(rows); c.unsent < flushBytes {
		return nil
	}
	return c.flush()
}

// write writes bytes, which may be many, behind everything that was sent.
func (c *conn) write(p []byte) error {
	if err := c.flush(); err != nil {
		return err
	}
	if _, err := c.out.Write(p); err != nil {
		return &lostError{err}
	}
	return nil
}

// reportSettings tells the client what it follows and has changed.
func (c *conn) reportSettings() {
	c.session.Reported(func(name, value string) { c.backend.Send(&pgproto3.ParameterStatus{Name: name, Value: value}) })
}

func (c *conn) ready() error {
	c.unsent = 0
	c.reportSettings()
	c.backend.Send(&pgproto3.ReadyForQuery{TxStatus: byte(c.session.Status())})
	return c.backend.Flush()
}

// lost is the error of a connection that cannot be written to any more, nil if err is another.
func lost(err error) error {
	var l *lostError
	if errors.As(err, &l) {
		return l.err
	}
	return nil
}

// extended reports the error of a message of the extended protocol.
func (c *conn) extended(err error) error {
	if err == nil {
		return nil
	}
	if err := lost(err); err != nil {
		return err
	}
	c.fail(err, "")
	c.skipping = true
	return c.backend.Flush()
}

// running gives a statement a context that a cancel request ends, and that ends when the client goes away.
func (c *conn) running(fn func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(c.s.ctx)
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	w := c.watch(cancel)
	started := time.Now()
	err := fn(ctx)
	c.s.statements.Observe(time.Since(started).Seconds())
	c.mu.Lock()
	c.cancel = nil
	c.mu.Unlock()
	cancel(nil)
	if e := w.end(); err == nil {
		err = e
	}
	return err
}

// query serves a simple query: statements are run one after the other until one fails. Several are one transaction.
func (c *conn) query(text string) error {
	c.session.Forget("")
	c.endPortal("")
	err := c.simple(text)
	if e := lost(err); e != nil {
		return e
	}
	if err != nil {
		c.fail(err, text)
		if err := c.running(c.session.EndGroup); err != nil {
			return err
		}
	}
	c.endPortals()
	return c.ready()
}

func (c *conn) simple(text string) error {
	size := session.ParseSize(text)
	if err := c.memory.Take(size); err != nil {
		return err
	}
	defer c.memory.Give(size)
	statements, err := c.session.Parse(text)
	if err != nil {
		return err
	}
	if len(statements) == 0 {
		c.backend.Send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	if len(statements) > 1 {
		c.session.Group()
	}
	for i, st := range statements {
		if i > 0 { // what the statements before have given need not wait for this one
			if err := c.flush(); err != nil {
				return err
			}
		}
		err := c.running(func(ctx context.Context) error {
			p, err := c.session.Prepare(st.Node, text, nil)
			if err != nil {
				return err
			}
			if len(p.Params) > 0 {
				return pgerr.New("42P02", "there is no parameter $1")
			}
			out := &output{c: c, describe: true}
			tag, err := c.session.Execute(ctx, p, nil, out)
			if err != nil {
				return err
			}
			if i == len(statements)-1 { // what it says is then true
				if err := c.session.EndGroup(ctx); err != nil {
					return err
				}
			}
			c.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) parse(m *pgproto3.Parse) error {
	if m.Name != "" && c.session.Kept(m.Name) != nil {
		return pgerr.Newf("42P05", "prepared statement \"%s\" already exists", m.Name)
	}
	size := session.ParseSize(m.Query)
	if err := c.memory.Take(size); err != nil {
		return err
	}
	defer c.memory.Give(size)
	statements, err := c.session.Parse(m.Query)
	if err != nil {
		return positioned(err, m.Query)
	}
	if len(statements) > 1 {
		return pgerr.New("42601", "cannot insert multiple commands into a prepared statement")
	}
	st := &session.Prepared{} // an empty statement
	if len(statements) == 1 {
		var declared []column.Type
		for _, oid := range m.ParameterOIDs {
			t := column.Type{}
			if oid != 0 && oid != 705 { // 705 is unknown
				var ok bool
				if t, ok = pgtype.FromOID(oid, -1); !ok {
					return pgerr.Newf("0A000", "parameters of the type with OID %d are not supported", oid)
				}
			}
			declared = append(declared, t)
		}
		if st, err = c.session.Prepare(statements[0].Node, m.Query, declared); err != nil {
			return positioned(err, m.Query)
		}
	}
	if err := c.session.Keep(m.Name, st); err != nil {
		return err
	}
	return c.send(&pgproto3.ParseComplete{})
}

func (c *conn) bind(m *pgproto3.Bind) error {
	st := c.session.Kept(m.PreparedStatement)
	if st == nil {
		return pgerr.Newf("26000", "prepared statement \"%s\" does not exist", m.PreparedStatement)
	}
	c.endPortal("") // as PostgreSQL: the portal without a name ends with the next Bind
	if m.DestinationPortal != "" && c.portals[m.DestinationPortal] != nil {
		return pgerr.Newf("42P03", "cursor \"%s\" already exists", m.DestinationPortal)
	}
	if len(c.portals) >= maxPortals {
		return pgerr.Newf("54000", "more than %d portals", maxPortals)
	}
	if len(m.Parameters) != len(st.Params) {
		return pgerr.Newf("08P01", "bind message supplies %d parameters, but prepared statement \"%s\" requires %d", len(m.Parameters), m.PreparedStatement, len(st.Params))
	}
	if n := len(m.ParameterFormatCodes); n > 1 && n != len(m.Parameters) {
		return pgerr.Newf("08P01", "bind message has %d parameter formats but %d parameters", n, len(m.Parameters))
	}
	for _, f := range slices.Concat(m.ParameterFormatCodes, m.ResultFormatCodes) {
		if f != textFormat && f != binaryFormat {
			return pgerr.Newf("22023", "unsupported format code: %d", f)
		}
	}
	if n := len(m.ResultFormatCodes); n > 1 && n != len(st.Columns) {
		return pgerr.Newf("08P01", "bind message has %d result formats but query has %d columns", n, len(st.Columns))
	}
	p := &portal{stmt: st, formats: append([]int16(nil), m.ResultFormatCodes...)}
	size := 0
	for _, raw := range m.Parameters {
		size += len(raw)
	}
	if err := c.memory.Take(3 * int64(size)); err != nil { // a value is made of each, and its text
		return err
	}
	defer c.memory.Give(3 * int64(size))
	size = 0
	for i, raw := range m.Parameters {
		n, err := c.argument(st.Params[i], raw, formatOf(m.ParameterFormatCodes, i))
		if err != nil {
			return fmt.Errorf("parameter $%d: %w", i+1, err)
		}
		p.args = append(p.args, n)
		size += 100 + len(textOf(n))
	}
	if err := c.hold(p, size, int64(size)); err != nil {
		return err
	}
	c.portals[m.DestinationPortal] = p
	return c.send(&pgproto3.BindComplete{})
}

func textOf(n *expr.Node) string {
	if n.Text == nil {
		return ""
	}
	return *n.Text
}

// argument makes a constant of a parameter's bytes.
func (c *conn) argument(t column.Type, raw []byte, format int16) (*expr.Node, error) {
	if raw == nil {
		return expr.Null(t, 0), nil
	}
	v := column.NewVector(t, 1)
	var err error
	if format == binaryFormat {
		err = pgtype.ParseBinary(v, raw)
	} else {
		err = pgtype.ParseText(v, raw, &pgtype.Context{Zone: c.session.Zone()})
	}
	if err != nil {
		return nil, err
	}
	return expr.Const(t, string(pgtype.AppendText(nil, v, 0, time.UTC)), 0), nil
}

func (c *conn) describe(m *pgproto3.Describe) error {
	if m.ObjectType == 'S' {
		st := c.session.Kept(m.Name)
		if st == nil {
			return pgerr.Newf("26000", "prepared statement \"%s\" does not exist", m.Name)
		}
		oids := make([]uint32, len(st.Params))
		for i, t := range st.Params {
			oids[i] = pgtype.OID(t)
		}
		if err := c.send(&pgproto3.ParameterDescription{ParameterOIDs: oids}); err != nil {
			return err
		}
		return c.describeRows(st, nil)
	}
	if m.ObjectType != 'P' {
		return pgerr.Newf(pgerr.ProtocolViolation, "invalid DESCRIBE message subtype %d", m.ObjectType)
	}
	p := c.portals[m.Name]
	if p == nil {
		return pgerr.Newf("34000", "portal \"%s\" does not exist", m.Name)
	}
	return c.describeRows(p.stmt, p.formats)
}

func (c *conn) describeRows(st *session.Prepared, formats []int16) error {
	if st.Columns == nil {
		return c.send(&pgproto3.NoData{})
	}
	return c.send(rowDescription(st.Columns, formats))
}

func (c *conn) execute(m *pgproto3.Execute) error {
	p := c.portals[m.Portal]
	if p == nil {
		return pgerr.Newf("34000", "portal \"%s\" does not exist", m.Portal)
	}
	if p.stmt.Stmt == nil {
		return c.send(&pgproto3.EmptyQueryResponse{})
	}
	if p.rows != nil {
		return c.resume(p, m.MaxRows)
	}
	c.session.Group() // until Sync
	out := &output{c: c, formats: p.formats}
	if m.MaxRows > 0 {
		p.rows = &suspended{}
		out.keep = p
	}
	err := c.running(func(ctx context.Context) error {
		tag, err := c.session.Execute(ctx, p.stmt, p.args, out)
		if err != nil {
			return positioned(err, p.stmt.Text)
		}
		if p.rows != nil {
			p.rows.tag = tag
			return nil
		}
		return c.send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
	})
	if err == nil && p.rows != nil {
		return c.resume(p, m.MaxRows)
	}
	return err
}

// resume sends the next rows of a portal that is fetched in pieces.
func (c *conn) resume(p *portal, limit uint32) error {
	more, err := p.rows.send(c, limit)
	if err != nil {
		return err
	}
	if more {
		return c.send(&pgproto3.PortalSuspended{})
	}
	return c.send(&pgproto3.CommandComplete{CommandTag: []byte(p.rows.tag)})
}

// Session.Parse's positions are in the text it was given.
func positioned(err error, text string) error {
	return &placedError{err, text}
}

// placedError is an error together with the text that its position is in.
type placedError struct {
	err  error
	text string
}

func (e *placedError) Error() string { return e.err.Error() }
func (e *placedError) Unwrap() error { return e.err }

// lostError is a connection that cannot be written to any more.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// fail sends an error, which is the end of the transaction; text is what its position is in.
func (c *conn) fail(err error, text string) {
	c.s.failures.Inc()
	c.session.Fail()
	var placed *placedError
	if errors.As(err, &placed) {
		text = placed.text
	}
	c.backend.Send(errorResponse(err, text, "ERROR"))
}

// fatal sends an error that ends the connection.
func (c *conn) fatal(err error) {
	c.backend.Send(errorResponse(err, "", "FATAL"))
	_ = c.backend.Flush()
}

func errorResponse(err error, text, severity string) *pgproto3.ErrorResponse {
	var pg *pgerr.Error
	if !errors.As(err, &pg) {
		code := pgerr.InternalError
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			code = pgerr.QueryCanceled
		}
		return &pgproto3.ErrorResponse{Severity: severity, SeverityUnlocalized: severity, Code: code, Message: err.Error()}
	}
	r := &pgproto3.ErrorResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: pg.Code, Message: pg.Message, Detail: pg.Detail, Hint: pg.Hint,
	}
	if pg.Position > 0 && text != "" {
		r.Position = int32(parse.CharPosition(text, pg.Position))
	}
	return r
}

package postgres_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/leat-io/leat/test/nodetest"
)

// raw is a connection on which a test says exactly what it wants.
type raw struct {
	t  *testing.T
	nc net.Conn
	f  *pgproto3.Frontend
}

func dial(t *testing.T, n *nodetest.Node) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", n.PostgresAddr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(nodetest.Patience))
	return &raw{t: t, nc: nc, f: pgproto3.NewFrontend(nc, nc)}
}

// greeted is a connection that has been through the start-up.
func greeted(t *testing.T, n *nodetest.Node) *raw {
	t.Helper()
	r := dial(t, n)
	r.send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "raw"}})
	r.untilReady()
	return r
}

func (r *raw) send(messages ...pgproto3.FrontendMessage) {
	r.t.Helper()
	for _, m := range messages {
		r.f.Send(m)
	}
	if err := r.f.Flush(); err != nil {
		r.t.Fatal(err)
	}
}

// untilReady lists what the server sends up to ReadyForQuery: a letter for each message, with the SQLSTATE of errors.
func (r *raw) untilReady() []string {
	r.t.Helper()
	var got []string
	for {
		m, err := r.f.Receive()
		if err != nil {
			r.t.Fatalf("after %q: %v", got, err)
		}
		switch m := m.(type) {
		case *pgproto3.ParameterStatus, *pgproto3.AuthenticationOk, *pgproto3.BackendKeyData:
		case *pgproto3.ErrorResponse:
			got = append(got, m.Code)
		case *pgproto3.CommandComplete:
			got = append(got, string(m.CommandTag))
		case *pgproto3.DataRow:
			got = append(got, string(bytes.Join(m.Values, []byte("|"))))
		case *pgproto3.ReadyForQuery:
			return append(got, string(m.TxStatus))
		default:
			got = append(got, strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3."))
		}
	}
}

// ended waits until the server has closed the connection, and returns what it said before.
func (r *raw) ended(what string) string {
	r.t.Helper()
	said, err := io.ReadAll(r.nc)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Fatalf("%s: the connection stays open", what)
	}
	return string(said)
}

func frame(kind byte, length uint32, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, length), body...)
}

// alive fails the test if the server does not answer another client.
func alive(t *testing.T, n *nodetest.Node) {
	t.Helper()
	if got := nodetest.Connect(t, dsn(n, "")).Query("SELECT 1"); len(got) != 1 || got[0] != "1" {
		t.Fatalf("the server answers %q", got)
	}
}

func TestGarbageBeforeTheGreeting(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	startup := func(length, version uint32, body string) []byte {
		return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, length), version), body...)
	}
	for name, input := range map[string][]byte{
		"http":                     []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"a TLS greeting":           []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
		"a giant length":           startup(0x7fffffff, 196608, ""),
		"a negative length":        startup(0xffffffff, 196608, ""),
		"a length of 0":            startup(0, 196608, ""),
		"protocol 2":               startup(17, 2<<16, "user\x00x\x00\x00"),
		"no end of the parameters": startup(12, 196608, "user"),
		"no user":                  startup(9, 196608, "\x00"),
		"a name without a value":   startup(14, 196608, "user\x00\x00"),
		"a bad setting":            startup(40, 196608, "user\x00x\x00client_encoding\x00BIG5\x00\x00\x00")[:0],
		"nothing":                  {},
		"half a length":            {0, 0},
	} {
		r := dial(t, n)
		if _, err := r.nc.Write(input); err != nil {
			t.Fatal(err)
		}
		_ = r.nc.(*net.TCPConn).CloseWrite()
		r.ended(name)
	}
	// Encryption asked for again and again is declined a few times only.
	r := dial(t, n)
	for range 10 {
		if _, err := r.nc.Write(startup(8, 80877103, "")); err != nil {
			break
		}
	}
	if said := r.ended("SSL for ever"); len(said) > 8 {
		t.Errorf("said %q", said)
	}
	// A cancel request with another's number does nothing.
	r = dial(t, n)
	r.send(&pgproto3.CancelRequest{ProcessID: 1, SecretKey: []byte{1, 2, 3, 4}})
	r.ended("a cancel request")
	alive(t, n)
}

func TestGarbageAfterTheGreeting(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	for name, input := range map[string][]byte{
		"an unknown message":                frame('?', 4, ""),
		"a length of 0":                     frame('Q', 0, ""),
		"a negative length":                 frame('Q', 0xffffffff, ""),
		"a giant length":                    frame('Q', 0x7fffffff, ""),
		"a query without its end":           frame('Q', 9, "hello"),
		"a Bind with a giant count":         frame('B', 12, "\x00\x00\x7f\xff\x00\x00\x00\x00"),
		"a Bind with a giant parameter":     frame('B', 14, "\x00\x00\x00\x00\x00\x01\x7f\xff\xff\xff"),
		"a Bind with a negative parameter":  frame('B', 14, "\x00\x00\x00\x00\x00\x01\xff\xff\xff\xfe"),
		"a Parse with a giant count":        frame('P', 8, "\x00\x00\x7f\xff"),
		"an Execute cut short":              frame('E', 6, "\x00\x00"),
		"a Describe of nothing":             frame('D', 4, ""),
		"a password that nobody asked for":  frame('p', 6, "x\x00"),
		"a truncated frame":                 frame('Q', 100, "SELECT 1"),
		"a function call with giant counts": frame('F', 14, "\x00\x00\x00\x01\x7f\xff\x7f\xff\x00\x00"),
	} {
		r := greeted(t, n)
		if _, err := r.nc.Write(input); err != nil {
			t.Fatal(err)
		}
		_ = r.nc.(*net.TCPConn).CloseWrite()
		r.ended(name)
	}
	alive(t, n)
}

// TestRandomBytes throws seeded noise at sessions, half of it shaped like messages.
func TestRandomBytes(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		r := greeted(t, n)
		var noise []byte
		for range 1 + rng.IntN(20) {
			body := make([]byte, rng.IntN(40))
			for i := range body {
				body[i] = byte(rng.IntN(4)) * byte(rng.IntN(256))
			}
			kind := "QPBDECSHFdcfpX"[rng.IntN(14)]
			noise = append(noise, frame(kind, uint32(len(body)+4+rng.IntN(2)*rng.IntN(9)), string(body))...)
		}
		_, _ = r.nc.Write(noise)
		_ = r.nc.(*net.TCPConn).CloseWrite()
		r.ended("noise")
	}
	alive(t, n)
}

// TestMessagesOutOfOrder sends what is well formed and makes no sense: each gets an error, and the session goes on.
func TestMessagesOutOfOrder(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	r := greeted(t, n)
	for _, test := range []struct {
		name string
		send []pgproto3.FrontendMessage
		want []string
	}{
		{"Bind of nothing", []pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: "x"}, &pgproto3.Execute{}, &pgproto3.Sync{}}, []string{"26000", "I"}},
		{"Execute of nothing", []pgproto3.FrontendMessage{&pgproto3.Execute{Portal: "x"}, &pgproto3.Sync{}}, []string{"34000", "I"}},
		{"Describe of nothing", []pgproto3.FrontendMessage{&pgproto3.Describe{ObjectType: 'S', Name: "x"}, &pgproto3.Sync{}}, []string{"26000", "I"}},
		{"Describe of what is no object", []pgproto3.FrontendMessage{&pgproto3.Describe{ObjectType: 'Z', Name: "x"}, &pgproto3.Sync{}}, []string{"08P01", "I"}},
		{"Close of nothing", []pgproto3.FrontendMessage{&pgproto3.Close{ObjectType: 'P', Name: "x"}, &pgproto3.Sync{}}, []string{"CloseComplete", "I"}},
		{"copy data without COPY", []pgproto3.FrontendMessage{&pgproto3.CopyData{Data: []byte("x")}, &pgproto3.CopyDone{}, &pgproto3.Query{String: "SELECT 1"}}, []string{"RowDescription", "1", "SELECT 1", "I"}},
		{"a query after an error", []pgproto3.FrontendMessage{&pgproto3.Execute{Portal: "x"}, &pgproto3.Query{String: "SELECT 1"}, &pgproto3.Sync{}}, []string{"34000", "I"}},
		{"a function call", []pgproto3.FrontendMessage{&pgproto3.FunctionCall{Function: 1, ResultFormatCode: 0}}, []string{"0A000", "I"}},
		{"too few parameters", []pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SELECT $1::int"}, &pgproto3.Bind{}, &pgproto3.Sync{}}, []string{"ParseComplete", "08P01", "I"}},
		{"too many result formats", []pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SELECT 1"}, &pgproto3.Bind{ResultFormatCodes: []int16{0, 0, 1}}, &pgproto3.Sync{}}, []string{"ParseComplete", "08P01", "I"}},
		{"a parameter of an unknown type", []pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SELECT $1", ParameterOIDs: []uint32{999999}}, &pgproto3.Sync{}}, []string{"0A000", "I"}},
		{"two Syncs", []pgproto3.FrontendMessage{&pgproto3.Sync{}}, []string{"I"}},
	} {
		r.send(test.send...)
		if diff := cmp.Diff(test.want, r.untilReady()); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// TestPortalsInPieces fetches with a row limit; in a transaction a portal outlives Sync, as cursors of JDBC need it.
func TestPortalsInPieces(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	nodetest.Connect(t, dsn(n, "")).Do("CREATE TABLE t (k int PRIMARY KEY)", "INSERT INTO t VALUES (1),(2),(3),(4),(5)", "FLUSH")
	r := greeted(t, n)
	open := []pgproto3.FrontendMessage{
		&pgproto3.Parse{Name: "s", Query: "SELECT k FROM t ORDER BY k"}, &pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s"},
		&pgproto3.Execute{Portal: "p", MaxRows: 2},
	}
	r.send(append(open, &pgproto3.Execute{Portal: "p", MaxRows: 2}, &pgproto3.Execute{Portal: "p"}, &pgproto3.Sync{})...)
	want := []string{"ParseComplete", "BindComplete", "1", "2", "PortalSuspended", "3", "4", "PortalSuspended", "5", "SELECT 5", "I"}
	if diff := cmp.Diff(want, r.untilReady()); diff != "" {
		t.Error(diff)
	}
	r.send(&pgproto3.Execute{Portal: "p"}, &pgproto3.Sync{})
	if diff := cmp.Diff([]string{"34000", "I"}, r.untilReady()); diff != "" {
		t.Error("outside of a transaction a portal ends at Sync:", diff)
	}
	r.send(&pgproto3.Query{String: "BEGIN"})
	r.untilReady()
	r.send(open[1], open[2], &pgproto3.Sync{})
	if diff := cmp.Diff([]string{"BindComplete", "1", "2", "PortalSuspended", "T"}, r.untilReady()); diff != "" {
		t.Error(diff)
	}
	r.send(&pgproto3.Execute{Portal: "p", MaxRows: 10}, &pgproto3.Sync{})
	if diff := cmp.Diff([]string{"3", "4", "5", "SELECT 5", "T"}, r.untilReady()); diff != "" {
		t.Error(diff)
	}
	r.send(&pgproto3.Query{String: "COMMIT"})
	r.untilReady()
	r.send(&pgproto3.Execute{Portal: "p"}, &pgproto3.Sync{})
	if diff := cmp.Diff([]string{"34000", "I"}, r.untilReady()); diff != "" {
		t.Error("a portal ends with its transaction:", diff)
	}
}

// TestExtensionsOfTheProtocolAreDeclined answers a client that asks for more than there is.
func TestExtensionsOfTheProtocolAreDeclined(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Options{})
	for _, version := range []uint32{pgproto3.ProtocolVersion30, pgproto3.ProtocolVersion32} {
		r := dial(t, n)
		r.send(&pgproto3.StartupMessage{ProtocolVersion: version, Parameters: map[string]string{"user": "raw", "_pq_.wonder": "1"}})
		if got := r.untilReady(); len(got) != 2 || got[0] != "NegotiateProtocolVersion" {
			t.Errorf("%q", got)
		}
	}
}

// TestGiantLengthsTakeNoMemory announces messages of 60 MB on many connections and sends none of them.
func TestGiantLengthsTakeNoMemory(t *testing.T) {
	n := nodetest.Start(t, nodetest.Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 50 {
		r := greeted(t, n)
		if _, err := r.nc.Write(frame('Q', 60<<20, "S")); err != nil {
			t.Fatal(err)
		}
	}
	alive(t, n)
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 100<<20 {
		t.Errorf("the heap has grown by %d MB", grown>>20)
	}
}

// TestClientThatNeverReads asks for a large result and does not take it: others are served, and what is made waits for the client.
func TestClientThatNeverReads(t *testing.T) {
	n := nodetest.Start(t, nodetest.Options{})
	c := nodetest.Connect(t, dsn(n, ""))
	c.Do("CREATE TABLE t (k int PRIMARY KEY, g int, v text)")
	for from := 0; from < 4000; from += 1000 {
		var rows []string
		for k := range 1000 {
			rows = append(rows, fmt.Sprintf("(%d,1,'%0200d')", from+k, k))
		}
		c.Do("INSERT INTO t VALUES " + strings.Join(rows, ","))
	}
	r := greeted(t, n)
	_ = r.nc.(*net.TCPConn).SetReadBuffer(4096)
	r.send(&pgproto3.Query{String: "SELECT a.v, b.v FROM t a JOIN t b ON a.g = b.g"}) // 6 GB
	if _, err := r.f.Receive(); err != nil {
		t.Fatal(err)
	}
	runtime.GC() // what tests before this one have given up
	var most uint64
	for range 20 {
		if got := c.Query("SELECT count(*) FROM t"); got[0] != "4000" {
			t.Fatalf("%q", got)
		}
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapAlloc)
	}
	if most > 512<<20 {
		t.Errorf("%d MB are held for a client that reads nothing", most>>20)
	}
	r.nc.Close()
	alive(t, n)
}

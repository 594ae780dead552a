package postgres

import (
	"bytes"
	"net"
	"testing"
	"time"
)

// stream is a connection that sends what it was given, and takes anything.
type stream struct{ *bytes.Reader }

func (stream) Write(p []byte) (int, error)      { return len(p), nil }
func (stream) Close() error                     { return nil }
func (stream) LocalAddr() net.Addr              { return nil }
func (stream) RemoteAddr() net.Addr             { return nil }
func (stream) SetDeadline(time.Time) error      { return nil }
func (stream) SetReadDeadline(time.Time) error  { return nil }
func (stream) SetWriteDeadline(time.Time) error { return nil }

// FuzzMessages reads arbitrary bytes as a client's messages: no panic, and no more memory than there are bytes.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		"\x00\x00\x00\x08\x04\xd2\x16\x2f", "\x00\x00\x00\x10\x00\x03\x00\x00user\x00x\x00\x00\x00", "\x00\x00\x00\x10\x04\xd2\x16\x2e\x00\x00\x00\x01\x00\x00\x00\x02",
		"Q\x00\x00\x00\x0dSELECT 1\x00", "P\x00\x00\x00\x10s\x00SELECT 1\x00\x00\x00", "B\x00\x00\x00\x12\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01x\x00\x00",
		"E\x00\x00\x00\x09\x00\x00\x00\x00\x01", "D\x00\x00\x00\x06Sx\x00", "S\x00\x00\x00\x04", "F\x00\x00\x00\x0e\x00\x00\x00\x01\x7f\xff\x7f\xff\x00\x00",
		"Q\x04\x00\x00\x00x", "d\x00\x00\x00\x05x", "p\x00\x00\x00\x06x\x00",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, greeted bool) {
		r := newReceiver(stream{bytes.NewReader(data)}, 64<<20)
		if !greeted {
			if _, err := r.startup(); err != nil {
				return
			}
		}
		for {
			if _, err := r.next(); err != nil {
				break
			}
		}
		if c := cap(r.body); c > 2*len(data)+2*bodyStep {
			t.Errorf("%d bytes of input took %d bytes", len(data), c)
		}
	})
}

package kafka

import (
	"io"
	"net"

	"github.com/leat-io/leat/internal/commitlog"
	"golang.org/x/sys/unix"
)

// writeChunk sends a chunk from its file to the socket inside the kernel, where there is a file.
func (c *conn) writeChunk(chunk *commitlog.Chunk) error {
	fd, offset, length, ok := chunk.FileRange()
	tcp, isTCP := c.nc.(*net.TCPConn)
	if !ok || !isTCP {
		_, err := chunk.WriteTo(pieces{c})
		return err
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(socket uintptr) bool {
		for length > 0 {
			n, err := unix.Sendfile(int(socket), int(fd), &offset, length)
			switch {
			case err == unix.EAGAIN:
				return false
			case err == unix.EINTR:
				continue
			case err != nil:
				failed = err
				return true
			case n == 0: // the file is shorter than its index says
				failed = io.ErrUnexpectedEOF
				return true
			}
			if length -= n; length > 0 { // a client that takes something has the whole timeout for more
				if failed = c.armWrite(); failed != nil {
					return true
				}
			}
		}
		return true
	})
	if failed != nil {
		return failed
	}
	return err
}

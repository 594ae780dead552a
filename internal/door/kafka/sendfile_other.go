//go:build !linux

package kafka

import "github.com/leat-io/leat/internal/commitlog"

func (c *conn) writeChunk(chunk *commitlog.Chunk) error {
	_, err := chunk.WriteTo(pieces{c})
	return err
}

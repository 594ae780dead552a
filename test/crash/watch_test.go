package crash

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// readAllTheTime calls read until ctx ends, with a connection to the server that is made again whenever it is lost, and returns how often it was
// read. An answer of the server that is an error fails the test; read fails it itself over what it finds, and returns false to end.
func readAllTheTime(t testing.TB, ctx context.Context, s *server, every time.Duration, read func(conn *pgx.Conn) (goOn bool, err error)) (reads int, ok bool) {
	for ctx.Err() == nil {
		conn, err := s.sql(ctx)
		if err != nil {
			pause(ctx, 20*time.Millisecond)
			continue
		}
		for {
			var goOn bool
			if goOn, err = read(conn); err != nil {
				break
			}
			if !goOn {
				return reads, false
			}
			reads++
			pause(ctx, every)
		}
		if !lost(err) {
			t.Errorf("reading all the time: %v", err)
			return reads, false
		}
		_ = conn.Close(ctx)
	}
	return reads, true
}

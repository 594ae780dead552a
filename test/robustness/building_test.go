package robustness

import (
	"context"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leat-io/leat/internal/node"
)

// Who asks for a view that is still being built is told how far it is.
func TestAViewThatIsBeingBuilt(t *testing.T) {
	t.Parallel()
	n, err := node.Start(t.Context(), config(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Stop() }()
	run(t, n, `CREATE SOURCE bids WITH (connector = 'nexmark', nexmark.table.type = 'bid', nexmark.event.num = 1000000000000)`)
	connect := func() *pgconn.PgConn {
		conn, err := pgconn.Connect(t.Context(), "postgres://me@"+n.PostgresAddr()+"/leat?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	creator, reader := connect(), connect()
	defer reader.Close(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = creator.Exec(ctx, `CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM bids`).ReadAll()
	}()
	defer func() { cancel(); <-done; _ = creator.Close(context.WithoutCancel(ctx)) }()
	told := regexp.MustCompile(`still being built \([1-9][0-9]* rows read\)`)
	for t.Context().Err() == nil {
		_, err := reader.Exec(t.Context(), `SELECT n FROM counted`).ReadAll()
		if err == nil {
			t.Fatal("the view can be read")
		}
		if told.MatchString(err.Error()) {
			return
		}
	}
}

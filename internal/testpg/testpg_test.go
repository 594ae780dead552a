package testpg_test

import (
	"context"
	"os"
	"testing"

	"github.com/leat-io/leat/internal/testpg"
)

func TestMain(m *testing.M) { os.Exit(testpg.Run(m)) }

func TestServer(t *testing.T) {
	t.Parallel()
	conn := testpg.Connect(t)
	var collation string
	if err := conn.QueryRow(context.Background(), "SELECT datcollate FROM pg_database WHERE datname = current_database()").Scan(&collation); err != nil {
		t.Fatal(err)
	}
	if collation != "C" {
		t.Errorf("collation %q, want C", collation)
	}
}

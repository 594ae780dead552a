package readme

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leat-io/leat/internal/node"
)

// TestSQLReference runs the blocks of docs/sql.md, in order, on one node.
func TestSQLReference(t *testing.T) {
	t.Parallel()
	n, err := node.Start(t.Context(), node.Config{
		Dir: t.TempDir(), Kafka: "127.0.0.1:0", Postgres: "127.0.0.1:0", HTTP: "127.0.0.1:0", Workers: 2, AutoCreateTopics: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	cluster, err := node.Start(t.Context(), node.Config{
		Dir: t.TempDir(), Kafka: "127.0.0.1:0", Postgres: "127.0.0.1:0", HTTP: "127.0.0.1:0", Workers: 1, AutoCreateTopics: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	conn, err := pgconn.Connect(t.Context(), "postgres://me@"+n.PostgresAddr()+"/leat?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	text, err := os.ReadFile(root + "/docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(strings.ReplaceAll(string(text), "kafka.example:9092", cluster.KafkaAddr()), "```sql\n")[1:]
	if len(blocks) < 5 {
		t.Fatalf("docs/sql.md has %d blocks", len(blocks))
	}
	for _, b := range blocks {
		sql, _, _ := strings.Cut(b, "```")
		if _, err := conn.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Errorf("%v in\n%s", err, sql)
		}
	}
}

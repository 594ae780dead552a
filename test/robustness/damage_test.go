// Package robustness damages what a node keeps on disk, and gives it what no client should send.
package robustness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leat-io/leat/internal/node"
)

func config(dir string) node.Config {
	return node.Config{Dir: dir, Kafka: "127.0.0.1:0", Postgres: "127.0.0.1:0", HTTP: "127.0.0.1:0", Workers: 1, AutoCreateTopics: true}
}

// crashed is the folder of a node that has written to a table and was killed: the copy of a running node's.
func crashed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	n, err := node.Start(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	run(t, n, `CREATE TABLE t (id int PRIMARY KEY, v text)`)
	for i := range 200 {
		run(t, n, fmt.Sprintf(`INSERT INTO t VALUES (%d, repeat('x', 500))`, i))
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return copied
}

func run(t *testing.T, n *node.Node, sql string) string {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), "postgres://me@"+n.PostgresAddr()+"/leat?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	results, err := conn.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	last := results[len(results)-1]
	if len(last.Rows) == 0 {
		return ""
	}
	return string(last.Rows[0][0])
}

// used is the journal's file with the most in it, and how far that reaches.
func used(t *testing.T, dir string) (file string, content []byte, end int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "journal", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(strings.TrimRight(string(b), "\x00")); n > end {
			file, content, end = f, b, n
		}
	}
	if end < 50<<10 {
		t.Fatalf("the journal holds %d bytes in all", end)
	}
	return file, content, end
}

// A byte that has changed in the middle of the journal is not the end of it: what was acknowledged behind it would be lost. The node says where,
// and does not start.
func TestDamageInTheJournalsMiddle(t *testing.T) {
	t.Parallel()
	dir := crashed(t)
	file, content, end := used(t, dir)
	content[end/2] ^= 0x10
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(t.Context(), config(dir))
	if err == nil {
		_ = n.Stop()
		t.Fatal("the node has started over a damaged journal")
	}
	if !strings.Contains(err.Error(), filepath.Base(file)) {
		t.Errorf("%v: does not name the file %s", err, filepath.Base(file))
	}
}

// A torn write at the journal's end was never acknowledged: the node starts without it, and with all that was.
func TestATornWriteAtTheJournalsEnd(t *testing.T) {
	t.Parallel()
	dir := crashed(t)
	file, content, end := used(t, dir)
	copy(content[end+64:], "what the disk was writing when the power went")
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Stop() }()
	if got := run(t, n, `FLUSH; SELECT count(*) FROM t`); got != "200" {
		t.Errorf("%s rows, want 200", got)
	}
}

// A folder whose partition files have lost their indexes has them made anew.
func TestIndexesAreMadeAnew(t *testing.T) {
	t.Parallel()
	dir := crashed(t)
	for _, pattern := range []string{"*.index", "*.timeindex"} {
		files, err := filepath.Glob(filepath.Join(dir, "topics", "*", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	n, err := node.Start(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Stop() }()
	if got := run(t, n, `FLUSH; SELECT count(*) FROM t`); got != "200" {
		t.Errorf("%s rows, want 200", got)
	}
}

package robustness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/node"
)

// A data folder that has lost a part is not started as if it were new, and loses nothing more: an empty database would have every partition's files
// removed as those of deleted topics, and an empty journal would cut them.
func TestADataFolderThatIsNotWhole(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "whole")
	older := filepath.Join(t.TempDir(), "older")
	n, err := node.Start(t.Context(), config(whole))
	if err != nil {
		t.Fatal(err)
	}
	run(t, n, `CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'x')`)
	stopAndCopy(t, n, whole, older)
	if n, err = node.Start(t.Context(), config(whole)); err != nil {
		t.Fatal(err)
	}
	run(t, n, `CREATE TABLE u (id int PRIMARY KEY, v text); INSERT INTO u VALUES (1, 'x'); INSERT INTO t VALUES (2, 'y')`)
	stopAndCopy(t, n, whole, filepath.Join(t.TempDir(), "stopped"))

	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		want   string
	}{
		{"no database", remove("db"), "no db folder"},
		{"a new database", remove("db/*"), "its database (db) reaches to 0"},
		{"the database's marker is gone", remove("db/marker.manifest*"), "its database (db) reaches to 0"},
		{"no journal", remove("journal"), "its journal ends at 0"},
		{"neither database nor journal", func(t *testing.T, dir string) {
			remove("db")(t, dir)
			remove("journal")(t, dir)
		}, "topics folder has files of 2 partitions"},
		{"no version", remove("FORMAT"), "no file FORMAT"},
		{"an older database", replace(older, "db"), "its database (db) reaches to"},
		{"an older journal", replace(older, "journal"), "its journal ends at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			c.damage(t, dir)
			before := list(t, dir)
			for range 2 { // what the first try leaves behind must not make the second one succeed
				n, err := node.Start(t.Context(), config(dir))
				if err == nil {
					_ = n.Stop()
					t.Fatal("the node has started")
				}
				if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "restore") {
					t.Fatalf("%v: does not say %q and what to do", err, c.want)
				}
			}
			if after := list(t, dir); after != before {
				t.Errorf("partition files before:\n%s\nand after:\n%s", before, after)
			}
		})
	}
}

func stopAndCopy(t *testing.T, n *node.Node, dir, to string) {
	t.Helper()
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
}

func remove(pattern string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, f := range files {
			if err := os.RemoveAll(f); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func replace(from, part string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		remove(part)(t, dir)
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(from, part))); err != nil {
			t.Fatal(err)
		}
	}
}

// list is the names and sizes of the partitions' files.
func list(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(filepath.Join(dir, "topics"), func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			fmt.Fprintf(&b, "%s: %d bytes\n", path, info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

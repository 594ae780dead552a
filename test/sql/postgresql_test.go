package sql

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/testpg"
	"github.com/leat-io/leat/test/nodetest"
)

// sameAsPostgreSQL is the first line of the scripts that PostgreSQL runs too, with the same results.
const sameAsPostgreSQL = "# PostgreSQL gives the same."

var materialized = regexp.MustCompile(`(?i)^CREATE MATERIALIZED VIEW`)

// What the scripts claim of PostgreSQL is asked of it.
func TestScriptsOnPostgreSQL(t *testing.T) {
	t.Parallel()
	paths, _ := filepath.Glob("testdata/*.slt")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), sameAsPostgreSQL) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".slt"), func(t *testing.T) {
			t.Parallel()
			items, err := parseScript(string(text))
			if err != nil {
				t.Fatal(err)
			}
			conn := nodetest.Connect(t, testpg.DSN(t))
			r := &runner{t: t, sessions: map[string]*nodetest.Conn{"": conn}}
			for _, it := range items {
				switch it.verb {
				case "statement", "query":
				case "flush":
					continue
				default:
					t.Fatalf("%s:%d: PostgreSQL has no %s", path, it.line, it.verb)
				}
				it.body = strings.Split(materialized.ReplaceAllString(it.sql(), "CREATE VIEW"), "\n")
				if err := r.step(it); err != nil {
					t.Errorf("%s:%d: %s %s\n%s\n%v", path, it.line, it.verb, it.rest, it.sql(), err)
				}
			}
		})
	}
}

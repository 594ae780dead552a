// Package architecture holds the rules of the map as tests: a failing rule names the fix.
package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/leat-io/leat/"

// layers lists the packages from low to high. A package may import only packages in lower layers, or in its own folder.
// A name stands for the folder and all below it, unless a longer name matches.
var layers = [][]string{
	{"internal/clock", "internal/vfs", "internal/pgerr"},
	{"internal/budget", "internal/decimal", "internal/record", "internal/spill"},
	{"internal/journal", "internal/column"},
	{"internal/commitlog", "internal/kv", "internal/rowenc", "internal/pgtype"},
	{"internal/expr", "internal/state", "internal/sql/ast"},
	{"internal/sql/parse", "internal/sql/plan"},
	{"internal/catalog"},
	{"internal/sql/bind"},
	{"internal/broker"},
	{"internal/connector"},
	{"internal/flow"},
	{"internal/job"},
	{"internal/session"},
	{"internal/door"},
	{"internal/node"},
	{"internal/bench"},
	{"internal/cli"},
	{"cmd"},
}

// testOnly packages serve tests and may be imported by test files alone.
var testOnly = []string{"internal/testpg", "internal/testlog", "internal/column/columntest"}

type goPackage struct {
	ImportPath string
	Doc        string
	GoFiles    []string
	Imports    []string
}

func TestImportsPointDownwards(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		from := layerOf(path)
		if from < 0 {
			if !isTestOnly(path) && !strings.HasPrefix(path, "test/") && len(p.GoFiles) > 0 {
				t.Errorf("%s has no place in the layers: add it to the list in this test and to docs/ARCHITECTURE.md", path)
			}
			continue
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, module) {
				continue
			}
			imported = strings.TrimPrefix(imported, module)
			if isTestOnly(imported) {
				t.Errorf("%s imports %s, which is for tests: import it in _test.go files only", path, imported)
				continue
			}
			to := layerOf(imported)
			if to > from || to == from && folder(path) != folder(imported) {
				t.Errorf("%s imports %s, which does not lie below it: move what it needs down, or pass it in", path, imported)
			}
		}
	}
}

func TestDoorsDoNotKnowEachOther(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		if !strings.HasPrefix(path, "internal/door/") {
			continue
		}
		for _, imported := range p.Imports {
			imported = strings.TrimPrefix(imported, module)
			if strings.HasPrefix(imported, "internal/door/") && door(imported) != door(path) {
				t.Errorf("%s imports %s: a door is a translation between a protocol and the core; share through the core", path, imported)
			}
		}
	}
}

func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment: say what it owns and what always holds", p.ImportPath)
		}
	}
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,GoFiles,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []goPackage
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("go list's answer: %v", err)
		}
		list = append(list, p)
	}
}

func layerOf(path string) int {
	best, length := -1, 0
	for i, names := range layers {
		for _, name := range names {
			if (path == name || strings.HasPrefix(path, name+"/")) && len(name) > length {
				best, length = i, len(name)
			}
		}
	}
	return best
}

// folder is the listed name that a path falls under: packages of one folder may import each other.
func folder(path string) string {
	best := ""
	for _, names := range layers {
		for _, name := range names {
			if (path == name || strings.HasPrefix(path, name+"/")) && len(name) > len(best) {
				best = name
			}
		}
	}
	return best
}

func door(path string) string {
	rest := strings.TrimPrefix(path, "internal/door/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func isTestOnly(path string) bool {
	for _, name := range testOnly {
		if path == name {
			return true
		}
	}
	return false
}

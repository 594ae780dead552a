package parse

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse: no text makes the parser panic; what parses has spans within the text, and prints to something that parses to
// the same tree.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // the fuzzer's own folder
		}
		for line := range strings.SplitSeq(string(data), "\n") {
			f.Add(line)
			f.Add("select " + line)
		}
		for block := range strings.SplitSeq(string(data), "\n\n") {
			f.Add(strings.TrimPrefix(block, "sql\n"))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		statements, err := Parse(text)
		if err != nil {
			e, ok := err.(*Error)
			if !ok || e.Code == "" || e.Message == "" || e.Position < 0 || e.Position > len(text)+1 {
				t.Fatalf("%q: not a proper error: %#v", text, err)
			}
		}
		for _, s := range statements {
			checkSpans(t, text, s.Node)
		}
		roundTrip(t, text, statements)
		pieces, rest, _ := Split(text)
		if strings.Join(pieces, "")+rest != text {
			t.Fatalf("Split loses text: %q", text)
		}
	})
}

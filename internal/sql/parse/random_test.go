package parse

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "seed of the random tests; 0 takes the time")
	countFlag = flag.Int("count", 4_000, "texts that the random test makes")
)

// TestRandomTexts makes texts out of pieces of the golden tests' inputs, cut and joined between tokens, which reaches
// combinations that nobody wrote: none may panic, and what parses must print back to the same tree.
func TestRandomTexts(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	corpus := corpusTokens(t)
	parsed := 0
	for range *countFlag {
		text := randomText(r, corpus)
		statements, err := Parse(text)
		if err != nil {
			continue
		}
		parsed++
		for _, s := range statements {
			checkSpans(t, text, s.Node)
		}
		roundTrip(t, text, statements)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d of %d texts parse", parsed, *countFlag)
}

// corpusTokens returns the tokens of every statement and expression of testdata.
func corpusTokens(t *testing.T) (corpus [][]string) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.SplitSeq(string(data), "\n") {
			if line == "sql" || line == "expr" || line == "----" || strings.HasPrefix(line, "    (") {
				continue
			}
			if _, err := ParseExpr(line); err == nil {
				line = "select " + line
			}
			pieces, rest, _ := Split(line)
			for _, piece := range append(pieces, rest) {
				var tokens []string
				lex := lexer{src: strings.TrimSuffix(piece, ";")}
				for {
					tok, err := lex.next()
					if err != nil || tok.kind == tokEOF {
						break
					}
					tokens = append(tokens, lex.src[tok.from:tok.to])
				}
				if len(tokens) > 0 {
					corpus = append(corpus, tokens)
				}
			}
		}
	}
	return corpus
}

// randomText changes one text of the corpus a few times: a piece of another comes in, goes out, or is put in parentheses.
func randomText(r *rand.Rand, corpus [][]string) string {
	pick := func() []string { return corpus[r.IntN(len(corpus))] }
	piece := func(most int) []string {
		from := pick()
		i := r.IntN(len(from))
		return from[i:min(len(from), i+1+r.IntN(most))]
	}
	text := append([]string(nil), pick()...)
	for range r.IntN(4) {
		at := r.IntN(len(text) + 1)
		to := min(len(text), at+r.IntN(4))
		var middle []string
		switch r.IntN(6) {
		case 0: // leave something out
		case 1:
			middle = append(append([]string{"("}, text[at:to]...), ")")
		case 2: // an expression in place of a token
			middle = pick()
			if middle[0] == "select" {
				middle = middle[1:]
			}
			if to = min(len(text), at+1); r.IntN(2) == 0 {
				middle = append(append([]string{"("}, middle...), ")")
			}
		case 3: // a query in place of a token
			middle = append(append([]string{"("}, pick()...), ")")
			to = min(len(text), at+1)
		case 4: // quotes around a word
			if to = min(len(text), at+1); at < to {
				middle = []string{`"` + strings.Trim(text[at], `"'`) + `"`}
			}
		default:
			middle = piece(6)
		}
		text = append(append(append([]string(nil), text[:at]...), middle...), text[to:]...)
	}
	return strings.Join(text, " ")
}
